"""How often a server can make a client obtain tokens, and ask its user.

The rules that live here, and only here:

* A server that accepts each token once and then refuses it makes the client obtain another one,
  with every request, and with every stream that it closes and the client opens again. Both are
  bounded in a span of time: the requests to an authorization server, and the logins of a user.
* The count is that of a configuration and a server: a new connection does not begin from nothing.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Final

from ....errors import AuthorizationFailed

__all__ = ["RenewalLimit"]

# A token of a server that does not say when it ends may be refused every few seconds.
MAX_TOKENS: Final = 20
TOKENS_SPAN_S: Final = 60.0
MAX_LOGINS: Final = 20
LOGINS_SPAN_S: Final = 600.0


class RenewalLimit:
    """Counts the tokens that were obtained because a server refused the one before."""

    __slots__ = ("_logins", "_tokens")

    def __init__(self) -> None:
        self._tokens: deque[float] = deque()
        self._logins: deque[float] = deque()

    def __repr__(self) -> str:
        return f"<RenewalLimit, {len(self._tokens)} tokens, {len(self._logins)} logins>"

    def count_token(self) -> None:
        """Count a token that is about to be asked for, after a refusal.

        Raises:
            AuthorizationFailed: there were too many.
        """
        _count(self._tokens, MAX_TOKENS, TOKENS_SPAN_S, "tokens")

    def count_login(self) -> None:
        """Count a login of the user that is about to begin.

        Raises:
            AuthorizationFailed: there were too many.
        """
        _count(self._logins, MAX_LOGINS, LOGINS_SPAN_S, "logins")


def _count(times: deque[float], limit: int, span: float, what: str) -> None:
    now = time.monotonic()
    while times and times[0] <= now - span:
        times.popleft()
    if len(times) >= limit:
        raise AuthorizationFailed(
            f"the server has asked for {limit} {what} within {span:g} s", step="request"
        )
    times.append(now)

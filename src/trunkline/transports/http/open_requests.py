"""The HTTP requests that are served at one time, of which each client has a share.

    requests = OpenRequests(limits.requests, accounts)
    requests.begin(account)
    if not requests.has_room(account):
        ...                            # it is refused
    requests.end(account)

They cannot be taken back: an answer that is broken off is lost. `admits` decides once more when a
request has told its principal, because before that it counts for an address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...accounts.shares import SharedLimit

if TYPE_CHECKING:
    from ...accounts.account import Account, Accounts

__all__ = ["OpenRequests"]


class OpenRequests:
    """The requests of one listener or application."""

    def __init__(self, limit: int, accounts: Accounts) -> None:
        self._accounts: Final = accounts
        self._limit: Final = SharedLimit(limit, accounts.shares, accounts)

    def __repr__(self) -> str:
        return f"<OpenRequests {self._limit.used} of {self._limit.limit}>"

    def begin(self, account: Account) -> None:
        """Count a request for a client."""
        self._limit.used += 1
        account.open_requests += 1

    def end(self, account: Account) -> None:
        """Count a request no longer."""
        self._limit.used -= 1
        account.open_requests -= 1

    def has_room(self, account: Account) -> bool:
        """Return True if the requests of a client, which count already, are within its share."""
        limit, own = self._limit, account.open_requests
        return limit.used <= limit.limit and (own == 1 or limit.admits(own, 0))

    def admits(self, key: str) -> bool:
        """Return True if a client may have one more, which counts for another account so far."""
        account = self._accounts.find(key)
        return account is None or self._limit.admits(account.open_requests + 1, 0)

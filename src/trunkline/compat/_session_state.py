"""What a server keeps of one session for methods outside the specification.

The state belongs to a session and ends with it: a client never sees the state of another one,
and a new connection starts with empty state. Revisions without sessions have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from ..errors import RequestError
from ..server.context import Context, request_of
from ..spec.error_kinds import ErrorKind

__all__ = ["MAX_ENTRIES", "SessionState", "check_room"]

S = TypeVar("S")

# Of one kind, in one session: a client could otherwise fill the memory of the server.
MAX_ENTRIES: Final = 1000


class SessionState(Generic[S]):
    """One value for each session of a server."""

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._of: WeakKeyDictionary[object, S] = WeakKeyDictionary()

    def of(self, ctx: Context) -> S:
        """Return the state of the session that a request belongs to.

        Raises:
            RequestError: the revision has no sessions.
        """
        session = request_of(ctx).connection.session
        if session is None:
            text = f"{ctx.method} belongs to a session, which MCP {ctx.revision} does not have"
            raise RequestError(ErrorKind.METHOD_NOT_FOUND, text)
        found = self._of.get(session)
        if found is None:
            found = self._of[session] = self._make()
        return found


def check_room(entries: int) -> None:
    """Raise RequestError if a session has as many entries as it may have."""
    if entries >= MAX_ENTRIES:
        text = f"The session has {MAX_ENTRIES} of them already"
        raise RequestError(ErrorKind.OVERLOADED, text)

"""Generated request ids."""

from __future__ import annotations

from ..errors import IdsExhausted
from ..spec.jsonrpc import LOCAL_RULES
from .messages import RequestId

__all__ = ["IdSource", "UuidSource"]


class IdSource:
    """Counts ids upwards; each is returned once.

    The default maximum, 2^53-1, is the largest integer that every JSON parser
    keeps exact; at one request per millisecond it lasts 285 000 years.
    """

    __slots__ = ("_next", "maximum")

    def __init__(self, *, first: int = 1, maximum: int = 2**53 - 1) -> None:
        self._next = first
        self.maximum = maximum

    def next(self) -> int:
        """Return the next id.

        Raises:
            IdsExhausted: the maximum was returned before; a new connection starts a new count.
        """
        id = self._next
        if id > self.maximum:
            rule = "jsonrpc.id.exhausted"
            raise IdsExhausted(rule, got=id, expected=LOCAL_RULES[rule])
        self._next = id + 1
        return id

    def has_passed(self, id: RequestId) -> bool:
        """Return True if the count is beyond `id`; it never reaches a string."""
        return isinstance(id, int) and id < self._next

    def claim(self, id: RequestId) -> None:
        """Continue the count after `id`, so that an id of the caller is not returned again.

        An id above the maximum does not change the count.
        """
        if isinstance(id, int) and self._next <= id <= self.maximum:
            self._next = id + 1

    @staticmethod
    def uuid() -> str:
        """Return a random UUID, for ids that are unique across connections."""
        # Imported here: few programs use it, and it costs more than the rest of this package.
        from uuid import uuid4

        return str(uuid4())


class UuidSource:
    """Returns a random UUID for each request; an id of the caller never collides with one."""

    __slots__ = ()

    def next(self) -> str:
        """Return the next id."""
        return IdSource.uuid()

    def has_passed(self, id: RequestId) -> bool:
        """Return False: there is no count that could be beyond an id."""
        return False

    def claim(self, id: RequestId) -> None:
        """Do nothing: there is no count to continue."""

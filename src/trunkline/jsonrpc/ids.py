"""Which id the next request gets."""

from __future__ import annotations

from ..errors import IdsExhausted
from ..spec.jsonrpc import LOCAL_RULES
from .messages import RequestId

__all__ = ["IdSource"]


class IdSource:
    """Counts ids upwards; each is given out once.

    The default maximum, 2^53-1, is the largest integer that every JSON reader
    keeps exact; at one request a millisecond it lasts 285 000 years.
    """

    __slots__ = ("_next", "maximum")

    def __init__(self, *, first: int = 1, maximum: int = 2**53 - 1) -> None:
        self._next = first
        self.maximum = maximum

    def next(self) -> int:
        """Return the next id.

        Raises:
            IdsExhausted: the maximum was given out before; a new connection starts a new count.
        """
        id = self._next
        if id > self.maximum:
            rule = "jsonrpc.id.exhausted"
            raise IdsExhausted(rule, got=id, expected=LOCAL_RULES[rule])
        self._next = id + 1
        return id

    def has_passed(self, id: RequestId) -> bool:
        """Say whether the count is beyond `id`; it never comes to a text."""
        return isinstance(id, int) and id < self._next

    def claim(self, id: RequestId) -> None:
        """Let the count go on after `id`, so that a caller's own id is not given out again.

        One above the maximum is none of ours, and does not use up what is left.
        """
        if isinstance(id, int) and self._next <= id <= self.maximum:
            self._next = id + 1

    @staticmethod
    def uuid() -> str:
        """Return a new random UUID, for those who want ids that no other connection has."""
        # Imported here: few programs want it, and it costs more than the rest of this package.
        from uuid import uuid4

        return str(uuid4())

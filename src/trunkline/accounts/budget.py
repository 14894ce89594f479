"""Byte budgets: how much a connection, a client and the server may hold at one time.

A `ByteBudget` counts bytes. That of a connection has that of its client as its parent, if it has
one; that of a client has that of its tenant, or of the server. What one holds counts for all above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .shares import SharedLimit

__all__ = ["ByteBudget", "ClientBudget"]


class ByteBudget:
    """A number of bytes that may be held at one time; what is charged here is charged above."""

    __slots__ = ("limit", "parent", "used")

    def __init__(self, limit: int, parent: ByteBudget | SharedLimit | None = None) -> None:
        self.limit = limit
        self.parent = parent
        self.used = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.used} of {self.limit} bytes>"

    def charge(self, size: int) -> None:
        """Count bytes that are held from now on."""
        self.used += size
        if self.parent is not None:
            self.parent.charge(size)

    def release(self, size: int) -> None:
        """Count bytes that are not held any more."""
        self.charge(-size)

    def has_room(self, size: int) -> bool:
        """Return True if so many more bytes fit; a budget of which nothing is used has room."""
        return not self.used or self.used + size <= self.limit

    def has_shared_room(self, size: int) -> bool:
        """Return True if so many more bytes fit the budgets between this and that of the server."""
        above = self.parent
        while isinstance(above, ByteBudget):
            if not above.has_room(size):
                return False
            above = above.parent
        return True


class ClientBudget(ByteBudget):
    """The bytes of one client: its share of those of the server."""

    __slots__ = ("_overall", "above", "on_empty")

    def __init__(self, overall: SharedLimit, parent: ByteBudget | None = None) -> None:
        # That of the tenant, or of the server.
        self.above: ByteBudget | SharedLimit = parent or overall
        super().__init__(overall.limit, self.above)
        self._overall = overall
        # Called when nothing is held any more.
        self.on_empty: Callable[[], object] | None = None

    def charge(self, size: int) -> None:
        """Count bytes that are held from now on."""
        super().charge(size)
        if self.on_empty is not None and not self.used:
            self.on_empty()

    def has_room(self, size: int) -> bool:
        """Return True if so many more bytes are within its share; the first always are."""
        return not self.used or self._overall.admits(self.used, size)

"""Tool sets: which tools exist for a tenant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..registry.entries import Entry

__all__ = ["ToolSets"]


class ToolSets:
    """The tools of tenants by name; a tenant that is not listed has the default set."""

    __slots__ = ("_default", "_sets")

    def __init__(
        self, sets: Mapping[str, Collection[str]], default: Collection[str] | None
    ) -> None:
        self._sets = {tenant: frozenset(tools) for tenant, tools in sets.items()}
        # None is every tool.
        self._default = None if default is None else frozenset(default)

    def __repr__(self) -> str:
        return f"<ToolSets of {len(self._sets)} tenants>"

    def offers(self, entry: Entry, tenant: str | None) -> bool:
        """Return True if a tool is in the set of a tenant; other entries are not in sets."""
        if not entry.is_tool:
            return True
        found = self._default if tenant is None else self._sets.get(tenant, self._default)
        return found is None or entry.name in found

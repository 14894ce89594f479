"""The catalog of a server: registered entries, their lists, guards, completions and cache hints.

The rules that live here, and only here:

* Of a kind that is switched off nothing is offered, whatever is registered.
* A list that differs between callers is cached for one caller only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import ValidationError, convert
from msgspec.structs import replace

from ..settings import CacheHint
from . import register
from .entries import Completer, Entry, PromptEntry, ResourceEntry, ToolEntry
from .paged_list import PagedList

if TYPE_CHECKING:
    from ...auth.scopes import ImpliedScopes
    from ...spec.rows import EntryKind
    from ..access.tool_sets import ToolSets
    from .options import ServerOptions

__all__ = ["Catalog"]

_log: Final = logging.getLogger("trunkline.server")


class Catalog:
    """What one server has registered, and what of it is offered."""

    def __init__(
        self,
        options: ServerOptions,
        cursor_key: bytes,
        tool_row: Callable[[ToolEntry, str], Any],
        on_change: Callable[[str], object],
    ) -> None:
        # Kinds that are switched off; of the others, clients are notified of changed lists, and may
        # subscribe to resources.
        capabilities = options.switches()
        self._switched_off = frozenset(name for name, on in capabilities.items() if not on)
        # Also without a completion, or a handler that can log, so far.
        self._always_completes = capabilities.get("completions", False)
        self.always_logs = capabilities.get("logging", False)
        self._subscribe = options.subscribe
        self._cache = options.cache
        # Access: scopes that grant others, and whether lists leave out what lacks scopes.
        self._implies = options.implies
        if options.implies is not None:
            _ = self.implied_scopes  # on the line of the author
        self.hide_unscoped = options.hide_unscoped
        # The tools of each tenant; None without tenants.
        self.tool_sets: ToolSets | None = None
        make = register.list_maker(options.page_sizes(), cursor_key, on_change)
        self.tools: PagedList[ToolEntry] = make("tools", tool_row)
        self.resources: PagedList[ResourceEntry] = make("resources", _row)
        self.templates: PagedList[ResourceEntry] = make("resourceTemplates", _row)
        self.prompts: PagedList[PromptEntry] = make("prompts", _row)
        self.lists: dict[EntryKind | None, PagedList[Any]] = {
            "tool": self.tools,
            "prompt": self.prompts,
            "resource": self.resources,
            "template": self.templates,
        }
        # By ("prompt" or "resource", name or template, argument).
        self.completions: dict[tuple[str, str, str], Completer] = {}
        # The catalogs of mounted servers, whose completions are offered too.
        self.mounted: list[Catalog] = []
        # The cache hint of each list, until it changes.
        self._cache_hints: dict[int, CacheHint] = {}
        # Whether a list differs between callers, and has guards, until it changes.
        self._varying: dict[int, bool] = {}
        self._guarded: dict[int, bool] = {}
        # Whether an entry of the lists gets contexts, until one changes.
        self._listed_contexts: bool | None = None
        self._warned: set[str] = set()

    def offers(self, capability: str) -> bool:
        """Return True if a capability, or what it is part of, is not switched off."""
        if capability == "resources.subscribe" and not self._subscribe:
            return False
        return capability.partition(".")[0] not in self._switched_off

    def offers_to_tenant(self, entry: Entry, tenant: str | None) -> bool:
        """Return True if an entry exists for a tenant: its tool set may leave out a tool."""
        return self.tool_sets is None or self.tool_sets.offers(entry, tenant)

    def forget_lists(self) -> None:
        """Drop what is cached about lists."""
        self._cache_hints.clear()
        self._varying.clear()
        self._guarded.clear()
        self._listed_contexts = None

    def warn_deprecated(self, entry: ToolEntry) -> None:
        """Log a warning, once per tool, that a deprecated tool is called."""
        if entry.name not in self._warned:
            self._warned.add(entry.name)
            _log.warning("deprecated tool %r was called: %s", entry.name, entry.deprecated)

    # -- resources ---------------------------------------------------------------------------

    def find_resources(self, uri: str) -> Iterator[tuple[ResourceEntry, dict[str, str]]]:
        """Yield the resources that a URI may name, best first, with the values of variables."""
        entry = self.resources.get(uri)
        if entry is not None:
            yield entry, {}
        if not len(self.templates):
            return
        # Imported here: a server without templates need not know how they are read.
        from .uri_template import RequestedUri

        asked = RequestedUri(uri)
        for entry in self.templates:
            if (values := entry.match(asked)) is not None:
                yield entry, values

    def served_resources(self, uri: str) -> Iterator[tuple[ResourceEntry, Any]]:
        """Yield the resources that a URI names, best first, with the arguments of their handlers.

        Unlike `find_resources`, it leaves out templates whose handlers do not take the values.
        """
        from ..handlers.custom_types import read_custom

        for entry, texts in self.find_resources(uri):
            try:
                values = convert(texts, entry.arguments.struct, strict=False, dec_hook=read_custom)
            except ValidationError:
                continue  # no resource of the template has such a name
            yield entry, values

    def scopes_of_resource(self, uri: str) -> frozenset[str]:
        """Return the scopes that reading a resource needs."""
        if not (self.has_guards(self.resources) or self.has_guards(self.templates)):
            return frozenset()
        found = next((entry.guard for entry, _ in self.served_resources(uri)), None)
        return frozenset() if found is None else found.scopes

    # -- completions -------------------------------------------------------------------------

    @property
    def has_completions(self) -> bool:
        """Whether arguments may have completions, here or in a mounted server."""
        if "completions" in self._switched_off:
            return False
        return (
            self._always_completes
            or bool(self.completions)
            or any(each.has_completions for each in self.mounted)
        )

    def completed_entries(self, kind: str, name: str) -> Iterator[Entry]:
        """Yield the prompt, or the resources and templates, that a completion may refer to."""
        entry: Entry | None
        entry = self.prompts.get(name) if kind == "prompt" else self.templates.get(name)
        if entry is not None:
            yield entry
        elif kind != "prompt":
            yield from (found for found, _ in self.find_resources(name))

    def completer(self, kind: str, entries: Iterable[Entry], argument: str) -> Completer | None:
        """Return the completer of an argument of one of these entries, or None."""
        for entry in entries:
            if isinstance(entry, ResourceEntry):
                own = entry.own_uri or entry.uri
            else:
                own = entry.own_name or entry.name
            theirs: Catalog = entry.owner.catalog
            completer = theirs.completions.get((kind, own, argument))
            if completer is not None:
                # It runs through the middleware of what it completes.
                return replace(completer, path=entry.path) if entry.path else completer
        return None

    # -- contexts ----------------------------------------------------------------------------

    @property
    def has_contexts(self) -> bool:
        """Whether a handler or guard of what is offered gets the context of its request."""
        if self._listed_contexts is None:
            lists: tuple[tuple[str, PagedList[Any]], ...] = (
                ("tools", self.tools),
                ("prompts", self.prompts),
                ("resources", self.resources),
                ("resources", self.templates),
            )
            self._listed_contexts = any(
                _gets_context(entry) for kind, each in lists if self.offers(kind) for entry in each
            )
        return self._listed_contexts or self._completes_with_context()

    def _completes_with_context(self) -> bool:
        own = any(map(_gets_context, self.completions.values()))
        return own or any(each._completes_with_context() for each in self.mounted)

    # -- lists -------------------------------------------------------------------------------

    def cache_of(self, listed: PagedList[Any]) -> CacheHint:
        """Return the cache hint of a list."""
        found = self._cache_hints.get(id(listed))
        if found is None:
            found = register.cache_of(listed, self._cache)
            if self.varies(listed):
                found = replace(found, scope="private")
            self._cache_hints[id(listed)] = found
        return found

    def varies(self, listed: PagedList[Any]) -> bool:
        """Return True if a list differs between callers."""
        found = self._varying.get(id(listed))
        if found is None:
            found = self._varying[id(listed)] = self._find_varying(listed)
        return found

    def _find_varying(self, listed: PagedList[Any]) -> bool:
        if self.tool_sets is not None and listed is self.tools:
            return True
        guards = (entry.guard for entry in listed if entry.guard is not None)
        return any(each.visible or (each.scopes and self.hide_unscoped) for each in guards)

    def has_guards(self, listed: PagedList[Any]) -> bool:
        """Return True if an entry of a list has a guard."""
        found = self._guarded.get(id(listed))
        if found is None:
            found = self._guarded[id(listed)] = any(each.guard is not None for each in listed)
        return found

    @cached_property
    def implied_scopes(self) -> ImpliedScopes:
        """Which scopes grant others."""
        from ...auth.scopes import ImpliedScopes  # here: most servers have no guards

        return ImpliedScopes(self._implies)


def _gets_context(entry: Entry) -> bool:
    guard = entry.guard
    return entry.arguments.wants_context or (
        guard is not None and bool(guard.allow or guard.visible)
    )


def _row(entry: ResourceEntry | PromptEntry, _: str) -> Any:
    return entry.row()

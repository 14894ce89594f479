"""Mounting: a server offers the tools, resources, prompts and extensions of another one.

The rules that live here, and only here:

* Tools and prompts are renamed to `prefix_name`. The prefix is the first segment of URIs and
  templates: `config://app` becomes `config://prefix/app`, and `urn:a` becomes `urn:prefix/a`. URIs
  that were registered as fixed, and templates with a variable for the scheme, stay as they are.
* What the mounted server adds or removes later is added or removed here too. A name that is
  taken here by then is left out, and a warning is logged.
* A kind that is switched off in the mounted server is not offered here.
* The guard of an entry and that of the mount hold together.
* Two servers cannot mount each other, directly or through others.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ..methods import extension_methods
from ..registry.entries import ResourceEntry
from ..registry.paged_list import PagedList
from ..registry.register import check_name

if TYPE_CHECKING:
    from ...engine.access.guard import Guard
    from .core import ServerCore

__all__ = ["mount"]

_log: Final = logging.getLogger("trunkline.server")


def mount(core: ServerCore, other: ServerCore, prefix: str, guard: Guard | None = None) -> None:
    """Offer what another server offers, now and after each change, behind a guard if given."""
    if other is core or _reaches(other, core):
        raise ValueError(f"{other!r} mounts {core!r}: neither could be listed")
    if core.runtime.is_open and other.has_lifespan:
        raise RuntimeError(f"mount {other!r} before {core!r} is served: its lifespan is to begin")
    if prefix:
        check_name(prefix, "server")
    before = f"{prefix}_" if prefix else ""
    pairs: list[tuple[str, PagedList[Any], PagedList[Any], str]] = [
        ("tools", core.catalog.tools, other.catalog.tools, before),
        ("prompts", core.catalog.prompts, other.catalog.prompts, before),
        ("resources", core.catalog.resources, other.catalog.resources, prefix),
        ("resources", core.catalog.templates, other.catalog.templates, prefix),
    ]
    pairs = [each for each in pairs if other.catalog.offers(each[0])]
    taken: dict[int, dict[str, Any]] = {id(theirs): {} for _, _, theirs, _ in pairs}

    def follow(what: str) -> None:
        """Update the copies of one list."""
        if what == "extensions":
            extension_methods.follow(core, other)
            return
        for kind, ours, theirs, lead in pairs:
            if kind == what:
                _copy(other, ours, theirs, lead, taken[id(theirs)], guard)

    for _, ours, theirs, lead in pairs:
        for entry in theirs:
            if (name := _mounted_key(entry, lead)) in ours:
                how = "another prefix" if prefix else "a prefix"
                raise ValueError(f"{name!r} is taken; mount {other!r} with {how}")
    extension_methods.check_mounted(core, other)
    core.mounted.append(other)
    core.catalog.mounted.append(other.catalog)
    other.mount_updates.append(follow)
    fixed = partial(_is_fixed, other)
    other.services.streams.followers.append(
        (
            core.services.streams,
            lambda uri: uri if not prefix or fixed(uri) else prefixed_uri(uri, prefix),
        )
    )
    for what in ("tools", "prompts", "resources", "extensions"):
        follow(what)


def _reaches(server: ServerCore, sought: ServerCore) -> bool:
    return any(each is sought or _reaches(each, sought) for each in server.mounted)


def prefixed_uri(uri: str, prefix: str) -> str:
    """Return a URI or template with a prefix as the first segment after its scheme."""
    scheme, colon, rest = uri.partition(":")
    if not prefix or not colon or "{" in scheme:
        return uri
    slashes = "//" if rest.startswith("//") else ""
    return f"{scheme}:{slashes}{prefix}/{rest.removeprefix(slashes)}"


def _mounted_key(entry: Any, lead: str) -> str:
    """Return the name or URI that an entry has where its server is mounted."""
    if isinstance(entry, ResourceEntry):
        return entry.uri if entry.fixed_uri else prefixed_uri(entry.uri, lead)
    return f"{lead}{entry.name}"


def _is_fixed(other: ServerCore, uri: str) -> bool:
    """Return True if a URI names a resource that keeps its URI."""
    entry = next((entry for entry, _ in other.catalog.find_resources(uri)), None)
    return entry is not None and entry.fixed_uri


def _copy(
    other: ServerCore,
    ours: PagedList[Any],
    theirs: PagedList[Any],
    lead: str,
    taken: dict[str, Any],
    guard: Guard | None,
) -> None:
    """Make the copies in `ours` those of `theirs`; `taken` maps names to originals."""
    wanted = {_mounted_key(entry, lead): entry for entry in theirs}
    for name in [name for name, entry in taken.items() if wanted.get(name) is not entry]:
        del taken[name]
        if name in ours:  # or it was removed here
            ours.remove(name)
    for name, original in wanted.items():
        entry = original
        if name in taken:
            continue
        if name in ours:
            # An error would be raised in code that registers with the mounted server.
            _log.warning(
                "%r of mounted server %r is not offered: the name is taken", name, other.name
            )
            continue
        path, own_name = (other, *entry.path), entry.own_name or entry.name
        if guard is not None:
            from ...engine.access.guard import joined  # here: most mounts have none

            entry = replace(entry, guard=joined(guard, entry.guard))
        if isinstance(entry, ResourceEntry):
            ours.add(name, _copied_resource(entry, name, path, own_name))
        else:
            ours.add(name, replace(entry, name=name, path=path, own_name=own_name))
        taken[name] = original


def _copied_resource(
    entry: ResourceEntry, uri: str, path: tuple[Any, ...], own_name: str
) -> ResourceEntry:
    template = entry.template
    if template is not None and uri != entry.uri:
        # Imported here: a server without templates need not know how they are read.
        from ..registry.uri_template import UriTemplate

        template = UriTemplate(uri)
    return replace(
        entry,
        uri=uri,
        template=template,
        path=path,
        own_name=own_name,
        own_uri=entry.own_uri or entry.uri,
    )

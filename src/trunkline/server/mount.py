"""Mounting: a server offers the tools, resources, prompts and extensions of another one.

The rules that live here, and only here:

* Tools and prompts are renamed to `prefix_name`; URIs stay as they are.
* What the mounted server adds or removes later is added or removed here too. A name that is
  taken here by then is left out, and a warning is logged.
* A kind that is switched off in the mounted server is not offered here.
* Two servers cannot mount each other, directly or through others.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from .dispatch import extension_methods
from .registry.entries import ResourceEntry
from .registry.paged_list import PagedList
from .registry.register import check_name

if TYPE_CHECKING:
    from .core import ServerCore

__all__ = ["mount"]

_log: Final = logging.getLogger("trunkline.server")


def mount(core: ServerCore, other: ServerCore, prefix: str) -> None:
    """Offer what another server offers, now and after each change."""
    if other is core or _reaches(other, core):
        raise ValueError(f"{other!r} mounts {core!r}: neither could be listed")
    if core.is_open and other.has_lifespan:
        raise RuntimeError(f"mount {other!r} before {core!r} is served: its lifespan is to begin")
    if prefix:
        check_name(prefix, "server")
    before = f"{prefix}_" if prefix else ""
    pairs: list[tuple[str, PagedList[Any], PagedList[Any], str]] = [
        ("tools", core.tools, other.tools, before),
        ("prompts", core.prompts, other.prompts, before),
        ("resources", core.resources, other.resources, ""),
        ("resources", core.templates, other.templates, ""),
    ]
    pairs = [each for each in pairs if other.offers(each[0])]
    taken: dict[int, dict[str, Any]] = {id(theirs): {} for _, _, theirs, _ in pairs}

    def follow(what: str) -> None:
        """Update the copies of one list."""
        if what == "extensions":
            extension_methods.follow(core, other)
            return
        for kind, ours, theirs, lead in pairs:
            if kind == what:
                _copy(other, ours, theirs, lead, taken[id(theirs)])

    for _, ours, theirs, lead in pairs:
        for entry in theirs:
            if (name := lead + _key(entry)) in ours:
                raise ValueError(f"{name!r} is taken; mount {other!r} with a prefix")
    extension_methods.check_mounted(core, other)
    core.mounted.append(other)
    other.mount_updates.append(follow)
    other.streams.followers.append(core.streams)
    for what in ("tools", "prompts", "resources", "extensions"):
        follow(what)


def _reaches(server: ServerCore, sought: ServerCore) -> bool:
    return any(each is sought or _reaches(each, sought) for each in server.mounted)


def _key(entry: Any) -> str:
    return entry.uri if isinstance(entry, ResourceEntry) else entry.name


def _copy(
    other: ServerCore,
    ours: PagedList[Any],
    theirs: PagedList[Any],
    lead: str,
    taken: dict[str, Any],
) -> None:
    """Make the copies in `ours` those of `theirs`; `taken` maps names to originals."""
    wanted = {lead + _key(entry): entry for entry in theirs}
    for name in [name for name, entry in taken.items() if wanted.get(name) is not entry]:
        del taken[name]
        if name in ours:  # or it was removed here
            ours.remove(name)
    for name, entry in wanted.items():
        if name in taken:
            continue
        if name in ours:
            # An error would be raised in code that registers with the mounted server.
            _log.warning(
                "%r of mounted server %r is not offered: the name is taken", name, other.name
            )
            continue
        renamed = entry.name if isinstance(entry, ResourceEntry) else name
        copy = replace(
            entry,
            name=renamed,
            path=(other, *entry.path),
            own_name=entry.own_name or entry.name,
        )
        ours.add(name, copy)
        taken[name] = entry

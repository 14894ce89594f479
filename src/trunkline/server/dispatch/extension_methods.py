"""What becomes of a server that takes an extension, of its own or of a server it mounts.

What an extension is and whom it serves is in `extensions.py`; here is what two of them, or one
and the server, may not both have. An extension that cannot be taken leaves the server as it is.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ..extensions import Extended, Extension, ExtensionGate
from ..registry.entries import Entry
from .methods import OwnMethod
from .revision import MethodHandler

if TYPE_CHECKING:
    from ..core import ServerCore

__all__ = ["check_method", "check_mounted", "extend", "follow", "refresh"]

_log: Final = logging.getLogger("trunkline.server")


def extend(core: ServerCore, extension: Extension) -> None:
    """Have a server take an extension of its own; one that cannot be taken changes nothing."""
    _check(core, extension)
    extension.on_extend(core.app)
    core.extensions[extension.id] = Extended(extension, core)
    extension.added_to(core)
    refresh(core)


def _check(core: ServerCore, extension: Extension) -> None:
    """Refuse an extension that another one, or the server, is in the way of."""
    if not isinstance(extension, Extension):
        raise TypeError(f"a server is extended by an Extension, not by {type(extension).__name__}")
    there = core.extensions.get(extension.id)
    # One that came with a mounted server gives way to one of our own that does the same.
    if there is not None and not (there.path and there.extension.is_same(extension)):
        raise ValueError(f"{core!r} has an extension {extension.id} already")
    for name in extension.methods:
        check_method(core, extension.id, name)
    others = [(id, taken) for id, taken in core.extensions.items() if id != extension.id]
    for id, taken in others:
        shared = set(extension.result_types) & set(taken.extension.result_types)
        if shared:
            raise ValueError(
                f"{extension.id} and {id} both have the result type {min(shared)!r}: "
                "clients could not tell them apart"
            )


def check_method(core: ServerCore, id: str, name: str) -> None:
    """Refuse a method that another extension has, or the server as its own.

    Raises:
        ValueError: it is served already; the text says by whom.
    """
    if name in core.own_methods:
        raise ValueError(f"{name!r} of {id} is a method of {core!r} already")
    for other, taken in core.extensions.items():
        if other != id and name in taken.extension.methods:
            raise ValueError(f"{name!r} is a method of {other}, and cannot be one of {id}")


def refresh(core: ServerCore) -> None:
    """Serve what a server's extensions have now, and have those follow that mount it."""
    served: dict[str, MethodHandler] = {}
    for id, taken in core.extensions.items():
        for method in taken.extension.methods.values():
            serve: MethodHandler = method.serve
            if method.arguments is not None:
                entry = Entry(
                    name=method.name,
                    owner=taken.owner,
                    arguments=method.arguments,
                    inline=method.inline,
                    path=taken.path,
                )
                serve = OwnMethod(entry)
            served[method.name] = serve if method.always else ExtensionGate(id, serve)
    core.extension_methods = served
    for rev in list(core._revs.values()):
        rev.refresh()
    for tell in core._mounted_in:
        tell("extensions")


def check_mounted(core: ServerCore, other: ServerCore) -> None:
    """Refuse to mount a server with an extension that this one has otherwise."""
    for id, theirs in other.extensions.items():
        ours = core.extensions.get(id)
        if ours is None:
            _check(core, theirs.extension)
        elif not ours.extension.is_same(theirs.extension):
            raise ValueError(f"{core!r} and {other!r} have different extensions {id}")


def follow(core: ServerCore, other: ServerCore) -> None:
    """Take the extensions of a mounted server that this one lacks."""
    for id, theirs in other.extensions.items():
        ours = core.extensions.get(id)
        if ours is not None:
            if not ours.extension.is_same(theirs.extension):
                # Whoever extends there knows nothing of us, and is not to be told by an error.
                _log.warning("%s of %r is not offered: there is one here", id, other.name)
            continue
        try:
            _check(core, theirs.extension)
        except ValueError as error:
            _log.warning("%s of %r is not offered: %s", id, other.name, error)
            continue
        core.extensions[id] = Extended(theirs.extension, theirs.owner, (other, *theirs.path))
    refresh(core)

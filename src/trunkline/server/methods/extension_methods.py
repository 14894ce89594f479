"""Adding extensions to a server, its own and those of mounted servers.

Conflicts between two extensions, or between an extension and the server, are checked here. An
extension that cannot be added changes nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ...spec.mcp.tasks_extension import EXTENSION as TASKS
from ..dispatch.request import MethodHandler
from ..registry.entries import Entry
from ..registry.extensions import Extended, Extension, ExtensionGate
from .methods import OwnMethod

if TYPE_CHECKING:
    from ..api.core import ServerCore

__all__ = ["check_method", "check_mounted", "extend", "extend_with_tasks", "follow", "refresh"]

_log: Final = logging.getLogger("trunkline.server")


def extend(core: ServerCore, extension: Extension) -> None:
    """Add an extension to a server; one that cannot be added changes nothing."""
    _check(core, extension)
    extension.on_extend(core.app)
    core.extensions[extension.id] = Extended(extension, core)
    extension.added_to(core)
    refresh(core)


def extend_with_tasks(core: ServerCore) -> None:
    """Add the extension for tasks, unless the server has it."""
    if TASKS not in core.extensions:
        # Imported here: most servers have no tasks.
        from ..tasks.methods import tasks_extension

        extend(core, tasks_extension())


def _check(core: ServerCore, extension: Extension) -> None:
    """Raise ValueError if an extension conflicts with another one or with the server."""
    if not isinstance(extension, Extension):
        raise TypeError(f"add_extension takes an Extension, not {type(extension).__name__}")
    there = core.extensions.get(extension.id)
    # An equal extension of this server replaces that of a mounted one.
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
    """Raise ValueError for a method of another extension or of the server itself."""
    if name in core.own_methods:
        raise ValueError(f"{name!r} of {id} is a method of {core!r} already")
    for other, taken in core.extensions.items():
        if other != id and name in taken.extension.methods:
            raise ValueError(f"{name!r} is a method of {other}, and cannot be one of {id}")


def refresh(core: ServerCore) -> None:
    """Update the methods of a server's extensions, and the servers that mount it."""
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
    for rev in list(core.revisions_in_use.values()):
        rev.refresh()
    for update in core.mount_updates:
        update("extensions")


def check_mounted(core: ServerCore, other: ServerCore) -> None:
    """Raise ValueError if both servers have an extension of one id, and the two differ."""
    for id, theirs in other.extensions.items():
        ours = core.extensions.get(id)
        if ours is None:
            _check(core, theirs.extension)
        elif not ours.extension.is_same(theirs.extension):
            raise ValueError(f"{core!r} and {other!r} have different extensions {id}")


def follow(core: ServerCore, other: ServerCore) -> None:
    """Add the extensions of a mounted server that this one does not have."""
    for id, theirs in other.extensions.items():
        ours = core.extensions.get(id)
        if ours is not None:
            if not ours.extension.is_same(theirs.extension):
                # An error would be raised in code that extends the mounted server.
                _log.warning(
                    "extension %s of mounted server %r is not offered: another one has its id",
                    id,
                    other.name,
                )
            continue
        try:
            _check(core, theirs.extension)
        except ValueError as error:
            _log.warning(
                "extension %s of mounted server %r is not offered: %s", id, other.name, error
            )
            continue
        core.extensions[id] = Extended(theirs.extension, theirs.owner, (other, *theirs.path))
    refresh(core)

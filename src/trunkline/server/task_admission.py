"""Which calls are tasks: what the client wants or can have, and what the tool allows.

The rules that live here, and only here:

* In the core's form the client asks, with `task` in its params. A tool that is never a task
  refuses that, and one that must be refuses a call without.
                            [MCP 2025-11-25, basic/utilities/tasks#tool-level-negotiation]
* In the extension's form the tool decides, for a client whose very request declares the
  extension; what is in `task` means nothing.                                       [SEP-2663]
* A server without tasks, and a revision without them, take no notice of `task`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Raw, UnsetType, ValidationError

from ..mcp.names import official
from ..spec.kinds import ErrorKind
from ..spec.mcp.tasks_extension import EXTENSION
from .extensions import declares, refuse_undeclared
from .task_forms import form_of, read_ttl

if TYPE_CHECKING:
    from .app import Server
    from .context import Context
    from .entries import ToolEntry

__all__ = ["Admission", "admitted", "may_become"]


class Admission:
    """What is to become of a call: a task from its start or not, and for how long it is kept."""

    __slots__ = ("is_task", "ttl")

    def __init__(self, *, is_task: bool, ttl: float | None = None) -> None:
        self.is_task = is_task
        # In seconds; None where the client did not say.
        self.ttl = ttl


def admitted(
    app: Server, context: Context, entry: ToolEntry, wish: Raw | UnsetType
) -> Admission | None:
    """Return what is to become of a call; None if it was refused. `wish` is its `task`."""
    form = form_of(context.revision)
    if form == "core" and EXTENSION in app.extensions:
        return _asked_for(context, entry, wish)
    if form == "extension":
        return _able(context, entry)
    return Admission(is_task=False)


def may_become(app: Server, context: Context) -> bool:
    """Say whether a call that is no task yet may become one, now that its handler wants it to."""
    surface = context._surface
    if form_of(surface.revision) != "extension" or not declares(context._caller, EXTENSION):
        return False
    if official(context.method, surface.policy, surface.revision) != "tools/call":
        return False
    entry = app.tools.get(context.what)
    return entry is not None and entry.task != "never" and EXTENSION in app.extensions


def _asked_for(context: Context, entry: ToolEntry, wish: Raw | UnsetType) -> Admission | None:
    """Admit a call where the client asks for a task."""
    if wish is UNSET and entry.task == "required":
        return _refused(context, ErrorKind.TASK_REQUIRED)
    if wish is UNSET:
        return Admission(is_task=False)
    if entry.task == "never":
        return _refused(context, ErrorKind.TASK_NOT_ALLOWED)
    try:
        return Admission(is_task=True, ttl=read_ttl(wish))
    except ValidationError as error:
        return _refused(context, ErrorKind.INVALID_PARAMS, f"Invalid params: {error}")


def _able(context: Context, entry: ToolEntry) -> Admission | None:
    """Admit a call where the client can have a task, and the tool decides."""
    if declares(context._caller, EXTENSION):
        return Admission(is_task=entry.task != "never" and entry.task_start == "call")
    if entry.task == "required":
        refuse_undeclared(context._connection, context._asked, context._surface, EXTENSION)
        return None
    return Admission(is_task=False)


def _refused(context: Context, kind: str, text: str | None = None) -> Admission | None:
    """Refuse a call; it is admitted as nothing."""
    context._connection.refuse(context._asked, context._surface.policy, kind, text)
    return None

"""Which calls are tasks: what the client wants or can have, and what the tool allows.

The rules that live here, and only here:

* In the core's form the client asks, with `task` in its params. A tool that is never a task
  refuses that, and one that must be refuses a call without.
                            [MCP 2025-11-25, basic/utilities/tasks#tool-level-negotiation]
* In the extension's form the tool decides, for a client whose very request declares the
  extension; what is in `task` means nothing.                                       [SEP-2663]
* There a call that cannot be a task just now is one as any other, unless the tool has to be a
  task. Who has asked for a task gets one, or is refused.
* A server without tasks, and a revision without them, take no notice of `task`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, Raw, UnsetType, ValidationError

from ...spec.error_kinds import ErrorKind
from ...spec.mcp.tasks_extension import EXTENSION
from ..extensions import declares, refuse_undeclared
from .wire import read_ttl, task_form

if TYPE_CHECKING:
    from ..context import Context
    from ..core import ServerCore
    from ..registry.entries import ToolEntry

__all__ = ["Admission", "admitted"]


class Admission:
    """What is to become of a call: when it is a task, if at all, and for how long it is kept."""

    __slots__ = ("must", "start", "ttl")

    def __init__(
        self,
        start: Literal["call", "soon", "handler"] | None = None,
        *,
        must: bool = False,
        ttl: float | None = None,
    ) -> None:
        # From its start, soon, or when the handler says so; None is never.
        self.start = start
        # Whether it is refused if it cannot be one.
        self.must = must
        # In seconds; None where the client did not say.
        self.ttl = ttl


def admitted(
    app: ServerCore, context: Context, entry: ToolEntry, wish: Raw | UnsetType
) -> Admission | None:
    """Return what is to become of a call; None if it was refused. `wish` is its `task`."""
    form = task_form(context.revision)
    if form == "core" and EXTENSION in app.extensions:
        return _asked_for(context, entry, wish)
    if form == "extension":
        return _able(context, entry)
    return Admission()


def _asked_for(context: Context, entry: ToolEntry, wish: Raw | UnsetType) -> Admission | None:
    """Admit a call where the client asks for a task."""
    if wish is UNSET and entry.task == "required":
        return _refused(context, ErrorKind.TASK_REQUIRED)
    if wish is UNSET:
        return Admission()
    if entry.task == "never":
        return _refused(context, ErrorKind.TASK_NOT_ALLOWED)
    try:
        return Admission("call", must=True, ttl=read_ttl(wish))
    except ValidationError as error:
        return _refused(context, ErrorKind.INVALID_PARAMS, f"Invalid params: {error}")


def _able(context: Context, entry: ToolEntry) -> Admission | None:
    """Admit a call where the client can have a task, and the tool decides."""
    must = entry.task == "required"
    if entry.task == "never":
        return Admission()
    if declares(context._caller, EXTENSION):
        if entry.task_start == "handler":
            return Admission("handler", must=must)
        return Admission("call" if must else "soon", must=must)
    if must:
        refuse_undeclared(context._connection, context._asked, context._surface, EXTENSION)
        return None
    return Admission()


def _refused(context: Context, kind: str, text: str | None = None) -> Admission | None:
    """Refuse a call; it is admitted as nothing."""
    context._connection.refuse(context._asked, context._surface.policy, kind, text)
    return None

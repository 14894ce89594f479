"""Task records of MCP: tasks that run a tool, in one of two forms."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from ...engine.tasks.records import TaskRecord, TaskStatuses
from ...mcp.types import TaskStatus

__all__ = ["TaskForm", "ToolTaskRecord"]

# The two forms of tasks on the wire. A record of one form is invisible in the other.
TaskForm = Literal["core", "extension"]

_STATUSES: Final = TaskStatuses(
    initial="working",
    working="working",
    input_required="input_required",
    cancelled="cancelled",
    final=frozenset(("completed", "failed", "cancelled")),
)


class ToolTaskRecord(TaskRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A task of MCP in the store."""

    statuses: ClassVar[TaskStatuses] = _STATUSES

    form: TaskForm
    tool: str
    # In seconds.
    poll_interval: float
    status: TaskStatus = "working"
    # The scopes that the call needed; a later request about the task needs them too.
    scopes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<ToolTaskRecord of {self.tool!r}, {self.status}>"

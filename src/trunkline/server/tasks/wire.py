"""Tasks as they are on the wire, in the revision that is spoken.

What a record says is put into the wire types once, under the names of every revision, and the
tables of the revision drop what is not theirs: `ttl` or `ttlMs`, wrapped or flat, with what the
task has brought or without. Nothing here asks which revision that is.

The rules that live here, and only here:

* A revision has tasks as part of its core, as an extension, or not at all; its row of
  `tasks/get` says which.
* What belongs to a task, and does not name it otherwise, names it in `_meta`, in the revision
  that has such a key.             [MCP 2025-11-25, basic/utilities/tasks#related-task-metadata]
* A tool that failed has failed as a task in the core's form. In the extension's it has
  completed, and only an error of the protocol is a failure.                        [SEP-2663]
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from ...jsonrpc.error_codes import named_error
from ...jsonrpc.messages import ErrorObject
from ...mcp.types import (
    CallToolResult,
    CancelTaskResult,
    CreateTaskResult,
    GetTaskResult,
    ListTasksResult,
    Task,
    TaskStatus,
    TaskStatusNotificationParams,
)
from ...spec.error_kinds import ErrorKind
from ...spec.lookup import meta_key
from ...spec.lookup import method as method_row
from ...spec.mcp.meta import RELATED_TASK
from ..handlers.json_encoding import OutputMismatch, encoded
from .records import TaskForm, TaskRecord, timestamp

if TYPE_CHECKING:
    from ..dispatch.revision import Surface

__all__ = [
    "TaskOutcome",
    "cancelled",
    "created",
    "listed",
    "message_of",
    "notification",
    "outcome_of",
    "payload",
    "read_ttl",
    "related",
    "shown",
    "stopped",
    "task_form",
]

# What a task that failed is told with beside its result, in characters: it is for people.
_MAX_MESSAGE_CHARS: Final = 200

_members: Final[Decoder[dict[str, Any]]] = Decoder(dict[str, Any])
_error: Final = Decoder(ErrorObject)
# The longest time that anybody asks for, in milliseconds; more is as good as this.
_MAX_TTL_MS: Final = 10**12


class _TaskParams(Struct, frozen=True):
    """What a call asks for a task with. An integer may be written with a point in JSON."""

    ttl: int | float | UnsetType = UNSET


_wish: Final = Decoder(_TaskParams)


@cache  # one entry per released revision: another raises, and nothing is kept
def task_form(revision: str) -> TaskForm | None:
    """Return how a revision has tasks, or None if it has none.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    row = method_row("tasks/get", revision)
    if row is None:
        return None
    return "extension" if row.extension else "core"


def read_ttl(raw: Raw) -> float | None:
    """Return the seconds for which a call asks to have its task kept; None where it does not.

    Raises:
        ValidationError: it is not as the revision has it.
    """
    ttl = _wish.decode(raw).ttl
    if ttl is UNSET:
        return None
    if ttl < 1 or (isinstance(ttl, float) and not ttl.is_integer()):
        raise ValidationError("Expected `int` >= 1 - at `$.task.ttl`")
    return min(ttl, _MAX_TTL_MS) / 1000  # before it is divided: no integer is too large in JSON


# -- how a task stands -----------------------------------------------------------------------


def created(record: TaskRecord, surface: Surface) -> Any:
    """Return what a call is answered that goes on as a task."""
    task: Task = _made(Task, record)
    wrapped = _made(CreateTaskResult, record, meta=surface.meta, result_type="task", task=task)
    return surface.narrowed(wrapped)


def shown(record: TaskRecord, surface: Surface) -> Any:
    """Return how a task stands."""
    return surface.result(_made(GetTaskResult, record, **_brought(record)))


def cancelled(record: TaskRecord, surface: Surface) -> Any:
    """Return what is answered to who cancelled a task: how it stands, or a mere nod."""
    return surface.result(_made(CancelTaskResult, record))


def listed(records: list[TaskRecord], cursor: str | None, surface: Surface) -> Any:
    """Return a page of tasks."""
    tasks = [_made(Task, each) for each in records]
    return surface.result(ListTasksResult(tasks, next_cursor=cursor or UNSET))


def notification(record: TaskRecord, surface: Surface) -> Any:
    """Return how a task stands, as the params of the notification that it has changed."""
    return surface.narrowed(_made(TaskStatusNotificationParams, record, **_brought(record)))


def _made(kind: Any, record: TaskRecord, **more: Any) -> Any:
    """Return a value of a wire type with what it has to say of a task, in every revision."""
    ttl = None if record.ttl is None else round(record.ttl * 1000)
    poll_interval = max(1, round(record.poll_interval * 1000))
    facts = {
        "created_at": timestamp(record.created),
        "last_updated_at": timestamp(record.updated),
        "status": record.status,
        "task_id": record.id,
        "status_message": record.status_message or UNSET,
        "ttl": ttl,
        "ttl_ms": ttl,
        "poll_interval": poll_interval,
        "poll_interval_ms": poll_interval,
    }
    known = kind.__struct_fields__
    return kind(**{name: value for name, value in facts.items() if name in known}, **more)


def _brought(record: TaskRecord) -> dict[str, Any]:
    """Return what a task has brought, or still needs."""
    return {
        "result": record.result,
        "error": record.error,
        "input_requests": dict(record.questions) or UNSET,
    }


# -- how it ended ----------------------------------------------------------------------------


class TaskOutcome(NamedTuple):
    """What becomes of a task when its handler has ended."""

    status: TaskStatus
    message: str
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


def outcome_of(outcome: Any, form: TaskForm, surface: Surface) -> TaskOutcome:
    """Return what a handler's outcome makes of its task."""
    try:
        written = Raw(encoded(outcome))
    except OutputMismatch:
        return stopped("The result cannot be written.", surface)
    if type(outcome) is ErrorObject:
        return TaskOutcome("failed", outcome.message[:_MAX_MESSAGE_CHARS], error=written)
    has_failed = isinstance(outcome, CallToolResult) and outcome.is_error is True
    if has_failed and form == "core":
        return TaskOutcome("failed", "The tool has failed; its result says how.", written)
    return TaskOutcome("completed", "", written)


def stopped(message: str, surface: Surface) -> TaskOutcome:
    """Return what becomes of a task that could not be brought to its end."""
    error = named_error(ErrorKind.INTERNAL_ERROR, policy=surface.policy, message=message)
    return TaskOutcome("failed", message, error=Raw(encode(error)))


def payload(record: TaskRecord, surface: Surface) -> Any:
    """Return what the call would have been answered, of a task that has ended."""
    if record.result is not UNSET:
        result = _members.decode(record.result)
        meta = {**result.get("_meta", {}), **related(record.id, surface)}
        return {**result, "_meta": meta} if meta else result
    if record.error is not UNSET:
        return _error.decode(record.error)
    text = record.status_message or None
    return named_error(ErrorKind.REQUEST_CANCELLED, policy=surface.policy, message=text)


def related(id: str, surface: Surface) -> dict[str, Any]:
    """Return the members of `_meta` that name a task; none where the revision has no such key."""
    known = meta_key(RELATED_TASK, surface.revision) is not None
    return {RELATED_TASK: {"taskId": id}} if known else {}


def message_of(params: Any, id: str, surface: Surface) -> Any:
    """Return the params of a message that belongs to a task, with the task named in them."""
    named = related(id, surface)
    if not named:
        return params
    told = {} if params.meta is UNSET else params.meta
    return replace(params, meta={**told, **named})

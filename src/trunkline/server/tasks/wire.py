"""Wire form of tasks: results, notifications, metadata and outcomes, in each revision.

A record is put into the wire types once, under the names of every revision (`ttl` and `ttlMs`,
wrapped and flat, with and without the result); the tables of the revision drop what it lacks. No
function here compares revisions.

The rules that live here, and only here:

* A revision has tasks in its core, as an extension, or not at all, according to its row of
  `tasks/get`.
* A message that belongs to a task and does not name it elsewhere names it in `_meta`, in the
  revision that has such a key.    [MCP 2025-11-25, basic/utilities/tasks#related-task-metadata]
* The extension has no progress notifications: the status message shows the progress of a task.
                                                                                    [SEP-2663]
* A tool result with `isError` makes the task `failed` in the core form and `completed` in the
  extension form, where only a protocol error is a failure.                         [SEP-2663]
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from ...engine.tasks.records import TaskOutcome, timestamp
from ...jsonrpc.error_codes import named_error
from ...jsonrpc.messages import ErrorObject, Shown
from ...mcp.types import (
    CallToolResult,
    CancelTaskResult,
    CreateTaskResult,
    GetTaskResult,
    ListTasksResult,
    Task,
    TaskStatusNotificationParams,
)
from ...spec.error_kinds import ErrorKind
from ...spec.lookup import meta_key
from ...spec.lookup import method as method_row
from ...spec.mcp.meta import RELATED_TASK
from ..handlers.json_encoding import OutputMismatch, encoded
from .records import TaskForm, ToolTaskRecord

if TYPE_CHECKING:
    from ...engine.tasks.progress import ProgressReport
    from ..dispatch.revision import ServerRevision

__all__ = [
    "cancel_task_result",
    "create_task_result",
    "failed_outcome",
    "get_task_result",
    "list_tasks_result",
    "outcome_of",
    "progress_message",
    "read_ttl",
    "related",
    "status_params",
    "task_form",
    "task_payload",
    "with_related_task",
]

# Of an error, or a message of the handler, that `statusMessage` repeats: it is for people.
_MAX_MESSAGE_CHARS: Final = 200
# A progress that is larger is written with an exponent.
_MAX_PLAIN_NUMBER: Final = 10**15

_members: Final[Decoder[dict[str, Any]]] = Decoder(dict[str, Any])
_error: Final = Decoder(ErrorObject)
# About 31 years. A client may request any integer; a larger one would overflow a float.
_MAX_TTL_MS: Final = 10**12


class _TaskParams(Shown, Struct, frozen=True):
    """The `task` member of a request. JSON may write an integer with a decimal point."""

    ttl: int | float | UnsetType = UNSET


_task_params: Final = Decoder(_TaskParams)


@cache  # one entry per released revision: any other raises and is not cached
def task_form(revision: str) -> TaskForm | None:
    """Return the form of tasks in a revision, or None if it has none.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    row = method_row("tasks/get", revision)
    if row is None:
        return None
    return "extension" if row.extension else "core"


def read_ttl(raw: Raw) -> float | None:
    """Return the requested TTL in seconds, or None if the request has none.

    Raises:
        ValidationError: `task` or its `ttl` has the wrong type or value.
    """
    ttl = _task_params.decode(raw).ttl
    if ttl is UNSET:
        return None
    if ttl < 1 or (isinstance(ttl, float) and not ttl.is_integer()):
        raise ValidationError("Expected `int` >= 1 - at `$.task.ttl`")
    return min(ttl, _MAX_TTL_MS) / 1000  # bounded before the division, which may overflow


# -- state -----------------------------------------------------------------------------------


def create_task_result(record: ToolTaskRecord, rev: ServerRevision) -> Any:
    """Return the `CreateTaskResult` of a call that became a task."""
    task: Task = _made(Task, record)
    wrapped = _made(CreateTaskResult, record, meta=rev.meta, result_type="task", task=task)
    return rev.narrowed(wrapped)


def get_task_result(record: ToolTaskRecord, rev: ServerRevision) -> Any:
    """Return the result of `tasks/get`."""
    return rev.result(_made(GetTaskResult, record, **_payload_members(record)))


def cancel_task_result(record: ToolTaskRecord, rev: ServerRevision) -> Any:
    """Return the result of `tasks/cancel`: the state, or an empty result in the extension form."""
    return rev.result(_made(CancelTaskResult, record))


def list_tasks_result(
    records: list[ToolTaskRecord], cursor: str | None, rev: ServerRevision
) -> Any:
    """Return a page of `tasks/list`."""
    tasks = [_made(Task, each) for each in records]
    return rev.result(ListTasksResult(tasks, next_cursor=cursor or None))


def status_params(record: ToolTaskRecord, rev: ServerRevision) -> Any:
    """Return the params of the notification that a task has changed."""
    return rev.narrowed(_made(TaskStatusNotificationParams, record, **_payload_members(record)))


def _made(kind: Any, record: ToolTaskRecord, **more: Any) -> Any:
    """Return a wire type filled from a record, under the member names of every revision."""
    ttl = None if record.ttl is None else round(record.ttl * 1000)
    poll_interval = max(1, round(record.poll_interval * 1000))
    facts = {
        "created_at": timestamp(record.created),
        "last_updated_at": timestamp(record.updated),
        "status": record.status,
        "task_id": record.id,
        "status_message": record.status_message or None,
        "ttl": ttl,
        "ttl_ms": ttl,
        "poll_interval": poll_interval,
        "poll_interval_ms": poll_interval,
    }
    known = kind.__struct_fields__
    return kind(**{name: value for name, value in facts.items() if name in known}, **more)


def _payload_members(record: ToolTaskRecord) -> dict[str, Any]:
    return {
        "result": None if record.result is UNSET else record.result,
        "error": None if record.error is UNSET else record.error,
        "input_requests": dict(record.questions) or None,
    }


# -- progress --------------------------------------------------------------------------------


def progress_message(report: ProgressReport) -> str:
    """Return progress as a status message: "step 3 (3 of 5)", "3 of 5", "step 3 (3)" or "3"."""
    done = _number(report.progress)
    if report.total is not None:
        done = f"{done} of {_number(report.total)}"
    if not isinstance(report.message, str) or not report.message:
        return done
    # The record is JSON: a lone surrogate of the handler cannot be stored.
    text = report.message.encode("utf-8", "replace").decode()
    if len(text) > _MAX_MESSAGE_CHARS:
        text = f"{text[: _MAX_MESSAGE_CHARS - 1]}…"
    return f"{text} ({done})"


def _number(value: float) -> str:
    """Return a number with at most three decimals, and without those that are zero."""
    try:
        if abs(value) >= _MAX_PLAIN_NUMBER:
            return f"{value:g}"
        return f"{value:.3f}".rstrip("0").rstrip(".")
    except (OverflowError, TypeError, ValueError):
        return "?"  # an integer that no float holds, or not a number: the task goes on


# -- outcome ---------------------------------------------------------------------------------


def outcome_of(outcome: Any, form: TaskForm, rev: ServerRevision) -> TaskOutcome:
    """Return the final state of a task from the result or error of its handler."""
    try:
        written = Raw(encoded(outcome))
    except OutputMismatch:
        return failed_outcome("The result cannot be encoded as JSON.", rev)
    if type(outcome) is ErrorObject:
        return TaskOutcome("failed", outcome.message[:_MAX_MESSAGE_CHARS], error=written)
    has_failed = isinstance(outcome, CallToolResult) and outcome.is_error is True
    if has_failed and form == "core":
        return TaskOutcome("failed", "The tool failed; see its result.", written)
    return TaskOutcome("completed", "", written)


def failed_outcome(message: str, rev: ServerRevision) -> TaskOutcome:
    """Return the final state of a task that failed without an outcome of its handler."""
    error = named_error(ErrorKind.INTERNAL_ERROR, policy=rev.policy, message=message)
    return TaskOutcome("failed", message, error=Raw(encode(error)))


def task_payload(record: ToolTaskRecord, rev: ServerRevision) -> Any:
    """Return the response that the original call would have got, for a finished task."""
    if record.result is not UNSET:
        result = _members.decode(record.result)
        meta = {**result.get("_meta", {}), **related(record.id, rev)}
        return {**result, "_meta": meta} if meta else result
    if record.error is not UNSET:
        return _error.decode(record.error)
    text = record.status_message or None
    return named_error(ErrorKind.REQUEST_CANCELLED, policy=rev.policy, message=text)


def related(id: str, rev: ServerRevision) -> dict[str, Any]:
    """Return the `_meta` members that name a task; empty if the revision has no such key."""
    known = meta_key(RELATED_TASK, rev.revision) is not None
    return {RELATED_TASK: {"taskId": id}} if known else {}


def with_related_task(params: Any, id: str, rev: ServerRevision) -> Any:
    """Return the params of a message with the task it belongs to named in `_meta`."""
    named = related(id, rev)
    if not named:
        return params
    return replace(params, meta={**(params.meta or {}), **named})

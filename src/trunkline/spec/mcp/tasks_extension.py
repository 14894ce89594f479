"""The types of the tasks extension of 2026-07-28, which the official schema file lacks.

Tasks were part of the core in 2025-11-25; those rows are in `types.py`. The extension redefines
them: only the server creates tasks, the result is inside `tasks/get`, and fields have other
names (`ttlMs`, `pollIntervalMs`).

The members of a task depend on its status, so every type of a whole task is a union of five
types, one for each status.                  [MCP extension io.modelcontextprotocol/tasks]
"""

from __future__ import annotations

from typing import Final

from ..revisions import V2026_07_28, Window
from ..rows import Field, Member, Type

__all__ = ["ADDED_FIELDS", "EXTENSION", "TYPES"]

EXTENSION: Final = "io.modelcontextprotocol/tasks"

_SINCE: Final = Window(V2026_07_28)

# fmt: off

# The additional fields of a task in each status.
_CARRIES: Final[dict[str, tuple[Field, ...]]] = {
    "working": (),
    "input_required": (Field("inputRequests", "InputRequests", required=True),),
    # The result of the request that became the task; which type that is, the request says.
    "completed": (Field("result", "map<any>", required=True),),
    "failed": (Field("error", "Error", required=True),),
    "cancelled": (),
}

_TASK: Final = (
    Field("createdAt", "string", required=True),
    Field("lastUpdatedAt", "string", required=True),
    Field("pollIntervalMs", "integer"),
    Field("statusMessage", "string"),
    Field("taskId", "string", required=True),
    # Null: the task is kept without limit.
    Field("ttlMs", "integer | null", required=True),
)
_ANY_STATUS: Final = Field("status", "TaskStatus", required=True)

_REQUEST_META: Final = Field("_meta", "RequestMetaObject", required=True)
_RESULT_META: Final = Field("_meta", "ResultMetaObject")
_COMPLETE: Final = Field("resultType", "'complete'", required=True)
_ACKNOWLEDGED: Final = (_RESULT_META, _COMPLETE)
_NAMED_TASK: Final = (_REQUEST_META, Field("taskId", "string", required=True))

_TASK_OF_STATUS: Final = {
    "working": "WorkingTask",
    "input_required": "InputRequiredTask",
    "completed": "CompletedTask",
    "failed": "FailedTask",
    "cancelled": "CancelledTask",
}
_RESULT_OF_STATUS: Final = {status: f"GetTaskResult.{status}" for status in _CARRIES}
_PARAMS_OF_STATUS: Final = {status: f"TaskStatusNotificationParams.{status}" for status in _CARRIES}


def _of_each_status(names: dict[str, str], *extra: Field) -> tuple[Type, ...]:
    """Return a type for each status: a task in that status, with `extra` fields."""
    return tuple(
        Type(name, "object", when=_SINCE, fields=(
            *extra,
            Field("status", f"'{status}'", required=True),
            *_TASK,
            *_CARRIES[status],
        ))
        for status, name in names.items()
    )


def _any_of(names: dict[str, str]) -> tuple[Member, ...]:
    """Return the members of a union of such types."""
    return tuple(Member(name) for name in names.values())


TYPES: Final[tuple[Type, ...]] = (
    Type("CancelTaskRequest", "object", when=_SINCE, fields=(
        Field("method", "'tasks/cancel'", required=True),
        Field("params", "CancelTaskRequestParams", required=True),
    )),
    Type("CancelTaskRequestParams", "object", when=_SINCE, fields=_NAMED_TASK),
    Type("CancelTaskResult", "object", when=_SINCE, fields=_ACKNOWLEDGED),
    Type("CreateTaskResult", "object", when=_SINCE, fields=(
        _RESULT_META,
        Field("resultType", "'task'", required=True),
        _ANY_STATUS,
        *_TASK,
    )),
    Type("DetailedTask", "union", when=_SINCE, of=_any_of(_TASK_OF_STATUS)),
    Type("GetTaskRequest", "object", when=_SINCE, fields=(
        Field("method", "'tasks/get'", required=True),
        Field("params", "GetTaskRequestParams", required=True),
    )),
    Type("GetTaskRequestParams", "object", when=_SINCE, fields=_NAMED_TASK),
    Type("GetTaskResult", "union", when=_SINCE, of=_any_of(_RESULT_OF_STATUS)),
    *_of_each_status(_RESULT_OF_STATUS, _RESULT_META, _COMPLETE),
    Type("Task", "object", when=_SINCE, fields=(_ANY_STATUS, *_TASK)),
    *_of_each_status(_TASK_OF_STATUS),
    Type("TaskStatus", "enum", when=_SINCE, of=tuple(Member(f"'{status}'") for status in _CARRIES)),
    Type("TaskStatusNotification", "object", when=_SINCE, fields=(
        Field("method", "'notifications/tasks'", required=True),
        Field("params", "TaskStatusNotificationParams", required=True),
    )),
    Type("TaskStatusNotificationParams", "union", when=_SINCE, of=_any_of(_PARAMS_OF_STATUS)),
    *_of_each_status(_PARAMS_OF_STATUS, Field("_meta", "NotificationMetaObject")),
    Type("UpdateTaskRequest", "object", when=_SINCE, fields=(
        Field("method", "'tasks/update'", required=True),
        Field("params", "UpdateTaskRequestParams", required=True),
    )),
    Type("UpdateTaskRequestParams", "object", when=_SINCE, fields=(
        *_NAMED_TASK,
        Field("inputResponses", "InputResponses", required=True),
    )),
    Type("UpdateTaskResult", "object", when=_SINCE, fields=_ACKNOWLEDGED),
)

# Fields that the extension adds to types of the core.
ADDED_FIELDS: Final[tuple[tuple[str, Field], ...]] = (
    ("SubscriptionFilter", Field("taskIds", "list<string>", when=_SINCE)),
)
# fmt: on

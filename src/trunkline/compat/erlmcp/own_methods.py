"""Methods that erlmcp serves and MCP does not have: `erlmcp.methods(app)` registers them.

The rules that live here, and only here:

* `requests/cancel` stops a request of the same connection, which is then not answered.
* `tasks/create`, `tasks/status` and `tasks/progress` keep a record that the client itself updates;
  the tasks of MCP are those of tools.                                           [R-EM-5, K-23]
* `roots/add` and `roots/remove` keep roots that the client pushes; `ctx.roots()` requests those
  that it declares.
* `tasks/update`, which MCP 2026-07-28 has, is left to MCP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct, to_builtins

from ...errors import RequestError
from ...jsonrpc.messages import Shown
from ...mcp.types import Root
from ...server.context import Context, request_of
from ...spec.error_kinds import ErrorKind
from .._session_state import SessionState, check_room

if TYPE_CHECKING:
    from ...server import Server

__all__ = ["ErlmcpMethods", "PushedTask", "PushedTaskStatus"]

PushedTaskStatus: TypeAlias = Literal[
    "pending", "processing", "input_required", "completed", "failed", "cancelled"
]


class PushedTask(Shown, Struct, rename="camel", omit_defaults=True):
    """A task that a client has created with `tasks/create`."""

    task_id: str
    status: PushedTaskStatus = "pending"
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    metadata: dict[str, Any] | None = None


class _State:
    def __init__(self) -> None:
        self.tasks: dict[str, PushedTask] = {}
        self.roots: dict[str, Root] = {}


class ErlmcpMethods:
    """What `methods(app)` has registered, for the handlers of the server."""

    def __init__(self, app: Server) -> None:
        self._state: SessionState[_State] = SessionState(_State)
        app.method("requests/cancel", inline=True)(self._cancel)
        app.method("tasks/create", inline=True)(self._create)
        app.method("tasks/status", inline=True)(self._status)
        app.method("tasks/progress", inline=True)(self._progress)
        app.method("roots/add", inline=True)(self._add_root)
        app.method("roots/remove", inline=True)(self._remove_root)
        app.method("shutdown", inline=True)(self._shutdown)

    def roots(self, ctx: Context) -> list[Root]:
        """Return the roots that the client of a request has added."""
        return list(self._state.of(ctx).roots.values())

    def tasks(self, ctx: Context) -> list[PushedTask]:
        """Return the tasks that the client of a request has created; their fields can be set."""
        return list(self._state.of(ctx).tasks.values())

    # -- the methods -------------------------------------------------------------------------

    def _cancel(self, ctx: Context, requestId: int | str, reason: str = "") -> dict[str, Any]:
        runner = request_of(ctx).connection.runner
        is_open = requestId != ctx.request_id and runner.is_open(requestId)
        if is_open:
            runner.cancel(requestId)
        return {"cancelled": is_open}

    def _create(
        self, ctx: Context, id: str, metadata: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        tasks = self._state.of(ctx).tasks
        if id in tasks:
            raise RequestError(ErrorKind.INVALID_PARAMS, f"There is a task {id!r} already")
        check_room(len(tasks))
        tasks[id] = PushedTask(id, metadata=metadata)
        return {"taskId": id, "status": "pending"}

    def _status(self, ctx: Context, taskId: str) -> dict[str, Any]:
        return _shown(self._task(ctx, taskId))

    def _progress(
        self,
        ctx: Context,
        taskId: str,
        progress: float,
        total: float | None = None,
        message: str | None = None,
    ) -> dict[str, Any]:
        task = self._task(ctx, taskId)
        if task.status == "pending":
            task.status = "processing"
        task.progress = progress
        task.total = task.total if total is None else total
        task.message = task.message if message is None else message
        return _shown(task)

    def _task(self, ctx: Context, id: str) -> PushedTask:
        task = self._state.of(ctx).tasks.get(id)
        if task is None:
            raise RequestError(ErrorKind.TASK_NOT_FOUND, f"There is no task {id!r}")
        return task

    def _add_root(self, ctx: Context, uri: str, name: str | None = None) -> dict[str, Any]:
        roots = self._state.of(ctx).roots
        if uri not in roots:
            check_room(len(roots))
        root = roots[uri] = Root(uri, name=name)
        return {"root": to_builtins(root)}

    def _remove_root(self, ctx: Context, uri: str) -> dict[str, Any]:
        return {"removed": self._state.of(ctx).roots.pop(uri, None) is not None}

    def _shutdown(self) -> None:
        """Answer, and leave it to the client to close the connection."""


def _shown(task: PushedTask) -> dict[str, Any]:
    shown: dict[str, Any] = to_builtins(task)
    return {**shown, "status": task.status}  # also where it is the default

"""Tasks, written for the official SDK, which has none of its own.

For those of 2026-07-28 it has a place for an extension at either side: a client that claims a type
of result and finishes it, and a server that takes a call over and serves methods of its own.

Of those of 2025-11-25 it has the types. A client of it refuses a task as the answer to a call. Of
its servers only the low-level one can give that answer, by what stands around every request.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

import mcp_types as types
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from mcp.client.session import ClientRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from . import official_questions as questions

__all__ = ["ID", "CoreTaskServing", "TaskExtension", "TaskServing", "cancel", "show"]

ID: Final = "io.modelcontextprotocol/tasks"
NEWEST: Final = frozenset({"2026-07-28"})
_question: Final[TypeAdapter[Any]] = TypeAdapter(types.InputRequest)


class Standing(BaseModel):
    """How a task stands, as far as every message about it says."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    task_id: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    created_at: datetime
    last_updated_at: datetime
    ttl_ms: int | None
    poll_interval_ms: int | None = None
    status_message: str | None = None


class Created(Standing, types.Result):
    """What a call is answered that became a task."""

    result_type: Literal["task"] = "task"


class Told(Standing):
    """What a task is told to be, on a stream or when asked."""

    result: dict[str, Any] | None = None
    error: types.ErrorData | None = None
    input_requests: dict[str, Any] | None = None


class Shown(Told, types.Result):
    """What `tasks/get` is answered."""


class OfTask(types.RequestParams):
    """Params that name a task."""

    task_id: str


class Update(OfTask):
    """What `tasks/update` brings."""

    input_responses: dict[str, Any]


class Get(types.Request[OfTask, Literal["tasks/get"]]):
    """Ask how a task stands."""

    method: Literal["tasks/get"] = "tasks/get"
    params: OfTask
    name_param = "taskId"


class Answer(types.Request[Update, Literal["tasks/update"]]):
    """Answer what a task asked."""

    method: Literal["tasks/update"] = "tasks/update"
    params: Update
    name_param = "taskId"


class Cancel(types.Request[OfTask, Literal["tasks/cancel"]]):
    """Ask to have a task ended."""

    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: OfTask
    name_param = "taskId"


# -- the client's side -----------------------------------------------------------------------


class TaskExtension(ClientExtension):
    """Finishes a call that became a task, and takes note of what is told of tasks meanwhile."""

    identifier = ID

    def __init__(self) -> None:
        self.created: list[Created] = []
        # The status of each answer, and of each notification.
        self.seen: list[str] = []
        self.told: list[Told] = []
        # Whether a task is left alone once it is there.
        self.leaves_tasks = False

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Claim results of the type `task`."""
        return [ResultClaim(result_type="task", model=Created, resolve=self._finish)]

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        """Take what is told on a stream."""
        return [
            NotificationBinding(method="notifications/tasks", params_type=Told, handler=self._hear)
        ]

    async def _hear(self, told: Told) -> None:
        self.told.append(told)

    async def _finish(self, created: Created, context: ClaimContext) -> types.CallToolResult:
        self.created.append(created)
        if self.leaves_tasks:
            return types.CallToolResult(content=[types.TextContent(text="left")])
        answered: set[str] = set()
        while True:
            shown = await show(context.session, created.task_id)
            self.seen.append(shown.status)
            if shown.status == "completed":
                return types.CallToolResult.model_validate(shown.result)
            if shown.status in ("failed", "cancelled"):
                error = shown.error or types.ErrorData(code=0, message=shown.status)
                raise MCPError.from_error_data(error)
            # A question may still be shown when its answer is under way.
            asked = {k: v for k, v in (shown.input_requests or {}).items() if k not in answered}
            if asked:
                answered |= set(asked)
                await _answer(context.session, created.task_id, asked)
            await asyncio.sleep((shown.poll_interval_ms or 0) / 1000)


async def show(session: Any, task_id: str) -> Shown:
    """Ask how a task stands."""
    shown: Shown = await session.send_request(Get(params=OfTask(task_id=task_id)), Shown)
    return shown


async def cancel(session: Any, task_id: str) -> None:
    """Ask to have a task ended."""
    await session.send_request(Cancel(params=OfTask(task_id=task_id)), types.EmptyResult)


async def _answer(session: Any, task_id: str, asked: dict[str, Any]) -> None:
    responses: dict[str, Any] = {}
    for key, raw in asked.items():
        context = ClientRequestContext(session=session, request_id=key)
        answer = await session.dispatch_input_request(context, _question.validate_python(raw))
        responses[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    update = Update(task_id=task_id, input_responses=responses)
    await session.send_request(Answer(params=update), types.EmptyResult)


# -- the server's side -----------------------------------------------------------------------


class Work:
    """One task at work."""

    def __init__(self) -> None:
        self.id = secrets.token_hex(16)
        self.status = "working"
        self.created = datetime.now(UTC)
        self.result: dict[str, Any] | None = None
        # Questions that are open, and answers as they come: not all at once.
        self.asked: dict[str, Any] = {}
        self.answers: dict[str, Any] = {}
        self.is_answered = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def shown(self, **more: Any) -> dict[str, Any]:
        """Return what is said of it."""
        found = {
            "taskId": self.id,
            "status": self.status,
            "createdAt": self.created.isoformat(),
            "lastUpdatedAt": datetime.now(UTC).isoformat(),
            "ttlMs": 60_000,
            "pollIntervalMs": 100,
            **more,
        }
        if self.result is not None:
            found["result"] = self.result
        if self.asked:
            found["inputRequests"] = self.asked
        return found

    async def ask(self, **asked: types.Request[Any, Any]) -> dict[str, Any]:
        """Return the answers to questions, raw."""
        for key, request in asked.items():
            self.asked[key] = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        self.status = "input_required"
        await self.is_answered.wait()
        self.status = "working"
        return self.answers

    def answer(self, answers: dict[str, Any]) -> None:
        """Take answers to questions that are open."""
        for key in answers.keys() & self.asked.keys():
            self.answers[key] = answers[key]
            del self.asked[key]
        if not self.asked:
            self.is_answered.set()


class Works:
    """The tasks at work in a server, whichever way they are told of."""

    def __init__(self, on_given_up: Callable[[], None]) -> None:
        self._all: dict[str, Work] = {}
        self._on_given_up = on_given_up

    def begin(self, name: str, arguments: dict[str, Any]) -> Work:
        """Let a call go on as a task."""
        work = Work()
        self._all[work.id] = work
        work.task = asyncio.create_task(self._run(work, name, arguments))
        return work

    def find(self, task_id: str) -> Work:
        """Return a task.

        Raises:
            MCPError: there is none.
        """
        work = self._all.get(task_id)
        if work is None:
            raise MCPError(code=types.INVALID_PARAMS, message="There is no such task.")
        return work

    def all(self) -> list[Work]:
        """Return all there were."""
        return list(self._all.values())

    async def _run(self, work: Work, name: str, arguments: dict[str, Any]) -> None:
        try:
            text = await self._brew(work, name, arguments)
        except asyncio.CancelledError:
            work.status = "cancelled"
            self._on_given_up()
            raise
        content = types.TextContent(text=text)
        result = types.CallToolResult(content=[content], is_error=name == "brew_failing")
        work.result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        work.status = "completed"

    async def _brew(self, work: Work, name: str, arguments: dict[str, Any]) -> str:
        if name == "brew_asking":
            city, way = questions.form("Which city?", questions.CITY), questions.model("Which way?")
            answers = await work.ask(city=city, way=way)
            return f"{answers['city']['content']['city']} {answers['way']['content']['text']}"
        await asyncio.sleep(30 if name == "brew_slow" else 0.05)
        return "no beans" if name == "brew_failing" else f"{arguments.get('cups')} cups"


class TaskServing(Extension):
    """Makes tasks of the calls that take long, for clients that can have them."""

    identifier = ID

    def __init__(self, on_given_up: Callable[[], None]) -> None:
        self._works = Works(on_given_up)

    def methods(self) -> Sequence[MethodBinding]:
        """Serve what is asked about tasks."""
        return [
            MethodBinding("tasks/get", OfTask, self.get, NEWEST),
            MethodBinding("tasks/update", Update, self.update, NEWEST),
            MethodBinding("tasks/cancel", OfTask, self.cancel, NEWEST),
        ]

    async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Any) -> Any:
        """Take a call over that takes long."""
        able = getattr(ctx.session.client_capabilities, "extensions", None) or {}
        if not params.name.startswith("brew") or ID not in able:
            return await call_next(ctx)
        return self._works.begin(params.name, params.arguments or {}).shown(resultType="task")

    async def get(self, ctx: Any, params: OfTask) -> dict[str, Any]:
        """Show how a task stands."""
        return self._works.find(params.task_id).shown()

    async def update(self, ctx: Any, params: Update) -> dict[str, Any]:
        """Take answers."""
        self._works.find(params.task_id).answer(params.input_responses)
        return {}

    async def cancel(self, ctx: Any, params: OfTask) -> dict[str, Any]:
        """End a task, in its own time."""
        work = self._works.find(params.task_id)
        assert work.task is not None
        work.task.cancel()
        return {}


class CoreTaskServing:
    """Makes tasks of the calls that ask for it, as 2025-11-25 has them, in a low-level server."""

    def __init__(self, on_given_up: Callable[[], None], extension: TaskServing) -> None:
        self._works = Works(on_given_up)
        self._extension = extension

    def install(self, server: Server[Any]) -> None:
        """Serve tasks of both forms."""
        server.middleware.append(self._around)
        for each in self._extension.methods():
            server.add_request_handler(each.method, each.params_type, each.handler)
        server.add_request_handler("tasks/get", OfTask, self._get)
        server.add_request_handler("tasks/cancel", OfTask, self._cancel)
        server.add_request_handler("tasks/result", OfTask, self._result)
        server.add_request_handler("tasks/list", types.PaginatedRequestParams, self._list)

    @staticmethod
    def declared() -> types.ServerTasksCapability:
        """Return what a server declares that can do this."""
        call = types.TasksToolsCapability(call=types.TasksCallCapability())
        return types.ServerTasksCapability(
            list=types.TasksListCapability(),
            cancel=types.TasksCancelCapability(),
            requests=types.ServerTasksRequestsCapability(tools=call),
        )

    async def _around(self, ctx: Any, call_next: Any) -> Any:
        params = ctx.params or {}
        if ctx.method != "tools/call" or "task" not in params or _is_newest(ctx):
            return await call_next(ctx)
        if not params["name"].startswith("brew"):
            raise MCPError(code=types.METHOD_NOT_FOUND, message="That tool is no task.")
        work = self._works.begin(params["name"], params.get("arguments") or {})
        return types.CreateTaskResult(task=_core(work)).model_dump(
            by_alias=True, mode="json", exclude_none=True
        )

    async def _get(self, ctx: Any, params: OfTask) -> Any:
        if _is_newest(ctx):
            return await self._extension.get(ctx, params)
        return types.GetTaskResult(**_core(self._works.find(params.task_id)).model_dump())

    async def _cancel(self, ctx: Any, params: OfTask) -> Any:
        if _is_newest(ctx):
            return await self._extension.cancel(ctx, params)
        work = self._works.find(params.task_id)
        assert work.task is not None
        if work.task.done():
            raise MCPError(code=types.INVALID_PARAMS, message="The task has ended.")
        work.task.cancel()
        await asyncio.wait([work.task])
        return types.CancelTaskResult(**_core(work).model_dump())

    async def _result(self, ctx: Any, params: OfTask) -> Any:
        """Ask what the task wants to know, while its result is waited for."""
        work = self._works.find(params.task_id)
        related = {"io.modelcontextprotocol/related-task": {"taskId": work.id}}
        assert work.task is not None
        while not work.task.done():
            await asyncio.wait([work.task], timeout=0.02)
            for key, raw in list(work.asked.items()):
                request = _question.validate_python(raw)
                request.params.meta = related
                is_form = isinstance(request, types.ElicitRequest)
                kind = types.ElicitResult if is_form else types.CreateMessageResult
                answer = await ctx.session.send_request(request, kind)
                work.answer({key: answer.model_dump(by_alias=True, mode="json")})
        if work.result is None:
            raise MCPError(code=types.INVALID_REQUEST, message="The task was cancelled.")
        return {**work.result, "_meta": related}

    async def _list(self, ctx: Any, params: Any) -> Any:
        return types.ListTasksResult(tasks=[_core(each) for each in self._works.all()])


def _is_newest(ctx: Any) -> bool:
    return ctx.protocol_version in NEWEST


def _core(work: Work) -> types.Task:
    shown = work.shown()
    return types.Task(
        task_id=work.id,
        status=work.status,
        created_at=shown["createdAt"],
        last_updated_at=shown["lastUpdatedAt"],
        ttl=shown["ttlMs"],
        poll_interval=shown["pollIntervalMs"],
    )

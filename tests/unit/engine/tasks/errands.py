"""A made-up protocol with tasks, on the engine alone: statuses, records and messages of its own.

Its tasks are errands. They belong to a context, and begin as `submitted`. Clients wait for the end
of one with `wait`; in the context "phone" they are asked questions on that request, and in other
contexts they find questions in the state of the errand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

from msgspec import Raw
from msgspec.json import decode, encode

from trunkline.accounts.budget import ByteBudget
from trunkline.engine.budget import connection_bytes
from trunkline.engine.handler_run import HandlerRun, InputQuestion, handler_run_of
from trunkline.engine.limits import ServerLimits, TaskSettings
from trunkline.engine.request import Run
from trunkline.engine.runner import RequestRunner
from trunkline.engine.runtime import ServerRuntime
from trunkline.engine.tasks.lifecycle import Tasks
from trunkline.engine.tasks.records import InputResponse, TaskOutcome, TaskRecord, TaskStatuses
from trunkline.engine.tasks.result_waiters import ResultWaiter
from trunkline.jsonrpc.codec.codec import Codec
from trunkline.jsonrpc.messages import ErrorObject
from trunkline.jsonrpc.peer.incoming import IncomingRequest
from trunkline.jsonrpc.peer.peer import Peer
from trunkline.jsonrpc.policy import Policy
from trunkline.store.base import Store
from trunkline.transports.base import ignore
from trunkline.transports.memory import memory_pair

POLICY = Policy.jsonrpc()
WAIT_S = 10


class ErrandRecord(TaskRecord, frozen=True, kw_only=True, omit_defaults=True):
    """An errand in the store: it has a context, which the engine does not know."""

    statuses: ClassVar[TaskStatuses] = TaskStatuses(
        initial="submitted",
        working="working",
        input_required="input-required",
        cancelled="canceled",
        final=frozenset(("completed", "failed", "canceled", "rejected")),
    )
    context: str


class ErrandRequest:
    """One request of the protocol."""

    principal = principal_key = tenant = None
    keeps_params = False
    policy = POLICY

    def __init__(self, message: IncomingRequest, connection: ErrandConnection) -> None:
        self.message = message
        self.connection: Any = connection
        self.params = decode(message.params)
        self.name: str = self.params.get("name", "")
        self.context: Any = None
        self.run: HandlerRun | None = None
        self.task: asyncio.Task[None] | None = None
        self.limit: asyncio.Timeout | None = None
        self.deadline: float | None = None
        self.cancelled = False

    @property
    def method(self) -> str:
        """The method that was called."""
        return self.message.method

    def make_context(self) -> None:
        """Give the handler the request itself."""
        self.context = self

    def stop(self) -> None:
        """Cancel the handler."""
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()
        if self.run is not None:
            self.run.stop()

    async def ask(self, text: str) -> Any:
        """Ask the client, for a handler."""
        asker = handler_run_of(self).asker
        assert asker is not None
        return decode(await asker.ask(InputQuestion("first", "ask", {"text": text})))


class ErrandDialect:
    """How errands are written."""

    kind = "errand"
    record_type = ErrandRecord

    def __init__(self) -> None:
        # What clients were notified of, and the questions that waiting requests carried.
        self.notified: list[tuple[str, bool]] = []
        self.carried: list[Any] = []

    def members(self, request: ErrandRequest, settings: TaskSettings) -> dict[str, Any]:
        """Return the context."""
        return {"context": request.params["context"]}

    def is_listed(self, record: ErrandRecord) -> bool:
        """Return True for every errand."""
        return True

    def outcome(self, record: ErrandRecord, request: Any, outcome: Any) -> TaskOutcome:
        """Return the artifacts, or the error."""
        if isinstance(outcome, ErrorObject):
            return TaskOutcome("failed", outcome.message, error=Raw(encode(outcome)))
        return TaskOutcome("completed", "", Raw(encode({"artifacts": [outcome]})))

    def failure(self, record: ErrandRecord, request: Any, message: str) -> TaskOutcome:
        """Return a failure without an error."""
        return TaskOutcome("failed", message)

    def created(self, record: ErrandRecord, request: Any) -> Any:
        """Return the id beside the context."""
        return {"id": record.id, "contextId": record.context, "state": record.status}

    def ending(self, record: ErrandRecord | None, request: Any) -> Any:
        """Return the last state."""
        return {"state": "gone" if record is None else record.status}

    def notify_status(self, record: ErrandRecord, request: Any, *, is_new: bool) -> None:
        """Note it."""
        self.notified.append((record.status, is_new))

    def report(self, record: ErrandRecord, request: Any, method: str, params: Any) -> None:
        """Drop it."""

    def question(self, question: InputQuestion, request: Any) -> Raw:
        """Return the params alone: there is one kind of question."""
        return Raw(encode(question.params))

    def is_carried(self, record: ErrandRecord) -> bool:
        """Return True on the phone."""
        return record.context == "phone"

    def can_carry(self, question: Raw, request: Any) -> bool:
        """Return True for every request."""
        return True

    async def carry(self, record: ErrandRecord, question: Raw, request: Any) -> InputResponse:
        """Answer in place of the client."""
        self.carried.append((request.message.id, decode(question)))
        return InputResponse(result=Raw(b'"by phone"'))


class _Renderer:
    def finish(self, entry: Any, request: Any, value: Any) -> Any:
        return value

    def fail(self, entry: Any, request: Any, error: BaseException) -> Any:
        return ErrorObject(-32603, str(error))


class ErrandConnection:
    """One client, and the errands that it sends."""

    client_key = None

    def __init__(
        self, runtime: ServerRuntime, tasks: Tasks[ErrandRecord], handlers: dict[str, Any]
    ) -> None:
        self.tasks = tasks
        self._handlers = handlers
        self.got: dict[Any, Any] = {}
        self.loop = asyncio.get_running_loop()
        transport, _ = memory_pair()
        self.peer = Peer(Codec(POLICY), write=self._write, on_request=self._serve)
        budget = ByteBudget(connection_bytes(runtime.limits, None), runtime.budget)
        self.runner = RequestRunner(runtime, self.peer, transport, budget, self._serve, ignore)
        self.answer = self.runner.answer

    def _write(self, frame: bytes, route: Any) -> None:
        reply = decode(frame)
        self.got[reply["id"]] = reply

    def _serve(self, asked: IncomingRequest) -> None:
        request = ErrandRequest(asked, self)
        if asked.method == "wait":
            self.tasks.track(self._wait(request))
            return
        handler_run_of(request).begin = lambda _: self.tasks.begin(request, ttl=None)
        call = self._handlers[request.name]
        arguments = SimpleNamespace(is_async=True, wants_context=True, call=lambda _, c: call(c))
        entry: Any = SimpleNamespace(
            name=request.name, inline=False, timeout=None, path=(), arguments=arguments
        )
        self.runner.begin(request, Run(_Renderer(), entry, None))

    async def _wait(self, request: ErrandRequest) -> None:
        record = await self.tasks.records.get("", request.params["id"])
        assert record is not None
        waiter = ResultWaiter(request, self.tasks.requestor(request), record)
        assert self.tasks.result_waiters.add(waiter)
        await self.tasks.watch(record.tenant, record.id)

    async def call(self, id: int, method: str, /, **params: Any) -> Any:
        """Send a request, and return its result."""
        self.peer.feed(encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
        await until(lambda: id in self.got)
        return self.got[id]["result"]

    async def reaches(self, id: str, *statuses: str) -> ErrandRecord:
        """Return an errand when it has one of these statuses."""
        async with asyncio.timeout(WAIT_S):
            while True:
                record = await self.tasks.records.get("", id)
                if record is not None and record.status in statuses:
                    return record
                await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0)


@asynccontextmanager
async def connected(
    store: Store, **handlers: Callable[[Any], Awaitable[Any]]
) -> AsyncIterator[tuple[ErrandConnection, ErrandDialect]]:
    """Serve one client with these handlers."""

    async def enter(stack: AsyncExitStack) -> None:
        pass

    runtime = ServerRuntime("errands", ServerLimits(), POLICY.limits, enter)
    dialect = ErrandDialect()
    tasks = Tasks("errands", runtime, store, TaskSettings(), dialect)
    async with runtime.opened():
        connection = ErrandConnection(runtime, tasks, handlers)
        try:
            yield connection, dialect
        finally:
            await tasks.finish(0)
            await tasks.close()


__all__ = ["ErrandConnection", "ErrandDialect", "ErrandRecord", "connected", "until"]

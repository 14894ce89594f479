"""Runs a tool in both protocol eras and compares the results.

    both = await run_in_both_eras(app, "book", {"city": "Oslo"}, {"day": "Friday"})
    assert both.result.text == "Booked"

Up to 2025-11-25 a handler waits while its elicitation is answered. In 2026-07-28 it ends, and runs
again with the answers. `run_in_both_eras` fails unless a tool has the same result and the same
questions in both, and no side effect happens more often in 2026-07-28.

The rules that live here, and only here:

* The newest revision of each era is used, with a client that declares every capability.
* No state is kept between round trips: each has a connection of its own, and a server of its own
  if `app` is a function. Only the sealing keys are shared.
* Existing state is not reset. The handshake era runs first, and what each era adds is compared.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeAlias

from msgspec import Raw, Struct, field
from msgspec.json import encode

from ..client.requests.tool_result import tool_result
from ..client.session.decode import read
from ..engine.handler_run import InputQuestion, handler_run_of
from ..errors import PeerError
from ..jsonrpc.messages import Shown
from ..mcp.types import (
    ClientCapabilities,
    ClientCapabilitiesElicitation,
    ClientCapabilitiesRoots,
    ClientCapabilitiesSampling,
    GetPromptResult,
    ReadResourceResult,
)
from ..redaction import show
from ..server.api.app import Server
from ..server.api.core import core_of
from ..server.client_requests.client_request import WireAsker
from ..server.context import request_of
from ..spec.profiles import profile
from .compare_runs import differences
from .raw_connection import RawConnection, open_connection
from .scripted_answers import AskedQuestion, Given, ScriptedAnswers
from .side_effects import EffectWatch, SideEffect

if TYPE_CHECKING:
    from ..server import Context
    from ..server.dispatch.request import ServerRequest

__all__ = ["BothEras", "EraRun", "ErasDiffer", "run_in_both_eras", "run_in_both_eras_sync"]

P = ParamSpec("P")

App: TypeAlias = Server | Callable[[], Server]
What: TypeAlias = Literal["tool", "prompt", "resource"]

# Every client capability.
_ALL_CAPABILITIES: Final = ClientCapabilities(
    elicitation=ClientCapabilitiesElicitation(form={}, url={}),
    sampling=ClientCapabilitiesSampling(context={}, tools={}),
    roots=ClientCapabilitiesRoots(),
)


class ErasDiffer(AssertionError):
    """A handler behaves differently in the two eras; `problems` lists the differences."""

    def __init__(self, name: str, problems: list[str]) -> None:
        super().__init__(name, problems)
        self.name = name
        self.problems = tuple(problems)

    def __str__(self) -> str:
        told = "\n\n".join(self.problems)
        return f"{self.name!r} behaves differently in the two eras.\n\n{told}"


class EraRun(Shown, Struct):
    """The run in one era."""

    revision: str
    # Times the handler was run: once in the handshake era.
    rounds: int = 0
    questions: list[AskedQuestion] = field(default_factory=list)
    # Log and progress notifications.
    reports: list[dict[str, Any]] = field(default_factory=list)
    # Side effects, by name.
    changes: dict[str, SideEffect] = field(default_factory=dict)
    # True if two questions were open at a time.
    asked_together: bool = False
    # One of the two is set.
    result: Any = None
    error: PeerError | None = None


class BothEras(Shown, Struct, frozen=True):
    """A tool that was run in both eras and behaves the same in both."""

    runs: tuple[EraRun, EraRun]

    @property
    def handshake(self) -> Any:
        """The result in the handshake era: a `ToolResult`, or the result of the method.

        Raises:
            PeerError: the request was answered with an error.
        """
        return _given(self.runs[0])

    @property
    def per_request(self) -> Any:
        """The result in the per-request era; see `handshake`."""
        return _given(self.runs[1])

    @property
    def result(self) -> Any:
        """The result, which is the same in both eras; see `handshake`."""
        return self.per_request

    @property
    def error(self) -> PeerError | None:
        """The error it was answered with, or None."""
        return self.runs[1].error

    @property
    def questions(self) -> list[AskedQuestion]:
        """The questions it asked in the per-request era, in order."""
        return self.runs[1].questions

    @property
    def rounds(self) -> int:
        """The number of times the handler was run in the per-request era."""
        return self.runs[1].rounds


async def run_in_both_eras(
    app: App,
    tool: str,
    args: Mapping[str, Any] | None = None,
    answers: Given | None = None,
    *,
    effects: Any = None,
    ignore: Collection[str] = (),
    reset: Callable[[], object] | None = None,
    what: What = "tool",
    timeout: float = 30.0,
) -> BothEras:
    """Run a tool once in each era, and fail if it behaves differently.

    `answers` answer its questions: a mapping by key or by the text of the question, a sequence
    in their order, or a function that is given the `AskedQuestion`. None and "decline" decline,
    "cancel" cancels; any other value accepts, as the content of a form, as the text of a model
    or as a list of URIs.

    Changes in the closure and the globals of the handler, in the state of the server and in
    members of these are found. `effects` adds others: a mock, a container, a function that
    returns a number or a container, or several of these in a tuple. `ignore` names what may
    change; `reset` is called before each era. `app` is a server, or a function that returns
    one.

    `what` may be "prompt", or "resource" with its URI. `timeout` is for each era, in seconds.

    Raises:
        ErasDiffer: the runs differ; its text says how.
        UnansweredQuestion: `answers` has no answer to a question.
        ValueError: the tool does not exist, or runs only as a task; or the server has one era.
    """
    script = _EraScript(app, tool, dict(args or {}), answers, effects, frozenset(ignore), what)
    revisions = script.revisions()
    runs = []
    for revision, play in zip(revisions, (_play_handshake, _play_rounds), strict=True):
        if reset is not None:
            reset()
        run = EraRun(revision)
        try:
            async with asyncio.timeout(timeout) as limit:
                await play(script, run)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ErasDiffer(
                tool, [f"It did not finish within {timeout:g} s in {revision}."]
            ) from None
        runs.append(run)
    problems = differences(*runs)
    if problems:
        raise ErasDiffer(tool, problems)
    return BothEras((runs[0], runs[1]))


def _in_own_loop(
    function: Callable[P, Coroutine[Any, Any, BothEras]],
) -> Callable[P, BothEras]:
    def run_in_both_eras_sync(*args: P.args, **options: P.kwargs) -> BothEras:
        """Like `run_in_both_eras`, in an event loop of its own.

        Raises:
            RuntimeError: an event loop is running: await `run_in_both_eras` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(function(*args, **options))
        raise RuntimeError("an event loop is running: await run_in_both_eras(...) instead")

    return run_in_both_eras_sync


# Derived, so that the list of parameters exists once.
run_in_both_eras_sync = _in_own_loop(run_in_both_eras)


# -- the request -----------------------------------------------------------------------------


class _EraScript:
    """The request that is sent in both eras, and its server."""

    def __init__(
        self,
        app: App,
        name: str,
        args: dict[str, Any],
        answers: Given | None,
        effects: Any,
        ignore: frozenset[str],
        what: What,
    ) -> None:
        self.app = app
        self.name = name
        self.given = answers
        self.what = what
        self.effects = effects
        self.ignore = ignore
        if what == "resource":
            self.method, self.params = "resources/read", {"uri": name, **args}
        else:
            self.method = "tools/call" if what == "tool" else "prompts/get"
            self.params = {"name": name, "arguments": args}

    def make(self) -> Server:
        """Return the server, or a new one if `app` is a function."""
        return self.app if isinstance(self.app, Server) else self.app()

    def revisions(self) -> tuple[str, str]:
        """Return the newest revision of each era.

        Raises:
            ValueError: the server has only one era.
        """
        app = self.make()
        self.entry(app)
        revs = [core_of(app).revision(revision) for revision in app.revisions]
        handshake = [each.revision for each in revs if each.has_handshake]
        rounds = [each.revision for each in revs if each.asks_in_results]
        if not handshake or not rounds:
            raise ValueError(f"{app!r} has only one era: {', '.join(app.revisions)}")
        return handshake[0], rounds[0]

    def entry(self, app: Server) -> Any:
        """Return the registered tool, prompt or resource.

        Raises:
            ValueError: it does not exist, or runs only as a task.
        """
        entry: Any
        if self.what == "resource":
            entry = next(
                (found for found, _ in core_of(app).catalog.find_resources(self.name)), None
            )
        else:
            core = core_of(app)
            lists = core.catalog.tools if self.what == "tool" else core.catalog.prompts
            entry = lists.get(self.name)
        if entry is None:
            raise ValueError(f"{app!r} has no {self.what} {self.name!r}")
        if getattr(entry, "task", None) == "required":
            raise ValueError(f"{self.name!r} runs only as a task, which is never run twice")
        return entry

    @asynccontextmanager
    async def run(self, app: Server, run: EraRun) -> AsyncIterator[RawConnection]:
        """A connection for one run of the handler, with its side effects recorded."""
        entry = self.entry(app)
        async with open_connection(app, run.revision, _ALL_CAPABILITIES) as connection:
            # Here, because the lifespan has started.
            state = entry.owner.runtime.state
            effects = EffectWatch(entry.arguments.call, state, self.effects, self.ignore)
            connection.on_notification = run.reports.append
            effects.begin()
            yield connection
        # After the connection has closed, when the handler has finished.
        effects.end()
        run.rounds += 1
        for name, change in effects.changes.items():
            known = run.changes.get(name)
            run.changes[name] = change if known is None else known.plus(change)

    def take(self, reply: dict[str, Any], run: EraRun) -> None:
        """Store the result or the error."""
        if "error" in reply:
            run.error = _peer_error(reply["error"], self.method, run.revision)
            return
        raw = Raw(encode(reply["result"]))
        if self.what == "tool":
            run.result = tool_result(raw, None, run.revision)
        else:
            kind = GetPromptResult if self.what == "prompt" else ReadResourceResult
            run.result = read(raw, kind, self.method, run.revision)


def _peer_error(error: dict[str, Any], method: str, revision: str) -> PeerError:
    row = profile("mcp").meaning(error["code"], revision)
    kind = "" if row is None else row.symbol
    return PeerError(error["code"], error["message"], error.get("data"), method=method, kind=kind)


def _given(run: EraRun) -> Any:
    if run.error is not None:
        raise run.error
    return run.result


@asynccontextmanager
async def _kept_open(app: Server, run: EraRun) -> AsyncIterator[None]:
    """Keep the lifespan of a server open between round trips."""
    async with open_connection(app, run.revision, _ALL_CAPABILITIES):
        yield


# -- the handshake era -----------------------------------------------------------------------


async def _play_handshake(script: _EraScript, run: EraRun) -> None:
    app, answers = script.make(), ScriptedAnswers(script.given)
    async with script.run(app, run) as connection, _named(app, connection) as keys:
        await _answer_requests(connection, run, answers, keys, script)
    _check_unused(script, run, answers)


async def _answer_requests(
    connection: RawConnection,
    run: EraRun,
    answers: ScriptedAnswers,
    keys: dict[str, deque[str]],
    script: _EraScript,
) -> None:
    reply = connection.call(script.method, script.params)
    tasks: set[asyncio.Task[None]] = set()
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def answer(id: Any, question: AskedQuestion) -> None:
        connection.send({"id": id, "result": await answers.to(question)})

    def done(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not failed.done():
            failed.set_exception(error)

    def on_request(message: dict[str, Any]) -> None:
        method = message["method"]
        if method == "ping":
            connection.send({"id": message["id"], "result": {}})
            return
        waiting = keys.get(method)
        key = waiting.popleft() if waiting else ""
        question = AskedQuestion(key, method, message.get("params") or {}, run.revision)
        run.questions.append(question)
        run.asked_together = run.asked_together or bool(tasks)
        task = asyncio.create_task(answer(message["id"], question))
        tasks.add(task)
        task.add_done_callback(done)

    connection.on_request = on_request
    try:
        either: list[asyncio.Future[Any]] = [reply, failed]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        script.take(reply.result(), run)
    finally:
        failed.cancel()
        for each in tasks:
            each.cancel()


@asynccontextmanager
async def _named(app: Server, connection: RawConnection) -> AsyncIterator[dict[str, deque[str]]]:
    """The keys of the questions on a connection by method, read in the server.

    Before 2026-07-28 they are not on the wire.
    """
    keys: dict[str, deque[str]] = {}

    async def name(context: Context, proceed: Callable[[], Any]) -> Any:
        request = request_of(context)
        if request.connection.transport is connection.far:
            handler_run_of(request).asker = _KeyRecordingAsker(request, keys)
        return await proceed()

    core = core_of(app)
    core.middleware = (name, *core.middleware)
    try:
        yield keys
    finally:
        core.middleware = tuple(each for each in core.middleware if each is not name)


class _KeyRecordingAsker(WireAsker):
    """Sends questions as requests, and records their keys."""

    __slots__ = ("_keys",)

    def __init__(self, request: ServerRequest, keys: dict[str, deque[str]]) -> None:
        super().__init__(request)
        self._keys = keys

    async def ask(self, question: InputQuestion) -> Raw:
        """Record the key, then send the question: both keep the same order."""
        waiting = self._keys.setdefault(question.method, deque())
        waiting.append(question.key)
        try:
            return await super().ask(question)
        finally:
            if question.key in waiting:
                waiting.remove(question.key)  # it was not sent


# -- the per-request era ---------------------------------------------------------------------


async def _play_rounds(script: _EraScript, run: EraRun) -> None:
    answers = ScriptedAnswers(script.given)
    more: dict[str, Any] = {}
    async with AsyncExitStack() as stack:
        first = app = script.make()
        if app is script.app:
            await stack.enter_async_context(_kept_open(app, run))
        # One round trip more than the server allows, to see its error.
        for _ in range(core_of(first).limits.rounds + 1):
            core_of(app).services.rounds.seal = core_of(first).services.rounds.seal
            async with script.run(app, run) as connection:
                reply = await connection.call(script.method, {**script.params, **more})
            result = reply.get("result", {})
            if result.get("resultType") != "input_required":
                script.take(reply, run)
                break
            more = {"inputResponses": await _answered(result, run, answers)}
            if "requestState" in result:
                more["requestState"] = result["requestState"]
            app = script.make()
        else:
            raise ErasDiffer(script.name, [f"It still asked after {run.rounds} round trips."])
    _check_unused(script, run, answers)


async def _answered(
    result: dict[str, Any], run: EraRun, answers: ScriptedAnswers
) -> dict[str, Any]:
    asked = result.get("inputRequests", {})
    run.asked_together = run.asked_together or len(asked) > 1
    found = {}
    for key, each in asked.items():
        question = AskedQuestion(key, each["method"], each.get("params", {}), run.revision)
        run.questions.append(question)
        found[key] = await answers.to(question)
    return found


def _check_unused(script: _EraScript, run: EraRun, answers: ScriptedAnswers) -> None:
    left = answers.unused()
    if left:
        text = (
            f"{len(left)} of the answers were not used in {run.revision}, where it asked "
            f"{len(run.questions)} questions: {', '.join(map(show, left))}"
        )
        raise ErasDiffer(script.name, [text])

"""Runs a tool in both eras, and says what is not the same.

    both = await run_in_both_eras(app, "book", {"city": "Oslo"}, {"day": "Friday"})
    assert both.result.text == "Booked"

Up to 2025-11-25 a handler waits while its question is answered. In 2026-07-28 it is ended and
run again with the answers. A tool is the same in both if it gives the same, asks the same, and
does nothing more often than when it is run once; this runs it in both and fails otherwise.

The rules that live here, and only here:

* The newest revision of each era that the server has is spoken, by a client that has declared
  everything there is to ask for.
* Nothing is kept between rounds: each has a connection of its own, and where the server is
  made by a function, a server of its own, of which only the keys are the same.
* What is there before is left alone. The eras are run one after the other, the one with the
  handshake first, and what each of them adds is compared.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeAlias

from msgspec import Raw, Struct, field
from msgspec.json import encode

from ..client.requests.decode import read
from ..client.requests.tool_result import tool_result
from ..errors import PeerError
from ..mcp.types import (
    ClientCapabilities,
    ClientCapabilitiesElicitation,
    ClientCapabilitiesRoots,
    ClientCapabilitiesSampling,
    GetPromptResult,
    ReadResourceResult,
)
from ..redaction import show
from ..server.app import Server
from ..server.client_requests.client_request import WireAsker
from ..server.dispatch.handler_run import InputQuestion, handler_run_of
from ..spec.profiles import profile
from .compare_runs import differences
from .raw_connection import RawConnection, open_connection
from .scripted_answers import AskedQuestion, Given, ScriptedAnswers
from .side_effects import EffectWatch, SideEffect

if TYPE_CHECKING:
    from ..server import Context

__all__ = ["BothEras", "EraRun", "ErasDiffer", "run_in_both_eras", "run_in_both_eras_sync"]

P = ParamSpec("P")

App: TypeAlias = Server | Callable[[], Server]
What: TypeAlias = Literal["tool", "prompt", "resource"]

# Everything that a server may ask a client for.
_EVERYTHING: Final = ClientCapabilities(
    elicitation=ClientCapabilitiesElicitation(form={}, url={}),
    sampling=ClientCapabilitiesSampling(context={}, tools={}),
    roots=ClientCapabilitiesRoots(),
)


class ErasDiffer(AssertionError):
    """What was run does not behave the same in both eras; `problems` says how, one by one."""

    def __init__(self, name: str, problems: list[str]) -> None:
        super().__init__(name, problems)
        self.name = name
        self.problems = tuple(problems)

    def __str__(self) -> str:
        told = "\n\n".join(self.problems)
        return f"{self.name!r} is not the same in both eras.\n\n{told}"


class EraRun(Struct):
    """What happened in one era."""

    revision: str
    # Times that the handler was run: once where there is a handshake.
    rounds: int = 0
    questions: list[AskedQuestion] = field(default_factory=list)
    # Log lines and reports of progress, as they came.
    reports: list[dict[str, Any]] = field(default_factory=list)
    # What was left behind, by name.
    changes: dict[str, SideEffect] = field(default_factory=dict)
    # Whether two questions were open at a time.
    asked_together: bool = False
    # What came in the end: one of them.
    result: Any = None
    error: PeerError | None = None


class BothEras(Struct, frozen=True):
    """A tool that was run in both eras, and is the same in both."""

    runs: tuple[EraRun, EraRun]

    @property
    def handshake(self) -> Any:
        """What it gave in the handshake era: a `ToolResult`, or the result of the method.

        Raises:
            PeerError: the request was answered with an error.
        """
        return _given(self.runs[0])

    @property
    def per_request(self) -> Any:
        """What it gave in the per-request era; see `handshake`."""
        return _given(self.runs[1])

    @property
    def result(self) -> Any:
        """What it gave, which is the same in both; see `handshake`."""
        return self.per_request

    @property
    def error(self) -> PeerError | None:
        """The error that it was answered with, if it was."""
        return self.runs[1].error

    @property
    def questions(self) -> list[AskedQuestion]:
        """What it asked, in order, as the per-request era has it."""
        return self.runs[1].questions

    @property
    def rounds(self) -> int:
        """How many times the handler was run in the per-request era."""
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
    """Run a tool once in each era, and fail if it is not the same in both.

    `answers` answer its questions: a mapping by key or by the text of the question, a sequence
    in their order, or a function that is given the `AskedQuestion`. None and "decline" decline,
    "cancel" cancels; any other value accepts, as the content of a form, as the text of a model
    or as a list of URIs.

    What the handler changes in its closure, its globals, the state of the server and members
    of these is found. `effects` is what else to look at: a mock, a container, a function that
    returns a number or a container, or several of these in a tuple. `ignore` names what may
    change; `reset` is called before each era. In place of the server `app` may be a function
    that makes one.

    `what` may be "prompt", or "resource" with its URI. `timeout` is for each era, in seconds.

    Raises:
        ErasDiffer: what is not the same, in sentences.
        UnansweredQuestion: it asked what `answers` do not answer.
        ValueError: there is no such tool, it runs only as a task, or the server has one era.
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
                tool, [f"It did not end within {timeout:g} s in {revision}."]
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
        """Do the same as `run_in_both_eras`, in an event loop of its own.

        Raises:
            RuntimeError: an event loop is running: await `run_in_both_eras` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(function(*args, **options))
        raise RuntimeError("an event loop is running: await run_in_both_eras(...) instead")

    return run_in_both_eras_sync


# Made, so that the long list of parameters is written down once.
run_in_both_eras_sync = _in_own_loop(run_in_both_eras)


# -- what is run -----------------------------------------------------------------------------


class _EraScript:
    """What is asked for in both eras, of which server."""

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
        """Return the server, or another one of its kind."""
        return self.app if isinstance(self.app, Server) else self.app()

    def revisions(self) -> tuple[str, str]:
        """Return the newest revision of each era.

        Raises:
            ValueError: the server has only one era.
        """
        app = self.make()
        self.entry(app)
        revs = [app._core.revision(revision) for revision in app.revisions]
        handshake = [each.revision for each in revs if each.has_handshake]
        rounds = [each.revision for each in revs if each.asks_in_results]
        if not handshake or not rounds:
            raise ValueError(f"{app!r} has only one era: {', '.join(app.revisions)}")
        return handshake[0], rounds[0]

    def entry(self, app: Server) -> Any:
        """Return what is run.

        Raises:
            ValueError: there is nothing of that name, or it runs only as a task.
        """
        entry: Any
        if self.what == "resource":
            entry = next((found for found, _ in app._core.find_resources(self.name)), None)
        else:
            lists = app._core.tools if self.what == "tool" else app._core.prompts
            entry = lists.get(self.name)
        if entry is None:
            raise ValueError(f"{app!r} has no {self.what} {self.name!r}")
        if getattr(entry, "task", None) == "required":
            raise ValueError(f"{self.name!r} runs only as a task, which is never run again")
        return entry

    @asynccontextmanager
    async def run(self, app: Server, run: EraRun) -> AsyncIterator[RawConnection]:
        """A connection on which the handler is run once, looked at from outside."""
        entry = self.entry(app)
        async with open_connection(app, run.revision, _EVERYTHING) as line:
            # Now, because the lifespan has begun.
            state = entry.owner.state
            effects = EffectWatch(entry.arguments.call, state, self.effects, self.ignore)
            line.on_notification = run.reports.append
            effects.begin()
            yield line
        # After the connection has ended: by then everything is done.
        effects.end()
        run.rounds += 1
        for name, change in effects.changes.items():
            known = run.changes.get(name)
            run.changes[name] = change if known is None else known.plus(change)

    def take(self, reply: dict[str, Any], run: EraRun) -> None:
        """Keep what came in the end."""
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
    """Hold the lifespan of a server open from round to round."""
    async with open_connection(app, run.revision, _EVERYTHING):
        yield


# -- the handshake era -----------------------------------------------------------------------


async def _play_handshake(script: _EraScript, run: EraRun) -> None:
    app, answers = script.make(), ScriptedAnswers(script.given)
    async with script.run(app, run) as line, _named(app, line) as keys:
        await _answer_requests(line, run, answers, keys, script)
    _check_left_over(script, run, answers)


async def _answer_requests(
    line: RawConnection,
    run: EraRun,
    answers: ScriptedAnswers,
    keys: dict[str, deque[str]],
    script: _EraScript,
) -> None:
    reply = line.call(script.method, script.params)
    tasks: set[asyncio.Task[None]] = set()
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def answer(id: Any, question: AskedQuestion) -> None:
        line.send({"id": id, "result": await answers.to(question)})

    def done(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not failed.done():
            failed.set_exception(error)

    def on_request(message: dict[str, Any]) -> None:
        method = message["method"]
        if method == "ping":
            line.send({"id": message["id"], "result": {}})
            return
        waiting = keys.get(method)
        key = waiting.popleft() if waiting else ""
        question = AskedQuestion(key, method, message.get("params") or {}, run.revision)
        run.questions.append(question)
        run.asked_together = run.asked_together or bool(tasks)
        task = asyncio.create_task(answer(message["id"], question))
        tasks.add(task)
        task.add_done_callback(done)

    line.on_request = on_request
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
async def _named(app: Server, line: RawConnection) -> AsyncIterator[dict[str, deque[str]]]:
    """The keys of the questions on a line, in their order, by method.

    Before 2026-07-28 keys do not travel, but the server is at hand.
    """
    keys: dict[str, deque[str]] = {}

    async def name(context: Context, proceed: Callable[[], Any]) -> Any:
        if context._connection.transport is line.far:
            handler_run_of(context).asker = _KeyRecordingAsker(context, keys)
        return await proceed()

    app._core.middleware = (name, *app._core.middleware)
    try:
        yield keys
    finally:
        app._core.middleware = tuple(each for each in app._core.middleware if each is not name)


class _KeyRecordingAsker(WireAsker):
    """Asks by requests, and notes the keys of what it asks."""

    __slots__ = ("_keys",)

    def __init__(self, context: Context, keys: dict[str, deque[str]]) -> None:
        super().__init__(context)
        self._keys = keys

    async def ask(self, question: InputQuestion) -> Raw:
        """Send the question, which the other end receives in the order of these notes."""
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
        # A round more than the server allows, so that its own answer to that is seen.
        for _ in range(first._core.limits.rounds + 1):
            app._core.rounds.seal = first._core.rounds.seal
            async with script.run(app, run) as line:
                reply = await line.call(script.method, {**script.params, **more})
            result = reply.get("result", {})
            if result.get("resultType") != "input_required":
                script.take(reply, run)
                break
            more = {"inputResponses": await _answered(result, run, answers)}
            if "requestState" in result:
                more["requestState"] = result["requestState"]
            app = script.make()
        else:
            raise ErasDiffer(script.name, [f"It asked on after {run.rounds} rounds."])
    _check_left_over(script, run, answers)


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


def _check_left_over(script: _EraScript, run: EraRun, answers: ScriptedAnswers) -> None:
    left = answers.left_over()
    if left:
        text = (
            f"{len(left)} of the answers were left over in {run.revision}, where it asked "
            f"{len(run.questions)} questions: {', '.join(map(show, left))}"
        )
        raise ErasDiffer(script.name, [text])

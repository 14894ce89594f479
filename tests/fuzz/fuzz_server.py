"""Any frames at all: each request is answered once, nothing invalid is served, nothing is left.

A run is a conversation with a server over memory, in one revision or in none. The first byte of
the input selects the revision. The rest is a script: lines that are sent as they are, or choices
of a grammar of messages, some of them damaged on the way. A parser of JSON that shares no code
with ours decides what each frame is.

Run `python -m tests.fuzz.fuzz_server -max_total_time=20 tests/fuzz/corpus/server`; it needs
atheris. Without it, `check` can be called on any input.
"""

from __future__ import annotations

import asyncio
import atexit
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from tests.fuzz.engine import fuzz
from tests.fuzz.script import Choices, logged
from tests.fuzz.strict_json import UNFIT, NotJson, Undecided, parse
from trunkline import Context, Server, ToolError, memory_pair
from trunkline.jsonrpc import Policy
from trunkline.spec.revisions import REVISIONS
from trunkline.transports.memory import MemoryTransport

# What may come of a message: one answer with its id; at most one, with its id or none; none.
Kind: TypeAlias = Literal["request", "doubtful", "faulty", "silent"]
Key: TypeAlias = tuple[type, Any]

MODES: Final = (*REVISIONS, None)
NEWEST: Final = REVISIONS[-1]
CANARY: Final = b"CANARY-7f3a"
# A text of an argument is in no log; a method or an id may be.
HIDING: Final = b'"text":"'
PATIENCE: Final = 10.0
SURROGATES: Final = range(0xD800, 0xE000)
META: Final = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


class Frame(NamedTuple):
    """Bytes to send, and what comes of them where the grammar knows better than a parser."""

    data: bytes
    kind: Kind | None = None
    id: Any = None


# -- the server ------------------------------------------------------------------------------


class FuzzedServer:
    """A server and its event loop, and what its handlers were called with.

    All runs share one: it takes longer to make than a run.
    """

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        atexit.register(self.runner.close)
        self.begin()
        self.faults: list[dict[str, Any]] = []
        self.runner.get_loop().set_exception_handler(lambda _, each: self.faults.append(each))
        self.app = app = Server("fuzz")

        @app.tool
        async def echo(text: str) -> str:
            self.served.append(text)
            return text

        @app.tool(inline=True)
        def count(text: str) -> int:
            self.served.append(text)
            return len(text)

        @app.tool
        async def hold(text: str = "") -> str:
            self.served.append(text)
            await self.released.wait()
            return text

        @app.tool
        async def fails(text: str = "") -> str:
            self.served.append(text)
            raise ToolError("no")

        @app.tool
        async def asks(ctx: Context, text: str = "") -> str:
            self.served.append(text)
            answer = await ctx.elicit("name?", str, key="name")
            return str(answer)

        @app.tool
        async def reports(ctx: Context, text: str = "") -> str:
            self.served.append(text)
            await ctx.progress(1, 2, "half")
            await ctx.log("info", "half")
            return text

        @app.resource("note://one")
        async def note() -> str:
            self.served.append("")
            return "note"

        @app.resource("item://{name}")
        async def item(name: str) -> str:
            self.served.append(name)
            return name

        @app.prompt
        async def greet(text: str = "") -> str:
            self.served.append(text)
            return text

    def begin(self) -> None:
        """Forget what was before."""
        self.served: list[str] = []
        self.released = asyncio.Event()


@cache
def scene() -> FuzzedServer:
    """The one that all runs share."""
    return FuzzedServer()


# -- the frames ------------------------------------------------------------------------------

IDS: Final[tuple[Any, ...]] = (*range(1, 9), "a", "b", "é", "", "1", -5, 2**53, 10**20)
TOOLS: Final = ("echo", "count", "hold", "fails", "asks", "reports", "missing", "")
TEXT: Final = CANARY.decode()
REQUESTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("ping", {}),
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("server/discover", {}),
    ("resources/read", {"uri": "note://one"}),
    ("resources/read", {"uri": "item://two"}),
    ("resources/read", {"uri": "gone://"}),
    ("resources/subscribe", {"uri": "note://one"}),
    ("prompts/get", {"name": "greet", "arguments": {"text": TEXT}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}}),
    ("logging/setLevel", {"level": "debug"}),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    ("no/such", {"text": TEXT}),
    (
        "initialize",
        {
            "protocolVersion": "2025-03-26",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "fuzz", "version": "1"},
        },
    ),
)
NOTICES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("notifications/initialized", {}),
    ("notifications/cancelled", {"requestId": 1, "reason": TEXT}),
    ("notifications/cancelled", {"requestId": "a"}),
    ("notifications/cancelled", {"requestId": [1]}),
    ("notifications/progress", {"progressToken": 1, "progress": 1}),
    ("notifications/roots/list_changed", {}),
    ("no/such", {"text": TEXT}),
)
OUTCOMES: Final[tuple[dict[str, Any], ...]] = (
    {"result": {"action": "accept", "content": {"value": TEXT}}},
    {"result": {"action": "decline"}},
    {"result": {"text": TEXT}},
    {"error": {"code": -32603, "message": "no", "data": {"text": TEXT}}},
)
# Values that are not JSON; each leaves the rest of its message as it was.
NOT_JSON: Final = (b"NaN", b"-Infinity", b'"\xff"', b'"\xc3("', b'"\t"', b"[1,]", b'"\\q"', b"01")
FRAGMENTS: Final = (
    b"",
    b"{}",
    b"[",
    b"]",
    b"}",
    b'"',
    b",",
    b"\\",
    b"null",
    b"1e999",
    b"1.0",
    b"9" * 30,
    b'"id":2,',
    b'"id":null,',
    b'"method":"ping",',
    b'"result":{},',
    b'"jsonrpc":"1.0",',
    b'"params":[],',
    b'"\\ud83d"',
    b"\\ud83d",
    b"\\u0000",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\0",
    b'"_meta":{},',
)


def frames_of(choices: Choices, mode: str | None) -> Iterator[Frame]:
    """Yield the frames of a script."""
    makers: tuple[Callable[[Choices, str | None], Frame], ...] = (
        lambda choices, _: Frame(choices.line()),
        lambda choices, mode: Frame(written(request(choices, mode))),
        lambda choices, mode: Frame(written(call(choices, mode))),
        lambda choices, mode: Frame(written(call(choices, mode))),
        lambda choices, _: Frame(written(notice(choices))),
        lambda choices, _: Frame(written(reply(choices))),
        batch,
        spoilt,
        mutated,
        mutated,
    )
    while choices.is_left:
        yield choices.of(makers)(choices, mode)


def message(choices: Choices, mode: str | None) -> dict[str, Any]:
    kind = choices.number(6)
    if kind == 0:
        return notice(choices)
    if kind == 1:
        return reply(choices)
    return request(choices, mode) if kind == 2 else call(choices, mode)


def request(choices: Choices, mode: str | None) -> dict[str, Any]:
    method, params = choices.of(REQUESTS)
    return request_of(choices.of(IDS), method, params, mode)


def call(choices: Choices, mode: str | None) -> dict[str, Any]:
    text = choices.of((TEXT, "", "é\U0001f600", "cut \ud83d", TEXT))
    arguments = choices.of(({"text": text}, {"text": text}, {}, {"text": 7}, {"wrong": text}))
    params = {"name": choices.of(TOOLS), "arguments": arguments}
    return request_of(choices.of(IDS), "tools/call", params, mode)


def request_of(id: Any, method: str, params: dict[str, Any], mode: str | None) -> dict[str, Any]:
    if mode in (NEWEST, None) and method != "initialize":
        params = {**params, "_meta": META}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def notice(choices: Choices) -> dict[str, Any]:
    method, params = choices.of(NOTICES)
    return {"jsonrpc": "2.0", "method": method, "params": params}


def reply(choices: Choices) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": choices.of(IDS), **choices.of(OUTCOMES)}


def batch(choices: Choices, mode: str | None) -> Frame:
    return Frame(written([message(choices, mode) for _ in range(choices.number(5))]))


def spoilt(choices: Choices, mode: str | None) -> Frame:
    """A message with one value that is not JSON: its id and kind are still seen."""
    whole = message(choices, mode)
    text = written({**whole, "spoilt": "HERE"}).replace(b'"HERE"', choices.of(NOT_JSON))
    if "method" not in whole or "id" not in whole:
        return Frame(text, "silent")
    return Frame(text, "request", whole["id"])


def mutated(choices: Choices, mode: str | None) -> Frame:
    text = written(message(choices, mode))
    for _ in range(1 + choices.number(3)):
        at = (choices.number(256) * 256 + choices.number(256)) % (len(text) + 1)
        end = at + choices.number(9)
        put = choices.of(FRAGMENTS)
        text = text[:at] + put if choices.number(16) == 15 else text[:at] + put + text[end:]
    return Frame(text.replace(b"\n", b" "))


def written(value: Any) -> bytes:
    # With escapes: lone surrogates are written as other languages write them.
    return json.dumps(value, separators=(",", ":")).encode()


# -- what each should come to ----------------------------------------------------------------


class ExpectedAnswers:
    """What an independent reading of the frames says of the answers."""

    def __init__(self, mode: str | None) -> None:
        # Of each id: how many requests have it, and how many answers it may have at most.
        self.owed: Counter[Key] = Counter()
        self.most: Counter[Key] = Counter()
        # Frames and elements that may be answered without an id, or with one they do not show.
        self.faulty = 0
        self.requests = 0
        self.excused: set[Key] = set()
        self.texts: Counter[str] = Counter()
        self._accepts_batches = mode is not None and Policy.mcp(mode).accepts_batches
        self._may_change = mode in (NEWEST, None)

    def add(self, frame: Frame) -> None:
        if frame.kind is not None:
            self._count(frame.kind, frame.id)
            return
        if b"initialize" in frame.data:
            # A session may begin here, and with it another revision.
            self._may_change = self._may_change or not self._accepts_batches
        try:
            value = parse(frame.data)
        except NotJson:
            self._count("faulty")
            return
        except Undecided:
            self._count("doubtful")
            return
        if isinstance(value, list) and self._is_read(value):
            for element in value:
                self._add_message(element, "doubtful" if self._is_in_doubt else None)
            self.faulty += self._is_in_doubt
        else:
            self._add_message(value)

    @property
    def _is_in_doubt(self) -> bool:
        return self._may_change

    def _is_read(self, value: list[Any]) -> bool:
        return bool(value) and (self._accepts_batches or self._may_change)

    def _add_message(self, value: Any, instead: Kind | None = None) -> None:
        kind = kind_of(value)
        if kind == "silent":
            self._excuse(value)
        if kind != "request":
            self._count(kind)
            return
        self._count(instead or kind, value["id"])
        self._note_text(value)
        if value["method"] in ("subscriptions/listen",):
            self.excused.add(key_of(value["id"]))

    def _excuse(self, value: dict[str, Any]) -> None:
        params = value.get("params")
        if value.get("method") == "notifications/cancelled" and isinstance(params, dict):
            id = params.get("requestId")
            if type(id) in (int, str):
                self.excused.add(key_of(id))

    def _note_text(self, value: dict[str, Any]) -> None:
        params = value.get("params")
        params = params if isinstance(params, dict) else {}
        arguments = params.get("arguments")
        text = arguments.get("text", "") if isinstance(arguments, dict) else ""
        if isinstance(params.get("uri"), str):
            self.texts[params["uri"].removeprefix("item://")] += 1
        self.texts[replaced(text) if isinstance(text, str) else ""] += 1
        self.texts[""] += 1

    def _count(self, kind: Kind, id: Any = None) -> None:
        if kind == "request":
            self.owed[key_of(id)] += 1
            self.requests += 1
            self.most[key_of(id)] += 1
        elif kind in ("faulty", "doubtful"):
            self.faulty += 1
            if id is not None:
                self.most[key_of(id)] += 1


def kind_of(value: Any) -> Kind:
    """Say what comes of one message, by the rules of JSON-RPC and MCP."""
    if not isinstance(value, dict):
        return "faulty"
    if "method" not in value:
        return "silent" if value.keys() & {"result", "error"} else "faulty"
    method, id = value["method"], value.get("id")
    is_named = isinstance(method, str) and value.get("jsonrpc") == "2.0"
    if "id" not in value:
        return "silent" if is_named else "faulty"
    is_call = is_named and 0 < len(method) <= 1024 and not value.keys() & {"result", "error"}
    if not is_call or type(id) not in (int, str) or id is UNFIT:
        return "faulty"
    if isinstance(id, str) and (len(id) > 1024 or any(ord(each) in SURROGATES for each in id)):
        return "faulty"
    return "request"


def key_of(id: Any) -> Key:
    # 1 and "1" are two ids.
    return type(id), id


def replaced(text: str) -> str:
    return "".join("\ufffd" if ord(each) in SURROGATES else each for each in text)


# -- a run -----------------------------------------------------------------------------------


class ClientEnd:
    """The client's end: what it received, each a JSON value by the other parser."""

    def __init__(self, near: MemoryTransport) -> None:
        self.near = near
        self.answers: list[dict[str, Any]] = []
        self.questions: list[Any] = []
        near.on_message = self._take

    def _take(self, frame: Any, _route: Any) -> None:
        value = parse(bytes(frame))
        for each in value if isinstance(value, list) else [value]:
            assert each["jsonrpc"] == "2.0", each
            if "method" not in each:
                assert ("result" in each) != ("error" in each), each
                self.answers.append(each)
            elif "id" in each:
                self.questions.append(each["id"])

    def counted(self) -> Counter[Key]:
        return Counter(key_of(each["id"]) for each in self.answers if each.get("id") is not None)


def check(data: bytes) -> None:
    """Hold the invariant for one script."""
    choices = Choices(data)
    mode = choices.of(MODES)
    frames = list(frames_of(choices, mode))
    stage = scene()
    stage.begin()
    with logged("trunkline", "trunkline.server", "asyncio") as lines:
        stage.runner.run(converse(frames, mode, stage))
    assert stage.faults == []
    check_log(lines, frames)


def check_log(lines: list[str], frames: list[Frame]) -> None:
    """Hold that nothing failed inside, and that no argument was logged."""
    assert [line for line in lines if " ERROR " in line or " CRITICAL " in line] == []
    sent = [frame.data for frame in frames]
    if all(data.count(CANARY) == data.count(HIDING + CANARY) for data in sent):
        assert [line for line in lines if CANARY.decode() in line] == []


async def converse(frames: list[Frame], mode: str | None, scene: FuzzedServer) -> None:
    expected = ExpectedAnswers(mode)
    near, far = memory_pair()
    wire = ClientEnd(near)
    alone = asyncio.all_tasks()
    serving = asyncio.create_task(scene.app.serve(far))
    try:
        await near.connect()
        await begin(wire, mode)
        for frame in frames:
            expected.add(frame)
            near.send(frame.data)
            await asyncio.sleep(0)
        await settle(wire, scene, expected)
        check_answers(wire, expected)
        assert Counter(scene.served) <= expected.texts, (scene.served, expected.texts)
    finally:  # the next run has the same server
        await near.close()
        await asyncio.wait_for(serving, PATIENCE)
    check_answers(wire, expected)
    assert asyncio.all_tasks() <= alone
    assert scene.app._core.runtime.in_flight == 0


async def begin(wire: ClientEnd, mode: str | None) -> None:
    """Open a session, in a revision that has them."""
    if mode in (NEWEST, None):
        return
    params = {
        "protocolVersion": mode,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "fuzz", "version": "1"},
    }
    opening = {"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": params}
    wire.near.send(written(opening))
    async with asyncio.timeout(PATIENCE):
        while not wire.answers:
            await asyncio.sleep(0)
    wire.near.send(written({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    assert [each["id"] for each in wire.answers] == ["begin"]
    wire.answers.clear()


async def settle(wire: ClientEnd, scene: FuzzedServer, expected: ExpectedAnswers) -> None:
    """Let handlers end, and answer what they ask, until all answers that are owed are there."""
    scene.released.set()
    async with asyncio.timeout(PATIENCE):
        while missing(wire, expected):
            while wire.questions:
                id = wire.questions.pop()
                wire.near.send(
                    written({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}})
                )
            await asyncio.sleep(0)
    # Whatever else would be sent is sent by now.
    for _ in range(5):
        await asyncio.sleep(0)


def missing(wire: ClientEnd, expected: ExpectedAnswers) -> list[Key]:
    """Return the ids that have too few answers; of several requests with one id, one is owed."""
    counted = wire.counted()
    return [key for key in expected.owed if key not in expected.excused and counted[key] < 1] or [
        "all"
    ] * (len(wire.answers) < owed_overall(expected))


def owed_overall(expected: ExpectedAnswers) -> int:
    # A request with the id of an open one is answered without it.
    return sum(count for key, count in expected.owed.items() if key not in expected.excused)


def check_answers(wire: ClientEnd, expected: ExpectedAnswers) -> None:
    """Hold that there are enough answers, and none too many."""
    assert not missing(wire, expected), (missing(wire, expected), wire.answers)
    assert len(wire.answers) <= expected.requests + expected.faulty, wire.answers
    over = wire.counted() - expected.most
    assert over.total() <= expected.faulty, (over, wire.answers)


if __name__ == "__main__":
    fuzz(check)

"""Hostile texts of 1, 2 and 4 MiB at each place that reads what a peer sent.

A place that reads such a text on the event loop stops all clients of a server meanwhile. Its CPU
time is compared with that of a loop in Python over as many steps as the text has bytes, measured
in the same test, so that the speed of the machine does not matter. A text that is read in C, or
cut before it is read, takes a fraction of that loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cases import for_each
from tests.cpu_time import cpu_s
from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import connected
from trunkline import Client, Context, Server
from trunkline.jsonrpc import Policy

MIB = 1 << 20
SIZES = (1, 2, 4)
# Loops over the text that a place may take. The slowest takes 6, most less than 1; those that
# looped over the text in Python took 30 to 1000.
MAX_LOOPS = 16.0


def one_loop() -> float:
    """Return the CPU time of a loop with as many steps as 1 MiB has bytes."""

    def loop() -> None:
        for _ in range(MIB):
            pass

    return min(cpu_s(loop) for _ in range(3))


def assert_linear(work: Callable[[int], object]) -> None:
    """Assert that `work(size)` takes a few loops over its text at most, of 1, 2 and 4 MiB."""
    loop = one_loop()
    for mib in SIZES:
        # The better of two: another process may have emptied the caches meanwhile.
        taken = min(cpu_s(lambda mib=mib: work(mib * MIB)) for _ in range(2))
        assert taken < MAX_LOOPS * mib * loop, f"{taken / loop / mib:.1f} loops for {mib} MiB"


def called(app: Server, tool: str, arguments: dict[str, Any]) -> Any:
    """Return the result of one call."""

    async def script() -> Any:
        async with Client(app, timeout=300) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(script())


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The messages of all loggers, formatted."""
    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(self.format(record))

    handler = Keep()
    logging.getLogger().addHandler(handler)
    yield messages
    logging.getLogger().removeHandler(handler)


# Schema validation

SCHEMAS: dict[str, dict[str, Any]] = {
    "items": {"properties": {"v": {"type": "array", "items": {"type": "integer"}}}},
    "items with alternatives": {
        "properties": {
            "v": {"items": {"anyOf": [{"type": "integer"}, {"required": ["b"], "type": "object"}]}}
        }
    },
    "alternatives with items": {
        "properties": {
            "v": {"anyOf": [{"items": {"type": "integer"}}, {"items": {"type": "boolean"}}]}
        }
    },
    "alternatives by reference": {
        "properties": {"v": {"oneOf": [{"$ref": "#/$defs/a"}, {"type": "integer"}]}},
        "$defs": {"a": {"items": {"oneOf": [{"type": "integer"}, {"type": "boolean"}]}}},
    },
    "one name": {"properties": {"v": {"additionalProperties": False}}},
    "unevaluated names": {"properties": {"v": {"unevaluatedProperties": False}}},
}


@for_each("kind", SCHEMAS)
def test_arguments_that_break_a_schema_everywhere_are_rejected_at_the_first_fault(
    kind: str,
) -> None:
    from trunkline.server.handlers.schema_validator import SchemaCheck

    check = SchemaCheck(SCHEMAS[kind])
    by_name = "name" in kind
    values = {
        mib: {f"k{n}": 1 for n in range(mib * MIB // 12)} if by_name else ["x"] * (mib * MIB // 4)
        for mib in SIZES
    }
    assert_linear(lambda size: check.problem({"v": values[size // MIB]}))
    problem = check.problem({"v": values[1]})
    assert problem is not None
    assert len(problem) < 300
    if kind != "one name" and by_name:
        assert problem.count('"k') == 5
    if kind.startswith("items"):
        assert problem.startswith('"v[0]" breaks')


def test_a_call_whose_arguments_break_the_schema_of_a_tool_costs_no_more_than_reading_it() -> None:
    app = Server("s")
    app.add_tool(lambda v: "never", "plain", input_schema={"type": "object", **SCHEMAS["items"]})
    assert_linear(lambda size: called(app, "plain", {"v": ["x"] * (size // 4)}))
    failed = called(app, "plain", {"v": ["x"] * (MIB // 4)})
    assert failed.is_error
    assert '"v[0]" breaks "type": expected integer' in failed.text


def test_unknown_arguments_are_counted_and_twenty_are_named() -> None:
    app = Server("s")
    app.add_tool(lambda city: "never", "plain")
    given = {mib: {f"k{n}": 1 for n in range(mib * MIB // 12)} for mib in SIZES}
    assert_linear(lambda size: called(app, "plain", given[size // MIB]))
    text = called(app, "plain", {f"k{n}": 1 for n in range(30)}).text
    assert 'unknown arguments "k0", ' in text
    assert text.count('"k') == 20
    assert "and 10 more" in text


def test_a_model_that_collects_all_errors_has_them_counted_not_listed() -> None:
    import pydantic

    class Report(pydantic.BaseModel):
        ids: list[int]

    app = Server("s")

    def send(report: Report) -> str:
        return "never"

    app.add_tool(send)
    text = called(app, "send", {"report": {"ids": ["x"] * 2000}}).text
    assert "2000 parts of it do not fit Report" in text
    assert '"ids.0"' in called(app, "send", {"report": {"ids": ["x"] * 1000}}).text


# Exception texts


def raising(make: Callable[[str], BaseException]) -> Server:
    app = Server("s")

    @app.tool
    async def fail(text: str) -> str:
        raise make(text)

    return app


def _noted(text: str) -> BaseException:
    error = ValueError("noted")
    error.add_note(text)
    return error


def _caused(text: str) -> BaseException:
    error = ValueError("caused")
    error.__cause__ = KeyError(text)
    return error


RAISED: dict[str, Callable[[str], BaseException]] = {
    "its own text": lambda text: ValueError(f"no such city: {text}"),
    "a note": _noted,
    "a cause": _caused,
    "a member of a group": lambda text: ExceptionGroup(
        "several", [ValueError(text), ValueError("x")]
    ),
    "each member of a group": lambda text: ExceptionGroup(
        "several", [ValueError(n) for n in range(len(text) // 8)]
    ),
}


@pytest.mark.full
@for_each("where", RAISED)
def test_an_exception_text_is_cut_before_it_is_logged(where: str, logged: list[str]) -> None:
    app = raising(RAISED[where])
    assert_linear(lambda size: called(app, "fail", {"text": "\n" * (size // 2)}))
    assert logged
    assert max(map(len, logged)) < 20_000


@for_each("where", [where for where in RAISED if where != "each member of a group"])
def test_an_exception_text_can_neither_forge_a_log_line_nor_act_on_a_terminal(
    where: str, logged: list[str]
) -> None:
    hostile = "CRITICAL Oslo\x1b[2J\x9b31m\nCRITICAL trunkline: forged\r\u2028forged\u202e\x00"
    logged.clear()
    called(raising(RAISED[where]), "fail", {"text": hostile})
    (message,) = logged
    assert "Oslo" in message
    assert message.replace("\n", "").isprintable()
    lines = message.splitlines()
    assert not [line for line in lines if line.lstrip().startswith(("CRITICAL", "forged"))]
    assert "Traceback (most recent call last):" in lines


def test_the_error_of_a_client_can_not_forge_a_log_line(logged: list[str]) -> None:
    app = Server("s")

    @app.tool
    async def ask(ctx: Context) -> str:
        await ctx.elicit("How many?", int)
        return "never"

    async def script() -> None:
        capabilities = {"elicitation": {}}
        async with connected(app, "2025-06-18", capabilities) as wire:
            wire.call(1, "ask")
            (question,) = await wire.until(1)
            error = {"code": -1, "message": "no\nCRITICAL trunkline: forged\x1b[2J"}
            wire.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
            await wire.answer(1)

    asyncio.run(script())
    (message,) = logged
    assert message.isprintable()
    assert "CRITICAL" in message


def test_a_secret_over_several_lines_is_hidden_in_an_exception_text(logged: list[str]) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "Q0FOQVJZ\n" * 20 + "-----END PRIVATE KEY-----"
    called(raising(RAISED["its own text"]), "fail", {"text": key})
    assert "Q0FOQVJZ" not in logged[0]


# URI templates


def with_templates(*templates: str) -> Server:
    app = Server("s")
    for template in templates:
        app.add_resource(lambda a, b: "x", template)
    return app


# 8 KiB each: escapes in digits, in small letters, characters that templates split at, pairs.
HOSTILE_URIS: dict[str, str] = {
    "escapes": "db://t0/" + "%61" * 2725,
    "escapes in small letters": "db://t0/" + "%c3%bc" * 1360,
    "letters to be encoded": "db://t0/" + "ü" * 8180,
    "slashes": "db://t0/x" + "/a" * 4090,
    "dots": "db://t0/x" + "/.a" * 2720,
    "marks": "db://t0/x" + "?&;.#/" * 1360,
    "pairs": "db://t0/x?" + "a=1&" * 2040,
}
TEMPLATES: dict[str, tuple[str, ...]] = {
    "other heads": tuple(f"db://u{n}/{{a}}/{{b}}" for n in range(100)),
    "one segment": ("db://t0/{a}/{b}",),
    "several segments": ("db://t0/{+a}/x{b}",),
    "pairs": ("db://t0/x{?a,b}",),
    "pairs apart": ("db://t0/x{?a}{&b}",),
    "marks": ("db://t0/x{.a}{/b}",),
    "an encoded literal": ("db://t0/%C3%BC{a}{?b}",),
}


@for_each("uris", HOSTILE_URIS)
def test_uris_are_matched_without_a_loop_over_their_characters(uris: str) -> None:
    uri = HOSTILE_URIS[uris]
    assert 8100 < len(uri) <= 8192
    cores = [with_templates(*templates)._core for templates in TEMPLATES.values()]

    def look_up(size: int) -> None:
        for n in range(size // len(uri)):
            next(cores[n % len(cores)].catalog.find_resources(uri), None)

    assert_linear(look_up)


def test_one_listen_request_with_many_long_uris_is_read_quickly_or_refused() -> None:
    app = with_templates(*(f"db://t{n}/{{a}}/{{b}}" for n in range(20)))

    def listen(size: int) -> Any:
        uris = [f"db://x/{'%61' * 2000}{n}" for n in range(size // 6010)]

        async def script() -> Any:
            async with connected(app, PER_REQUEST) as wire:
                params = {"_meta": META, "notifications": {"resourceSubscriptions": uris}}
                wire.ask(1, "subscriptions/listen", params)
                (first,) = await wire.until(1)
                return first

        return asyncio.run(script())

    assert_linear(listen)
    assert listen(MIB)["method"] == "notifications/subscriptions/acknowledged"
    refused = listen(2 * MIB)
    assert refused["id"] == 1
    assert "1048576 characters of URIs" in refused["error"]["message"]


# Texts that an answer or a log repeats

BIG = "q\n\x1b" * 20_000
M = "io.modelcontextprotocol/"
REF = {"type": "ref/prompt", "name": "say"}

# The method and params of requests with a large text where a short one is expected.
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    (BIG, {}),
    ("ping", {BIG: 1}),
    ("tools/call", {"name": BIG, "arguments": {}}),
    ("tools/call", {"name": "work", "arguments": {BIG: 1}}),
    ("tools/call", {"name": "work", "arguments": {"n": BIG}}),
    ("tools/call", {"name": "work", "arguments": BIG}),
    ("tools/call", {"name": "job", "arguments": {}, "task": {"ttl": BIG}}),
    ("tools/call", {"name": "job", "arguments": {}, "requestState": BIG}),
    ("tools/call", {"name": "job", "arguments": {}, "inputResponses": {BIG: BIG}}),
    ("prompts/get", {"name": BIG}),
    ("prompts/get", {"name": "say", "arguments": {BIG: "x"}}),
    ("resources/read", {"uri": BIG}),
    ("resources/subscribe", {"uri": BIG}),
    ("resources/unsubscribe", {"uri": BIG}),
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [BIG]}}),
    ("subscriptions/listen", {"notifications": BIG}),
    ("completion/complete", {"ref": {**REF, "name": BIG}, "argument": {"name": "w", "value": ""}}),
    ("completion/complete", {"ref": {**REF, "type": BIG}, "argument": {"name": "w", "value": ""}}),
    ("completion/complete", {"ref": REF, "argument": {"name": BIG, "value": BIG}}),
    ("logging/setLevel", {"level": BIG}),
    *((f"{what}/list", {"cursor": BIG}) for what in ("tools", "resources", "prompts", "tasks")),
    *((f"tasks/{what}", {"taskId": BIG}) for what in ("get", "cancel", "result")),
    ("tasks/update", {"taskId": BIG, "inputResponses": {BIG: BIG}}),
    (
        "initialize",
        {"protocolVersion": BIG, "capabilities": {}, "clientInfo": {"name": BIG, "version": BIG}},
    ),
    ("initialize", {"protocolVersion": "2025-06-18", "capabilities": BIG, "clientInfo": BIG}),
    *(("tools/list", {"_meta": {f"{M}{name}": BIG}}) for name in ("protocolVersion", "logLevel")),
    *(("tools/list", {"_meta": {f"{M}{n}": BIG}}) for n in ("clientInfo", "clientCapabilities")),
    ("tools/list", {"_meta": {"progressToken": BIG}}),
    ("tools/list", {"_meta": {"progressToken": {BIG: BIG}}}),
    ("tools/list", {"_meta": BIG}),
]
MESSAGES: list[Any] = [
    {"jsonrpc": "2.0", "id": BIG, "result": {}},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": BIG}},
    {"jsonrpc": "2.0", "result": {}},
    {"jsonrpc": BIG, "id": 1, "method": BIG},
    {"jsonrpc": "2.0", "id": BIG, "method": 1},
    [BIG],
    *(
        {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": params}
        for name, params in [
            ("cancelled", {"requestId": BIG, "reason": BIG}),
            ("cancelled", {"requestId": {BIG: 1}}),
            ("progress", {"progressToken": BIG, "progress": BIG}),
            ("initialized", BIG),
            (BIG, {BIG: BIG}),
        ]
    ),
]


def with_everything() -> Server:
    app = Server("s")

    @app.tool
    async def work(n: int) -> str:
        return "x"

    @app.tool(task="optional")
    async def job() -> str:
        return "x"

    @app.prompt
    def say(w: str) -> str:
        return w

    @app.resource("x://{a}")
    def read(a: str) -> str:
        return a

    return app


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", PER_REQUEST])
def test_no_answer_and_no_log_line_repeats_a_large_text(
    revision: str, logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "trunkline")
    app = with_everything()

    async def script() -> list[Any]:
        found = []
        for method, params in REQUESTS:
            async with connected(app, revision) as wire:
                if revision == PER_REQUEST and "_meta" not in params:
                    params = {**params, "_meta": META}
                wire.ask(1, method, params)
                found.append((method[:30], (await wire.until(1))[0]))
        for message in MESSAGES:
            async with connected(app, revision) as wire:
                wire.send(message)
                wire.ask(2, "ping", {"_meta": META} if revision == PER_REQUEST else {})
                await wire.answer(2)
                found += [("", each) for each in wire.got]
        return found

    answers = asyncio.run(script())
    assert len(answers) >= len(REQUESTS) + len(MESSAGES)
    long = [(name, str(each)[:200]) for name, each in answers if len(str(each)) > 2500]
    assert long == []
    assert [each[:200] for each in logged if len(each) > 1500 or not each.isprintable()] == []


def test_a_reply_without_an_id_is_said_to_have_none(logged: list[str]) -> None:
    async def script() -> None:
        async with connected(with_everything()) as wire:
            wire.send({"jsonrpc": "2.0", "result": {}})
            wire.send({"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}})
            wire.ask(2, "ping")
            await wire.answer(2)

    asyncio.run(script())
    assert logged
    assert not [each for each in logged if "Unset" in each]


def test_a_long_progress_token_is_refused_and_one_of_1024_characters_is_not() -> None:
    app = Server("s")

    @app.tool
    async def work(ctx: Context) -> str:
        await ctx.progress(1)
        return "done"

    async def script(token: Any) -> list[Any]:
        async with connected(app) as wire:
            params = {"name": "work", "arguments": {}, "_meta": {"progressToken": token}}
            wire.ask(1, "tools/call", params)
            await wire.answer(1)
            return wire.got

    told, answer = asyncio.run(script("t" * 1024))
    assert told["params"]["progressToken"] == "t" * 1024
    assert answer["result"]["content"][0]["text"] == "done"
    (refused,) = asyncio.run(script("t" * 1025))
    assert refused["error"]["code"] == -32602
    assert "at most 1024 characters, not 1025" in refused["error"]["message"]


def test_a_token_beside_meta_is_bounded_too() -> None:
    async def script() -> Any:
        app = Server("s", policy=Policy(strictness="lenient"))
        async with connected(app) as wire:
            wire.ask(1, "ping", {"progressToken": "t" * 1025})
            return await wire.answer(1)

    assert asyncio.run(script())["error"]["code"] == -32602


def test_the_log_of_a_broken_header_quotes_nothing_of_the_message(logged: list[str]) -> None:
    app = Server("s", policy=Policy(framing="content-length"))

    async def script() -> None:
        async with app.listen("tcp://127.0.0.1:0") as listener:
            address = listener.address
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(b'":1,"key":"CANARY"}Content-Length: 40\r\n\r\n')
            await reader.read()
            writer.close()

    asyncio.run(script())
    assert any("a line of 37 bytes that is not a header" in each for each in logged)
    assert "CANARY" not in "".join(logged)
    assert "True" not in "".join(logged)

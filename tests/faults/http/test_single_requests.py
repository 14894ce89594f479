"""Single requests: headers that repeat the body, answers, streams, and the end of a connection."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from tests.faults.http.serving import (
    SESSION,
    Response,
    Served,
    call,
    make_app,
    notification,
    serving,
    single,
    single_headers,
    text_of,
)
from tests.faults.http.statements import bad, good
from tests.rigs.http_requests import Headers
from tests.rigs.messages import META, PER_REQUEST
from trunkline import ParamHeader, Server

HEADER_MISMATCH = -32020


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    app, journal = make_app()

    @app.tool
    async def tenant(
        name: Annotated[str, ParamHeader("Tenant")] = "none",
        count: Annotated[int, ParamHeader("Count")] = 0,
    ) -> str:
        """Have arguments that headers repeat."""
        journal.begun.append(f"{name} {count}")
        return f"{name} {count}"

    with serving(app, journal) as found:
        yield found


def ask(served: Served, message: Any, headers: Headers) -> Response:
    with served.connect() as wire:
        return wire.ask(wire.post(message, headers))


def echo(text: str, **meta: Any) -> dict[str, Any]:
    return call("tools/call", name="echo", arguments={"text": text}, _meta=META | meta)


def is_mismatch(answer: Response) -> bool:
    return (answer.status, answer.json["error"]["code"]) == (400, HEADER_MISMATCH)


RIGHT = single_headers("tools/call", "echo")


@good("BP-110", "BP-112", "BP-113", "BP-114", "SEC-07")
def test_a_request_whose_headers_repeat_its_body_is_served(served: Served) -> None:
    assert text_of(ask(served, echo("right"), RIGHT).json) == "right"
    for change in (str.lower, str.upper, str.title):
        headers = [(change(name), value) for name, value in RIGHT]
        assert ask(served, echo("right"), headers).status == 200
    resource = call("resources/read", uri="note://x", _meta=META)
    assert ask(served, resource, single_headers("resources/read", "note://x")).status == 200


@bad("BP-112", "BP-113", "BP-114", "SEC-07")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MCP-Protocol-Version", None),
        ("Mcp-Method", None),
        ("Mcp-Method", "TOOLS/CALL"),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Method", "tools/call, tools/list"),
        ("Mcp-Method", ""),
        ("Mcp-Name", None),
        ("Mcp-Name", "Echo"),
        ("Mcp-Name", "held"),
        ("Mcp-Name", "echo\t"),
        ("Mcp-Name", "=?base64?ZWNobw?="),
        ("Mcp-Name", "=?base64?ZWNobw==?==?="),
        ("Mcp-Name", "=?BASE64?ZWNobw==?="),
        ("Mcp-Name", "=?base64?aGVsZA==?="),
        ("Mcp-Name", "=?base64?%%%?="),
        ("Mcp-Name", "=?base64?/////w==?="),
        ("Mcp-Name", "echo\xe9"),
    ],
)
def test_a_request_whose_headers_differ_from_its_body_is_refused(
    served: Served, name: str, value: str | None
) -> None:
    key = f"{name} is {value}"
    headers = [each for each in RIGHT if each[0] != name]
    if value is not None:
        headers.append((name, value))
    answer = ask(served, echo(key), headers)
    if value == "echo\t":  # blanks around a value are not part of it
        assert answer.status == 200
        return
    assert is_mismatch(answer), answer
    assert answer.json["id"] == 1
    assert served.on_loop(lambda: key not in served.journal.begun)


@bad("BP-112", "SEC-07")
def test_header_and_body_name_the_same_version(served: Served) -> None:
    other = {"io.modelcontextprotocol/protocolVersion": SESSION}
    for message in (echo("x", **other), echo("x", **{next(iter(META)): "1999-01-01"})):
        assert is_mismatch(ask(served, message, RIGHT))
    headers = [("MCP-Protocol-Version", "1999-01-01"), *RIGHT[1:]]
    assert ask(served, echo("x"), headers).status == 400


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"])
@pytest.mark.parametrize("second", ["", "tools/call", "echo", PER_REQUEST, "evil"])
def test_a_header_that_is_repeated_is_refused(served: Served, name: str, second: str) -> None:
    for headers in ([*RIGHT, (name, second)], [(name, second), *RIGHT]):
        assert ask(served, echo("repeated"), headers).status == 400
    assert served.on_loop(lambda: "repeated" not in served.journal.begun)


def sentinel(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@good("BP-115", "BP-116", "BP-118")
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"name": "plain"}, {"Tenant": "plain"}),
        ({"name": "a b"}, {"Tenant": "a b"}),
        ({"name": "Hello, 世界"}, {"Tenant": sentinel("Hello, 世界")}),
        ({"name": " padded "}, {"Tenant": sentinel(" padded ")}),
        ({"name": "a\r\nX-Evil: b"}, {"Tenant": sentinel("a\r\nX-Evil: b")}),
        ({"name": "=?base64?literal?="}, {"Tenant": sentinel("=?base64?literal?=")}),
        ({"name": "plain"}, {"Tenant": sentinel("plain")}),
        ({"name": "=?BASE64?eA==?="}, {"Tenant": "=?BASE64?eA==?="}),
        ({"name": ""}, {"Tenant": ""}),
        ({}, {}),
        ({"count": 42}, {"Count": "42"}),
        ({"count": 42}, {"Count": "42.0"}),
        ({"count": -1}, {"Count": "-1"}),
    ],
    ids=range(13),
)
def test_headers_of_arguments_are_decoded_and_compared(
    served: Served, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    message = call("tools/call", name="tenant", arguments=arguments, _meta=META)
    given = [(f"Mcp-Param-{name}", value) for name, value in headers.items()]
    answer = ask(served, message, [*single_headers("tools/call", "tenant"), *given])
    assert answer.status == 200, answer
    expected = f"{arguments.get('name', 'none')} {arguments.get('count', 0)}"
    assert text_of(answer.json) == expected


@bad("BP-115", "BP-116", "BP-118", "SEC-07")
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"name": "x"}, {}),
        ({"name": "x"}, {"Tenant": "y"}),
        ({"name": "x"}, {"Tenant": "X"}),
        ({"name": "x"}, {"Tenant": ""}),
        ({"name": "x"}, {"Tenant": "=?base64?eA?="}),
        ({"name": "x"}, {"Tenant": "=?base64?eQ==?="}),
        ({"name": "=?base64?literal?="}, {"Tenant": "=?base64?literal?="}),
        ({}, {"Tenant": "x"}),
        ({"name": None}, {"Tenant": "null"}),
        ({"count": 42}, {"Count": "43"}),
        ({"count": 42}, {"Count": "0x2a"}),
        ({"count": 42}, {"Count": "42.5"}),
        ({"count": 42}, {"Count": "forty-two"}),
        ({"count": 42}, {}),
        ({"count": 2**60}, {"Count": str(2**60)}),
    ],
    ids=range(15),
)
def test_headers_that_differ_from_arguments_are_refused(
    served: Served, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    before = served.on_loop(lambda: len(served.journal.begun))
    message = call("tools/call", name="tenant", arguments=arguments, _meta=META)
    given = [(f"Mcp-Param-{name}", value) for name, value in headers.items()]
    answer = ask(served, message, [*single_headers("tools/call", "tenant"), *given])
    assert is_mismatch(answer), answer
    assert served.on_loop(lambda: len(served.journal.begun)) == before


@good("BP-120")
@bad("BP-120")
def test_an_unknown_method_is_404(served: Served) -> None:
    for method in ("unknown/method", "initialize", "ping", "logging/setLevel", "x" * 1000):
        answer = ask(served, call(method, _meta=META), single_headers(method))
        assert (answer.status, answer.json["error"]["code"]) == (404, -32601), method
    # An unknown tool is not an unknown method.
    message = call("tools/call", name="unknown", arguments={}, _meta=META)
    answer = ask(served, message, single_headers("tools/call", "unknown"))
    assert (answer.status, answer.json["error"]["code"]) == (200, -32602)


@good("BP-121")
def test_a_notification_is_202(served: Served) -> None:
    message = notification("notifications/cancelled", requestId=1, _meta=META)
    headers = [("MCP-Protocol-Version", PER_REQUEST)]
    for given in (headers, [*headers, ("Mcp-Method", "notifications/cancelled")]):
        answer = ask(served, message, given)
        assert (answer.status, answer.body) == (202, b"")


@bad("BP-121")
def test_a_notification_that_is_not_accepted_has_an_error_status(served: Served) -> None:
    headers = [("MCP-Protocol-Version", PER_REQUEST)]
    for message in ({"jsonrpc": "2.0", "method": 5}, {"jsonrpc": "1.0", "method": "x"}):
        assert ask(served, message, headers).status == 400
    message = notification("notifications/cancelled", requestId=1)
    headers.append(("MCP-Protocol-Version", PER_REQUEST))
    assert ask(served, message, headers).status == 400


@bad("BP-110")
def test_a_single_request_that_names_a_session_gets_nothing_of_it(served: Served) -> None:
    for id in ("unknown", "x" * 43):
        headers = [*RIGHT, ("Mcp-Session-Id", id), ("Last-Event-ID", "1-0")]
        answer = ask(served, echo("alone"), headers)
        assert (answer.status, text_of(answer.json)) == (200, "alone")
        assert answer.header("mcp-session-id") is None


# -- streams ---------------------------------------------------------------------------------


@good("BP-122", "BP-124")
@bad("BP-122", "BP-124")
def test_a_stream_has_what_belongs_to_its_request_then_the_answer(served: Served) -> None:
    wires = {key: served.connect() for key in ("left", "right")}
    for key, wire in wires.items():
        wire.send(single(wire, "held", key, token=f"token {key}", key=key, says=3))
        answer = wire.start()
        assert answer.header("content-type") == "text/event-stream"
        assert answer.header("x-accel-buffering") == "no"
        assert answer.header("mcp-session-id") is None
    for key, wire in wires.items():
        events = [wire.event() or {} for _ in range(3)]
        assert all(set(each) == {"data"} for each in events)  # no ids: it cannot be resumed
        messages = [json.loads(each["data"]) for each in events]
        assert {each["params"]["progressToken"] for each in messages} == {f"token {key}"}
        served.open_gate(key)
        assert wire.message()["id"] == key
        assert wire.event() is None
        # An answer that nothing precedes is not a stream, and has no such header.
        answer = wire.ask(single(wire, "echo", text="x"))
        assert answer.header("x-accel-buffering") is None
        wire.close()


@good("BP-123")
@bad("BP-123")
@pytest.mark.parametrize("says", [0, 2], ids=["before", "during"])
def test_the_end_of_the_connection_cancels(served: Served, says: int) -> None:
    key = f"cancelled by the end, {says}"
    with served.connect() as wire:
        wire.send(single(wire, "held", token="t", key=key, says=says))
        served.until(lambda: key in served.journal.begun)
        if says:
            wire.start()
            assert wire.event() is not None
    served.until(lambda: key in served.journal.cancelled)
    served.until(lambda: not served.http.connections)
    assert served.on_loop(lambda: key not in served.journal.done)
    # The id can be used again, also by another: nothing is left of it.
    with served.connect() as wire:
        assert text_of(wire.ask(single(wire, "echo", 1, text="again")).json) == "again"


def test_ids_of_one_client_are_not_those_of_another(served: Served) -> None:
    """Requests that stand by themselves have the same ids, at once."""
    keys = [f"same id {n}" for n in range(5)]
    wires = [served.connect() for _ in keys]
    for wire, key in zip(wires, keys, strict=True):
        wire.send(single(wire, "held", 1, key=key))
    for key in keys:
        served.until(lambda key=key: key in served.journal.begun)
    # A cancellation names an id of its own connection alone.
    message = notification("notifications/cancelled", requestId=1, _meta=META)
    assert ask(served, message, [("MCP-Protocol-Version", PER_REQUEST)]).status == 202
    for wire, key in zip(wires, keys, strict=True):
        served.open_gate(key)
        assert text_of(wire.response().json) == f"held {key}"
        wire.close()


# -- servers without sessions ----------------------------------------------------------------


@good("BP-125")
@bad("BP-125")
def test_a_server_without_sessions_ignores_them() -> None:
    app = Server("modern", revisions=[PER_REQUEST])

    @app.tool
    async def echo(text: str) -> str:
        """Return the text."""
        return text

    with serving(app) as served, served.connect() as wire:
        for method in ("GET", "DELETE", "PUT"):
            for headers in ([], [("Mcp-Session-Id", "x"), ("Last-Event-ID", "1-0")]):
                answer = wire.ask(wire.head(method, "/mcp", headers))
                assert (answer.status, answer.header("allow")) == (405, "POST")
        plain = wire.ask(single(wire, "echo", text="x"))
        extra = [("Mcp-Session-Id", "x"), ("Last-Event-ID", "1-0")]
        assert wire.ask(single(wire, "echo", headers=extra, text="x")).timeless == plain.timeless
        params: dict[str, Any] = {"protocolVersion": SESSION, "capabilities": {}}
        params["clientInfo"] = {"name": "tests", "version": "1"}
        answer = wire.ask(wire.post(call("initialize", **params)))
        assert answer.status >= 400
        assert answer.header("mcp-session-id") is None

"""What a client makes of the responses to its POSTs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

import trunkline.transports.http.client.message as message_module
import trunkline.transports.http.client.post as post_module
from tests.http_client.stub_server import (
    PER_REQUEST,
    SESSION,
    WAIT,
    Asked,
    McpStub,
    event,
    head_of,
    reply_to,
    tool_text,
)
from tests.rigs.memory import held_by
from trunkline import Client, HttpOptions
from trunkline.errors import (
    AuthorizationFailed,
    ConnectionLost,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    RequestTimeout,
    TrunklineError,
)
from trunkline.jsonrpc import Policy
from trunkline.jsonrpc.limits import Limits
from trunkline.transports.http.client.message import SentFacts
from trunkline.transports.http.client.transport import HttpTransport

CANARY = "CANARY-31c"
ERAS = (SESSION, PER_REQUEST)
Play = Callable[[Client], Coroutine[Any, Any, None]]


def play(stub: McpStub, script: Play, **options: Any) -> list[tuple[str, str]]:
    """Run a script with a client of a stub; return the events."""
    events: list[tuple[str, str]] = []

    async def scene() -> None:
        async with asyncio.timeout(WAIT), stub:
            chosen = {"revision": stub.revision, "on_event": lambda *it: events.append(it)}
            async with Client(stub.url, **{**chosen, **options}) as client:
                await script(client)

    asyncio.run(scene())
    return events


def nth(stub: McpStub, method: str, *answers: Callable[[Asked], object]) -> None:
    """Answer the first, second and so on differently; the last answers all that follow."""

    def answer(asked: Asked) -> object:
        return answers[min(len(stub.asked(method)), len(answers)) - 1](asked)

    stub.on[method] = answer


async def succeeds(client: Client) -> None:
    assert (await client.call_tool("echo")).text == "done"


def fails(kind: type[Exception], text: str) -> Play:
    async def script(client: Client) -> None:
        with pytest.raises(kind, match=text):
            await client.call_tool("echo")

    return script


# -- responses -------------------------------------------------------------------------------


def compact(asked: Asked, members: bytes) -> None:
    """Answer with members that are written without spaces and have the id of the request."""
    body = b'{"jsonrpc":"2.0",%b}' % (members % asked.id)
    asked.status(200, {"Content-Type": "application/json"}, body)


@pytest.mark.parametrize("revision", ERAS)
def test_calls_share_a_connection_one_after_the_other(revision: str) -> None:
    async def script(client: Client) -> None:
        for _ in range(5):
            await succeeds(client)

    stub = McpStub(revision)
    play(stub, script)
    assert len({each.connection for each in stub.asked("tools/call")}) == 1


@pytest.mark.parametrize("revision", ERAS)
def test_good_answer_is_neither_decoded_for_headers_nor_treated_as_lost(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(client: Client) -> None:
        await succeeds(client)
        transport = cast(HttpTransport, client._connection.current().transport)
        monkeypatch.setattr(transport, "on_request_lost", unexpected)
        monkeypatch.setattr(message_module, "_decoded", unexpected)
        monkeypatch.setattr(message_module, "read_messages", unexpected)
        await succeeds(client)
        monkeypatch.undo()

    def unexpected(*_: object) -> None:
        raise AssertionError("not for a good answer")

    play(McpStub(revision), script)


@pytest.mark.parametrize("content_type", [b"application/json", b"text/event-stream"])
def test_a_response_in_tiny_parts_takes_about_its_size_in_memory(content_type: bytes) -> None:
    transport = cast(HttpTransport, SimpleNamespace(auth=None, observer=None, message_limit=None))
    post = post_module.Post(transport, b"", SentFacts("tools/call", (1,)))
    post.on_head(200, [(b"content-type", content_type)])
    size = 256 * 1024
    body = b"data: ".ljust(size, b"x")

    def feed() -> None:
        for at in range(0, size, 2):
            post.on_data(body[at : at + 2])

    assert held_by(feed) < 2 * size


@pytest.mark.parametrize("revision", ERAS)
def test_a_body_in_chunks_or_without_a_length_is_read(revision: str) -> None:
    def chunked(asked: Asked) -> None:
        body = json.dumps(reply_to(asked, tool_text("done")))
        asked.send(
            head_of(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
        )
        for at in range(0, len(body), 7):
            asked.chunk(body[at : at + 7])
        asked.send(b"0\r\n\r\n")

    def delimited(asked: Asked) -> None:
        body = json.dumps(reply_to(asked, tool_text("done"))).encode()
        asked.send(head_of(200, {"Content-Type": "Application/JSON; charset=utf-8"}) + body)
        asked.drop()

    async def script(client: Client) -> None:
        await succeeds(client)
        await succeeds(client)
        await succeeds(client)

    stub = McpStub(revision)
    nth(stub, "tools/call", chunked, delimited, lambda asked: asked.text("done"))
    play(stub, script)


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (lambda asked: asked.status(202), ConnectionLost, "without an answer"),
        (lambda asked: asked.status(500, body=CANARY), RemoteProtocolError, "status 500"),
        (lambda asked: asked.status(403, body=CANARY), AuthorizationFailed, "status 403"),
        (lambda asked: asked.status(401, body=CANARY), AuthorizationFailed, "status 401"),
        (lambda asked: asked.error(-32000, CANARY, 401), AuthorizationFailed, "status 401"),
        (
            lambda asked: asked.status(200, {"Content-Type": "text/html"}, CANARY),
            RemoteProtocolError,
            "status 200",
        ),
        (
            lambda asked: asked.status(200, {"Content-Type": "application/json"}, CANARY),
            ConnectionLost,
            "lacks an answer",
        ),
        (
            lambda asked: asked.json({"jsonrpc": "2.0", "id": 999_999, "result": {}}),
            ConnectionLost,
            "lacks an answer",
        ),
        # The id of another request that begins like this one, or inside a result.
        (lambda asked: compact(asked, b'"id":%d0,"result":{}'), ConnectionLost, "lacks an answer"),
        (
            lambda asked: compact(asked, b'"id":"other","result":{"id":%d}'),
            ConnectionLost,
            "lacks an answer",
        ),
        (lambda asked: asked.error(-32000, "no", 500), PeerError, "no"),
        (
            lambda asked: asked.json(
                {"jsonrpc": "2.0", "error": {"code": -1, "message": "x"}}, 400
            ),
            PeerError,
            "x",
        ),
        (lambda asked: asked.send(b"what\r\n\r\n"), ConnectionLost, "outcome is unknown"),
        (lambda asked: asked.stream(), ConnectionLost, "ended before its answer"),
    ],
)
def test_a_response_that_is_not_an_answer_ends_its_call_alone(
    answer: Any, kind: type[Exception], text: str, revision: str
) -> None:
    async def script(client: Client) -> None:
        with pytest.raises(kind, match=text) as caught:
            await client.call_tool("echo")
        assert CANARY not in str(caught.value)
        if kind is not PeerError:
            assert stub.url in str(caught.value)
        await succeeds(client)

    stub = McpStub(revision)
    nth(stub, "tools/call", answer, lambda asked: asked.text("done"))
    play(stub, script)
    assert len(stub.asked("tools/call")) == 2


def refusal(id: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": "Not found"}}


def connect_refused(
    answer: Callable[[Asked], object], path: str, **options: Any
) -> tuple[str, Any]:
    """Connect to a path at which every request is refused; return the base URL and the error."""
    stub = McpStub()
    stub.answer = answer

    async def scene() -> Exception:
        async with asyncio.timeout(WAIT), stub:
            with pytest.raises(TrunklineError) as caught:
                await Client(f"http://127.0.0.1:{stub.port}{path}", **options).connect()
            return caught.value

    error = asyncio.run(scene())
    # Nothing is asked of another path.
    assert {each.path for each in stub.requests} == {path or "/"}
    return f"http://127.0.0.1:{stub.port}", error


@pytest.mark.parametrize("revision", [None, *ERAS])
@pytest.mark.parametrize("path", ["", "/"])
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (lambda asked: asked.status(404, {"Content-Type": "text/html"}, "<html>"), "404"),
        (lambda asked: asked.status(405), "405"),
        (lambda asked: asked.json(refusal(None), 404), "404"),
        (lambda asked: asked.json(refusal("server-error"), 404), "404"),
    ],
)
def test_a_url_without_a_path_that_has_no_endpoint_is_answered_with_the_usual_one(
    answer: Any, status: str, path: str, revision: str | None
) -> None:
    base, error = connect_refused(answer, path, revision=revision)
    assert isinstance(error, RemoteProtocolError)
    assert f"status {status} of {base}/" in str(error)
    advice = f"expected an MCP endpoint, and the server has none at this path; did you mean {base}"
    assert str(error).endswith(f"{advice}/mcp?")


def test_a_path_that_has_no_endpoint_is_named_without_another() -> None:
    base, error = connect_refused(lambda asked: asked.json(refusal(None), 404), "/mpc")
    assert f'"status 404 of {base}/mpc: Not found"' in str(error)
    assert str(error).endswith("expected an MCP endpoint, and the server has none at this path")


@pytest.mark.parametrize("revision", [None, *ERAS])
def test_a_404_with_the_id_of_the_request_is_the_answer_of_an_endpoint(
    revision: str | None,
) -> None:
    def answer(asked: Asked) -> None:
        if asked.method == "GET":
            asked.status(405)
        else:
            asked.error(-32000, "no tenant", 404)

    _, error = connect_refused(answer, "/", revision=revision)
    assert isinstance(error, PeerError)
    assert (error.code, error.message) == (-32000, "no tenant")


@pytest.mark.parametrize("revision", ERAS)
def test_a_message_beyond_the_limit_is_refused_and_the_connection_closed(revision: str) -> None:
    def large(asked: Asked) -> None:
        asked.text("x" * 5000)

    async def script(client: Client) -> None:
        with pytest.raises(TrunklineError):
            await client.call_tool("echo")
        await succeeds(client)

    stub = McpStub(revision)
    nth(stub, "tools/call", large, lambda asked: asked.text("done"))
    play(stub, script, policy=Policy(limits=Limits(http=2000)))
    first, second = stub.asked("tools/call")
    assert first.connection != second.connection


@pytest.mark.parametrize("revision", ERAS)
def test_an_event_beyond_the_limit_is_refused_and_later_ones_are_read(revision: str) -> None:
    def large(asked: Asked) -> None:
        asked.stream(
            ": x\n", "data: " + "x" * 5000 + "\n\n", event(reply_to(asked, tool_text("done")))
        )

    stub = McpStub(revision)
    stub.on["tools/call"] = large
    play(stub, succeeds, policy=Policy(limits=Limits(http=2000)))


@pytest.mark.parametrize("revision", ERAS)
def test_an_error_page_without_end_is_not_read_to_its_end(revision: str) -> None:
    def endless(asked: Asked) -> None:
        asked.send(head_of(500, {"Transfer-Encoding": "chunked"}))
        for _ in range(100):
            asked.chunk("x" * 1000)

    stub = McpStub(revision)
    stub.on["tools/call"] = endless
    play(stub, fails(RemoteProtocolError, "65536 bytes"))


@pytest.mark.parametrize("revision", ERAS)
def test_a_stream_that_stays_open_after_its_answer_does_not_keep_its_connection(
    revision: str,
) -> None:
    def answer(asked: Asked) -> None:
        asked.stream(event(reply_to(asked, tool_text("done"))), ends=False)

    async def script(client: Client) -> None:
        for _ in range(3):
            await succeeds(client)

    stub = McpStub(revision)
    stub.on["tools/call"] = answer
    play(stub, script, http=HttpOptions(connections=1))
    assert len({each.connection for each in stub.asked("tools/call")}) == 3


@pytest.mark.parametrize("revision", ERAS)
def test_responses_are_asked_for_without_compression(revision: str) -> None:
    stub = McpStub(revision)
    play(stub, succeeds)
    assert {each.headers["accept-encoding"] for each in stub.requests} == {"identity"}


def test_a_reply_does_not_wait_for_the_connection_of_the_call_that_waits_for_it() -> None:
    async def ask(asked: Asked) -> None:
        asked.stream(event({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}), ends=False)
        await stub.until(lambda: bool(stub.asked("")))
        asked.chunk(event(reply_to(asked, tool_text("done"))))
        asked.send(b"0\r\n\r\n")

    stub = McpStub(SESSION)
    stub.on["tools/call"] = ask
    play(stub, succeeds, http=HttpOptions(connections=1), roots=["file:///srv"])
    assert stub.asked("")[0].id == "r"


# -- sent again, or not ----------------------------------------------------------------------


def test_a_refusal_with_retry_after_is_sent_again_after_the_delay() -> None:
    stub = McpStub()
    nth(
        stub,
        "tools/call",
        lambda asked: asked.status(429, {"Retry-After": "0"}),
        lambda asked: asked.status(503, {"Retry-After": "0"}),
        lambda asked: asked.text("done"),
    )
    assert play(stub, succeeds) == [("retry", "429, again in 0 s"), ("retry", "503, again in 0 s")]


def test_an_event_callback_that_raises_is_logged_and_the_call_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: str) -> None:
        raise RuntimeError("broken callback")

    stub = McpStub()
    nth(
        stub,
        "tools/call",
        lambda asked: asked.status(503, {"Retry-After": "0"}),
        lambda asked: asked.text("done"),
    )
    play(stub, succeeds, on_event=fail)
    assert "on_event raised" in caplog.text


@pytest.mark.parametrize(
    ("status", "headers", "retries"),
    [
        (429, {"Retry-After": "0"}, 0),
        (503, {}, 2),
        (503, {"Retry-After": "11"}, 2),
        (503, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, 2),
        (503, {"Retry-After": "-1"}, 2),
        (503, {"Retry-After": "9" * 400}, 2),
        (500, {"Retry-After": "0"}, 2),
    ],
)
def test_another_refusal_is_an_error(status: int, headers: dict[str, str], retries: int) -> None:
    stub = McpStub()
    stub.on["tools/call"] = lambda asked: asked.status(status, headers)
    script = fails(RemoteProtocolError, f"status {status}")
    assert play(stub, script, http=HttpOptions(retries=retries)) == []
    assert len(stub.asked("tools/call")) == 1


def test_the_delay_of_an_earlier_refusal_does_not_count_for_a_later_one() -> None:
    stub = McpStub()
    nth(
        stub,
        "tools/call",
        lambda asked: asked.status(503, {"Retry-After": "0"}),
        lambda asked: asked.status(503),
    )
    play(stub, fails(RemoteProtocolError, "status 503"))
    assert len(stub.asked("tools/call")) == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_an_event_callback_that_raises_is_logged_and_the_request_is_sent_again(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    stub = McpStub()
    nth(
        stub,
        "tools/call",
        lambda asked: asked.status(503, {"Retry-After": "0"}),
        lambda asked: asked.text("done"),
    )

    def refuse(kind: str, text: str) -> None:
        raise ValueError(f"{kind} is not expected")

    async def refuse_later(kind: str, text: str) -> None:
        refuse(kind, text)

    play(stub, succeeds, on_event=refuse_later if is_async else refuse)
    assert "on_event raised an exception" in caplog.text
    assert "retry is not expected" in caplog.text


def test_a_refusal_is_sent_again_as_often_as_options_say() -> None:
    stub = McpStub()
    stub.on["tools/call"] = lambda asked: asked.status(503, {"Retry-After": "0"})
    play(stub, fails(RemoteProtocolError, "status 503"), http=HttpOptions(retries=3))
    assert len(stub.asked("tools/call")) == 4


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_within_the_origin_is_followed(status: int) -> None:
    def places(stub: McpStub) -> list[str]:
        here = f"http://127.0.0.1:{stub.port}"
        return ["/other", "other?a=b", f"{here}/there", f"HTTP://127.0.0.1:{stub.port}/upper"]

    async def script(client: Client) -> None:
        for _ in range(4):
            await succeeds(client)

    stub = McpStub()

    def call(asked: Asked) -> None:
        if asked.path == "/mcp":
            firsts = [each for each in stub.asked("tools/call") if each.path == "/mcp"]
            asked.status(status, {"Location": places(stub)[len(firsts) - 1]})
        else:
            asked.text("done")

    stub.on["tools/call"] = call
    play(stub, script, headers={"Authorization": CANARY})
    followed = [each for each in stub.asked("tools/call") if each.path != "/mcp"]
    assert [each.path for each in followed] == ["/other", "/other?a=b", "/there", "/upper"]
    assert all(
        each.method == "POST" and each.headers["authorization"] == CANARY for each in followed
    )


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (307, {"Location": "http://example.invalid/mcp"}),
        (307, {"Location": "//example.invalid/mcp"}),
        (308, {"Location": "https://127.0.0.1/mcp"}),
        (308, {"Location": "http://127.0.0.1/mcp"}),
        (307, {"Location": "http://[bad/mcp"}),
        (307, {"Location": "http://127.0.0.1:port/mcp"}),
        (307, {"Location": "/with space"}),
        (307, {}),
        (301, {"Location": "/other"}),
        (302, {"Location": "/other"}),
        (303, {"Location": "/other"}),
    ],
)
def test_any_other_redirect_is_an_error(status: int, headers: dict[str, str]) -> None:
    stub = McpStub()
    stub.on["tools/call"] = lambda asked: asked.status(status, headers)
    play(stub, fails(RemoteProtocolError, f"status {status}"))
    assert len(stub.asked("tools/call")) == 1


def test_redirects_in_a_circle_end() -> None:
    stub = McpStub()
    stub.on["tools/call"] = lambda asked: asked.status(307, {"Location": "/mcp"})
    play(stub, fails(RemoteProtocolError, "status 307"))
    assert len(stub.asked("tools/call")) == 4


@pytest.mark.parametrize("revision", ERAS)
def test_a_call_on_a_kept_connection_that_closed_is_not_sent_again(revision: str) -> None:
    async def script(client: Client) -> None:
        with pytest.raises(
            ConnectionLost, match=r"tools/call to http:.*was lost.*outcome is unknown"
        ):
            await client.call_tool("echo")
        await succeeds(client)

    stub = McpStub(revision)
    nth(stub, "tools/call", Asked.drop, lambda asked: asked.text("done"))
    assert play(stub, script) == []
    assert len(stub.asked("tools/call")) == 2


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("hint", ["idempotentHint", "readOnlyHint"])
def test_a_call_that_may_run_twice_is_sent_again_once(revision: str, hint: str) -> None:
    tool = {"name": "echo", "inputSchema": {"type": "object"}, "annotations": {hint: True}}

    async def script(client: Client) -> None:
        await client.list_tools()
        await succeeds(client)
        with pytest.raises(ConnectionLost, match="outcome is unknown"):
            await client.call_tool("echo")

    stub = McpStub(revision, tools=[tool])
    nth(stub, "tools/call", Asked.drop, lambda asked: asked.text("done"), Asked.drop)
    events = play(stub, script)
    assert events == [("retry", "a kept connection was closed")] * 2
    assert len(stub.asked("tools/call")) == 4


def test_a_read_is_sent_again_once_if_no_byte_of_its_response_came() -> None:
    async def script(client: Client) -> None:
        assert len(await client.list_tools()) == 1
        with pytest.raises(ConnectionLost, match="outcome is unknown"):
            await client.list_tools()

    def cut(asked: Asked) -> None:
        asked.send(b"HTTP/1.1 200")
        asked.drop()

    stub = McpStub()
    nth(stub, "tools/list", Asked.drop, stub._tools_list, cut)
    assert play(stub, script) == [("retry", "a kept connection was closed")]
    assert len(stub.asked("tools/list")) == 3


@pytest.mark.parametrize(
    ("method", "count"), [("notifications/progress", 2), ("notifications/own", 1)]
)
def test_a_notification_is_sent_again_if_it_is_known_to_say_the_same(
    method: str, count: int
) -> None:
    async def script(client: Client) -> None:
        await succeeds(client)
        client._connection.current().notify(method, {"progressToken": 1, "progress": 1})
        await stub.until(lambda: len(stub.asked(method)) == count)
        await succeeds(client)

    stub = McpStub(SESSION)
    nth(stub, method, Asked.drop, lambda asked: asked.status(202))
    play(stub, script)
    assert len(stub.asked(method)) == count


# -- headers ---------------------------------------------------------------------------------


def test_arguments_that_a_tool_annotates_are_repeated_in_headers() -> None:
    properties = {
        "city": {"type": "string", "x-mcp-header": "City"},
        "days": {"type": "integer", "x-mcp-header": "Days"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "note": {"type": "string"},
    }
    tool = {"name": "echo", "inputSchema": {"type": "object", "properties": properties}}

    async def script(client: Client) -> None:
        await client.list_tools()
        await client.call_tool("echo", {"city": "Tromsø\r\nX: y", "days": 3, "note": "n"})
        await client.call_tool("echo", {"city": "Oslo", "dry": True})

    stub = McpStub(tools=[tool])
    play(stub, script)
    first, second = (each.headers for each in stub.asked("tools/call"))
    assert first["mcp-param-city"].startswith("=?base64?")
    assert "x" not in first
    assert first["mcp-param-days"] == "3"
    assert "mcp-param-dry" not in first
    assert "mcp-param-note" not in first
    assert (second["mcp-param-city"], second["mcp-param-dry"]) == ("Oslo", "true")


@pytest.mark.parametrize(("revision", "count"), [(SESSION, 1), (PER_REQUEST, 0)])
def test_a_tool_with_a_faulty_annotation_is_left_out_where_annotations_have_a_meaning(
    revision: str, count: int
) -> None:
    properties = {"size": {"type": "number", "x-mcp-header": "Size"}}
    tool = {"name": "echo", "inputSchema": {"type": "object", "properties": properties}}

    async def script(client: Client) -> None:
        assert len(await client.list_tools()) == count

    play(McpStub(revision, tools=[tool]), script)


def test_a_mismatch_is_answered_by_one_more_list_and_one_more_call() -> None:
    stub = McpStub()
    stub.on["tools/call"] = lambda asked: asked.error(-32020, "Header mismatch", 400)
    play(stub, fails(PeerError, "Header mismatch"))
    assert len(stub.asked("tools/call")) == 2
    assert len(stub.asked("tools/list")) == 1


@pytest.mark.parametrize("method", ["evil\r\nX-Evil: 1", "spaced method", "méthode"])
def test_a_method_that_no_header_can_carry_is_not_sent(method: str) -> None:
    async def script(client: Client) -> None:
        with pytest.raises(LocalProtocolError, match="expected ASCII"):
            await client.request(method)
        await succeeds(client)

    stub = McpStub()
    play(stub, script)
    assert all("x-evil" not in each.headers for each in stub.requests)
    assert {each.message["method"] for each in stub.requests} == {"server/discover", "tools/call"}


@pytest.mark.parametrize("revision", ERAS)
def test_secrets_of_headers_are_in_no_error_log_or_repr(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    def echo(asked: Asked) -> None:
        # What a server reflects is not shown either.
        asked.status(401, {"WWW-Authenticate": f"Bearer {CANARY}"}, asked.raw)

    shown: list[str] = []

    async def script(client: Client) -> None:
        for _ in range(3):
            with pytest.raises(TrunklineError) as caught:
                await client.call_tool("echo")
            shown.append(f"{caught.value} {caught.value!r} {client!r}")
        session: Any = client._connection.session
        shown.append(f"{session!r} {session.transport!r} {session.transport._options!r}")

    stub = McpStub(revision)
    nth(stub, "tools/call", echo, Asked.drop, lambda asked: asked.send(asked.raw))
    with caplog.at_level(logging.DEBUG):
        events = play(stub, script, headers={"Authorization": f"Bearer {CANARY}"})
    assert stub.asked("tools/call")[0].headers["authorization"] == f"Bearer {CANARY}"
    assert CANARY not in "".join([*shown, caplog.text, repr(events)])


# -- cancelling ------------------------------------------------------------------------------


def test_a_cancelled_call_of_a_single_request_closes_its_response() -> None:
    async def script(client: Client) -> None:
        stub.on["tools/call"] = lambda asked: asked.stream(": begun\n\n", ends=False)
        with pytest.raises(RequestTimeout):
            await client.call_tool("echo", timeout=0.05)
        gone = stub.asked("tools/call")[0]
        await stub.until(lambda: gone.writer.transport.is_closing())
        stub.on["tools/call"] = lambda asked: asked.text("done")
        await succeeds(client)

    stub = McpStub()
    play(stub, script)
    assert stub.asked("notifications/cancelled") == []


def test_cancelled_call_of_a_session_sends_a_cancelled_notification() -> None:
    async def script(client: Client) -> None:
        stub.on["tools/call"] = lambda asked: asked.stream(": begun\n\n", ends=False)
        with pytest.raises(RequestTimeout):
            await client.call_tool("echo", timeout=0.05)
        await stub.until(lambda: bool(stub.asked("notifications/cancelled")))

    stub = McpStub(SESSION)
    play(stub, script)
    told = stub.asked("notifications/cancelled")[0]
    assert told.message["params"]["requestId"] == stub.asked("tools/call")[0].id
    assert told.headers["mcp-session-id"] == "s1"


@pytest.mark.parametrize("is_resumed", [False, True])
def test_the_response_of_a_cancelled_call_of_a_session_is_closed(
    is_resumed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_module, "_CANCEL_GRACE_S", 0.001)

    def hold(asked: Asked) -> None:
        held.append(asked)
        asked.stream("id: 1\nretry: 1\ndata:\n\n", ends=is_resumed)

    def hold_get(asked: Asked) -> None:
        if "last-event-id" in asked.headers:
            held.append(asked)
        asked.stream(": held\n\n", ends=False)

    async def script(client: Client) -> None:
        stub.on["tools/call"] = hold
        stub.on["GET"] = hold_get
        call = asyncio.create_task(client.call_tool("echo"))
        await stub.until(lambda: len(held) == 1 + is_resumed)
        call.cancel()
        await stub.until(lambda: held[-1].writer.transport.is_closing())
        stub.on["tools/call"] = lambda asked: asked.text("done")
        await succeeds(client)

    held: list[Asked] = []
    stub = McpStub(SESSION)
    play(stub, script)
    assert len(stub.asked("notifications/cancelled")) == 1


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("begins", [False, True])
def test_a_quiet_response_is_lost_and_says_so(revision: str, begins: bool) -> None:
    stub = McpStub(revision)
    headers = {"Content-Type": "application/json", "Content-Length": "9"}
    stub.on["tools/call"] = lambda asked: asked.send(head_of(200, headers)) if begins else None
    script = fails(ConnectionLost, r"nothing came for 0\.2 s; its outcome is unknown")
    play(stub, script, http=HttpOptions(read_timeout=0.2))
    assert len(stub.asked("tools/call")) == 1


def test_comments_keep_a_response_from_being_lost() -> None:
    async def slowly(asked: Asked) -> None:
        asked.stream(": begun\n\n", ends=False)
        for _ in range(10):
            await asyncio.sleep(0.05)
            asked.chunk(": alive\n\n")
        asked.chunk(event(reply_to(asked, tool_text("done"))))

    stub = McpStub()
    stub.on["tools/call"] = slowly
    play(stub, succeeds, http=HttpOptions(read_timeout=0.4))


@pytest.mark.parametrize("revision", ERAS)
def test_a_call_that_is_cancelled_while_it_waits_for_a_connection_is_never_sent(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_module, "_CANCEL_GRACE_S", 0.001)

    async def script(client: Client) -> None:
        stub.on["tools/call"] = lambda asked: asked.stream(": begun\n\n", ends=False)
        first = asyncio.create_task(client.call_tool("echo"))
        await stub.until(lambda: len(stub.asked("tools/call")) == 1)
        with pytest.raises(RequestTimeout):
            await client.call_tool("echo", timeout=0.05)
        stub.on["tools/call"] = lambda asked: asked.text("done")
        first.cancel()
        await succeeds(client)

    stub = McpStub(revision)
    play(stub, script, http=HttpOptions(connections=1))
    assert len(stub.asked("tools/call")) == 2

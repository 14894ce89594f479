"""The side of a proxy that leads to an HTTP server: order, losses and what is recorded."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.canaries import CANARY, SECRETS
from tests.rigs.event_loop import on_a_loop
from trunkline.cli.proxy.http_record import HttpRecorder
from trunkline.cli.proxy.http_target import HttpTarget, one_line
from trunkline.cli.proxy.observer import ProxyObserver
from trunkline.errors import TransportError
from trunkline.jsonrpc.framing.framing import Oversize
from trunkline.jsonrpc.framing.sse import Event
from trunkline.transports.base import ignore

WAIT = 30
TOOL = {
    "name": "find",
    "inputSchema": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
    "annotations": {"readOnlyHint": True},
}


class Post:
    """A request of the transport, as its observer sees it."""

    def __init__(self, frame: bytes) -> None:
        self.frame = frame


class Inner:
    """An HTTP transport without HTTP."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.frames: list[bytes] = []
        self.is_connected = True
        self.backlog = self.written = 0
        self.on_message: Any = ignore
        self.on_error: Any = ignore
        self.on_request_lost: Any = ignore
        self.on_event: Any = ignore
        self.param_headers: Any = None
        self.is_idempotent: Any = None
        self.observer: Any = None

    async def connect(self) -> None:
        pass

    def send(self, frame: bytes) -> None:
        self.frames.append(frame)
        self.sent.append(json.loads(frame))

    async def close(self) -> None:
        self.is_connected = False

    def answer(self, **members: Any) -> None:
        self.on_message(message(**members), None)

    @property
    def methods(self) -> list[Any]:
        return [each.get("method") for each in self.sent]


class Bridge:
    """A target on an `Inner`, and what it delivered."""

    def __init__(self) -> None:
        self.inner = Inner()
        self.said: list[str] = []
        self.got: list[dict[str, Any]] = []
        self.ends: list[TransportError | None] = []
        self.target = HttpTarget(self.inner, self.said.append)  # type: ignore[arg-type]
        self.target.on_message = lambda frame, _: self.got.append(json.loads(frame))
        self.target.on_error = self.ends.append

    def send(self, **members: Any) -> None:
        self.target.send(message(**members))


def message(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


async def bridge() -> Bridge:
    made = Bridge()
    await made.target.connect()
    return made


@on_a_loop
async def test_nothing_overtakes_the_handshake() -> None:
    made = await bridge()
    made.send(id=1, method="initialize")
    made.send(method="notifications/initialized")
    made.send(id=2, method="ping")
    assert made.inner.methods == ["initialize"]
    assert made.target.backlog > 0
    made.inner.answer(id=1, result={})
    assert made.inner.methods == ["initialize", "notifications/initialized"]
    made.target.on_end(Post(b"another"))
    await asyncio.sleep(0)
    assert len(made.inner.sent) == 2
    made.target.on_end(Post(made.inner.frames[1]))
    await asyncio.sleep(0)
    assert made.inner.methods[2:] == ["ping"]
    assert made.target.backlog == 0


@on_a_loop
async def test_a_request_that_is_lost_is_answered_with_the_reason() -> None:
    made = await bridge()
    made.send(id=1, method="initialize")
    made.send(id="a", method="ping")
    made.inner.on_request_lost(1, TransportError("the connection was lost"))
    assert made.got == [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32603, "message": "trunkline proxy: the connection was lost"},
        }
    ]
    # What waited for it is not lost with it.
    assert made.inner.methods == ["initialize", "ping"]
    made.inner.on_request_lost("a", ValueError("odd"))
    assert made.got[1]["error"]["message"] == "trunkline proxy: odd"


@on_a_loop
async def test_a_request_that_was_cancelled_is_not_answered() -> None:
    made = await bridge()
    made.send(id=1, method="tools/call", params={"name": "x"})
    made.send(method="notifications/cancelled", params={"requestId": 1})
    made.inner.on_request_lost(1, TransportError("the stream ended"))
    assert made.got == []


@on_a_loop
async def test_invalid_json_is_answered_and_not_sent() -> None:
    made = await bridge()
    made.target.send(b"{")
    assert made.inner.sent == []
    assert [each["error"]["code"] for each in made.got] == [-32700]


@on_a_loop
async def test_the_end_of_input_waits_for_open_requests_alone() -> None:
    made = await bridge()
    made.send(id=1, method="tools/list")
    made.send(id=2, method="subscriptions/listen")
    await made.target.finish()
    assert made.ends == []
    made.inner.answer(id=1, result={"tools": []})
    assert made.ends == [None]
    made.inner.answer(method="notifications/message")
    assert len(made.got) == 1


@on_a_loop
async def test_headers_of_tools_follow_the_listing() -> None:
    made = await bridge()
    made.send(id=1, method="tools/list")
    bad = {"name": "odd", "inputSchema": {"type": "object"}, "annotations": 7}
    made.inner.answer(id=1, result={"tools": [bad, 7, TOOL]})
    (row,) = made.inner.param_headers("find")
    assert row.header == "Mcp-Param-Region"
    assert made.inner.param_headers("other") == ()
    assert made.inner.is_idempotent("find")
    assert not made.inner.is_idempotent("odd")


@on_a_loop
async def test_line_breaks_become_blanks() -> None:
    made = await bridge()
    got: list[Any] = []
    made.target.on_message = lambda frame, _: got.append(frame)
    made.inner.on_message(b'{\r\n "id": 1\n}', None)
    assert got == [b'{   "id": 1 }']
    whole = b'{"a":1}'
    assert one_line(whole) is whole


@on_a_loop
async def test_too_large_message_is_reported() -> None:
    made = await bridge()
    made.inner.on_message(Oversize(b"{", None, 10), None)
    assert made.got == []
    assert made.said == ["a message of the server is over the limit of --max-size"]


@on_a_loop
async def test_a_slow_server_reports_when_it_has_read() -> None:
    made = await bridge()
    drained = asyncio.Event()
    made.target.on_drained = drained.set
    made.inner.backlog = 5 * 1024 * 1024
    made.send(id=1, method="ping")
    assert not drained.is_set()
    made.inner.backlog = 0
    async with asyncio.timeout(30):
        await drained.wait()
    await made.target.close()
    assert made.ends == [None]


# Recording


class Kept:
    """A recording in memory."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def write(self, entry: Any) -> None:
        self.entries.append(entry)


def request(body: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join((b"POST /mcp?token=CANARY-q HTTP/1.1", *headers, b"", body))


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def recorder(kept: Kept) -> HttpRecorder:
    observer = ProxyObserver(print, record=kept, judges=True)  # type: ignore[arg-type]
    return HttpRecorder(observer.connection(None, "stdio", "http"), records_requests=True)


@on_a_loop
async def test_no_secret_of_a_header_or_an_argument_is_recorded(
    recorder: HttpRecorder, kept: Kept
) -> None:
    params = {"name": "login", "arguments": SECRETS}
    body = message(id=1, method="tools/call", params=params)
    headers = (
        *(b"Authorization: Bearer CANARY-a", b"X-Odd: CANARY-b", b"Cookie: CANARY-c"),
        *(b"Mcp-Param-Word: CANARY-d", b"Mcp-Session-Id: CANARY-e", b"Accept: application/json"),
    )
    post = Post(body)
    recorder.on_request(post, request(body, *headers))
    recorder.on_response(post, 200, [(b"set-cookie", b"CANARY-f"), (b"x-token", b"CANARY-g")])
    recorder.on_frame(post, message(id=1, result={"content": []}), None)
    first, second = kept.entries
    assert first.http.headers["accept"] == "application/json"
    assert first.http.headers["x-odd"] == "[redacted]"
    assert (second.http.status, second.stream) == (200, first.stream)
    assert CANARY not in repr([(each.http, each.message) for each in kept.entries])
    assert CANARY not in str([each.http.headers for each in kept.entries])
    assert CANARY not in first.http.path


@on_a_loop
async def test_events_share_the_stream_and_the_head_is_recorded_once(
    recorder: HttpRecorder, kept: Kept
) -> None:
    body = message(id=1, method="tools/call", params={"name": "x"})
    post, other = Post(body), Post(body)
    recorder.on_request(post, request(body))
    recorder.on_request(post, request(body))  # sent again
    recorder.on_request(other, request(body))
    recorder.on_response(post, 200, [(b"content-type", b"text/event-stream")])
    note = message(method="notifications/message", params={})
    recorder.on_frame(post, note, Event(note.decode(), id="7"))
    recorder.on_end(post)  # the transport forgets it first
    recorder.on_frame(post, message(id=1, result={}), Event("", id="8", retry=5))
    await asyncio.sleep(0)
    assert [each.stream for each in kept.entries] == [1, 2, 1, 1]
    assert [each.event for each in kept.entries[2:]] == [
        {"id": "7", "event": "message"},
        {"id": "8", "event": "message", "retry": 5},
    ]
    assert [each.http is None for each in kept.entries[2:]] == [False, True]


@on_a_loop
async def test_a_response_without_a_message_is_recorded_with_its_status(
    recorder: HttpRecorder, kept: Kept
) -> None:
    body = message(method="notifications/initialized")
    post = Post(body)
    recorder.on_request(post, request(body))
    recorder.on_response(post, 202, [])
    recorder.on_end(post)
    await asyncio.sleep(0)
    assert [(each.http.status, each.raw) for each in kept.entries[1:]] == [(202, b"")]


@on_a_loop
async def test_a_cancellation_without_an_id_is_left_to_the_server() -> None:
    made = await bridge()
    made.send(id=1, method="ping")
    made.send(method="notifications/cancelled", params={"requestId": [1]})
    assert made.inner.methods == ["ping", "notifications/cancelled"]
    made.inner.answer(id=1, result={})
    assert made.got[0]["id"] == 1

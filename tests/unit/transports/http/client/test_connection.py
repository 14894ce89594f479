from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trunkline.transports.http.client.connection import HttpClientConnection
from trunkline.transports.receive_limits import MAX_BYTES_PER_TURN, MAX_MESSAGES_PER_TURN

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class Socket:
    """What asyncio gives a protocol, as far as it is used."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_closed = False
        self.is_reading = True

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        assert not self.is_reading
        self.is_reading = True

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 7


class Handler:
    """Keeps the parts of a response."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.is_complete = False
        self.losses: list[tuple[Any, bool, bool]] = []

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        assert not self.status, "a second head"
        self.status, self.headers = status, dict(headers)

    def on_data(self, data: bytes) -> None:
        self.body += data

    def on_complete(self) -> None:
        assert not self.is_complete, "a second end"
        self.is_complete = True

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        assert not self.is_complete, "lost after its end"
        self.losses.append((error, was_reused, has_begun))


class ConnectionOnFakeSocket:
    def __init__(self) -> None:
        self.freed: list[HttpClientConnection] = []
        self.lost: list[HttpClientConnection] = []
        self.socket = Socket()
        buffer = memoryview(bytearray(256 * 1024))
        self.connection = HttpClientConnection(buffer, self.freed.append, self.lost.append)
        self.connection.connection_made(self.socket)

    def ask(self) -> Handler:
        handler = Handler()
        self.connection.send(b"GET / HTTP/1.1\r\n\r\n", handler)
        return handler

    def receive(self, data: bytes, step: int | None = None) -> None:
        """Receive bytes at once, or some at a time."""
        assert self.socket.is_reading
        size = step or len(data)
        for at in range(0, len(data), size):
            part = data[at : at + size]
            self.connection.get_buffer(-1)[: len(part)] = part
            self.connection.buffer_updated(len(part))

    def end(self, error: Exception | None = None) -> None:
        self.connection.connection_lost(error)


def test_a_connection_whose_response_ended_is_used_again() -> None:
    scene = ConnectionOnFakeSocket()
    assert scene.connection.is_usable
    first = scene.ask()
    assert not scene.connection.is_usable
    scene.receive(OK)
    assert (first.status, first.body, first.is_complete) == (200, b"hi", True)
    assert scene.freed == [scene.connection]
    assert scene.connection.is_usable
    second = scene.ask()
    scene.receive(OK)
    assert second.is_complete
    assert len(scene.socket.sent) == 2


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_a_response_may_come_in_any_pieces_on_a_connection_that_was_used(step: int) -> None:
    scene = ConnectionOnFakeSocket()
    scene.ask()
    scene.receive(OK, step)
    handler = scene.ask()
    data = (
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nX-One:  a \r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
    )
    scene.receive(data, step)
    assert (handler.status, handler.body, handler.is_complete) == (200, b"abcde", True)
    assert handler.headers == {b"x-one": b"a", b"transfer-encoding": b"chunked"}
    assert scene.connection.is_usable


def test_interim_responses_are_skipped_with_their_headers() -> None:
    scene = ConnectionOnFakeSocket()
    for _ in range(2):
        handler = scene.ask()
        scene.receive(b"HTTP/1.1 100 Continue\r\nRetry-After: 9\r\n\r\n" + OK)
        assert (handler.status, handler.headers) == (200, {b"content-length": b"2"})
        assert handler.is_complete
    assert scene.connection.is_usable


def test_a_response_of_no_stated_length_ends_with_the_connection() -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    scene.receive(b"HTTP/1.1 200 OK\r\n\r\nall of it")
    assert not handler.is_complete
    scene.end()
    assert (handler.body, handler.is_complete, handler.losses) == (b"all of it", True, [])
    assert scene.lost == [scene.connection]


def test_a_response_of_no_stated_length_is_lost_with_a_reset() -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    scene.receive(b"HTTP/1.1 200 OK\r\n\r\nall of it")
    scene.end(ConnectionResetError("reset"))
    assert not handler.is_complete
    assert [(was_reused, has_begun) for _, was_reused, has_begun in handler.losses] == [
        (False, True)
    ]


@pytest.mark.parametrize(
    "cut",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
        b"HTTP/1.1 200 OK\r\nContent-",
        b"HTTP",
    ],
)
def test_a_response_that_is_cut_short_is_lost_and_had_begun(cut: bytes) -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    scene.receive(cut)
    scene.end()
    assert handler.losses == [(None, False, True)]


def test_a_reused_connection_that_closes_before_a_byte_says_so() -> None:
    scene = ConnectionOnFakeSocket()
    scene.ask()
    scene.receive(OK)
    handler = scene.ask()
    scene.end()
    assert handler.losses == [(None, True, False)]


def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    scene.receive(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi")
    assert handler.is_complete
    assert scene.freed == []
    assert scene.socket.is_closed


@pytest.mark.parametrize(
    "excess",
    [
        b"H",
        OK[:20],
        OK,
        b"HTTP/1.1 200 OK\r\nX: y\r\nZ: ",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"garbage\r\n\r\n",
    ],
)
def test_bytes_after_a_response_close_the_connection(excess: bytes) -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    scene.receive(OK + excess)
    assert (handler.body, handler.is_complete) == (b"hi", True)
    assert scene.freed == []
    assert scene.socket.is_closed


def test_a_request_from_the_end_of_a_response_does_not_get_what_followed_it() -> None:
    scene = ConnectionOnFakeSocket()
    second = Handler()

    class First(Handler):
        def on_complete(self) -> None:
            super().on_complete()
            if scene.connection.is_usable:
                scene.connection.send(b"", second)

    first = First()
    scene.connection.send(b"", first)
    scene.receive(OK + OK)
    assert first.is_complete
    assert second.status == 0


@pytest.mark.parametrize("uses", [0, 1])
def test_bytes_without_a_request_close_the_connection(uses: int) -> None:
    scene = ConnectionOnFakeSocket()
    for _ in range(uses):
        scene.ask()
        scene.receive(OK)
    assert scene.connection.is_usable
    scene.receive(OK)
    assert scene.socket.is_closed
    assert not scene.connection.is_usable


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        b"\x16\x03\x01\x00\x00",
    ],
)
def test_a_response_that_is_not_http_is_lost_once_and_closes(data: bytes) -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    scene.receive(data)
    scene.end()
    assert [(was_reused, has_begun) for _, was_reused, has_begun in handler.losses] == [
        (False, True)
    ]
    assert scene.socket.is_closed
    assert not handler.is_complete


@pytest.mark.parametrize("line", [b"X: y\r\n", b"X: " + b"y" * 1000 + b"\r\n"])
def test_a_head_without_end_is_bounded(line: bytes) -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    scene.receive(b"HTTP/1.1 200 OK\r\n")
    received = 0
    while not scene.socket.is_closed:
        scene.receive(line)
        received += len(line)
        assert received < 128 * 1024
    assert handler.status == 0
    assert len(handler.losses) == 1


@pytest.mark.parametrize(
    "part", [b"0\r\n" + b"X: y\r\n" * 50_000, b"0\r\nX: " + b"y" * 200_000, b"1;" + b"x" * 200_000]
)
def test_trailers_and_extensions_of_chunks_are_bounded(part: bytes) -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    scene.receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
    scene.receive(part, 4096)
    assert scene.socket.is_closed
    assert len(handler.losses) == 1


def test_a_body_in_many_small_chunks_is_not_bounded_here() -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    scene.receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    scene.receive(b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n", 4096)
    assert (len(handler.body), handler.is_complete) == (50_000, True)


def test_interim_responses_without_end_are_bounded() -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    for _ in range(10_000):
        if scene.socket.is_closed:
            break
        scene.receive(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert len(handler.losses) == 1


def test_forgotten_handler_is_not_called_again() -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    scene.connection.forget()
    scene.receive(OK)
    scene.end()
    assert (handler.status, handler.losses) == (0, [])
    assert scene.socket.is_closed


def test_unsent_bytes_are_those_that_the_system_has_not_taken() -> None:
    scene = ConnectionOnFakeSocket()
    assert scene.connection.unsent == 7
    assert HttpClientConnection(memoryview(b""), print, print).unsent == 0


# -- turns -----------------------------------------------------------------------------------

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n"
CHUNKS = STREAM[:-2] + b"Transfer-Encoding: chunked\r\n\r\n"
EVENT = b"data:x\n\n"


async def caught_up(scene: ConnectionOnFakeSocket, handler: Handler) -> list[bytes]:
    """Return what came in each further turn."""
    turns = []
    while scene.connection._is_behind:
        before = len(handler.body)
        await asyncio.sleep(0)
        turns.append(handler.body[before:])
    return turns


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("first", [0, len(STREAM) - 1, len(STREAM), len(STREAM) + 3])
def test_one_turn_parses_a_bounded_number_of_events(line_end: bytes, first: int) -> None:
    async def script() -> None:
        scene = ConnectionOnFakeSocket()
        handler = scene.ask()
        body = (b"data:x" + line_end * 2) * 9000
        data = STREAM + body
        if first:
            scene.receive(data[:first])
        scene.receive(data[first:])
        events = b"data:x" + line_end * 2
        assert handler.body.count(b"x") <= MAX_MESSAGES_PER_TURN
        assert not scene.socket.is_reading
        turns = await caught_up(scene, handler)
        assert max(each.count(b"x") for each in turns) <= MAX_MESSAGES_PER_TURN
        assert handler.body == events * 9000
        assert scene.socket.is_reading

    asyncio.run(script())


def test_one_turn_parses_a_bounded_number_of_bytes_of_events() -> None:
    async def script() -> None:
        scene = ConnectionOnFakeSocket()
        handler = scene.ask()
        scene.receive(STREAM)
        scene.receive(b"data:" + b"x" * 200_000 + b"\n\n")
        assert len(handler.body) == MAX_BYTES_PER_TURN
        turns = await caught_up(scene, handler)
        assert max(map(len, turns)) == MAX_BYTES_PER_TURN
        assert len(handler.body) == 200_007

    asyncio.run(script())


def test_end_of_a_stream_follows_the_events_before_it() -> None:
    async def script() -> None:
        scene = ConnectionOnFakeSocket()
        handler = scene.ask()
        chunk = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
        scene.receive(CHUNKS + chunk * 3000 + b"0\r\n\r\n")
        assert not handler.is_complete
        await caught_up(scene, handler)
        assert (handler.body, handler.is_complete) == (EVENT * 3000, True)
        assert scene.freed == [scene.connection]
        assert scene.socket.is_reading

    asyncio.run(script())


def test_loss_of_a_connection_follows_the_events_before_it() -> None:
    async def script() -> None:
        for head, is_complete in ((STREAM, True), (CHUNKS, False)):
            scene = ConnectionOnFakeSocket()
            handler = scene.ask()
            body = EVENT * 3000
            scene.receive(head + (body if is_complete else b"%x\r\n%b\r\n" % (len(body), body)))
            scene.end()
            assert (handler.is_complete, handler.losses, scene.lost) == (False, [], [])
            await caught_up(scene, handler)
            assert handler.body == body
            assert handler.is_complete is is_complete
            assert len(handler.losses) == (not is_complete)
            assert scene.lost == [scene.connection]

    asyncio.run(script())


def test_connection_is_not_used_again_if_something_follows_a_stream() -> None:
    async def script() -> None:
        scene = ConnectionOnFakeSocket()
        handler = scene.ask()
        chunk = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
        scene.receive(CHUNKS + chunk * 3000 + b"0\r\n\r\n" + OK * 1000)
        await caught_up(scene, handler)
        assert (handler.body, handler.is_complete) == (EVENT * 3000, True)
        assert (scene.freed, scene.socket.is_closed) == ([], True)

    asyncio.run(script())


def test_forgotten_handler_gets_nothing_of_what_waits() -> None:
    async def script() -> None:
        scene = ConnectionOnFakeSocket()
        handler = scene.ask()
        scene.receive(STREAM + EVENT * 3000)
        body = handler.body
        scene.connection.forget()
        scene.end()
        assert scene.lost == [scene.connection]
        await caught_up(scene, handler)
        assert (handler.body, handler.losses) == (body, [])

    asyncio.run(script())


def test_json_of_many_lines_is_parsed_in_one_turn() -> None:
    scene = ConnectionOnFakeSocket()
    handler = scene.ask()
    body = b"[\n1\n]" * 10_000
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    scene.receive(head % len(body) + body)
    assert (handler.body, handler.is_complete) == (body, True)


@pytest.mark.parametrize("start", [b"data:", b"data: ", b"data: \t ", b"data:\ndata:"])
def test_elements_of_batches_count_as_messages(start: bytes) -> None:
    async def script() -> None:
        scene = ConnectionOnFakeSocket()
        handler = scene.ask()
        event = start + b"[" + b",".join([b"1"] * 100) + b"]\n\n"
        scene.receive(STREAM)
        scene.receive(event * 100)
        turns = [handler.body, *await caught_up(scene, handler)]
        assert max(each.count(b",") for each in turns) <= 2 * MAX_MESSAGES_PER_TURN
        assert handler.body == event * 100

    asyncio.run(script())

"""`HttpServer` and its connections by plain calls: what is written, bounded and timed out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.fuzz.fuzz_http import FuzzedConnection
from tests.rigs.http_endpoint import request
from tests.rigs.memory import held_by
from trunkline import HttpLimits, HttpSettings
from trunkline.accounts.account import Account, Accounts
from trunkline.jsonrpc.framing.framing import Oversize
from trunkline.spec.http_conditions import HTTP
from trunkline.transports.http.endpoint.exchange import Exchange
from trunkline.transports.http.gate.admission import Admission
from trunkline.transports.http.request import HttpRequest
from trunkline.transports.http.response import JSON_HEADERS, Refusal
from trunkline.transports.http.server import connection as module
from trunkline.transports.http.server import http_server
from trunkline.transports.http.server.http_server import HttpServer
from trunkline.transports.http.server.response_writer import ResponseWriter
from trunkline.transports.receive_limits import MAX_BYTES_PER_TURN

GET = b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
LIMIT = 1000


class Carrier:
    """Reports what happens to an exchange."""

    primes = False

    def __init__(self) -> None:
        self.said: list[Any] = []

    def event(self, exchange: Exchange, frame: bytes) -> bytes:
        return b"data: %b\n\n" % frame

    def priming_event(self, exchange: Exchange) -> bytes:
        return b""

    def exchange_ended(self, exchange: Exchange) -> None:
        self.said.append("ended")

    def client_gone(self, exchange: Exchange) -> None:
        self.said.append("gone")

    def undeliverable(self, exchange: Exchange, frame: bytes) -> None:
        raise AssertionError

    def is_slow(self, exchange: Exchange, value: bool) -> None:
        self.said.append(("slow", value))


class Served:
    """The routes: what was asked is kept, and answered at once or when a test says so."""

    def __init__(self) -> None:
        self.admission = Admission(HttpSettings(), [("127.0.0.1", 8000)])
        self.asked: list[tuple[HttpRequest, Any, Any]] = []
        self.refused: list[Refusal] = []
        self.reaped: list[float] = []
        self.carrier = Carrier()
        self.answers = True
        self.probes = frozenset({"/healthz", "/readyz"})
        self.fails: BaseException | None = None

    def admit(self, asked: HttpRequest) -> Refusal | None:
        return Refusal(HTTP["permission-denied"], "no") if asked.path == "/no" else None

    def handle(self, asked: HttpRequest, body: Any, responder: Any) -> None:
        self.asked.append((asked, body, responder))
        if self.fails is not None:
            raise self.fails
        if self.answers:
            responder.respond(200, b"[%b]" % asked.path.encode(), JSON_HEADERS)

    def refuse(self, responder: Any, refusal: Refusal, asked: HttpRequest | None) -> None:
        self.refused.append(refusal)
        responder.respond(refusal.status, b"", refusal.headers)

    def check_head(self, asked: HttpRequest) -> Refusal | None:
        return None

    def open_client_account(self, asked: HttpRequest, account: Account) -> Account:
        account.uses += 1
        return account

    def is_upgrade(self, asked: HttpRequest) -> bool:
        return False

    def reap(self, now: float) -> None:
        self.reaped.append(now)


class Stage:
    """A server without a socket."""

    def __init__(self, **options: Any) -> None:
        limits = HttpLimits(**options.pop("limits", {}))
        self.routes = Served()
        size = options.pop("message_size", LIMIT)
        self.http = HttpServer(self.routes, limits, size, **options)

    def open(self) -> FuzzedConnection:
        return FuzzedConnection(self.http)

    def exchange(self, protocol: ResponseWriter) -> Exchange:
        """Give the request that is served an exchange."""
        made = Exchange(request(), protocol, self.routes.carrier, lambda _: 400, 0.0)
        protocol.exchange = made
        return made


def run(work: Callable[[Stage], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        stage = Stage(**options)
        async with asyncio.timeout(30):
            await work(stage)
            await stage.http.close(0)
            while stage.http.connections:
                await asyncio.sleep(0)

    asyncio.run(main())


def statuses(wire: FuzzedConnection) -> list[int]:
    return [each.status for each in wire.responses()]


# -- writing -----------------------------------------------------------------------------------


def test_a_response_of_known_length_is_one_write() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        for _ in range(3):
            await wire.feed(GET)
        assert statuses(wire) == [200] * 3
        assert len(wire.transport.written) == 3

    run(work)


def test_a_stream_is_chunks_and_one_write_in_each_turn_of_the_loop() -> None:
    async def work(stage: Stage) -> None:
        stage.routes.answers = False
        wire = stage.open()
        await wire.feed(GET)
        protocol = wire.protocol.writer
        protocol.start(())
        protocol.write(b"ab")
        protocol.write(b"")
        protocol.write(b"cde")
        assert wire.transport.written == []
        await asyncio.sleep(0)
        assert len(wire.transport.written) == 1
        protocol.write(b"f")
        protocol.end()
        (response,) = wire.responses()
        assert (response.body, response.is_whole) == (b"abcdef", True)
        assert not wire.transport.is_closed
        stage.routes.answers = True
        await wire.feed(GET)
        assert statuses(wire) == [200, 200]

    run(work)


def test_a_stream_to_http_1_0_ends_with_the_connection() -> None:
    async def work(stage: Stage) -> None:
        stage.routes.answers = False
        wire = stage.open()
        await wire.feed(b"GET /a HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
        wire.protocol.writer.start(())
        wire.protocol.writer.write(b"abc")
        wire.protocol.writer.end()
        (response,) = wire.responses()
        assert b"transfer-encoding" not in response.headers
        assert (response.body, response.closes) == (b"abc", True)
        assert wire.transport.is_closed

    run(work)


def test_head_has_the_length_and_no_body() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        await wire.feed(GET.replace(b"GET", b"HEAD"))
        await wire.feed(GET)
        head, got = wire.responses()
        assert (head.body, head.headers[b"content-length"]) == (b"", b"4")
        assert got.body == b"[/a]"

    run(work)


def test_writes_after_the_response_or_the_connection_are_dropped() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        await wire.feed(GET)
        for act in (
            lambda: wire.protocol.writer.respond(200, b"again"),
            lambda: wire.protocol.writer.start(()),
            lambda: wire.protocol.writer.write(b"again"),
            wire.protocol.writer.end,
        ):
            act()
        await wire.lose()
        wire.protocol.writer.respond(200, b"again")
        wire.protocol.writer.start(())
        await asyncio.sleep(0)
        assert len(wire.transport.written) == 1
        assert wire.protocol.writer.is_gone
        assert wire.protocol.writer.unread == 0

    run(work)


# -- reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_body_is_the_same_however_it_comes(size: int) -> None:
    async def work(stage: Stage) -> None:
        body = bytes(range(256)) * 3
        whole = b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 768\r\n\r\n" + body
        chunked = (
            b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"100\r\n%b\r\n200;x=y\r\n%b\r\n0\r\n\r\n" % (body[:256], body[256:])
        )
        for data in (whole, chunked):
            wire = stage.open()
            for start in range(0, len(data), size):
                await wire.feed(data[start : start + size])
            assert stage.routes.asked[-1][1] == body
            await wire.lose()

    run(work)


def test_a_body_in_tiny_chunks_takes_about_its_size_in_memory() -> None:
    size = 256 * 1024

    async def work(stage: Stage) -> None:
        wire = stage.open()
        lines = b"Host: localhost\r\nTransfer-Encoding: chunked"
        await wire.feed(b"POST /a HTTP/1.1\r\n%b\r\n\r\n" % lines)
        chunk = b"2\r\nxy\r\n"
        in_one_read = len(stage.http.turn_buffer) // len(chunk)

        def feed() -> None:
            for left in range(size // 2, 0, -in_one_read):
                data = chunk * min(left, in_one_read)
                wire.protocol.get_buffer(-1)[: len(data)] = data
                wire.protocol.buffer_updated(len(data))

        assert held_by(feed) < 2 * size
        await wire.feed(b"0\r\n\r\n")
        assert stage.routes.asked[0][1] == b"xy" * (size // 2)

    run(work, message_size=size)


def test_an_unfinished_head_with_too_many_headers_is_refused_and_not_kept() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        await wire.feed(b"GET /a HTTP/1.1\r\nHost: localhost\r\n")
        await wire.feed(b"a:\r\n" * 99)
        assert wire.responses() == []
        await wire.feed(b"a:\r\n" * 2000)
        assert statuses(wire) == [431]
        assert wire.protocol.reader._headers == []

    run(work)


def test_a_body_that_arrives_whole_is_not_copied() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        reader = wire.protocol.reader
        await wire.feed(b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        body = b"{" * 9
        reader.on_body(body)
        reader.on_message_complete()
        assert stage.routes.asked[0][1] is body

    run(work)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (b"Content-Length: 5000", b"x" * 5000),
        (b"Transfer-Encoding: chunked", b"1388\r\n" + b"x" * 5000),
    ],
)
def test_a_body_that_is_too_large_is_passed_on_as_its_start(headers: bytes, body: bytes) -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        await wire.feed(b"POST /a HTTP/1.1\r\nHost: localhost\r\n%b\r\n\r\n" % headers)
        for start in range(0, len(body), 500):
            await wire.feed(body[start : start + 500])
        (_, found, _) = stage.routes.asked[0]
        assert isinstance(found, Oversize)
        assert len(stage.routes.asked) == 1
        (response,) = wire.responses()
        assert response.closes
        # The client may send the rest, and is not reset while it does.
        assert wire.transport.has_ended
        assert not wire.transport.is_closed

    run(work)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"http://localhost/a?b", "/a"),
        (b"HTTP://localhost", "/"),
        (b"http://other/a", None),
        (b"http://localhost:1/a", None),
        (b"ftp://localhost/a", None),
        (b"*", None),
    ],
)
def test_a_target_in_absolute_form_has_to_agree_with_host(target: bytes, path: str | None) -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        method = b"OPTIONS" if target == b"*" else b"GET"
        await wire.feed(b"%b %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % (method, target))
        assert statuses(wire) == [400 if path is None else 200]
        assert [asked.path for asked, _, _ in stage.routes.asked] == (
            [] if path is None else [path]
        )
        texts = [each.message for each in stage.routes.refused]
        differs = target.startswith(b"http")
        text = f"The request target {'and Host differ' if differs else 'is not a path'}"
        assert texts == ([text] if path is None else [])

    run(work)


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 1\r\nContent-Length: 2",
        b"Content-Length: 1\r\nTransfer-Encoding: chunked",
        b"Content-Length: +1",
        b"Content-Length: 1 1",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Transfer-Encoding : chunked",
    ],
)
def test_a_message_whose_length_is_ambiguous_closes_the_connection(lines: bytes) -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        await wire.feed(b"POST /a HTTP/1.1\r\nHost: localhost\r\n%b\r\n\r\n" % lines + GET)
        (response,) = wire.responses()
        assert response.status >= 400
        assert response.closes
        assert stage.routes.asked == []

    run(work)


def test_requests_wait_for_the_response_before_theirs_and_too_many_are_not_read() -> None:
    async def work(stage: Stage) -> None:
        stage.routes.answers = False
        wire = stage.open()
        await wire.feed(GET)
        for n in range(module._MAX_PIPELINED):
            assert wire.transport.is_reading, n
            await wire.feed(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % n)
        assert not wire.transport.is_reading
        assert len(stage.routes.asked) == 1
        for n in range(module._MAX_PIPELINED + 1):
            while len(stage.routes.asked) == n:
                await asyncio.sleep(0)
            wire.protocol.writer.respond(200, b"%d" % n)
        assert [each.body for each in wire.responses()] == [b"%d" % n for n in range(17)]
        assert wire.transport.is_reading

    run(work)


def post(size: int) -> bytes:
    return b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size + bytes(size)


def test_bodies_that_wait_for_the_response_before_theirs_count_for_their_client() -> None:
    accounts = Accounts(100, 8 * 100_000)  # of which one client may send an eighth

    async def work(stage: Stage) -> None:
        stage.routes.answers = False
        first, second = stage.open(), stage.open()
        (account,) = accounts
        await first.feed(GET)
        await first.feed(post(10_000))
        assert account.receiving == 0  # little is not counted
        await first.feed(post(40_000))
        assert account.receiving == 50_000
        await second.feed(GET)
        await second.feed(post(40_000))
        assert account.receiving == 90_000
        await first.feed(post(20_000))  # too much
        assert (account.receiving, account.budget.used) == (90_000, 0)
        second.transport.abort()
        await asyncio.sleep(0)
        assert account.receiving == 50_000
        for left in (40_000, 0):
            first.protocol.writer.respond(200, b"")
            await asyncio.sleep(0)
            assert account.receiving == left
        first.protocol.writer.respond(200, b"")
        await asyncio.sleep(0)
        assert statuses(first) == [200, 200, 200, 503]
        assert [len(body) for _, body, _ in stage.routes.asked] == [0, 0, 10_000, 40_000]
        assert account.uses == 1
        first.transport.abort()
        await asyncio.sleep(0)
        assert not len(accounts)
        assert accounts.bytes.used == 0

    run(work, accounts=accounts, message_size=100_000)


@pytest.mark.parametrize(
    ("head", "sent", "size"),
    [
        (b"", 0, MAX_BYTES_PER_TURN),
        (b"GET /a HTTP/1.1\r\n", 0, MAX_BYTES_PER_TURN),
        (b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", 0, 256 * 1024),
        (b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", 10, 99_990),
        (
            b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
            40_000,
            MAX_BYTES_PER_TURN,
        ),
        (
            b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
            0,
            MAX_BYTES_PER_TURN,
        ),
    ],
)
def test_one_turn_reads_64_kib_or_more_of_a_body_alone(head: bytes, sent: int, size: int) -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        if head:
            await wire.feed(head + bytes(sent))
        assert len(wire.protocol.get_buffer(-1)) == size

    run(work, message_size=2_000_000)


def test_requests_of_a_client_that_is_gone_are_not_served() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        respond = stage.routes.handle

        def lose(*given: Any) -> None:
            respond(*given)
            wire.transport.is_closed = True  # as a write does that fails

        stage.routes.handle = lose  # type: ignore[method-assign]  # as above
        await wire.feed(GET * 10)
        assert len(stage.routes.asked) == 1
        wire.protocol.connection_lost(None)

    run(work)


# -- bounds ------------------------------------------------------------------------------------


class Counters:
    refused_connections = 0
    dropped_connections = 0


def test_longest_idle_connection_is_closed_beyond_the_limit() -> None:
    counters = Counters()

    async def work(stage: Stage) -> None:
        first, second = stage.open(), stage.open()
        await first.feed(GET)  # it is idle from now on
        third = stage.open()
        assert second.transport.is_closed
        assert not first.transport.is_closed
        stage.routes.answers = False
        await first.feed(GET)
        await third.feed(GET)
        fourth = stage.open()
        fourth.protocol.methods.append("GET")
        (refused,) = fourth.responses()
        assert (refused.status, refused.headers[b"retry-after"]) == (503, b"1")
        assert fourth.transport.is_closed
        assert (counters.refused_connections, counters.dropped_connections) == (1, 1)

    run(work, limits={"connections": 2}, counters=counters)


def test_idle_connections_make_room_when_descriptors_run_out() -> None:
    counters = Counters()

    async def work(stage: Stage) -> None:
        wires = [stage.open() for _ in range(10)]
        assert stage.http.make_room()
        assert [each.transport.is_closed for each in wires] == [True] * 8 + [False] * 2
        assert counters.dropped_connections == 8
        await asyncio.sleep(0)
        assert stage.http.make_room()
        await asyncio.sleep(0)
        assert not stage.http.make_room()

    run(work, counters=counters)


def test_descriptors_are_taken_from_the_client_that_has_most() -> None:
    async def work(stage: Stage) -> None:
        quiet = stage.open()
        other = stage.http.accounts.open("another")
        busy = [stage.open() for _ in range(10)]
        for each in busy:
            each.protocol.use_account(other)
        assert stage.http.make_room()
        assert [each.transport.is_closed for each in busy] == [True] * 8 + [False] * 2
        assert not quiet.transport.is_closed
        other.close()

    run(work)


# -- timeouts ----------------------------------------------------------------------------------


def later(wire: FuzzedConnection, seconds: float) -> None:
    """Look at a connection so many seconds after its last change."""
    wire.protocol.tick(wire.protocol.reader.since + seconds)


def test_idle_connection_is_closed_without_a_response_after_idle_timeout() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        await wire.feed(GET)
        later(wire, 74)
        assert not wire.transport.is_closed
        later(wire, 75)
        assert wire.transport.is_closed
        assert len(wire.transport.written) == 1

    run(work)


@pytest.mark.parametrize("sent", [b"", b"\r\n\r\n"])
def test_new_connection_without_a_request_is_closed_after_header_timeout(sent: bytes) -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        if sent:
            await wire.feed(sent)  # empty lines are not the start of a request
        later(wire, 9.9)
        assert not wire.transport.is_closed
        later(wire, 10)
        assert wire.transport.is_closed
        assert wire.transport.written == []

    run(work)


def test_a_head_that_takes_long_is_408_however_often_a_byte_comes() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        await wire.feed(b"G")
        began = wire.protocol.reader.since
        for each in (b"E", b"T", b" "):
            await wire.feed(each)
        assert wire.protocol.reader.since == began
        later(wire, 9.9)
        assert wire.transport.written == []
        later(wire, 10)
        assert b"HTTP/1.1 408 " in wire.transport.written[0]
        assert b"connection: close" in wire.transport.written[0]

    run(work)


POST = b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(("head", "part"), [(POST % 100, b"x"), (CHUNKED, b"1\r\nx\r\n")])
def test_body_that_drips_is_408_after_body_timeout(head: bytes, part: bytes) -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        await wire.feed(head)
        began = wire.protocol.reader.since
        for seconds in (10, 20, 29.9):
            await wire.feed(part)
            wire.protocol.tick(began + seconds)
            assert wire.transport.written == []
        wire.protocol.tick(began + 30.1)
        assert b"HTTP/1.1 408 " in wire.transport.written[0]
        assert b"connection: close" in wire.transport.written[0]
        assert stage.routes.asked == []

    run(work)


def test_body_has_a_second_more_for_each_16_kib_that_came() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        await wire.feed(POST % 1_000_000)
        began = wire.protocol.reader.since
        for seconds in range(40):
            stage.http.buffer[: 16 * 1024] = b"x" * 16 * 1024
            wire.protocol.buffer_updated(16 * 1024)
            wire.protocol.tick(began + 30 + seconds)
            assert wire.transport.written == []
        wire.protocol.tick(began + 69.9)
        assert wire.transport.written == []
        wire.protocol.tick(began + 70)
        assert b"HTTP/1.1 408 " in wire.transport.written[0]

    run(work, message_size=1024 * 1024)


def test_a_request_that_is_served_has_no_timeout_and_its_exchange_is_looked_at() -> None:
    async def work(stage: Stage) -> None:
        stage.routes.answers = False
        wire = stage.open()
        await wire.feed(GET)
        later(wire, 10_000)
        assert wire.transport.written == []
        stage.exchange(wire.protocol.writer)
        wire.protocol.tick(10_000)
        await asyncio.sleep(0)
        assert wire.responses()[0].headers[b"content-type"] == b"text/event-stream"

    run(work)


def test_a_client_that_takes_nothing_of_what_it_was_sent_is_disconnected() -> None:
    async def work(stage: Stage) -> None:
        stage.routes.answers = False
        wire = stage.open()
        await wire.feed(GET)
        exchange = stage.exchange(wire.protocol.writer)
        exchange.start_stream()
        wire.protocol.pause_writing()
        now = 1000.0
        for unread in (500_000, 400_000, 300_000):
            wire.transport.unread = unread
            for _ in range(2):
                wire.protocol.tick(now)
                now += 59
        assert not wire.transport.is_closed
        wire.protocol.tick(now + 2)
        assert wire.transport.is_closed
        await asyncio.sleep(0)
        assert stage.routes.carrier.said == [("slow", True), "gone"]

    run(work)


def test_complete_response_that_is_not_read_counts_for_its_client_until_it_is() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        (account,) = stage.http.accounts
        wire.transport.unread = 1000
        await wire.feed(GET)
        assert account.budget.used == 0  # the client may read at once
        wire.protocol.pause_writing()
        wire.transport.unread = 100_000
        await wire.feed(GET)
        assert account.budget.used == 100_000
        wire.transport.unread = 70_000
        wire.protocol.tick(stage.http.now)
        assert account.budget.used == 70_000
        wire.protocol.resume_writing()
        assert account.budget.used == 0
        wire.protocol.pause_writing()
        await wire.feed(GET)
        assert account.budget.used == 70_000
        wire.transport.abort()
        await asyncio.sleep(0)
        assert stage.http.accounts.bytes.used == 0

    run(work)


def test_a_client_that_reads_again_is_not_slow_any_more() -> None:
    async def work(stage: Stage) -> None:
        stage.routes.answers = False
        wire = stage.open()
        await wire.feed(GET)
        stage.exchange(wire.protocol.writer).start_stream()
        wire.protocol.pause_writing()
        wire.protocol.resume_writing()
        wire.transport.unread = 5
        assert wire.protocol.writer.unread == 5
        later(wire, 10_000)
        assert not wire.transport.is_closed
        assert stage.routes.carrier.said == [("slow", True), ("slow", False)]

    run(work)


def test_a_refused_client_has_a_second_to_read_its_answer() -> None:
    async def work(stage: Stage) -> None:
        wire = stage.open()
        # The last look at connections was some time ago.
        stage.http.now -= 100
        await wire.feed(b"POST /no HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\nabc")
        assert wire.protocol.reader.since > stage.http.now + 50
        (response,) = wire.responses()
        assert response.closes
        assert wire.transport.has_ended
        later(wire, 0.5)
        assert not wire.transport.is_closed
        later(wire, 1)
        assert wire.transport.is_closed

    run(work)


# -- the end -----------------------------------------------------------------------------------


def test_the_end_of_the_connection_is_reported_to_the_exchange_once() -> None:
    async def work(stage: Stage) -> None:
        stage.routes.answers = False
        wire = stage.open()
        await wire.feed(GET + GET)
        stage.exchange(wire.protocol.writer)
        assert wire.protocol.eof_received() is False
        await wire.lose()
        assert stage.routes.carrier.said == ["gone"]
        # What waited is not served.
        assert len(stage.routes.asked) == 1
        assert not stage.http.connections

    run(work)


def test_a_stopping_server_closes_idle_connections_and_others_after_their_response() -> None:
    async def work(stage: Stage) -> None:
        idle, busy, half = stage.open(), stage.open(), stage.open()
        await half.feed(GET[:10])
        stage.routes.answers = False
        await busy.feed(GET)
        stage.http.stop()
        assert idle.transport.is_closed
        assert not busy.transport.is_closed
        busy.protocol.writer.respond(200, b"last")
        assert busy.transport.is_closed
        stage.routes.answers = True
        await half.feed(GET[10:])
        (response,) = half.responses()
        assert response.closes
        late = stage.open()
        assert b" 503 " in late.transport.written[0]

    run(work)


def test_closing_waits_for_responses_and_then_closes_at_once() -> None:
    async def work(stage: Stage) -> None:
        stage.routes.answers = False
        busy = stage.open()
        await busy.feed(GET)
        closing = asyncio.create_task(stage.http.close(3600))
        await asyncio.sleep(0)
        assert not closing.done()
        busy.protocol.writer.respond(200, b"last")
        await closing
        never = Stage()
        never.routes.answers = False
        wire = never.open()
        await wire.feed(GET)
        await never.http.close(0)
        assert wire.transport.is_closed

    run(work)


def test_exception_while_serving_is_500_without_details_and_closes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(stage: Stage) -> None:
        stage.routes.fails = ValueError("inside")
        wire = stage.open()
        await wire.feed(GET)
        (response,) = wire.responses()
        assert (response.status, response.closes) == (500, True)
        assert b"inside" not in b"".join(wire.transport.written)
        assert "internal error while serving an HTTP request" in caplog.text

    run(work)


def test_the_access_log_has_a_line_for_each_request(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trunkline.access")

    async def work(stage: Stage) -> None:
        wire = stage.open()
        await wire.feed(b"GET /a?token=secret HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await wire.feed(GET.replace(b"/a", b"/no"))
        first, second = caplog.messages
        assert first.startswith("127.0.0.1 GET '/a' 200 ")
        assert second.startswith("127.0.0.1 GET '/no' 403 ")
        assert "secret" not in caplog.text

    run(work, access_log=True)


def test_each_second_the_routes_are_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_TICK_S", 0.001)

    async def work(stage: Stage) -> None:
        while len(stage.routes.reaped) < 3:
            await asyncio.sleep(0)

    run(work)

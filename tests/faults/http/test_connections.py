"""Connections: their number, their order, and clients that do not read."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

import trunkline.transports.http.server.connection as connection
import trunkline.transports.http.server.http_server as http_server
from tests.faults.http.serving import (
    WAIT,
    Closed,
    Served,
    Session,
    Wire,
    call,
    certified,
    make_app,
    serving,
    single,
    text_of,
)
from trunkline import HttpLimits, ServerLimits, Tls

MIB = 1024 * 1024


# -- pipelining ------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order(served: Served) -> None:
    with served.connect() as wire:
        wire.send(b"".join(single(wire, "echo", n, text=f"{n}") for n in range(100)))
        assert [wire.response().json["id"] for n in range(100)] == list(range(100))


def test_pipelined_requests_wait_for_the_one_before(served: Served) -> None:
    key = "the first in line"
    with served.connect() as wire:
        rest = b"".join(single(wire, "echo", n, text=f"{key} {n}") for n in range(20))
        wire.send(single(wire, "held", "first", key=key) + rest)
        served.until(lambda: key in served.journal.begun)
        assert served.on_loop(lambda: f"{key} 0" not in served.journal.begun)
        served.open_gate(key)
        assert [wire.response().json["id"] for _ in range(21)] == ["first", *range(20)]


def test_a_request_in_the_middle_can_be_cancelled(served: Served) -> None:
    session, keys = Session(served), ["first in session", "second in session"]
    with served.connect() as wire:
        for n, key in enumerate(keys):
            arguments = {"key": key}
            wire.send(
                session.post(wire, call("tools/call", n + 1, name="held", arguments=arguments))
            )
        wire.send(session.post(wire, call("tools/call", 3, name="echo", arguments={"text": "3"})))
        served.until(lambda: keys[0] in served.journal.begun)
        served.open_gate(keys[0])
        assert text_of(wire.response().json) == f"held {keys[0]}"
        served.until(lambda: keys[1] in served.journal.begun)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        assert session.ask(cancel).status == 202
        second = wire.response()  # no answer, and the next is not held up
        assert (second.status, second.body) == (200, b"")
        assert text_of(wire.response().json) == "3"
    served.until(lambda: keys[1] in served.journal.cancelled)


def test_disconnect_drops_the_waiting_pipelined_requests(served: Served) -> None:
    key = "first, then gone"
    with served.connect() as wire:
        wire.send(single(wire, "held", key=key) + single(wire, "echo", text=f"{key}, next"))
        served.until(lambda: key in served.journal.begun)
    served.until(lambda: key in served.journal.cancelled)
    served.until(lambda: not served.http.connections)
    assert served.on_loop(lambda: f"{key}, next" not in served.journal.begun)


def test_a_flood_of_pipelined_requests_is_bounded(served: Served) -> None:
    """While one is served, what waits is a few requests and one read of the socket."""
    key = "before the flood"
    with served.connect() as wire:
        wire.send(single(wire, "held", key=key))
        served.until(lambda: key in served.journal.begun)
        wire.sock.setblocking(False)
        one = wire.head("GET", "/healthz") * 1000
        sent = 0
        try:
            while sent < 64 * MIB:
                sent += wire.sock.send(one)
        except BlockingIOError:
            pass
        assert sent < 64 * MIB, "the server reads without end"
        waiting = served.on_loop(lambda: max(len(e._queue) for e in served.http.connections))
        assert waiting <= 256
        served.open_gate(key)
    served.until(lambda: not served.http.connections)


def test_many_requests_in_one_segment_are_served_in_several_turns(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    loop: Any = served.loop
    run_once, turns = loop._run_once, list[int]()
    handle = served.http.routes.handle

    def counted(*given: Any) -> None:
        turns[-1] += 1
        handle(*given)

    def turn() -> None:
        turns.append(0)
        run_once()

    def watch() -> None:
        turns.append(0)
        loop._run_once, served.http.routes.handle = turn, counted  # type: ignore[method-assign]

    served.on_loop(watch)
    try:
        with served.connect() as wire:
            health = wire.head("GET", "/healthz")
            count = 5000
            sender = threading.Thread(target=wire.try_send, args=(health * count,))
            sender.start()
            for _ in range(count):
                assert wire.response().status == 200
            sender.join()
            assert sum(turns) == count
            assert max(turns) <= 1 + 64 * 1024 // len(health)
        with served.connect() as wire:
            # A client that goes away while it is answered: nothing is written to it any more.
            wire.try_send(health * count)
        served.until(lambda: not served.http.connections)
    finally:
        del loop._run_once
        served.on_loop(lambda: setattr(served.http.routes, "handle", handle))
    assert "socket.send() raised" not in caplog.text


def test_large_bodies_behind_a_slow_request_are_bounded(served: Served) -> None:
    key = "before large bodies"
    with served.connect() as wire:
        wire.send(single(wire, "held", key=key))
        served.until(lambda: key in served.journal.begun)
        wire.sock.setblocking(False)
        one = single(wire, "echo", text="x" * (8 * MIB))
        sent, pause = 0, threading.Event()
        while sent < 30 * len(one):
            try:
                sent += wire.sock.send(one[sent % len(one) :])
            except BlockingIOError:
                pause.wait(0.01)
                if not served.on_loop(lambda: all(e._is_reading for e in served.http.connections)):
                    break
        held = served.on_loop(_held_bodies, served)
        assert held < 4 * MIB, held
        served.open_gate(key)
        wire.sock.setblocking(True)
        rest = one[sent % len(one) :]
        wire.sock.settimeout(WAIT)
        sender = threading.Thread(target=wire.try_send, args=(rest,))
        sender.start()
        assert text_of(wire.response().json) == f"held {key}"
        assert len(text_of(wire.response().json)) == 8 * MIB
        sender.join()
    served.until(lambda: not served.http.connections)


def _held_bodies(served: Served) -> int:
    return sum(
        each.reader.body_bytes + sum(len(e[1]) for e in each._queue if isinstance(e[1], bytes))
        for each in served.http.connections
    )


# -- HTTP/1.0 and the end of connections -----------------------------------------------------


def old(wire: Wire, data: bytes, *extra: str) -> bytes:
    lines = "".join(f"{each}\r\n" for each in extra).encode()
    return data.replace(b"HTTP/1.1\r\n", b"HTTP/1.0\r\n" + lines)


def test_http_1_0_is_served_and_closed(served: Served) -> None:
    with served.connect() as wire:
        answer = wire.ask(old(wire, single(wire, "echo", text="1.0")))
        assert text_of(answer.json) == "1.0"
        assert answer.header("connection") == "close"
        assert wire.is_closed


def test_http_1_0_connection_stays_open_only_with_a_keep_alive_header(served: Served) -> None:
    """A client of HTTP/1.0 takes a response without `keep-alive` as the last one."""
    with served.connect() as wire:
        data = old(wire, single(wire, "echo", text="1.0"), "Connection: keep-alive")
        answer = wire.ask(data)
        assert text_of(answer.json) == "1.0"
        if answer.header("connection") == "keep-alive":
            assert text_of(wire.ask(data).json) == "1.0"
        else:
            assert answer.header("connection") == "close"
            assert wire.is_closed


def test_a_stream_to_a_client_of_http_1_0_ends_with_the_connection(served: Served) -> None:
    key = "a stream of 1.0"
    with served.connect() as wire:
        data = single(wire, "held", token="t", key=key, says=2)
        wire.send(old(wire, data, "Connection: keep-alive"))
        answer = wire.start()
        assert answer.header("transfer-encoding") is None
        assert answer.header("connection") == "close"
        assert wire.message()["params"]["progress"] == 1
        assert wire.message()["params"]["progress"] == 2
        served.open_gate(key)
        assert text_of(wire.message()) == f"held {key}"
        assert wire.is_closed


def test_http_1_0_without_host_is_refused_but_for_health(served: Served) -> None:
    with served.connect() as wire:
        wire.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert wire.response().status == 200
    with served.connect() as wire:
        wire.send(b"GET /mcp HTTP/1.0\r\n\r\n")
        assert wire.response().status == 400


def test_connection_close_is_obeyed(served: Served) -> None:
    with served.connect() as wire:
        data = single(wire, "echo", headers=[("Connection", "close")], text="last")
        wire.send(data + single(wire, "echo", text="after the last"))
        answer = wire.response()
        assert (text_of(answer.json), answer.header("connection")) == ("last", "close")
        assert wire.is_closed
    assert served.on_loop(lambda: "after the last" not in served.journal.begun)


# -- clients that do not read ----------------------------------------------------------------


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_UNREAD_TIMEOUT_S", 0.3)


@pytest.mark.usefixtures("unread")
def test_a_client_that_never_reads_its_answer_is_disconnected() -> None:
    with serving() as served, served.connect(buffer=4096) as wire, served.connect() as other:
        wire.send(single(wire, "big", size=12 * MIB))
        served.until(lambda: len(served.http.connections) == 1, "it is still connected")
        assert other.ask(single(other, "echo", text="unaffected")).status == 200


@pytest.fixture
def tls(tmp_path: Path) -> tuple[Tls, ssl.SSLContext]:
    return certified(tmp_path)


def test_stream_that_is_not_read_is_bounded_and_counts_for_its_client_over_tls(
    tls: tuple[Tls, ssl.SSLContext],
) -> None:
    app, journal = make_app()
    budget = app._core.runtime.budget
    with serving(app, journal, tls=tls[0]) as served:
        with served.connect(buffer=4096) as wire:
            wire.start_tls(tls[1])
            wire.send(single(wire, "chatter", token=1, count=64, size=1_000_000))
            served.until(lambda: "chatter" in journal.done)
            served.until(lambda: budget.used > MIB, "it does not count")
            held = served.on_loop(lambda: sum(each.unread for each in served.http.connections))
            assert MIB < held < 40 * MIB  # of 61; 16 are written in each turn
        served.until(lambda: not served.http.connections)
        assert budget.used == 0


def test_an_answer_that_is_not_read_counts_for_its_client_over_tls(
    tls: tuple[Tls, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transport below that of TLS holds it."""
    app, journal = make_app()
    budget = app._core.runtime.budget
    with serving(app, journal, tls=tls[0]) as served, served.connect(buffer=4096) as wire:
        wire.start_tls(tls[1])
        wire.send(single(wire, "big", size=12 * MIB))
        served.until(lambda: budget.used > 4 * MIB, "it does not count")
        monkeypatch.setattr(connection, "_UNREAD_TIMEOUT_S", 0.3)
        served.until(lambda: not served.http.connections, "it is still connected")
        assert budget.used == 0


@pytest.mark.parametrize("extra", [[], [("Connection", "close")]], ids=["kept", "closed"])
def test_a_slow_reader_gets_all_of_a_large_answer_over_tls(
    tls: tuple[Tls, ssl.SSLContext], extra: Any
) -> None:
    app, journal = make_app()
    budget = app._core.runtime.budget
    with serving(app, journal, tls=tls[0]) as served, served.connect(buffer=4096) as wire:
        wire.start_tls(tls[1])
        wire.send(single(wire, "big", headers=extra, size=12 * MIB))
        served.until(lambda: any(each.unread for each in served.http.connections))
        threading.Event().wait(1.5)  # longer than a connection that is closing lingers
        assert len(text_of(wire.response().json)) == 12 * MIB
        served.until(lambda: budget.used == 0, "it counts after it was read")


@pytest.mark.usefixtures("unread")
def test_a_client_that_never_reads_its_stream_is_bounded_and_disconnected() -> None:
    app, journal = make_app(limits=ServerLimits(connection_bytes=32 * MIB, unread_timeout=0.3))
    with serving(app, journal) as served:
        for is_session in (False, True):
            with served.connect(buffer=4096) as wire:
                if is_session:
                    session = Session(served)
                    arguments = {"count": 2000, "size": 100_000}
                    meta = {"progressToken": "t"}
                    message = call("tools/call", name="chatter", arguments=arguments, _meta=meta)
                    wire.send(session.post(wire, message))
                else:
                    wire.send(single(wire, "chatter", token="t", count=2000, size=100_000))
                worst = 0

                def is_over() -> object:
                    nonlocal worst
                    sizes = [each.unread for each in served.http.connections]
                    worst = max([worst, *sizes])
                    return worst and not sizes

                served.until(is_over, "it is still connected")
                # 200 MB were to be sent.
                assert 0 < worst < 40 * MIB, worst
        assert served.is_healthy


@pytest.mark.usefixtures("unread")
def test_idle_connections_with_unread_answers_do_not_outlive_their_place() -> None:
    """A connection that gives way to another is gone, also if its client does not read."""
    with serving(limits=HttpLimits(connections=4)) as served:
        wires = []
        for _ in range(12):
            wire = served.connect(buffer=4096)
            wires.append(wire)
            wire.send(single(wire, "big", size=12 * MIB))
            served.until(lambda: any(e._is_slow for e in served.http.connections))
        served.until(lambda: _open_sockets(served) <= 4, "connections are left without a place")
        for wire in wires:
            wire.close()
        served.until(lambda: not served.http.connections)
        assert served.is_healthy


def _open_sockets(served: Served) -> int:
    """Return the number of connections that the server has open, as the system counts them."""
    rows = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    found = [row.split() for row in rows]
    return sum(row[1].endswith(f":{served.port:04X}") and row[3] == "01" for row in found)


@pytest.mark.parametrize("extra", [[], [("Connection", "close")]], ids=["kept", "closed"])
def test_a_slow_reader_gets_all_of_a_large_answer(extra: Any) -> None:
    """Slow, but it reads: it is not disconnected in the middle of what it reads."""
    with serving() as served, served.connect(buffer=4096) as wire:
        wire.send(single(wire, "big", headers=extra, size=4 * MIB))
        pause = threading.Event()
        served.until(lambda: any(each._is_slow for each in served.http.connections))
        pause.wait(1.5)  # longer than a connection that is closing lingers
        answer = wire.response()
        assert len(text_of(answer.json)) == 4 * MIB


def test_slow_client_does_not_delay_another(served: Served) -> None:
    with served.connect(buffer=4096) as slow:
        slow.send(single(slow, "big", size=12 * MIB))
        for n in range(50):
            with served.connect() as wire:
                assert text_of(wire.ask(single(wire, "echo", text=str(n))).json) == str(n)


# -- how many --------------------------------------------------------------------------------


def test_longest_idle_connection_is_closed_for_a_new_one() -> None:
    with serving(limits=HttpLimits(connections=3)) as served:
        wires = [served.connect() for _ in range(3)]
        for wire in wires:
            assert wire.ask(wire.head("GET", "/healthz")).status == 200
        with served.connect() as fourth:
            assert fourth.ask(fourth.head("GET", "/healthz")).status == 200
            assert wires[0].is_closed
            assert wires[1].ask(wires[1].head("GET", "/healthz")).status == 200
        for wire in wires:
            wire.close()


def test_when_all_connections_are_in_use_another_is_503() -> None:
    with serving(limits=HttpLimits(connections=3)) as served:
        wires = [served.connect() for _ in range(3)]
        for n, wire in enumerate(wires):
            wire.send(single(wire, "held", key=f"use {n}"))
        served.until(lambda: len(served.journal.begun) == 3)
        for _ in range(5):
            with served.connect() as wire:
                answer = wire.response()
                assert (answer.status, answer.header("retry-after")) == (503, "1")
                assert wire.is_closed
        for n, wire in enumerate(wires):
            served.open_gate(f"use {n}")
            assert wire.response().status == 200
        assert served.is_healthy
        for wire in wires:
            wire.close()


@pytest.mark.parametrize(
    "start", [b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ", b""], ids=["heads", "bodies"]
)
def test_connections_that_send_slowly_do_not_keep_others_out(
    start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_SLOW_REQUEST_S", 0.05)
    with serving(limits=HttpLimits(connections=8)) as served:
        wires = []
        for _ in range(8):
            wire = served.connect()
            wires.append(wire)
            wire.send(start or single(wire, "echo", text="slowly")[:-5])
        served.until(lambda: sum(each.reader.is_reading for each in served.http.connections) == 8)
        served.until(lambda: served.http.now - oldest(served) >= 0.05)
        assert served.is_healthy
        assert served.on_loop(lambda: "slowly" not in served.journal.begun)
        for wire in wires:
            wire.close()


def oldest(served: Served) -> float:
    return max(each.began() for each in served.http.connections)


def test_more_requests_than_allowed_at_once_are_503() -> None:
    # One place is for newcomers.
    with serving(limits=HttpLimits(requests=3)) as served:
        session = Session(served)
        wires = [served.connect() for _ in range(2)]
        message = [
            call("tools/call", n, name="held", arguments={"key": f"at once {n}"}) for n in range(3)
        ]
        wires[0].send(session.post(wires[0], message[0]))
        wires[1].send(single(wires[1], "held", key="at once 1"))
        served.until(lambda: len(served.journal.begun) == 2)
        with served.connect() as wire:
            for data in (session.post(wire, message[2]), single(wire, "echo", text="one more")):
                answer = wire.ask(data)
                assert answer.status == 503
                assert answer.header("retry-after") is not None
            assert wire.ask(wire.head("GET", "/healthz")).status == 200
        for n, wire in enumerate(wires):
            served.open_gate(f"at once {n}")
            assert wire.response().status == 200
            wire.close()
        assert served.is_healthy
        assert served.on_loop(lambda: "one more" not in served.journal.begun)


def test_a_session_whose_clients_go_away_cannot_run_more_than_its_share() -> None:
    """A disconnect does not cancel in a session: the calls go on, within the limits."""
    app, journal = make_app(limits=ServerLimits(in_flight=3, waiting=5, in_flight_overall=10))
    with serving(app, journal) as served:
        session = Session(served)
        for n in range(20):
            with served.connect() as wire:
                arguments = {"key": f"left {n}"}
                wire.send(
                    session.post(wire, call("tools/call", n, name="held", arguments=arguments))
                )
                served.until(
                    lambda: any(not each.reader.is_reading for each in served.http.connections)
                )
            served.until(lambda: not served.http.connections)
        assert served.on_loop(lambda: len(journal.begun) <= 3)
        assert served.is_healthy


def test_a_connection_that_is_answered_503_is_not_counted() -> None:
    with serving(limits=HttpLimits(connections=1)) as served, served.connect() as first:
        first.send(single(first, "held", key="only"))
        served.until(lambda: "only" in served.journal.begun)
        for _ in range(50):
            with served.connect() as wire:
                try:
                    assert wire.response().status == 503
                except Closed:
                    pass
        served.open_gate("only")
        assert first.response().status == 200
        served.until(lambda: len(served.http.connections) == 1)

"""A server that stops: what runs is finished, what waits is closed, nothing is left."""

from __future__ import annotations

import threading
import time

import pytest

import trunkline.server.runtime.http_listener as http_listener
from tests.faults.http.serving import (
    WAIT,
    Closed,
    Served,
    Session,
    call,
    make_app,
    serving,
    single,
    single_headers,
    text_of,
)
from tests.rigs import leaks
from tests.rigs.messages import META
from trunkline import ServerLimits


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_listener, "_FLUSH_TIMEOUT_S", 0.3)


def stop(served: Served) -> None:
    http, pause = served.http, threading.Event()
    deadline = time.monotonic() + WAIT
    served.listener.stop()
    # Read from here: the event loop may have ended with the server before it is asked.
    while not http.is_stopping:
        assert time.monotonic() < deadline, "the server does not stop"
        pause.wait(0.005)


def test_idle_connections_are_closed() -> None:
    with serving() as served:
        fresh, used = served.connect(), served.connect()
        assert used.ask(used.head("GET", "/healthz")).status == 200
        stop(served)
        assert fresh.is_closed
        assert used.is_closed
        for wire in (fresh, used):
            wire.close()


def test_running_calls_are_answered() -> None:
    with serving() as served:
        session = Session(served)
        wires = [served.connect() for _ in range(3)]
        wires[0].send(single(wires[0], "held", key="single"))
        message = call("tools/call", name="held", arguments={"key": "session"})
        wires[1].send(session.post(wires[1], message))
        wires[2].send(single(wires[2], "held", token="t", key="stream", says=1))
        wires[2].start()
        assert wires[2].message()["params"]["progress"] == 1
        served.until(lambda: len(served.journal.begun) == 3)
        stop(served)
        for key in ("single", "session", "stream"):
            served.open_gate(key)
        assert text_of(wires[0].response().json) == "held single"
        assert text_of(wires[1].response().json) == "held session"
        assert text_of(wires[2].message()) == "held stream"
        assert wires[2].event() is None
        for wire in wires:
            assert wire.is_closed
            wire.close()


def test_call_still_running_after_the_grace_is_cancelled_and_answered() -> None:
    app, journal = make_app(limits=ServerLimits(grace=0.2))
    with serving(app, journal) as served, served.connect() as wire:
        wire.send(single(wire, "held", key="endless"))
        served.until(lambda: "endless" in journal.begun)
        stop(served)
        answer = wire.response()
        assert answer.status in (200, 500, 503)
        if answer.body:
            assert "error" in answer.json
    assert journal.cancelled == ["endless"]


def test_streams_of_sessions_end() -> None:
    with serving() as served:
        session = Session(served)
        with served.connect() as wire:
            wire.send(session.get(wire))
            wire.start()
            assert wire.event() is not None
            stop(served)
            assert wire.event() is None
            assert wire.is_closed


def test_a_client_that_listens_gets_the_final_result() -> None:
    app, journal = make_app()
    with serving(app, journal) as served, served.connect() as wire:
        params = {"notifications": {"toolsListChanged": True}, "_meta": META}
        message = call("subscriptions/listen", "ears", **params)
        wire.send(wire.post(message, single_headers("subscriptions/listen")))
        assert wire.start().header("content-type") == "text/event-stream"
        assert wire.message()["method"] == "notifications/subscriptions/acknowledged"
        stop(served)
        final = wire.message()
        assert (final["id"], "result" in final) == ("ears", True)
        assert wire.event() is None


@pytest.mark.parametrize("cut", [20, -5], ids=["head", "body"])
def test_a_request_that_was_read_in_part_does_not_hold_up_the_end(cut: int) -> None:
    with serving() as served, served.connect() as wire:
        wire.send(single(wire, "echo", text="in part")[:cut])
        served.until(lambda: any(each.reader.is_reading for each in served.http.connections))
        stop(served)
        try:
            assert wire.response().status in (408, 503)
        except Closed:
            pass
        assert wire.rest() == b""
    assert served.journal.begun == []


def test_a_request_on_a_stopping_server_is_refused_or_closed() -> None:
    with serving() as served:
        session = Session(served)
        with served.connect() as running, served.connect() as wire:
            running.send(single(running, "held", key="last") + single(running, "echo", text="no"))
            served.until(lambda: "last" in served.journal.begun)
            wire.send(session.post(wire, call("tools/call", name="echo", arguments={}))[:-5])
            served.until(lambda: sum(e.reader.is_reading for e in served.http.connections) == 1)
            stop(served)
            wire.try_send(b"x" * 5)
            served.open_gate("last")
            answer = running.response()
            assert text_of(answer.json) == "held last"
            assert running.response().status == 503
            assert running.is_closed
            try:
                assert wire.response().status in (400, 404, 503)
            except Closed:
                pass
    assert "no" not in served.journal.begun


def test_a_client_that_does_not_read_does_not_hold_up_the_end() -> None:
    with serving() as served, served.connect(buffer=4096) as wire:
        wire.send(single(wire, "big", size=8 * 1024 * 1024))
        served.until(lambda: any(each._is_slow for each in served.http.connections))
        stop(served)


def test_nothing_is_left_after_everything_at_once() -> None:
    with leaks.nothing_left(), serving() as served:
        session = Session(served)
        wires = [served.connect() for _ in range(5)]
        wires[0].send(single(wires[0], "held", key="never"))
        wires[1].send(session.get(wires[1]))
        wires[2].send(single(wires[2], "echo", text="x")[:-3])
        wires[3].send(b"GET /h")
        served.until(lambda: "never" in served.journal.begun)
        served.listener.stop(at_once=True)
        for wire in wires:
            wire.rest()
            wire.close()

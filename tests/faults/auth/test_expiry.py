"""What stays open ends with the token that opened it, and a session goes on with another one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.faults.auth.issuing import ANN, auth
from tests.faults.http.serving import (
    Closed,
    Served,
    Session,
    call,
    make_app,
    serving,
    single_headers,
    text_of,
)
from tests.faults.http.test_websocket import CLOSE, got, opened, text, tool
from tests.rigs.messages import META
from trunkline import HttpSettings
from trunkline.transports.http.endpoint import exchange
from trunkline.transports.websocket import server as websocket

TICK = 0.05


class ServerClock:
    """The time of the server, which a test sets forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead

    def token(self) -> list[tuple[str, str]]:
        """Return a token that is valid for some minutes."""
        return ANN.headers(lifetime=self.ahead + 600)

    def pass_expiry(self) -> None:
        """Let every token expire that was made so far."""
        self.ahead += 1000


@pytest.fixture(scope="module")
def clock() -> ServerClock:
    return ServerClock()


@pytest.fixture(scope="module")
def served(clock: ServerClock) -> Iterator[Served]:
    app, journal = make_app()
    settings = HttpSettings(old_sse=True, websocket=True)
    with pytest.MonkeyPatch.context() as patch:
        for module in (exchange, websocket):
            patch.setattr(module, "time", SimpleNamespace(time=clock))
        with serving(app, journal, http=settings, auth=auth(clock), tick=TICK) as found:
            yield found


def test_the_stream_of_a_single_request_ends_and_its_handler_is_cancelled(
    served: Served, clock: ServerClock
) -> None:
    key = "expires alone"
    with served.connect() as wire:
        params = {"name": "held", "arguments": {"key": key, "says": 1}}
        message = call("tools/call", **params, _meta={**META, "progressToken": 1})
        headers = [*single_headers("tools/call", "held"), *clock.token()]
        wire.send(wire.post(message, headers))
        assert wire.start().status == 200
        assert wire.message()["method"] == "notifications/progress"
        clock.pass_expiry()
        assert wire.message() is None
        served.until(lambda: key in served.journal.cancelled)
        # The connection can be used with another token.
        assert wire.ask(wire.head("GET", "/mcp", clock.token())).status == 400


def test_subscriptions_end(served: Served, clock: ServerClock) -> None:
    with served.connect() as wire:
        wanted = {"toolsListChanged": True}
        message = call("subscriptions/listen", notifications=wanted, _meta=META)
        headers = [*single_headers("subscriptions/listen"), *clock.token()]
        wire.send(wire.post(message, headers))
        assert wire.start().status == 200
        assert wire.message()["method"] == "notifications/subscriptions/acknowledged"
        clock.pass_expiry()
        assert wire.message() is None
    served.until(lambda: not any(served.listener._app.services.streams._listeners.values()))


def test_a_stream_of_a_session_ends_and_is_resumed_with_another_token(
    served: Served, clock: ServerClock
) -> None:
    key = "goes on"
    ann = Session(served, clock.token())
    with served.connect() as wire:
        given = {"name": "held", "arguments": {"key": key, "says": 1}}
        message = call("tools/call", "c", **given, _meta={"progressToken": 1})
        wire.send(ann.post(wire, message, [("Accept", "text/event-stream")]))
        assert wire.start().status == 200
        clock.pass_expiry()
        last = ""
        while (event := wire.event()) is not None:
            last = event.get("id", last)
    # The old token is of no use, and the session is still there.
    assert ann.call("echo", text="x").status == 401
    ann.extra = clock.token()
    assert ann.call("echo", text="x").status == 200
    assert key not in served.journal.cancelled
    with ann.resume(last) as resumed:
        assert resumed.start().status == 200
        served.open_gate(key)
        assert text_of(resumed.message()) == f"held {key}"


def test_a_stream_opened_by_get_ends(served: Served, clock: ServerClock) -> None:
    ann = Session(served, clock.token())
    with served.connect() as wire:
        wire.send(ann.get(wire))
        assert wire.start().status == 200
        clock.pass_expiry()
        while wire.event() is not None:
            pass
    ann.extra = clock.token()
    assert ann.call("echo", text="x").status == 200


def test_an_old_stream_ends_and_its_address_with_it(served: Served, clock: ServerClock) -> None:
    with served.connect() as wire:
        headers = [("Accept", "text/event-stream"), *clock.token()]
        wire.send(wire.head("GET", "/sse", headers))
        assert wire.start().status == 200
        event = wire.event()
        assert event is not None
        clock.pass_expiry()
        assert wire.event() is None
    with served.connect() as wire:
        again = wire.post(call("ping"), clock.token(), target=event["data"])
        assert wire.ask(again).status == 404


def test_a_websocket_ends_with_its_own_status(served: Served, clock: ServerClock) -> None:
    with opened(served, clock.token()) as wire:
        key = "on a websocket"
        wire.send(text(tool("held", 1, key=key)))
        served.until(lambda: key in served.journal.begun)
        clock.pass_expiry()
        closing = got(wire)
        while closing.opcode != CLOSE:
            closing = got(wire)
        assert int.from_bytes(closing.data[:2], "big") == 3000
        with pytest.raises(Closed):
            wire.exactly(1)
    served.until(lambda: key in served.journal.cancelled)


def test_a_request_that_is_served_when_its_token_ends_is_answered(
    served: Served, clock: ServerClock
) -> None:
    """It was admitted, and its response is not an open stream."""
    key = "answered late"
    with served.connect() as wire:
        params = {"name": "held", "arguments": {"key": key}}
        message = call("tools/call", **params, _meta=META)
        headers = [
            *single_headers("tools/call", "held"),
            ("Accept", "application/json"),
            *clock.token(),
        ]
        wire.send(wire.post(message, headers))
        served.until(lambda: key in served.journal.begun)
        clock.pass_expiry()
        # Some looks at timeouts later it still waits.
        looked = served.http.now
        served.until(lambda: served.http.now > looked + 2 * TICK)
        served.open_gate(key)
        assert text_of(wire.response().json) == f"held {key}"

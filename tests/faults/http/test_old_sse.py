"""HTTP+SSE of 2024-11-05: whose stream it is, and what is sent where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.http.serving import (
    BY_HEADER,
    Served,
    call,
    make_app,
    notification,
    serving,
    text_of,
    user,
)
from trunkline import HttpSettings

OLD = "2024-11-05"


@pytest.fixture(scope="module")
def old() -> Iterator[Served]:
    app, journal = make_app()
    with serving(app, journal, http=HttpSettings(old_sse=True), auth=BY_HEADER) as found:
        yield found


class Stream:
    """A client of the old transport."""

    def __init__(self, served: Served, name: str) -> None:
        self.served, self.name = served, name
        self.wire = served.connect()
        headers = [("Accept", "text/event-stream"), *user(name)]
        self.wire.send(self.wire.head("GET", "/sse", headers))
        assert self.wire.start().status == 200
        event = self.wire.event()
        assert event is not None
        assert event["event"] == "endpoint"
        self.target = event["data"]
        info = {"name": "tests", "version": "1"}
        params: dict[str, Any] = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": info}
        assert self.post(call("initialize", 0, **params)) == 202
        assert self.wire.message()["result"]["protocolVersion"] == OLD
        assert self.post(notification("notifications/initialized")) == 202

    def post(self, message: Any, name: str | None = None) -> int:
        with self.served.connect() as wire:
            headers = user(self.name if name is None else name)
            answer = wire.ask(wire.post(message, headers, target=self.target))
            assert b"result" not in answer.body
            return answer.status


def test_answers_come_on_the_stream_alone(old: Served) -> None:
    alice, bob = Stream(old, "alice"), Stream(old, "bob")
    for each in (alice, bob, alice):
        message = call("tools/call", 1, name="echo", arguments={"text": f"for {each.name}"})
        assert each.post(message) == 202
        assert text_of(each.wire.message()) == f"for {each.name}"
    for each in (alice, bob):
        each.wire.close()


def test_messages_of_another_principal_are_404(old: Served) -> None:
    alice = Stream(old, "alice")
    stolen = call("tools/call", 1, name="echo", arguments={"text": "stolen"})
    for name in ("bob", "Alice", ""):
        assert alice.post(stolen, name) == 404
    assert alice.post(stolen, "nobody") == 401
    with old.connect() as wire:
        for target in ("/messages", "/messages?session_id=", "/messages?session_id=x"):
            answer = wire.ask(wire.post(stolen, user("alice"), target=target))
            assert answer.status == 404
        twice = f"{alice.target}&session_id=x"
        assert wire.ask(wire.post(stolen, user("alice"), target=twice)).status == 404
    alice.wire.close()
    assert old.on_loop(lambda: "stolen" not in old.journal.begun)


def test_bad_message_does_not_end_the_sse_stream(old: Served) -> None:
    alice = Stream(old, "alice")
    for message in (
        b"{",
        b"",
        {"jsonrpc": "2.0", "id": 5, "result": {}},
        {"jsonrpc": "2.0", "id": 5, "error": {}},
        {"jsonrpc": "2.0", "method": 5},
        [],
    ):
        assert alice.post(message) in (202, 400), message
    message = call("tools/call", "after", name="echo", arguments={"text": "after"})
    assert alice.post(message) == 202
    while (found := alice.wire.message())["id"] != "after":
        assert "error" in found
    assert text_of(found) == "after"
    alice.wire.close()


def test_closing_the_stream_ends_the_session(old: Served) -> None:
    alice = Stream(old, "alice")
    message = call("tools/call", 1, name="held", arguments={"key": "old stream"})
    assert alice.post(message) == 202
    old.until(lambda: "old stream" in old.journal.begun)
    alice.wire.close()
    old.until(lambda: "old stream" in old.journal.cancelled)
    assert alice.post(message) == 404


def test_methods_and_types_of_the_old_paths(old: Served) -> None:
    with old.connect() as wire:
        for method, target, status in (
            ("POST", "/sse", 405),
            ("DELETE", "/sse", 405),
            ("GET", "/messages", 405),
            ("PUT", "/messages", 405),
        ):
            assert wire.ask(wire.head(method, target)).status == status, (method, target)
        accept = [("Accept", "application/json")]
        assert wire.ask(wire.head("GET", "/sse", accept)).status == 406
    with old.connect() as wire:
        kind = [("Content-Type", "text/plain")]
        assert wire.ask(wire.post(b"{}", kind, target="/messages")).status == 415

"""Streams of the HTTP client that are opened by GET: of a session, and to resume."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import trunkline.transports.http.client.stream as stream_module
from tests.http_client.stub_server import (
    SESSION,
    Answer,
    Asked,
    McpStub,
    event,
    head_of,
    reply_to,
    tool_text,
)
from tests.rigs.turns import Turns
from tests.unit.transports.http.client.test_post import nth, play, succeeds
from trunkline import Client, HttpOptions
from trunkline.errors import ConnectionLost
from trunkline.transports.http.client.transport import HttpTransport

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
CAPABLE: dict[str, Any] = {"tools": {"listChanged": True}}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a millisecond where a server did not ask for a delay."""
    monkeypatch.setattr(stream_module, "RECONNECT_S", 0.001)
    monkeypatch.setattr(stream_module, "_LONGEST_RECONNECT_S", 0.001)


def test_a_lost_stream_of_a_session_is_opened_again_after_its_last_event() -> None:
    told: list[Any] = []
    stub = McpStub(SESSION, capabilities=CAPABLE)

    def first(asked: Asked) -> None:
        asked.stream("id: a-1\nretry: 7\ndata:\n\n", event(CHANGED, id="a-2"), ends=False)
        asked.drop()

    def second(asked: Asked) -> None:
        asked.stream(event(CHANGED, id="a-3"), ends=False)

    async def script(client: Client) -> None:
        await stub.until(lambda: len(told) == 2)
        await succeeds(client)

    nth(stub, "GET", first, second)
    events = play(stub, script, on_list_changed=lambda *_: told.append(True))
    assert events == [("reconnect", "the stream of the session, in 0.007 s")]
    one, two = stub.asked("GET")
    assert "last-event-id" not in one.headers
    assert two.headers["last-event-id"] == "a-2"
    assert {each.headers["accept"] for each in (one, two)} == {"text/event-stream"}
    assert {each.headers["mcp-session-id"] for each in (one, two)} == {"s1"}


def test_lost_stream_without_event_ids_reports_a_change_after_reconnect() -> None:
    told: list[str] = []
    held: list[Asked] = []
    stub = McpStub(SESSION, capabilities={**CAPABLE, "resources": {"subscribe": True}})
    stub.on["resources/subscribe"] = lambda asked: asked.result({})

    def hold(asked: Asked) -> None:
        asked.stream(": without ids\n\n", ends=False)
        held.append(asked)

    async def script(client: Client) -> None:
        await client.subscribe("file:///a")
        await stub.until(lambda: len(held) == 1)
        assert told == []
        held[0].drop()
        await stub.until(lambda: len(told) == 2)

    stub.on["GET"] = hold
    play(
        stub,
        script,
        on_list_changed=lambda kind: told.append(kind),
        on_resource_updated=lambda uri: told.append(uri),
    )
    assert sorted(told) == ["file:///a", "tools"]


@pytest.mark.parametrize("revision", ["2025-03-26", SESSION])
def test_a_server_without_a_stream_is_not_asked_again(revision: str) -> None:
    stub = McpStub(revision)

    async def script(client: Client) -> None:
        await stub.until(lambda: bool(stub.asked("GET")))
        await succeeds(client)

    assert play(stub, script) == []
    assert len(stub.asked("GET")) == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda asked: asked.status(500),
        lambda asked: asked.status(200, {"Content-Type": "text/html"}, "<html>"),
        Asked.drop,
    ],
)
def test_a_stream_that_cannot_be_opened_is_given_up_and_calls_go_on(answer: Any) -> None:
    events: list[tuple[str, str]] = []
    stub = McpStub(SESSION)
    stub.on["GET"] = answer

    async def script(client: Client) -> None:
        await stub.until(lambda: any(kind == "given-up" for kind, _ in events))
        await succeeds(client)

    options = HttpOptions(reconnects=2)
    play(stub, script, http=options, on_event=lambda *it: events.append(it))
    assert [kind for kind, _ in events] == ["reconnect"] * 3 + ["given-up"]
    assert len(stub.asked("GET")) == 3


def test_a_stream_answered_with_404_ends_the_session_and_the_next_call_begins_another() -> None:
    stub = McpStub(SESSION)
    nth(stub, "GET", lambda asked: asked.status(404), lambda asked: asked.status(405))

    async def script(client: Client) -> None:
        await stub.until(lambda: not client.is_connected)
        await succeeds(client)

    assert play(stub, script) == [("session-lost", "the server has ended the session")]
    assert [each.headers["mcp-session-id"] for each in stub.asked("tools/call")] == ["s2"]


def test_a_stream_that_brings_nothing_is_not_reopened_as_fast_as_the_server_closes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_module, "RECONNECT_S", 30.0)
    monkeypatch.setattr(stream_module, "_LONGEST_RECONNECT_S", 30.0)
    monkeypatch.setattr("trunkline.concurrency.backoff._uniform", lambda: 1.0)
    events: list[tuple[str, str]] = []
    stub = McpStub(SESSION)
    stub.on["GET"] = lambda asked: asked.stream("retry: 0\n\n")

    async def script(client: Client) -> None:
        await stub.until(lambda: bool(events))
        await succeeds(client)

    play(stub, script, on_event=lambda *it: events.append(it))
    assert events == [("reconnect", "the stream of the session, in 30 s")]


def test_a_server_cannot_ask_for_no_delay_or_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "_LONGEST_RECONNECT_S", 30.0)
    assert [stream_module.longest_wait(each) for each in (0, 2, 1e9)] == [0.1, 2, 30]


def test_an_event_that_was_cut_is_read_from_the_stream_that_follows() -> None:
    told: list[Any] = []
    stub = McpStub(SESSION, capabilities=CAPABLE)

    def cut(asked: Asked) -> None:
        asked.stream("id: a-1\ndata:\n\n", 'id: a-2\ndata: {"json', ends=False)
        asked.drop()

    async def script(client: Client) -> None:
        await stub.until(lambda: bool(told))

    nth(stub, "GET", cut, lambda asked: asked.stream(event(CHANGED, id="a-2"), ends=False))
    play(stub, script, on_list_changed=lambda *_: told.append(True))
    assert stub.asked("GET")[1].headers["last-event-id"] == "a-1"


def test_the_stream_of_a_session_takes_no_connection_of_calls() -> None:
    stub = McpStub(SESSION)
    stub.on["GET"] = lambda asked: asked.stream(": open\n\n", ends=False)

    async def script(client: Client) -> None:
        await stub.until(lambda: bool(stub.asked("GET")))
        await succeeds(client)

    play(stub, script, http=HttpOptions(connections=1))


@pytest.mark.parametrize("status", [200, 404])
def test_a_body_without_end_that_does_not_count_is_not_read_to_its_end(status: int) -> None:
    stub = McpStub(SESSION)

    def endless(asked: Asked) -> None:
        asked.send(head_of(status, {"Transfer-Encoding": "chunked"}))
        for _ in range(100):
            asked.chunk("x" * 1000)

    stub.on["DELETE"] = endless
    nth(stub, "GET", endless, lambda asked: asked.status(405))

    async def script(client: Client) -> None:
        await stub.until(lambda: bool(stub.asked("GET")))
        gone = stub.asked("GET")[0]
        await stub.until(lambda: gone.writer.transport.is_closing())

    play(stub, script)


# -- resuming --------------------------------------------------------------------------------


def resuming(stub: McpStub, *gets: Any) -> None:
    """Cut the stream of each call after its first event, and answer the GETs that resume it."""
    answers = list(gets)

    def get(asked: Asked) -> object:
        if "last-event-id" not in asked.headers:
            return asked.status(405)
        return (answers.pop(0) if len(answers) > 1 else answers[0])(asked)

    stub.on["tools/call"] = lambda asked: asked.stream("id: a-1\nretry: 1\ndata:\n\n")
    stub.on["GET"] = get


def resumed_with(stub: McpStub) -> list[str]:
    gets = stub.asked("GET")
    return [each.headers["last-event-id"] for each in gets if "last-event-id" in each.headers]


def test_stream_is_resumed_after_the_delay_that_the_server_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stub, slept, sleep = McpStub(SESSION), list[float](), asyncio.sleep

    async def note(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    monkeypatch.setattr(stream_module, "_LONGEST_RECONNECT_S", 30.0)

    def answer(asked: Asked) -> None:
        asked.stream(event(reply_to(stub.asked("tools/call")[0], tool_text("done"))))

    resuming(stub, answer)
    stub.on["tools/call"] = lambda asked: asked.stream("id: a-1\nretry: 2500\ndata:\n\n")
    play(stub, succeeds)
    assert 2.5 in slept


def test_a_stream_is_resumed_as_often_as_it_makes_progress() -> None:
    stub = McpStub(SESSION)

    def answer(asked: Asked) -> None:
        call = stub.asked("tools/call")[0]
        asked.stream(event(reply_to(call, tool_text("done")), id="end"))

    def step(number: int) -> Answer:
        return lambda asked: asked.stream(f"id: a-{number}\ndata:\n\n")

    resuming(stub, *map(step, range(2, 6)), answer)
    events = play(stub, succeeds, http=HttpOptions(reconnects=1))
    assert events == [("resume", "tools/call, in 0.001 s")] * 5
    assert resumed_with(stub) == ["a-1", "a-2", "a-3", "a-4", "a-5"]


def test_an_answer_that_was_cut_is_read_from_the_stream_that_resumes_it() -> None:
    stub = McpStub(SESSION)

    def answer(asked: Asked) -> None:
        call = stub.asked("tools/call")[0]
        asked.stream(event(reply_to(call, tool_text("done")), id="a-2"), ends=False)

    def cut(asked: Asked) -> None:
        asked.stream("id: a-1\ndata:\n\n", 'id: a-2\ndata: {"jsonrpc":', ends=False)
        asked.drop()

    resuming(stub, answer)
    stub.on["tools/call"] = cut
    play(stub, succeeds)
    assert resumed_with(stub) == ["a-1"]


@pytest.mark.parametrize(
    ("answer", "text", "count"),
    [
        (lambda asked: asked.stream(": nothing\n\n"), "ended before its answer", 2),
        (Asked.drop, "ended before its answer", 2),
        (lambda asked: asked.status(405), "cannot be resumed: status 405", 1),
        (lambda asked: asked.status(200), "cannot be resumed: status 406", 1),
    ],
)
def test_a_stream_that_cannot_be_resumed_is_an_error_of_its_call(
    answer: Any, text: str, count: int
) -> None:
    stub = McpStub(SESSION)
    resuming(stub, answer)

    async def script(client: Client) -> None:
        with pytest.raises(ConnectionLost, match=f"{text}.*; its outcome is unknown"):
            await client.call_tool("echo")
        stub.on["tools/call"] = lambda asked: asked.text("done")
        await succeeds(client)

    play(stub, script, http=HttpOptions(reconnects=2))
    assert len(resumed_with(stub)) == count
    assert len(stub.asked("tools/call")) == 2


def test_a_stream_without_event_ids_is_not_resumed() -> None:
    stub = McpStub(SESSION)
    stub.on["tools/call"] = lambda asked: asked.stream(": nothing\n\n")

    async def script(client: Client) -> None:
        with pytest.raises(ConnectionLost, match="outcome is unknown"):
            await client.call_tool("echo")

    assert play(stub, script) == []
    assert resumed_with(stub) == []


def test_an_event_id_that_would_end_its_line_is_not_one() -> None:
    stub = McpStub(SESSION)

    def call(asked: Asked) -> None:
        asked.stream("id: a\x00b\ndata:\n\n")

    stub.on["tools/call"] = call

    async def script(client: Client) -> None:
        with pytest.raises(ConnectionLost):
            await client.call_tool("echo")

    play(stub, script)
    assert resumed_with(stub) == []


def test_a_client_closes_while_a_stream_is_open_and_another_waits() -> None:
    stub = McpStub(SESSION)
    stub.on["GET"] = lambda asked: asked.stream(": open\n\n", ends=False)
    stub.on["tools/call"] = lambda asked: asked.send(
        head_of(200, {"Content-Type": "text/event-stream"})
    )

    async def script(client: Client) -> None:
        call = asyncio.create_task(client.call_tool("echo"))
        await stub.until(lambda: bool(stub.asked("tools/call") and stub.asked("GET")))
        await client.close()
        with pytest.raises(ConnectionLost):
            await call
        await stub.until(lambda: stub.open == 0)

    play(stub, script)


@pytest.mark.parametrize("kind", ["GET", "tools/call"])
def test_turn_of_a_client_is_bounded_in_a_flood_of_events(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns()
    stub = McpStub(SESSION, capabilities=CAPABLE)
    deliver = HttpTransport.deliver

    def counted(self: HttpTransport, frame: Any, *args: Any) -> None:
        turns.add(frame)
        deliver(self, frame, *args)

    def flood(asked: Asked) -> None:
        asked.stream("data: {\x00\n\n" * 20_000, event(CHANGED), ends=False)
        if kind != "GET":
            asked.chunk(event(reply_to(asked, tool_text("done"))))
            asked.send(b"0\r\n\r\n")

    told: list[Any] = []

    async def script(client: Client) -> None:
        turns.start()
        if kind == "GET":
            await stub.until(lambda: bool(told))
        await succeeds(client)
        turns.stop()

    monkeypatch.setattr(HttpTransport, "deliver", counted)
    stub.on[kind] = flood
    play(stub, script, on_list_changed=lambda *_: told.append(True))
    assert told
    turns.check(f"events of {kind}")

"""Floods: one client takes all it can get of one kind of thing, beside quiet clients.

    with crowd("addresses") as made, ExitStack() as stack:
        threads(made, made.flooding, stack)
        made.check()

A client is an address, or a principal. The server is our own, or an ASGI application in uvicorn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from tests.faults.http.asgi_serving import asgi_serving
from tests.faults.http.serving import (
    BY_HEADER,
    Caller,
    Closed,
    Journal,
    Served,
    Session,
    Wire,
    call,
    make_app,
    serving,
    text_of,
)
from tests.rigs.messages import initialize_params
from trunkline import HttpLimits, HttpSettings, Server, ServerLimits
from trunkline.auth import AuthSettings, Tenants

# Turns of the event loop until a quiet client has its answer, at most.
TURNS: Final = 50
SERVER: Final = ServerLimits(
    in_flight_overall=64,
    threads=8,
    waiting_for_thread=16,
    connection_bytes=4 << 20,
    server_bytes=8 << 20,
)
# Of an ASGI application, requests are what connections are of our own server.
HTTP: Final = HttpLimits(connections=60, requests=60, sessions=60, body_timeout=60.0)


def made() -> tuple[Server, Journal]:
    app, journal = make_app(limits=SERVER)

    @app.tool
    def block(key: str) -> str:
        """Wait on a thread until the gate opens."""
        asyncio.run_coroutine_threadsafe(journal.gate(key).wait(), journal.loop).result()
        return "unblocked"

    @app.tool
    def threaded(text: str) -> str:
        """Return the text, from a thread."""
        return text

    return app, journal


class Crowd:
    """A server, one client that floods it, another one, and quiet clients."""

    def __init__(self, served: Served, callers: list[Caller]) -> None:
        self.served = served
        self.flooding, self.other, *self.quiet = callers
        self.turns = 0
        served.on_loop(self._count_turns)

    def _count_turns(self) -> None:
        loop: Any = self.served.loop
        run_once = loop._run_once

        def counted() -> None:
            self.turns += 1
            run_once()

        loop._run_once = counted

    def check(self, *, threaded: bool = False) -> None:
        """Have every quiet client call tools, in both eras."""
        tool = "threaded" if threaded else "echo"
        for number, caller in enumerate(self.quiet):
            with caller.connect() as wire:
                before = self.turns
                answer = wire.ask(caller.single(wire, tool, text=f"single {number}"))
                assert answer.status == 200, answer
                assert text_of(answer.json) == f"single {number}"
                assert self.turns - before <= TURNS
            session = caller.session()
            with caller.connect() as wire:
                before = self.turns
                message = call("tools/call", 1, name=tool, arguments={"text": str(number)})
                answer = wire.ask(session.post(wire, message))
                assert answer.status == 200, answer
                assert text_of(answer.json) == str(number)
                assert self.turns - before <= TURNS
            with caller.connect() as wire:
                ended = wire.ask(wire.head("DELETE", "/mcp", session.headers))
                assert ended.status == 204

    def end(self) -> None:
        """Fail unless nothing is left of the clients, once their sessions have ended."""
        for session in list(self.served.endpoint.sessions):
            self.served.on_loop(session.on_end)
        self.served.until(self.is_empty, "an account is left, or holds something")

    def is_empty(self) -> bool:
        """Return True if no account is left, and nothing is held."""
        runtime = self.served.app._core.runtime
        return not (len(runtime.accounts) or runtime.in_flight or runtime.budget.used)


def by_address(served: Served) -> list[Caller]:
    return [Caller(served, f"127.0.0.{n}") for n in range(2, 8)]


def by_name(served: Served) -> list[Caller]:
    names = ("eve", "mallory", "ann", "bob", "cat", "dan")
    return [Caller(served, name=name) for name in names]


def behind_a_proxy(served: Served) -> list[Caller]:
    callers = [Caller(served) for _ in range(6)]
    for number, caller in enumerate(callers, 1):
        caller.headers = [("X-Forwarded-For", f"192.0.2.{number}")]
    return callers


class Apart(NamedTuple):
    """How clients are told apart."""

    callers: Callable[[Served], list[Caller]]
    auth: Any = None
    settings: HttpSettings = HttpSettings(old_sse=True)


APART: Final = {
    "addresses": Apart(by_address),
    "principals": Apart(by_name, BY_HEADER),
    "tenants": Apart(
        by_name,
        AuthSettings(
            verifiers=BY_HEADER.verifiers, required=False, tenants=Tenants(required=False)
        ),
    ),
    "forwarded": Apart(
        behind_a_proxy, settings=HttpSettings(old_sse=True, trusted_proxies=["127.0.0.1"])
    ),
}


@contextmanager
def crowd(apart: str, limits: HttpLimits = HTTP) -> Iterator[Crowd]:
    """Serve on our own server."""
    callers, auth, settings = APART[apart]
    app, journal = made()
    http = replace(settings, websocket=True)
    with serving(app, journal, http=http, limits=limits, auth=auth) as served:
        served.app = app
        journal.loop = served.loop
        yield Crowd(served, callers(served))


def crowd_with_few_requests(apart: str) -> AbstractContextManager[Crowd]:
    """Serve on our own server, where requests end before connections do."""
    return crowd(apart, replace(HTTP, requests=20))


@contextmanager
def asgi_crowd(apart: str) -> Iterator[Crowd]:
    """Serve an ASGI application."""
    callers, auth, settings = APART[apart]
    app, journal = made()
    with asgi_serving(app, journal, http=settings, limits=HTTP, auth=auth) as served:
        journal.loop = served.loop
        yield Crowd(served, callers(served))


Flood = Callable[[Crowd, Caller, ExitStack], None]


def status_of(wire: Wire) -> int:
    """Return the status of a response, or 0 if the connection ended without one."""
    try:
        return wire.start().status
    except Closed:
        return 0


def calls_by_single_requests(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(HTTP.connections):
        wire = stack.enter_context(caller.connect())
        wire.send(caller.single(wire, "held", key="flood"))


def calls_by_batches(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(4):
        session = Session(caller, caller.headers, "2025-03-26")
        batch = [call("tools/call", n, name="held", arguments={"key": "flood"}) for n in range(40)]
        wire = stack.enter_context(caller.connect())
        wire.send(session.post(wire, batch))


def threads(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(4):
        session = Session(caller, caller.headers, "2025-03-26")
        batch = [call("tools/call", n, name="block", arguments={"key": "flood"}) for n in range(20)]
        wire = stack.enter_context(caller.connect())
        wire.send(session.post(wire, batch))


def sessions(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(2 * HTTP.sessions):
        caller.session()


def connections(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(HTTP.connections + 5):
        stack.enter_context(caller.connect())


def streams(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(HTTP.connections + 5):
        try:
            session = caller.session()
        except (AssertionError, Closed):
            break  # it has its share
        wire = stack.enter_context(caller.connect())
        wire.send(session.get(wire))
        # Before that the connection is one of its address, not of its principal.
        status_of(wire)


def old_sse_streams(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(HTTP.connections + 5):
        wire = stack.enter_context(caller.connect())
        wire.send(wire.head("GET", "/sse", [*caller.headers, ("Accept", "text/event-stream")]))
        status_of(wire)


def unfinished_bodies(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(HTTP.connections - 10):
        wire = stack.enter_context(caller.connect())
        head = [("Content-Type", "application/json"), ("Content-Length", "1000000")]
        wire.try_send(wire.head("POST", "/mcp", [*caller.headers, *head]) + b"[" * 500_000)


def small_unfinished_bodies(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(HTTP.connections - 2):
        wire = stack.enter_context(caller.connect())
        head = [("Content-Type", "application/json"), ("Content-Length", "1000")]
        wire.try_send(wire.head("POST", "/mcp", [*caller.headers, *head]) + b"[")


def unread_answers(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(20):
        wire = stack.enter_context(caller.connect(buffer=4096))
        wire.send(caller.single(wire, "big", size=2 << 20))


def text_frame(message: dict[str, Any]) -> bytes:
    """Return a message as a text frame of a client, with a key that masks nothing."""
    data = json.dumps(message).encode()
    return b"\x81\xfe" + len(data).to_bytes(2, "big") + bytes(4) + data


def websocket(caller: Caller, stack: ExitStack) -> Wire:
    """Return a connection with a WebSocket and a session, unless the client has its share."""
    wire = stack.enter_context(caller.connect())
    asked = [
        *(("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")),
        ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ]
    wire.try_send(wire.head("GET", "/mcp", [*caller.headers, *asked]))
    if status_of(wire) == 101:
        wire.send(text_frame(call("initialize", 0, **initialize_params("2025-03-26"))))
        wire.until(b"serverInfo")
    return wire


def websockets(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(HTTP.connections + 5):
        websocket(caller, stack)


def calls_by_websockets(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(4):
        wire = websocket(caller, stack)
        for n in range(40):
            held = call("tools/call", n, name="held", arguments={"key": "flood"})
            wire.send(text_frame(held))


def unfinished_websocket_messages(crowd: Crowd, caller: Caller, stack: ExitStack) -> None:
    for _ in range(20):
        wire = websocket(caller, stack)
        # The head of a text frame of 1 MB, and half of that.
        head = b"\x81\xff" + (1_000_000).to_bytes(8, "big") + bytes(4)
        wire.try_send(head + b"x" * 500_000)


FLOODS: Final[list[Flood]] = [
    calls_by_single_requests,
    calls_by_batches,
    threads,
    sessions,
    connections,
    streams,
    old_sse_streams,
    unfinished_bodies,
    small_unfinished_bodies,
    unread_answers,
]
WEBSOCKET_FLOODS: Final[list[Flood]] = [
    websockets,
    calls_by_websockets,
    unfinished_websocket_messages,
]

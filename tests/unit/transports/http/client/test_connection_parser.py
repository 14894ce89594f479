"""One connection of an HTTP client, on a transport that is not a socket."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.transports.http.client.connection import HttpClientConnection

FIRST = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"
SECOND = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond"


class Wire:
    """A transport that takes everything, and notes whether it was closed."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True

    close = abort


class Handler:
    """Collects a response."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""
        self.is_complete = False
        self.lost: Exception | None = None

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status = status

    def on_data(self, data: bytes) -> None:
        self.body += data

    def on_complete(self) -> None:
        self.is_complete = True

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        self.lost = error


class Scene:
    """A connection, and what reaches it."""

    def __init__(self) -> None:
        self.freed: list[Any] = []
        buffer = memoryview(bytearray(64 * 1024))
        self.connection = HttpClientConnection(buffer, self.freed.append, lambda _: None)
        self.wire = Wire()
        self.connection.connection_made(self.wire)

    def ask(self) -> Handler:
        handler = Handler()
        self.connection.send(b"GET / HTTP/1.1\r\n\r\n", handler)
        return handler

    def receive(self, data: bytes) -> None:
        self.connection.get_buffer(0)[: len(data)] = data
        self.connection.buffer_updated(len(data))


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_connection_reads_one_response_after_another(step: int) -> None:
    scene = Scene()
    for response, body in ((FIRST, b"first"), (SECOND, b"second"), (FIRST, b"first")):
        handler = scene.ask()
        for at in range(0, len(response), step):
            scene.receive(response[at : at + step])
        assert (handler.status, handler.body, handler.is_complete) == (200, body, True)
    assert len(scene.freed) == 3
    assert scene.connection.is_usable


@pytest.mark.parametrize("size", [1, 10, 20, len(SECOND)])
def test_a_connection_is_closed_if_more_than_the_response_comes_with_it(size: int) -> None:
    scene = Scene()
    handler = scene.ask()
    scene.receive(FIRST + SECOND[:size])
    assert (handler.body, handler.is_complete) == (b"first", True)
    assert scene.wire.is_closed
    assert not scene.connection.is_usable


def test_a_connection_is_closed_if_a_response_comes_without_a_request() -> None:
    scene = Scene()
    scene.ask()
    scene.receive(FIRST)
    assert scene.connection.is_usable
    scene.receive(SECOND)
    assert not scene.connection.is_usable


def test_interim_responses_are_skipped_on_a_connection_that_is_used_again() -> None:
    scene = Scene()
    for _ in range(2):
        handler = scene.ask()
        scene.receive(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + FIRST)
        assert (handler.status, handler.body, handler.is_complete) == (200, b"first", True)
    assert scene.connection.is_usable

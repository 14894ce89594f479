"""One connection to an HTTP/1.1 server: a request at a time, and its response.

An `HttpClientConnection` writes requests that were encoded elsewhere and parses the responses with
httptools. A `ResponseHandler` gets the parts of a response as they arrive.

The rules that live here, and only here:

* A connection is used again only if the response said how long it is, ended, and nothing followed
  it.                                                               [RFC 9112, section 9.3]
* A response of no stated length ends with the connection.          [RFC 9112, section 6.3]
* Interim responses are skipped.                                    [RFC 9110, section 15.2]
* The head of a response is bounded in bytes, and so is what comes between parts of its body:
  trailers and extensions of chunks. The body is bounded by the handler.
* One turn of the event loop parses a bounded number of lines and bytes of an event stream, so that
  a server that sends many small events stops nothing else. The rest waits, and nothing is read
  meanwhile; see `receive_limits`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final, Protocol

import httptools

from ...receive_limits import MAX_BYTES_PER_TURN, MAX_MESSAGES_PER_TURN

__all__ = ["HttpClientConnection", "ResponseHandler"]

# The head of a response, or trailers; servers and proxies send a few hundred bytes.
_MAX_HEAD_BYTES: Final = 64 * 1024

_EVENTS: Final = b"text/event-stream"
# An event has two lines or more, one of them empty.
_MAX_LINES_PER_TURN: Final = 2 * MAX_MESSAGES_PER_TURN
# The shortest message takes 8 bytes of a stream: fewer bytes have no more than a turn may handle.
_FEW_BYTES: Final = 8 * MAX_MESSAGES_PER_TURN

# An event whose data may be a batch, each element of which is a message.
_BATCH: Final = re.compile(rb"data:[ \t]*+\[")

# What a connection is doing.
_IDLE: Final = 0
_WAITING: Final = 1  # nothing of the response has come
_HEAD: Final = 2
_BODY: Final = 3
_CLOSED: Final = 4
# Complete, until all that was read with it is parsed; and not to be used again.
_COMPLETE: Final = 5
_COMPLETE_LAST: Final = 6


class ResponseHandler(Protocol):
    """Takes one response."""

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Take the status and the headers, whose names are in lower case."""

    def on_data(self, data: bytes) -> None:
        """Take a part of the body."""

    def on_complete(self) -> None:
        """Note that the response is complete."""

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        """Note that the connection ended before the response was complete.

        `was_reused` is True if the connection had served a request before, `has_begun` if a
        byte of the response had come.
        """


class HttpClientConnection(asyncio.BufferedProtocol):
    """One connection, idle or with one request."""

    __slots__ = (
        "_at",
        "_handler",
        "_has_events",
        "_has_length",
        "_head_bytes",
        "_headers",
        "_is_behind",
        "_loss",
        "_on_free",
        "_on_lost",
        "_parser",
        "_rest",
        "_state",
        "_transport",
        "_uses",
        "buffer",
        "idle_since",
        "quiet",
    )

    def __init__(
        self,
        buffer: memoryview,
        on_free: Callable[[HttpClientConnection], object],
        on_lost: Callable[[HttpClientConnection], object],
    ) -> None:
        self.buffer = buffer
        # When it last became idle, for the pool.
        self.idle_since = 0.0
        # How often the pool has looked since a byte of the response came.
        self.quiet = 0
        self._on_free = on_free
        self._on_lost = on_lost
        self._transport: Any = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._handler: ResponseHandler | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._has_length = False
        self._has_events = False
        # What waits for the next turn, from a place on, and whether reading is paused for that; the
        # end of the connection, where it came before that was parsed.
        self._rest = b""
        self._at = 0
        self._is_behind = False
        self._loss: tuple[Exception | None] | None = None
        self._uses = 0
        self._state = _IDLE

    @property
    def is_usable(self) -> bool:
        """Whether a request can be sent."""
        return self._state == _IDLE and not self._transport.is_closing()

    @property
    def is_waiting(self) -> bool:
        """Whether a response is not complete."""
        return self._handler is not None

    @property
    def unsent(self) -> int:
        """The number of bytes that the system has not taken."""
        size: int = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return size

    def send(self, request: bytes, handler: ResponseHandler) -> None:
        """Send a request; the handler gets the response."""
        self._state = _WAITING
        self._handler = handler
        self._headers = []
        self._head_bytes = 0
        self._has_length = self._has_events = False
        self._uses += 1
        self.quiet = 0
        self._transport.write(request)

    def close(self) -> None:
        """Close; a request that waits is reported as lost, unless its handler was removed."""
        if self._transport is not None:
            self._transport.abort()

    def give_up(self, reason: str) -> None:
        """Close, and report that the response is lost."""
        self._fail(TimeoutError(reason))

    def forget(self) -> None:
        """Close without a word to the handler."""
        self._handler = None
        self.close()

    # -- asyncio -----------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        """End the response, or report that it is lost."""
        if self._is_behind and self._handler is not None:
            self._loss = (error,)  # after what had arrived
            return
        state, self._state = self._state, _CLOSED
        handler, self._handler = self._handler, None
        self._parser = None  # it refers to this connection
        self._on_lost(self)
        if handler is None:
            return
        if state == _BODY and error is None and not self._has_length:
            handler.on_complete()
        else:
            has_begun = state in (_HEAD, _BODY)
            handler.on_lost(error, was_reused=self._uses > 1, has_begun=has_begun)

    def eof_received(self) -> bool:
        """Close: nothing more will come."""
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to read to."""
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse what was read."""
        if self._handler is None:
            self.close()  # what follows a response, or comes without a request
            return
        self.quiet = 0
        if self._state == _WAITING:
            self._state = _HEAD
        if self._is_behind or (nbytes > _FEW_BYTES and (self._has_events or self._state == _HEAD)):
            self._rest += self.buffer[:nbytes]
            if not self._is_behind:
                self._take_turn()
            return
        # As `_parse`, without the call.
        self._head_bytes += nbytes
        try:
            self._parser.feed_data(self.buffer[:nbytes])
        except httptools.HttpParserError as error:
            self._fail(error)
        except httptools.HttpParserUpgrade:
            self._fail(None)
        else:
            if self._state >= _COMPLETE:
                self._end()
            elif self._head_bytes > _MAX_HEAD_BYTES:
                self._fail(None)

    def _parse(self, data: bytes) -> None:
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(error)
        except httptools.HttpParserUpgrade:
            self._fail(None)
        else:
            if self._state >= _COMPLETE:
                if self._at < len(self._rest):
                    self._state = _COMPLETE_LAST  # something followed it
                self._end()
            elif self._head_bytes > _MAX_HEAD_BYTES:
                self._fail(None)

    # -- turns -------------------------------------------------------------------------------

    def _take_turn(self) -> None:
        """Parse what one turn may handle of what was read; the rest waits for the next one."""
        self.quiet = 0
        was_behind, self._is_behind = self._is_behind, False
        while self._at < len(self._rest) and self._handler is not None and not self._is_behind:
            at, self._at = self._at, self._next_stop()
            self._parse(self._rest[at : self._at])
            self._is_behind = self._has_events and self._at < len(self._rest)
        if self._is_behind and self._handler is not None:
            if not was_behind:
                self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._take_turn)
            return
        self._rest, self._at, self._is_behind = b"", 0, False
        if self._loss is not None:
            self.connection_lost(*self._loss)
        elif was_behind and not self._transport.is_closing():
            self._transport.resume_reading()

    def _next_stop(self) -> int:
        """Return the end of what is parsed next: the head by itself, which tells what follows."""
        rest, at, stop = self._rest, self._at, len(self._rest)
        is_head = self._state == _HEAD
        if is_head or self._has_events:
            stop = min(stop, at + MAX_BYTES_PER_TURN)
            for line_end in (b"\n", b"\r"):
                stop = _end_of_lines(rest, line_end, at, stop)
            # A part of one event, or one alone, is one message, whatever it is.
            first = [rest.find(line_end, at, stop) for line_end in (b"\n", b"\r")]
            is_one = all(each < 0 or each >= stop - 4 for each in first)
            if not is_one and _BATCH.search(rest, at, stop) is not None:
                stop = _end_of_lines(rest, b",", at, stop)  # of elements, in this case
        if is_head:
            blank = rest.find(b"\r\n\r\n", at, stop)
            stop = stop if blank < 0 else blank + 4
        return stop

    def _end(self) -> None:
        """Report the end of a response, and be free for another request if nothing followed."""
        handler, self._handler = self._handler, None
        if self._state == _COMPLETE and not self._transport.is_closing():
            self._state = _IDLE
            self._on_free(self)
        else:
            self._state = _CLOSED
            self._transport.close()
        if handler is not None:
            handler.on_complete()

    def _fail(self, error: Exception | None) -> None:
        if self._state >= _COMPLETE:  # what followed is not HTTP
            self._state = _COMPLETE_LAST
            self._end()
            return
        handler, self._handler = self._handler, None
        self.close()
        if handler is not None:
            handler.on_lost(
                error or ValueError("not an HTTP response"), was_reused=False, has_begun=True
            )

    # -- httptools ---------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Close if this response follows the one that was asked for."""
        if self._state != _HEAD:
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        if self._state == _HEAD:
            name = name.lower()
            self._headers.append((name, value.rstrip(b" \t")))
            if name == b"content-length" or name == b"transfer-encoding":
                self._has_length = True
            elif name == b"content-type":
                self._has_events = value[: len(_EVENTS)].lower() == _EVENTS
        elif self._state == _COMPLETE:
            self._state = _COMPLETE_LAST

    def on_headers_complete(self) -> None:
        """Report the head, unless it is an interim one."""
        if self._state != _HEAD:
            self._state = _COMPLETE_LAST
            return
        status = self._parser.get_status_code()
        if status >= 200 and self._handler is not None:
            self._state = _BODY
            self._handler.on_head(status, self._headers)

    def on_body(self, data: bytes) -> None:
        """Report a part of the body."""
        self._head_bytes = 0
        if self._state == _BODY and self._handler is not None:
            self._handler.on_data(data)

    def on_message_complete(self) -> None:
        """Note the end; more may follow in what was read."""
        if self._state == _BODY:
            is_kept = self._parser.should_keep_alive()
            self._state = _COMPLETE if is_kept else _COMPLETE_LAST
        else:
            self._headers = []  # of an interim response


def _end_of_lines(data: bytes, line_end: bytes, at: int, stop: int) -> int:
    """Return where as many lines end as one turn may handle, or `stop` if there are fewer."""
    for _ in range(_MAX_LINES_PER_TURN):
        at = data.find(line_end, at, stop) + 1
        if not at:
            return stop
    return at

"""Stand between an HTTP client and its server, and record each message that goes by.

The recording is one that `trunkline validate` reads, with methods, statuses, headers and streams.
Bytes are passed on as they are, after they were recorded, so what answers a message comes later
in the recording too. Uses an HTTP parser, and neither of the libraries that talk.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TextIO

import httptools

__all__ = ["Relay"]

EVENTS: Final = "text/event-stream"
# Seconds for the rest of a response that its client does not wait for.
REST_TIMEOUT_S: Final = 1.0


class Relay:
    """A listener on a free port that forwards to the port of a server.

    Of HTTP+SSE, `is_old_sse`, only the messages are recorded: the judge knows Streamable HTTP. What
    a client posts to the address of the stream is how it finds out which of the two it is.
    """

    def __init__(self, port: int, path: Path, *, is_old_sse: bool = False) -> None:
        self._port = port
        self._is_old_sse = is_old_sse
        self._path = path
        self._recordings = 0
        self._file: TextIO
        self._streams = 0
        self._listener: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.begin_recording()

    def begin_recording(self) -> None:
        """Begin another recording: HTTP does not show where a client ends and the next begins."""
        self._recordings += 1
        if self._recordings > 1:
            self._file.close()
        name = f"{self._path}.{self._recordings}" if self._recordings > 1 else str(self._path)
        self._file = open(name, "w", encoding="utf-8")  # noqa: SIM115  # open until the exchange ends
        self._began = time.monotonic()
        self._put({"trunkline-trace": 1})

    async def __aenter__(self) -> Relay:
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    @property
    def url(self) -> str:
        """Where clients find the server, without a path."""
        assert self._listener is not None
        return f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        assert self._listener is not None
        self._listener.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)
        self._file.close()

    def _put(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._file.flush()

    def record(self, sender: str, stream: int, **members: Any) -> None:
        """Write one entry."""
        at = round(time.monotonic() - self._began, 4)
        if self._is_old_sse:
            is_probe = members.get("http", {}).get("path") == "/sse"
            is_message = sender == "client" or "event" in members
            if "raw" in members and is_message and not is_probe:
                self._put({"at": at, "from": sender, "transport": "sse", "raw": members["raw"]})
            return
        self._put({"at": at, "from": sender, "transport": "http", "stream": stream, **members})

    def next_stream(self) -> int:
        """Return the id of the next request."""
        self._streams += 1
        return self._streams

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        writers = [writer]
        try:
            inward, outward = await asyncio.open_connection("127.0.0.1", self._port)
            writers.append(outward)
            asked: deque[int] = deque()
            requests, responses = _Requests(self, asked), _Responses(self, asked)
            request_parser = httptools.HttpRequestParser(requests)
            response_parser = httptools.HttpResponseParser(responses)
            responses.parser, requests.parser = response_parser, request_parser
            copying = [
                asyncio.create_task(_copy(reader, outward, request_parser, inward.at_eof)),
                asyncio.create_task(_copy(inward, writer, response_parser, lambda: False)),
            ]
            try:
                await asyncio.wait(copying, return_when=asyncio.FIRST_COMPLETED)
                await responses.rest(copying[1])
            finally:
                for each in copying:
                    each.cancel()
                await asyncio.wait(copying)
        except (OSError, asyncio.CancelledError):
            pass  # the server is gone, or the exchange is over
        finally:
            # Whichever side went, the other is told at once: it may be how a request is cancelled.
            for side in writers:
                side.close()


async def _copy(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    parser: Any,
    is_gone: Callable[[], bool],
) -> None:
    try:
        while data := await reader.read(65536):
            if is_gone():
                # The server closed a connection that was idle: the client sends this again.
                return
            parser.feed_data(data)
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # one side went first


class _Message:
    """One side of a connection, as the parser reads it."""

    def __init__(self, relay: Relay, asked: deque[int]) -> None:
        self.relay = relay
        # The requests of this connection that have no whole response.
        self.asked = asked
        self.parser: Any = None
        self.on_message_begin()

    def on_message_begin(self) -> None:
        self.headers: dict[str, str] = {}
        self.body = b""
        self.path = ""

    def on_url(self, url: bytes) -> None:
        self.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        # The parser leaves blanks at the end, which are not part of the value. [RFC 9110, 5.5]
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip(" \t")

    def on_body(self, data: bytes) -> None:
        self.body += data


def _text(body: bytes) -> dict[str, str]:
    return {"raw": body.decode("utf-8", "backslashreplace")} if body else {}


class _Requests(_Message):
    def on_message_complete(self) -> None:
        stream = self.relay.next_stream()
        self.asked.append(stream)
        method = self.parser.get_method().decode("latin-1")
        http = {"method": method, "path": self.path, "headers": self.headers}
        self.relay.record("client", stream, http=http, **_text(self.body))


class _Responses(_Message):
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_first = True
        self._is_begun = False

    def on_headers_complete(self) -> None:
        self._is_begun = not self._is_stream

    async def rest(self, copying: asyncio.Task[None]) -> None:
        """Wait, not for long, for the rest of a response: a client may have read its head alone."""
        until = time.monotonic() + REST_TIMEOUT_S
        while self._is_begun and not copying.done() and time.monotonic() < until:
            await asyncio.sleep(0.005)

    @property
    def _http(self) -> dict[str, Any]:
        """The status and the headers, once for each response."""
        if not self._is_first:
            return {}
        self._is_first = False
        return {"http": {"status": self.parser.get_status_code(), "headers": self.headers}}

    @property
    def _is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith(EVENTS)

    def on_body(self, data: bytes) -> None:
        super().on_body(data)
        if self._is_stream:
            *events, self.body = self.body.replace(b"\r\n", b"\n").split(b"\n\n")
            for event in events:
                self._event(event.decode("utf-8", "backslashreplace"))

    def _event(self, text: str) -> None:
        fields: dict[str, list[str]] = {}
        for line in text.split("\n"):
            name, colon, value = line.partition(":")
            if name:
                fields.setdefault(name, []).append(value.removeprefix(" ") if colon else "")
        if not fields:
            return  # a comment that keeps the connection open
        event: dict[str, Any] = {
            name: fields[name][-1] for name in ("id", "event") if name in fields
        }
        if "retry" in fields:
            event["retry"] = int(fields["retry"][-1])
        data = "\n".join(fields.get("data", []))
        # The first event of HTTP+SSE is an address.
        raw = {"raw": data} if data and event.get("event", "message") == "message" else {}
        self.relay.record("server", self.asked[0], event=event, **self._http, **raw)

    def on_message_complete(self) -> None:
        if self.parser.get_status_code() < 200:
            return
        if self._is_stream:
            self.relay.record("server", self.asked[0], ends=True, **self._http)
        else:
            self.relay.record("server", self.asked[0], **self._http, **_text(self.body))
        self._is_begun = False
        self.asked.popleft()

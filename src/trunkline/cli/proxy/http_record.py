"""Records what passes over HTTP: requests, statuses, headers and streams, as entries of a trace.

The rules that live here, and only here:

* Only headers whose meaning is known are shown; the value of any other may be a secret. So may an
  argument that a header repeats: it is hidden if something in the message is.
* A request that is sent again is recorded once. A response without a message is an entry with an
  empty text.
* The head of a response is part of its first entry. All entries of one request share a stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ...redaction import HIDDEN, conceal

if TYPE_CHECKING:
    from ...jsonrpc.framing.sse import Event
    from ...judge.trace.reader import TraceEntry, TraceHttp
    from ...transports.base import Frame
    from ...transports.http.request import HttpRequest
    from .observer import ConnectionObserver

__all__ = ["HttpRecorder", "hide_params", "request_facts"]

# Headers whose values are shown, unless they look like a secret.
_SHOWN: Final = frozenset(
    (
        *("accept", "accept-encoding", "access-control-allow-origin", "allow", "cache-control"),
        *("connection", "content-encoding", "content-length", "content-type", "date", "host"),
        *("last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
        *("origin", "retry-after", "server", "transfer-encoding", "user-agent", "vary"),
        *("www-authenticate", "x-accel-buffering"),
    )
)
_PARAM: Final = "mcp-param-"
_HEAD_END: Final = b"\r\n\r\n"


def _facts(headers: Iterable[tuple[bytes, bytes]], **more: Any) -> TraceHttp:
    from ...judge.trace.reader import TraceHttp

    found: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        if name not in _SHOWN and not name.startswith(_PARAM):
            text = HIDDEN
        found[name] = f"{found[name]}, {text}" if name in found else text
    if "path" in more:
        more["path"] = str(conceal(more["path"]))
    # Hidden here, because the judge reads the entry before it is written.
    shown: Any = conceal(found)
    return TraceHttp(headers=shown, **more)


def hide_params(entry: TraceEntry) -> TraceEntry:
    """Return an entry without the headers that repeat arguments, if something in it is hidden."""
    http = entry.http
    if not entry.hidden or http is None or not http.headers:
        return entry
    hidden = {name: HIDDEN for name in http.headers if name.startswith(_PARAM)}
    return replace(entry, http=replace(http, headers={**http.headers, **hidden}))


def request_facts(request: HttpRequest) -> TraceHttp:
    """Return what is recorded of a request of a client."""
    path = request.path + (f"?{request.query}" if request.query else "")
    return _facts(request.headers, method=request.method, path=path)


class _Stream:
    """A request, and what is known of its response."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.head: TraceHttp | None = None


class HttpRecorder:
    """Records the requests to one server, for one connection of the proxy.

    With `records_requests` the messages of the client are recorded as they are sent. Without, they
    are recorded where they arrive over HTTP.
    """

    def __init__(
        self,
        observer: ConnectionObserver,
        *,
        records_requests: bool,
    ) -> None:
        self._observer = observer
        self._records_requests = records_requests
        self._streams: dict[object, _Stream] = {}
        # Streams of frames that are about to be sent, by the identity of the frame.
        self._expected: dict[int, int] = {}

    def expect(self, frame: Frame, stream: int) -> None:
        """Note the stream of a frame that arrived over HTTP and is about to be sent."""
        self._expected[id(frame)] = stream

    def unsent(self, frame: bytes) -> None:
        """Record a message of the client that cannot be sent."""
        if self._records_requests:
            self._observer.receive("client", frame)

    def on_request(self, origin: object, request: bytes) -> None:
        """Record a request."""
        if origin in self._streams:
            return  # it is sent again
        frame = getattr(origin, "frame", None)
        number = self._expected.pop(id(frame), None)
        if number is None:
            number = self._observer.new_stream()
        self._streams[origin] = _Stream(number)
        head, _, body = request.partition(_HEAD_END)
        first, *lines = head.split(b"\r\n")
        method, path, _ = first.decode("latin-1").split(" ")
        pairs = (line.partition(b": ") for line in lines)
        facts = _facts(((name, value) for name, _, value in pairs), method=method, path=path)
        if self._records_requests or frame is None:
            self._observer.receive("client", body, http=facts, stream=number)

    def on_response(self, origin: object, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Keep the head of a response for its first entry."""
        stream = self._streams.get(origin)
        if stream is not None:
            stream.head = _facts(headers, status=status)

    def on_frame(self, origin: object, frame: Frame, event: Event | None) -> None:
        """Record a message of the server."""
        stream = self._streams.get(origin)
        if stream is None:
            self._observer.receive("server", frame)
            return
        head, stream.head = stream.head, None
        about = None
        if event is not None:
            about = {"id": event.id, "event": event.event, "retry": event.retry}
            about = {name: value for name, value in about.items() if value is not None}
        self._observer.receive("server", frame, http=head, stream=stream.number, event=about)

    def on_end(self, origin: object) -> None:
        """Record a response without a message, once it is known to be one."""
        asyncio.get_running_loop().call_soon(self._ended, origin)

    def _ended(self, origin: object) -> None:
        self._expected.pop(id(getattr(origin, "frame", None)), None)  # it was never sent
        stream = self._streams.pop(origin, None)
        if stream is not None and stream.head is not None:
            self._observer.receive("server", b"", http=stream.head, stream=stream.number)

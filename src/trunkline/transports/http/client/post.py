"""One POST of a client: its headers, its response as JSON or events, and what is done if it fails.

The rules that live here, and only here:

* A request is sent again if the server cannot have acted on it: nothing was sent, the session was
  unknown, or it was refused with Retry-After. If a connection that was kept alive closes before
  any byte of the response, reads and idempotent calls are sent again, once. Otherwise the outcome
  is unknown, and the error says so.              [RFC 9110, section 9.2.2]
* A stream of a session that breaks is resumed by GET, after the delay that the server asked for.
                                                  [MCP 2025-11-25, basic/transports]
* A redirect is followed within the origin, with the same method: elsewhere it would carry the
  headers of the caller to a stranger. A session stays where its `initialize` led.
* An HTTP error with a JSON-RPC error in its body is the answer to the request, whatever its id;
  except for 401, and for 403 in answer to the first request: they say nothing of the era of the
  server, and end in `AuthorizationFailed`.
* The first request refused with 404 or 405, and by no message with its id, was not read: the URL
  is not that of an endpoint. The error says so, and no other URL is tried.
* A stream that the server leaves open after the answer is closed if others need its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET
from msgspec.json import encode

from ....concurrency.backoff import jittered
from ....errors import AuthorizationFailed, RemoteProtocolError, TransportError
from ....jsonrpc.framing.framing import Oversize, Pieces, head_size
from ....jsonrpc.framing.sse import Event, EventReader
from ....mcp.header_values import encode_header_value, header_text
from ....spec.mcp.methods import REPEATABLE_NOTIFICATIONS, REPEATABLE_REQUESTS
from ...addresses import path_advice
from .message import (
    UNREADABLE,
    SentFacts,
    SentMessage,
    error_in,
    error_text,
    read_arguments,
    read_messages,
)
from .stream import RECONNECT_S, GetStream, longest_wait

if TYPE_CHECKING:
    from ....mcp.param_headers import ParamPath
    from .authorization import RequestAuthorizer
    from .connection import HttpClientConnection
    from .transport import HttpTransport

__all__ = ["Post", "RequestLost"]

_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"
# Bytes of an error response that is not a JSON-RPC message; they are not shown.
_MAX_ERROR_BYTES: Final = 64 * 1024
# Seconds for the end of a response whose requests were cancelled by a message.
_CANCEL_GRACE_S: Final = 5.0
# Redirects that keep the method, and how many in a row.
_REDIRECTS: Final = (307, 308)
_MAX_REDIRECTS: Final = 3
# Statuses of a request that lacks a credential, or whose credential does not permit it.
_REFUSALS: Final = (401, 403)
# Requests that find the era of a server, of which a refusal tells nothing.
_OPENING: Final = ("server/discover", "initialize")
# Statuses with which a server of HTTP+SSE refuses `initialize`.  [MCP 2025-11-25, basic/transports]
_OLD_SERVER: Final = (400, 404, 405)
# Statuses of a path that has nothing, or something else than an endpoint.
_NO_ENDPOINT: Final = (404, 405)
# Characters of a name whose headers are kept: they are few, and repeated in most requests.
_MAX_CACHED_NAME: Final = 128


class RequestLost(TransportError):
    """A request that has no answer; `was_sent` is False if the server cannot have acted on it."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


# Why a request is lost whose response is complete.
_NO_ANSWER: Final = RequestLost("the response lacks an answer", was_sent=True)


class Post:
    """One POST, its response, and the streams that resume it."""

    # What most POSTs never change is kept in the class.
    _connection: HttpClientConnection | None = None
    _attempts = 0
    _retries = 0
    _status = 0
    _kind = b""
    _retry_after: float | None = None
    _location: bytes | None = None
    # Where it goes: the endpoint, or where a redirect led.
    _path: bytes | None = None
    _redirects = 0
    _session_id: bytes | None = None
    # The body of the response while it is one part, as most are; then its parts.
    _body = b""
    _pieces: Pieces | None = None
    _size = 0
    _reader: EventReader | None = None
    is_over = False
    # With credentials: the header lines that were sent, the headers of a refusal, and how often
    # it was sent again because of one.
    _credential = b""
    _refusal: list[tuple[bytes, bytes]] | None = None
    _repeats = 0
    _resumes = 0
    _resuming: asyncio.Task[Any] | None = None
    _timer: asyncio.Handle | None = None

    def __init__(self, transport: HttpTransport, frame: bytes, sent: SentFacts) -> None:
        self._transport = transport
        self.frame = frame
        self._sent = sent
        self.is_per_request = sent.version is not None
        self.ids = sent.ids
        self._answered: set[Any] = set()

    @property
    def _what(self) -> str:
        return self._sent.method or "a reply"

    def open_ids(self) -> list[Any]:
        """Return the ids of requests without an answer."""
        return [id for id in self.ids if id not in self._answered]

    # -- sending -----------------------------------------------------------------------------

    def start(self) -> None:
        """Send, on a connection that is idle or on a new one."""
        connection = self._transport.pool.take()
        if connection is not None:
            self._send(connection)
        else:
            self._transport.spawn(self._open())

    async def _open(self) -> None:
        try:
            # Requests in flight may wait for a reply or a notification.
            connection = await self._transport.pool.open(is_reserved=not self.ids)
        except TransportError as error:
            self._lose(RequestLost(error.reason, was_sent=False))
            return
        if self.is_over:
            self._transport.pool.release(connection)
        else:
            self._send(connection)

    def _send(self, connection: HttpClientConnection) -> None:
        transport = self._transport
        if transport.auth is not None:
            lines = transport.auth.headers("POST", transport.url_of(self._path))
            if lines is None:
                transport.pool.release(connection)
                transport.spawn(self._authorize(transport.auth))
                return
            self._credential = lines
        self._connection = connection
        self._attempts += 1
        if self._status or self._attempts > 1:
            # Nothing of an earlier response counts for this one.
            self._body, self._pieces, self._size, self._status = b"", None, 0, 0
            self._kind, self._retry_after, self._location = b"", None, None
        headers = self._headers() + self._credential
        request = transport.request(b"POST", headers, self.frame, self._path)
        transport.sent_bytes += len(request)
        if transport.observer is not None:
            transport.observer.on_request(self, request)
        connection.send(request, self)

    async def _authorize(self, auth: RequestAuthorizer, *, status: int = 0) -> None:
        """Send once there is a credential, or send again after a refusal."""
        self._repeats += 1
        url = self._transport.url_of(self._path)
        try:
            if self._repeats > auth.max_repeats:
                is_again = False
            elif status:
                is_again = await auth.refused(
                    "POST", url, status, self._refusal or [], self._credential
                )
            else:
                await auth.prepare(url)
                is_again = True
        except AuthorizationFailed as error:
            if not self.is_over:
                self._lose(error)
            return
        if self.is_over:
            return
        if is_again:
            self._attempts = 0
            self.start()
        else:
            self.fail()

    def _headers(self) -> bytes:
        sent, name = self._sent, self._sent.name
        if sent.version is None:
            return b"" if sent.method == "initialize" else self._transport.session_head
        is_short = name is None or len(name) <= _MAX_CACHED_NAME
        cached = _request_headers if is_short else _request_headers.__wrapped__
        headers: bytes = cached(sent.version, sent.method, name)
        if name is not None and sent.method == "tools/call":
            rows = self._transport.param_headers(name)
            if rows:
                headers += self._param_headers(rows)
        return headers

    def _param_headers(self, rows: tuple[ParamPath, ...]) -> bytes:
        given = read_arguments(self.frame)
        texts = ((row, header_text(row.value(given))) for row in rows)
        return _lines(
            f"{row.header}: {encode_header_value(text)}" for row, text in texts if text is not None
        )

    # -- the response ------------------------------------------------------------------------

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Take the head of the response."""
        self._status = status
        auth = self._transport.auth
        if auth is not None:
            auth.responded(self._transport.url_of(self._path), status, headers)
            self._refusal = headers if status in _REFUSALS else None
        if self._transport.observer is not None:
            self._transport.observer.on_response(self, status, headers)
        for name, value in headers:
            if name == b"content-type":
                is_plain = value in (_JSON, _EVENTS)
                self._kind = value if is_plain else value.partition(b";")[0].strip().lower()
            elif name == b"mcp-session-id":
                self._session_id = value
            elif name == b"retry-after":
                self._retry_after = _seconds(value)
            elif name == b"location":
                self._location = value
        if status == 200 and self._kind == _EVENTS:
            self._reader = EventReader(self._transport.message_limit, empty=True)

    def on_data(self, data: bytes) -> None:
        """Take a part of the body."""
        if self._reader is not None:
            self._take_events(data)
            return
        self._size += len(data)
        limit = self._transport.message_limit if self._kind == _JSON else _MAX_ERROR_BYTES
        if limit is not None and self._size > limit:
            self._refuse_size(data, limit)
        elif not self._body:
            self._body = data
        else:
            self._add_piece(data)

    def _add_piece(self, data: bytes) -> None:
        """Take a part of the body that is not its first."""
        if self._pieces is None:
            self._pieces = Pieces(self._body)
        self._pieces.add(data)

    def _take_body(self) -> bytes:
        """Return the body of the response, and forget it."""
        body = self._body if self._pieces is None else self._pieces.take()
        self._body, self._pieces = b"", None
        return body

    def _refuse_size(self, data: bytes, limit: int) -> None:
        self._add_piece(data)
        head = self._take_body()[: head_size(limit)]
        self._leave()
        if self._kind == _JSON:
            self._transport.deliver(Oversize(head, None, limit), self)
        text = f"{self._size} bytes of {self._transport.address}"
        self._lose(RemoteProtocolError("mcp.http.size", got=text, expected=f"{limit} bytes"))

    def _take_events(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            return
        for event in reader.feed(data):
            if isinstance(event, Oversize):
                self._transport.deliver(event, self)
            elif event.data:
                self._take_message(event)
            if self.is_over:
                return

    def _take_message(self, event: Event) -> None:
        frame = event.data.encode("utf-8", "surrogatepass")
        self._note(frame)
        self._transport.deliver(frame, self, event)

    def _note(self, frame: bytes) -> None:
        """Note which request a message answers."""
        try:
            messages = read_messages(frame)
        except UNREADABLE:
            return  # the peer reports it
        for each in messages:
            if each.method is UNSET and each.id in self.ids:
                self._answered.add(each.id)
                if self._sent.method == "initialize" and each.result is not UNSET:
                    self._transport.begin_session(self._session_id, each.result, self._path)

    def on_complete(self) -> None:
        """End the POST, or go on with what is missing."""
        self._connection = None
        if self.is_over:
            return
        status = self._status
        if self._reader is not None:
            self._stream_ended()
        elif status == 200 and self._kind == _JSON and self.ids:
            self._take_json()
        elif status in (202, 204) or (status == 200 and not self.ids):
            self._accepted()
        else:
            self._refused()

    def _take_json(self) -> None:
        body = self._body if self._pieces is None else self._take_body()
        if self._sent.method == "initialize":
            self._note(body)
        self._finish()
        self._transport.deliver(body, self)
        # The receiver knows what was an answer; the body is not decoded twice.
        for id in self.ids:
            if self._transport.is_waiting(id):
                self._transport.on_request_lost(id, _NO_ANSWER)

    def _accepted(self) -> None:
        if self.open_ids():
            self._lose_for("the server accepted it without an answer; its outcome is unknown")
            return
        if self._sent.method == "notifications/initialized":
            # The stream is opened before what waited is sent: what a request changes is told there.
            self._transport.session_began()
        self._finish()

    def _refused(self) -> None:
        """React to an error status."""
        status, transport = self._status, self._transport
        if status in _REDIRECTS and self._follow_redirect():
            return
        if status in _REFUSALS and transport.auth is not None:
            transport.spawn(self._authorize(transport.auth, status=status))
            return
        wait = self._retry_after
        if status in (429, 503) and wait is not None and self._may_retry(wait):
            self._retries += 1
            transport.on_event("retry", f"{status}, again in {wait:g} s")
            transport.spawn(self._send_later(wait))
            return
        if status == 404 and not self.is_per_request and transport.has_session:
            reason = "the server has ended the session"
            self._lose_for(reason, was_sent=False)
            transport.session_lost(reason)
            return
        if self._sent.method == "initialize" and status in _OLD_SERVER:
            transport.spawn(transport.fall_back(self))
        else:
            self.fail()

    def fail(self) -> None:
        """End with the error in the body of the response, or with its status."""
        body = self._take_body()
        error = error_in(body) if self._kind == _JSON or body[:1] == b"{" else None
        is_opening = self._sent.method in _OPENING
        if self._status == 401 or (self._status == 403 and (error is None or is_opening)):
            self._lose(self._unauthorized())
            return
        is_elsewhere = is_opening and self._status in _NO_ENDPOINT
        if error is None or not self.ids or (is_elsewhere and error.id not in self.ids):
            self._lose(self._unanswered(error, is_elsewhere=is_elsewhere))
            return
        id = self.ids[0]
        self._finish()
        self._answered.add(id)
        self._transport.deliver(encode({"jsonrpc": "2.0", "id": id, "error": error.error}), self)
        # Those of a batch, which was refused as a whole.
        self._lose_for(f"the server refused a batch: status {self._status}")

    def _unanswered(self, error: SentMessage | None, *, is_elsewhere: bool) -> RemoteProtocolError:
        address = self._transport.address
        text = error_text(error) if error is not None else ""
        got = f"status {self._status} of {address}{f': {text}' if text else ''}"
        expected = "an MCP answer"
        if is_elsewhere:
            advice = path_advice(address)
            expected = f"an MCP endpoint, and the server has none at this path{advice}"
        return RemoteProtocolError("mcp.http.status", got=got, expected=expected)

    def _unauthorized(self) -> AuthorizationFailed:
        what = f"{self._transport.address} refused it with status {self._status}"
        if self._transport.auth is None and self._status == 401:
            # Imported here: most requests are not refused.
            from .authorization import LOGIN_ADVICE

            what += LOGIN_ADVICE
        return AuthorizationFailed(what, step="request", status=self._status)

    def _follow_redirect(self) -> bool:
        """Send to another path of the same origin; return False if the redirect leads elsewhere."""
        path = self._transport.path_of(self._location)
        if path is None or self._redirects >= _MAX_REDIRECTS:
            return False
        self._redirects += 1
        self._path = path
        self._attempts = 0
        self.start()
        return True

    def _may_retry(self, wait: float) -> bool:
        options = self._transport.options
        return self._retries < options.retries and wait <= options.longest_retry

    async def _send_later(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if not self.is_over:
            self.start()

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        """Send again what the server cannot have acted on; else resume, or report the loss."""
        self._connection = None
        if self.is_over:
            return
        if self._reader is not None:
            self._stream_ended()
            return
        if was_reused and not has_begun and self._attempts == 1 and self._is_repeatable():
            self._transport.on_event("retry", "a kept connection was closed")
            self.start()
            return
        why = f": {error}" if error is not None else ""
        text = f"the connection was lost before the answer{why}"
        self._lose_for(f"{text}; its outcome is unknown")

    def _is_repeatable(self) -> bool:
        method, name = self._sent.method, self._sent.name
        if not self.ids:
            return method is None or method in REPEATABLE_NOTIFICATIONS
        if method in REPEATABLE_REQUESTS:
            return len(self.ids) == 1
        return method == "tools/call" and name is not None and self._transport.is_idempotent(name)

    # -- streams -----------------------------------------------------------------------------

    def _stream_ended(self) -> None:
        reader = self._reader
        if reader is None or not self.open_ids():
            self._finish()
            return
        reader.end()  # the part of an event that was cut is sent again
        can_resume = not self.is_per_request and reader.last_event_id
        if can_resume and self._resumes < self._transport.options.reconnects:
            self._resumes += 1
            asked = reader.retry_ms
            wait = jittered(RECONNECT_S) if asked is None else asked / 1000
            self._transport.on_event("resume", f"{self._what}, in {wait:.2g} s")
            self._resuming = self._transport.spawn(self._resume(longest_wait(wait)))
            return
        text = f"the stream of {self._what} ended before its answer"
        self._lose_for(f"{text}; its outcome is unknown")

    async def _resume(self, seconds: float) -> None:
        """Ask for what followed the last event."""
        await asyncio.sleep(seconds)
        reader, transport = self._reader, self._transport
        if reader is None:
            return
        seen = reader.last_event_id
        stream = GetStream(transport, seen)
        self._connection = None
        try:
            status = await stream.run(self._resumed)
        except TransportError:
            self._stream_ended()
            return
        except AuthorizationFailed as error:
            if not self.is_over:
                self._lose(error)
            return
        if self.is_over:
            return
        if status == 404:
            self._lose_for("the server has ended the session")
            transport.session_lost("the server has ended the session")
        elif status != 200:
            text = f"the stream of {self._what} cannot be resumed: status {status}"
            self._lose_for(f"{text}; its outcome is unknown")
        else:
            if reader.last_event_id != seen:
                self._resumes = 0  # it made progress
            self._stream_ended()

    def _resumed(self, data: bytes) -> bool:
        self._take_events(data)
        return not self.is_over and bool(self.open_ids())

    # -- the end -----------------------------------------------------------------------------

    def _finish(self) -> None:
        self.is_over = True
        self._transport.forget(self)

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.forget()

    def _lose_for(self, reason: str, *, was_sent: bool = True) -> None:
        self._lose(RequestLost(reason, was_sent=was_sent))

    def _lose(self, error: Exception) -> None:
        self.is_over = True
        self._transport.lose(self, error)

    def lose_unsent(self, reason: str) -> None:
        """End with a loss that a new session can repair, if nothing was sent yet."""
        if not self._attempts:
            self._lose_for(reason, was_sent=False)

    def cancel(self, id: Any) -> None:
        """Cancel a request.

        Without a session, closing the response does that. Within one a message does, which is sent
        next, and the response is closed if it does not end soon.
                                                    [MCP 2025-11-25, basic/utilities/cancellation]
        """
        self._answered.add(id)
        if self.is_over or self.open_ids():
            return
        if self.is_per_request or not self._attempts:
            self.abandon()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_CANCEL_GRACE_S, self.abandon)

    def leave_answered(self) -> None:
        """Close a stream that is open after its answer."""
        if self._answered and self._connection is not None and not self.open_ids():
            self.abandon()

    def abandon(self) -> None:
        """Close the response, and wait for no more."""
        if self.is_over:
            return
        self._finish()
        self._leave()
        if self._resuming is not None:
            self._resuming.cancel()

    def drop(self) -> None:
        """End without a word, because the transport closes."""
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._leave()
        self._transport.forget(self)


@lru_cache(maxsize=256)
def _request_headers(version: str, method: str, name: str | None) -> bytes:
    """Return the headers that repeat parts of a request of the per-request era."""
    lines = [f"mcp-protocol-version: {version}", f"mcp-method: {method}"]
    if name is not None:
        lines.append(f"mcp-name: {encode_header_value(name)}")
    return _lines(lines)


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\r\n" for line in lines).encode("ascii")


def _seconds(value: bytes) -> float | None:
    """Return the delay of a Retry-After header; None for a date: the clocks may differ."""
    return float(value) if value.isdigit() and len(value) < 10 else None

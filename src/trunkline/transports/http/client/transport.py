"""Transport of a client over Streamable HTTP: each message is a POST, answers are JSON or events.

An `HttpTransport` looks at what it sends, because HTTP repeats parts of it in headers, and at the
answer to `initialize`, which opens a session.

The rules that live here, and only here:

* A message that names its version in `_meta` belongs to the per-request era: its headers repeat
  version, method and name, and closing its response cancels it. Any other belongs to the session.
                                  [MCP 2026-07-28, basic/transports/streamable-http]
* The session id of `initialize` is sent with all that follows, and so is the negotiated version.
  404 means that the session has ended.         [MCP 2025-11-25, basic/transports]
* A stream of a session that breaks is resumed by GET, after the delay that the server asked for.
* A request is sent again if the server cannot have acted on it: nothing was sent, the session was
  unknown, or it was refused with Retry-After. If a connection that was kept alive closes before
  any byte of the response, reads and idempotent calls are sent again, once. Otherwise the outcome
  is unknown, and the error says so.              [RFC 9110, section 9.2.2]
* Redirects are followed to the same origin only, with the same method.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder, encode

from ....concurrency.backoff import backoff
from ....errors import RemoteProtocolError, TransportError
from ....jsonrpc.framing import Oversize, head_size
from ....jsonrpc.messages import Shown
from ....jsonrpc.sse import Event, EventReader
from ....mcp.header_values import encode_header_value, header_text
from ....spec.mcp.headers import NAME_MEMBERS
from ....spec.mcp.meta import PROTOCOL_VERSION
from ...base import ignore
from .pool import ConnectionPool
from .proxy import parse_proxy, proxy_for

if TYPE_CHECKING:
    from ....jsonrpc.limits import TransportName
    from ....jsonrpc.messages import RequestId
    from ....jsonrpc.policy import Policy
    from ....mcp.param_headers import ParamPath
    from ...addresses import Http
    from ...base import Frame
    from .connection import HttpClientConnection
    from .settings import HttpOptions

__all__ = ["HttpTransport", "RequestLost"]

_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"
_ACCEPT: Final = b"accept: application/json, text/event-stream\r\n"
# Methods that change nothing, so that they may be sent twice.
_READS: Final = frozenset(
    (
        *("server/discover", "tools/list", "resources/list", "resources/templates/list"),
        *("prompts/list", "resources/read", "prompts/get", "completion/complete", "ping"),
        *("tasks/get", "tasks/list", "tasks/result", "skills/list", "skills/get"),
    )
)
# Bytes of an error response that is not a JSON-RPC message; they are not shown.
_MAX_ERROR_BYTES: Final = 64 * 1024
# Seconds between attempts to reopen a stream, if the server did not ask for a delay.
_RECONNECT_S: Final = 1.0
_LONGEST_RECONNECT_S: Final = 30.0
# Seconds for DELETE when the client closes.
_CLOSE_TIMEOUT_S: Final = 2.0
_MAX_SESSION_ID_BYTES: Final = 1024


class RequestLost(TransportError):
    """A request that has no answer; `was_sent` is False if the server cannot have acted on it."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


class _Meta(Shown, Struct, frozen=True):
    version: Any = field(default=UNSET, name=PROTOCOL_VERSION)


class _Params(Shown, Struct, frozen=True):
    name: Any = UNSET
    uri: Any = UNSET
    task_id: Any = field(default=UNSET, name="taskId")
    request_id: Any = field(default=UNSET, name="requestId")
    arguments: Raw | UnsetType = UNSET
    meta: _Meta | UnsetType = field(default=UNSET, name="_meta")


class _Message(Shown, Struct, frozen=True):
    """The parts of a message that headers repeat, or by which answers are matched."""

    method: str | UnsetType = UNSET
    id: int | str | UnsetType | None = UNSET
    params: _Params | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Initialized(Shown, Struct, frozen=True):
    protocol_version: str = field(default="", name="protocolVersion")


_read: Final = Decoder(_Message).decode
_read_many: Final = Decoder(list[_Message]).decode
_read_initialized: Final = Decoder(_Initialized).decode
_read_arguments: Final = Decoder().decode
_MEMBERS: Final = {"name": "name", "uri": "uri", "taskId": "task_id"}


class HttpTransport:
    """The messages of one client; it implements the transport contract."""

    def __init__(self, address: Http, policy: Policy, options: HttpOptions) -> None:
        self.name: TransportName = "http"
        self.on_message: Callable[[Frame, Any], object] = ignore
        self.on_error: Callable[[TransportError | None], object] = ignore
        self.on_drained: Callable[[], object] = ignore
        # Called with the id of a request that has no answer, and why.
        self.on_request_lost: Callable[[RequestId, Exception], object] = ignore
        # Called with what was done about a lost connection, stream or session.
        self.on_event: Callable[[str, str], object] = ignore
        # Return the headers that a tool repeats, and whether a tool may be called twice.
        self.param_headers: Callable[[str], tuple[ParamPath, ...]] = lambda _: ()
        self.is_idempotent: Callable[[str], bool] = lambda _: False
        self.is_connected = False
        self._address = address
        self._options = options
        self._limit = policy.limits.message_size("http")
        self._pool: ConnectionPool | None = None
        self._was_connected = False
        self._is_reported = False
        self._session_id: bytes | None = None
        self._version: bytes | None = None
        self._head = b""
        self._session_head = b""
        self._posts: dict[_Post, None] = {}
        self._by_id: dict[Any, _Post] = {}
        self._listener: _Listener | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._written = 0

    def __repr__(self) -> str:
        return f"<HttpTransport to {self._address}, {len(self._posts)} requests>"

    # -- the transport contract --------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """The number of bytes sent and not written yet."""
        return 0 if self._pool is None else self._pool.unsent

    @property
    def written(self) -> int:
        """The number of bytes that have left the backlog, in total."""
        return self._written - self.backlog

    async def connect(self) -> None:
        """Open a first connection.

        Raises:
            TransportError: the server cannot be reached.
        """
        if self._was_connected:
            raise TransportError("a transport connects once")
        self._was_connected = True
        address, options = self._address, self._options
        context: ssl.SSLContext | None = None
        if address.tls:
            # Imported here: many servers are on this machine.
            from ...sockets.tls import client_context

            context = client_context(address.tls)
        scheme = "https" if address.tls else "http"
        if options.proxy is not None:
            proxy = parse_proxy(options.proxy, "HttpOptions.proxy") if options.proxy else None
        else:
            proxy = None if address.unix is not None else proxy_for(scheme, address.host)
        self._pool = ConnectionPool(
            address,
            connections=options.connections,
            connect_timeout=options.connect_timeout,
            context=context,
            proxy=proxy,
        )
        self._head = self._request_head()
        connection = await self._pool.open()
        self._pool._freed(connection)
        self.is_connected = True

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send one message in a POST of its own, without waiting."""
        if not self.is_connected:
            return
        try:
            message: Any = _read(frame)
        except DecodeError:
            message = _read_many(frame)
        version = _version_in(message)
        if version is not None and message.method == "notifications/cancelled":
            return  # the version is in `_meta` of requests alone
        if type(message) is _Message and message.method == "notifications/cancelled":
            cancelled = None if message.params is UNSET else message.params.request_id
            post = self._by_id.get(cancelled)
            if post is not None and post.is_per_request:
                # Closing the response cancels it.
                post.abandon()
                return
        post = _Post(self, frame, message, is_per_request=version is not None)
        self._posts[post] = None
        for id in post.ids:
            self._by_id[id] = post
        post.start()

    async def close(self) -> None:
        """End the session, and close every connection."""
        was_connected, self.is_connected = self.is_connected, False
        if self._listener is not None:
            self._listener.stop()
        if was_connected and self._session_id is not None and not self._is_reported:
            await self._delete_session()
        for post in list(self._posts):
            post.drop()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._pool is not None:
            await self._pool.close()
        self._report(None)

    # -- sessions ----------------------------------------------------------------------------

    def begin_session(self, session_id: bytes | None, result: Raw) -> None:
        """Use what `initialize` was answered with for all that follows."""
        try:
            version = _read_initialized(result).protocol_version.encode("ascii")
        except (DecodeError, UnicodeEncodeError):
            return
        self._version = version
        head = b"mcp-protocol-version: %b\r\n" % version
        if session_id is not None and _is_session_id(session_id):
            self._session_id = session_id
            head += b"mcp-session-id: %b\r\n" % session_id
        self._session_head = head

    def session_began(self) -> None:
        """Open the stream for what the server sends by itself."""
        if self._session_id is not None and self._listener is None:
            self._listener = _Listener(self)
            self._listener.start()

    def session_lost(self, reason: str) -> None:
        """End the connection, because the server does not know the session any more."""
        self.on_event("session-lost", reason)
        self._report(TransportError(reason))

    async def _delete_session(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await _Plain(self, b"DELETE").run()
        except (TimeoutError, TransportError):
            pass  # the server ends it when it expires

    def _report(self, error: TransportError | None) -> None:
        self.is_connected = False
        if not self._is_reported:
            self._is_reported = True
            self.on_error(error)

    # -- requests ----------------------------------------------------------------------------

    def _request_head(self) -> bytes:
        address = self._address
        default = 443 if address.tls else 80
        host = "localhost" if address.unix is not None else address.host
        host = f"[{host}]" if ":" in host else host
        if address.unix is None and address.port != default:
            host += f":{address.port}"
        lines = [f"host: {host}"]
        lines += [f"{name}: {value}" for name, value in self._options.headers.items()]
        return "".join(f"{line}\r\n" for line in lines).encode("ascii")

    def request(self, method: bytes, headers: bytes, body: bytes | None = None) -> bytes:
        """Return an encoded request."""
        path = self._address.path.encode("ascii")
        if body is None:
            return b"%b %b HTTP/1.1\r\n%b%b\r\n" % (method, path, self._head, headers)
        return b"%b %b HTTP/1.1\r\n%b%b%bcontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (
            method,
            path,
            self._head,
            _ACCEPT,
            headers,
            _JSON,
            len(body),
            body,
        )

    @property
    def session_head(self) -> bytes:
        """The headers of requests inside a session."""
        return self._session_head

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        """Run a coroutine in a task until the transport closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def pool(self) -> ConnectionPool:
        """The connections, after `connect`."""
        if self._pool is None:
            raise TransportError("the transport is not connected")
        return self._pool

    @property
    def options(self) -> HttpOptions:
        """The options."""
        return self._options

    @property
    def message_limit(self) -> int | None:
        """The size limit of a message in bytes."""
        return self._limit

    def count(self, size: int) -> None:
        """Count bytes that were handed to a connection."""
        self._written += size

    def deliver(self, frame: Frame) -> None:
        """Hand a received message on."""
        if not self._is_reported:
            self.on_message(frame, None)

    def forget(self, post: _Post) -> None:
        """Forget a POST that has ended."""
        self._posts.pop(post, None)
        for id in post.ids:
            if self._by_id.get(id) is post:
                del self._by_id[id]

    def lose(self, post: _Post, error: Exception) -> None:
        """Report the requests of a POST that have no answer."""
        self.forget(post)
        for id in post.open_ids():
            self.on_request_lost(id, error)


class _Post:
    """One POST, its response, and the streams that resume it."""

    def __init__(
        self, transport: HttpTransport, frame: bytes, message: Any, *, is_per_request: bool
    ) -> None:
        self._transport = transport
        self._frame = frame
        self.is_per_request = is_per_request
        messages = message if isinstance(message, list) else [message]
        self.ids = tuple(
            each.id
            for each in messages
            if each.method is not UNSET and type(each.id) in (int, str)
        )
        self._answered: set[Any] = set()
        self._first = messages[0] if messages else _Message()
        self._connection: HttpClientConnection | None = None
        self._attempts = 0
        self._retries = 0
        self._status = 0
        self._kind = b""
        self._retry_after: float | None = None
        self._session_id: bytes | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._reader: EventReader | None = None
        self._is_over = False
        self._resumes = 0

    @property
    def _what(self) -> str:
        method = self._first.method
        return "a reply" if method is UNSET else str(method)

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
            connection = await self._transport.pool.open()
        except TransportError as error:
            self._lose(RequestLost(error.reason, was_sent=False))
            return
        if self._is_over:
            self._transport.pool._freed(connection)
        else:
            self._send(connection)

    def _send(self, connection: HttpClientConnection) -> None:
        self._connection = connection
        self._attempts += 1
        self._parts, self._size, self._status = [], 0, 0
        request = self._transport.request(b"POST", self._headers(), self._frame)
        self._transport.count(len(request))
        connection.send(request, self)

    def _headers(self) -> bytes:
        transport, message = self._transport, self._first
        if not self.is_per_request:
            return b"" if message.method == "initialize" else transport.session_head
        version, method = _version_in(message) or "", str(message.method)
        lines = [f"mcp-protocol-version: {version}", f"mcp-method: {method}"]
        member = NAME_MEMBERS.get(method)
        params = message.params
        if member is not None and params is not UNSET:
            name = getattr(params, _MEMBERS[member])
            if type(name) is str:
                lines.append(f"mcp-name: {encode_header_value(name)}")
                if method == "tools/call":
                    lines += self._param_headers(name, params)
        return "".join(f"{line}\r\n" for line in lines).encode("ascii")

    def _param_headers(self, tool: str, params: _Params) -> list[str]:
        rows = self._transport.param_headers(tool)
        if not rows:
            return []
        given = {} if params.arguments is UNSET else _read_arguments(params.arguments)
        texts = ((row, header_text(row.value(given))) for row in rows)
        return [
            f"{row.header}: {encode_header_value(text)}" for row, text in texts if text is not None
        ]

    # -- the response ------------------------------------------------------------------------

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Take the head of the response."""
        self._status = status
        for name, value in headers:
            if name == b"content-type":
                self._kind = value.partition(b";")[0].strip().lower()
            elif name == b"mcp-session-id":
                self._session_id = value
            elif name == b"retry-after":
                self._retry_after = _seconds(value)
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
        else:
            self._parts.append(data)

    def _refuse_size(self, data: bytes, limit: int) -> None:
        self._parts.append(data)
        head = b"".join(self._parts)[: head_size(limit)]
        self._leave()
        if self._kind == _JSON:
            self._transport.deliver(Oversize(head, None, limit))
        self._lose(RemoteProtocolError("mcp.http.size", got=self._size, expected=f"{limit} bytes"))

    def _take_events(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            return
        for event in reader.feed(data):
            if isinstance(event, Oversize):
                self._transport.deliver(event)
            elif event.data:
                self._take_message(event)
            if self._is_over:
                return

    def _take_message(self, event: Event) -> None:
        frame = event.data.encode("utf-8", "surrogatepass")
        self._note(frame)
        self._transport.deliver(frame)

    def _note(self, frame: bytes) -> None:
        """Note which request a message answers."""
        try:
            if frame.lstrip()[:1] == b"[":
                messages = _read_many(frame)
            else:
                messages = [_read(frame)]
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return  # the peer reports it
        for each in messages:
            if each.method is UNSET and each.id in self.ids:
                self._answered.add(each.id)
                if self._first.method == "initialize" and each.result is not UNSET:
                    self._transport.begin_session(self._session_id, each.result)

    def on_complete(self) -> None:
        """End the POST, or go on with what is missing."""
        self._connection = None
        if self._is_over:
            return
        status = self._status
        if self._reader is not None:
            self._stream_ended()
        elif status == 200 and self._kind == _JSON:
            self._take_json()
        elif status in (202, 204) or (status == 200 and not self.ids):
            self._accepted()
        else:
            self._refused()

    def _take_json(self) -> None:
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        if self._first.method == "initialize" or len(self.ids) != 1:
            self._note(body)
        else:
            self._answered.add(self.ids[0])
        self._finish()
        self._transport.deliver(body)
        if left := self.open_ids():
            error = RequestLost("the response lacks an answer", was_sent=True)
            for id in left:
                self._transport.on_request_lost(id, error)

    def _accepted(self) -> None:
        if self.open_ids():
            text = f"the server accepted {self._what} and did not answer it"
            self._lose(RequestLost(text, was_sent=True))
            return
        self._finish()
        if self._first.method == "notifications/initialized":
            self._transport.session_began()

    def _refused(self) -> None:
        """React to an error status."""
        status, transport = self._status, self._transport
        wait = self._retry_after
        if status in (429, 503) and wait is not None and self._may_retry(wait):
            self._retries += 1
            transport.on_event("retry", f"{status}, again in {wait:g} s")
            transport.spawn(self._send_later(wait))
            return
        if status == 404 and not self.is_per_request and transport.session_head:
            reason = "the server has ended the session"
            self._lose(RequestLost(reason, was_sent=False))
            transport.session_lost(reason)
            return
        body = b"".join(self._parts)
        error = _error_in(body) if self._kind == _JSON or body[:1] == b"{" else None
        if error is not None and self.ids:
            id = self.ids[0]
            self._finish()
            self._answered.add(id)
            transport.deliver(encode({"jsonrpc": "2.0", "id": id, "error": error}))
            return
        shown = f"status {status}"
        self._lose(RemoteProtocolError("mcp.http.status", got=shown, expected="an MCP answer"))

    def _may_retry(self, wait: float) -> bool:
        options = self._transport.options
        return self._retries < options.retries and wait <= options.longest_retry

    async def _send_later(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if not self._is_over:
            self.start()

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        """Send again what the server cannot have acted on; else resume, or report the loss."""
        self._connection = None
        if self._is_over:
            return
        if self._reader is not None:
            self._stream_ended()
            return
        if was_reused and not has_begun and self._attempts == 1 and self._is_repeatable():
            self._transport.on_event("retry", "a kept connection was closed")
            self.start()
            return
        why = f": {error}" if error is not None else ""
        text = f"the connection was lost before {self._what} was answered{why}"
        self._lose(RequestLost(f"{text}; its outcome is unknown", was_sent=True))

    def _is_repeatable(self) -> bool:
        message = self._first
        if not self.ids or message.method in _READS:
            return len(self.ids) <= 1
        if message.method == "tools/call" and message.params is not UNSET:
            return self._transport.is_idempotent(str(message.params.name))
        return False

    # -- streams -----------------------------------------------------------------------------

    def _stream_ended(self) -> None:
        reader = self._reader
        if reader is None or not self.open_ids():
            self._finish()
            return
        can_resume = not self.is_per_request and reader.last_event_id
        if can_resume and self._resumes < self._transport.options.reconnects:
            self._resumes += 1
            wait = _RECONNECT_S if reader.retry_ms is None else reader.retry_ms / 1000
            self._transport.on_event("resume", f"{self._what}, in {wait:g} s")
            self._transport.spawn(self._resume(min(wait, _LONGEST_RECONNECT_S)))
            return
        text = f"the stream of {self._what} ended before its answer"
        self._lose(RequestLost(f"{text}; its outcome is unknown", was_sent=True))

    async def _resume(self, seconds: float) -> None:
        """Ask for what followed the last event."""
        await asyncio.sleep(seconds)
        reader, transport = self._reader, self._transport
        if self._is_over or reader is None:
            return
        seen = reader.last_event_id
        stream = _Stream(transport, seen)
        self._connection = None
        try:
            status = await stream.run(self._resumed)
        except TransportError:
            self._stream_ended()
            return
        if self._is_over:
            return
        if status == 404:
            self._lose(RequestLost("the server has ended the session", was_sent=True))
            transport.session_lost("the server has ended the session")
        elif status != 200:
            text = f"the stream of {self._what} cannot be resumed: status {status}"
            self._lose(RequestLost(f"{text}; its outcome is unknown", was_sent=True))
        else:
            if reader.last_event_id != seen:
                self._resumes = 0  # it made progress
            self._stream_ended()

    def _resumed(self, data: bytes) -> bool:
        self._take_events(data)
        return not self._is_over and bool(self.open_ids())

    # -- the end -----------------------------------------------------------------------------

    def _finish(self) -> None:
        self._is_over = True
        self._transport.forget(self)

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.forget()

    def _lose(self, error: Exception) -> None:
        self._is_over = True
        self._transport.lose(self, error)

    def abandon(self) -> None:
        """Close the response, which cancels the request."""
        self._finish()
        self._leave()

    def drop(self) -> None:
        """End without a word, because the transport closes."""
        self._is_over = True
        self._leave()
        self._transport.forget(self)


class _Plain:
    """A request without a body, of which only the status counts."""

    def __init__(self, transport: HttpTransport, method: bytes) -> None:
        self._transport = transport
        self._method = method
        self._done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._status = 0

    async def run(self) -> int:
        """Send it, and return the status."""
        connection = await self._transport.pool.open()
        transport = self._transport
        connection.send(transport.request(self._method, transport.session_head), self)
        try:
            return await self._done
        except BaseException:  # a timeout too: the connection cannot be used again
            connection.forget()
            raise

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Keep the status."""
        self._status = status

    def on_data(self, data: bytes) -> None:
        """Ignore the body."""

    def on_complete(self) -> None:
        """Return the status."""
        if not self._done.done():
            self._done.set_result(self._status)

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        """Raise in `run`."""
        if not self._done.done():
            self._done.set_exception(TransportError("the connection was lost"))


class _Stream:
    """An event stream opened by GET, for what the server sends or to resume another."""

    def __init__(self, transport: HttpTransport, last_event_id: str = "") -> None:
        self._transport = transport
        self._last_event_id = last_event_id
        self._done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._status = 0
        self._take: Callable[[bytes], bool] = lambda _: False
        self._connection: HttpClientConnection | None = None

    async def run(self, take: Callable[[bytes], bool]) -> int:
        """Read the stream; return the status when it has ended, or `take` returns False.

        Raises:
            TransportError: the server cannot be reached.
        """
        transport = self._transport
        self._take = take
        headers = b"accept: %b\r\n%b" % (_EVENTS, transport.session_head)
        if self._last_event_id:
            headers += b"last-event-id: %b\r\n" % self._last_event_id.encode("utf-8")
        self._connection = await transport.pool.open()
        self._connection.send(transport.request(b"GET", headers), self)
        try:
            return await self._done
        finally:
            if self._connection is not None:
                self._connection.forget()

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Keep the status; what is not a stream of events is as good as refused."""
        kinds = [value for name, value in headers if name == b"content-type"]
        is_stream = bool(kinds) and kinds[0].partition(b";")[0].strip().lower() == _EVENTS
        self._status = status if status != 200 or is_stream else 406

    def on_data(self, data: bytes) -> None:
        """Hand on a part of the stream."""
        if self._status == 200 and not self._take(data) and not self._done.done():
            self._done.set_result(self._status)

    def on_complete(self) -> None:
        """Return from `run`."""
        self._connection = None
        if not self._done.done():
            self._done.set_result(self._status)

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        """Return from `run` if the stream had begun, else raise there."""
        self._connection = None
        if self._done.done():
            return
        if self._status:
            self._done.set_result(self._status)
        else:
            self._done.set_exception(TransportError("the connection was lost"))


class _Listener:
    """The stream of a session for what belongs to no request; reopened when it is lost."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self._task: asyncio.Task[Any] | None = None
        self._reader = EventReader(transport.message_limit, empty=True)

    def start(self) -> None:
        """Open the stream in the background."""
        self._task = self._transport.spawn(self._run())

    def stop(self) -> None:
        """Close the stream."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        transport, failures = self._transport, 0
        delays = backoff(_RECONNECT_S, _LONGEST_RECONNECT_S)
        while failures <= transport.options.reconnects:
            try:
                status = await _Stream(transport, self._reader.last_event_id).run(self._feed)
            except TransportError:
                status = 0
            if status == 404:
                transport.session_lost("the server has ended the session")
                return
            if status == 405:
                return  # the server offers none
            if status == 200:
                failures, delays = 0, backoff(_RECONNECT_S, _LONGEST_RECONNECT_S)
            else:
                failures += 1
            asked = self._reader.retry_ms
            wait = next(delays) if asked is None or status != 200 else asked / 1000
            transport.on_event("reconnect", f"the stream of the session, in {wait:g} s")
            await asyncio.sleep(min(wait, _LONGEST_RECONNECT_S))
        transport.on_event("given-up", "the stream of the session cannot be opened")

    def _feed(self, data: bytes) -> bool:
        for event in self._reader.feed(data):
            if isinstance(event, Oversize):
                self._transport.deliver(event)
            elif event.data:
                self._transport.deliver(event.data.encode("utf-8", "surrogatepass"))
        return True


def _version_in(message: Any) -> str | None:
    if type(message) is not _Message or message.params is UNSET or message.params.meta is UNSET:
        return None
    version = message.params.meta.version
    return version if type(version) is str else None


def _error_in(body: bytes) -> Any:
    """Return the JSON-RPC error in the body of an HTTP error, or None."""
    try:
        error = _read(body).error
        return None if error is UNSET else error
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _seconds(value: bytes) -> float | None:
    """Return the delay of a Retry-After header; None for a date, which needs the clocks to agree."""
    return float(value) if value.isdigit() and len(value) < 10 else None


def _is_session_id(value: bytes) -> bool:
    return 0 < len(value) <= _MAX_SESSION_ID_BYTES and all(0x21 <= each <= 0x7E for each in value)

"""Transport of a client over Streamable HTTP: each message is a POST, answers are JSON or events.

An `HttpTransport` looks at what it sends, because HTTP repeats parts of it in headers, and at the
answer to `initialize`, which opens a session. A `Session` passes each request as the route of its
frame, so that the frame is not decoded for that.

The rules that live here, and only here:

* A message that names its version in `_meta` belongs to the per-request era: its headers repeat
  version, method and name, and closing its response cancels it. Any other belongs to the session.
                                  [MCP 2026-07-28, basic/transports/streamable-http]
* The session id of `initialize` is sent with all that follows, and so is the negotiated version.
  404 means that the session has ended.         [MCP 2025-11-25, basic/transports]
* What follows `notifications/initialized` waits for its response: on another connection it could
  arrive first, and servers refuse requests before it.  [MCP 2025-11-25, basic/lifecycle]
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Raw

from ....errors import AuthorizationFailed, LocalProtocolError, TransportError
from ...base import TransportBase, ignore
from .message import FactsReader, negotiated_version
from .pool import ConnectionPool
from .post import Post, RequestLost
from .proxy import parse_proxy, proxy_for
from .stream import PlainRequest, SessionStream

if TYPE_CHECKING:
    import ssl

    from ....jsonrpc.framing.sse import Event
    from ....jsonrpc.messages import RequestId
    from ....jsonrpc.policy import Policy
    from ....mcp.param_headers import ParamPath
    from ...addresses import Http
    from ...base import Frame
    from .authorization import ClientAuth, RequestAuthorizer
    from .old_sse import OldSseStream
    from .settings import HttpOptions

__all__ = ["HttpObserver", "HttpTransport"]

_POST_LINES: Final = (
    b"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
)
# Seconds until the first event of a server of HTTP+SSE. They are counted in parts: those in which
# a user logs in do not count.
_ENDPOINT_TIMEOUT_S: Final = 5.0
_ENDPOINT_TIMEOUT_PARTS: Final = 20
# Seconds for DELETE when the client closes.
_CLOSE_TIMEOUT_S: Final = 2.0
_MAX_SESSION_ID_BYTES: Final = 1024
# Without blanks and line breaks.
_is_visible: Final = re.compile(rb"[!-~]+").fullmatch
_are_sendable: Final = re.compile(r"[!-~]+").fullmatch


class HttpObserver(Protocol):
    """Sees what passes over HTTP; `origin` tells the requests apart."""

    def on_request(self, origin: object, request: bytes) -> object:
        """Take an encoded request that is about to be sent, perhaps not for the first time."""

    def on_response(
        self, origin: object, status: int, headers: list[tuple[bytes, bytes]]
    ) -> object:
        """Take the head of a response."""

    def on_frame(self, origin: object, frame: Frame, event: Event | None) -> object:
        """Take a message, before it is delivered; `event` if it came in one."""

    def on_end(self, origin: object) -> object:
        """Forget a request whose response has ended, or that has failed."""


class HttpTransport(TransportBase):
    """The messages of one client; it implements the transport contract."""

    def __init__(self, address: Http, policy: Policy, options: HttpOptions) -> None:
        super().__init__("http")
        # `send` takes a request as the route of its frame.
        self.reads_requests = True
        # Return True if a request has no answer yet; then `on_request_lost` is called with its id,
        # and why no answer will come.
        self.is_waiting: Callable[[RequestId], bool] = lambda _: True
        self.on_request_lost: Callable[[RequestId, Exception], object] = ignore
        # Called if the stream of the session is open again, without what it has missed.
        self.on_gap: Callable[[], object] = ignore
        # Called with what was done about a lost connection, stream or session.
        self.on_event: Callable[[str, str], object] = ignore
        # Return the headers that a tool repeats, and whether a tool may be called twice.
        self.param_headers: Callable[[str], tuple[ParamPath, ...]] = lambda _: ()
        self.is_idempotent: Callable[[str], bool] = lambda _: False
        # Called with True while requests wait for an authorization, for which a user may have to
        # log in, and then with False.
        self.on_authorizing: Callable[[bool], object] = ignore
        # Sees requests and responses, for a recording; most transports have none.
        self.observer: HttpObserver | None = None
        self.is_connected = False
        self.address = address
        self._options = options
        # Adds credentials to requests; None if the client has none.
        self.auth: RequestAuthorizer | None = None
        # The size limit of a message in bytes.
        self.message_limit = policy.limits.message_size("http")
        self._pool: ConnectionPool | None = None
        self._was_connected = False
        self._is_reported = False
        self._session_id: bytes | None = None
        # Why the server does not know the session any more.
        self._lost_session: str | None = None
        # Set from the answer to `initialize` until the response to `notifications/initialized`.
        self._is_opening = False
        self._initialized: Post | None = None
        # Sent by the caller after `notifications/initialized`, before its response.
        self._held: list[Post] = []
        query = f"?{address.query}" if address.query else ""
        self._path = f"{address.path}{query}".encode("ascii")
        self._head = b""
        # The start of a POST to the endpoint.
        self._post_head = b""
        # The headers of requests inside a session.
        self.session_head = b""
        # Of a server that speaks the transport of 2024-11-05.
        self._old_sse: OldSseStream | None = None
        self._posts: dict[Post, None] = {}
        self._by_id: dict[Any, Post] = {}
        self._listener: SessionStream | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._read_facts = FactsReader().read
        # The number of bytes that were handed to connections.
        self.sent_bytes = 0

    def __repr__(self) -> str:
        return f"<HttpTransport to {self.address}, {len(self._posts)} requests>"

    # -- the transport contract --------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """The number of bytes sent and not written yet."""
        return 0 if self._pool is None else self._pool.unsent

    @property
    def written(self) -> int:
        """The number of bytes that have left the backlog, in total."""
        return self.sent_bytes - self.backlog

    async def connect(self) -> None:
        """Open a first connection.

        Raises:
            TransportError: the server cannot be reached.
            ValueError: the credentials of the client are not sent to this address.
        """
        if self._was_connected:
            raise TransportError("a transport connects once")
        self._was_connected = True
        address, options = self.address, self._options
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
            read_timeout=options.read_timeout,
            context=context,
            proxy=proxy,
        )
        self._pool.on_full = self._leave_answered
        if options.auth is not None:
            self._use_auth(options.auth, context)
        self._head = self._request_head()
        self._post_head = self._head_of(b"POST", self._path) + _POST_LINES
        # A task, so that `close` can cancel it.
        opening = self.spawn(self._pool.open())
        try:
            await asyncio.wait((opening,))
        except asyncio.CancelledError:
            opening.cancel()
            await asyncio.wait((opening,))
            raise
        if opening.cancelled():
            raise TransportError("closed while connecting")
        connection = opening.result()
        if connection.is_usable:  # the server may have closed it by now
            self._pool.release(connection)
        self.is_connected = True

    def _use_auth(self, given: ClientAuth, context: ssl.SSLContext | None) -> None:
        # Imported here: many clients have no credentials, or a fixed header.
        from .authorization import RequestAuthorizer, ServerNetwork

        network = ServerNetwork(self.address.host)
        self.pool.on_dialled = network.add
        # A socket of this machine has no URL that others know.
        url = str(self.address) if self.address.unix is not None else self.url_of(None)
        auth = given.for_server(url, context=context, is_private=network.is_private)
        self.auth = RequestAuthorizer(auth)
        self.auth.on_waiting = lambda is_waiting: self.on_authorizing(is_waiting)

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send one message in a POST of its own, without waiting; `route` is its request."""
        if not self.is_connected:
            self._refuse(frame, route)
            return
        if self._old_sse is not None:
            self._old_sse.send(frame)
            return
        sent = self._read_facts(frame, route)
        if sent.cancelled_id is not None:
            cancelled = self._by_id.get(sent.cancelled_id)
            if cancelled is not None:
                cancelled.cancel(sent.cancelled_id)
                if cancelled.is_over:
                    return  # the server need not be told
        post = Post(self, frame, sent)
        self._posts[post] = None
        for id in sent.ids:
            self._by_id[id] = post
        version = sent.version
        if version is not None and _are_sendable(f"{version}{sent.method}") is None:
            # Headers repeat them, and would end where their line does.
            got = f"{sent.method} of {version}"
            self.lose(post, LocalProtocolError("mcp.http.method", got=got, expected="ASCII"))
            return
        if self._is_opening and version is None:
            if sent.method == "notifications/initialized":
                self._initialized = post
            elif self._initialized is not None:
                self._held.append(post)
                return
        post.start()

    def _refuse(self, frame: bytes, route: Any) -> None:
        """Report requests that came after the session was lost."""
        if self._lost_session is not None and not self._is_reported:
            for id in self._read_facts(frame, route).ids:
                self.on_request_lost(id, RequestLost(self._lost_session, was_sent=False))

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

    def begin_session(
        self, session_id: bytes | None, result: Raw, path: bytes | None = None
    ) -> None:
        """Use what `initialize` was answered with, and where, for all that follows."""
        version = negotiated_version(result)
        if version is None:
            return
        if path is not None:
            self._path = path
            self._post_head = self._head_of(b"POST", path) + _POST_LINES
        head = b"mcp-protocol-version: %b\r\n" % version
        if session_id is not None and _is_session_id(session_id):
            self._session_id = session_id
            head += b"mcp-session-id: %b\r\n" % session_id
        self.session_head = head
        self._is_opening = True

    def session_began(self) -> None:
        """Open the stream for what the server sends by itself."""
        for post in list(self._posts):
            if post.is_per_request:  # it asked for the era of the server, which is known now
                post.abandon()
        if self._session_id is not None and self._listener is None:
            self._listener = SessionStream(self)
            self._listener.start()

    def session_lost(self, reason: str) -> None:
        """Send no more, because the server does not know the session any more.

        The connection ends with the last response: the other requests in flight will be refused
        in the same way, and can then be sent in another session.
        """
        if self._lost_session is None and not self._is_reported:
            self._lost_session = reason
            self.is_connected = False
            if self._listener is not None:
                self._listener.stop()
            self.on_event("session-lost", reason)
            for post in list(self._posts):
                post.lose_unsent(reason)
            self._end_if_lost()

    def _end_if_lost(self) -> None:
        if self._lost_session is not None and not self._posts:
            asyncio.get_running_loop().call_soon(self.lost, self._lost_session)

    def lost(self, reason: str) -> None:
        """End the connection, which cannot go on."""
        self._report(TransportError(reason))

    async def fall_back(self, post: Post) -> None:
        """Use HTTP+SSE with a server that refuses `initialize` by POST.

        [MCP 2025-11-25, basic/transports#backwards-compatibility]
        """
        # Imported here: few servers are that old.
        from .old_sse import OldSseStream

        old = OldSseStream(self)
        opening = self.spawn(old.open())
        left = _ENDPOINT_TIMEOUT_S
        while not opening.done() and left > 0:
            part = _ENDPOINT_TIMEOUT_S / _ENDPOINT_TIMEOUT_PARTS
            await asyncio.wait((opening,), timeout=part)
            if self.auth is None or not self.auth.is_waiting:
                left -= part
        error = opening.exception() if opening.done() else None
        if error is not None or not opening.done():
            opening.cancel()
            old.stop()
            if isinstance(error, AuthorizationFailed):
                self.lose(post, error)
            elif error is None or isinstance(error, TransportError):
                post.fail()
            else:
                raise error
            return
        self.on_event("fallback", "the server speaks HTTP+SSE of 2024-11-05")
        self.forget(post)
        self._old_sse = old
        old.send(post.frame)

    async def _delete_session(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                # Without an authorization, which may take a user to log in.
                await PlainRequest(self, b"DELETE").run(may_authorize=False)
        except (TimeoutError, TransportError):
            pass  # the server ends it when it expires

    def _report(self, error: TransportError | None) -> None:
        self.is_connected = False
        if not self._is_reported:
            self._is_reported = True
            self.on_error(error)

    # -- requests ----------------------------------------------------------------------------

    def _request_head(self) -> bytes:
        address = self.address
        default = 443 if address.tls else 80
        host = self._host()
        if address.unix is None and address.port != default:
            host += f":{address.port}"
        # A server may compress unless it is told not to.    [RFC 9110, section 12.5.3]
        lines = [f"host: {host}", "accept-encoding: identity"]
        lines += [f"{name}: {value}" for name, value in self._options.headers.items()]
        return "".join(f"{line}\r\n" for line in lines).encode("ascii")

    def _host(self) -> str:
        """Return the host as headers and URLs have it."""
        if self.address.unix is not None:
            return "localhost"
        host = self.address.host
        try:
            host = host if host.isascii() else host.encode("idna").decode("ascii")
        except UnicodeError:
            raise TransportError(f"{self.address} has a host that is not valid") from None
        return f"[{host}]" if ":" in host else host

    def request(
        self,
        method: bytes,
        headers: bytes,
        body: bytes | None = None,
        path: bytes | None = None,
    ) -> bytes:
        """Return an encoded request, to the endpoint or to another path; with a body, a POST."""
        if body is not None:
            head = self._post_head if path is None else self._head_of(b"POST", path) + _POST_LINES
            return b"%b%bcontent-length: %d\r\n\r\n%b" % (head, headers, len(body), body)
        return b"%b%b\r\n" % (self._head_of(method, path or self._path), headers)

    def _head_of(self, method: bytes, path: bytes) -> bytes:
        return b"%b %b HTTP/1.1\r\n%b" % (method, path, self._head)

    def url_of(self, path: bytes | None) -> str:
        """Return the URL of the endpoint, or of another path of its origin."""
        address = self.address
        default = 443 if address.tls else 80
        port = "" if address.unix is not None or address.port == default else f":{address.port}"
        target = (path or self._path).decode("ascii")
        return f"{'https' if address.tls else 'http'}://{self._host()}{port}{target}"

    def path_of(self, location: bytes | None) -> bytes | None:
        """Return path and query of a redirect, or None if it leads to another origin."""
        address = self.address
        port = "" if address.unix is not None else f":{address.port}"
        base = f"{'https' if address.tls else 'http'}://{self._host()}{port}{address.path}"
        try:
            url = urlsplit(urljoin(base, (location or b"").decode("ascii")))
            origin = _origin(url)
        except ValueError:
            return None
        path = (f"{url.path}?{url.query}" if url.query else url.path).encode("ascii")
        is_same = location is not None and origin == _origin(urlsplit(base))
        return path if is_same and url.path and _is_visible(path) else None

    @property
    def has_session(self) -> bool:
        """Whether the server gave an id to a session, which it can end."""
        return self._session_id is not None

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

    def deliver(self, frame: Frame, origin: object = None, event: Event | None = None) -> None:
        """Hand a received message on; `origin` is the request in whose response it came."""
        if not self._is_reported:
            if self.observer is not None:
                self.observer.on_frame(origin, frame, event)
            self.on_message(frame, None)

    def forget(self, post: Post) -> None:
        """Forget a POST that has ended."""
        if self.observer is not None:
            self.observer.on_end(post)
        self._posts.pop(post, None)
        for id in post.ids:
            if self._by_id.get(id) is post:
                del self._by_id[id]
        if post is self._initialized:
            # After the task that opens the stream, on which the server tells what requests change.
            asyncio.get_running_loop().call_soon(self._release)
        if self._lost_session is not None:
            self._end_if_lost()

    def _release(self) -> None:
        """Send what waited for the response to `notifications/initialized`, whatever it was."""
        self._is_opening, self._initialized = False, None
        held, self._held = self._held, []
        for post in held:
            if not post.is_over and self.is_connected:
                post.start()

    def _leave_answered(self) -> None:
        for post in list(self._posts):
            post.leave_answered()

    def lose(self, post: Post, error: Exception) -> None:
        """Report the requests of a POST that have no answer."""
        self.forget(post)
        for id in post.open_ids():
            self.on_request_lost(id, error)


def _is_session_id(value: bytes) -> bool:
    return 0 < len(value) <= _MAX_SESSION_ID_BYTES and _is_visible(value) is not None


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    default = {"http": 80, "https": 443}.get(url.scheme)
    return url.scheme, url.hostname, default if url.port is None else url.port

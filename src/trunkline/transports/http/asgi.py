"""The `Routes` of a listener as an ASGI 3 application: another HTTP server carries the bytes.

`AsgiServer` makes requests of ASGI scopes, reads their bodies, and sends what their responders
were given. It has no sockets; header and idle timeouts are up to the HTTP server.

The rules that live here, and only here:

* The path of a request is that below the mount point (`root_path`); if no route has it, the whole
  path. A percent-encoded spelling of a path is another path.     [ASGI 3.0, HTTP connection scope]
* A response is not watched for the end of its connection until it has taken `_WATCH_AFTER_S`: a
  task that waits for `http.disconnect` costs as much as a short request.
* What is not yet handed to the HTTP server counts as unread: it waits while its client reads
  slowly. A large response is handed over in parts, because servers wait before the next one.
                                                                   [ASGI 3.0, response body]
* Timers run while there are requests or sessions, and end after the last of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...accounts.account import Accounts, ReceivedBytes
from ...accounts.client_key import client_key
from ...exception_text import as_redacted
from ...jsonrpc.framing.framing import Oversize, Pieces, head_size
from ...redaction import show
from ...spec.http_conditions import HTTP
from ..receive_limits import receive_timeout
from .open_requests import OpenRequests
from .request import HttpRequest, read_headers
from .response import (
    INTERNAL_ERROR,
    LARGER_THAN_SHARE,
    STOPPING,
    TOO_MANY_REQUESTS,
    TOO_MUCH_RECEIVED,
    Refusal,
)

if TYPE_CHECKING:
    from ...accounts.account import Account
    from .endpoint.routes import Routes
    from .response import Headers, OpenExchange
    from .settings import HttpLimits

__all__ = ["AsgiRequest", "AsgiResponder", "AsgiServer", "Receive", "Scope", "Send"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log: Final = logging.getLogger("trunkline.http")
_access: Final = logging.getLogger("trunkline.access")

# Seconds between two looks at timeouts, streams and sessions.
_TICK_S: Final = 1.0
# Seconds after which a response that is not complete is watched for the end of its connection.
_WATCH_AFTER_S: Final = 0.02
# A body of at most so many bytes is read before its request is refused: servers close a connection
# with an unread body, and a client that still sends it may lose the answer.
_DISCARDED_BYTES: Final = 64 * 1024
# Above this many unread bytes a client reads slowly.
_SLOW_BYTES: Final = 64 * 1024
# Bytes of a large response that the HTTP server is handed at once.
_PART_BYTES: Final = 256 * 1024
# Seconds in which a client takes none of what it was sent before it is disconnected.
_UNREAD_TIMEOUT_S: Final = 60.0

_SLOW_BODY: Final = Refusal(HTTP["request-timeout"], "The request body took too long")

# What a responder is doing.
_READING: Final = 0  # the body
_SERVING: Final = 1
_STREAMING: Final = 2
_ENDED: Final = 3


class AsgiRequest(HttpRequest):
    """A request with the ASGI scope that it was made of.

    Middleware of other projects leaves its findings there, such as `scope["user"]`.
    """

    __slots__ = ("scope",)

    scope: Scope

    @property
    def mount(self) -> str:
        """What precedes `path` in the URL: where the application is mounted in another one."""
        path: str = self.scope["path"]
        root: str = self.scope.get("root_path", "").rstrip("/")
        # A proxy may have cut it off before.
        return path.removesuffix(self.path) if path.startswith(root) else root


class AsgiResponder:
    """The response to one request, until the HTTP server has taken all of it."""

    __slots__ = (
        "_is_slow",
        "_parts",
        "_waiter",
        "account",
        "body",
        "ending",
        "exchange",
        "headers",
        "is_counted",
        "is_gone",
        "is_whole",
        "received",
        "requests",
        "sends_body",
        "since",
        "state",
        "status",
        "task",
        "unread",
        "watcher",
        "weighed",
    )

    def __init__(self, sends_body: bool, account: Account, requests: OpenRequests) -> None:
        self.requests = requests
        self.exchange: OpenExchange | None = None
        # That of the client, by its address until the request tells its principal.
        self.account = account
        # Whether it is one of the open requests of its client.
        self.is_counted = True
        # Whether the client has closed the connection.
        self.is_gone = False
        self.state = _READING
        # What is sent first: 0 until it is known.
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.is_whole = False
        self.sends_body = sends_body
        # The number of bytes of the body so far, if it comes in parts.
        self.received = 0
        # The number of bytes that the HTTP server has not taken.
        self.unread = 0
        self._parts: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._is_slow = False
        # Of `tick`: since when the body is read, or nothing has moved, and the bytes unread then.
        self.since = 0.0
        self.weighed = -1
        # Why its task was cancelled here; the answer, if there is none yet.
        self.ending: Refusal | None = None
        self.task: asyncio.Task[Any] | None = None
        self.watcher: asyncio.Task[None] | None = None

    def use_account(self, account: Account) -> None:
        """Count the request for a client that it has told."""
        account.uses += 1
        self.requests.begin(account)
        former, self.account = self.account, account
        self.requests.end(former)
        former.close()

    def break_off(self, why: Refusal) -> None:
        """End the request before its response; a response that has begun is cut."""
        if self.task is not None and self.ending is None:
            self.ending = why
            self.task.cancel()

    def respond(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Send a whole response."""
        if self.status or self.is_gone:
            return
        self.status = status
        self.headers = [*headers]
        if status != 204:
            self.headers.append((b"content-length", b"%d" % len(body)))
        if self.sends_body:
            self.body = body
        self.is_whole = True
        self._end()

    def start(self, headers: Headers) -> None:
        """Begin a stream."""
        if not self.status and not self.is_gone:
            self.status = 200
            self.headers = [*headers]
            self.state = _STREAMING
            self._wake()

    def write(self, data: bytes) -> None:
        """Send a part of a stream."""
        if not data or self.is_gone or self.state != _STREAMING:
            return
        self._parts.append(data)
        self.unread += len(data)
        if self.unread > _SLOW_BYTES and not self._is_slow and self.exchange is not None:
            self._is_slow = True
            self.exchange.note_slow(True)
        self._wake()

    def end(self) -> None:
        """End a stream."""
        if self.state == _STREAMING:
            self._end()

    def _end(self) -> None:
        self.state = _ENDED
        self.exchange = None
        self._wake()

    def take(self) -> bytes:
        """Return what was written and not yet sent."""
        parts = self._parts
        if not parts:
            return b""
        self._parts = []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def taken(self, size: int) -> None:
        """Note that the HTTP server has taken bytes."""
        self.unread -= size
        if self._is_slow and self.unread <= _SLOW_BYTES // 4:
            self._is_slow = False
            if self.exchange is not None:
                self.exchange.note_slow(False)

    def lost(self) -> None:
        """Note that the client has gone, if it has not been sent all."""
        if self.is_gone or self.state == _ENDED:
            return
        self.is_gone = True
        exchange, self.exchange = self.exchange, None
        self._wake()
        if exchange is not None:
            exchange.disconnected()

    async def wait(self) -> None:
        """Wait until there is something to send, or the client has gone."""
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class AsgiServer:
    """The requests of one ASGI application, on one event loop."""

    def __init__(
        self,
        routes: Routes,
        limits: HttpLimits,
        message_size: int | None,
        *,
        access_log: bool = False,
        accounts: Accounts | None = None,
        on_wrong_host: Callable[[str], object] | None = None,
    ) -> None:
        """Serve a table of routes; `on_wrong_host` gets the names of hosts that are not allowed."""
        self.routes = routes
        self.limits = limits
        self.message_size = message_size
        self.access_log = access_log
        self.on_wrong_host = on_wrong_host
        self.loop = asyncio.get_running_loop()
        self.active: dict[AsgiResponder, None] = {}
        if accounts is None:
            accounts = Accounts(limits.requests)
        self._accounts = accounts
        # Health checks count too, and are served in any case.
        self._requests = OpenRequests(limits.requests, accounts)
        routes.admits_request = self._requests.admits
        # Requests whose body comes in parts, the oldest first.
        self._reading: dict[AsgiResponder, None] = {}
        self.is_stopping = False
        self._closed: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        # Responses that may have to be watched, and the timer of that.
        self._unwatched: list[tuple[AsgiResponder, Receive]] = []
        self._watch_timer: asyncio.TimerHandle | None = None

    # -- one request -------------------------------------------------------------------------

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; return when its response is sent, or its client has gone."""
        account = self._open_account(scope.get("client"))
        responder = AsgiResponder(scope["method"] != "HEAD", account, self._requests)
        responder.task = asyncio.current_task()
        began = self.loop.time() if self.access_log else 0.0
        self.active[responder] = None
        self._requests.begin(account)
        if self._timer is None:
            self._timer = self.loop.call_later(_TICK_S, self._tick)
        try:
            await self._handle(scope, receive, responder)
            if not responder.status and not responder.is_gone:
                # The first step of the handler is due before this task is again.
                await asyncio.sleep(0)
            if not responder.status and not responder.is_gone:
                self._watch(responder, receive)
                await responder.wait()
            if responder.is_gone:
                return
            head = {
                "type": "http.response.start",
                "status": responder.status,
                "headers": responder.headers,
            }
            if len(responder.body) > _SLOW_BYTES:
                await _send_large(responder, head, send)
                return
            await send(head)
            if responder.is_whole:
                await send({"type": "http.response.body", "body": responder.body})
            else:
                await self._stream(responder, receive, send)
        except asyncio.CancelledError:
            if responder.ending is None or responder.task is None:
                raise
            responder.task.uncancel()
            await self._end_early(responder, responder.ending, send)
        except OSError as error:
            # What a server raises if the connection has ended.      [ASGI 2.4, disconnected client]
            _log.debug("response not sent: %s", error)
        finally:
            del self.active[responder]
            responder.lost()
            if responder.is_counted:
                self._requests.end(responder.account)
            responder.account.close()
            if responder.watcher is not None:
                responder.watcher.cancel()
            if self.access_log:
                self._log_access(scope, responder.status, began)
            if self._closed is not None and not self.active and not self._closed.done():
                self._closed.set_result(None)

    async def _handle(self, scope: Scope, receive: Receive, responder: AsgiResponder) -> None:
        """Admit a request, read its body, and hand it to the routes."""
        routes = self.routes
        request, length = self._read_head(scope)
        if isinstance(request, Refusal):
            routes.refuse(responder, request, None)
            return
        if responder.account.is_many:  # a proxy: the request tells its client
            account = routes.open_client_account(request, responder.account)
            responder.use_account(account)
            account.close()
        refusal = self._refusal(request, responder.account)
        # The HTTP server asks for such a body when it is received.
        is_awaited = routes.authenticator is not None and b"expect" in dict(request.headers)
        if refusal is None and is_awaited:
            refusal = routes.check_head(request)
        if refusal is not None:
            if 0 < length <= _DISCARDED_BYTES and request.header(b"expect") is None:
                await self._read_body(await receive(), request, length, receive, responder)
            routes.refuse(responder, refusal, request)
            return
        message = await receive()
        body: Any = message.get("body", b"")
        limit = self.message_size
        if message["type"] == "http.disconnect":
            responder.lost()
            return
        if message.get("more_body") or (limit is not None and len(body) > limit):
            if message.get("more_body") and not is_awaited:
                refusal = routes.check_head(request)
            if refusal is None or 0 < length <= _DISCARDED_BYTES:
                body = await self._read_body(message, request, length, receive, responder)
            body = refusal or body
            if body is None:
                responder.lost()
                return
            if isinstance(body, Refusal):
                routes.refuse(responder, body, request)
                return
        elif type(body) is not bytes:
            body = bytes(body)
        responder.state = _SERVING
        try:
            routes.handle(request, body, responder)
        except Exception as error:  # a defect; the client gets an answer
            _log.error("internal error while serving an HTTP request\n%s", as_redacted(error))
            if responder.status:
                raise
            routes.refuse(responder, INTERNAL_ERROR, request)

    def _read_head(self, scope: Scope) -> tuple[AsgiRequest | Refusal, int]:
        """Return the request of a scope, or why it is refused, and the length of its body."""
        # Servers differ in the blanks that they keep around a value; they are not part of it.
        #                                                           [RFC 9110, section 5.5]
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        read = read_headers(headers, self.limits)
        if isinstance(read, Refusal):
            return read, 0
        known, length = read
        peer = scope.get("client")
        request = AsgiRequest(
            scope["method"],
            self._path_of(scope),
            scope.get("query_string", b"").decode("latin-1"),
            scope["http_version"],
            headers,
            peer[0] if peer else "",
            scope.get("scheme") == "https",
            *known,
        )
        request.scope = scope
        return request, length

    def _path_of(self, scope: Scope) -> str:
        path: str = scope["path"]
        below, root = path or "/", scope.get("root_path", "").rstrip("/")
        if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/"):
            below = path[len(root) :] or "/"
        raw = scope.get("raw_path")
        if raw and b"%" in raw:
            raw = raw.partition(b"?")[0]
            if not raw.endswith(below.encode("utf-8", "replace")):
                return str(raw.decode("latin-1"))
        find = self.routes.find
        if root and find(below) is None and find(path) is not None:
            return path
        return below

    def _open_account(self, peer: Any) -> Account:
        """Use the account of a peer, before the request tells its client."""
        address = peer[0] if peer else ""
        if self.routes.admission.is_proxy(address):
            return self._accounts.open(f"proxy {address}", is_many=True)
        return self._accounts.open(client_key(address))

    def _refusal(self, request: HttpRequest, account: Account) -> Refusal | None:
        if request.path not in self.routes.probes:
            if self.is_stopping:
                return STOPPING
            if not self._requests.has_room(account) and not self._take_back(account):
                return TOO_MANY_REQUESTS
        refusal = self.routes.admit(request)
        if (
            refusal is not None
            and refusal.row is HTTP["host-not-allowed"]
            and self.on_wrong_host is not None
        ):
            self.on_wrong_host(show((request.host or b"").decode("latin-1")))
        return refusal

    def _take_back(self, account: Account) -> bool:
        """Refuse the oldest request of a client whose body is not complete; False without one.

        Such a request is of an address: others there may be known clients.
        """
        for each in self._reading:
            if each.account is account and each.ending is None:
                each.break_off(TOO_MANY_REQUESTS)
                # Now, not when its task has ended: many may be taken back in one turn.
                each.is_counted = False
                self._requests.end(each.account)
                return True
        return False

    async def _read_body(
        self,
        message: MutableMapping[str, Any],
        request: HttpRequest,
        length: int,
        receive: Receive,
        responder: AsgiResponder,
    ) -> bytes | Oversize | Refusal | None:
        """Return a body that comes in parts, an `Oversize`, or None if the client has gone.

        A refusal is returned if the client sends too many bytes at once.
        """
        limit = self.message_size
        body = Pieces()
        self._reading[responder] = None
        received = ReceivedBytes(self.routes.open_client_account(request, responder.account))
        try:
            while message["type"] != "http.disconnect":
                data, has_more = bytes(message.get("body", b"")), message.get("more_body")
                body.add(data)
                if limit is not None and max(body.size, length) > limit:
                    wanted = min(head_size(limit), max(length, limit))
                    if body.size >= wanted or not has_more:
                        return Oversize(body.take()[:wanted], length or None, limit)
                if not has_more:
                    return body.take()
                if not received.weigh(body.size):
                    is_too_large = length > received.account.most_received
                    return LARGER_THAN_SHARE if is_too_large else TOO_MUCH_RECEIVED
                responder.received = body.size
                message = await receive()
            return None
        finally:
            del self._reading[responder]
            received.close()

    async def _stream(self, responder: AsgiResponder, receive: Receive, send: Send) -> None:
        is_watched = False
        while True:
            data, has_ended = responder.take(), responder.state == _ENDED
            if data or has_ended:
                await send({"type": "http.response.body", "body": data, "more_body": not has_ended})
                responder.taken(len(data))
            elif responder.is_gone:
                return
            else:
                if not is_watched and responder.watcher is None:
                    is_watched = True
                    self._watch(responder, receive)
                await responder.wait()
            if has_ended:
                return

    async def _end_early(self, responder: AsgiResponder, why: Refusal, send: Send) -> None:
        """Answer a request whose body is not complete; break a stream that is not read."""
        if responder.state == _READING:
            responder.state = _SERVING
            self.routes.refuse(responder, why, None)
            status, headers = why.status, responder.headers
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": responder.body})

    def _log_access(self, scope: Scope, status: int, began: float) -> None:
        peer = scope.get("client")
        client = peer[0] if peer else ""
        request = self._read_head(scope)[0]
        if not isinstance(request, Refusal):
            client = self.routes.admission.client_of(request)
        _access.info(
            "%s %s %s %d %.1f ms",
            client or "unix",
            show(scope["method"]),
            show(scope["path"]),
            status,
            (self.loop.time() - began) * 1000,
        )

    # -- the end of connections --------------------------------------------------------------

    def _watch(self, responder: AsgiResponder, receive: Receive) -> None:
        """Watch for the end of the connection, if the response is not complete soon."""
        self._unwatched.append((responder, receive))
        if self._watch_timer is None:
            self._watch_timer = self.loop.call_later(_WATCH_AFTER_S, self._start_watching)

    def _start_watching(self) -> None:
        waiting, self._unwatched = self._unwatched, []
        self._watch_timer = None
        for responder, receive in waiting:
            if responder in self.active and responder.watcher is None:
                responder.watcher = self.loop.create_task(_watch(responder, receive))

    # -- time --------------------------------------------------------------------------------

    def _tick(self) -> None:
        now, self._timer = self.loop.time(), None
        for each in list(self.active):
            try:
                self._tick_one(each, now)
            except Exception as error:  # noqa: BLE001  # a defect; the other requests go on
                _log.error("internal error of an HTTP request\n%s", as_redacted(error))
        self.routes.reap(now)
        if self.active or not self.routes.is_idle:
            self._timer = self.loop.call_later(_TICK_S, self._tick)

    def _tick_one(self, responder: AsgiResponder, now: float) -> None:
        limits = self.limits
        if not responder.since or responder.unread != responder.weighed:
            responder.since, responder.weighed = now, responder.unread
        waited = now - responder.since
        if responder.state == _READING:
            is_late = waited >= receive_timeout(limits.body_timeout, responder.received)
        else:
            is_late = responder.unread > 0 and waited >= _UNREAD_TIMEOUT_S
        if is_late:
            responder.break_off(_SLOW_BODY)
        elif responder.exchange is not None:
            responder.exchange.tick(now, limits.stream_after, limits.keep_alive)

    # -- stopping ----------------------------------------------------------------------------

    def stop(self) -> None:
        """Refuse new requests."""
        self.is_stopping = True

    async def close(self, seconds: float) -> None:
        """Wait until responses are sent, then end what is left."""
        self.stop()
        if self.active:
            self._closed = self.loop.create_future()
            await asyncio.wait([self._closed], timeout=seconds)
        for each in list(self.active):
            each.lost()
        for timer in (self._timer, self._watch_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._watch_timer = None


async def _send_large(responder: AsgiResponder, head: MutableMapping[str, Any], send: Send) -> None:
    """Send a whole response, its body in parts; it counts for its client until that has ended."""
    body, responder.body = memoryview(responder.body), b""
    budget, size = responder.account.budget, len(body)
    budget.charge(size)
    responder.unread = size
    try:
        await send(head)
        for begin in range(0, size, _PART_BYTES):
            end = begin + _PART_BYTES
            responder.unread = size - begin
            part = {"type": "http.response.body", "body": bytes(body[begin:end])}
            await send({**part, "more_body": end < size})
    finally:
        responder.unread = 0
        budget.release(size)


async def _watch(responder: AsgiResponder, receive: Receive) -> None:
    try:
        while (await receive())["type"] != "http.disconnect":
            await asyncio.sleep(_WATCH_AFTER_S)  # a server that repeats itself is not polled
    except Exception as error:  # noqa: BLE001  # of the HTTP server: it has no connection any more
        _log.debug("connection ended: %s", error)
    responder.lost()

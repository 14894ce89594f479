"""One session with one server: requests, cancellation, incoming messages, and its end.

A `Session` connects a transport to a `Peer`. A request is a future among the outgoing requests;
it has no task, timer or queue of its own. Timeouts are in `requests.timeouts`.

The rules that live here, and only here:

* A request that times out, or whose caller was cancelled, is cancelled by notification;
  `initialize` never is.                [MCP 2025-11-25, basic/utilities/cancellation]
* A line from the server that is not a message gets no reply: most often it belongs to its log,
  and a reply would be its next error. A faulty request with an id gets an error reply, since the
  server waits for it. In 2026-07-28 a client sends no replies at all.
                                                   [MCP 2026-07-28, basic/patterns]
* A server that sends requests and does not read the replies loses its connection.
* A session ends once, in a task of its own: cancelling a waiter does not stop it.
* A session that the client closes first sends its closing requests, which release what the server
  keeps for this client alone. Their replies are awaited for 1 s: a server that sees the end of
  input may not read what came before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, Raw
from msgspec.json import encode

from ...errors import (
    ConnectionLost,
    IdsExhausted,
    InvalidMessage,
    PeerError,
    RequestTimeout,
    TransportError,
    TrunklineError,
)
from ...jsonrpc.codec.codec import Codec, Envelope
from ...jsonrpc.error_codes import peer_error
from ...jsonrpc.framing.framing import Oversize
from ...jsonrpc.limits import TransportName
from ...jsonrpc.messages import Notification, Reply, Request, RequestId, shown_tuple
from ...jsonrpc.peer.outgoing import Pending, UnmatchedReply
from ...jsonrpc.peer.peer import Extras, Peer, ProtocolProblem, UnmatchedReplyEvent
from ...jsonrpc.policy import Policy
from ...mcp.meta import LOG_LEVEL
from ...mcp.names import official, spoken
from ...mcp.types import (
    CancelledNotificationParams,
    Implementation,
    ProgressNotificationParams,
    ServerCapabilities,
)
from ...redaction import show
from ...transports.base import HIGH_WATER, Frame, Transport, ignore
from .diagnostics import RateLimitedLog, current_task
from .method_checks import sendable
from .request import OnProgress, OutgoingRequest, ReplyWaiter
from .timeouts import RequestTimeouts, RequestWatch

if TYPE_CHECKING:
    from ..options import ClientOptions
    from ..server_requests.handlers import ClientHandlers
    from ..server_requests.incoming import ServerRequestRunner
    from ..subscriptions.dispatch import SubscriptionRouter
    from ..subscriptions.notifications import NotificationCallbacks
    from .validation import MessageValidator

__all__ = [
    "CLOSED",
    "NOT_SENT",
    "Era",
    "NegotiatedSession",
    "OnProgress",
    "OutgoingRequest",
    "RequestNotSent",
    "Session",
    "error_from",
]

Era: TypeAlias = Literal["handshake", "per_request"]

CLOSED: Final = "the client was closed"

_CALL: Final = "tools/call"

# A server that sends requests without reading makes the client buffer its replies. Above
# HIGH_WATER no handler is called, and after this many bytes of error replies the connection ends.
# The backlog alone proves nothing: it may be a large argument of this client.
_MAX_UNREAD_BYTES: Final = HIGH_WATER
# How long `close` waits for the replies to closing requests.
_CLOSING_TIMEOUT_S: Final = 1.0
# How many abandoned calls are remembered, to recognise their late replies.
_MAX_ABANDONED: Final = 256
# The size of an error reply without its id, which the server chose and may be long.
_ERROR_REPLY_BYTES: Final = 128


class NegotiatedSession(NamedTuple):
    """What was negotiated with the server."""

    revision: str
    era: Era
    server_info: Implementation | None = None
    capabilities: ServerCapabilities = ServerCapabilities()
    instructions: str | None = None
    # The result of `initialize` or of `server/discover`.
    opening: Any = None
    # `_meta` of every request; empty in the handshake era.
    meta: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        return shown_tuple(self)


class RequestNotSent(ConnectionLost):
    """The connection had ended before the request was sent: a new session can send it."""


# The request was not sent, and a new session can send it.
NOT_SENT: Final = (IdsExhausted, RequestNotSent)


class _End(NamedTuple):
    reason: str
    exit_status: int | None = None
    stderr: tuple[str, ...] = ()
    # The server outlives the connection, and the next request may open another.
    can_renew: bool = False
    # The server closed the connection normally, before negotiation and without a reason.
    was_turned_away: bool = False
    # What a server in this process raised.
    cause: BaseException | None = None

    def __repr__(self) -> str:
        return shown_tuple(self)


@lru_cache(maxsize=32)
def _codec(policy: Policy, transport: TransportName) -> Codec:
    return Codec(policy, expect="replies", transport=transport)


def _future_factory(loop: asyncio.AbstractEventLoop) -> Callable[[], asyncio.Future[Any]]:
    # As `create_future` of asyncio's own loops does, with one call less.
    is_plain = type(loop).create_future is asyncio.BaseEventLoop.create_future
    return partial(asyncio.Future, loop=loop) if is_plain else loop.create_future


class Session:
    """One session on one transport."""

    def __init__(
        self,
        transport: Transport,
        policy: Policy,
        options: ClientOptions,
        *,
        handlers: ClientHandlers,
        callbacks: NotificationCallbacks,
        new_router: Callable[[Session], SubscriptionRouter],
        server_log: RateLimitedLog,
        validator: MessageValidator | None = None,
        is_outlived: bool = False,
        server: str = "",
    ) -> None:
        self.transport = transport
        self.policy = policy
        self.negotiated: NegotiatedSession | None = None
        self.is_per_request = False
        self.revision = policy.revision
        self.methods: frozenset[str] = frozenset()
        # `_meta` of a request without a token or `meta` of its own, encoded once; and decoded.
        self.meta: Any = UNSET
        self._carried: Mapping[str, Any] = {}
        self._validator = validator
        # Whether the server outlives this connection, and its address for errors.
        self._is_outlived = is_outlived
        self._server = server
        # Called with what was done about a lost connection, stream or session.
        self.on_event: Callable[[str, str], object] = ignore
        # Called with True while the transport obtains a credential, and then with False.
        self.on_authorizing: Callable[[bool], object] = ignore
        # Why timeouts are paused.
        self._is_answering = self._is_authorizing = False
        # The handlers of server requests, in either era.
        self.handlers = handlers
        # Created with the first request of the server.
        self._server_requests: ServerRequestRunner | None = None
        self._callbacks = callbacks
        self._server_log = server_log
        # The last error without an id, by which a server may reject the connection.
        self._rejection = ""
        self.streams = new_router(self)
        self._loop = loop = asyncio.get_running_loop()
        self._now = loop.time
        self._new_future = _future_factory(loop)
        self._probes: list[Pending] = []
        # Bytes of error replies since the backlog exceeded HIGH_WATER.
        self._unread_bytes = 0
        self._end: _End | None = None
        self._over: asyncio.Future[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        # Requests to send before the session is closed, by owner; and the futures of their replies.
        self.closing_requests: dict[object, tuple[str, Any]] = {}
        self._closing_replies: list[asyncio.Future[Any]] = []
        # Ids of abandoned tool calls; created with the first.
        self._abandoned: dict[RequestId, None] | None = None
        self._on_idle: Callable[[], object] | None = None
        # Whether another session has replaced this one, and how many operations still use this one.
        self.is_leaving = False
        self._holds = 0
        self._write = transport.send if validator is None else self._write_checked
        self._peer = self._new_peer(options.envelope)
        self._timeouts = RequestTimeouts(
            self._peer,
            timeout=options.request_timeout,
            list_timeout=options.list_timeout,
            max_timeout=options.max_timeout,
            on_progress=options.on_progress,
            on_timeout=self._timed_out,
        )
        # Copies, for the fast path of `send`.
        self._timeout, self._watches = self._timeouts.timeout, self._timeouts.watches
        self._attach(transport)

    def _new_peer(self, envelope: Extras | None) -> Peer:
        return Peer(
            _codec(self.policy, self.transport.name),
            write=self._write,
            on_request=self._asked,
            on_notification=self._notified,
            on_reply=self._replied if self._validator is None else self._replied_checked,
            on_problem=self._problem,
            answers_faults=False,
            envelope=envelope,
            routes_requests=getattr(self.transport, "reads_requests", False),
        )

    def _attach(self, transport: Any) -> None:
        """Take what a transport delivers; the callbacks from `on_request_lost` on are optional."""
        transport.on_message = self._feed if self._validator is None else self._feed_checked
        transport.on_error = self._lost
        for name, callback in (
            ("on_request_lost", self._request_lost),
            ("is_waiting", self._peer.outgoing.__contains__),
            ("on_authorizing", self._authorizing),
            ("on_gap", self.streams.report_gap),
            ("on_handler_error", self._fail_request),
        ):
            if hasattr(transport, name):
                setattr(transport, name, callback)

    # -- opening and ending ------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the session can send."""
        return self._end is None and self.transport.is_connected

    @property
    def was_turned_away(self) -> bool:
        """Whether a server that outlives its connections closed this one before negotiation."""
        return self._end is not None and self._end.was_turned_away

    @property
    def over(self) -> asyncio.Future[None]:
        """A future that is done once the session has ended; it is never cancelled."""
        if self._over is None:
            self._over = self._new_future()
            if self._end is not None:
                self._over.set_result(None)
        return self._over

    def clock(self) -> float:
        """Return the time by which requests are measured; it pauses while a handler runs."""
        return self._timeouts.now()

    async def pause(self, seconds: float) -> None:
        """Wait, or until the session has ended."""
        await asyncio.wait([self.over], timeout=seconds)

    def check_open(self, method: str = "") -> None:
        """Check that the session has not ended.

        Raises:
            RequestNotSent: it has ended, and another can be opened.
            ConnectionLost: it has ended, and no other can be opened.
        """
        if self._end is not None:
            kind = RequestNotSent if self._end.can_renew else ConnectionLost
            raise self._gone(method, kind)

    def use(self, negotiated: NegotiatedSession) -> None:
        """Use what was negotiated from now on."""
        self.negotiated = negotiated
        self.is_per_request = negotiated.era == "per_request"
        self.revision = negotiated.revision
        self.policy = self.policy.replace(revision=negotiated.revision)
        self.methods = sendable(negotiated.revision, "request")
        self._probes.clear()
        self.log_at(None)
        self._peer.use(_codec(self.policy, self.transport.name))

    def log_at(self, level: str | None) -> None:
        """Set the log level in `_meta` of every request, in the per-request era."""
        carried = dict(self.negotiated.meta) if self.negotiated is not None else {}
        if carried and level is not None:
            carried[LOG_LEVEL] = level
        self._carried = carried
        self.meta = Raw(encode(carried)) if carried else UNSET

    def end(self, reason: str = CLOSED) -> asyncio.Task[None]:
        """End the session and all pending requests; return the task that closes it."""
        self._finish(_End(reason), may_send=reason == CLOSED)
        if self._ending is None:
            # A callback that closes the client waits for this task, so it is not awaited here.
            self._ending = self._loop.create_task(self._close(current_task()))
        return self._ending

    async def close(self, reason: str = CLOSED) -> None:
        """End the session, and wait until everything is closed."""
        await asyncio.shield(self.end(reason))

    async def _close(self, caller: asyncio.Task[Any] | None) -> None:
        outcomes = await asyncio.gather(
            self._close_transport(),
            self.handlers.end(caller),
            self._callbacks.end(caller),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                self._server_log.exception(outcome, "closing a session")
        self._server_log.end()

    async def _close_transport(self) -> None:
        if self._closing_replies:
            await asyncio.wait(self._closing_replies, timeout=_CLOSING_TIMEOUT_S)
            for pending in self._peer.close()[0]:
                pending.waiter.cancel()
        await self.transport.close()

    def when_idle(self, then: Callable[[], object]) -> None:
        """Call `then` once no request is pending."""
        self.is_leaving = True
        self._on_idle = then
        self._check_idle()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the session open for an operation of several requests."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self._check_idle()

    def _lost(self, error: TransportError | None) -> None:
        for waiter in self._closing_replies:  # no reply will come
            waiter.cancel()
        can_renew = self._is_outlived and self.negotiated is not None
        if error is None:
            said = f": {self._rejection}" if self.negotiated is None and self._rejection else ""
            turned_away = self._is_outlived and self.negotiated is None and not said
            reason = f"the server ended the connection{said}"
            self._finish(_End(reason, can_renew=can_renew, was_turned_away=turned_away))
        else:
            end = _End(
                error.reason,
                error.exit_status,
                error.stderr,
                can_renew=can_renew,
                cause=error.__cause__,
            )
            self._finish(end)

    def _request_lost(self, id: RequestId, error: Exception) -> None:
        """End a request that the transport has lost; the others are not affected."""
        pending = self._peer.outgoing.find(id)
        if pending is not None and isinstance(error, TransportError):
            was_sent = getattr(error, "was_sent", True)
            kind = ConnectionLost if was_sent else RequestNotSent
            error = kind(error.reason, method=pending.method, server=self._server)
        self._fail_request(id, error)

    def _fail_request(self, id: RequestId, error: Exception) -> None:
        """End a request with an exception."""
        pending = self._peer.outgoing.find(id)
        if pending is None or not self._peer.cancel(pending):
            return
        self._timeouts.end(pending)
        if not pending.waiter.done():
            pending.waiter.set_exception(error)
        self._check_idle()

    def _finish(self, end: _End, *, may_send: bool = False) -> None:
        if self._end is not None:
            return
        self._end = end
        self._timeouts.stop()
        may_send = may_send and bool(self.closing_requests) and self.transport.is_connected
        # With closing requests the peer stays open for their replies, and for nothing else.
        expected = self._peer.outgoing.drain() if may_send else self._peer.close()[0]
        if may_send:
            self._send_closing_requests()
        for pending in expected:
            if not pending.waiter.done():
                pending.waiter.set_exception(self._gone(pending.method))
        self.handlers.stop()
        if self._over is not None:
            self._over.set_result(None)
        self.streams.end(self._gone(""))
        self._check_idle()

    def _send_closing_requests(self) -> None:
        for method, params in self.closing_requests.values():
            waiter = self._new_future()
            waiter.add_done_callback(_retrieve)
            try:
                self._peer.send_request(method, params, waiter=waiter)
            except TrunklineError as error:
                self._server_log.warning(
                    "closing request %s was not sent: %s", method, show(str(error))
                )
            else:
                self._closing_replies.append(waiter)

    def _gone(self, method: str, kind: type[ConnectionLost] = ConnectionLost) -> ConnectionLost:
        end = self._end or _End("the connection is gone")
        lost = kind(
            end.reason,
            method=method,
            server=self._server,
            exit_status=end.exit_status,
            stderr=end.stderr,
        )
        lost.__cause__ = end.cause
        return lost

    # -- asking ------------------------------------------------------------------------------

    async def ask(self, request: OutgoingRequest) -> Raw:
        """Send a request and return its undecoded result.

        Raises:
            PeerError: the server returned an error.
            RequestAborted: the request timed out, or the connection is lost.
            LocalProtocolError: it was not sent.
            ValueError: its timeout is not above 0.
        """
        pending = self.start(request)
        try:
            return await pending.waiter  # type: ignore[no-any-return]  # set by `_replied`
        except asyncio.CancelledError:
            self.abandon(pending)
            raise

    def send(
        self,
        method: str,
        params: Any,
        seconds: float | None = None,
        future: ReplyWaiter | None = None,
        read: Callable[[Any], Any] | None = None,
    ) -> Pending:
        """Send a request with the given params; its waiter is a future of the result.

        With `read` that may be what it returns for the result, in place of the undecoded result.
        """
        if self._end is not None:
            self.check_open(method)
        when = self._now() + (self._timeout if seconds is None else seconds)
        waiter = self._new_future() if future is None else future
        pending = self._peer.send_request(method, params, deadline=when, waiter=waiter, read=read)
        if when < self._timeouts.wake_at:
            self._timeouts.arm(when)
        return pending

    def start(self, request: OutgoingRequest, future: ReplyWaiter | None = None) -> Pending:
        """Send a request of a caller; its waiter is a future of the result."""
        watch = self._timeouts.watch(request)
        if watch is None:
            return self.send(request.method, self._params(request), None, future)
        try:
            params = self._params(request, watch.token)
            pending = self.send(request.method, params, watch.seconds, future)
        except BaseException:  # not sent, for any reason: there will be no progress
            self._timeouts.forget(watch)
            raise
        self._timeouts.keep(watch, pending)
        return pending

    def keep_progress(self, pending: Pending) -> Callable[[], None]:
        """Report progress on a request beyond its reply, until the returned function is called."""
        watch = self._timeouts.keep_progress(pending)
        return lambda: self._timeouts.forget(watch)

    def start_batch(
        self,
        calls: Sequence[OutgoingRequest | Notification],
        waiters: Sequence[asyncio.Future[Any]],
    ) -> list[Pending]:
        """Send several messages as one batch; `waiters` has one for each request."""
        self.check_open("a batch")
        when = self._now() + self._timeout
        timeouts = self._timeouts
        watches: list[RequestWatch | None] = []
        messages: list[Request | Notification] = []
        try:
            for call in calls:
                if isinstance(call, OutgoingRequest):
                    watches.append(watch := timeouts.watch(call))
                    params = self._params(call, None if watch is None else watch.token)
                    messages.append(Request(call.method, params, id=None))
                else:
                    messages.append(call)
            sent = self._peer.send_batch(messages, deadline=when, waiters=waiters)
        except BaseException:  # as in `start`
            for watch in watches:
                timeouts.forget(watch)
            raise
        if when < timeouts.wake_at:
            timeouts.arm(when)
        for watch, pending in zip(watches, sent, strict=True):
            if watch is not None:
                timeouts.keep(watch, pending)
                timeouts.set_deadline(pending, self._now() + watch.seconds)
        return sent

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification.

        Raises:
            ConnectionLost: the session has ended.
            LocalProtocolError: it cannot be encoded.
        """
        self.check_open(method)
        self._peer.send_notification(spoken(method, self.policy), params)

    def probe(self, method: str, params: Any) -> Pending:
        """Send a request that determines the era of the server.

        An error without an id belongs to the oldest pending probe: servers handle one message
        after the other.
        """
        self.check_open(method)
        # Without a deadline: `connect_timeout` bounds it.
        pending = self._peer.send_request(method, params, waiter=self._new_future())
        pending.waiter.add_done_callback(_retrieve)
        self._probes.append(pending)
        return pending

    async def wait_for_reply(self, pending: Pending, seconds: float) -> bool:
        """Wait for the reply to a request; return False if there is none by then.

        Time in which the transport obtains a credential does not count.
        """
        end, is_over = self.clock() + seconds, False
        while not is_over:
            await asyncio.wait([pending.waiter], timeout=max(end - self.clock(), 0))
            is_over = pending.waiter.done() or self.clock() >= end
        is_answered: bool = pending.waiter.done()
        return is_answered

    def forget(self, pending: Pending) -> None:
        """Ignore the reply to a request, without notifying the server."""
        self._peer.cancel(pending)
        self._check_idle()

    def abandon(self, pending: Pending, reason: str = "the caller no longer waits") -> None:
        """Cancel a request, and notify the server."""
        self._timeouts.end(pending)
        if self._peer.cancel(pending):
            self._notify_cancelled(pending, reason)
            self._check_idle()
        else:
            _retrieve(pending.waiter)

    def _timed_out(self, pending: Pending, reason: str) -> None:
        if not pending.waiter.done():
            error = RequestTimeout(reason, method=pending.method, server=self._server)
            pending.waiter.set_exception(error)
        self._notify_cancelled(pending, reason)
        self._check_idle()

    def _notify_cancelled(self, pending: Pending, reason: str) -> None:
        if pending.method == _CALL:
            self._remember_abandoned(pending.id)
        if pending.method != "initialize" and self._end is None:
            params = CancelledNotificationParams(request_id=pending.id, reason=reason)
            self._peer.send_notification(spoken("notifications/cancelled", self.policy), params)

    def _remember_abandoned(self, id: RequestId) -> None:
        """Remember an abandoned call: its late reply may name a task, which must be cancelled."""
        if self._abandoned is None:
            self._abandoned = {}
        self._abandoned[id] = None
        if len(self._abandoned) > _MAX_ABANDONED:
            del self._abandoned[next(iter(self._abandoned))]

    def _params(self, request: OutgoingRequest, token: int | None = None) -> Any:
        kind, fields, meta = request.kind, request.fields, request.meta
        if kind is None:
            # Params in wire form, with a `_meta` of their own.
            fields = dict(fields)
            meta = {**fields.pop("_meta", {}), **(meta or {})}
        made = self.meta
        if meta or token is not None:
            # A caller cannot override the keys of the protocol.
            made = {**(meta or {}), **self._carried}
            if token is not None:
                made["progressToken"] = token
        if kind is not None:
            return kind(meta=made, **fields)
        return {**fields, "_meta": made} if made is not UNSET else fields or None

    # -- coming in ---------------------------------------------------------------------------

    def _feed(self, frame: Frame, route: Any) -> None:
        if type(frame) is bytes or isinstance(frame, Oversize):
            self._peer.feed(frame, route)
        else:
            self._server_log.warning(
                "frame error in the output of the server: %s", show(str(frame)), kind="framing"
            )

    def _feed_checked(self, frame: Frame, route: Any) -> None:
        validator = self._validator
        if validator is None or type(frame) is not bytes:
            self._feed(frame, route)
            return
        validator.judge(frame)
        try:
            self._feed(frame, route)
        finally:  # findings apply to this frame only
            validator.forget()

    def _write_checked(self, frame: bytes, route: Any = None) -> None:
        if self._validator is not None:
            self._validator.note(frame)
        self.transport.send(frame, route)

    def _replied(self, pending: Pending, reply: Reply | InvalidMessage) -> None:
        if self._watches:
            self._timeouts.end(pending)
        future = pending.waiter
        if not future.done():
            if isinstance(reply, InvalidMessage):
                future.set_exception(reply)
            elif reply.error is UNSET:
                future.set_result(reply.result)
            else:
                future.set_exception(error_from(reply, pending.method, self.policy))
        if self._on_idle is not None:
            self._check_idle()

    def _replied_checked(self, pending: Pending, reply: Reply | InvalidMessage) -> None:
        fault = None if self._validator is None else self._validator.fault_of(pending.id)
        future = pending.waiter
        if fault is not None and not isinstance(reply, InvalidMessage) and not future.done():
            future.set_exception(fault)
        self._replied(pending, reply)

    def _check_idle(self) -> None:
        if self._on_idle is not None and not (self._holds or len(self._peer.outgoing)):
            then, self._on_idle = self._on_idle, None
            then()

    def _asked(self, asked: Any) -> None:
        if self._end is not None:
            self._peer.drop(asked)  # only replies to closing requests are read
        elif self.is_per_request:
            # Servers of this revision request input inside results; clients send no replies.
            text = "the server sent a request, %s, which this revision does not allow: ignored"
            self._server_log.warning(text, show(asked.method))
            self._peer.drop(asked)
        else:
            if self._server_requests is None:
                # Imported here: most servers send no requests.
                from ..server_requests.incoming import ServerRequestRunner

                self._server_requests = ServerRequestRunner(
                    self.handlers, self._server_log, self._pause_timeouts
                )
            is_busy = not self._is_read(asked.id)
            self._server_requests.take(asked, self._peer, self.policy, is_busy=is_busy)

    def _pause_timeouts(self, is_busy: bool) -> None:
        """Pause request timeouts while a handler answers a request of the server."""
        self._is_answering = is_busy
        self._set_pause()

    def _authorizing(self, is_busy: bool) -> None:
        """Pause request timeouts while the transport obtains a credential."""
        self._is_authorizing = is_busy
        self._set_pause()
        self.on_authorizing(is_busy)

    def _set_pause(self) -> None:
        self._now = self._timeouts.begin  # from the first pause on: until then both are equal
        if self._is_answering or self._is_authorizing:
            self._timeouts.pause()
        else:
            self._timeouts.resume()

    def _is_read(self, id: RequestId | None) -> bool:
        """Return True if the server reads its replies, as far as the backlog shows."""
        if self.transport.backlog <= HIGH_WATER:
            self._unread_bytes = 0
            return True
        self._server_log.warning(
            "the server sends requests and does not read replies: request rejected"
        )
        self._unread_bytes += _ERROR_REPLY_BYTES + len(id if isinstance(id, str) else "")
        if self._unread_bytes > _MAX_UNREAD_BYTES:
            self.end("the server sent requests and did not read the replies")
        return False

    def _notified(self, call: Envelope, route: Any) -> None:
        if isinstance(call, Reply) or self._end is not None:
            return
        method, params = official(call.method, self.policy, self.revision), call.params
        if method == "notifications/progress":
            self._progressed(params)
        elif method == "notifications/cancelled" and not self.is_per_request:
            if self._server_requests is not None:
                self._server_requests.cancel(params, self._peer)
        elif not self.streams.take(method, params):
            self._callbacks.take(method, params)

    def _progressed(self, params: Any) -> None:
        note = self._callbacks.read("notifications/progress", params, ProgressNotificationParams)
        on_progress = None if note is None else self._timeouts.progressed(note.progress_token)
        if on_progress is not None:
            total = None if note.total is UNSET else note.total
            message = None if note.message is UNSET else note.message
            self._callbacks.call("on_progress", on_progress, params, note.progress, total, message)

    def report_progress(self, on_progress: OnProgress, number: int, message: str) -> None:
        """Call `on_progress` for what is not a notification: a new status message of a task."""
        raw = message.encode("utf-8", "surrogatepass")
        self._callbacks.call("on_progress", on_progress, raw, number, None, message)

    def _problem(self, problem: ProtocolProblem, route: Any) -> None:
        if not isinstance(problem, UnmatchedReplyEvent):
            self._server_log.warning("the server sent an invalid message: %s", problem)
            self._reply_error(problem, route)
            return
        reply, why = problem
        if why is UnmatchedReply.LATE:
            # The reply crossed the cancellation.
            if self._abandoned is not None and reply.id in self._abandoned:
                del self._abandoned[reply.id]
                self._take_late_reply(reply)
            return
        if reply.error is not UNSET and not isinstance(reply.id, int | str):
            self._rejection = str(error_from(reply, "", self.policy))
            if self._probed(reply):
                return
        self._server_log.warning("the server sent a reply that is %s: %s", why.value, reply)

    def _take_late_reply(self, reply: Reply) -> None:
        if reply.error is UNSET and self._end is None:
            # Imported here: most replies come in time.
            from ..tasks.cleanup import cancel_late_task

            cancel_late_task(self, reply.result)

    def _reply_error(self, fault: InvalidMessage, route: Any) -> None:
        """Reply to a faulty request, if its id is known."""
        if fault.id is None or self.is_per_request or self._end is not None:
            return
        answer = fault.answer()
        if answer is not None and (self._is_read(fault.id) or self._end is None):
            self._write(answer, route)

    def _probed(self, reply: Reply) -> bool:
        """Use an error without an id as the reply to the oldest pending probe, if there is one."""
        for probe in self._probes:
            if self._peer.cancel(probe):
                probe.waiter.set_exception(error_from(reply, probe.method, self.policy))
                return True
        return False


def error_from(reply: Reply, method: str, policy: Policy) -> PeerError:
    """Return the error of a reply as an exception."""
    error = reply.error
    if error is UNSET:
        raise ValueError("this reply carries a result")
    return peer_error(error, method, policy)


def _retrieve(future: Awaitable[Any]) -> None:
    """Retrieve the exception of a future, so that asyncio does not log it."""
    if isinstance(future, asyncio.Future) and future.done() and not future.cancelled():
        future.exception()

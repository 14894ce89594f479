"""One connection to one server: what was asked, what comes in, and the end of it.

A `Session` joins a transport to a peer. A call is a future in the ledger: no task, no timer
and no queue of its own. How long it may take is in `waiting`.

The rules that live here, and only here:

* A request that runs out of time, or whose caller was cancelled, is cancelled by
  notification; `initialize` never is.        [MCP 2025-11-25, basic/utilities/cancellation]
* A text from the server that is no message gets no answer: most often it is a line of its
  log, and an answer would be the next thing it complains about. One that names a request is
  answered, because somebody waits. In 2026-07-28 a client answers nothing at all.
                                                   [MCP 2026-07-28, basic/patterns]
* A server that asks on and does not read what it is answered loses its connection.
* A session ends once, in a task of its own: whoever waits for the end may go away, and it
  comes all the same.
* One that we close has last words: requests that end on the server what is there for callers of
  ours alone. Their answers are waited for a moment, since a server that sees the end of a
  connection need not look at what came before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, Raw
from msgspec.json import encode

from ..errors import (
    ConnectionLost,
    IdsExhausted,
    InvalidMessage,
    PeerError,
    RequestTimeout,
    TransportError,
    TrunklineError,
)
from ..jsonrpc.codec import Codec, Envelope
from ..jsonrpc.error_codes import peer_error
from ..jsonrpc.framing import Oversize
from ..jsonrpc.limits import TransportName
from ..jsonrpc.messages import Notification, Reply, Request, RequestId
from ..jsonrpc.outgoing import Pending, UnmatchedReply
from ..jsonrpc.peer import Peer, ProtocolProblem, UnmatchedReplyEvent
from ..jsonrpc.policy import Policy
from ..mcp.meta import LOG_LEVEL
from ..mcp.names import official, spoken
from ..mcp.types import (
    CancelledNotificationParams,
    Implementation,
    ProgressNotificationParams,
    ServerCapabilities,
)
from ..redaction import show
from ..transports.base import HIGH_WATER, Frame, Transport
from .diagnostics import RateLimitedLog, current_task
from .requests.method_checks import sendable
from .requests.request import OnProgress, OutgoingRequest, ReplyWaiter
from .requests.timeouts import RequestTimeouts, RequestWatch
from .server_requests.handlers import ClientHandlers
from .subscriptions.dispatch import SubscriptionRouter
from .subscriptions.notifications import NotificationCallbacks

if TYPE_CHECKING:
    from .server_requests.incoming import ServerRequestRunner
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

# A server that asks and does not read makes us hold what we say. From HIGH_WATER on no handler is
# called for it, and after so many bytes of refusals the connection ends. The backlog by itself
# proves nothing: it may be an argument of our own that is still on its way.
_MOST_UNREAD: Final = HIGH_WATER
# Seconds that a server has to answer last words. Whoever closes waits for as long.
_PARTING: Final = 1.0
# How many calls are remembered that we no longer wait for: as many as a late answer is told by.
_LEFT_KEPT: Final = 256
# What an answer takes besides the id, which is the server's and may be long.
_REFUSAL: Final = 128


class NegotiatedSession(NamedTuple):
    """What the two sides found out about each other when they connected."""

    revision: str
    era: Era
    server_info: Implementation | None = None
    capabilities: ServerCapabilities = ServerCapabilities()
    instructions: str | None = None
    # The result of `initialize` or of `server/discover`, whichever opened the connection.
    opening: Any = None
    # What every request carries in `_meta`; empty in the handshake era.
    meta: Mapping[str, Any] = {}


class RequestNotSent(ConnectionLost):
    """The connection had ended before this was sent: another may carry it."""


# Nothing was sent, and a new connection can send it.
NOT_SENT: Final = (IdsExhausted, RequestNotSent)


class _End(NamedTuple):
    """Why a connection is over."""

    reason: str
    exit_status: int | None = None
    stderr: tuple[str, ...] = ()
    # The server is there for another connection, which the next that is asked may make.
    can_renew: bool = False
    # The server ended it in order, before anything was agreed, and did not say why.
    was_turned_away: bool = False


@lru_cache(maxsize=32)
def _codec(policy: Policy, transport: TransportName) -> Codec:
    """Return a codec of replies; programs have few policies and many connections."""
    return Codec(policy, expect="replies", transport=transport)


class Session:
    """One connection."""

    def __init__(
        self,
        transport: Transport,
        policy: Policy,
        *,
        timeout: float,
        max_timeout: float,
        handlers: ClientHandlers,
        callbacks: NotificationCallbacks,
        server_log: RateLimitedLog,
        on_progress: OnProgress | None = None,
        validator: MessageValidator | None = None,
        is_outlived: bool = False,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.transport = transport
        self.policy = policy
        self.negotiated: NegotiatedSession | None = None
        self.is_per_request = False
        self.revision = policy.revision
        self.methods: frozenset[str] = frozenset()
        # What a request that is like any other carries, encoded once; and the same to add to.
        self.meta: Any = UNSET
        self._carried: Mapping[str, Any] = {}
        self._validator = validator
        # Whether the server is there for others too, and for another connection.
        self._is_outlived = is_outlived
        # Who answers what the server asks, in either era.
        self.handlers = handlers
        # What takes the requests of the server; made when the first comes.
        self._answers: ServerRequestRunner | None = None
        self._callbacks = callbacks
        self._server_log = server_log
        # The last error that answers nothing: a server that has no room for us says so like that.
        self._remark = ""
        self.streams = SubscriptionRouter(self, callbacks, server_log)
        self._loop = loop
        self._now = loop.time
        self._new_future = loop.create_future
        self._probes: list[Pending] = []
        # Bytes that were answered since the backlog has become large.
        self._unread = 0
        self._end: _End | None = None
        self._over: asyncio.Future[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        # What is asked at the end, by whose it is, and who waits for that.
        self.closing_requests: dict[object, tuple[str, Any]] = {}
        self._parting: list[asyncio.Future[Any]] = []
        # Calls of tools that nobody waits for any more; made when the first is.
        self._left: dict[RequestId, None] | None = None
        self._on_idle: Callable[[], object] | None = None
        # Whether another session has taken over, and how many go on with this one all the same.
        self.is_leaving = False
        self._holds = 0
        self._write = transport.send if validator is None else self._write_checked
        self._peer = Peer(
            _codec(policy, transport.name),
            write=self._write,
            on_request=self._asked,
            on_notification=self._notified,
            on_reply=self._replied if validator is None else self._replied_checked,
            on_problem=self._problem,
            answers_faults=False,
        )
        self._timeouts = RequestTimeouts(
            self._peer,
            timeout=timeout,
            max_timeout=max_timeout,
            on_progress=on_progress,
            on_timeout=self._timed_out,
        )
        # Looked at by each call, and not looked for.
        self._timeout = self._timeouts.timeout
        self._watches = self._timeouts.watches
        transport.on_message = self._feed if validator is None else self._feed_checked
        transport.on_error = self._lost

    # -- opening and ending ------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether something can be sent."""
        return self._end is None and self.transport.is_connected

    @property
    def was_turned_away(self) -> bool:
        """Whether a server that is there for others ended it before anything was agreed."""
        return self._end is not None and self._end.was_turned_away

    @property
    def over(self) -> asyncio.Future[None]:
        """A future that is done once the connection is over; nobody cancels it."""
        if self._over is None:
            self._over = self._new_future()
            if self._end is not None:
                self._over.set_result(None)
        return self._over

    def clock(self) -> float:
        """Return the time that calls are measured by: it stands while a request of theirs waits."""
        return self._timeouts.now()

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until the connection is over."""
        await asyncio.wait([self.over], timeout=seconds)

    def check_open(self, method: str = "") -> None:
        """Refuse to go on with a connection that is over.

        Raises:
            Unsent: it is, and another could be made.
            ConnectionLost: it is, and that was the last.
        """
        if self._end is not None:
            kind = RequestNotSent if self._end.can_renew else ConnectionLost
            raise self._gone(method, kind)

    def use(self, negotiated: NegotiatedSession) -> None:
        """Go on by what was agreed."""
        self.negotiated = negotiated
        self.is_per_request = negotiated.era == "per_request"
        self.revision = negotiated.revision
        self.policy = self.policy.replace(revision=negotiated.revision)
        self.methods = sendable(negotiated.revision, "request")
        self._probes.clear()
        self.log_at(None)
        self._peer.use(_codec(self.policy, self.transport.name))

    def log_at(self, level: str | None) -> None:
        """Ask for the log of every request from `level` on, where `_meta` is what asks."""
        carried = dict(self.negotiated.meta) if self.negotiated is not None else {}
        if carried and level is not None:
            carried[LOG_LEVEL] = level
        self._carried = carried
        self.meta = Raw(encode(carried)) if carried else UNSET

    def end(self, reason: str = CLOSED) -> asyncio.Task[None]:
        """End the connection, and with it all that is under way; return what ends it."""
        self._finish(_End(reason), may_speak=reason == CLOSED)
        if self._ending is None:
            # A callback of ours that closes is not waited for: it waits for this.
            self._ending = self._loop.create_task(self._wind_up(current_task()))
        return self._ending

    async def close(self, reason: str = CLOSED) -> None:
        """End the connection, and wait until nothing of it is left."""
        await asyncio.shield(self.end(reason))

    async def _wind_up(self, caller: asyncio.Task[Any] | None) -> None:
        outcomes = await asyncio.gather(
            self._hang_up(),
            self.handlers.end(caller),
            self._callbacks.end(caller),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                self._server_log.exception(outcome, "ending a connection")
        self._server_log.end()

    async def _hang_up(self) -> None:
        if self._parting:
            await asyncio.wait(self._parting, timeout=_PARTING)
            for pending in self._peer.close()[0]:
                pending.waiter.cancel()
        await self.transport.close()

    def when_idle(self, then: Callable[[], object]) -> None:
        """Have `then` called once nothing is awaited any more."""
        self.is_leaving = True
        self._on_idle = then
        self._check_idle()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Count as awaited what has more to ask, also while nothing is asked."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self._check_idle()

    def _lost(self, error: TransportError | None) -> None:
        for waiter in self._parting:  # nobody is there to answer any more
            waiter.cancel()
        can_renew = self._is_outlived and self.negotiated is not None
        if error is None:
            said = f": {self._remark}" if self.negotiated is None and self._remark else ""
            turned_away = self._is_outlived and self.negotiated is None and not said
            reason = f"the server ended the connection{said}"
            self._finish(_End(reason, can_renew=can_renew, was_turned_away=turned_away))
        else:
            end = _End(error.reason, error.exit_status, error.stderr, can_renew=can_renew)
            self._finish(end)

    def _finish(self, end: _End, *, may_speak: bool = False) -> None:
        if self._end is not None:
            return
        self._end = end
        self._timeouts.stop()
        may_speak = may_speak and bool(self.closing_requests) and self.transport.is_connected
        # Whoever has something to say yet hears the answers, and nothing else.
        expected = self._peer.outgoing.drain() if may_speak else self._peer.close()[0]
        if may_speak:
            self._speak()
        for pending in expected:
            if not pending.waiter.done():
                pending.waiter.set_exception(self._gone(pending.method))
        self.handlers.stop()
        if self._over is not None:
            self._over.set_result(None)
        self.streams.end(self._gone(""))
        self._check_idle()

    def _speak(self) -> None:
        """Say the last words."""
        for method, params in self.closing_requests.values():
            waiter = self._new_future()
            waiter.add_done_callback(_look_at)
            try:
                self._peer.send_request(method, params, waiter=waiter)
            except TrunklineError as error:
                self._server_log.warning("%s was not sent at the end: %s", method, show(str(error)))
            else:
                self._parting.append(waiter)

    def _gone(self, method: str, kind: type[ConnectionLost] = ConnectionLost) -> ConnectionLost:
        end = self._end or _End("the connection is gone")
        return kind(end.reason, method=method, exit_status=end.exit_status, stderr=end.stderr)

    # -- asking ------------------------------------------------------------------------------

    async def ask(self, request: OutgoingRequest) -> Raw:
        """Send a request and return its result, unread.

        Raises:
            PeerError: the server answered with an error.
            RequestAborted: no answer came: time ran out, or the connection is gone.
            LocalProtocolError: it was not sent.
            ValueError: its time is none.
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
    ) -> Pending:
        """Send a request as it is; its waiter is a future of the result."""
        if self._end is not None:
            self.check_open(method)
        when = self._now() + (self._timeout if seconds is None else seconds)
        waiter = self._new_future() if future is None else future
        pending = self._peer.send_request(method, params, deadline=when, waiter=waiter)
        if when < self._timeouts.wake_at:
            self._timeouts.arm(when)
        return pending

    def start(self, request: OutgoingRequest, future: ReplyWaiter | None = None) -> Pending:
        """Send a request as a caller put it; its waiter is a future of the result."""
        watch = self._timeouts.watch(request)
        if watch is None:
            return self.send(request.method, self._params(request), None, future)
        try:
            params = self._params(request, watch.token)
            pending = self.send(request.method, params, watch.seconds, future)
        except BaseException:  # whatever kept it from being sent, nobody reports progress on it
            self._timeouts.forget(watch)
            raise
        self._timeouts.keep(watch, pending)
        return pending

    def keep_progress(self, pending: Pending) -> Callable[[], None]:
        """Have progress on a request told beyond its answer; return what ends that."""
        watch = self._timeouts.keep_progress(pending)
        return lambda: self._timeouts.forget(watch)

    def start_batch(
        self,
        calls: Sequence[OutgoingRequest | Notification],
        waiters: Sequence[asyncio.Future[Any]],
    ) -> list[Pending]:
        """Send several calls as one message; `waiters` are one for each request."""
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
            ConnectionLost: there is nobody to send it to.
            LocalProtocolError: it cannot be written.
        """
        self.check_open(method)
        self._peer.send_notification(spoken(method, self.policy), params)

    def probe(self, method: str, params: Any) -> Pending:
        """Send a question by which the era is found out.

        An error without an id answers the oldest such question that is open: servers take one
        message after the other.
        """
        self.check_open(method)
        # Without a deadline: how long connecting may take is for the client to say.
        pending = self._peer.send_request(method, params, waiter=self._new_future())
        pending.waiter.add_done_callback(_look_at)
        self._probes.append(pending)
        return pending

    def forget(self, pending: Pending) -> None:
        """Stop waiting without a word: whatever still comes is not needed."""
        self._peer.cancel(pending)
        self._check_idle()

    def abandon(self, pending: Pending, reason: str = "the caller no longer waits") -> None:
        """Stop waiting for an answer, and tell the server."""
        self._timeouts.end(pending)
        if self._peer.cancel(pending):
            self._tell_cancelled(pending, reason)
            self._check_idle()
        else:
            _look_at(pending.waiter)

    def _timed_out(self, pending: Pending, reason: str) -> None:
        if not pending.waiter.done():
            pending.waiter.set_exception(RequestTimeout(reason, method=pending.method))
        self._tell_cancelled(pending, reason)
        self._check_idle()

    def _tell_cancelled(self, pending: Pending, reason: str) -> None:
        if pending.method == _CALL:
            self._remember(pending.id)
        if pending.method != "initialize" and self._end is None:
            params = CancelledNotificationParams(request_id=pending.id, reason=reason)
            self._peer.send_notification(spoken("notifications/cancelled", self.policy), params)

    def _remember(self, id: RequestId) -> None:
        """Know of a call that nobody waits for: its answer may bring a task."""
        if self._left is None:
            self._left = {}
        self._left[id] = None
        if len(self._left) > _LEFT_KEPT:
            del self._left[next(iter(self._left))]

    def _params(self, request: OutgoingRequest, token: int | None = None) -> Any:
        kind, fields, meta = request.kind, request.fields, request.meta
        if kind is None:
            # Params as a caller wrote them down; what they have in `_meta` is the caller's too.
            fields = dict(fields)
            meta = {**fields.pop("_meta", {}), **(meta or {})}
        made = self.meta
        if meta or token is not None:
            # What the protocol has to say is not for a caller to change.
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
                "what came from the server could not be framed: %s", show(frame), kind="framing"
            )

    def _feed_checked(self, frame: Frame, route: Any) -> None:
        validator = self._validator
        if validator is None or type(frame) is not bytes:
            self._feed(frame, route)
            return
        validator.judge(frame)
        try:
            self._feed(frame, route)
        finally:  # or the next frame would be refused for this one
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

    @property
    def _is_awaited(self) -> bool:
        """Whether anybody waits for something of this connection."""
        return bool(self._holds or len(self._peer.outgoing))

    def _check_idle(self) -> None:
        if self._on_idle is not None and not self._is_awaited:
            then, self._on_idle = self._on_idle, None
            then()

    def _asked(self, asked: Any) -> None:
        if self._end is not None:
            self._peer.drop(asked)  # only last words are heard
        elif self.is_per_request:
            # A server of this revision asks inside its results, and a client answers nothing.
            text = "the server sent a request, %s, which it may not"
            self._server_log.warning(text, show(asked.method))
            self._peer.drop(asked)
        else:
            if self._answers is None:
                # Imported here: most servers ask nothing.
                from .server_requests.incoming import ServerRequestRunner

                self._answers = ServerRequestRunner(self.handlers, self._server_log, self._think)
            is_busy = not self._is_read(asked.id)
            self._answers.take(asked, self._peer, self.policy, is_busy=is_busy)

    def _think(self, is_busy: bool) -> None:
        """Stop the clock of calls while something that the server asked is being answered."""
        self._now = self._timeouts.begin  # from now on: until then they are the same
        if is_busy:
            self._timeouts.pause()
        else:
            self._timeouts.resume()

    def _is_read(self, id: RequestId | None) -> bool:
        """Say whether the server reads its answers, as far as can be seen when it asks."""
        if self.transport.backlog <= HIGH_WATER:
            self._unread = 0
            return True
        self._server_log.warning("the server asks and does not read: no handler is called for it")
        self._unread += _REFUSAL + len(id if isinstance(id, str) else "")
        if self._unread > _MOST_UNREAD:
            self.end("the server asked on and did not read what it was answered")
        return False

    def _notified(self, call: Envelope, route: Any) -> None:
        if isinstance(call, Reply) or self._end is not None:
            return
        method, params = official(call.method, self.policy, self.revision), call.params
        if method == "notifications/progress":
            self._progressed(params)
        elif method == "notifications/cancelled" and not self.is_per_request:
            if self._answers is not None:
                self._answers.cancel(params, self._peer)
        elif not self.streams.take(method, params):
            self._callbacks.take(method, params)

    def _progressed(self, params: Any) -> None:
        note = self._callbacks.read("notifications/progress", params, ProgressNotificationParams)
        on_progress = None if note is None else self._timeouts.progressed(note.progress_token)
        if on_progress is not None:
            total = None if note.total is UNSET else note.total
            message = None if note.message is UNSET else note.message
            self._callbacks.call("on_progress", on_progress, note.progress, total, message)

    def _problem(self, problem: ProtocolProblem, route: Any) -> None:
        if not isinstance(problem, UnmatchedReplyEvent):
            self._server_log.warning("the server sent something that is no message: %s", problem)
            self._refuse(problem, route)
            return
        reply, why = problem
        if why is UnmatchedReply.LATE:
            # We stopped waiting; the answer crossed our word of it.
            if self._left is not None and reply.id in self._left:
                del self._left[reply.id]
                self._came_late(reply)
            return
        if reply.error is not UNSET and not isinstance(reply.id, int | str):
            self._remark = str(error_from(reply, "", self.policy))
            if self._probed(reply):
                return
        self._server_log.warning("the server sent a reply that is %s: %s", why.value, reply)

    def _came_late(self, reply: Reply) -> None:
        """Take the answer to a call that nobody waits for."""
        if reply.error is UNSET and self._end is None:
            # Imported here: most answers come in time.
            from .tasks.cleanup import cancel_late_task

            cancel_late_task(self, reply.result)

    def _refuse(self, fault: InvalidMessage, route: Any) -> None:
        """Answer a faulty request, if it can be told which one that is."""
        if fault.id is None or self.is_per_request or self._end is not None:
            return
        answer = fault.answer()
        if answer is not None and (self._is_read(fault.id) or self._end is None):
            self._write(answer, route)

    def _probed(self, reply: Reply) -> bool:
        """Take an error without an id for the answer to the oldest open probe, if there is one."""
        for probe in self._probes:
            if self._peer.cancel(probe):
                probe.waiter.set_exception(error_from(reply, probe.method, self.policy))
                return True
        return False


def error_from(reply: Reply, method: str, policy: Policy) -> PeerError:
    """Return the error that a reply carries, as what a caller is told."""
    error = reply.error
    if error is UNSET:
        raise ValueError("this reply carries a result")
    return peer_error(error, method, policy)


def _look_at(future: Awaitable[Any]) -> None:
    """Look at how a future ended, so that nobody is told of an error that no one waits for."""
    if isinstance(future, asyncio.Future) and future.done() and not future.cancelled():
        future.exception()

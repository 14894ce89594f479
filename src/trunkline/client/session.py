"""One connection to one server: what was asked, what comes in, and the end of it.

A `Session` joins a transport to a peer. A call is a future in the ledger: no task, no timer
and no queue of its own. The deadlines of all calls share one timer, which is set when an
earlier one than all others comes along and otherwise left to find out for itself.

The rules that live here, and only here:

* A request that runs out of time, or whose caller was cancelled, is cancelled by
  notification; `initialize` never is.        [MCP 2025-11-25, basic/utilities/cancellation]
* Progress gives a request its time again, up to a maximum.  [MCP 2025-11-25, basic/lifecycle]
* A text from the server that is no message gets no answer: most often it is a line of its
  log, and an answer would be the next thing it complains about. In 2026-07-28 a client
  answers nothing at all.                          [MCP 2026-07-28, basic/patterns]
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from itertools import count
from math import inf
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, Raw, Struct
from msgspec.json import encode

from ..errors import ConnectionLost, InvalidMessage, PeerError, TimedOut, TransportError
from ..jsonrpc.codec import Codec, Envelope
from ..jsonrpc.framing import Oversize
from ..jsonrpc.ledger import Pending, Stray
from ..jsonrpc.limits import TransportName
from ..jsonrpc.messages import Notification, Reply, Request, RequestId
from ..jsonrpc.peer import Peer, Problem, StrayReply
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
from ..spec.profiles import profile
from ..transports.base import Frame, Transport
from .asked import Answers
from .checks import Checks
from .failures import log
from .notices import Notices
from .permitted import sendable

__all__ = ["CLOSED", "Agreement", "Era", "OnProgress", "Session", "error_from"]

Era: TypeAlias = Literal["handshake", "per_request"]
OnProgress: TypeAlias = Callable[[float, float | None, str | None], object]

CLOSED: Final = "the client was closed"

# What a frame is fed with, so that an answer to it can be told from a request of ours.
_BACK: Final = (None,)
# How an answer begins that names no request.
_NAMELESS: Final = (b'{"jsonrpc":"2.0","error"', b'{"jsonrpc":"2.0","id":null')


class Agreement(NamedTuple):
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


class _End(NamedTuple):
    """Why a connection is over."""

    reason: str
    exit_status: int | None = None
    stderr: tuple[str, ...] = ()


class _Watch:
    """What is particular about one call: its time, its progress."""

    __slots__ = ("cap", "on_progress", "pending", "seconds", "token")

    def __init__(self, seconds: float, on_progress: OnProgress | None) -> None:
        self.seconds = seconds
        self.on_progress = on_progress
        self.cap = inf
        self.token: int | None = None
        self.pending: Pending | None = None


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
        answers: Answers,
        notices: Notices,
        on_progress: OnProgress | None = None,
        checks: Checks | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.transport = transport
        self.policy = policy
        self.agreement: Agreement | None = None
        self.revision = policy.revision
        self.methods: frozenset[str] = frozenset()
        # What a request that is like any other carries, encoded once.
        self._meta: Any = UNSET
        self._timeout = min(timeout, max_timeout)
        self._max_timeout = max_timeout
        self._on_progress = on_progress
        self._checks = checks
        self._answers = answers
        self._notices = notices
        self._loop = loop
        self._now = loop.time
        self._new_future = loop.create_future
        self._wake: asyncio.TimerHandle | None = None
        self._wake_at = inf
        self._watches: dict[RequestId, _Watch] = {}
        self._tokens: dict[int | str, _Watch] = {}
        self._new_token = count(1)
        self._probe: Pending | None = None
        self._end: _End | None = None
        self._on_idle: Callable[[], object] | None = None
        self._peer = Peer(
            _codec(policy, transport.name),
            write=self._write if checks is None else self._write_checked,
            on_request=self._asked,
            on_notification=self._notified,
            on_reply=self._replied,
            on_problem=self._problem,
        )
        transport.on_message = self._feed if checks is None else self._feed_checked
        transport.on_error = self._lost

    # -- opening and ending ------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether something can be sent."""
        return self._end is None and self.transport.is_connected

    def agree(self, agreement: Agreement) -> None:
        """Go on by what was agreed."""
        self.agreement = agreement
        self.revision = agreement.revision
        self.policy = self.policy.but(revision=agreement.revision)
        self.methods = sendable(agreement.revision, "request")
        self.log_at(None)
        self._peer.use(_codec(self.policy, self.transport.name))

    def log_at(self, level: str | None) -> None:
        """Ask for the log of every request from `level` on, where `_meta` is what asks."""
        agreement = self.agreement
        if agreement is None or not agreement.meta:
            return
        meta = dict(agreement.meta)
        if level is not None:
            meta[LOG_LEVEL] = level
            self.agreement = agreement._replace(meta=meta)
        self._meta = Raw(encode(meta))

    async def close(self, reason: str = CLOSED) -> None:
        """End the connection, and with it all that is under way."""
        self._finish(_End(reason))
        await self._answers.end()
        await self._notices.end()
        await self.transport.close()

    def when_idle(self, then: Callable[[], object]) -> None:
        """Have `then` called once nothing is awaited any more."""
        if len(self._peer.ledger):
            self._on_idle = then
        else:
            then()

    def _lost(self, error: TransportError | None) -> None:
        if error is None:
            self._finish(_End("the server ended the connection"))
        else:
            self._finish(_End(error.reason, error.exit_status, error.stderr))

    def _finish(self, end: _End) -> None:
        if self._end is not None:
            return
        self._end = end
        if self._wake is not None:
            self._wake.cancel()
        expected, _ = self._peer.close()
        for pending in expected:
            if not pending.waiter.done():
                pending.waiter.set_exception(self._gone(pending.method))
        self._watches.clear()
        self._tokens.clear()
        self._answers.stop()
        self._check_idle()

    def _gone(self, method: str) -> ConnectionLost:
        end = self._end or _End("the connection is gone")
        return ConnectionLost(
            end.reason, method=method, exit_status=end.exit_status, stderr=end.stderr
        )

    # -- asking ------------------------------------------------------------------------------

    async def ask(
        self,
        method: str,
        kind: type[Struct] | None,
        fields: dict[str, Any],
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Raw:
        """Send a request and return its result, unread.

        Raises:
            PeerError: the server answered with an error.
            RequestEnded: no answer came: time ran out, or the connection is gone.
            LocalProtocolError: it was not sent.
        """
        pending = self.start(method, kind, fields, timeout, on_progress, meta)
        try:
            return await pending.waiter  # type: ignore[no-any-return]  # set by `_replied`
        except asyncio.CancelledError:
            self.abandon(pending)
            raise

    def start(
        self,
        method: str,
        kind: type[Struct] | None,
        fields: dict[str, Any],
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        future: asyncio.Future[Any] | None = None,
    ) -> Pending:
        """Send a request; its waiter is a future of the result.

        `fields` are the params, as those of the Struct `kind` where there is one.
        """
        if on_progress is None:
            on_progress = self._on_progress
        if timeout is None and on_progress is None:
            if meta is None and kind is not None:
                params: Any = kind(meta=self._meta, **fields)
            else:
                params = self._params(kind, fields, meta, None)
            return self._send(method, params, self._timeout, future)
        seconds = self._timeout if timeout is None else min(timeout, self._max_timeout)
        watch = _Watch(seconds, on_progress)
        if on_progress is not None:
            watch.token = next(self._new_token)
            self._tokens[watch.token] = watch
        try:
            params = self._params(kind, fields, meta, watch.token)
            pending = self._send(method, params, seconds, future)
        except BaseException:  # whatever kept it from being sent, nobody reports progress on it
            self._forget(watch)
            raise
        if pending.waiter.done():
            self._forget(watch)
        else:
            watch.pending = pending
            watch.cap = self._now() + self._max_timeout
            self._watches[pending.id] = watch
        return pending

    def _send(
        self, method: str, params: Any, seconds: float, future: asyncio.Future[Any] | None
    ) -> Pending:
        if self._end is not None:
            raise self._gone(method)
        when = self._now() + seconds
        waiter = self._new_future() if future is None else future
        pending = self._peer.send_request(method, params, deadline=when, waiter=waiter)
        if when < self._wake_at:
            self._arm(when)
        return pending

    def start_batch(
        self, calls: list[Request | Notification], waiters: list[asyncio.Future[Any]]
    ) -> list[Pending]:
        """Send several calls as one message."""
        if self._end is not None:
            raise self._gone("a batch")
        when = self._now() + self._timeout
        sent = self._peer.send_batch(calls, deadline=when, waiters=waiters)
        if when < self._wake_at:
            self._arm(when)
        return sent

    def params(
        self, kind: type[Struct] | None, fields: dict[str, Any], meta: Mapping[str, Any] | None
    ) -> Any:
        """Return params as a request of this session has them."""
        return self._params(kind, fields, meta, None)

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification.

        Raises:
            ConnectionLost: there is nobody to send it to.
            LocalProtocolError: it cannot be written.
        """
        if self._end is not None:
            raise self._gone(method)
        self._peer.send_notification(spoken(method, self.policy), params)

    def probe(self, method: str, params: Any) -> Pending:
        """Send the question by which the era is found out; an error without an id answers it."""
        if self._end is not None:
            raise self._gone(method)
        # Without a deadline: how long connecting may take is for the client to say.
        pending = self._peer.send_request(method, params, waiter=self._new_future())
        pending.waiter.add_done_callback(_look_at)
        self._probe = pending
        return pending

    def forget(self, pending: Pending) -> None:
        """Stop waiting without a word: whatever still comes is not needed."""
        self._peer.cancel(pending)

    def abandon(self, pending: Pending, reason: str = "the caller no longer waits") -> None:
        """Stop waiting for an answer, and tell the server."""
        self._unwatch(pending)
        if self._peer.cancel(pending):
            self._tell_cancelled(pending, reason)
        else:
            _look_at(pending.waiter)

    def _tell_cancelled(self, pending: Pending, reason: str) -> None:
        if pending.method != "initialize" and self._end is None:
            params = CancelledNotificationParams(request_id=pending.id, reason=reason)
            self._peer.send_notification(spoken("notifications/cancelled", self.policy), params)

    def _params(
        self,
        kind: type[Struct] | None,
        fields: dict[str, Any],
        meta: Mapping[str, Any] | None,
        token: int | None,
    ) -> Any:
        if kind is None:
            # Params as a caller wrote them down; what they have in `_meta` is the caller's too.
            fields = dict(fields)
            meta = {**fields.pop("_meta", {}), **(meta or {})}
        made: Any = self._meta
        if meta or token is not None:
            # What the protocol has to say is not for a caller to change.
            made = {**(meta or {}), **(self.agreement.meta if self.agreement else {})}
            if token is not None:
                made["progressToken"] = token
        if kind is not None:
            return kind(meta=made, **fields)
        if made is not UNSET:
            fields["_meta"] = made
        return fields or None

    # -- time --------------------------------------------------------------------------------

    def _arm(self, when: float) -> None:
        if self._wake is not None:
            self._wake.cancel()
        self._wake_at = when
        self._wake = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._wake, self._wake_at = None, inf
        for pending in self._peer.expire(self._now())[0]:
            self._time_out(pending)
        when = self._peer.next_deadline()
        if when is not None and when < inf:
            self._arm(when)

    def _time_out(self, pending: Pending) -> None:
        watch = self._unwatch(pending)
        seconds = self._timeout if watch is None else watch.seconds
        reason = f"no answer within {seconds:g} s"
        if watch is not None and watch.cap <= self._now():
            reason = f"no answer within {self._max_timeout:g} s, which is the most there is"
        if not pending.waiter.done():
            pending.waiter.set_exception(TimedOut(reason, method=pending.method))
        self._tell_cancelled(pending, reason)
        self._check_idle()

    def _unwatch(self, pending: Pending) -> _Watch | None:
        watch = self._watches.pop(pending.id, None)
        if watch is not None:
            self._forget(watch)
        return watch

    def _forget(self, watch: _Watch) -> None:
        if watch.token is not None:
            self._tokens.pop(watch.token, None)

    # -- coming in ---------------------------------------------------------------------------

    def _feed(self, frame: Frame, route: Any) -> None:
        if type(frame) is bytes or isinstance(frame, Oversize):
            self._peer.feed(frame, _BACK if route is None else (route,))
        else:
            log.warning("what came from the server could not be framed: %s", show(frame))

    def _feed_checked(self, frame: Frame, route: Any) -> None:
        checks = self._checks
        if checks is None or type(frame) is not bytes:
            self._feed(frame, route)
            return
        checks.judge(frame)
        self._feed(frame, route)
        checks.forget()

    def _write(self, frame: bytes, route: Any) -> None:
        if route is None:
            self.transport.send(frame)
        elif not self._is_per_request and not frame.startswith(_NAMELESS):
            self.transport.send(frame, route[0])

    def _write_checked(self, frame: bytes, route: Any) -> None:
        if self._checks is not None:
            self._checks.note(frame)
        self._write(frame, route)

    @property
    def _is_per_request(self) -> bool:
        return self.agreement is not None and self.agreement.era == "per_request"

    def _replied(self, pending: Pending, reply: Reply | InvalidMessage) -> None:
        if self._watches:
            self._unwatch(pending)
        future = pending.waiter
        if not future.done():
            fault = None if self._checks is None else self._checks.fault
            if isinstance(reply, InvalidMessage):
                future.set_exception(reply)
            elif fault is not None:
                future.set_exception(fault)
            elif reply.error is UNSET:
                future.set_result(reply.result)
            else:
                future.set_exception(error_from(reply, pending.method, self.policy))
        if self._on_idle is not None:
            self._check_idle()

    def _check_idle(self) -> None:
        if self._on_idle is not None and not len(self._peer.ledger):
            then, self._on_idle = self._on_idle, None
            then()

    def _asked(self, asked: Any) -> None:
        if self._is_per_request:
            # A server of this revision asks inside its results, and a client answers nothing.
            log.warning("the server sent a request, %s, which it may not", show(asked.method))
            self._peer.drop(asked)
        else:
            self._answers.take(asked, self._peer, self.policy)

    def _notified(self, call: Envelope, route: Any) -> None:
        if isinstance(call, Reply):
            return
        method, params = official(call.method, self.policy, self.revision), call.params
        if method == "notifications/progress":
            self._progressed(params)
        elif method == "notifications/cancelled" and not self._is_per_request:
            self._answers.cancel(params, self._peer)
        else:
            self._notices.take(method, params)

    def _progressed(self, params: Any) -> None:
        note = self._notices.read("notifications/progress", params, ProgressNotificationParams)
        watch = None if note is None else self._tokens.get(note.progress_token)
        if watch is None or watch.on_progress is None:
            return  # of a call that has ended, or of none
        if watch.pending is not None:
            when = min(self._now() + watch.seconds, watch.cap)
            self._peer.ledger.set_deadline(watch.pending, when)
        total = None if note.total is UNSET else note.total
        message = None if note.message is UNSET else note.message
        self._notices.call("on_progress", watch.on_progress, note.progress, total, message)

    def _problem(self, problem: Problem, route: Any) -> None:
        if not isinstance(problem, StrayReply):
            log.warning("the server sent something that is no message: %s", problem)
            return
        reply, why = problem
        if why is Stray.LATE:
            return  # we stopped waiting; the answer crossed our word of it
        if reply.error is not UNSET and not isinstance(reply.id, int | str) and self._probed(reply):
            return
        log.warning("the server sent a reply that is %s: %s", why.value, reply)

    def _probed(self, reply: Reply) -> bool:
        """Take an error without an id for the answer to our first question, if that is open."""
        probe = self._probe
        if probe is None or not self._peer.cancel(probe):
            return False
        probe.waiter.set_exception(error_from(reply, probe.method, self.policy))
        return True


def error_from(reply: Reply, method: str, policy: Policy) -> PeerError:
    """Return the error that a reply carries, as what a caller is told."""
    error = reply.error
    if error is UNSET:
        raise ValueError("this reply carries a result")
    row = profile(policy.codes).meaning(error.code, policy.revision)
    return PeerError(
        error.code,
        error.message,
        None if error.data is UNSET else error.data,
        method=method,
        kind="" if row is None else str(row.symbol),
    )


def _look_at(future: Awaitable[Any]) -> None:
    """Look at how a future ended, so that nobody is told of an error that no one waits for."""
    if isinstance(future, asyncio.Future) and future.done() and not future.cancelled():
        future.exception()

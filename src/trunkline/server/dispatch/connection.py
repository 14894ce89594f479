"""One connection of a server: its session, the revision of each message, dispatch by method.

A `Connection` joins a transport to a `Peer`. It finds out which revision a message is in and
what serves its method; running handlers is for `RequestRunner`.

The rules that live here, and only here:

* The revision is decided per message: that in `_meta`, whatever was negotiated before; without
  one, that of the session.
                                                       [MCP 2026-07-28, basic/versioning]
* Before `initialize` only `ping` is served, unless the policy refuses that too.
                                                       [MCP 2025-11-25, basic/lifecycle; E-99]
* Before it, the client's capabilities, name or log level in `_meta` without a version are an
  error; in a session these keys have no effect.       [MCP 2026-07-28, basic#_meta]
* While the client reads too slowly, requests wait; replies and cancels are still processed.
* On stdio, requests that are not finished `linger` seconds after the end of input get no answer:
  the client has closed, and clients of the official SDK 1.x fail on an answer after that.
* The request that opens a session counts as held until the connection ends.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError, field
from msgspec.json import Decoder
from msgspec.structs import replace

from ...errors import (
    ConnectionLost,
    InvalidMessage,
    LocalProtocolError,
    RequestAborted,
    RequestTimeout,
    TransportError,
    visible,
)
from ...jsonrpc.codec.codec import LARGE_BYTES, Envelope
from ...jsonrpc.error_codes import peer_error
from ...jsonrpc.framing.framing import Oversize
from ...jsonrpc.messages import Call, Reply, Shown
from ...jsonrpc.peer.incoming import IncomingRequest
from ...jsonrpc.peer.outgoing import Pending, UnmatchedReply
from ...jsonrpc.peer.peer import Peer, ProtocolProblem
from ...jsonrpc.policy import Policy
from ...mcp.meta import (
    BadMeta,
    Caller,
    check_token_length,
    lacking,
    lacks_version,
    read_session_caller,
)
from ...mcp.names import official, spoken
from ...mcp.types import ClientCapabilities, Implementation, ServerCapabilities
from ...redaction import redact, show
from ...spec.error_kinds import ErrorKind
from ...transports.base import HIGH_WATER, Frame, Transport
from ..errors import as_redacted, worded_error
from .budget import ByteBudget, connection_bytes
from .log_limit import LogLimit
from .params import UNREADABLE, ToolCall
from .requests import SMALL_BYTES, RequestRunner
from .revision import ServerRevision

if TYPE_CHECKING:
    from ...auth.principal import Principal
    from ..context import Context
    from ..core import ServerCore

__all__ = ["MAX_BACKLOG_BYTES", "Connection", "HandshakeSession"]

_log: Final = logging.getLogger("trunkline.server")

# Notifications for a client that does not read stop here. Requests wait from HIGH_WATER on.
MAX_BACKLOG_BYTES: Final = 4 * HIGH_WATER
# For handlers that were cancelled to clean up.
_CLEANUP_TIMEOUT_S: Final = 1.0


class _OnlyMeta(Shown, Struct, frozen=True):
    """Params, of which only `_meta` is decoded."""

    meta: Raw | UnsetType = field(default=UNSET, name="_meta")
    progress_token: Any = field(default=UNSET, name="progressToken")


class _Wanted(Shown, Struct, frozen=True):
    """Params of `initialize`, of which only the version is decoded."""

    protocol_version: str = field(default="", name="protocolVersion")


only_meta: Final = Decoder(_OnlyMeta).decode
_wanted: Final = Decoder(_Wanted).decode


class HandshakeSession(Shown, Struct, eq=False):
    """What was negotiated by `initialize`."""

    rev: ServerRevision
    client: Implementation
    capabilities: ClientCapabilities
    # The capabilities that the client was sent.
    declared: ServerCapabilities
    # Of log messages to send; until the client sets it, a default.
    log_level: str = "info"
    # Whether `notifications/initialized` came.
    is_ready: bool = False

    def was_declared(self, what: str) -> bool:
        """Return True if the client was sent the capability of a list."""
        return getattr(self.declared, what) is not None


class Connection:
    """One connection, from its first byte to its last answer."""

    # The context that middleware has of a request that is about to be served; see
    # `request_pipeline.py`.
    middleware_context: Context | None = None

    __slots__ = (
        "_ending",
        "_expiry",
        "_frame_bytes",
        "_hears",
        "_is_ended",
        "_policy",
        "_rev",
        "_session_bytes",
        "_why",
        "budget",
        "core",
        "log_limit",
        "loop",
        "peer",
        "principal",
        "runner",
        "session",
        "thread",
        "transport",
    )

    def __init__(self, core: ServerCore, transport: Transport) -> None:
        self.core = core
        self.transport = transport
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.session: HandshakeSession | None = None
        # The authenticated client, where the transport knows it.
        self.principal: Principal | None = None
        # When the credential of that ends, where the transport does not watch it.
        self._expiry: asyncio.TimerHandle | None = None
        self._rev: ServerRevision | None = None
        # For errors before the revision of a message is known.
        self._policy: Policy = core.newest_revision.policy
        # A listener sets its own, which all of its connections share.
        self.log_limit = LogLimit(self.loop)
        # Of the frame that is processed, and of the one that opened the session.
        self._frame_bytes = 0
        self._session_bytes = 0
        largest = core.policy.limits.message_size(transport.name)
        self.budget = ByteBudget(connection_bytes(core.limits, largest), core.budget)
        # Whether the client can still send something.
        self._hears = True
        # Whether it has begun to close, why, and what `run` waits for.
        self._is_ended = False
        self._why: TransportError | None = None
        self._ending: asyncio.Future[None] | None = None
        receive, serve = self._on_request, self._serve
        make_peer: Callable[..., Peer] = Peer
        if core.observe is not None:
            recorder = core.observe(self, receive, serve)
            receive, serve, make_peer = recorder.receive, recorder.serve, recorder.peer
        self.peer = make_peer(
            core.newest_revision.codec(transport.name),
            write=transport.send,
            on_request=receive,
            on_notification=self._on_notification,
            on_reply=self._on_reply,
            on_problem=self._on_problem,
            on_settled=getattr(transport, "settled", None),
            write_answer=getattr(transport, "answer", None),
        )
        self.runner = RequestRunner(core, self.peer, transport, self.budget, serve, self.end)

    @property
    def itself(self) -> Connection:
        """The connection, also where something else takes its place."""
        return self

    @property
    def client_key(self) -> str | None:
        """What tells the clients apart that this connection serves; None if it serves one."""
        return None

    def principal_of(self, asked: IncomingRequest) -> Principal | None:
        """Return the authenticated client that sent a request."""
        return self.principal if asked.owner is None else asked.owner

    def use_principal(self, principal: Principal) -> None:
        """Serve a principal, until its credential ends."""
        self.principal = principal
        if self.core.tenancy is not None:
            self.core.tenancy.attach(self)
        if principal.expires_at is not None:
            seconds = max(0.0, principal.expires_at - time.time())
            error = TransportError("the credential of the client has ended")
            self._expiry = self.loop.call_later(seconds, self.end, error)

    # -- opening and closing -----------------------------------------------------------------

    async def run(self) -> None:
        """Serve the client until one side closes, then finish open requests.

        Raises:
            TransportError: the transport could not connect, or is connected already.
        """
        transport = self.transport
        if transport.is_connected:
            raise TransportError("this transport is connected already")
        self.attach()
        await transport.connect()
        grace = 0.0
        try:
            if not self._is_ended:
                self._ending = self.loop.create_future()
                await self._ending
            grace = self._grace()
        finally:
            # Also when this task is cancelled: handlers clean up before the lifespan ends.
            await self._finish(grace)

    def attach(self) -> None:
        """Take what the transport receives."""
        transport = self.transport
        transport.on_message = self.receive
        transport.on_error = self._input_ended
        transport.on_drained = self._drained

    async def finish(self) -> None:
        """Finish open requests and close a connection that was attached without `run`."""
        await self._finish(self._grace())

    def _grace(self) -> float:
        """Return how long handlers may run on, in seconds, after the connection began to end."""
        limits = self.core.limits
        if self._why is not None:
            self.log_limit.warning("connection closed: %s", self._why)
        elif self._listens():
            return limits.grace if self.runner.is_stopping else limits.linger
        return 0.0

    def _listens(self) -> bool:
        """Return True if answers can be sent; the client may have closed its output."""
        return self.transport.is_connected

    async def _finish(self, grace: float) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        streams = self.core.streams
        try:
            if self.runner.is_stopping:
                # Before waiting for handlers: clients that listen can reconnect elsewhere.
                streams.finish(self)
            until = self.loop.time() + grace
            await self.runner.wait(grace)
            await self.core.finish_results(self, until - self.loop.time())
            if self._has_client_closed() and not self.runner.is_stopping:
                streams.finish(self)
                self.runner.abandon(grace)
            await self.runner.finish(_CLEANUP_TIMEOUT_S, self._policy)
        finally:
            # The last changes of handlers are still sent, then the streams end.
            streams.finish(self)
            streams.leave(self)
            self.core.connection_ended(self)
            self._fail_requests(self.peer.close()[0])
            self.runner.drain()  # wakes handlers that wait for the client to read
            self.log_limit.connection_ended()
            self.runner.unread.close()
            self.budget.release(self._session_bytes)
            self._session_bytes = 0
            await self.transport.close()

    def _has_client_closed(self) -> bool:
        """Return True if a client on stdio has ended the input; on a socket it may wait."""
        return not self._hears and self.transport.name == "stdio"

    def _drained(self) -> None:
        self.runner.unread.drained()
        self.core.streams.drained(self)
        self.runner.drain()

    def end(self, why: TransportError | None = None) -> None:
        """Begin to close the connection; `why` is logged."""
        if not self._is_ended:
            self._is_ended, self._why = True, why
            if self._ending is not None and not self._ending.done():
                self._ending.set_result(None)
            self._has_ended()

    def _has_ended(self) -> None:
        """Do what has to be done where `run` does not wait."""

    def _input_ended(self, why: TransportError | None) -> None:
        """Fail the requests to the client, since no reply will come."""
        self._hears = False
        self._fail_requests(self.peer.outgoing.drain())
        self.end(why)

    def _fail_requests(self, asked: list[Pending]) -> None:
        for pending in asked:
            future: asyncio.Future[Any] = pending.waiter
            if not future.done():
                gone = ConnectionLost("the client closed the connection", method=pending.method)
                future.set_exception(gone)

    def stop(self, *, at_once: bool = False) -> None:
        """Refuse new requests because the server stops; running handlers may finish."""
        was_stopping, self.runner.is_stopping = self.runner.is_stopping, True
        if at_once or (self._is_ended and not was_stopping):
            # A client that closed its output and then sends a signal has waited already.
            if self._has_client_closed() and not was_stopping:
                self.core.streams.finish(self)
                self.runner.abandon()
            self.runner.cancel_all()
            self.core.connection_ended(self)
        self.end()

    # -- requests ----------------------------------------------------------------------------

    def receive(self, frame: Frame, route: Any = None) -> None:
        """Process one frame; malformed frames do not raise."""
        try:
            if type(frame) is bytes:
                self._frame_bytes = size = len(frame)
                call = None if size < LARGE_BYTES else self._large_call(frame)
                if call is None:
                    self.peer.feed(frame, route)
                else:
                    self.peer.feed_call(call, route)
            elif isinstance(frame, Oversize):
                self.peer.feed(frame, route)
            else:
                self._answer_bad_frame(frame, route)
        except Exception as error:  # noqa: BLE001  # a defect here; the connection goes on
            _log.error("internal error while processing a message\n%s", as_redacted(error))

    def _large_call(self, frame: bytes) -> Call | None:
        from .large_calls import read_large_call  # here, because few messages are large

        return read_large_call(self, frame)

    def _answer_bad_frame(self, frame: Any, route: Any) -> None:
        """Answer bytes that are not a frame."""
        fault = self.peer.codec.fault("jsonrpc.text.json", got=str(frame))
        self._on_problem(fault, route)
        answer = fault.answer()
        if answer is not None:
            self.transport.send(answer, route)
        if getattr(frame, "lost", False):
            # The start of the next frame is unknown.
            self.end(TransportError(f"framing error: {fault}"))

    @property
    def policy(self) -> Policy:
        """How errors are written before the revision of a message is known."""
        return self._policy

    def _on_request(self, asked: IncomingRequest) -> None:
        size = self._frame_bytes
        if self.core.is_gated:
            self._pass_gate(asked, size)
            return
        if size < SMALL_BYTES and asked.slot is None and self.transport.backlog <= HIGH_WATER:
            self._serve(asked)  # as `take` would
        else:
            self.runner.take(asked, size, self._policy)

    def _pass_gate(self, asked: IncomingRequest, size: int) -> None:
        """Find the caller of a request, and check the rate of its tenant, before it is served."""
        core = self.core

        def admitted(asked: IncomingRequest) -> None:
            if core.tenancy is None or core.tenancy.admits(self, asked):
                self.runner.take(asked, size, self._policy)

        if core.envelope_auth is None:
            admitted(asked)
        else:
            core.envelope_auth.receive(self, asked, admitted)

    def _serve(self, asked: IncomingRequest) -> None:
        """Find the revision and the handler of a request, and serve it; it is always answered."""
        try:
            params = asked.params
            if type(params) is ToolCall:
                raw = params.meta
            else:
                raw = UNSET if params is UNSET else only_meta(params).meta
            caller = None
            if raw is not UNSET:
                try:
                    caller = self.core.callers.read(bytes(raw))
                except BadMeta as error:
                    caller = self._session_caller(bytes(raw), error)
            if self.core.policy.strictness == "lenient":
                caller = _with_loose_token(params, caller)
            if caller is None or caller.protocol_version is None:
                rev = self._rev or self._unopened(asked, caller)
            else:
                rev = self._stateless(asked, caller)
            if rev is None:
                return
            method = asked.method
            serve = rev.methods.get(method)
            if serve is None:
                serve = rev.methods.get(official(method, rev.policy, rev.revision))
            if serve is None:
                serve = self.core.own_methods.get(method)
            if self.core.middleware and method != "initialize":
                from .request_pipeline import begin_request  # here: most servers have none

                begin_request(self, asked, caller, rev, serve)
            elif serve is None:
                text = f"Unknown method: {redact(method)}"
                known = {"method": brief(method)}
                self.refuse(asked, rev.policy, ErrorKind.METHOD_NOT_FOUND, text, known)
            else:
                serve(self, asked, caller, rev)
        except BadMeta as error:
            self._refuse_params(asked, error.symbol, f"Invalid params: {error}")
        except UNREADABLE as error:
            self._refuse_params(asked, ErrorKind.INVALID_PARAMS, plain(error))
        except Exception as error:  # noqa: BLE001  # a defect here; the client gets an answer
            _log.error(
                "internal error while serving %s\n%s", show(asked.method), as_redacted(error)
            )
            self.refuse(asked, self._policy, ErrorKind.INTERNAL_ERROR)

    def _refuse_params(self, asked: IncomingRequest, kind: str, text: str) -> None:
        self.refuse(asked, self._policy, kind, text)

    def _stateless(self, asked: IncomingRequest, caller: Caller) -> ServerRevision | None:
        """Return the revision that a request names by itself, or refuse it."""
        core, version = self.core, caller.protocol_version
        rev = core.revision(version) if version in core.revisions else None
        if rev is not None and rev is self._rev:
            return rev  # the negotiated one
        if rev is None or rev.has_handshake:
            kind = ErrorKind.UNSUPPORTED_PROTOCOL_VERSION
            # Revisions with a handshake cannot be used without it.
            usable = [each for each in core.revisions if not core.revision(each).has_handshake]
            supported = usable or list(core.revisions)
            self.refuse(
                asked,
                core.newest_revision.policy,
                kind,
                supported=supported,
                requested=brief(str(version)),
            )
            return None
        if lacking(caller, rev.revision):
            self._lacks_meta(asked, rev)
            return None
        return rev

    def _session_caller(self, raw: bytes, error: BadMeta) -> Caller:
        """Read a `_meta` of which keys of later revisions are malformed, or raise the error."""
        found = None if self._rev is None else read_session_caller(raw, self._rev.revision)
        if found is None:
            raise error
        return found

    def _unopened(self, asked: IncomingRequest, caller: Caller | None) -> ServerRevision | None:
        """Return the revision for a request before `initialize` that names none, or refuse it."""
        core = self.core
        opening = core.handshake_revision
        if opening is None:
            if asked.method == "initialize":
                # The client cannot use a newer revision, but its user can read which.
                self.refuse(
                    asked,
                    core.newest_revision.policy,
                    ErrorKind.UNSUPPORTED_PROTOCOL_VERSION,
                    supported=list(core.revisions),
                    requested=brief(_requested(asked.params)),
                )
            else:
                self._lacks_meta(asked, core.newest_revision)
            return None
        method = official(asked.method, opening.policy, opening.revision)
        if method == "initialize":
            return opening
        newest = core.newest_revision
        if caller is not None and not newest.has_handshake and lacks_version(caller):
            self._lacks_meta(asked, newest)
            return None
        if method == "ping" and opening.policy.ping_first:
            return opening
        if method not in opening.methods and method in newest.methods:
            self._lacks_meta(asked, newest)
            return None
        self.refuse(asked, opening.policy, ErrorKind.NOT_INITIALIZED)
        return None

    def _lacks_meta(self, asked: IncomingRequest, rev: ServerRevision) -> None:
        text = "A request needs a protocol version and the client's capabilities in params._meta"
        self.refuse(asked, rev.policy, ErrorKind.MISSING_REQUEST_META, text)

    def use_session(self, session: HandshakeSession) -> None:
        """Use a negotiated session from the next message on."""
        self.budget.charge(self._frame_bytes - self._session_bytes)
        self._session_bytes = self._frame_bytes
        self.session = session
        self._rev = session.rev
        self._policy = session.rev.policy
        self.peer.use(session.rev.codec(self.transport.name))

    # -- notifications, replies, problems ----------------------------------------------------

    def _on_notification(self, message: Envelope, route: Any) -> None:
        method = message.method  # type: ignore[union-attr]  # a notification is a call
        rev = self._rev or self.core.newest_revision
        handle = self.core.notification_handlers.get(official(method, rev.policy, rev.revision))
        if handle is None:
            handle = self.core.own_notifications.get(method)
        if handle is None:
            _log.debug("notification %s has no handler", show(method))
            return
        try:
            handle(self, message.params)  # type: ignore[union-attr]  # as above
        except Exception as error:  # noqa: BLE001  # an author's; the rest of a batch is processed
            if not isinstance(error, UNREADABLE):
                _log.error(
                    "handler of notification %s failed\n%s", show(method), as_redacted(error)
                )
                return
            # A notification has no answer; a malformed one is ignored.
            text = "malformed notification %s ignored: %s"
            self.log_limit.warning(text, show(method), plain(error))

    def _on_reply(self, pending: Pending, reply: Reply | InvalidMessage) -> None:
        future: asyncio.Future[Any] = pending.waiter
        if future.done():
            return
        if isinstance(reply, InvalidMessage):
            future.set_exception(reply)
        elif reply.error is not UNSET:
            future.set_exception(peer_error(reply.error, pending.method, self._policy))
        else:
            future.set_result(reply.result)

    def _on_problem(self, problem: ProtocolProblem, _route: Any) -> None:
        if self.transport.backlog > HIGH_WATER:
            self.runner.unread.weigh()  # it was answered, and no request waits for room
        if isinstance(problem, InvalidMessage):
            self.log_limit.warning("invalid message from the client: %s", problem)
        elif problem.why is not UnmatchedReply.LATE:  # or it crossed our cancellation
            id = problem.reply.id
            named = "without an id" if id is UNSET else f"to {show(id)}"
            text = "unexpected reply from the client %s: %s"
            self.log_limit.warning(text, named, problem.why.value)

    # -- answering ---------------------------------------------------------------------------

    def answer(self, asked: IncomingRequest, outcome: Any, policy: Policy) -> None:
        """Answer a request without a handler, with a result or an `ErrorObject`."""
        self.runner.answer(asked, outcome, policy)

    def refuse(
        self,
        asked: IncomingRequest,
        policy: Policy,
        kind: str,
        message: str | None = None,
        known: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> None:
        """Answer a request with an error of a kind.

        `facts` are its data; `known` is for profiles with words of their own.
        """
        self.peer.fail(asked, worded_error(kind, policy, asked.method, message, known, **facts))

    # -- notifications and requests to the client --------------------------------------------

    def notify_about(self, asked: IncomingRequest, method: str, params: Any) -> None:
        """Send a notification about a request; drop it if the request is not open."""
        if asked not in self.peer.incoming or self.transport.backlog > MAX_BACKLOG_BYTES:
            return
        self.notify(method, params, asked.route)

    def notify(self, method: str, params: Any = None, route: Any = None) -> None:
        """Send a notification; drop it if the connection is closed."""
        if not self.peer.is_closed:
            try:
                self.peer.send_notification(spoken(method, self._policy), params, route=route)
            except LocalProtocolError as error:
                _log.error("notification %s cannot be encoded and is dropped: %s", method, error)

    @property
    def hears(self) -> bool:
        """Whether the client can still send something."""
        return self._hears

    @property
    def is_busy(self) -> bool:
        """Whether the client has an open request or stream."""
        return len(self.peer.incoming) > 0

    @property
    def is_slow(self) -> bool:
        """Whether the client reads too slowly."""
        return self.transport.backlog > HIGH_WATER

    async def ask(
        self,
        asked: IncomingRequest,
        rev: ServerRevision,
        method: str,
        params: Any,
        timeout: float | None,
        waits: set[asyncio.Future[Any]] | None = None,
    ) -> Raw:
        """Send the client a request related to one of its own, and return the raw result.

        The future of the reply is added to `waits`; cancelling it cancels the request.

        Raises:
            PeerError: the client answered with an error.
            RequestAborted: no answer will come: RequestTimeout, or ConnectionLost.
        """
        if asked not in self.peer.incoming:
            raise RequestAborted("the request that it belongs to has ended", method=method)
        if not self._hears:
            raise ConnectionLost("the client closed the connection", method=method)
        seconds = self.core.limits.ask_timeout if timeout is None else timeout
        future: asyncio.Future[Any] = self.loop.create_future()
        narrowed = rev.narrowed(params)
        pending = self.peer.send_request(method, narrowed, waiter=future, route=asked.route)
        if waits is not None:
            waits.add(future)
            future.add_done_callback(waits.discard)
        try:
            async with asyncio.timeout(seconds):
                reply: Raw = await future  # set by `_on_reply`
        except (TimeoutError, asyncio.CancelledError) as error:
            if self.peer.cancel(pending):
                self.notify("notifications/cancelled", {"requestId": pending.id}, asked.route)
            if isinstance(error, TimeoutError):
                text = f"no reply from the client within {seconds:g} s"
                raise RequestTimeout(text, method=method) from None
            raise
        if not self.runner.weigh_reply(asked, reply):
            raise RequestAborted("no room for the reply of the client", method=method)
        return reply


def plain(error: Exception) -> str:
    """Return the message of a decoder as the text of an error."""
    # It may quote a value of any length.
    text = brief(str(error)) if isinstance(error, ValidationError) else "not JSON"
    return f"Invalid params: {text}"


def brief(text: str) -> str:
    """Return the text of a peer, or one that quotes it, redacted and cut, on one line."""
    return visible(str(redact(text)), kept="")


def _with_loose_token(params: Any, caller: Caller | None) -> Caller | None:
    """Return the caller with a progress token that is beside `_meta`.  [K-32]"""
    if params is UNSET or (caller is not None and caller.progress_token is not None):
        return caller
    token = (params if type(params) is ToolCall else only_meta(params)).progress_token
    if type(token) is not int and type(token) is not str:
        return caller
    check_token_length(token, "/params/progressToken")
    return replace(caller or Caller(), progress_token=token)


def _requested(params: Any) -> str:
    return "" if params is UNSET else _wanted(params).protocol_version

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
* A client on a socket or WebSocket that sends `MAX_INVALID_MESSAGES` invalid messages in a row is
  disconnected; a batch with an invalid element is one, and any valid message ends the row. On pipes
  the connection goes on: another program of the client may write there. So it does over HTTP, where
  each message has an answer of its own.
* Each request and notification of a batch counts for the rate of its client, the first one with
  its message. Beyond the rate a request is refused in its place, and a notification is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.json import Decoder
from msgspec.structs import replace

from ...accounts.budget import ByteBudget
from ...engine.budget import connection_bytes
from ...engine.log_limit import LogLimit
from ...engine.request import Action, Answer, Refuse, Run
from ...engine.runner import SMALL_BYTES, RequestRunner
from ...errors import (
    ConnectionLost,
    InvalidMessage,
    LocalProtocolError,
    RequestAborted,
    RequestTimeout,
    TransportError,
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
    lacks_version,
    read_session_caller,
)
from ...mcp.names import official, spoken
from ...redaction import redact, show
from ...spec.error_kinds import ErrorKind
from ...spec.mcp.headers import NAME_MEMBERS
from ...transports.base import HIGH_WATER, Frame, Transport, ignore
from ..errors import as_redacted, brief, plain, worded_error
from .params import UNREADABLE, ToolCall, text_in
from .request import ServerRequest
from .revision import ServerRevision

if TYPE_CHECKING:
    from ...accounts.account import Account
    from ...auth.principal import Principal
    from ..api.core import ServerCore
    from .initialize import HandshakeSession

__all__ = ["MAX_BACKLOG_BYTES", "MAX_INVALID_MESSAGES", "Connection"]

_log: Final = logging.getLogger("trunkline.server")

# Notifications for a client that does not read stop here. Requests wait from HIGH_WATER on.
MAX_BACKLOG_BYTES: Final = 4 * HIGH_WATER
# More than a client sends by mistake, and each is explained, answered and logged.
MAX_INVALID_MESSAGES: Final = 1000
_DISCONNECTED: Final = ("tcp", "unix", "websocket")
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
_any: Final = Decoder().decode
_wanted: Final = Decoder(_Wanted).decode


class Connection:
    """One connection, from its first byte to its last answer."""

    __slots__ = (
        "_ending",
        "_expiry",
        "_frame_bytes",
        "_has_exchanges",
        "_hears",
        "_invalid",
        "_invalid_before",
        "_is_ended",
        "_opens_sessions",
        "_policy",
        "_rev",
        "_session_bytes",
        "_why",
        "budget",
        "core",
        "log_limit",
        "loop",
        "on_ended",
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
        self.budget = ByteBudget(connection_bytes(core.limits, largest), core.runtime.budget)
        # Invalid messages in a row, and as many before the frame that is processed.
        self._invalid = self._invalid_before = 0
        # Whether the client can still send something.
        self._hears = True
        # Whether it has begun to close, why, and what `run` waits for.
        self._is_ended = False
        self._why: TransportError | None = None
        self._ending: asyncio.Future[None] | None = None
        # Called when it begins to close, where `run` does not wait for that.
        self.on_ended: Callable[[], object] | None = None
        # Whether routes are HTTP exchanges, whose headers repeat parts of messages; and whether
        # `initialize` opens a session here.
        self._has_exchanges: bool = getattr(transport, "has_exchanges", False)
        self._opens_sessions: bool = getattr(transport, "opens_sessions", True)
        receive, serve = self._on_request, self._serve
        make_peer: Callable[..., Peer] = Peer
        if core.runtime.observers:
            recorder = core.services.observe(self, receive, serve)
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
            admits_notification=self._admits_notification,
        )
        self.runner = RequestRunner(
            core.runtime, self.peer, transport, self.budget, serve, self.end
        )

    @property
    def client_key(self) -> str | None:
        """What tells the clients apart that this connection serves; None if it serves one."""
        return None

    def principal_of(self, asked: IncomingRequest) -> Principal | None:
        """Return the authenticated client that sent a request.

        Where each message comes with a credential of its own, it is that of the message: a session
        goes on with another token, and a task outlives its request.
        """
        if asked.owner is not None:
            return asked.owner  # type: ignore[no-any-return]  # a principal, for the peer anything
        return getattr(asked.route, "owner", self.principal)

    def use_principal(self, principal: Principal) -> None:
        """Serve a principal, until its credential ends."""
        self.principal = principal
        tenancy = self.core.runtime.tenancy
        if tenancy is not None and self.runner.account is None:
            tenancy.attach(principal, self.budget, self.runner.threads)
        if principal.expires_at is not None:
            seconds = max(0.0, principal.expires_at - time.time())
            error = TransportError("the credential of the client has ended")
            self._expiry = self.loop.call_later(seconds, self.end, error)

    def use_account(self, account: Account) -> None:
        """Count what this connection holds for its client, until `leave_account`."""
        account.uses += 1
        self.runner.account = account
        self.budget.parent = account.budget
        self.runner.threads.group = account.threads

    def leave_account(self) -> None:
        """End the use of the account: the connection has ended."""
        if self.runner.account is not None:
            self.runner.account.close()

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
        streams = self.core.services.streams
        try:
            if self.runner.is_stopping:
                # Before waiting for handlers: clients that listen can reconnect elsewhere.
                streams.finish(self)
            until = self.loop.time() + grace
            await self.runner.wait(grace)
            await self.core.services.finish_results(self, until - self.loop.time())
            if self._has_client_closed() and not self.runner.is_stopping:
                streams.finish(self)
                self.runner.abandon(grace)
            await self.runner.finish(_CLEANUP_TIMEOUT_S, self._policy)
        finally:
            # The last changes of handlers are still sent, then the streams end.
            streams.finish(self)
            streams.leave(self)
            self.core.services.connection_ended(self)
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
        self.core.services.streams.drained(self)
        self.runner.drain()

    def end(self, why: TransportError | None = None) -> None:
        """Begin to close the connection; `why` is logged."""
        if not self._is_ended:
            self._is_ended, self._why = True, why
            if self._ending is not None and not self._ending.done():
                self._ending.set_result(None)
            if self.on_ended is not None:
                self.on_ended()

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
                self.core.services.streams.finish(self)
                self.runner.abandon()
            self.runner.cancel_all()
            self.core.services.connection_ended(self)
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
            if self._invalid:
                self._count_invalid()
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

    def _count_invalid(self) -> None:
        """Count a frame, if it was invalid; disconnect a client that sends nothing else."""
        if self._invalid == self._invalid_before:
            self._invalid = self._invalid_before = 0
            return
        self._invalid_before += 1
        self._invalid = self._invalid_before  # a batch may have had several
        transport = self.transport
        if self._invalid >= MAX_INVALID_MESSAGES and transport.name in _DISCONNECTED:
            text = f"{self._invalid} invalid messages in a row"
            transport.on_message = ignore
            reject = getattr(transport, "reject", None)
            if reject is not None:
                reject(text)  # a WebSocket has a status for it
            self.end(TransportError(text))

    @property
    def policy(self) -> Policy:
        """How errors are written before the revision of a message is known."""
        return self._policy

    def _on_request(self, asked: IncomingRequest) -> None:
        size = self._frame_bytes
        if asked.slot is not None:
            seconds = _rate_wait(asked.route, asked.slot[1])
            if seconds is not None:
                self._refuse_rate(asked, max(1, ceil(seconds * 1000)))
                return
        if self.core.services.is_gated:
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
            tenancy = core.runtime.tenancy
            if tenancy is not None:
                wait_ms = tenancy.rate_wait_ms(self.principal_of(asked), self.loop.time())
                if wait_ms:
                    self._refuse_rate(asked, wait_ms)
                    return
            self.runner.take(asked, size, self._policy)

        if core.services.envelope_auth is None:
            admitted(asked)
        else:
            core.services.envelope_auth.receive(self, asked, size, admitted)

    def _admits_notification(self, route: Any, place: int) -> bool:
        return _rate_wait(route, place) is None

    def _refuse_rate(self, asked: IncomingRequest, wait_ms: int) -> None:
        route: Any = asked.route
        if asked.slot is None and hasattr(route, "status"):
            from ...spec.http_conditions import HTTP  # here: only HTTP exchanges have a status

            route.status = HTTP["rate-limited"].status
        policy = self.core.newest_revision.policy
        self.refuse(asked, policy, ErrorKind.RATE_LIMITED, retryAfterMs=wait_ms)

    def _serve(self, asked: IncomingRequest) -> None:
        """Find the revision and the handler of a request, and serve it; it is always answered."""
        core = self.core
        try:
            params = asked.params
            if type(params) is ToolCall:
                raw = params.meta
            else:
                raw = UNSET if params is UNSET else only_meta(params).meta
            caller = None
            if raw is not UNSET:
                meta = bytes(raw)
                caller = core.callers.known.get(meta) or self._caller(meta)
            if core.policy.strictness == "lenient":
                caller = _with_loose_token(params, caller)
            if caller is None or caller.protocol_version is None:
                rev = self._rev or self._unopened(asked, caller)
            else:
                rev = self._stateless(asked, caller, caller.protocol_version)
            if rev is None:
                return
            method = asked.method
            serve = rev.methods.get(method)
            if serve is None:
                serve = rev.methods.get(official(method, rev.policy, rev.revision))
            if serve is None:
                serve = core.own_methods.get(method)
            request = ServerRequest(self, asked, rev, caller, core, method)
            if core.middleware and method != "initialize":
                from ..methods.middleware_chain import (
                    through_middleware,  # here: most servers have none
                )

                action = through_middleware(request, serve)
            elif serve is None:
                text, known = f"Unknown method: {redact(method)}", {"method": brief(method)}
                action = request.refuse(ErrorKind.METHOD_NOT_FOUND, text, known)
            else:
                action = serve(request)
            if type(action) is Run:
                self.runner.begin(request, action)
            else:
                self.perform(request, action)
        except BadMeta as error:
            self._refuse_params(asked, error.symbol, f"Invalid params: {error}")
        except UNREADABLE as error:
            self._refuse_params(asked, ErrorKind.INVALID_PARAMS, plain(error))
        except Exception as error:  # noqa: BLE001  # a defect here; the client gets an answer
            _log.error(
                "internal error while serving %s\n%s", show(asked.method), as_redacted(error)
            )
            self.refuse(asked, self._policy, ErrorKind.INTERNAL_ERROR)

    def perform(self, request: ServerRequest, action: Action) -> None:
        """Do what a method handler has decided."""
        if isinstance(action, Run):
            self.runner.begin(request, action)
            return
        request.context = None  # made for a guard; the two hold each other
        if isinstance(action, Answer):
            self.runner.answer(request.message, action.result, request.rev.policy)
            if action.then is not None:
                action.then()
        elif isinstance(action, Refuse):
            self.peer.fail(request.message, action.error)

    def _refuse_params(self, asked: IncomingRequest, kind: str, text: str) -> None:
        if not self._opens_sessions and not self._has_readable_meta(asked.params):
            newest = self.core.newest_revision.revision
            asked.route.use_status(ErrorKind.MISSING_REQUEST_META, newest)
        self.refuse(asked, self._policy, kind, text)

    def _has_readable_meta(self, params: Any) -> bool:
        try:
            raw = params.meta if type(params) is ToolCall else only_meta(params).meta
            if raw is UNSET:
                return False
            self.core.callers.read(bytes(raw))
        except (BadMeta, *UNREADABLE):
            return False
        return True

    def _stateless(
        self, asked: IncomingRequest, caller: Caller, version: str
    ) -> ServerRevision | None:
        """Return the revision that a request names by itself, or refuse it."""
        core, current = self.core, self._rev
        if current is not None and current.revision == version:
            return current  # the negotiated one, whose requests have no headers of their own
        if self._has_exchanges and (fault := self._header_fault(asked, caller)) is not None:
            newest, kind = core.newest_revision, ErrorKind.HEADER_MISMATCH
            if asked.slot is None:  # the status of a batch is that of all its requests
                asked.route.use_status(kind, newest.revision)
            self.refuse(asked, newest.policy, kind, f"Header mismatch: {fault}")
            return None
        rev = core.revisions_in_use.get(version)
        if rev is None and version in core.revisions:
            rev = core.revision(version)
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
        if rev.required_meta.issubset(caller.meta):
            return rev
        self._lacks_meta(asked, rev)
        return None

    def _header_fault(self, asked: IncomingRequest, caller: Caller) -> str | None:
        """Return how the headers of an exchange differ from its message, or None."""
        params, exchange = asked.params, asked.route
        if type(params) is not ToolCall:
            name = text_in(params, NAME_MEMBERS.get(asked.method))
            return exchange.mismatch(asked.method, caller.protocol_version, name)  # type: ignore[no-any-return]  # an Exchange
        fault: str | None = exchange.mismatch(asked.method, caller.protocol_version, params.name)
        entry = self.core.catalog.tools.get(params.name)
        if fault is not None or entry is None or not entry.param_headers:
            return fault
        if entry.guard is not None or self.core.catalog.tool_sets is not None:
            from ..methods.guarded import is_hidden  # here: most servers have no guards

            rev = self.core.newest_revision
            request = ServerRequest(self, asked, rev, caller, entry.owner, entry.name)
            if is_hidden(request, entry):
                return None  # for this caller the tool does not exist, nor do its headers
        given = {} if params.arguments is UNSET else _any(params.arguments)
        return exchange.param_mismatch(entry.param_headers, given)  # type: ignore[no-any-return]  # as above

    def _caller(self, raw: bytes) -> Caller:
        """Read a `_meta`; in a session keys of later revisions may be malformed."""
        try:
            return self.core.callers.read(raw)
        except BadMeta:
            found = None if self._rev is None else read_session_caller(raw, self._rev.revision)
            if found is None:
                raise
            return found

    def _unopened(self, asked: IncomingRequest, caller: Caller | None) -> ServerRevision | None:
        """Return the revision for a request before `initialize` that names none, or refuse it."""
        core = self.core
        opening = core.handshake_revision
        if not self._opens_sessions:
            version = asked.route.protocol_version
            if version is not None and version not in core.revisions:
                kind = ErrorKind.UNSUPPORTED_PROTOCOL_VERSION
                supported, policy = list(core.revisions), core.newest_revision.policy
                self.refuse(asked, policy, kind, supported=supported, requested=brief(version))
                return None
            if opening is not None:
                self._lacks_meta(asked, core.newest_revision)
                return None
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
        if self._has_exchanges:
            asked.route.use_status(ErrorKind.MISSING_REQUEST_META, rev.revision)
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
        if self._has_exchanges:
            self.transport.use_revision(session.rev.revision)  # type: ignore[attr-defined]  # an HttpSession

    # -- notifications, replies, problems ----------------------------------------------------

    def _on_notification(self, message: Envelope, route: Any) -> None:
        method = message.method  # type: ignore[union-attr]  # a notification is a call
        rev = self._rev or self.core.newest_revision
        handle = self.core.notification_handlers.get(official(method, rev.policy, rev.revision))
        if handle is None:
            handle = self.core.own_notifications.get(method)
        if handle is None:
            known = official(method, rev.policy, rev.revision)
            if known in rev.methods or method in self.core.own_methods:
                # A client that forgot the id waits for an answer.  [K-05]
                text = "request %s of the client has no id: ignored, as a notification"
                self.log_limit.warning(text, show(method))
            else:
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

    def _on_problem(self, problem: ProtocolProblem, route: Any) -> None:
        if self._has_exchanges and not _is_answered(problem):
            route.not_accepted()
        if self.transport.backlog > HIGH_WATER:
            self.runner.unread.weigh()  # it was answered, and no request waits for room
        if isinstance(problem, InvalidMessage):
            self._invalid += 1
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


def _with_loose_token(params: Any, caller: Caller | None) -> Caller | None:
    """Return the caller with a progress token that is beside `_meta`.  [K-32]"""
    if params is UNSET or (caller is not None and caller.progress_token is not None):
        return caller
    token = (params if type(params) is ToolCall else only_meta(params)).progress_token
    if type(token) is not int and type(token) is not str:
        return caller
    check_token_length(token, "/params/progressToken")
    return replace(caller or Caller(), progress_token=token)


def _is_answered(problem: ProtocolProblem) -> bool:
    """Return True if a message that is not processed needs no status of its own."""
    if isinstance(problem, InvalidMessage):
        return problem.answerable
    return problem.why is UnmatchedReply.LATE


def _requested(params: Any) -> str:
    return "" if params is UNSET else _wanted(params).protocol_version


def _rate_wait(route: Any, place: int) -> float | None:
    """Return the seconds until the rate of a client admits an element of a batch, or None.

    None counts the element. The first one was counted with its message, before it was read.
    """
    wait: Callable[[], float | None] | None = getattr(route, "rate_wait", None)
    return wait() if place and wait is not None else None

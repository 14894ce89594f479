"""One client of a server: what it agreed on, and by whose rules each of its messages goes.

A `Connection` joins a transport to a `Peer`. It finds out which revision a message is in and
what serves its method; running handlers is for `RequestRunner`.

The rules that live here, and only here:

* The era is decided per message: `_meta` with a protocol version has the rules of that
  version, whatever was said before; without one the agreed session's hold.
                                                       [MCP 2026-07-28, basic/versioning]
* Before `initialize` nothing is served but `ping`.    [MCP 2025-11-25, basic/lifecycle]
* When the client reads too slowly, requests wait. Replies and cancels are still read. Beyond
  a bound the connection ends, and the log says why.
"""

from __future__ import annotations

import asyncio
import logging
import threading
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
)
from ...jsonrpc.codec import Envelope
from ...jsonrpc.error_codes import named_error, peer_error
from ...jsonrpc.framing import Oversize
from ...jsonrpc.incoming import IncomingRequest
from ...jsonrpc.messages import Reply
from ...jsonrpc.outgoing import Pending, UnmatchedReply
from ...jsonrpc.peer import Peer, ProtocolProblem
from ...jsonrpc.policy import Policy
from ...mcp.meta import BadMeta, Caller, lacking
from ...mcp.names import official, spoken
from ...mcp.types import ClientCapabilities, Implementation, ServerCapabilities
from ...redaction import redact, show
from ...spec.error_kinds import ErrorKind
from ...transports.base import HIGH_WATER, Frame, Transport
from ..errors import as_redacted
from .params import UNREADABLE, ToolCall
from .requests import RequestRunner
from .revision import ServerRevision

if TYPE_CHECKING:
    from ..core import ServerCore

__all__ = ["MAX_BACKLOG_BYTES", "Connection", "HandshakeSession"]

_log: Final = logging.getLogger("trunkline.server")

# A client that sends and does not read makes us hold what we say. Requests wait from HIGH_WATER
# on; what is answered without a handler, such as garbage, can still grow it, so far.
MAX_BACKLOG_BYTES: Final = 4 * HIGH_WATER
# Faults of one client that are logged as warnings; a hostile one would fill the disk.
_MAX_WARNINGS: Final = 10
# How long handlers that were cancelled may take to clean up, in seconds.
_CLEANUP_TIMEOUT_S: Final = 1.0


class _OnlyMeta(Struct, frozen=True):
    """Params, of which only `_meta` is read."""

    meta: Raw | UnsetType = field(default=UNSET, name="_meta")
    progress_token: Any = field(default=UNSET, name="progressToken")


class _Wanted(Struct, frozen=True):
    """Params of `initialize`, of which only the version is read."""

    protocol_version: str = field(default="", name="protocolVersion")


_only_meta: Final = Decoder(_OnlyMeta).decode
_wanted: Final = Decoder(_Wanted).decode


class HandshakeSession(Struct, eq=False):
    """What the two sides agreed on by a handshake."""

    rev: ServerRevision
    client: Implementation
    capabilities: ClientCapabilities
    # What the client was told that we can do.
    declared: ServerCapabilities
    # What the client wants of our log; until it says so, what most want.
    log_level: str = "info"
    # Whether it said that it is ready to be told things.
    is_ready: bool = False

    def was_told_of(self, what: str) -> bool:
        """Say whether the client may be told that a list has changed: it was told of the list."""
        return getattr(self.declared, what) is not UNSET


class Connection:
    """One client, from its first byte to its last answer."""

    __slots__ = (
        "_ended",
        "_hears",
        "_policy",
        "_problems",
        "_rev",
        "core",
        "loop",
        "peer",
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
        self._rev: ServerRevision | None = None
        # Whose numbers an error gets that belongs to no revision in particular.
        self._policy: Policy = core.newest_revision.policy
        self._problems = 0
        # Whether something may still come in.
        self._hears = True
        self._ended: asyncio.Future[TransportError | None] = self.loop.create_future()
        self.peer = Peer(
            core.newest_revision.codec(transport.name),
            write=transport.send,
            on_request=self._on_request,
            on_notification=self._on_notification,
            on_reply=self._on_reply,
            on_problem=self._on_problem,
        )
        self.runner = RequestRunner(core, self.peer, transport, self._serve, self.end)

    # -- from the first byte to the last -----------------------------------------------------

    async def run(self) -> None:
        """Serve the client until one side ends it, then finish what is owed.

        Raises:
            TransportError: there is nothing to connect to, or it is connected to already.
        """
        transport, limits = self.transport, self.core.limits
        if transport.is_connected:
            raise TransportError("this transport is in use already")
        transport.on_message = self.receive
        transport.on_error = self._input_ended
        transport.on_drained = self.runner.drain
        await transport.connect()
        grace = 0.0
        try:
            why = await self._ended
            if why is not None:
                _log.warning("connection ended: %s", why)
            elif self._listens():
                grace = limits.grace if self.runner.is_stopping else limits.linger
        finally:
            # Also when this task is cancelled: handlers clean up before the lifespan ends.
            await self._finish(grace)

    def _listens(self) -> bool:
        """Say whether the client, which may have ended its input, still takes answers."""
        return self.transport.is_connected

    async def _finish(self, grace: float) -> None:
        streams = self.core.streams
        try:
            if self.runner.is_stopping:
                # Before handlers are waited for: who listens may go elsewhere meanwhile.
                streams.finish(self)
            until = self.loop.time() + grace
            await self.runner.finish(grace, _CLEANUP_TIMEOUT_S, self._policy)
            await self.core.finish_results(self, until - self.loop.time())
        finally:
            # What handlers changed at the last is still told, then the streams end.
            streams.finish(self)
            streams.leave(self)
            self.core.release(self)
            self._drop_asks(self.peer.close()[0])
            self.runner.drain()  # whoever waits for room
            await self.transport.close()

    def end(self, why: TransportError | None = None) -> None:
        """Take in no more: the client has ended, or is to."""
        if not self._ended.done():
            self._ended.set_result(why)

    def _input_ended(self, why: TransportError | None) -> None:
        """Take note that nothing more will come, not even an answer to what handlers asked."""
        self._hears = False
        self._drop_asks(self.peer.outgoing.drain())
        self.end(why)

    def _drop_asks(self, asked: list[Pending]) -> None:
        for pending in asked:
            future: asyncio.Future[Any] = pending.waiter
            if not future.done():
                gone = ConnectionLost("the client is gone", method=pending.method)
                future.set_exception(gone)

    def stop(self, *, at_once: bool = False) -> None:
        """Begin nothing new, because the server is to stop; what is at work may finish."""
        was_told, self.runner.is_stopping = self.runner.is_stopping, True
        if at_once or (self._ended.done() and not was_told):
            # Who ends its input and then sends a signal has waited already.
            self.runner.cancel_all()
            self.core.release(self)
        self.end()

    # -- coming in ---------------------------------------------------------------------------

    def receive(self, frame: Frame, route: Any = None) -> None:
        """Take in one frame; nothing that is in it makes this raise."""
        if self.transport.backlog > MAX_BACKLOG_BYTES:
            self.end(TransportError("the client sends and does not read its answers"))
            return
        try:
            if type(frame) is bytes or isinstance(frame, Oversize):
                self.peer.feed(frame, route)
            else:
                self._spoilt(frame, route)
        except Exception as error:  # noqa: BLE001  # ours; the connection is worth more
            _log.error("a message could not be served\n%s", as_redacted(error))

    def _spoilt(self, frame: Any, route: Any) -> None:
        """Answer for bytes that are no frame."""
        fault = self.peer.codec.fault("jsonrpc.text.json", got=frame)
        self._on_problem(fault, route)
        answer = fault.answer()
        if answer is not None:
            self.transport.send(answer, route)
        if getattr(frame, "lost", False):
            # Where the next frame begins cannot be told.
            self.end(TransportError(f"the client's framing is lost: {fault}"))

    def _on_request(self, asked: IncomingRequest) -> None:
        if asked.slot is None and self.transport.backlog <= HIGH_WATER:
            self._serve(asked)  # as `take` would
        else:
            self.runner.take(asked, self._policy)

    def _serve(self, asked: IncomingRequest) -> None:
        """Find by whose rules a request goes, and serve it; whatever happens, it is answered."""
        try:
            params = asked.params
            if type(params) is ToolCall:
                raw = params.meta
            else:
                raw = UNSET if params is UNSET else _only_meta(params).meta
            caller = None if raw is UNSET else self.core.callers.read(bytes(raw))
            if self.core.policy.strictness == "lenient":
                caller = _with_loose_token(params, caller)
            if caller is None or caller.protocol_version is None:
                rev = self._rev or self._unopened(asked)
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
            if serve is None:
                text = f"Unknown method: {redact(method)}"
                self.refuse(asked, rev.policy, ErrorKind.METHOD_NOT_FOUND, text)
            else:
                serve(self, asked, caller, rev)
        except BadMeta as error:
            self.refuse(asked, self._policy, error.symbol, f"Invalid params: {error}")
        except UNREADABLE as error:
            self.refuse(asked, self._policy, ErrorKind.INVALID_PARAMS, plain(error))
        except Exception as error:  # noqa: BLE001  # ours; the client is not left waiting
            _log.error("%s could not be served\n%s", show(asked.method), as_redacted(error))
            self.refuse(asked, self._policy, ErrorKind.INTERNAL_ERROR)

    def _stateless(self, asked: IncomingRequest, caller: Caller) -> ServerRevision | None:
        """Return the revision that a request names by itself, or refuse it."""
        core, version = self.core, caller.protocol_version
        rev = core.revision(version) if version in core.revisions else None
        if rev is not None and rev is self._rev:
            return rev  # it says what was agreed
        if rev is None or rev.has_handshake:
            kind = ErrorKind.UNSUPPORTED_PROTOCOL_VERSION
            # A version that needs a handshake is no use to who does without.
            usable = [each for each in core.revisions if not core.revision(each).has_handshake]
            supported = usable or list(core.revisions)
            self.refuse(
                asked, core.newest_revision.policy, kind, supported=supported, requested=version
            )
            return None
        if lacking(caller, rev.revision):
            self._lacks_meta(asked, rev)
            return None
        return rev

    def _unopened(self, asked: IncomingRequest) -> ServerRevision | None:
        """Return what serves a request that names no version and comes before any handshake."""
        core = self.core
        opening = core.handshake_revision
        if opening is None:
            if asked.method == "initialize":
                # It cannot fall forward, but its user can read what would do.
                self.refuse(
                    asked,
                    core.newest_revision.policy,
                    ErrorKind.UNSUPPORTED_PROTOCOL_VERSION,
                    supported=list(core.revisions),
                    requested=_requested(asked.params),
                )
            else:
                self._lacks_meta(asked, core.newest_revision)
            return None
        method = official(asked.method, opening.policy, opening.revision)
        if method in ("initialize", "ping"):
            return opening
        if method not in opening.methods and method in core.newest_revision.methods:
            self._lacks_meta(asked, core.newest_revision)
            return None
        text = opening.sentence(ErrorKind.NOT_INITIALIZED)
        self.refuse(asked, opening.policy, ErrorKind.NOT_INITIALIZED, text)
        return None

    def _lacks_meta(self, asked: IncomingRequest, rev: ServerRevision) -> None:
        text = "A request needs a protocol version and the client's capabilities in params._meta"
        self.refuse(asked, rev.policy, ErrorKind.MISSING_REQUEST_META, text)

    def agree(self, session: HandshakeSession) -> None:
        """Speak, from the next message on, as the two sides have agreed."""
        self.session = session
        self._rev = session.rev
        self._policy = session.rev.policy
        self.peer.use(session.rev.codec(self.transport.name))

    # -- notifications, replies, faults ------------------------------------------------------

    def _on_notification(self, message: Envelope, route: Any) -> None:
        method = message.method  # type: ignore[union-attr]  # a notification is a call
        rev = self._rev or self.core.newest_revision
        hear = self.core.notification_handlers.get(official(method, rev.policy, rev.revision))
        if hear is None:
            hear = self.core.own_notifications.get(method)
        if hear is None:
            _log.debug("nobody listens to %s", show(method))
            return
        try:
            hear(self, message.params)  # type: ignore[union-attr]  # as above
        except Exception as error:  # noqa: BLE001  # an author's; a batch around it goes on
            if not isinstance(error, UNREADABLE):
                _log.error("%s could not be heard\n%s", show(method), as_redacted(error))
                return
            # Nothing can be answered; a malformed one is ignored.
            self._warn("%s is not as it should be: %s", show(method), plain(error))

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
        if isinstance(problem, InvalidMessage):
            self._warn("from the client: %s", problem)
        elif problem.why is not UnmatchedReply.LATE:  # or our cancel crossed it on its way
            id = show(problem.reply.id)
            self._warn("the client replied to %s, which was %s", id, problem.why.value)

    def _warn(self, text: str, *facts: object) -> None:
        self._problems += 1
        level = logging.WARNING if self._problems <= _MAX_WARNINGS else logging.DEBUG
        _log.log(level, text, *facts)

    # -- answering ---------------------------------------------------------------------------

    def answer(self, asked: IncomingRequest, outcome: Any, policy: Policy) -> None:
        """Answer a request that needed no handler, with a result or an `ErrorObject`."""
        self.runner.answer(asked, outcome, policy)

    def refuse(
        self,
        asked: IncomingRequest,
        policy: Policy,
        kind: str,
        message: str | None = None,
        **facts: Any,
    ) -> None:
        """Answer a request with an error, by its symbol."""
        self.peer.fail(asked, named_error(kind, policy=policy, message=message, **facts))

    # -- saying and asking -------------------------------------------------------------------

    def say(self, asked: IncomingRequest, method: str, params: Any) -> None:
        """Send a notification about a request that is open; about any other it is dropped."""
        if asked not in self.peer.incoming or self.transport.backlog > MAX_BACKLOG_BYTES:
            return
        self.notify(method, params, asked.route)

    def notify(self, method: str, params: Any = None, route: Any = None) -> None:
        """Send a notification; after the end it is dropped."""
        if not self.peer.is_closed:
            try:
                self.peer.send_notification(spoken(method, self._policy), params, route=route)
            except LocalProtocolError as error:
                _log.error("%s cannot be written: %s", method, error)

    @property
    def hears(self) -> bool:
        """Whether the client may still say something."""
        return self._hears

    @property
    def is_busy(self) -> bool:
        """Whether a request of the client's, or a stream, is open."""
        return len(self.peer.incoming) > 0

    @property
    def is_slow(self) -> bool:
        """Whether the client reads more slowly than we write."""
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
        """Send the client a request about one of its own, and return its result, unread.

        Meanwhile what it waits for is one of `waits`; to cancel that withdraws the request.

        Raises:
            PeerError: the client answered with an error.
            RequestAborted: no answer will come: RequestTimeout, or ConnectionLost.
        """
        if asked not in self.peer.incoming:
            raise RequestAborted("the request it belongs to has ended", method=method)
        if not self._hears:
            raise ConnectionLost("the client is gone", method=method)
        seconds = self.core.limits.ask_timeout if timeout is None else timeout
        future: asyncio.Future[Any] = self.loop.create_future()
        narrowed = rev.narrowed(params)
        pending = self.peer.send_request(method, narrowed, waiter=future, route=asked.route)
        if waits is not None:
            waits.add(future)
            future.add_done_callback(waits.discard)
        try:
            async with asyncio.timeout(seconds):
                return await future  # type: ignore[no-any-return]  # set by `_on_reply`
        except (TimeoutError, asyncio.CancelledError) as error:
            if self.peer.cancel(pending):
                self.notify("notifications/cancelled", {"requestId": pending.id}, asked.route)
            if isinstance(error, TimeoutError):
                text = f"no answer from the client in {seconds:g} s"
                raise RequestTimeout(text, method=method) from None
            raise


def plain(error: Exception) -> str:
    """Return a decoder's complaint as a sentence for a peer, which has sent what it is about."""
    return "Invalid params: " + (str(error) if isinstance(error, ValidationError) else "not JSON")


def _with_loose_token(params: Any, caller: Caller | None) -> Caller | None:
    """Return who is asking, with a progress token that stands beside `_meta`.  [K-32]"""
    if params is UNSET or (caller is not None and caller.progress_token is not None):
        return caller
    token = (params if type(params) is ToolCall else _only_meta(params)).progress_token
    if type(token) is not int and type(token) is not str:
        return caller
    return replace(caller or Caller(), progress_token=token)


def _requested(params: Any) -> str:
    """Return the version that `initialize` asks for, or "" where it names none."""
    return "" if params is UNSET else _wanted(params).protocol_version

"""One client of a server: what it agreed on, what it asked, and what it is still owed.

A `Connection` joins a transport to a `Peer` and turns requests into calls of handlers. It
decides by whose rules a message is read, bounds how much one client can set going, and
sees to it that every request is answered exactly once, or not at all once it was cancelled.

The rules that live here, and only here:

* The era is decided per message: `_meta` with a protocol version has the rules of that
  version, whatever was said before; without one the agreed session's hold.
                                                       [MCP 2026-07-28, basic/versioning]
* Before `initialize` nothing is served but `ping`.    [MCP 2025-11-25, basic/lifecycle]
* A cancelled request is not answered, and its handler is stopped; what it still returns
  is dropped.                               [MCP 2025-11-25, basic/utilities/cancellation]
* When the client reads too slowly, or has too much at work, requests wait. Replies and
  cancels are still read. Beyond a bound the connection ends, and the log says why.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from inspect import isawaitable
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, ValidationError, field
from msgspec.json import Decoder

from ..errors import (
    ConnectionLost,
    InvalidMessage,
    LocalProtocolError,
    PeerError,
    TimedOut,
    TransportError,
)
from ..jsonrpc.codec import Envelope
from ..jsonrpc.framing import Oversize
from ..jsonrpc.inbox import Asked
from ..jsonrpc.ledger import Pending
from ..jsonrpc.messages import ErrorObject, Reply, RequestId
from ..jsonrpc.named import named_error
from ..jsonrpc.peer import Peer, Problem
from ..jsonrpc.policy import Policy
from ..mcp.meta import BadMeta, Caller, lacking
from ..mcp.names import official, spoken
from ..mcp.types import ClientCapabilities, Implementation
from ..redaction import redact, show
from ..spec.kinds import ErrorKind
from ..transports.base import HIGH_WATER, Frame, Transport
from . import asking
from .context import Context
from .failures import as_redacted
from .middleware import invoke
from .surface import Surface, ToolCall
from .workers import NoThreadFree

if TYPE_CHECKING:
    from .app import Server
    from .entries import Entry

__all__ = ["Connection", "Session", "Work"]

_log: Final = logging.getLogger("trunkline.server")

# A client that sends and does not read makes us hold what we say. Requests wait from HIGH_WATER
# on; what is answered without a handler, such as garbage, can still grow it, so far.
_MOST_BACKLOG: Final = 4 * HIGH_WATER
# Faults of one client that are logged as warnings; a hostile one would fill the disk.
_PROBLEMS_SHOWN: Final = 10
# How long handlers that were cancelled may take to clean up, in seconds.
_CLEANUP: Final = 1.0
# What a refusal for lack of room tells the client, in milliseconds.
RETRY_AFTER: Final = 1000


class _OnlyMeta(Struct, frozen=True):
    """Params, of which only `_meta` is read."""

    meta: Raw | UnsetType = field(default=UNSET, name="_meta")


class _Wanted(Struct, frozen=True):
    """Params of `initialize`, of which only the version is read."""

    protocol_version: str = field(default="", name="protocolVersion")


_only_meta: Final = Decoder(_OnlyMeta).decode
_wanted: Final = Decoder(_Wanted).decode


class Session(Struct, eq=False):
    """What the two sides agreed on by a handshake."""

    surface: Surface
    client: Implementation
    capabilities: ClientCapabilities
    # What the client wants of our log; until it says so, what most want.
    log_level: str = "info"
    # The URIs it wants to hear about.
    subscriptions: set[str] = set()  # each has its own
    # Whether it said that it is ready to be told things.
    is_ready: bool = False


class Work(Protocol):
    """One kind of handler: what becomes of what it returns, and of what it raises."""

    def finish(self, entry: Any, context: Context, value: Any) -> Any:
        """Return the result as it is sent."""
        ...

    def fail(self, entry: Any, context: Context, error: BaseException) -> Any:
        """Return the result, or the `ErrorObject`, that says so."""
        ...


class Connection:
    """One client, from its first byte to its last answer."""

    __slots__ = (
        "_batches",
        "_ended",
        "_hears",
        "_held",
        "_is_draining",
        "_is_stopping",
        "_problems",
        "_room",
        "_surface",
        "app",
        "jobs",
        "loop",
        "peer",
        "session",
        "thread",
        "transport",
        "waiting",
    )

    def __init__(self, app: Server, transport: Transport) -> None:
        self.app = app
        self.transport = transport
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.session: Session | None = None
        self._surface: Surface | None = None
        # Handlers at work, and requests that wait for one to end.
        self.jobs: dict[Asked, Context] = {}
        self.waiting: deque[Asked] = deque()
        self._held = 0  # bytes, by those that wait
        # Requests of a batch that are to be served one after the other.
        self._batches: dict[int, deque[tuple[Work, Any, Any, Context]]] = {}
        self._room: list[asyncio.Future[None]] = []
        self._problems = 0
        self._is_stopping = False
        self._is_draining = False
        # Whether something may still come in.
        self._hears = True
        self._ended: asyncio.Future[TransportError | None] = self.loop.create_future()
        self.peer = Peer(
            app.surface(app.revisions[0]).codec(transport.name),
            write=transport.send,
            on_request=self._on_request,
            on_notification=self._on_notification,
            on_reply=self._on_reply,
            on_problem=self._on_problem,
        )

    # -- from the first byte to the last -----------------------------------------------------

    async def run(self) -> None:
        """Serve the client until one side ends it, then finish what is owed."""
        transport = self.transport
        transport.on_message = self.receive
        transport.on_error = self._input_ended
        transport.on_drained = self._drained
        await transport.connect()
        try:
            why = await self._ended
            if why is not None:
                _log.warning("connection ended: %s", why)
            await self._finish(listens=why is None and transport.is_connected)
        finally:
            waited_for, _ = self.peer.close()
            for pending in waited_for:
                _fail(pending, ConnectionLost("the client is gone", method=pending.method))
            self._cancel_all()
            await transport.close()

    def end(self, why: TransportError | None = None) -> None:
        """Take in no more: the client has ended, or is to."""
        if not self._ended.done():
            self._ended.set_result(why)

    def _input_ended(self, why: TransportError | None) -> None:
        """Take note that nothing more will come, not even an answer to what handlers asked."""
        self._hears = False
        for pending in self.peer.ledger.drain():
            _fail(pending, ConnectionLost("the client is gone", method=pending.method))
        self.end(why)

    def stop(self, *, at_once: bool = False) -> None:
        """Begin nothing new, because the server is to stop; what is at work may finish."""
        self._is_stopping = True
        if at_once or self._ended.done():
            # Who ends its input and then sends a signal has waited already.
            self._cancel_all()
        self.end()

    async def _finish(self, *, listens: bool) -> None:
        """Let handlers finish, if anybody still listens to them; then stop those that are left."""
        if listens:
            limits = self.app.limits
            await self._wait(limits.grace if self._is_stopping else limits.linger)
        self._is_stopping = True
        if not listens:
            self.waiting.clear()
            for context in self.jobs.values():
                context.cancelled = True
        self._cancel_all()
        await self._wait(_CLEANUP)
        for asked, context in self.jobs.items():
            _log.warning("%s %r does not end though it was cancelled", asked.method, context.what)
        for asked in (*self.jobs, *self.waiting):
            self.refuse(
                asked, self._policy, ErrorKind.SERVICE_UNAVAILABLE, retryAfterMs=RETRY_AFTER
            )

    def _cancel_all(self) -> None:
        for context in self.jobs.values():
            self._cancel(context)

    def _cancel(self, context: Context) -> None:
        task = context._task
        if task is not None:
            task.cancel()
            # A task that is cancelled before its first step never runs, not even its `except`.
            task.add_done_callback(lambda _: self._never_begun(context))

    def _never_begun(self, context: Context) -> None:
        if context._asked in self.jobs:
            self._done(context, self._unserved(context))

    def _unserved(self, context: Context) -> ErrorObject:
        """Return what a request is answered whose handler the server did not let finish."""
        kind, policy = ErrorKind.SERVICE_UNAVAILABLE, context._surface.policy
        return named_error(kind, policy=policy, retryAfterMs=RETRY_AFTER)

    async def _wait(self, seconds: float) -> None:
        """Wait for handlers at work, those that wait for their turn included."""
        until = self.loop.time() + seconds
        while (self.jobs or self.waiting) and (left := until - self.loop.time()) > 0:
            waits: list[asyncio.Future[None]] = [
                context._task for context in self.jobs.values() if context._task is not None
            ]
            if not waits:
                # What is left waits for the client to read.
                waits = [self.loop.create_future()]
                self._room += waits
            await asyncio.wait(waits, timeout=left)

    # -- coming in ---------------------------------------------------------------------------

    def receive(self, frame: Frame, route: Any = None) -> None:
        """Take in one frame; nothing that is in it makes this raise."""
        if self.transport.backlog > _MOST_BACKLOG:
            self.end(TransportError("the client sends and does not read its answers"))
            return
        try:
            if isinstance(frame, bytes | Oversize):
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

    def _on_request(self, asked: Asked) -> None:
        if self.waiting or self.transport.backlog > HIGH_WATER:
            self._hold(asked)
        else:
            self._serve(asked)

    def _serve(self, asked: Asked) -> None:
        """Find by whose rules a request goes, and serve it; whatever happens, it is answered."""
        try:
            params = asked.params
            if type(params) is ToolCall:
                raw = params.meta
            else:
                raw = UNSET if params is UNSET else _only_meta(params).meta
            caller = None if raw is UNSET else self.app.callers.read(bytes(raw))
            if caller is None or caller.protocol_version is None:
                surface = self._surface or self._unopened(asked)
            else:
                surface = self._stateless(asked, caller)
            if surface is None:
                return
            method = asked.method
            serve = surface.methods.get(method)
            if serve is None:
                serve = surface.methods.get(official(method, surface.policy, surface.revision))
            if serve is None:
                serve = self.app.own_methods.get(method)
            if serve is None:
                text = f"Unknown method: {redact(method)}"
                self.refuse(asked, surface.policy, ErrorKind.METHOD_NOT_FOUND, text)
            else:
                serve(self, asked, caller, surface)
        except BadMeta as error:
            self.refuse(asked, self._policy, error.symbol, f"Invalid params: {error}")
        except (ValidationError, DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.refuse(asked, self._policy, ErrorKind.INVALID_PARAMS, plain(error))
        except Exception as error:  # noqa: BLE001  # ours; the client is not left waiting
            _log.error("%s could not be served\n%s", show(asked.method), as_redacted(error))
            self.refuse(asked, self._policy, ErrorKind.INTERNAL_ERROR)

    def _stateless(self, asked: Asked, caller: Caller) -> Surface | None:
        """Return the surface that a request names by itself, or refuse it."""
        app, version = self.app, caller.protocol_version
        surface = app.surface(version) if version in app.revisions else None
        if surface is not None and surface is self._surface:
            return surface  # it says what was agreed
        if surface is None or surface.has_handshake:
            self.refuse(
                asked,
                app.newest.policy,
                ErrorKind.UNSUPPORTED_PROTOCOL_VERSION,
                supported=list(app.revisions),
                requested=version,
            )
            return None
        if lacking(caller, surface.revision):
            self._lacks_meta(asked, surface)
            return None
        return surface

    def _unopened(self, asked: Asked) -> Surface | None:
        """Return what serves a request that names no version and comes before any handshake."""
        app = self.app
        opening = app.opening
        if opening is None:
            if asked.method == "initialize":
                # It cannot fall forward, but its user can read what would do.
                self.refuse(
                    asked,
                    app.newest.policy,
                    ErrorKind.UNSUPPORTED_PROTOCOL_VERSION,
                    supported=list(app.revisions),
                    requested=_requested(asked.params),
                )
            else:
                self._lacks_meta(asked, app.newest)
            return None
        method = official(asked.method, opening.policy, opening.revision)
        if method in ("initialize", "ping"):
            return opening
        if method not in opening.methods and method in app.newest.methods:
            self._lacks_meta(asked, app.newest)
            return None
        text = opening.sentence(ErrorKind.NOT_INITIALIZED)
        self.refuse(asked, opening.policy, ErrorKind.NOT_INITIALIZED, text)
        return None

    def _lacks_meta(self, asked: Asked, surface: Surface) -> None:
        text = "A request needs a protocol version and the client's capabilities in params._meta"
        self.refuse(asked, surface.policy, ErrorKind.MISSING_REQUEST_META, text)

    @property
    def _policy(self) -> Policy:
        """Whose numbers an error gets that belongs to no revision in particular."""
        return (self._surface or self.app.newest).policy

    def agree(self, session: Session) -> None:
        """Speak, from the next message on, as the two sides have agreed."""
        self.session = session
        self._surface = session.surface
        self.peer.use(session.surface.codec(self.transport.name))

    # -- notifications, replies, faults ------------------------------------------------------

    def _on_notification(self, message: Envelope, route: Any) -> None:
        method = message.method  # type: ignore[union-attr]  # a notification is a call
        surface = self._surface or self.app.newest
        hear = self.app.heard.get(official(method, surface.policy, surface.revision))
        if hear is None:
            hear = self.app.own_notifications.get(method)
        if hear is None:
            _log.debug("nobody listens to %s", show(method))
            return
        try:
            hear(self, message.params)  # type: ignore[union-attr]  # as above
        except (ValidationError, DecodeError, UnicodeDecodeError, RecursionError) as error:
            # Nothing can be answered; a malformed one is ignored.
            self._warn("%s is not as it should be: %s", show(method), plain(error))

    def _on_reply(self, pending: Pending, reply: Reply | InvalidMessage) -> None:
        future: asyncio.Future[Any] = pending.waiter
        if future.done():
            return
        if isinstance(reply, InvalidMessage):
            future.set_exception(reply)
        elif reply.error is not UNSET:
            error = reply.error
            data = None if error.data is UNSET else error.data
            future.set_exception(PeerError(error.code, error.message, data, method=pending.method))
        else:
            future.set_result(reply.result)

    def _on_problem(self, problem: Problem, _route: Any) -> None:
        self._warn("from the client: %s", problem)

    def _warn(self, text: str, *facts: object) -> None:
        self._problems += 1
        level = logging.WARNING if self._problems <= _PROBLEMS_SHOWN else logging.DEBUG
        _log.log(level, text, *facts)

    # -- handlers ----------------------------------------------------------------------------

    def begin(self, work: Work, entry: Entry, values: Any, context: Context) -> None:
        """Run a handler for a request, now or when there is room."""
        app, asked = self.app, context._asked
        if len(self.jobs) >= app.limits.in_flight:
            self._hold(asked)
            return
        if app.in_flight >= app.limits.in_flight_overall or self._is_stopping:
            kind = ErrorKind.SERVICE_UNAVAILABLE if self._is_stopping else ErrorKind.OVERLOADED
            self.refuse(asked, context._surface.policy, kind, retryAfterMs=RETRY_AFTER)
            return
        if asked.slot is None or self._is_next(work, entry, values, context):
            self._start(work, entry, values, context)

    def _start(self, work: Work, entry: Any, values: Any, context: Context) -> None:
        self.app.in_flight += 1
        self.jobs[context._asked] = context
        if entry.inline and not (entry.arguments.is_async or entry.path or self.app.chain):
            self._run_inline(work, entry, values, context)
        else:
            task = self._run(work, entry, values, context)
            context._task = self.loop.create_task(task)

    def _run_inline(self, work: Work, entry: Any, values: Any, context: Context) -> None:
        """Run a handler here and now: its author said that it is quick."""
        try:
            outcome = work.finish(entry, context, entry.arguments.call(values, context))
        except BaseException as error:  # noqa: BLE001  # SystemExit too: handlers end nothing
            outcome = work.fail(entry, context, error)
        self._done(context, outcome)

    async def _run(self, work: Work, entry: Any, values: Any, context: Context) -> None:
        """Run a handler as a task of its own, so that it can be cancelled."""
        try:
            if entry.is_plain and not self.app.chain:
                value = entry.arguments.call(values, context)
                # Or a wrapper around a coroutine function gave back something else.
                if type(value) is CoroutineType or isawaitable(value):
                    value = await value
            else:
                value = await self._call_guarded(entry, values, context)
            outcome = work.finish(entry, context, value)
        except NoThreadFree:
            policy = context._surface.policy
            outcome = named_error(ErrorKind.OVERLOADED, policy=policy, retryAfterMs=RETRY_AFTER)
        except BaseException as error:  # noqa: BLE001  # SystemExit too: handlers end nothing
            if isinstance(error, asyncio.CancelledError) and self._is_stopping:
                outcome = self._unserved(context)
            elif context.cancelled:
                outcome = None
            else:
                outcome = work.fail(entry, context, error)
        self._done(context, outcome)

    async def _call_guarded(self, entry: Any, values: Any, context: Context) -> Any:
        """Call a handler with what was switched on for it: middleware, a timeout, a thread."""
        if entry.timeout is None:
            return await invoke(self.app, entry, values, context)
        context.deadline = self.loop.time() + entry.timeout
        async with asyncio.timeout_at(context.deadline):
            return await invoke(self.app, entry, values, context)

    def _done(self, context: Context, outcome: Any) -> None:
        """Answer a request whose handler has ended, and begin what waited for that."""
        asked = context._asked
        try:
            if outcome is not None and not context.cancelled:
                self.answer(asked, outcome, context._surface.policy)
        finally:
            del self.jobs[asked]
            self.app.in_flight -= 1
        if asked.slot is not None:
            self._next_of_batch(asked)
        if self.waiting:
            self._drained()

    def answer(self, asked: Asked, outcome: Any, policy: Policy) -> None:
        """Answer a request, with a result or an `ErrorObject`."""
        try:
            if isinstance(outcome, ErrorObject):
                self.peer.fail(asked, outcome)
            else:
                self.peer.answer(asked, outcome)
        except LocalProtocolError as error:
            _log.error("the answer to %s cannot be written: %s", asked.method, error)
            self.peer.fail(asked, named_error(ErrorKind.INTERNAL_ERROR, policy=policy))

    def refuse(
        self, asked: Asked, policy: Policy, kind: str, message: str | None = None, **facts: Any
    ) -> None:
        """Answer a request with an error, by its symbol."""
        self.peer.fail(asked, named_error(kind, policy=policy, message=message, **facts))

    def cancel(self, id: RequestId) -> None:
        """Stop serving a request, and do not answer it; one that is not open is ignored."""
        asked = self.peer.inbox.find(id)
        if asked is None:
            return
        context = self.jobs.get(asked)
        self.peer.drop(asked)
        if context is not None:
            context.cancelled = True
            self._cancel(context)

    # -- room --------------------------------------------------------------------------------

    @property
    def is_slow(self) -> bool:
        """Whether the client reads more slowly than we write."""
        return self.transport.backlog > HIGH_WATER

    async def room(self) -> None:
        """Wait until the client has read most of what was written."""
        if self.is_slow and not self._ended.done():
            future = self.loop.create_future()
            self._room.append(future)
            await future

    def _hold(self, asked: Asked) -> None:
        """Let a request wait; one too many ends the connection, one too large is refused."""
        limits = self.app.limits
        size = _size(asked)
        if len(self.waiting) >= limits.waiting:
            self.refuse(asked, self._policy, ErrorKind.OVERLOADED, retryAfterMs=RETRY_AFTER)
            self.end(TransportError(f"the client has {limits.waiting} requests waiting"))
        elif self._held + size > limits.waiting_bytes:
            self.refuse(asked, self._policy, ErrorKind.OVERLOADED, retryAfterMs=RETRY_AFTER)
        else:
            self._held += size
            self.waiting.append(asked)

    def _drained(self) -> None:
        """Go on with what waited: there is room again."""
        room, self._room = self._room, []
        for future in room:
            if not future.done():
                future.set_result(None)
        if self._is_draining:  # an inline handler has ended: whoever began it goes on
            return
        self._is_draining = True
        waiting, limit = self.waiting, self.app.limits.in_flight
        try:
            while waiting and len(self.jobs) < limit and not self.is_slow:
                asked = waiting.popleft()
                self._held -= _size(asked)
                if asked in self.peer.inbox:  # or it was cancelled meanwhile
                    self._serve(asked)
        finally:
            self._is_draining = False

    def _is_next(self, work: Work, entry: Any, values: Any, context: Context) -> bool:
        """Say whether a request of a batch may run now; if not, it is kept until it may."""
        if context._surface.policy.batch_order == "parallel":
            return True
        batch = id(context._asked.slot[0])
        others = self._batches.get(batch)
        if others is None:
            self._batches[batch] = deque()
            return True
        others.append((work, entry, values, context))
        return False

    def _next_of_batch(self, asked: Asked) -> None:
        """Begin the next request of a batch whose requests run one after the other."""
        batch = id(asked.slot[0])
        others = self._batches.get(batch)
        while others:
            job = others.popleft()
            if job[3]._asked in self.peer.inbox:  # or it was cancelled meanwhile
                self._start(*job)
                return
        self._batches.pop(batch, None)

    # -- saying and asking -------------------------------------------------------------------

    def say(self, asked: Asked, method: str, params: Any) -> None:
        """Send a notification about a request that is open; about any other it is dropped."""
        if asked not in self.peer.inbox or self.transport.backlog > _MOST_BACKLOG:
            return
        self.notify(method, params, asked.route)

    def notify(self, method: str, params: Any = None, route: Any = None) -> None:
        """Send a notification; after the end it is dropped."""
        if not self.peer.is_closed:
            try:
                self.peer.send_notification(spoken(method, self._policy), params, route=route)
            except LocalProtocolError as error:
                _log.error("%s cannot be written: %s", method, error)

    async def ask(self, surface: Surface, method: str, params: Any, timeout: float | None) -> Any:
        """Send the client a request and return its typed result; see `Context.request`."""
        asking.check(self.session, surface, method)
        if not self._hears:
            raise ConnectionLost("the client is gone", method=method)
        seconds = self.app.limits.ask_timeout if timeout is None else timeout
        future: asyncio.Future[Any] = self.loop.create_future()
        pending = self.peer.send_request(method, surface.narrowed(params), waiter=future)
        try:
            async with asyncio.timeout(seconds):
                raw = await future
        except (TimeoutError, asyncio.CancelledError) as error:
            if self.peer.cancel(pending):
                self.notify("notifications/cancelled", {"requestId": pending.id})
            if isinstance(error, TimeoutError):
                text = f"no answer from the client in {seconds:g} s"
                raise TimedOut(text, method=method) from None
            raise
        return asking.read(raw, surface, method)


def plain(error: Exception) -> str:
    """Return a decoder's complaint as a sentence for a peer, which has sent what it is about."""
    return "Invalid params: " + (str(error) if isinstance(error, ValidationError) else "not JSON")


def _requested(params: Any) -> str:
    """Return the version that `initialize` asks for, or "" where it names none."""
    return "" if params is UNSET else _wanted(params).protocol_version


def _size(asked: Asked) -> int:
    """Return how many bytes a request that waits keeps."""
    params = asked.params
    if type(params) is ToolCall:
        return _length(params.arguments) + _length(params.meta)
    return _length(params)


def _length(raw: Any) -> int:
    return memoryview(raw).nbytes if isinstance(raw, Raw) else 0


def _fail(pending: Pending, error: Exception) -> None:
    future: asyncio.Future[Any] = pending.waiter
    if future is not None and not future.done():
        future.set_exception(error)

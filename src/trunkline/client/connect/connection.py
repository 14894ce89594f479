"""The connection of one client: opens, renews and closes its sessions.

A client has one current session. A session that is replaced stays open until its last reply.

The rules that live here, and only here:

* Connecting is bounded by `connect_timeout` and leaves nothing open when it fails. The time in
  which the client obtains a credential, such as by a login of a user, does not count, up to
  `max_timeout`.
* `close` may be called by any task, twice, during a call or while connecting. If it is cancelled
  the sessions still end, and the next `close` waits for them.
* When the request ids of a session are exhausted, or a server that outlives its connections
  ended one, the next request opens a new session with the log level and the subscriptions of the
  old one. Requests in flight are not repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import ConnectionLost, RequestTimeout, TransportError, TrunklineError
from ...jsonrpc.policy import Policy
from ...mcp.types import DiscoverResult, Implementation, LoggingLevel
from ...spec.revisions import LATEST
from ...transports.base import ignore
from ..requests.cache import Cache, fresh_until
from ..server_requests.handlers import (
    MAX_HANDLERS,
    ClientHandlers,
    HandlerFunctions,
    fixed_roots,
)
from ..session.decode import read
from ..session.diagnostics import RateLimitedLog
from ..session.request import OutgoingRequest
from ..session.session import CLOSED, Session
from ..subscriptions.budget import NotificationBudget
from ..subscriptions.dispatch import SubscriptionRouter
from ..subscriptions.notifications import NotificationCallbacks, NotificationListeners
from .capabilities import capabilities, extended
from .negotiation import ClientHello, negotiate
from .targets import (
    ConnectTarget,
    forget_era,
    name_of,
    outlives,
    own_auth,
    remember_era,
    remembered_era,
    with_http_options,
)

if TYPE_CHECKING:
    from ...concurrency.thread_pool import ThreadPool
    from ..options import ClientOptions
    from ..requests.tool_headers import ToolHeaders
    from ..session.validation import MessageValidator

__all__ = ["ClientConnection", "ConnectionState"]


class _ClosedBeforeNegotiation(TransportError):
    """A server that outlives its connections ended one before a revision was negotiated."""


class ConnectionState(Protocol):
    """What a synchronous client has to know of the connections of a client, one or several."""

    @property
    def has_session(self) -> bool:
        """Whether there is a session, which may have ended."""

    @property
    def is_unused(self) -> bool:
        """Whether there is no session, and none is being opened."""

    def use_threads(self, not_connected: str) -> NotificationBudget:
        """Use the text for calls without a session; return the budget of callbacks."""


class ClientConnection:
    """The current session of a client, and the sessions that are about to begin or end."""

    # Called with each new session before it is used, and with the old and the new one after a
    # renewal; set by the owner.
    on_open: Callable[[Session], Awaitable[None]]
    on_renewed: Callable[[Session, Session], Awaitable[None]]
    # Called when the tool list may have changed: by notification, or with a new session.
    on_tools_changed: Callable[[], None]
    # What a call without a session is told; a synchronous client has its own words.
    not_connected = "this client is not connected: use `async with`, or await `connect()` first"

    def __init__(self, target: ConnectTarget, options: ClientOptions) -> None:
        """Prepare to connect.

        Raises:
            ValueError: roots, extensions or options of HTTP are not valid.
            TypeError: extensions are not.
        """
        settings, self.resolvers = extended(options.extensions, tasks=options.tasks)
        self._handlers = HandlerFunctions(
            fixed_roots(options.roots),
            options.on_sample,
            options.on_elicit,
            options.on_elicit_url,
            options.sampling_tools,
            options.name,
        )
        auth = own_auth(target, options.auth)
        self._target = with_http_options(target, options.http, options.headers, auth)
        self.session: Session | None = None
        self.hello = ClientHello(
            options.revision,
            Implementation(options.name, options.version, title=options.title),
            partial(capabilities, self._handlers, options.experimental, settings),
            options.probe_timeout,
        )
        self.listeners = NotificationListeners(
            options.on_log,
            options.on_notification,
            options.on_list_changed,
            options.on_resource_updated,
        )
        self.cache = Cache() if options.cache else None
        self.options = options
        self.policy = (options.policy or Policy()).replace(revision=options.revision or LATEST)
        self.timeout = options.request_timeout
        # Of notifications that wait for callbacks and subscriptions, on all sessions.
        self.budget = NotificationBudget(self.policy.limits)
        self.log_level = options.logging_level
        # Of requests that carry a level, in which none requests no messages.
        self.default_log_level: LoggingLevel | None = None if options.on_log is None else "info"
        # What HTTP has to know of tools; None on other transports.
        self.tool_headers: ToolHeaders | None = None
        self._is_connecting = False
        self._opening: Session | None = None
        self._renewal_lock: asyncio.Lock | None = None
        # Sessions that wait for their last replies, or are closing.
        self._leaving: set[Session] = set()
        # Number of `close` calls: a `connect` in progress compares it.
        self._closings = 0

    @property
    def is_open(self) -> bool:
        """Whether there is a session that can send."""
        return self.session is not None and self.session.is_open

    @property
    def has_session(self) -> bool:
        """Whether there is a session, which may have ended."""
        return self.session is not None

    @property
    def is_unused(self) -> bool:
        """Whether there is no session, and none is being opened."""
        return self.session is None and self._opening is None and not self._is_connecting

    def use_threads(self, not_connected: str) -> NotificationBudget:
        """Use the text for calls without a session; return the budget of callbacks."""
        self.not_connected = not_connected
        return self.budget

    def current(self) -> Session:
        """Return the current session.

        Raises:
            TrunklineError: the client is not connected.
        """
        if self.session is None:
            raise TrunklineError(self.not_connected)
        return self.session

    async def connect(self) -> None:
        """Open a session; see `Client.connect`."""
        if self._is_connecting or self._opening is not None or self.is_open:
            raise TrunklineError("this client is already connected or connecting")
        self._is_connecting = True
        closings = self._closings
        try:
            lost, self.session = self.session, None
            if lost is not None:
                await asyncio.wait([self._leave(lost)])
            if closings != self._closings:
                raise ConnectionLost(CLOSED)
            self.session = await self._open()
        finally:
            self._is_connecting = False

    async def close(self) -> None:
        """Close all sessions; pending requests end with `ConnectionLost`."""
        self._closings += 1
        session, self.session = self.session, None
        self._leaving.update(each for each in (session, self._opening) if each is not None)
        ending = [self._leave(each) for each in list(self._leaving)]
        if ending:
            # Cancelling this wait does not cancel the closing tasks.
            await asyncio.wait(ending)
        self._renewal_lock = None  # bound to this event loop; the next may be another

    async def renew(self, session: Session) -> Session:
        """Return a session that can send, in place of one that cannot."""
        if self._renewal_lock is None:
            self._renewal_lock = asyncio.Lock()
        async with self._renewal_lock:
            current = self.session
            if current is not None and current is not session:
                return current  # another task renewed it first
            if current is None:
                raise ConnectionLost(CLOSED)
            if not self._target.is_reusable:
                raise TransportError(
                    "the ids of this connection are used up, and a transport connects once: "
                    "give the client an address to connect to again"
                )
            self.session = new = await self._open()
            # Before anything is awaited that may be cancelled.
            self._leaving.add(session)
            try:
                await self.on_renewed(session, new)
            finally:
                session.when_idle(lambda: self._leave(session))
        return new

    def _leave(self, session: Session) -> asyncio.Task[None]:
        """Start to close a session, and keep it in `_leaving` until it has closed."""
        self._leaving.add(session)
        ending = session.end()
        ending.add_done_callback(lambda _: self._leaving.discard(session))
        return ending

    async def _open(self) -> Session:
        """Return a new session with a negotiated revision.

        A server that is about to be replaced may accept a connection and close it. No request was
        sent by then, so one more attempt is made.
        """
        try:
            return await self._open_once()
        except TransportError as error:
            if not isinstance(error, _ClosedBeforeNegotiation):
                raise
        return await self._open_once()

    async def _open_once(self) -> Session:
        options = self.options
        transport = self._target.address.transport(self.policy)
        server = name_of(self._target.address)
        server_log = RateLimitedLog()
        callbacks = NotificationCallbacks(
            self.listeners, server_log, self.cache, self.on_tools_changed, self.budget
        )
        if transport.name == "http":
            self._use_http(transport)
        if options.raise_exceptions:
            _raise_exceptions(transport)
        session = self._opening = Session(
            transport,
            self.policy,
            options,
            handlers=ClientHandlers(self._handlers, lambda: self.threads),
            callbacks=callbacks,
            new_router=lambda session: SubscriptionRouter(session, callbacks, server_log),
            server_log=server_log,
            validator=self._validator(transport.name, server_log),
            is_outlived=self._target.is_reusable and outlives(self._target.address),
            server=server,
        )
        if (on_event := options.on_event) is not None:
            # As a callback of a notification: what it raises is logged, and it may be async.
            session.on_event = lambda kind, text: callbacks.call(
                "on_event", on_event, text.encode(), kind, text
            )
            if hasattr(transport, "on_event"):
                transport.on_event = session.on_event
        try:
            async with asyncio.timeout(options.connect_timeout) as limit:
                session.on_authorizing = _pausing(limit, options.max_timeout)
                try:
                    await self._begin(session)
                finally:
                    # The timeout ends first, and cannot be changed after that.
                    session.on_authorizing = ignore
        except BaseException as error:  # cancellation too: nothing may be left open
            await asyncio.wait([self._leave(session)])
            if isinstance(error, TimeoutError) and limit.expired():
                reason = f"no connection within {options.connect_timeout:g} s"
                raise RequestTimeout(reason, server=server) from None
            if isinstance(error, ConnectionLost) and error.reason != CLOSED:
                kind = _ClosedBeforeNegotiation if session.was_turned_away else TransportError
                reason = f"{server}: {error.reason}" if server else error.reason
                lost = kind(reason, exit_status=error.exit_status, stderr=error.stderr)
                raise lost from error.__cause__
            raise
        finally:
            self._opening = None
        return session

    def _use_http(self, transport: Any) -> None:
        # Imported here: many clients run a command.
        from ..requests.tool_headers import ToolHeaders

        if self.tool_headers is None:
            self.tool_headers = ToolHeaders()
        self.tool_headers.attach(transport)

    @cached_property
    def threads(self) -> ThreadPool:
        """The threads of synchronous handlers, created when the first is needed."""
        from ...concurrency.thread_pool import ThreadPool

        return ThreadPool(MAX_HANDLERS, keep_idle=False, name="trunkline-asked")

    def _validator(self, transport: str, server_log: RateLimitedLog) -> MessageValidator | None:
        if self.options.validate == "off":
            return None
        # Imported here, as above: for those who write servers.
        from ..session.validation import MessageValidator

        return MessageValidator(transport, server_log, raises=self.options.validate == "raise")

    async def _begin(self, session: Session) -> None:
        await session.transport.connect()
        discovered = await self._negotiate(session)
        self.on_tools_changed()
        if self.cache is not None:
            self.cache.clear()
            self._cache_discovered(self.cache, discovered)
        if self.log_level is not None:
            await self._set_log_level(session, self.log_level)
        elif self.default_log_level is not None and session.is_per_request:
            session.log_at(self.default_log_level)
        await self.on_open(session)
        # The session may have ended in the meantime, and only a request would report it.
        session.check_open()

    async def _negotiate(self, session: Session) -> bytes | None:
        """Negotiate a revision; return the result of `server/discover`, if there was one."""
        address = self._target.address
        # A pinned revision is what the client wanted, and a client that validates takes an
        # invalid answer for none: neither describes the server.
        is_telling = self.hello.pinned is None and self.options.validate != "raise"
        try:
            discovered = await negotiate(session, self.hello, remembered_era(address))
        except BaseException:  # a timeout too: what was remembered did not work
            if is_telling:
                forget_era(address)
            raise
        if session.negotiated is None:
            raise TrunklineError("no revision was negotiated")
        if is_telling:
            remember_era(address, session.negotiated.era)
        return discovered

    def _cache_discovered(self, cache: Cache, discovered: bytes | None) -> None:
        if discovered is None:
            return
        try:
            result: DiscoverResult = read(discovered, DiscoverResult, "server/discover", LATEST)
        except TrunklineError:
            return  # enough to connect; `discover()` reports what is wrong with it
        if result.ttl_ms:
            until = fresh_until(asyncio.get_running_loop().time(), result.ttl_ms)
            cache.keep(("server/discover", None), discovered, until, cache.changes)

    async def _set_log_level(self, session: Session, level: LoggingLevel) -> None:
        negotiated = session.negotiated
        if session.is_per_request:
            session.log_at(level)
        elif negotiated is not None and negotiated.capabilities.logging is not None:
            await session.ask(OutgoingRequest("logging/setLevel", None, {"level": level}))


def _pausing(limit: asyncio.Timeout, longest: float) -> Callable[[bool], None]:
    """Return a function that pauses a timeout, for `longest` at most, and continues it."""
    now, left = asyncio.get_running_loop().time, 0.0

    def pause(is_paused: bool) -> None:
        nonlocal left
        end = limit.when()
        if limit.expired() or end is None:
            return
        if is_paused:
            left = end - now()
            limit.reschedule(now() + longest)
        else:
            limit.reschedule(now() + left)

    return pause


def _raise_exceptions(transport: Any) -> None:
    """Let requests fail with what the handlers of a server in this process raise."""
    if not hasattr(transport, "raise_exceptions"):
        raise ValueError("raise_exceptions=True is for a server in this process: Client(app)")
    transport.raise_exceptions()

"""A client: what it is pointed at, what it says of itself, and its connection.

    async with Client(["python", "server.py"]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo"})

A client has one connection at a time. What is asked goes by `verbs`, what one connection does
by `session`, how it begins by `opening`; here is what holds them together.

The rules that live here, and only here:

* Connecting is bounded in time, and leaves nothing behind when it fails.
* `close` may be called by any task, twice, during a call or while connecting. One that is
  cancelled has closed all the same, and the next waits for what is left.
* Ids that are used up are no concern of a caller: a new connection takes over, with the log
  level and the subscriptions of the old, which ends when its last answer has come. So it is
  where a connection has ended and the server outlives it. What was under way is not repeated.
"""

from __future__ import annotations

import asyncio
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, get_args

from msgspec import UNSET

from .. import __version__
from ..errors import ConnectionLost, PeerError, RequestTimeout, TransportError, TrunklineError
from ..jsonrpc.policy import Policy
from ..mcp.types import (
    DiscoverResult,
    Implementation,
    InitializeResult,
    LoggingLevel,
    ServerCapabilities,
)
from ..redaction import show
from ..spec.revisions import LATEST, REVISIONS
from .connect.capabilities import capabilities, extended
from .connect.negotiation import ClientHello, agree
from .connect.targets import Given, forget, outlives, remember, remembered, target_of
from .diagnostics import RateLimitedLog, log
from .options import LEVELS, Validate, check_choice, check_count, check_seconds
from .requests.cache import Cache, fresh_until
from .requests.decode import INPUT_REQUIRED, read
from .server_requests.handlers import (
    AT_ONCE,
    ClientHandlers,
    HandlerFunctions,
    OnElicit,
    OnElicitUrl,
    OnSample,
    Roots,
    as_root,
)
from .session import CLOSED, Era, NegotiatedSession, OnProgress, OutgoingRequest, Session
from .subscriptions.notifications import (
    NotificationCallbacks,
    NotificationListeners,
    OnListChanged,
    OnLog,
    OnNotification,
    OnResourceUpdated,
)
from .tasks.methods import TASK, TaskVerbs

if TYPE_CHECKING:
    from ..concurrency.thread_pool import ThreadPool
    from .extensions import Extensions
    from .validation import MessageValidator

__all__ = ["Client"]


class _TurnedAway(TransportError):
    """A server that outlives its connections ended one before anything was agreed."""


class Client(TaskVerbs):
    """A connection to one MCP server, in whichever revision the two have in common.

    `target` is an address such as `Stdio("server.py")` or a `Server`, a command as a list of
    strings, or a transport. `revision` pins one revision; without it the newest that both
    sides speak is found out.

    A call may take `timeout` seconds, again from each report of progress, up to
    `max_timeout`; connecting may take `connect_timeout`. `validate` has what the server sends
    judged: "warn" logs what is wrong, "raise" refuses it. `strict` refuses to send what the
    server declared no capability for.

    What the server asks is answered by `roots`, `on_sample`, `on_elicit` and `on_elicit_url`, and
    only what is given here is declared; roots are `file://` URIs. In 2026-07-28 a call during
    which it asks more than `max_rounds` times is given up; requests of the handshake revisions
    are not counted. `sampling_tools` says that `on_sample` takes tools. `extensions` are declared:
    settings by id, or a list of `ClientExtension`; `tasks` declares that of tasks. What the server
    tells goes to `on_log`, `on_progress`, `on_list_changed`, `on_resource_updated`, and all else
    to `on_notification`. All may be async.

    Raises:
        ValueError: an argument is out of range; the text says what it may be.
        TypeError: `target` is nothing that one can connect to.
    """

    def __init__(
        self,
        target: Given,
        *,
        revision: str | None = None,
        name: str = "trunkline",
        version: str = __version__,
        title: str | None = None,
        timeout: float = 60.0,
        max_timeout: float = 600.0,
        connect_timeout: float = 30.0,
        probe_timeout: float = 3.0,
        validate: Validate = "off",
        strict: bool = False,
        cache: bool = True,
        policy: Policy | None = None,
        roots: Roots | None = None,
        on_sample: OnSample | None = None,
        on_elicit: OnElicit | None = None,
        on_elicit_url: OnElicitUrl | None = None,
        sampling_tools: bool = False,
        max_rounds: int = 16,
        on_log: OnLog | None = None,
        on_progress: OnProgress | None = None,
        on_notification: OnNotification | None = None,
        on_list_changed: OnListChanged | None = None,
        on_resource_updated: OnResourceUpdated | None = None,
        experimental: dict[str, dict[str, Any]] | None = None,
        extensions: Extensions | None = None,
        tasks: bool = True,
        logging_level: LoggingLevel | None = None,
    ) -> None:
        check_choice("revision", revision, (None, *REVISIONS))
        check_choice("validate", validate, get_args(Validate))
        check_choice("logging_level", logging_level, (None, *LEVELS))
        check_count("max_rounds", max_rounds)
        if sampling_tools and on_sample is None:
            raise ValueError("sampling_tools is about on_sample: give both, or neither")
        for what, seconds in (
            ("timeout", timeout),
            ("max_timeout", max_timeout),
            ("connect_timeout", connect_timeout),
            ("probe_timeout", probe_timeout),
        ):
            check_seconds(what, seconds)
        self._target = target_of(target)
        settings, resolvers = extended(extensions, tasks=tasks)
        self._handlers = HandlerFunctions(
            _kept(roots), on_sample, on_elicit, on_elicit_url, sampling_tools
        )
        self._listeners = NotificationListeners(
            on_log, on_notification, on_list_changed, on_resource_updated
        )
        self._hello = ClientHello(
            revision,
            Implementation(name, version, title=UNSET if title is None else title),
            partial(capabilities, self._handlers, experimental, settings),
            probe_timeout,
        )
        self._policy = (policy or Policy()).replace(revision=revision or LATEST)
        self._timeout = timeout
        self._max_timeout = max_timeout
        self._connect_timeout = connect_timeout
        self._validate: Validate = validate
        self._strict = strict
        self._on_progress = on_progress
        self._is_plain = on_progress is None and not strict
        self._level = logging_level
        self._subscribed = {}
        self._submitting = set()
        self._max_rounds = max_rounds
        self._resolvers = {INPUT_REQUIRED: self._resolve_input}
        self._takes_tasks = tasks
        self._task_support = None
        self._tool_changes = 0
        if tasks:
            self._resolvers[TASK] = self._resolve_task
        self._resolvers.update(resolvers)
        self._cache = Cache() if cache else None
        self._session: Session | None = None
        self._is_connecting = False
        self._opening: Session | None = None
        self._renewing: asyncio.Lock | None = None
        # Sessions that wait for their last answers, or for their end.
        self._leaving: set[Session] = set()
        # How many times this client was closed, for whoever was about to connect it.
        self._closings = 0

    def __repr__(self) -> str:
        state = f"{self.revision}" if self.is_connected else "not connected"
        return f"<Client {show(self._hello.info.name)}, {state}>"

    # -- connecting --------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connect, and agree on a revision.

        A client whose connection was lost or closed can connect again, if it has an address.

        Raises:
            TransportError: there is nothing to connect to, or it went away at once.
            RequestTimeout: it took too long.
            RemoteProtocolError: there is no revision that both sides speak.
            PeerError: the server refused.
        """
        if self._is_connecting or self._opening is not None or self.is_connected:
            raise TrunklineError("this client is connected already, or about to be")
        self._is_connecting = True
        closings = self._closings
        try:
            lost, self._session = self._session, None
            if lost is not None:
                await asyncio.wait([self._leave(lost)])
            if closings != self._closings:
                raise ConnectionLost(CLOSED)
            self._session = await self._open()
        finally:
            self._is_connecting = False

    async def close(self) -> None:
        """End the connection; what is under way ends with `ConnectionLost`."""
        self._closings += 1
        self._subscribed.clear()
        session, self._session = self._session, None
        self._leaving.update(each for each in (session, self._opening) if each is not None)
        ending = [self._leave(each) for each in list(self._leaving)]
        if ending:
            # Whoever waits here and is cancelled leaves them at it.
            await asyncio.wait(ending)
        self._renewing = None  # it belongs to this event loop, and the next may be another

    def _leave(self, session: Session) -> asyncio.Task[None]:
        """End a session, and know of it until it has ended; return what ends it."""
        self._leaving.add(session)
        ending = session.end()
        ending.add_done_callback(lambda _: self._leaving.discard(session))
        return ending

    async def _open(self) -> Session:
        """Return a new session, agreed on and ready.

        A server that is about to be replaced may take a connection and end it. Nothing was asked
        by then, so it is tried once more.
        """
        try:
            return await self._open_once()
        except TransportError as error:
            if not isinstance(error, _TurnedAway):
                raise
        return await self._open_once()

    async def _open_once(self) -> Session:
        transport = self._target.address.transport(self._policy)
        server_log = RateLimitedLog()
        session = self._opening = Session(
            transport,
            self._policy,
            timeout=self._timeout,
            max_timeout=self._max_timeout,
            answering=ClientHandlers(self._handlers, lambda: self._threads),
            callbacks=NotificationCallbacks(
                self._listeners, server_log, self._cache, self._forget_tools
            ),
            server_log=server_log,
            on_progress=self._on_progress,
            checks=self._judging(transport.name, server_log),
            is_outlived=self._target.lasts and outlives(self._target.address),
        )
        try:
            async with asyncio.timeout(self._connect_timeout) as limit:
                await self._begin(session)
        except BaseException as error:  # a cancelled task too: nothing may be left open
            await asyncio.wait([self._leave(session)])
            if isinstance(error, TimeoutError) and limit.expired():
                reason = f"no connection within {self._connect_timeout:g} s"
                raise RequestTimeout(reason) from None
            if isinstance(error, ConnectionLost) and error.reason != CLOSED:
                kind = _TurnedAway if session.was_turned_away else TransportError
                raise kind(
                    error.reason, exit_status=error.exit_status, stderr=error.stderr
                ) from None
            raise
        finally:
            self._opening = None
        return session

    @cached_property
    def _threads(self) -> ThreadPool:
        """The threads of handlers that are no coroutines, made when the first needs one."""
        from ..concurrency.thread_pool import ThreadPool

        return ThreadPool(AT_ONCE, keep_idle=False, name="trunkline-asked")

    def _judging(self, transport: str, server_log: RateLimitedLog) -> MessageValidator | None:
        """Return what judges a conversation, or None where nothing does."""
        if self._validate == "off":
            return None
        # Imported here, as above: it is for those who write servers.
        from .validation import MessageValidator

        return MessageValidator(transport, server_log, raises=self._validate == "raise")

    async def _begin(self, session: Session) -> None:
        await session.transport.connect()
        negotiated, discovered = await self._agree(session)
        self._forget_tools()
        if self._cache is not None:
            self._cache.clear()
            self._keep(discovered)
        if self._level is not None:
            await self._begin_logging(session, negotiated, self._level)
        if self._subscribed and "resources/subscribe" in session.methods:
            await self._subscribe_again(session)
        await self._begin_listening(session, self._hello.probe_timeout)
        # It may have ended in the same moment, and nobody is told of that but who asks.
        session.check_open()

    async def _agree(self, session: Session) -> tuple[NegotiatedSession, bytes | None]:
        """Open the conversation; return what was agreed, and discovered."""
        address, pinned = self._target.address, self._hello.pinned
        try:
            discovered = await agree(session, self._hello, remembered(address))
        except BaseException:  # out of time, too: what was known of the server led nowhere
            if pinned is None:
                forget(address)
            raise
        negotiated = session.negotiated
        if negotiated is None:
            raise TrunklineError("the opening came to no agreement")
        if pinned is None:
            # A pinned revision says what we wanted, not what the server is.
            remember(address, negotiated.era)
        return negotiated, discovered

    def _keep(self, discovered: bytes | None) -> None:
        """Keep what was discovered, if the server said for how long."""
        if discovered is None or self._cache is None:
            return
        try:
            result: DiscoverResult = read(discovered, DiscoverResult, "server/discover", LATEST)
        except TrunklineError:
            return  # it was good enough to connect; whoever asks for it is told what is wrong
        if result.ttl_ms:
            until = fresh_until(asyncio.get_running_loop().time(), result.ttl_ms)
            self._cache.keep(("server/discover", None), discovered, until, self._cache.changes)

    async def _begin_logging(
        self, session: Session, negotiated: NegotiatedSession, level: LoggingLevel
    ) -> None:
        if session.is_per_request:
            session.log_at(level)
        elif negotiated.capabilities.logging is not UNSET:
            await session.ask(OutgoingRequest("logging/setLevel", None, {"level": level}))

    async def _subscribe_again(self, session: Session) -> None:
        for uri in list(self._subscribed):
            try:
                await session.ask(OutgoingRequest("resources/subscribe", None, {"uri": uri}))
            except PeerError as error:
                # It is there no more, and no reason to have no connection.
                log.warning("a new connection could not subscribe to %s: %s", show(uri), error)
                self._subscribed.pop(uri, None)

    async def _renew(self, session: Session) -> Session:
        if self._renewing is None:
            self._renewing = asyncio.Lock()
        async with self._renewing:
            current = self._session
            if current is not None and current is not session:
                return current  # somebody else was here first
            if current is None:
                raise ConnectionLost(CLOSED)
            if not self._target.lasts:
                raise TransportError(
                    "the ids of this connection are used up, and a transport connects once: "
                    "give the client an address to connect to again"
                )
            self._session = new = await self._open()
            # Now, whatever becomes of who waits here.
            self._leaving.add(session)
            try:
                await self._hand_over(session, new)
            finally:
                session.when_idle(lambda: self._leave(session))
        return new

    # -- what was agreed ---------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether there is a server to ask."""
        return self._session is not None and self._session.is_open

    @property
    def revision(self) -> str:
        """The revision of MCP that is spoken, such as "2025-11-25"."""
        return self._connected().revision

    @property
    def era(self) -> Era:
        """Whether the connection began with a handshake, or each request stands for itself."""
        return self._agreed("era")  # type: ignore[no-any-return]  # a field of Agreement

    @property
    def server_info(self) -> Implementation | None:
        """Who the server says it is, for display; None where it did not say."""
        return self._agreed("server_info")  # type: ignore[no-any-return]  # as above

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """What the server declared; empty where it declared nothing."""
        return self._agreed("capabilities")  # type: ignore[no-any-return]  # as above

    @property
    def server_extensions(self) -> dict[str, dict[str, Any]]:
        """The extensions that the server advertises: their settings by id."""
        found = self.server_capabilities.extensions
        return {} if found is UNSET else found

    @property
    def instructions(self) -> str | None:
        """What the server wants a model to know of it."""
        return self._agreed("instructions")  # type: ignore[no-any-return]  # as above

    @property
    def initialize_result(self) -> InitializeResult | None:
        """The answer to `initialize`; None in the per-request era."""
        opening = self._agreed("opening")
        return opening if isinstance(opening, InitializeResult) else None

    def _agreed(self, what: str) -> Any:
        return getattr(self._connected().negotiated, what)


def _kept(roots: Roots | None) -> Roots | None:
    """Return roots that can be given more than once."""
    if roots is None or callable(roots):
        return roots
    if isinstance(roots, str):
        raise ValueError("roots are a list of file:// URIs, not one text")
    return [as_root(each) for each in roots]

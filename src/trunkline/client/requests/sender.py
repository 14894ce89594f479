"""Sends the requests of a client, completes their results, and caches and pages them.

The rules that live here, and only here:

* A request that was not sent because its session had ended, or had no ids left, is sent once more
  on a new session.
* A result is cached where the revision lets a server state a lifetime, and returned from the
  cache only while the session is open. A result that needed input from the client is never
  cached.                                     [MCP 2026-07-28, server/utilities/caching]
* The log level is a request in the handshake revisions, and part of every request after them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from ...errors import PeerError, TransportError, TrunklineError
from ...mcp.types import (
    ListToolsResult,
    LoggingLevel,
    PaginatedRequestParams,
    Result,
    SetLevelRequestParams,
)
from ...spec.error_kinds import ErrorKind
from ..session.decode import INPUT_REQUIRED, NotComplete, Resolver, complete, read
from ..session.diagnostics import report
from ..session.method_checks import check_sendable
from ..session.options import check_seconds
from ..session.request import OutgoingRequest
from ..session.session import NOT_SENT, Session
from .cache import fresh_until
from .call import CompletingWaiter, PendingCall, future_of, sent_as

if TYPE_CHECKING:
    from ..connect.connection import ClientConnection

__all__ = ["RequestSender", "StartCall"]

T = TypeVar("T")
R = TypeVar("R")

# Sends the request of a call on a session.
StartCall = Callable[[PendingCall[Any], OutgoingRequest, Session], None]


class RequestSender:
    """Sends requests on the current session of a connection."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        # By result type: completes a result that is not complete.
        self.resolvers: dict[str, Resolver] = {
            INPUT_REQUIRED: self._resolve_input,
            **connection.resolvers,
        }
        self._max_rounds = connection.options.max_rounds
        self._strict = connection.options.strict
        # References to background tasks: an event loop holds its tasks only weakly.
        self._background: set[asyncio.Task[Any]] = set()

    async def ask(self, request: OutgoingRequest) -> tuple[Raw, Session]:
        """Return the undecoded result, and the session it came by."""
        session = self.connection.session or self.connection.current()
        if self._strict or request.method not in session.methods:
            check_sendable(request.method, request.kind, session, strict=self._strict)
        return await self.ask_on(session, request)

    async def ask_on(self, session: Session, request: OutgoingRequest) -> tuple[Raw, Session]:
        """Send a request on `session`, or on the one that replaces it."""
        try:
            return await session.ask(request), session
        except NOT_SENT:
            session = await self.connection.renew(session)
        return await session.ask(request), session

    async def answer(self, request: OutgoingRequest, reader: Callable[[Raw, str], T]) -> T:
        """Return the result, completed if necessary and decoded by `reader`."""
        raw, session = await self.ask(request)
        try:
            return reader(raw, session.revision)
        except NotComplete:
            pass  # completed below, so that its errors do not have this one as context
        return reader(await self.resolve(session, request, raw), session.revision)

    async def do(
        self, method: str, kind: type[Struct], fields: dict[str, Any], timeout: float | None
    ) -> None:
        """Send a request whose result carries nothing."""
        await self.answer(
            OutgoingRequest(method, kind, fields, timeout),
            lambda raw, revision: read(raw, Result, method, revision),
        )

    async def set_log_level(self, level: LoggingLevel | None, timeout: float | None) -> None:
        """Request log messages from `level` on, of this session and those that replace it.

        Raises:
            ValueError: it is None, in a revision in which the log cannot be switched off.
        """
        session = self.connection.current()
        if session.is_per_request:
            session.log_at(level)
        elif level is None:
            raise ValueError(f"{session.revision} cannot switch the log off: name a level")
        else:
            await self.do("logging/setLevel", SetLevelRequestParams, {"level": level}, timeout)
        self.connection.log_level = level
        self.connection.default_log_level = None

    async def resolve(
        self,
        session: Session,
        request: OutgoingRequest,
        raw: Raw,
        resolvers: dict[str, Resolver] | None = None,
    ) -> Raw:
        """Return the complete result that follows from an incomplete one."""
        if session.is_leaving:
            session = await self.connection.renew(session)
        with session.held():
            return await complete(resolvers or self.resolvers, session, request, raw)

    async def _resolve_input(self, session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        # Imported here: most results are complete, and most servers request no input.
        from ..server_requests.input_required import InputRequiredResolver

        resolver = InputRequiredResolver(self.ask_on, self._max_rounds)
        return await resolver.resolve(session, request, raw)

    def seconds(self, timeout: float | None) -> float:
        """Return the timeout of one request, within `max_timeout`."""
        longest = self.connection.options.max_timeout
        if timeout is None:
            return min(self.connection.timeout, longest)
        check_seconds("timeout", timeout)
        return min(timeout, longest)

    def in_background(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        """Run a coroutine in a task, and hold the task until it ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    # -- calls that are awaited later --------------------------------------------------------

    def submit(
        self,
        request: OutgoingRequest,
        reader: Callable[[Any], T],
        on_success: Callable[[T], object] | None,
        on_error: Callable[[TrunklineError], object] | None,
        start: StartCall,
    ) -> PendingCall[T]:
        """Send a request; return its call, whose result `reader` decodes."""
        session = self.connection.current()
        check_sendable(request.method, request.kind, session, strict=self._strict)
        call = PendingCall(session, request.method, reader, on_success, on_error)
        try:
            start(call, request, session)
        except NOT_SENT:
            self.in_background(self._submit_renewed(call, request, session, start))
        return call

    def start(self, call: PendingCall[Any], request: OutgoingRequest, session: Session) -> None:
        """Send the request of a call; an incomplete result is completed in the background."""
        waiter: Any = future_of(call)
        if session.is_per_request:
            waiter = CompletingWaiter(
                call, lambda raw: self.in_background(self.resolve(session, request, raw))
            )
        sent_as(call, session.start(request, waiter), session)

    async def _submit_renewed(
        self,
        call: PendingCall[Any],
        request: OutgoingRequest,
        session: Session,
        start: StartCall,
    ) -> None:
        future = future_of(call)
        try:
            new = await self.connection.renew(session)
            if not future.done():
                start(call, request, new)
        except Exception as error:  # noqa: BLE001  # any error ends the call
            if not isinstance(error, TrunklineError):
                report(error, "connecting again")
                error = TransportError("no new connection: an unexpected error, see the log")
            if not future.done():
                future.set_exception(error)

    # -- cache and pages ---------------------------------------------------------------------

    async def cached(
        self,
        request: OutgoingRequest,
        result_type: type[Struct],
        fresh: bool,
        what: str | None = None,
    ) -> tuple[Any, int]:
        """Return a result and its size in bytes, from the cache while it is fresh.

        `what` is the cursor or URI of the request, and part of the cache key.
        """
        session, cache = self.connection.current(), self.connection.cache
        method, key = request.method, (request.method, what)
        now = asyncio.get_running_loop().time
        # A result may depend on the `_meta` of its request.
        if request.meta or not session.is_per_request or not session.is_open:
            cache = None
        kept = None if cache is None or fresh else cache.get(key, now())
        if kept is not None:
            return read(kept, result_type, method, session.revision), len(kept)
        changes = 0 if cache is None else cache.changes
        raw, session = await self.ask(request)
        try:
            result = read(raw, result_type, method, session.revision)
        except NotComplete:
            cache = None  # it depends on the input of this client
            result = None
        if result is None:
            raw = await self.resolve(session, request, raw)
            result = read(raw, result_type, method, session.revision)
        ttl = getattr(result, "ttl_ms", None)
        if cache is not None and type(ttl) is int and ttl > 0:
            cache.keep(key, bytes(raw), fresh_until(now(), ttl), changes)
        return result, memoryview(raw).nbytes

    async def page(
        self,
        method: str,
        result_type: type[Struct],
        cursor: str | None,
        fresh: bool,
        timeout: float | None,
    ) -> tuple[Any, int]:
        """Return one page of a list, and its size in bytes."""
        fields = {"cursor": UNSET if cursor is None else cursor}
        request = OutgoingRequest(method, PaginatedRequestParams, fields, timeout)
        page, size = await self.cached(request, result_type, fresh, cursor)
        if method == "tools/list" and self.connection.tool_headers is not None:
            session = self.connection.session
            annotates = session is not None and session.is_per_request
            usable = self.connection.tool_headers.usable(page.tools, annotates=annotates)
            page = replace(page, tools=usable)
        return page, size

    async def learnt_headers(self, error: PeerError) -> bool:
        """Read the tool list if a call lacked headers; return True if it may be sent again.

        [MCP 2026-07-28, basic/transports/streamable-http]
        """
        headers = self.connection.tool_headers
        if headers is None or error.kind != ErrorKind.HEADER_MISMATCH:
            return False
        await self.all_pages("tools/list", ListToolsResult, "tools", True, None)
        return True

    async def all_pages(
        self,
        method: str,
        result_type: type[Struct],
        member: str,
        fresh: bool,
        timeout: float | None,
    ) -> list[Any]:
        """Return the items of all pages of a list, `member` of each."""
        # Imported here: many clients know the names of their tools.
        from .pagination import Page, read_all

        if timeout is not None:
            check_seconds("timeout", timeout)
        usual, cache = self.connection.timeout, self.connection.cache
        bypass_cache = fresh

        async def get(cursor: str | None, left: float) -> Page:
            # Without a timeout of its own, a page has that of any request.
            seconds = None if timeout is None and left > usual else left
            page, size = await self.page(method, result_type, cursor, bypass_cache, seconds)
            return Page(getattr(page, member), page.next_cursor, size)

        def restart() -> None:
            # The list has changed since its first pages were cached.
            nonlocal bypass_cache
            bypass_cache = True
            if cache is not None:
                cache.drop(method)

        longest = self.connection.options.max_timeout
        seconds = longest if timeout is None else min(timeout, longest)
        return await read_all(method, get, restart, seconds, asyncio.get_running_loop().time)

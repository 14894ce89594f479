"""What can be asked of a server, one method each.

A verb builds the params, asks, and reads the result into its type. Whether the revision has
the method is decided before anything is sent; whether the server does, by the server.

The rules that live here, and only here:

* The log level is a request in the handshake era, and part of every request after it.
* A result is kept where the revision lets a server say for how long, and given again only
  while there is a server: a client that has lost its own says so. One that came of questions
  and answers is never kept.                 [MCP 2026-07-28, server/utilities/caching]
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from msgspec import UNSET, Raw, Struct

from ...errors import PeerError, TransportError, TrunklineError
from ...mcp.shaping import narrow
from ...mcp.types import (
    CallToolRequestParams,
    CompleteRequestParams,
    CompleteRequestParamsArgument,
    CompleteRequestParamsContext,
    CompleteResult,
    CompleteResultCompletion,
    DiscoverResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    LoggingLevel,
    PaginatedRequestParams,
    Prompt,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    Result,
    SetLevelRequestParams,
    Tool,
)
from ..diagnostics import report
from ..options import LEVELS, check_choice, check_seconds
from ..session import NOT_SENT, OnProgress, OutgoingRequest, Session
from .cache import Cache, fresh_until
from .call import CompletingWaiter, PendingCall
from .decode import NotComplete, read, read_own
from .method_checks import check_method, check_sendable
from .submitting import Submitting, tool_call
from .tool_result import ToolResult, tool_result

if TYPE_CHECKING:
    from .batch import CallBatch
    from .resolving import Resolver

__all__ = ["Verbs"]

T = TypeVar("T")
R = TypeVar("R")


class _Keepable(NamedTuple):
    """A question whose answer may be used again: the answer's type, and what it is kept by."""

    request: OutgoingRequest
    result: type[Struct]
    what: str | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """What the answer is kept by."""
        return self.request.method, self.what


class Verbs(Submitting):
    """The requests and notifications of a client."""

    _cache: Cache | None
    # Whether calls are like any other: nobody listens to the progress of all, nothing is strict.
    _is_plain: bool
    _level: LoggingLevel | None
    _max_rounds: int
    _max_timeout: float
    # By type of result, who completes what is not complete.
    _resolvers: dict[str, Resolver]
    _session: Session | None
    _strict: bool
    # What the list of tools says of each and tasks, by name; None where it is not known, or where
    # that makes no difference. It is as long as the longest list that is read.
    _task_support: dict[str, str] | None
    # How often it had to be forgotten.
    _tool_changes: int
    # In the order they were subscribed to.
    _subscribed: dict[str, None]
    # What sends calls once there is a new connection, and what completes their results: a loop
    # holds its tasks only weakly.
    _submitting: set[asyncio.Task[Any]]
    _timeout: float

    # -- tools -------------------------------------------------------------------------------

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: type[T],
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult[T]: ...

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult[Any]: ...

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult[Any]: ...

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult[Any]:
        """Call a tool; `result.value` is what it returned, as `result_type`.

        `on_progress(progress, total, message)` is called as the server reports. `timeout` is
        in seconds, and begins again with each report.

        Raises:
            PeerError: the server could not serve the call; a tool that ran and failed is a
                result whose `is_error` is true.
            RequestAborted: no answer came: time ran out, the connection is gone, or something was
                asked first that could not be answered.
            RemoteProtocolError: the answer is no result of a tool.
        """
        given = UNSET if arguments is None else arguments
        known = self._task_support
        must_be_task = known is not None and known.get(name) == "required"
        is_plain = self._is_plain and timeout is None and on_progress is None and meta is None
        if is_plain and not must_be_task:
            # What most calls are: nothing is made for them that they do not need.
            session = self._session or self._connected()
            params = CallToolRequestParams(name, session.meta, given)
            try:
                pending = session.send("tools/call", params)
                raw = await pending.waiter
            except NOT_SENT:
                pass  # asked again below, by a new connection
            except PeerError as error:
                must_be_task = await self._must_be_task(error, name, None)
                if not must_be_task:
                    raise
            except asyncio.CancelledError:
                session.abandon(pending)
                raise
            else:
                try:
                    return tool_result(raw, result_type, session.revision)
                except NotComplete:
                    request = tool_call(name, given)
                raw = await self._resolve(session, request, raw)
                return tool_result(raw, result_type, session.revision)
        request = tool_call(name, given, timeout, on_progress, meta)
        if not must_be_task:
            try:
                return await self._answer(
                    request, lambda raw, revision: tool_result(raw, result_type, revision)
                )
            except PeerError as error:
                if not await self._must_be_task(error, name, timeout):
                    raise
        raw, session = await self._call_as_task(request)
        return tool_result(raw, result_type, session.revision)

    async def list_tools(self, *, fresh: bool = False, timeout: float | None = None) -> list[Tool]:
        """Return all tools, however many pages they take; `fresh` asks the server anew."""
        changes = self._tool_changes
        found = await self._every("tools/list", ListToolsResult, "tools", fresh, timeout)
        if changes == self._tool_changes:
            self._learn_tools(found)
        return found

    async def tools_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListToolsResult:
        """Return one page of the tools, the first unless its cursor is given."""
        return await self._page("tools/list", ListToolsResult, cursor, fresh, timeout)  # type: ignore[no-any-return]  # read as this type

    # -- resources ---------------------------------------------------------------------------

    async def list_resources(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[Resource]:
        """Return all resources, however many pages they take."""
        return await self._every("resources/list", ListResourcesResult, "resources", fresh, timeout)

    async def resources_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListResourcesResult:
        """Return one page of the resources, the first unless its cursor is given."""
        return await self._page("resources/list", ListResourcesResult, cursor, fresh, timeout)  # type: ignore[no-any-return]  # as above

    async def list_resource_templates(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[ResourceTemplate]:
        """Return all templates of resources, however many pages they take."""
        method, kind = "resources/templates/list", ListResourceTemplatesResult
        return await self._every(method, kind, "resource_templates", fresh, timeout)

    async def resource_templates_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListResourceTemplatesResult:
        """Return one page of the templates, the first unless its cursor is given."""
        method, kind = "resources/templates/list", ListResourceTemplatesResult
        return await self._page(method, kind, cursor, fresh, timeout)  # type: ignore[no-any-return]  # as above

    async def read_resource(
        self,
        uri: str,
        *,
        fresh: bool = False,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ReadResourceResult:
        """Return what a resource holds: texts, and bytes as base64."""
        fields = {"uri": uri}
        request = OutgoingRequest(
            "resources/read", ReadResourceRequestParams, fields, timeout, on_progress, meta
        )
        result, _ = await self._kept(_Keepable(request, ReadResourceResult, uri), fresh)
        return result  # type: ignore[no-any-return]  # as above

    # -- prompts and completion --------------------------------------------------------------

    async def list_prompts(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[Prompt]:
        """Return all prompts, however many pages they take."""
        return await self._every("prompts/list", ListPromptsResult, "prompts", fresh, timeout)

    async def prompts_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListPromptsResult:
        """Return one page of the prompts, the first unless its cursor is given."""
        return await self._page("prompts/list", ListPromptsResult, cursor, fresh, timeout)  # type: ignore[no-any-return]  # as above

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> GetPromptResult:
        """Return the messages of a prompt, filled in."""
        method = "prompts/get"
        fields = {"name": name, "arguments": UNSET if arguments is None else arguments}
        request = OutgoingRequest(
            method, GetPromptRequestParams, fields, timeout, on_progress, meta
        )
        return await self._answer(
            request, lambda raw, revision: read(raw, GetPromptResult, method, revision)
        )

    async def complete(
        self,
        argument: str,
        value: str,
        *,
        prompt: str | None = None,
        resource: str | None = None,
        context: dict[str, str] | None = None,
        timeout: float | None = None,
    ) -> CompleteResultCompletion:
        """Return what an argument of a prompt, or of a template of resources, may become.

        `context` is what other arguments are already; revisions that do not know it are not
        sent it.
        """
        if (prompt is None) == (resource is None):
            raise TypeError("complete() is about a prompt or a resource: name one of them")
        session = self._connected()
        given: Any = UNSET if context is None else CompleteRequestParamsContext(context)
        params: Any = narrow(
            CompleteRequestParams(
                CompleteRequestParamsArgument(argument, value),
                ResourceTemplateReference(resource or "")
                if prompt is None
                else PromptReference(prompt),
                context=given,
            ),
            session.revision,
        )
        fields = {"argument": params.argument, "ref": params.ref, "context": params.context}
        method = "completion/complete"
        request = OutgoingRequest(method, CompleteRequestParams, fields, timeout)
        result: CompleteResult = await self._answer(
            request, lambda raw, revision: read(raw, CompleteResult, method, revision)
        )
        return result.completion

    # -- the connection ----------------------------------------------------------------------

    async def ping(self, *, timeout: float | None = None) -> float:
        """Ask whether the server is there; return how many seconds it took to say so."""
        now = asyncio.get_running_loop().time
        before = now()
        await self._do("ping", RequestParams, {}, timeout)
        return now() - before

    async def discover(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> DiscoverResult:
        """Return which revisions and capabilities a server has."""
        request = OutgoingRequest("server/discover", RequestParams, {}, timeout)
        result, _ = await self._kept(_Keepable(request, DiscoverResult), fresh)
        return result  # type: ignore[no-any-return]  # as above

    async def set_log_level(
        self, level: LoggingLevel | None, *, timeout: float | None = None
    ) -> None:
        """Ask for the log of the server from `level` on, by `on_log`; None asks for none.

        Raises:
            ValueError: there is no such level; or it is None, and the server is one of the
                handshake, which has no way of being asked to be silent.
        """
        check_choice("level", level, (None, *LEVELS))
        session = self._connected()
        if session.is_per_request:
            session.log_at(level)
        elif level is None:
            raise ValueError(f"{session.revision} has no way to switch the log off: name a level")
        else:
            await self._do("logging/setLevel", SetLevelRequestParams, {"level": level}, timeout)
        self._level = level

    def notify_roots_changed(self) -> None:
        """Tell the server that the roots are not what they were."""
        self.notify("notifications/roots/list_changed")

    # -- anything else -----------------------------------------------------------------------

    @overload
    async def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        result_type: type[T],
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> T: ...

    @overload
    async def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        result_type: None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]: ...

    @overload
    async def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        result_type: Any,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any: ...

    async def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Send any request; its result is a dict, or a value of `result_type`.

        A method that another revision has is refused; one that none has is sent.
        """
        check_method(method, self._connected().revision, "request")
        request = OutgoingRequest(method, None, dict(params or {}), timeout, on_progress)
        kind = result_type or dict[str, Any]
        return await self._answer(
            request, lambda raw, revision: read_own(raw, kind, method, revision)
        )

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send any notification, without waiting."""
        session = self._connected()
        check_method(method, session.revision, "notification")
        session.notify(method, params)

    def batch(self) -> CallBatch:
        """Return a batch, where the revision sends such: `async with client.batch() as batch`."""
        # Imported here: one revision has them.
        from .batch import CallBatch

        return CallBatch(self._connected(), self._renew, strict=self._strict)

    # -- how it is asked ---------------------------------------------------------------------

    def _connected(self) -> Session:
        """Return the session; raise where there is none."""
        if self._session is None:
            raise TrunklineError(
                "this client is not connected: use `async with`, or await `connect()` first"
            )
        return self._session

    async def _renew(self, session: Session) -> Session:
        """Return a session that has ids left, in place of one that has none."""
        raise NotImplementedError

    def _learn_tools(self, tools: list[Tool]) -> None:
        """Learn from the list of all tools which of them may be tasks."""
        raise NotImplementedError

    async def _must_be_task(self, error: PeerError, name: str, timeout: float | None) -> bool:
        """Say whether a call was refused because its tool only runs as a task."""
        raise NotImplementedError

    async def _call_as_task(self, request: OutgoingRequest) -> tuple[Raw, Session]:
        """Return the result of a tool that only runs as a task, and how it came."""
        raise NotImplementedError

    async def _ask(self, request: OutgoingRequest) -> tuple[Raw, Session]:
        """Return an unread result, and the session it came by."""
        session = self._session or self._connected()
        if self._strict or request.method not in session.methods:
            check_sendable(request.method, request.kind, session, strict=self._strict)
        return await self._ask_by(session, request)

    async def _ask_by(self, session: Session, request: OutgoingRequest) -> tuple[Raw, Session]:
        try:
            return await session.ask(request), session
        except NOT_SENT:
            session = await self._renew(session)
        return await session.ask(request), session

    async def _answer(self, request: OutgoingRequest, reader: Callable[[Raw, str], T]) -> T:
        """Return a result, completed if need be, as what `reader` makes of it."""
        raw, session = await self._ask(request)
        try:
            return reader(raw, session.revision)
        except NotComplete:
            pass  # completed below, so that nothing hangs on what that may raise
        return reader(await self._resolve(session, request, raw), session.revision)

    async def _resolve(self, session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        """Return the complete result that comes of one that is not."""
        if session.is_leaving:
            session = await self._renew(session)
        # Imported here, as below: most results are complete, and most servers ask nothing.
        from .resolving import complete

        with session.held():
            return await complete(self._resolvers, session, request, raw)

    async def _resolve_input(self, session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        """Complete a result of the type `input_required`: answer, and ask again."""
        from ..server_requests.input_required import InputRequiredResolver

        return await InputRequiredResolver(self._ask_by, self._max_rounds).resolve(
            session, request, raw
        )

    async def _do(
        self, method: str, kind: type[Struct], fields: dict[str, Any], timeout: float | None
    ) -> None:
        await self._answer(
            OutgoingRequest(method, kind, fields, timeout),
            lambda raw, revision: read(raw, Result, method, revision),
        )

    def _spoken(self) -> str:
        return self._connected().revision

    def _submit(
        self,
        request: OutgoingRequest,
        reader: Callable[[Any], T],
        on_success: Callable[[T], object] | None,
        on_error: Callable[[TrunklineError], object] | None,
    ) -> PendingCall[T]:
        session = self._connected()
        check_sendable(request.method, request.kind, session, strict=self._strict)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = PendingCall(session, request.method, future, reader, on_success, on_error)
        try:
            self._start(call, request, session, future)
        except NOT_SENT:
            self._keep_task(self._submit_later(request, session, future, call))
        return call

    def _start(
        self,
        call: PendingCall[Any],
        request: OutgoingRequest,
        session: Session,
        future: asyncio.Future[Any],
    ) -> None:
        if not session.is_per_request:
            call.sent_as(session.start(request, future), session)
            return
        gate = CompletingWaiter(
            call, lambda raw: self._keep_task(self._resolve(session, request, raw))
        )
        call.sent_as(session.start(request, gate), session)

    async def _submit_later(
        self,
        request: OutgoingRequest,
        session: Session,
        future: asyncio.Future[Any],
        call: PendingCall[Any],
    ) -> None:
        """Send a call by a new connection, as soon as there is one."""
        try:
            new = await self._renew(session)
            if not future.done():
                self._start(call, request, new, future)
        except Exception as error:  # noqa: BLE001  # whatever it is, the call waits for it
            if not isinstance(error, TrunklineError):
                report(error, "connecting again")
                error = TransportError("there is no new connection, for an odd reason")
            if not future.done():
                future.set_exception(error)

    def _keep_task(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        task = asyncio.get_running_loop().create_task(work)
        self._submitting.add(task)
        task.add_done_callback(self._submitting.discard)
        return task

    async def _kept(self, keepable: _Keepable, fresh: bool) -> tuple[Any, int]:
        """Return a result that was kept, if it is still fresh, else ask for it; and its size."""
        request, kind, _ = keepable
        method, cache, session = request.method, self._cache, self._connected()
        now = asyncio.get_running_loop().time
        # What was asked with more in `_meta` may have been answered by it.
        if request.meta or not session.is_per_request or not session.is_open:
            cache = None
        kept = None if cache is None or fresh else cache.get(keepable.key, now())
        if kept is not None:
            return read(kept, kind, method, session.revision), len(kept)
        changes = 0 if cache is None else cache.changes
        raw, session = await self._ask(request)
        try:
            result = read(raw, kind, method, session.revision)
        except NotComplete:
            cache = None  # what comes of questions and answers is nobody else's
            result = None
        if result is None:
            raw = await self._resolve(session, request, raw)
            result = read(raw, kind, method, session.revision)
        ttl = getattr(result, "ttl_ms", UNSET)
        if cache is not None and type(ttl) is int and ttl > 0:
            cache.keep(keepable.key, bytes(raw), fresh_until(now(), ttl), changes)
        return result, memoryview(raw).nbytes

    async def _page(
        self,
        method: str,
        kind: type[Struct],
        cursor: str | None,
        fresh: bool,
        timeout: float | None,
    ) -> Any:
        return (await self._sized_page(method, kind, cursor, fresh, timeout))[0]

    async def _sized_page(
        self,
        method: str,
        kind: type[Struct],
        cursor: str | None,
        fresh: bool,
        timeout: float | None,
    ) -> tuple[Any, int]:
        fields = {"cursor": UNSET if cursor is None else cursor}
        request = OutgoingRequest(method, PaginatedRequestParams, fields, timeout)
        return await self._kept(_Keepable(request, kind, cursor), fresh)

    async def _every(
        self, method: str, kind: type[Struct], member: str, fresh: bool, timeout: float | None
    ) -> list[Any]:
        # Imported here: many clients know the names of their tools.
        from .pagination import Page, every

        if timeout is not None:
            check_seconds("timeout", timeout)
        asks_anew = fresh

        async def get(cursor: str | None, left: float) -> Page:
            # Without a time of its own a page may take what any request may.
            seconds = None if timeout is None and left > self._timeout else left
            page, size = await self._sized_page(method, kind, cursor, asks_anew, seconds)
            return Page(getattr(page, member), page.next_cursor, size)

        def restart() -> None:
            # The list is not what it was when its first pages were kept.
            nonlocal asks_anew
            asks_anew = True
            if self._cache is not None:
                self._cache.drop(method)

        seconds = self._max_timeout if timeout is None else min(timeout, self._max_timeout)
        return await every(method, get, restart, seconds, asyncio.get_running_loop().time)

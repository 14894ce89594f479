"""What can be asked of a server, one method each.

A verb builds the params, asks, and reads the result into its type. Whether the revision has
the method is decided before anything is sent; whether the server does, by the server.

The rules that live here, and only here:

* A list is followed to its end; a cursor may be empty, and one that comes a second time
  would never end.                       [MCP 2026-07-28, server/utilities/pagination]
* A cursor that the server no longer takes is of a list that has changed: start again.
* The log level is a request in the handshake era, and part of every request after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, overload

from msgspec import UNSET, Raw, Struct

from ..errors import IdsExhausted, PeerError, RemoteProtocolError, TrunklineError
from ..mcp.shaping import narrow
from ..mcp.types import (
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
    SubscribeRequestParams,
    Tool,
    UnsubscribeRequestParams,
)
from ..spec.kinds import ErrorKind
from .batches import CallBatch
from .caching import Cache
from .calls import Call
from .permitted import check_declared, check_method, refuse
from .reading import read
from .results import ToolResult, tool_result
from .session import OnProgress, Session

__all__ = ["Verbs"]

T = TypeVar("T")

# A server decides how many pages it has; no list that anybody reads has more.
_PAGES: Final = 10_000


class Verbs:
    """The requests and notifications of a client."""

    _cache: Cache | None
    _session: Session | None
    _strict: bool

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
            RequestEnded: no answer came: time ran out, or the connection is gone.
            RemoteProtocolError: the answer is no result of a tool.
        """
        fields = {"name": name, "arguments": UNSET if arguments is None else arguments}
        raw, session = await self._ask(
            "tools/call", CallToolRequestParams, fields, timeout, on_progress, meta
        )
        return tool_result(raw, result_type, session.revision)

    async def list_tools(self, *, fresh: bool = False, timeout: float | None = None) -> list[Tool]:
        """Return all tools, however many pages they take; `fresh` asks the server anew."""
        return await self._every("tools/list", ListToolsResult, "tools", fresh, timeout)

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
        return await self._kept(  # type: ignore[no-any-return]  # as above
            "resources/read",
            ReadResourceResult,
            uri,
            ReadResourceRequestParams,
            {"uri": uri},
            fresh,
            timeout,
            on_progress,
            meta,
        )

    async def subscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Ask to be told when a resource changes, by `on_resource_updated`."""
        await self._do("resources/subscribe", SubscribeRequestParams, {"uri": uri}, timeout)

    async def unsubscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Ask not to be told any more."""
        await self._do("resources/unsubscribe", UnsubscribeRequestParams, {"uri": uri}, timeout)

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
        raw, session = await self._ask(
            method, GetPromptRequestParams, fields, timeout, on_progress, meta
        )
        return read(raw, GetPromptResult, method, session.revision)  # type: ignore[no-any-return]  # as above

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
        raw, session = await self._ask(method, CompleteRequestParams, fields, timeout)
        result: CompleteResult = read(raw, CompleteResult, method, session.revision)
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
        return await self._kept(  # type: ignore[no-any-return]  # as above
            "server/discover", DiscoverResult, None, RequestParams, {}, fresh, timeout
        )

    async def set_log_level(self, level: LoggingLevel, *, timeout: float | None = None) -> None:
        """Ask for the log of the server from `level` on, by `on_log`."""
        session = self._connected()
        if session.agreement is not None and session.agreement.era == "per_request":
            session.log_at(level)
        else:
            await self._do("logging/setLevel", SetLevelRequestParams, {"level": level}, timeout)

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
        raw, session = await self._ask(method, None, params or {}, timeout, on_progress)
        return read(raw, result_type or dict[str, Any], method, session.revision)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send any notification, without waiting."""
        session = self._connected()
        check_method(method, session.revision, "notification")
        session.notify(method, params)

    def submit(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[dict[str, Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> Call[dict[str, Any]]:
        """Send any request now; return the call, to be awaited, asked or cancelled later."""
        revision = self._connected().revision
        check_method(method, revision, "request")
        return self._submit(
            method,
            None,
            params or {},
            lambda raw: read(raw, dict[str, Any], method, revision),
            timeout,
            on_progress,
            on_success,
            on_error,
        )

    @overload
    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: type[T],
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[T]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> Call[ToolResult[T]]: ...

    @overload
    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> Call[ToolResult[Any]]: ...

    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> Call[ToolResult[Any]]:
        """Call a tool now; return the call, to be awaited, asked or cancelled later."""
        revision = self._connected().revision
        return self._submit(
            "tools/call",
            CallToolRequestParams,
            {"name": name, "arguments": UNSET if arguments is None else arguments},
            lambda raw: tool_result(raw, result_type, revision),
            timeout,
            on_progress,
            on_success,
            on_error,
        )

    def batch(self) -> CallBatch:
        """Return a batch, where the revision sends such: `async with client.batch() as batch`."""
        return CallBatch(self._connected())

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

    async def _ask(
        self,
        method: str,
        kind: type[Struct] | None,
        fields: dict[str, Any],
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> tuple[Raw, Session]:
        """Return an unread result, and the session it came by."""
        session = self._session or self._connected()
        if self._strict or method not in session.methods:
            self._check(session, method, kind)
        try:
            return await session.ask(method, kind, fields, timeout, on_progress, meta), session
        except IdsExhausted:
            session = await self._renew(session)
        return await session.ask(method, kind, fields, timeout, on_progress, meta), session

    def _check(self, session: Session, method: str, kind: type[Struct] | None) -> None:
        if kind is not None and method not in session.methods:
            refuse(method, session.revision)
        if self._strict and session.agreement is not None:
            check_declared(method, session.revision, session.agreement.capabilities)

    async def _do(
        self, method: str, kind: type[Struct], fields: dict[str, Any], timeout: float | None
    ) -> None:
        raw, session = await self._ask(method, kind, fields, timeout)
        read(raw, Result, method, session.revision)

    def _submit(
        self,
        method: str,
        kind: type[Struct] | None,
        fields: dict[str, Any],
        reader: Callable[[Any], T],
        timeout: float | None,
        on_progress: OnProgress | None,
        on_success: Callable[[T], object] | None,
        on_error: Callable[[TrunklineError], object] | None,
    ) -> Call[T]:
        session = self._connected()
        self._check(session, method, kind)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        pending = session.start(method, kind, fields, timeout, on_progress, None, future)
        call = Call(session, method, future, reader, on_success, on_error)
        call.sent_as(pending)
        return call

    async def _kept(
        self,
        method: str,
        kind: type[Struct],
        what: str | None,
        params: type[Struct],
        fields: dict[str, Any],
        fresh: bool,
        timeout: float | None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return a result that was kept, if it is still fresh, else ask for it."""
        # What was asked with more in `_meta` may have been answered by it.
        cache = None if meta else self._cache
        key, now = (method, what), asyncio.get_running_loop().time
        revision = self._connected().revision
        if cache is None:
            raw, session = await self._ask(method, params, fields, timeout, on_progress, meta)
            return read(raw, kind, method, session.revision)
        kept = None if fresh else cache.get(key, now())
        if kept is not None:
            return read(kept, kind, method, revision)
        changes = cache.changes
        raw, session = await self._ask(method, params, fields, timeout, on_progress)
        result = read(raw, kind, method, session.revision)
        ttl = getattr(result, "ttl_ms", UNSET)
        if type(ttl) is int and ttl > 0:
            cache.keep(key, bytes(raw), now() + ttl / 1000, changes)
        return result

    async def _page(
        self,
        method: str,
        kind: type[Struct],
        cursor: str | None,
        fresh: bool,
        timeout: float | None,
    ) -> Any:
        fields = {"cursor": UNSET if cursor is None else cursor}
        return await self._kept(
            method, kind, cursor, PaginatedRequestParams, fields, fresh, timeout
        )

    async def _every(
        self, method: str, kind: type[Struct], member: str, fresh: bool, timeout: float | None
    ) -> list[Any]:
        found = await self._follow(method, kind, member, fresh, timeout)
        if found is None:
            # The list is not what it was when its first pages were kept.
            if self._cache is not None:
                self._cache.drop(method)
            found = await self._follow(method, kind, member, True, timeout)
        return found or []

    async def _follow(
        self, method: str, kind: type[Struct], member: str, fresh: bool, timeout: float | None
    ) -> list[Any] | None:
        """Return what all pages hold, or None where the server no longer takes a cursor."""
        found: list[Any] = []
        seen: set[str | None] = set()
        cursor: str | None = None
        while cursor not in seen and len(seen) < _PAGES:
            seen.add(cursor)
            try:
                page = await self._page(method, kind, cursor, fresh, timeout)
            except PeerError as error:
                if fresh or cursor is None or error.kind != ErrorKind.INVALID_PARAMS:
                    raise
                return None
            found += getattr(page, member)
            if page.next_cursor is UNSET:
                return found
            cursor = page.next_cursor
        raise RemoteProtocolError(
            "mcp.pagination.end",
            where="/nextCursor",
            got=cursor,
            expected="a list that ends: no cursor twice, and no more than 10000 pages",
        )

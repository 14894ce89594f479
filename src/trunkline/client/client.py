"""`Client`: connects to an MCP server and calls its methods.

    async with Client(["python", "server.py"]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo"})

A method builds the params, sends the request and decodes the result. Sessions are opened by
`connect.connection`, requests sent by `requests.sender`; subscriptions and tasks have
sub-packages of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar, overload

from msgspec import UNSET

from ..errors import PeerError, TrunklineError
from ..mcp.types import (
    CallToolRequestParams,
    CompleteResult,
    CompleteResultCompletion,
    DiscoverResult,
    GetPromptRequestParams,
    GetPromptResult,
    Implementation,
    InitializeResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    LoggingLevel,
    Prompt,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    Resource,
    ResourceTemplate,
    ServerCapabilities,
    Task,
    Tool,
)
from ..migration_hints import (
    CLIENT_ATTRIBUTES,
    MissingClassAttribute,
    missing_attribute,
    unknown_call_option,
)
from ..redaction import show
from .connect.connection import ClientConnection, ConnectionState
from .connect.targets import TargetLike, is_group, target_of
from .constructor import ClientConstructor
from .requests.call import PendingCall, SubmitMethods, completion_request, tool_call
from .requests.sender import RequestSender
from .requests.tool_result import ToolResult, read_answer, tool_result
from .session.decode import NotComplete, read, read_own
from .session.method_checks import check_method
from .session.options import LEVELS, check_choice, check_seconds
from .session.request import SENT, OnProgress, OutgoingRequest
from .session.session import NOT_SENT, Era
from .subscriptions.notifications import OnListRefreshed
from .subscriptions.stream import ClientSubscriptions, Subscription, topics
from .tasks.methods import TaskRequests

if TYPE_CHECKING:
    from .options import ClientOptions
    from .requests.batch import CallBatch
    from .tasks.task_call import TaskHandle

__all__ = ["Client", "connection_of", "state_of"]

T = TypeVar("T")


class Client(ClientConstructor, SubmitMethods):
    """A connection to one MCP server, in a revision that both sides support.

    `target` is a text such as `server.py`, `https://example.org/mcp` or `claude:github`, an
    address such as `Stdio("node", ["server.js"])`, a `Server`, a command as a list of strings, or
    a transport.

    A configuration, `{"mcpServers": {...}}` or the path of such a file, with several servers
    makes a client of all of them: tools and prompts have the name of their server in front,
    `servers` has the client of each, and `failures` the errors of those that cannot be used.
    """

    # All connections of the client; a group has several.
    _state: ConnectionState

    if not TYPE_CHECKING:  # type checkers take the signature of `__init__`

        def __new__(cls, target: Any = None, *_: Any, prefix: Any = "auto", **__: Any) -> Self:
            """Return a client of several servers for a configuration that has them."""
            least = 1 if prefix == "always" else 2
            if cls is Client and is_group(target, least=least):
                return object.__new__(_group_class())
            return object.__new__(cls)

        # A type checker would take every name for an attribute.
        def __getattr__(self, name: str) -> Any:
            raise missing_attribute("Client", name, CLIENT_ATTRIBUTES, self)

        from_config = MissingClassAttribute(CLIENT_ATTRIBUTES["from_config"][1])

    def _set_up(self, target: TargetLike, options: ClientOptions) -> None:
        options.check()
        if options.prefix == "always":
            raise ValueError("prefix='always' is for a configuration of servers, and for no other")
        found = target_of(target)
        # Of a configuration with one server.
        self._server_name = found.name
        self._state = self._connection = connection = ClientConnection(found, options)
        self._sender = RequestSender(connection)
        self._tasks = TaskRequests(self._sender)
        self._subscriptions = ClientSubscriptions(self._sender)
        connection.on_tools_changed = self._tasks.forget_tools
        connection.on_open = self._subscriptions.begin
        connection.on_renewed = self._subscriptions.move
        if options.on_list_refreshed is not None:
            self._refresh_lists(options.on_list_refreshed)
        # Whether a call without arguments of its own needs no `RequestWatch` and no checks.
        self._is_plain = options.on_progress is None and not options.strict

    def _refresh_lists(self, callback: OnListRefreshed) -> None:
        # Imported here: few clients want it.
        from .subscriptions.list_refresh import FetchList, ListRefresh

        lists: dict[str, dict[str, FetchList]] = {
            "tools": {"tools": partial(self.list_tools, fresh=True)},
            "prompts": {"prompts": partial(self.list_prompts, fresh=True)},
            "resources": {
                "resources": partial(self.list_resources, fresh=True),
                "resource_templates": partial(self.list_resource_templates, fresh=True),
            },
        }
        connection = self._connection
        connection.listeners = connection.listeners._replace(refresh=ListRefresh(lists, callback))

    def __repr__(self) -> str:
        state = f"{self.revision}" if self.is_connected else "not connected"
        return f"<Client {show(self._connection.hello.info.name)}, {state}>"

    # -- connecting --------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connect, and negotiate a revision.

        A client whose connection was lost or closed can connect again, if it has an address.

        Raises:
            TransportError: the server cannot be reached, or closed the connection at once.
            RequestTimeout: it took longer than `connect_timeout`.
            RemoteProtocolError: both sides have no revision in common.
            PeerError: the server rejected the connection.
            AuthorizationFailed: the server requires a credential that the client does not have,
                and could not obtain.
        """
        await self._connection.connect()

    async def close(self) -> None:
        """Close the connection; pending requests end with `ConnectionLost`."""
        self._subscriptions.uris.clear()
        await self._connection.close()

    # -- what was negotiated -----------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether the connection is open."""
        return self._connection.is_open

    @property
    def servers(self) -> Mapping[str, Client]:
        """The client of each server of a configuration, by name."""
        return {self._server_name: self} if self._server_name else {}

    @property
    def failures(self) -> Mapping[str, Exception]:
        """Why servers of a configuration cannot be used, by name; empty with one server."""
        return {}

    @property
    def dropped_notifications(self) -> int:
        """How many notifications were dropped because callbacks or subscriptions were too slow."""
        return self._connection.budget.dropped

    @property
    def revision(self) -> str:
        """The negotiated revision of MCP, such as "2025-11-25"."""
        return self._connection.current().revision

    @property
    def era(self) -> Era:
        """Whether the connection began with a handshake, or each request is self-contained."""
        return self._negotiated("era")  # type: ignore[no-any-return]  # a field of NegotiatedSession

    @property
    def server_info(self) -> Implementation | None:
        """Name and version of the server, for display; None if it sent none."""
        return self._negotiated("server_info")  # type: ignore[no-any-return]  # as above

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """The declared capabilities of the server; empty if it declared none."""
        return self._negotiated("capabilities")  # type: ignore[no-any-return]  # as above

    @property
    def server_extensions(self) -> dict[str, dict[str, Any]]:
        """The extensions that the server declared: their settings by id."""
        found = self.server_capabilities.extensions
        return {} if found is None else found

    @property
    def instructions(self) -> str | None:
        """The server's instructions for a model."""
        return self._negotiated("instructions")  # type: ignore[no-any-return]  # as above

    @property
    def initialize_result(self) -> InitializeResult | None:
        """The result of `initialize`; None in the per-request era."""
        opening = self._negotiated("opening")
        return opening if isinstance(opening, InitializeResult) else None

    def _negotiated(self, what: str) -> Any:
        return getattr(self._connection.current().negotiated, what)

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
        result_type: Any = None,
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
        **unknown: Never,
    ) -> ToolResult[Any]:
        """Call a tool; `result.value` is what it returned, as `result_type`.

        `on_progress(progress, total, message)` is called for each progress notification, and for
        each status message of a task of 2026-07-28, with a count and no total. `timeout` is in
        seconds, and restarts with each of them.

        Raises:
            PeerError: the server rejected the call; a tool that ran and failed is a result whose
                `is_error` is true.
            RequestAborted: there is no result: the request timed out, the connection is lost, or
                input that the server requested could not be given.
            RemoteProtocolError: the reply is not a result of `tools/call`.
        """
        if unknown:
            raise unknown_call_option(name, next(iter(unknown)))
        given = UNSET if arguments is None else arguments
        tasks = self._tasks
        must_be_task = tasks.support is not None and tasks.must_be_task(name)
        is_plain = self._is_plain and timeout is None and on_progress is None and meta is None
        is_again = False
        while not must_be_task:
            try:
                if is_plain:
                    # The usual case, without the objects that only other calls need.
                    session = self._connection.session or self._connection.current()
                    params = CallToolRequestParams(name, session.meta, given)
                    pending = session.send("tools/call", params, read=read_answer)
                    raw = await pending.waiter
                else:
                    request = tool_call(name, given, timeout, on_progress, meta)
                    raw, session = await self._sender.ask(request)
            except NOT_SENT:
                if not is_plain:
                    raise
                is_plain = False  # the sender opens a new session
                continue
            except asyncio.CancelledError:
                if is_plain:
                    session.abandon(pending)
                raise
            except PeerError as error:
                must_be_task = await tasks.is_task_required(error, name, timeout)
                if not must_be_task and (is_again or not await self._sender.learnt_headers(error)):
                    raise
                is_again, is_plain = True, False
                continue
            try:
                found = tool_result(raw, result_type, session.revision)
            except NotComplete:
                found = None  # completed below, so that its errors do not have this one as context
            if found is None:
                request = tool_call(name, given, timeout, on_progress, meta)
                raw = await self._sender.resolve(session, request, raw)
                found = tool_result(raw, result_type, session.revision)
            if not found.is_error or not await tasks.is_task_refusal(name, timeout):
                return found
            must_be_task = True
        raw, session = await tasks.call(tool_call(name, given, timeout, on_progress, meta))
        return tool_result(raw, result_type, session.revision)

    async def list_tools(self, *, fresh: bool = False, timeout: float | None = None) -> list[Tool]:
        """Return all tools, from all pages; `fresh` bypasses the cache."""
        return await self._tasks.list_tools(fresh, timeout)

    async def list_tools_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListToolsResult:
        """Return one page of the tools: the first, or that of `cursor`."""
        page, _ = await self._sender.page("tools/list", ListToolsResult, cursor, fresh, timeout)
        return page  # type: ignore[no-any-return]  # decoded as this type

    # -- tasks -------------------------------------------------------------------------------

    @overload
    async def call_tool_as_task(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: type[T],
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> TaskHandle[T]: ...

    @overload
    async def call_tool_as_task(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> TaskHandle[Any]: ...

    async def call_tool_as_task(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> TaskHandle[Any]:
        """Call a tool, and return its task as soon as the server has created it.

        If there is no task, because the tool, the server or the revision does not support them,
        this returns when the tool is done. `ttl` is how many seconds the server should keep the
        task; since 2026-07-28 the server decides. `timeout` applies to each request.

        Raises:
            PeerError: the server rejected the call.
            RequestAborted: the request timed out, or the connection is lost.
            RemoteProtocolError: the reply is neither a result of `tools/call` nor a task.
        """
        if ttl is not None:
            check_seconds("ttl", ttl)
        given = UNSET if arguments is None else arguments
        request = tool_call(name, given, timeout, on_progress, meta)
        return await self._tasks.call_as_task(request, name, ttl, result_type)

    @overload
    def task(
        self, id: str, *, result_type: type[T], timeout: float | None = None
    ) -> TaskHandle[T]: ...

    @overload
    def task(
        self, id: str, *, result_type: Any = None, timeout: float | None = None
    ) -> TaskHandle[Any]: ...

    def task(
        self, id: str, *, result_type: Any = None, timeout: float | None = None
    ) -> TaskHandle[Any]:
        """Return a handle of an existing task, of this connection or another.

        No request is sent. `timeout` applies to each request of the handle.

        Raises:
            LocalProtocolError: the revision has no tasks.
        """
        return self._tasks.handle(id, result_type, timeout)

    async def list_tasks(self, *, timeout: float | None = None) -> list[Task]:
        """Return all tasks that this client may see, in 2025-11-25.

        Raises:
            LocalProtocolError: the revision has no task list.
        """
        return await self._tasks.list_tasks(timeout)

    # -- resources ---------------------------------------------------------------------------

    async def list_resources(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[Resource]:
        """Return all resources, from all pages; `fresh` bypasses the cache."""
        kind = ListResourcesResult
        return await self._sender.all_pages("resources/list", kind, "resources", fresh, timeout)

    async def list_resources_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListResourcesResult:
        """Return one page of the resources: the first, or that of `cursor`."""
        kind = ListResourcesResult
        page, _ = await self._sender.page("resources/list", kind, cursor, fresh, timeout)
        return page  # type: ignore[no-any-return]  # as above

    async def list_resource_templates(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[ResourceTemplate]:
        """Return all resource templates, from all pages; `fresh` bypasses the cache."""
        method, kind = "resources/templates/list", ListResourceTemplatesResult
        return await self._sender.all_pages(method, kind, "resource_templates", fresh, timeout)

    async def list_resource_templates_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListResourceTemplatesResult:
        """Return one page of the resource templates: the first, or that of `cursor`."""
        method, kind = "resources/templates/list", ListResourceTemplatesResult
        page, _ = await self._sender.page(method, kind, cursor, fresh, timeout)
        return page  # type: ignore[no-any-return]  # as above

    async def read_resource(
        self,
        uri: str,
        *,
        fresh: bool = False,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ReadResourceResult:
        """Return the contents of a resource: text, or bytes as base64."""
        fields = {"uri": uri}
        request = OutgoingRequest(
            "resources/read", ReadResourceRequestParams, fields, timeout, on_progress, meta
        )
        result, _ = await self._sender.cached(request, ReadResourceResult, fresh, uri)
        return result  # type: ignore[no-any-return]  # as above

    # -- subscriptions -----------------------------------------------------------------------

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
        task_ids: Iterable[str] = (),
        timeout: float | None = None,
    ) -> Subscription:
        """Return a subscription to changes: `async with client.listen(tools=True) as changes`.

        `tools`, `prompts` and `resources` are the lists of those, `uris` single resources and
        `task_ids` tasks. `timeout` is how many seconds the server has to acknowledge; after that
        the subscription stays open without a limit.

        Raises:
            ValueError: nothing was named, or the timeout is not above 0.

        Entering it raises:
            PeerError: the server rejected it.
            RequestAborted: it was not acknowledged in time, or the connection is lost.
        """
        wanted = topics(tools, prompts, resources, uris, task_ids)
        return self._subscriptions.listen(wanted, timeout)

    async def subscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Subscribe to changes of a resource, which call `on_resource_updated`.

        Raises:
            PeerError: the server rejected it.
            LocalProtocolError: in 2026-07-28, the server does not report this resource.
        """
        await self._subscriptions.subscribe(uri, timeout)

    async def unsubscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """End the subscription to a resource."""
        await self._subscriptions.unsubscribe(uri, timeout)

    # -- prompts and completion --------------------------------------------------------------

    async def list_prompts(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[Prompt]:
        """Return all prompts, from all pages; `fresh` bypasses the cache."""
        kind = ListPromptsResult
        return await self._sender.all_pages("prompts/list", kind, "prompts", fresh, timeout)

    async def list_prompts_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListPromptsResult:
        """Return one page of the prompts: the first, or that of `cursor`."""
        kind = ListPromptsResult
        page, _ = await self._sender.page("prompts/list", kind, cursor, fresh, timeout)
        return page  # type: ignore[no-any-return]  # as above

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> GetPromptResult:
        """Return the messages of a prompt, with its arguments filled in."""
        fields = {"name": name, "arguments": UNSET if arguments is None else arguments}
        request = OutgoingRequest(
            "prompts/get", GetPromptRequestParams, fields, timeout, on_progress, meta
        )
        return await self._sender.answer(
            request, lambda raw, revision: read(raw, GetPromptResult, "prompts/get", revision)
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
        """Return completions for an argument of a prompt or of a resource template.

        `context` holds the arguments that have values already; it is omitted in revisions that
        do not have it.
        """
        if (prompt is None) == (resource is None):
            raise TypeError("complete() takes either `prompt` or `resource`")
        request = completion_request(
            argument, value, prompt, resource or "", context, timeout, self._revision()
        )
        result: CompleteResult = await self._sender.answer(
            request, lambda raw, revision: read(raw, CompleteResult, request.method, revision)
        )
        return result.completion

    # -- the connection ----------------------------------------------------------------------

    async def ping(self, *, timeout: float | None = None) -> float:
        """Send a ping; return the round-trip time in seconds."""
        now = asyncio.get_running_loop().time
        before = now()
        await self._sender.do("ping", RequestParams, {}, timeout)
        return now() - before

    async def discover(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> DiscoverResult:
        """Return the revisions and capabilities of the server."""
        request = OutgoingRequest("server/discover", RequestParams, {}, timeout)
        result, _ = await self._sender.cached(request, DiscoverResult, fresh)
        return result  # type: ignore[no-any-return]  # as above

    async def set_logging_level(
        self, level: LoggingLevel | None, *, timeout: float | None = None
    ) -> None:
        """Request log messages from `level` on, which call `on_log`; None requests none.

        Raises:
            ValueError: there is no such level; or it is None and the server has a handshake
                revision, in which the log cannot be switched off.
        """
        check_choice("level", level, (None, *LEVELS))
        await self._sender.set_log_level(level, timeout)

    def send_roots_list_changed(self) -> Awaitable[None]:
        """Notify the server that the roots have changed; awaiting it is optional."""
        return self.notify("notifications/roots/list_changed")

    # -- any method --------------------------------------------------------------------------

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

        A method that only another revision has is rejected; an unknown method is sent.
        """
        check_method(method, self._revision(), "request")
        request = OutgoingRequest(method, None, dict(params or {}), timeout, on_progress)
        kind = result_type or dict[str, Any]
        return await self._sender.answer(
            request, lambda raw, revision: read_own(raw, kind, method, revision)
        )

    def notify(self, method: str, params: dict[str, Any] | None = None) -> Awaitable[None]:
        """Send any notification, without waiting; awaiting it is optional."""
        session = self._connection.current()
        check_method(method, session.revision, "notification")
        session.notify(method, params)
        return SENT

    def batch(self) -> CallBatch:
        """Return a batch, in 2025-03-26: `async with client.batch() as batch`."""
        # Imported here: only one revision has batches.
        from .requests.batch import CallBatch

        connection = self._connection
        return CallBatch(connection.current(), connection.renew, strict=connection.options.strict)

    # -- for the methods of the base class ---------------------------------------------------

    def _revision(self) -> str:
        return self._connection.current().revision

    def _submit(
        self,
        request: OutgoingRequest,
        reader: Callable[[Any], T],
        on_success: Callable[[T], object] | None,
        on_error: Callable[[TrunklineError], object] | None,
    ) -> PendingCall[T]:
        return self._sender.submit(request, reader, on_success, on_error, self._tasks.start)


def _group_class() -> type[Client]:
    # Imported here: most clients have one server.
    from .group.client import ClientGroup

    return ClientGroup


def connection_of(client: Client) -> ClientConnection:
    """Return the connection of a client of one server, for the modules of this library."""
    return client._connection


def state_of(client: Client) -> ConnectionState:
    """Return the state of all connections of a client, for the modules of this library."""
    return client._state


# `inspect.signature(Client)`, and the help of editors, show the options.
update_wrapper(Client.__new__, Client.__init__, assigned=(), updated=())

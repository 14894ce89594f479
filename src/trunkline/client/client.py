"""`Client`: connects to an MCP server and calls its methods.

    async with Client(["python", "server.py"]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo"})

A method builds the params, sends the request and decodes the result. Sessions are opened by
`connect.connection`, requests sent by `requests.sender`; subscriptions and tasks have
sub-packages of their own.

The rules that live here, and only here:

* The log level is a request in the handshake revisions, and part of every request after them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial, update_wrapper
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast, get_args, overload

from msgspec import UNSET

from .. import __version__
from ..errors import PeerError, TrunklineError
from ..jsonrpc.peer.peer import Extras
from ..jsonrpc.policy import Policy
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
    Implementation,
    InitializeResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListTasksResult,
    ListToolsResult,
    LoggingLevel,
    Prompt,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    ServerCapabilities,
    SetLevelRequestParams,
    Task,
    Tool,
)
from ..migration_hints import CLIENT_ATTRIBUTES, CLIENT_OPTIONS, missing_attribute, with_hints
from ..redaction import show
from ..spec.revisions import LATEST, REVISIONS
from .connect.capabilities import capabilities, extended
from .connect.connection import ClientConnection, ConnectionOptions
from .connect.negotiation import ClientHello
from .connect.targets import TargetLike, target_of, with_http_options
from .requests.cache import Cache
from .requests.call import PendingCall, SubmitMethods, tool_call
from .requests.sender import RequestSender
from .requests.tool_result import ToolResult, read_answer, tool_result
from .server_requests.handlers import (
    HandlerFunctions,
    OnElicit,
    OnElicitUrl,
    OnSample,
    Roots,
    fixed_roots,
)
from .session.decode import NotComplete, read, read_own
from .session.method_checks import check_method, raise_not_sendable
from .session.options import LEVELS, OnEvent, Validate, check_choice, check_count, check_seconds
from .session.request import OnProgress, OutgoingRequest
from .session.session import NOT_SENT, Era
from .subscriptions.notifications import (
    NotificationListeners,
    OnListChanged,
    OnLog,
    OnNotification,
    OnResourceUpdated,
)
from .subscriptions.stream import ClientSubscriptions, Subscription, topics
from .tasks.methods import TaskRequests

if TYPE_CHECKING:
    from ..transports.http.client.authorization import ClientAuth
    from ..transports.http.client.settings import HttpOptions
    from .connect.extensions import Extensions
    from .requests.batch import CallBatch
    from .subscriptions.budget import NotificationBudget
    from .tasks.task_call import TaskHandle

__all__ = ["Client"]

T = TypeVar("T")

# For the answer to a request, unless the policy says otherwise.
_TIMEOUT_S: Final = 60.0


class Client(SubmitMethods):
    """A connection to one MCP server, in a revision that both sides support.

    `target` is a text such as `server.py`, `https://example.org/mcp` or `claude:github`, an
    address such as `Stdio("node", ["server.js"])`, a `Server`, a command as a list of strings, or
    a transport. `revision` pins one revision; by default the newest that both sides support is
    negotiated.

    A configuration, `{"mcpServers": {...}}` or the path of such a file, with several servers
    makes a client of all of them: tools and prompts have the name of their server in front,
    `servers` has the client of each, and `failures` the errors of those that cannot be used.

    A request has `timeout` seconds, restarted by each progress notification, up to `max_timeout`;
    by default as many as the policy says, or 60.
    connecting has `connect_timeout`. `validate` checks what the server sends against the
    specification: "warn" logs violations, "raise" rejects the message. `strict` refuses to send
    requests for which the server declared no capability.

    Requests of the server are handled by `roots`, `on_sample`, `on_elicit` and `on_elicit_url`;
    only the capabilities of handlers given here are declared. Roots are `file://` URIs. In
    2026-07-28 a call fails if the server requests input more than `max_rounds` times; requests of
    the handshake revisions are not counted. `sampling_tools` declares that `on_sample` supports
    tools. `extensions` are declared: settings by id, or a list of `ClientExtension`; `tasks`
    declares the tasks extension. Notifications go to `on_log`, `on_progress`, `on_list_changed`
    and `on_resource_updated`, all others to `on_notification`. All of these may be async.

    Over HTTP, `headers` are sent with every request, `auth` adds credentials such as those of
    `trunkline.auth.OAuth()`, and `http` has further options.
    `on_event(kind, text)` is called when the client retries a request, or reopens a stream or a
    session; `kind` is "retry", "resume", "reconnect", "given-up", "session-lost" or "fallback".

    With a `Server` as target, `raise_exceptions` raises what a handler raised in the call itself,
    for tests; otherwise a caller is sent a reference to the log.

    `policy` decides how messages are encoded and decoded. If it has an envelope for credentials
    and context, as `Policy.pierre()` has, `envelope` is sent with each message: an
    `EnvelopeExtras`, or a function of the method that returns one.

    Raises:
        ValueError: an argument is out of range; the text names the valid values.
        TypeError: `target` is not something to connect to.
    """

    def __new__(cls, target: Any = None, *_: Any, **__: Any) -> Self:
        """Return a client of several servers for a configuration that has them."""
        if cls is Client and isinstance(target, str | Mapping | os.PathLike):
            # Imported here: the client of a server object reads neither.
            from .connect.resolve import is_configuration

            if is_configuration(target):
                from .connect.configured import config_servers

                if len(config_servers(target)) > 1:
                    from .group.client import ClientGroup

                    return cast(Self, object.__new__(ClientGroup))
        return object.__new__(cls)

    @with_hints(CLIENT_OPTIONS)
    def __init__(
        self,
        target: TargetLike,
        *,
        revision: str | None = None,
        name: str = "trunkline",
        version: str = __version__,
        title: str | None = None,
        timeout: float | None = None,
        max_timeout: float = 600.0,
        connect_timeout: float = 30.0,
        probe_timeout: float = 3.0,
        validate: Validate = "off",
        strict: bool = False,
        cache: bool = True,
        policy: Policy | None = None,
        envelope: Extras | None = None,
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
        headers: Mapping[str, str] | None = None,
        auth: ClientAuth | None = None,
        http: HttpOptions | None = None,
        on_event: OnEvent | None = None,
        raise_exceptions: bool = False,
    ) -> None:
        check_choice("revision", revision, (None, *REVISIONS))
        check_choice("validate", validate, get_args(Validate))
        check_choice("logging_level", logging_level, (None, *LEVELS))
        check_count("max_rounds", max_rounds)
        if sampling_tools and on_sample is None:
            raise ValueError("sampling_tools is about on_sample: give both, or neither")
        policy = policy or Policy()
        if envelope is not None and policy.envelope == "plain":
            raise ValueError(
                'envelope needs a policy that has one: Policy.pierre(), or envelope="pierre"'
            )
        list_timeout = policy.list_timeout_s if timeout is None else None
        if timeout is None:
            timeout = policy.timeout_s or _TIMEOUT_S
        for what, seconds in (
            ("timeout", timeout),
            ("max_timeout", max_timeout),
            ("connect_timeout", connect_timeout),
            ("probe_timeout", probe_timeout),
        ):
            check_seconds(what, seconds)
        settings, resolvers = extended(extensions, tasks=tasks)
        handlers = HandlerFunctions(
            fixed_roots(roots), on_sample, on_elicit, on_elicit_url, sampling_tools
        )
        found = target_of(target)
        # Of a configuration with one server.
        self._server_name = found.name
        self._connection = ClientConnection(
            with_http_options(found, http, headers, auth),
            ClientHello(
                revision,
                Implementation(name, version, title=title),
                partial(capabilities, handlers, experimental, settings),
                probe_timeout,
            ),
            handlers,
            NotificationListeners(on_log, on_notification, on_list_changed, on_resource_updated),
            Cache() if cache else None,
            ConnectionOptions(
                policy.replace(revision=revision or LATEST),
                timeout,
                max_timeout,
                connect_timeout,
                validate,
                strict,
                on_progress,
                raise_exceptions,
                list_timeout,
                envelope,
            ),
        )
        self._sender = RequestSender(self._connection, resolvers, max_rounds=max_rounds)
        self._tasks = TaskRequests(self._sender, enabled=tasks)
        self._subscriptions = ClientSubscriptions(self._sender)

        self._connection.log_level = logging_level
        if on_log is not None and logging_level is None:
            self._connection.default_log_level = "info"
        self._connection.on_event = on_event
        self._connection.on_tools_changed = self._tasks.forget_tools
        self._connection.on_open = self._subscriptions.begin
        self._connection.on_renewed = self._subscriptions.move
        # Whether a call without arguments of its own needs no `RequestWatch` and no checks.
        self._is_plain = on_progress is None and not strict

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute("Client", name, CLIENT_ATTRIBUTES)

    def __repr__(self) -> str:
        state = f"{self.revision}" if self.is_connected else "not connected"
        return f"<Client {show(self._connection.hello.info.name)}, {state}>"

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
    ) -> ToolResult[Any]:
        """Call a tool; `result.value` is what it returned, as `result_type`.

        `on_progress(progress, total, message)` is called for each progress notification.
        `timeout` is in seconds, and restarts with each of them.

        Raises:
            PeerError: the server rejected the call; a tool that ran and failed is a result whose
                `is_error` is true.
            RequestAborted: there is no result: the request timed out, the connection is lost, or
                input that the server requested could not be given.
            RemoteProtocolError: the reply is not a result of `tools/call`.
        """
        given = UNSET if arguments is None else arguments
        known = self._tasks.support
        must_be_task = known is not None and known.get(name) == "required"
        is_plain = self._is_plain and timeout is None and on_progress is None and meta is None
        is_again = False
        if is_plain and not must_be_task:
            # The usual case, without the objects that only other calls need.
            session = self._connection.session or self._connection.current()
            params = CallToolRequestParams(name, session.meta, given)
            try:
                pending = session.send("tools/call", params, read=read_answer)
                raw = await pending.waiter
            except NOT_SENT:
                pass  # sent below, on a new session
            except PeerError as error:
                must_be_task = await self._tasks.is_task_required(error, name, None)
                if not must_be_task and not await self._sender.learnt_headers(error):
                    raise
                is_again = True
            except asyncio.CancelledError:
                session.abandon(pending)
                raise
            else:
                try:
                    found = tool_result(raw, result_type, session.revision)
                except NotComplete:
                    raw = await self._sender.resolve(session, tool_call(name, given), raw)
                    return tool_result(raw, result_type, session.revision)
                if not found.is_error or not await self._tasks.is_task_refusal(name, None):
                    return found
                must_be_task = True
        request = tool_call(name, given, timeout, on_progress, meta)
        while not must_be_task:
            try:
                found = await self._sender.answer(
                    request, lambda raw, revision: tool_result(raw, result_type, revision)
                )
                if not found.is_error or not await self._tasks.is_task_refusal(name, timeout):
                    return found
                must_be_task = True
            except PeerError as error:
                must_be_task = await self._tasks.is_task_required(error, name, timeout)
                if not must_be_task:
                    if is_again or not await self._sender.learnt_headers(error):
                        raise
                    is_again = True
        raw, session = await self._tasks.call(request)
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
        from .tasks.task_call import TaskHandle

        if ttl is not None:
            check_seconds("ttl", ttl)
        given = UNSET if arguments is None else arguments
        request = tool_call(name, given, timeout, on_progress, meta)
        raw, session, poller = await self._tasks.begin(request, name, ttl)
        result = None if poller else tool_result(raw, result_type, session.revision)
        return TaskHandle(self._sender, result_type, poller, result)

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
        session = self._connection.current()
        if "tasks/get" not in session.methods:
            raise_not_sendable("tasks/get", session.revision)
        if timeout is not None:
            check_seconds("timeout", timeout)
        from .tasks.poller import TaskPoller
        from .tasks.task_call import TaskHandle

        return TaskHandle(self._sender, result_type, TaskPoller(self._sender, id, timeout=timeout))

    async def list_tasks(self, *, timeout: float | None = None) -> list[Task]:
        """Return all tasks that this client may see, in 2025-11-25.

        Raises:
            LocalProtocolError: the revision has no task list.
        """
        session = self._connection.current()
        if "tasks/list" not in session.methods:
            raise_not_sendable("tasks/list", session.revision)
        return await self._sender.all_pages("tasks/list", ListTasksResult, "tasks", False, timeout)

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
        given: Any = UNSET if context is None else CompleteRequestParamsContext(context)
        params: Any = narrow(
            CompleteRequestParams(
                CompleteRequestParamsArgument(argument, value),
                ResourceTemplateReference(resource or "")
                if prompt is None
                else PromptReference(prompt),
                context=given,
            ),
            self._revision(),
        )
        fields = {"argument": params.argument, "ref": params.ref, "context": params.context}
        method = "completion/complete"
        result: CompleteResult = await self._sender.answer(
            OutgoingRequest(method, CompleteRequestParams, fields, timeout),
            lambda raw, revision: read(raw, CompleteResult, method, revision),
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
        session = self._connection.current()
        if session.is_per_request:
            session.log_at(level)
        elif level is None:
            raise ValueError(f"{session.revision} cannot switch the log off: name a level")
        else:
            fields = {"level": level}
            await self._sender.do("logging/setLevel", SetLevelRequestParams, fields, timeout)
        self._connection.log_level = level
        self._connection.default_log_level = None

    def send_roots_list_changed(self) -> None:
        """Notify the server that the roots have changed."""
        self.notify("notifications/roots/list_changed")

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

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send any notification, without waiting."""
        session = self._connection.current()
        check_method(method, session.revision, "notification")
        session.notify(method, params)

    def batch(self) -> CallBatch:
        """Return a batch, in 2025-03-26: `async with client.batch() as batch`."""
        # Imported here: only one revision has batches.
        from .requests.batch import CallBatch

        connection = self._connection
        return CallBatch(connection.current(), connection.renew, strict=connection.options.strict)

    def _revision(self) -> str:
        return self._connection.current().revision

    # -- for a synchronous client ------------------------------------------------------------

    @property
    def _has_session(self) -> bool:
        return self._connection.session is not None

    @property
    def _is_unused(self) -> bool:
        return self._connection.is_unused

    def _use_threads(self, not_connected: str) -> NotificationBudget:
        """Use the text for calls without a session; return the budget of callbacks."""
        self._connection.not_connected = not_connected
        return self._connection.budget

    def _submit(
        self,
        request: OutgoingRequest,
        reader: Callable[[Any], T],
        on_success: Callable[[T], object] | None,
        on_error: Callable[[TrunklineError], object] | None,
    ) -> PendingCall[T]:
        return self._sender.submit(request, reader, on_success, on_error, self._tasks.start)


# `inspect.signature(Client)`, and the help of editors, show the options.
update_wrapper(Client.__new__, Client.__init__, assigned=(), updated=())

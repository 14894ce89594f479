"""A client for programs that are not async: the verbs of `Client`, and each waits.

    with SyncClient(["python", "server.py"]) as client:
        result = client.call_tool("forecast", {"city": "Oslo"})

Every verb is that of `Client` under the same name, with the same arguments, results and
errors, done on an event loop that runs on a thread of its own (`background`). So it works in
scripts, in notebooks and inside of a running event loop, and any thread may call it.

Nothing is decided here: what a verb does is in `verbs`, `changes` and `tasks`, how it is waited
for in `background`, and what is handed out in `sync_calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, TypeVar, Unpack, overload

from ...errors import TrunklineError
from ...jsonrpc.policy import Policy
from ...mcp.types import (
    CompleteResultCompletion,
    DiscoverResult,
    GetPromptResult,
    Implementation,
    InitializeResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    LoggingLevel,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ServerCapabilities,
    Task,
    Tool,
)
from ..client import Client
from ..connect.targets import Given
from ..options import Validate
from ..requests.request import OnProgress
from ..requests.tool_result import ToolResult
from ..server_requests.handlers import OnElicit, OnElicitUrl, OnSample, Roots
from ..session import Era
from ..subscriptions.notifications import OnListChanged, OnLog, OnNotification, OnResourceUpdated
from .callbacks import Callbacks
from .event_loop_thread import NOT_CONNECTED, LoopProxy

if TYPE_CHECKING:
    from ..extensions import Extensions
    from .handles import SyncCallBatch, SyncPendingCall, SyncSubscription, SyncTaskHandle

__all__ = ["ClientOptions", "SyncClient"]

T = TypeVar("T")

# What a server tells: plain functions for it are called on a thread of their own.
_TOLD: Final = (
    "on_log",
    "on_progress",
    "on_notification",
    "on_list_changed",
    "on_resource_updated",
)


class ClientOptions(TypedDict, total=False):
    """The options of a client, all of which have defaults; `Client` says what they are."""

    revision: str | None
    name: str
    version: str
    title: str | None
    timeout: float
    max_timeout: float
    connect_timeout: float
    probe_timeout: float
    validate: Validate
    strict: bool
    cache: bool
    policy: Policy | None
    roots: Roots | None
    on_sample: OnSample | None
    on_elicit: OnElicit | None
    on_elicit_url: OnElicitUrl | None
    sampling_tools: bool
    max_rounds: int
    on_log: OnLog | None
    on_progress: OnProgress | None
    on_notification: OnNotification | None
    on_list_changed: OnListChanged | None
    on_resource_updated: OnResourceUpdated | None
    experimental: dict[str, dict[str, Any]] | None
    extensions: Extensions | None
    tasks: bool
    logging_level: LoggingLevel | None


class SyncClient:
    """A connection to one MCP server, for programs that are not async.

    It takes what `Client` takes, and has the same verbs. Handlers that are plain functions run
    on other threads, and may use the client; async ones run on the event loop, and may not.

    Raises:
        ValueError: an argument is out of range; the text says what it may be.
        TypeError: `target` is nothing that one can connect to, or there is no such option.
    """

    def __init__(self, target: Given, **options: Unpack[ClientOptions]) -> None:
        callbacks = Callbacks()
        given: dict[str, Any] = dict(options)
        for name in _TOLD:
            if name in given:
                given[name] = callbacks.told(name, given[name])
        self._client = Client(target, **given)
        self._proxy = LoopProxy(self._client, callbacks)

    def __repr__(self) -> str:
        return repr(self._client).replace("<Client ", "<SyncClient ", 1)

    # -- connecting --------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def connect(self) -> None:
        """Connect, and agree on a revision.

        A client whose connection was lost or closed can connect again, if it has an address.

        Raises:
            TransportError: there is nothing to connect to, or it went away at once.
            RequestTimeout: it took too long.
            RemoteProtocolError: there is no revision that both sides speak.
            PeerError: the server refused.
        """
        self._proxy.connect()

    def close(self) -> None:
        """End the connection; what is under way ends with `ConnectionLost`."""
        self._proxy.close()

    # -- what was agreed ---------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether there is a server to ask."""
        return self._proxy.is_usable and self._client.is_connected

    @property
    def revision(self) -> str:
        """The revision of MCP that is spoken, such as "2025-11-25"."""
        return self._agreed().revision

    @property
    def era(self) -> Era:
        """Whether the connection began with a handshake, or each request stands for itself."""
        return self._agreed().era

    @property
    def server_info(self) -> Implementation | None:
        """Who the server says it is, for display; None where it did not say."""
        return self._agreed().server_info

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """What the server declared; empty where it declared nothing."""
        return self._agreed().server_capabilities

    @property
    def server_extensions(self) -> dict[str, dict[str, Any]]:
        """The extensions that the server advertises: their settings by id."""
        return self._agreed().server_extensions

    @property
    def instructions(self) -> str | None:
        """What the server wants a model to know of it."""
        return self._agreed().instructions

    @property
    def initialize_result(self) -> InitializeResult | None:
        """The answer to `initialize`; None in the per-request era."""
        return self._agreed().initialize_result

    def _agreed(self) -> Client:
        """Return the client, which knows what was agreed; raise where nothing was."""
        if self._client._session is None:
            raise TrunklineError(NOT_CONNECTED)
        return self._client

    # -- tools -------------------------------------------------------------------------------

    @overload
    def call_tool(
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
    def call_tool(
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
    def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult[Any]: ...

    def call_tool(
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
        told = self._proxy.callbacks.told
        return self._proxy.run(
            self._client.call_tool,
            name,
            arguments,
            result_type=result_type,
            timeout=timeout,
            on_progress=told("on_progress", on_progress),
            meta=meta,
        )

    def list_tools(self, *, fresh: bool = False, timeout: float | None = None) -> list[Tool]:
        """Return all tools, however many pages they take; `fresh` asks the server anew."""
        return self._proxy.run(self._client.list_tools, fresh=fresh, timeout=timeout)

    def tools_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListToolsResult:
        """Return one page of the tools, the first unless its cursor is given."""
        return self._proxy.run(self._client.tools_page, cursor, fresh=fresh, timeout=timeout)

    # -- calls in hand -----------------------------------------------------------------------

    def submit(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[dict[str, Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> SyncPendingCall[dict[str, Any]]:
        """Send any request; return the call, to be waited for, asked or cancelled later."""
        # Imported here, as below: most scripts call tools and wait.
        from .handles import SyncPendingCall

        told = self._proxy.callbacks.told
        call = self._proxy.call(
            self._client.submit,
            method,
            params,
            timeout=timeout,
            on_progress=told("on_progress", on_progress),
            on_success=told("on_success", on_success),
            on_error=told("on_error", on_error),
        )
        return SyncPendingCall(self._proxy, call)

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
    ) -> SyncPendingCall[ToolResult[T]]: ...

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
    ) -> SyncPendingCall[ToolResult[Any]]: ...

    @overload
    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> SyncPendingCall[ToolResult[Any]]: ...

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
    ) -> SyncPendingCall[ToolResult[Any]]:
        """Call a tool; return the call, to be waited for, asked or cancelled later."""
        from .handles import SyncPendingCall

        told = self._proxy.callbacks.told
        call = self._proxy.call(
            self._client.submit_tool,
            name,
            arguments,
            result_type=result_type,
            timeout=timeout,
            on_progress=told("on_progress", on_progress),
            on_success=told("on_success", on_success),
            on_error=told("on_error", on_error),
        )
        return SyncPendingCall(self._proxy, call)

    def batch(self) -> SyncCallBatch:
        """Return a batch, where the revision sends such: `with client.batch() as batch`."""
        from .handles import SyncCallBatch

        batch = self._proxy.call(self._client.batch)
        return SyncCallBatch(self._proxy, batch)

    # -- long work ---------------------------------------------------------------------------

    @overload
    def call_tool_as_task(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: type[T],
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> SyncTaskHandle[T]: ...

    @overload
    def call_tool_as_task(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> SyncTaskHandle[Any]: ...

    def call_tool_as_task(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> SyncTaskHandle[Any]:
        """Call a tool, and return its task as soon as there is one.

        Where there is none, because the tool, the server or the revision has no tasks, this
        returns when the tool is done. `ttl` is for how many seconds the server should keep the
        task; a server since 2026-07-28 is not asked. `timeout` is that of each request.

        Raises:
            PeerError: the server could not serve the call.
            RequestAborted: no answer came: time ran out, or the connection is gone.
            RemoteProtocolError: the answer is no result of a tool, and no task.
        """
        from .handles import SyncTaskHandle

        told = self._proxy.callbacks.told
        task = self._proxy.run(
            self._client.call_tool_as_task,
            name,
            arguments,
            result_type=result_type,
            ttl=ttl,
            timeout=timeout,
            on_progress=told("on_progress", on_progress),
            meta=meta,
        )
        return SyncTaskHandle(self._proxy, task)

    @overload
    def task(
        self, id: str, *, result_type: type[T], timeout: float | None = None
    ) -> SyncTaskHandle[T]: ...

    @overload
    def task(
        self, id: str, *, result_type: Any = None, timeout: float | None = None
    ) -> SyncTaskHandle[Any]: ...

    def task(
        self, id: str, *, result_type: Any = None, timeout: float | None = None
    ) -> SyncTaskHandle[Any]:
        """Return a task that was begun before, by this connection or another.

        Nothing is asked yet. `timeout` is that of each request.

        Raises:
            LocalProtocolError: the revision has no tasks.
        """
        from .handles import SyncTaskHandle

        task = self._proxy.call(self._client.task, id, result_type=result_type, timeout=timeout)
        return SyncTaskHandle(self._proxy, task)

    def list_tasks(self, *, timeout: float | None = None) -> list[Task]:
        """Return all tasks of the server that are ours, in 2025-11-25.

        Raises:
            LocalProtocolError: the revision has no such list.
        """
        return self._proxy.run(self._client.list_tasks, timeout=timeout)

    # -- resources ---------------------------------------------------------------------------

    def list_resources(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[Resource]:
        """Return all resources, however many pages they take."""
        return self._proxy.run(self._client.list_resources, fresh=fresh, timeout=timeout)

    def resources_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListResourcesResult:
        """Return one page of the resources, the first unless its cursor is given."""
        return self._proxy.run(self._client.resources_page, cursor, fresh=fresh, timeout=timeout)

    def list_resource_templates(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[ResourceTemplate]:
        """Return all templates of resources, however many pages they take."""
        return self._proxy.run(self._client.list_resource_templates, fresh=fresh, timeout=timeout)

    def resource_templates_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListResourceTemplatesResult:
        """Return one page of the templates, the first unless its cursor is given."""
        return self._proxy.run(
            self._client.resource_templates_page, cursor, fresh=fresh, timeout=timeout
        )

    def read_resource(
        self,
        uri: str,
        *,
        fresh: bool = False,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ReadResourceResult:
        """Return what a resource holds: texts, and bytes as base64."""
        told = self._proxy.callbacks.told
        return self._proxy.run(
            self._client.read_resource,
            uri,
            fresh=fresh,
            timeout=timeout,
            on_progress=told("on_progress", on_progress),
            meta=meta,
        )

    # -- changes -----------------------------------------------------------------------------

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
        task_ids: Iterable[str] = (),
        timeout: float | None = None,
    ) -> SyncSubscription:
        """Return a stream of changes: `with client.listen(tools=True) as changes`.

        `tools`, `prompts` and `resources` are the lists of those, `uris` single resources and
        `task_ids` tasks. `timeout` is how long the server may take to agree, in seconds; once
        it has, the stream is open for as long as you like.

        Raises:
            ValueError: nothing is listened for, or the timeout is none.

        To enter it raises:
            PeerError: the server refused.
            RequestAborted: it did not answer in time, or is gone.
        """
        from .handles import SyncSubscription

        stream = self._proxy.call(
            self._client.listen,
            tools=tools,
            prompts=prompts,
            resources=resources,
            uris=uris,
            task_ids=task_ids,
            timeout=timeout,
        )
        return SyncSubscription(self._proxy, stream)

    def subscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Ask to be told when a resource changes, by `on_resource_updated`.

        Raises:
            PeerError: the server refused.
            LocalProtocolError: in 2026-07-28, the server does not tell of this resource.
        """
        self._proxy.run(self._client.subscribe, uri, timeout=timeout)

    def unsubscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Ask not to be told any more."""
        self._proxy.run(self._client.unsubscribe, uri, timeout=timeout)

    # -- prompts and completion --------------------------------------------------------------

    def list_prompts(self, *, fresh: bool = False, timeout: float | None = None) -> list[Prompt]:
        """Return all prompts, however many pages they take."""
        return self._proxy.run(self._client.list_prompts, fresh=fresh, timeout=timeout)

    def prompts_page(
        self, cursor: str | None = None, *, fresh: bool = False, timeout: float | None = None
    ) -> ListPromptsResult:
        """Return one page of the prompts, the first unless its cursor is given."""
        return self._proxy.run(self._client.prompts_page, cursor, fresh=fresh, timeout=timeout)

    def get_prompt(
        self,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> GetPromptResult:
        """Return the messages of a prompt, filled in."""
        told = self._proxy.callbacks.told
        return self._proxy.run(
            self._client.get_prompt,
            name,
            arguments,
            timeout=timeout,
            on_progress=told("on_progress", on_progress),
            meta=meta,
        )

    def complete(
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
        return self._proxy.run(
            self._client.complete,
            argument,
            value,
            prompt=prompt,
            resource=resource,
            context=context,
            timeout=timeout,
        )

    # -- the connection ----------------------------------------------------------------------

    def ping(self, *, timeout: float | None = None) -> float:
        """Ask whether the server is there; return how many seconds it took to say so."""
        return self._proxy.run(self._client.ping, timeout=timeout)

    def discover(self, *, fresh: bool = False, timeout: float | None = None) -> DiscoverResult:
        """Return which revisions and capabilities a server has."""
        return self._proxy.run(self._client.discover, fresh=fresh, timeout=timeout)

    def set_log_level(self, level: LoggingLevel | None, *, timeout: float | None = None) -> None:
        """Ask for the log of the server from `level` on, by `on_log`; None asks for none.

        Raises:
            ValueError: there is no such level; or it is None, and the server is one of the
                handshake, which has no way of being asked to be silent.
        """
        self._proxy.run(self._client.set_log_level, level, timeout=timeout)

    def notify_roots_changed(self) -> None:
        """Tell the server that the roots are not what they were."""
        self._proxy.call(self._client.notify_roots_changed)

    # -- anything else -----------------------------------------------------------------------

    @overload
    def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        result_type: type[T],
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> T: ...

    @overload
    def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        result_type: None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]: ...

    @overload
    def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        result_type: Any,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any: ...

    def request(
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
        told = self._proxy.callbacks.told
        return self._proxy.run(
            self._client.request,
            method,
            params,
            result_type=result_type,
            timeout=timeout,
            on_progress=told("on_progress", on_progress),
        )

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send any notification, without waiting."""
        self._proxy.call(self._client.notify, method, params)

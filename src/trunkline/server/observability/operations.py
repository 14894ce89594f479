"""Operations: requests that are observed from when they are received until they are answered.

Metrics and tracing are `Observer`s of a server. The connections of a server with observers use an
`OperationRecorder`, which stands between the peer and the dispatch of requests; those of a server
without one have none of this in their call chain.

The rules that live here, and only here:

* An operation ends with the answer to its request, once. A request that is cancelled, or open when
  its connection ends, has the error type `cancelled`. A call that becomes a task, or is answered
  with input requests, ends with that answer.
* Everything that names an operation is bounded, whatever clients send: methods that the server
  does not serve are `_OTHER`, and tools, prompts and resources are named only if registered.
* The error type is the code of a JSON-RPC error, `tool_error` for a result with `isError`, or
  `_OTHER` for a code outside the profile in use.       [OpenTelemetry GenAI conventions, MCP]
* An observer that raises is logged and changes nothing else: the request is served.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from ...exception_text import one_line
from ...jsonrpc.messages import ErrorObject, Shown
from ...jsonrpc.peer.incoming import IncomingRequest
from ...jsonrpc.peer.outgoing import Pending
from ...jsonrpc.peer.peer import Peer
from ...mcp.meta import BadMeta, Caller
from ...mcp.names import official
from ...spec.mcp.methods import NAMED
from ...spec.profiles import profile
from ..dispatch.params import UNREADABLE, ToolCall
from ..methods.methods import method_handlers

if TYPE_CHECKING:
    from ...auth.principal import Principal
    from ...jsonrpc.codec.codec import Codec
    from ...jsonrpc.policy import Policy
    from ..api.core import ServerCore
    from ..dispatch.connection import Connection
    from ..registry.paged_list import PagedList

__all__ = [
    "CANCELLED",
    "DURATION_BUCKETS",
    "OTHER",
    "TOOL_ERROR",
    "Observer",
    "Operation",
    "OperationRecorder",
    "add_observer",
]

T = TypeVar("T")

# Stands for what is not in a known set.
OTHER: Final = "_OTHER"
TOOL_ERROR: Final = "tool_error"
CANCELLED: Final = "cancelled"
# Upper bounds in seconds.                   [OpenTelemetry GenAI conventions, MCP metrics]
DURATION_BUCKETS: Final = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)

# `network.transport` and `network.protocol.name` by the name of a transport; others have none.
_NETWORK_TRANSPORTS: Final = {
    "stdio": "pipe",
    "tcp": "tcp",
    "unix": "unix",
    "http": "tcp",
    "sse": "tcp",
    "websocket": "tcp",
}
_NETWORK_PROTOCOLS: Final = {"http": "http", "sse": "http", "websocket": "websocket"}

Serve: TypeAlias = Callable[[IncomingRequest], object]


class _Reference(Shown, Struct, frozen=True):
    """The `ref` of a completion."""

    type: Any = None
    name: Any = None


class _Target(Shown, Struct, frozen=True):
    """Of any params, the members that name what a request is about."""

    name: Any = None
    uri: Any = None
    ref: _Reference | None = None
    meta: Raw | UnsetType = field(default=UNSET, name="_meta")


_read_target: Final = Decoder(_Target).decode


class Operation:
    """One request from when it is received until it is answered."""

    __slots__ = (
        "_connection",
        "_principal",
        "_revision",
        "asked",
        "began",
        "error",
        "error_type",
        "meta",
        "method",
        "prompt",
        "resource",
        "result",
        "seconds",
        "tool",
        "trace",
        "uri",
    )

    def __init__(self, connection: Connection, asked: IncomingRequest) -> None:
        self.began = time.perf_counter()
        self._connection = connection
        self.asked = asked
        core = connection.core
        # Asked for now, because a request may outlive what it came with.
        self._principal = connection.principal_of(asked)
        method = self.method = _method_of(core, asked.method)
        # Names of registered entries; that of a resource is its URI or template.
        self.tool: str | None = None
        self.prompt: str | None = None
        self.resource: str | None = None
        # As the client sent it.
        self.uri: str | None = None
        target = _target_of(asked.params)
        kind = NAMED.get(method)
        if kind == "tool":
            self.tool = _registered(core.catalog.tools, target.name)
        elif kind == "prompt":
            self.prompt = _registered(core.catalog.prompts, target.name)
        elif kind == "reference" and target.ref is not None and target.ref.type == "ref/prompt":
            self.prompt = _registered(core.catalog.prompts, target.ref.name)
        elif kind == "resource" and isinstance(target.uri, str):
            self.uri = target.uri
            self.resource = next(
                (entry.uri for entry, _ in core.catalog.find_resources(target.uri)), None
            )
        caller = _caller_of(core, target.meta)
        self.meta: dict[str, Any] = caller.meta
        is_known = caller.protocol_version in core.revisions
        self._revision = caller.protocol_version if is_known else None
        # Set at the end: the error type, and the result or the error that was sent.
        self.error_type: str | None = None
        self.error: ErrorObject | None = None
        self.result: Any = None
        self.seconds = 0.0
        # What tracing keeps for it.
        self.trace: Any = None

    @property
    def revision(self) -> str | None:
        """The revision that the request names, or that was negotiated."""
        session = self._connection.session
        if self._revision is None and session is not None:
            return session.rev.revision
        return self._revision

    @property
    def principal(self) -> Principal | None:
        """The caller; where messages carry the credentials, not known at the begin."""
        found: Principal | None = self.asked.owner
        return self._principal if found is None else found

    @property
    def tenant(self) -> str | None:
        """The tenant of the caller."""
        return None if self.principal is None else self.principal.tenant

    @property
    def tenant_label(self) -> str:
        """The tenant as metrics name it; "" without tenants."""
        tenancy = self._connection.core.runtime.tenancy
        return "" if tenancy is None else tenancy.label(self.tenant)

    @property
    def transport(self) -> str:
        """The name of the transport."""
        return self._connection.transport.name

    @property
    def address(self) -> str:
        """The address that the request came from, if the transport knows it."""
        request = getattr(self.asked.route, "request", None)
        return "" if request is None else str(request.client)

    @property
    def policy(self) -> Policy:
        """How the answer was written."""
        policy = self._connection.core.policy
        return policy.replace(revision=self.revision) if self.revision else policy

    @property
    def is_refused(self) -> bool:
        """Whether the error names scopes that the caller lacks."""
        data = None if self.error is None else self.error.data
        return isinstance(data, dict) and "requiredScopes" in data

    @property
    def secret_arguments(self) -> frozenset[str]:
        """The arguments of the tool whose type is a secret."""
        tool = None if self.tool is None else self._connection.core.catalog.tools.get(self.tool)
        return frozenset() if tool is None else tool.arguments.secret_names

    @property
    def network_transport(self) -> str | None:
        """`network.transport` of the connection; None in memory."""
        return _NETWORK_TRANSPORTS.get(self._connection.transport.name)

    @property
    def network_protocol(self) -> str | None:
        """`network.protocol.name` of the connection, such as "http"."""
        return _NETWORK_PROTOCOLS.get(self._connection.transport.name)

    def end(self, *, result: Any, error: ErrorObject | None, is_answered: bool) -> None:
        """Record how it ended."""
        self.seconds = time.perf_counter() - self.began
        self.result, self.error = result, error
        if self.method == "initialize":
            # The session begins after the answer.
            self._revision = getattr(result, "protocol_version", None)
        if error is not None:
            self.error_type = self._error_type(error.code)
        elif not is_answered:
            self.error_type = CANCELLED
        elif self.method == "tools/call" and getattr(result, "is_error", None) is True:
            self.error_type = TOOL_ERROR

    def _error_type(self, code: int) -> str:
        policy = self._connection.core.policy
        row = profile(policy.codes).meaning(code, self.revision or policy.revision)
        return OTHER if row is None else str(code)


def _target_of(params: Any) -> _Target:
    if type(params) is ToolCall:
        return _Target(params.name, meta=params.meta)
    if params is UNSET:
        return _Target()
    try:
        return _read_target(params)
    except UNREADABLE:
        return _Target()  # the method refuses them


def _caller_of(core: ServerCore, meta: Raw | UnsetType) -> Caller:
    if meta is UNSET:
        return Caller()
    try:
        return core.callers.read(bytes(meta))
    except BadMeta:
        return Caller()  # the request is refused


def _method_of(core: ServerCore, method: str) -> str:
    """Return the official name of a method that the server knows, in any revision."""
    if method in method_handlers or method in core.own_methods or method in core.extension_methods:
        return method
    policy = core.policy
    for revision in core.revisions:
        name = official(method, policy, revision)
        if name in method_handlers:
            return name
    return OTHER


def _registered(entries: PagedList[Any], name: object) -> str | None:
    return name if isinstance(name, str) and name in entries else None


class Observer:
    """Is called about each operation of a server; metrics and tracing are observers."""

    def begin(self, operation: Operation) -> None:
        """Note an operation that was received."""

    def enter(self, operation: Operation) -> Callable[[], object] | None:
        """Set the context variables that its handler runs with; return what resets them."""

    def end(self, operation: Operation) -> None:
        """Note an operation that has ended."""


def add_observer(core: ServerCore, observer: Observer) -> None:
    """Observe the requests of all connections that are opened from now on."""
    core.services.observers = (*core.services.observers, observer)
    core.services.observe = partial(OperationRecorder, core.services.observers)


class OperationRecorder:
    """The operations of one connection.

    The connection passes in what it would do with a request that was received, and with one that
    has waited; `receive`, `serve` and `peer` take their places.
    """

    __slots__ = ("_connection", "_observers", "_open", "_receive", "_serve")

    def __init__(
        self, observers: tuple[Observer, ...], connection: Connection, receive: Serve, serve: Serve
    ) -> None:
        self._observers = observers
        self._connection = connection
        self._receive = receive
        self._serve = serve
        self._open: dict[IncomingRequest, Operation] = {}

    def receive(self, asked: IncomingRequest) -> None:
        """Begin an operation, and pass on its request."""
        try:
            operation = Operation(self._connection, asked)
        except Exception as error:  # noqa: BLE001  # a defect here; the request is served
            self._failed(error)
            self._receive(asked)
            return
        self._open[asked] = operation
        for observer in self._observers:
            self._call(observer.begin, operation)
        self._within(operation, self._receive)

    def serve(self, asked: IncomingRequest) -> None:
        """Serve a request that has waited, in its own context and not in that of another."""
        operation = self._open.get(asked)
        if operation is None:
            self._serve(asked)
        else:
            self._within(operation, self._serve)

    def _within(self, operation: Operation, serve: Serve) -> None:
        resets = [self._call(observer.enter, operation) for observer in self._observers]
        try:
            serve(operation.asked)
        finally:
            for reset in reversed(resets):
                if reset is not None:
                    reset()

    def peer(self, codec: Codec, **callbacks: Any) -> Peer:
        """Return a peer that ends operations when their requests are closed."""
        peer = _ObservedPeer(codec, **callbacks)
        peer.recorder = self
        return peer

    def end(
        self,
        asked: IncomingRequest,
        result: Any = None,
        error: ErrorObject | None = None,
        *,
        is_answered: bool = True,
    ) -> None:
        """End the operation of a request that was closed."""
        operation = self._open.pop(asked, None)
        if operation is None:
            return
        end = partial(Operation.end, result=result, error=error, is_answered=is_answered)
        self._call(end, operation)
        for observer in self._observers:
            self._call(observer.end, operation)

    def close(self) -> None:
        """End the operations that are still open, since the connection has ended."""
        for asked in list(self._open):
            self.end(asked, is_answered=False)

    def _call(self, call: Callable[[Operation], T], operation: Operation) -> T | None:
        try:
            return call(operation)
        except Exception as error:  # noqa: BLE001  # of an exporter; the request is served
            self._failed(error)
            return None

    def _failed(self, error: Exception) -> None:
        text = "a request is not observed: %s: %s"
        self._connection.core.runtime.counters.warn(
            "observer", text, type(error).__name__, one_line(error)
        )


class _ObservedPeer(Peer):
    """A peer that reports each request that is closed."""

    __slots__ = ("recorder",)

    recorder: OperationRecorder

    def answer(self, asked: IncomingRequest, result: Any) -> bool:
        if not super().answer(asked, result):
            return False
        self.recorder.end(asked, result)
        return True

    def fail(self, asked: IncomingRequest, error: ErrorObject) -> bool:
        if not super().fail(asked, error):
            return False
        self.recorder.end(asked, error=error)
        return True

    def drop(self, asked: IncomingRequest) -> bool:
        if not super().drop(asked):
            return False
        self.recorder.end(asked, is_answered=False)
        return True

    def close(self) -> tuple[list[Pending], list[IncomingRequest]]:
        closed = super().close()
        self.recorder.close()
        return closed

"""Operations of MCP: which tool, prompt or resource a request is about, and its revision.

The rules that live here, and only here:

* Everything that names an operation is bounded, whatever clients send: methods that the server
  does not serve are `_OTHER`, and tools, prompts and resources are named only if registered.
* The error type of a result with `isError` is `tool_error`.  [OpenTelemetry GenAI conventions, MCP]
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from ...engine.observability.operations import OTHER, Operation, OperationRecorder, Serve
from ...jsonrpc.messages import Shown
from ...mcp.meta import BadMeta, Caller
from ...mcp.names import official
from ...spec.mcp.methods import NAMED
from ..dispatch.params import UNREADABLE, ToolCall
from ..methods.methods import method_handlers

if TYPE_CHECKING:
    from ...jsonrpc.messages import ErrorObject
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ...jsonrpc.policy import Policy
    from ..api.core import ServerCore
    from ..dispatch.connection import Connection
    from ..registry.paged_list import PagedList

__all__ = ["DURATION_BUCKETS", "TOOL_ERROR", "ServerOperation", "record_operations"]

TOOL_ERROR: Final = "tool_error"
# Upper bounds in seconds.                   [OpenTelemetry GenAI conventions, MCP metrics]
DURATION_BUCKETS: Final = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)


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


class ServerOperation(Operation):
    """One request of MCP from when it is received until it is answered."""

    __slots__ = ("_connection", "_revision", "meta", "uri")

    def __init__(self, connection: Connection, asked: IncomingRequest) -> None:
        core = connection.core
        method = _method_of(core, asked.method)
        super().__init__(
            asked,
            method,
            connection.principal_of(asked),
            runtime=core.runtime,
            transport=connection.transport.name,
            policy=core.policy,
        )
        self._connection = connection
        # As the client sent it.
        self.uri: str | None = None
        target = _target_of(asked.params)
        kind = NAMED.get(method)
        if kind == "tool":
            self._set_entry("tool", _registered(core.catalog.tools, target.name))
        elif kind == "prompt":
            self._set_entry("prompt", _registered(core.catalog.prompts, target.name))
        elif kind == "reference" and target.ref is not None and target.ref.type == "ref/prompt":
            self._set_entry("prompt", _registered(core.catalog.prompts, target.ref.name))
        elif kind == "resource" and isinstance(target.uri, str):
            self.uri = target.uri
            found = core.catalog.find_resources(target.uri)
            self._set_entry("resource", next((entry.uri for entry, _ in found), None))
        caller = _caller_of(core, target.meta)
        self.meta: dict[str, Any] = caller.meta
        is_known = caller.protocol_version in core.revisions
        self._revision = caller.protocol_version if is_known else None

    def _set_entry(self, kind: str, name: str | None) -> None:
        if name is not None:
            self.kind, self.name = kind, name

    @property
    def tool(self) -> str | None:
        """The registered tool that it is about."""
        return self.name if self.kind == "tool" else None

    @property
    def prompt(self) -> str | None:
        """The registered prompt that it is about."""
        return self.name if self.kind == "prompt" else None

    @property
    def resource(self) -> str | None:
        """The URI or template of the registered resource that it is about."""
        return self.name if self.kind == "resource" else None

    @property
    def revision(self) -> str | None:
        """The revision that the request names, or that was negotiated."""
        session = self._connection.session
        if self._revision is None and session is not None:
            return session.rev.revision
        return self._revision

    @property
    def policy(self) -> Policy:
        """How the answer was written."""
        policy = super().policy
        return policy.replace(revision=self.revision) if self.revision else policy

    @property
    def secret_arguments(self) -> frozenset[str]:
        """The arguments of the tool whose type is a secret."""
        tool = None if self.tool is None else self._connection.core.catalog.tools.get(self.tool)
        return frozenset() if tool is None else tool.arguments.secret_names

    def end(self, *, result: Any, error: ErrorObject | None, is_answered: bool) -> None:
        """Record how it ended."""
        if self.method == "initialize":
            # The session begins after the answer.
            self._revision = getattr(result, "protocol_version", None)
        super().end(result=result, error=error, is_answered=is_answered)

    def failure_of(self, result: Any) -> str | None:
        """Return the error type of a tool that ran and failed."""
        is_failed = self.method == "tools/call" and getattr(result, "is_error", None) is True
        return TOOL_ERROR if is_failed else None


def record_operations(connection: Connection, receive: Serve, serve: Serve) -> OperationRecorder:
    """Return the operations of a new connection."""
    begin = partial(ServerOperation, connection)
    return OperationRecorder(connection.core.runtime, begin, receive, serve)


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

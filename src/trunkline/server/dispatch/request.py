"""One request of MCP while it is served.

A `ServerRequest` is what the modules of the server share about a request; a `Context` is its
public face, made for handlers that take one. A method handler gets the request and returns an
action of `engine/request.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from ...engine.request import Action, Refuse
from ...mcp.types import ClientCapabilities, Implementation
from ...redaction import show
from ..context import Context
from ..errors import worded_error

if TYPE_CHECKING:
    import asyncio

    from ...auth.principal import Principal
    from ...engine.access.decisions import AccessPolicy
    from ...engine.handler_run import HandlerRun
    from ...jsonrpc.messages import RequestId
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ...jsonrpc.policy import Policy
    from ...mcp.meta import Caller
    from ..api.core import ServerCore
    from .connection import Connection
    from .revision import ServerRevision

__all__ = ["MethodHandler", "ServerRequest"]

_NO_PROGRESS: Final = float("-inf")


# A Struct: one is made for each request, and a Struct is made in C.
class ServerRequest(Struct, eq=False):
    """A request that is served: where it came from, and the state of its handler."""

    connection: Connection
    message: IncomingRequest
    rev: ServerRevision
    caller: Caller | None
    # The server that the handler was registered with: of a mounted one, that one.
    owner: ServerCore
    # The tool, prompt or method that is served; of a resource its URI.
    name: str
    # The public face, once a handler, guard or middleware needs it.
    context: Context | None = None
    run: HandlerRun | None = None
    task: asyncio.Task[None] | None = None
    # The timeout of the handler.
    limit: asyncio.Timeout | None = None
    # Whether the request was cancelled, timed out, or the server stops.
    cancelled: bool = False
    # Reports of the handler so far, and the progress that was sent last.
    reports: int = 0
    progress: float = _NO_PROGRESS

    def __repr__(self) -> str:
        state = ", cancelled" if self.cancelled else ""
        name, id = show(self.name), show(self.id)
        return f"<ServerRequest of {show(self.method)} {name}, id {id}{state}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # that of a Struct shows everything

    @property
    def id(self) -> RequestId | None:
        """The id of the request."""
        return self.message.id

    @property
    def method(self) -> str:
        """The method that was called."""
        return self.message.method

    @property
    def revision(self) -> str:
        """The revision of MCP of the request."""
        return self.rev.revision

    @property
    def policy(self) -> Policy:
        """How errors are written."""
        return self.rev.policy

    @property
    def keeps_params(self) -> bool:
        """Whether a handler that asks its client ends, and the digest of the params is sealed."""
        return self.rev.asks_in_results

    def make_context(self) -> None:
        """Make the public face of the request."""
        self.context = Context(self)

    @property
    def is_open(self) -> bool:
        """Whether the request was neither answered nor cancelled."""
        return self.message in self.connection.peer.incoming

    @property
    def principal(self) -> Principal | None:
        """The authenticated caller; None without authentication, and for an anonymous one."""
        return self.connection.principal_of(self.message)

    @property
    def tenant(self) -> str | None:
        """The tenant of the caller; None without tenants."""
        principal = self.principal
        return None if principal is None else principal.tenant

    @property
    def access(self) -> AccessPolicy:
        """What decides on access beside the guards of entries."""
        return self.connection.core.catalog

    @property
    def principal_key(self) -> str | None:
        """What everything is bound to that outlives the request; None without a principal."""
        principal = self.principal
        return None if principal is None else principal.key

    @property
    def client_info(self) -> Implementation | None:
        """Name and version of the client, as it declares them."""
        session = self.connection.session
        if self.rev.has_handshake and session is not None:
            return session.client
        return None if self.caller is None else self.caller.client_info

    @property
    def client_capabilities(self) -> ClientCapabilities:
        """What the client declares to support."""
        session = self.connection.session
        if self.rev.has_handshake and session is not None:
            return session.capabilities
        declared = None if self.caller is None else self.caller.capabilities
        return declared or ClientCapabilities()

    def refuse(
        self,
        kind: str,
        message: str | None = None,
        known: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> Refuse:
        """Return the refusal of this request with an error of a kind; see `worded_error`."""
        error = worded_error(kind, self.rev.policy, self.message.method, message, known, **facts)
        return Refuse(error, kind)

    def stop(self) -> None:
        """Cancel the handler."""
        self.cancelled = True  # for a handler on a thread
        if self.task is not None:
            self.task.cancel()
        if self.run is not None:
            self.run.stop()


# Serves one method.
MethodHandler: TypeAlias = Callable[[ServerRequest], Action]

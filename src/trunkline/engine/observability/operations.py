"""Operations: requests that are observed from when they are received until they are answered.

Metrics, tracing and the audit are `Observer`s of a server. The connections of a server with
observers use an `OperationRecorder`, which stands between the peer and the dispatch of requests;
those of a server without one have none of this in their call chain. A protocol has operations of
its own, which know what its requests name: `ServerOperation` is that of MCP.

The rules that live here, and only here:

* An operation ends with the answer to its request, once. A request that is cancelled, or open when
  its connection ends, has the error type `cancelled`. A call that becomes a task, or is answered
  with input requests, ends with that answer.
* The error type is the code of a JSON-RPC error, or `_OTHER` for a code outside the profile in
  use; a protocol has types for results that are failures.
* An observer that raises is logged and changes nothing else: the request is served.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from ...exception_text import one_line
from ...jsonrpc.peer.incoming import IncomingRequest
from ...jsonrpc.peer.outgoing import Pending
from ...jsonrpc.peer.peer import Peer
from ...spec.profiles import profile

if TYPE_CHECKING:
    from ...auth.principal import Principal
    from ...jsonrpc.codec.codec import Codec
    from ...jsonrpc.messages import ErrorObject
    from ...jsonrpc.policy import Policy
    from ..runtime import ServerRuntime

__all__ = [
    "CANCELLED",
    "OTHER",
    "Observer",
    "Operation",
    "OperationRecorder",
    "Serve",
    "add_observer",
]

T = TypeVar("T")
ObservedT = TypeVar("ObservedT", bound="Operation", contravariant=True)

# Stands for what is not in a known set.
OTHER: Final = "_OTHER"
CANCELLED: Final = "cancelled"

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


class Operation:
    """One request from when it is received until it is answered."""

    __slots__ = (
        "_policy",
        "_principal",
        "_runtime",
        "asked",
        "began",
        "error",
        "error_type",
        "kind",
        "method",
        "name",
        "result",
        "seconds",
        "trace",
        "transport",
    )

    def __init__(
        self,
        asked: IncomingRequest,
        method: str,
        principal: Principal | None,
        *,
        runtime: ServerRuntime,
        transport: str,
        policy: Policy,
    ) -> None:
        """Begin an operation.

        `method` is one of a known set. `principal` is the caller as it is known now: a request may
        outlive what it came with. `transport` is the name of the transport.
        """
        self.began = time.perf_counter()
        self._runtime = runtime
        self._policy = policy
        self._principal = principal
        self.asked = asked
        self.method = method
        self.transport = transport
        # The registered entry that it is about, by a name that is in a known set: the kind is a
        # word of the protocol, such as "tool".
        self.kind: str | None = None
        self.name: str | None = None
        # Set at the end: the error type, and the result or the error that was sent.
        self.error_type: str | None = None
        self.error: ErrorObject | None = None
        self.result: Any = None
        self.seconds = 0.0
        # What tracing keeps for it.
        self.trace: Any = None

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
        tenancy = self._runtime.tenancy
        return "" if tenancy is None else tenancy.label(self.tenant)

    @property
    def address(self) -> str:
        """The address that the request came from, if the transport knows it."""
        request = getattr(self.asked.route, "request", None)
        return "" if request is None else str(request.client)

    @property
    def policy(self) -> Policy:
        """How the answer was written."""
        return self._policy

    @property
    def is_refused(self) -> bool:
        """Whether the error names scopes that the caller lacks."""
        data = None if self.error is None else self.error.data
        return isinstance(data, dict) and "requiredScopes" in data

    @property
    def network_transport(self) -> str | None:
        """`network.transport` of the connection; None in memory."""
        return _NETWORK_TRANSPORTS.get(self.transport)

    @property
    def network_protocol(self) -> str | None:
        """`network.protocol.name` of the connection, such as "http"."""
        return _NETWORK_PROTOCOLS.get(self.transport)

    def end(self, *, result: Any, error: ErrorObject | None, is_answered: bool) -> None:
        """Record how it ended."""
        self.seconds = time.perf_counter() - self.began
        self.result, self.error = result, error
        if error is not None:
            self.error_type = self._error_type(error.code)
        elif is_answered:
            self.error_type = self.failure_of(result)
        else:
            self.error_type = CANCELLED

    def failure_of(self, result: Any) -> str | None:
        """Return the error type of a result that is a failure in the protocol; None of others."""
        return None

    def _error_type(self, code: int) -> str:
        policy = self.policy
        row = profile(policy.codes).meaning(code, policy.revision)
        return OTHER if row is None else str(code)


class Observer(Generic[ObservedT]):
    """Is called about each operation of a server; metrics and tracing are observers."""

    def begin(self, operation: ObservedT) -> None:
        """Note an operation that was received."""

    def enter(self, operation: ObservedT) -> Callable[[], object] | None:
        """Set the context variables that its handler runs with; return what resets them."""

    def end(self, operation: ObservedT) -> None:
        """Note an operation that has ended."""


def add_observer(runtime: ServerRuntime, observer: Observer[Any]) -> None:
    """Observe the requests of all connections that are opened from now on."""
    runtime.observers = (*runtime.observers, observer)


class OperationRecorder:
    """The operations of one connection.

    The connection passes in what it would do with a request that was received, and with one that
    has waited; `receive`, `serve` and `peer` take their places. `begin` makes the operation of a
    request that was received.
    """

    __slots__ = ("_begin", "_observers", "_open", "_receive", "_runtime", "_serve")

    def __init__(
        self,
        runtime: ServerRuntime,
        begin: Callable[[IncomingRequest], Operation],
        receive: Serve,
        serve: Serve,
    ) -> None:
        self._runtime = runtime
        self._observers = runtime.observers
        self._begin = begin
        self._receive = receive
        self._serve = serve
        self._open: dict[IncomingRequest, Operation] = {}

    def receive(self, asked: IncomingRequest) -> None:
        """Begin an operation, and pass on its request."""
        try:
            operation = self._begin(asked)
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
        end = partial(type(operation).end, result=result, error=error, is_answered=is_answered)
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
        self._runtime.counters.warn("observer", text, type(error).__name__, one_line(error))


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

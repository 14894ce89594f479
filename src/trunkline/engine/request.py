"""One request while its handler runs, as every protocol has it, and what is to happen with it.

The dialects have records of their own, which say more: `ServerRequest` is that of MCP. A method
handler gets the record and returns an action; the connection alone sends.

The rules that live here, and only here:

* A method handler sends nothing: it returns an `Answer`, a `Refuse`, a `Run` or `LATER`.
* `LATER` is for a request that something else answers: a stream, or a task that others run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from msgspec import Struct

from ..jsonrpc.messages import ErrorObject, Shown

if TYPE_CHECKING:
    import asyncio

    from ..auth.principal import Principal
    from ..jsonrpc.peer.incoming import IncomingRequest
    from ..jsonrpc.policy import Policy
    from .access.decisions import AccessPolicy
    from .access.guard import Guard
    from .handler_run import HandlerRun

__all__ = [
    "LATER",
    "Action",
    "Answer",
    "HandledRequest",
    "HandlerEntry",
    "Later",
    "Refuse",
    "ResultRenderer",
    "Run",
    "context_of",
]


class HandledRequest(Protocol):
    """What the engine needs of a request that runs a handler."""

    message: IncomingRequest
    connection: Any
    # What is served: a tool, a method, a URI.
    name: str
    # What handlers get; None until one needs it.
    context: Any
    run: HandlerRun | None
    task: asyncio.Task[None] | None
    # The timeout of the handler.
    limit: asyncio.Timeout | None
    # Whether the request was cancelled, timed out, or the server stops.
    cancelled: bool

    @property
    def method(self) -> str:
        """The method that was called."""

    @property
    def policy(self) -> Policy:
        """How errors are written."""

    @property
    def principal(self) -> Principal | None:
        """The authenticated caller; None without authentication, and for an anonymous one."""

    @property
    def tenant(self) -> str | None:
        """The tenant of the caller; None without tenants."""

    @property
    def access(self) -> AccessPolicy:
        """What decides on access beside the guards of entries."""

    @property
    def keeps_params(self) -> bool:
        """Whether a handler that may ask its client needs the params as they came."""

    def make_context(self) -> None:
        """Make the context."""

    def stop(self) -> None:
        """Cancel the handler."""


def context_of(request: HandledRequest) -> Any:
    """Return the context of a request, made now if it had none."""
    if request.context is None:
        request.make_context()
    return request.context


class HandlerArguments(Protocol):
    """How a handler is called."""

    names: tuple[str, ...]
    is_async: bool
    wants_context: bool
    call: Callable[[Any, Any], Any]


class HandlerEntry(Protocol):
    """What the engine needs of an entry whose handler it runs."""

    name: str
    # Called on the event loop, not on a thread.
    inline: bool
    # In seconds.
    timeout: float | None
    # Who may use and see it; None is everyone.
    guard: Guard | None
    # The servers it was mounted through, the outermost first, whose middleware is around it.
    path: tuple[Any, ...]

    @property
    def arguments(self) -> HandlerArguments:
        """How the handler is called."""

    @property
    def on_thread(self) -> bool:
        """Whether the handler would block the event loop."""


class ResultRenderer(Protocol):
    """Makes results of what handlers of one kind return and raise.

    `entry` is None for a value that a middleware answered with in place of an entry that is not
    registered.
    """

    def finish(self, entry: Any, request: Any, value: Any) -> Any:
        """Return the result in its wire form."""

    def fail(self, entry: Any, request: Any, error: BaseException) -> Any:
        """Return the result, or the `ErrorObject`, of a failed handler."""


class Answer(Shown, Struct, frozen=True, eq=False):
    """Answer a request with a result, or with an error that is a result of its method."""

    result: Any
    # Called after the answer was sent.
    then: Callable[[], object] | None = None


class Refuse(Shown, Struct, frozen=True, eq=False):
    """Answer a request with an error."""

    error: ErrorObject
    kind: str


class Run(Shown, Struct, frozen=True, eq=False):
    """Call the handler of an entry, and answer with what the renderer makes of its value."""

    renderer: ResultRenderer
    entry: HandlerEntry
    values: Any


class Later(Struct, frozen=True, eq=False):
    """Leave a request open: something else answers it."""


LATER: Final = Later()

Action: TypeAlias = Answer | Refuse | Run | Later

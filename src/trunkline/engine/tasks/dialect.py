"""What the engine needs of a protocol that has tasks, and of its requests and connections.

The engine decides when a task starts, changes and ends. The dialect of a protocol decides what is
written about it: the members of its record, results and errors, notifications and questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..request import HandledRequest
from .records import InputResponse, Record, TaskOutcome

if TYPE_CHECKING:
    import asyncio

    from msgspec import Raw

    from ...auth.principal import Principal
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ...jsonrpc.peer.peer import Peer
    from ...jsonrpc.policy import Policy
    from ..handler_run import InputQuestion
    from ..limits import TaskSettings
    from ..runner import RequestRunner

__all__ = ["TaskConnection", "TaskDialect", "TaskRequest"]


class TaskConnection(Protocol):
    """What the engine needs of the connection of a task, or of a request that waits for one."""

    loop: asyncio.AbstractEventLoop
    peer: Peer
    runner: RequestRunner

    @property
    def client_key(self) -> str | None:
        """What tells the clients apart that the connection serves; None if it serves one."""

    def answer(self, asked: IncomingRequest, outcome: Any, policy: Policy) -> None:
        """Answer a request with a result or an `ErrorObject`."""


class TaskRequest(HandledRequest, Protocol):
    """What the engine needs of a request that becomes a task, or waits for one."""

    @property
    def principal(self) -> Principal | None:
        """The authenticated caller."""

    @property
    def principal_key(self) -> str | None:
        """What its tasks are bound to; None without a principal."""

    @property
    def tenant(self) -> str | None:
        """The tenant of the caller; None without tenants."""


class TaskDialect(Protocol[Record]):
    """How one protocol writes its tasks. `request` is its own type of request."""

    # What runs as a task, for the log: "tool".
    kind: str
    # Its type of record, which has its statuses.
    record_type: type[Record]

    # -- records -----------------------------------------------------------------------------

    def members(self, request: Any, settings: TaskSettings) -> dict[str, Any]:
        """Return the fields of a new record that `TaskRecord` does not have."""

    def is_listed(self, record: Record) -> bool:
        """Return True if its requestor finds a task without its id."""

    def outcome(self, record: Record, request: Any, outcome: Any) -> TaskOutcome:
        """Return the final state of a task from the result or `ErrorObject` of its handler."""

    def failure(self, record: Record, request: Any | None, message: str) -> TaskOutcome:
        """Return the final state of a task that failed without an outcome of its handler.

        `request` is the one that became the task, if this server ran it.
        """

    # -- messages ----------------------------------------------------------------------------

    def created(self, record: Record, request: Any) -> Any:
        """Return the result of a request that became a task."""

    def ending(self, record: Record | None, request: Any) -> Any:
        """Return the answer to a request that waited for a task; None is a task that is gone."""

    def notify_status(self, record: Record, request: Any | None, *, is_new: bool) -> None:
        """Notify clients that a task has changed; `is_new`: also its status.

        `request` is the one that became the task, if this server ran it.
        """

    def report(self, record: Record, request: Any, method: str, params: Any) -> None:
        """Send a notification of the handler of a task, or drop it."""

    # -- questions ---------------------------------------------------------------------------

    def question(self, question: InputQuestion, request: Any) -> Raw:
        """Return a question as the record keeps it."""

    def is_carried(self, record: Record) -> bool:
        """Return True if questions are sent on the requests that wait for the task.

        Otherwise clients find them in the state of the task.
        """

    def can_carry(self, question: Raw, request: Any) -> bool:
        """Return True if a question may be sent on a request that waits for its task."""

    async def carry(self, record: Record, question: Raw, request: Any) -> InputResponse | None:
        """Send a question on a request that waits for its task.

        Returns the client's response, or None if the question was aborted with the request.
        """

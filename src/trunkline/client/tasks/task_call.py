"""`TaskHandle`: a tool call that runs as a task.

A handle is valid beyond the wait for it, and beyond the connection: the task id is enough to get
another. It sends requests only when a method is called or awaited.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ...mcp.types import TaskStatus
from ..requests.tool_result import ToolResult, tool_result
from .poller import TaskPoller

if TYPE_CHECKING:
    from ..requests.sender import RequestSender

__all__ = ["TaskHandle"]

T = TypeVar("T")

_DONE: Final = "completed"


class TaskHandle(Generic[T]):
    """A tool call that became a task: poll it, wait for its result, or cancel it.

    A tool that returned at once has a result and no task; its `id` is None.
    """

    __slots__ = ("_connection", "_poller", "_result", "_type")

    def __init__(
        self,
        sender: RequestSender,
        result_type: Any,
        poller: TaskPoller | None = None,
        result: ToolResult[T] | None = None,
    ) -> None:
        self._connection = sender.connection
        self._type = result_type
        self._poller = poller
        self._result = result

    @property
    def id(self) -> str | None:
        """The id of the task, for `client.task(id)`."""
        return None if self._poller is None else self._poller.id

    @property
    def status(self) -> TaskStatus | None:
        """The last known status of the task; None if there is none yet."""
        if self._poller is None:
            return _DONE
        state = self._poller.state
        return None if state is None else state.status

    @property
    def message(self) -> str | None:
        """The server's message about the status, for display."""
        state = None if self._poller is None else self._poller.state
        return None if state is None else state.status_message

    def done(self) -> bool:
        """Return True if the task has ended, as of its last known status."""
        return self._poller is None or self._poller.has_ended

    async def refresh(self) -> TaskStatus:
        """Poll the task; its input requests are answered from then on.

        Raises:
            PeerError: the task is unknown, or has expired.
            RequestAborted: the request timed out, or the connection is lost.
        """
        if self._poller is None:
            return _DONE
        return (await self._poller.refresh()).status

    async def result(self) -> ToolResult[T]:
        """Wait for the result, and return it; cancelling the wait does not cancel the task.

        Raises:
            PeerError: the task failed, or is unknown; a tool that ran and failed is a result whose
                `is_error` is true.
            Cancelled: it was cancelled.
            InputRequestFailed: an input request of the task could not be answered.
            RequestAborted: a request timed out, or the connection is lost.
        """
        if self._result is None and self._poller is not None:
            session = self._connection.current()
            raw = await self._poller.outcome(session)
            self._result = tool_result(raw, self._type, session.revision)
        if self._result is None:
            raise ValueError("a TaskHandle has a task, or a result")
        return self._result

    async def cancel(self) -> None:
        """Request cancellation of the task; it may take a while, or come too late.

        Raises:
            PeerError: the server rejected it.
            RequestAborted: the request timed out, or the connection is lost.
        """
        if self._poller is not None and not self._poller.has_ended:
            await self._poller.cancel()

    async def __aiter__(self) -> AsyncIterator[TaskStatus]:
        """Yield the status, then each change of it or of its message, until the task ends."""
        if self._poller is None or self._poller.has_ended:
            status = self.status
            if status is not None:
                yield status
            return
        async for status in self._poller.statuses(self._connection.current()):
            yield status

    def __repr__(self) -> str:
        # Without the id: task ids are bearer capabilities.
        return f"<TaskHandle, {'done at once' if self._poller is None else self.status}>"

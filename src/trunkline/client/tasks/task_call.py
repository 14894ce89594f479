"""A call of a tool that goes on as a task, in the hands of whoever made it.

A `TaskHandle` outlives the wait for it, and the connection: its id is all that is needed to come
back to it. Nothing is asked unless you ask, or wait.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ...mcp.types import TaskStatus
from ..requests.tool_result import ToolResult, tool_result
from .poller import TaskPoller

if TYPE_CHECKING:
    from ..subscriptions.stream import ChangeVerbs

__all__ = ["TaskHandle"]

T = TypeVar("T")

_DONE: Final = "completed"


class TaskHandle(Generic[T]):
    """A call that became a task: ask how it stands, wait for its result, or end it.

    A tool that was done at once has a result and no task; its `id` is None.
    """

    __slots__ = ("_poller", "_result", "_type", "_verbs")

    def __init__(
        self,
        verbs: ChangeVerbs,
        result_type: Any,
        poller: TaskPoller | None = None,
        result: ToolResult[T] | None = None,
    ) -> None:
        self._verbs = verbs
        self._type = result_type
        self._poller = poller
        self._result = result

    @property
    def id(self) -> str | None:
        """What the server calls the task, to come back to it by `client.task(id)`."""
        return None if self._poller is None else self._poller.id

    @property
    def status(self) -> TaskStatus | None:
        """How the task stood when the server last told; None where it has not yet."""
        if self._poller is None:
            return _DONE
        state = self._poller.state
        return None if state is None else state.status

    @property
    def message(self) -> str | None:
        """What the server said about the status, for people."""
        state = None if self._poller is None else self._poller.state
        return None if state is None else state.status_message

    def done(self) -> bool:
        """Say whether the task has ended, as far as is known."""
        return self._poller is None or self._poller.has_ended

    async def refresh(self) -> TaskStatus:
        """Ask how the task stands. What it asks for is answered from then on.

        Raises:
            PeerError: there is no such task, or not any more.
            RequestAborted: no answer came: time ran out, or the connection is gone.
        """
        if self._poller is None:
            return _DONE
        return (await self._poller.refresh()).status

    async def result(self) -> ToolResult[T]:
        """Return the result, once there is one; who is cancelled meanwhile leaves the task be.

        Raises:
            PeerError: the task failed, or is not known any more; a tool that ran and failed is
                a result whose `is_error` is true.
            Cancelled: it was cancelled.
            InputRequestFailed: what it asked for could not be given.
            RequestAborted: no answer came: time ran out, or the connection is gone.
        """
        if self._result is None and self._poller is not None:
            session = self._verbs._connected()
            raw = await self._poller.outcome(session)
            self._result = tool_result(raw, self._type, session.revision)
        if self._result is None:
            raise ValueError("a call has a task, or a result")
        return self._result

    async def cancel(self) -> None:
        """Ask the server to end the task; it may take its time, and may have ended before.

        Raises:
            PeerError: the server does not.
            RequestAborted: no answer came: time ran out, or the connection is gone.
        """
        if self._poller is not None and not self._poller.has_ended:
            await self._poller.cancel()

    async def __aiter__(self) -> AsyncIterator[TaskStatus]:
        """Give the status as it is, then each change of it or of its message, to the end."""
        if self._poller is None or self._poller.has_ended:
            status = self.status
            if status is not None:
                yield status
            return
        async for status in self._poller.statuses(self._verbs._connected()):
            yield status

    def __repr__(self) -> str:
        # Without the id: whoever has that may ask for the result, where nobody asks who it is.
        return f"<TaskCall, {'done at once' if self._poller is None else self.status}>"

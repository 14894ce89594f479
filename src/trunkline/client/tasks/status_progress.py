"""Progress of tasks of 2026-07-28: each new status message is a report for `on_progress`.

The rules that live here, and only here:

* Tasks of the extension have no progress notifications, so their status messages stand for them.
  The number counts the messages, there is no total, and the text is the message.    [SEP-2663]
* The message of a task that failed or was cancelled is not progress: its error has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..session.request import OnProgress

if TYPE_CHECKING:
    from ..connect.connection import ClientConnection
    from .poller import TaskState

__all__ = ["StatusCount", "StatusProgress"]

_WITHOUT_PROGRESS: Final = ("failed", "cancelled")


class StatusCount(int):
    """How many status messages a task has had, in place of a progress that it does not state."""


class StatusProgress:
    """Calls `on_progress` for each new status message of one task."""

    __slots__ = ("_connection", "_count", "_message", "_on_progress")

    def __init__(self, connection: ClientConnection, on_progress: OnProgress) -> None:
        self._connection = connection
        self._on_progress = on_progress
        self._count = 0
        self._message: str | None = None

    def update(self, state: TaskState) -> None:
        """Report the message of a state if it is new."""
        message, session = state.status_message, self._connection.session
        is_new = bool(message) and message != self._message
        if not message or not is_new or state.status in _WITHOUT_PROGRESS or session is None:
            return
        self._message = message
        self._count += 1
        session.report_progress(self._on_progress, StatusCount(self._count), message)

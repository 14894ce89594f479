"""Progress of a task as its status message: the newest report, written at a bounded rate.

A protocol whose tasks have no progress notifications shows what a handler reports in the state of
the task. `TaskProgress` collects the reports of one call, from any thread, and writes the newest
into the record of the task.

The rules that live here, and only here:

* Reports are coalesced: the first is written at once, then the newest of each interval. A handler
  that reports in a loop costs no more store operations than one that reports twice a second.
* A report that did not grow is dropped, as on the wire.
* What was reported before the call became a task is the message that the task begins with. What was
  reported last is the message of a completed task, unless its outcome has one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import Any, Final, NamedTuple

from ...jsonrpc.messages import shown_tuple
from ...store.errors import StoreError, StoreFull

__all__ = ["ProgressReport", "TaskProgress"]

_log: Final = logging.getLogger("trunkline.server")

# Between two writes of one task. Clients poll once a second by default; a subscriber sees twice
# as much.
MIN_WRITE_INTERVAL_S: Final = 0.5
# Before another attempt after a store error.
RETRY_DELAY_S: Final = 5.0


class ProgressReport(NamedTuple):
    """What a handler reported."""

    progress: float
    total: float | None
    message: str | None

    def __repr__(self) -> str:
        return shown_tuple(self)


class TaskProgress:
    """The progress that the handler of one call reports, if the call may be a task."""

    __slots__ = (
        "_describe",
        "_has_failed",
        "_is_pending",
        "_lock",
        "_loop",
        "_newest",
        "_spawn",
        "_timer",
        "_write",
        "_written",
    )

    def __init__(self, describe: Callable[[ProgressReport], str]) -> None:
        # Returns the text of a report, as the protocol shows it.
        self._describe = describe
        self._lock = threading.Lock()
        self._newest: ProgressReport | None = None
        # The report that the record shows.
        self._written: ProgressReport | None = None
        # Whether a write is scheduled, under way, or waits for the interval to pass.
        self._is_pending = False
        # Set while the task runs.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._spawn: Callable[[Coroutine[Any, Any, None]], object] | None = None
        self._write: Callable[[str], Awaitable[object]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        # Whether the store did not take the last message.
        self._has_failed = False

    def report(self, progress: float, total: float | None, message: str | None) -> bool:
        """Take a report, on any thread; return True if the call is a task."""
        with self._lock:
            loop, newest = self._loop, self._newest
            if not progress > (-inf if newest is None else newest.progress):  # or not a number
                return loop is not None
            self._newest = ProgressReport(progress, total, message)
            if loop is None or self._is_pending:
                return loop is not None
            self._is_pending = True
        self._wake(loop)
        return True

    def first_message(self) -> str:
        """Return the message that a new task begins with; "" without a report."""
        self._written = self._newest
        return self._text(self._written)

    def last_message(self) -> str:
        """Return the message of the newest report; "" without one."""
        return self._text(self._newest)

    def _text(self, report: ProgressReport | None) -> str:
        return "" if report is None else self._describe(report)

    def attach(
        self,
        loop: asyncio.AbstractEventLoop,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        write: Callable[[str], Awaitable[object]],
    ) -> None:
        """Write reports from now on: the call is a task.

        `write` stores a message, `spawn` runs a coroutine in the background.
        """
        self._spawn, self._write = spawn, write
        with self._lock:
            self._loop = loop
            self._is_pending = is_pending = self._newest is not self._written
        if is_pending:
            self._wake(loop)

    def detach(self) -> None:
        """Write nothing more: the task has ended, and later reports are dropped."""
        self._spawn = self._write = None
        with self._lock:
            self._is_pending = True  # no report wakes the event loop any more
        if self._timer is not None:
            self._timer.cancel()

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(self._flush)
        except RuntimeError:
            pass  # the event loop is closed

    def _flush(self) -> None:
        """Begin to write the newest report, unless the record shows it; on the event loop."""
        self._timer = None
        with self._lock:
            report = self._newest
            if report is None or report is self._written or self._spawn is None:
                self._is_pending = False
                return
        self._spawn(self._store(report))

    async def _store(self, report: ProgressReport) -> None:
        delay = MIN_WRITE_INTERVAL_S
        try:
            if self._write is not None:
                await self._write(self._text(report))
            self._written, self._has_failed = report, False
        except StoreFull as full:
            self._written = report  # a later message may be shorter
            self._log_failure(full)
        except StoreError as error:
            delay = RETRY_DELAY_S
            self._log_failure(error)
        finally:
            if self._write is not None and self._loop is not None:
                self._timer = self._loop.call_later(delay, self._flush)

    def _log_failure(self, error: StoreError) -> None:
        if not self._has_failed:
            self._has_failed = True
            _log.warning("progress of a task not stored, trying again: %s", error)

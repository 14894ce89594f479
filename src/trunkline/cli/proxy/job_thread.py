"""A thread that runs jobs in order, so that large messages do not hold up the event loop.

The rules that live here, and only here:

* Jobs run one after another, in the order in which they were submitted.
* The thread is a daemon: a job that is under way does not keep the process from exiting.
* `on_drained` is called on the thread, when less than half of `MAX_BACKLOG_BYTES` is left.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Final

__all__ = ["MAX_BACKLOG_BYTES", "JobThread"]

_log: Final = logging.getLogger("trunkline.cli")

# Of what waits, beyond which a sender is to be paused. A single message may be larger.
MAX_BACKLOG_BYTES: Final = 16 * 1024 * 1024


class JobThread:
    """Runs jobs on a thread of its own, which starts with the first one."""

    def __init__(self, on_drained: Callable[[], object]) -> None:
        self.on_drained = on_drained
        self._changed = Condition()
        self._jobs: deque[tuple[int, Callable[[], object]]] = deque()
        # Jobs that wait or run, and their sizes.
        self._count = 0
        self._bytes = 0
        self._thread: Thread | None = None

    @property
    def is_idle(self) -> bool:
        """True if no job waits or runs."""
        return self._count == 0

    @property
    def is_full(self) -> bool:
        """True if more than `MAX_BACKLOG_BYTES` wait."""
        return self._bytes > MAX_BACKLOG_BYTES

    def submit(self, size: int, job: Callable[[], object]) -> None:
        """Run a job after those before it; `size` is its weight in bytes."""
        with self._changed:
            self._jobs.append((size, job))
            self._count += 1
            self._bytes += size
            self._changed.notify_all()
        if self._thread is None:
            self._thread = Thread(target=self._run, name="trunkline-observer", daemon=True)
            self._thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all jobs are done; return False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.is_idle, timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs)
                size, job = self._jobs.popleft()
            try:
                job()
            except Exception:  # noqa: BLE001  # the jobs after it still have to run
                _log.exception("proxy observer: a job failed")
            finally:
                with self._changed:
                    was_much = self._bytes > MAX_BACKLOG_BYTES // 2
                    self._count -= 1
                    self._bytes -= size
                    is_drained = was_much and self._bytes <= MAX_BACKLOG_BYTES // 2
                    self._changed.notify_all()
            if is_drained:
                self.on_drained()

"""Rate limit of the warnings that clients cause.

A client decides how often it sends something that is logged, and a client that is disconnected can
connect again. So the limit belongs to the listener, not to the connection.

The rules that live here, and only here:

* Of each kind of warning, 10 are logged per minute; further ones are logged at debug level.
* Suppressed warnings are counted. The count is logged at the end of the minute, or of the listener.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

__all__ = ["LogLimit"]

_log: Final = logging.getLogger("trunkline.server")

# Of one kind, within the interval: enough to see what is wrong.
MAX_LOGGED: Final = 10
INTERVAL_S: Final = 60.0


class LogLimit:
    """The warnings of one listener, or of one connection without a listener."""

    __slots__ = ("_counts", "_loop", "_timer", "_until", "is_shared")

    def __init__(self, loop: asyncio.AbstractEventLoop, *, is_shared: bool = False) -> None:
        # Whether it outlives a connection.
        self.is_shared = is_shared
        self._loop = loop
        # By kind, which is the text without its facts, since the start of the interval.
        self._counts: dict[str, int] = {}
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def warning(self, text: str, *facts: object) -> None:
        """Log a warning, at debug level if there were too many of its kind."""
        now = self._loop.time()
        if now >= self._until:
            self._report()
            self._until = now + INTERVAL_S
        count = self._counts[text] = self._counts.get(text, 0) + 1
        if count <= MAX_LOGGED:
            _log.warning(text, *facts)
            return
        _log.debug(text, *facts)
        if self._timer is None:
            self._timer = self._loop.call_at(self._until, self._report)

    def connection_ended(self) -> None:
        """Log what was suppressed, if this is the limit of one connection."""
        if not self.is_shared:
            self.end()

    def end(self) -> None:
        """Log what was suppressed, and stop."""
        self._report()

    def _report(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        counts, self._counts = self._counts, {}
        for text, count in counts.items():
            if count > MAX_LOGGED:
                _log.warning("%d more warnings suppressed: %s", count - MAX_LOGGED, text)

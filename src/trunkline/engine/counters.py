"""Counters of what a server has refused, dropped and closed; each kind is logged too.

A kind of event is logged at most once per second: a client that floods a server would otherwise
fill the disk through the log.
"""

from __future__ import annotations

import logging
import time
from typing import Final

__all__ = ["Counters", "reached"]

_log: Final = logging.getLogger("trunkline.server")

# Seconds between two log lines about the same kind of event.
_LOG_INTERVAL_S: Final = 1.0
_NEVER: Final = (float("-inf"), 0)

# Limits that clients share, by the name under which the refusals of one client are counted.
_SHARED: Final = {"client_in_flight": "in_flight_overall", "client_bytes": "server_bytes"}


class Counters:
    """What a server has refused, dropped and closed so far."""

    def __init__(self) -> None:
        self.refused: dict[str, int] = {}
        # Results of handlers for clients with a whole budget of unread answers.
        self.dropped_answers = 0
        # Notifications for handlers of the author.
        self.dropped_notifications = 0
        # `subscriptions/listen` streams of clients that do not read.
        self.dropped_streams = 0
        # Changes that a session got later, because it did not read.
        self.deferred_changes = 0
        # Calls of tools whose arguments fit after texts in them were read as values.
        self.coerced_calls = 0
        # Calls that waited for a thread for longer than a second.
        self.late_threads = 0
        # Connections of clients that did not read.
        self.closed_unread = 0
        # Connections beyond the limit of a listener, and silent ones that gave way to others.
        self.refused_connections = 0
        self.dropped_connections = 0
        # By kind of event: when it was last logged, and how many were not logged since.
        self._logged: dict[str, tuple[float, int]] = {}

    def refuse(self, limit: str) -> None:
        """Count a request that was refused because of a limit."""
        self.refused[limit] = self.refused.get(limit, 0) + 1
        self.warn(limit, "request refused: %s", reached(limit))

    def drop_notification(self, name: str, why: str) -> None:
        """Count a notification that was dropped."""
        self.dropped_notifications += 1
        self.warn("notification", "notification %s dropped: %s", name, why)

    def is_due(self, kind: str) -> bool:
        """Return True if `warn` would log now."""
        since, _ = self._logged.get(kind, _NEVER)
        return time.monotonic() - since >= _LOG_INTERVAL_S

    def warn(self, kind: str, text: str, *facts: object) -> None:
        """Log a warning, unless one of its kind was logged in the last second."""
        now = time.monotonic()
        since, more = self._logged.get(kind, _NEVER)
        if now - since < _LOG_INTERVAL_S:
            self._logged[kind] = (since, more + 1)
            return
        self._logged[kind] = (now, 0)
        if more:
            text += " (and %d times since this was last logged)"
            facts = (*facts, more)
        _log.warning(text, *facts)


def reached(limit: str) -> str:
    """Return the text about a limit, by the name under which refusals are counted."""
    if limit in _SHARED:
        return f"its client has its share of ServerLimits.{_SHARED[limit]}"
    own = limit.removeprefix("tenant_")
    named = f"ServerLimits.{limit}" if own == limit else f"TenantLimits.{own}"
    return f"{named} is reached"

"""Counters and gauges of a server, for operators: what is at work, waits, was refused or dropped.

`ServerStats` is what `Server.stats` returns. `Counters` is what the modules of the server add to
as they refuse and drop; each kind of event is logged too, at most once in 10 s.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from ..api.core import ServerCore

__all__ = ["Counters", "ServerStats", "stats_of"]

_log: Final = logging.getLogger("trunkline.server")

# Seconds between two log lines about the same kind of event: a client that floods a server would
# otherwise fill the disk through the log.
_LOG_INTERVAL_S: Final = 10.0


class ServerStats(Struct, frozen=True, kw_only=True):
    """Gauges and counters of a server at one moment; bytes as messages have on the wire."""

    # Now.
    connections: int
    in_flight: int
    waiting: int
    held_bytes: int
    unread_bytes: int
    threads_busy: int
    threads_waiting: int
    # Open `subscriptions/listen` requests.
    streams: int
    # Open sessions over HTTP.
    sessions: int
    # Since the server was made. By the limit that was exceeded, such as "connection_bytes".
    refused: dict[str, int]
    dropped_answers: int
    dropped_notifications: int
    dropped_streams: int
    deferred_changes: int
    late_threads: int
    closed_unread: int
    refused_connections: int
    dropped_connections: int


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
        own = limit.removeprefix("tenant_")
        named = f"ServerLimits.{limit}" if own == limit else f"TenantLimits.{own}"
        self.warn(limit, "request refused: %s is reached", named)

    def drop_notification(self, name: str, why: str) -> None:
        """Count a notification that was dropped."""
        self.dropped_notifications += 1
        self.warn("notification", "notification %s dropped: %s", name, why)

    def warn(self, kind: str, text: str, *facts: object) -> None:
        """Log a warning, unless one of its kind was logged in the last 10 s."""
        now = time.monotonic()
        since, more = self._logged.get(kind, (-_LOG_INTERVAL_S, 0))
        if now - since < _LOG_INTERVAL_S:
            self._logged[kind] = (since, more + 1)
            return
        self._logged[kind] = (now, 0)
        if more:
            text += " (and %d times since this was last logged)"
            facts = (*facts, more)
        _log.warning(text, *facts)


def stats_of(core: ServerCore) -> ServerStats:
    """Return the gauges and counters of a server."""
    connections, counters, threads = (
        list(core.runtime.connections),
        core.runtime.counters,
        core.runtime.threads,
    )
    unread = sum(each.transport.backlog for each in connections)
    # What was unread when it was last weighed may have been read since.
    weighed = sum(each.runner.unread.bytes for each in connections)
    return ServerStats(
        connections=len(connections),
        in_flight=core.runtime.in_flight,
        waiting=sum(len(each.runner.waiting) for each in connections),
        held_bytes=core.runtime.budget.used - weighed + unread,
        unread_bytes=unread,
        threads_busy=threads.busy,
        threads_waiting=threads.waiting,
        streams=core.services.streams.open_streams,
        sessions=sum(getattr(each, "sessions", 0) for each in list(core.runtime.listeners)),
        refused=dict(counters.refused),
        dropped_answers=counters.dropped_answers,
        dropped_notifications=counters.dropped_notifications,
        dropped_streams=counters.dropped_streams,
        deferred_changes=counters.deferred_changes,
        late_threads=counters.late_threads,
        closed_unread=counters.closed_unread,
        refused_connections=counters.refused_connections,
        dropped_connections=counters.dropped_connections,
    )

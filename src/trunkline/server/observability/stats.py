"""Counters and gauges of a server, for operators: what is at work, waits, was refused or dropped.

`ServerStats` is what `Server.stats` returns. `engine/counters.py` counts as things happen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from ..api.core import ServerCore

__all__ = ["ServerStats", "stats_of"]


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
    # Clients with a connection, a session or a request, over HTTP and sockets; and the most that
    # one of them has: by what it is, "in_flight", "held_bytes", "received_bytes" (of messages that
    # it is sending) or "threads".
    clients: int
    largest_client: dict[str, int]
    # Since the server was made. By the limit that was exceeded, such as "connection_bytes".
    refused: dict[str, int]
    dropped_answers: int
    dropped_notifications: int
    dropped_streams: int
    deferred_changes: int
    # Calls of tools whose arguments fit after texts in them were read as values.
    coerced_calls: int
    late_threads: int
    closed_unread: int
    refused_connections: int
    dropped_connections: int


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
        clients=len(core.runtime.accounts),
        largest_client=core.runtime.accounts.largest(),
        refused=dict(counters.refused),
        dropped_answers=counters.dropped_answers,
        dropped_notifications=counters.dropped_notifications,
        dropped_streams=counters.dropped_streams,
        deferred_changes=counters.deferred_changes,
        coerced_calls=counters.coerced_calls,
        late_threads=counters.late_threads,
        closed_unread=counters.closed_unread,
        refused_connections=counters.refused_connections,
        dropped_connections=counters.dropped_connections,
    )

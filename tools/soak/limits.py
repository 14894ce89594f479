"""How many clients the HTTP targets of the soak test have, and what their servers have for these.

The rules that live here, and only here:

* What a server has grows with the number of its clients.
* To the server these are one client, since they have one address. They need less than half of
  everything, which is what one client may have while another one floods the server.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["HTTP_CLIENTS", "Capacity", "capacity_for"]

# By target: what they all need of two cores is about what the first of them uses alone.
HTTP_CLIENTS: Final = {"http": 200, "https": 50, "asgi": 50}


class Capacity(NamedTuple):
    """What a server has for all of its clients."""

    connections: int
    sessions: int
    calls: int
    threads: int
    waiting_for_thread: int
    # Of one connection, and of all.
    connection_bytes: int
    server_bytes: int


def capacity_for(clients: int) -> Capacity:
    """Return what a server needs for so many clients, beside a flood."""
    return Capacity(
        # Some clients have two, and one that was closed a moment ago may still count.
        connections=3 * clients,
        # Those that were left stay until they have been idle for long enough.
        sessions=6 * clients,
        # Those of clients that have gone go on for a second.
        calls=4 * clients,
        threads=8,
        waiting_for_thread=clients,
        # An eighth of the second is enough to receive the largest message.
        connection_bytes=8 * 1024 * 1024,
        server_bytes=64 * 1024 * 1024,
    )

"""Known differences of clients and servers that the matrix shows, and why.

A step that fails and has a row here is printed as different. A row whose step passes fails, unless
the difference is a race.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["DIFFERENCES", "Difference", "difference"]


class Difference(NamedTuple):
    """One step that differs, with one client or server or with a pair of them; "" is any."""

    client: str
    server: str
    step: str
    why: str
    transport: str = ""
    era: str = ""
    is_race: bool = False


DIFFERENCES: Final = (
    Difference(
        "TypeScript SDK",
        "",
        "get progress",
        "it drops progress that arrives together with the result",
        transport="stdio",
        is_race=True,
    ),
    Difference(
        "semantic-kernel",
        "server-everything",
        "connect",
        "its handler of `notifications/tools/list_changed`, which the server sends at once, waits "
        "for a list, and it reads nothing meanwhile",
        transport="stdio",
    ),
    Difference(
        "autogen-ext",
        "server-everything",
        "get an image",
        "it opens images with Pillow, which cannot read the one of the server",
    ),
    Difference(
        "smolagents",
        "server-everything",
        "get an image",
        "it gives the first block of a result, which is a text there",
    ),
)


def difference(client: str, server: str, step: str, transport: str, era: str) -> Difference | None:
    """Return what is known of a step of a cell; a client is named without or with its version."""
    for row in DIFFERENCES:
        if (
            client.startswith(row.client)
            and row.server in ("", server)
            and row.step == step
            and row.transport in ("", transport)
            and row.era in ("", era)
        ):
            return row
    return None

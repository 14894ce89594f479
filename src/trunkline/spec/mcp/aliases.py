"""Names under which other systems send methods of MCP.

A notification without `notifications/` before its name is not listed: that is a rule, not
a name. Whether other names are taken at all is a choice of the connection's policy.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ALIASES", "NOTIFICATION", "Alias"]

# What the names of notifications begin with.
NOTIFICATION: Final = "notifications/"


class Alias(NamedTuple):
    """One other name of a method."""

    spelling: str
    official: str
    # The contradiction it was found in.
    ref: str


# fmt: off
ALIASES: Final[tuple[Alias, ...]] = (
    Alias("tool/execute", "tools/call", "K-21"),
    Alias("sampling/create_message", "sampling/createMessage", "K-21"),
    Alias("logging/set_level", "logging/setLevel", "K-21"),
    Alias("logging/logMessage", "notifications/message", "K-53"),
    Alias("notifications/roots/listChanged", "notifications/roots/list_changed", "K-55"),
    Alias("roots/listChanged", "notifications/roots/list_changed", "K-55"),
)
# fmt: on

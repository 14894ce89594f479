"""Other spellings of MCP methods, as other systems send them.

A notification without the prefix `notifications/` is not listed: that is a rule, not a name. The
policy of a connection decides whether other spellings are accepted.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ALIASES", "NOTIFICATION", "Alias"]

# The prefix of the names of notifications.
NOTIFICATION: Final = "notifications/"


class Alias(NamedTuple):
    """Another spelling of a method."""

    spelling: str
    official: str
    # The entry in the list of contradictions.
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

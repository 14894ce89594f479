"""The released revisions of the Model Context Protocol, and windows of them.

Every row under `spec/` that holds only in some revisions has a `Window`; nothing else in the
library compares revision strings.
"""

# No `from __future__ import annotations`: a named tuple would compile each of them as a text.
from typing import Final, NamedTuple

__all__ = [
    "FORMER_NAMES",
    "LATEST",
    "REVISIONS",
    "V2024_11_05",
    "V2025_03_26",
    "V2025_06_18",
    "V2025_11_25",
    "V2026_07_28",
    "Window",
]

V2024_11_05: Final = "2024-11-05"
V2025_03_26: Final = "2025-03-26"
V2025_06_18: Final = "2025-06-18"
V2025_11_25: Final = "2025-11-25"
V2026_07_28: Final = "2026-07-28"

REVISIONS: Final = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28)
LATEST: Final = V2026_07_28

# Names that other systems use for a revision. They count only under a policy that falls back
# to another revision instead of refusing.  [K-15]
FORMER_NAMES: Final = {"2024-10-07": V2024_11_05, "1.0": V2024_11_05, "1": V2024_11_05}


class UnknownRevision(LookupError):
    """No such revision of MCP was released."""


def must_be_released(revision: str) -> None:
    """Raise `UnknownRevision` if no revision has this name; its text lists the released ones."""
    if revision not in REVISIONS:
        known = ", ".join(REVISIONS)
        raise UnknownRevision(
            f"{revision!r} is not a released revision of MCP; expected one of {known}"
        )


class Window(NamedTuple):
    """The revisions in which a fact holds: from `since` up to, but not including, `until`.

    Revision names are dates, so they sort as text.
    """

    since: str = V2024_11_05
    until: str | None = None

    def holds(self, revision: str) -> bool:
        """Return True if `revision` lies in this window."""
        return self.since <= revision and (self.until is None or revision < self.until)


# The two eras. Which of them a revision belongs to is asked of these, never of `LATEST`: a newer
# revision changes what is latest, not the era of those before it.
# A session begins with `initialize`, which agrees on revision and capabilities.
HANDSHAKE: Final = Window(until=V2026_07_28)
# Every request carries its revision and the capabilities of its client.
PER_REQUEST: Final = Window(V2026_07_28)

NEWEST_HANDSHAKE: Final = max(filter(HANDSHAKE.holds, REVISIONS))

"""What the exit status of every verb means. Plain numbers: `--version` loads this too."""

from __future__ import annotations

__all__ = ["EXITS", "FINE", "FOUND", "INTERRUPTED", "MALFORMED", "MISUSED", "UNREACHED"]

FINE = 0
FOUND = 1
MISUSED = 2
UNREACHED = 3
MALFORMED = 6
INTERRUPTED = 130

EXITS = {
    FINE: "fine",
    FOUND: "something was found: a broken rule, a breaking change, a tool that failed",
    MISUSED: "the command was misused, names something there is not, or could not write",
    UNREACHED: "there was no connection, it was lost, or no answer came in time",
    MALFORMED: "the input could not be read at all",
    INTERRUPTED: "interrupted; 143 by SIGTERM and 129 by SIGHUP",
}

"""What the exit status of every verb means. Plain numbers: `--version` loads this too."""

from __future__ import annotations

__all__ = [
    "EXIT_CODES",
    "INTERRUPTED",
    "PROBLEMS_FOUND",
    "SUCCESS",
    "UNREACHABLE",
    "UNREADABLE_INPUT",
    "USAGE_ERROR",
]

SUCCESS = 0
PROBLEMS_FOUND = 1
USAGE_ERROR = 2
UNREACHABLE = 3
UNREADABLE_INPUT = 6
INTERRUPTED = 130

EXIT_CODES = {
    SUCCESS: "fine",
    PROBLEMS_FOUND: "something was found: a broken rule, a breaking change, a tool that failed",
    USAGE_ERROR: "the command was misused, names something there is not, or could not write",
    UNREACHABLE: "there was no connection, it was lost, or no answer came in time",
    UNREADABLE_INPUT: "the input could not be read at all",
    INTERRUPTED: "interrupted; 143 by SIGTERM and 129 by SIGHUP",
}

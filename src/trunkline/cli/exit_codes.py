"""Exit statuses of every verb. Plain numbers, because `--version` loads this module too."""

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
    SUCCESS: "success",
    PROBLEMS_FOUND: "problems found: a broken rule, a breaking change, a failed tool",
    USAGE_ERROR: "wrong usage, a name that does not exist, or output not writable",
    UNREACHABLE: "no connection, a lost connection, or no answer in time",
    UNREADABLE_INPUT: "input that cannot be read",
    INTERRUPTED: "interrupted by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP",
}

"""Request ids up to 2^60-1, and their usage levels."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from ...jsonrpc import IdSource
from ._policy import POLICY

__all__ = [
    "ID_CRITICAL_THRESHOLD",
    "ID_RESERVED_THRESHOLD",
    "ID_WARNING_THRESHOLD",
    "MAX_SAFE_REQUEST_ID",
    "IdUsage",
    "UsageLevel",
    "check_thresholds",
    "safe_increment",
]

UsageLevel: TypeAlias = Literal["normal", "warning", "critical", "reserved"]

MAX_SAFE_REQUEST_ID: Final = POLICY.max_id

# Computed, because two of the original's printed values have wrong digits.
ID_WARNING_THRESHOLD: Final = MAX_SAFE_REQUEST_ID * 80 // 100
ID_CRITICAL_THRESHOLD: Final = MAX_SAFE_REQUEST_ID * 90 // 100
ID_RESERVED_THRESHOLD: Final = MAX_SAFE_REQUEST_ID * 96 // 100

_LEVELS: Final[tuple[tuple[int, UsageLevel], ...]] = (
    (ID_RESERVED_THRESHOLD, "reserved"),
    (ID_CRITICAL_THRESHOLD, "critical"),
    (ID_WARNING_THRESHOLD, "warning"),
)


class IdUsage(NamedTuple):
    """The share of the ids of a connection that is used."""

    level: UsageLevel
    percentage: float


def safe_increment(current: int) -> int:
    """Return the id after `current`.

    Raises:
        IdsExhausted: `current` is the last one; a new connection starts a new count.
    """
    return IdSource(first=current + 1, maximum=MAX_SAFE_REQUEST_ID).next()


def check_thresholds(id: int) -> IdUsage:
    """Return the usage at `id`."""
    percentage = id / MAX_SAFE_REQUEST_ID * 100
    for threshold, level in _LEVELS:
        if id >= threshold:
            return IdUsage(level, percentage)
    return IdUsage("normal", percentage)

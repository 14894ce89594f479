"""Errors that say nothing of what was asked about: whoever asks again may be answered.

A server that is busy, or cannot reach its store for a moment, has not lost the task that it is
asked about. Only what can be asked twice without harm is asked again.

The rules that live here, and only here:

* What is pardoned is an error that says when to come again, an internal one, and an answer that
  did not come in time; and of those so many in a row.
* Who says when to come again is not asked before, within reason.
"""

from __future__ import annotations

from typing import Final

from ...errors import PeerError, RequestTimeout, TrunklineError
from ...spec.error_kinds import ErrorKind

__all__ = ["RetryPolicy"]

# How many in a row. A server that has nothing else to say for so long is not about to.
MOST: Final = 5
# Seconds before it is asked again, where it does not say; each time twice as many.
FIRST_WAIT: Final = 0.25
# A server that says when to come again is believed up to here.
LONGEST_WAIT: Final = 60.0

_COME_AGAIN: Final = "retryAfterMs"


class RetryPolicy:
    """How often in a row it went wrong to ask about one thing."""

    __slots__ = ("_in_a_row",)

    def __init__(self) -> None:
        self._in_a_row = 0

    def over(self) -> None:
        """Learn that an answer has come."""
        self._in_a_row = 0

    def next_delay(self, error: TrunklineError, *, unsaid: bool = True) -> float | None:
        """Return after how many seconds to ask again, or None where that has no use.

        Without `unsaid` only a server is asked again that has said when.
        """
        wish = _wish(error)
        if not unsaid and _said(error) is None:
            wish = None
        if wish is None or self._in_a_row >= MOST:
            self._in_a_row = 0  # whoever asks later begins anew
            return None
        wait = FIRST_WAIT * 2.0**self._in_a_row
        self._in_a_row += 1
        return max(wish, wait)


def _wish(error: TrunklineError) -> float | None:
    """Return how long a server wishes to be left alone, or None where it did not only stumble."""
    said = _said(error)
    if said is None:
        is_internal = isinstance(error, PeerError) and error.kind == ErrorKind.INTERNAL_ERROR
        return 0.0 if is_internal or isinstance(error, RequestTimeout) else None
    # Compared before it is divided: an integer of JSON may be too large for a float.
    return max(min(said, LONGEST_WAIT * 1000) / 1000, 0.0)


def _said(error: TrunklineError) -> int | float | None:
    """Return after how many milliseconds a server said to come again."""
    if not isinstance(error, PeerError) or not isinstance(error.data, dict):
        return None
    said = error.data.get(_COME_AGAIN)
    return said if type(said) is int or type(said) is float else None

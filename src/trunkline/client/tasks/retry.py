"""Retries of idempotent task requests after transient errors, with exponential backoff.

A server that is busy, or whose store is unavailable for a moment, has not lost the task.

The rules that live here, and only here:

* Transient are: an error with `retryAfterMs`, an internal error, and a request that timed out; at
  most `MAX_RETRIES` in a row.
* `retryAfterMs` is honoured, up to 60 s.
"""

from __future__ import annotations

from typing import Final

from ...concurrency.backoff import backoff
from ...errors import PeerError, RequestTimeout, TrunklineError
from ...spec.error_kinds import ErrorKind

__all__ = ["RetryPolicy"]

MAX_RETRIES: Final = 5
# The longest delay before the first retry; each bound is twice the one before.
FIRST_DELAY_S: Final = 0.25
# The longest delay: a longer `retryAfterMs` is cut.
MAX_DELAY_S: Final = 60.0


class RetryPolicy:
    """Decides whether a request is repeated, and when."""

    __slots__ = ("_delays", "_in_a_row")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Count errors from 0 again: a reply arrived."""
        self._in_a_row = 0
        self._delays = backoff(FIRST_DELAY_S, MAX_DELAY_S)

    def next_delay(self, error: TrunklineError, *, needs_hint: bool = False) -> float | None:
        """Return the seconds to wait before a retry, or None if there should be none.

        With `needs_hint` only an error with `retryAfterMs` is retried.
        """
        hint = _retry_after_s(error)
        is_internal = isinstance(error, PeerError) and error.kind == ErrorKind.INTERNAL_ERROR
        is_transient = not needs_hint and (is_internal or isinstance(error, RequestTimeout))
        if (hint is None and not is_transient) or self._in_a_row >= MAX_RETRIES:
            self.reset()
            return None
        self._in_a_row += 1
        return max(hint or 0.0, next(self._delays))


def _retry_after_s(error: TrunklineError) -> float | None:
    if not isinstance(error, PeerError) or not isinstance(error.data, dict):
        return None
    hint = error.data.get("retryAfterMs")
    if type(hint) is not int and type(hint) is not float:
        return None
    # Compared before it is divided: a JSON integer may be too large for a float.
    return max(min(hint, MAX_DELAY_S * 1000) / 1000, 0.0)

"""Exponential backoff: the delays between attempts that fail."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["backoff"]


def backoff(first_s: float, longest_s: float, *, factor: float = 2.0) -> Iterator[float]:
    """Yield the delays between attempts, in seconds: `first_s`, growing up to `longest_s`.

    The series does not end; the caller bounds the number of attempts or the total time.
    """
    delay = first_s
    while True:
        yield min(delay, longest_s)
        # Not beyond the bound: a float that doubles for ever would overflow.
        delay = min(delay * factor, longest_s)

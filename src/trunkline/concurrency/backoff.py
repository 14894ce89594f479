"""Exponential backoff with jitter: the delays between attempts that fail.

The rules that live here, and only here:

* A delay is random, between half of its value in the series and all of it: clients that a server
  lost at the same moment do not come back at the same moment. The bounds of a series hold for its
  sum as well: n delays take at least half as long as without jitter, and never longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import urandom

__all__ = ["backoff", "jittered"]


def _uniform() -> float:
    """Return a random number from 0 up to 1."""
    # Not from `random`, which imports hashlib: most processes never retry.
    return int.from_bytes(urandom(4), "big") / 2**32


def jittered(
    seconds: float,
    least: float = 0.5,
    most: float = 1.0,
    *,
    random: Callable[[], float] | None = None,
) -> float:
    """Return `seconds` times a random factor between `least` and `most`.

    `random` returns numbers from 0 to 1, for tests.
    """
    source = _uniform if random is None else random
    return seconds * (least + (most - least) * source())


def backoff(
    first_s: float,
    longest_s: float,
    *,
    factor: float = 2.0,
    least: float = 0.5,
    random: Callable[[], float] | None = None,
) -> Iterator[float]:
    """Yield the delays between attempts, in seconds: `first_s`, growing up to `longest_s`.

    Each is multiplied by a random factor between `least` and 1. The series does not end; the
    caller bounds the number of attempts or the total time.
    """
    delay = first_s
    while True:
        yield jittered(min(delay, longest_s), least, random=random)
        # Not beyond the bound: a float that doubles for ever would overflow.
        delay = min(delay * factor, longest_s)

"""How much the tests try: a share of it by default, all of it with `--full`.

    settings(max_examples=examples(200))   # 50, or 200 with --full
    for pair in share(pairs): ...          # every fifth, or all with --full

What a test asserts of each example is the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from hypothesis import HealthCheck, settings

T = TypeVar("T")

# Of what hypothesis tries with `--full`, so much is tried without, in percent.
_PERCENT: Final = 25
# One of so many cases. Prime, so that every row and column of a product has its turn.
_ONE_OF: Final = 5

_full = False


def choose(*, full: bool) -> None:
    """Set how much is tried, before any test is imported."""
    global _full
    _full = full
    settings.register_profile(
        "trunkline",
        max_examples=examples(100),
        # How long an example takes is no failure: machines are busy.
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("trunkline")


def is_full() -> bool:
    """Return True if all is tried."""
    return _full


def examples(count: int) -> int:
    """Return how many of `count` examples are tried."""
    return count if _full else count * _PERCENT // 100


def share(cases: Iterable[T]) -> Iterator[T]:
    """Return those of `cases` that are tried."""
    return islice(cases, 0, None, 1 if _full else _ONE_OF)

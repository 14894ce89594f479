"""Delays grow from the first to the longest, and stay there."""

from __future__ import annotations

from itertools import islice

import pytest

from trunkline.concurrency.backoff import backoff


@pytest.mark.parametrize(
    ("first", "longest", "factor", "expected"),
    [
        (0.1, 0.5, 2.0, [0.1, 0.2, 0.4, 0.5, 0.5]),
        (1.0, 10.0, 3.0, [1.0, 3.0, 9.0, 10.0, 10.0]),
        (2.0, 0.5, 2.0, [0.5, 0.5]),
        (0.0, 1.0, 2.0, [0.0, 0.0]),
    ],
)
def test_delays_grow_by_the_factor_up_to_the_longest(
    first: float, longest: float, factor: float, expected: list[float]
) -> None:
    assert list(islice(backoff(first, longest, factor=factor), len(expected))) == expected


def test_delays_never_overflow() -> None:
    assert next(islice(backoff(1.0, 60.0), 5000, None)) == 60.0

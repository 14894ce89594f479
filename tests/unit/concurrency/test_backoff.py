"""Delays grow from the first to the longest, stay there, and are random within bounds."""

from __future__ import annotations

from itertools import islice

import pytest

from trunkline.concurrency.backoff import backoff, jittered


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
    delays = backoff(first, longest, factor=factor, random=lambda: 1.0)
    assert list(islice(delays, len(expected))) == expected


def test_delays_never_overflow() -> None:
    assert next(islice(backoff(1.0, 60.0, random=lambda: 1.0), 5000, None)) == 60.0


@pytest.mark.parametrize(("given", "expected"), [(0.0, 4.0), (0.5, 6.0), (1.0, 8.0)])
def test_a_delay_is_between_half_of_its_value_and_all_of_it(given: float, expected: float) -> None:
    assert next(islice(backoff(1.0, 60.0, random=lambda: given), 3, None)) == expected


def test_jitter_does_not_change_how_delays_grow() -> None:
    numbers = iter((0.0, 1.0, 0.0, 1.0))
    delays = backoff(1.0, 60.0, random=lambda: next(numbers))
    assert list(islice(delays, 4)) == [0.5, 2.0, 2.0, 8.0]


def test_delays_without_jitter_have_a_least_factor_of_one() -> None:
    assert list(islice(backoff(1.0, 60.0, least=1.0), 4)) == [1.0, 2.0, 4.0, 8.0]


def test_two_series_differ_and_keep_the_bounds() -> None:
    series = [list(islice(backoff(1.0, 8.0), 8)) for _ in range(20)]
    assert len({tuple(each) for each in series}) == 20
    exact = [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0]
    for each in series:
        assert all(most / 2 <= one <= most for one, most in zip(each, exact, strict=True))


def test_a_single_delay_is_spread_between_two_factors() -> None:
    assert jittered(10.0, 1.0, 1.1, random=lambda: 0.0) == 10.0
    assert jittered(10.0, 1.0, 1.1, random=lambda: 1.0) == pytest.approx(11.0)
    assert all(5.0 <= jittered(10.0) <= 10.0 for _ in range(100))

"""The costs that are limited without a clock."""

from __future__ import annotations

import pytest

from bench.limits import Limit, calls, limits, modules


@pytest.mark.parametrize("limit", limits(), ids=lambda limit: limit.name)
def test_a_cost_stays_within_its_limit(limit: Limit) -> None:
    assert limit.count() <= limit.most


@pytest.mark.parametrize("limit", limits(), ids=lambda limit: limit.name)
def test_a_limit_is_near_enough_to_be_felt(limit: Limit) -> None:
    # A limit of twice the cost would let the path double unnoticed.
    assert limit.count() * 2 >= limit.most


def test_the_meter_counts_calls() -> None:
    def twice() -> None:
        len("")
        len("")

    assert calls(twice) == 2


def test_the_meter_counts_modules() -> None:
    assert modules("-c", "import colorsys") == 1

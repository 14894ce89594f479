"""The costs that are limited without a clock."""

from __future__ import annotations

import asyncio

import pytest

from bench.limits import Limit, calls, limits, modules, ticks


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


def test_the_meter_counts_what_a_program_loads_for_its_input() -> None:
    program = "import sys\nif sys.stdin.read(): import colorsys"
    assert modules("-c", program) == 0
    assert modules("-c", program, given=b"go") == 1


def test_the_meter_counts_turns_of_the_loop() -> None:
    async def three_times() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def count() -> int:
        return await ticks(three_times())

    assert asyncio.run(count()) == 3

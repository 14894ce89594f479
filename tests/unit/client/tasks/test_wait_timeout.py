"""How long a caller waits for a task."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.client.scripted import run
from trunkline.client.tasks.wait_timeout import Patience
from trunkline.errors import RequestTimeout


class Clock:
    """A clock that goes when it is told to, and is real besides."""

    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        return self.passed


async def expired(patience: Patience) -> str | None:
    """Say why a wait has ended by now, if it has."""
    try:
        async with patience:
            patience._look()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    except RequestTimeout as error:
        return error.reason
    return None


def test_a_wait_has_its_time_and_again_from_each_sign() -> None:
    async def main() -> None:
        clock = Clock()
        patience = Patience(10, 25, clock)
        clock.passed = 9
        assert await expired(patience) is None
        patience = Patience(10, 25, clock)
        clock.passed += 9
        patience.renew()
        clock.passed += 9
        assert await expired(patience) is None

        patience = Patience(10, 25, clock)
        clock.passed += 10
        assert await expired(patience) == "no result within 10 s"

    run(main())


def test_however_many_signs_there_are_there_is_a_longest() -> None:
    async def main() -> None:
        clock = Clock()
        patience = Patience(10, 25, clock)
        for _ in range(5):
            clock.passed += 5
            patience.renew()
        said = "no result within 25 s, which is the most there is"
        assert await expired(patience) == said

    run(main())


def test_the_clock_stands_while_anybody_thinks_and_not_for_ever() -> None:
    async def main() -> None:
        clock = Clock()
        patience = Patience(10, 25, clock)
        patience.hold()
        clock.passed += 8
        patience.hold()
        clock.passed += 8
        patience.go_on()
        clock.passed += 8
        assert await expired(patience) is None

        patience = Patience(10, 25, clock)
        for _ in range(3):
            patience.hold()
            clock.passed += 8
            patience.go_on()
        clock.passed += 9
        assert await expired(patience) is None

        patience = Patience(10, 25, clock)
        patience.hold()
        clock.passed += 34
        assert patience._now() == clock.passed - 25
        clock.passed += 1
        assert await expired(patience) == "no result within 10 s"

    run(main())


def test_what_else_is_raised_meanwhile_is_not_a_matter_of_time() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with Patience(10, 25, Clock()):
                raise TimeoutError
        waiting = asyncio.ensure_future(forever())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    async def forever() -> None:
        async with Patience(10, 25, Clock()):
            await asyncio.Event().wait()

    run(main())

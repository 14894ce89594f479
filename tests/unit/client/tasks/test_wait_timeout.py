"""How long a caller waits for a task."""

from __future__ import annotations

import asyncio

import pytest

from tests.rigs.clock import Clock
from tests.unit.client.scripted import run
from trunkline.client.tasks.wait_timeout import TaskWaitTimeout
from trunkline.errors import RequestTimeout


async def expired(wait_timeout: TaskWaitTimeout) -> str | None:
    """Say why a wait has ended by now, if it has."""
    try:
        async with wait_timeout:
            wait_timeout._check()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    except RequestTimeout as error:
        return error.reason
    return None


def test_wait_timeout_is_renewed_by_each_sign_of_progress() -> None:
    async def main() -> None:
        clock = Clock(0.0)
        wait_timeout = TaskWaitTimeout(10, 25, clock)
        clock.now = 9
        assert await expired(wait_timeout) is None
        wait_timeout = TaskWaitTimeout(10, 25, clock)
        clock.now += 9
        wait_timeout.renew()
        clock.now += 9
        assert await expired(wait_timeout) is None

        wait_timeout = TaskWaitTimeout(10, 25, clock)
        clock.now += 10
        assert await expired(wait_timeout) == "no result within 10 s"

    run(main())


def test_renewals_do_not_extend_the_wait_beyond_the_maximum() -> None:
    async def main() -> None:
        clock = Clock(0.0)
        wait_timeout = TaskWaitTimeout(10, 25, clock)
        for _ in range(5):
            clock.now += 5
            wait_timeout.renew()
        said = "no result within 25 s, the maximum"
        assert await expired(wait_timeout) == said

    run(main())


def test_paused_wait_does_not_expire_before_the_maximum() -> None:
    async def main() -> None:
        clock = Clock(0.0)
        wait_timeout = TaskWaitTimeout(10, 25, clock)
        wait_timeout.pause()
        clock.now += 8
        wait_timeout.pause()
        clock.now += 8
        wait_timeout.resume()
        clock.now += 8
        assert await expired(wait_timeout) is None

        wait_timeout = TaskWaitTimeout(10, 25, clock)
        for _ in range(3):
            wait_timeout.pause()
            clock.now += 8
            wait_timeout.resume()
        clock.now += 9
        assert await expired(wait_timeout) is None

        wait_timeout = TaskWaitTimeout(10, 25, clock)
        wait_timeout.pause()
        clock.now += 34
        assert wait_timeout._clock.now() == clock.now - 25
        clock.now += 1
        assert await expired(wait_timeout) == "no result within 10 s"

    run(main())


def test_other_exceptions_pass_through_the_wait_timeout() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with TaskWaitTimeout(10, 25, Clock(0.0)):
                raise TimeoutError
        waiting = asyncio.ensure_future(forever())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    async def forever() -> None:
        async with TaskWaitTimeout(10, 25, Clock(0.0)):
            await asyncio.Event().wait()

    run(main())

"""Something that is held open by many, some of whom are cancelled."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.rigs.conditions import until_async
from trunkline.engine.runtime import SharedLifespan


class Life:
    """A life, and what was said of it."""

    def __init__(self, *, pause: float = 0.0) -> None:
        self.said: list[str] = []
        self._pause = pause
        self.shared = SharedLifespan("life", self._enter)

    async def _enter(self, stack: AsyncExitStack) -> None:
        await asyncio.sleep(self._pause)
        self.said.append("in")
        stack.push_async_callback(self._leave)

    async def _leave(self) -> None:
        await asyncio.sleep(self._pause)
        self.said.append("out")


def test_lifespan_is_entered_by_the_first_holder_and_exited_by_the_last() -> None:
    async def script() -> None:
        life = Life()
        async with life.shared.held():
            async with life.shared.held():
                assert life.shared.is_held
            assert life.said == ["in"]
        assert life.said == ["in", "out"]
        async with life.shared.held():
            assert life.said == ["in", "out", "in"]

    asyncio.run(script())


def test_holder_cancelled_during_release_has_released_the_lifespan() -> None:
    async def script() -> None:
        life = Life(pause=0.01)

        async def use() -> None:
            async with life.shared.held():
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(use()) for _ in range(20)]
        await asyncio.sleep(0.01)
        for _ in range(40):
            await asyncio.sleep(0)
            for task in tasks[:3]:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await until_async(lambda: life.said.count("in") == life.said.count("out"))
        assert life.said
        assert not life.shared.is_held

    asyncio.run(script())


def test_holder_that_arrives_during_exit_reenters_the_lifespan() -> None:
    async def script() -> None:
        life = Life(pause=0.02)

        async def use() -> None:
            async with life.shared.held():
                assert life.said[-1] == "in"

        first = asyncio.create_task(use())
        await asyncio.sleep(0.03)  # it ends now, which takes a while
        await use()
        await first
        assert life.said == ["in", "out"] * (len(life.said) // 2)

    asyncio.run(script())


def test_lifespan_held_on_another_event_loop_raises() -> None:
    async def hold(life: Life) -> None:
        async with life.shared.held():
            await asyncio.to_thread(asyncio.run, another(life))

    async def another(life: Life) -> None:
        with pytest.raises(RuntimeError, match="another event loop"):
            async with life.shared.held():
                pass

    asyncio.run(hold(Life()))

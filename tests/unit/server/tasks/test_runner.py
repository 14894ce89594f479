"""A server as others know it: a sign of life while it is open, and an ear that recovers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from trunkline.server.tasks import runner as task_runner
from trunkline.server.tasks.runner import TaskRunner
from trunkline.store import (
    ChannelSubscription,
    EndReason,
    Key,
    MemoryStore,
    Message,
    StoreUnavailable,
    SubscriptionEnded,
)


class Heard:
    """What a runner was told."""

    def __init__(self, store: MemoryStore) -> None:
        self.looks = 0
        self.ids: list[str] = []
        self.runner = TaskRunner(store, self._look, self._wake)

    async def _look(self) -> None:
        self.looks += 1

    async def _wake(self, id: str) -> None:
        self.ids.append(id)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 0.01)
    monkeypatch.setattr(task_runner, "RESUBSCRIBE_DELAY_S", 0.01)


def others() -> set[asyncio.Task[Any]]:
    return {each for each in asyncio.all_tasks() if each is not asyncio.current_task()}


def test_a_runner_is_alive_from_its_beginning_to_its_end() -> None:
    async def main() -> None:
        store = MemoryStore()
        heard = Heard(store)
        await asyncio.gather(heard.runner.begin(), heard.runner.begin())
        name = heard.runner.name
        assert await heard.runner.is_alive(name)
        await heard.runner.begin()
        assert (heard.runner.name, len(others())) == (name, 2)
        await heard.runner.close()
        await heard.runner.close()
        assert not await heard.runner.is_alive(name)
        assert others() == set()
        await heard.runner.begin()
        assert heard.runner.name != name
        await heard.runner.close()

    asyncio.run(main())


def test_a_sign_of_life_that_was_lost_is_given_again() -> None:
    async def main() -> None:
        store = MemoryStore()
        heard = Heard(store)
        await heard.runner.begin()
        await store.delete(Key("", "task-runner", heard.runner.name))
        async with asyncio.timeout(10):
            while not await heard.runner.is_alive(heard.runner.name):
                await asyncio.sleep(0.005)
        await heard.runner.close()

    asyncio.run(main())


def test_a_runner_hears_what_it_is_called_for_and_looks_now_and_then() -> None:
    async def main() -> None:
        store = MemoryStore()
        one, two = Heard(store), Heard(store)
        await one.runner.begin()
        await two.runner.begin()
        await two.runner.wake(one.runner.name, "a")
        await two.runner.wake(one.runner.name, "b")
        await until_async(lambda: one.ids == ["a", "b"])
        assert two.ids == []
        await until_async(lambda: one.looks > 2)
        await one.runner.close()
        await two.runner.close()

    asyncio.run(main())


class Broken:
    """A subscription that ends as if its engine was lost."""

    is_closed = False

    def __aiter__(self) -> Broken:
        return self

    async def __anext__(self) -> Message:
        raise SubscriptionEnded(EndReason.LOST)

    async def close(self) -> None:
        """Take note of it."""
        self.is_closed = True


class Shaky(MemoryStore):
    """A store whose first subscriptions are lost, and which then is away for a moment."""

    def __init__(self) -> None:
        super().__init__()
        self.subscribed = 0
        self.touched = 0
        self.broken = Broken()

    async def subscribe(self, *channels: Key) -> ChannelSubscription:
        self.subscribed += 1
        if self.subscribed == 1:
            return self.broken
        if self.subscribed == 2:
            raise StoreUnavailable("away")
        return await super().subscribe(*channels)

    async def touch(self, key: Key, *, ttl: float | None) -> bool:
        self.touched += 1
        if self.touched < 3:
            raise StoreUnavailable("away")
        return await super().touch(key, ttl=ttl)


def test_a_runner_that_was_deaf_listens_again_and_looks_at_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 3600.0)

    async def main() -> None:
        store = Shaky()
        heard = Heard(store)
        await heard.runner.begin()
        await until_async(lambda: store.subscribed >= 3)
        await until_async(lambda: heard.looks == 1)
        await heard.runner.wake(heard.runner.name, "a")
        await until_async(lambda: heard.ids == ["a"])
        assert store.broken.is_closed
        await heard.runner.close()
        assert others() == set()

    asyncio.run(main())
    assert "subscription lost" in caplog.text


def test_a_runner_whose_store_was_away_gives_a_sign_of_life_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        store = Shaky()
        heard = Heard(store)
        await heard.runner.begin()
        await until_async(lambda: store.touched > 3)
        await until_async(lambda: heard.looks > 1)
        await heard.runner.close()

    asyncio.run(main())
    assert "check of tasks skipped" in caplog.text


def test_a_call_or_a_look_that_fails_does_not_end_the_runner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        store = MemoryStore()
        heard: list[str] = []
        looks: list[int] = []

        async def look() -> None:
            looks.append(1)
            raise ValueError("password=hunter2canary")

        async def wake(id: str) -> None:
            heard.append(id)
            raise StoreUnavailable("away")

        runner = TaskRunner(store, look, wake)
        await runner.begin()
        for id in ("a", "b"):
            await runner.wake(runner.name, id)
        await store.publish(Key("", "task-wake", runner.name), b"\xff")
        await until_async(lambda: heard[:2] == ["a", "b"] and len(heard) == 3 and len(looks) > 2)
        assert await runner.is_alive(runner.name)
        await runner.close()

    asyncio.run(main())
    assert "wake-up failed" in caplog.text
    assert "hunter2canary" not in caplog.text


def test_a_store_that_was_closed_ends_it_quietly() -> None:
    async def main() -> None:
        store = MemoryStore()
        heard = Heard(store)
        await heard.runner.begin()
        await store.close()
        await until_async(lambda: others() == set())
        await heard.runner.close()

    asyncio.run(main())


def test_a_runner_that_cannot_begin_has_not_begun() -> None:
    class Full(MemoryStore):
        async def put(self, key: Key, value: bytes, *, ttl: float | None) -> int:
            raise StoreUnavailable("away")

    async def main() -> None:
        heard = Heard(Full())
        with pytest.raises(StoreUnavailable):
            await heard.runner.begin()
        assert others() == set()
        await heard.runner.close()

    asyncio.run(main())

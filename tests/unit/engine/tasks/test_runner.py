"""A server as others know it: a sign of life while it is open, and an ear that recovers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from trunkline.engine.tasks import runner as task_runner
from trunkline.engine.tasks.runner import TaskRunner
from trunkline.store import (
    ChannelSubscription,
    EndReason,
    Key,
    MemoryStore,
    Message,
    StoreUnavailable,
    SubscriptionEnded,
)


class RunnerCalls:
    """A runner that records its checks and wake-ups."""

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
        calls = RunnerCalls(store)
        await asyncio.gather(calls.runner.begin(), calls.runner.begin())
        name = calls.runner.name
        assert await calls.runner.is_alive(name)
        await calls.runner.begin()
        assert (calls.runner.name, len(others())) == (name, 2)
        await calls.runner.close()
        await calls.runner.close()
        assert not await calls.runner.is_alive(name)
        assert others() == set()
        await calls.runner.begin()
        assert calls.runner.name != name
        await calls.runner.close()

    asyncio.run(main())


def test_lost_heartbeat_is_written_again() -> None:
    async def main() -> None:
        store = MemoryStore()
        calls = RunnerCalls(store)
        await calls.runner.begin()
        await store.delete(Key("", "task-runner", calls.runner.name))
        async with asyncio.timeout(10):
            while not await calls.runner.is_alive(calls.runner.name):
                await asyncio.sleep(0.005)
        await calls.runner.close()

    asyncio.run(main())


def test_runner_receives_its_wake_ups_and_checks_periodically() -> None:
    async def main() -> None:
        store = MemoryStore()
        one, two = RunnerCalls(store), RunnerCalls(store)
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


def test_runner_subscribes_again_after_a_lost_subscription_and_checks_at_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_runner, "CHECK_INTERVAL_S", 3600.0)

    async def main() -> None:
        store = Shaky()
        calls = RunnerCalls(store)
        await calls.runner.begin()
        await until_async(lambda: store.subscribed >= 3)
        await until_async(lambda: calls.looks == 1)
        await calls.runner.wake(calls.runner.name, "a")
        await until_async(lambda: calls.ids == ["a"])
        assert store.broken.is_closed
        await calls.runner.close()
        assert others() == set()

    asyncio.run(main())
    assert "subscription lost" in caplog.text


def test_runner_renews_its_heartbeat_after_a_store_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        store = Shaky()
        calls = RunnerCalls(store)
        await calls.runner.begin()
        await until_async(lambda: store.touched > 3)
        await until_async(lambda: calls.looks > 1)
        await calls.runner.close()

    asyncio.run(main())
    assert "check of tasks skipped" in caplog.text


def test_failing_wake_up_or_check_does_not_end_the_runner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        store = MemoryStore()
        calls: list[str] = []
        looks: list[int] = []

        async def look() -> None:
            looks.append(1)
            raise ValueError("password=hunter2canary")

        async def wake(id: str) -> None:
            calls.append(id)
            raise StoreUnavailable("away")

        runner = TaskRunner(store, look, wake)
        await runner.begin()
        for id in ("a", "b"):
            await runner.wake(runner.name, id)
        await store.publish(Key("", "task-wake", runner.name), b"\xff")
        await until_async(lambda: calls[:2] == ["a", "b"] and len(calls) == 3 and len(looks) > 2)
        assert await runner.is_alive(runner.name)
        await runner.close()

    asyncio.run(main())
    assert "wake-up failed" in caplog.text
    assert "hunter2canary" not in caplog.text


def test_closed_store_ends_the_runner_without_an_error() -> None:
    async def main() -> None:
        store = MemoryStore()
        calls = RunnerCalls(store)
        await calls.runner.begin()
        await store.close()
        await until_async(lambda: others() == set())
        await calls.runner.close()

    asyncio.run(main())


def test_a_runner_that_cannot_begin_has_not_begun() -> None:
    class Full(MemoryStore):
        async def put(self, key: Key, value: bytes, *, ttl: float | None) -> int:
            raise StoreUnavailable("away")

    async def main() -> None:
        calls = RunnerCalls(Full())
        with pytest.raises(StoreUnavailable):
            await calls.runner.begin()
        assert others() == set()
        await calls.runner.close()

    asyncio.run(main())

"""Threads for handlers: bounded, our own, and gone when the server is."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from functools import partial
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from trunkline.concurrency import thread_pool
from trunkline.concurrency.thread_pool import NoThreadFree, ThreadGroup, ThreadPool, ThreadShare


def ours() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("trunkline-handler")]


def test_a_call_runs_on_a_thread_and_its_result_comes_back() -> None:
    async def main() -> tuple[int, int]:
        workers = ThreadPool(2, 0, name="trunkline-handler")
        try:
            return await workers.run(threading.get_ident), threading.get_ident()
        finally:
            workers.close()

    there, here = asyncio.run(main())
    assert there != here


def test_the_context_variables_of_the_caller_are_there() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")

    async def main() -> str:
        workers = ThreadPool(1, 0, name="trunkline-handler")
        name.set("weather")
        try:
            return await workers.run(name.get)
        finally:
            workers.close()

    assert asyncio.run(main()) == "weather"


def test_one_call_too_many_is_refused_and_a_later_one_is_not() -> None:
    async def main() -> None:
        workers = ThreadPool(1, 1, name="trunkline-handler")
        go = threading.Event()
        try:
            waiting = [workers.run(lambda: go.wait(10)) for _ in range(2)]
            with pytest.raises(NoThreadFree):
                workers.run(lambda: None)
            assert len(ours()) == 1
            go.set()
            assert await asyncio.wait_for(asyncio.gather(*waiting), 10) == [True, True]
            assert await asyncio.wait_for(workers.run(lambda: 7), 10) == 7
        finally:
            go.set()
            workers.close()

    asyncio.run(main())


def test_an_idle_pool_has_no_threads_and_a_closed_one_leaves_none() -> None:
    async def main() -> None:
        workers = ThreadPool(8, 8, name="trunkline-handler")
        assert ours() == []
        await asyncio.gather(*(workers.run(lambda: None) for _ in range(3)))
        workers.close()
        for _ in range(100):
            if not ours():
                break
            await asyncio.sleep(0.02)
        assert ours() == []
        # It can be used again, as a server that is served again does.
        assert await asyncio.wait_for(workers.run(lambda: 1), 10) == 1
        workers.close()

    asyncio.run(main())


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ValueError("no")])
def test_exception_on_a_pool_thread_reaches_the_future_and_the_thread_survives(
    error: BaseException,
) -> None:
    def fail() -> None:
        raise error

    async def main() -> None:
        workers = ThreadPool(1, 0, name="trunkline-handler")
        try:
            future = workers.run(fail)
            await asyncio.wait([future], timeout=10)
            assert future.exception() is error
            assert await asyncio.wait_for(workers.run(lambda: 1), 10) == 1
        finally:
            workers.close()

    asyncio.run(main())


def test_stop_iteration_on_a_pool_thread_becomes_runtime_error() -> None:
    def fail() -> Any:
        return next(iter(()))

    async def main() -> None:
        workers = ThreadPool(1, 0, name="trunkline-handler")
        try:
            with pytest.raises(RuntimeError, match="StopIteration"):
                await workers.run(fail)
        finally:
            workers.close()

    asyncio.run(main())


def test_result_of_a_cancelled_future_is_dropped() -> None:
    async def main() -> None:
        workers = ThreadPool(1, 1, name="trunkline-handler")
        go = threading.Event()
        future = workers.run(lambda: go.wait(10))
        future.cancel()
        go.set()
        assert await asyncio.wait_for(workers.run(lambda: 2), 10) == 2
        assert future.cancelled()
        workers.close()

    asyncio.run(main())


def test_a_thread_that_waits_for_a_client_makes_room_for_another_up_to_a_bound() -> None:
    async def main() -> None:
        workers = ThreadPool(2, 10, name="trunkline-handler")
        gate, parked = threading.Event(), threading.Semaphore(0)

        def wait_parked() -> str:
            with workers.blocked():
                parked.release()
                gate.wait(5)
            return "parked"

        waiting = [workers.run(wait_parked) for _ in range(2)]
        for _ in waiting:
            assert await asyncio.to_thread(parked.acquire, True, 5)
        # Both places are taken by threads that do nothing, so there are two more.
        assert await asyncio.wait_for(workers.run(lambda: "served"), 5) == "served"
        more = [workers.run(wait_parked) for _ in range(2)]
        for _ in more:
            assert await asyncio.to_thread(parked.acquire, True, 5)
        # And no more than that.
        late = workers.run(lambda: "late")
        await asyncio.sleep(0.05)
        assert not late.done()
        gate.set()
        assert await asyncio.wait_for(asyncio.gather(*waiting, *more), 5) == ["parked"] * 4
        assert await asyncio.wait_for(late, 5) == "late"
        workers.close()

    asyncio.run(main())


class Shared:
    """A pool of four threads, in which calls wait for a gate; alone or shared."""

    def __init__(self, **options: Any) -> None:
        self.is_shared = False
        self.pool = ThreadPool(
            4, 8, name="trunkline-handler", is_shared=lambda: self.is_shared, **options
        )
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.order: list[str] = []

    def hold(self, share: ThreadShare, name: str = "") -> asyncio.Future[Any]:
        def call() -> None:
            self.order.append(name)
            self.begun.release()
            self.gate.wait(10)

        return self.pool.run(call, share)

    async def wait_begun(self, count: int) -> None:
        for _ in range(count):
            assert await asyncio.to_thread(self.begun.acquire, True, 10)

    async def end(self, *calls: asyncio.Future[Any]) -> None:
        self.gate.set()
        await asyncio.wait_for(asyncio.gather(*calls), 10)
        self.pool.close()


def test_a_share_that_is_alone_uses_every_thread() -> None:
    async def main() -> None:
        scene = Shared()
        one = ThreadShare()
        calls = [scene.hold(one) for _ in range(6)]
        await scene.wait_begun(4)
        assert (scene.pool.busy, scene.pool.waiting) == (4, 2)
        await scene.end(*calls)
        assert one.busy == 0

    asyncio.run(main())


def test_a_share_takes_no_more_than_half_of_the_threads_and_places_while_there_are_others() -> None:
    async def main() -> None:
        scene = Shared()
        scene.is_shared = True
        one, two = ThreadShare(), ThreadShare()
        calls = [scene.hold(one) for _ in range(6)]
        await scene.wait_begun(2)
        assert (scene.pool.busy, scene.pool.waiting) == (2, 4)
        with pytest.raises(NoThreadFree):
            scene.hold(one)
        calls += [scene.hold(two) for _ in range(2)]
        await scene.wait_begun(2)
        assert scene.pool.busy == 4
        await scene.end(*calls)

    asyncio.run(main())


def test_a_share_with_more_than_half_does_not_delay_one_that_comes_later() -> None:
    async def main() -> None:
        scene = Shared()
        hog, other, third = ThreadShare(), ThreadShare(), ThreadShare()
        calls = [scene.hold(hog) for _ in range(5)]
        await scene.wait_begun(4)
        scene.is_shared = True
        calls += [scene.hold(other) for _ in range(3)]
        await scene.wait_begun(2)
        # Two in place of those that the hog has too many, and no more than that.
        calls.append(scene.hold(third))
        await asyncio.sleep(0.05)
        assert (scene.pool.busy, scene.pool.waiting) == (6, 3)
        await scene.end(*calls)

    asyncio.run(main())


def test_threads_above_the_bound_end_when_those_they_stood_for_are_back() -> None:
    async def main() -> None:
        scene = Shared()
        hog, other = ThreadShare(), ThreadShare()
        calls = [scene.hold(hog) for _ in range(4)]
        await scene.wait_begun(4)
        scene.is_shared = True
        calls += [scene.hold(other) for _ in range(2)]
        await scene.wait_begun(2)
        assert len(ours()) == 6
        scene.gate.set()
        await asyncio.wait_for(asyncio.gather(*calls), 10)
        for _ in range(100):
            if len(ours()) == 4:
                break
            await asyncio.sleep(0.02)
        assert len(ours()) == 4
        assert scene.pool.busy == 0
        scene.pool.close()

    asyncio.run(main())


def test_waiting_shares_take_turns() -> None:
    async def main() -> None:
        pool = ThreadPool(1, 8, name="trunkline-handler", is_shared=lambda: True)
        gate = threading.Event()
        one, two, three = ThreadShare(), ThreadShare(), ThreadShare()
        order: list[str] = []
        calls = [pool.run(lambda: gate.wait(10), one)]
        for name, share in (("1a", one), ("1b", one), ("1c", one), ("2a", two), ("3a", three)):
            calls.append(pool.run(partial(order.append, name), share))
        gate.set()
        await asyncio.wait_for(asyncio.gather(*calls), 10)
        assert order == ["1a", "2a", "3a", "1b", "1c"]
        pool.close()

    asyncio.run(main())


def test_the_threads_of_a_share_that_has_left_are_replaced_and_its_cancelled_calls_dropped() -> (
    None
):
    async def main() -> None:
        scene = Shared()
        hog, other = ThreadShare(), ThreadShare()
        calls = [scene.hold(hog) for _ in range(12)]
        await scene.wait_begun(4)
        for call in calls[4:]:
            call.cancel()
        scene.pool.leave(hog)
        assert scene.pool.waiting == 0
        more = [scene.hold(other) for _ in range(4)]
        await scene.wait_begun(4)
        assert scene.pool.busy == 8
        # A second one that hangs and leaves is not replaced: the bound is reached.
        scene.pool.leave(other)
        late = scene.pool.run(lambda: "late", ThreadShare())
        await asyncio.sleep(0.05)
        assert not late.done()
        await scene.end(*calls[:4], *more, late)
        assert scene.pool._blocked == 0

    asyncio.run(main())


def test_a_call_of_a_share_that_has_left_still_gets_a_thread_unless_it_was_cancelled() -> None:
    async def main() -> None:
        scene = Shared()
        share = ThreadShare()
        calls = [scene.hold(share) for _ in range(5)]
        await scene.wait_begun(4)
        scene.pool.leave(share)
        await scene.wait_begun(1)
        await scene.end(*calls)

    asyncio.run(main())


def test_a_share_that_left_makes_room_for_one_that_had_its_half() -> None:
    async def main() -> None:
        scene = Shared()
        scene.is_shared = True
        one = ThreadShare()
        calls = [scene.hold(one) for _ in range(4)]
        await scene.wait_begun(2)
        assert scene.pool.waiting == 2
        scene.is_shared = False
        scene.pool.leave(ThreadShare())
        await scene.wait_begun(2)
        await scene.end(*calls)

    asyncio.run(main())


def test_calls_that_wait_for_long_are_reported_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "LATE_S", 0.01)

    async def main() -> None:
        told: list[tuple[int, int]] = []
        scene = Shared(on_late=lambda more, waiting, _: told.append((more, waiting)))
        share = ThreadShare()
        calls = [scene.hold(share) for _ in range(7)]
        await until_async(lambda: len(told) >= 3)
        assert sum(more for more, _ in told) == 3
        assert all(waiting == 3 for _, waiting in told)
        await scene.end(*calls)
        assert scene.pool._timer is None

    asyncio.run(main())


def test_a_closed_pool_cancels_the_calls_that_wait() -> None:
    async def main() -> None:
        scene = Shared()
        calls = [scene.hold(ThreadShare()) for _ in range(6)]
        await scene.wait_begun(4)
        scene.pool.close()
        await asyncio.wait(calls[4:], timeout=10)
        assert all(call.cancelled() for call in calls[4:])
        assert scene.pool.waiting == 0
        scene.gate.set()
        await asyncio.wait_for(asyncio.gather(*calls[:4]), 10)

    asyncio.run(main())


def in_turns(shares: list[ThreadShare], jobs_each: int, threads: int = 1) -> list[int]:
    """Queue jobs of shares behind one that holds the threads; return the shares in their turns."""
    order: list[int] = []

    async def main() -> None:
        workers = ThreadPool(threads, 10_000, name="trunkline-handler", is_shared=lambda: True)
        go = threading.Event()
        try:
            held = [workers.run(lambda: go.wait(10)) for _ in range(threads)]
            jobs = [
                workers.run(partial(order.append, number), share)
                for number, share in enumerate(shares)
                for _ in range(jobs_each)
            ]
            go.set()
            await asyncio.wait_for(asyncio.gather(*held, *jobs), 10)
        finally:
            go.set()
            workers.close()
        assert all(share.busy == (share.group or share).busy == 0 for share in shares)

    asyncio.run(main())
    return order


def test_tenants_take_turns_however_many_connections_each_has() -> None:
    noisy, quiet = ThreadGroup(lambda: True), ThreadGroup(lambda: True)
    shares = [*(ThreadShare(noisy) for _ in range(50)), ThreadShare(quiet)]
    order = in_turns(shares, 4)
    places = [place for place, share in enumerate(order) if share == 50]
    # Every second turn, although 200 calls of the other tenant came before.
    assert places == [1, 3, 5, 7]
    # Within a tenant its connections take turns too.
    assert [share for share in order if share != 50][:50] == list(range(50))


def test_shares_without_a_tenant_take_turns_with_tenants() -> None:
    group = ThreadGroup(lambda: True)
    shares = [*(ThreadShare(group) for _ in range(10)), ThreadShare()]
    order = in_turns(shares, 3)
    assert [place for place, share in enumerate(order) if share == 10] == [1, 3, 5]


def test_a_tenant_takes_no_more_than_half_of_the_threads_and_places_while_there_are_others() -> (
    None
):
    async def main() -> None:
        alone = True
        workers = ThreadPool(4, 4, name="trunkline-handler", is_shared=lambda: True)
        noisy, quiet = (ThreadGroup(lambda: not alone) for _ in range(2))
        go, began = threading.Event(), []

        def hold(name: str) -> None:
            began.append(name)
            go.wait(10)

        try:
            held = [workers.run(partial(hold, "n"), ThreadShare(noisy)) for _ in range(4)]
            assert noisy.busy == 4
            alone = False
            # Two places of four in the queue, and the other tenant gets threads beyond those four.
            held += [workers.run(partial(hold, "n"), ThreadShare(noisy)) for _ in range(2)]
            with pytest.raises(NoThreadFree):
                workers.run(partial(hold, "n"), ThreadShare(noisy))
            held += [workers.run(partial(hold, "q"), ThreadShare(quiet)) for _ in range(2)]
            await until_async(lambda: began.count("q") >= 2)
            assert (noisy.busy, quiet.busy, began.count("n")) == (4, 2, 4)
            go.set()
            await asyncio.wait_for(asyncio.gather(*held), 10)
            assert (noisy.busy, quiet.busy, noisy.waiting) == (0, 0, 0)
        finally:
            go.set()
            workers.close()

    asyncio.run(main())


def test_a_pool_that_was_closed_leaves_tenants_without_calls() -> None:
    async def main() -> None:
        workers = ThreadPool(1, 8, name="trunkline-handler")
        group, go = ThreadGroup(lambda: True), threading.Event()
        share = ThreadShare(group)
        jobs = [workers.run(lambda: go.wait(10), share) for _ in range(3)]
        workers.close()
        assert (group.busy, group.waiting) == (0, 0)
        go.set()
        found = await asyncio.gather(*jobs, return_exceptions=True)
        assert [type(each) for each in found[1:]] == [asyncio.CancelledError] * 2

    asyncio.run(main())

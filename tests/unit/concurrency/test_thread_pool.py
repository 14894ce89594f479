"""Threads for handlers: bounded, our own, and gone when the server is."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from trunkline.concurrency.thread_pool import NoThreadFree, ThreadPool


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
def test_whatever_a_handler_raises_reaches_who_waits_and_the_thread_lives(
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


def test_a_handler_that_raises_stop_iteration_does_not_end_who_awaits_it() -> None:
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


def test_a_result_that_nobody_waits_for_is_dropped() -> None:
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

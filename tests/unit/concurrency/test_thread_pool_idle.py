"""A thread pool that keeps no idle threads: bounded, and gone when its calls are."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from tests.unit.client.scripted import run
from trunkline.concurrency.thread_pool import NoThreadFree, ThreadPool


def one_thread() -> ThreadPool:
    return ThreadPool(1, keep_idle=False, name="trunkline-asked")


NAME: ContextVar[str] = ContextVar("NAME")


def test_a_call_has_its_thread_and_the_context_of_its_caller() -> None:
    async def main() -> None:
        NAME.set("mine")
        found = await one_thread().run(lambda: (NAME.get(), threading.current_thread()))
        assert found[0] == "mine"
        assert found[1] is not threading.current_thread()

    run(main())


@pytest.mark.parametrize(
    ("raised", "seen"),
    [(ValueError("x"), ValueError), (StopIteration(), RuntimeError), (SystemExit(), SystemExit)],
)
def test_exception_of_a_call_reaches_the_future_and_frees_the_thread(
    raised: BaseException, seen: type
) -> None:
    def fail() -> None:
        raise raised

    async def main() -> None:
        threads = one_thread()
        for _ in range(2):  # the place is free again
            with pytest.raises(seen):
                await threads.run(fail)

    run(main())


def test_cancelled_calls_still_running_count_toward_the_bound() -> None:
    let_go = threading.Event()

    async def main() -> None:
        threads = one_thread()
        waiting = threads.run(lambda: let_go.wait(20))
        waiting.cancel()
        with pytest.raises(NoThreadFree):
            threads.run(print)
        let_go.set()
        while True:
            try:
                assert await threads.run(lambda: 5) == 5
                break
            except NoThreadFree:
                await asyncio.sleep(0.001)

    run(main())


def test_call_that_ends_after_its_loop_raises_nothing() -> None:
    let_go, left = threading.Event(), threading.Event()
    problems: list[Any] = []

    def wait() -> None:
        let_go.wait(20)

    async def main() -> None:
        threads.run(wait)

    threads = one_thread()
    before, threading.excepthook = threading.excepthook, problems.append
    try:
        run(main())
        ours = [each for each in threading.enumerate() if each.name.startswith("trunkline-asked")]
        let_go.set()
        for each in ours:
            each.join(20)
    finally:
        threading.excepthook = before
        left.set()
    assert not problems


def test_a_system_without_threads_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        threads = one_thread()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", fail)
            with pytest.raises(NoThreadFree, match="no thread"):
                threads.run(print)
        assert await threads.run(lambda: 5) == 5

    run(main())


def test_no_thread_is_left_however_calls_overlap() -> None:
    """A busy thread may take the call that another thread was started for."""
    pool = ThreadPool(2, 100, keep_idle=False, name="trunkline-overlap")

    async def main() -> None:
        for _ in range(300):
            await asyncio.gather(*(pool.run(lambda: None) for _ in range(3)))

    run(main())
    for each in threading.enumerate():
        if each.name.startswith("trunkline-overlap"):
            each.join(20)
            assert not each.is_alive()

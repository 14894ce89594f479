"""The loop that blocking clients share: its life, its end, and what happens on the way."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pytest

from tests.rigs.conditions import until
from trunkline import Client, PendingCall, Server, TrunklineError
from trunkline.client.sync import event_loop_thread
from trunkline.client.sync.callbacks import Callbacks
from trunkline.client.sync.event_loop_thread import LoopCall, LoopProxy, LoopThread, _shared
from trunkline.errors import ConnectionLost

WAIT = 20.0


@contextmanager
def linked() -> Iterator[LoopProxy]:
    app = Server("empty")

    @app.tool
    async def forever() -> None:
        await hang()

    proxy = LoopProxy(Client(app), Callbacks())
    proxy.connect()
    try:
        yield proxy
    finally:
        proxy.close()


def loops() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "trunkline-loop"]


def join_loops() -> None:
    """Wait for a loop that goes on without its clients until its last work is done."""
    for thread in loops():
        thread.join(WAIT)


@pytest.fixture(autouse=True)
def no_loop_is_left() -> Iterator[None]:
    yield
    assert loops() == []


async def hang() -> None:
    await asyncio.Event().wait()


# How it lives


def test_the_loop_begins_with_the_first_and_ends_with_the_last() -> None:
    assert loops() == []
    with linked():
        (first,) = loops()
        with linked():
            assert loops() == [first]
        assert loops() == [first]
    assert loops() == []
    with linked():
        assert loops() != [first]


def test_tasks_that_others_leave_are_cancelled_at_the_end() -> None:
    ended = []

    async def stay() -> None:
        try:
            await hang()
        finally:
            ended.append("cancelled")

    kept: list[asyncio.Task[None]] = []

    async def leave() -> None:
        kept.append(asyncio.create_task(stay()))
        await asyncio.sleep(0)

    with linked() as proxy:
        proxy.run(leave)
    assert ended == ["cancelled"]
    assert loops() == []


def test_the_loop_outlives_its_last_client_until_clean_up_has_ended() -> None:
    go, ended = threading.Event(), list[str]()

    async def clean_up() -> None:
        try:
            while not go.is_set():
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        ended.append("complete")

    with linked() as proxy:
        proxy.later(clean_up)
    assert ended == []
    assert len(loops()) == 1
    go.set()
    join_loops()
    assert ended == ["complete"]


def test_call_after_the_loop_has_ended_is_refused() -> None:
    with linked() as proxy:
        pass
    for verb in (proxy.run, proxy.call):
        with pytest.raises(TrunklineError, match="use `with`"):
            verb(hang)
    proxy.later(hang)
    proxy.close()


def test_call_begun_while_the_loop_stops_raises_connection_lost() -> None:
    loop = LoopThread()
    loop.clients.add(Client(Server("empty")))
    loop.start()
    work: LoopCall[None] = LoopCall(loop, None)
    # As if the loop had stopped between the look at it and the beginning.
    loop._works.add(work)
    loop._is_stopping = True
    loop._loop.call_soon_threadsafe(loop._loop.stop)
    loop._thread.join(WAIT)
    assert work.wait(WAIT)
    with pytest.raises(ConnectionLost, match="the client was closed"):
        work.outcome()


# What it gives back


def test_exception_of_a_coroutine_keeps_its_traceback() -> None:
    async def faulty() -> None:
        raise KeyError("a fault")

    with linked() as proxy:
        try:
            proxy.run(faulty)
        except KeyError as error:
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
            # Nor does any of ours hold on to it.
            held = [each for each in frames[1:] if error in each.f_locals.values()]
    assert frames[-1].f_code.co_name == "faulty"
    assert held == []


def test_the_context_of_the_caller_goes_along() -> None:
    from contextvars import ContextVar

    given: ContextVar[str] = ContextVar("given")

    async def look() -> str:
        return given.get()

    with linked() as proxy:
        given.set("mine")
        assert proxy.run(look) == "mine"


def test_work_that_is_given_up_before_its_first_step_ends_and_warns_of_nothing() -> None:
    with linked() as proxy:
        loop = proxy._loop_thread
        assert loop is not None
        work: LoopCall[None] = LoopCall(loop, None)

        def begin() -> None:
            work.begin(hang)
            work.cancel()

        with pytest.raises(ConnectionLost):
            loop.run(work, begin)
        assert work.task is not None


def test_work_that_is_cancelled_with_its_start_cancels_what_it_waits_for() -> None:
    cancelled = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    with linked() as proxy:
        loop = proxy._loop_thread
        assert loop is not None
        work: LoopCall[None] = LoopCall(loop, None)

        def begin() -> None:
            work.begin(wait)
            work.cancel()

        with pytest.raises(ConnectionLost):
            loop.run(work, begin)
    assert cancelled == [True]


# Interrupts


class Interrupted(BaseException):
    """What the signal handler of a test raises."""


@contextmanager
def alarm(*seconds: float, then: Callable[[], object] | None = None) -> Iterator[None]:
    """Raise in the main thread after so many seconds, one after the other; then do something."""
    left = list(seconds[1:])

    def ring(number: int, frame: object) -> None:
        if left:
            signal.setitimer(signal.ITIMER_REAL, left.pop(0))
        elif then is not None:
            threading.Timer(0.1, then).start()
        raise Interrupted

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds[0])
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_interrupted_run_waits_until_its_coroutine_is_cancelled() -> None:
    ended = []

    async def stay() -> None:
        try:
            await hang()
        finally:
            await asyncio.sleep(0.05)
            ended.append("cancelled")

    with linked() as proxy:
        with pytest.raises(Interrupted), alarm(0.1):
            proxy.run(stay)
        assert ended == ["cancelled"]
        assert proxy.call(lambda: "usable") == "usable"


def stubborn(go: threading.Event, ended: list[str]) -> Callable[[], Any]:
    async def stay() -> None:
        while not go.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                ended.append("not yet")
        ended.append("at last")

    return stay


def test_wait_for_a_cancelled_coroutine_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoopThread.run, "__kwdefaults__", {"wait": 0.1})
    go, ended = threading.Event(), list[str]()
    with linked() as proxy:
        with pytest.raises(Interrupted), alarm(0.1):
            proxy.run(stubborn(go, ended))
        assert "at last" not in ended
        go.set()
    # The loop ends with what was left to go on.
    join_loops()
    assert ended == ["not yet", "at last"]


def test_a_second_interrupt_gives_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoopThread.run, "__kwdefaults__", {"wait": None})
    go, ended = threading.Event(), list[str]()
    with linked() as proxy:
        with pytest.raises(Interrupted), alarm(0.1, 0.1):
            proxy.run(stubborn(go, ended))
        assert "at last" not in ended
        go.set()
    # The loop ends with what was left to go on.
    join_loops()
    assert ended == ["not yet", "at last"]


@pytest.mark.parametrize("interrupts", [1, 2])
def test_run_through_finishes_its_work_unless_interrupted_twice(interrupts: int) -> None:
    go, ended = threading.Event(), list[str]()
    with linked() as proxy:
        loop = proxy._loop_thread
        assert loop is not None
        work: LoopCall[None] = LoopCall(loop, None)
        then = go.set if interrupts == 1 else None
        with pytest.raises(Interrupted), alarm(*[0.1] * interrupts, then=then):
            loop.run_through(work, partial(work.begin, stubborn(go, ended)))
        # Never cancelled, and ended if it was waited for.
        assert ended == (["at last"] if interrupts == 1 else [])
        go.set()
    join_loops()
    assert ended == ["at last"]


def test_call_submitted_during_an_interrupt_is_cancelled() -> None:
    calls: list[PendingCall[Any]] = []
    main = threading.get_ident()

    def submit() -> PendingCall[Any]:
        calls.append(proxy.client.submit_tool("forever"))
        signal.pthread_kill(main, signal.SIGALRM)
        return calls[0]

    with linked() as proxy:
        with pytest.raises(Interrupted), alarm(WAIT):
            proxy.call(submit)
        assert proxy.call(calls[0].cancelled)


def test_a_signal_in_the_moment_before_the_wait_is_seen_all_the_same() -> None:
    """Such a signal sets a flag and wakes nobody: the wait has to end by itself."""
    flag = threading.Event()
    waits: list[float] = []

    class Gate:
        def acquire(self, timeout: float = -1) -> bool:
            waits.append(timeout)
            if flag.is_set():
                raise Interrupted
            flag.set()
            time.sleep(0.01)
            return False

        def release(self) -> None:
            pass

    with linked() as proxy:
        loop = proxy._loop_thread
        assert loop is not None
        work: LoopCall[None] = LoopCall(loop, None)
        work.gate = Gate()  # type: ignore[assignment]  # it stands for a lock
        with pytest.raises(Interrupted):
            loop.run(work, partial(work.begin, hang))
    assert [each for each in waits if each <= 0] == []


def interrupt_after(steps: int, names: tuple[str, ...]) -> Callable[[Any, str, Any], None]:
    """Return a profiler that raises after so many steps, where a signal handler might."""
    left = [steps]

    def look(frame: Any, event: str, given: Any) -> None:
        # Python looks for signals as it enters a function and as one that is built in returns.
        if event in ("call", "c_return") and frame.f_code.co_filename in names:
            left[0] -= 1
            if left[0] == 0:
                sys.setprofile(None)
                raise Interrupted

    return look


def test_an_interrupt_at_any_step_of_connecting_leaves_no_loop() -> None:
    names = (str(event_loop_thread.__file__), str(threading.__file__))
    app = Server("empty")
    for steps in range(1, 1000):
        proxy = LoopProxy(Client(app), Callbacks())
        before = sys.getprofile()
        sys.setprofile(interrupt_after(steps, names))
        try:
            proxy.connect()
        except Interrupted:
            assert not proxy.client.is_connected
        else:
            sys.setprofile(before)
            proxy.close()
            break
        finally:
            sys.setprofile(before)
        until(lambda: loops() == [])
    # What is left to the threads that receive no signals is not counted.
    assert steps > 15
    with linked() as proxy:
        assert proxy.call(lambda: "usable") == "usable"


# A signal while coverage has its own lock leaves that taken, and the next line counted waits.
@pytest.mark.skipif("COVERAGE_PROCESS_START" in os.environ, reason="coverage would stand still")
def test_a_signal_at_any_time_while_connecting_leaves_the_lock_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Real signals arrive between any two instructions, also where no function is called."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    # A signal that arrives in a callback of a weak reference is reported there, and lost.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    app = Server("empty")
    delays = random.Random(7)
    before = signal.signal(signal.SIGALRM, interrupt)
    interrupts = 0
    try:
        for _ in range(400):
            proxy = LoopProxy(Client(app), Callbacks())
            try:
                signal.setitimer(signal.ITIMER_REAL, delays.uniform(2e-6, 8e-4))
                proxy.connect()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupted:
                interrupts += 1
            while True:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    proxy.close()
                    break
                except Interrupted:
                    pass  # the last one came late
            assert _shared.lock.acquire(timeout=WAIT)
            _shared.lock.release()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 20
    until(lambda: loops() == [])


def test_a_loop_that_is_launched_twice_runs_once() -> None:
    """Who was interrupted cannot know, and does it again."""
    loop = LoopThread()
    loop.clients.add(Client(Server("empty")))
    both = [threading.Thread(target=loop._launch) for _ in range(2)]
    for each in both:
        each.start()
    loop.start()
    for each in both:
        each.join(WAIT)
    assert loops() == [loop._thread]
    loop.clients.clear()
    loop.soon(loop._stop_if_idle)
    loop._thread.join(WAIT)
    assert loops() == []


# A system that has no more


def test_where_no_thread_can_be_started_the_client_says_so_and_can_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: object) -> None:
        raise RuntimeError("can't start new thread")

    why = "no event loop could be started: can't start new thread"
    with closing(LoopProxy(Client(Server("empty")), Callbacks())) as proxy:
        with monkeypatch.context() as patch:
            patch.setattr(event_loop_thread, "start_new_thread", refuse)
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(TrunklineError, match=why):
                proxy.connect()
            proxy.close()
        proxy.connect()
        assert proxy.call(lambda: "usable") == "usable"
    assert loops() == []


def test_where_no_loop_can_be_made_the_client_says_so_and_can_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with closing(LoopProxy(Client(Server("empty")), Callbacks())) as proxy:
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "new_event_loop", refuse)
            with pytest.raises(TrunklineError, match=r"could be started: .*Too many open files"):
                proxy.connect()
        proxy.connect()
    assert loops() == []


# The end of a program

LEAVE = """
import sys, threading, time
from trunkline import Server
from trunkline.client.sync.client import SyncClient

app = Server("left")

@app.tool
async def echo(text: str) -> str:
    return text

client = SyncClient(app)
client.connect()
{how}
"""


def test_a_program_ends_while_threads_still_wait() -> None:
    how = """
started = threading.Event()
def ask():
    call = client.submit("acme/none")
    started.set()
    while True:
        try:
            client.call_tool("echo", {"text": "on and on"})
        except Exception as error:
            print(type(error).__name__, flush=True)
            break
threading.Thread(target=ask, daemon=True).start()
started.wait()
"""
    run = subprocess.run(
        [sys.executable, "-W", "always", "-c", LEAVE.format(how=how)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stderr == ""


def test_loop_thread_is_not_started_before_connect() -> None:
    program = (
        "import threading; from trunkline.client.sync.client import SyncClient;"
        "client = SyncClient(['x']); print(threading.active_count())"
    )
    run = subprocess.run(
        [sys.executable, "-W", "always", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (run.stdout, run.stderr) == ("1\n", "")

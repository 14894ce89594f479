from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from trunkline.concurrency.signal_handlers import handle_signals

NUMBERS = (signal.SIGUSR1, signal.SIGUSR2)


class LoopWithoutSignals(asyncio.SelectorEventLoop):
    """As on Windows."""

    add_signal_handler = asyncio.AbstractEventLoop.add_signal_handler
    remove_signal_handler = asyncio.AbstractEventLoop.remove_signal_handler


@pytest.mark.parametrize("make", [asyncio.SelectorEventLoop, LoopWithoutSignals])
def test_signals_arrive_on_the_loop_and_the_handlers_are_restored(
    make: type[asyncio.AbstractEventLoop],
) -> None:
    def before(*_: object) -> None: ...

    kept = [signal.signal(number, before) for number in NUMBERS]
    loop = make()
    came: list[signal.Signals] = []

    async def script() -> None:
        arrived = asyncio.Event()

        def on_signal(number: signal.Signals) -> None:
            assert asyncio.get_running_loop() is loop
            came.append(number)
            arrived.set()

        restore = handle_signals(loop, NUMBERS, on_signal)
        for number in NUMBERS:
            arrived.clear()
            os.kill(os.getpid(), number)
            await asyncio.wait_for(arrived.wait(), 20)
        restore()

    try:
        loop.run_until_complete(script())
        assert came == list(NUMBERS)
        if make is LoopWithoutSignals:
            assert [signal.getsignal(number) for number in NUMBERS] == [before, before]
        else:
            # The loop itself restores the default.
            assert before not in [signal.getsignal(number) for number in NUMBERS]
    finally:
        loop.close()
        for number, handler in zip(NUMBERS, kept, strict=True):
            signal.signal(number, handler)


@pytest.mark.parametrize("make", [asyncio.SelectorEventLoop, LoopWithoutSignals])
def test_outside_the_main_thread_no_signal_is_handled(
    make: type[asyncio.AbstractEventLoop],
) -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    done: list[bool] = []

    def run() -> None:
        loop = make()
        handle_signals(loop, NUMBERS, lambda number: None)()
        loop.close()
        done.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done
    assert [signal.getsignal(number) for number in NUMBERS] == before


def test_a_signal_after_the_end_of_the_loop_does_nothing() -> None:
    kept = signal.getsignal(signal.SIGUSR1)
    loop = LoopWithoutSignals()
    restore = handle_signals(loop, NUMBERS[:1], lambda number: None)
    loop.close()
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        restore()
    assert signal.getsignal(signal.SIGUSR1) == kept

"""`run_interruptible`: results, the first Ctrl-C, the second one, and what is abandoned."""

from __future__ import annotations

import asyncio
import logging
import signal

import pytest

from trunkline.cli import event_loop
from trunkline.cli.event_loop import run_interruptible


def test_result_is_returned_and_an_error_raised() -> None:
    async def work(number: int) -> float:
        await asyncio.sleep(0)
        return 1 / number

    assert run_interruptible(work(2)) == 0.5
    with pytest.raises(ZeroDivisionError):
        run_interruptible(work(0))


def test_first_ctrl_c_lets_a_coroutine_clean_up() -> None:
    cleaned: list[bool] = []

    async def work() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(work())
    assert cleaned == [True]


def test_second_ctrl_c_ends_though_a_callback_was_interrupted_halfway(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_loop, "_LAST_STEPS_S", 0.05)
    caplog.set_level(logging.DEBUG)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def report_end() -> None:
            signal.raise_signal(signal.SIGINT)  # the second: what follows does not happen
            ended.set_result(None)

        async def close() -> None:
            while not ended.done():  # whatever cancels it
                try:
                    await asyncio.shield(ended)
                except asyncio.CancelledError:
                    continue

        closing = loop.create_task(close())
        loop.call_soon(signal.raise_signal, signal.SIGINT)
        loop.call_later(0.01, report_end)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.shield(closing)

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(work())
    assert [each for each in caplog.records if each.levelno > logging.DEBUG] == []


def test_ctrl_c_before_the_beginning_leaves_no_coroutine_that_was_not_awaited() -> None:
    async def work() -> None:
        raise AssertionError

    class Interrupted(asyncio.Runner):
        def run(self, coroutine: object, **_: object) -> object:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(work(), Interrupted())

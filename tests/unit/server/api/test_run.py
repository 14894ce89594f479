"""Reports of an event loop that a handler blocks."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import pytest

from tests.rigs.conditions import until
from trunkline import Server, ServerLimits
from trunkline.server.api.run import StallWatch


class Looks(threading.Event):
    """The event that a watch waits for between two looks, which counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.count += 1
        return super().wait(timeout)

    def more(self, number: int) -> None:
        """Wait for so many looks."""
        last = self.count + number
        until(lambda: self.count > last)


def test_a_loop_that_stalls_is_reported_once_and_again_when_it_stalls_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def reported(times: int) -> bool:
        return len(caplog.messages) == times

    app = Server("test", limits=ServerLimits(stall=0.005))
    app._core.runtime.calls.used = 1
    loop = asyncio.new_event_loop()
    watch: Any = StallWatch(app, loop)
    watch._stop = looks = Looks()
    watch.start()
    try:
        for stalls in (1, 2):
            until(partial(reported, stalls))
            looks.more(5)
            assert reported(stalls)
            # It moves for a moment, and answers.
            loop.call_soon(loop.stop)
            loop.run_forever()
    finally:
        watch.stop()
        loop.close()
    assert "the event loop was blocked for 0.005 s; it is in " in caplog.messages[0]


def test_a_loop_with_no_request_at_work_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    watch: Any = StallWatch(Server("test", limits=ServerLimits(stall=0.005)), loop)
    watch._stop = looks = Looks()
    watch.start()
    try:
        looks.more(5)
    finally:
        watch.stop()
        loop.close()
    assert caplog.messages == []

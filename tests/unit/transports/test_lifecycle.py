"""The life cycle of a listener: entered once, stopped from any thread, closed in order."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest

from trunkline.errors import TrunklineError
from trunkline.transports.lifecycle import ListenerLifecycle


class Own(ListenerLifecycle):
    """A listener that notes what is done with it."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.log: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._fails = fails

    async def _open(self, opening: AsyncExitStack) -> None:
        opening.callback(self.log.append, "first closed")
        opening.callback(self.log.append, "second closed")
        if self._fails:
            raise OSError("in use")
        self.log.append("opened")

    def stop_accepting(self) -> None:
        self.log.append("accepts no more")

    def _stop_serving(self, at_once: bool) -> None:
        self.log.append(f"stopping, at once: {at_once}")

    async def _finish_serving(self) -> None:
        await self.gate.wait()
        self.log.append("finished")


STOPPED = ["accepts no more", "stopping, at once: False"]
CLOSED = ["second closed", "first closed"]


def test_what_was_opened_is_closed_in_reverse_order_after_what_is_served() -> None:
    async def main() -> None:
        async with Own() as own:
            pass
        assert own.log == ["opened", *STOPPED, "finished", *CLOSED]
        await own.close()
        assert own.log[-3:] == [*STOPPED, "finished"]

    asyncio.run(main())


def test_a_listener_is_entered_once() -> None:
    async def main() -> None:
        own = Own()
        async with own:
            with pytest.raises(TrunklineError, match="Own is entered once"):
                await own.__aenter__()
        with pytest.raises(TrunklineError, match="entered once"):
            await own.__aenter__()

    asyncio.run(main())


def test_opening_that_fails_leaves_nothing_open() -> None:
    async def main() -> None:
        own = Own(fails=True)
        with pytest.raises(OSError, match="in use"):
            await own.__aenter__()
        assert own.log == CLOSED

    asyncio.run(main())


def test_before_it_is_entered_there_is_nothing_to_wait_for_or_to_close() -> None:
    async def main() -> None:
        own = Own()
        own.stop()
        await own.wait()
        await own.close()
        assert own.log == []

    asyncio.run(main())


def test_stop_may_be_called_from_any_thread_and_again() -> None:
    async def main() -> Own:
        async with asyncio.timeout(10), Own() as own:
            thread = threading.Thread(target=own.stop)
            thread.start()
            await own.wait()
            thread.join()
            own.stop(at_once=True)
            await asyncio.sleep(0)
            assert own.log[1:] == [*STOPPED, "accepts no more", "stopping, at once: True"]
        return own

    own = asyncio.run(main())
    own.stop()  # its event loop is closed: nothing is left to stop


def test_a_cancelled_close_leaves_the_rest_to_the_next_one() -> None:
    async def main() -> None:
        own = Own()
        await own.__aenter__()
        own.gate.clear()
        closing = asyncio.create_task(own.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert "first closed" not in own.log
        own.gate.set()
        await own.close()
        assert own.log[-3:] == ["finished", *CLOSED]

    asyncio.run(main())

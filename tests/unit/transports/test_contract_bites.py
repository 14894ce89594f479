"""The published contract notices each rule being broken: one bad transport for each."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from trunkline.testing.transports import TransportContract
from trunkline.transports import MemoryTransport, Transport, memory_pair
from trunkline.transports.memory import _Wire


class Good(MemoryTransport):
    """As good as it should be; each of those below spoils one thing."""


class Reorders(Good):
    def send(self, frame: bytes, route: Any = None) -> None:
        asyncio.get_running_loop().call_later(len(frame) % 2 / 1000, super().send, frame)


class Splits(Good):
    def send(self, frame: bytes, route: Any = None) -> None:
        for at in range(0, len(frame), 65536):
            super().send(frame[at : at + 65536])


class ReportsTwice(Good):
    async def close(self) -> None:
        await super().close()
        self.on_error(None)


class Silent(Good):
    def _end(self, *, report: bool = True) -> None:
        super()._end(report=False)


class StaysConnected(Good):
    @property
    def is_connected(self) -> bool:
        return True


class RaisesAfterTheEnd(Good):
    def send(self, frame: bytes, route: Any = None) -> None:
        if self._ended:
            raise RuntimeError("closed")
        super().send(frame)


class NeverDrains(Good):
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, (lambda: None) if name == "on_drained" else value)


class LeavesATask(Good):
    async def close(self) -> None:
        await super().close()
        self.task = asyncio.create_task(asyncio.sleep(1))


class LeavesAThread(Good):
    async def close(self) -> None:
        await super().close()
        threading.Thread(target=threading.Event().wait, args=(1,), daemon=True).start()


class UsesAnotherThread(Good):
    def send(self, frame: bytes, route: Any = None) -> None:
        thread = threading.Thread(target=super().send, args=(frame,))
        thread.start()
        thread.join()


class DropsOnClose(Good):
    def send(self, frame: bytes, route: Any = None) -> None:
        asyncio.get_running_loop().call_soon(super().send, frame)


class GivesUpWhenCancelled(Good):
    async def close(self) -> None:
        await asyncio.sleep(0.01)
        await super().close()


class ConnectsToNothing(Good):
    """Finds something where there is nothing; see `make_lost`."""


RULES = {
    Reorders: "frames_arrive_whole_and_in_order_both_ways",
    Splits: "a_large_frame_arrives_between_small_ones",
    ReportsTwice: "closing_is_reported_once_on_both_sides",
    Silent: "closing_is_reported_once_on_both_sides",
    GivesUpWhenCancelled: "cancelling_who_closes_does_not_stop_the_closing",
    StaysConnected: "being_connected_is_told_as_it_is",
    RaisesAfterTheEnd: "what_is_sent_after_the_end_is_dropped",
    NeverDrains: "sending_does_not_wait_and_a_backlog_is_told_and_drains",
    LeavesATask: "closing_twice_at_once_and_from_other_tasks_is_one_closing",
    LeavesAThread: "closing_twice_at_once_and_from_other_tasks_is_one_closing",
    UsesAnotherThread: "callbacks_come_on_the_thread_of_the_loop",
    DropsOnClose: "closing_writes_what_was_sent",
    ConnectsToNothing: "connecting_to_nothing_fails_and_leaves_nothing",
}


@pytest.mark.parametrize(("kind", "rule"), RULES.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_a_transport_that_breaks_a_rule_fails_its_test(
    kind: type[Good], rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.testing.transports._HANGS", 0.3)

    class Contract(TransportContract):
        async def make_pair(self) -> tuple[Transport, Transport]:
            wire = _Wire()
            one, other = kind(wire), kind(wire)
            one._other, other._other = other, one
            return one, other

        def make_lost(self) -> Transport:
            return memory_pair()[0]

    with pytest.raises((AssertionError, TimeoutError, RuntimeError)):
        getattr(Contract(), f"test_{rule}")()


def test_a_transport_that_breaks_none_passes() -> None:
    class Contract(TransportContract):
        async def make_pair(self) -> tuple[Transport, Transport]:
            return memory_pair()

    contract = Contract()
    tests = [name for name in dir(contract) if name.startswith("test_")]
    assert {f"test_{rule}" for rule in RULES.values()} < set(tests)
    for name in tests:
        getattr(contract, name)()

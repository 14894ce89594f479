"""The published contract notices each rule being broken: one bad transport for each."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from unittest import SkipTest

import pytest

from trunkline.testing.transport_contract import TransportContract
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


class DropsWhatIsLarge(Good):
    def send(self, frame: bytes, route: Any = None) -> None:
        if len(frame) < 1100 * 1024:
            super().send(frame)


class ConnectsTwice(Good):
    async def connect(self) -> None:
        if not self._connected:
            await super().connect()


class DeafAfterAFault(Good):
    is_deaf = False

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, self._guarded(value) if name == "on_message" else value)

    def _guarded(self, on_message: Any) -> Any:
        def receive(frame: Any, route: Any) -> None:
            if not self.is_deaf:
                self.is_deaf = True
                on_message(frame, route)
                self.is_deaf = False

        return receive


class LeavesATimer(Good):
    async def close(self) -> None:
        asyncio.get_running_loop().call_later(1000, print)
        await super().close()


class KnowsAsciiOnly(Good):
    def send(self, frame: bytes, route: Any = None) -> None:
        super().send(frame.decode("ascii", "ignore").encode())


class KnowsTextOnly(Good):
    def send(self, frame: bytes, route: Any = None) -> None:
        super().send(frame.decode("utf-8", "replace").encode())


class Strips(Good):
    def send(self, frame: bytes, route: Any = None) -> None:
        super().send(frame.strip())


class LeavesWithoutAWord(Good):
    async def close(self) -> None:
        if self._connected:
            await super().close()
        else:
            self._ended = True


class ForgetsWhoLeft(Good):
    async def connect(self) -> None:
        self._connected = True
        if self._other._connected:
            self._wire.open(asyncio.get_running_loop())


class HasNoLimit(Good):
    """Takes a frame of any size; see `make_limited_pair`."""


class ConnectsToNothing(Good):
    """Finds something where there is nothing; see `make_lost`."""


RULES = {
    DropsWhatIsLarge: "a_large_frame_arrives_between_small_ones",
    ConnectsTwice: "connecting_twice_is_refused_and_changes_nothing",
    DeafAfterAFault: "a_callback_that_raises_once_misses_nothing_else",
    LeavesATimer: "closing_twice_at_once_and_from_other_tasks_is_one_closing",
    KnowsAsciiOnly: "every_character_arrives_as_it_was_sent",
    KnowsTextOnly: "every_byte_arrives_as_it_was_sent",
    Strips: "every_character_arrives_as_it_was_sent",
    LeavesWithoutAWord: "closing_without_connecting_ends_the_other_side",
    ForgetsWhoLeft: "connecting_after_the_other_side_closed_is_reported",
    HasNoLimit: "an_oversize_frame_is_reported_in_its_place",
    Reorders: "frames_arrive_whole_and_in_order_both_ways",
    Splits: "a_large_frame_arrives_between_small_ones",
    ReportsTwice: "closing_is_reported_once_on_both_sides",
    Silent: "closing_is_reported_once_on_both_sides",
    GivesUpWhenCancelled: "cancelling_close_does_not_stop_the_closing",
    StaysConnected: "is_connected_follows_connect_and_close",
    RaisesAfterTheEnd: "what_is_sent_after_the_end_is_dropped",
    NeverDrains: "sending_does_not_wait_and_the_backlog_drains",
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
    monkeypatch.setattr("trunkline.testing.transport_contract._TEST_TIMEOUT_S", 0.3)

    class Contract(TransportContract):
        async def make_pair(self) -> tuple[Transport, Transport]:
            wire = _Wire()
            one, other = kind(wire), kind(wire)
            one._other, other._other = other, one
            return one, other

        async def make_limited_pair(self, limit: int) -> tuple[Transport, Transport]:
            return await self.make_pair()

        def make_lost(self) -> Transport:
            return memory_pair()[0]

    with pytest.raises((AssertionError, TimeoutError, RuntimeError)):
        getattr(Contract(), f"test_{rule}")()


class Plain(TransportContract):
    async def make_pair(self) -> tuple[Transport, Transport]:
        return memory_pair()


def skipped(contract: TransportContract) -> set[str]:
    """Run every test, and return which of them were skipped."""
    found = set()
    for name in dir(contract):
        if name.startswith("test_"):
            try:
                getattr(contract, name)()
            except SkipTest:
                found.add(name.removeprefix("test_"))
    return found


# What memory has no such thing for.
WITHOUT = {
    "connecting_to_nothing_fails_and_leaves_nothing",
    "an_oversize_frame_is_reported_in_its_place",
}


def test_a_transport_that_breaks_none_passes() -> None:
    assert {f"test_{rule}" for rule in RULES.values()} < set(dir(Plain()))
    assert skipped(Plain()) == WITHOUT


def test_excused_contract_tests_are_skipped() -> None:
    class Excused(Plain):
        connects_alone = False
        carries_any_bytes = False

    assert skipped(Excused()) == WITHOUT | {
        "every_byte_arrives_as_it_was_sent",
        "sending_does_not_wait_and_the_backlog_drains",
        "connecting_after_the_other_side_closed_is_reported",
        "closing_without_connecting_ends_the_other_side",
    }

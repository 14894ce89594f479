"""Slots that clients share: their shares, turns, and what callers leave that do not wait on."""

from __future__ import annotations

import asyncio

import pytest

from tests.cases import for_each
from tests.rigs.event_loop import on_a_loop
from trunkline.auth.server.verifiers.fair_slots import FairSlots, QueueFull

LONG_S = 30.0


class SharedSlots:
    """Slots, and tasks that have taken one or wait for one."""

    def __init__(self, slots: int, max_waiting: int) -> None:
        self.slots = FairSlots(slots, max_waiting=max_waiting)
        # In the order in which callers were given a slot.
        self.served: list[str] = []

    def ask(self, name: str, timeout: float = LONG_S) -> asyncio.Task[None]:
        async def acquire() -> None:
            await self.slots.acquire(name, timeout=timeout)
            self.served.append(name)

        return asyncio.create_task(acquire())

    async def ask_often(self, name: str, count: int) -> list[asyncio.Task[None]]:
        found = [self.ask(name) for _ in range(count)]
        await settle()
        return found

    @property
    def is_empty(self) -> bool:
        return (
            not len(self.slots)
            and not self.slots._turns
            and not self.slots._slots.used
            and not self.slots._queue.used
        )


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def refused(tasks: list[asyncio.Task[None]]) -> int:
    return sum(each.done() and isinstance(each.exception(), QueueFull) for each in tasks)


@on_a_loop
async def test_client_alone_has_seven_eighths_of_the_slots_and_of_the_queue() -> None:
    shared = SharedSlots(64, 64)
    asked = await shared.ask_often("eve", 200)
    assert len(shared.served) == 56
    assert refused(asked) == 200 - 56 - 56


@on_a_loop
async def test_client_beside_another_has_half_of_the_slots_and_of_the_queue() -> None:
    shared = SharedSlots(64, 64)
    await shared.ask_often("ann", 1)
    asked = await shared.ask_often("eve", 200)
    assert shared.served.count("eve") == 32
    assert refused(asked) == 200 - 32 - 32


@on_a_loop
async def test_newcomer_has_a_slot_at_once_while_another_client_has_its_share() -> None:
    shared = SharedSlots(64, 64)
    await shared.ask_often("eve", 200)
    await shared.ask_often("ann", 4)
    assert shared.served.count("ann") == 4


@on_a_loop
async def test_client_that_waits_counts_as_one_that_is_there() -> None:
    shared = SharedSlots(4, 8)
    await shared.ask_often("eve", 3)  # all that it can have alone
    (waiting,) = await shared.ask_often("bob", 1)
    assert waiting.done()
    (waiting,) = await shared.ask_often("ann", 1)
    assert not waiting.done()
    shared.slots.release("eve")
    shared.slots.release("bob")
    await settle()
    # One slot is free, and the client that asks has half of them.
    (more,) = await shared.ask_often("eve", 1)
    assert (waiting.done(), more.done()) == (True, False)


@on_a_loop
async def test_clients_take_turns_at_slots_that_become_free() -> None:
    shared = SharedSlots(1, 64)
    await shared.ask_often("first", 1)
    await shared.ask_often("eve", 3)
    await shared.ask_often("ann", 1)
    await shared.ask_often("bob", 2)
    while len(shared.slots):
        shared.slots.release(shared.served[-1])
        await settle()
    assert shared.served == ["first", "eve", "ann", "bob", "eve", "bob", "eve"]
    assert shared.is_empty


@on_a_loop
async def test_slot_that_becomes_free_goes_past_a_client_that_has_its_share() -> None:
    shared = SharedSlots(4, 64)
    await shared.ask_often("ann", 1)
    await shared.ask_often("eve", 4)
    await shared.ask_often("bob", 1)
    assert shared.served == ["ann", "eve", "eve", "bob"]
    await shared.ask_often("cleo", 1)
    shared.slots.release("ann")
    await settle()
    assert shared.served[4:] == ["cleo"]


@on_a_loop
async def test_client_that_is_alone_again_is_given_what_it_may_have() -> None:
    shared = SharedSlots(8, 64)
    await shared.ask_often("ann", 1)
    await shared.ask_often("eve", 10)
    assert shared.served.count("eve") == 4
    shared.slots.release("ann")
    await settle()
    assert shared.served.count("eve") == 7


@on_a_loop
async def test_cancelled_caller_leaves_nothing() -> None:
    shared = SharedSlots(1, 64)
    await shared.ask_often("ann", 1)
    waiting = [*await shared.ask_often("eve", 3), *await shared.ask_often("bob", 1)]
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    assert len(shared.slots) == 1
    shared.slots.release("ann")
    assert shared.is_empty


@for_each("cancels_first", [True, False])
@on_a_loop
async def test_slot_of_a_caller_that_is_cancelled_meanwhile_goes_to_the_next(
    cancels_first: bool,
) -> None:
    shared = SharedSlots(1, 64)
    await shared.ask_often("ann", 1)
    (gone,), (next_one,) = await shared.ask_often("eve", 1), await shared.ask_often("bob", 1)
    # Before the task of the caller runs again.
    if cancels_first:
        gone.cancel()
        shared.slots.release("ann")
    else:
        shared.slots.release("ann")
        gone.cancel()
    await asyncio.wait([gone, next_one])
    assert (gone.cancelled(), next_one.cancelled()) == (True, False)
    shared.slots.release("bob")
    assert shared.is_empty


@on_a_loop
async def test_caller_that_waits_too_long_leaves_nothing() -> None:
    shared = SharedSlots(1, 64)
    await shared.ask_often("ann", 1)
    waiting = shared.ask("eve", timeout=0.001)
    with pytest.raises(TimeoutError):
        await waiting
    shared.slots.release("ann")
    assert shared.is_empty


@on_a_loop
async def test_clients_that_came_and_went_leave_nothing() -> None:
    slots = FairSlots(64, max_waiting=64)
    for number in range(100_000):
        await slots.acquire(f"10.0.{number >> 8}.{number & 255}", timeout=LONG_S)
        slots.release(f"10.0.{number >> 8}.{number & 255}")
    assert not len(slots)
    full = SharedSlots(1, 1)
    await full.ask_often("ann", 1)
    await full.ask_often("bob", 1)
    assert refused(await full.ask_often("eve", 10)) == 10
    assert len(full.slots) == 2

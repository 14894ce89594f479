"""How long the clock of calls stands still, by a clock that is moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.rigs.clock import TimerLoop
from tests.unit.client.scripted import NEWEST_HANDSHAKE, SILENT, Place, run, text
from trunkline.client import Client
from trunkline.client.session.timeouts import PausableClock, RequestTimeouts
from trunkline.errors import RequestTimeout
from trunkline.jsonrpc import Codec, Peer, Pending

ELICIT = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}


class Calls:
    """Calls of 10 s each, whose clock stands for 100 s at the most."""

    def __init__(self) -> None:
        self.clock = TimerLoop()
        self.late: list[Any] = []
        self.peer = Peer(Codec(), write=lambda data, route: None, on_request=lambda asked: None)
        self.waiting = RequestTimeouts(
            self.peer,
            timeout=10,
            max_timeout=100,
            on_progress=None,
            on_timeout=lambda pending, reason: self.late.append(pending.id),
        )
        loop: Any = self.clock
        self.waiting._loop = loop
        self.waiting._clock = PausableClock(loop.time, 100)

    def call(self) -> Pending:
        when = self.waiting.begin() + 10
        pending = self.peer.send_request("tools/call", {}, deadline=when)
        self.waiting.arm(when)
        return pending

    def think(self, seconds: float) -> None:
        self.waiting.pause()
        self.clock.move(seconds)
        self.waiting.resume()


def use(work: Callable[[Calls], None]) -> None:
    async def main() -> None:
        work(Calls())

    asyncio.run(main())


def test_repeated_server_requests_share_one_pause_budget() -> None:
    def work(calls: Calls) -> None:
        call = calls.call()
        for _ in range(10):
            calls.think(9.9)
        assert calls.late == []
        calls.think(9.9)  # the last second of a hundred, and then the time of the call
        assert calls.late == []
        calls.think(9.9)
        assert calls.late == [call.id]

    use(work)


def test_pause_budget_is_renewed_once_no_call_is_open() -> None:
    def work(calls: Calls) -> None:
        for _ in range(3):
            call = calls.call()
            calls.think(99)
            assert calls.late == []
            assert calls.peer.cancel(call)

    use(work)


def test_pause_budget_is_not_renewed_while_another_call_is_open() -> None:
    def work(calls: Calls) -> None:
        first = calls.call()
        calls.think(99)
        second = calls.call()
        assert calls.peer.cancel(first)
        calls.think(10)
        assert calls.late == []
        calls.think(2)
        assert calls.late == [second.id]

    use(work)


def test_pause_time_before_a_call_does_not_count_toward_its_pause_budget() -> None:
    def work(calls: Calls) -> None:
        calls.waiting.pause()
        calls.clock.move(90)
        call = calls.call()
        calls.clock.move(90)
        calls.waiting.resume()
        calls.clock.move(9)
        assert calls.late == []
        calls.clock.move(2)
        assert calls.late == [call.id]

    use(work)


def test_pause_without_open_calls_starts_a_new_pause_budget() -> None:
    def work(calls: Calls) -> None:
        first = calls.call()
        calls.think(100)
        assert calls.peer.cancel(first)
        calls.waiting.pause()
        second = calls.call()
        calls.clock.move(50)
        assert calls.late == []
        calls.clock.move(61)
        assert calls.late == [second.id]

    use(work)


def test_repeated_cancelled_server_requests_do_not_extend_a_call_forever() -> None:
    place = Place({"tools/call": SILENT}, revision=NEWEST_HANDSHAKE)

    async def never(params: Any) -> Any:
        await asyncio.Event().wait()

    async def ask_on() -> None:
        id = 0
        while True:
            id += 1
            ask = {"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": ELICIT}
            place.line.say(ask)
            await asyncio.sleep(0.01)
            params = {"requestId": id}
            method = "notifications/cancelled"
            place.line.say({"jsonrpc": "2.0", "method": method, "params": params})
            for _ in range(5):  # turns, until nobody thinks and the clock has gone on
                await asyncio.sleep(0)

    async def main() -> None:
        options: dict[str, Any] = {"timeout": 0.1, "max_timeout": 0.2, "on_elicit": never}
        async with Client(place, revision=NEWEST_HANDSHAKE, **options) as client:
            asking = asyncio.create_task(ask_on())
            with pytest.raises(RequestTimeout):
                async with asyncio.timeout(4):
                    await client.call_tool("x")
            asking.cancel()
            place.answers["tools/call"] = text("fine")
            assert (await client.call_tool("x")).text == "fine"

    run(main())

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from trunkline.errors import TransportError
from trunkline.testing.transport_contract import Observed
from trunkline.transports import Transport, memory_pair


def run(script: Callable[[Observed, Observed], Coroutine[Any, Any, None]]) -> None:
    async def connected() -> None:
        near, far = (Observed(end) for end in memory_pair())
        await near.transport.connect()
        await far.transport.connect()
        await script(near, far)

    asyncio.run(connected())


def test_an_end_is_a_transport() -> None:
    assert isinstance(memory_pair()[0], Transport)


def test_a_frame_arrives_before_send_returns() -> None:
    async def script(near: Observed, far: Observed) -> None:
        near.transport.send(b"1")
        assert far.frames == [b"1"]
        assert near.transport.backlog == 0

    run(script)


def test_sending_is_two_python_calls_with_that_of_the_receiver() -> None:
    async def script(near: Observed, far: Observed) -> None:
        def receive(frame: object, route: object) -> None:
            pass

        far.transport.on_message = receive
        calls: list[str] = []
        send = near.transport.send

        def note(frame: Any, event: str, arg: object) -> None:
            if event == "call":
                calls.append(frame.f_code.co_name)

        sys.setprofile(note)
        send(b"1")
        sys.setprofile(None)
        assert calls == ["send", "receive"]

    run(script)


def test_frame_sent_during_delivery_is_delivered_after_it() -> None:
    async def script(near: Observed, far: Observed) -> None:
        order: list[bytes] = []

        def at_far(frame: bytes, route: object) -> None:
            order.append(b"begin " + frame)
            if frame == b"1":
                far.transport.send(b"back")
                near.transport.send(b"2")
            order.append(b"end " + frame)

        def at_near(frame: bytes, route: object) -> None:
            order.append(frame)

        far.transport.on_message = at_far  # type: ignore[assignment]
        near.transport.on_message = at_near  # type: ignore[assignment]
        near.transport.send(b"1")
        assert order == [b"begin 1", b"end 1", b"back", b"begin 2", b"end 2"]

    run(script)


@pytest.mark.parametrize(("more", "drained"), [(0, 0), (1, 1)])
def test_a_backlog_is_high_above_4_mib(more: int, drained: int) -> None:
    async def script() -> None:
        near, far = (Observed(end) for end in memory_pair())
        await near.transport.connect()
        # Nothing is delivered before the other end is connected.
        near.transport.send(bytes(4 * 2**20 + more))
        assert near.transport.backlog == 4 * 2**20 + more
        await far.transport.connect()
        await far.received(1)
        # Callbacks run in order: `on_drained` has run if it was to be called.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (near.transport.backlog, near.drained) == (0, drained)

    asyncio.run(script())


def test_two_ends_that_answer_each_other_for_ever_neither_recurse_nor_hold_the_loop() -> None:
    async def script(near: Observed, far: Observed) -> None:
        count = 0

        def answer(end: Transport) -> Callable[[Any, Any], None]:
            def on_message(frame: object, route: object) -> None:
                nonlocal count
                count += 1
                end.send(b"again")

            return on_message

        near.transport.on_message = answer(near.transport)
        far.transport.on_message = answer(far.transport)
        near.transport.send(b"begin")
        seen = count
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert 0 < seen < count
        assert count > sys.getrecursionlimit()
        await near.transport.close()

    run(script)


def test_frames_wait_until_the_other_end_is_connected() -> None:
    async def script() -> None:
        near, far = (Observed(end) for end in memory_pair())
        await near.transport.connect()
        near.transport.send(b"1")
        near.transport.send(b"22")
        assert near.transport.backlog == 3
        await near.transport.close()
        assert far.frames == []
        await far.transport.connect()
        assert far.frames == [b"1", b"22"]
        assert far.ends == near.ends == [None]

    asyncio.run(script())


def test_connect_after_the_other_end_closed_reports_the_end() -> None:
    async def script() -> None:
        near, far = (Observed(end) for end in memory_pair())
        await near.transport.close()
        await far.transport.connect()
        assert far.ends == [None]
        assert near.ends == []
        assert not far.transport.is_connected

    asyncio.run(script())


def test_close_without_connect_ends_the_connected_other_end() -> None:
    async def script() -> None:
        near, far = (Observed(end) for end in memory_pair())
        await far.transport.connect()
        far.transport.send(b"never read")
        await near.transport.close()
        assert far.ends == [None]
        assert far.transport.backlog == 0
        assert not far.transport.is_connected
        assert (near.frames, near.ends) == ([], [])
        far.transport.send(b"dropped")
        near.transport.send(b"dropped")
        await far.transport.close()
        assert (near.frames, far.frames, far.ends) == ([], [], [None])

    asyncio.run(script())


def test_frames_for_an_end_that_never_connects_are_dropped() -> None:
    async def script() -> None:
        near, far = (Observed(end) for end in memory_pair())
        await far.transport.connect()
        for _ in range(3000):
            far.transport.send(b"never read")
        await far.transport.close()
        await near.transport.close()
        await near.transport.close()
        while far.transport.backlog:
            await asyncio.sleep(0)
        near.transport.send(b"dropped")
        far.transport.send(b"dropped")
        assert (near.frames, near.ends, far.frames, far.ends) == ([], [], [], [None])

    asyncio.run(asyncio.wait_for(script(), 20))


def test_an_end_connects_once() -> None:
    async def script(near: Observed, far: Observed) -> None:
        with pytest.raises(TransportError, match="once"):
            await near.transport.connect()

    run(script)


def test_exception_in_a_receiver_is_logged_and_delivery_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script(near: Observed, far: Observed) -> None:
        def fail(*_: object) -> None:
            raise ValueError("no")

        note = far.transport.on_message
        far.transport.on_message = fail
        near.transport.send(b"1")
        far.transport.on_message = note
        near.transport.send(b"2")
        assert far.frames == [b"2"]
        far.transport.on_error = near.transport.on_error = fail
        await near.transport.close()

    with caplog.at_level(logging.ERROR, "trunkline.transports"):
        run(script)
    assert caplog.text.count("on_message raised") == 1
    assert caplog.text.count("on_error raised") == 2


def test_an_interrupt_while_delivering_leaves_the_order_as_it_was() -> None:
    async def script(near: Observed, far: Observed) -> None:
        note = far.transport.on_message

        def interrupt(frame: Any, route: object) -> None:
            note(frame, route)
            if frame == b"1":
                near.transport.send(b"2")
                near.transport.send(b"3")
            if frame == b"2":
                raise KeyboardInterrupt

        far.transport.on_message = interrupt
        with pytest.raises(KeyboardInterrupt):
            near.transport.send(b"1")
        near.transport.send(b"4")
        await asyncio.sleep(0)
        assert far.frames == [b"1", b"2", b"3", b"4"]

    run(script)

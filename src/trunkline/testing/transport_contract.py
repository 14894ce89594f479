"""The contract of `trunkline.transports.base` as tests, for authors of transports.

    class TestCarrierPigeons(TransportContract):
        async def make_pair(self):
            loft = Loft()
            return PigeonTransport(loft.east), PigeonTransport(loft.west)

Pytest collects a subclass like any class of tests, without a plugin: each test runs its own event
loop. No test measures time, and every wait is bounded. A rule that does not apply to a transport is
skipped by `unittest.SkipTest`, so that this module can be imported without pytest.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final
from unittest import SkipTest

from ..errors import TransportError
from ..jsonrpc.framing.framing import Oversize
from ..transports.base import HIGH_WATER, Frame, Transport

__all__ = ["Observed", "TransportContract", "leftovers"]

# Ends a test that hangs.
_TEST_TIMEOUT_S: Final = 30.0
# The frame limit of the limited pair: a little more than the small frames of its test.
_LIMIT_BYTES: Final = 1000


class Observed:
    """A transport, and the calls of its callbacks."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.frames: list[Frame] = []
        self.ends: list[TransportError | None] = []
        self.drained = 0
        self.after_the_end = 0  # frames; must stay 0
        self.threads: set[int] = set()
        self._changed = asyncio.Event()
        transport.on_message = self._on_message
        transport.on_error = self._on_error
        transport.on_drained = self._on_drained

    async def until(self, is_so: Callable[[Observed], bool]) -> None:
        """Wait until a condition holds; fail after a timeout."""
        async with asyncio.timeout(_TEST_TIMEOUT_S):
            while not is_so(self):
                self._changed.clear()
                await self._changed.wait()

    async def received(self, count: int) -> list[Frame]:
        """Wait for `count` frames; return all received ones."""
        await self.until(lambda end: len(end.frames) >= count)
        return self.frames

    async def ended(self) -> TransportError | None:
        """Wait for the end; return the reported error, or None."""
        await self.until(lambda end: bool(end.ends))
        return self.ends[0]

    def _on_message(self, frame: Frame, route: Any) -> None:
        self.frames.append(frame)
        self.after_the_end += bool(self.ends)
        self._note()

    def _on_error(self, error: TransportError | None) -> None:
        self.ends.append(error)
        self._note()

    def _on_drained(self) -> None:
        self.drained += 1
        self._note()

    def _note(self) -> None:
        self.threads.add(threading.get_ident())
        self._changed.set()


def leftovers() -> dict[str, set[Any]]:
    """Return the tasks, threads, timers, descriptors and children of this process.

    Compare two calls to find what a transport left behind. Descriptors and children need `/proc`,
    timers an event loop of asyncio.
    """
    here = asyncio.current_task()
    timers = getattr(asyncio.get_running_loop(), "_scheduled", ())
    found: dict[str, set[Any]] = {
        "tasks": {task for task in asyncio.all_tasks() if task is not here},
        "threads": set(threading.enumerate()),
        "timers": {timer for timer in timers if not timer.cancelled()},
    }
    try:
        # The listing includes its own descriptor, which is closed by now.
        found["descriptors"] = {fd for fd in os.listdir("/proc/self/fd") if _is_open(int(fd))}
        task = f"/proc/self/task/{threading.get_native_id()}/children"
        with open(task) as children:
            found["children"] = set(children.read().split())
    except OSError:
        pass
    return found


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


_Script = Callable[["TransportContract", Observed, Observed], Coroutine[Any, Any, None]]


def _rule(
    *, connected: bool = True, limit: int | None = None, needs: str = ""
) -> Callable[[_Script], Callable[[Any], None]]:
    """Make a test of a script over a pair; skip it unless the class attribute `needs` is true."""

    def decorate(script: _Script) -> Callable[[Any], None]:
        def test(self: TransportContract) -> None:
            if needs and not getattr(self, needs):
                raise SkipTest(f"{needs} is false")
            asyncio.run(asyncio.wait_for(_run(self, script, connected, limit), _TEST_TIMEOUT_S))

        # Not functools.wraps: pytest would take the parameters of the script for fixtures.
        test.__name__, test.__qualname__ = script.__name__, script.__qualname__
        test.__doc__ = script.__doc__
        return test

    return decorate


async def _run(
    contract: TransportContract, script: _Script, connected: bool, limit: int | None
) -> None:
    """Run a script over a pair, close both, and check that nothing is left."""
    before = leftovers()
    made = contract.make_pair() if limit is None else contract.make_limited_pair(limit)
    pair = await made
    if pair is None:
        raise SkipTest("make_limited_pair returned None")
    near, far = (Observed(transport) for transport in pair)
    try:
        if connected:
            await asyncio.gather(near.transport.connect(), far.transport.connect())
        await script(contract, near, far)
    finally:
        await asyncio.gather(near.transport.close(), far.transport.close())
    _assert_nothing_left(before)


class TransportContract:
    """Tests of every rule; a subclass makes the transports."""

    # True if an end by the other side is an error, as with a server that exits.
    end_by_the_other_side_is_an_error = False
    # True if the first of a pair can connect, and send, before the other has connected.
    connects_alone = True
    # False if frames travel as text, and must be UTF-8.
    carries_any_bytes = True
    # The size of the large frame, in bytes.
    large = 4 * 1024 * 1024

    async def make_pair(self) -> tuple[Transport, Transport]:
        """Return two transports joined to each other, not connected yet."""
        raise NotImplementedError

    async def make_limited_pair(self, limit: int) -> tuple[Transport, Transport] | None:
        """Return a pair that reads frames of at most `limit` bytes, or None if it has no limit."""
        return None

    def make_lost(self) -> Transport | None:
        """Return a transport with nothing to connect to, or None if it cannot exist."""
        return None

    # Frames

    @_rule()
    async def test_frames_arrive_whole_and_in_order_both_ways(
        self, near: Observed, far: Observed
    ) -> None:
        """Frames are received as they were sent, in order."""
        there = [b'{"there":%d,"pad":"%s"}' % (n, b"x" * (n % 500)) for n in range(300)]
        back = [b'{"back":%d}' % n for n in range(300)]
        for one, other in zip(there, back, strict=True):
            near.transport.send(one)
            far.transport.send(other)
        assert await far.received(300) == there
        assert await near.received(300) == back

    @_rule()
    async def test_many_small_frames_arrive(self, near: Observed, far: Observed) -> None:
        """Frames sent in one tick of the loop stay separate."""
        sent = [b'{"n":%d}' % n for n in range(5000)]
        for frame in sent:
            near.transport.send(frame)
        same = await far.received(5000) == sent
        assert same

    @_rule()
    async def test_a_large_frame_arrives_between_small_ones(
        self, near: Observed, far: Observed
    ) -> None:
        """A frame larger than any buffer arrives whole."""
        sent = [b'"before"', b'"%s"' % (b"m" * (self.large - 2)), b'"after"']
        for frame in sent:
            near.transport.send(frame)
            far.transport.send(frame)
        for end in (near, far):
            same = await end.received(3) == sent
            assert same

    @_rule()
    async def test_every_character_arrives_as_it_was_sent(
        self, near: Observed, far: Observed
    ) -> None:
        """Every byte of UTF-8 passes unchanged, and blanks around a frame too."""
        # All of up to two bytes, and samples of the longer ones.
        longer = [*range(0x800, 0xD800, 0x3FF), *range(0xE000, 0x110000, 0x3FFFF), 0x10FFFF]
        text = "".join(map(chr, [*range(0x20, 0x800), *longer]))
        sent = [f'"{text}"'.encode(), b' "blanks around" ', "\ufeff\u2028".encode()]
        for frame in sent:
            near.transport.send(frame)
            far.transport.send(frame)
        for end in (near, far):
            assert await end.received(3) == sent

    @_rule(needs="carries_any_bytes")
    async def test_every_byte_arrives_as_it_was_sent(self, near: Observed, far: Observed) -> None:
        """A transport does not look into a frame: it need not be UTF-8."""
        # No line feed, which ends a frame in newline framing.
        sent = [b'"%s"' % bytes(byte for byte in range(256) if byte != 10), b'"\xff\xc0\x80"']
        for frame in sent:
            near.transport.send(frame)
            far.transport.send(frame)
        for end in (near, far):
            assert await end.received(2) == sent

    @_rule(limit=_LIMIT_BYTES)
    async def test_an_oversize_frame_is_reported_in_its_place(
        self, near: Observed, far: Observed
    ) -> None:
        """An `Oversize` takes the place of the frame, and reading continues."""
        large = b'"%s"' % (b"o" * 100 * _LIMIT_BYTES)
        for frame in (b'"before"', large, b'"after"'):
            near.transport.send(frame)
        first, second, third = await far.received(3)
        assert (first, third) == (b'"before"', b'"after"')
        assert isinstance(second, Oversize)
        assert second.limit == _LIMIT_BYTES
        assert large.startswith(second.head)
        far.transport.send(b'"answer"')
        assert await near.received(1) == [b'"answer"']

    @_rule()
    async def test_a_callback_that_raises_once_misses_nothing_else(
        self, near: Observed, far: Observed
    ) -> None:
        """An exception of `on_message` loses no other frame."""
        note = far.transport.on_message

        def fail_first(frame: Frame, route: Any) -> None:
            note(frame, route)
            if len(far.frames) == 1:
                raise ValueError("the first frame is not understood")

        far.transport.on_message = fail_first
        near.transport.send(b'"raises"')
        near.transport.send(b'"in the same tick"')
        await far.received(2)
        near.transport.send(b'"later"')
        assert await far.received(3) == [b'"raises"', b'"in the same tick"', b'"later"']
        far.transport.send(b'"answer"')
        assert await near.received(1) == [b'"answer"']
        assert not near.ends + far.ends

    @_rule()
    async def test_what_a_callback_sends_arrives(self, near: Observed, far: Observed) -> None:
        """`on_message` may call `send` with the route of the frame."""
        note = far.transport.on_message

        def answer(frame: Frame, route: Any) -> None:
            note(frame, route)
            far.transport.send(b'{"answer":%d}' % len(far.frames), route)

        far.transport.on_message = answer
        for n in range(100):
            near.transport.send(b'{"question":%d}' % n)
        assert await near.received(100) == [b'{"answer":%d}' % n for n in range(1, 101)]

    @_rule()
    async def test_callbacks_come_on_the_thread_of_the_loop(
        self, near: Observed, far: Observed
    ) -> None:
        """Callbacks run in the thread of the loop that connected."""
        near.transport.send(b"1")
        await far.received(1)
        await near.transport.close()
        await far.ended()
        assert near.threads | far.threads == {threading.get_ident()}

    # Backlog

    @_rule(connected=False, needs="connects_alone")
    async def test_sending_does_not_wait_and_the_backlog_drains(
        self, near: Observed, far: Observed
    ) -> None:
        """`send` returns at once; `backlog` grows, `on_drained` is called once, `written` grows."""
        await near.transport.connect()
        sent = [b'"%d%s"' % (n, b"b" * 512 * 1024) for n in range(20)]
        for frame in sent:
            near.transport.send(frame)
        await asyncio.sleep(0.05)  # for buffers on the way to fill
        assert near.transport.backlog > HIGH_WATER
        drained_before = near.drained
        await far.transport.connect()
        same = await far.received(20) == sent
        assert same
        await near.until(lambda end: end.drained > 0)
        await _until_written(near)
        assert (drained_before, near.drained) == (0, 1)
        assert near.transport.written >= sum(map(len, sent))

    # The end

    @_rule()
    async def test_closing_is_reported_once_on_both_sides(
        self, near: Observed, far: Observed
    ) -> None:
        """`close` reports None on both sides, once."""
        await near.transport.close()
        assert near.ends == [None]
        assert await far.ended() is None
        await far.transport.close()
        assert near.ends == [None]
        assert far.ends == [None]

    @_rule()
    async def test_an_end_by_the_other_side_is_reported_once(
        self, near: Observed, far: Observed
    ) -> None:
        """The end is reported after the last frame, once, also if `close` follows."""
        far.transport.send(b'"last"')
        await far.transport.close()
        is_error = await near.ended() is not None
        assert is_error is self.end_by_the_other_side_is_an_error
        assert near.frames == [b'"last"']
        await near.transport.close()
        assert len(near.ends) == 1
        assert not near.after_the_end

    @_rule()
    async def test_what_is_sent_after_the_end_is_dropped(
        self, near: Observed, far: Observed
    ) -> None:
        """`send` after the end has no effect: no exception, no report, no backlog."""
        far.transport.send(b'"first"')
        await near.received(1)
        await near.transport.close()
        near.transport.send(b'"dropped"')
        await far.ended()
        far.transport.send(b'"dropped too"')
        await asyncio.sleep(0.05)
        far.transport.send(b'"and again"')
        await far.transport.close()
        assert near.frames == [b'"first"']
        assert far.frames == []
        assert near.transport.backlog == far.transport.backlog == 0
        assert len(near.ends) == len(far.ends) == 1

    @_rule(connected=False)
    async def test_is_connected_follows_connect_and_close(
        self, near: Observed, far: Observed
    ) -> None:
        """It is true from `connect` to `close`."""
        told = [near.transport.is_connected]
        await asyncio.gather(near.transport.connect(), far.transport.connect())
        told += [near.transport.is_connected, far.transport.is_connected]
        await near.transport.close()
        assert [*told, near.transport.is_connected] == [False, True, True, False]

    # Closing

    @_rule()
    async def test_closing_writes_what_was_sent(self, near: Observed, far: Observed) -> None:
        """`close` writes what was sent before it."""
        sent = [b'"%d%s"' % (n, b"c" * 10_000) for n in range(400)]
        for frame in sent:
            near.transport.send(frame)
        await near.transport.close()
        await far.ended()
        same = far.frames == sent
        assert same

    @_rule()
    async def test_closing_in_the_middle_of_traffic_ends_both_sides(
        self, near: Observed, far: Observed
    ) -> None:
        """`close` may be called while frames pass in both directions."""

        async def chatter(end: Observed) -> None:
            while True:
                end.transport.send(b'"%s"' % (b"t" * 1000))
                await asyncio.sleep(0)

        talk = [asyncio.create_task(chatter(end)) for end in (near, far)]
        await near.received(50)
        await far.received(50)
        await near.transport.close()
        await far.ended()
        for task in talk:
            task.cancel()
        await asyncio.gather(*talk, return_exceptions=True)
        await far.transport.close()
        assert len(near.ends) == len(far.ends) == 1
        assert not near.after_the_end + far.after_the_end

    @_rule()
    async def test_closing_twice_at_once_and_from_other_tasks_is_one_closing(
        self, near: Observed, far: Observed
    ) -> None:
        """`close` may be called twice, and by any task."""
        near.transport.send(b'"sent"')
        await asyncio.gather(*(asyncio.create_task(near.transport.close()) for _ in range(3)))
        assert near.ends == [None]
        await near.transport.close()
        assert near.ends == [None]
        await far.ended()
        assert far.frames == [b'"sent"']

    @_rule()
    async def test_cancelling_close_does_not_stop_the_closing(
        self, near: Observed, far: Observed
    ) -> None:
        """The transport is closed although the waiting task was cancelled."""
        closing = asyncio.create_task(near.transport.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        assert await near.ended() is None
        await far.ended()

    @_rule(connected=False)
    async def test_closing_before_connecting_does_nothing_bad(
        self, near: Observed, far: Observed
    ) -> None:
        """`close` may be called before `connect`."""
        await near.transport.close()
        near.transport.send(b'"dropped"')
        assert not near.transport.is_connected
        assert len(near.ends) <= 1

    @_rule(connected=False, needs="connects_alone")
    async def test_closing_without_connecting_ends_the_other_side(
        self, near: Observed, far: Observed
    ) -> None:
        """`close` before `connect` is reported to a connected peer."""
        await near.transport.connect()
        await far.transport.close()
        is_error = await near.ended() is not None
        assert is_error is self.end_by_the_other_side_is_an_error
        assert not near.frames + far.frames
        await near.transport.close()
        assert len(near.ends) == 1
        assert len(far.ends) <= 1

    @_rule(connected=False, needs="connects_alone")
    async def test_connecting_after_the_other_side_closed_is_reported(
        self, near: Observed, far: Observed
    ) -> None:
        """`connect` raises, or the end is reported after it."""
        await far.transport.close()
        try:
            await near.transport.connect()
        except TransportError:
            return
        await near.ended()
        await near.transport.close()
        assert len(near.ends) == 1

    # Connecting

    @_rule()
    async def test_connecting_twice_is_refused_and_changes_nothing(
        self, near: Observed, far: Observed
    ) -> None:
        """A second `connect` raises TransportError; the connection stays open."""
        for end in (near, far):
            refusal = None
            try:
                await end.transport.connect()
            except TransportError as error:
                refusal = error
            assert refusal is not None, "connecting twice must raise TransportError"
            assert end.transport.is_connected
        near.transport.send(b'"there"')
        far.transport.send(b'"back"')
        assert await far.received(1) == [b'"there"']
        assert await near.received(1) == [b'"back"']
        assert not near.ends + far.ends

    def test_connecting_to_nothing_fails_and_leaves_nothing(self) -> None:
        """`connect` raises TransportError, and nothing is left behind."""

        lost = self.make_lost()
        if lost is None:
            raise SkipTest("make_lost returned None")

        async def script() -> None:
            before = leftovers()
            end = Observed(lost)
            failure = None
            try:
                await lost.connect()
            except TransportError as error:
                failure = error
            assert failure is not None, "connecting to nothing must raise TransportError"
            assert not lost.is_connected
            await lost.close()
            assert not end.frames
            _assert_nothing_left(before)

        asyncio.run(asyncio.wait_for(script(), _TEST_TIMEOUT_S))


async def _until_written(end: Observed) -> None:
    async with asyncio.timeout(_TEST_TIMEOUT_S):
        while end.transport.backlog:
            await asyncio.sleep(0.001)


def _assert_nothing_left(before: dict[str, set[Any]]) -> None:
    left = {kind: things - before.get(kind, set()) for kind, things in leftovers().items()}
    assert not any(left.values()), f"left behind: {left}"

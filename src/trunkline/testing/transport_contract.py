"""The rules of `trunkline.transports.base` as tests, for whoever writes a transport.

    class TestCarrierPigeons(TransportContract):
        async def make_pair(self):
            loft = Loft()
            return PigeonTransport(loft.east), PigeonTransport(loft.west)

A subclass is collected by pytest like any class of tests; no plugin is needed, for each test
runs its own event loop. No test measures time, and every wait has an end. A rule that a
transport cannot be held to is skipped, and seen to be: by SkipTest, which pytest knows, so that
nothing has to be installed to import this.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final
from unittest import SkipTest

from ..errors import TransportError
from ..jsonrpc.framing import Oversize
from ..transports.base import HIGH_WATER, Frame, Transport

__all__ = ["Observed", "TransportContract", "leftovers"]

# Far beyond what any test needs: it ends one that hangs.
_HANGS: Final = 30.0
# The limit of the pair that has one: more than the small frames of the test, and not much more.
_LIMIT: Final = 1000


class Observed:
    """A transport, and what it has called back."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.frames: list[Frame] = []
        self.ends: list[TransportError | None] = []
        self.drained = 0
        self.after_the_end = 0  # frames, of which there may be none
        self.threads: set[int] = set()
        self._changed = asyncio.Event()
        transport.on_message = self._on_message
        transport.on_error = self._on_error
        transport.on_drained = self._on_drained

    async def until(self, is_so: Callable[[Observed], bool]) -> None:
        """Wait until something is so; fail when it does not come about."""
        async with asyncio.timeout(_HANGS):
            while not is_so(self):
                self._changed.clear()
                await self._changed.wait()

    async def received(self, count: int) -> list[Frame]:
        """Wait for so many frames, and return what there is then."""
        await self.until(lambda end: len(end.frames) >= count)
        return self.frames

    async def ended(self) -> TransportError | None:
        """Wait for the end, and return how it was reported."""
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
    """Return what this process holds that a transport could leave behind, to compare two moments.

    Descriptors and children are seen where the system shows them under `/proc`, and timers where
    the loop is one of asyncio's own.
    """
    here = asyncio.current_task()
    timers = getattr(asyncio.get_running_loop(), "_scheduled", ())
    found: dict[str, set[Any]] = {
        "tasks": {task for task in asyncio.all_tasks() if task is not here},
        "threads": set(threading.enumerate()),
        "timers": {timer for timer in timers if not timer.cancelled()},
    }
    try:
        # The descriptor of the listing itself is in the listing, and closed by now.
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


class TransportContract:
    """Tests of every rule; a subclass says how a transport is made."""

    # Whether an end by the other side counts as an error, as with a server that exits.
    end_by_the_other_side_is_an_error = False
    # Whether the first of a pair can connect, and send, before the other has connected.
    connects_alone = True
    # Whether a frame may hold bytes that are no UTF-8: not so where frames travel as text.
    carries_any_bytes = True
    # A frame of this size, in bytes, has to pass.
    large = 4 * 1024 * 1024

    async def make_pair(self) -> tuple[Transport, Transport]:
        """Return two transports that are joined to each other, neither connected yet."""
        raise NotImplementedError

    async def make_limited_pair(self, limit: int) -> tuple[Transport, Transport] | None:
        """Return a pair that reads frames of at most `limit` bytes, or None if it has no limit."""
        return None

    def make_lost(self) -> Transport | None:
        """Return a transport with nothing to connect to, or None if there is no such thing."""
        return None

    # Frames

    def test_frames_arrive_whole_and_in_order_both_ways(self) -> None:
        """Frames come out as they went in, in the order they went in."""

        async def script(near: Observed, far: Observed) -> None:
            there = [b'{"there":%d,"pad":"%s"}' % (n, b"x" * (n % 500)) for n in range(300)]
            back = [b'{"back":%d}' % n for n in range(300)]
            for one, other in zip(there, back, strict=True):
                near.transport.send(one)
                far.transport.send(other)
            assert await far.received(300) == there
            assert await near.received(300) == back

        self._run(script)

    def test_many_small_frames_arrive(self) -> None:
        """Gathering what is sent in one tick keeps frames apart."""

        async def script(near: Observed, far: Observed) -> None:
            sent = [b'{"n":%d}' % n for n in range(5000)]
            for frame in sent:
                near.transport.send(frame)
            same = await far.received(5000) == sent
            assert same

        self._run(script)

    def test_a_large_frame_arrives_between_small_ones(self) -> None:
        """A frame larger than any buffer on the way comes out whole."""

        async def script(near: Observed, far: Observed) -> None:
            sent = [b'"before"', b'"%s"' % (b"m" * (self.large - 2)), b'"after"']
            for frame in sent:
                near.transport.send(frame)
                far.transport.send(frame)
            for end in (near, far):
                same = await end.received(3) == sent
                assert same

        self._run(script)

    def test_every_character_arrives_as_it_was_sent(self) -> None:
        """Frames are UTF-8: each byte that can occur in it passes, and so do blanks around."""

        async def script(near: Observed, far: Observed) -> None:
            # Everything of up to two bytes, and the lowest and highest of each longer beginning.
            longer = [*range(0x800, 0xD800, 0x3FF), *range(0xE000, 0x110000, 0x3FFFF), 0x10FFFF]
            text = "".join(map(chr, [*range(0x20, 0x800), *longer]))
            sent = [f'"{text}"'.encode(), b' "blanks around" ', "\ufeff\u2028".encode()]
            for frame in sent:
                near.transport.send(frame)
                far.transport.send(frame)
            for end in (near, far):
                assert await end.received(3) == sent

        self._run(script)

    def test_every_byte_arrives_as_it_was_sent(self) -> None:
        """What a frame says is not the transport's business, not even whether it is a text."""
        if not self.carries_any_bytes:
            raise SkipTest("carries_any_bytes is false")

        async def script(near: Observed, far: Observed) -> None:
            # Not a line feed, which ends a frame where frames are lines.
            sent = [b'"%s"' % bytes(byte for byte in range(256) if byte != 10), b'"\xff\xc0\x80"']
            for frame in sent:
                near.transport.send(frame)
                far.transport.send(frame)
            for end in (near, far):
                assert await end.received(2) == sent

        self._run(script)

    def test_a_frame_over_the_limit_is_told_in_its_place(self) -> None:
        """An `Oversize` stands where the frame would have, and what follows is read."""

        async def script(near: Observed, far: Observed) -> None:
            large = b'"%s"' % (b"o" * 100 * _LIMIT)
            for frame in (b'"before"', large, b'"after"'):
                near.transport.send(frame)
            first, second, third = await far.received(3)
            assert (first, third) == (b'"before"', b'"after"')
            assert isinstance(second, Oversize)
            assert second.limit == _LIMIT
            assert large.startswith(second.head)
            far.transport.send(b'"answer"')
            assert await near.received(1) == [b'"answer"']

        self._run(script, limit=_LIMIT)

    def test_a_callback_that_raises_once_misses_nothing_else(self) -> None:
        """What `on_message` raises is not the transport's fault, nor that of the next frame."""

        async def script(near: Observed, far: Observed) -> None:
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

        self._run(script)

    def test_what_a_callback_sends_arrives(self) -> None:
        """`send` may be called by `on_message`, with the route that came with the frame."""

        async def script(near: Observed, far: Observed) -> None:
            note = far.transport.on_message

            def answer(frame: Frame, route: Any) -> None:
                note(frame, route)
                far.transport.send(b'{"answer":%d}' % len(far.frames), route)

            far.transport.on_message = answer
            for n in range(100):
                near.transport.send(b'{"question":%d}' % n)
            assert await near.received(100) == [b'{"answer":%d}' % n for n in range(1, 101)]

        self._run(script)

    def test_callbacks_come_on_the_thread_of_the_loop(self) -> None:
        """Callbacks are called on the loop that connected, whatever threads are used."""

        async def script(near: Observed, far: Observed) -> None:
            near.transport.send(b"1")
            await far.received(1)
            await near.transport.close()
            await far.ended()
            assert near.threads | far.threads == {threading.get_ident()}

        self._run(script)

    # Backlog

    def test_sending_does_not_wait_and_a_backlog_is_told_and_drains(self) -> None:
        """`send` returns at once; `backlog` and `on_drained` say how the other side keeps up."""
        if not self.connects_alone:
            raise SkipTest("connects_alone is false")

        async def script(near: Observed, far: Observed) -> None:
            await near.transport.connect()
            sent = [b'"%d%s"' % (n, b"b" * 512 * 1024) for n in range(20)]
            for frame in sent:
                near.transport.send(frame)
            await asyncio.sleep(0.05)  # whatever is taken without the other side is taken now
            assert near.transport.backlog > HIGH_WATER
            drained_before = near.drained
            await far.transport.connect()
            same = await far.received(20) == sent
            assert same
            await near.until(lambda end: end.drained > 0)
            await self._until_written(near)
            assert (drained_before, near.drained) == (0, 1)

        self._run(script, connected=False)

    # The end

    def test_closing_is_reported_once_on_both_sides(self) -> None:
        """`close` reports an end in order, here and there, and only one."""

        async def script(near: Observed, far: Observed) -> None:
            await near.transport.close()
            assert near.ends == [None]
            assert await far.ended() is None
            await far.transport.close()
            assert near.ends == [None]
            assert far.ends == [None]

        self._run(script)

    def test_an_end_by_the_other_side_is_reported_once(self) -> None:
        """The end comes after the last frame, once; closing afterwards adds nothing."""

        async def script(near: Observed, far: Observed) -> None:
            far.transport.send(b'"last"')
            await far.transport.close()
            is_error = await near.ended() is not None
            assert is_error is self.end_by_the_other_side_is_an_error
            assert near.frames == [b'"last"']
            await near.transport.close()
            assert len(near.ends) == 1
            assert not near.after_the_end

        self._run(script)

    def test_what_is_sent_after_the_end_is_dropped(self) -> None:
        """`send` after the end does nothing: no exception, no second report, no backlog."""

        async def script(near: Observed, far: Observed) -> None:
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

        self._run(script)

    def test_being_connected_is_told_as_it_is(self) -> None:
        """`is_connected` follows `connect` and `close`."""

        async def script(near: Observed, far: Observed) -> None:
            told = [near.transport.is_connected]
            await asyncio.gather(near.transport.connect(), far.transport.connect())
            told += [near.transport.is_connected, far.transport.is_connected]
            await near.transport.close()
            assert [*told, near.transport.is_connected] == [False, True, True, False]

        self._run(script, connected=False)

    # Closing

    def test_closing_writes_what_was_sent(self) -> None:
        """`close` writes what was sent before it."""

        async def script(near: Observed, far: Observed) -> None:
            sent = [b'"%d%s"' % (n, b"c" * 10_000) for n in range(400)]
            for frame in sent:
                near.transport.send(frame)
            await near.transport.close()
            await far.ended()
            same = far.frames == sent
            assert same

        self._run(script)

    def test_closing_in_the_middle_of_traffic_ends_both_sides(self) -> None:
        """`close` may come at any time, with frames on the way in both directions."""

        async def script(near: Observed, far: Observed) -> None:
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

        self._run(script)

    def test_closing_twice_at_once_and_from_other_tasks_is_one_closing(self) -> None:
        """`close` may be called twice, and by any task."""

        async def script(near: Observed, far: Observed) -> None:
            near.transport.send(b'"sent"')
            await asyncio.gather(*(asyncio.create_task(near.transport.close()) for _ in range(3)))
            assert near.ends == [None]
            await near.transport.close()
            assert near.ends == [None]
            await far.ended()
            assert far.frames == [b'"sent"']

        self._run(script)

    def test_cancelling_who_closes_does_not_stop_the_closing(self) -> None:
        """Cancelling who waits for `close` does not stop it."""

        async def script(near: Observed, far: Observed) -> None:
            closing = asyncio.create_task(near.transport.close())
            await asyncio.sleep(0)
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            assert await near.ended() is None
            await far.ended()

        self._run(script)

    def test_closing_before_connecting_does_nothing_bad(self) -> None:
        """`close` may come before `connect`."""

        async def script(near: Observed, far: Observed) -> None:
            await near.transport.close()
            near.transport.send(b'"dropped"')
            assert not near.transport.is_connected
            assert len(near.ends) <= 1

        self._run(script, connected=False)

    def test_who_waits_is_told_that_the_other_left_without_connecting(self) -> None:
        """`close` before `connect` ends the connection for the other side, too."""
        if not self.connects_alone:
            raise SkipTest("connects_alone is false")

        async def script(near: Observed, far: Observed) -> None:
            await near.transport.connect()
            await far.transport.close()
            is_error = await near.ended() is not None
            assert is_error is self.end_by_the_other_side_is_an_error
            assert not near.frames + far.frames
            await near.transport.close()
            assert len(near.ends) == 1
            assert len(far.ends) <= 1

        self._run(script, connected=False)

    def test_who_comes_later_is_told_that_the_other_has_left(self) -> None:
        """An end before the beginning is told by `connect` or after it."""
        if not self.connects_alone:
            raise SkipTest("connects_alone is false")

        async def script(near: Observed, far: Observed) -> None:
            await far.transport.close()
            try:
                await near.transport.connect()
            except TransportError:
                return
            await near.ended()
            await near.transport.close()
            assert len(near.ends) == 1

        self._run(script, connected=False)

    # Connecting

    def test_connecting_twice_is_refused_and_changes_nothing(self) -> None:
        """`connect` is called once: another one raises TransportError, and all goes on."""

        async def script(near: Observed, far: Observed) -> None:
            for end in (near, far):
                refusal = None
                try:
                    await end.transport.connect()
                except TransportError as error:
                    refusal = error
                assert refusal is not None, "connecting twice has to raise TransportError"
                assert end.transport.is_connected
            near.transport.send(b'"there"')
            far.transport.send(b'"back"')
            assert await far.received(1) == [b'"there"']
            assert await near.received(1) == [b'"back"']
            assert not near.ends + far.ends

        self._run(script)

    def test_connecting_to_nothing_fails_and_leaves_nothing(self) -> None:
        """`connect` raises TransportError, and then nothing is left."""

        lost = self.make_lost()
        if lost is None:
            raise SkipTest("make_lost gives nothing")

        async def script() -> None:
            before = leftovers()
            end = Observed(lost)
            failure = None
            try:
                await lost.connect()
            except TransportError as error:
                failure = error
            assert failure is not None, "connecting to nothing has to raise TransportError"
            assert not lost.is_connected
            await lost.close()
            assert not end.frames
            self._assert_nothing_left(before)

        asyncio.run(asyncio.wait_for(script(), _HANGS))

    # How they are run

    def _run(
        self,
        script: Callable[[Observed, Observed], Coroutine[Any, Any, None]],
        *,
        connected: bool = True,
        limit: int | None = None,
    ) -> None:
        """Run a script over a pair, close both, and see that nothing is left."""

        async def run() -> None:
            before = leftovers()
            pair = await (self.make_pair() if limit is None else self.make_limited_pair(limit))
            if pair is None:
                raise SkipTest("make_limited_pair gives nothing")
            near, far = (Observed(transport) for transport in pair)
            try:
                if connected:
                    await asyncio.gather(near.transport.connect(), far.transport.connect())
                await script(near, far)
            finally:
                await asyncio.gather(near.transport.close(), far.transport.close())
            self._assert_nothing_left(before)

        asyncio.run(asyncio.wait_for(run(), _HANGS))

    async def _until_written(self, end: Observed) -> None:
        async with asyncio.timeout(_HANGS):
            while end.transport.backlog:
                await asyncio.sleep(0.001)

    def _assert_nothing_left(self, before: dict[str, set[Any]]) -> None:
        left = {kind: things - before.get(kind, set()) for kind, things in leftovers().items()}
        assert not any(left.values()), f"left behind: {left}"

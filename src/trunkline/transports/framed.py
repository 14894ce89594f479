"""Frames over a byte stream: the base of the transports on pipes, files and sockets.

Splits bytes into frames, and keeps the rules of `base` about order: no frame after the end, one
end, one closing task that all callers of `close` wait for. The subclass opens the stream and
takes it down.

What was read and is more than one turn may handle (`receive_limits`) waits as bytes: many small
frames would take ten times the memory. They are split step by step, in steps that are short while
frames are small.
"""

from __future__ import annotations

import asyncio
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from ..jsonrpc.framing.framing import framing_named
from .base import TransportBase, log_raised
from .io.fd import NO_WRITER, is_abandoned
from .receive_limits import MAX_BYTES_PER_TURN, MAX_MESSAGES_PER_TURN, most_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ..errors import TransportError
    from ..jsonrpc.limits import TransportName
    from ..jsonrpc.policy import Policy
    from .base import Frame
    from .io.fd import FdReader, FdWriter, NoWriter
    from .io.thread import ThreadReader, ThreadWriter
    from .sockets.tls import TlsChannel
    from .stdio.loop_process import LoopReader, LoopWriter

__all__ = ["FramedTransport"]

# A larger frame and its delimiter are written as two parts: a copy would cost more.
_MAX_COPIED_BYTES: Final = 64 * 1024
# Bytes that are split into frames at once: at the beginning, and at least.
_FIRST_STEP_BYTES: Final = 4096
_LEAST_STEP_BYTES: Final = 1024
# How often `finish` checks whether the connection is being closed meanwhile.
_POLL_INTERVAL_S: Final = 1.0


class FramedTransport(TransportBase):
    """The part of a transport that is the same on every stream.

    A subclass sets `_reader`, `_writer` and `_is_open` when it connects, calls `_receive` and
    `_receive_end`, and takes the connection down in `_end`.
    """

    def __init__(self, policy: Policy, name: TransportName) -> None:
        super().__init__(name)
        self._framing = framing_named(policy.framing, policy.limits.message_size(name))
        self._reader: FdReader | ThreadReader | LoopReader | None = None
        self._writer: FdWriter | ThreadWriter | LoopWriter | TlsChannel | NoWriter = NO_WRITER
        self._is_open = False  # frames can be sent
        self._is_reported = False  # the end was reported, and no frame may follow
        self._ending: asyncio.Task[None] | None = None
        # Bytes in total, and as many as these were when a frame was last completed.
        self.received = self.completed = 0
        self._is_paused = False
        # What waits for its turn: frames, and bytes from a place on. While there is any, the
        # reader is paused.
        self._is_behind = False
        self._waiting: deque[Frame] = deque()
        self._rest = b""
        self._at = 0
        self._step = _FIRST_STEP_BYTES
        self._has_lines = policy.framing in ("newline", "detect")
        # The end of the input, where it arrived before all frames were delivered.
        self._waiting_end: Callable[[], object] | None = None

    # Read for every request, so the getter is an `attrgetter`, which costs no Python call. The
    # cast is for type checkers: a property made this way has no type.
    backlog: int = cast(
        "int",
        property(
            attrgetter("_writer.backlog"), doc="The number of bytes sent and not written yet."
        ),
    )

    @property
    def is_connected(self) -> bool:
        """Whether frames can be sent."""
        return self._is_open

    @property
    def written(self) -> int:
        """The number of bytes that have left the backlog, in total."""
        return self._writer.written

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send one frame, without waiting.

        Raises:
            LocalProtocolError: the framing cannot carry it; nothing was sent.
        """
        if self._is_open:
            if len(frame) < _MAX_COPIED_BYTES:
                self._writer.write(self._framing.frame(frame))
            else:
                for part in self._framing.parts(frame):
                    self._writer.write(part)

    def pause(self) -> None:
        """Stop reading until `resume`; frames that were read already may still be delivered."""
        self._is_paused = True
        if self._reader is not None:
            self._reader.pause()

    def resume(self) -> None:
        """Continue to read."""
        self._is_paused = False
        if self._reader is not None and not self._is_behind:
            self._reader.resume()

    def is_abandoned(self) -> bool:
        """Return True if the other side cannot read any more, as far as the system knows.

        The end of the input does not tell: the other side may still read answers.
        """
        fd = self._output()
        return fd >= 0 and is_abandoned(fd)

    async def finish(self) -> None:
        """Write what was sent, without a timeout, and end the output.

        Nothing can be sent any more. The input is still read until the other side ends it.
        """
        writer = self._writer
        if not self._is_open:
            return
        self._is_open = False
        # Once at least: with TLS this sends the close_notify alert.
        await writer.finish(_POLL_INTERVAL_S)
        while writer.backlog and self._ending is None:
            await writer.finish(_POLL_INTERVAL_S)
        if self._ending is None:
            self._end_output()

    async def close(self) -> None:
        """Write what was sent, and end the connection."""
        if self._ending is None:
            self._begin_to_end(self._end())
        if self._ending is not None:
            # A task of its own, so that it continues when a caller is cancelled.
            await asyncio.shield(self._ending)

    def _begin_to_end(self, ending: Coroutine[Any, Any, None]) -> None:
        self._is_open = False
        self._ending = asyncio.get_running_loop().create_task(ending)

    async def _end(self) -> None:
        """Release everything the connection holds, and report the end."""
        raise NotImplementedError

    def _output(self) -> int:
        """Return the descriptor for output, or -1."""
        return -1

    def _end_output(self) -> None:
        """End the output, where a stream can do that before its input ends."""

    def _drained(self) -> None:
        # Looked up when it is called: the user of the transport may set it late.
        self.on_drained()

    # Receiving

    def _receive(self, data: bytes) -> None:
        self.received += len(data)
        if self._is_behind or (
            len(data) > self._step
            # One line, or a part of one, is not split, and needs no steps.
            and not (self._has_lines and data.find(b"\n") in (-1, len(data) - 1))
        ):
            self._rest += data
            if not self._is_behind:
                self._take_turn()
            return
        frames = self._framing.feed(data)
        if not frames:
            return
        self.completed = self.received
        if len(frames) > 1:
            self._waiting.extend(frames)
            self._take_turn()
        elif not self._is_reported:
            try:
                self.on_message(frames[0], None)
            except Exception as error:  # noqa: BLE001  # a failed callback stops no later frame
                self._log_raised(error)

    def _take_turn(self) -> None:
        """Deliver what one turn may handle; what is left waits for the next one."""
        waiting = self._waiting
        messages = size = 0
        while (waiting or self._split_more()) and not self._is_reported:
            if not waiting:
                continue  # no frame ends in that part
            frame = waiting[0]
            size += len(frame)
            # An object is one message; anything else may be a batch.
            count = 1
            if frame[:1] != b"{" and isinstance(frame, bytes):
                count = most_messages(frame)
            if messages and (messages + count > MAX_MESSAGES_PER_TURN or size > MAX_BYTES_PER_TURN):
                break
            messages += count
            try:
                self.on_message(waiting.popleft(), None)
            except Exception as error:  # noqa: BLE001  # a failed callback stops no later frame
                self._log_raised(error)
        if self._is_reported:
            waiting.clear()
            self._rest = b""
        if waiting or self._rest:
            self._fall_behind()
        elif self._is_behind:
            self._catch_up()

    def _split_more(self) -> bool:
        """Split the next part of the bytes that wait; return False if there are none."""
        if not self._rest:
            return False
        at, step = self._at, self._step
        frames = self._framing.feed(self._rest[at : at + step])
        self._at = at + step
        if self._at >= len(self._rest):
            self._rest, self._at = b"", 0
        if frames:
            self.completed = self.received
            self._waiting.extend(frames)
        if len(frames) > MAX_MESSAGES_PER_TURN:
            self._step = max(_LEAST_STEP_BYTES, step * MAX_MESSAGES_PER_TURN // len(frames))
        elif 4 * len(frames) < MAX_MESSAGES_PER_TURN and step < MAX_BYTES_PER_TURN:
            self._step = 2 * step
        return True

    def _fall_behind(self) -> None:
        """Read nothing until all that was read is delivered."""
        if not self._is_behind:
            self._is_behind = True
            if self._reader is not None:
                self._reader.pause()
        asyncio.get_running_loop().call_soon(self._take_turn)

    def _catch_up(self) -> None:
        """Read on, or process the end that was read already."""
        self._is_behind = False
        if self._reader is not None and not self._is_paused:
            self._reader.resume()
        if self._waiting_end is not None:
            end, self._waiting_end = self._waiting_end, None
            end()

    def _ends_later(self, end: Callable[[], object]) -> bool:
        """Return True if frames wait that precede the end; `end` is then called after them."""
        if self._is_behind:
            self._waiting_end = end
        return self._is_behind

    def _receive_end(self) -> None:
        """Deliver the frame that the end of the stream completes or truncates."""
        for frame in self._framing.end():
            if self._is_reported:
                return
            try:
                self.on_message(frame, None)
            except Exception as error:  # noqa: BLE001  # a failed callback stops no later frame
                self._log_raised(error)

    def _log_raised(self, error: Exception) -> None:
        log_raised(error, f"{self.name} transport: on_message raised, frame dropped")

    def _report(self, error: TransportError | None) -> None:
        """Report the end of the connection, once."""
        if not self._is_reported:
            self._is_reported = True
            try:
                self.on_error(error)
            except Exception as error:  # noqa: BLE001  # the connection is still to be released
                log_raised(error, f"{self.name} transport: on_error raised")

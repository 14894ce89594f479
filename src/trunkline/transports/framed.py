"""Frames over a byte stream: the base of the transports on pipes, files and sockets.

Splits bytes into frames, and keeps the rules of `base` about order: no frame after the end, one
end, one closing task that all callers of `close` wait for. The subclass opens the stream and
takes it down.
"""

from __future__ import annotations

import asyncio
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from ..jsonrpc.framing.framing import framing_named
from .base import TransportBase, log_raised
from .io.fd import NO_WRITER, is_abandoned

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

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
        if self._reader is not None:
            self._reader.pause()

    def resume(self) -> None:
        """Continue to read."""
        if self._reader is not None:
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

    def _receive(self, data: bytes) -> None:
        self._deliver(self._framing.feed(data))

    def _receive_end(self) -> None:
        """Deliver the frame that the end of the stream completes or truncates."""
        self._deliver(self._framing.end())

    def _deliver(self, frames: Iterable[Frame]) -> None:
        for frame in frames:
            if self._is_reported:
                return
            try:
                self.on_message(frame, None)
            except Exception as error:  # noqa: BLE001  # a failed callback stops no later frame
                log_raised(error, f"{self.name} transport: on_message raised, frame dropped")

    def _report(self, error: TransportError | None) -> None:
        """Report the end of the connection, once."""
        if not self._is_reported:
            self._is_reported = True
            try:
                self.on_error(error)
            except Exception as error:  # noqa: BLE001  # the connection is still to be released
                log_raised(error, f"{self.name} transport: on_error raised")

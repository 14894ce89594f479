"""Frames over a stream of bytes: what transports on pipes, files and sockets have in common.

Knows where a frame begins and ends, by a framing, and keeps the promises of `base` that are
about order: no frame after the end, one end, one ending that all who close wait for. Where
the bytes come from and what ending means is the subclass's.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from ..jsonrpc.framing import framing_named
from .base import ignore
from .io.fd import is_abandoned

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from ..errors import TransportError
    from ..jsonrpc.limits import TransportName
    from ..jsonrpc.policy import Policy
    from .base import Frame
    from .io.fd import FdReader, FdWriter
    from .io.thread import ThreadReader, ThreadWriter
    from .sockets.tls import TlsChannel

__all__ = ["FramedTransport"]

# From here on a frame and its mark are written as two parts: to copy so much costs more.
_LARGE: Final = 64 * 1024
# How often `finish` looks whether the connection is being closed meanwhile, in seconds.
_LOOK_AGAIN: Final = 1.0

_log: Final = logging.getLogger("trunkline.transports")


class FramedTransport:
    """The half of a transport that is the same on every stream.

    A subclass sets `_reader`, `_writer` and `_is_open` when it connects, calls `_receive` and
    `_receive_end`, and says in `_end` how the connection is taken down.
    """

    def __init__(self, policy: Policy, name: TransportName) -> None:
        self.name: TransportName = name
        self.on_message: Callable[[Frame, Any], object] = ignore
        self.on_error: Callable[[TransportError | None], object] = ignore
        self.on_drained: Callable[[], object] = ignore
        self._framing = framing_named(policy.framing, policy.limits.message_size(name))
        self._reader: FdReader | ThreadReader | None = None
        self._writer: FdWriter | ThreadWriter | TlsChannel | None = None
        self._is_open = False  # frames can be sent
        self._is_reported = False  # the end was, and no frame may follow
        self._ending: asyncio.Task[None] | None = None

    @property
    def is_connected(self) -> bool:
        """Whether frames can be sent."""
        return self._is_open

    @property
    def backlog(self) -> int:
        """How many bytes were sent and are not written yet."""
        return 0 if self._writer is None else self._writer.backlog

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send one frame, without waiting.

        Raises:
            LocalProtocolError: the framing cannot carry it; nothing was sent.
        """
        if self._is_open and self._writer is not None:
            if len(frame) < _LARGE:
                self._writer.write(self._framing.frame(frame))
            else:
                for part in self._framing.parts(frame):
                    self._writer.write(part)

    def pause(self) -> None:
        """Read nothing more until `resume`, so that whoever sends has to wait.

        For who hands frames on and finds the way blocked. What had been read may still come.
        """
        if self._reader is not None:
            self._reader.pause()

    def resume(self) -> None:
        """Read on."""
        if self._reader is not None:
            self._reader.resume()

    def is_abandoned(self) -> bool:
        """Say whether nobody can read any more what is sent, as far as the system tells.

        Of who has ended its input that is not told by itself: it may still want its answers.
        """
        fd = self._output()
        return fd >= 0 and is_abandoned(fd)

    async def finish(self) -> None:
        """Write what was sent, however long that takes, and say that nothing more will come.

        For who hands on the end of an input. What the other side sends is still read, until it
        ends too; nothing can be sent any more.
        """
        writer = self._writer
        if not self._is_open or writer is None:
            return
        self._is_open = False
        # Once at least: with TLS that is what says so.
        await writer.finish(_LOOK_AGAIN)
        while writer.backlog and self._ending is None:
            await writer.finish(_LOOK_AGAIN)
        if self._ending is None:
            self._end_output()

    async def close(self) -> None:
        """Write what was sent, and end the connection."""
        if self._ending is None:
            self._begin_to_end(self._end())
        if self._ending is not None:
            # A task of its own, so that it goes on when one of those who wait is cancelled.
            await asyncio.shield(self._ending)

    def _begin_to_end(self, ending: Coroutine[Any, Any, None]) -> None:
        self._is_open = False
        self._ending = asyncio.get_running_loop().create_task(ending)

    async def _end(self) -> None:
        """Take the connection down, so that nothing is left of it, and report the end."""
        raise NotImplementedError

    def _output(self) -> int:
        """Return the descriptor that is written to, or -1."""
        return -1

    def _end_output(self) -> None:
        """Say that nothing more will come, where that can be said before the end of all."""

    def _drained(self) -> None:
        # Looked up when it is called: who uses the transport may set it late.
        self.on_drained()

    def _receive(self, data: bytes) -> None:
        """Hand up the frames that `data` completes."""
        self._hand_up(self._framing.feed(data))

    def _receive_end(self) -> None:
        """Hand up what the end of the stream completes or cuts short."""
        self._hand_up(self._framing.end())

    def _hand_up(self, frames: Iterable[Frame]) -> None:
        for frame in frames:
            if self._is_reported:
                return
            try:
                self.on_message(frame, None)
            except Exception:  # noqa: BLE001  # the frames behind this one did no wrong
                _log.exception("on_message raised")

    def _report(self, error: TransportError | None) -> None:
        """Say that the connection has ended, unless that was said."""
        if not self._is_reported:
            self._is_reported = True
            try:
                self.on_error(error)
            except Exception:  # noqa: BLE001  # there is still something to clear away
                _log.exception("on_error raised")

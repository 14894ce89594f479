"""What a TLS transport of asyncio has not written, and when the other side reads slowly.

Such a transport encrypts a write as a whole and hands it to the transport of the socket below. What
waits there is in no `get_write_buffer_size` and causes no `pause_writing`: megabytes, if the other
side does not read. `TlsBacklog` looks at both transports, after each write and then every
`POLL_INTERVAL_S` until the other side has read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["TlsBacklog", "unwritten_bytes"]

POLL_INTERVAL_S: Final = 0.02


def unwritten_bytes(transport: Any) -> int:
    """Return the number of bytes that were written to a transport and are still held."""
    size: int = transport.get_write_buffer_size()
    # asyncio does not publish the transport below; other event loops have none of these names.
    below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
    if below is not None:
        size += below.get_write_buffer_size()
    return size


class TlsBacklog:
    """Reports when more than `high` bytes are unwritten, and then when less than `low` are."""

    __slots__ = ("_high", "_loop", "_low", "_on_drained", "_on_slow", "_timer", "_transport")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: Any,
        high: int,
        low: int,
        *,
        on_slow: Callable[[], object],
        on_drained: Callable[[], object],
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._high = high
        self._low = low
        self._on_slow = on_slow
        self._on_drained = on_drained
        self._timer: asyncio.TimerHandle | None = None

    @property
    def size(self) -> int:
        """The number of unwritten bytes."""
        return unwritten_bytes(self._transport)

    def note_write(self) -> None:
        """Look at what a write has left."""
        if self._timer is None and self.size > self._high:
            self._timer = self._loop.call_later(POLL_INTERVAL_S, self._poll)
            self._on_slow()

    def close(self) -> None:
        """Report nothing more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _poll(self) -> None:
        if self.size >= self._low:
            self._timer = self._loop.call_later(POLL_INTERVAL_S, self._poll)
        else:
            self._timer = None
            self._on_drained()

"""The messages of a shell since it began, kept in memory for `save`.

Entries are encoded as they pass, with secrets hidden, in the format of `--trace`. The beginning
of a conversation is needed to judge the rest, so at the limit the buffer keeps what it has and
counts what follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ..recording import Recording, write_recording

if TYPE_CHECKING:
    from ...transports.base import Frame

__all__ = ["TraceBuffer"]

# Bytes; a server can send as much as it likes.
MAX_BYTES: Final = 64 * 1024 * 1024


class TraceBuffer:
    """Records the frames of all connections of a shell, up to a limit."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lines: list[bytes] = []
        self.size = 0
        # Messages after the limit was reached.
        self.dropped = 0
        self._recording = Recording(self._keep)

    @property
    def count(self) -> int:
        """The number of messages that are kept."""
        return len(self._lines) - 1  # the first line is the header

    def add(
        self,
        sender: Literal["client", "server"],
        frame: Frame,
        transport: str,
        connection: int,
    ) -> None:
        """Record a frame."""
        if self.dropped or self.size >= self._max_bytes:
            self.dropped += 1  # not encoded: it would cost time for nothing
        else:
            self._recording.add(sender, frame, transport, connection)

    def save(self, path: str) -> None:
        """Write the recording to a file.

        Raises:
            UsageError: another file is in its place, or it cannot be written.
        """
        write_recording(path, self._lines)

    def _keep(self, line: bytes) -> None:
        if self.size + len(line) > self._max_bytes:
            self.dropped += 1
        else:
            self._lines.append(line)
            self.size += len(line)

"""Limits on receiving that all transports share: a least rate, and the work of one turn.

The rules that live here, and only here:

* A message has a timeout, plus one second for each 16 KiB of it that came: a least rate, as
  `MinRate` of Apache. A timeout since the last byte would let one byte every 29 s hold a
  connection and its memory for years.
* One turn of the event loop handles a bounded number of messages and bytes of a connection, valid
  or not. What else was read waits for the next turn, so that other connections have theirs; nothing
  more is read meanwhile. An element of a batch is a message.
"""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_BYTES_PER_TURN", "MAX_MESSAGES_PER_TURN", "most_messages", "receive_timeout"]

# Bytes for which a message gets a second more.
_BYTES_PER_SECOND: Final = 16 * 1024

# An invalid message takes up to 0.1 ms: its error is explained and answered. So many are half of
# the 50 ms that no connection may exceed in a turn.
MAX_MESSAGES_PER_TURN: Final = 256
# Of messages. A larger one, or a longer batch, has a turn of its own.
MAX_BYTES_PER_TURN: Final = 64 * 1024


def receive_timeout(seconds: float, received: int) -> float:
    """Return how long a message may take of which so many bytes came."""
    return seconds + received // _BYTES_PER_SECOND


def most_messages(text: bytes | bytearray | memoryview) -> int:
    """Return how many messages a text can hold at most that may be a batch, or a part of one."""
    return 1 + bytes(text).count(b",")

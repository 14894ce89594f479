"""The bytes of an asyncio transport that the system has not taken, over TLS too.

A transport over TLS encrypts a write as a whole and hands it to the transport of the socket. Its
`get_write_buffer_size` leaves out what waits there: megabytes, if the other side does not read.
"""

from __future__ import annotations

from typing import Any

__all__ = ["unwritten_bytes"]


def unwritten_bytes(transport: Any) -> int:
    """Return the number of bytes that were written to a transport and are still held."""
    size: int = transport.get_write_buffer_size()
    # asyncio does not publish the transport below; other event loops have none of these names.
    below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
    if below is not None:
        size += below.get_write_buffer_size()
    return size

"""`transports/io/unwritten.py`: what a transport holds, with and without TLS."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from trunkline.transports.io.unwritten import unwritten_bytes


class Transport:
    def __init__(self, size: int, below: Any = None) -> None:
        self._size = size
        if below is not None:
            self._ssl_protocol = SimpleNamespace(_transport=below)

    def get_write_buffer_size(self) -> int:
        return self._size


def test_what_a_transport_holds_is_counted() -> None:
    assert unwritten_bytes(Transport(7)) == 7


def test_over_tls_what_the_transport_of_the_socket_holds_is_counted_too() -> None:
    assert unwritten_bytes(Transport(7, Transport(30))) == 37


def test_a_connection_over_tls_that_was_lost_has_no_transport_below() -> None:
    transport = Transport(7)
    transport._ssl_protocol = SimpleNamespace(_transport=None)
    assert unwritten_bytes(transport) == 7

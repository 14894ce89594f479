"""`transports/io/tls_backlog.py`: what a transport holds, and who is told of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.rigs.conditions import until_async
from tests.rigs.event_loop import on_a_loop
from trunkline.transports.io.tls_backlog import TlsBacklog, unwritten_bytes


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


@on_a_loop
async def test_slow_reader_is_reported_once_and_then_that_it_has_read() -> None:
    below = Transport(0)
    told: list[str] = []
    backlog = TlsBacklog(
        asyncio.get_running_loop(),
        Transport(0, below),
        100,
        50,
        on_slow=lambda: told.append("slow"),
        on_drained=lambda: told.append("drained"),
    )
    below._size = 100
    backlog.note_write()
    assert (told, backlog.size) == ([], 100)
    below._size = 101
    backlog.note_write()
    backlog.note_write()
    assert told == ["slow"]
    below._size = 50
    await asyncio.sleep(0.1)
    assert told == ["slow"]
    below._size = 49
    await until_async(lambda: told == ["slow", "drained"])
    below._size = 101
    backlog.note_write()
    backlog.close()
    below._size = 0
    await asyncio.sleep(0.1)
    assert told == ["slow", "drained", "slow"]
    backlog.close()

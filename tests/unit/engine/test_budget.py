"""What requests weigh in byte budgets, whose defaults grow with the messages."""

from __future__ import annotations

import sys
import tracemalloc

import pytest
from msgspec import UNSET, Raw
from msgspec.json import Decoder, decode

from trunkline import ServerLimits
from trunkline.engine.budget import (
    connection_bytes,
    copied,
    server_bytes,
    size_of,
)
from trunkline.jsonrpc import Limits
from trunkline.server.dispatch.params import ToolCall

MIB = 1024 * 1024


def test_the_defaults_hold_four_messages_of_the_largest_size_and_128_mib_at_least() -> None:
    limits = ServerLimits()
    assert connection_bytes(limits, 16 * MIB) == 128 * MIB
    assert connection_bytes(limits, 100 * MIB) == 400 * MIB
    assert connection_bytes(limits, None) == 128 * MIB
    assert server_bytes(limits, Limits()) == 1024 * MIB
    assert server_bytes(limits, Limits(unix=100 * MIB)) == 3200 * MIB
    assert server_bytes(limits, Limits(tcp=None)) == 1024 * MIB


def test_configured_byte_limits_override_the_defaults() -> None:
    limits = ServerLimits(connection_bytes=5, server_bytes=7)
    assert connection_bytes(limits, 16 * MIB) == 5
    assert server_bytes(limits, Limits()) == 7
    assert server_bytes(ServerLimits(connection_bytes=5), Limits()) == 40


def test_params_weigh_their_raw_bytes() -> None:
    assert size_of(UNSET) == 0
    assert size_of(Raw(b'{"a":1}')) == 7
    assert size_of(ToolCall("name", Raw(b"{}"), meta=Raw(b'{"x":2}'))) == 9


def test_copied_params_are_equal_and_do_not_refer_to_their_frame() -> None:
    frame = b'{"name":"echo","arguments":{"text":"%s"},"_meta":{}}' % (b"x" * 100)
    alone = sys.getrefcount(frame)
    params = Decoder(ToolCall).decode(frame)
    assert sys.getrefcount(frame) > alone
    found = copied(params)
    assert found == params
    assert bytes(found.arguments) == b'{"text":"%s"}' % (b"x" * 100)
    del params
    assert sys.getrefcount(frame) == alone
    assert bytes(copied(Raw(b"{}"))) == b"{}"
    assert copied(UNSET) is UNSET


@pytest.mark.parametrize("element", ["[]", "{}"])
def test_decoded_values_take_up_to_24_times_their_text_as_the_docs_say(element: str) -> None:
    text = f"[{','.join([element] * 100_000)}]".encode()
    tracemalloc.start()
    try:
        held = decode(text)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(held) == 100_000
    assert 20 < size / len(text) < 25

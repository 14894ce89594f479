from __future__ import annotations

import pytest
from msgspec import UNSET, Raw

from trunkline.transports.http.client.message import (
    UNREADABLE,
    error_in,
    negotiated_version,
    read_messages,
    version_in,
)

VERSION = b'{"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}'


def test_a_frame_is_one_message_or_a_batch() -> None:
    (one,) = read_messages(b'{"method": "ping", "id": 1}')
    assert (one.method, one.id) == ("ping", 1)
    assert [each.id for each in read_messages(b' [{"id": "a"}, {"id": 2}]')] == ["a", 2]


@pytest.mark.parametrize(
    "frame", [b"", b"[", b"7", b'"x"', b'{"method": 7}', b"\xff", b"[" * 100_000]
)
def test_anything_else_is_unreadable(frame: bytes) -> None:
    with pytest.raises(UNREADABLE):
        read_messages(frame)


def test_the_version_of_a_message_is_in_its_meta() -> None:
    (one,) = read_messages(b'{"method": "x", "params": ' + VERSION + b"}")
    assert version_in(one) == "2026-07-28"
    for frame in (b'{"method": "x"}', b'{"params": {}}', VERSION.replace(b'"2026-07-28"', b"7")):
        assert version_in(read_messages(frame)[0]) is None


@pytest.mark.parametrize(
    ("result", "version"),
    [
        (b'{"protocolVersion": "2025-11-25"}', b"2025-11-25"),
        (b'{"protocolVersion": ""}', None),
        (b'{"protocolVersion": "\\u00e9"}', None),
        (b'{"protocolVersion": "1\\r\\nX: y"}', None),
        (b'{"protocolVersion": 7}', None),
        (b"{}", None),
        (b"[]", None),
    ],
)
def test_a_negotiated_version_is_one_that_a_header_can_carry(
    result: bytes, version: bytes | None
) -> None:
    assert negotiated_version(Raw(result)) == version


def test_an_error_is_an_object_and_not_a_text() -> None:
    assert bytes(error_in(b'{"error": {"code": 1}}')) == b'{"code": 1}'
    for body in (b'{"error": "invalid_token"}', b"{}", b"<html>", b'{"error": null}', b""):
        assert error_in(body) is None
    assert read_messages(b"{}")[0].error is UNSET

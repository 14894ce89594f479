"""Split the bytes anywhere and the frames stay equal; write then read is identity."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.byte_streams import chunks, cost, meter_bytes
from trunkline.jsonrpc.framing.framing import (
    BadHeader,
    ContentLengthFraming,
    DetectingFraming,
    Fault,
    Framing,
    LengthPrefixFraming,
    NewlineFraming,
    Oversize,
    Truncated,
)

KINDS = [NewlineFraming, ContentLengthFraming, LengthPrefixFraming, DetectingFraming]
Kind = (
    type[NewlineFraming]
    | type[ContentLengthFraming]
    | type[LengthPrefixFraming]
    | type[DetectingFraming]
)
each_kind = pytest.mark.parametrize("kind", KINDS)

# Pieces that mean something to one of the framings, among bytes that do not.
pieces = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b" ",
        b"{}",
        b'{"id":1}',
        b"Content-Length: 3\r\n\r\n",
        b"content-length:12\n\n",
        b"Content-Length: 9\r\nodd\r\n\r\n",
        b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
        b"Content-Type: x\r\n",
        b"X: " + b"x" * 1500 + b"\r\n",
        b"\0\0\0\x03",
        b"\0\0\0\0",
        b"\0\0\x08\0",
        b"x" * 30,
        b"y" * 2000,
    ]
)
streams = st.lists(pieces | st.binary(max_size=6), max_size=12).map(b"".join)
limits = st.none() | st.sampled_from([0, 1, 3, 4, 12, 1023, 1024, 1025, 1999, 2000, 4096])


def read(reader: Framing, parts: list[Any]) -> list[bytes | Fault]:
    return [frame for part in parts for frame in reader.feed(part)] + reader.end()


@each_kind
@given(data=st.data(), stream=streams, limit=limits)
def test_any_split_gives_the_same_frames_and_faults(
    kind: Kind, data: st.DataObject, stream: bytes, limit: int | None
) -> None:
    whole = read(kind(limit), [stream])
    assert read(kind(limit), data.draw(chunks(stream))) == whole


@each_kind
@given(stream=streams, limit=limits)
def test_frames_and_faults_are_within_the_documented_bounds(
    kind: Kind, stream: bytes, limit: int | None
) -> None:
    for found in read(kind(limit), [stream]):
        if isinstance(found, bytes):
            assert limit is None or len(found) <= limit
        elif isinstance(found, Oversize):
            assert limit is not None
            assert found.limit == limit
            assert len(found.head) <= min(1024, limit)
            assert found.head in stream
            assert found.size is None or found.size > limit
        elif isinstance(found, BadHeader):
            assert found.got
        else:
            assert isinstance(found, Truncated)
            assert found.expected is None or found.got < found.expected


@given(stream=streams, limit=limits)
def test_newline_framing_agrees_with_cutting_the_whole_stream_at_once(
    stream: bytes, limit: int | None
) -> None:
    expected: list[bytes | Fault] = []
    for line in stream.split(b"\n"):
        line = line.removesuffix(b"\r")
        if limit is not None and len(line) > limit:
            expected.append(Oversize(line[: min(limit, 1024)], None, limit))
        elif line.strip(b" \t\r"):
            expected.append(line)
    assert read(NewlineFraming(limit), [stream]) == expected


@each_kind
@given(data=st.data(), messages=st.lists(st.binary(max_size=40), max_size=6))
def test_written_then_read_is_identity(
    kind: Kind, data: st.DataObject, messages: list[bytes]
) -> None:
    if kind in (NewlineFraming, DetectingFraming):
        # A line cannot hold a newline, end with CR or be blank; no JSON text is
        # blank, and white space after one means nothing.
        messages = [b"{" + message.replace(b"\n", b"") + b"}" for message in messages]
    stream = b"".join(map(kind().frame, messages))
    longest = max(map(len, messages), default=0)
    assert read(kind(longest), data.draw(chunks(stream))) == messages


@each_kind
@given(oversize=st.integers(21, 3000), data=st.data())
def test_after_an_oversize_frame_the_next_is_read(
    kind: Kind, oversize: int, data: st.DataObject
) -> None:
    stream = kind().frame(b"x" * oversize) + kind().frame(b"next")
    fault, frame = read(kind(20), data.draw(chunks(stream)))
    assert isinstance(fault, Oversize)
    assert fault.head == b"x" * 20
    assert frame == b"next"


@pytest.fixture
def metered(monkeypatch: pytest.MonkeyPatch) -> None:
    meter_bytes(monkeypatch)


@pytest.mark.usefixtures("metered")
@each_kind
@pytest.mark.parametrize("limit", [None, 1000, 20_000])
@pytest.mark.parametrize("step", [1, 7, 1000, 20_000])
@pytest.mark.parametrize("size", [0, 1, 100, 10_000])
def test_time_is_linear_in_the_bytes_however_they_come(
    kind: Kind, limit: int | None, step: int, size: int
) -> None:
    stream = kind().frame(b"x" * size)
    stream *= max(1, 4000 // len(stream))
    # A byte goes from chunk to line to frame and each copy is looked at. Going
    # over the kept part again for each of 4000 single bytes would cost 2000.
    assert cost(kind(limit), stream, step) < 16


@pytest.mark.usefixtures("metered")
@pytest.mark.parametrize("start", [b"{", b"Content-Length: 10000\r\n\r\n", b" \r\n", b"X: y\n"])
@each_kind
def test_time_is_linear_for_a_stream_that_never_completes(kind: Kind, start: bytes) -> None:
    assert cost(kind(None), start + start[:1] * 9000, 1) < 16


@pytest.mark.usefixtures("metered")
def test_the_meter_notices_a_reader_that_starts_over() -> None:
    class StartsOver(NewlineFraming):
        def feed(self, data: Any, /) -> list[bytes | Fault]:
            self._partial.add(self._partial.take() + data)
            return []

    assert cost(StartsOver(), b"x" * 10_000, 10) > 100

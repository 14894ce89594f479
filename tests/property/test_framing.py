"""Split the bytes anywhere and the frames stay equal; write then read is identity."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.jsonrpc.framing.framing import (
    BadHeader,
    ContentLengthFraming,
    DetectingFraming,
    Fault,
    Framing,
    LengthPrefixFraming,
    NewlineFraming,
    Oversize,
    Pieces,
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


@st.composite
def chunks(draw: st.DrawFn, stream: bytes) -> list[bytes | bytearray | memoryview]:
    """Cut `stream` anywhere, into any kind of buffer."""
    if draw(st.booleans()):
        cuts = list(range(len(stream)))
    else:
        cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    kind = draw(st.sampled_from([bytes, bytearray, memoryview]))
    return [kind(part) for part in parts]


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
def test_what_comes_out_is_within_the_documented_bounds(
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


class Meter:
    """Counts the bytes that the framing looks at or copies, instead of the time it takes.

    Mixed into the `bytes` and `bytearray` that the module sees. A method it does
    not know is charged for all the bytes of its object.
    """

    spent: ClassVar[int] = 0

    def __getitem__(self: Any, key: Any) -> Any:
        part = super().__getitem__(key)  # type: ignore[misc]
        if not isinstance(key, slice):
            return part
        Meter.spent += len(part)
        return type(self)(part)

    def __contains__(self: Any, part: Any) -> bool:
        Meter.spent += len(self)
        return bool(super().__contains__(part))  # type: ignore[misc]

    def __getattribute__(self: Any, name: str) -> Any:
        method = super().__getattribute__(name)
        if name.startswith("_") or name == "clear":
            return method

        def metered(*args: Any) -> Any:
            result = method(*args)
            if name == "find":
                start, stop = args[1:] or (0, len(self))
                Meter.spent += (min(stop, len(self)) if result < 0 else result) - start
            elif name in ("startswith", "endswith"):
                Meter.spent += len(args[0])
            else:
                Meter.spent += len(self)
            if isinstance(result, list | tuple):
                return type(result)(type(self)(part) for part in result)
            return type(self)(result) if isinstance(result, bytes) else result

        return metered


class MeteredBytes(Meter, bytes):
    def __new__(cls, source: Any = b"") -> MeteredBytes:
        Meter.spent += len(source)
        return super().__new__(cls, source)


class MeteredArray(Meter, bytearray):
    def __iadd__(self, more: Any) -> Any:  # type: ignore[misc]
        Meter.spent += len(more)
        return super().__iadd__(more)


class MeteredPieces(Pieces):
    def take(self) -> bytes:
        return MeteredBytes(super().take())


@pytest.fixture
def metered(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("trunkline.jsonrpc.framing.framing")
    monkeypatch.setattr(module, "bytes", MeteredBytes, raising=False)
    monkeypatch.setattr(module, "bytearray", MeteredArray, raising=False)
    monkeypatch.setattr(module, "Pieces", MeteredPieces)


def cost(reader: Framing, stream: bytes, step: int) -> float:
    """Return how often, on average, a byte of `stream` is looked at or copied."""
    Meter.spent = 0
    for at in range(0, len(stream), step):
        reader.feed(stream[at : at + step])
    reader.end()
    return Meter.spent / len(stream)


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

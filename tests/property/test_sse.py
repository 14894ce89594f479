"""Split the bytes anywhere and the events stay equal; write then read is identity."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.byte_streams import chunks, cost, meter_bytes
from trunkline.jsonrpc.framing.framing import Oversize
from trunkline.jsonrpc.framing.sse import Event, EventReader, encode_comment, encode_event

pieces = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\r\n\r\n",
        b":",
        b" ",
        b"\0",
        b"\xef\xbb\xbf",
        b"\xf0\x9f\x98\x80",
        b"\xe2\x82",
        b"data",
        b"data:",
        b"data: ",
        b"data: {}\n",
        b"event: tick\n",
        b"id: 7\n",
        b"id: 8\0\n",
        b"id",
        b"retry: 10\n",
        b"retry: x\n",
        b": comment\n",
        b"other: field\n",
        b"x" * 30,
        b"y" * 2000,
        b"id: " + b"i" * 4094,
        b"event:" + b"e" * 4094,
    ]
)
streams = st.lists(pieces | st.binary(max_size=3), max_size=16).map(b"".join)
limits = st.none() | st.sampled_from([0, 1, 2, 5, 30, 1024, 2000, 2001, 5000])
texts = st.text(st.characters(codec="utf-8"), max_size=30)
names = texts.map(lambda text: re.sub("[\r\n\0]", "", text))


def read(reader: EventReader, parts: list[Any]) -> list[Event | Oversize]:
    return [event for part in parts for event in reader.feed(part)]


def interpret(stream: bytes) -> tuple[list[Event], str, int | None]:
    """Read a whole stream by the letter of the standard. [WHATWG HTML, 9.2.6]"""
    events: list[Event] = []
    last_event_id, retry_ms = "", None
    data, event = "", ""
    own_id: str | None = None
    own_retry: int | None = None
    lines = re.split("\r\n|\r|\n", stream.decode("utf-8-sig", "replace"))
    for line in lines[:-1]:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            last_event_id = last_event_id if own_id is None else own_id
            if data:
                events.append(Event(data.removesuffix("\n"), event or "message", own_id, own_retry))
            data, event, own_id, own_retry = "", "", None, None
        elif name == "data":
            data += value + "\n"
        elif name == "event":
            event = value
        elif name == "id" and "\0" not in value:
            own_id = value
        elif name == "retry" and re.fullmatch("[0-9]+", value):
            retry_ms = own_retry = int(value)
    return events, last_event_id, retry_ms


@given(stream=streams.filter(lambda stream: len(stream) < 4096))
def test_a_stream_is_read_by_the_letter_of_the_standard(stream: bytes) -> None:
    reader = EventReader(empty=True)
    assert (reader.feed(stream), reader.last_event_id, reader.retry_ms) == interpret(stream)


@given(stream=streams, limit=limits)
def test_leaving_out_empty_events_changes_nothing_else(stream: bytes, limit: int | None) -> None:
    quiet, told = EventReader(limit), EventReader(limit, empty=True)
    found = told.feed(stream)
    assert quiet.feed(stream) == [e for e in found if isinstance(e, Oversize) or e.data]
    assert quiet.last_event_id == told.last_event_id


@given(data=st.data(), stream=streams, limit=limits, empty=st.booleans())
def test_any_split_gives_the_same_events_and_faults(
    data: st.DataObject, stream: bytes, limit: int | None, empty: bool
) -> None:
    whole, split = EventReader(limit, empty=empty), EventReader(limit, empty=empty)
    assert read(split, data.draw(chunks(stream))) == whole.feed(stream)
    assert split.last_event_id == whole.last_event_id
    assert split.retry_ms == whole.retry_ms


@given(stream=streams, limit=limits)
def test_events_are_within_the_documented_bounds(stream: bytes, limit: int | None) -> None:
    reader = EventReader(limit)
    for found in reader.feed(stream):
        if isinstance(found, Oversize):
            assert found.limit in (limit, 4096)
            assert len(found.head) <= 1024
            assert found.size is None
        else:
            # A broken byte becomes one character, so the count never grows.
            assert limit is None or len(found.data) <= limit
            assert len(found.event) <= 4096
    assert len(reader.last_event_id) <= 4096


@given(
    data=st.data(),
    events=st.lists(
        st.builds(
            Event,
            texts.map(lambda text: re.sub("\r\n?", "\n", text)),
            names.filter(bool),
            st.none() | names,
            st.none() | st.integers(0, 10**18 - 1),
        ),
        max_size=5,
    ),
)
def test_written_then_read_is_identity(data: st.DataObject, events: list[Event]) -> None:
    stream = b"".join(
        encode_event(e.data, event=e.event, id=e.id, retry=e.retry) + encode_comment(e.data)
        for e in events
    )
    assert read(EventReader(empty=True), data.draw(chunks(stream))) == events


@given(text=texts)
def test_every_line_end_written_is_read_as_a_line_feed(text: str) -> None:
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    assert EventReader(empty=True).feed(encode_event(text)) == [Event(unified)]


@given(oversize=st.integers(21, 3000), data=st.data())
def test_after_an_oversize_event_the_next_is_read(oversize: int, data: st.DataObject) -> None:
    stream = encode_event(b"x" * oversize, id="1") + encode_event(b"next")
    parts = data.draw(chunks(stream))
    assert read(EventReader(20), parts) == [Oversize(b"x" * 20, None, 20), Event("next")]


@pytest.fixture
def metered(monkeypatch: pytest.MonkeyPatch) -> None:
    meter_bytes(monkeypatch)


@pytest.mark.usefixtures("metered")
@pytest.mark.parametrize("limit", [None, 1000])
@pytest.mark.parametrize("step", [1, 7, 1000, 20_000])
@pytest.mark.parametrize(
    "block",
    [
        b"\n",
        b"\r\n",
        b"data\n",
        b"data: \n\n",
        b"event: tick\nid: 1\ndata: {}\n\n",
        b"data: " + b"x" * 10_000 + b"\n\n",
        b"data: " + b"x" * 20_000,
        b": " + b"x" * 20_000,
        b"id: " + b"x" * 20_000,
        b"x" * 20_000,
    ],
    ids=lambda block: repr(block[:30]),
)
def test_time_is_linear_in_the_bytes_however_they_come(
    block: bytes, step: int, limit: int | None
) -> None:
    stream = block * max(1, 4000 // len(block))
    # A byte goes from chunk to line to value to data and each copy is looked at.
    # Going over the kept part again for each of 4000 single bytes would cost 2000.
    assert cost(EventReader(limit), stream, step) < 16

"""Event streams: what we write, and how any stream is read. [WHATWG HTML, 9.2]"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trunkline.errors import LocalProtocolError
from trunkline.jsonrpc.framing.framing import Oversize
from trunkline.jsonrpc.framing.sse import Event, EventReader, encode_comment, encode_event


def read(*chunks: bytes, limit: int | None = None, empty: bool = False) -> list[Event | Oversize]:
    reader = EventReader(limit, empty=empty)
    return [event for chunk in chunks for event in reader.feed(chunk)]


# Writing


def test_the_fields_are_written_in_one_order() -> None:
    wire = encode_event(b"{}", retry=5000, id="7", event="message")
    assert wire == b"event: message\nid: 7\nretry: 5000\ndata: {}\n\n"


def test_only_what_is_given_is_written() -> None:
    assert encode_event(b"{}") == b"data: {}\n\n"
    assert encode_event("é") == b"data: \xc3\xa9\n\n"
    assert encode_event(b"{}", retry=0) == b"retry: 0\ndata: {}\n\n"


@pytest.mark.parametrize(
    ("data", "wire"),
    [
        (b"a\nb", b"data: a\ndata: b\n\n"),
        (b"a\r\nb", b"data: a\ndata: b\n\n"),
        (b"a\rb", b"data: a\ndata: b\n\n"),
        (b"a\n\rb", b"data: a\ndata: \ndata: b\n\n"),
        (b"a\n", b"data: a\ndata: \n\n"),
        (b"\n", b"data: \ndata: \n\n"),
        ("a\u2028b", "data: a\u2028b\n\n".encode()),  # a line end to str.splitlines, not here
    ],
)
def test_each_line_of_the_data_gets_a_line_of_its_own(data: bytes | str, wire: bytes) -> None:
    assert encode_event(data) == wire


def test_a_priming_event_has_an_id_and_an_empty_data_field() -> None:
    assert encode_event(b"", id="x") == b"id: x\ndata: \n\n"


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "\r\n", "a\0b"])
def test_a_name_or_an_id_that_breaks_its_line_is_not_written(value: str) -> None:
    for field in ("event", "id"):
        with pytest.raises(LocalProtocolError) as caught:
            encode_event(b"{}", **{field: value})  # type: ignore[arg-type]
        assert caught.value.rule == "sse.field.line-break"


def test_a_negative_retry_is_not_written() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        encode_event(b"{}", retry=-1)
    assert caught.value.rule == "sse.retry.negative"


def test_a_comment_is_ignored_by_readers_whatever_it_says() -> None:
    assert encode_comment() == b":\n\n"
    assert encode_comment("ping") == b": ping\n\n"
    assert encode_comment("data: a\r\ndata: b") == b": data: a\n: data: b\n\n"
    assert read(encode_comment("a\n\ndata: b\n\n"), encode_event(b"c")) == [Event("c")]


# Reading: lines


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_is_read(end: bytes) -> None:
    stream = end.join([b"event: tick", b"id: 1", b"data: a", b"data: b", b"", b"data: c", b"", b""])
    assert read(stream) == [Event("a\nb", "tick", "1"), Event("c")]


def test_a_crlf_split_across_feeds_is_one_line_end() -> None:
    assert read(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [Event("a\nb")]


def test_an_event_ended_by_cr_does_not_wait_for_the_next_byte() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\r\n\r") == [Event("a")]
    assert reader.feed(b"\n") == []
    assert reader.feed(b"\n") == []
    assert reader.feed(b"data: b\n\n") == [Event("b")]


def test_feeding_nothing_does_not_forget_a_cr() -> None:
    assert read(b"data: a\r", b"", b"\ndata: b\n\n") == [Event("a\nb")]


def test_other_separators_of_str_do_not_end_a_line() -> None:
    assert read("data: a\x0b\x0c\x1c\x85\u2028b\n\n".encode()) == [
        Event("a\x0b\x0c\x1c\x85\u2028b")
    ]


@pytest.mark.parametrize(
    "chunks",
    [[b"\xef\xbb\xbfdata: a\n\n"], [b"\xef", b"\xbb", b"\xbf", b"data: a\n\n"], [b"data: a\n\n"]],
)
def test_one_leading_byte_order_mark_is_dropped(chunks: list[bytes]) -> None:
    assert read(*chunks) == [Event("a")]


def test_a_second_or_later_byte_order_mark_is_part_of_the_line() -> None:
    assert read(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n") == []
    assert read(b"data: a\n\xef\xbb\xbfdata: b\n\n") == [Event("a")]
    assert read(b"\xef\xbbdata: a\n\n") == []


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_may_be_fed(kind: type) -> None:
    reader = EventReader()
    source = bytearray(b"data: a")
    assert reader.feed(kind(source)) == []
    source[:] = b"......."
    assert reader.feed(kind(b"\n\n")) == [Event("a")]


# Reading: fields


@pytest.mark.parametrize(
    ("block", "event"),
    [
        (b"data: a", Event("a")),
        (b"data:a", Event("a")),
        (b"data:  a", Event(" a")),
        (b"data:\ta", Event("\ta")),
        (b"data: a:b", Event("a:b")),
        (b"data: a\ndata: b", Event("a\nb")),
        (b"data: a\ndata:\ndata", Event("a\n\n")),
        (b"data\ndata", Event("\n")),
        (b"event: tick\ndata: a", Event("a", "tick")),
        (b"event: tick\nevent: tock\ndata: a", Event("a", "tock")),
        (b"event: tick\nevent\ndata: a", Event("a")),
        (b"event:\ndata: a", Event("a")),
        (b"id: 7\ndata: a", Event("a", id="7")),
        (b"id: 7\nid\ndata: a", Event("a", id="")),
        (b"id: 7\nid: 8\0\ndata: a", Event("a", id="7")),
        (b"retry: 0500\ndata: a", Event("a", retry=500)),
        (b"retry: -5\nretry: 1.5\nretry: 5s\nretry:  5\nretry:\nretry\ndata: a", Event("a")),
        (b"retry: \xd9\xa3\nretry: " + b"9" * 19 + b"\ndata: a", Event("a")),
        (b": data: b\n:\ndata: a", Event("a")),
        (b"Data: b\n data: c\ndata : d\ndatas: e\nfoo\nfoo: bar\ndata: a", Event("a")),
    ],
)
def test_a_block_is_read_as_the_standard_says(block: bytes, event: Event) -> None:
    assert read(block + b"\n\n") == [event]
    assert read(*(bytes([byte]) for byte in block), b"\n", b"\n") == [event]


def test_the_examples_of_the_standard() -> None:
    # Two blocks of empty data, the first of one line and the second of two; the
    # third lacks its empty line.
    assert read(b"data\n\ndata\ndata\n\ndata:", empty=True) == [Event(""), Event("\n")]
    stream = (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third\n\n"
    )
    assert read(stream) == [
        Event("first event", id="1"),
        Event("second event", id=""),
        Event(" third"),
    ]


def test_a_name_does_not_outlive_its_block() -> None:
    assert read(b"event: tick\n\ndata: a\n\n") == [Event("a")]


def test_broken_utf_8_is_replaced_and_swallows_nothing() -> None:
    stream = b"id: \xe2\x82\nevent: \xff\ndata: \xf0\x9f\ndata: a\xc3\n\n"
    expected = Event("\ufffd\na\ufffd", "\ufffd", "\ufffd")
    assert read(stream) == [expected]
    assert read(*(bytes([byte]) for byte in stream)) == [expected]


def test_a_character_split_across_feeds_is_whole() -> None:
    assert read(b"data: \xf0\x9f", b"\x98", b"\x80\n\n") == [Event("\U0001f600")]


# Reading: what is remembered


def test_the_last_id_outlives_its_event() -> None:
    reader = EventReader()
    assert reader.last_event_id == ""
    assert reader.feed(b"id: 1\ndata: a\n\ndata: b\n\n") == [Event("a", id="1"), Event("b")]
    assert reader.last_event_id == "1"
    reader.feed(b"id:\ndata: c\n\n")
    assert reader.last_event_id == ""


def test_an_id_without_data_is_recorded_and_nothing_is_dispatched() -> None:
    for empty in (False, True):
        reader = EventReader(empty=empty)
        assert reader.feed(b"id: 1\n\n") == []
        assert reader.last_event_id == "1"


def test_an_id_counts_only_once_its_event_is_complete() -> None:
    reader = EventReader()
    reader.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert reader.last_event_id == "1"
    reader.feed(b"\n")
    assert reader.last_event_id == "2"


def test_a_priming_event_is_recorded_and_reported_only_where_asked() -> None:
    wire = encode_event(b"", id="x", retry=100)
    quiet, told = EventReader(), EventReader(empty=True)
    assert quiet.feed(wire) == []
    assert told.feed(wire) == [Event("", id="x", retry=100)]
    assert quiet.last_event_id == told.last_event_id == "x"
    assert quiet.retry_ms == told.retry_ms == 100


def test_retry_time_is_set_at_once_and_attached_to_its_event() -> None:
    assert EventReader().retry_ms is None
    reader = EventReader()
    reader.feed(b"retry: 250\n")
    assert reader.retry_ms == 250
    assert reader.feed(b"data: a\n\ndata: b\n\n") == [Event("a", retry=250), Event("b")]
    reader.feed(b"retry: soon\n\n")
    assert reader.retry_ms == 250


def test_an_event_without_its_empty_line_is_dropped_at_the_end() -> None:
    reader = EventReader()
    assert reader.feed(b"id: 1\nretry: 9\ndata: a\n\nid: 2\nevent: tick\ndata: b\ndata: c") == [
        Event("a", id="1", retry=9)
    ]
    reader.end()
    assert (reader.last_event_id, reader.retry_ms) == ("1", 9)
    # The next stream starts clean: a byte order mark, no name, no data, no line.
    assert reader.feed(b"\xef\xbb\xbf\ndata: d\n\n") == [Event("d")]


@pytest.mark.parametrize(
    "cut",
    [b"\xef\xbb", b"data: a\r", b":" * 9000, b"data: a", b"data: too long", b"event: a", b"ev"],
)
def test_a_stream_cut_anywhere_leaves_nothing_to_the_next(cut: bytes) -> None:
    reader = EventReader(4)
    reader.feed(cut)
    reader.end()
    assert reader.feed(b"data: b\n\n") == [Event("b")]


# Reading: too much


def test_data_of_exactly_the_limit_is_allowed() -> None:
    assert read(b"data: four\n\ndata: a\ndata: bc\n\n", limit=4) == [Event("four"), Event("a\nbc")]


@pytest.mark.parametrize(
    ("block", "head"),
    [
        (b"data: fives", b"five"),
        (b"data:fives", b"five"),
        (b"data: a\ndata: bcd", b"a\nbc"),
        (b"data: four\ndata", b"four"),
        (b"data: four\ndata: \ndata: x", b"four"),
        (b"data\n" * 5 + b"data", b"\n\n\n\n"),
    ],
)
def test_data_over_the_limit_is_a_fault_and_the_next_event_is_read(
    block: bytes, head: bytes
) -> None:
    stream = block + b"\ndata: more\n\ndata: next\n\n"
    expected = [Oversize(head, None, 4), Event("next")]
    assert read(stream, limit=4) == expected
    assert read(*(bytes([byte]) for byte in stream), limit=4) == expected


def test_oversize_is_reported_as_soon_as_the_limit_is_passed_and_only_once() -> None:
    reader = EventReader(4)
    assert reader.feed(b"data: four") == []
    assert reader.feed(b"s") == [Oversize(b"four", None, 4)]
    assert reader.feed(b" and more") == []
    assert reader.feed(b" and more\ndata: more\n") == []
    assert reader.feed(b"\n") == []


def test_the_id_of_an_oversize_event_counts_so_that_resuming_goes_past_it() -> None:
    reader = EventReader(4)
    assert reader.feed(b"data: too long\nid: 9\nretry: 5\n\n") == [Oversize(b"too ", None, 4)]
    assert (reader.last_event_id, reader.retry_ms) == ("9", 5)


def test_the_head_of_an_oversize_event_is_its_first_kibibyte_of_data() -> None:
    data = bytes(range(33, 127)) * 100
    assert read(encode_event(data), limit=5000) == [Oversize(data[:1024], None, 5000)]


@pytest.mark.parametrize("name", [b"event", b"id"])
def test_a_name_or_an_id_may_take_four_kibibytes_and_no_more(name: bytes) -> None:
    for limit in (1, None):
        fits, over = name + b": " + b"x" * 4096, name + b":" + b"x" * 4097
        (event,) = read(fits + b"\ndata: a\n\n", limit=limit)
        assert isinstance(event, Event)
        assert "x" * 4096 in (event.event, event.id)
        expected = [Oversize(b"a", None, 4096), Event("b")]
        stream = b"data: a\n" + over + b"xxx\n\ndata: b\n\n"
        assert read(stream, limit=limit) == expected
        assert read(*(bytes([byte]) for byte in stream), limit=limit) == expected


def test_an_id_too_long_to_send_back_is_not_recorded() -> None:
    reader = EventReader()
    reader.feed(b"id: 1\n\nid: " + b"x" * 5000 + b"\n\n")
    assert reader.last_event_id == "1"


@pytest.mark.parametrize("start", [b":", b"unknown: ", b"unknown", b"retry: 1"])
def test_ignored_lines_are_not_buffered_even_without_a_limit(start: bytes) -> None:
    reader = EventReader()
    reader.feed(b"data: a\n" + start)
    for _ in range(100):
        reader.feed(b"1" * 1000)
        assert len(reader._line) < 6000
    assert reader.feed(b"\n\n") == [Event("a")]
    assert reader.retry_ms is None


def test_nothing_is_kept_of_data_being_skipped() -> None:
    reader = EventReader(4)
    for _ in range(100):
        reader.feed(b"data: " + b"x" * 1000)
        assert reader._data.size + len(reader._line) <= 4
    assert reader.feed(b"\n\ndata: a\n\n") == [Event("a")]


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        EventReader(-1)


def test_an_event_prints_no_secret() -> None:
    secret = "sk-live-abcdefgh12345678"
    assert secret not in repr(Event(f'{{"key":"{secret}"}}', secret, secret))
    assert repr(Event("abc")) == "Event(data=<3 characters>, event='message', id=None, retry=None)"


@pytest.mark.parametrize(
    "write",
    [
        lambda: encode_event("\ud800"),
        lambda: encode_event("x", event="\ud800"),
        lambda: encode_event("x", id="\ud800"),
        lambda: encode_comment("\ud800"),
    ],
)
def test_text_without_a_utf8_form_is_refused(write: Callable[[], bytes]) -> None:
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.text\.surrogate"):
        write()

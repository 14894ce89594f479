"""Where a message ends: each framing, and each way a peer can get it wrong."""

from __future__ import annotations

import pytest

from trunkline.errors import LocalProtocolError
from trunkline.jsonrpc.framing.framing import (
    MAX_HEAD_BYTES,
    MAX_HEADER_BYTES,
    BadHeader,
    ContentLengthFraming,
    DetectingFraming,
    Fault,
    Framing,
    FramingName,
    LengthPrefixFraming,
    NewlineFraming,
    Oversize,
    Pieces,
    Truncated,
    framing_named,
)


def read(reader: Framing, *chunks: bytes) -> list[bytes | Fault]:
    """Feed every chunk, then the end."""
    found = [frame for chunk in chunks for frame in reader.feed(chunk)]
    return found + reader.end()


def sized(message: bytes) -> bytes:
    return len(message).to_bytes(4, "big") + message


# Newline


def test_each_line_is_a_frame() -> None:
    assert NewlineFraming().feed(b'{"a":1}\n{"b":2}\n') == [b'{"a":1}', b'{"b":2}']


def test_a_line_may_arrive_in_pieces() -> None:
    reader = NewlineFraming()
    assert reader.feed(b'{"a"') == []
    assert reader.feed(b":") == []
    assert reader.feed(b'1}\n{"b"') == [b'{"a":1}']
    assert reader.feed(b":2}\n") == [b'{"b":2}']


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_may_be_fed_and_frames_are_bytes_of_their_own(kind: type) -> None:
    source = bytearray(b"one\ntw")
    reader = NewlineFraming()
    (frame,) = reader.feed(kind(source))
    source[:] = b"......"  # a transport reads the next chunk into the same buffer
    assert type(frame) is bytes
    assert frame == b"one"
    assert reader.feed(b"o\n") == [b"two"]


def test_feeding_nothing_changes_nothing() -> None:
    reader = NewlineFraming()
    assert reader.feed(b"") == []
    reader.feed(b"one")
    assert reader.feed(b"") == []
    assert reader.feed(b"\n") == [b"one"]


def test_one_cr_before_the_line_feed_is_trimmed() -> None:
    assert NewlineFraming().feed(b"one\r\ntwo\r\r\n") == [b"one", b"two\r"]


def test_a_cr_split_from_its_line_feed_is_trimmed() -> None:
    assert read(NewlineFraming(), b"one\r", b"\n") == [b"one"]


def test_a_cr_alone_does_not_end_a_line() -> None:
    assert NewlineFraming().feed(b"o\rne\n") == [b"o\rne"]


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \t \n", b" \r\t\r\r\n", b"\n\n\n"])
def test_blank_lines_are_ignored(blank: bytes) -> None:
    assert read(NewlineFraming(), blank + b"one\n" + blank) == [b"one"]


@pytest.mark.parametrize("line", [b" one", b"\x0b", b"\x00", b"one\t"])
def test_a_line_that_only_starts_blank_or_is_odd_is_a_frame_as_it_stands(line: bytes) -> None:
    assert NewlineFraming().feed(line + b"\n") == [line]


def test_a_last_line_without_its_line_feed_is_left_to_the_codec() -> None:
    assert read(NewlineFraming(), b'one\n{"half":') == [b"one", b'{"half":']
    assert read(NewlineFraming(), b"one\r") == [b"one"]


@pytest.mark.parametrize("rest", [b"", b" ", b"\t\r", b"\r"])
def test_a_blank_last_line_is_ignored(rest: bytes) -> None:
    assert read(NewlineFraming(), b"one\n" + rest) == [b"one"]


def test_a_line_of_exactly_the_limit_is_allowed_whatever_ends_it() -> None:
    assert read(NewlineFraming(4), b"four\nfour\r\nfour") == [b"four", b"four", b"four"]
    assert read(NewlineFraming(4), b"four\r", b"\n") == [b"four"]
    assert read(NewlineFraming(4), b"four\r") == [b"four"]


def test_a_line_over_the_limit_is_a_fault_and_the_next_is_read() -> None:
    assert NewlineFraming(4).feed(b"fives\nfour\n") == [Oversize(b"five", None, 4), b"four"]


def test_a_cr_that_turns_out_not_to_end_the_line_counts() -> None:
    assert read(NewlineFraming(4), b"four\r", b"x\n") == [Oversize(b"four", None, 4)]
    assert read(NewlineFraming(4), b"four\r\r\n") == [Oversize(b"four", None, 4)]


def test_oversize_is_reported_as_soon_as_the_limit_is_passed_and_only_once() -> None:
    reader = NewlineFraming(4)
    assert reader.feed(b"fiv") == []
    assert reader.feed(b"es") == [Oversize(b"five", None, 4)]
    assert reader.feed(b" and more") == []
    assert reader.feed(b" and more\nnext\n") == [b"next"]


def test_nothing_is_kept_of_a_line_being_skipped() -> None:
    reader = NewlineFraming(4)
    for _ in range(100):
        reader.feed(b"x" * 1000)
        assert reader._partial.size <= 4
    assert reader.end() == []


def test_the_head_of_an_oversize_line_is_its_first_kibibyte() -> None:
    line = bytes(range(33, 127)) * 100
    (fault,) = NewlineFraming(5000).feed(line + b"\n")
    assert fault == Oversize(line[:MAX_HEAD_BYTES], None, 5000)
    assert MAX_HEAD_BYTES == 1024


def test_a_blank_line_over_the_limit_is_oversize_too() -> None:
    assert read(NewlineFraming(4), b"     \n", b"ok\n") == [Oversize(b"    ", None, 4), b"ok"]


def test_without_a_limit_any_line_is_read() -> None:
    assert NewlineFraming(None).feed(b"x" * 100_000 + b"\n") == [b"x" * 100_000]


def test_a_written_line_ends_with_one_line_feed() -> None:
    assert NewlineFraming(1).frame(b'{"a":1}') == b'{"a":1}\n'  # the limit is for reading


@pytest.mark.parametrize("message", [b"\n", b"{}\n", b'{\n"a":1}'])
def test_a_message_with_a_newline_inside_is_not_written(message: bytes) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        NewlineFraming().frame(message)
    assert caught.value.rule == "jsonrpc.framing.newline-inside"
    assert caught.value.got == f"a line feed at byte {message.index(10)}"


# Content-Length


def test_a_body_is_as_long_as_its_header_says() -> None:
    stream = b"Content-Length: 3\r\n\r\none" + b"Content-Length: 3\r\n\r\nt\nw"
    assert read(ContentLengthFraming(), stream) == [b"one", b"t\nw"]


def test_an_empty_body_is_an_empty_frame() -> None:
    reader = ContentLengthFraming()
    assert reader.feed(b"Content-Length: 0\r\n\r\n") == [b""]
    assert reader.feed(b"Content-Length: 1\r\n\r\nx") == [b"x"]


@pytest.mark.parametrize(
    "headers",
    [
        b"content-length: 3\r\n\r\n",
        b"CONTENT-LENGTH:3\r\n\r\n",
        b"Content-Length: \t 3 \r\n\r\n",
        b"Content-Length: 003\r\n\r\n",
        b"Content-Length: 3\n\n",
        b"Content-Length: 3\n\r\n",
        b"Content-Length: 3\r\n\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 3\r\n\r\n",
        b"Content-Length: 3\r\nX-Odd_name.1:\r\n\r\n",
        b"Content-Length: 3\r\nContent-Length: 3\r\n\r\n",
        b"\r\n\n\r\nContent-Length: 3\r\n\r\n",
    ],
)
def test_headers_are_parsed_leniently(headers: bytes) -> None:
    assert read(ContentLengthFraming(), headers + b"one" + headers + b"two") == [b"one", b"two"]


@pytest.mark.parametrize(
    ("headers", "got"),
    [
        (b"Content-Length: -3\r\n", "Content-Length: -3"),
        (b"Content-Length: +3\r\n", "Content-Length: +3"),
        (b"Content-Length: 3.0\r\n", "Content-Length: 3.0"),
        (b"Content-Length: three\r\n", "a Content-Length of 5 bytes that is not a number"),
        (b"Content-Length:\r\n", "Content-Length: "),
        (b"Content-Length: 3, 3\r\n", "Content-Length: 3, 3"),
        (b"Content-Length: \xd9\xa3\r\n", "a Content-Length of 2 bytes that is not a number"),
        (b"Content-Length: 1000000000000000000\r\n", "Content-Length: 1000000000000000000"),
        (b"Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length 3, then 4"),
        (b"Content-Type: text/plain\r\n\r\n", "headers without Content-Length"),
        (b'{"jsonrpc":"2.0"}\n', "a line of 17 bytes that is not a header"),
        (b"no colon\r\n", "a line of 8 bytes that is not a header"),
        (b": no name\r\n", "a line of 9 bytes that is not a header"),
        (b" Content-Length: 3\r\n", "a line of 18 bytes that is not a header"),
        (b"Content-Length : 3\r\n", "a line of 18 bytes that is not a header"),
        (b"X" * 100 + b"\r\n", "a line of 100 bytes that is not a header"),
        (
            b"Content-Length: " + b"9" * 100 + b"\r\n",
            "a Content-Length of 100 bytes that is not a number",
        ),
        (
            b'":1,"method":"ping"}Content-Length: 40\r\n',
            "a line of 38 bytes that is not a header",
        ),
    ],
)
def test_a_header_that_leaves_the_length_in_doubt_loses_the_stream(
    headers: bytes, got: str
) -> None:
    reader = ContentLengthFraming()
    assert reader.feed(headers) == [BadHeader(got, lost=True)]
    # What follows could be body or header; guessing would let a body pose as a message.
    assert read(reader, b"\r\nContent-Length: 3\r\n\r\none") == []


def test_a_bad_line_after_the_length_spoils_only_its_own_frame() -> None:
    reader = ContentLengthFraming()
    spoiled = b"Content-Length: 3\r\nno colon\r\nno colon either\r\n\r\nbad"
    assert reader.feed(spoiled) == [BadHeader("a line of 8 bytes that is not a header", lost=False)]
    assert reader.feed(b"Content-Length: 3\r\n\r\none") == [b"one"]


def test_truncated_frame_with_a_bad_header_is_reported_once() -> None:
    stream = b"Content-Length: 3\r\nno colon\r\n\r\nb"
    assert read(ContentLengthFraming(), stream) == [
        BadHeader("a line of 8 bytes that is not a header", lost=False)
    ]


def test_a_header_block_may_take_four_kibibytes() -> None:
    start = b"Content-Length: 3\r\nX: "
    padded = start + b"x" * (MAX_HEADER_BYTES - len(start) - 4) + b"\r\n\r\n"
    assert len(padded) == MAX_HEADER_BYTES == 4096
    assert read(ContentLengthFraming(), padded + b"one", padded + b"two") == [b"one", b"two"]


@pytest.mark.parametrize(
    "block",
    [b"X" * 5000, b"X: y\n" * 1000, b"Content-Length: 3\r\nX: " + b"x" * 4074 + b"\r\n\r\n"],
)
def test_a_longer_header_block_loses_the_stream_without_being_kept(block: bytes) -> None:
    reader = ContentLengthFraming()
    assert reader.feed(block) == [BadHeader("more than 4096 bytes of headers", lost=True)]
    assert not reader._line


def test_empty_lines_before_a_block_do_not_count_as_headers() -> None:
    assert read(ContentLengthFraming(), b"\r\n" * 5000) == []


def test_the_end_inside_headers_is_truncated_with_no_length_known() -> None:
    assert read(ContentLengthFraming(), b"Content-Le") == [Truncated(10, None)]
    assert read(ContentLengthFraming(), b"Content-Length: 3\r\n") == [Truncated(19, None)]


def test_a_body_may_be_split_from_its_headers_and_in_itself() -> None:
    chunks = b"Content-Le", b"ngth: 6\r", b"\n\r", b"\n", b"on", b"e", b"two"
    assert read(ContentLengthFraming(), *chunks) == [b"onetwo"]


def test_a_written_message_has_the_header_block_of_lsp() -> None:
    assert ContentLengthFraming(1).frame(b"{\n}") == b"Content-Length: 3\r\n\r\n{\n}"


# Length prefix


def test_four_bytes_big_endian_count_the_body() -> None:
    stream = b"\0\0\0\x03one" + b"\0\0\0\0" + b"\0\0\1\0" + b"x" * 256
    assert read(LengthPrefixFraming(), stream) == [b"one", b"", b"x" * 256]


def test_a_prefix_may_arrive_in_pieces() -> None:
    assert read(LengthPrefixFraming(), b"\0\0", b"\0", b"\x03o", b"ne\0\0\0", b"\0") == [
        b"one",
        b"",
    ]


def test_the_end_inside_a_prefix_is_truncated_with_no_length_known() -> None:
    assert read(LengthPrefixFraming(), sized(b"one") + b"\0\0") == [b"one", Truncated(2, None)]


def test_a_written_message_is_behind_its_length() -> None:
    assert LengthPrefixFraming(1).frame(b"{\n}") == b"\0\0\0\x03{\n}"


def test_a_message_that_four_bytes_cannot_count_is_not_written() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 2**32

    with pytest.raises(LocalProtocolError) as caught:
        LengthPrefixFraming().frame(Huge())
    assert caught.value.rule == "jsonrpc.framing.too-long"


# Both framings that state a size


SIZED = pytest.mark.parametrize("kind", [ContentLengthFraming, LengthPrefixFraming])
Sized = type[ContentLengthFraming] | type[LengthPrefixFraming]


@SIZED
def test_nothing_at_the_end_is_nothing_to_report(kind: Sized) -> None:
    assert read(kind()) == []
    assert read(kind(), kind().frame(b"one")) == [b"one"]


@SIZED
def test_the_end_inside_a_body_is_truncated(kind: Sized) -> None:
    stream = kind().frame(b"one!")
    assert read(kind(), stream[:-1]) == [Truncated(3, 4)]
    assert read(kind(), stream[:-4]) == [Truncated(0, 4)]


@SIZED
def test_the_end_is_reported_once_and_is_final(kind: Sized) -> None:
    reader = kind()
    assert read(reader, reader.frame(b"one")[:-1]) == [Truncated(2, 3)]
    assert read(reader, b"e", reader.frame(b"two")) == []


@SIZED
def test_a_body_of_exactly_the_limit_is_allowed(kind: Sized) -> None:
    assert read(kind(4), kind().frame(b"four")) == [b"four"]


@SIZED
def test_a_body_over_the_limit_is_a_fault_and_the_next_is_read(kind: Sized) -> None:
    stream = kind().frame(b"fives") + kind().frame(b"four")
    assert read(kind(4), stream) == [Oversize(b"five", 5, 4), b"four"]


@SIZED
def test_an_oversize_body_is_reported_once_its_head_has_come(kind: Sized) -> None:
    body = bytes(range(200)) * 100
    stream = kind().frame(body)
    reader = kind(2000)
    assert reader.feed(stream[: -len(body) + 1023]) == []
    assert reader.feed(body[1023:1500]) == [Oversize(body[:1024], 20_000, 2000)]
    assert reader.feed(body[1500:] + kind().frame(b"next")) == [b"next"]


@SIZED
def test_with_a_limit_of_nothing_only_empty_bodies_pass(kind: Sized) -> None:
    stream = kind().frame(b"") + kind().frame(b"x") + kind().frame(b"")
    assert read(kind(0), stream) == [b"", Oversize(b"", 1, 0), b""]


@SIZED
def test_nothing_is_kept_of_a_body_being_skipped(kind: Sized) -> None:
    reader = kind(4)
    stream = kind().frame(b"x" * 10_000)
    for at in range(0, len(stream), 100):
        reader.feed(stream[at : at + 100])
        assert reader._kept.size <= 4
    assert read(reader, kind().frame(b"next")) == [b"next"]


@SIZED
def test_truncated_oversize_frame_is_reported_once(kind: Sized) -> None:
    stream = kind().frame(b"too long")
    assert read(kind(4), stream[:-6]) == [Oversize(b"to", 8, 4)]  # before its head was whole
    assert read(kind(4), stream[:-2]) == [Oversize(b"too ", 8, 4)]


@SIZED
@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_a_body_is_bytes_of_its_own(kind: Sized, buffer: type) -> None:
    source = bytearray(kind().frame(b"one"))
    (frame,) = kind().feed(buffer(source))
    source[:] = b"." * len(source)
    assert type(frame) is bytes
    assert frame == b"one"


# Detection


def test_a_peer_that_begins_with_json_speaks_lines() -> None:
    reader = DetectingFraming()
    assert reader.feed(b'{"a":1}\n') == [b'{"a":1}']
    assert reader.frame(b"{}") == b"{}\n"
    # The choice is made once; a header later is a line that the codec will refuse.
    assert reader.feed(b"Content-Length: 2\n") == [b"Content-Length: 2"]


@pytest.mark.parametrize("name", [b"Content-Length", b"content-length", b"CONTENT-LENGTH"])
def test_a_peer_that_begins_with_headers_is_answered_alike(name: bytes) -> None:
    reader = DetectingFraming()
    assert reader.feed(name + b": 3\r\n\r\none") == [b"one"]
    assert reader.frame(b"{}") == b"Content-Length: 2\r\n\r\n{}"
    assert reader.feed(name + b": 3\r\n\r\ntwo") == [b"two"]


def test_content_type_may_be_the_first_header() -> None:
    stream = b"Content-Type: application/json\r\nContent-Length: 3\r\n\r\none"
    assert read(DetectingFraming(), stream) == [b"one"]


def test_we_write_lines_until_the_peer_has_spoken() -> None:
    reader = DetectingFraming()
    assert reader.frame(b"{}") == b"{}\n"
    reader.feed(b" \r\nconTENT")
    assert reader.frame(b"{}") == b"{}\n"
    with pytest.raises(LocalProtocolError):
        reader.frame(b"\n")


def test_detection_waits_for_bytes_that_tell() -> None:
    headers = b" \r\n", b"\t", b"Con", b"tent", b"-Length: 3\r\n\r\none"
    assert read(DetectingFraming(), *headers) == [b"one"]
    assert read(DetectingFraming(), b"\n", b"\n", b"conten", b"d\n") == [b"contend"]


def test_a_stream_that_ends_undecided_is_read_as_lines() -> None:
    assert read(DetectingFraming()) == []
    assert read(DetectingFraming(), b" \n") == []
    assert read(DetectingFraming(), b"Cont") == [b"Cont"]
    assert read(DetectingFraming(2), b"Cont") == [Oversize(b"Co", None, 2)]


def test_blanks_before_the_first_byte_are_not_kept() -> None:
    reader = DetectingFraming(4)
    assert reader.feed(b" \n" * 10_000) == []
    assert reader._start == b""


def test_the_limit_holds_in_either_style() -> None:
    assert read(DetectingFraming(4), b"fives\n") == [Oversize(b"five", None, 4)]
    stream = b"Content-Length: 5\r\n\r\nfives"
    assert read(DetectingFraming(4), stream) == [Oversize(b"five", 5, 4)]


# The factory, and what all share


@pytest.mark.parametrize("step", [1, 3, 4095, 4096, 10_000, 65_536, 70_000])
def test_pieces_of_any_size_come_back_whole(step: int) -> None:
    stream = bytes(range(256)) * 1000
    pieces = Pieces()
    for at in range(0, len(stream), step):
        pieces.add(stream[at : at + step])
    assert pieces.size == len(stream)
    assert pieces.take() == stream
    assert pieces.size == 0
    assert pieces.take() == b""


def test_small_pieces_are_gathered_so_that_they_cost_no_object_each() -> None:
    pieces = Pieces()
    for _ in range(100_000):
        pieces.add(b"xy")
    assert len(pieces._parts) < 5
    # Nor is one buffer grown without end, which would be moved again and again.
    assert max(map(len, pieces._parts)) < 70_000


def test_gathering_does_not_change_what_the_caller_handed_in() -> None:
    pieces = Pieces()
    first = b"first"
    pieces.add(first)
    pieces.add(b", second")
    assert first == b"first"
    assert pieces.take() == b"first, second"


def test_a_framing_is_made_by_its_name() -> None:
    assert type(framing_named("newline", None)) is NewlineFraming
    assert type(framing_named("content-length", 10)) is ContentLengthFraming
    assert type(framing_named("length-prefix", 10)) is LengthPrefixFraming
    assert type(framing_named("detect", 10)) is DetectingFraming
    assert read(framing_named("newline", 4), b"fives\n") == [Oversize(b"five", None, 4)]


@pytest.mark.parametrize(
    "kind", [NewlineFraming, ContentLengthFraming, LengthPrefixFraming, DetectingFraming]
)
@pytest.mark.parametrize("message", [b"", b"{}", b"x" * 100_000])
def test_the_parts_of_a_frame_are_the_frame_and_copy_no_message(
    kind: type[NewlineFraming], message: bytes
) -> None:
    parts = kind().parts(message)
    assert b"".join(parts) == kind().frame(message)
    assert any(part is message for part in parts)


def test_parts_follow_the_style_of_the_peer() -> None:
    reader = DetectingFraming()
    assert reader.parts(b"{}") == (b"{}", b"\n")
    reader.feed(b"Content-Length: 2\r\n\r\n{}")
    assert reader.parts(b"{}") == (b"Content-Length: 2\r\n\r\n", b"{}")


def test_parts_of_an_unframeable_message_raises() -> None:
    with pytest.raises(LocalProtocolError, match='newline-inside got "a line feed at byte 1"'):
        NewlineFraming().parts(b"{\n}")

    class Huge(bytes):
        def __len__(self) -> int:
            return 2**32

    with pytest.raises(LocalProtocolError, match="too-long"):
        LengthPrefixFraming().parts(Huge())


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'lines'; known: newline, content-length"):
        framing_named("lines", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind", [NewlineFraming, ContentLengthFraming, LengthPrefixFraming, DetectingFraming]
)
def test_a_negative_limit_is_refused(kind: type[NewlineFraming]) -> None:
    with pytest.raises(ValueError, match="negative: -1"):
        kind(-1)


def test_a_fault_prints_no_secret() -> None:
    secret = "sk-live-abcdefgh12345678"
    assert secret not in repr(Oversize(secret.encode(), None, 4))
    assert secret not in repr(BadHeader(secret, lost=True))
    assert repr(Oversize(b"abc", 9, 4)) == "Oversize(head='<3 bytes>', size=9, limit=4)"
    assert repr(BadHeader("no colon", lost=False)) == "BadHeader(got='no colon', lost=False)"


def test_a_fault_is_described_in_words() -> None:
    assert str(BadHeader("headers without Content-Length", lost=True)) == (
        "headers without Content-Length"
    )
    assert str(Truncated(3, 9)) == "the end of the stream after 3 of 9 bytes of a frame"
    assert str(Truncated(3, None)) == "the end of the stream after 3 bytes of a frame"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("newline", [b"{", b"}\n"]),
        ("newline", [b"x" * 50, b"x", b"x\n"]),  # over the limit: reported, then skipped
        ("content-length", [b"Con", b"tent-Length: 2\r\n", b"\r\n", b"{", b"}"]),
        ("content-length", [b"Content-Length: 5000\r\n\r\n", b"x" * 4999, b"x"]),
        ("length-prefix", [b"\0", b"\0\0\2", b"{", b"}"]),
        ("detect", [b"con", b"tent-length: 2\n", b"\n{", b"}"]),
        ("detect", [b"{", b"}\n"]),
    ],
)
def test_frame_is_unfinished_from_its_first_byte_to_its_last(
    name: FramingName, parts: list[bytes]
) -> None:
    framing = framing_named(name, 20)
    for _ in range(2):
        assert not framing.is_unfinished
        for part in parts[:-1]:
            framing.feed(part)
            assert framing.is_unfinished
        framing.feed(parts[-1])
    assert not framing.is_unfinished

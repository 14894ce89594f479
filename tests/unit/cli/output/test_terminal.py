"""What is printed for people: how wide it is, how it is wrapped, and tables."""

from __future__ import annotations

import io
import json
import os
import pty
import sys

import pytest
from wcwidth import wcswidth

from trunkline.cli.output import terminal
from trunkline.cli.output.highlight import highlight
from trunkline.cli.output.terminal import (
    bold,
    cells,
    columns,
    cut,
    error_text,
    highlighted,
    highlighted_document,
    is_terminal,
    paint,
    table,
    terminal_width,
    wants_colour,
    width,
    wrap,
)


@pytest.fixture
def colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list whose only item is the width of the terminal that output seems to go to."""
    size = [80]
    monkeypatch.setattr(terminal, "row_width", lambda: size[0])
    return size


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        *[("", 0), ("abc", 3), ("é", 1), ("e\u0301", 1), ("漢字", 4), ("\uff57", 2)],
        *[("👩", 2), ("❤\ufe0f", 2), ("🇳🇴", 2), ("กำ", 2), ("한글", 4), ("각", 2)],
        ("\x1b[1;31mred\x1b[0m", 3),
    ],
)
def test_wide_letters_take_two_columns(text: str, columns: int) -> None:
    assert cells(text) == columns


@pytest.mark.parametrize(
    "text",
    [
        "漢字かな",
        "한글",
        "\u1112\u1161\u11ab",
        "e\u0301\u0323",
        "👩❤\ufe0f",
        "שָׁלוֹם",
        "\uff57\uff49",
    ],
)
def test_columns_are_counted_as_terminals_do(text: str) -> None:
    assert cells(text) == wcswidth(text)


@pytest.mark.parametrize(
    ("text", "most", "left"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("漢字漢", 5, "漢字…"),
        ("漢字", 3, "漢…"),
        ("漢字", 2, "…"),
        ("ab", 1, "…"),
    ],
)
def test_a_text_is_cut_to_columns(text: str, most: int, left: str) -> None:
    assert cut(text, most) == left
    assert cells(cut(text, most)) <= most


def test_the_environment_says_how_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    assert (terminal_width(), width()) == (77, 77)
    monkeypatch.setenv("COLUMNS", "300")
    assert (terminal_width(), width()) == (300, 120)
    monkeypatch.setenv("COLUMNS", "none")
    assert terminal_width() > 0


def test_closed_stream_is_not_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stdout", None)
    assert not is_terminal(None)
    assert not wants_colour()


# Width


class Pty:
    """A stream that is a terminal, or a pipe if it has no columns."""

    def __init__(self, columns: int) -> None:
        self._ends = pty.openpty() if columns else os.pipe()
        self.encoding = "utf-8"
        if columns:
            import fcntl
            import struct
            import termios

            size = struct.pack("HHHH", 24, columns, 0, 0)
            fcntl.ioctl(self._ends[1], termios.TIOCSWINSZ, size)

    def fileno(self) -> int:
        return self._ends[1]

    def isatty(self) -> bool:
        return os.isatty(self._ends[1])

    def close(self) -> None:
        for each in self._ends:
            os.close(each)


@pytest.mark.parametrize(
    ("stdout", "stderr", "stdin", "expected"),
    [(60, 70, 90, 60), (0, 70, 90, 70), (0, 0, 90, 90), (0, 0, 0, 80)],
)
def test_the_width_is_that_of_the_first_stream_that_is_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stdout: int, stderr: int, stdin: int, expected: int
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    streams = [Pty(each) for each in (stdout, stderr, stdin)]
    for name, stream in zip(("stdout", "stderr", "stdin"), streams, strict=True):
        monkeypatch.setattr(sys, name, stream)
    found = terminal_width()
    monkeypatch.undo()
    for stream in streams:
        stream.close()
    assert found == expected


def test_closed_streams_have_the_default_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    for name in ("stdout", "stderr", "stdin"):
        monkeypatch.setattr(sys, name, None)
    assert terminal_width() == 80


# Wrapping


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("", 10, [""]),
        ("one two three", None, ["one two three"]),
        ("one two three", 7, ["one two", "three"]),
        ("a  b c", 4, ["a  b", "c"]),
        ("see https://example.org/a/b now", 10, ["see", "https://example.org/a/b", "now"]),
        ("漢字漢字漢字", 5, ["漢字", "漢字", "漢字"]),
        ("a\xa0b c\xa0d", 6, ["a b", "c d"]),
        ("aaa\xa0bbb\xa0ccc", 7, ["aaa bbb", "ccc"]),
    ],
)
def test_a_text_is_broken_at_spaces(text: str, room: int | None, lines: list[str]) -> None:
    assert wrap(text, room) == lines


def test_further_lines_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrap("one two three", 9, indent="- ", hanging="  ") == ["- one two", "  three"]
    assert wrap("one two", 5, indent="  ") == ["  one", "  two"]


def test_a_style_ends_with_its_line_and_goes_on_in_the_next(colour: None) -> None:
    first, second = wrap(f"{bold('one two')} three", 5)[:2]
    assert (first, second) == ("\x1b[1mone\x1b[0m", "\x1b[1mtwo\x1b[0m")


def test_a_megabyte_is_wrapped_in_time_that_grows_with_its_length() -> None:
    # Quadratic time would take minutes.
    for text in ("word " * 50_000, "漢" * 200_000, "x" * 1_000_000):
        assert all(cells(line) <= 80 or "x" in line for line in wrap(text, 80))


# Tables


ROWS = [
    ("notifications/resources/list_changed", "notification", "stable"),
    ("ping", "request", "stable, extension io.modelcontextprotocol/tasks"),
]


def test_a_pipe_gets_each_row_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "40")
    lines = table(ROWS, ("METHOD", "KIND", "STATUS")).split("\n")
    assert len(lines) == 3
    assert lines[2].endswith("stable, extension io.modelcontextprotocol/tasks")


@pytest.mark.parametrize("columns", [40, 50, 60, 70, 80, 100, 120])
def test_a_table_keeps_every_word_at_every_width(room: list[int], columns: int) -> None:
    room[0] = columns
    text = table(ROWS, ("METHOD", "KIND", "STATUS"))
    words = sorted(
        word for row in (*ROWS, ("METHOD", "KIND", "STATUS")) for word in " ".join(row).split()
    )
    assert sorted(text.split()) == words
    assert all(len(line) <= columns for line in text.split("\n"))


def test_sentences_go_below_where_they_would_be_narrow(room: list[int]) -> None:
    says = "The value is higher every time, and the total may be unknown."
    room[0] = 56
    assert table([("mcp.progress.grows", "must", says)] * 2, ("ID", "LEVEL", "SAYS")).split("\n")[
        :4
    ] == [
        "ID                  LEVEL",
        "    SAYS",
        "mcp.progress.grows  must",
        "    The value is higher every time, and the total may be",
    ]


def test_a_table_of_one_column_or_of_nothing(room: list[int]) -> None:
    room[0] = 40
    assert table([]) == ""
    assert table([["word " * 10]]).count("\n") == 1


def test_a_url_that_is_too_long_has_a_line_of_its_own(room: list[int]) -> None:
    url = f"https://example.org/{'x' * 30}"
    room[0] = 57
    assert columns([("page", url), ("gone", "")]) == f"page:  {url}"
    room[0] = 50
    assert columns([("level", "must"), ("page", url)]) == f"level:  must\npage:\n  {url}"


# Errors and JSON


def test_a_line_break_in_an_error_cannot_forge_a_line() -> None:
    assert error_text("prog", "one\nprog: two\n  ^") == "prog: one\n  prog: two\n  ^"


def test_only_the_name_of_the_command_is_red(colour: None) -> None:
    assert error_text("prog", "no") == "\x1b[1;31mprog:\x1b[0m no"


VALUE = {"a": [1, -2.5e10, True, None], 'k"\\': 'text: "1" {}', "e": {}}


def test_json_in_colour_is_the_same_text(colour: None) -> None:
    plain = json.dumps(VALUE, indent=2)
    shown = highlighted(plain)
    assert shown.count("\x1b[36m") == 3
    assert "\x1b[33m-25000000000.0\x1b[0m" in shown
    assert "\x1b[35mtrue\x1b[0m" in shown
    for code in ("0", "32", "33", "35", "36"):
        shown = shown.replace(f"\x1b[{code}m", "")
    assert shown == plain


def test_a_long_document_has_no_colour() -> None:
    text = json.dumps("x" * 1_000_001)
    assert highlight(text) is text


def test_a_document_for_programs_is_plain_in_a_pipe_whatever_is_forced(colour: None) -> None:
    assert highlighted_document("[1]") == "[1]"
    assert highlighted("[1]") != "[1]"


def test_no_colour_wins(colour: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("x", "red") == "x"
    assert highlighted("[1]") == "[1]"

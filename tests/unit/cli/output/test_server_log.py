"""What is shown of a server's output after a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

import trunkline
from trunkline.cli.output.server_log import (
    has_traceback,
    printed_shown,
    reference_in,
    stderr_shown,
)

LIBRARY = Path(trunkline.__file__).parent
TRACEBACK = "Traceback (most recent call last):"


def frame(path: object, name: str = "f") -> list[str]:
    """Return the lines of a frame."""
    return [f'  File "{path}", line 7, in {name}', "    call()"]


def own(count: int) -> list[str]:
    """Return the lines of frames of the library."""
    return [line for _ in range(count) for line in frame(LIBRARY / "server" / "app.py")]


def body(text: str) -> list[str]:
    """Return the lines below the heading, without their indent."""
    heading, *lines = text.splitlines()
    assert heading.endswith("of the server:")
    assert all(line.startswith("  ") for line in lines)
    return [line[2:] for line in lines]


def test_frames_of_the_library_are_folded_and_those_of_the_author_are_not() -> None:
    author = frame("/home/ada/notes.py", "find")
    lines = [TRACEBACK, *own(7), *author, *own(1), *author, "ZeroDivisionError: division by zero"]
    assert body(stderr_shown(lines)) == [
        TRACEBACK,
        "  … 7 frames of trunkline",
        *author,
        "  … 1 frame of trunkline",
        *author,
        "ZeroDivisionError: division by zero",
    ]


def test_an_exception_of_the_library_without_frames_of_the_author_is_its_text() -> None:
    lines = [TRACEBACK, *own(3), "trunkline.server.handlers.output.OutputMismatch: f() returned 1"]
    assert body(stderr_shown(lines)) == ["OutputMismatch: f() returned 1"]
    lines = [TRACEBACK, *own(3), "KeyError: 1"]
    assert body(stderr_shown(lines)) == [TRACEBACK, "  … 3 frames of trunkline", "KeyError: 1"]


def test_the_library_of_another_interpreter_is_folded_too() -> None:
    there = "/opt/venv/lib/python3.13/site-packages/trunkline/server/app.py"
    lines = [TRACEBACK, *frame(there), "KeyError: 1"]
    assert "  … 1 frame of trunkline" in body(stderr_shown(lines))


def test_a_folder_of_the_author_that_is_called_trunkline_is_not_folded() -> None:
    lines = [TRACEBACK, *frame("/home/ada/trunkline/server.py"), "KeyError: 1"]
    assert body(stderr_shown(lines)) == lines


def test_a_repeated_frame_of_the_library_is_folded_with_its_repetition() -> None:
    repeated = "  [Previous line repeated 3 more times]"
    lines = [TRACEBACK, *own(1), repeated, *frame("a.py"), repeated, "KeyError: 1"]
    shown = [TRACEBACK, "  … 1 frame of trunkline", *frame("a.py"), repeated, "KeyError: 1"]
    assert body(stderr_shown(lines)) == shown


def test_the_traceback_under_the_reference_is_shown_and_not_a_later_one() -> None:
    one = [TRACEBACK, *frame("one.py"), "ValueError: one"]
    other = [TRACEBACK, *frame("other.py"), "ValueError: other"]
    heading = "ERROR trunkline.server: tools/call 'g' failed (reference 0123abcd)"
    lines = [heading, *one, *(f"line {number}" for number in range(20)), *other, "end"]
    shown = body(stderr_shown(lines, "0123abcd"))
    assert shown[:4] == one
    assert heading not in shown
    # The other traceback is part of the last lines.
    assert shown[-1] == "end"
    assert len(shown) == len(one) + 10


def test_the_last_traceback_is_shown_although_more_lines_follow() -> None:
    failed = [TRACEBACK, *frame("a.py"), "KeyError: 1"]
    shown = body(stderr_shown([*failed, *map(str, range(100))]))
    assert shown == [*failed, *map(str, range(90, 100))]


def test_causes_of_an_exception_are_part_of_its_traceback() -> None:
    chained = "During handling of the above exception, another exception occurred:"
    first = [TRACEBACK, *frame("a.py"), "KeyError: 1"]
    lines = [*first, chained, TRACEBACK, *frame("b.py"), "ValueError: no", "note: look at a.py"]
    assert body(stderr_shown([*map(str, range(30)), *lines]))[10:] == lines


def test_a_long_traceback_keeps_both_ends() -> None:
    frames = [line for number in range(500) for line in frame(f"f{number}.py")]
    shown = body(stderr_shown([TRACEBACK, *frames, "RecursionError: deep"]))
    assert shown[0] == TRACEBACK
    assert shown[-1] == "RecursionError: deep"
    assert len(shown) == 41
    assert sum("lines left out" in line for line in shown) == 1


def test_a_traceback_in_a_box_is_one_too() -> None:
    box = [
        "╭──── Traceback (most recent call last) ────╮",
        *(f"│ line {number}   │" for number in range(100)),
        "╰───────────╯",
        "ZeroDivisionError: division by zero",
    ]
    lines = ["[12:00] Error calling tool 'bad'  ", *(f"        {line}  " for line in box), "end"]
    shown = body(stderr_shown([*map(str, range(20)), *lines]))
    at = shown.index(box[0])
    assert shown[at - 1] == "[12:00] Error calling tool 'bad'"
    assert shown[at + 1 : at + 10] == box[1:10]
    assert shown[-31:] == [*box[-30:], "end"]
    assert has_traceback(lines)


def test_of_other_lines_the_last_ten_are_shown() -> None:
    assert stderr_shown(["one"]) == "stderr of the server:\n  one"
    heading, *lines = stderr_shown([*map(str, range(50))]).splitlines()
    assert heading == "last lines on stderr of the server:"
    assert lines == [f"  {number}" for number in range(40, 50)]
    assert stderr_shown([]) == ""


def test_a_line_cannot_control_the_terminal_or_be_without_end() -> None:
    shown = stderr_shown(["\033[2J\u202egnp\rx", "y" * 5000])
    assert "\033" not in shown
    assert "\r" not in shown
    assert "\u202e" not in shown
    assert "\\x1b[2J\\u202egnp\\rx" in shown
    assert max(map(len, shown.splitlines())) <= 403


def test_credentials_are_concealed() -> None:
    shown = stderr_shown(["Authorization: Bearer CANARY-123456", "token=CANARY-abc"])
    assert "CANARY" not in shown


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The tool 'g' failed unexpectedly (reference d770366d).", "d770366d"),
        ("see (reference manual)", None),
        ("(reference d770366", None),
        ("(reference D770366D)", None),
        ("", None),
    ],
)
def test_a_reference_is_eight_hexadecimal_digits(text: str, found: str | None) -> None:
    assert reference_in(text) == found


def test_a_traceback_is_recognised_by_its_first_line() -> None:
    assert has_traceback(["x", TRACEBACK])
    assert not has_traceback(["Traceback", "a traceback (most recent call last):"])


def test_printed_server_output_is_quoted_and_truncated() -> None:
    assert printed_shown([]) == ""
    assert printed_shown([b"1\r"]) == "it printed '1', which is not a message"
    more = "it printed 'a' and more lines that are not messages"
    assert printed_shown([b"a", b"b"]) == more
    shown = printed_shown([b"\033[31m" + b"x" * 150])
    assert shown.startswith("it printed '\\x1b[31mxxx")
    assert len(shown) < 130
    assert "CANARY" not in printed_shown([b"password=CANARY"])
    assert "\ufffd" in printed_shown([b"\xff"])

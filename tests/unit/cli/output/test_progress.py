"""Standard error while a verb is at work. What a terminal makes of it is in tests/terminal."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from trunkline.cli.output import progress
from trunkline.cli.output.progress import Console, is_interactive
from trunkline.mcp.types import LoggingMessageNotificationParams as Message

CANARY = "canary-6105"


class Screen(io.StringIO):
    """Something that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # StringIO has None
        return self._encoding

    _encoding = "utf-8"


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    made = Screen()
    # Not sys.stderr itself: it is pytest's, which sets it again before the test begins.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=made, stdin=None))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    return made


def test_a_bar_is_drawn_over_and_taken_away(screen: Screen) -> None:
    console = Console()
    console.progress(1, 2, "half")
    drawn = screen.getvalue()
    assert drawn == f"\r{'█' * 12}{'░' * 12}  50% half"
    console.clear()
    # And two columns more, in which the terminal shows ^C.
    assert screen.getvalue() == f"{drawn}\r{' ' * (len(drawn) - 1 + 2)}\r"
    console.clear()
    assert screen.getvalue().count("\r") == 3


def test_wide_letters_are_taken_away_whole(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(now))
    console = Console()
    console.progress(1, 2, "漢字")
    console.progress(1, 2, "ab")
    bar = f"\r{'█' * 12}{'░' * 12}  50% "
    assert screen.getvalue() == f"{bar}漢字{bar}ab  "
    console.clear()
    assert screen.getvalue().endswith(f"\r{' ' * 34}\r")


def test_what_a_message_says_does_not_act_on_the_terminal(screen: Screen) -> None:
    Console().progress(1, 2, "\x1b[2J\n\r")
    assert "\x1b" not in screen.getvalue()
    assert screen.getvalue().count("\r") == 1


@pytest.mark.parametrize("total", [0, -1, float("nan"), None])
def test_without_a_sensible_total_there_is_a_count(screen: Screen, total: float | None) -> None:
    Console().progress(3, total, None)
    assert screen.getvalue().endswith(" 3")


@pytest.mark.parametrize("done", [-5, 7, float("inf"), float("nan")])
def test_a_bar_is_never_more_than_full(screen: Screen, done: float) -> None:
    Console().progress(done, 2, None)
    assert len(screen.getvalue()) == len("\r") + 24 + len(" 100%")


def test_a_terminal_that_knows_ascii_gets_ascii(screen: Screen) -> None:
    screen._encoding = "ascii"
    Console().progress(1, 2, "é")
    assert screen.getvalue() == f"\r{'#' * 12}{'.' * 12}  50% \\xe9"


def test_nothing_is_drawn_while_somebody_types(screen: Screen) -> None:
    console = Console()
    console.pause()
    console.progress(1, 2, None)
    assert screen.getvalue() == ""
    console.pause(False)
    console.progress(1, 2, None)
    assert "50%" in screen.getvalue()


def test_many_reports_are_few_drawings(screen: Screen) -> None:
    console = Console()
    for step in range(10_000):
        console.progress(step, 10_000, None)
    assert screen.getvalue().count("\r") < 1000


def test_a_dumb_terminal_gets_no_bar(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    Console().progress(1, 2, None)
    assert screen.getvalue() == ""


def test_the_log_is_shown_from_a_level_on(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(level="error")
    console.log(Message("quiet", "warning"))
    console.log(Message({"a": "\x1b"}, "alert", logger="l"))
    assert capsys.readouterr().err == "alert l: {'a': '\\x1b'}\n"


def test_a_log_message_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(level="error", is_verbose=True)
    console.log(Message("x\r\nerror l: forged", "error", logger="l\nforged"))
    console.server_line("x\rforged\x1b[2K")
    assert capsys.readouterr().err == (
        "error l\\nforged: x\\r\\nerror l: forged\nx\\rforged\\x1b[2K\n"
    )


def test_a_secret_in_the_log_is_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    console.log(Message({"password": CANARY}, "error"))
    console.log(Message(f"token={CANARY}", "error"))
    assert CANARY not in capsys.readouterr().err


def test_closed_streams_are_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    console = Console()
    console.note("nobody hears this")
    assert not is_interactive()

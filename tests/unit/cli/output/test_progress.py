"""Standard error while a verb is at work. What a terminal makes of it is in tests/terminal."""

from __future__ import annotations

import asyncio
import io
import sys
from types import SimpleNamespace

import pytest

from trunkline.cli.output import progress
from trunkline.cli.output.progress import Console, is_interactive
from trunkline.client.tasks.status_progress import StatusCount
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


def test_status_message_of_a_task_is_drawn_without_the_number_that_counts_messages(
    screen: Screen,
) -> None:
    Console().progress(StatusCount(7), None, "step 3 (3 of 5)")
    assert screen.getvalue().endswith(" step 3 (3 of 5)")
    assert "7" not in screen.getvalue()


def test_progress_without_a_total_is_drawn_with_its_number(screen: Screen) -> None:
    Console().progress(7, None, "rows")
    assert screen.getvalue().endswith(" 7 rows")


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


def test_progress_message_contains_no_terminal_escapes(screen: Screen) -> None:
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


def test_nothing_is_drawn_while_the_console_is_paused(screen: Screen) -> None:
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


def test_console_with_closed_stderr_is_not_interactive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    console = Console()
    console.note("nobody hears this")
    assert not is_interactive()


# The spinner


def test_a_short_wait_shows_nothing(screen: Screen) -> None:
    async def wait() -> None:
        with Console().waiting("calling x"):
            await asyncio.sleep(0)

    asyncio.run(wait())
    assert screen.getvalue() == ""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list whose only item is the time; the spinner is drawn at every turn of the loop."""
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "_SPINNER_DELAY_S", 0)
    monkeypatch.setattr(progress, "_SPINNER_INTERVAL_S", 0)
    return now


async def some_turns() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


def test_a_wait_shows_its_seconds_and_leaves_nothing(screen: Screen, clock: list[float]) -> None:
    async def wait() -> None:
        with Console().waiting("calling x\n\x1b"):
            await some_turns()
            assert screen.getvalue() == ""
            clock[0] = 3.7
            await some_turns()
            assert screen.getvalue().startswith("\r⠋ calling x\\n\\x1b 3 s\r⠙ ")
        drawn = len(screen.getvalue())
        assert screen.getvalue().endswith(f"\r{' ' * 23}\r")
        await some_turns()
        assert len(screen.getvalue()) == drawn

    asyncio.run(wait())


def test_progress_replaces_the_spinner(screen: Screen, clock: list[float]) -> None:
    async def wait() -> None:
        console = Console()
        with console.waiting("calling x"):
            clock[0] = 2.0
            await some_turns()
            console.progress(1, 2, None)
            drawn = screen.getvalue()
            await some_turns()
            assert screen.getvalue() == drawn
            assert drawn.endswith("50%")

    asyncio.run(wait())


def test_the_time_of_a_question_is_not_counted(screen: Screen, clock: list[float]) -> None:
    async def wait() -> None:
        console = Console()
        with console.waiting("calling x"):
            console.pause()
            clock[0] = 60.0
            await some_turns()
            console.pause(False)
            await some_turns()
            assert screen.getvalue() == ""
            clock[0] = 61.0
            await some_turns()
            assert " calling x 1 s" in screen.getvalue()

    asyncio.run(wait())


def test_a_narrow_terminal_keeps_the_seconds(
    screen: Screen, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Console, "_width", lambda _: 16)

    async def wait() -> None:
        with Console().waiting("calling a_long_name"):
            clock[0] = 12.0
            await some_turns()
            assert screen.getvalue().startswith("\r⠋ calling… 12 s")

    asyncio.run(wait())


def test_a_failure_takes_the_spinner_away(screen: Screen, clock: list[float]) -> None:
    async def wait() -> None:
        with pytest.raises(RuntimeError), Console().waiting("calling x"):
            clock[0] = 2.0
            await some_turns()
            raise RuntimeError

    asyncio.run(wait())
    assert screen.getvalue().endswith(" \r")


def test_no_spinner_is_drawn_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    # Without an event loop: nothing is scheduled.
    with Console().waiting("calling x"):
        pass
    assert capsys.readouterr().err == ""


def test_a_very_long_line_of_the_server_loses_its_middle(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Console(is_verbose=True).server_line(f"begin{'x' * 1_000_000}end")
    shown = capsys.readouterr().err
    assert len(shown) < 5000
    assert shown.startswith("beginx")
    assert " … 996008 characters … x" in shown
    assert shown.endswith("xend\n")

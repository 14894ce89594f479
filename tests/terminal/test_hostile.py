"""Hostile servers: their text cannot act on the terminal, and it is left as it was."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trunkline.cli.output.terminal import STYLE_CODES

if TYPE_CHECKING:
    from .conftest import Terminal

    Start = Callable[..., Terminal]

SCRIPT = Path(__file__).with_name("hostile.py")
OUR_STYLES = re.compile("\x1b\\[(?:0|" + "|".join(STYLE_CODES.values()) + ")m")
CALL = ["call", "tool", "--json"]
# By what is tried: the words of the command.
TRIED = {
    "list": ["list"],
    "list a tool": ["list", "tools", "tool"],
    "list all in full": ["list", "--long"],
    "list as JSON": ["list", "-o", "json"],
    "text": [*CALL, '{"act": "text"}'],
    "text as JSON": [*CALL, '{"act": "text"}', "-o", "json"],
    "value": [*CALL, '{"act": "value"}'],
    "link": [*CALL, '{"act": "link"}'],
    "blob": [*CALL, '{"act": "blob"}'],
    "bad blob": [*CALL, '{"act": "bad-blob"}'],
    "failed tool": [*CALL, '{"act": "failed"}'],
    "error": [*CALL, '{"act": "error"}'],
    "log": [*CALL, '{"act": "log"}'],
    "stderr": [*CALL, '{"act": "text"}', "-v"],
    "noise": [*CALL, '{"act": "noise"}', "-v"],
    "death": [*CALL, '{"act": "die"}'],
    "missing argument": ["call", "tool", "none=1"],
    "unknown tool": ["call", "zzz", "a=1"],
    "read": ["read", "x:y"],
    "prompt": ["prompt", "prompt"],
    "wrong argument of a prompt": ["prompt", "prompt", "z=1"],
    "ping": ["ping"],
}


def hostile(kind: str = "") -> list[str]:
    """Return the words that start the server."""
    return ["--", sys.executable, str(SCRIPT), *([kind] if kind else [])]


def assert_harmless(run: Terminal, *, has_redraws: bool = False) -> None:
    """Check that what was written are letters, line breaks and our own styles."""
    text = OUR_STYLES.sub("", run.raw.decode())
    if not run.has_colour:
        assert "\x1b" not in run.raw.decode()
    rest = text.replace("\r\n", "").replace("\t", "")
    if has_redraws:
        rest = rest.replace("\r", "")
    assert [each for each in rest if not each.isprintable()] == []
    # A line that a name or a message would have forged.
    assert not any(line.startswith("FORGED") for line in text.split("\r\n"))
    run.assert_usable()


@pytest.mark.parametrize("tried", TRIED)
def test_text_of_a_server_does_not_act_on_the_terminal(
    terminal: Start, tried: str, has_colour: bool, tmp_path: Path
) -> None:
    plain = {} if has_colour else {"NO_COLOR": "1"}
    run = terminal(*TRIED[tried], *hostile(), rows=400, cwd=tmp_path, **plain)
    run.wait()
    assert_harmless(run)
    # It is shown, not dropped.
    assert re.search(r"\\(x|u00)1b\[31m", run.text.replace("\n", "")), run.text
    assert "Traceback" not in run.text


def test_progress_does_not_act_on_the_terminal(terminal: Start) -> None:
    run = terminal(*CALL, '{"act": "progress"}', *hostile(), NO_COLOR="1")
    run.until("\\x1b[31m")
    assert run.wait() == 0
    assert_harmless(run, has_redraws=True)


@pytest.mark.parametrize(("act", "asked"), [("form", "(1 to 1)"), ("page", "[y/N]:")])
def test_a_question_does_not_act_on_the_terminal(terminal: Start, act: str, asked: str) -> None:
    run = terminal(*CALL, f'{{"act": "{act}"}}', *hostile(), rows=400)
    run.until(asked)
    assert_harmless(run)
    run.type("\x04")
    assert run.wait() == 0
    assert_harmless(run)


def test_a_recording_of_it_does_not_act_on_the_terminal(terminal: Start, tmp_path: Path) -> None:
    run = terminal("list", "--trace", "t.jsonl", *hostile(), cwd=tmp_path, rows=400)
    assert run.wait() == 0
    (tmp_path / "listing.json").write_text(json.dumps({"tools": []}))
    for words in (
        ["validate", "t.jsonl"],
        ["validate", "t.jsonl", "--format", "markdown"],
        ["diff", "listing.json", "t.jsonl"],
        ["diff", "listing.json", "t.jsonl", "--markdown"],
    ):
        run = terminal(*words, cwd=tmp_path, rows=2000)
        assert run.wait() in (0, 1)
        assert_harmless(run)
        assert re.search(r"\\(x|u00)1b", run.text), words


def test_megabytes_on_a_line_are_shortened_in_a_list(terminal: Start) -> None:
    run = terminal("list", *hostile("huge"), rows=400)
    assert run.wait() == 0
    run.assert_usable()
    assert len(run.raw) < 20_000
    assert "Prompts (1)" in run.text


def test_megabytes_in_a_log_are_shortened_and_in_a_result_they_are_not(terminal: Start) -> None:
    run = terminal(*CALL, '{"act": "log"}', *hostile("huge"), is_drawn=False)
    assert run.wait() == 0
    run.assert_usable()
    assert run.raw.count(b"y") == 2_000_000
    assert run.raw.count(b"x") < 20_000
    assert b" characters \xe2\x80\xa6" in run.raw


def test_wide_letters_are_wrapped(on_screen: Start) -> None:
    run = on_screen("list", *hostile("wide"))
    assert run.wait() == 0
    run.assert_usable()
    run.assert_screen("wide")


# Waiting


SILENT_FOR_2_S = [*CALL, '{"act": "die", "after": 2}']


def test_a_server_that_dies_while_the_spinner_runs(terminal: Start) -> None:
    run = terminal(*SILENT_FOR_2_S, *hostile())
    run.until(" calling tool 1 s")
    assert run.wait() == 3
    assert_harmless(run, has_redraws=True)
    assert "calling tool" not in run.text
    assert run.text.startswith("trunkline call: ")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)]
)
def test_a_signal_while_the_spinner_runs(terminal: Start, number: int, status: int) -> None:
    run = terminal(*SILENT_FOR_2_S, *hostile())
    run.until(" calling tool 1 s")
    run.send(number)
    assert run.wait() == status
    assert_harmless(run, has_redraws=True)
    # Nothing can erase it after SIGKILL.
    assert ("calling tool" in run.text) == (number == signal.SIGKILL)


def test_the_spinner_runs_while_connecting(
    terminal: Start, silent: Callable[[str], list[str]], tmp_path: Path
) -> None:
    run = terminal("list", *silent("initialize"), PIDFILE=str(tmp_path / "pid"))
    run.until(" connecting 1 s")
    run.type("\x03")
    assert run.wait() == 130
    run.assert_usable()
    assert run.text == ""


def test_a_dumb_terminal_gets_no_spinner(
    terminal: Start, silent: Callable[[str], list[str]], tmp_path: Path
) -> None:
    words = ["list", "--timeout", "2"]
    run = terminal(*words, *silent("initialize"), PIDFILE=str(tmp_path / "pid"), TERM="dumb")
    assert run.wait() == 3
    assert b"connecting " not in run.raw
    assert b"\x1b" not in run.raw

"""The history of lines: bounded, private, without secrets."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from trunkline.cli.shell.history import MAX_LINES, HistoryFile, default_path, is_private


@pytest.mark.parametrize(
    "line",
    [
        "login user=ada password=4711",
        "call login auth.api_key:=12",
        'call --json \'{"token": "x1y2z3"}\'',
        "call fetch header='Bearer abcdefgh12345'",
        "read https://ada:secret@example.org/",
        "echo password='open",
    ],
)
def test_a_line_that_may_hold_a_secret_is_not_written(line: str, tmp_path: Path) -> None:
    assert is_private(line)
    file = HistoryFile(str(tmp_path / "history"))
    file.append(line)
    file.append("add a=1")
    assert file.read() == ["add a=1"]


@pytest.mark.parametrize("line", ["add a=1 b=2", "call find text=tokens", "prompt x author=ada"])
def test_lines_without_a_secret_are_written(line: str, tmp_path: Path) -> None:
    file = HistoryFile(str(tmp_path / "new" / "history"))
    file.append(line)
    assert file.read() == [line]
    assert stat.S_IMODE(os.stat(tmp_path / "new" / "history").st_mode) == 0o600


def test_lines_that_cannot_be_shown_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(b"one\n\x1b[31mtwo\nthr\xff\n")
    file = HistoryFile(str(path))
    file.append("a\nb")
    file.append("x" * 5000)
    assert file.read() == ["one", "thr\ufffd"]


def test_the_file_is_cut_to_the_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f"line {at}\n" for at in range(3 * MAX_LINES)))
    lines = HistoryFile(str(path)).read()
    assert lines == [f"line {at}" for at in range(2 * MAX_LINES, 3 * MAX_LINES)]
    assert len(path.read_text().splitlines()) == MAX_LINES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["history"]


def test_a_file_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("one\n")
    path.chmod(0o644)
    assert HistoryFile(str(path)).read() == ["one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine\n")
    link = tmp_path / "history"
    link.symlink_to(other)
    file = HistoryFile(str(link))
    assert file.read() == []
    with pytest.raises(OSError):
        file.append("add")
    assert other.read_text() == "mine\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes on this system")
def test_a_fifo_in_place_of_the_file_does_not_block(tmp_path: Path) -> None:
    path = tmp_path / "history"
    os.mkfifo(path)
    file = HistoryFile(str(path))
    assert file.read() == []
    with pytest.raises(OSError, match="is not a file"):
        file.append("add")


def test_the_file_is_below_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere/state")
    assert default_path() == "/somewhere/state/trunkline/shell-history"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/ada")
    assert default_path() == "/home/ada/.local/state/trunkline/shell-history"

"""What is printed for people: how wide it is. Tables and colour are in test_main."""

from __future__ import annotations

import sys

import pytest

from trunkline.cli.output.terminal import (
    cells,
    cut,
    is_terminal,
    terminal_width,
    wants_colour,
    width,
)


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("é", 1), ("e\u0301", 1), ("漢字", 4), ("\uff57", 2)]
)
def test_wide_letters_take_two_columns(text: str, columns: int) -> None:
    assert cells(text) == columns


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


def test_a_closed_stream_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stdout", None)
    assert not is_terminal(None)
    assert not wants_colour()

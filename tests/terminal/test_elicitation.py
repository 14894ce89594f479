"""Elicitation at a terminal: forms and URLs answered by typing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]
REVISIONS = ["2025-11-25", "2026-07-28"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_form_is_filled_in_field_by_field(
    terminal: Start, server: list[str], revision: str
) -> None:
    run = terminal("call", "order", "--revision", revision, *server)
    run.until("Your name:")
    # Who asks is said, and what they ask cannot act on the terminal.
    assert "demo asks: What may it \\x1b[1mbe?" in run.text
    assert "as on the door" in run.text
    run.type("Ada\n")
    run.until("size (1 to 2):")
    assert "1) small" in run.text
    run.type("2\n")
    run.until("number [2]:")
    run.type("\n")
    run.until("gift (y/n) [n]:")
    run.type("y\n")
    assert run.wait() == 0
    assert run.text.endswith("Ada large 2 True")


def test_form_field_is_asked_again_after_an_invalid_value(
    terminal: Start, server: list[str]
) -> None:
    run = terminal("call", "order", *server)
    run.until("Your name:")
    run.type("\n")
    run.until("this field is required")
    run.type("Ada\n")
    run.until("size (1 to 2):")
    run.type("3\n")
    run.until("expected a number from 1 to 2")
    run.type("small\n")
    run.until("number [2]:")
    run.type("ten\n")
    run.until("expected an integer")
    run.type("12\n")
    run.until("at most 9")
    run.type("3\n")
    run.until("gift (y/n) [n]:")
    run.type("maybe\n")
    run.until("y or n, please")
    run.type("\n")
    assert run.wait() == 0
    assert run.text.endswith("Ada small 3 False")


def test_ctrl_d_declines(terminal: Start, server: list[str]) -> None:
    run = terminal("call", "order", *server)
    run.until("Your name:")
    run.type("\x04")
    assert run.wait() == 0
    assert run.text.endswith("declined\ndecline")
    run.assert_usable()


def test_a_secret_is_typed_unseen(terminal: Start, server: list[str]) -> None:
    run = terminal("call", "unlock", *server)
    run.until("password:")
    run.type("canary-81\n")
    assert run.wait() == 0
    assert run.text.endswith("open")
    assert b"canary" not in run.raw
    run.assert_usable()


@pytest.mark.parametrize(
    ("typed", "action"),
    [("y\n", "accept"), ("n\n", "decline"), ("\n", "decline"), ("\x04", "decline")],
)
def test_a_page_is_shown_in_full_and_agreed_to(
    terminal: Start, server: list[str], typed: str, action: str
) -> None:
    run = terminal("call", "pay", *server)
    run.until("[y/N]:")
    assert "https://pay.example/7?to=demo" in run.text
    assert "host: pay.example" in run.text
    run.type(typed)
    assert run.wait() == 0
    assert run.text.endswith(action)


def test_answers_in_advance_are_not_asked_for(terminal: Start, server: list[str]) -> None:
    ahead = ["--answer", "name=Ada", "--answer", "size=large", "--answer", "number=5"]
    run = terminal("call", "order", *ahead, *server)
    run.until("gift (y/n) [n]:")
    assert "Your name" not in run.text
    run.type("\n")
    assert run.wait() == 0
    assert run.text.endswith("Ada large 5 False")

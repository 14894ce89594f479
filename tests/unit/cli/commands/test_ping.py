"""The verb `ping`: whether a server answers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("revision", "method"),
    [("2024-11-05", "ping"), ("2025-11-25", "ping"), ("2026-07-28", "server/discover")],
)
def test_a_server_is_asked_as_its_revision_has_it(
    run: Any, server: list[str], revision: str, method: str
) -> None:
    shown = run("ping", "--revision", revision, *server)
    assert (shown.status, shown.err) == (0, "")
    first, second, end = shown.out.split("\n")
    assert first == f"demo 1.0 answers {method} in MCP {revision}"
    assert re.fullmatch(r"answer 1: \d+\.\d\d ms", second)
    assert end == ""


def test_several_are_summed_up(run: Any, server: list[str]) -> None:
    lines = run("ping", "-c", "3", "--interval", "0", *server).out.rstrip().split("\n")
    assert len(lines) == 5
    assert lines[-1].startswith("3 sent, 3 answered; min ")


def test_json_is_one_document(run: Any, server: list[str]) -> None:
    shown = run("ping", "-c", "2", "--interval", "0", "--json", *server)
    document = json.loads(shown.out)
    assert document["format"] == "trunkline.ping/1"
    assert document["server"]["name"] == "demo"
    assert len(document["times"]) == 2


def test_a_server_that_does_not_answer_in_time(run: Any, silent: Any) -> None:
    words = ["-c", "2", "--interval", "0", "--timeout", "0.5"]
    shown = run("ping", *words, *silent("ping"))
    assert shown.status == 3
    assert "answer 1: timed out\nanswer 2: timed out\n2 sent, 0 answered\n" in shown.out


def test_help_names_what_the_options_take(run: Any) -> None:
    shown = run("ping", "--help").out
    assert "\n  -c, --count N " in shown
    assert "\n  --interval SECONDS " in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "0"], "-c/--count: a number of at least 1, not '0'"),
        (["-c", "x"], "-c/--count: a number of at least 1, not 'x'"),
        (["--interval", "-1"], "--interval: a number of seconds from 0 on, not '-1'"),
        (["--interval", "x"], "--interval: a number of seconds from 0 on, not 'x'"),
        (["more"], "ping takes one target, or a command after --"),
    ],
)
def test_misuse(run: Any, server: list[str], words: list[str], said: str) -> None:
    shown = run("ping", *words, *server)
    assert (shown.status, shown.out) == (2, "")
    assert said in shown.err

"""The verb `prompt`: a prompt, filled in."""

from __future__ import annotations

import json
from typing import Any

import pytest


def test_a_prompt_is_filled_in(run: Any, server: list[str]) -> None:
    shown = run("prompt", "report", "city=12", *server)
    assert shown == (0, "Ask for a report.\n\nuser:\nWrite a dry report about 12\n", "")


@pytest.mark.parametrize(
    "words", [["city=Oslo", "style=wet"], ["--json", '{"city": "Oslo", "style": "wet"}']]
)
def test_arguments_are_words_or_an_object(run: Any, server: list[str], words: list[str]) -> None:
    assert "Write a wet report about Oslo\n" in run("prompt", "report", *words, *server).out


def test_json_is_one_document(run: Any, server: list[str]) -> None:
    shown = run("prompt", "report", "city=Oslo", "-o", "json", *server)
    document = json.loads(shown.out)
    assert document["description"] == "Ask for a report."
    assert document["messages"][0]["role"] == "user"


def test_help_names_what_the_options_take(run: Any) -> None:
    shown = run("prompt", "--help").out
    assert "\n  --json [OBJECT] " in shown
    assert "\n  --save DIR " in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report"], "an argument is missing for the prompt 'report':\n  city: string"),
        (["report", "cty=x"], "did you mean 'city'?"),
        (["report", "city:=3"], "it takes a string"),
        (["report", "--json", '{"city": 3}'], "are strings"),
        (["rport", "city=x"], "did you mean 'report'?"),
        (["report", "--json", '{"city": "\udcff"}'], "not UTF-8 text"),
        (["report", "city=\udcff"], "city takes UTF-8 text"),
        (["report", "city=x", "--save", "/nowhere/at/all"], "is not a folder"),
        ([], "NAME is missing"),
    ],
)
def test_misuse_is_a_sentence(run: Any, server: list[str], words: list[str], said: str) -> None:
    shown = run("prompt", *words, *server)
    assert (shown.status, shown.out) == (2, "")
    assert said in shown.err

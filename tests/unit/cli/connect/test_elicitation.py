"""Questions as they are put: choices, defaults, pages, and several at once.

What typing in a whole terminal shows is in tests/terminal.
"""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trunkline.cli.command import UsageError
from trunkline.cli.connect.elicitation import ElicitationPrompt, read_line
from trunkline.cli.output.progress import Console
from trunkline.mcp import ElicitRequestParams

CANARY = "canary-7702"


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Have a terminal for standard input; yield what presses its keys."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("NO_COLOR", "1")
    with os.fdopen(theirs, closefd=True) as keyboard:
        monkeypatch.setattr(sys, "stdin", keyboard)

        def press(text: str) -> None:
            os.write(ours, text.encode())

        yield press
    os.close(ours)


def asking(*answers: str) -> ElicitationPrompt:
    made = ElicitationPrompt(Console(), answers)
    made.can_ask = True
    return made


def form(fields: dict[str, Any], *required: str) -> ElicitRequestParams:
    schema = {"type": "object", "properties": fields, "required": list(required)}
    return ElicitRequestParams("Well?", requested_schema=schema)


def filled(asked: ElicitRequestParams, *answers: str) -> Any:
    return asyncio.run(asyncio.wait_for(asking(*answers).form(asked), 30))


SEVERAL = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Apples"}, {"const": "b"}]}}
TITLED = {"type": "string", "oneOf": [{"const": "x", "title": "The first"}, {"const": "2"}]}
NAMED = {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]}


@pytest.mark.parametrize(
    ("field", "typed", "value"),
    [
        (SEVERAL, "1, 2\n", ["a", "b"]),
        (SEVERAL, "Apples\n", ["a"]),
        (TITLED, "1\n", "x"),
        (TITLED, "the FIRST\n", "x"),
        (TITLED, "2\n", "2"),
        (NAMED, "large\n", "l"),
        (NAMED, "2\n", "l"),
        ({"type": "boolean"}, "yes\n", True),
        ({"type": "boolean", "default": True}, "\n", True),
        ({"type": "number"}, " 2.5 \n", 2.5),
        ({"type": "integer"}, "x\n3\n", 3),
        ({"type": "string"}, " a b \n", " a b "),
        ({"type": "string", "format": "email"}, "no\na@b.org\n", "a@b.org"),
        ({"type": "string", "minLength": 3}, "ab\nabc\n", "abc"),
        ({"type": "string", "default": "d"}, "\n", "d"),
    ],
)
def test_a_field_takes_what_is_typed(
    type_in: Callable[[str], None], field: dict[str, Any], typed: str, value: Any
) -> None:
    type_in(typed)
    assert filled(form({"f": field}, "f")) == {"f": value}


@pytest.mark.parametrize(
    ("fields", "required", "keys"),
    [
        ({"a": {"type": "integer"}}, ["a"], "(Ctrl-D declines)"),
        ({"a": {"type": "integer", "default": 2}}, ["a"], "(Enter accepts the default, Ctrl-D"),
        ({"a": {"type": "integer"}}, [], "(Enter leaves out what is not required, Ctrl-D"),
        (
            {"a": {"type": "integer", "default": 2}, "b": {"type": "string"}},
            [],
            "(Enter accepts the default, Enter otherwise leaves out what is not required, Ctrl-D",
        ),
    ],
)
def test_a_form_says_what_enter_does_in_it(
    fields: dict[str, Any],
    required: list[str],
    keys: str,
    type_in: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    type_in("1\n" * len(fields))
    filled(form(fields, *required))
    assert keys in capsys.readouterr().err


COUNT = {"type": "integer"}


@pytest.mark.parametrize(
    ("fields", "answers", "value"),
    [
        ({"n": COUNT}, ["3"], {"n": 3}),
        ({"n": COUNT}, ["n=4", "3"], {"n": 4}),
        ({"n": COUNT}, ["other=4", "3"], {"n": 3}),
        ({"n": {"type": "boolean"}}, ["no"], {"n": False}),
        ({"n": {"type": "string"}}, ["a b"], {"n": "a b"}),
        ({"n": COUNT, "m": COUNT}, ["n=1", "m=2", "3"], {"n": 1, "m": 2}),
        ({}, ["3"], {}),
        # Not a field, and not the whole value either.
        ({"n": COUNT}, ["x=3"], "decline"),
        ({"n": COUNT}, ["x"], "decline"),
    ],
)
def test_an_answer_without_a_field_is_for_a_form_with_one(
    fields: dict[str, Any], answers: list[str], value: Any
) -> None:
    prompt = ElicitationPrompt(Console(), answers)
    prompt.can_ask = False
    assert asyncio.run(prompt.form(form(fields, *fields))) == value


def test_a_value_for_several_optional_fields_is_declined_and_names_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    prompt = ElicitationPrompt(Console(), ["3"])
    prompt.can_ask = False
    many = {f"f{number}\x1b": COUNT for number in range(21)}
    assert asyncio.run(prompt.form(form(many))) == "decline"
    said = capsys.readouterr().err
    assert "the form has f0\\x1b, f1\\x1b, " in said
    assert said.endswith("f19\\x1b, …\ndeclined\n")


def test_a_value_for_several_fields_is_asked_for_at_a_terminal(
    type_in: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    type_in("1\n")
    type_in("2\n")
    assert filled(form({"a": COUNT, "b": COUNT}, "a", "b"), "3") == {"a": 1, "b": 2}
    assert "--answer needs the name of a field, as a=VALUE: the form has a, b\n" in (
        capsys.readouterr().err
    )


def test_what_is_expected_is_said_of_an_answer_that_does_not_fit(
    type_in: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    type_in("abc\n")
    type_in("3\n")
    assert filled(form({"a": {"type": "integer"}}, "a")) == {"a": 3}
    assert "  expected an integer\n" in capsys.readouterr().err


def test_optional_fields_can_be_left_empty(type_in: Callable[[str], None]) -> None:
    type_in("\n\n")
    assert filled(form({"f": {"type": "integer"}, "g": SEVERAL})) == {}


def test_the_end_of_input_declines(type_in: Callable[[str], None]) -> None:
    type_in("\x04")
    assert filled(form({"f": {"type": "string"}}, "f")) == "decline"


def test_a_form_without_fields_is_shown_and_accepted(
    type_in: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert filled(form({})) == {}
    assert "the server asks: Well?\n" in capsys.readouterr().err


def test_all_that_a_server_wrote_is_made_visible(
    type_in: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    odd = "\x1b]0;x\x07"
    field = {"type": "string", "title": odd, "description": odd, "enum": [odd], "default": odd}
    type_in("\n")
    asked = form({odd: field})
    filled(ElicitRequestParams(odd, requested_schema=asked.requested_schema))
    assert not set(capsys.readouterr().err) & {"\x1b", "\x07"}


def test_the_default_of_a_secret_is_not_shown(
    type_in: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    type_in("\n")
    field = {"type": "string", "default": CANARY}
    assert filled(form({"password": field})) == {"password": CANARY}
    assert CANARY not in capsys.readouterr().err


def test_a_secret_that_does_not_fit_is_not_shown(
    type_in: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(f"{CANARY}\n123\n")
    field = {"type": "string", "maxLength": 3}
    assert filled(form({"password": field}, "password")) == {"password": "123"}
    assert CANARY not in capsys.readouterr().err


def test_two_questions_are_asked_one_after_the_other(
    type_in: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    async def both() -> list[Any]:
        one = asking()
        field = {"f": {"type": "string"}}
        return await asyncio.gather(one.form(form(field)), one.form(form(field)))

    type_in("a\nb\n")
    assert asyncio.run(asyncio.wait_for(both(), 30)) == [{"f": "a"}, {"f": "b"}]
    assert capsys.readouterr().err.count("Well?") == 2


def test_an_address_is_shown_with_its_host_in_plain_letters(
    type_in: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    # The first letter is Cyrillic.
    url = "https://user@\u0430pple.example/pay?x=1"
    type_in("maybe\nn\n")
    page = ElicitRequestParams("Pay", mode="url", url=url)
    assert asyncio.run(asyncio.wait_for(asking().page(page), 30)) is False
    said = capsys.readouterr().err
    assert f"  {url}\n" in said
    assert "host: \u0430pple.example (xn--pple-43d.example)\n" in said
    assert "y or n, please" in said


@pytest.mark.parametrize("words", [["=x"], [""], ["x", "y"], ["x", "x"]])
def test_malformed_answers_in_advance_are_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        ElicitationPrompt(Console(), words)


def test_keyboard_is_not_read_between_questions(type_in: Callable[[str], None]) -> None:
    async def ask() -> bool:
        await asking().form(form({"f": {"type": "string"}}))
        return asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    type_in("a\n")
    assert asyncio.run(asyncio.wait_for(ask(), 30)) is False


def test_a_line_is_read_from_a_file_and_from_dev_null(tmp_path: Path) -> None:
    (tmp_path / "answer").write_text("http://127.0.0.1/?code=1\n")
    for path, line in ((tmp_path / "answer", "http://127.0.0.1/?code=1"), (Path(os.devnull), None)):
        with path.open("rb") as opened:
            assert asyncio.run(asyncio.wait_for(read_line(opened.fileno()), 30)) == line

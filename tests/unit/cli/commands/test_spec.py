"""The verb `spec`: what each word prints, for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunkline import spec
from trunkline.cli import main
from trunkline.cli.command import parser_of
from trunkline.cli.commands.spec import FORMAT
from trunkline.cli.commands.spec import WORDS as WORDS_OF_VERB
from trunkline.spec.profiles import PROFILE_NAMES
from trunkline.spec.revisions import LATEST, REVISIONS

# Every word, with arguments that hold in every revision.
WORDS = [
    ["methods"],
    ["method", "tools/call"],
    ["errors"],
    ["errors", "--profile", "pierre"],
    ["error", "-32602"],
    ["transports"],
    ["capabilities"],
    ["types"],
    ["type", "Tool"],
    ["headers"],
    ["statuses"],
    ["meta"],
    ["requirements"],
    ["find", "tool"],
    ["schema"],
    ["schema", "Tool"],
]
WITHOUT_REVISION = [["requirement", "mcp.progress.grows"], ["diff", "2025-11-25", "2026-07-28"]]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def text(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["spec", *words]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(text(capsys, *words, "--json"))


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["spec", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


# A search


def test_a_word_that_is_not_one_of_the_verb_is_searched_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = text(capsys, "elicitation")
    assert shown == text(capsys, "find", "elicitation")
    assert "Methods (1)  trunkline spec method elicitation/create\n  elicitation/create  " in shown
    assert "\nCapabilities (3)  trunkline spec capabilities\n" in shown
    assert "\n  mcp.elicitation.mode-default  " in shown
    assert " more: trunkline spec requirements\n" in shown
    found = document(capsys, "elicitation")["found"]
    assert len([row for row in found if row["kind"] == "requirements"]) > 12


def test_a_number_is_that_of_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert text(capsys, "-32601") == text(capsys, "error", "-32601")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["metods"], "has 'metods'; did you mean trunkline spec methods?"),
        (["logging/setLevel"], "MCP has it in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25"),
        (["find", "tool", "zzz"], "nothing in MCP 2026-07-28 has 'tool' and 'zzz'\n"),
    ],
)
def test_a_search_without_a_result_says_what_to_try(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(capsys, *words)


def test_the_words_of_the_verb_are_those_of_its_help() -> None:
    (words,) = (each for each in parser_of("spec")._actions if each.dest == "about")
    assert set(words.choices or ()) == set(WORDS_OF_VERB)


def test_a_profile_of_another_system_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert "those of other systems (erlmcp), which" in text(capsys, "error", "-32021")
    assert "other systems" not in text(capsys, "error", "-32021", "--profile", "mcp")


# All of them


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_word_answers_in_every_revision(
    words: list[str], revision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert text(capsys, *words, "--revision", revision).strip()
    found = document(capsys, *words, "--revision", revision)
    assert (found["format"], found["about"], found["revision"]) == (FORMAT, words[0], revision)


@pytest.mark.parametrize("words", WITHOUT_REVISION, ids=" ".join)
def test_words_about_several_revisions_answer_too(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert text(capsys, *words).strip()
    assert document(capsys, *words)["format"] == FORMAT


@pytest.mark.parametrize("words", [*WORDS, *WITHOUT_REVISION], ids=" ".join)
def test_every_word_has_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert text(capsys, words[0], "--help").startswith(f"usage: trunkline spec {words[0]}")


def test_a_revision_that_was_not_released_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "2025-11-25" in refusal(capsys, "methods", "--revision", "2025-01-01")


# Methods


def test_the_methods_of_a_revision_are_all_listed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = text(capsys, "methods", "--revision", "2025-06-18").splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        row.name for row in spec.methods("2025-06-18")
    ]


def test_a_method_shows_its_facts_and_fields(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, "method", "tools/call", "--revision", "2025-11-25")
    assert "kind:        request" in shown
    assert "sent by:     client" in shown
    assert "capability:  tools (the server declares it)" in shown
    assert "since:       2024-11-05; in this form since 2025-11-25" in shown
    assert "until:       it changes in 2026-07-28" in shown
    assert "source:      2025-11-25 · server/tools#calling-tools" in shown
    assert "params: CallToolRequestParams" in shown
    assert "\n  name*" in shown
    assert "\n  arguments " in shown
    assert "result: CallToolResult" in shown


def test_a_method_that_either_side_sends_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert "either side" in text(capsys, "method", "ping", "--revision", "2025-11-25")


def test_last_revision_of_a_removed_method_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, "method", "ping", "--revision", "2024-11-05")
    assert "until:    last in 2025-11-25" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ping"], "no longer has ping: it was last in 2025-11-25"),
        (["server/discover", "--revision", "2025-11-25"], "it was added in 2026-07-28"),
        (["tols/call"], "Did you mean 'tools/call'?"),
    ],
)
def test_a_method_that_is_not_there_says_why(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refusal(capsys, "method", *words)


def test_the_document_of_a_method_has_its_types(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "method", "tools/call")
    fields = found["types"]["CallToolRequestParams"]["fields"]
    assert {field["name"]: field["required"] for field in fields}["name"] is True
    assert found["method"]["when"] == {"since": "2026-07-28", "until": None}


# Errors


def test_a_number_is_read_by_every_profile(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, "error", "-32002", "--revision", "2025-11-25")
    assert "RESOURCE_NOT_FOUND" in shown
    assert "TOOL_NOT_FOUND" in shown
    assert "AUTHENTICATION_FAILED" in shown


def test_a_number_is_read_by_one_profile(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "error", "-32002", "--profile", "pierre")
    assert [each["profile"] for each in found["readings"]] == ["pierre"]


def test_a_symbol_is_read_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "error", "invalid_params")
    assert {each["error"]["number"] for each in found["readings"]} == {-32602}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["12345"], "12345 has no meaning for any profile"),
        (["INVALID_PARAM"], "did you mean INVALID_PARAMS?"),
        (["-32042", "--profile", "pierre"], "has no meaning for profile 'pierre'"),
    ],
)
def test_an_error_that_is_not_there_says_so(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refusal(capsys, "error", *words)


@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_every_profile_can_be_listed(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "errors", "--profile", profile)
    assert len(found["errors"]) == len(spec.errors(LATEST, profile))


# Types, requirements


def test_an_unknown_type_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "it is in 2024-11-05" in refusal(capsys, "type", "PingRequest")


def test_union_type_lists_its_members(capsys: pytest.CaptureFixture[str]) -> None:
    assert "| TextContent" in text(capsys, "type", "ContentBlock")


def test_a_type_is_described_by_its_prose_its_fields_or_what_it_may_be(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    views = spec.all_types(LATEST)
    known = {name: views[name] for name in ("TextContent", "ContentBlock")}
    known["Told"] = views["TextContent"]._replace(name="Told", doc="a text that says so")
    monkeypatch.setattr(spec, "all_types", lambda revision: known)
    _, *rows = text(capsys, "types", "--revision", LATEST).splitlines()
    described = {name: what.strip() for name, kind, what in (row.split(None, 2) for row in rows)}
    assert described["Told"] == "a text that says so"
    assert described["TextContent"] == ", ".join(views["TextContent"].fields)
    assert described["ContentBlock"] == " | ".join(views["ContentBlock"].of)


def test_a_schema_is_a_document_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(text(capsys, "schema", "Tool")) == spec.json_schema("Tool")


def test_the_schema_of_everything_refers_to_nothing_outside(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = text(capsys, "schema")
    names = set(json.loads(shown)["$defs"])
    wanted = {part.split('"')[0] for part in shown.split('"$ref": "#/$defs/')[1:]}
    assert wanted <= names
    assert names == {name for name in spec.all_types() if "." not in name}


def test_requirements_are_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("requirements", "--actor", "server", "--level", "must-not", "--judge", "trace")
    found = document(capsys, *words)["requirements"]
    assert found
    assert {row["level"] for row in found} == {"must-not"}
    assert {row["actor"] for row in found} <= {"server", "both"}


def test_an_unknown_requirement_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'mcp.progress.grows'" in refusal(
        capsys, "requirement", "mcp.progress.grow"
    )


# Differences


def test_a_difference_reads_as_a_guide(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, "diff", "2025-11-25", "2026-07-28")
    flat = " ".join(shown.split())
    assert shown.startswith("From MCP 2025-11-25 to 2026-07-28\n\nMethods (")
    assert "- initialize is removed. Put the protocol version" in flat
    assert "notifications/tasks/status is now called notifications/tasks." in flat
    assert "- server/discover is new. A server must answer it" in flat
    assert "result was CallToolResult | CreateTaskResult, now InputRequiredResult" in flat


def test_equal_changes_of_methods_share_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, "diff", "2025-11-25", "2026-07-28")
    assert "- resources/list, resources/templates/list, prompts/list change:" in shown


def test_every_change_is_in_the_guide(capsys: pytest.CaptureFixture[str]) -> None:
    flat = " ".join(text(capsys, "diff", "2024-11-05", "2026-07-28").split())
    for change in spec.diff("2024-11-05", "2026-07-28").changes:
        assert change.name in flat
        assert " ".join(change.to_do.split()) in flat


def test_no_difference_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert "No changes." in text(capsys, "diff", "2025-11-25", "2025-11-25")

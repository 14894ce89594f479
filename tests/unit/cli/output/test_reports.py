"""The renderers of a report: places and carets, each format's own rules, and no secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from trunkline.cli import main
from trunkline.cli.output.reports import (
    FORMATS,
    JudgedMessage,
    LocatedFinding,
    ValidationReport,
    address,
    render,
)
from trunkline.cli.output.reports.text import advice, excerpt_of, marker, sentence
from trunkline.judge import Finding

MESSAGE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": None,
    "method": "tools/call",
    "params": {"name": "x", "arguments": [1, 2, {"password": {"inner": "hush"}, "b": 2}], "z": 3},
}
CANARY = "canary-5f2b91"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def finding(level: Any = "error", **facts: Any) -> Finding:
    known = {"rule": "mcp.type.json-type", "where": "/params/name", "got": "7"}
    return Finding(
        level=level,
        **{**known, "expected": "a string", "source": "2025-11-25 · schema#Tool", **facts},
    )


def report(*found: Finding, strict: bool = False, message: Any = MESSAGE) -> ValidationReport:
    seen = tuple(LocatedFinding(each, excerpt_of(message, each.where)) for each in found)
    clean = JudgedMessage(1, "request tools/list", "tools/list", 1, "", ())
    faulty = JudgedMessage(2, "request tools/call", "tools/call", 2, "client", seen)
    return ValidationReport("a.jsonl", "lines", "2025-11-25", "as given", strict, (clean, faulty))


# Places


def pointed_at(pointer: str, message: Any = MESSAGE) -> str:
    """Return what the carets stand below."""
    excerpt = excerpt_of(message, pointer)
    assert excerpt is not None
    assert len(marker(excerpt)) == excerpt.end
    return excerpt.lines[excerpt.line][excerpt.start : excerpt.end]


@pytest.mark.parametrize(
    ("pointer", "below"),
    [
        ("/id", "null"),
        ("/method", '"tools/call"'),
        ("/params/z", "3"),
        ("/params/arguments/1", "2"),
        ("/params/arguments/2/b", "2"),
        # What is missing is marked at what lacks it.
        ("/params/title", '"params"'),
        ("/params/_meta/io.modelcontextprotocol~1x", '"params"'),
        ("/params/arguments/9", '"arguments"'),
        # What is secret is not looked into.
        ("/params/arguments/2/password/inner", '"password"'),
    ],
)
def test_the_carets_stand_below_the_member(pointer: str, below: str) -> None:
    assert pointed_at(pointer) == below


def test_the_place_is_shown_with_its_neighbours() -> None:
    excerpt = excerpt_of(MESSAGE, "/id")
    assert excerpt is not None
    assert excerpt.lines == (
        "{",
        '  "jsonrpc": "2.0",',
        '  "id": null,',
        '  "method": "tools/call",',
        "  …",
        "}",
    )


def test_finding_without_a_place_marks_the_whole_message() -> None:
    assert pointed_at("", {"a": 1}) == '{"a": 1}'
    assert pointed_at("/b", {"a": 1}) == '{"a": 1}'


def test_escaped_names_are_found() -> None:
    assert pointed_at("/a~1b/c~0d", {"a/b": {"c~d": 5}}) == "5"


def test_a_long_value_is_cut() -> None:
    assert len(pointed_at("/a", {"a": "x" * 10_000})) < 80


def test_a_place_in_a_large_message_stays_small() -> None:
    many = {"a": [{"n": number} for number in range(10_000)]}
    excerpt = excerpt_of(many, "/a/5000/n")
    assert excerpt is not None
    assert len(excerpt.lines) < 15
    assert pointed_at("/a/5000/n", many) == "5000"


def test_a_deep_place_is_not_followed_to_the_end() -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"a": deep}
    excerpt = excerpt_of(deep, "/a" * 500)
    assert excerpt is not None
    assert len(excerpt.lines) < 100


def test_wide_characters_push_the_carets_along() -> None:
    excerpt = excerpt_of({"漢字": "é"}, "/漢字")
    assert excerpt is not None
    assert marker(excerpt) == " " * len('  "漢漢字字": ') + "^^^"


@pytest.mark.parametrize("nothing", [5, "text", None])
def test_excerpt_of_a_value_that_is_not_a_message_is_none(nothing: object) -> None:
    assert excerpt_of(nothing, "/a") is None


# Sentences


def test_sentence_names_the_value_and_its_place() -> None:
    assert sentence(finding()) == "got 7 at /params/name"
    assert sentence(finding(got="")) == "nothing at /params/name"
    assert sentence(finding(where="", got="an array")) == "got an array"
    assert sentence(finding(where="", got="")) == "the message as a whole"


def test_advice_is_left_as_it_is() -> None:
    assert advice(finding()) == "expected a string"
    assert advice(finding(expected="Do it.")) == "Do it."
    assert advice(finding(expected="")) == ""


@pytest.mark.parametrize(
    ("source", "page"),
    [
        (
            "2025-11-25 · server/tools#calling-tools",
            "https://modelcontextprotocol.io/specification/2025-11-25/server/tools#calling-tools",
        ),
        (
            "MCP 2025-11-25, basic",
            "https://modelcontextprotocol.io/specification/2025-11-25/basic",
        ),
        (
            "2026-07-28 · basic/index",
            "https://modelcontextprotocol.io/specification/2026-07-28/basic",
        ),
        ("JSON-RPC 2.0, section 5", "https://www.jsonrpc.org/specification"),
        ("RFC 8259, section 4", "https://www.rfc-editor.org/rfc/rfc8259#section-4"),
        ("Trunkline limits", ""),
    ],
)
def test_a_source_has_an_address_where_it_is_a_page(source: str, page: str) -> None:
    assert address(source) == page


# Formats


def test_text_reads_like_a_compiler() -> None:
    assert render(report(finding()), "text") == (
        "a.jsonl:2: error mcp.type.json-type: got 7 at /params/name\n"
        "  message 2, request tools/call, from the client\n"
        "    {\n"
        "      …\n"
        '      "method": "tools/call",\n'
        '      "params": {\n'
        '        "name": "x",\n'
        "                ^^^ expected a string\n"
        '        "arguments": [1, 2, "…"],\n'
        "        …\n"
        "      }\n"
        "    }\n"
        "  2025-11-25 · schema#Tool\n"
        "\n"
        "a.jsonl: 2 messages by MCP 2025-11-25: 1 error"
    )


def test_text_is_coloured_by_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = render(report(finding(), finding("warn")), "text")
    assert "\033[31merror\033[0m" in shown
    assert "\033[33mwarning\033[0m" in shown


def test_the_same_finding_is_shown_three_times_and_then_counted() -> None:
    remarks = [finding("info", where=f"/params/{number}") for number in range(9)]
    text = render(report(*remarks), "text")
    assert text.count(": info mcp.type.json-type: ") == 3
    assert "not shown: 6 more findings of mcp.type.json-type; --format json has all" in text
    assert text.endswith("9 remarks")
    assert len(json.loads(render(report(*remarks), "json"))["messages"][1]["findings"]) == 9


def test_errors_at_different_places_are_all_shown() -> None:
    errors = [finding(where=f"/params/{number}") for number in range(9)]
    assert render(report(*errors), "text").count(": error mcp.type.json-type: ") == 9
    again = render(report(*[finding()] * 4), "text")
    assert again.count(": error mcp.type.json-type: ") == 3
    assert "not shown: 1 more finding of" in again


def test_a_summary_counts_by_level() -> None:
    found = report(finding(), finding("warn"), finding("warn"), finding("info"))
    assert found.summary() == "2 messages by MCP 2025-11-25: 1 error, 2 warnings, 1 remark"
    assert report().summary() == "2 messages by MCP 2025-11-25: nothing found"


def test_json_holds_it_all() -> None:
    found = json.loads(render(report(finding()), "json"))
    assert found["format"] == "trunkline.validate/1"
    assert found["counts"] == {"error": 1, "warn": 0, "info": 0}
    assert found["messages"][1]["findings"][0]["expected"] == "a string"


@pytest.mark.parametrize(("strict", "failures"), [(False, "0"), (True, "1")])
def test_junit_has_a_case_per_message(strict: bool, failures: str) -> None:
    suite = ElementTree.fromstring(render(report(finding("warn"), strict=strict), "junit"))
    assert (suite.get("tests"), suite.get("failures")) == ("2", failures)
    assert (suite.get("errors"), suite.get("skipped")) == ("0", "0")
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == [
        "message 1: request tools/list",
        "message 2: request tools/call",
    ]
    assert len(cases[0]) == 0
    assert [part.tag for part in cases[1]] == ["failure" if strict else "system-out"]


def test_junit_escapes_what_xml_cannot_hold() -> None:
    shown = render(report(finding(got='<&"\x00\ud800]]>')), "junit")
    failure = ElementTree.fromstring(shown).find("testcase/failure")
    assert failure is not None
    assert r'<&"\x00\ud800]]>' in (failure.text or "")


def test_sarif_names_rules_and_places() -> None:
    log = json.loads(render(report(finding(), finding("info"), finding(rule="x.y")), "sarif"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["mcp.type.json-type", "x.y"]
    assert rules[0]["helpUri"].startswith("https://modelcontextprotocol.io/specification/")
    first, second, third = run["results"]
    assert (first["level"], second["level"], third["ruleIndex"]) == ("error", "note", 1)
    (place,) = first["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "a.jsonl"},
        "region": {"startLine": 2},
    }
    assert [each["name"] for each in place["logicalLocations"]] == ["tools/call", "/params/name"]


def test_a_fingerprint_does_not_depend_on_the_line() -> None:
    def prints(found: ValidationReport) -> list[str]:
        results = json.loads(render(found, "sarif"))["runs"][0]["results"]
        return [each["partialFingerprints"]["trunklineFinding/v1"] for each in results]

    here = report(finding())
    moved = here._replace(messages=tuple(m._replace(line=9, number=9) for m in here.messages))
    assert prints(here) == prints(moved)
    assert prints(here) != prints(report(finding(where="/params")))


def test_markdown_lets_no_markup_through() -> None:
    shown = render(report(finding(got="![x](http://y) `<b>`", expected="a [link](z)")), "markdown")
    assert "`got ![x](http://y) '<b>' at /params/name`" in shown
    assert r"a \[link\]\(z\)" in shown
    assert "\n                ^^^\n" in shown


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_found_is_a_report_too(form: str) -> None:
    assert render(report(), form)


# Hostile text


@pytest.mark.parametrize("form", ["text", "markdown", "junit"])
def test_no_text_of_a_peer_reaches_the_terminal_as_a_command(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;x\x07\x9b31m\u202e\r\n"
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": evil, evil: evil, "params": {evil: evil}},
        {"jsonrpc": evil, "id": evil, "result": {evil: evil}},
        {"jsonrpc": "2.0", "id": [evil], "method": "tools/call", "params": {"name": [evil]}},
    ]
    file = tmp_path / "evil.jsonl"
    file.write_text("\n".join(map(json.dumps, messages)))
    assert main(["validate", str(file), "--format", form]) == 1
    shown = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in shown)


# Secrets


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "holding",
    [
        {"token": CANARY},
        {"Authorization": f"Bearer {CANARY}"},
        {"text": f"Bearer {CANARY}"},
        {"headers": [["X-Api-Key", CANARY]]},
        {"env": [{"name": "API_KEY", "value": CANARY}]},
        {"password": {"nested": [CANARY]}},
        {"session_id": CANARY},
        {f"token={CANARY}": 1},
    ],
    ids=lambda holding: next(iter(holding)).partition("=")[0],
)
def test_no_format_shows_a_secret(
    form: str, holding: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "secret.jsonl"
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": holding},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": holding}},
        {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {"clientInfo": holding}},
        {"jsonrpc": "2.0", "id": 4, "method": f"Bearer {CANARY}", **holding},
        {"jsonrpc": "2.0", "id": 1, "result": holding},
        {"jsonrpc": "2.0", "id": 2, "error": {"code": "x", "message": 1, "data": holding}},
        {"jsonrpc": "2.0", "id": holding, "method": "ping"},
    ]
    bare = "\n".join(map(json.dumps, messages)) + f'\n{{"token": "{CANARY}"\n'
    sides = ("client", "client", "client", "client", "server", "server", "client")
    entries = [
        {"from": side, "http": {"headers": {"Authorization": CANARY}}, "message": message}
        for side, message in zip(sides, messages, strict=True)
    ]
    recorded = "\n".join(map(json.dumps, [{"trunkline-trace": 1, "token": CANARY}, *entries]))
    for text in (bare, recorded):
        file.write_text(text)
        assert main(["validate", str(file), "--format", form]) == 1
        shown = capsys.readouterr()
        assert CANARY not in shown.out + shown.err

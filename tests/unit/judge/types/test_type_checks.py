from __future__ import annotations

from typing import Any

import pytest

from trunkline.judge import judge_type
from trunkline.judge.finding import CUT_RULE, MAX_FINDINGS
from trunkline.judge.types.type_checks import compiled
from trunkline.spec.revisions import REVISIONS, V2025_06_18, V2025_11_25, V2026_07_28
from trunkline.spec.types import UnknownRevision, UnknownType, types

TOOL: dict[str, Any] = {"name": "add", "inputSchema": {"type": "object"}}


def findings_of(value: Any, type: str, revision: str = V2025_11_25) -> list[tuple[str, str]]:
    return [(item.rule, item.where) for item in judge_type(value, type, revision)]


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_type_of_every_revision_can_be_judged_by(revision: str) -> None:
    for name in types(revision):
        for value in (None, True, 1, 1.5, "a", [], {}, {"type": 7}, {"method": []}, [{}]):
            judge_type(value, name, revision)


def test_a_check_is_made_once() -> None:
    assert compiled("Tool", V2025_11_25) is compiled("Tool", V2025_11_25)


def test_one_pass_names_every_fault() -> None:
    value = {"name": 1, "inputSchema": {"type": "array"}, "title": [], "annotations": 7}
    assert findings_of(value, "Tool") == [
        ("mcp.type.json-type", "/annotations"),
        ("mcp.type.constant", "/inputSchema/type"),
        ("mcp.type.json-type", "/name"),
        ("mcp.type.json-type", "/title"),
    ]


def test_an_unknown_type_or_revision_is_the_callers_mistake() -> None:
    with pytest.raises(UnknownType, match="no revision has it"):
        judge_type({}, "Task.nothing")
    with pytest.raises(UnknownType, match="it is in 2024-11-05"):
        judge_type({}, "InitializeRequest", V2026_07_28)
    with pytest.raises(UnknownRevision):
        judge_type({}, "Tool", "2025-01-01")
    with pytest.raises(ValueError, match="has no type"):
        judge_type({}, "list<", V2025_11_25)


def test_a_near_name_is_suggested() -> None:
    found = judge_type({**TOOL, "InputSchema": {}, "zzz": 1}, "Tool", V2025_11_25)
    assert "did you mean 'inputSchema'?" in found[0].expected
    assert "did you mean" not in found[1].expected


def test_a_member_of_another_revision_says_which() -> None:
    later = judge_type({**TOOL, "icons": []}, "Tool", V2025_06_18)
    assert [(item.rule, item.expected) for item in later] == [
        ("mcp.type.not-yet", "no 'icons': added in 2025-11-25")
    ]
    earlier = judge_type({**TOOL, "execution": {}}, "Tool", V2026_07_28)
    assert [(item.rule, item.expected) for item in earlier] == [
        ("mcp.type.no-longer", "no 'execution': removed in 2026-07-28")
    ]


def test_the_nearest_member_of_a_union_is_what_was_meant() -> None:
    blocks = [{"type": "text"}, {"type": "text"}, {"type": "text"}]
    found = findings_of({"content": blocks}, "CallToolResult | CreateTaskResult")
    assert found == [("mcp.type.required", f"/content/{place}/text") for place in range(3)]


def test_a_json_type_that_no_member_has_is_one_finding() -> None:
    assert findings_of(7, "TextContent | list<TextContent>") == [("mcp.type.json-type", "")]
    assert findings_of({}, "ProgressToken") == [("mcp.type.json-type", "")]


def test_a_constant_of_a_wrong_type_does_not_break_the_choice() -> None:
    for tag in (None, 7, [], {}):
        assert findings_of({"type": tag, "text": "a"}, "ContentBlock") == [
            ("mcp.type.constant", "/type")
        ]


def test_a_value_of_another_revision_is_hinted_at() -> None:
    # No enum of the specification changed yet, so the hint is asked for directly.
    from trunkline.judge.types.hints import constants_elsewhere

    assert constants_elsewhere("TaskStatus", "working", V2025_06_18) == "; 2025-11-25 has 'working'"
    assert constants_elsewhere("TaskStatus", "nothing", V2025_06_18) == ""


def test_a_flood_of_faults_is_cut_and_errors_come_first() -> None:
    value = [{**TOOL, "zz": 1} for _ in range(3000)] + [{}]
    found = judge_type(value, "list<Tool>", V2025_11_25)
    assert len(found) == MAX_FINDINGS + 1
    assert [item.where for item in found[:2]] == ["/3000/inputSchema", "/3000/name"]
    assert (found[-1].rule, found[-1].got) == (CUT_RULE, "2002 more")


def test_faults_are_counted_up_to_ten_times_as_many_as_are_shown() -> None:
    for many in (10 * MAX_FINDINGS - 1, 10 * MAX_FINDINGS, 20 * MAX_FINDINGS):
        extensions = {f"no-prefix-{number}": {} for number in range(many)}
        found = judge_type({"extensions": extensions}, "ClientCapabilities", V2026_07_28)
        shown, cut = found[:-1], found[-1]
        assert {item.rule for item in shown} == {"mcp.extension.id"}
        stopped = many >= 10 * MAX_FINDINGS
        count = f"more than {9 * MAX_FINDINGS} more" if stopped else f"{many - MAX_FINDINGS} more"
        assert (len(shown), cut.rule, cut.got) == (MAX_FINDINGS, CUT_RULE, count)


def test_the_count_of_faults_stops_inside_a_large_mapping_too() -> None:
    # Each has more than 256 members, and the list itself has few.
    keys = {f"-bad-{number}": 1 for number in range(257)}
    found = judge_type([{**TOOL, "_meta": keys} for _ in range(42)], "list<Tool>", V2025_11_25)
    assert found[-1].rule == CUT_RULE
    assert str(found[-1].got).startswith("more than ")


def test_looking_stops_when_enough_was_found() -> None:
    found = judge_type([7] * 1_000_000, "list<Tool>", V2025_11_25)
    assert found[-1].got.startswith("more than ")


def test_a_value_that_nests_without_end_is_judged_by_its_type_alone() -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(100_000):
        inner["a"] = {}
        inner = inner["a"]
    assert findings_of({"name": "a", "arguments": deep}, "CallToolRequestParams") == []
    assert findings_of({"name": deep}, "CallToolRequestParams") == [("mcp.type.json-type", "/name")]
    while deep:  # taken apart from outside, or freeing it would nest as deep
        deep = deep.pop("a")


def test_member_name_that_is_not_a_string_is_a_finding() -> None:
    assert ("mcp.type.unknown-member", "/7") in findings_of({**TOOL, 7: 1}, "Tool")


def test_value_allowed_by_the_schema_file_only_is_a_warning() -> None:
    result = {"resultType": "complete", "contents": []}
    found = judge_type({"result": result}, "ReadResourceResultResponse", V2026_07_28)
    assert {(item.rule, item.level) for item in found} == {("mcp.type.told-by-value", "warn")}


def test_a_secret_is_not_shown() -> None:
    found = judge_type({"name": {"password": "hunter2"}}, "Tool", V2025_11_25)
    assert "hunter2" not in "".join(map(str, found))

"""Pairs of schemas, and what the change from one to the other is for arguments and for results.

Each case of `schemas.json` has a `name`, a `why`, the `old` and the `new` schema, and under
`input` and `output` the rules that tell the change, without their first words.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from tests.cases import for_each
from trunkline.judge.diff import RULES, compare

CASES: Final[list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "schemas.json").read_text(encoding="utf-8")
)
DIRECTIONS: Final = ("input", "output")


def rules(old: Any, new: Any, direction: Literal["input", "output"]) -> list[str]:
    given = {} if direction == "input" else {"inputSchema": {"type": "object"}}
    tools = [{"name": "t", **given, f"{direction}Schema": each} for each in (old, new)]
    found = compare([tools[0]], [tools[1]])
    return [change.rule for change in found.changes]


@pytest.mark.parametrize("direction", DIRECTIONS)
@for_each("case", CASES, ids=lambda case: str(case["name"]))
def test_schema_pair_has_the_findings_of_its_vector(
    case: dict[str, Any], direction: Literal["input", "output"]
) -> None:
    expected = [f"listing.{direction}.{rule}" for rule in case[direction]]
    assert sorted(rules(case["old"], case["new"], direction)) == sorted(expected), case["why"]


@for_each("case", CASES, ids=lambda case: str(case["name"]))
def test_a_schema_is_compatible_with_itself(case: dict[str, Any]) -> None:
    for direction in DIRECTIONS:
        for schema in (case["old"], case["new"]):
            assert rules(schema, json.loads(json.dumps(schema)), direction) == []
            # The same once more, and not by its text.
            retitled = {**schema, "title": "Another"}
            assert rules(schema, retitled, direction) == [f"listing.{direction}.rewritten"]


def test_names_are_there_once_and_have_a_reason() -> None:
    names = [case["name"] for case in CASES]
    assert len(set(names)) == len(names)
    assert all(case["why"].endswith(".") for case in CASES)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_rule_about_schemas_has_a_vector(direction: str) -> None:
    shown = {f"listing.{direction}.{rule}" for case in CASES for rule in case[direction]}
    assert shown == {rule for rule in RULES if rule.startswith(f"listing.{direction}.")}

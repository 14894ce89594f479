"""The rows: well formed, and the same as in the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from trunkline.judge.diff import LEVELS, RULES
from trunkline.judge.diff.rules import is_deprecated

PAGE = Path(__file__).parents[4] / "docs" / "diff.md"
ROW = re.compile(r"^\| `(listing\.[\w.-]+)` \| (\w+) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def test_the_page_has_the_rows_as_they_are() -> None:
    told = [tuple(row) for row in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert told == [row[:4] for row in RULES.values()]


def test_a_row_has_a_level_a_sentence_and_a_reason() -> None:
    for row in RULES.values():
        assert row.level in LEVELS
        assert re.fullmatch(r"listing\.[a-z]+\.[a-z]+(-[a-z]+)*", row.id)
        assert row.says[0].islower()
        assert row.why.endswith(".")


def test_announced_removal_has_a_breaking_rule_for_the_unannounced_one() -> None:
    announced = [row for row in RULES.values() if row.level == "announced"]
    assert len(announced) == 7
    for row in announced:
        assert row.id.endswith("-as-announced")
        assert RULES[row.id.removesuffix("-as-announced")].level == "breaking"


@pytest.mark.parametrize(
    "description",
    [
        "Deprecated: use sum.",
        "deprecated",
        "DEPRECATED. Use sum.",
        "[Deprecated] Adds.",
        "**Deprecated** - adds.",
        "(deprecated) Adds.",
        "Deprecated since 2.0: adds.",
        "Deprecated in favour of sum.",
        *(
            "Deprecated - use sum.",
            "Deprecated- use sum.",
            "Deprecated -- adds.",
            "Deprecated—adds.",
        ),
    ],
)
def test_a_description_that_begins_with_the_word_is_a_mark(description: str) -> None:
    assert is_deprecated({"description": description})


@pytest.mark.parametrize(
    "entry",
    [
        {"description": "Deprecated packages, as a list."},
        {"description": "Deprecated-API scanner."},
        {"description": "Deprecated-use finder: lists them."},
        {"description": "Lists what is deprecated."},
        {"description": "Adds. Deprecated: no."},
        *({"description": 5}, {"deprecated": "no"}, {}, None, True, 5),
    ],
)
def test_other_descriptions_are_not_a_mark(entry: Any) -> None:
    assert not is_deprecated(entry)


def test_the_word_of_json_schema_is_a_mark() -> None:
    assert is_deprecated({"type": "string", "deprecated": True})

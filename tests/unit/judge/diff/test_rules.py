"""The rows: well formed, and the same as in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from trunkline.judge.diff import LEVELS, RULES

PAGE = Path(__file__).parents[4] / "docs" / "diff.md"
ROW = re.compile(r"^\| `(listing\.[\w.-]+)` \| (\w+) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def test_the_page_has_the_rows_as_they_are() -> None:
    told = [tuple(row) for row in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert told == [tuple(row) for row in RULES.values()]


def test_a_row_has_a_level_a_sentence_and_a_reason() -> None:
    for row in RULES.values():
        assert row.level in LEVELS
        assert re.fullmatch(r"listing\.[a-z]+\.[a-z]+(-[a-z]+)*", row.id)
        assert row.says[0].islower()
        assert row.why.endswith(".")


def test_what_was_announced_is_a_removal_that_also_comes_as_a_surprise() -> None:
    announced = [row for row in RULES.values() if row.level == "announced"]
    assert len(announced) == 7
    for row in announced:
        assert row.id.endswith("-as-announced")
        assert RULES[row.id.removesuffix("-as-announced")].level == "breaking"

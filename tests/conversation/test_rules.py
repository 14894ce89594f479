"""Rules and scripts match both ways: no script without a rule, no rule without a script."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

from tests.conversation.rules import rule, windows_of
from trunkline.spec.requirements import requirements

HERE: Final = Path(__file__).parent

# Statements that no script is about, by why. A range is first and last.
ELSEWHERE: Final[dict[str, list[tuple[int, int]]]] = {
    "of HTTP requests that no client makes: tests of the HTTP server write those": [
        (80, 80),
        (92, 93),
        (114, 114),
        (118, 118),
        (125, 125),
    ],
    "of what a client keeps, or of what it makes of a server that breaks the rules: tests of "
    "the client have a server that does": [
        (16, 16),
        (19, 19),
        (44, 44),
        (61, 62),
        (65, 65),
        (147, 147),
        (159, 159),
    ],
    "of processes: tests of the transport have those": [(71, 74)],
    "judged on all that is said, and never the subject": [(20, 20)],
}


def named() -> set[str]:
    """Return the ids that scripts are marked with, read from their source."""
    found = set()
    for file in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "rule":
                ids = [each for argument in node.args for each in ast.walk(argument)]
                found |= {each.value for each in ids if isinstance(each, ast.Constant)}
    return {each for each in found if isinstance(each, str)}


def test_every_statement_has_a_script_or_a_reason_for_none() -> None:
    ids = named()
    refs = {row.ref for row in requirements() if row.ref.startswith("BP-")}
    scripted = {row.ref for row in requirements() if row.ref in ids or row.id in ids}
    excused = {
        f"BP-{number:03}"
        for ranges in ELSEWHERE.values()
        for first, last in ranges
        for number in range(first, last + 1)
    }
    assert sorted(refs - scripted - excused) == []
    assert sorted(scripted & excused) == [], "excused, and scripted all the same"


@pytest.mark.parametrize("id", ["BP-999", "mcp.progress.grow", "jsonrpc.batch.full", "K-99", "x"])
def test_a_misspelt_rule_is_refused(id: str) -> None:
    with pytest.raises(LookupError):
        windows_of(id)
    with pytest.raises(LookupError):
        rule(id)


def test_a_script_is_about_a_rule() -> None:
    with pytest.raises(LookupError):
        rule()
    with pytest.raises(LookupError):
        rule("BP-011", since="2026-07-28")

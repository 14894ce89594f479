"""Occasions and breaches, counted by requirement."""

from __future__ import annotations

import pytest

from trunkline.judge import Finding
from trunkline.judge.rules.checker import Checker, traceable
from trunkline.spec.requirements import requirements


def checker_for(revision: str) -> Checker:
    checker = Checker()
    checker.begin_entry(7)
    checker.use_revision(revision)
    return checker


def test_an_occasion_is_counted_and_a_breach_is_kept() -> None:
    checker = checker_for("2025-11-25")
    checker.check("mcp.id.echoed", True)
    assert checker.found == []
    checker.base = "/2"
    checker.check("mcp.id.echoed", [], "/id", 5, "an id")
    (finding,) = checker.found
    assert (finding.rule, finding.level, finding.where) == ("mcp.id.echoed", "error", "/2/id")
    assert (finding.got, finding.expected, finding.message_index) == ("5", "an id", 7)
    assert (checker.occasions["mcp.id.echoed"], checker.breaches["mcp.id.echoed"]) == (2, 1)


def test_a_breach_without_words_of_its_own_has_those_of_its_requirement() -> None:
    checker = checker_for("2025-11-25")
    checker.check("mcp.id.echoed", False)
    row = traceable()["mcp.id.echoed"]
    (finding,) = checker.found
    assert row.anchor == "2026-07-28 · basic/index"
    source = "2025-11-25 · basic/index"  # the revision that is spoken
    assert (finding.got, finding.expected, finding.source) == ("", row.says, source)


@pytest.mark.parametrize(
    ("revision", "rule", "level"),
    [
        ("2025-11-25", "mcp.id.echoed", "error"),
        ("2025-11-25", "mcp.cancel.not-initialize", "error"),
        ("2025-11-25", "mcp.elicitation.url-https", "warn"),
        ("2025-11-25", "mcp.lifecycle.client-waits", "warn"),
    ],
)
def test_must_is_an_error_and_should_a_warning(revision: str, rule: str, level: str) -> None:
    checker = checker_for(revision)
    checker.check(rule, False)
    assert [each.level for each in checker.found] == [level]


def test_requirement_of_another_revision_is_not_checked() -> None:
    checker = checker_for("2025-11-25")
    assert not checker.requires("mcp.id.open-unique")
    checker.check("mcp.id.open-unique", False)
    assert (checker.found, checker.occasions) == ([], {})
    checker.use_revision("2026-07-28")
    assert checker.requires("mcp.id.open-unique")
    checker.check("mcp.id.open-unique", False)
    assert len(checker.found) == 1


def test_the_next_entry_begins_without_findings_and_keeps_the_counts() -> None:
    checker = checker_for("2025-11-25")
    checker.base = "/0"
    checker.check("mcp.id.echoed", False)
    checker.begin_entry(8)
    assert (checker.found, checker.base, checker.index) == ([], "", 8)
    assert checker.breaches["mcp.id.echoed"] == 1


def test_a_finding_of_a_single_message_becomes_a_breach() -> None:
    checker = checker_for("2025-11-25")
    checker.add_finding(
        Finding("jsonrpc.id.type", "warn", "/id", "1.5", "an id", "JSON-RPC"), "mcp.id.type"
    )
    expected = Finding("mcp.id.type", "error", "/id", "1.5", "an id", "JSON-RPC", 7)
    assert checker.found == [expected]
    assert (checker.occasions["mcp.id.type"], checker.breaches["mcp.id.type"]) == (1, 1)


def test_traceable_requirements_depend_on_the_revision() -> None:
    every = traceable()
    assert {row.id for row in requirements() if row.judge == "trace"} <= every.keys()
    assert all(row.judge == "trace" or row.also_trace for row in every.values())
    for revision in ("2024-11-05", "2026-07-28"):
        shown = {id for id, row in every.items() if row.when.holds(revision)}
        assert traceable(revision).keys() == shown

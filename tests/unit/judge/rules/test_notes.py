"""Occasions and breaches, counted by requirement."""

from __future__ import annotations

import pytest

from trunkline.judge import Finding
from trunkline.judge.rules.notes import Notes, traceable
from trunkline.spec.requirements import requirements


def turned_to(revision: str) -> Notes:
    notes = Notes()
    notes.begin(7)
    notes.turn_to(revision)
    return notes


def test_an_occasion_is_counted_and_a_breach_is_kept() -> None:
    notes = turned_to("2025-11-25")
    notes.check("mcp.id.echoed", True)
    assert notes.found == []
    notes.base = "/2"
    notes.check("mcp.id.echoed", [], "/id", 5, "an id")
    (finding,) = notes.found
    assert (finding.rule, finding.level, finding.where) == ("mcp.id.echoed", "error", "/2/id")
    assert (finding.got, finding.expected, finding.message_index) == ("5", "an id", 7)
    assert (notes.occasions["mcp.id.echoed"], notes.breaches["mcp.id.echoed"]) == (2, 1)


def test_a_breach_without_words_of_its_own_has_those_of_its_requirement() -> None:
    notes = turned_to("2025-11-25")
    notes.check("mcp.id.echoed", False)
    row = traceable()["mcp.id.echoed"]
    (finding,) = notes.found
    assert (finding.got, finding.expected, finding.source) == ("", row.says, row.anchor)


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
    notes = turned_to(revision)
    notes.check(rule, False)
    assert [each.level for each in notes.found] == [level]


def test_what_a_revision_does_not_ask_is_passed_over() -> None:
    notes = turned_to("2025-11-25")
    assert not notes.asks("mcp.id.open-unique")
    notes.check("mcp.id.open-unique", False)
    assert (notes.found, notes.occasions) == ([], {})
    notes.turn_to("2026-07-28")
    assert notes.asks("mcp.id.open-unique")
    notes.check("mcp.id.open-unique", False)
    assert len(notes.found) == 1


def test_the_next_entry_begins_without_findings_and_keeps_the_counts() -> None:
    notes = turned_to("2025-11-25")
    notes.base = "/0"
    notes.check("mcp.id.echoed", False)
    notes.begin(8)
    assert (notes.found, notes.base, notes.index) == ([], "", 8)
    assert notes.breaches["mcp.id.echoed"] == 1


def test_a_finding_of_a_single_message_becomes_a_breach() -> None:
    notes = turned_to("2025-11-25")
    notes.take(Finding("jsonrpc.id.type", "warn", "/id", "1.5", "an id", "JSON-RPC"), "mcp.id.type")
    expected = Finding("mcp.id.type", "error", "/id", "1.5", "an id", "JSON-RPC", 7)
    assert notes.found == [expected]
    assert (notes.occasions["mcp.id.type"], notes.breaches["mcp.id.type"]) == (1, 1)


def test_what_a_recording_can_show_depends_on_the_revision() -> None:
    every = traceable()
    assert {row.id for row in requirements() if row.judge == "trace"} <= every.keys()
    assert all(row.judge == "trace" or row.also_trace for row in every.values())
    for revision in ("2024-11-05", "2026-07-28"):
        shown = {id for id, row in every.items() if row.when.holds(revision)}
        assert traceable(revision).keys() == shown

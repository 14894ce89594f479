"""A search over the rows of a revision."""

from __future__ import annotations

import pytest

from trunkline.spec.lookup.search import search
from trunkline.spec.revisions import LATEST, REVISIONS


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_kind_of_row_can_be_found(revision: str) -> None:
    kinds = {"methods", "types", "errors", "capabilities", "transports", "requirements"}
    later = {"headers", "statuses", "meta"}
    found = {row.kind for word in ("e", "a") for row in search([word], revision)}
    assert kinds <= found <= kinds | later
    assert revision != LATEST or found == kinds | later


def test_a_row_with_the_word_in_its_name_comes_first() -> None:
    names = [row.name for row in search(["cancelled"], LATEST) if row.kind == "methods"]
    assert names[0] == "notifications/cancelled"


def test_case_does_not_count_and_a_plural_finds_the_singular() -> None:
    assert search(["TOOLS"], LATEST) == search(["tool"], LATEST)
    assert "Tool" in {row.name for row in search(["tools"], LATEST)}


def test_every_word_has_to_be_there() -> None:
    both = search(["tool", "changed"], LATEST)
    assert both
    assert {*both} < {*search(["tool"], LATEST)}
    assert search(["tool", "nowhere"], LATEST) == ()


def test_a_row_of_another_revision_is_not_found() -> None:
    assert "logging/setLevel" in {row.name for row in search(["setlevel"], "2025-11-25")}
    assert "logging/setLevel" not in {row.name for row in search(["setlevel"], LATEST)}

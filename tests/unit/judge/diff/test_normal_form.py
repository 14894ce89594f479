"""Cases: what schemas say together, and limits."""

from __future__ import annotations

from trunkline.judge.diff.normal_form import (
    Bound,
    Budget,
    Node,
    is_open,
    says_nothing,
    tighter,
    whole_high,
    whole_low,
)
from trunkline.judge.diff.schema_document import SchemaDocument


def test_a_budget_ends() -> None:
    budget = Budget(3)
    assert (budget.spend(), budget.spend(2), budget.spend(0), budget.spend()) == (
        *(True, True, True),
        False,
    )
    assert not budget.spend(0)


def test_the_tighter_limit_holds() -> None:
    assert tighter(Bound(1, False), Bound(1, True), 1) == Bound(1, True)
    assert tighter(Bound(1, True), Bound(2, False), 1) == Bound(2, False)
    assert tighter(Bound(1, True), Bound(2, False), -1) == Bound(1, True)
    assert tighter(None, Bound(10**400, False), -1) == Bound(10**400, False)


def test_limits_of_whole_numbers() -> None:
    assert whole_low(Bound(0, True)) == whole_low(Bound(0.5, False)) == Bound(1, False)
    assert whole_low(Bound(0.5, True)) == whole_low(Bound(1, False)) == Bound(1, False)
    assert whole_high(Bound(3, True)) == whole_high(Bound(2.5, False)) == Bound(2, False)
    assert whole_high(Bound(2.5, True)) == whole_high(Bound(2, False)) == Bound(2, False)


def test_schema_without_conditions_is_open_in_a_known_draft() -> None:
    assert says_nothing(True)
    assert says_nothing({"title": "x"})
    assert not any(map(says_nothing, (False, None, 5, {"nullable": True})))
    assert is_open((Node({"title": "x"}, SchemaDocument({})),))
    unknown = {"$schema": "http://json-schema.org/draft-03/schema#", "disallow": "string"}
    assert not is_open((Node(unknown, SchemaDocument(unknown)),))

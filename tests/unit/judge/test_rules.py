from __future__ import annotations

import re
from pathlib import Path

import trunkline.judge
from trunkline.spec.jsonrpc import RULES as ENVELOPE_RULES
from trunkline.spec.lookup.meta_key_check import KEY_RESERVED, KEY_SYNTAX
from trunkline.spec.mcp.rules import RULES, rule
from trunkline.spec.requirements import requirements

SOURCE = Path(trunkline.judge.__file__).parent
# The message judge; other judges have rules of their own.
MODULES = [
    "messages/calls",
    "types/checks",
    "messages/envelope",
    "types/prose_checks",
    "finding",
    "types/hints",
    "messages/message",
    "messages/replies",
    "types/unions",
    "types/type_checks",
]
# Ids that are put together of parts.
COMPOSED = {
    *(f"mcp.{of}.{when}" for of in ("method", "type") for when in ("not-yet", "no-longer")),
    *(f"mcp.{kind}.unknown" for kind in ("method", "notification")),
    *(f"mcp.{kind}.vendor" for kind in ("method", "notification")),
    KEY_RESERVED,
    KEY_SYNTAX,
}


def test_every_rule_that_is_reported_is_a_row_and_every_row_is_reported() -> None:
    text = "".join((SOURCE / f"{name}.py").read_text(encoding="utf-8") for name in MODULES)
    named = set(re.findall(r'"((?:mcp|judge)\.[a-z]+\.[a-z-]+)"', text))
    assert named | COMPOSED == RULES.keys()


def test_a_rule_has_one_home() -> None:
    assert not RULES.keys() & ENVELOPE_RULES.keys()
    assert all(rule(id) is row and row.id == id for id, row in RULES.items())


def test_a_rule_says_what_would_have_been_right_and_where_that_is_said() -> None:
    for row in RULES.values():
        assert row.expected, row.id
        assert row.anchor, row.id


def test_the_statements_that_rules_refer_to_exist() -> None:
    known = {row.ref for row in requirements()}
    named = {ref for row in RULES.values() for ref in row.ref.split() if ref.startswith("BP-")}
    assert named <= known

"""Absent members, null members, and what is written of them, as the vectors say.

A case of `absent/members.json` has the name of a type and an `input`. Either the type reads it,
with null where `null` says so and nothing where `absent` does, and writes it as `written` (or
as it came); or it is `refused` at a place.
"""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import UNSET, ValidationError

from trunkline.mcp import types as wire

CASES: Final[list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "absent" / "members.json").read_text(encoding="utf-8")
)
# The members of which null is a value: None cannot stand for absent.
NULL_IS_A_VALUE: Final = {"ttl", "ttl_ms", "structured_content", "error.data"}


def name_of(case: dict[str, Any]) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", [c for c in CASES if "refused" not in c], ids=name_of)
def test_a_value_is_read_and_written_as_its_vector_says(case: dict[str, Any]) -> None:
    kind = getattr(wire, case["type"])
    for found in (
        msgspec.json.decode(json.dumps(case["input"]), type=kind),
        msgspec.convert(case["input"], kind),
    ):
        for path in case["null"]:
            assert reduce(getattr, path.split("."), found) is None, path
        for path in case["absent"]:
            absent = UNSET if path in NULL_IS_A_VALUE else None
            assert reduce(getattr, path.split("."), found) is absent, path
        assert json.loads(msgspec.json.encode(found)) == case.get("written", case["input"])


@pytest.mark.parametrize("case", [c for c in CASES if "refused" in c], ids=name_of)
def test_null_is_refused_where_its_vector_says(case: dict[str, Any]) -> None:
    kind = getattr(wire, case["type"])
    with pytest.raises(ValidationError) as caught:
        msgspec.json.decode(json.dumps(case["input"]), type=kind)
    assert str(caught.value).endswith(f"at `{case['refused']}`")

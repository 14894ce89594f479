"""Checks of single values: what each keyword of a row allows."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.judge.types.checks import anything, limited
from trunkline.judge.types.collector import Sink
from trunkline.spec.revisions import V2025_11_25


def rules_broken(value: Any, keyword: str, bound: Any) -> list[str]:
    sink = Sink(V2025_11_25)
    limited(anything, [(keyword, bound)])(value, None, sink)
    return [*sink.rules()]


@pytest.mark.parametrize(
    ("keyword", "bound", "kept", "broken"),
    [
        ("format", "uri", "a://b", "a b"),
        ("minimum", 2, 2, 1),
        ("maximum", 2, 2.0, 2.5),
        ("minLength", 2, "ab", "a"),
        ("maxLength", 2, "ab", "abc"),
        ("minItems", 1, [0], []),
        ("maxItems", 1, [0], [0, 1]),
    ],
)
def test_a_limit_allows_its_bound_and_nothing_beyond(
    keyword: str, bound: Any, kept: Any, broken: Any
) -> None:
    assert rules_broken(kept, keyword, bound) == []
    assert len(rules_broken(broken, keyword, bound)) == 1
    # A value of another type is not what the limit is about.
    assert rules_broken(None, keyword, bound) == []

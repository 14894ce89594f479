"""A change as a value, and what versions promise."""

from __future__ import annotations

import pytest

from trunkline.judge.diff import Change
from trunkline.judge.diff.change import raised_major


def test_a_change_says_what_was_and_what_is() -> None:
    change = Change(
        "listing.input.limit-tightened",
        "breaking",
        "tool add",
        "/inputSchema/properties/a",
        "9",
        "5",
        "maximum",
    )
    assert change.says == "the limit is tighter: 9 → 5 (maximum)"
    assert str(change) == (
        "breaking  listing.input.limit-tightened  tool add at /inputSchema/properties/a: "
        "the limit is tighter: 9 → 5 (maximum)"
    )


def test_a_change_compares_and_can_be_kept_in_a_set() -> None:
    one, same = (Change("listing.tool.removed", "breaking", "tool a") for _ in range(2))
    assert {one, same} == {one}
    assert one.says == "the tool is gone"


@pytest.mark.parametrize(
    ("old", "new", "raised"),
    [
        ("1.9.9", "2.0.0", True),
        ("1", "2", True),
        ("v1.2", "v3", True),
        ("1.0.0-rc.1", "1.0.0", False),
        ("2.0.0", "1.0.0", False),
        ("0.9", "1.0", True),
        ("0.1.0", "0.2.0", True),
        ("0.1.0", "0.1.1", False),
        ("", "2.0.0", False),
        ("9" * 5000, "1" * 5000, False),
    ],
)
def test_the_next_major_version_is_known(old: str, new: str, raised: bool) -> None:
    assert raised_major(old, new) is raised

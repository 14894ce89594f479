"""`spec/revisions.py`: the released revisions and spans of them."""

from __future__ import annotations

import pytest

from trunkline.spec import revisions
from trunkline.spec.lookup import method
from trunkline.spec.revisions import (
    HANDSHAKE,
    LATEST,
    NEWEST_HANDSHAKE,
    PER_REQUEST,
    REVISIONS,
    V2025_03_26,
    V2025_11_25,
    V2026_07_28,
    Window,
)


def test_revisions_are_listed_oldest_first_and_once() -> None:
    assert list(REVISIONS) == sorted(set(REVISIONS))


def test_the_latest_revision_is_the_last_of_the_list() -> None:
    assert REVISIONS[-1] == LATEST


def test_each_revision_has_a_constant_that_spells_it() -> None:
    constants = {name: value for name, value in vars(revisions).items() if name.startswith("V2")}
    assert {name: "V" + value.replace("-", "_") for name, value in constants.items()} == {
        name: name for name in constants
    }
    assert sorted(constants.values()) == list(REVISIONS)


def test_each_revision_has_one_era_and_the_method_rows_agree() -> None:
    for revision in REVISIONS:
        has_handshake = HANDSHAKE.holds(revision)
        assert has_handshake is not PER_REQUEST.holds(revision)
        assert has_handshake is (method("initialize", revision) is not None)
    assert HANDSHAKE.holds(NEWEST_HANDSHAKE)


def test_a_bare_window_holds_in_every_revision() -> None:
    assert all(Window().holds(revision) for revision in REVISIONS)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        pytest.param(Window(V2025_11_25), REVISIONS[3:], id="from a revision on"),
        pytest.param(Window(until=V2026_07_28), REVISIONS[:4], id="up to a revision"),
        pytest.param(Window(V2025_03_26, V2025_11_25), REVISIONS[1:3], id="between two"),
        pytest.param(Window(V2025_11_25, V2025_11_25), (), id="empty"),
    ],
)
def test_a_window_holds_from_its_start_up_to_but_not_at_its_end(
    window: Window, expected: tuple[str, ...]
) -> None:
    assert tuple(revision for revision in REVISIONS if window.holds(revision)) == expected

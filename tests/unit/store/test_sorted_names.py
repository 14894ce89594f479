"""Names in order, in runs that are cut and vanish."""

from __future__ import annotations

import random

import pytest

from trunkline.store import sorted_names as module
from trunkline.store.sorted_names import SortedNames


@pytest.fixture
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_RUN_NAMES", 4)


@pytest.mark.usefixtures("_short_runs")
@pytest.mark.parametrize("seed", range(20))
def test_names_agree_with_a_sorted_set(seed: int) -> None:
    chance = random.Random(seed)
    names, model = SortedNames(), set[str]()
    for _ in range(300):
        name = "".join(chance.choices("abc", k=chance.randrange(5)))
        if name in model:
            names.remove(name)
            model.remove(name)
        else:
            names.add(name)
            model.add(name)
        prefix = name[: chance.randrange(3)]
        after = chance.choice([None, "", name, "b", "cccc", "z"])
        expected = [
            one
            for one in sorted(model)
            if one.startswith(prefix) and (after is None or one > after)
        ]
        assert list(names.behind(prefix, after)) == expected
        assert bool(names) is bool(model)
        assert all(len(run) <= 4 for run in names._runs)


@pytest.mark.usefixtures("_short_runs")
def test_runs_vanish_with_their_names() -> None:
    names = SortedNames()
    for number in range(100):
        names.add(f"{number:02}")
    for number in range(100):
        names.remove(f"{number:02}")
    assert names._runs == []


def test_order_is_that_of_the_bytes() -> None:
    names = SortedNames()
    some = ["\U00010000", "\uffff", "z", "ä", "A", ""]
    for name in some:
        names.add(name)
    assert list(names.behind("", None)) == sorted(some, key=str.encode)

"""Which id comes next, and what a caller's own ids do to the count."""

from __future__ import annotations

import ast
from pathlib import Path
from uuid import UUID

import pytest

from trunkline.errors import IdsExhausted, LocalProtocolError
from trunkline.jsonrpc import IdSource, Policy, ids


def test_ids_count_upwards_from_one() -> None:
    ids = IdSource()
    assert [ids.next() for _ in range(3)] == [1, 2, 3]


def test_the_count_may_start_elsewhere() -> None:
    ids = IdSource(first=0)
    assert [ids.next(), ids.next()] == [0, 1]


def test_the_maximum_is_the_last_id_and_the_count_does_not_wrap() -> None:
    ids = IdSource(first=6, maximum=7)
    assert [ids.next(), ids.next()] == [6, 7]
    for _ in range(2):
        with pytest.raises(IdsExhausted) as caught:
            ids.next()
    assert isinstance(caught.value, LocalProtocolError)
    assert (caught.value.rule, caught.value.got) == ("jsonrpc.id.exhausted", 8)
    assert "a new connection" in str(caught.value)


def test_at_an_id_a_millisecond_the_counts_outlast_us() -> None:
    milliseconds_a_year = 1000 * 86_400 * 365.25
    assert IdSource().maximum == Policy().max_id == 2**53 - 1
    assert int(IdSource().maximum / milliseconds_a_year) == 285_420
    assert Policy.erlmcp().max_id == 2**60 - 1 == 1_152_921_504_606_846_975
    assert 36 < Policy.erlmcp().max_id / milliseconds_a_year / 10**6 < 37


def test_a_claimed_id_is_not_given_out() -> None:
    ids = IdSource()
    ids.claim(1)
    ids.claim(3)
    assert ids.next() == 4


@pytest.mark.parametrize("id", [0, -5, 1, "9", "uuid", 8, 2**60])
def test_a_claim_of_what_the_count_will_not_come_to_leaves_it_alone(id: int | str) -> None:
    ids = IdSource(maximum=7)
    ids.next()
    ids.claim(id)
    assert ids.next() == 2


def test_a_claim_of_the_maximum_leaves_nothing() -> None:
    ids = IdSource(maximum=7)
    ids.claim(7)
    with pytest.raises(IdsExhausted):
        ids.next()


@pytest.mark.parametrize(
    ("id", "passed"), [(0, True), (1, True), (2, False), (3, False), ("1", False), (-1, True)]
)
def test_the_count_knows_what_it_has_passed(id: int | str, passed: bool) -> None:
    ids = IdSource()
    ids.next()
    assert ids.has_passed(id) is passed


def test_uuids_are_random_texts() -> None:
    first, second = IdSource.uuid(), IdSource.uuid()
    assert first != second
    assert str(UUID(first)) == first
    assert UUID(first).version == 4


def test_no_counter_takes_a_lock() -> None:
    tree = ast.parse(Path(ids.__file__).read_text(encoding="utf-8"))
    assert [node for node in ast.walk(tree) if isinstance(node, ast.With | ast.AsyncWith)] == []
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert [name for name in names if "lock" in name.lower() or name == "acquire"] == []
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert imported == []
    assert IdSource.__slots__ == ("_next", "maximum")

"""The cases of one test: every one runs, and every one that fails is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import for_each


def test_every_case_that_fails_is_shown_with_its_id_and_values() -> None:
    ran: list[int] = []

    @for_each("number", [1, 2, 3, 4], ids=["one", "two", "three", "four"])
    def check(number: int) -> None:
        ran.append(number)
        assert number % 2, "even"

    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed") as caught:
        check()
    assert ran == [1, 2, 3, 4]
    assert [each.__notes__ for each in caught.value.exceptions] == [
        ["case two: number=2"],
        ["case four: number=4"],
    ]


def test_cases_that_all_pass_are_a_pass() -> None:
    ran: list[tuple[int, str]] = []

    @for_each(("number", "text"), [(1, "a"), pytest.param(2, "b", id="b")])
    def check(number: int, text: str) -> None:
        ran.append((number, text))

    check()
    assert ran == [(1, "a"), (2, "b")]


def test_nothing_to_run_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no case"):
        for_each("number", [])
    with pytest.raises(ValueError, match="2 cases and 1 ids"):
        for_each("number", [1, 2], ids=["one"])


@for_each("number", [1, 2])
@pytest.mark.parametrize("text", ["a", "b"])
def test_cases_stand_beside_fixtures_and_parameters(number: int, text: str, tmp_path: Path) -> None:
    assert number in (1, 2)
    assert text in "ab"
    assert tmp_path.is_dir()

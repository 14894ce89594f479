"""Exceptions as text for the log: what is kept, what is cut, and what is escaped."""

from __future__ import annotations

import pytest

from trunkline.exception_text import as_redacted, one_line


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001  # the one that was raised above
        return caught


def test_a_traceback_names_the_place_and_the_exception_as_python_does() -> None:
    lines = as_redacted(raised(ValueError("no such city"))).splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith(", in raised")
    assert lines[2] == "    raise error"
    assert lines[3:] == ["ValueError: no such city"]


def test_an_exception_of_another_module_has_its_module_and_one_without_text_no_colon() -> None:
    assert as_redacted(pytest.UsageError()) == "pytest.UsageError"


def test_causes_come_first_and_a_suppressed_context_is_left_out() -> None:
    cause, error = KeyError("a"), ValueError("b")
    error.__cause__ = cause
    assert as_redacted(error).splitlines() == [
        "KeyError: 'a'",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "ValueError: b",
    ]
    error.__cause__, error.__context__ = None, cause  # which sets `__suppress_context__`
    assert as_redacted(error) == "ValueError: b"
    error.__suppress_context__ = False
    assert "During handling of the above exception" in as_redacted(error)


def test_exceptions_that_are_each_others_cause_end() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert as_redacted(one).count("ValueError") == 2


def test_a_group_shows_its_members_up_to_ten_exceptions() -> None:
    shown = as_redacted(ExceptionGroup("several", [ValueError(n) for n in range(1000)]))
    assert shown.startswith(
        "ExceptionGroup: several (1000 sub-exceptions)\n"
        "  exception 1 of 1000 in the group:\n    ValueError: 0\n"
    )
    assert shown.endswith("  … 991 more exceptions of the group")


def test_a_long_chain_of_causes_is_cut() -> None:
    error = last = ValueError("last")
    for n in range(100):
        error.__cause__ = ValueError(n)
        error = error.__cause__
    shown = as_redacted(last)
    assert shown.startswith("… more exceptions before\n")
    assert shown.endswith("ValueError: last")
    assert shown.count("ValueError") == 10


def test_a_deep_recursion_shows_its_first_and_last_frames() -> None:
    def odd(n: int) -> None:
        if n:
            even(n - 1)
        raise ValueError(n)

    def even(n: int) -> None:
        odd(n - 1)

    with pytest.raises(ValueError, match="0") as caught:
        odd(400)
    shown = as_redacted(caught.value)
    assert shown.count("\n  File ") == 40
    assert "more frames" in shown


def test_three_notes_are_shown() -> None:
    error = ValueError("noted")
    for n in range(5):
        error.add_note(f"line\n{n}")
    assert as_redacted(error).splitlines() == [
        "ValueError: noted",
        *(f"note: line\\n{n}" for n in range(3)),
        "… 2 more notes",
    ]


def test_notes_that_are_not_a_list_are_ignored() -> None:
    error = ValueError("noted")
    error.__notes__ = 7  # type: ignore[assignment]  # an author may set anything
    assert as_redacted(error) == "ValueError: noted"


def test_a_long_text_is_cut_by_characters_and_by_lines() -> None:
    assert one_line("x" * 1000) == "x" * 1000
    assert one_line("x" * 1001) == "x" * 1000 + "… (1001 characters)"
    assert one_line("\n" * 19) == "\\n" * 19
    assert one_line("\n" * 20) == "\\n" * 19 + "… (20 characters)"


def test_control_characters_are_escaped_and_secrets_hidden() -> None:
    assert one_line("a\x1b[2J\tb\u2028\ud800") == "a\\x1b[2J\\tb\\u2028\\ud800"
    assert (
        one_line("x" * 990 + " token=" + "k" * 1000) == "x" * 990 + " token=[re… (1997 characters)"
    )


def test_a_text_that_raises_is_said_to() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    assert as_redacted(Broken()).endswith("Broken: <its text raised ZeroDivisionError>")


def test_the_whole_is_bounded_and_both_ends_are_kept() -> None:
    error = last = ValueError("last")
    for _ in range(10):
        error.__cause__ = ValueError("\x1b" * 5000)
        error = error.__cause__
        for _ in range(3):
            error.add_note("\x1b" * 5000)
    shown = as_redacted(last)
    assert len(shown) < 66_000
    assert shown.endswith("ValueError: last")
    assert shown.splitlines()[0] == "… more exceptions before"
    assert shown.count(" characters left out") == 1

"""Docstrings in the three ways they are written."""

from __future__ import annotations

import pytest

from trunkline.server.handlers.docstrings import read

GOOGLE = """Say how the weather will be.

    The model is run every hour.

    Args:
        city: The city,
            in English.
        days (int, optional): How many days: at most 14.
        **unit (Literal["c", "f"]): Celsius or Fahrenheit.

    Returns:
        A forecast.

    Raises:
        ValueError: no such city.

    Note:
        It may rain.
    """
NUMPY = """Say how the weather will be.

    The model is run every hour.

    Parameters
    ----------
    city : str
        The city,
        in English.
    days : int, optional
        How many days: at most 14.
    unit
        Celsius or Fahrenheit.

    Returns
    -------
    Forecast
        A forecast.
    """
SPHINX = """Say how the weather will be.

    The model is run every hour.

    :param city: The city,
        in English.
    :param int days: How many days: at most 14.
    :type days: int
    :keyword unit: Celsius or Fahrenheit.
    :returns: A forecast.
    :raises ValueError: no such city.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_each_way_of_writing_gives_the_same_arguments(text: str) -> None:
    found = read(text)
    assert found.arguments == {
        "city": "The city, in English.",
        "days": "How many days: at most 14.",
        "unit": "Celsius or Fahrenheit.",
    }
    assert found.text.startswith("Say how the weather will be.\n\nThe model is run every hour.")
    assert "forecast" not in found.text
    assert "no such city" not in found.text


def test_note_section_is_prose() -> None:
    assert read(GOOGLE).text.endswith("Note:\n    It may rain.")


def test_text_after_a_list_of_arguments_is_prose_again() -> None:
    found = read("Do it.\n\nArgs:\n    x: One.\n\nBut not on Sundays.")
    assert found == ("Do it.\n\n\nBut not on Sundays.".replace("\n\n\n", "\n\n"), {"x": "One."})


def test_a_heading_of_an_unknown_numpy_section_ends_the_arguments() -> None:
    found = read("Do it.\n\nParameters\n----------\nx : int\n    One.\n\nNotes\n-----\nSlow.")
    assert found.arguments == {"x": "One."}
    assert found.text.endswith("Slow.")


def test_numpy_names_that_share_a_text_both_have_it() -> None:
    assert read("Add.\n\nParameters\n----------\nx, y : int\n    A term.").arguments == {
        "x": "A term.",
        "y": "A term.",
    }


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_no_docstring_says_nothing(text: str | None) -> None:
    assert read(text) == ("", {})


@pytest.mark.parametrize("word", ["param", "parameter", "arg", "argument", "key", "keyword"])
def test_each_sphinx_word_for_an_argument_describes_it(word: str) -> None:
    assert read(f"Do it.\n\n:{word} x: One.") == ("Do it.", {"x": "One."})


def test_an_empty_line_ends_the_text_of_a_sphinx_field() -> None:
    found = read("Do it.\n\n:param x: One,\n    or two.\n\n    do(x=1)")
    assert found.arguments == {"x": "One, or two."}
    assert found.text.endswith("\n    do(x=1)")


def test_a_colon_in_prose_opens_no_section() -> None:
    assert read("Remember this:\n\n    x: not an argument").arguments == {}


def test_an_argument_without_a_text_is_left_out() -> None:
    assert read("Do.\n\nArgs:\n    x:\n    y: One.").arguments == {"y": "One."}


def test_a_long_hostile_docstring_is_read_in_one_go() -> None:
    lines = ["Args:", *("    x" + " (" * 200 + ": a" for _ in range(500)), ":param " * 2000]
    # It would not come back if a pattern tried all ways.
    assert read("\n".join(lines)).arguments == {}

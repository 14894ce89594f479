"""How a listing says that something will be gone."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.judge.diff.deprecation import is_deprecated


@pytest.mark.parametrize(
    "description",
    [
        "Deprecated: use sum.",
        "deprecated",
        "DEPRECATED. Use sum.",
        "[Deprecated] Adds.",
        "**Deprecated** - adds.",
        "(deprecated) Adds.",
        "Deprecated since 2.0: adds.",
        "Deprecated in favour of sum.",
        *(
            "Deprecated - use sum.",
            "Deprecated- use sum.",
            "Deprecated -- adds.",
            "Deprecated—adds.",
        ),
    ],
)
def test_a_description_that_begins_with_the_word_is_a_mark(description: str) -> None:
    assert is_deprecated({"description": description})


@pytest.mark.parametrize(
    "entry",
    [
        {"description": "Deprecated packages, as a list."},
        {"description": "Deprecated-API scanner."},
        {"description": "Deprecated-use finder: lists them."},
        {"description": "Lists what is deprecated."},
        {"description": "Adds. Deprecated: no."},
        *({"description": 5}, {"deprecated": "no"}, {}, None, True, 5),
    ],
)
def test_nothing_else_is(entry: Any) -> None:
    assert not is_deprecated(entry)


def test_the_word_of_json_schema_is_a_mark() -> None:
    assert is_deprecated({"type": "string", "deprecated": True})

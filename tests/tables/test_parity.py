"""`docs/parity.toml` is complete, readable and honest.

Every row of the feature inventory is there once, says one short sentence, and
either names a test that exists or one of the missing capabilities listed at the
head of the file. Named tests are looked up in their source text; nothing here
imports them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tools.parity import Standing, row_from

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final[dict[str, Any]] = tomllib.loads(
    (ROOT / "docs" / "parity.toml").read_text(encoding="utf-8")
)
NEEDS: Final[dict[str, str]] = DOCUMENT["needs"]
ROWS: Final[list[dict[str, Any]]] = DOCUMENT["rows"]

# The last number of each system's rows in the feature inventory, in its order.
LAST: Final = {"E": 131, "F": 48, "P": 65, "S": 59, "C": 49, "K": 80}
KEYS: Final = {"id", "says", "test", "needs"}
LONGEST_SENTENCE: Final = 139
# A full stop inside a sentence is part of a number or a name, so no space follows it.
SENTENCE: Final = re.compile(r"\S(?:[^.!?]|[.!?](?=\S))*\.")
KEBAB_CASE: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
# Tests are functions of a module; no class holds any.
TEST: Final = re.compile(r"^(?:async )?def (test\w*)\(", re.MULTILINE)


def named_tests(row: dict[str, Any]) -> list[str]:
    """Return the tests a row names, whether it spells one or a list."""
    test = row.get("test", [])
    return [test] if isinstance(test, str) else list(test)


def test_every_id_is_there_once_and_in_order() -> None:
    expected = [f"{letter}-{n:02}" for letter, last in LAST.items() for n in range(1, last + 1)]
    assert len(expected) == 432
    assert [row["id"] for row in ROWS] == expected


def test_the_file_has_needs_and_rows_and_rows_have_the_known_keys() -> None:
    assert DOCUMENT.keys() == {"needs", "rows"}
    assert [row["id"] for row in ROWS if not row.keys() <= KEYS] == []


def test_every_row_says_one_short_sentence() -> None:
    odd = [row["id"] for row in ROWS if not is_one_short_sentence(row["says"])]
    assert odd == []


def is_one_short_sentence(text: str) -> bool:
    """Say whether `text` is a single sentence that fits on a line."""
    return len(text) <= LONGEST_SENTENCE and SENTENCE.fullmatch(text) is not None


def test_no_two_rows_say_the_same() -> None:
    said = [row["says"] for row in ROWS]
    assert sorted(set(said)) == sorted(said)


def test_every_row_has_either_a_test_or_a_known_need() -> None:
    lacking = [row["id"] for row in ROWS if not named_tests(row) and row.get("needs") not in NEEDS]
    assert lacking == [], f"{len(lacking)} rows have neither a test nor a known need"
    proven = [row["id"] for row in ROWS if named_tests(row) and "needs" in row]
    assert proven == [], "a row that a test proves waits for nothing"


def test_every_need_is_a_kebab_case_name_with_a_meaning_and_a_row_that_waits_for_it() -> None:
    assert [name for name in NEEDS if not KEBAB_CASE.fullmatch(name)] == []
    assert [name for name, meaning in NEEDS.items() if not meaning.strip()] == []
    assert NEEDS.keys() == {row["needs"] for row in ROWS if "needs" in row}


def test_every_named_test_exists() -> None:
    unknown = [
        f"{row['id']}: {name}" for row in ROWS for name in named_tests(row) if not exists(name)
    ]
    assert unknown == []


def test_the_report_counts_every_row_and_every_need() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "parity.py")]
    done = subprocess.run(tool, capture_output=True, text=True, check=False, timeout=30)
    lines = done.stdout.splitlines()
    name, rows, proven, waits, missing = lines[-1].split()
    assert (name, int(rows)) == ("total", len(ROWS))
    assert int(proven) + int(waits) + int(missing) == len(ROWS)
    assert done.returncode == (0 if missing == "0" else 1)
    counted = {
        words[0]: int(words[1])
        for words in map(str.split, lines)
        if words[:1] and words[0] in NEEDS
    }
    assert counted == Counter(row["needs"] for row in ROWS if "needs" in row)
    assert sum(counted.values()) == int(waits)


@pytest.mark.parametrize(
    ("row", "standing"),
    [
        ({"test": "tests/x.py::test_x"}, Standing.PROVEN),
        ({"test": ["tests/x.py::test_x"]}, Standing.PROVEN),
        ({"needs": "http"}, Standing.WAITS),
        ({"needs": "carrier-pigeons"}, Standing.MISSING),
        ({"test": []}, Standing.MISSING),
        ({}, Standing.MISSING),
    ],
)
def test_a_row_without_a_test_and_a_known_need_is_missing(
    row: dict[str, Any], standing: Standing
) -> None:
    read = row_from({"id": "E-01", "says": "Messages are JSON.", **row})
    assert read.standing({"http": "HTTP"}) is standing


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("JSON-RPC 2.0 is spoken.", True),
        ("It works. It is fast.", False),
        ("It works", False),
        ("Does it work?", False),
        ("A" * 139 + ".", False),
        ("", False),
    ],
)
def test_one_sentence_is_told_from_two(text: str, one: bool) -> None:
    assert is_one_short_sentence(text) is one


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("tests/tables/test_parity.py::test_every_named_test_exists", True),
        ("tests/tables/test_parity.py::test_nobody_wrote", False),
        ("tests/tables/test_parity.py::exists", False),
        ("tests/tables/test_parity.py::TestNobody::test_nobody_wrote", False),
        ("tests/tables/test_parity.py", False),
        ("tests/tables/test_gone.py::test_nobody_wrote", False),
        ("tests/vectors/gone.json::nothing", False),
        ("docs/parity.toml::test_nobody_wrote", False),
    ],
)
def test_the_lookup_finds_only_real_tests(name: str, there: bool) -> None:
    assert exists(name) is there


def exists(name: str) -> bool:
    """Return True if `path::test` or `vectors.json::case` exists."""
    path, _, inner = name.partition("::")
    return inner in names_in(path)


@cache
def names_in(path: str) -> frozenset[str]:
    """Return what the tests in one file are called; nothing for a file that is not there."""
    file = ROOT / path
    if not path.startswith("tests/") or not file.is_file():
        return frozenset()
    if file.suffix == ".json":
        return frozenset(case["name"] for case in json.loads(file.read_text(encoding="utf-8")))
    return frozenset(TEST.findall(file.read_text(encoding="utf-8")))

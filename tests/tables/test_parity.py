"""`docs/parity.toml` and `docs/parity-repositories.toml` are complete, readable and honest.

Every row of the feature inventory is there once, says one short sentence, and has one
standing: a test that exists, with what it leaves out if it shows less than the original has;
one of the missing capabilities listed at the head of the first; or a reason to decline it.
Named tests are looked up in their source text, and by pytest if a parameter is named.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tools.parity import SYSTEMS, Standing, documents, load, row_from

ROOT: Final = Path(__file__).resolve().parents[2]
TEXTS, REPOSITORIES = documents()
NEEDS: Final[dict[str, str]] = TEXTS["needs"]
ROWS: Final[list[dict[str, Any]]] = [*TEXTS["rows"], *REPOSITORIES["rows"]]

# The last number of each system's rows in the feature inventory, in its order.
LAST: Final = {"E": 131, "F": 48, "P": 65, "S": 59, "C": 49, "K": 80}
# Rows of ours, about what several systems have.
LAST_OF_OURS: Final = 6
# What the repositories add: whole tables first, then the numbers of rows, which have gaps.
TABLES: Final = ("R-EM-1", "R-EM-2", "R-EM-5")
NUMBERS: Final = {
    "R-EM": (*((1, 12), (20, 39), (40, 74), (80, 97), (100, 110), (120, 133)),),
    "R-PI": ((1, 36),),
    "R-CP": ((1, 26),),
    "J": ((1, 20),),
}
KEYS: Final = {"id", "says", "test", "needs", "less", "declined"}
ALLOWED_NEEDS: Final = {
    *("live-check", "a2a", "shared-sessions", "redis", "hub", "openapi", "inspector", "apps"),
}
# A parametrized test outside the conversations that more rows share is named with its parameter.
MOST_SHARED: Final = 3
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
    expected += [f"X-{n:02}" for n in range(1, LAST_OF_OURS + 1)]
    assert [row["id"] for row in TEXTS["rows"]] == expected


def test_every_id_of_the_repositories_is_there_once_and_in_order() -> None:
    numbered = [
        f"{letters}-{n:02}"
        for letters, ranges in NUMBERS.items()
        for first, last in ranges
        for n in range(first, last + 1)
    ]
    assert len(numbered) == 172 + 20
    assert [row["id"] for row in REPOSITORIES["rows"]] == [*TABLES, *numbered]


def test_every_row_belongs_to_a_system_that_is_counted() -> None:
    _, rows = load()
    assert [row.id for row in rows] == [row["id"] for row in ROWS]
    assert {row.system for row in rows} == SYSTEMS.keys()


def test_the_files_have_needs_and_rows_and_rows_have_the_known_keys() -> None:
    assert TEXTS.keys() == {"needs", "rows"}
    assert REPOSITORIES.keys() == {"rows"}
    assert [row["id"] for row in ROWS if not row.keys() <= KEYS] == []


def test_every_row_says_one_short_sentence() -> None:
    odd = [row["id"] for row in ROWS if not is_one_short_sentence(row["says"])]
    assert odd == []


def is_one_short_sentence(text: str) -> bool:
    """Return True if `text` is a single sentence that fits on a line."""
    return len(text) <= LONGEST_SENTENCE and SENTENCE.fullmatch(text) is not None


def test_no_two_rows_say_the_same() -> None:
    said = [row["says"] for row in ROWS]
    assert sorted(set(said)) == sorted(said)


def test_every_row_has_one_standing() -> None:
    lacking = [row["id"] for row in ROWS if row_from(row).standing(NEEDS) is Standing.MISSING]
    assert lacking == [], f"{len(lacking)} rows have no test, no known need and no reason"
    for row in ROWS:
        assert faults_of(row) == [], row["id"]


def faults_of(row: dict[str, Any]) -> list[str]:
    """Return what is wrong with the standing that a row claims."""
    has = {name for name in ("test", "needs", "less", "declined") if row.get(name)}
    faults = []
    if "declined" in has and has & {"needs", "less"}:
        faults.append("a declined row waits for nothing and leaves out everything")
    if "less" in has and "test" not in has:
        faults.append("what is there in part has a test for that part")
    if {"test", "needs"} <= has and "less" not in has:
        faults.append("a row that a test proves and that needs something says what is left out")
    faults += [
        f"{name} is not one short clause"
        for name in has & {"less", "declined"}
        if not is_clause(row[name])
    ]
    return faults


def is_clause(text: str) -> bool:
    """Return True if `text` is short, on one line, and does not end in a full stop."""
    return 10 <= len(text) <= LONGEST_SENTENCE + 60 and "\n" not in text and text[-1] not in ".;,"


@pytest.mark.parametrize(
    ("row", "good"),
    [
        ({"test": "t"}, True),
        ({"test": "t", "less": "no ports are sent"}, True),
        ({"test": "t", "less": "no ports are sent", "needs": "http"}, True),
        ({"needs": "http"}, True),
        ({"declined": "the specification says otherwise"}, True),
        ({"declined": "the specification says otherwise", "test": "t"}, True),
        ({"less": "no ports are sent"}, False),
        ({"test": "t", "needs": "http"}, False),
        ({"declined": "the specification says otherwise", "needs": "http"}, False),
        (
            {"declined": "the specification says otherwise", "test": "t", "less": "a part of it"},
            False,
        ),
        ({"test": "t", "less": "It is less."}, False),
        ({"test": "t", "less": "less"}, False),
    ],
)
def test_a_standing_that_contradicts_itself_is_seen(row: dict[str, Any], good: bool) -> None:
    assert (faults_of(row) == []) is good


def test_every_need_is_a_kebab_case_name_with_a_meaning_and_a_row_that_needs_it() -> None:
    assert NEEDS.keys() <= ALLOWED_NEEDS
    assert [name for name in NEEDS if not KEBAB_CASE.fullmatch(name)] == []
    assert [name for name, meaning in NEEDS.items() if not meaning.strip()] == []
    assert NEEDS.keys() == {row["needs"] for row in ROWS if "needs" in row}


def test_a_test_that_many_rows_share_is_named_with_its_parameter() -> None:
    shared = Counter(name for row in ROWS for name in set(named_tests(row)) if "[" not in name)
    vague = [name for name, rows in shared.items() if rows > MOST_SHARED and is_parametrized(name)]
    assert vague == []


def test_every_parameter_that_is_named_exists() -> None:
    named = {name for row in ROWS for name in named_tests(row) if "[" in name}
    files = sorted({name.partition("::")[0] for name in named})
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", *files]
    done = subprocess.run(
        collect, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    collected = set(done.stdout.splitlines())
    assert sorted(named - collected) == []


def test_every_named_test_exists() -> None:
    unknown = [
        f"{row['id']}: {name}" for row in ROWS for name in named_tests(row) if not exists(name)
    ]
    assert unknown == []


def test_the_report_counts_every_row_and_every_need() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "parity.py")]
    done = subprocess.run(tool, capture_output=True, text=True, check=False, timeout=30)
    lines = done.stdout.splitlines()
    name, rows, *counts = lines[-1].split()
    assert (name, int(rows)) == ("total", len(ROWS))
    found = Counter(row_from(row).standing(NEEDS) for row in ROWS)
    assert [int(count) for count in counts] == [found[standing] for standing in Standing]
    assert done.returncode == (1 if found[Standing.MISSING] else 0)
    counted = {
        words[0]: int(words[1])
        for words in map(str.split, lines)
        if words[:1] and words[0] in NEEDS
    }
    assert counted == Counter(row["needs"] for row in ROWS if "needs" in row)


@pytest.mark.parametrize(
    ("row", "standing"),
    [
        ({"test": "tests/x.py::test_x"}, Standing.PROVEN),
        ({"test": ["tests/x.py::test_x"]}, Standing.PROVEN),
        ({"test": "tests/x.py::test_x", "less": "not by night"}, Standing.IN_PART),
        ({"needs": "http"}, Standing.WAITING),
        ({"declined": "there is no use for it"}, Standing.DECLINED),
        ({"needs": "carrier-pigeons"}, Standing.MISSING),
        ({"test": []}, Standing.MISSING),
        ({}, Standing.MISSING),
    ],
)
def test_a_row_has_the_standing_that_its_members_say(
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
def test_is_one_short_sentence_accepts_one_short_sentence_only(text: str, one: bool) -> None:
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
    return inner.partition("[")[0] in names_in(path)


def is_parametrized(name: str) -> bool:
    """Return True for a test with `parametrize` above it, outside the conversations."""
    path, _, inner = name.partition("::")
    if not path.endswith(".py") or path.startswith("tests/conversation/"):
        return False
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == inner:
            return any("parametrize" in ast.unparse(each) for each in node.decorator_list)
    return False


@cache
def names_in(path: str) -> frozenset[str]:
    """Return what the tests in one file are called; nothing for a file that is not there."""
    file = ROOT / path
    if not path.startswith("tests/") or not file.is_file():
        return frozenset()
    if file.suffix == ".json":
        return frozenset(case["name"] for case in json.loads(file.read_text(encoding="utf-8")))
    return frozenset(TEST.findall(file.read_text(encoding="utf-8")))

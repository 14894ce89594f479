"""`tools/mutants`: which faults are made, which tests are chosen, and a hunt in a tiny project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.mutants.__main__ import main
from tools.mutants.baseline import (
    Baseline,
    KnownTest,
    Suite,
    merged,
    other_suites,
    unit_suites,
)
from tools.mutants.draw import (
    Equivalent,
    Mutant,
    StaleEntry,
    Tree,
    draw,
    equivalents_of,
    is_equivalent,
    sources_of,
)
from tools.mutants.hunt import Stage, Verdict, mirror_of, stage_of, try_mutant
from tools.mutants.operators import Edit, edits_of, is_valid
from tools.mutants.probe import hits_of, outcome_of
from tools.mutants.report import report
from tools.mutants.slots import Run

ROOT = Path(__file__).resolve().parents[3]


def faults(source: str) -> list[tuple[str, str]]:
    edits = [edit for edit in edits_of(source) if is_valid(edit, source)]
    return [(edit.operator, edit.apply(source)) for edit in edits]


# -- operators -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "operator", "mutant"),
    [
        ("x = y == z", "comparison", "x = y != z"),
        ("x = y < z", "comparison", "x = y <= z"),
        ("x = y >= z", "comparison", "x = y > z"),
        ("x = y is z", "comparison", "x = y is not z"),
        ("x = y is not z", "comparison", "x = y is z"),
        ("x = y in z", "comparison", "x = y not in z"),
        ("x = y not in z", "comparison", "x = y in z"),
        ("x = (y or a) == (z)", "comparison", "x = (y or a) != (z)"),
        ("x = a and b", "and/or", "x = a or b"),
        ("x = a or b or c", "and/or", "x = a and b and c"),
        ("x = a or (b)", "and/or", "x = a and (b)"),
        ("x = (a  # this and that\n    and b)", "and/or", "x = (a  # this and that\n    or b)"),
        ("x = 4", "number", "x = 5"),
        ("x = 0.5", "number", "x = 1.5"),
        ("x = True", "number", "x = False"),
        ('x = "é"; y = "key"', "string", 'x = "é"; y = "XXkey"'),
        ("x = b'key'", "string", "x = b'XXkey'"),
        ("f(a, k=1)", "keyword", "f(a, )"),
        ("f(k=v, *a)", "keyword", "f( *a)"),
        ("f(a)", "call", "pass"),
        ("if a:\n    b", "condition", "if not (a):\n    b"),
        ("while (a or b):\n    c", "condition", "while (not (a or b)):\n    c"),
        ("x = a if b else c", "condition", "x = a if not (b) else c"),
        ("for a in b:\n    continue", "jump", "for a in b:\n    pass"),
        ("for a in b:\n    break", "jump", "for a in b:\n    pass"),
        ("def f():\n    return a", "return", "def f():\n    return None"),
        ("raise Error(a)", "raise", "pass"),
        ("try:\n    a\nexcept E:\n    b\n    c", "except", "try:\n    a\nexcept E:\n    pass"),
        ("def f(self):\n    self.x = a", "attribute", "def f(self):\n    pass"),
        ("def f(self):\n    self.x += a", "attribute", "def f(self):\n    pass"),
        ("def f(self):\n    self.x: T = a", "attribute", "def f(self):\n    pass"),
        ("async def f():\n    await a()", "await", "async def f():\n    pass"),
    ],
)
def test_a_fault_is_made(source: str, operator: str, mutant: str) -> None:
    assert (operator, mutant) in faults(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""Docstring."""',
        "'docstring'\n'another'",
        'x = f"{a == 1}"',
        'x = "two words"',
        'def f(x: "T" = a) -> "T": ...',
        'x: Literal["a"]',
        'Kind: TypeAlias = "int | str"',
        'Kind = Literal["a", "b"]',
        'T = TypeVar("T", bound="B")',
        '_log.warning("failed", exc_info=True)',
        'self._logger.info("x", extra=1)',
        "logging.debug('x')",
        '__all__ = ["a"]',
        '__slots__ = ("a",)',
        "if TYPE_CHECKING:\n    a = 1",
        "if __name__ == '__main__':\n    a = 1",
        "@dataclass(slots=True)\nclass A(B, frozen=True):\n    x: int",
        "@overload\ndef f(a=1): ...",
        "@typing.overload\nasync def f(a=1): ...",
        "class A(Protocol):\n    def f(self, a=1):\n        return 1",
        "def __init__(self):\n    self.x = a",
        "raise NotImplementedError",
        "try:\n    a\nexcept E:\n    pass",
        "try:\n    a\nexcept E:\n    _log.debug('x')",
        "def f():\n    return None",
        "x = None",
        "f(*a, **k).b",
    ],
)
def test_nothing_is_changed(source: str) -> None:
    assert faults(source) == []


@pytest.mark.parametrize(
    "check", ["sys.platform == w", "sys.version_info >= w", "os.name == w", "not sys.platform"]
)
def test_checks_of_the_platform_keep_their_condition(check: str) -> None:
    assert faults(f"if {check}:\n    a") == []


def test_an_edit_knows_the_lines_that_reach_it_and_whether_a_function_does() -> None:
    source = (
        "LIMIT = 10\n"
        "def read(data,\n"
        "         limit=20):\n"
        "    if (data and\n"
        "            limit == 30):\n"
        "        data = send(data,\n"
        "                    40)\n"
        "    return lambda: 50\n"
    )
    numbers = [edit for edit in edits_of(source) if edit.operator == "number"]
    assert [(each.text, each.first_line, each.last_line, each.at_import) for each in numbers] == [
        ("11", 1, 1, True),
        ("21", 2, 3, True),
        ("31", 4, 5, False),
        ("41", 6, 7, False),
        ("51", 8, 8, False),
    ]


def test_the_body_of_an_except_clause_is_reached_by_its_own_lines() -> None:
    source = "try:\n    a\nexcept E:\n    b = c\n    d = e\n"
    (edit,) = edits_of(source)
    assert (edit.operator, edit.first_line, edit.last_line) == ("except", 4, 5)


def test_a_fault_that_does_not_compile_is_not_valid() -> None:
    edit = Edit(0, 1, "number", "(", 1, 1, True)
    assert not is_valid(edit, "x = 1")
    assert not is_valid(Edit(0, 1, "number", "x", 1, 1, True), "x = 1")


# -- the sample ------------------------------------------------------------------------------


TILL = "def is_large(count):\n    return count > 10\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    root = tmp_path / "project"
    for name, text in {
        "src/shop/__init__.py": "x = 1\n",
        "src/shop/till.py": TILL,
        "src/shop/errors.py": "x = 1\n",
        "src/shop/spec/rows.py": "x = 1\n",
        "src/shop/back/__init__.py": "x = 1\n",
        "src/shop/back/made.py": '"""Generated by a tool: do not edit."""\nx = 1\n',
        "src/shop/back/shelves/books.py": "def f():\n    return a == 1 and b\n",
        "tests/unit/test_till.py": (
            "from shop.till import is_large\n"
            "def test_large():\n    assert is_large(11)\n"
            "def test_small():\n    assert is_large(5) is False\n"
        ),
        "tests/vectors/test_cases.py": "def test_nothing():\n    pass\n",
        "tests/docs/test_pages.py": "def test_nothing():\n    pass\n",
    }.items():
        write(root / name, text)
    return Tree(root)


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_data_generated_files_and_packages_of_exports_are_left_out(tree: Tree) -> None:
    assert [*sources_of(tree)] == ["src/shop/back/shelves/books.py", "src/shop/till.py"]
    assert [*sources_of(tree, ["till"])] == ["src/shop/till.py"]
    for folder in ("back", "back/shelves", "back/shelves/books"):
        assert [*sources_of(tree, [folder])] == ["src/shop/back/shelves/books.py"]


def test_a_package_without_files_is_refused(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    for missing in ("bac", "back/shelf", "till.py"):
        assert main(["--root", str(tree.root), "--list", "--package", missing]) == 2
        assert f"{missing} has no source files" in capsys.readouterr().err


def test_a_sample_depends_on_the_seed_alone_and_has_no_mutant_twice(tree: Tree) -> None:
    every = draw(tree, 100, seed=1)
    assert len(every) == len(set(every)) == len(faults(TILL)) + 4
    assert Counter(mutant.package for mutant in every) == {"till": 3, "back": 4}
    assert draw(tree, 3, seed=1) == every[:3]
    assert any(draw(tree, 100, seed=seed) != every for seed in range(2, 6))


def till(operator: str) -> Mutant:
    (edit,) = (each for each in edits_of(TILL) if each.operator == operator)
    return Mutant("src/shop/till.py", "till", TILL, edit)


def test_a_mutant_shows_its_difference() -> None:
    mutant = till("comparison")
    assert (mutant.line, mutant.text) == (2, TILL.replace(">", ">="))
    assert mutant.difference() == ["-    return count > 10", "+    return count >= 10"]


ENTRY = """\
[[equivalent]]
file = "src/shop/till.py"
was = "return count > 10"
now = "return count > 11"
reason = "Counts are even."
"""


def test_a_mutant_on_the_list_is_equivalent(tree: Tree) -> None:
    assert equivalents_of(tree) == []
    write(tree.tests / "mutants-equivalent.toml", ENTRY)
    entries = equivalents_of(tree)
    assert is_equivalent(till("number"), entries)
    assert not is_equivalent(till("comparison"), entries)


@pytest.mark.parametrize(
    ("old", "new"), [("till.py", "gone.py"), ("> 10", "> 12"), ("Counts are even.", " ")]
)
def test_a_stale_entry_of_the_list_is_an_error(
    tree: Tree, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree.tests / "mutants-equivalent.toml", ENTRY.replace(old, new))
    with pytest.raises(StaleEntry):
        equivalents_of(tree)
    assert main(["--root", str(tree.root), "--list"]) == 2
    assert "src/shop/" in capsys.readouterr().err


def test_the_list_of_this_project_is_not_stale() -> None:
    assert all(isinstance(entry, Equivalent) for entry in equivalents_of(Tree(ROOT)))


def test_the_command_lists_a_sample(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(tree.root), "--list", "--package", "till", "--sample", "2"]) == 0
    listed = capsys.readouterr().out
    assert listed.count("src/shop/till.py:2  ") == 2
    assert "    -    return count > 10\n" in listed


# -- the choice of tests ---------------------------------------------------------------------


def test_suites_are_found_by_their_folders(tree: Tree) -> None:
    write(tree.tests / "unit" / "tools" / "test_own.py")
    write(tree.tests / "unit" / "back" / "test_books.py")
    write(tree.tests / "unit" / "empty" / "helper.py")
    assert unit_suites(tree) == {
        "back": Suite("tests/unit/back"),
        "till": Suite("tests/unit/test_till.py"),
    }
    assert other_suites(tree) == {"vectors": Suite("tests/vectors")}


@pytest.mark.parametrize(
    ("files", "mirror"),
    [
        (["back/shelves/test_books.py", "back/test_books.py"], ["back/shelves/test_books.py"]),
        (["back/test_books.py", "back/old/test_books.py"],
         ["back/old/test_books.py", "back/test_books.py"]),
        (["back/test_books_old.py", "back/test_book.py"], ["back/test_books_old.py"]),
        (["front/test_books.py", "test_books.py"], []),
        (["back/test_import.py", "back/test_other.py"], ["back/test_import.py"]),
    ],
)  # fmt: skip
def test_the_mirror_of_a_module_is_the_nearest_file(
    tree: Tree, files: list[str], mirror: list[str]
) -> None:
    for file in files:
        imported = "shop.back.shelves.books" if "import" in file else "shop.back.shelves.bookshop"
        write(tree.tests / "unit" / file, f"from {imported} import f\n")
    found = mirror_of(tree, "src/shop/back/shelves/books.py")
    assert found == [f"tests/unit/{file}" for file in mirror]
    assert mirror_of(tree, "src/shop/till.py") == ["tests/unit/test_till.py"]


def known(*names: str, seconds: float = 1.0) -> tuple[KnownTest, ...]:
    return tuple(KnownTest(f"tests/{name}", seconds) for name in names)


def chosen(stage: Stage) -> list[str]:
    return [test.id.removeprefix("tests/") for test in stage.tests]


TESTS = known("a.py::1", "a.py::2", "b.py::3", "b.py::4")
MEASURED = Baseline(TESTS, {"src/shop/till.py": {1: 0b0001, 2: 0b0110}})


def test_a_stage_runs_the_tests_that_execute_the_line() -> None:
    stage = stage_of("package", till("return"), [MEASURED], 10)
    assert (chosen(stage), stage.covering, stage.was_cut) == (["a.py::2", "b.py::3"], 2, False)
    assert chosen(stage_of("package", till("return"), [MEASURED], 10, done=["tests/a.py::2"])) == [
        "b.py::3"
    ]


def test_a_mirror_is_run_as_a_whole_with_the_tests_that_execute_the_line_first() -> None:
    stage = stage_of("mirror", till("return"), [MEASURED], 10, files=["tests/a.py"])
    assert (chosen(stage), stage.covering) == (["a.py::2", "a.py::1"], 1)


def test_for_a_line_that_runs_at_import_tests_of_the_module_come_before_all_others() -> None:
    mutant = till("return")
    edit = Edit(0, 0, "number", "", 7, 7, at_import=True)
    imported = Mutant(mutant.file, mutant.package, mutant.source, edit)
    stage = stage_of("package", imported, [MEASURED], 10)
    assert (chosen(stage), stage.covering) == (["a.py::1", "a.py::2", "b.py::3", "b.py::4"], 0)
    assert chosen(stage_of("package", imported, [MEASURED], 3.5)) == [
        "a.py::1",
        "a.py::2",
        "b.py::3",
    ]


def test_a_budget_takes_the_quickest_tests_and_says_that_it_cut() -> None:
    tests = (*known("a.py::slow", seconds=5), *known("a.py::quick", "a.py::other"))
    stage = stage_of("package", till("return"), [Baseline(tests, None)], 2)
    assert (chosen(stage), stage.was_cut) == (["a.py::quick", "a.py::other"], True)
    alone = stage_of("package", till("return"), [Baseline(tests[:1], None)], 2)
    assert (chosen(alone), alone.was_cut) == (["a.py::slow"], False)


def test_a_test_that_did_not_pass_on_clean_source_is_not_used() -> None:
    first = replace(TESTS[0], outcome="failed")
    partly = Baseline((first, *TESTS[1:]), {"src/shop/till.py": {2: 0b1001}})
    assert chosen(stage_of("x", till("return"), [partly], 10)) == ["b.py::4"]


def test_tests_that_did_not_pass_on_clean_source_are_named() -> None:
    failed, skipped = replace(TESTS[0], outcome="failed"), replace(TESTS[1], outcome="skipped")
    partly = Baseline((failed, skipped, *TESTS[2:]), None)
    assert partly.summary(Suite("tests/unit")).splitlines() == [
        "tests/unit: 2 tests, 2 did not pass and are left out:",
        "  failed tests/a.py::1",
        "  skipped tests/a.py::2",
    ]
    assert Baseline(TESTS, None).summary(Suite("tests/x", "quick")) == "tests/x quick: 4 tests"


@pytest.mark.parametrize(
    ("phases", "outcome"),
    [
        ({"passed"}, "passed"),
        ({"passed", "failed"}, "failed"),
        ({"passed", "skipped"}, "skipped"),
        ({"skipped", "failed"}, "failed"),
        (set(), "failed"),
    ],
    ids=str,
)
def test_a_phase_that_did_not_pass_is_the_outcome_of_its_test(
    phases: set[str], outcome: str
) -> None:
    assert outcome_of(phases) == outcome


def test_without_measured_lines_every_test_is_used() -> None:
    stage = stage_of("package", till("return"), [Baseline(TESTS, None)], 10)
    assert (len(stage.tests), stage.covering) == (4, 4)


def test_the_lines_of_all_processes_become_bits_of_tests(tmp_path: Path) -> None:
    path = str(tmp_path / "src" / "shop" / "till.py")

    def hits(contexts: dict[int, list[str]]) -> dict[str, dict[str, str]]:
        return hits_of(
            SimpleNamespace(
                measured_files=lambda: [path],
                contexts_by_lineno=lambda _: contexts,
            )
        )

    own = hits({3: ["", "0", "2"], 4: [""]})
    child = hits({3: ["5"], 6: ["1"]})
    assert own == {path: {"3": "5", "4": "0"}}
    assert merged([own, child], tmp_path) == {"src/shop/till.py": {"3": "25", "6": "2"}}


# -- verdicts --------------------------------------------------------------------------------


class FakeSlot:
    """Answers each run from a list, and notes what the source was."""

    def __init__(self, *codes: int | None) -> None:
        self.codes = [*codes]
        self.text = TILL
        self.runs: list[tuple[bool, list[str]]] = []

    def write(self, file: str, text: str) -> None:
        self.text = text

    def pytest(self, paths: list[str], *, timeout: float, select: Iterable[str]) -> Run:
        self.runs.append((self.text == TILL, [*select]))
        return Run(self.codes.pop(0), tuple([*select][:1]), "")


STAGES = [Stage("first", TESTS[:2], 1, False), Stage("second", TESTS[2:], 0, True)]


def verdict_of(slot: Any) -> Verdict:
    verdict = try_mutant(Verdict(till("return")), STAGES, slot)
    assert slot.text == TILL
    assert slot.codes == []
    return verdict


@pytest.mark.parametrize("code", [1, 2, None, -11])
def test_a_failure_or_the_end_of_its_time_kills_a_mutant(code: int | None) -> None:
    slot = FakeSlot(code, 0)
    verdict = verdict_of(slot)
    assert (verdict.killed_by, verdict.test, verdict.ran) == ("first", "tests/a.py::1", 1)
    assert slot.runs == [
        (False, ["tests/a.py::1", "tests/a.py::2"]),
        (True, ["tests/a.py::1"]),
    ]


def test_failure_on_clean_source_does_not_kill_a_mutant() -> None:
    assert verdict_of(FakeSlot(1, 1, 1, 0)).killed_by == "second"
    assert verdict_of(FakeSlot(1, None, 0)).killed_by is None


def test_a_survivor_has_passed_every_stage() -> None:
    verdict = verdict_of(FakeSlot(0, 5))
    assert (verdict.killed_by, verdict.ran, verdict.covering) == (None, 2, 1)
    assert verdict.was_cut


def test_the_report_has_survivors_packages_and_the_rate() -> None:
    verdicts = [
        Verdict(till("return"), "mirror", "tests/a.py::1", 1, 1),
        Verdict(till("comparison"), ran=2),
    ]
    assert [*report(verdicts, [till("number")])] == [
        "survivors:",
        "src/shop/till.py:2  comparison  (2 tests ran, no test executes this line)",
        "    -    return count > 10",
        "    +    return count >= 10",
        "",
        "package         drawn  equivalent  killed  sampled    rate",
        "till                3           1       1        2    50 %",
        "all                 3           1       1        2    50 %",
        "killed by stage: mirror 1",
    ]


def test_a_hunt_finds_what_the_tests_of_a_tiny_project_miss(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree.tests / "mutants-equivalent.toml", ENTRY)
    before = {path: path.read_bytes() for path in tree.root.rglob("*") if path.is_file()}
    cache = tmp_path / "cache"
    write(cache / "of-another-source" / "unit.json")
    assert main(["--root", str(tree.root), "--cache", str(cache), "--package", "till"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].startswith("survivors:")
    assert printed[2].startswith("src/shop/till.py:2  comparison  (")
    assert printed[4] == "    +    return count >= 10"
    assert printed[-2].split() == ["all", "3", "1", "1", "2", "50", "%"]
    assert printed[-1] == "killed by stage: mirror 1"
    after = {path: path.read_bytes() for path in tree.root.rglob("*") if path.is_file()}
    assert after == before, "the tree itself is not written to"
    (kept,) = cache.iterdir()
    assert {each.name for each in kept.iterdir()} == {"unit-test_till.json", "vectors.json"}

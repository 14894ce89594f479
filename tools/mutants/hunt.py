"""Take mutants through the tests: the likeliest and quickest tests first, the rest for survivors.

Stages, each bounded in time:

1. the test file that mirrors the module;
2. the other unit tests of its package;
3. the vectors, and the conversations in memory;
4. for survivors, every other suite.

A stage runs the tests that execute a line of the edit. Lines that run at import are executed
before any test begins: for those, tests that execute the module come first, then all others.
A mutant is killed if tests fail, or their time is up, and the same tests pass on clean source.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from tools.mutants.baseline import (
    UNIT,
    Baseline,
    KnownTest,
    Suite,
    collect,
    other_suites,
    unit_suites,
)
from tools.mutants.draw import Mutant, Tree
from tools.mutants.slots import Slot, Slots

# Suites that run every part of the library in short time, and what chooses among their tests.
QUICK: Final = {"vectors": "", "conversation": "memory"}
# Seconds that the tests of a stage may take on the clean source, by their baseline.
MIRROR_BUDGET_S: Final = 30.0
PACKAGE_BUDGET_S: Final = 45.0
QUICK_BUDGET_S: Final = 60.0
OTHERS_BUDGET_S: Final = 90.0
# A run may take this long: starting and collecting, plus a multiple of the baseline.
START_TIMEOUT_S: Final = 45.0
TIMEOUT_FACTOR: Final = 2.0
_MAX_IMPORTERS: Final = 3

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    # The stage that killed it, and the test; None for a survivor.
    killed_by: str | None = None
    test: str = ""
    # How many tests ran, and how many execute a line of the edit.
    ran: int = 0
    covering: int = 0
    # True if a stage had more tests than its budget allowed.
    was_cut: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """Tests to try on one mutant."""

    name: str
    tests: tuple[KnownTest, ...]
    covering: int
    was_cut: bool

    @property
    def timeout(self) -> float:
        """Seconds after which a run counts as failed."""
        return START_TIMEOUT_S + TIMEOUT_FACTOR * sum(test.seconds for test in self.tests)


class Hunt:
    """One session: a tree, its slots, and the baselines of its suites."""

    def __init__(self, tree: Tree, slots: Slots, workers: int, cache: Path) -> None:
        self._tree = tree
        self._slots = slots
        self._workers = workers
        self._cache = cache
        self._unit = unit_suites(tree)
        others = other_suites(tree)
        self._quick = {
            name: Suite(others[name].path, keyword)
            for name, keyword in QUICK.items()
            if name in others
        }
        # The tests of a quick suite that its keyword leaves out come last.
        self._slow = {
            name: suite if name not in QUICK else Suite(suite.path, f"not {QUICK[name]}")
            for name, suite in others.items()
            if QUICK.get(name) != ""
        }
        self._baselines: dict[Suite, Baseline] = {}

    def run(self, mutants: Sequence[Mutant], tell: Callable[[str], None]) -> list[Verdict]:
        """Return a verdict for each mutant."""
        packages = {mutant.package for mutant in mutants}
        self._collect(
            [
                *(self._unit[name] for name in sorted(packages & {*self._unit})),
                *self._quick.values(),
            ],
            tell,
        )
        first = self._try_all([Verdict(mutant) for mutant in mutants], self._first_stages, tell)
        survivors = [verdict for verdict in first if verdict.killed_by is None]
        if survivors:
            tell(f"{len(survivors)} of {len(first)} survived so far; trying the other suites")
            self._collect([*self._unit.values(), *self._slow.values()], tell)
            last = iter(self._try_all(survivors, self._last_stages, tell))
            first = [verdict if verdict.killed_by else next(last) for verdict in first]
        return first

    # -- stages ------------------------------------------------------------------------------

    def _first_stages(self, mutant: Mutant) -> Iterator[Stage]:
        own = self._of([self._unit[mutant.package]] if mutant.package in self._unit else [])
        mirror = mirror_of(self._tree, mutant.file)
        done: set[str] = set()
        for name, baselines, files, budget in (
            ("mirror", own, mirror, MIRROR_BUDGET_S),
            ("package", own, None, PACKAGE_BUDGET_S),
            ("quick", self._of(self._quick.values()), None, QUICK_BUDGET_S),
        ):
            stage = stage_of(name, mutant, baselines, budget, files=files, done=done)
            done.update(test.id for test in stage.tests)
            yield stage

    def _last_stages(self, mutant: Mutant) -> Iterator[Stage]:
        units = [suite for name, suite in self._unit.items() if name != mutant.package]
        baselines = self._of([*units, *self._slow.values()])
        yield stage_of("others", mutant, baselines, OTHERS_BUDGET_S)

    def _of(self, suites: Iterable[Suite]) -> list[Baseline]:
        return [self._baselines[suite] for suite in suites]

    # -- runs --------------------------------------------------------------------------------

    def _collect(self, suites: Sequence[Suite], tell: Callable[[str], None]) -> None:
        """Make sure of the baselines of some suites."""

        def one(suite: Suite, slot: Slot) -> Baseline:
            baseline = collect(suite, slot, self._cache)
            tell(baseline.summary(suite))
            return baseline

        new = [suite for suite in suites if suite not in self._baselines]
        self._baselines.update(zip(new, self._in_slots(one, new), strict=True))

    def _try_all(
        self,
        verdicts: Sequence[Verdict],
        stages: Callable[[Mutant], Iterator[Stage]],
        tell: Callable[[str], None],
    ) -> list[Verdict]:
        def one(verdict: Verdict, slot: Slot) -> Verdict:
            result = try_mutant(verdict, stages(verdict.mutant), slot)
            mutant = result.mutant
            outcome = f"killed ({result.killed_by})" if result.killed_by else "survived"
            tell(f"{mutant.file}:{mutant.line} {mutant.edit.operator}: {outcome}")
            return result

        return self._in_slots(one, verdicts)

    def _in_slots(self, act: Callable[[_T, Slot], _R], items: Sequence[_T]) -> list[_R]:
        """Do something for each item, as many at a time as there are slots."""

        def one(item: _T) -> _R:
            slot = self._slots.take()
            try:
                return act(item, slot)
            finally:
                self._slots.give_back(slot)

        with ThreadPoolExecutor(self._workers) as pool:
            futures = [pool.submit(one, item) for item in items]
            try:
                return [future.result() for future in futures]
            except BaseException:
                # Ctrl-C or a failure: threads that wait for a slot or a run end at once.
                self._slots.close()
                raise


def try_mutant(verdict: Verdict, stages: Iterable[Stage], slot: Slot) -> Verdict:
    """Run stage after stage until one kills the mutant."""
    mutant, ran = verdict.mutant, verdict.ran
    covering, was_cut = verdict.covering, verdict.was_cut
    for stage in stages:
        covering += stage.covering
        was_cut = was_cut or stage.was_cut
        if not stage.tests:
            continue
        slot.write(mutant.file, mutant.text)
        try:
            run = slot.pytest(
                files_of(stage.tests),
                timeout=stage.timeout,
                select=[test.id for test in stage.tests],
            )
        finally:
            slot.write(mutant.file, mutant.source)
        ran += len(run.ran)
        if not run.passed and _passes_clean(run.ran, stage, slot):
            return Verdict(
                mutant, stage.name, run.ran[-1] if run.ran else "", ran, covering, was_cut
            )
    return Verdict(mutant, None, "", ran, covering, was_cut)


def _passes_clean(ran: Sequence[str], stage: Stage, slot: Slot) -> bool:
    """Return True if the tests up to the failure pass on clean source, in the same selection.

    A test may depend on others that were not selected before it: such a failure says nothing.
    If no test began, importing failed: the baseline has shown that it does not on clean source.
    """
    if not ran:
        return True
    tests = [test for test in stage.tests if test.id in {*ran}]
    return slot.pytest(files_of(tests), timeout=stage.timeout, select=ran).passed


def stage_of(
    name: str,
    mutant: Mutant,
    baselines: Iterable[Baseline],
    budget: float,
    *,
    files: Sequence[str] | None = None,
    done: Iterable[str] = (),
) -> Stage:
    """Choose the tests of a stage: those that execute the edit first, the quickest first."""
    edit, finished = mutant.edit, {*done}
    ranks: dict[str, tuple[int, KnownTest]] = {}
    covering = 0
    for baseline in baselines:
        executing = {test.id for test in baseline.covering(mutant.file, *_lines(mutant))}
        touching = {test.id for test in baseline.touching(mutant.file)} if edit.at_import else set()
        for test in baseline.passing:
            if test.id in finished or (files is not None and test.file not in files):
                continue
            rank = 0 if test.id in executing else 1 if test.id in touching else 2
            covering += rank == 0
            # A cache may have run the line for an earlier test, so a mirror is run as a whole.
            if rank < 2 or edit.at_import or files is not None:
                ranks[test.id] = rank, test
    order = sorted(ranks.values(), key=lambda item: (item[0], item[1].seconds))
    chosen: list[KnownTest] = []
    seconds = 0.0
    for _, test in order:
        seconds += test.seconds
        if chosen and seconds > budget:
            break
        chosen.append(test)
    return Stage(name, tuple(chosen), covering, len(chosen) < len(order))


def _lines(mutant: Mutant) -> tuple[int, int]:
    return mutant.edit.first_line, mutant.edit.last_line


def files_of(tests: Iterable[KnownTest]) -> list[str]:
    """Return the files of some tests, each once, in order."""
    return sorted({test.file for test in tests})


def mirror_of(tree: Tree, file: str) -> list[str]:
    """Return the unit test files of a module: by name and folder, by name, or by import.

    The best match counts: the same name in the same folder; then the same name in the nearest
    folder of the same package; then names that begin with it; then the few files that import it.
    """
    module = Path(file).relative_to(tree.package.relative_to(tree.root))
    unit = tree.tests / UNIT
    package = unit / module.parts[0] if len(module.parts) > 1 else unit
    wanted = f"test_{module.stem}"
    exact: list[tuple[int, Path]] = []
    beginning, importing = [], []
    dotted = ".".join((tree.package.name, *module.with_suffix("").parts))
    for path in sorted(package.rglob("test_*.py") if package != unit else unit.glob("test_*.py")):
        common = os.path.commonpath((path.relative_to(unit), module))
        if path.stem == wanted:
            exact.append((len(Path(common).parts), path))
        elif path.stem.startswith(f"{wanted}_"):
            beginning.append(path)
        elif _imports(path, dotted):
            importing.append(path)
    if exact:
        nearest = max(depth for depth, _ in exact)
        found = [path for depth, path in exact if depth == nearest]
    else:
        found = beginning or importing[:_MAX_IMPORTERS]
    return [path.relative_to(tree.root).as_posix() for path in found]


def _imports(path: Path, dotted: str) -> bool:
    """Return True if a test file imports a module by its full name."""
    statement = re.compile(rf"^\s*(?:from|import)\s+{re.escape(dotted)}\b(?!\.)", re.MULTILINE)
    return statement.search(path.read_text(encoding="utf-8")) is not None

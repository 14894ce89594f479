"""One run of each suite on the clean source: how long each test takes and what it executes.

Only tests that passed are used later. Lines are measured by coverage, also in child processes;
without the package coverage, every test counts as executing everything.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import platform
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tools.mutants.draw import Tree
from tools.mutants.probe import hits_of
from tools.mutants.slots import Slot

# Suites that do not run the library in a way a fault would show, or that measure it: calls are
# not what they are elsewhere while lines are counted.
LEFT_OUT: Final = frozenset(("docs", "fuzz", "limits", "typing"))
UNIT: Final = "unit"
# Unit tests of what is not in the package.
UNIT_LEFT_OUT: Final = frozenset(("tools",))
SUITE_TIMEOUT_S: Final = 3600

_SETTINGS: Final = """\
[run]
source = {source}
data_file = {data}
parallel = true
context = ${{MUTANTS_TEST-}}
disable_warnings = no-data-collected, module-not-measured, couldnt-parse, no-sysmon
"""


@dataclass(frozen=True, slots=True)
class Suite:
    """A file or folder of tests that is run as one, and the keyword that chooses among them."""

    path: str
    keyword: str = ""

    @property
    def name(self) -> str:
        """A name for files."""
        return "-".join((*Path(self.path).with_suffix("").parts[1:], *self.keyword.split()))


@dataclass(frozen=True, slots=True)
class KnownTest:
    """A test, and its outcome on the clean source: "passed", "failed" or "skipped"."""

    id: str
    seconds: float
    outcome: str = "passed"

    @property
    def file(self) -> str:
        """The path of its file."""
        return self.id.partition("::")[0]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What one suite did on the clean source."""

    tests: tuple[KnownTest, ...]
    # For each file of the source and each line, the numbers of the tests, as bits; None if
    # nothing was measured.
    lines: dict[str, dict[int, int]] | None = field(repr=False)

    @property
    def passing(self) -> list[KnownTest]:
        """The tests that passed."""
        return [test for test in self.tests if test.outcome == "passed"]

    def summary(self, suite: Suite) -> str:
        """Return how many tests are used, and a line for each that is left out."""
        left_out = [test for test in self.tests if test.outcome != "passed"]
        number = f", {len(left_out)} did not pass and are left out:" if left_out else ""
        lines = (f"  {test.outcome} {test.id}" for test in left_out)
        first = f"{suite.path} {suite.keyword}".rstrip()
        return "\n".join((f"{first}: {len(self.passing)} tests{number}", *lines))

    def covering(self, file: str, first: int, last: int) -> list[KnownTest]:
        """Return the tests that execute one of the lines from `first` to `last`."""
        if self.lines is None:
            return self.passing
        hits = self.lines.get(file, {})
        return [*self._numbered(hits.get(line, 0) for line in range(first, last + 1))]

    def touching(self, file: str) -> list[KnownTest]:
        """Return the tests that execute any line of a file."""
        if self.lines is None:
            return self.passing
        return [*self._numbered(self.lines.get(file, {}).values())]

    def _numbered(self, masks: Iterable[int]) -> Iterator[KnownTest]:
        together = 0
        for mask in masks:
            together |= mask
        for number, test in enumerate(self.tests):
            if together >> number & 1 and test.outcome == "passed":
                yield test


def unit_suites(tree: Tree) -> dict[str, Suite]:
    """Return the suites of unit tests, by the name of the package or module they test."""
    suites = {}
    for path in sorted((tree.tests / UNIT).glob("*")):
        name = path.stem.removeprefix("test_")
        if name not in UNIT_LEFT_OUT and _has_tests(path):
            suites[name] = Suite(path.relative_to(tree.root).as_posix())
    return suites


def other_suites(tree: Tree) -> dict[str, Suite]:
    """Return the suites beside the unit tests, by the name of their folder."""
    return {
        path.name: Suite(path.relative_to(tree.root).as_posix())
        for path in sorted(tree.tests.iterdir())
        if path.is_dir() and path.name not in {UNIT, *LEFT_OUT} and _has_tests(path)
    }


def _has_tests(path: Path) -> bool:
    if path.is_dir():
        return any(path.rglob("test_*.py"))
    return path.name.startswith("test_") and path.suffix == ".py"


def digest_of(tree: Tree) -> str:
    """Return a digest of everything that a baseline depends on."""
    digest = hashlib.sha256(platform.python_version().encode())
    digest.update(b"measured" if is_measured() else b"not measured")
    files = [*(tree.root / "src").rglob("*"), *tree.tests.rglob("*"), *tree.root.glob("*.toml")]
    for path in sorted(files):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(tree.root).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def is_measured() -> bool:
    """Return True if lines can be measured here."""
    return importlib.util.find_spec("coverage") is not None


def collect(suite: Suite, slot: Slot, cache: Path) -> Baseline:
    """Return the baseline of a suite, from the cache if it is there."""
    kept = cache / f"{suite.name}.json"
    if not kept.is_file():
        document = _measure(suite, slot)
        cache.mkdir(parents=True, exist_ok=True)
        new = kept.with_suffix(".new")
        new.write_text(json.dumps(document), encoding="utf-8")
        new.replace(kept)
    return _read(json.loads(kept.read_text(encoding="utf-8")))


def _read(document: dict[str, Any]) -> Baseline:
    tests = tuple(
        KnownTest(each["id"], each["seconds"], each["outcome"]) for each in document["tests"]
    )
    if document["lines"] is None:
        return Baseline(tests, None)
    lines = {
        file: {int(line): int(mask, 16) for line, mask in hits.items()}
        for file, hits in document["lines"].items()
    }
    return Baseline(tests, lines)


def _measure(suite: Suite, slot: Slot) -> dict[str, Any]:
    """Run a suite on the clean source."""
    record, hits = slot.folder / "record.json", slot.folder / "hits"
    record.unlink(missing_ok=True)
    shutil.rmtree(hits, ignore_errors=True)
    hits.mkdir()
    environment = {"MUTANTS_RECORD": str(record)}
    if is_measured():
        settings = slot.folder / "coveragerc"
        source, data = slot.root / "src", hits / "data"
        settings.write_text(_SETTINGS.format(source=source, data=data), encoding="utf-8")
        environment["MUTANTS_SETTINGS"] = str(settings)
    options = ["-k", suite.keyword] if suite.keyword else []
    run = slot.pytest(
        [suite.path], timeout=SUITE_TIMEOUT_S, options=options, environment=environment
    )
    if not record.is_file():
        raise RuntimeError(f"{suite.path} did not run to its end:\n{run.output[-4000:]}")
    document: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    if document["lines"] is not None:
        parts = [document["lines"], *_hits_of_children(hits)]
        document["lines"] = merged(parts, slot.root)
    return document


def _hits_of_children(folder: Path) -> Iterator[dict[str, dict[str, str]]]:
    """Yield what each child process executed; one that was killed may have left nothing."""
    coverage: Any = importlib.import_module("coverage")
    for file in sorted(folder.iterdir()):
        data = coverage.CoverageData(basename=str(file))
        try:
            data.read()
            yield hits_of(data)
        except coverage.CoverageException:
            continue


def merged(parts: Iterable[dict[str, dict[str, str]]], root: Path) -> dict[str, dict[str, str]]:
    """Put the lines of several processes together, with files named from the root."""
    masks: dict[str, dict[str, int]] = {}
    for part in parts:
        for path, hits in part.items():
            known = masks.setdefault(Path(path).relative_to(root).as_posix(), {})
            for line, mask in hits.items():
                known[line] = known.get(line, 0) | int(mask, 16)
    return {
        file: {line: f"{mask:x}" for line, mask in hits.items() if mask}
        for file, hits in masks.items()
    }

"""Pick a sample of mutants, always the same for the same source and seed.

A mutant is drawn in three steps: a file, in proportion to its lines; one of the operators that
the file has, each as likely as the next; and one of the edits of that operator. Otherwise the
commonest operator, strings, would be most of the sample.
"""

from __future__ import annotations

import difflib
import random
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.mutants.operators import Edit, edits_of, is_valid
from tools.source_files import is_generated, python_files

# Packages and modules whose content is data, or is there for tests of other projects.
LEFT_OUT: Final = frozenset(("spec", "compat", "skills", "testing", "errors"))
EQUIVALENT: Final = "mutants-equivalent.toml"


class StaleEntry(Exception):
    """An entry of the list of equivalent mutants does not match the source."""


class UnknownPackage(Exception):
    """A package to take mutants of does not exist."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A project: a package below src/, and its tests."""

    root: Path

    @property
    def tests(self) -> Path:
        """The folder of the tests."""
        return self.root / "tests"

    @property
    def package(self) -> Path:
        """The folder of the package."""
        (folder,) = (each.parent for each in (self.root / "src").glob("*/__init__.py"))
        return folder

    def package_of(self, file: str) -> str:
        """Return the first name below the package: of a sub-package, or of a module."""
        first, *rest = Path(file).relative_to(self.package.relative_to(self.root)).parts
        return first if rest else Path(first).stem


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of one file."""

    file: str
    package: str
    source: str
    edit: Edit

    @property
    def text(self) -> str:
        """The whole file with the fault."""
        return self.edit.apply(self.source)

    @property
    def line(self) -> int:
        """The number of the line in which the edit begins."""
        return self.source.encode().count(b"\n", 0, self.edit.start) + 1

    def difference(self) -> list[str]:
        """Return the lines that change, with `-` or `+` in front."""
        lines = difflib.unified_diff(
            self.source.splitlines(), self.text.splitlines(), n=0, lineterm=""
        )
        return [line for line in lines if line[:1] in "-+" and line[:3] not in ("---", "+++")]

    def lines(self, sign: str) -> str:
        """Return the lines that go (`-`) or come (`+`), without their indentation."""
        changed = (line[1:].strip() for line in self.difference() if line[0] == sign)
        return "\n".join(changed)


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A mutant that no test can kill, with the reason."""

    file: str
    was: str
    now: str
    reason: str


def equivalents_of(tree: Tree) -> list[Equivalent]:
    """Read the list of equivalent mutants.

    Raises:
        StaleEntry: a file of the list, or the line in it, is gone.
    """
    path = tree.tests / EQUIVALENT
    if not path.is_file():
        return []
    document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    entries = [Equivalent(**entry) for entry in document.get("equivalent", [])]
    for entry in entries:
        file = tree.root / entry.file
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        lines = {line.strip() for line in text.splitlines()}
        if not entry.reason.strip() or not lines.issuperset(entry.was.split("\n")):
            raise StaleEntry(f"{path.name}: {entry.file}: {entry.was!r} is not in the source")
    return entries


def is_equivalent(mutant: Mutant, entries: Iterable[Equivalent]) -> bool:
    """Return True if the mutant is on the list."""
    return any(
        (entry.file, entry.was, entry.now)
        == (mutant.file, mutant.lines("-").strip(), mutant.lines("+").strip())
        for entry in entries
    )


def sources_of(tree: Tree, packages: Sequence[str] = ()) -> dict[str, str]:
    """Return the text of every file that is mutated, by its path from the root.

    packages: folders or modules below the package; none is all.

    Raises:
        UnknownPackage: one of them has no such file.
    """
    texts = {}
    found = set()
    for path in python_files(tree.package):
        file = path.relative_to(tree.root).as_posix()
        package = tree.package_of(file)
        text = path.read_text(encoding="utf-8")
        if path.name == "__init__.py" or package in LEFT_OUT or is_generated(text):
            continue
        below = path.relative_to(tree.package).with_suffix("").as_posix()
        matching = [each for each in packages if f"{below}/".startswith(f"{each}/")]
        found.update(matching)
        if matching or not packages:
            texts[file] = text
    for missing in {*packages} - found:
        raise UnknownPackage(f"{missing} has no source files: name a folder or a module")
    return texts


def draw(tree: Tree, count: int, seed: int, packages: Sequence[str] = ()) -> list[Mutant]:
    """Return `count` different mutants; fewer, if the source has fewer."""
    texts = sources_of(tree, packages)
    chance = random.Random(seed)
    left: dict[str, dict[str, list[Edit]]] = {}
    drawn: list[Mutant] = []
    while texts and len(drawn) < count:
        (file,) = chance.choices([*texts], [text.count("\n") + 1 for text in texts.values()])
        if file not in left:
            left[file] = _by_operator(edits_of(texts[file]))
        operators = left[file]
        if not operators:
            del texts[file]
            continue
        operator = chance.choice(sorted(operators))
        edit = operators[operator].pop(chance.randrange(len(operators[operator])))
        if not operators[operator]:
            del operators[operator]
        if is_valid(edit, texts[file]):
            drawn.append(Mutant(file, tree.package_of(file), texts[file], edit))
    return drawn


def _by_operator(edits: Iterable[Edit]) -> dict[str, list[Edit]]:
    groups: dict[str, list[Edit]] = defaultdict(list)
    for edit in edits:
        groups[edit.operator].append(edit)
    return dict(groups)

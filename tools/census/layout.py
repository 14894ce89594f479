"""Counts of folders, modules, lines, class names and public names.

Public names of a class are those without an underscore that `dir()` lists, that its `__slots__`
and annotations declare, and that its methods assign to `self`, inherited ones included. Stubs
(`.pyi`) are generated, and not counted.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.census.code import Code, code_of
from tools.source_files import is_generated, python_files

PACKAGE: Final = "trunkline"
CLASSES: Final = ("Server", "Client", "Context")
# More entries than this do not fit on a screen at a glance: the folder wants sub-packages.
MAX_ENTRIES: Final = 15
_NOT_SOURCE: Final = frozenset(("__pycache__",))
_IMPORT_TIMEOUT_S: Final = 60

# Its classes have the names of other libraries on purpose, so that code written for those runs.
_FOREIGN_NAMES: Final = "compat"

# Run by an interpreter of its own, so that two trees with the same package can be compared.
_LIST_NAMES: Final = """
import ast, importlib, inspect, json, sys, textwrap

def assigned(method):
    own = [argument.arg for argument in method.args.args[:1]]
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in own:
                yield node.attr

def attributes(kind):
    yield from dir(kind)
    for each in kind.__mro__[:-1]:
        yield from getattr(each, "__annotations__", ())
        slots = each.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(each)))
        except (OSError, TypeError):  # written in C
            continue
        for node in tree.body[0].body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from assigned(node)

sys.path.insert(0, sys.argv[1])
package = importlib.import_module(sys.argv[2])
print(json.dumps({
    name: sorted({each for each in attributes(getattr(package, name)) if each[0] != "_"})
    for name in sys.argv[3:]
}))
"""


@dataclass(frozen=True, slots=True)
class Census:
    """The counts of one tree."""

    entries: dict[str, int]
    modules: int
    written_lines: int
    generated_lines: int
    repeated_classes: dict[str, list[str]]
    public_names: dict[str, list[str]]
    code: Code

    @property
    def crowded(self) -> dict[str, int]:
        """The folders with more than `MAX_ENTRIES` entries, the fullest first."""
        over = [item for item in self.entries.items() if item[1] > MAX_ENTRIES]
        return dict(sorted(over, key=lambda item: (-item[1], item[0])))

    def rows(self) -> Iterator[tuple[str, int]]:
        """Yield the counts with their names, in the order of the table."""
        yield "folders", len(self.entries)
        yield "entries of the fullest folder", max(self.entries.values(), default=0)
        yield f"folders with more than {MAX_ENTRIES} entries", len(self.crowded)
        yield "modules", self.modules
        yield "lines, hand-written", self.written_lines
        yield "lines, generated", self.generated_lines
        yield "class names with more than one module", len(self.repeated_classes)
        for name, names in self.public_names.items():
            yield f"public names of {name}", len(names)
        yield from self.code.rows()


def census_of(source: Path, package: str = PACKAGE, classes: tuple[str, ...] = CLASSES) -> Census:
    """Count the package `package` in the folder `source`."""
    folder = source / package
    texts = {path: path.read_text(encoding="utf-8") for path in python_files(folder)}
    lines = {path: text.count("\n") for path, text in texts.items()}
    generated = {path for path, text in texts.items() if is_generated(text)}
    return Census(
        entries=entries_of(folder),
        modules=len(texts),
        written_lines=sum(lines[path] for path in texts if path not in generated),
        generated_lines=sum(lines[path] for path in generated),
        repeated_classes=repeated(
            {
                path.relative_to(folder).as_posix(): text
                for path, text in texts.items()
                if path.relative_to(folder).parts[0] != _FOREIGN_NAMES
            }
        ),
        public_names=public_names(source, package, classes) if classes else {},
        code=code_of(
            {path.relative_to(folder).as_posix(): text for path, text in texts.items()},
            frozenset(path.relative_to(folder).as_posix() for path in generated),
        ),
    )


def entries_of(folder: Path) -> dict[str, int]:
    """Return how many files and folders each folder shows, without stubs, by its path."""
    counts = {}
    for each in sorted((folder, *folder.rglob("*"))):
        if each.is_dir() and _NOT_SOURCE.isdisjoint(each.relative_to(folder).parts):
            inside = [
                entry
                for entry in each.iterdir()
                if entry.name not in _NOT_SOURCE and entry.suffix != ".pyi"
            ]
            if inside:
                counts[each.relative_to(folder.parent).as_posix()] = len(inside)
    return counts


def repeated(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return the class names that more than one module defines, with the modules."""
    homes: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(path)
    return {name: sorted(paths) for name, paths in sorted(homes.items()) if len(paths) > 1}


def public_names(source: Path, package: str, classes: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the public names of classes that the package exports."""
    command = [sys.executable, "-c", _LIST_NAMES, str(source), package, *classes]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=_IMPORT_TIMEOUT_S
    )
    names: dict[str, list[str]] = json.loads(done.stdout)
    return names

"""Counts that need the syntax tree of each module."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Final

# Code lines of a function, without its docstring and comments, that can be read in one look.
MAX_FUNCTION_LINES: Final = 60
# Modules of the package that one module may import.
MAX_IMPORTS: Final = 25

_OWN: Final = frozenset(("self", "cls", "mcs"))
# Public in spite of their names: of named tuples, `os` and `sys`; and what argparse has no public
# name for.
_PUBLIC: Final = frozenset(
    (
        *("_asdict", "_fields", "_make", "_replace", "_exit", "_getframe", "_xoptions"),
        *("_ArgumentGroup", "_ActionsContainer", "_SubParsersAction", "_MutuallyExclusiveGroup"),
        *("_HelpAction", "_actions", "_choices_actions", "_positionals"),
    )
)
_REFUSAL: Final = re.compile(r"\b(?:\w*[Rr]efus\w*)\(\s*[1-5]\d\d\b")


@dataclass(frozen=True, slots=True)
class Code:
    """What the syntax trees of a package show."""

    code_lines: int
    long_functions: list[str]
    wide_modules: dict[str, int]
    private_accesses: list[str]
    mutual_imports: list[str]
    literal_refusals: list[str]

    def rows(self) -> Iterator[tuple[str, int]]:
        """Yield the counts with their names, in the order of the table."""
        yield "code lines, hand-written", self.code_lines
        yield f"functions over {MAX_FUNCTION_LINES} lines", len(self.long_functions)
        yield f"modules that import more than {MAX_IMPORTS} others", len(self.wide_modules)
        yield "private attributes of other objects", len(self.private_accesses)
        yield "packages that import their parent and are imported by it", len(self.mutual_imports)
        yield "refusals with a literal status", len(self.literal_refusals)

    def details(self) -> Iterator[str]:
        """Yield a line for each of them."""
        wide = [f"{path}: {count}" for path, count in self.wide_modules.items()]
        for title, places in (
            (f"functions over {MAX_FUNCTION_LINES} lines", self.long_functions),
            (f"modules that import more than {MAX_IMPORTS} others", wide),
            ("private attributes of other objects", self.private_accesses),
            ("packages that import their parent and are imported by it", self.mutual_imports),
            ("refusals with a literal status", self.literal_refusals),
        ):
            if places:
                yield f"{title}:"
                yield from (f"  {place}" for place in places)


def code_of(texts: Mapping[str, str], generated: frozenset[str] = frozenset()) -> Code:
    """Count the modules of a package by their paths in it; generated ones are not looked into."""
    trees = {path: ast.parse(text) for path, text in texts.items()}
    written = {path: text for path, text in texts.items() if path not in generated}
    imports = {path: set(_imports(path, tree)) for path, tree in trees.items()}
    kept = {path: _code_lines(text, trees[path]) for path, text in written.items()}
    return Code(
        code_lines=sum(map(len, kept.values())),
        long_functions=[
            each for path in written for each in _long_functions(path, trees[path], kept[path])
        ],
        wide_modules={
            path: len({target for target, _ in imports[path]})
            for path in written
            if len({target for target, _ in imports[path]}) > MAX_IMPORTS
        },
        private_accesses=[each for path in written for each in _private(path, trees[path])],
        mutual_imports=_mutual(imports),
        literal_refusals=[
            f"{path}:{text.count(chr(10), 0, found.start()) + 1}"
            for path, text in written.items()
            for found in _REFUSAL.finditer(text)
        ],
    )


def _code_lines(text: str, tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that are neither blank, nor comment, nor docstring."""
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.strip()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            lines.discard(token.start[0])
    return lines


def _long_functions(path: str, tree: ast.Module, kept: set[int]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            count = len(kept.intersection(range(node.lineno, (node.end_lineno or 0) + 1)))
            if count > MAX_FUNCTION_LINES:
                yield f"{path}:{node.lineno} {node.name} {count}"


# -- private attributes ----------------------------------------------------------------------


def _private(path: str, tree: ast.Module) -> Iterator[str]:
    """Yield the accesses to private attributes that the module itself does not define."""
    own = set(_defined(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not _is_private(node.attr):
            continue
        base = node.value
        is_own = isinstance(base, ast.Name) and base.id in _OWN
        if not is_own and node.attr not in own:
            yield f"{path}:{node.lineno} {ast.unparse(node)}"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in _PUBLIC


def _defined(tree: ast.Module) -> Iterator[str]:
    """Yield the private names that classes and functions of a module define."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in _OWN:
                yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # one of `__slots__`


# -- imports ---------------------------------------------------------------------------------


def _imports(path: str, tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield the modules that a module imports, and whether it does so when it is loaded."""
    package = path.split("/")[:-1]
    at_top = {id(node) for node in _loaded(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            target = ".".join([*base, *([node.module] if node.module else [])])
            names = [target] if node.module else [f"{target}.{a.name}" for a in node.names]
            yield from ((name.strip("."), id(node) in at_top) for name in names)


def _loaded(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when a module is loaded."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _loaded(child)


def _mutual(imports: Mapping[str, set[tuple[str, bool]]]) -> list[str]:
    """Return the packages whose modules import those beside them, and are imported by those.

    The `__init__` of a package exports what is in it, and does not count.
    """
    modules = {path.removesuffix(".py").replace("/", "."): path for path in imports}
    down, up = set(), set()
    for path, targets in imports.items():
        importer = path.removesuffix(".py").split("/")
        if importer[-1] == "__init__":
            continue
        for target, is_loaded in targets:
            parts = target.split(".")
            if not is_loaded or target not in modules:
                continue
            parent, beside = importer[:-1], parts[:-1]
            if len(beside) > len(parent) and beside[: len(parent)] == parent and parent:
                down.add(".".join(beside[: len(parent) + 1]))
            elif len(beside) < len(parent) and parent[: len(beside)] == beside and beside:
                up.add(".".join(parent[: len(beside) + 1]))
    return sorted(down & up)

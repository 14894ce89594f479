"""Count turns of phrase that the style guide replaces by plain technical English.

The counters read docstrings and comments of the source and, in a row of its own, the prose of
README.md and docs/. Generated files, code blocks and text in backticks are left out. One more
counter reads the names of the tests.

    python -m tools.prose            print the counts
    python -m tools.prose --list     print file, line and text of each hit as well
    python -m tools.prose --check    exit 1 if the source is over a limit
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.source_files import ROOT, is_generated, python_files


@dataclass(frozen=True, slots=True)
class Passage:
    """A run of prose: one docstring, one block of comments or one page of the docs."""

    path: Path
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Habit:
    """A turn of phrase, with the most the source may have of it."""

    name: str
    pattern: re.Pattern[str]
    most: float
    per_1000_words: bool

    def measure(self, hits: int, words: int) -> float:
        """Return the figure that is held against `most`."""
        return 1000 * hits / words if self.per_1000_words and words else float(hits)


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where a habit shows."""

    habit: Habit
    path: Path
    line: int
    text: str


HABITS: Final = (
    Habit(
        "who/whoever/whom/somebody/nobody",
        re.compile(r"\b(?:who|whoever|whom|somebody|nobody)\b", re.IGNORECASE),
        most=1.5,
        per_1000_words=True,
    ),
    Habit(
        "Say whether/what/how/...",
        # The capital makes it the beginning of a sentence.
        re.compile(r"\bSay\s+(?:whether|if|what|which|how|who|whom|whose|when|where|why)\b"),
        most=10,
        per_1000_words=False,
    ),
    Habit(
        "is no/is none",
        # "No longer" is plain English, and "None" is a value.
        re.compile(r"\b[Ii]s\s+(?:none|no(?!\s+longer))\b"),
        most=1.0,
        per_1000_words=True,
    ),
)

# Names of tests that do not say which component does what.
# Of all tests, the part whose name may hide its subject: the pattern also hits a plain name.
MAX_OBLIQUE_PERCENT: Final = 1.0

_OBLIQUE: Final = re.compile(
    r"^test_(?:what|who|whoever|whom|it|nobody|somebody|anybody|that_which)_"
    r"|_(?:told|heard|tells|hears|is_no|are_no|nobody|somebody|whoever|whom|who|anew)(?:_|$)"
)

_WORD: Final = re.compile(r"[^\W\d_](?:[\w'-]*\w)?")
_IN_BACKTICKS: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_FENCED: Final = re.compile(r"^ *(```+|~~~+).*?^ *\1[`~]* *$", re.DOTALL | re.MULTILINE)
_HTML_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK_TARGET: Final = re.compile(r"(?<=\])\([^()\s]*\)")
_QUOTES: Final = re.compile(r"^[a-zA-Z]*(\"\"\"|'''|\"|')|(\"\"\"|'''|\"|')$")


# -- passages --------------------------------------------------------------------------------


def source_passages(path: Path, text: str) -> Iterator[Passage]:
    """Yield the docstrings and the blocks of comments of a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and is_text(node.value):
            raw = ast.get_source_segment(text, node) or ""
            yield Passage(path, node.lineno, without_code(without_examples(bare(raw))))
    yield from comment_blocks(path, text)


def is_text(node: ast.expr) -> bool:
    """Return True for a string constant; as a statement it is a docstring."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def bare(literal: str) -> str:
    """Return the inside of a string literal, line for line as it is written."""
    return _QUOTES.sub("", literal)


def comment_blocks(path: Path, text: str) -> Iterator[Passage]:
    """Yield comments; lines that hold nothing but a comment are joined to the one above."""
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        alone = token.line[: token.start[1]].strip() == ""
        if block and not (alone and line == last + 1):
            yield Passage(path, first, without_code("\n".join(block)))
            block = []
        if not block:
            first = line
        block.append(token.string.lstrip("#! "))
        last = line
    if block:
        yield Passage(path, first, without_code("\n".join(block)))


def page_passage(path: Path, text: str) -> Passage:
    """Return a page of the docs without its code, its comments and its link targets."""
    for pattern in (_FENCED, _HTML_COMMENT, _LINK_TARGET):
        text = blanked(pattern, text)
    return Passage(path, 1, without_code(text))


def without_examples(docstring: str) -> str:
    """Blank the paragraphs of a docstring that are indented as code."""
    lines = docstring.split("\n")
    margin = min((indent(line) for line in lines[1:] if line.strip()), default=0)
    in_code, after_blank = False, False
    for number, line in enumerate(lines[1:], 1):
        if line.strip():
            in_code = indent(line) >= margin + 4 and (in_code or after_blank)
            after_blank = False
        else:
            after_blank = True
        if in_code:
            lines[number] = ""
    return "\n".join(lines)


def indent(line: str) -> int:
    """Return how many blanks a line begins with."""
    return len(line) - len(line.lstrip())


def without_code(text: str) -> str:
    """Blank what stands in backticks."""
    return blanked(_IN_BACKTICKS, text)


def blanked(pattern: re.Pattern[str], text: str) -> str:
    """Replace every match by a comma and line breaks, so that lines keep their numbers.

    The comma keeps the words before and after the gap from being read as neighbours.
    """
    return pattern.sub(lambda match: "," + "\n" * match.group().count("\n"), text)


# -- counts ----------------------------------------------------------------------------------


def words_in(passages: Iterable[Passage]) -> int:
    """Return the number of words; numbers are not words."""
    return sum(len(_WORD.findall(passage.text)) for passage in passages)


def hits_in(passages: Iterable[Passage]) -> Iterator[Hit]:
    """Yield every place where a habit shows."""
    for passage in passages:
        for habit in HABITS:
            for match in habit.pattern.finditer(passage.text):
                line = passage.line + passage.text.count("\n", 0, match.start())
                yield Hit(habit, passage.path, line, " ".join(match.group().split()))


def measures(passages: list[Passage]) -> dict[str, float]:
    """Return the figure of each habit, by its name."""
    words = words_in(passages)
    hits = list(hits_in(passages))
    return {
        habit.name: habit.measure(sum(hit.habit is habit for hit in hits), words)
        for habit in HABITS
    }


def over_limit(figures: dict[str, float]) -> list[Habit]:
    """Return the habits of which there is more than the limit allows."""
    return [habit for habit in HABITS if figures[habit.name] > habit.most]


# -- names of tests --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamesOfTests:
    """How many tests there are, and those with an oblique name, as file:line: name."""

    total: int
    oblique: list[str]

    @property
    def percent(self) -> float:
        """The part of the tests with an oblique name."""
        return 100 * len(self.oblique) / self.total if self.total else 0.0


def is_oblique(name: str) -> bool:
    """Return True if the name of a test has a turn of phrase that hides its subject."""
    return _OBLIQUE.search(name) is not None


def names_of_tests(root: Path) -> NamesOfTests:
    """Return the names of every test function below tests/."""
    total, oblique = 0, []
    for path in python_files(root / "tests"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                total += 1
                if is_oblique(node.name):
                    oblique.append(f"{path.relative_to(root)}:{node.lineno}: {node.name}")
    return NamesOfTests(total, oblique)


# -- the tree --------------------------------------------------------------------------------


def source_of(root: Path) -> list[Passage]:
    """Return the docstrings and comments of every hand-written file under src/."""
    passages: list[Passage] = []
    for path in python_files(root / "src"):
        text = path.read_text(encoding="utf-8")
        if not is_generated(text):
            passages += source_passages(path.relative_to(root), text)
    return passages


def docs_of(root: Path) -> list[Passage]:
    """Return the pages of docs/ and README.md."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [
        page_passage(page.relative_to(root), page.read_text(encoding="utf-8"))
        for page in pages
        if page.is_file()
    ]


def table(rows: dict[str, list[Passage]]) -> Iterator[str]:
    """Yield the lines of the table: a row for each text, and the limits of the source."""
    heads = ["words"]
    for habit in HABITS:
        heads += [habit.name, "per 1000"] if habit.per_1000_words else [habit.name]
    widths = [max(8, len(head)) for head in heads]

    def line(name: str, cells: Iterable[str]) -> str:
        return f"{name:<12}" + "  ".join(
            f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)
        )

    yield line("", heads)
    for name, passages in rows.items():
        words, hits = words_in(passages), list(hits_in(passages))
        cells = [str(words)]
        for habit in HABITS:
            count = sum(hit.habit is habit for hit in hits)
            cells.append(str(count))
            if habit.per_1000_words:
                cells.append(f"{habit.measure(count, words):.2f}")
        yield line(name, cells)
    cells = [""]
    for habit in HABITS:
        cells += ["", f"{habit.most:.2f}"] if habit.per_1000_words else [f"{habit.most:g}"]
    yield line("limit of src", cells)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; with `--check`, return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is exceeded")
    parser.add_argument("--list", action="store_true", help="print each hit as file:line: text")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to read; default: this")
    options = parser.parse_args(arguments)
    rows = {"src": source_of(options.root), "docs": docs_of(options.root)}
    if options.list:
        for passages in rows.values():
            for hit in hits_in(passages):
                print(f"{hit.path}:{hit.line}: {hit.text}")
        print()
    names = names_of_tests(options.root)
    if options.list:
        print(*names.oblique, "", sep="\n")
    print(*table(rows), sep="\n")
    print(f"oblique test names: {len(names.oblique)} of {names.total}, {names.percent:.2f} %")
    over = over_limit(measures(rows["src"])) if options.check else []
    for habit in over:
        print(f"src is over its limit of {habit.most:g}: {habit.name}", file=sys.stderr)
    has_oblique = options.check and names.percent > MAX_OBLIQUE_PERCENT
    if has_oblique:
        text = f"more than {MAX_OBLIQUE_PERCENT:g} % of the names of tests are oblique: --list"
        print(text, file=sys.stderr)
    return 1 if over or has_oblique else 0


if __name__ == "__main__":
    sys.exit(main())

"""Count how far Trunkline covers the systems it sets out to supersede.

The rows live in `docs/parity.toml`. A row is *proven* when it names a test,
*later* when a coming part of the road brings it, and *missing* when neither
holds. This script only counts; `tests/tables/test_parity.py` checks that the
rows are complete and that the tests they name exist.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

PARITY: Final = Path(__file__).resolve().parent.parent / "docs" / "parity.toml"

# The letter an id starts with, and the system it stands for.
SYSTEMS: Final = {
    "E": "erlmcp protocol layer",
    "F": "message-format notes",
    "P": "Pierre",
    "S": "erlmcp spec parser",
    "C": "mcpp",
    "K": "contradictions",
}
WIDTH: Final = 9


class Standing(Enum):
    """Where a row stands."""

    PROVEN = "proven"
    LATER = "later"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Row:
    """One feature of one described system."""

    id: str
    says: str
    part: int
    tests: tuple[str, ...]

    @property
    def system(self) -> str:
        """The letter of the system this row belongs to."""
        return self.id.partition("-")[0]

    def standing(self, current_part: int) -> Standing:
        """Say whether this row is proven, comes later, or is missing."""
        if self.tests:
            return Standing.PROVEN
        return Standing.LATER if self.part > current_part else Standing.MISSING


def row_from(table: dict[str, Any]) -> Row:
    """Return the row that one inline table states; `test` may be one name or a list."""
    test = table.get("test", [])
    tests = (test,) if isinstance(test, str) else tuple(test)
    return Row(table["id"], table["says"], table["part"], tests)


def load(path: Path = PARITY) -> tuple[int, list[Row]]:
    """Return the number of the current part, and all rows in file order."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return document["current_part"], [row_from(table) for table in document["rows"]]


def line(name: str, standings: Iterable[Standing]) -> str:
    """Return one line of the table: a name and its four counts."""
    counts = Counter(standings)
    cells = [counts.total(), *(counts[standing] for standing in Standing)]
    return f"{name:<24}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def report(current_part: int, rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the report."""
    heads = ["rows", *(standing.value for standing in Standing)]
    yield f"Parity in part {current_part}"
    yield ""
    yield f"{'system':<24}" + "".join(f"{head:>{WIDTH}}" for head in heads)
    for letter, name in SYSTEMS.items():
        yield line(f"{letter}  {name}", standings_of(current_part, rows, letter))
    yield line("total", (row.standing(current_part) for row in rows))


def standings_of(current_part: int, rows: list[Row], letter: str) -> Iterator[Standing]:
    """Yield the standing of each row of one system."""
    return (row.standing(current_part) for row in rows if row.system == letter)


def missing(current_part: int, rows: list[Row]) -> Iterator[str]:
    """Yield a line for each row that has neither a test nor a later part."""
    for row in rows:
        if row.standing(current_part) is Standing.MISSING:
            yield f"  {row.id:<6} {row.says}"


def main(arguments: list[str] | None = None) -> int:
    """Print the report; return 1 if any row is missing, else 0."""
    parser = argparse.ArgumentParser(description="Count the rows of docs/parity.toml.")
    parser.add_argument("--missing", action="store_true", help="also list the missing rows")
    options = parser.parse_args(arguments)
    current_part, rows = load()
    lacking = list(missing(current_part, rows))
    print(*report(current_part, rows), sep="\n")
    if options.missing and lacking:
        print("", "Missing:", *lacking, sep="\n")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())

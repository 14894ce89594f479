"""Count how far Trunkline covers the systems it sets out to supersede.

The rows live in `docs/parity.toml`, those of repositories and jobs in
`docs/parity-repositories.toml`. A row is

* *proven* when it names a test that shows all of it,
* *in part* when `less` says what of the original is left out,
* *waiting* when it names in `needs` a missing capability from the head of the first file,
* *declined* when it has the reason,
* *missing* when none of that holds.

This script only counts; `tests/tables/test_parity.py` checks that the rows are complete and
that the tests they name exist.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
PARITY: Final = DOCS / "parity.toml"
# Rows alone: what they may wait for is at the head of the first file.
FILES: Final = (PARITY, DOCS / "parity-repositories.toml")

# What precedes the number of an id, and its system.
SYSTEMS: Final = {
    "E": "erlmcp protocol layer",
    "F": "message-format notes",
    "P": "Pierre",
    "S": "erlmcp spec parser",
    "C": "mcpp",
    "K": "contradictions",
    "X": "across systems",
    "R-EM": "erlmcp repository",
    "R-PI": "Pierre repository",
    "R-CP": "mcpp repository",
    "J": "jobs of users",
}
WIDTH: Final = 9
NAME_WIDTH: Final = 28


class Standing(Enum):
    """The state of a row."""

    PROVEN = "proven"
    IN_PART = "in part"
    WAITING = "waiting"
    DECLINED = "declined"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Row:
    """One feature of one described system."""

    id: str
    says: str
    needs: str | None
    tests: tuple[str, ...]
    less: str | None = None
    declined: str | None = None

    @property
    def system(self) -> str:
        """The letters of the system this row belongs to."""
        return self.id.rpartition("-")[0]

    def standing(self, needs: Mapping[str, str]) -> Standing:
        """Return the state of this row, given the capabilities a row may wait for."""
        if self.declined:
            return Standing.DECLINED
        if self.tests:
            return Standing.IN_PART if self.less else Standing.PROVEN
        return Standing.WAITING if self.needs in needs else Standing.MISSING


def row_from(table: dict[str, Any]) -> Row:
    """Return the row that one inline table states; `test` may be one name or a list."""
    test = table.get("test", [])
    tests = (test,) if isinstance(test, str) else tuple(test)
    return Row(
        table["id"],
        table["says"],
        table.get("needs"),
        tests,
        table.get("less"),
        table.get("declined"),
    )


def documents() -> list[dict[str, Any]]:
    """Return what the files hold; the first has `needs`, and each `rows`."""
    return [tomllib.loads(path.read_text(encoding="utf-8")) for path in FILES]


def load() -> tuple[dict[str, str], list[Row]]:
    """Return the missing capabilities with their meanings, and all rows in file order."""
    found = documents()
    return found[0]["needs"], [row_from(table) for each in found for table in each["rows"]]


def line(name: str, standings: Iterable[Standing]) -> str:
    """Return one line of the table: a name, the number of rows and the count of each standing."""
    counts = Counter(standings)
    cells = [counts.total(), *(counts[standing] for standing in Standing)]
    return f"{name:<{NAME_WIDTH}}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def report(needs: Mapping[str, str], rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the report: what rows wait for, then the standings per system."""
    yield from waiting(needs, rows)
    heads = ["rows", *(standing.value for standing in Standing)]
    yield f"{'system':<{NAME_WIDTH}}" + "".join(f"{head:>{WIDTH}}" for head in heads)
    for letters, name in SYSTEMS.items():
        yield line(
            f"{letters:<5}{name}", (row.standing(needs) for row in rows if row.system == letters)
        )
    yield line("total", (row.standing(needs) for row in rows))


def waiting(needs: Mapping[str, str], rows: list[Row]) -> Iterator[str]:
    """Yield a line for each missing capability: how many rows need it, and its meaning.

    A row of which only a part waits counts too.
    """
    counts = Counter(row.needs for row in rows if row.needs is not None)
    if counts:
        yield f"{'needs':<{NAME_WIDTH}}{'rows':>{WIDTH}}"
        for need, meaning in needs.items():
            yield f"{need:<{NAME_WIDTH}}{counts[need]:>{WIDTH}}  {meaning}"
        yield ""


def missing(needs: Mapping[str, str], rows: list[Row]) -> Iterator[str]:
    """Yield a line for each row without a test, a known need or a reason."""
    for row in rows:
        if row.standing(needs) is Standing.MISSING:
            yield f"  {row.id:<8} {row.says}"


def left_out(rows: list[Row]) -> Iterator[str]:
    """Yield a line for each row that is there in part or declined: what is left out."""
    for row in rows:
        if row.less or row.declined:
            yield f"  {row.id:<8} {row.less or row.declined}"


def main(arguments: list[str] | None = None) -> int:
    """Print the report; return 1 if any row is missing, else 0."""
    parser = argparse.ArgumentParser(description="Count the rows of docs/parity*.toml.")
    parser.add_argument("--missing", action="store_true", help="also list the missing rows")
    parser.add_argument("--less", action="store_true", help="also list what is left out, and why")
    options = parser.parse_args(arguments)
    needs, rows = load()
    lacking = list(missing(needs, rows))
    print(*report(needs, rows), sep="\n")
    if options.less:
        print("", "Left out:", *left_out(rows), sep="\n")
    if options.missing and lacking:
        print("", "Missing:", *lacking, sep="\n")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())

"""Print the requirements of the specification, and the means by which a breach can be shown.

The rows live in `src/trunkline/spec/mcp/requirements.py`. Requirements in the columns `unit`
and `none` cannot be tested from outside, so their number belongs in the table.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from trunkline.spec.requirements import ACTORS, JUDGES, LEVELS, Requirement, requirements
from trunkline.spec.revisions import REVISIONS, Window

NAME_WIDTH: Final = 22
WIDTH: Final = 14


def line(name: str, cells: Iterable[object]) -> str:
    """Return one line of a table: a name and its cells, right-aligned."""
    return f"{name:<{NAME_WIDTH}}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def counts(name: str, rows: Sequence[Requirement]) -> str:
    """Return the line that counts `rows` by judge."""
    by_judge = Counter(row.judge for row in rows)
    return line(name, [*(by_judge[judge] for judge in JUDGES), len(rows)])


def tables(rows: Sequence[Requirement]) -> Iterator[str]:
    """Yield the counts by level, by actor and by revision."""
    statements = len({row.ref for row in rows})
    yield f"{len(rows)} requirements in {statements} statements"
    seen = sum(row.also_trace for row in rows)
    yield f"{seen} of those for a probe also show in a recording that holds the occasion"
    yield ""
    yield line("level", [*JUDGES, "total"])
    for level in LEVELS:
        yield counts(level, [row for row in rows if row.level == level])
    yield counts("total", rows)
    yield ""
    yield line("actor", [*JUDGES, "total"])
    for actor in ACTORS:
        yield counts(actor, [row for row in rows if row.actor == actor])
    yield ""
    yield line("revision", [*JUDGES, "total"])
    for revision in REVISIONS:
        yield counts(revision, [row for row in rows if row.when.holds(revision)])


def span(window: Window) -> str:
    """Return a window in words."""
    held = [revision for revision in REVISIONS if window.holds(revision)]
    if len(held) == len(REVISIONS):
        return "every revision"
    return held[0] if len(held) == 1 else f"{held[0]} to {held[-1]}"


def full(rows: Iterable[Requirement]) -> Iterator[str]:
    """Yield every row: what it says, and below it how it is judged and where it is asked for."""
    for row in rows:
        judge = f"{row.judge} + trace" if row.also_trace else row.judge
        yield ""
        yield f"{row.ref:<7} {row.id}"
        yield f"        {row.level}, {row.actor}: {row.says}"
        yield f"        {judge} | {span(row.when)} | {row.anchor}"
        if row.extension or row.same_as:
            extras = [f"extension {row.extension}"] * bool(row.extension)
            extras += [f"same as {row.same_as}"] * bool(row.same_as)
            yield f"        {', '.join(extras)}"
        if row.why:
            yield f"        why: {row.why}"


def main(arguments: list[str] | None = None) -> int:
    """Print the counts, and with --all the rows; return 0."""
    parser = argparse.ArgumentParser(description="Count the requirements by how they are judged.")
    parser.add_argument("--all", action="store_true", help="also list every requirement")
    options = parser.parse_args(arguments)
    rows = requirements()
    print(*tables(rows), sep="\n")
    if options.all:
        print(*full(rows), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

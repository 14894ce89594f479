"""The command: print the table, and what is over a limit."""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools import census as package
from tools.census.layout import MAX_ENTRIES, Census, census_of
from tools.source_files import ROOT


def census_at(ref: str) -> Census:
    """Count the tree of a commit."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", ref, "src"]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        return census_of(Path(folder) / "src")


def table(columns: dict[str, Census]) -> Iterator[str]:
    """Yield the lines of the table, with one column for each tree."""
    names = {name for census in columns.values() for name, _ in census.rows()}
    width = max(map(len, names))
    heads = "".join(f"  {head[:12]:>12}" for head in columns)
    yield f"{'':<{width}}{heads}"
    for rows in zip(*(census.rows() for census in columns.values()), strict=True):
        cells = "".join(f"  {count:>12}" for _, count in rows)
        yield f"{rows[0][0]:<{width}}{cells}"


def details(census: Census) -> Iterator[str]:
    """Yield a line for each crowded folder and each class name with more than one module."""
    if census.crowded:
        yield f"folders with more than {MAX_ENTRIES} entries:"
        for folder, count in census.crowded.items():
            yield f"  {count:>3}  {folder}"
    if census.repeated_classes:
        yield "class names with more than one module:"
        for name, paths in census.repeated_classes.items():
            yield f"  {name}: {', '.join(paths)}"
    yield from census.code.details()


def main(arguments: list[str] | None = None) -> int:
    """Print the table and the details of this tree."""
    parser = argparse.ArgumentParser(description=(package.__doc__ or "").split("\n")[0])
    parser.add_argument("--against", metavar="REF", help="a commit to compare this tree with")
    options = parser.parse_args(arguments)
    here = census_of(ROOT / "src")
    columns = {options.against: census_at(options.against)} if options.against else {}
    print(*table({**columns, "this tree": here}), sep="\n")
    print("", *details(here), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

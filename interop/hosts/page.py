"""The table of hosts: in columns for a terminal, in Markdown for docs/interop.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..matrix.page import PAGE
from .facts import Facts
from .model import SCRIPT
from .scene import PROJECT, TRANSPORTS

__all__ = ["BEGIN", "END", "PAGE", "Outcome", "columns", "markdown", "write"]

BEGIN: Final = "<!-- hosts: written by `make interop-hosts WRITE=1`, from here -->"
END: Final = "<!-- hosts: to here -->"
PLAIN, QUESTION, PROGRESS, FAILURE = (step.tool for step in SCRIPT)
HEADS: Final = (
    "Host",
    "Version",
    "stdio",
    "HTTP",
    "Project file",
    "Declares",
    "Tool",
    "Question",
    "Progress",
    "Failing tool",
    "Findings about the host",
)


class Outcome(NamedTuple):
    """What is known of a host over one transport."""

    facts: Facts
    # Rules that the host has broken.
    rules: Sequence[str] = ()
    # Why no tool was called, if that is known beforehand.
    without_model: str = ""
    failure: str = ""


class Row(NamedTuple):
    """A host, its version, and its outcomes by way; or why it did not run."""

    title: str
    version: str
    outcomes: Mapping[str, Outcome]
    # When the host reads the file of a project.
    project: str = ""
    missing: str = ""


def columns(rows: Sequence[Row]) -> str:
    """Return the table for a terminal."""
    cells = [HEADS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def markdown(rows: Sequence[Row]) -> str:
    """Return the table for the page."""
    cells = [HEADS, ("---",) * len(HEADS), *map(_cells, rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def write(rows: Sequence[Row]) -> None:
    """Replace what is between the marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{markdown(rows)}\n\n{END}{after}", encoding="utf-8")


def _cells(row: Row) -> tuple[str, ...]:
    if row.missing:
        return (row.title, row.version, row.missing, *("" for _ in HEADS[3:]))
    spoken = [_revision(row.outcomes.get(transport)) for transport in TRANSPORTS]
    project = row.outcomes.get(PROJECT)
    read = "FAIL" if project and project.failure else row.project or "none"
    without = {outcome.without_model for outcome in row.outcomes.values()} - {""}
    calls = (
        [f"not called: {without.pop()}", "", "", ""]
        if without
        else [_both(row, cell) for cell in (_plain, _question, _progress, _failing)]
    )
    declared = _both(row, lambda outcome: outcome.facts.declared)
    found = _both(row, lambda outcome: ", ".join(outcome.rules) or "none")
    return (row.title, row.version, *spoken, read, declared, *calls, found)


def _both(row: Row, cell: object) -> str:
    """Return what a cell says over both transports: once, if it is the same."""
    assert callable(cell)
    said = {
        transport: str(cell(row.outcomes[transport]))
        for transport in TRANSPORTS
        if transport in row.outcomes
    }
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{transport}: {text}" for transport, text in said.items())


def _revision(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    return f"FAIL {outcome.facts.revision}".strip() if outcome.failure else outcome.facts.revision


def _plain(outcome: Outcome) -> str:
    return outcome.facts.calls.get(PLAIN, "not called")


def _question(outcome: Outcome) -> str:
    said, ended = outcome.facts.asked, outcome.facts.calls.get(QUESTION, "not called")
    return said if ended == "ok" else f"{said}, {ended}".removeprefix(", ")


def _progress(outcome: Outcome) -> str:
    if PROGRESS not in outcome.facts.calls:
        return "not called"
    return f"{outcome.facts.progress} reports" if outcome.facts.wants_progress else "not asked for"


def _failing(outcome: Outcome) -> str:
    return outcome.facts.calls.get(FAILURE, "not called")

"""The table of servers and verbs: in columns for a terminal, in Markdown for docs/interop.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..matrix.page import PAGE
from .servers import SERVERS, Server
from .verbs import VERBS

__all__ = ["BEGIN", "END", "Results", "columns", "mark", "markdown", "reasons", "write"]

BEGIN: Final = "<!-- the command: written by `make interop-full`, from here -->"
END: Final = "<!-- the command: to here -->"
# By server and name of a verb: an empty text, or what failed.
Results = Mapping[tuple[Server, str], str]


def reasons() -> dict[str, str]:
    """Return the number of each reason why a verb has nothing to do, in the order of the table."""
    found = (verb.reason(server) for server in SERVERS for verb in VERBS)
    return {why: str(number) for number, why in enumerate(dict.fromkeys(filter(None, found)), 1)}


def mark(server: Server, name: str, results: Results) -> str:
    """Return what stands in a cell."""
    if results.get((server, name), ""):
        return "FAIL"
    verb = next(each for each in VERBS if each.name == name)
    if why := verb.reason(server):
        return f"n/a {reasons()[why]}"
    return "ok" if (server, name) in results else "-"


def _rows(results: Results) -> list[list[str]]:
    heads = ["Server", "From", "Built on", "Over", "Revision", *(verb.name for verb in VERBS)]
    rows = [
        [
            *(server.name, server.registry, server.library, server.transport, server.revision),
            *(mark(server, verb.name, results) for verb in VERBS),
        ]
        for server in SERVERS
        if any(each == server for each, _ in results)
    ]
    return [heads, *rows]


def columns(results: Results) -> str:
    """Return the table for a terminal."""
    rows = [[row[0], row[3], *row[5:]] for row in _rows(results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    notes = [f"n/a {number}: {why}" for why, number in reasons().items()]
    return "\n".join([*lines, "", *notes])


def markdown(results: Results) -> str:
    """Return the table for the page."""
    heads, *rows = _rows(results)
    lines = [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]
    notes = [f"- n/a {number}: {why}." for why, number in reasons().items()]
    return "\n".join([*lines, "", *notes])


def write(results: Results) -> None:
    """Replace what is between the marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    text = f"{before}{BEGIN}\n\n{markdown(results)}\n\n{END}{after}"
    PAGE.write_text(text, encoding="utf-8")

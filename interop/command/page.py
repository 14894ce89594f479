"""The table of servers and verbs: in columns for a terminal, in Markdown for docs/interop.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..matrix.page import PAGE
from .project import CLIENTS, ERAS
from .servers import SERVERS, Server
from .verbs import VERBS

__all__ = ["BEGIN", "END", "PAGE", "columns", "mark", "reasons", "write"]

BEGIN: Final = "<!-- the command: written by `make interop-full`, from here -->"
END: Final = "<!-- the command: to here -->"
# By server and name of a verb: an empty text, or what failed.
Results = Mapping[tuple[Server, str], str]
# By client and era, of the project that `init` writes.
ProjectResults = Mapping[tuple[str, str], str]


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


def markdown(results: Results, project: ProjectResults) -> str:
    """Return the tables for the page."""
    heads, *rows = _rows(results)
    notes = [f"- n/a {number}: {why}." for why, number in reasons().items()]
    clients = [
        [client, *("FAIL" if project[client, era] else "ok" for era in ERAS)] for client in CLIENTS
    ]
    return "\n".join(
        [
            *_lines([heads, *rows]),
            *("", *notes, "", "### A project of init", ""),
            *_lines([["Client", *ERAS], *clients]),
        ]
    )


def _lines(rows: list[list[str]]) -> list[str]:
    heads, *body = rows
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *body)]


def write(results: Results, project: ProjectResults) -> None:
    """Replace what is between the marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    text = f"{before}{BEGIN}\n\n{markdown(results, project)}\n\n{END}{after}"
    PAGE.write_text(text, encoding="utf-8")

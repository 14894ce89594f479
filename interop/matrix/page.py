"""The tables of the matrix, in Markdown, between two marks of docs/interop.md."""

from __future__ import annotations

from typing import Final

from .cell import ERAS, NO_API, SERVER_LACKS, TRANSPORTS, Cell, Result, cells, reason
from .pins import ROOT
from .servers import SERVERS

__all__ = ["BEGIN", "END", "PAGE", "text", "write"]

PAGE: Final = ROOT / "docs" / "interop.md"
BEGIN: Final = "<!-- written by `make interop-full`, from here -->"
END: Final = "<!-- to here -->"


def write(results: list[Result]) -> None:
    """Replace what is between the marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(
        f"{before}{BEGIN}\n\n{text(results, cells())}\n\n{END}{after}", encoding="utf-8"
    )


def text(results: list[Result], chosen: list[Cell]) -> str:
    """Return the tables: a number of steps per cell, and what the clients lack."""
    reasons: dict[str, str] = {}
    by_cell = {result.cell: result for result in results}
    clients = list(dict.fromkeys(cell.client for cell in chosen))
    parts: list[str] = []
    for server in SERVERS:
        if not any(result.cell.server == server for result in results):
            continue
        heads = [f"{transport}, {era}" for transport in TRANSPORTS for era in ERAS]
        lines = [f"### Server: {server.name} {server.version}", "", _row("Client", *heads)]
        lines.append(_row("---", *("---:" for _ in heads)))
        for client in clients:
            marks = [
                _mark(Cell(client, server, transport, era), by_cell, reasons)
                for transport in TRANSPORTS
                for era in ERAS
            ]
            lines.append(_row(client.title, *marks))
        parts.append("\n".join(lines))
    if reasons:
        noted = [f"- n/a {mark}: {why}." for why, mark in reasons.items()]
        parts.append("\n".join(noted))
    parts.append(_clients(results))
    parts.append(_differences(results))
    return "\n\n".join(part for part in parts if part)


def _mark(cell: Cell, by_cell: dict[Cell, Result], reasons: dict[str, str]) -> str:
    why = reason(cell)
    if why:
        return f"n/a {reasons.setdefault(why, str(len(reasons) + 1))}"
    result = by_cell.get(cell)
    if result is None:
        return ""
    if result.failed:
        return f"FAIL {len(result.passed)}"
    return str(len(result.passed)) + ("*" if result.differ else "")


def _clients(results: list[Result]) -> str:
    heads = ("Client", "Built on", "Revisions spoken", "Steps without an API", "Notes")
    lines = ["### Clients", "", _row(*heads), _row(*("---" for _ in heads))]
    for client in dict.fromkeys(result.cell.client for result in results):
        own = [result for result in results if result.cell.client == client]
        spoken = sorted({result.revision for result in own if result.revision})
        lacking: dict[str, list[str]] = {}
        for result in own:
            for step, why in result.lacking.items():
                steps = lacking.setdefault(why, [])
                if step not in steps:
                    steps.append(step)
        lacking.pop(SERVER_LACKS, None)
        notes = [f"{why}: {', '.join(steps)}" for why, steps in lacking.items() if why != NO_API]
        if client.reads_one_page:
            notes.append("reads the first page of a list only")
        if client.reconnects:
            notes.append("connects for each request")
        without = ", ".join(lacking.get(NO_API, ()))
        lines.append(
            _row(client.title, client.library, ", ".join(spoken), without, "; ".join(notes))
        )
    return "\n".join(lines)


def _differences(results: list[Result]) -> str:
    """Return each known difference once, with the cells that show it."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for result in results:
        for step, why in result.differ.items():
            key = (step, why.partition(" [")[0], result.cell.server.name)
            found.setdefault(key, set()).add(result.cell.client.title)
    if not found:
        return ""
    lines = ["### Known differences (*)", "", _row("Step", "Server", "Clients", "Why")]
    lines.append(_row("---", "---", "---", "---"))
    for (step, why, server), clients in found.items():
        lines.append(_row(step, server, ", ".join(sorted(clients)), why))
    return "\n".join(lines)


def _row(*values: str) -> str:
    return f"| {' | '.join(values)} |"

"""The tables of docs/interop.md are those of the matrix: each row, column and version."""

from __future__ import annotations

import re

import pytest

from interop.matrix.cell import ERAS, TRANSPORTS, Cell, reason
from interop.matrix.clients import CLIENTS
from interop.matrix.differences import difference
from interop.matrix.page import BEGIN, END, PAGE
from interop.matrix.run import LEAST
from interop.matrix.servers import SERVERS, Server


def tables() -> str:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    written, _, _ = rest.partition(END)
    return written


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_every_cell_has_its_steps_or_a_reason(server: Server) -> None:
    _, heading, rest = tables().partition(f"### Server: {server.name} {server.version}\n")
    assert heading, "another version is pinned: make interop-full"
    table, _, _ = rest.partition("\n###")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    found = {title: marks for title, *marks in rows[2:]}
    assert list(found) == [client.title for client in CLIENTS]
    for client in CLIENTS:
        cells = [Cell(client, server, transport, era) for transport in TRANSPORTS for era in ERAS]
        for cell, mark in zip(cells, found[client.title], strict=True):
            if reason(cell):
                assert re.fullmatch(r"n/a \d", mark), cell.name
            elif difference(client.title, server.name, "connect", cell.transport, cell.era):
                assert mark == "0*"
            else:
                assert int(mark.removesuffix("*")) >= LEAST, cell.name


def test_every_reason_is_on_the_page() -> None:
    cells = (
        Cell(client, server, transport, era)
        for client in CLIENTS
        for server in SERVERS
        for transport in TRANSPORTS
        for era in ERAS
    )
    for why in {reason(cell) for cell in cells} - {""}:
        assert f": {why}." in tables()

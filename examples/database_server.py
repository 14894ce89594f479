"""A server of a SQLite database: its tables as resources, queries, and one kind of change.

    DATABASE=shop.db trunkline serve examples/database_server.py

A model may write any query, so queries have a connection that can only read, a limit of rows, and
an end when the call is cancelled. What it may change is a tool of its own, with typed arguments.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from trunkline import Context, Server, ToolError
from trunkline.mcp import ToolAnnotations

MAX_ROWS = 100
# SQLite looks whether it should go on after so many of its instructions.
INSTRUCTIONS = 10_000

Value = str | int | float | None

TABLES = """
CREATE TABLE IF NOT EXISTS goods (name TEXT PRIMARY KEY, price INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL REFERENCES goods, count INTEGER NOT NULL
);
INSERT OR IGNORE INTO goods VALUES ('pen', 2), ('lamp', 30), ('desk', 200);
"""


class Rows(Struct):
    """What a query found; `more` if there are more rows than are returned."""

    columns: list[str]
    rows: list[list[Value]]
    more: bool = False


class Database:
    """A database file, opened for each call: handlers run on several threads."""

    def __init__(self, path: Path) -> None:
        self._uri = path.expanduser().resolve().as_uri()

    def read(self) -> closing[sqlite3.Connection]:
        """Open the file for queries; a change is an error of SQLite."""
        return closing(sqlite3.connect(f"{self._uri}?mode=ro", uri=True))

    def write(self) -> closing[sqlite3.Connection]:
        """Open the file for changes, which wait up to 5 s for those of others."""
        connection = sqlite3.connect(self._uri, uri=True)
        connection.execute("PRAGMA foreign_keys = ON")
        return closing(connection)


@asynccontextmanager
async def lifespan(app: Server) -> AsyncGenerator[Database, None]:
    """Open the database when the server starts; handlers have it as `ctx.state`."""
    database = Database(Path(os.environ.get("DATABASE", "shop.db")))
    with database.write() as connection:
        connection.executescript(TABLES)
    yield database


app = Server("shop", version="1.0.0", lifespan=lifespan)


@app.tool(annotations=ToolAnnotations(read_only_hint=True))
def query(ctx: Context[Database], sql: str, values: list[Value] | None = None) -> Rows:
    """Run a query, with `?` for each of the values; at most 100 rows are returned."""
    with ctx.state.read() as connection:
        connection.set_progress_handler(lambda: ctx.cancelled, INSTRUCTIONS)
        try:
            found = connection.execute(sql, values or [])
            rows = [list(row) for row in found.fetchmany(MAX_ROWS + 1)]
        except sqlite3.Error as error:
            raise ToolError(f"SQLite: {error}") from error
        columns = [column[0] for column in found.description or ()]
    return Rows(columns, rows[:MAX_ROWS], len(rows) > MAX_ROWS)


@app.tool(annotations=ToolAnnotations(destructive_hint=False))
def order(ctx: Context[Database], name: str, count: Annotated[int, Meta(ge=1, le=99)] = 1) -> int:
    """Order goods by their name, and return the number of the order."""
    with ctx.state.write() as connection, connection:
        try:
            made = connection.execute(
                "INSERT INTO orders (name, count) VALUES (?, ?)", (name, count)
            )
        except sqlite3.IntegrityError:
            raise ToolError(f"There are no goods named {name}.") from None
    ctx.info(f"order of {count} {name}")
    ctx.app.notify_resource_updated("table://orders")
    assert made.lastrowid is not None
    return made.lastrowid


@app.resource("table://{name}", mime_type="application/json")
def table(ctx: Context[Database], name: str) -> dict[str, object] | None:
    """The columns of a table, and how many rows it has."""
    with ctx.state.read() as connection:
        columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", (name,))
        found = dict(columns.fetchall())
        if not found:
            return None
        # A name that SQLite knows as a table; quotes in it are doubled.
        quoted = name.replace('"', '""')
        (count,) = connection.execute(f'SELECT count(*) FROM "{quoted}"').fetchone()
    return {"columns": found, "rows": count}


@app.completion(resource="table://{name}", argument="name")
def tables(ctx: Context[Database], typed: str) -> list[str]:
    """The names of tables that begin with what was typed."""
    with ctx.state.read() as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return [name for (name,) in found if name.startswith(typed)]


if __name__ == "__main__":
    app.run()

"""A SQLite database: queries, changes in transactions, its schema as resources."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from trunkline import AssistantMessage, Context, Server, ToolError, UserMessage
from trunkline.mcp import ToolAnnotations


class Rows(Struct):
    """What a query found."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool = False


class Database:
    """The database of one server, opened again for each statement: handlers run on threads."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, statement: str, values: list[Any], most: int = 100) -> tuple[Rows, int]:
        """Run one statement in a transaction, and return its rows and how many it changed."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            found = connection.execute(statement, values)
            rows = [list(row) for row in found.fetchmany(most + 1)]
            columns = [column[0] for column in found.description or ()]
            return Rows(columns, rows[:most], len(rows) > most), found.rowcount


def make(folder: Path) -> Server:
    """Return a server of a database in `folder`."""

    @asynccontextmanager
    async def lifespan(app: Server) -> AsyncGenerator[Database, None]:
        database = Database(folder / "shop.db")
        database.run("CREATE TABLE IF NOT EXISTS goods (name TEXT UNIQUE, price INTEGER)", [])
        yield database

    app = Server("database", version="1.0.0", lifespan=lifespan)

    @app.tool(annotations=ToolAnnotations(read_only_hint=True))
    def query(
        ctx: Context[Database], sql: str, values: list[str | float | None] | None = None
    ) -> Rows:
        """Run a SELECT statement, with `?` for each of the values."""
        if not sql.lstrip().upper().startswith("SELECT"):
            raise ToolError("Only SELECT statements are queries; use execute for others.")
        try:
            return ctx.state.run(sql, values or [])[0]
        except sqlite3.Error as error:
            raise ToolError(str(error)) from error

    @app.tool(annotations=ToolAnnotations(destructive_hint=True))
    def execute(
        ctx: Context[Database], sql: str, values: list[str | float | None] | None = None
    ) -> int:
        """Run a statement that changes something, and return how many rows it changed."""
        try:
            _, changed = ctx.state.run(sql, values or [])
        except sqlite3.Error as error:
            raise ToolError(str(error)) from error
        ctx.log("info", f"{changed} rows changed")
        return changed

    @app.tool
    def insert_goods(ctx: Context[Database], goods: dict[str, int]) -> int:
        """Insert goods with their prices."""
        for number, (name, price) in enumerate(goods.items(), 1):
            ctx.state.run("INSERT INTO goods VALUES (?, ?)", [name, price])
            ctx.progress(number, len(goods), name)
        return len(goods)

    @app.resource("schema://tables", mime_type="application/json")
    def tables(ctx: Context[Database]) -> list[str]:
        """The names of all tables."""
        found, _ = ctx.state.run("SELECT name FROM sqlite_master WHERE type = 'table'", [])
        return [row[0] for row in found.rows]

    @app.resource("schema://tables/{name}", mime_type="application/sql")
    def table(ctx: Context[Database], name: str) -> str | None:
        """The statement that made a table."""
        found, _ = ctx.state.run("SELECT sql FROM sqlite_master WHERE name = ?", [name])
        return found.rows[0][0] if found.rows else None

    @app.prompt
    def report(table: str, rows: int = 10) -> list[UserMessage | AssistantMessage]:
        """Ask for a report about a table."""
        return [
            UserMessage(f"Write a report about the first {rows} rows of {table}."),
            AssistantMessage("I look at the columns first."),
        ]

    return app


if __name__ == "__main__":
    with TemporaryDirectory() as here:
        make(Path(here)).run()

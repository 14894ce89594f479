"""Sticky notes: each is a resource that is added, changed and removed while the server runs."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from trunkline import Context, Server, ToolError
from trunkline.mcp import ResourceLink


class Board:
    """The notes of one server; its methods are the tools."""

    def __init__(self, app: Server) -> None:
        self.app = app
        self.notes: dict[str, str] = {}
        self.numbers = count(1)

    async def add_note(self, text: str) -> ResourceLink:
        """Put up a note, and return a link to it."""
        uri = f"note://board/{next(self.numbers)}"
        self.notes[uri] = text
        self.app.resource(uri, name=uri.rpartition("/")[2], mime_type="text/plain", inline=True)(
            lambda: self.notes[uri]
        )
        return ResourceLink(name=uri.rpartition("/")[2], uri=uri, mime_type="text/plain")

    async def change_note(self, uri: str, text: str) -> str:
        """Write another text on a note."""
        if uri not in self.notes:
            raise ToolError(f"There is no note {uri}.")
        self.notes[uri] = text
        self.app.notify_resource_updated(uri)
        return "changed"

    async def remove_note(self, uri: str) -> str:
        """Take a note down."""
        if self.notes.pop(uri, None) is None:
            raise ToolError(f"There is no note {uri}.")
        self.app.remove_resource(uri)
        return "removed"

    async def clear_board(self, ctx: Context) -> str:
        """Take all notes down, after a question."""
        if not self.notes:
            return "There are no notes."
        answer = await ctx.elicit(f"Remove all {len(self.notes)} notes?", bool, key="clear")
        if not answer or not answer.content:
            return "The notes stay."
        for uri in list(self.notes):
            await self.remove_note(uri)
        return "All notes are gone."


def make(folder: Path) -> Server:
    """Return a server with an empty board; notes are kept in memory."""
    app = Server("notes", version="1.0.0", capabilities={"prompts": False})
    board = Board(app)
    for method in (board.add_note, board.change_note, board.remove_note, board.clear_board):
        app.add_tool(method)
    return app


if __name__ == "__main__":
    make(Path()).run()

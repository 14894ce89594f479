"""A server of the files below one folder: list, search, read and write them.

    FILES_FOLDER=~/notes trunkline serve examples/files_server.py

Nothing outside of the folder is read or written, by `..`, an absolute path or a symbolic link.
The user is asked before a file is replaced.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from trunkline import Context, File, Server, ToolError
from trunkline.mcp import ToolAnnotations

MAX_FILE_BYTES = 1_000_000
MAX_MATCHES = 100


class Entry(Struct):
    """A file, by its path below the folder."""

    path: str
    size: int


class Match(Struct):
    """A line of a file that has the text."""

    path: str
    line: int
    text: str


def make(folder: Path) -> Server:
    """Return a server of the files below `folder`."""
    root = folder.expanduser().resolve()
    app = Server("files", version="1.0.0", instructions="Paths are relative to one folder.")

    def below(path: str) -> Path:
        """Return the place of a path, after all links in it."""
        found = (root / path).resolve()
        if not found.is_relative_to(root):
            raise ToolError(f"{path} is outside of the folder.")
        return found

    def files(pattern: str) -> list[Path]:
        found = (each for each in root.rglob(pattern) if each.is_file())
        return sorted(each for each in found if each.resolve().is_relative_to(root))

    def text_of(place: Path) -> str:
        if not place.is_file():
            raise ToolError(f"There is no file {place.relative_to(root).as_posix()}.")
        if place.stat().st_size > MAX_FILE_BYTES:
            raise ToolError(f"The file has more than {MAX_FILE_BYTES} bytes.")
        try:
            return place.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ToolError("That is not a text file.") from None

    @app.tool(annotations=ToolAnnotations(read_only_hint=True))
    def list_files(pattern: str = "*") -> list[Entry]:
        """List the files in all folders whose name fits a pattern such as `*.md`."""
        return [
            Entry(each.relative_to(root).as_posix(), each.stat().st_size) for each in files(pattern)
        ]

    @app.tool(annotations=ToolAnnotations(read_only_hint=True))
    def search(ctx: Context, text: str, pattern: str = "*") -> list[Match]:
        """Find the lines that have a text, in any case; at most 100."""
        found: list[Match] = []
        places = files(pattern)
        for number, place in enumerate(places, 1):
            if ctx.cancelled or len(found) == MAX_MATCHES:
                break
            ctx.progress(number, len(places), place.name)
            try:
                lines = text_of(place).splitlines()
            except ToolError:
                continue  # not a text, or too large
            path = place.relative_to(root).as_posix()
            matching = [
                Match(path, at, line.strip())
                for at, line in enumerate(lines, 1)
                if text.lower() in line.lower()
            ]
            found += matching[: MAX_MATCHES - len(found)]
        return found

    @app.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read_file(path: str) -> str:
        """Read a text file."""
        return text_of(below(path))

    @app.tool(annotations=ToolAnnotations(destructive_hint=True))
    async def write_file(ctx: Context, path: str, text: str) -> str:
        """Write a text file. The user is asked before a file is replaced."""
        place = below(path)
        # Code before a question runs again in 2026-07-28, so nothing is written before it.
        if place.exists():
            if not ctx.client.supports("elicitation"):
                raise ToolError(f"{path} exists, and this client cannot ask whether to replace it.")
            answer = await ctx.elicit(f"Replace {path}?", bool)
            if not answer or not answer.content:
                return f"{path} was not changed."
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return f"Wrote {len(text)} characters to {path}."

    @app.resource("file:///{+path}", title="Any file below the folder")
    def file(path: str) -> File | None:
        """The content of a file, as text or bytes."""
        found = (root / path).resolve()
        return File(path=found) if found.is_relative_to(root) and found.is_file() else None

    @app.completion(resource="file:///{+path}", argument="path")
    def paths(typed: str) -> list[str]:
        found = (each.relative_to(root).as_posix() for each in files("*"))
        return [each for each in found if each.startswith(typed)]

    return app


app = make(Path(os.environ.get("FILES_FOLDER", ".")))

if __name__ == "__main__":
    app.run()

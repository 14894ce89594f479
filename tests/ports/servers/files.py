"""Files below one folder: list, read, write, search and move them, and nothing outside of it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

from msgspec import Meta, Struct

from trunkline import File, Server, ToolError
from trunkline.server import ErrorMap


class Entry(Struct):
    """A file or a folder."""

    name: str
    kind: Literal["file", "folder"]
    size: int = 0


def make(folder: Path) -> Server:
    """Return a server of the files below `folder`."""
    app = Server("files", version="1.0.0", instructions="Paths are relative to one folder.")
    app.middleware(
        ErrorMap(
            {
                FileNotFoundError: lambda error: ToolError("There is no such file."),
                IsADirectoryError: lambda error: ToolError("That is a folder."),
                UnicodeDecodeError: lambda error: ToolError("That is not a text file."),
            }
        )
    )
    root = folder.resolve()

    def below(path: Path) -> Path:
        found = (root / path).resolve()
        if not found.is_relative_to(root):
            raise ToolError(f"{path} is outside of the folder.")
        return found

    @app.tool
    def list_files(path: Path = Path()) -> list[Entry]:
        """List a folder."""
        found = sorted(below(path).iterdir())
        return [
            Entry(each.name, "folder")
            if each.is_dir()
            else Entry(each.name, "file", each.stat().st_size)
            for each in found
        ]

    @app.tool
    def read_file(
        path: Path, head: Annotated[int | None, Meta(description="lines to read, or all")] = None
    ) -> str:
        """Read a text file, or its first lines."""
        lines = below(path).read_text(encoding="utf-8").splitlines(keepends=True)
        return "".join(lines[:head])

    @app.tool
    def write_file(path: Path, text: str) -> str:
        """Write a text file; folders on the way are created."""
        target = below(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return f"wrote {len(text)} characters to {target.relative_to(root).as_posix()}"

    @app.tool
    def move_file(source: Path, to: Path) -> str:
        """Move or rename a file."""
        if below(to).exists():
            raise ToolError(f"{to} exists already.")
        below(source).rename(below(to))
        return f"{source.as_posix()} is {to.as_posix()} now"

    @app.tool
    def search_files(pattern: str) -> list[PurePosixPath]:
        """Find files by a pattern such as `*.md`, in all folders."""
        found = (each for each in root.rglob(pattern) if each.is_file())
        return sorted(PurePosixPath(each.relative_to(root)) for each in found)

    @app.resource("file:///{+path}", title="Any file")
    def file(path: str) -> File | None:
        """The content of a file, as text or bytes."""
        found = (root / path).resolve()
        return File(path=found) if found.is_relative_to(root) and found.is_file() else None

    @app.completion(resource="file:///{+path}", argument="path")
    def paths(typed: str) -> list[str]:
        return [path.as_posix() for path in search_files("*") if path.as_posix().startswith(typed)]

    return app


if __name__ == "__main__":
    with TemporaryDirectory() as here:
        make(Path(here)).run()

"""A version history in plain files, with the tools that servers for git have."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, TypedDict

import msgspec
from msgspec import Meta, Struct

from trunkline import Context, RequestError, Server, ToolError

Name = Annotated[str, Meta(pattern="^[a-z][a-z0-9-]*$", max_length=40)]


class Commit(Struct):
    """One version of all files."""

    id: str
    message: str
    parent: str | None
    files: dict[str, str]


class Status(TypedDict):
    """How the working files differ from the last commit."""

    branch: str
    added: list[str]
    changed: list[str]
    removed: list[str]


class Repository:
    """Commits and branches, each a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.commits, self.branches = folder / "commits", folder / "branches"
        self.commits.mkdir(exist_ok=True)
        self.branches.mkdir(exist_ok=True)
        self.branch = "main"
        self.working: dict[str, str] = {}

    def head(self) -> Commit | None:
        """Return the last commit of the branch."""
        tip = self.branches / self.branch
        return self.load(tip.read_text()) if tip.exists() else None

    def load(self, id: str) -> Commit:
        """Return a commit."""
        path = self.commits / f"{id}.json"
        if not id.isalnum() or not path.exists():
            raise ToolError(f"There is no commit {id!r}.")
        return msgspec.json.decode(path.read_bytes(), type=Commit)

    def files(self, branch: str = "") -> dict[str, str]:
        """Return the files of the last commit of a branch."""
        tip = self.branches / (branch or self.branch)
        return self.load(tip.read_text()).files if tip.exists() else {}


def make(folder: Path) -> Server:
    """Return a server of a repository in `folder`."""
    app = Server("repository", version="1.0.0")
    repository = Repository(folder)

    @app.tool
    def edit(path: str, text: str | None = None) -> None:
        """Change a working file, or remove it if there is no text."""
        if text is None:
            repository.working.pop(path, None)
        else:
            repository.working[path] = text

    @app.tool
    def status() -> Status:
        """Compare the working files with the last commit."""
        old, new = repository.files(), repository.working
        return {
            "branch": repository.branch,
            "added": sorted(new.keys() - old),
            "changed": sorted(path for path in old.keys() & new if old[path] != new[path]),
            "removed": sorted(old.keys() - new),
        }

    @app.tool
    async def commit(ctx: Context, message: Annotated[str, Meta(min_length=1)]) -> Commit:
        """Keep the working files as a commit."""
        parent = repository.head()
        if parent is not None and parent.files == repository.working:
            raise ToolError("Nothing has changed.")
        made = Commit("", message, parent.id if parent else None, dict(repository.working))
        made.id = hashlib.sha256(msgspec.json.encode(made)).hexdigest()[:12]
        (repository.commits / f"{made.id}.json").write_bytes(msgspec.json.encode(made))
        (repository.branches / repository.branch).write_text(made.id)
        await ctx.info(f"{repository.branch} is at {made.id}")
        return made

    @app.tool
    def log(count: Annotated[int, Meta(ge=1)] = 10) -> list[str]:
        """List the messages of commits, newest first."""
        found: list[str] = []
        commit = repository.head()
        while commit is not None and len(found) < count:
            found.append(commit.message)
            commit = repository.load(commit.parent) if commit.parent else None
        return found

    @app.tool
    def diff() -> str:
        """Show what was changed since the last commit."""
        old, new = repository.files(), repository.working
        lines: list[str] = []
        for path in sorted(old.keys() | new):
            sides = old.get(path, "").splitlines(), new.get(path, "").splitlines()
            lines += difflib.unified_diff(*sides, f"a/{path}", f"b/{path}", lineterm="")
        return "\n".join(lines)

    @app.tool
    def checkout(branch: Name, create: bool = False) -> str:
        """Change to a branch; its files become the working files."""
        tip, head = repository.branches / branch, repository.head()
        if create and head is not None:
            tip.write_text(head.id)
        elif not tip.exists():
            raise ToolError(f"There is no branch {branch!r}.")
        repository.branch = branch
        repository.working = dict(repository.load(tip.read_text()).files)
        return f"on {branch}"

    @app.resource("history://{branch}/{+path}")
    def file(branch: str, path: str) -> str:
        """A file as the last commit of a branch has it."""
        files = repository.files(branch)
        if path not in files:
            raise RequestError("RESOURCE_NOT_FOUND", f"{branch} has no {path}")
        return files[path]

    @app.completion(resource="history://{branch}/{+path}", argument="branch")
    def branches(typed: str) -> list[str]:
        names = sorted(each.name for each in repository.branches.iterdir())
        return [name for name in names if name.startswith(typed)]

    return app


if __name__ == "__main__":
    with TemporaryDirectory() as here:
        make(Path(here)).run()

"""The verb `init`: writes a new server project, with tests that pass.

A question is asked only at a terminal: for a folder, and for a name if that of the folder cannot
be one. `--yes` takes what would be proposed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import visible
from ...redaction import show
from ..command import UsageError, check_text, declare_options
from ..exit_codes import SUCCESS
from ..output.reports import emit
from ..output.terminal import bold, dim, is_terminal, table, tell

if TYPE_CHECKING:
    from ..init.project import Project

__all__ = ["EXAMPLES", "configure", "run"]

EXAMPLES: Final = """\
trunkline init weather
trunkline init . --name weather-station --title "Weather station"
trunkline init . --keep
"""
_OPTION_TABLE: Final = """\
--name NAME   name of the project; default: that of the folder
--title TEXT  name for people; default: made from NAME
--keep        in a folder with files: create only the files that are missing
--yes         ask nothing: without FOLDER use the current folder, and the proposed name if that of
              the folder cannot be one
"""
_MAX_OBSTACLES_SHOWN: Final = 5


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="folder of the project; created if missing"
    )
    declare_options(parser, _OPTION_TABLE)


def run(options: argparse.Namespace) -> int:
    """Write the project and return the exit status."""
    # Imported here: help does not need it.
    from ..init.project import create, obstacles, render

    for name, text in (("FOLDER", options.folder), ("NAME", options.name), ("TEXT", options.title)):
        check_text(text or "", name)
    is_asking = not options.yes and is_terminal(sys.stdin) and is_terminal(sys.stderr)
    shown = _folder(options, is_asking)
    folder = Path(shown).expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{show(shown)} is a file; name a folder")
    project = _project(options, folder, is_asking)
    contents = render(project)
    found = obstacles(folder, contents)
    if found and not options.keep:
        raise UsageError(
            f"{_folder_shown(shown)} is not empty: it has {_some(found)}; name another folder, or "
            "add --keep to create only the files that are missing"
        )
    written, kept = create(folder, contents)
    emit(_report(shown, project, written, kept))
    return SUCCESS


# Folder and name


def _folder(options: argparse.Namespace, is_asking: bool) -> str:
    if options.folder is not None:
        if not options.folder:
            raise UsageError("the name of the folder is empty; write . for the current folder")
        return str(options.folder)
    if options.yes:
        return "."
    if not is_asking:
        raise UsageError("name a folder for the project, or . for the current folder")
    return _ask("Folder of the new project", ".")


def _project(options: argparse.Namespace, folder: Path, is_asking: bool) -> Project:
    from ..init.project import MAX_TITLE, Project, name_problem, propose_name, title_of

    name = folder.resolve().name if options.name is None else str(options.name)
    while problem := name_problem(name):
        proposal = propose_name(name)
        if options.name is None and options.yes:
            name = proposal
        elif is_asking:
            tell(f"{show(name)} cannot be the name: {problem}")
            name = _ask("Name of the project", proposal)
        else:
            raise UsageError(
                f"{show(name)} cannot be the name of a project: {problem}; try --name {proposal}"
            )
    title = title_of(name) if options.title is None else str(options.title).strip()
    if not title or not title.isprintable() or len(title) > MAX_TITLE:
        raise UsageError(
            f"{show(title)} cannot be the title: it has 1 to {MAX_TITLE} characters, on one line"
        )
    return Project(name, title)


def _ask(question: str, proposal: str) -> str:
    """Return what is typed, or the proposal.

    Raises:
        UsageError: the input was closed.
    """
    print(f"{question} [{proposal}]: ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        print(file=sys.stderr)
        raise UsageError("nothing was created: the input was closed")
    return line.strip() or proposal


# Output


def _some(names: list[str]) -> str:
    shown = ", ".join(map(visible, names[:_MAX_OBSTACLES_SHOWN]))
    more = len(names) - _MAX_OBSTACLES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _folder_shown(folder: str) -> str:
    return "the current folder" if Path(folder) == Path(".") else visible(folder)


def _report(folder: str, project: Project, written: list[str], kept: list[str]) -> str:
    from shlex import quote

    from ..init.project import purposes

    meanings = purposes(project)
    parts = []
    if written:
        head = bold(f"Created {project.name} in {_folder_shown(folder)}")
        rows = [(path, dim(meanings[path])) for path in written]
        parts.append(f"{head}\n{table(rows, indent=2)}")
    if kept:
        parts.append(f"{bold('Kept as they are')}\n" + "\n".join(f"  {path}" for path in kept))
    here = Path(folder) == Path(".")
    commands = [
        *([] if here else [f"cd {quote(_operand(visible(folder)))}"]),
        'python -m pip install -e ".[dev]"',
        "python -m pytest",
        f"trunkline call {project.module}.py greet name=Ada",
    ]
    parts.append("\n".join([bold("Next"), *(f"  {each}" for each in commands)]))
    return "\n\n".join(parts)


def _operand(folder: str) -> str:
    """Return the path of a folder that no command takes for an option."""
    return f"./{folder}" if folder.startswith("-") else folder

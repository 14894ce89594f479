"""The files of a new server project: its names, its templates, and writing them.

Templates are the files of this folder that end in `.in`; `@NAME@` and the like are replaced.

The rules that live here, and only here:

* The name of a project is a name of PEP 508 without dots, as hosts take it too, and gives an
  importable module that hides no other: `weather-station` is `weather_station.py`.
* A file that exists is never written: files are opened with O_EXCL.
* A project is written whole or not at all: after an error, files and folders made by this run are
  removed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path
from typing import Final, NamedTuple
from unicodedata import normalize

from ... import __version__
from .. import __name__ as _package

__all__ = [
    "MAX_TITLE",
    "Project",
    "create",
    "name_problem",
    "obstacles",
    "propose_name",
    "purposes",
    "render",
    "title_of",
]

# Each file of a project: its path, its template and what it is for.
FILES: Final = (
    ("@MODULE@.py", "server.py.in", "the server"),
    ("tests/test_@MODULE@.py", "test_server.py.in", "its tests, in both eras"),
    ("pyproject.toml", "pyproject.toml.in", "name and dependencies"),
    ("README.md", "README.md.in", "how to run and test it"),
    (".gitignore", "gitignore.in", "what git leaves out"),
    (".github/workflows/test.yml", "workflow.yml.in", "runs the tests on each push"),
)
# Characters: the import of the longest module still fits on a line.
MAX_NAME: Final = 48
MAX_TITLE: Final = 100
_FALLBACK_NAME: Final = "my-server"
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?")
_VARIABLE: Final = re.compile(r"@([A-Z_]+)@")
# Modules that the project imports, or that its own folders would hide.
_TAKEN: Final = {"trunkline", "msgspec", "pytest", "test", "tests", "conftest", "setup"}


class Project(NamedTuple):
    """What the templates are filled in with."""

    # As in pyproject.toml and `Server(name)`.
    name: str
    # For people.
    title: str

    @property
    def module(self) -> str:
        """The name of the module."""
        return module_of(self.name)


def module_of(name: str) -> str:
    """Return the module of a project: `weather_station` for "Weather-Station"."""
    return name.replace("-", "_").lower()


def title_of(name: str) -> str:
    """Return a title for a project: "Weather station" for "weather-station"."""
    words = re.sub(r"[-_]+", " ", name)
    return words[:1].upper() + words[1:]


def name_problem(name: str) -> str:
    """Return why a text cannot be the name of a project, or an empty text if it can."""
    if _NAME.fullmatch(name) is None:
        return "a name has ASCII letters, digits, and - or _ between them"
    if len(name) > MAX_NAME:
        return f"a name has at most {MAX_NAME} characters"
    module = module_of(name)
    if not module.isidentifier() or iskeyword(module):
        return f"{module} cannot be the name of a Python module"
    if module in sys.stdlib_module_names or module in _TAKEN:
        return f"{module}.py would hide the module {module}"
    return ""


def propose_name(text: str) -> str:
    """Return a valid name that is close to a text."""
    plain = normalize("NFKD", text.casefold()).encode("ascii", "ignore").decode()
    name = re.sub(r"[-_]*[^a-z0-9_-]+[-_]*", "-", plain).strip("-_")
    name = name[: MAX_NAME - len("server-")].rstrip("-_")
    for proposal in (name, f"{name}-server", f"server-{name}"):
        if not name_problem(proposal):
            return proposal
    return _FALLBACK_NAME


def render(project: Project) -> dict[str, str]:
    """Return the files of a project by their path."""
    values = {
        "NAME": project.name,
        "MODULE": project.module,
        "TITLE": project.title,
        "TITLE_LITERAL": _python_literal(project.title),
        "DESCRIPTION_LITERAL": _toml_literal(project.title),
        "TRUNKLINE_VERSION": __version__,
    }
    folder = files(f"{_package}.init")
    return {
        _filled(path, values): _filled(folder.joinpath(template).read_text("utf-8"), values)
        for path, template, _ in FILES
    }


def purposes(project: Project) -> dict[str, str]:
    """Return what each file of a project is for, by its path."""
    return {_filled(path, {"MODULE": project.module}): purpose for path, _, purpose in FILES}


def _filled(template: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: values[found[1]], template)


def _python_literal(text: str) -> str:
    """Return a printable text as a string literal, with the quotes that formatters choose."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    escaped = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"


def _toml_literal(text: str) -> str:
    """Return a printable text as a basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# Writing


def obstacles(folder: Path, paths: Iterable[str]) -> list[str]:
    """Return what a folder has that a new project must not be mixed with.

    Hidden entries, such as `.git` and `.venv`, are not in the way unless the project has them too.
    """
    if not folder.is_dir():
        return []
    found = {each.name for each in folder.iterdir() if not each.name.startswith(".")}
    return sorted(found | {path for path in paths if _exists(folder / path)})


def create(folder: Path, contents: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Write the files that do not exist; return the paths written, and those kept.

    Raises:
        OSError: a file cannot be written; nothing of this run is left.
    """
    written: list[str] = []
    kept: list[str] = []
    with _undone_on_error() as made:
        for path, text in contents.items():
            target = folder / path
            _make_folders(target.parent, made)
            if _exists(target):
                kept.append(path)
                continue
            with target.open("x", encoding="utf-8", newline="\n") as file:
                made.append(target)
                file.write(text)
            written.append(path)
    return written, kept


def _exists(path: Path) -> bool:
    # A link that points nowhere exists as well.
    return path.exists() or path.is_symlink()


def _make_folders(folder: Path, made: list[Path]) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
        made.append(each)


@contextmanager
def _undone_on_error() -> Iterator[list[Path]]:
    made: list[Path] = []
    try:
        yield made
    except BaseException:  # Ctrl-C too
        for path in reversed(made):
            try:
                path.rmdir() if path.is_dir() else path.unlink()
            except OSError:
                pass  # changed by another program meanwhile
        raise

"""The configuration files of a host: where they are here, and the entries in them.

A file that is missing is empty. A file that cannot be read as its format is an error: no entry
of it is guessed, and nothing writes to it.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import re
import stat
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from ..redaction import redact
from .entries import EntryProblem, ServerEntry, read_entries, servers_of
from .errors import HostConfigError, TextEditError
from .table import Format, Host, Location

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_PROJECT_BYTES",
    "HostFile",
    "decode_text",
    "load_document",
    "load_files",
    "locate",
    "parse_text",
    "read_file",
]

# Claude Code keeps its history in the file of its servers: some MB are usual.
MAX_FILE_BYTES: Final = 64 << 20
# A file of the current folder may be a stranger's, and is read for a mistyped target too.
MAX_PROJECT_BYTES: Final = 1 << 20
# The innermost one: a default may have a variable of its own.
_VARIABLE: Final = re.compile(r"\$\{([A-Z_]+):-([^{}]*)\}")


class HostFile(Struct, frozen=True):
    """One configuration file of a host, read: its entries, or what is wrong with it."""

    host: Host
    location: Location
    path: str
    is_there: bool
    entries: tuple[ServerEntry, ...] = ()
    problems: tuple[EntryProblem, ...] = ()
    # Why the file as a whole cannot be read; "" if it can.
    error: str = ""

    def __repr__(self) -> str:
        return f"HostFile({redact(self.path)!r}, entries={redact(list(self.entries))!r})"


def locate(
    location: Location,
    *,
    environ: Mapping[str, str] | None = None,
    platform: str | None = None,
    project: str | None = None,
) -> str | None:
    """Return the path of a location on this machine; None if the platform has no such file."""
    values = os.environ if environ is None else environ
    system = _platform(platform)
    template = location.paths.get(system)
    if template is None:
        return None
    join, is_absolute = posixpath.join, posixpath.isabs
    normal: Callable[[str], str] = posixpath.normpath
    if system == "win32":
        join, is_absolute, normal = ntpath.join, ntpath.isabs, ntpath.normpath
    if location.scope == "project":
        return join(os.getcwd() if project is None else project, *template.split("/"))
    home = _home(values, system)

    def value(found: re.Match[str]) -> str:
        told = values.get(found[1], "")
        # A relative path would depend on the current folder: as if it were not set, which is
        # what the XDG specification asks for.
        return told if is_absolute(told) else found[2]

    filled = _VARIABLE.sub(value, template)
    if filled.startswith("${"):
        filled = _VARIABLE.sub(value, filled)
    if filled == "~" or filled.startswith("~/"):
        filled = home + filled[1:]
    return normal(filled)


def _platform(platform: str | None) -> str:
    found = sys.platform if platform is None else platform
    return found if found in ("darwin", "win32") else "linux"


def _home(environ: Mapping[str, str], platform: str) -> str:
    if environ is os.environ:
        return os.path.expanduser("~")
    name = "USERPROFILE" if platform == "win32" else "HOME"
    return environ.get(name) or os.path.expanduser("~")


def read_file(path: str, *, most: int = MAX_FILE_BYTES, takes_pipes: bool = False) -> bytes | None:
    """Return what is in a file of at most `most` bytes; None if there is none.

    A project may have a link to a terminal or a pipe in the place of its file: reading that would
    wait forever. `takes_pipes` is for a path that the user has given.

    Raises:
        HostConfigError: it cannot be read, is not a file, or is too large.
    """
    try:
        kind = os.stat(path).st_mode
        is_file = stat.S_ISREG(kind) or (takes_pipes and stat.S_ISFIFO(kind))
        if not is_file and not stat.S_ISDIR(kind):
            raise HostConfigError("not a regular file", file=path)
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except OSError as error:
        raise HostConfigError(error.strerror or str(error), file=path) from None
    except ValueError:  # a null character
        raise HostConfigError("not the name of a file", file=path) from None
    if len(data) > most:
        raise HostConfigError(f"larger than {most >> 20} MiB", file=path)
    return data


def decode_text(data: bytes, path: str) -> str:
    """Return the text of a file; a byte order mark stays.

    Raises:
        HostConfigError: it is not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise HostConfigError(f"not UTF-8, at byte {error.start}", file=path) from None


def parse_text(text: str, kind: Format, path: str) -> Any:
    """Return the document in a text; an empty text is an empty document.

    Raises:
        HostConfigError: it is not in the format.
    """
    if not text.removeprefix("\ufeff").strip():
        return {}
    if kind == "yaml":
        return _parse_yaml(text, path)
    if kind == "toml":
        # Imported here: one host has TOML.
        import tomllib

        try:
            return tomllib.loads(text.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            raise HostConfigError(f"not TOML: {error}", file=path) from None
    from .jsonc import JsoncError, loads

    try:
        return loads(text)
    except JsoncError as error:
        raise HostConfigError(f"not JSON: {error}", file=path) from None


def _parse_yaml(text: str, path: str) -> Any:
    try:
        # Imported here: two hosts have YAML, and its reader is an extra.
        from .yaml_text import loads
    except TextEditError as error:
        raise HostConfigError(str(error), file=path) from None
    try:
        return loads(text)
    except TextEditError as error:
        raise HostConfigError(f"not YAML: {error}", file=path) from None


def load_document(path: str, kind: Format, *, most: int = MAX_FILE_BYTES) -> Any:
    """Return the document in a file of at most `most` bytes; empty if the file is missing.

    Raises:
        HostConfigError: it cannot be read.
    """
    data = read_file(path, most=most)
    return {} if data is None else parse_text(decode_text(data, path), kind, path)


def load_files(
    host: Host,
    *,
    environ: Mapping[str, str] | None = None,
    platform: str | None = None,
    project: str | None = None,
) -> list[HostFile]:
    """Return every file of a host, from the strongest scope to the weakest, with its entries.

    What is wrong with a file or an entry is in the result: one bad file does not hide the rest.
    Scopes that have the same place of the same file are one, the weakest of them: in the home
    folder the file of the project is that of the user.
    """
    found: list[HostFile] = []
    folder = os.getcwd() if project is None else project
    places: dict[tuple[str, tuple[str, ...]], tuple[Location, str]] = {}
    for location in host.locations:
        path = locate(location, environ=environ, platform=platform, project=folder)
        if path is not None:
            place = (os.path.realpath(path), location.keys)
            places.pop(place, None)
            places[place] = (location, path)
    for location, path in places.values():
        is_there = os.path.lexists(path)
        most = MAX_PROJECT_BYTES if location.scope == "project" else MAX_FILE_BYTES
        try:
            document = load_document(path, host.format, most=most)
            servers = servers_of(document, location, file=path, project=folder, host=host)
        except HostConfigError as error:
            found.append(HostFile(host, location, path, is_there, error=error.problem))
            continue
        entries, problems = read_entries(servers, host, scope=location.scope, file=path)
        found.append(HostFile(host, location, path, is_there, tuple(entries), tuple(problems)))
    return found

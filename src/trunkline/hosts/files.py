"""The configuration files of a host: where they are here, and the entries in them.

A file that is missing is empty. A file that cannot be read as its format is an error: no entry
of it is guessed, and nothing writes to it.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from msgspec import Struct

from ..redaction import redact
from .entries import EntryProblem, ServerEntry, read_entries, servers_of
from .errors import HostConfigError
from .table import ANY_FILE, Format, Host, Location, find_host

__all__ = [
    "MAX_FILE_BYTES",
    "HostFile",
    "decode_text",
    "load_config",
    "load_document",
    "load_entry",
    "load_files",
    "load_host",
    "locate",
    "parse_text",
    "read_config",
    "read_file",
]

# Claude Code keeps its history in the file of its servers: some MB are usual.
MAX_FILE_BYTES: Final = 64 << 20
_VARIABLE: Final = re.compile(r"\$\{([A-Z_]+):-([^}]*)\}")


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
    host: Host,
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


def read_file(path: str) -> bytes | None:
    """Return what is in a file; None if there is none.

    Raises:
        HostConfigError: it cannot be read, or is too large.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except OSError as error:
        raise HostConfigError(error.strerror or str(error), file=path) from None
    if len(data) > MAX_FILE_BYTES:
        raise HostConfigError(f"larger than {MAX_FILE_BYTES >> 20} MiB", file=path)
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


def load_document(path: str, kind: Format) -> Any:
    """Return the document in a file; empty if the file is missing.

    Raises:
        HostConfigError: it cannot be read.
    """
    data = read_file(path)
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
    """
    found: list[HostFile] = []
    folder = os.getcwd() if project is None else project
    for location in host.locations:
        path = locate(host, location, environ=environ, platform=platform, project=folder)
        if path is None:
            continue
        is_there = os.path.lexists(path)
        try:
            document = load_document(path, host.format)
            servers = servers_of(document, location, file=path, project=folder)
        except HostConfigError as error:
            found.append(HostFile(host, location, path, is_there, error=error.problem))
            continue
        entries, problems = read_entries(servers, host, scope=location.scope, file=path)
        found.append(HostFile(host, location, path, is_there, tuple(entries), tuple(problems)))
    return found


def load_host(
    name: str,
    *,
    environ: Mapping[str, str] | None = None,
    platform: str | None = None,
    project: str | None = None,
) -> dict[str, ServerEntry]:
    """Return the entries of a host by name, as it sees them: a stronger scope hides a weaker.

    Raises:
        UnknownHost: there is no such host.
        HostConfigError: a file cannot be read, or an entry in it has a wrong type.
    """
    host = find_host(name)
    found: dict[str, ServerEntry] = {}
    for file in load_files(host, environ=environ, platform=platform, project=project):
        if file.error:
            raise HostConfigError(file.error, file=file.path)
        for problem in file.problems:
            raise HostConfigError(problem.problem, file=file.path, entry=problem.name)
        for entry in file.entries:
            found.setdefault(entry.name, entry)
    return found


def load_entry(
    name: str,
    entry: str,
    *,
    environ: Mapping[str, str] | None = None,
    platform: str | None = None,
    project: str | None = None,
) -> ServerEntry:
    """Return one entry of a host; problems of the others do not matter.

    Raises:
        UnknownHost: there is no such host.
        HostConfigError: there is no such entry, or it cannot be used; the text has the files
            that were read and the names that they have.
    """
    host = find_host(name)
    files = load_files(host, environ=environ, platform=platform, project=project)
    for file in files:
        for problem in file.problems:
            if problem.name == entry:
                raise HostConfigError(problem.problem, file=file.path, entry=entry)
        for each in file.entries:
            if each.name == entry:
                return each
        if file.error:
            raise HostConfigError(file.error, file=file.path)
    _missing(
        entry,
        {each.name for file in files for each in file.entries},
        f"{host.title} ({', '.join(file.path for file in files)})",
    )


def load_config(path: str, entry: str | None = None) -> dict[str, ServerEntry]:
    """Return the entries of a file in the format of any host, by name; with `entry`, that alone.

    The servers are in `mcpServers`, `servers`, `context_servers` or, in a file whose name ends
    in `.toml`, `mcp_servers`.

    Raises:
        HostConfigError: the file is missing or cannot be read, has no servers, or the entry is
            missing or has a wrong type.
    """
    data = read_file(path)
    if data is None:
        raise HostConfigError("no such file", file=path)
    kind: Format = "toml" if path.endswith(".toml") else "jsonc"
    document = parse_text(decode_text(data, path), kind, path)
    return read_config(document, entry, file=path)


def read_config(
    document: Any, entry: str | None = None, *, file: str = ""
) -> dict[str, ServerEntry]:
    """Return the entries of a document in the format of any host; see `load_config`.

    Raises:
        HostConfigError: as `load_config`.
    """
    if not isinstance(document, dict):
        servers_of(document, ANY_FILE.locations[0], file=file)  # raises
    location = next((each for each in ANY_FILE.locations if each.keys[0] in document), None)
    if location is None:
        names = ", ".join(each.keys[0] for each in ANY_FILE.locations)
        raise HostConfigError(f"has no servers: none of {names} is there", file=file)
    servers = servers_of(document, location, file=file)
    if entry is not None:
        if entry not in servers:
            _missing(entry, set(servers), file or "the configuration")
        servers = {entry: servers[entry]}
    entries, problems = read_entries(servers, ANY_FILE, file=file)
    for problem in problems:
        raise HostConfigError(problem.problem, file=file, entry=problem.name)
    return {each.name: each for each in entries}


def _missing(entry: str, names: set[str], where: str) -> NoReturn:
    from difflib import get_close_matches

    near = get_close_matches(entry, names, n=1)
    if near:
        advice = f"did you mean {near[0]!r}?"
    elif names:
        advice = f"it has {', '.join(sorted(names))}"
    else:
        advice = "it has no entries"
    raise HostConfigError(f"{where} has no entry {entry!r}; {advice}")

"""Servers that a configuration names: an entry of a host, of a file, or of a dict.

`hosts` reads the files and replaces the variables; this module turns an entry into a target.

The rules that live here, and only here:

* A configuration is a dict with the member `mcpServers`, `servers`, `context_servers` or
  `mcp_servers`, or the path of a file that has one.
* The value of a name is an entry as in the file of a host, or in Python anything else that a
  client connects to.
* The name of an entry of the user never starts another server that the current folder has under
  that name.
* An entry that cannot be used is an error of that entry. An entry that is switched off is left
  out of a configuration, and is an error where it is named.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...hosts.entries import ServerEntry, read_entry, servers_of
from ...hosts.errors import HostConfigError
from ...hosts.expand import expand_entry
from ...hosts.files import HostFile, decode_text, load_files, parse_text, read_file
from ...hosts.table import ANY_FILE, HOSTS, find_host
from ...redaction import show
from .resolve import IN_SHELL, ResolvedTarget, TargetAdvice, TargetError, names_shown

__all__ = [
    "config_entry",
    "config_servers",
    "host_entry",
    "hosts_with",
    "resolved_entry",
]


def resolved_entry(entry: ServerEntry, text: str) -> ResolvedTarget:
    """Return the target of an entry, with its variables replaced.

    Raises:
        HostConfigError: a variable has no value.
    """
    full = expand_entry(entry)
    if full.command:
        command = (full.command, *full.args)
        return ResolvedTarget(text, command=command, env=full.env, cwd=full.cwd or None)
    return ResolvedTarget(text, address=full.url, headers=full.headers)


# One entry, by its name


def host_entry(host: str, name: str, text: str, wording: TargetAdvice) -> ResolvedTarget:
    """Return the target of an entry of a host.

    Raises:
        TargetError: the host has no such entry here, or it cannot be used.
    """
    row = find_host(host)
    typed = text.partition(":")[0]
    read = f"{show(text)} was read as the entry {show(name)} of {row.title}"
    if not name:
        read = f"{show(text)} was read as an entry of {row.title}"
    files = load_files(row)
    for file in files:
        for problem in file.problems:
            if name and problem.name == name:
                raise TargetError(f"{read}, which cannot be used: {file.path}: {problem.problem}")
        for entry in file.entries:
            if name and entry.name == name:
                _check_shadow(entry, files, read, wording)
                return _usable(entry, text, read, file.path)
        if file.error:
            raise TargetError(f"{read}, whose file cannot be read: {file.path}: {file.error}")
    if not any(file.is_there for file in files):
        looked = ", ".join(file.path for file in files) or "this system has none"
        raise TargetError(
            f"{read}, which has no configuration here (looked for {looked}); "
            f"for an object in a file write {typed}.py:{name or 'app'}"
        )
    names = list(dict.fromkeys(each.name for file in files for each in file.entries))
    lacks = "without a name" if not name else f"and there is no entry {show(name)}"
    raise TargetError(f"{read}, {lacks}; {_advice(name, names, f'{typed}:')}")


def _check_shadow(
    entry: ServerEntry, files: Sequence[HostFile], read: str, wording: TargetAdvice
) -> None:
    """Raise if a file of the current folder replaces an entry of the user.

    A host asks its user before it starts such a server; the folder may be a stranger's.
    """
    if entry.scope != "project":
        return
    advice = wording.command
    if wording is IN_SHELL:
        advice = f"name the file: --config FILE {entry.name}"
    for file in files:
        for own in file.entries:
            is_same = replace(own, scope=entry.scope, file=entry.file) == entry
            if own.name == entry.name and file.location.scope != "project" and not is_same:
                raise TargetError(
                    f"{read}, and {entry.file}, in the current folder, has another server of that "
                    f"name than {file.path}; {advice}"
                )


def hosts_with(name: str) -> list[str]:
    """Return `host:name` for each host that has an entry of this name here."""
    return [
        f"{host.id}:{name}"
        for host in HOSTS
        if any(each.name == name for file in load_files(host) for each in file.entries)
    ]


def config_entry(path: str, name: str, wording: TargetAdvice) -> ResolvedTarget:
    """Return the target of an entry of a configuration file.

    Raises:
        TargetError: the file has no such entry, or cannot be read.
    """
    read = f"{show(name)} was read as an entry of {show(path)}"
    try:
        servers = _servers(path)
    except HostConfigError as error:
        raise TargetError(f"{read}, which cannot be read: {error.problem}") from None
    if name not in servers:
        raise TargetError(f"{read}, and there is no such entry; {_advice(name, list(servers), '')}")
    try:
        entry = read_entry(name, servers[name], ANY_FILE, file=path)
    except HostConfigError as error:
        raise TargetError(f"{read}, which cannot be used: {_problem(error)}") from None
    return _usable(entry, name, read, path)


def _usable(entry: ServerEntry, text: str, read: str, path: str) -> ResolvedTarget:
    if entry.disabled:
        raise TargetError(f"{read}, which is disabled in {path}; enable it there")
    try:
        return resolved_entry(entry, text)
    except HostConfigError as error:
        raise TargetError(f"{read}, which cannot be used: {_problem(error)}") from None


def _problem(error: HostConfigError) -> str:
    return f"{error.key}: {error.problem}" if error.key else error.problem


def _advice(name: str, names: list[str], before: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {show(f'{before}{near[0]}')}?"
    return f"there are: {names_shown(names)}" if names else "there are none"


# All entries of a configuration


def config_servers(given: Any) -> dict[str, Any]:
    """Return what each server of a configuration is, by name.

    A value is a `ResolvedTarget`, another target of a client, or the `TargetError` of an entry
    that cannot be used.

    Raises:
        TargetError: it is not a configuration, or has no server.
    """
    is_file = not isinstance(given, Mapping)
    path = os.fspath(given) if is_file else ""
    try:
        servers = _servers(path) if is_file else _servers_in(given, "")
    except HostConfigError as error:
        what = f"{show(path)} was read as a configuration file" if is_file else "the configuration"
        raise TargetError(f"{what}: {error.problem}") from None
    found = {name: _server(name, raw, path) for name, raw in servers.items()}
    enabled = {name: each for name, each in found.items() if each is not None}
    if not enabled:
        what = show(path) if is_file else "the configuration"
        state = "all servers are disabled" if found else "there are no servers"
        raise TargetError(f"{what}: {state}")
    return enabled


def _server(name: str, raw: Any, path: str) -> Any:
    """Return what a server of a configuration is; None if it is switched off."""
    if not path and not isinstance(raw, dict):
        return raw
    try:
        entry = read_entry(name, raw, ANY_FILE, file=path)
        return None if entry.disabled else resolved_entry(entry, name)
    except HostConfigError as error:
        return TargetError(f"{show(name)} cannot be used: {_problem(error)}")


def _servers(path: str) -> Mapping[str, Any]:
    data = read_file(path, takes_pipes=True)
    if data is None:
        raise HostConfigError("no such file", file=path)
    text = decode_text(data, path)
    return _servers_in(parse_text(text, "toml" if path.endswith(".toml") else "jsonc", path), path)


def _servers_in(document: Any, path: str) -> Mapping[str, Any]:
    here = dict(document) if isinstance(document, Mapping) else document
    locations = ANY_FILE.locations
    known = here if isinstance(here, dict) else {}
    location = next((each for each in locations if each.keys[0] in known), locations[0])
    if isinstance(here, dict) and location.keys[0] not in here:
        names = ", ".join(each.keys[0] for each in locations)
        raise HostConfigError(f"has no servers: none of {names} is there", file=path)
    return servers_of(here, location, file=path)

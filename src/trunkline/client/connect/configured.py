"""Servers that a configuration names: an entry of a host, of a file, or of a dict.

`hosts` reads the files and replaces the variables; this module turns an entry into a target.

The rules that live here, and only here:

* A configuration is a dict with the member `mcpServers`, `servers`, `context_servers` or
  `mcp_servers`, or the path of a file that has one.
* The value of a name is an entry as in the file of a host, or in Python anything else that a
  client connects to. There the `auth` of an entry may be an object such as `OAuth()`.
* A member that no host knows is an error in a dict of a program, which its author wrote for this
  library. In a file it is logged once, because the file may be for a newer host.
* The name of an entry of the user never starts another server that the current folder has under
  that name.
* An entry that cannot be used is an error of that entry. An entry that is switched off is left
  out of a configuration, and is an error where it is named.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from ...hosts.entries import ServerEntry, near_name, read_entry, servers_of
from ...hosts.errors import HostConfigError
from ...hosts.expand import expand_entry
from ...hosts.files import HostFile, decode_text, load_files, parse_text, read_file
from ...hosts.table import ANY_FILE, HOSTS, KNOWN_MEMBERS, find_host, members_of
from ...redaction import show
from .resolve import (
    IN_SHELL,
    ResolvedTarget,
    TargetAdvice,
    TargetError,
    check_not_client,
    names_shown,
)

__all__ = [
    "config_advice",
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
    return ResolvedTarget(text, address=full.url, headers=full.headers, auth=full.auth)


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


def config_entry(
    path: str, name: str, wording: TargetAdvice, text: str | None = None
) -> ResolvedTarget:
    """Return the target of an entry of a configuration file; `text` is what was typed for it.

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
    for member in _unknown_members(servers[name]):
        _log_unknown(path, name, member)
    return _usable(entry, name if text is None else text, read, path)


def config_advice(path: str, text: str) -> str:
    """Return the names of the servers in a configuration file, for an error without a name.

    `text` is what was typed.

    Raises:
        TargetError: the file cannot be read, or is not a configuration.
    """
    try:
        return _advice("", list(_servers(path)), "")
    except HostConfigError as error:
        raise TargetError(f"{_read_as_file(text)}: {error.problem}") from None


def _read_as_file(text: str) -> str:
    return f"{show(text)} was read as a configuration file"


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
        what = _read_as_file(path) if is_file else "the configuration"
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
    if not path:
        if not isinstance(raw, dict):
            check_not_client(raw, show(name))
            return raw
        return _server_in_code(name, raw)
    try:
        entry = read_entry(name, raw, ANY_FILE, file=path)
        for member in _unknown_members(raw):
            _log_unknown(path, name, member)
        return None if entry.disabled else resolved_entry(entry, name)
    except HostConfigError as error:
        return TargetError(f"{show(name)} cannot be used: {_problem(error)}")


def _server_in_code(name: str, raw: dict[str, Any]) -> Any:
    """Return what an entry is that a program has written.

    Raises:
        TargetError: it has a member that no host knows, or an `auth` that has no effect.
    """
    for member in _unknown_members(raw):
        raise TargetError(f"{show(name)}: {_about_member(member)}")
    key = ANY_FILE.fields.auth
    auth = raw.get(key)
    is_object = auth is not None and not isinstance(auth, str | dict)
    if is_object and (isinstance(auth, type) or not hasattr(auth, "for_server")):
        kind = auth.__name__ if isinstance(auth, type) else type(auth).__name__
        raise TargetError(
            f'{show(name)}: {key} is "oauth", or an object such as OAuth(), not {kind}'
        )
    plain = {each: value for each, value in raw.items() if each != key} if is_object else raw
    try:
        entry = read_entry(name, plain, ANY_FILE)
        if entry.command and auth is not None:
            raise TargetError(f"{show(name)}: {key} is for a server with a url, not with a command")
        if entry.disabled:
            return None
        found = resolved_entry(entry, name)
    except HostConfigError as error:
        if error.key.partition(".")[0] == key:
            raise TargetError(f"{show(name)}: {_problem(error)}") from None
        return TargetError(f"{show(name)} cannot be used: {_problem(error)}")
    return found._replace(auth=auth) if is_object else found


def _unknown_members(raw: Any) -> list[str]:
    """Return the members of an entry that no host knows."""
    return [each for each in raw if each not in KNOWN_MEMBERS] if isinstance(raw, dict) else []


def _about_member(member: object) -> str:
    shown = show(member)
    advice = near_name(str(member), members_of(ANY_FILE.fields))
    return f"{shown} is not a member of an entry; {advice}"


# A configuration is read for each client, and one line about a mistake is enough.
@lru_cache(maxsize=256)
def _log_unknown(path: str, name: str, member: str) -> None:
    # Imported here: it is rare, and the command line starts a server before it loads the rest.
    import logging

    logging.getLogger("trunkline.client").warning(
        "%s: server %s: %s", path, show(name), _about_member(member)
    )


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
        raise HostConfigError(
            f"has no servers: none of {names} is there{_advice_without_servers(here)}", file=path
        )
    return servers_of(here, location, file=path)


def _advice_without_servers(document: dict[str, Any]) -> str:
    """Return what was probably meant by a document in which no member has servers."""
    first = ANY_FILE.locations[0].keys[0]
    starts = (ANY_FILE.fields.command, *ANY_FILE.fields.urls)
    if any(each in document for each in starts):
        return f'; for one server write {{"{first}": {{"NAME": {{...}}}}}}'
    entries = [
        name
        for name, each in document.items()
        if isinstance(each, dict) and any(key in each for key in starts)
    ]
    if entries:
        return (
            f'; {names_shown(entries)} look like servers: write {{"{first}": {{...}}}} around them'
        )
    return f'; write {{"{first}": {{"NAME": {{...}}}}}}' if not document else ""

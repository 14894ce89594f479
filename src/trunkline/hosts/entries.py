"""Entries of a host's configuration: one MCP server each, read from the members that a row names.

The rules that live here, and only here:

* A wrong type is an error that names file, entry and member, and never quotes a value: `env` and
  headers hold secrets, and so do arguments and URLs.
* Members that no row names belong to the host and are ignored.
* An entry with a command is started, whatever else it has; one with a URL is connected to.
* The login of a server is `"auth": "oauth"`, or an object of the type "oauth" with options of
  `OAuth`. A token is not one: it belongs into a header.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from ..redaction import conceal_command, redact, show
from .errors import HostConfigError
from .table import PROJECT_KEY, EntryFields, Host, Location, Scope, Transport

__all__ = [
    "AUTH_OPTIONS",
    "EntryProblem",
    "ServerEntry",
    "near_name",
    "read_entries",
    "read_entry",
    "servers_of",
]

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})
# The only type of login, and its options.
_OAUTH: Final = "oauth"
AUTH_OPTIONS: Final = (
    *("scopes", "client_id", "client_secret", "issuer", "client_metadata_url", "redirect_uri"),
)
_TYPES: Final = {
    bool: "a boolean",
    dict: "an object",
    float: "a number",
    int: "a number",
    list: "an array",
    str: "a string",
    type(None): "null",
}


class ServerEntry(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """One server of a host, as its file has it; `expand_entry` fills in its variables."""

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = _EMPTY
    cwd: str = ""
    # A file with more environment variables, NAME=VALUE a line.
    env_file: str = ""
    url: str = ""
    headers: Mapping[str, str] = _EMPTY
    # Headers whose values are in environment variables: header, text before the value, variable.
    env_headers: tuple[tuple[str, str, str], ...] = ()
    # Options of the login that the server needs, by their names in `OAuth`; None without one.
    auth: Mapping[str, Any] | None = None
    # The entry is switched off in the host.
    disabled: bool = False
    # Forms of variables that the host replaces; see `expand`.
    variables: tuple[str, ...] = ()
    # Where it was found: the id of the host, the scope and the path of the file.
    host: str = ""
    scope: Scope = "user"
    file: str = ""

    def __repr__(self) -> str:
        shown = [repr(redact(self.name)), repr(redact(self.transport))]
        if self.command:
            command, *args = conceal_command([self.command, *self.args])
            shown.append(f"command={redact(command)!r}")
            # An argument can be a password; what `redact` truncates is not shown.
            shown.append(f"args={redact(args)!r}")
        if self.url:
            shown.append(f"url={redact(self.url)!r}")
        for field in ("env", "headers"):
            found: Mapping[str, str] = getattr(self, field)
            if found:
                shown.append(f"{field}={redact(list(found))!r}")  # names alone
        if self.disabled:
            shown.append("disabled=True")
        return f"ServerEntry({', '.join(shown)})"


class EntryProblem(Struct, frozen=True):
    """An entry that cannot be used, and why."""

    name: str
    problem: str

    def __repr__(self) -> str:
        return f"EntryProblem({redact(self.name)!r}, {redact(self.problem)!r})"


def servers_of(
    document: Any,
    location: Location,
    *,
    file: str = "",
    project: str = "",
    host: Host | None = None,
) -> Mapping[str, Any]:
    """Return the servers of a location by name; empty if the document has none.

    Raises:
        HostConfigError: the document, or an object on the way, is something else.
    """
    here = document
    if not isinstance(here, dict):
        raise HostConfigError(f"expected an object, got {_kind(here)}", file=file)
    shown: list[str] = []
    for place, key in enumerate(location.keys, 1):
        rest = location.keys[place:]
        step = project if key == PROJECT_KEY else key
        shown.append(step)
        if step not in here:
            return {}
        here = here[step]
        if here is None and host is not None and host.format == "yaml":
            return {}  # a name with nothing below it
        wanted: type = list if host is not None and host.is_list and not rest else dict
        if not isinstance(here, wanted):
            raise HostConfigError(
                f"{'.'.join(shown)}: expected {_kind(wanted())}, got {_kind(here)}", file=file
            )
    if host is None or not host.is_list:
        return {str(name): each for name, each in here.items()}
    name_of = host.fields.name
    return {str(each[name_of]): each for each in here if isinstance(each, dict) and name_of in each}


def read_entries(
    servers: Mapping[str, Any], host: Host, *, scope: Scope = "user", file: str = ""
) -> tuple[list[ServerEntry], list[EntryProblem]]:
    """Return the entries that can be used, and the problems of the others."""
    entries: list[ServerEntry] = []
    problems: list[EntryProblem] = []
    for name, raw in servers.items():
        if isinstance(raw, dict) and raw.get(host.fields.type) in host.fields.own_types:
            continue
        try:
            entries.append(read_entry(name, raw, host, scope=scope, file=file))
        except HostConfigError as error:
            key = f"{error.key}: " if error.key else ""
            problems.append(EntryProblem(name, f"{key}{error.problem}"))
    return entries, problems


def read_entry(
    name: str, raw: Any, host: Host, *, scope: Scope = "user", file: str = ""
) -> ServerEntry:
    """Return one entry.

    Raises:
        HostConfigError: a member has the wrong type, or the entry has neither a command nor a
            URL.
    """
    if not isinstance(raw, dict):
        raise HostConfigError(f"expected an object, got {_kind(raw)}", file=file, entry=name)
    reader = _EntryReader(raw, host.fields, file, name)
    shared: dict[str, Any] = {
        "name": name,
        "disabled": reader.is_disabled(),
        "variables": host.variables,
        "host": host.id,
        "scope": scope,
        "file": file,
    }
    fields = host.fields
    if fields.command in raw:
        command, args = reader.command()
        if not command:
            raise reader.error(fields.command, "is empty")
        return ServerEntry(
            transport="stdio",
            command=command,
            args=args,
            env=reader.map(fields.env),
            cwd=reader.text(fields.cwd),
            env_file=reader.text(fields.env_file),
            **shared,
        )
    key, transport = reader.url_key()
    if not key:
        wanted = [fields.command, *list(fields.urls)[:1]]
        raise HostConfigError(f"has no {' and no '.join(wanted)}", file=file, entry=name)
    url = reader.text(key)
    if not url:
        raise reader.error(key, "is empty")
    return ServerEntry(
        transport=transport,
        url=url,
        headers=reader.headers(),
        env_headers=reader.env_headers(),
        auth=reader.auth(),
        **shared,
    )


class _EntryReader:
    """The members of one entry, read with their types checked."""

    def __init__(self, raw: dict[str, Any], fields: EntryFields, file: str, entry: str) -> None:
        self._raw = raw
        self._fields = fields
        self._file = file
        self._entry = entry

    def error(self, key: str, problem: str) -> HostConfigError:
        return HostConfigError(problem, file=self._file, entry=self._entry, key=key)

    def text(self, key: str) -> str:
        found = self._raw.get(key) if key else None
        if found is None:
            return ""
        if not isinstance(found, str):
            raise self.error(key, f"expected a string, got {_kind(found)}")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        found = self._raw.get(key) if key else None
        if found is None:
            return ()
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise self.error(key, f"expected an array of strings, got {_kind(found)}")
        for place, item in enumerate(found):
            if not isinstance(item, str):
                raise self.error(f"{key}[{place}]", f"expected a string, got {_kind(item)}")
        return tuple(found)

    def command(self) -> tuple[str, tuple[str, ...]]:
        """Return the program and its arguments."""
        fields = self._fields
        if fields.args:
            return self.text(fields.command), self.texts(fields.args)
        words = self.texts(fields.command)
        return (words[0], words[1:]) if words else ("", ())

    def map(self, key: str) -> Mapping[str, str]:
        found = self._raw.get(key) if key else None
        if found is None:
            return _EMPTY
        if not isinstance(found, dict):
            raise self.error(key, f"expected an object of strings, got {_kind(found)}")
        for name, item in found.items():
            if not isinstance(item, str):
                raise self.error(f"{key}.{name}", f"expected a string, got {_kind(item)}")
        return MappingProxyType(dict(found))

    def headers(self) -> Mapping[str, str]:
        """Return the headers, which may be inside of another member."""
        outer, dot, inner = self._fields.headers.rpartition(".")
        found = self._raw.get(outer) if dot else None
        if found is None:
            return self.map(self._fields.headers)
        if not isinstance(found, dict):
            raise self.error(outer, f"expected an object, got {_kind(found)}")
        return _EntryReader(found, self._fields, self._file, self._entry).map(inner)

    def is_disabled(self) -> bool:
        if self._fields.disabled is None:
            return False
        key, off = self._fields.disabled
        found = self._raw.get(key)
        if found is not None and not isinstance(found, bool):
            raise self.error(key, f"expected true or false, got {_kind(found)}")
        return found is off

    def url_key(self) -> tuple[str, Transport]:
        """Return the member with the URL, and the transport; "" if there is none."""
        fields = self._fields
        for key, transport in fields.urls.items():
            if key in self._raw:
                told = self.text(fields.type)
                if told and told not in fields.type_aliases:
                    raise self.error(fields.type, "is not a transport that is known")
                return key, fields.type_aliases[told] if told else transport
        return "", "http"

    def env_headers(self) -> tuple[tuple[str, str, str], ...]:
        fields = self._fields
        found = [(name, "", variable) for name, variable in self.map(fields.env_headers).items()]
        bearer = self.text(fields.bearer_env)
        if bearer:
            found.append(("Authorization", "Bearer ", bearer))
        return tuple(found)

    def auth(self) -> Mapping[str, Any] | None:
        """Return the options of the login of a server; None if it has none."""
        key = self._fields.auth
        found = self._raw.get(key) if key else None
        if found is None:
            return None
        if found == _OAUTH:
            return _EMPTY
        if isinstance(found, str):
            raise self.error(
                key,
                f'expected "{_OAUTH}"; a token goes into headers, as "Authorization": '
                '"Bearer ${NAME}"',
            )
        form = f'{{"type": "{_OAUTH}", "scopes": ["..."]}}'
        if not isinstance(found, dict):
            raise self.error(key, f'expected "{_OAUTH}" or {form}, got {_kind(found)}')
        if found.get("type") != _OAUTH:
            raise self.error(f"{key}.type", f'expected "{_OAUTH}", as in {form}')
        options = _EntryReader(found, self._fields, self._file, self._entry)
        made: dict[str, Any] = {}
        for name in found:
            if name == "type":
                continue
            if name not in AUTH_OPTIONS:
                advice = near_name(name, AUTH_OPTIONS)
                raise self.error(key, f"{show(name)} is not an option of it; {advice}")
            made[name] = options.texts(name) if name == "scopes" else options.text(name)
        return MappingProxyType(made)


def near_name(name: str, known: Sequence[str]) -> str:
    """Return advice for a name that is not known: the nearest one, or all."""
    # Imported here: it is rare.
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"


def _kind(value: object) -> str:
    return _TYPES.get(type(value), type(value).__name__)

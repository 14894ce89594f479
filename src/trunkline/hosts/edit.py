"""Adds an entry to the text of a configuration file, replaces one, or removes one.

The rules that live here, and only here:

* A text that cannot be read in its format is never edited.
* After each edit the new text is read again. It has to be the old document with that change and
  no other, in the same order; otherwise nothing is returned.
* A replacement sets how the server is started or reached. Members that no row names, variables
  and headers that are not given again, and the switch that turns the entry off stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from .entries import ServerEntry, servers_of
from .errors import HostConfigError, TextEditError
from .files import decode_text, parse_text, read_file
from .table import PROJECT_KEY, Host, Location

__all__ = ["EntryPlace", "entry_members", "put_entry", "take_entry"]

_BOM: Final = "\ufeff"


class EntryPlace(NamedTuple):
    """Where an entry is, or goes: a file of a host, and the location in it."""

    host: Host
    location: Location
    path: str
    project: str

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the objects down to the one that has the servers."""
        return tuple(self.project if key == PROJECT_KEY else key for key in self.location.keys)

    def document(self, text: str) -> Any:
        """Return the document in a text of the file."""
        return parse_text(text, self.host.format, self.path)

    def raw(self, text: str, name: str) -> Any:
        """Return an entry as a text has it; None if there is none."""
        return self._servers(text).get(name)

    def has(self, text: str, name: str) -> bool:
        """Return True if a text has an entry, which may be null."""
        return name in self._servers(text)

    def text(self) -> str:
        """Return the text of the file; "" if there is none."""
        data = read_file(self.path)
        return "" if data is None else decode_text(data, self.path)

    def _servers(self, text: str) -> Mapping[str, Any]:
        return servers_of(
            self.document(text),
            self.location,
            file=self.path,
            project=self.project,
            host=self.host,
        )


def entry_members(entry: ServerEntry, host: Host) -> dict[str, Any]:
    """Return the members of an entry as a host writes them.

    Raises:
        HostConfigError: the host has no way to write the entry, or it is not text.
    """
    fields = host.fields
    _check_text(entry)
    found: dict[str, Any] = {}
    kind = {"stdio": fields.stdio_type, "http": fields.http_type, "sse": fields.sse_type}[
        entry.transport
    ]
    if fields.name:
        found[fields.name] = entry.name
    if kind:
        found[fields.type] = kind
    if entry.transport == "stdio":
        if fields.args:
            found[fields.command] = entry.command
            found[fields.args] = list(entry.args)
        else:
            found[fields.command] = [entry.command, *entry.args]
        if entry.env:
            found[fields.env] = dict(entry.env)
    else:
        keys = [name for name, each in fields.urls.items() if each == entry.transport]
        # With a type, the member of the URL is the same for both transports.
        key = keys[0] if keys else next(iter(fields.urls), "")
        if not key or not (keys or kind):
            raise HostConfigError(
                f"{host.title} does not connect to servers over {entry.transport.upper()}"
            )
        found[key] = entry.url
        if entry.headers:
            outer, dot, inner = fields.headers.rpartition(".")
            headers = dict(entry.headers)
            found[outer if dot else inner] = {inner: headers} if dot else headers
    return {**found, **{name: _plain(value) for name, value in fields.fixed.items()}}


def _check_text(entry: ServerEntry) -> None:
    """Raise if a value has bytes that are not UTF-8, such as the name of a file can have."""
    values = {
        "command": [entry.command],
        "args": entry.args,
        "env": [*entry.env, *entry.env.values()],
        "url": [entry.url],
        "headers": [*entry.headers, *entry.headers.values()],
    }
    for key, words in values.items():
        if any("\ud800" <= letter <= "\udfff" for word in words for letter in word):
            raise HostConfigError("is not UTF-8, and the file has to be", entry=entry.name, key=key)


def put_entry(text: str, place: EntryPlace, entry: ServerEntry) -> str:
    """Return the text with an entry added, or with the entry of that name replaced.

    Raises:
        HostConfigError: the text cannot be read, or cannot be edited safely.
    """
    host, keys = place.host, place.keys
    if not text.removeprefix(_BOM).strip():
        text = f"{_BOM if text.startswith(_BOM) else ''}{host.new_file}"
    old = place.raw(text, entry.name)
    members = entry_members(entry, host)
    if isinstance(old, dict) and old.get(host.fields.type) in host.fields.own_types:
        raise HostConfigError(
            f"is a part of {host.title} itself; give the entry another name",
            file=place.path,
            entry=entry.name,
        )
    if old is not None and host.fields.disabled and host.fields.disabled[0] in old:
        members.pop(host.fields.disabled[0], None)
    if old is not None and not isinstance(old, dict):
        raise HostConfigError(
            "is not an object; edit the file by hand", file=place.path, entry=entry.name
        )
    dropped = [] if old is None else _replaced_members(old, members, host)
    wanted = {**(old or {}), **members}
    for name, value in members.items():
        if old is not None and isinstance(value, dict) and isinstance(old.get(name), dict):
            wanted[name] = {**old[name], **value}
    for name in dropped:
        wanted.pop(name)
    expected = place.document(text)
    _put(expected, place, entry.name, wanted)
    with _editing(place):
        if host.format == "yaml":
            new = _yaml_put(text, place, entry.name, members, old, dropped)
        elif host.format == "toml":
            from .toml_text import set_values

            new = set_values(text, (*keys, entry.name), members, dropped)
        else:
            new = _json_put(text, keys, entry.name, members, old, dropped)
    _verify(new, expected, place)
    return new


def take_entry(text: str, place: EntryPlace, name: str) -> str:
    """Return the text without an entry; unchanged if there is none.

    Raises:
        HostConfigError: the text cannot be read, or cannot be edited safely.
    """
    if not place.has(text, name):
        return text
    expected = here = place.document(text)
    for key in place.keys:
        here = here[key]
    if place.host.is_list:
        here[:] = [each for each in here if not _is_named(each, place, name)]
    else:
        del here[name]
    with _editing(place):
        if place.host.format == "yaml":
            from .yaml_text import remove_entry

            name_key = place.host.fields.name if place.host.is_list else ""
            new = remove_entry(text, place.keys, name, name_key=name_key)
        elif place.host.format == "toml":
            from .toml_text import remove_table

            new = remove_table(text, (*place.keys, name))
        else:
            from .jsonc import remove_member

            new = remove_member(text, place.keys, name)
    _verify(new, expected, place)
    return new


def _put(document: Any, place: EntryPlace, name: str, wanted: dict[str, Any]) -> None:
    """Put an entry into a document."""
    here = document
    *outer, last = place.keys
    for key in outer:
        here = here.setdefault(key, {})
    if here.get(last) is None:
        here[last] = [] if place.host.is_list else {}
    if not place.host.is_list:
        here[last][name] = wanted
        return
    for at, each in enumerate(here[last]):
        if _is_named(each, place, name):
            here[last][at] = wanted
            return
    here[last].append(wanted)


def _is_named(item: Any, place: EntryPlace, name: str) -> bool:
    return isinstance(item, dict) and item.get(place.host.fields.name) == name


@contextmanager
def _editing(place: EntryPlace) -> Iterator[None]:
    """Turn the errors of the editors of text into one that names the file."""
    try:
        yield
    except TextEditError as error:
        raise HostConfigError(str(error), file=place.path) from None


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _replaced_members(old: Mapping[str, Any], new: Mapping[str, Any], host: Host) -> list[str]:
    """Return the members of an old entry that say how to start or reach it, and are not set."""
    fields = host.fields
    ways = [fields.type, fields.command, fields.args, fields.cwd, *fields.urls]
    if fields.command in new:
        ways += [fields.headers.partition(".")[0], fields.env_headers, fields.bearer_env]
    else:
        ways += [fields.env, fields.env_file]
    return [name for name in old if name in ways and name not in new]


def _json_put(
    text: str,
    keys: tuple[str, ...],
    name: str,
    members: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    dropped: list[str],
) -> str:
    from .jsonc import remove_member, set_member

    if not text.removeprefix(_BOM).strip():
        text = f"{text[:1] if text.startswith(_BOM) else ''}{{}}\n"
    if old is None:
        return set_member(text, keys, name, members)
    steps = (*keys, name)
    for each in dropped:
        text = remove_member(text, steps, each)
    for each, value in members.items():
        if isinstance(value, dict) and isinstance(old.get(each), dict):
            # One by one: comments beside the others stay.
            for inner, item in value.items():
                text = set_member(text, (*steps, each), inner, item)
        elif each not in old or old[each] != value:
            text = set_member(text, steps, each, value)
    return text


def _yaml_put(
    text: str,
    place: EntryPlace,
    name: str,
    members: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    dropped: list[str],
) -> str:
    from .yaml_text import add_entry, set_members

    is_list = place.host.is_list
    if old is None:
        return add_entry(text, place.keys, name, members, is_list=is_list)
    changed = {key: value for key, value in members.items() if key not in old or old[key] != value}
    name_key = place.host.fields.name if is_list else ""
    return set_members(text, place.keys, name, changed, dropped, name_key=name_key)


def _verify(text: str, expected: Any, place: EntryPlace) -> None:
    """Raise if a new text is not the document that was expected."""
    try:
        found = place.document(text)
    except HostConfigError as error:
        raise HostConfigError(
            f"the edit would make the file unreadable ({error.problem}); edit it by hand",
            file=place.path,
        ) from None
    if _comparable(found, place.host) != _comparable(expected, place.host):
        raise HostConfigError(
            "the edit would change more than the entry; edit the file by hand", file=place.path
        )


def _comparable(document: Any, host: Host) -> str:
    if host.format == "toml":
        # A table that had nothing but the removed one is gone with it, and the order of tables is
        # not a fact of TOML.
        document = {name: value for name, value in document.items() if value != {}}
        return json.dumps(document, sort_keys=True, default=repr)
    if host.format == "yaml":
        return repr(document)  # names may be numbers, and values dates
    return json.dumps(document)

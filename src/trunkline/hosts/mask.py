"""Hides the secrets in the text of a configuration file, for a diff that people see.

The rules that live here, and only here:

* Values of `env` and of headers are hidden in every entry, whatever they are called; so are
  values below a name that suggests a secret, anywhere in the file.
* Commands, arguments and URLs lose what `redaction` hides in them. So do comments. In the query
  of a URL every value is hidden, whatever it is called, unless it is a variable.
* Two texts are hidden together: a hidden value that differs between them is marked as new, so
  that the diff shows the change and not the value.
* A value over several lines becomes one; all other lines stay the lines of the file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

from ..redaction import HIDDEN, conceal, conceal_command, is_secret_name
from .table import HOSTS, Host

__all__ = ["hide_queries", "masked_texts"]

_NEW: Final = f"{HIDDEN[:-1]}: new value]" if HIDDEN.endswith("]") else f"{HIDDEN} (new value)"
_SECRET_OBJECTS: Final = frozenset(
    {
        name.rpartition(".")[2]
        for host in HOSTS
        for name in (host.fields.env, host.fields.headers)
        if name
    }
)
_COMMANDS: Final = frozenset({host.fields.command for host in HOSTS})

# What one match takes is not searched again: the time is linear in the length of a line.
_URL: Final = re.compile(r"://[^\s\"']*+")
_QUERY_VALUE: Final = re.compile(r"(?<==)(?!\$\{[^{}&=]*+\}(?:[&#]|\Z)|\[redacted\])[^&#]++")

# Path of a value, its offsets, and what it is.
_Value = tuple[tuple[str | int, ...], int, int, Any]


def masked_texts(before: str, after: str, host: Host) -> tuple[str, str]:
    """Return two texts of a file with their secrets hidden; both can be read in their format."""
    old = _hidden(before, host)
    values = {path: value for path, _, _, value in old}
    new = _hidden(after, host)
    return (
        _replaced(before, [(start, end, HIDDEN) for _, start, end, _ in old]),
        _replaced(
            after,
            [
                (start, end, HIDDEN if path in values and values[path] == value else _NEW)
                for path, start, end, value in new
            ],
        ),
    )


def _replaced(text: str, spans: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, shown in sorted(spans):
        parts += (_concealed(text[at:start]), json.dumps(shown))
        at = end
    parts.append(_concealed(text[at:]))
    return "".join(parts)


def _concealed(text: str) -> str:
    """Return what is left beside the hidden values (comments, URLs, arguments) without secrets."""
    return "\n".join(hide_queries(str(conceal(line))) for line in text.split("\n"))


def hide_queries(text: str) -> str:
    """Return a text with the values in the queries of its URLs hidden; variables stay."""

    def hidden(found: re.Match[str]) -> str:
        path, sign, query = found[0].partition("?")
        return f"{path}{sign}{_QUERY_VALUE.sub(HIDDEN, query)}"

    return _URL.sub(hidden, text)


def _hidden(text: str, host: Host) -> list[_Value]:
    if not text.removeprefix("\ufeff").strip():
        return []
    if host.format == "yaml":
        return list(_yaml_values(text))
    return list(_toml_values(text) if host.format == "toml" else _json_values(text))


def _is_secret(path: tuple[str | int, ...]) -> bool:
    if len(path) > 1 and path[-2] in _SECRET_OBJECTS:
        return True
    return any(isinstance(name, str) and is_secret_name(name) for name in path[-1:])


def _json_values(text: str) -> Iterator[_Value]:
    from .jsonc import JsonNode, parse

    waiting: list[tuple[tuple[str | int, ...], JsonNode]] = [((), parse(text))]
    while waiting:
        path, node = waiting.pop()
        if path and (_is_secret(path) or _has_secret_option(path[-1], node.value)):
            yield path, node.start, node.end, node.value
            continue
        waiting += [((*path, each.name), each.node) for each in node.members or ()]
        shown = _concealed_items(node.value) if node.items else node.value
        for place, item in enumerate(node.items):
            here = (*path, place)
            kept = shown[place] if isinstance(shown, list) else item.value
            if isinstance(item.value, str) and kept != item.value:
                # The value of an option such as --token.
                yield here, item.start, item.end, item.value
            else:
                waiting.append((here, item))


def _toml_values(text: str) -> Iterator[_Value]:
    from .toml_text import scan

    for each in scan(text):
        if each.is_header:
            continue
        value = tomllib.loads(f"x = {text[each.value : each.end]}")["x"]
        path: tuple[str | int, ...] = each.path
        if (
            _is_secret(path)
            or _holds_secrets(path[-1], value)
            or conceal({str(path[-1]): value}) != {path[-1]: value}
        ):
            yield path, each.value, each.end, value


def _yaml_values(text: str) -> Iterator[_Value]:
    from .yaml_text import scalars

    lists: dict[tuple[str | int, ...], list[_Value]] = {}
    for each in scalars(text):
        path, start, end, value = each
        if not path or start >= end:
            continue  # a name without a value
        is_secret = any(_is_secret(path[: depth + 1]) for depth in range(len(path)))
        if is_secret or _has_secret_option(path[-1], value):
            yield each
        elif isinstance(path[-1], int):
            lists.setdefault(path[:-1], []).append(each)
    for items in lists.values():
        items.sort(key=lambda item: item[1])
        words = [value for _, _, _, value in items]
        for each, shown in zip(items, _as_list(_concealed_items(words)), strict=True):
            if shown != each[3]:
                yield each  # the value of an option such as --token


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _has_secret_option(name: str | int, value: object) -> bool:
    """Return True if a value is a command that has its arguments too, and a secret in them."""
    return isinstance(value, str) and name in _COMMANDS and conceal_command([value]) != [value]


def _concealed_items(items: list[object]) -> object:
    """Return a list, which may be that of arguments, without secrets."""
    texts = [each for each in items if isinstance(each, str)]
    return conceal_command(texts) if len(texts) == len(items) else conceal(items)


def _holds_secrets(name: str | int, value: object) -> bool:
    """Return True if a value has variables, headers, or a command or arguments with secrets.

    It may be an entry as an inline table.
    """
    if isinstance(value, list):
        return _concealed_items(value) != value or any(_holds_secrets("", each) for each in value)
    if not isinstance(value, dict):
        return _has_secret_option(name, value)
    return name in _SECRET_OBJECTS or any(
        _holds_secrets(inner, each) for inner, each in value.items()
    )

"""Edits of TOML text that keep everything around them: comments, order, blank lines, line ends.

The rules that live here, and only here:

* An entry is a table with a header of its own, `[mcp_servers.name]`, and the tables below it. One
  that is written as an inline table or with dotted keys above its header is not edited.
* A new table goes to the end of the text.
* A table is removed with its statements and the comments between them; comments after its last
  statement stay, since they may belong to what follows.

`tomllib` has read the text before any of this, so the scanner does not look for errors.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from .errors import TextEditError

__all__ = ["Statement", "TomlEditError", "remove_table", "render", "scan", "set_values"]

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_BLANK: Final = re.compile(r"[ \t]*")


class TomlEditError(TextEditError):
    """A text is laid out in a way that these edits do not handle."""


class Statement(NamedTuple):
    """A table header, or a key with its value."""

    # Of a header, the path of the table; of a pair, that of the table and its key.
    path: tuple[str, ...]
    is_header: bool
    # Offset of the line that it starts on, of its value, and of the end of the value or header.
    line: int
    value: int
    end: int
    # Offset after the line that it ends on.
    after: int


def scan(text: str) -> list[Statement]:
    """Return the statements of a text that is valid TOML."""
    found: list[Statement] = []
    table: tuple[str, ...] = ()
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        char = text[at]
        if char in " \t\r\n":
            at += 1
        elif char == "#":
            at = _line_end(text, at)
        elif char == "[":
            end = _scan_value(text, at)
            table = _path(text[at:end])
            found.append(Statement(table, True, _line_start(text, at), at, end, _after(text, end)))
            at = found[-1].after
        else:
            equals = _scan_key(text, at)
            blank = _BLANK.match(text, equals + 1)
            value = blank.end() if blank else equals + 1
            end = _scan_value(text, value)
            path = (*table, *_path(f"{text[at:equals]}=0"))
            found.append(
                Statement(path, False, _line_start(text, at), value, end, _after(text, end))
            )
            at = found[-1].after
    return found


def _path(header: str) -> tuple[str, ...]:
    """Return the names of a header, or of a key with a value."""
    names: list[str] = []
    here: Any = tomllib.loads(header)
    while (isinstance(here, dict) and here) or isinstance(here, list):
        if isinstance(here, list):
            here = here[0]
            continue
        [(name, here)] = here.items()
        names.append(name)
    return tuple(names)


def _line_start(text: str, at: int) -> int:
    start = text.rfind("\n", 0, at) + 1
    return 1 if start == 0 and text.startswith("\ufeff") else start


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _after(text: str, at: int) -> int:
    return min(len(text), _line_end(text, at) + 1)


def _skip_string(text: str, at: int) -> int:
    """Return the offset after the string that starts at `at`."""
    quote = text[at]
    if text.startswith(quote * 3, at):
        end = at + 3
        while not text.startswith(quote * 3, end):
            end += 2 if quote == '"' and text[end] == "\\" else 1
        end += 3
        # Up to two quotes may stand before the closing ones.
        while text.startswith(quote, end):
            end += 1
        return end
    end = at + 1
    while text[end] != quote:
        end += 2 if quote == '"' and text[end] == "\\" else 1
    return end + 1


def _scan_key(text: str, at: int) -> int:
    """Return the offset of the equals sign after a key."""
    while text[at] != "=":
        at = _skip_string(text, at) if text[at] in "\"'" else at + 1
    return at


def _scan_value(text: str, at: int) -> int:
    """Return the offset after a value, or after a header."""
    depth = 0
    end = at
    while at < len(text):
        char = text[at]
        if char in "\"'":
            at = end = _skip_string(text, at)
            continue
        if char == "#":
            if depth == 0:
                break
            at = _line_end(text, at)
            continue
        if char in "\r\n" and depth == 0:
            break
        if char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        at += 1
        if char not in " \t\r\n":
            end = at
    return end


# Values


def render(value: Any) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(name)} = {render(item)}" for name, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(render, value))}]"
    return json.dumps(value)


def _string(text: str) -> str:
    # The escapes of JSON are escapes of TOML; DEL is the one character that only TOML escapes.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)


# Edits


def set_values(
    text: str, path: Sequence[str], values: Mapping[str, Any], dropped: Iterable[str] = ()
) -> str:
    """Return a text whose table at `path` has these values, and no longer those in `dropped`.

    A value that is a mapping is merged into the table or inline table that is there.

    Raises:
        TomlEditError: the table is not one with a header of its own.
    """
    table = tuple(path)
    if not _is_there(text, table):
        return _append(text, table, values)
    if not any(each.is_header and each.path == table for each in scan(text)):
        raise _not_editable(table)
    for name in dropped:
        text = _drop(text, (*table, name))
    for name, value in values.items():
        if isinstance(value, Mapping):
            text = _merge(text, (*table, name), value)
        else:
            text = _set(text, table, name, value)
    return text


def remove_table(text: str, path: Sequence[str]) -> str:
    """Return a text without the table at `path` and the tables below it; unchanged without it.

    Raises:
        TomlEditError: the table is not one with a header of its own.
    """
    table = tuple(path)
    if not _is_there(text, table):
        return text
    return _remove(text, table)


def _not_editable(table: tuple[str, ...]) -> TomlEditError:
    name = ".".join(map(_key, table))
    return TomlEditError(f"{name} is not a table with the header [{name}]; edit the file by hand")


def _is_there(text: str, table: tuple[str, ...]) -> bool:
    here: Any = tomllib.loads(text.removeprefix("\ufeff"))
    for name in table:
        if not isinstance(here, dict) or name not in here:
            return False
        here = here[name]
    return True


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _append(text: str, table: tuple[str, ...], values: Mapping[str, Any]) -> str:
    outer = table[:-1]
    if _is_there(text, outer) and not _is_open(text, outer):
        raise _not_editable(outer)
    newline = _newline(text)
    lines = [f"[{'.'.join(map(_key, table))}]"]
    lines += [
        f"{_key(name)} = {render(value)}"
        for name, value in values.items()
        if not isinstance(value, Mapping)
    ]
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            lines += ["", f"[{'.'.join(map(_key, (*table, name)))}]"]
            lines += [f"{_key(each)} = {render(item)}" for each, item in value.items()]
    has_text = bool(text.strip("\ufeff"))
    if has_text and not text.endswith("\n"):
        text += newline
    between = newline if has_text and not text.endswith(("\n\n", "\n\r\n")) else ""
    return text + between + newline.join(lines) + newline


def _is_open(text: str, table: tuple[str, ...]) -> bool:
    """Return True if headers below a table can be added: it is not an inline table."""
    return not any(not each.is_header and each.path == table for each in scan(text))


def _section(statements: list[Statement], table: tuple[str, ...]) -> list[Statement]:
    """Return the header of a table and the pairs after it, up to the next header."""
    start = next(
        place for place, each in enumerate(statements) if each.is_header and each.path == table
    )
    rest = statements[start + 1 :]
    stop = next((place for place, each in enumerate(rest) if each.is_header), len(rest))
    return statements[start : start + 1 + stop]


def _set(text: str, table: tuple[str, ...], name: str, value: Any) -> str:
    section = _section(scan(text), table)
    for each in section[1:]:
        if each.path == (*table, name):
            return text[: each.value] + render(value) + text[each.end :]
        if each.path[: len(table) + 1] == (*table, name):
            raise _not_editable((*table, name))
    last = section[-1]
    newline = _newline(text)
    indent = text[last.line : last.value] if len(section) > 1 else ""
    blanks = indent[: len(indent) - len(indent.lstrip(" \t"))]
    line = f"{blanks}{_key(name)} = {render(value)}{newline}"
    before = text[: last.after]
    if not before.endswith("\n"):
        before += newline
    return before + line + text[last.after :]


def _merge(text: str, table: tuple[str, ...], values: Mapping[str, Any]) -> str:
    statements = scan(text)
    if any(each.is_header and each.path == table for each in statements):
        for name, value in values.items():
            text = _set(text, table, name, value)
        return text
    inline = next((each for each in statements if not each.is_header and each.path == table), None)
    if inline is not None:
        found = tomllib.loads(f"x = {text[inline.value : inline.end]}")["x"]
        return text[: inline.value] + render({**found, **values}) + text[inline.end :]
    if any(each.path[: len(table)] == table for each in statements):
        raise _not_editable(table)
    return _set(text, table[:-1], table[-1], dict(values)) if values else text


def _drop(text: str, path: tuple[str, ...]) -> str:
    for each in reversed(scan(text)):
        if not each.is_header and each.path == path:
            return text[: each.line] + text[each.after :]
    if any(each.is_header and each.path[: len(path)] == path for each in scan(text)):
        return _remove(text, path)
    if _is_there(text, path):
        raise _not_editable(path)
    return text


def _remove(text: str, table: tuple[str, ...]) -> str:
    headers = [
        each.path for each in scan(text) if each.is_header and each.path[: len(table)] == table
    ]
    for path in headers:
        section = _section(scan(text), path)
        text = _cut(text, section[0].line, section[-1].after)
    if _is_there(text, table):
        raise _not_editable(table)
    return text


def _cut(text: str, start: int, end: int) -> str:
    """Return a text without some lines, and without one of the blank lines around them."""
    head, rest = text[:start], text[end:]
    for blank in ("\r\n", "\n"):
        if head.endswith(f"\n{blank}") and (not rest or rest.startswith(("\n", "\r\n"))):
            return head[: -len(blank)] + rest
        if not head.strip("\ufeff") and rest.startswith(blank):
            return head + rest[len(blank) :]
    return head + rest

"""Renders what a server offers: a signature and a description for each entry, or one in detail.

A tool is shown as a function: `forecast(city: string, days: integer = 3) -> Forecast`. In detail,
each argument has a line: name, type, whether it is required, default, allowed values,
description. Members of objects are named as `trunkline call` takes them: `place.lat`.

All text of the server is escaped. On a terminal lines are wrapped, and a long description or
signature is shortened in a list; a pipe gets each on one line, in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...errors import visible
from ..output.terminal import bold, columns, cut, dim, paint, row_width, table, width, wrap
from .tool_arguments import MAX_CHOICES_IN_TYPE, resolve, type_summary

__all__ = ["argument_table", "listing_lines", "tool_signature"]

# In a list on a terminal, where more would hide the other entries.
_MAX_ABOUT_LINES: Final = 3
_MAX_ARGUMENTS: Final = 12
# Characters of a default or of a constraint, such as a pattern.
_MAX_VALUE_LENGTH: Final = 40
_MAX_TYPE_LENGTH: Final = 100
# Columns of a name on a terminal: more than twice what the specification advises.
_MAX_NAME_LENGTH: Final = 300
# Of the members of objects inside arguments; a schema may refer to itself.
_MAX_DEPTH: Final = 3
_MAX_ROWS: Final = 200
_MAX_CHOICES: Final = 20
# A no-break space: `wrap` keeps it, and shows it as a space.
_JOINER: Final = "\xa0"

_SECTIONS: Final = {
    "tools": "Tools",
    "resources": "Resources",
    "resourceTemplates": "Resource templates",
    "prompts": "Prompts",
}
_HINTS: Final = {
    "readOnlyHint": ("read-only", "writes"),
    "destructiveHint": ("destructive", "not destructive"),
    "idempotentHint": ("idempotent", "not idempotent"),
    "openWorldHint": ("reaches other systems", "reaches no other systems"),
}
Entry = Mapping[str, Any]


def listing_lines(
    listing: Mapping[str, Any], kind: str = "", *, is_long: bool = False, in_detail: bool = False
) -> Iterator[str]:
    """Yield the lines of a listing document; `kind` is the only kind that it has, if any.

    `in_detail` shows arguments and results line by line; `is_long` adds schemas and annotations.
    """
    if not kind:
        yield from _server_lines(listing, is_long=is_long)
    for member, title in _SECTIONS.items():
        entries = listing.get(member, ())
        if entries and not in_detail:
            if not kind:
                yield ""
            yield bold(f"{title} ({len(entries)})")
        for number, entry in enumerate(entries):
            if in_detail or is_long:
                yield from [""] if number else []
                yield from _detailed(entry, member, is_long=is_long)
            else:
                yield from _brief(entry, member)
    if not any(listing.get(member) for member in _SECTIONS):
        yield f"no {kind}" if kind else "The server offers nothing."


def _server_lines(listing: Mapping[str, Any], *, is_long: bool) -> Iterator[str]:
    server = listing["server"]
    title = server.get("title")
    called = f"{_word(server.get('name'))} {_word(server.get('version'))}".strip() or "a server"
    if isinstance(title, str) and title != server.get("name"):
        called = f"{_word(title)} ({called})"
    yield from wrap(bold(f"{called}, MCP {_word(listing['revision'])}"), row_width())
    told = listing.get("instructions")
    if isinstance(told, str) and told.strip():
        # Indented if it has lines: they could look like ours.
        yield from _paragraphs(told, "  ") if is_long else _shortened(_line(told), "")


# In a list


def _brief(entry: Entry, member: str) -> Iterator[str]:
    room = row_width()
    if member == "tools":
        shown = _signature(entry, limit=None if room is None else _MAX_ARGUMENTS)
    elif member == "prompts":
        shown = _prompt_signature(entry)
    else:
        facts = _resource_facts(entry)
        shown = f"{_name(entry)} {dim(f'{_JOINER}{facts}') if facts else ''}"
    yield from wrap(shown, room, indent="  ", hanging=" " * 8)
    if about := _about(entry):
        yield from _shortened(about, "    ")


def _shortened(text: str, indent: str) -> list[str]:
    """Return a text in at most three lines of a terminal."""
    room = None if row_width() is None else width()
    if room is not None:
        # More is not shown; a server may send megabytes.
        text = cut(text, _MAX_ABOUT_LINES * room)
    lines = wrap(text, room, indent=indent)
    if len(lines) > _MAX_ABOUT_LINES:
        last = f"{lines[_MAX_ABOUT_LINES - 1]} …"
        lines = [*lines[: _MAX_ABOUT_LINES - 1], cut(last, room or 0)]
    return [dim(line) for line in lines]


def tool_signature(tool: Entry) -> str:
    """Return a tool as a function: `forecast(city: string, days: integer = 3) -> Forecast`."""
    return _signature(tool).replace(_JOINER, " ")


def _signature(tool: Entry, limit: int | None = None) -> str:
    schema = _object(tool.get("inputSchema"))
    properties = _object(schema.get("properties"))
    required = _required(schema)
    shown = [
        _argument(name, each, schema, is_required=name in required)
        for name, each in list(properties.items())[:limit]
    ]
    if limit is not None and len(properties) > limit:
        shown.append(f"…{_JOINER}{len(properties) - limit}{_JOINER}more")
    result = _result_type(tool)
    arrow = f" ->{_JOINER}{paint(result, 'cyan')}" if result else ""
    return f"{_name(tool)}({', '.join(shown)}){arrow}"


def _argument(name: str, schema: Any, root: Entry, *, is_required: bool) -> str:
    default = _object(schema).get("default")
    optional = "" if is_required or default is not None else "?"
    kind = paint(_joined(_type_of(schema, root)), "cyan")
    given = "" if default is None else dim(_joined(f" = {_value(default)}"))
    old = f"{_JOINER}(deprecated)" if _object(schema).get("deprecated") is True else ""
    return f"{_joined(_word(name))}{optional}:{_JOINER}{kind}{given}{old}"


def _prompt_signature(prompt: Entry) -> str:
    names = [
        f"{_joined(_word(each.get('name')))}{'' if each.get('required') is True else '?'}"
        for each in _prompt_arguments(prompt)
    ]
    return f"{_name(prompt)}({', '.join(names)})"


def _result_type(tool: Entry) -> str:
    """Return the type of the result; "" if the tool does not declare one."""
    schema = _object(tool.get("outputSchema"))
    if not schema:
        return ""
    properties = _object(schema.get("properties"))
    if list(properties) == ["result"]:
        # A value that is not an object is wrapped in one by servers.
        return _joined(_named_type(properties["result"], schema))
    return _joined(_named_type(schema, schema))


def _named_type(schema: Any, root: Entry) -> str:
    """Return the name of a type if the schema has one, else its kind."""
    title = resolve(schema, root).get("title")
    kind = _type_of(schema, root)
    if kind == "object" and isinstance(title, str) and title.isidentifier():
        return cut(title, _MAX_TYPE_LENGTH)
    return kind


# In detail


def _detailed(entry: Entry, member: str, *, is_long: bool) -> Iterator[str]:
    title = _word(entry.get("title"))
    called = f"  {dim(title)}" if title and title != _word(entry.get("name")) else ""
    yield from wrap(f"{_name(entry)}{called}", row_width())
    if member == "tools":
        yield from _tool_details(entry)
    elif member == "prompts":
        yield from _prompt_details(entry)
    else:
        yield from _resource_details(entry)
    if is_long:
        yield from _documents(entry)


def _tool_details(tool: Entry) -> Iterator[str]:
    yield from _description(tool)
    rows = argument_table(tool.get("inputSchema"))
    yield from _block("Arguments", rows) if rows else ["  no arguments"]
    result = _result_type(tool)
    if result:
        shown = result.replace(_JOINER, " ")
        yield from _block(f"Result: {shown}", argument_table(tool.get("outputSchema"), is_out=True))
    hints = _hints(_object(tool.get("annotations")))
    if hints:
        yield from wrap(dim(f"The server says: {', '.join(hints)}."), row_width(), indent="  ")


def _prompt_details(prompt: Entry) -> Iterator[str]:
    yield from _description(prompt)
    rows = [
        (
            _word(each.get("name")),
            "required" if each.get("required") is True else "optional",
            _line(each.get("description")),
        )
        for each in _prompt_arguments(prompt)
    ]
    yield from _block("Arguments", rows) if rows else ["  no arguments"]


def _resource_details(resource: Entry) -> Iterator[str]:
    yield from _description(resource)
    size = resource.get("size")
    facts = [
        ("name", _word(resource.get("name"))),
        ("type", _word(resource.get("mimeType"))),
        ("size", f"{size} bytes" if isinstance(size, int) else ""),
    ]
    yield from columns(facts, indent=2).split("\n")


def _description(entry: Entry) -> Iterator[str]:
    about = entry.get("description")
    if entry.get("deprecated") is True and not _about(entry).lower().startswith("deprecated:"):
        yield "  Deprecated."
    if isinstance(about, str) and about.strip():
        yield from _paragraphs(about, "  ")


def _block(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield from wrap(bold(title), row_width(), indent="  ")
    if rows:
        yield from table(rows, indent=4).split("\n")


def argument_table(schema: Any, *, is_out: bool = False) -> list[tuple[str, str, str, str]]:
    """Return a row for each argument: name, type, required or default, what it takes.

    `is_out` is for a result, whose members have no defaults.
    """
    rows: list[tuple[str, str, str, str]] = []
    root = _object(schema)
    _add_rows(rows, "", root, root, _MAX_DEPTH, is_out)
    if len(rows) > _MAX_ROWS:
        more = len(rows) - _MAX_ROWS
        rows[_MAX_ROWS:] = [(f"… {more} more", "", "", "")]
    return rows


def _add_rows(
    rows: list[tuple[str, str, str, str]],
    prefix: str,
    schema: Entry,
    root: Entry,
    depth: int,
    is_out: bool,
) -> None:
    required = _required(schema)
    for name, each in _object(schema.get("properties")).items():
        # One more than is shown: the caller counts them.
        if len(rows) > 10 * _MAX_ROWS:
            return
        path = f"{prefix}{_word(name)}"
        declared, found = _object(each), resolve(each, root)
        default = declared.get("default")
        if name in required:
            need = "" if is_out else "required"
        elif default is not None:
            need = f"= {_value(default)}"
        else:
            need = "optional"
        says = declared.get("description", found.get("description"))
        remarks = [_line(says), *_constraints(found, root)]
        if declared.get("deprecated") is True:
            remarks.insert(0, "Deprecated.")
        about = _sentences([part for part in remarks if part])
        rows.append((paint(path, "cyan"), _type_of(each, root), need, about))
        if depth > 1:
            item = resolve(found["items"], root) if isinstance(found.get("items"), dict) else {}
            _add_rows(rows, f"{path}.", found, root, depth - 1, is_out)
            _add_rows(rows, f"{path}[].", item, root, depth - 1, is_out)


def _sentences(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else " ".join(f"{part.rstrip('.')}." for part in parts)


def _constraints(schema: Entry, root: Entry) -> Iterator[str]:
    """Yield what values a schema allows, beyond their type."""
    item = resolve(schema["items"], root) if isinstance(schema.get("items"), dict) else {}
    choices = schema.get("enum", item.get("enum"))
    # The type has them if they are few.
    if isinstance(choices, list) and len(choices) > MAX_CHOICES_IN_TYPE:
        shown = ", ".join(_value(each, is_bare=True) for each in choices[:_MAX_CHOICES])
        more = len(choices) - _MAX_CHOICES
        yield f"One of {shown}{f', and {more} more' if more > 0 else ''}"
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        least, most = schema.get(low), schema.get(high)
        if least is not None and most is not None:
            yield f"{_value(least)} to {_value(most)}{unit}"
        elif least is not None:
            yield f"At least {_value(least)}{unit}"
        elif most is not None:
            yield f"At most {_value(most)}{unit}"
    for name, word in (("exclusiveMinimum", "Above"), ("exclusiveMaximum", "Below")):
        if schema.get(name) is not None:
            yield f"{word} {_value(schema[name])}"
    for name in ("format", "pattern"):
        if isinstance(schema.get(name), str):
            yield f"{name.capitalize()} {_value(schema[name], is_bare=True)}"


def _hints(annotations: Entry) -> list[str]:
    known = [(annotations.get(name), words) for name, words in _HINTS.items()]
    return [words[0] if value else words[1] for value, words in known if isinstance(value, bool)]


def _documents(entry: Entry) -> Iterator[str]:
    from ..output.content import json_shown

    for name in ("inputSchema", "outputSchema", "annotations", "execution", "icons", "_meta"):
        if entry.get(name):
            yield ""
            shown = f"{bold(f'{name}:')} {json_shown(entry[name])}"
            yield from (f"  {line}" for line in shown.split("\n"))


# Parts


def _name(entry: Entry) -> str:
    called = entry.get("uri", entry.get("uriTemplate", entry.get("name")))
    style = "yellow" if _is_deprecated(entry) else "bold"
    return paint(_joined(_word(called)), style)


def _is_deprecated(entry: Entry) -> bool:
    says = _line(entry.get("description")).lower()
    return entry.get("deprecated") is True or says.startswith("deprecated")


def _about(entry: Entry) -> str:
    about = _line(entry.get("description")) or _line(entry.get("title"))
    if not about and ("uri" in entry or "uriTemplate" in entry):
        about = _line(entry.get("name"))
    if _is_deprecated(entry) and not about.lower().startswith("deprecated"):
        about = f"Deprecated. {about}".strip()
    return about


def _resource_facts(resource: Entry) -> str:
    mime_type, size = resource.get("mimeType"), resource.get("size")
    facts = [_word(mime_type)] if isinstance(mime_type, str) else []
    if isinstance(size, int):
        facts.append(f"{size} bytes")
    return _joined(", ".join(facts))


def _prompt_arguments(prompt: Entry) -> list[dict[str, Any]]:
    declared = prompt.get("arguments")
    listed = declared if isinstance(declared, list) else []
    return [each for each in listed if isinstance(each, dict)]


def _type_of(schema: Any, root: Entry) -> str:
    return cut(type_summary(schema, root), _MAX_TYPE_LENGTH)


def _value(value: Any, *, is_bare: bool = False) -> str:
    """Return a value of a schema as short JSON; `is_bare` leaves out the quotes of a string."""
    from ..output.content import json_line

    text = value if is_bare and isinstance(value, str) else json_line(value)
    return cut(visible(text, kept=""), _MAX_VALUE_LENGTH)


def _paragraphs(text: str, indent: str) -> Iterator[str]:
    """Yield a text with its own line breaks, each line wrapped."""
    room = None if row_width() is None else width()
    for line in text.strip().replace("\r\n", "\n").split("\n"):
        body = line.lstrip(" \t")
        margin = indent + " " * min(8, len(line.expandtabs(4)) - len(body.expandtabs(4)))
        yield from wrap(visible(body.rstrip(), kept=""), room, indent=margin) if body else [""]


def _joined(text: str) -> str:
    """Return a text that is not wrapped."""
    return text.replace(" ", _JOINER)


def _word(text: Any) -> str:
    """Return a name of the server as it is, with line breaks escaped; a very long one is cut."""
    if not isinstance(text, str):
        return ""
    shown = visible(text, kept="")
    return shown if row_width() is None else cut(shown, _MAX_NAME_LENGTH)


def _line(text: Any) -> str:
    """Return the first paragraph of a server's text as one line."""
    if not isinstance(text, str):
        return ""
    first = text.strip().split("\n\n", 1)[0]
    return visible(" ".join(first.split()), kept="")


def _object(value: Any) -> Entry:
    return value if isinstance(value, dict) else {}


def _required(schema: Entry) -> list[Any]:
    needed = schema.get("required")
    return needed if isinstance(needed, list) else []

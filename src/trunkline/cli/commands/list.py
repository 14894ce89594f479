"""The verb `list`: shows what a server offers, as text or as a JSON document.

Lines are cut to the width of a terminal, and never in a pipe. The JSON document is made by
`connect.listing`; `trunkline diff` reads it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...errors import visible
from ..command import UsageError
from ..connect.options import add_target, take_words, wants_json
from ..connect.talk import talk
from ..exit_codes import SUCCESS
from ..output.reports import emit
from ..output.terminal import bold, cells, cut, dim, is_terminal, paint, terminal_width

if TYPE_CHECKING:
    from ...client.client import Client
    from ..connect.talk import Work
    from ..output.progress import Console

__all__ = [
    "COMPLETES",
    "EXAMPLES",
    "TAKES_COMMAND",
    "add_options",
    "configure",
    "run",
    "work_of",
]

TAKES_COMMAND: Final = True

_KINDS: Final = ("tools", "resources", "templates", "prompts")
# All of them: the templates come with the resources.
_EVERY: Final = ("tools", "resources", "prompts")
COMPLETES: Final = _KINDS
EXAMPLES: Final = """\
trunkline list -- trunkline serve notes.py
trunkline list tcp://localhost:9000 tools find --long
"""
# Columns; a longer name gets a line of its own.
_MAX_NAME_COLUMNS: Final = 28
# Characters of the server's instructions that are shown without `--long`.
_MAX_INSTRUCTIONS: Final = 200


class _ListedItem(NamedTuple):
    """A tool, resource, template or prompt as it is shown."""

    name: str
    about: str
    detail: str
    is_deprecated: bool
    # As the server sent it.
    whole: Mapping[str, Any]

    def __repr__(self) -> str:
        from ...jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser, "[KIND [NAME ...]]")
    parser.epilog = "KIND is tools, resources, templates or prompts; default: all of them."
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that are not about the connection."""
    parser.add_argument(
        "--long", action="store_true", help="show full descriptions, schemas and annotations"
    )


def run(options: argparse.Namespace) -> int:
    """Print the lists and return the exit status."""
    return talk(options, work_of(options, take_words(options)))


def work_of(options: argparse.Namespace, words: Sequence[str]) -> Work:
    """Return what prints the lists that `words` name.

    Raises:
        UsageError: there is no such kind of list.
    """
    kind, names = (words[0], words[1:]) if words else ("", [])
    if kind and kind not in _KINDS:
        raise UsageError(f"list takes {', '.join(_KINDS)}, not {visible(kind, kept='')!r}")

    async def work(client: Client, console: Console) -> int:
        from ..connect.listing import listing_of

        listing = await listing_of(client, (kind,) if kind else _EVERY)
        console.clear()
        if names:
            _keep_named(listing, names, kind)
        if wants_json(options):
            from ..output.content import json_text

            emit(json_text(listing))
        else:
            is_long = options.long or bool(names)
            emit("\n".join(_lines(listing, kind, is_long=is_long)))
        return SUCCESS

    return work


def _keep_named(listing: dict[str, Any], names: Sequence[str], kind: str) -> None:
    """Remove all other entries from a listing.

    Raises:
        UsageError: a name is not in it.
    """
    members = [
        member
        for member in ("tools", "resources", "resourceTemplates", "prompts")
        if member in listing
    ]
    # In the order of the server, for the error message.
    every = (name for member in members for each in listing[member] for name in _names(each))
    known = dict.fromkeys(every)
    for name in names:
        if name not in known:
            # Imported here: most names exist.
            from ..connect.errors import unknown_name

            raise unknown_name(name, known, kind.removesuffix("s"))
    for member in members:
        listing[member] = [
            each for each in listing[member] if not set(names).isdisjoint(_names(each))
        ]


def _names(entry: Mapping[str, Any]) -> list[str]:
    members = ("name", "uri", "uriTemplate")
    return [entry[each] for each in members if isinstance(entry.get(each), str)]


# Text


def _lines(listing: Mapping[str, Any], kind: str, *, is_long: bool) -> Iterator[str]:
    sections = [
        ("Tools", "tools", _tool),
        ("Resources", "resources", _resource),
        ("Resource templates", "resourceTemplates", _resource),
        ("Prompts", "prompts", _prompt),
    ]
    if not kind:
        yield from _heading(listing, is_long=is_long)
    for title, member, entry_of in sections:
        entries = [entry_of(each) for each in listing.get(member, ())]
        if entries:
            if not kind:
                yield ""
            yield bold(f"{title} ({len(entries)})")
            yield from _section(entries, is_long=is_long)
    if not any(listing.get(member) for _, member, _ in sections):
        yield f"no {kind}" if kind else "The server offers nothing."


def _heading(listing: Mapping[str, Any], *, is_long: bool) -> Iterator[str]:
    server = listing["server"]
    title = server.get("title")
    called = f"{_line(server.get('name'))} {_line(server.get('version'))}".strip() or "a server"
    if isinstance(title, str) and title != server.get("name"):
        called = f"{_line(title)} ({called})"
    yield _fitted(f"{called}, MCP {_line(listing['revision'])}", bold)
    told = listing.get("instructions")
    if isinstance(told, str) and told.strip():
        if is_long:
            yield visible(told.strip(), kept="\t\n")
        else:
            yield _fitted(cut(_line(told), _MAX_INSTRUCTIONS), dim)


def _section(entries: Sequence[_ListedItem], *, is_long: bool) -> Iterator[str]:
    column = min(_MAX_NAME_COLUMNS, max(cells(each.name) for each in entries))
    for each in entries:
        margin = " " * (column + 4)
        about = each.about
        if cells(each.name) > column:
            yield _fitted(f"  {each.name}", str)
            first = margin
        else:
            first = f"  {each.name}{' ' * (column - cells(each.name))}  "
        if about or first is not margin:
            style = _yellow if each.is_deprecated else str
            yield _fitted(f"{first}{about}".rstrip(), style)
        if each.detail:
            yield _fitted(f"{margin}{each.detail}", dim)
        if is_long:
            yield from _whole(each.whole)


def _whole(entry: Mapping[str, Any]) -> Iterator[str]:
    from ..output.content import json_text, plain

    about = entry.get("description")
    if isinstance(about, str) and "\n" in about.strip():
        yield _indented(plain(about.strip()))
    for name in ("arguments", "inputSchema", "outputSchema", "annotations", "execution", "_meta"):
        if entry.get(name):
            yield _indented(f"{name}: {json_text(entry[name])}")
    yield ""


def _indented(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.split("\n"))


def _yellow(text: str) -> str:
    return paint(text, "yellow")


def _fitted(line: str, style: Any) -> str:
    shown: str = style(cut(line, terminal_width()) if is_terminal(sys.stdout) else line)
    return shown


def _line(text: Any) -> str:
    """Return the first paragraph of a server's text as one line."""
    if not isinstance(text, str):
        return ""
    first = text.strip().split("\n\n", 1)[0]
    return visible(" ".join(first.split()), kept="")


# Entries


def _tool(tool: Mapping[str, Any]) -> _ListedItem:
    return _entry(tool, "name", _arguments(tool.get("inputSchema")))


def _resource(resource: Mapping[str, Any]) -> _ListedItem:
    mime_type, size = resource.get("mimeType"), resource.get("size")
    facts = [_line(mime_type)] if isinstance(mime_type, str) else []
    if isinstance(size, int):
        facts.append(f"{size} bytes")
    return _entry(resource, "uri" if "uri" in resource else "uriTemplate", ", ".join(facts))


def _prompt(prompt: Mapping[str, Any]) -> _ListedItem:
    declared = prompt.get("arguments")
    given = declared if isinstance(declared, list) else []
    names = [
        f"{_line(each.get('name'))}{'' if each.get('required') is True else '?'}"
        for each in given
        if isinstance(each, dict)
    ]
    return _entry(prompt, "name", ", ".join(names))


def _entry(whole: Mapping[str, Any], called: str, detail: str) -> _ListedItem:
    about = _line(whole.get("description")) or _line(whole.get("title"))
    if not about and called != "name":
        about = _line(whole.get("name"))
    says_so = about.lower().startswith("deprecated")
    is_deprecated = says_so or whole.get("deprecated") is True
    if is_deprecated and not says_so:
        about = f"Deprecated. {about}".strip()
    return _ListedItem(_line(whole.get(called)), about, detail, is_deprecated, whole)


def _arguments(schema: Any) -> str:
    """Return the parameters of a tool: `city: string, days?: integer`."""
    from ..connect.tool_arguments import type_summary

    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ""
    needed = schema.get("required")
    required = needed if isinstance(needed, list) else []
    return ", ".join(
        f"{_line(name)}{'' if name in required else '?'}: {type_summary(each, schema)}"
        f"{' (deprecated)' if isinstance(each, dict) and each.get('deprecated') is True else ''}"
        for name, each in properties.items()
    )

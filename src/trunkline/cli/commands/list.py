"""The verb `list`: shows what a server offers, as text or as a JSON document.

The text is made by `connect.listing_text`, the document by `connect.listing`; `trunkline diff`
reads the latter.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...errors import visible
from ..command import UsageError
from ..connect.options import add_target, take_words, wants_json
from ..connect.talk import talk
from ..exit_codes import SUCCESS
from ..output.reports import emit

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
trunkline list notes.py
trunkline list https://mcp.example.org/mcp tools find --long
trunkline list -o json -- npx some-server
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser, "[KIND [NAME ...]]", takes_answers=False)
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

        with console.waiting("listing"):
            listing = await listing_of(client, (kind,) if kind else _EVERY)
        if names:
            _keep_named(listing, names, kind)
        if wants_json(options):
            from ..output.content import document_shown

            emit(document_shown(listing))
        else:
            from ..connect.listing_text import listing_lines

            lines = listing_lines(listing, kind, is_long=options.long, in_detail=bool(names))
            emit("\n".join(lines))
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

"""The verb `diff`: compares the listings of two servers, and finds changes that break clients.

Each side is a file, standard input, a target, or (the new one) a command after `--`. A live server
is asked for all its lists; a file that is not Python is read by `judge.diff.read_listing`.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from ...errors import show_pointer
from ..command import UnreadableInput, UsageError
from ..connect.options import add_target, check_options, wants_json
from ..connect.talk import talk
from ..exit_codes import PROBLEMS_FOUND, SUCCESS
from ..output.reports import emit, visible
from ..output.terminal import bold, dim, paint, row_width, wrap

if TYPE_CHECKING:
    from ...client.connect.resolve import ResolvedTarget
    from ...judge.diff import Change, Comparison

__all__ = ["EXAMPLES", "FORMAT", "TAKES_COMMAND", "configure", "run"]

TAKES_COMMAND: Final = True
FORMAT: Final = "trunkline.diff/1"
EXAMPLES: Final = """\
trunkline list -o json notes.py > released.json
trunkline diff released.json notes.py
"""

_COLOURS: Final = {"breaking": "red", "announced": "yellow", "deprecated": "yellow", "safe": "cyan"}
# Escaped, so that a server's text cannot become links or pictures.
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>()|~&#!])")


class _Unreached(Exception):
    """A server could not be listed; the error has been printed."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(
        parser,
        takes_answers=False,
        target=(
            "OLD NEW",
            "each is a file (of `trunkline list -o json`, a tools/list result, or a recording), - "
            "for standard input, or a server as in the other verbs (server.py, an address, "
            "claude:NAME); NEW is left out with a command after --",
        ),
        takes_config=False,
    )
    parser.usage = (
        f"{parser.prog} OLD NEW [options]\n       {parser.prog} OLD [options] -- COMMAND ..."
    )
    parser.epilog = "The exit status is 1 if NEW breaks clients of OLD."
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument(
        "--allow-announced",
        action="store_true",
        help="allow the removal of deprecated entries in any version; default: only in the next "
        "major version",
    )


def run(options: argparse.Namespace) -> int:
    """Compare, print the changes and return the exit status."""
    # Imported here: help does not need it.
    from ...judge.diff import compare

    if options.markdown and wants_json(options):
        raise UsageError("give --markdown or -o json, not both")
    names = _sides(options)
    try:
        old, new = (_listing(name, options) for name in names)
    except _Unreached as end:
        return end.status
    found = compare(old, new)
    if not found.compared:
        called = " and ".join(_called(name, options) for name in names)
        raise UnreadableInput(f"nothing was compared: {called} have no list in common")
    breaks = found.breaks(allow_announced=options.allow_announced)
    shown = [_called(name, options) for name in names]
    if wants_json(options):
        emit(_json(found, shown, breaks))
    elif options.markdown:
        emit(_markdown(found, shown, breaks))
    else:
        emit(_text(found, breaks))
    return PROBLEMS_FOUND if breaks else SUCCESS


# What is compared


def _sides(options: argparse.Namespace) -> list[str | None]:
    """Return the names of the two sides; None is the command."""
    words: list[str | None] = list(options.words)
    if options.command is not None:
        words.append(None)
    if len(words) != 2:
        raise UsageError(
            "diff takes OLD and NEW: two files or servers, or OLD and a command after --"
        )
    if words.count("-") > 1:
        raise UsageError("only one of the two can be standard input")
    live = [None if word is None else _resolved(word) for word in words if _is_live(word)]
    if options.trace and len(live) == 2:
        raise UsageError("--trace records one connection, and both sides are servers")
    if options.trace and not live:
        raise UsageError("--trace records a connection, and neither side is a server")
    if options.env and options.command is None:
        raise UsageError("--env needs a command after --")
    check_options(options, *(each.address or None if each else None for each in live))
    return words


def _resolved(name: str) -> ResolvedTarget:
    from ..connect.target import resolve_target

    return resolve_target(name)


def _is_live(name: str | None) -> bool:
    if name is None:
        return True
    # Imported here: help does not need it.
    from ...client.connect.resolve import is_target

    return is_target(name) and (name.endswith(".py") or not os.path.exists(name))


def _called(name: str | None, options: argparse.Namespace) -> str:
    """Return the name of a side in a report; of a command only its first word."""
    if name is None:
        return str(options.command[0]) if options.command else "command"
    return "stdin" if name == "-" else name


def _listing(name: str | None, options: argparse.Namespace) -> dict[str, Any]:
    if name is None or _is_live(name):
        return _live(name, options)
    from ...judge.diff import read_listing

    called = _called(name, options)
    try:
        if name == "-":
            if sys.stdin is None:
                raise UnreadableInput("stdin is closed")
            data = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as file:
                data = file.read()
        return read_listing(data)
    except ValueError as error:
        raise UnreadableInput(f"{called}: {error}") from None


def _live(address: str | None, options: argparse.Namespace) -> dict[str, Any]:
    from ..connect.listing import listing_of

    found: list[dict[str, Any]] = []

    async def ask(client: Any, console: Any) -> int:
        with console.waiting("listing"):
            found.append(await listing_of(client))
        return SUCCESS

    one = argparse.Namespace(**vars(options))
    one.target, one.typed = None, ""
    if address is not None:
        from ..connect.target import use_target

        # These two belong to the command, which may be the other side.
        one.command, one.env = None, []
        use_target(one, _resolved(address))
    status = talk(one, ask)
    if not found:
        raise _Unreached(status)
    return found[0]


# What is printed


def _summary(found: Comparison) -> str:
    from ...judge.diff import LEVELS

    return ", ".join(f"{found.counts[level]} {level}" for level in LEVELS)


def _verdict(found: Comparison, breaks: bool) -> str:
    if found.counts["breaking"]:
        return "the new server breaks clients of the old one"
    if breaks:
        return "deprecated entries are gone before the next major version"
    if found.counts["announced"]:
        return "only deprecated entries are gone"
    return "nothing breaks" if any(found.counts.values()) else "no changes"


def _place(change: Change) -> str:
    where = show_pointer(change.where)
    argument = where.removeprefix("/inputSchema/properties/")
    if argument != where and "/" not in argument:
        return f"{change.what}, argument {argument.replace('~1', '/').replace('~0', '~')}"
    return f"{change.what} at {where}" if where else change.what


def _text(found: Comparison, breaks: bool) -> str:
    lines: list[str] = []
    room = row_width()
    level = ""
    for change in found.changes:
        if change.level != level:
            level = change.level
            lines += [""] if lines else []
            lines.append(paint(f"{level.upper()} ({found.counts[change.level]})", _COLOURS[level]))
        says = f"{bold(visible(_place(change)))}: {visible(change.says)}"
        lines += wrap(says, room, indent="  ", hanging="    ")
        lines += wrap(dim(f"{change.rule}: {change.why}"), room, indent="    ")
    left = sum(found.counts.values()) - len(found.changes)
    if left:
        lines += ["", f"and {left} more"]
    if found.notes:
        lines.append("")
        for note in found.notes:
            lines += wrap(f"note: {visible(note)}", room, hanging="  ")
    lines += [""] if lines else []
    lines += wrap(f"{_summary(found)}: {bold(_verdict(found, breaks))}", room, hanging="  ")
    return "\n".join(lines)


def _json(found: Comparison, names: list[str], breaks: bool) -> str:
    from ..output.content import document_shown

    document = {
        "format": FORMAT,
        "old": names[0],
        "new": names[1],
        "old_version": found.old_version or None,
        "new_version": found.new_version or None,
        "ok": not breaks,
        "verdict": _verdict(found, breaks),
        "counts": found.counts,
        "changes": [
            {
                "rule": change.rule,
                "level": change.level,
                "what": change.what,
                "where": show_pointer(change.where),
                "old": change.old,
                "new": change.new,
                "says": change.says,
                "why": change.why,
            }
            for change in found.changes
        ],
        "notes": list(found.notes),
    }
    return document_shown(document)


def _markdown(found: Comparison, names: list[str], breaks: bool) -> str:
    lines = [f"## {_plain(names[0])} → {_plain(names[1])}", ""]
    lines.append(f"{_summary(found)}: **{_verdict(found, breaks)}**.")
    if found.changes:
        lines += ["", "| Level | What | Change | Rule |", "|---|---|---|---|"]
    for change in found.changes:
        cells = (change.level, _plain(_place(change)), _plain(change.says), f"`{change.rule}`")
        lines.append(f"| {' | '.join(cells)} |")
    if found.notes:
        lines += ["", *(f"- {_plain(note)}" for note in found.notes)]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(visible(text).split()))

"""The verb `diff`: say what has changed between two listings, and whether it breaks clients.

Each of the two is a file, standard input, an address, or (the new one) a command after `--`.
A live server is asked for everything it lists; a file is whatever `read_listing` reads.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from ..command import UsageError
from ..exit_codes import PROBLEMS_FOUND, SUCCESS, UNREADABLE_INPUT

if TYPE_CHECKING:
    from ...judge.diff import Change, Comparison

__all__ = ["FORMAT", "TAKES_COMMAND", "configure", "run"]

TAKES_COMMAND: Final = True
FORMAT: Final = "trunkline.diff/1"

_COLOURS: Final = {"breaking": "red", "announced": "yellow", "deprecated": "yellow", "safe": "cyan"}
# What would be read as markup, and turn a server's text into links or pictures.
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>()|~&#!])")


class _Unreadable(Exception):
    """A file holds no listing; the text says what is wrong with it."""


class _Unreached(Exception):
    """A server gave no listing, which was told already."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    # Imported here, as by every verb that talks: completion reads this module too.
    from ..connect.target import add_target

    add_target(parser)
    parser.usage = (
        f"{parser.prog} OLD NEW [options]\n       {parser.prog} OLD [options] -- COMMAND ..."
    )
    parser.epilog = (
        "OLD and NEW are files (of `trunkline list -o json`, of a tools/list, or a recording), "
        "- for standard input, or addresses. Ends with 1 if clients of OLD break with NEW."
    )
    parser.add_argument("--markdown", action="store_true", help="print a page for a review")
    parser.add_argument(
        "--allow-announced",
        action="store_true",
        help="let what was marked as deprecated go in any version, not only the next major one",
    )


def run(options: argparse.Namespace) -> int:
    """Compare, print what has changed and return the exit status."""
    from ...judge.diff import compare
    from ..connect.target import wants_json
    from ..output.reports import emit
    from ..output.terminal import tell

    if options.markdown and wants_json(options):
        raise UsageError("give --markdown or JSON, not both")
    names = _sides(options)
    try:
        old, new = (_listing(name, options) for name in names)
    except _Unreadable as problem:
        tell(f"trunkline diff: {problem}")
        return UNREADABLE_INPUT
    except _Unreached as end:
        return end.status
    found = compare(old, new)
    if not found.compared:
        called = " and ".join(_called(name, options) for name in names)
        why = f"nothing was compared: {called} have no part in common"
        tell(f"trunkline diff: {why}")
        return UNREADABLE_INPUT
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
    """Return the names of the two; None is the command."""
    from ..connect.target import check_tls

    words: list[str | None] = list(options.words)
    if options.command is not None:
        words.append(None)
    if len(words) != 2:
        raise UsageError("name OLD and NEW: two files or addresses, or OLD and a command after --")
    if words.count("-") > 1:
        raise UsageError("only one of the two can be standard input")
    live = [word for word in words if _is_live(word)]
    if options.trace and len(live) == 2:
        raise UsageError("--trace records one conversation, and both of these are servers")
    if options.trace and not live:
        raise UsageError("--trace records a conversation, and neither of these is a server")
    if options.env and options.command is None:
        raise UsageError("--env is for a command after --")
    check_tls(options, *live)
    return words


def _is_live(name: str | None) -> bool:
    from ..connect.target import ADDRESSES

    return name is None or (name.startswith(ADDRESSES) and not os.path.exists(name))


def _called(name: str | None, options: argparse.Namespace) -> str:
    """Return what a side is called in a report; of a command no more than its first word."""
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
                raise _Unreadable("stdin: it is closed")
            data = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as file:
                data = file.read()
        return read_listing(data)
    except ValueError as error:
        raise _Unreadable(f"{called}: {error}") from None


def _live(address: str | None, options: argparse.Namespace) -> dict[str, Any]:
    """Return what a server lists, asked now."""
    from ..connect.listing import listing_of
    from ..connect.target import talk

    found: list[dict[str, Any]] = []

    async def ask(client: Any, _console: Any) -> int:
        found.append(await listing_of(client))
        return SUCCESS

    one = argparse.Namespace(**vars(options))
    one.target = address
    if address is not None:
        # Both belong to the command, which may be the other side.
        one.command, one.env = None, []
    status = talk(one, ask)
    if not found:
        raise _Unreached(status)
    return found[0]


# What is printed


def _shown(text: str) -> str:
    from ..output.reports import visible

    return visible(text)


def _summary(found: Comparison) -> str:
    from ...judge.diff import LEVELS

    return ", ".join(f"{found.counts[level]} {level}" for level in LEVELS)


def _verdict(found: Comparison, breaks: bool) -> str:
    if found.counts["breaking"]:
        return "clients of the old server break with the new one"
    if breaks:
        return "what was announced is gone before the next major version"
    if found.counts["announced"]:
        return "nothing breaks that was not announced"
    return "nothing breaks" if any(found.counts.values()) else "nothing has changed"


def _place(change: Change) -> str:
    from ...errors import show_pointer

    return f"{change.what} at {show_pointer(change.where)}" if change.where else change.what


def _text(found: Comparison, breaks: bool) -> str:
    from ..output.terminal import bold, dim, paint

    lines: list[str] = []
    level = ""
    for change in found.changes:
        if change.level != level:
            level = change.level
            lines += [""] if lines else []
            lines.append(paint(f"{level.upper()} ({found.counts[change.level]})", _COLOURS[level]))
        lines.append(f"  {bold(_shown(_place(change)))}: {_shown(change.says)}")
        lines.append(f"    {dim(f'{change.rule}: {change.why}')}")
    left = sum(found.counts.values()) - len(found.changes)
    if left:
        lines += ["", f"and {left} more"]
    if found.notes:
        lines += ["", *(f"note: {_shown(note)}" for note in found.notes)]
    lines += [""] if lines else []
    return "\n".join([*lines, f"{_summary(found)}: {bold(_verdict(found, breaks))}"])


def _json(found: Comparison, names: list[str], breaks: bool) -> str:
    from ...errors import show_pointer
    from ..output.content import json_text

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
    return json_text(document)


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
    return _MARKUP.sub(r"\\\1", " ".join(_shown(text).split()))

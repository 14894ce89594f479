"""Changes an entry of a host: shows the diff, asks, and writes.

The rules that live here, and only here:

* What would be written is shown first: the file, and a diff whose secrets are hidden.
* Nothing is written without a yes: typed at a terminal, or `--yes`.
* The file may change while the user reads. Other entries do not matter; if the entry itself is
  another than the one that was shown, nothing is written.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from difflib import unified_diff
from functools import partial
from typing import Any, Final

from ...errors import visible
from ...hosts.edit import EntryPlace
from ...hosts.errors import HostConfigError, UnknownHost
from ...hosts.files import locate
from ...hosts.mask import masked_texts
from ...hosts.table import ANY_HOST, HOSTS, Host, find_host
from ...hosts.write import change_file
from ..command import UsageError
from ..exit_codes import SUCCESS, USAGE_ERROR
from ..output.progress import is_interactive
from ..output.terminal import paint, tell, writing

_JSON_HELP: Final = "or json, which prints an entry for any other one; "

__all__ = ["add_consent", "add_host", "apply_change", "find_place"]


def add_host(
    parser: argparse.ArgumentParser,
    *names: str,
    nargs: str | None = None,
    takes_json: bool = False,
) -> None:
    """Declare the argument that names a host: an option if `names` begin with a dash.

    With `takes_json` it may also be `json`, which stands for any other host.
    """
    ids = [host.id for host in HOSTS]
    others = [ANY_HOST.id] if takes_json else []
    is_option = names[0].startswith("-")
    how: dict[str, Any] = {"dest": "host", "required": True} if is_option else {"nargs": nargs}
    parser.add_argument(
        *names,
        type=partial(_host_id, takes_json=takes_json),
        choices=[*ids, *others],
        metavar="HOST",
        help=f"the host: {', '.join(ids)}; {_JSON_HELP if takes_json else ''}"
        f"{'required' if is_option else 'default: all'}",
        **how,
    )


def _host_id(text: str, *, takes_json: bool) -> str:
    try:
        return find_host(text, takes_any=takes_json).id
    except UnknownHost as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_consent(parser: argparse.ArgumentParser) -> None:
    """Declare `--scope`, `--dry-run` and `--yes`."""
    parser.add_argument(
        "--scope",
        choices=("user", "project", "local"),
        help="user: for all projects; project: the file in this folder, to be shared; "
        "local: for this folder alone (claude-code); default: user, or what the host has",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the diff and write nothing")
    parser.add_argument(
        "-y", "--yes", action="store_true", help="write without a question, as scripts need it"
    )


def find_place(host: Host, scope: str | None, name: str) -> EntryPlace:
    """Return the file of a host for an entry of a scope, by default the weakest, the user's.

    Of several files of one scope it is the one that has the entry, else the first that is there.

    Raises:
        UsageError: the host has no such scope, or no file on this platform.
        HostConfigError: a file cannot be read.
    """
    found = [each for each in host.locations if scope in (None, each.scope)]
    if not found:
        scopes = ", ".join(dict.fromkeys(each.scope for each in host.locations))
        raise UsageError(f"{host.title} has no file for the scope {scope}; it has: {scopes}")
    project = os.getcwd()
    located = [
        (each, locate(each, project=project)) for each in found if each.scope == found[-1].scope
    ]
    places = [EntryPlace(host, each, path, project) for each, path in located if path is not None]
    if not places:
        raise UsageError(f"{host.title} has no documented file on {sys.platform}")
    there = [each for each in places if os.path.lexists(each.path)]
    if len(there) > 1:
        there = [each for each in there if each.has(each.text(), name)] or there
    return (there or [each for each in places if not each.location.is_alternative])[0]


def apply_change(
    place: EntryPlace,
    name: str,
    edit: Callable[[str], str],
    options: argparse.Namespace,
    *,
    done: str,
    is_added: bool = False,
) -> int:
    """Show a change, ask, write it and return the exit status.

    With `is_added` the text says what the host needs before it uses the entry.

    Raises:
        HostConfigError: the file cannot be read, edited or written; it is as it was.
    """
    before = place.text()
    shown_entry = place.raw(before, name)
    after = edit(before)
    if after == before:
        tell(f"{options.prog}: {visible(place.path)} has this entry already; nothing to do")
        return SUCCESS
    with writing():
        _print_diff(place, before, after)
    if options.dry_run:
        return SUCCESS
    if not options.yes:
        if not is_interactive():
            tell(
                f"{options.prog}: nothing was written: there is no terminal to ask at; "
                "add --yes to write, or --dry-run to see the change alone"
            )
            return USAGE_ERROR
        if not _ask(f"Write {visible(place.path)}?"):
            tell(f"{options.prog}: nothing was written")
            return USAGE_ERROR

    def checked(text: str) -> str:
        if place.raw(text, name) != shown_entry:
            raise HostConfigError(
                "changed meanwhile: nothing was written; run the command again",
                file=place.path,
                entry=name,
            )
        return edit(text)

    mode = 0o600 if place.location.scope != "project" else 0o666 & ~_umask()
    backup = change_file(place.path, checked, mode=mode)
    tell(f"{options.prog}: {done}")
    if backup is not None:
        tell(f"{options.prog}: the file as it was: {visible(backup)}")
    if place.host.reload:
        tell(f"{options.prog}: for the change to take effect, {place.host.reload}")
    needed = place.host.approval.get(place.location.scope, "") if is_added else ""
    if needed:
        shown = needed.replace("NAME", name).replace("FOLDER", visible(place.project))
        tell(f"{options.prog}: {shown}")
    return SUCCESS


def _umask() -> int:
    # It can only be read by setting it. This process has one thread.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _print_diff(place: EntryPlace, before: str, after: str) -> None:
    old, new = masked_texts(before, after, place.host)
    path = visible(place.path)
    lines = unified_diff(
        _lines(old), _lines(new), path if before else os.devnull, path, lineterm=""
    )
    for line in lines:
        shown = visible(line.removesuffix("\r"))
        if line.startswith(("---", "+++")):
            print(paint(shown, "bold"))
        elif line.startswith("-"):
            print(paint(shown, "red"))
        elif line.startswith(("+", "@@")):
            print(paint(shown, "cyan"))
        else:
            print(shown)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _ask(question: str) -> bool:
    """Return True if the user types yes; an empty line and Ctrl-D are a no."""
    while True:
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            return False
        answer = line.strip().lower()
        if answer in ("y", "yes"):
            return True
        if answer in ("", "n", "no"):
            return False
        sys.stderr.write("y or n, please\n")

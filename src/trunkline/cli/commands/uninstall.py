"""The verb `uninstall`: removes a server from the configuration of a host."""

from __future__ import annotations

import argparse
from typing import Final

from ...errors import visible
from ..command import UnreadableInput, UsageError

__all__ = ["EXAMPLES", "configure", "run"]

EXAMPLES: Final = """\
trunkline uninstall weather --from claude-desktop
trunkline uninstall weather --from claude-code --scope project --yes
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from ..connect.host_change import add_consent, add_host

    parser.set_defaults(prog=parser.prog)
    parser.add_argument("name", metavar="NAME", help="name of the entry")
    add_host(parser, "--from")
    add_consent(parser)


def run(options: argparse.Namespace) -> int:
    """Remove the entry and return the exit status."""
    from ...hosts.edit import take_entry
    from ...hosts.errors import HostConfigError
    from ...hosts.table import find_host
    from ..connect.host_change import apply_change, find_place

    host = find_host(options.host)
    name = options.name
    try:
        place = find_place(host, options.scope or _scope_of(name, host.id), name)
        if not place.has(place.text(), name):
            raise UsageError(f"{visible(place.path)} has no entry {name!r}")
        return apply_change(
            place,
            name,
            lambda text: take_entry(text, place, name),
            options,
            done=f"{name!r} is removed from {host.title}",
        )
    except HostConfigError as error:
        raise UnreadableInput(str(error)) from None


def _scope_of(name: str, host: str) -> str | None:
    """Return the scope that has an entry, if one alone has it.

    Raises:
        UsageError: several have it.
    """
    from ...hosts.files import load_files
    from ...hosts.table import find_host

    # Once each: a scope may have several files.
    found = list(
        dict.fromkeys(
            file.location.scope
            for file in load_files(find_host(host))
            if name in [each.name for each in file.entries]
            or name in [each.name for each in file.problems]
        )
    )
    if len(found) > 1:
        raise UsageError(f"{name!r} is in several files; add --scope {' or --scope '.join(found)}")
    return found[0] if found else None

"""The command `trunkline`.

Each verb is imported when it is used, so that `--version` and `--help` load
nothing of the library.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .. import __version__

__all__ = ["main"]

_USAGE = """\
usage: trunkline [--version] [--help]

JSON-RPC 2.0, the Model Context Protocol and Agent2Agent.

options:
  --version  print the version
  --help     print this

There are no verbs yet: this release is the library. Start with
https://www.jsonrpc.org/specification and `python -m pydoc trunkline.jsonrpc`.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0 fine, 2 misused."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--version"], ["-V"]):
        print(f"trunkline {__version__}")
        return 0
    if not words or words[0] in ("--help", "-h"):
        print(_USAGE, end="")
        return 0
    print(f"trunkline: unknown argument {words[0]!r}; try --help", file=sys.stderr)
    return 2

"""The options of the commands of a shell: those of the verb with the same name.

Only options about the result are declared. Those of the connection belong to `trunkline shell`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NoReturn

from ..command import UsageError, load
from ..connect.options import add_output
from ..output.terminal import width

__all__ = ["VERBS", "command_options", "command_parser", "verb_module"]

# Commands that run the verb of the same name, and whether they take a JSON object.
VERBS: Final = {"list": False, "call": True, "read": False, "prompt": True, "ping": False}


class _CommandParser(argparse.ArgumentParser):
    """A parser whose errors end the command, and not the shell."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; try help {self.prog}")


def verb_module(name: str) -> Any:
    """Return the module of a verb, which has `add_options` and `work_of`."""
    return load(name)


@cache
def command_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command that runs a verb."""
    formatter: Callable[..., argparse.HelpFormatter] = argparse.HelpFormatter
    parser = _CommandParser(
        prog=name,
        add_help=False,
        formatter_class=lambda prog: formatter(prog, width=width()),
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    add_output(parser)
    if VERBS[name]:
        parser.add_argument(
            "--json",
            nargs="?",
            const=True,
            metavar="OBJECT",
            help="all arguments as a JSON object; without a value: the same as -o json",
        )
    else:
        parser.add_argument("--json", action="store_true", help="the same as -o json")
    if name == "call":
        parser.add_argument(
            "--task", action="store_true", help="return at once; `tasks` shows what became of it"
        )
    verb_module(name).add_options(parser)
    return parser


def command_options(name: str) -> dict[str, str]:
    """Return the options of a command with their help."""
    if name not in VERBS:
        return {}
    # argparse has no public way to list the arguments of a parser.
    return {
        option: action.help or ""
        for action in command_parser(name)._actions
        for option in action.option_strings
    }

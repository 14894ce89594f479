"""Run one verb: parse its arguments, call it, and turn what goes wrong into a sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn, Protocol, cast

from . import VERBS
from .exit_codes import INTERRUPTED, SUCCESS, USAGE_ERROR
from .output.terminal import tell, width, writing

__all__ = ["UsageError", "Verb", "check_text", "load", "parser_of", "run", "split"]


class UsageError(Exception):
    """The command names something there is not; the text is for whoever typed it."""


class Verb(Protocol):
    """A module of this package that is a verb."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Do it and return the exit status."""
        ...


class _Parser(argparse.ArgumentParser):
    """A parser that says how to get help, on one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: {message}; try {self.prog} --help\n")

    def print_help(self, file: Any = None) -> None:
        # That of argparse says nothing if it cannot be written.
        stream = file or sys.stdout
        if stream is not None:
            with writing():
                stream.write(self.format_help())


class _Formatter(argparse.HelpFormatter):
    """Help as wide as everything else is printed; a text of several lines keeps them.

    That of argparse finds out the width by a module that loads four ways of compression, for
    each command whether help is wanted or not.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return "".join(indent + line for line in text.splitlines(keepends=True))
        return super()._fill_text(text, width, indent)


def check_text(text: str, name: str) -> None:
    """Refuse a word of the command that is no text.

    Raises:
        Misuse: its bytes are not UTF-8, and nothing else can be sent.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} is no text in UTF-8") from None


def load(name: str) -> Verb:
    """Return the module of a verb."""
    return cast(Verb, import_module(f".commands.{name}", __package__))


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a verb."""
    parser = _Parser(
        prog=f"trunkline {name}",
        description=f"{VERBS[name]}.".capitalize(),
        formatter_class=_Formatter,
    )
    load(name).configure(parser)
    return parser


def split(verb: Verb, words: Sequence[str]) -> tuple[Sequence[str], list[str] | None]:
    """Return the words of a verb, and the command that comes after `--`, where it takes one."""
    if not getattr(verb, "TAKES_COMMAND", False) or "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], list(words[at + 1 :])


def run(name: str, words: Sequence[str]) -> int:
    """Run a verb with the words that follow it; return the exit status."""
    try:
        return _run(name, words)
    except (UsageError, LookupError) as error:
        tell(f"trunkline {name}: {_sentence(error)}")
        return USAGE_ERROR
    except BrokenPipeError:
        return SUCCESS  # whoever reads has seen enough
    except OSError as error:
        what = "" if error.filename is None else f"{error.filename}: "
        tell(f"trunkline {name}: {what}{error.strerror or error}")
        return USAGE_ERROR
    except KeyboardInterrupt as end:
        # SIGTERM and SIGHUP have statuses of their own.
        return int(getattr(end, "status", INTERRUPTED))


def _run(name: str, words: Sequence[str]) -> int:
    try:
        verb = load(name)
        words, command = split(verb, words)
        options = parser_of(name).parse_args(words)
        options.command = command
        return verb.run(options)
    except SystemExit as end:  # argparse ends the program for --help and for misuse
        return end.code if isinstance(end.code, int) else USAGE_ERROR


def _sentence(error: Exception) -> str:
    return str(error.args[0]) if error.args else str(error)

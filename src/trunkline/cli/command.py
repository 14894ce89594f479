"""Runs one verb: parses its arguments, calls it and turns errors into one sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn, Protocol, cast

from . import VERBS
from .exit_codes import INTERRUPTED, SUCCESS, UNREADABLE_INPUT, USAGE_ERROR
from .output.terminal import tell_error, width, writing

__all__ = [
    "UnreadableInput",
    "UsageError",
    "Verb",
    "check_text",
    "load",
    "parser_of",
    "run",
    "split",
]

# Options of similar commands, and what they are called here.
_ELSEWHERE: Final = {
    "--host": "--tcp HOST:PORT",
    "--port": "--tcp PORT",
    "--transport": "--stdio, --tcp or --unix",
}


class UsageError(Exception):
    """The command line names something that does not exist; the text is shown to the user."""


class UnreadableInput(Exception):
    """An input file holds nothing the verb can read; the text says why."""


class Verb(Protocol):
    """A module of `commands`."""

    EXAMPLES: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Run the verb and return the exit status."""
        ...


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line that names the help."""

    def error(self, message: str) -> NoReturn:
        option = message.removeprefix("unrecognized arguments: ").split(" ")[0].split("=")[0]
        if option != message and option in _ELSEWHERE and self.prog == "trunkline serve":
            message = f"{message}; use {_ELSEWHERE[option]}"
        self.exit(USAGE_ERROR, f"{self.prog}: {message}; try {self.prog} --help\n")

    def print_help(self, file: Any = None) -> None:
        # argparse ignores an output that cannot be written.
        stream = file or sys.stdout
        if stream is not None:
            with writing():
                stream.write(self.format_help())


class _Formatter(argparse.HelpFormatter):
    """Help as wide as all other output; a paragraph of several lines keeps its line breaks.

    argparse asks shutil for the width, which loads four compression modules in every command.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = (
            "\n".join(f"{indent}{line}" for line in part.splitlines())
            if "\n" in part
            else super(_Formatter, self)._fill_text(part, width, indent)
            for part in text.strip().split("\n\n")
        )
        return "\n\n".join(filled)


def check_text(text: str, name: str) -> None:
    """Reject a word of the command line that is not UTF-8, which could not be sent.

    Raises:
        UsageError: the bytes of the word are not UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} is not UTF-8 text") from None


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
    verb = load(name)
    verb.configure(parser)
    title = "examples" if "\n" in verb.EXAMPLES.strip() else "example"
    examples = "\n".join(f"  {line}" for line in verb.EXAMPLES.strip().splitlines())
    parser.epilog = "\n\n".join(filter(None, [parser.epilog, f"{title}:\n{examples}"]))
    return parser


def split(verb: Verb, words: Sequence[str]) -> tuple[Sequence[str], list[str] | None]:
    """Return the words of a verb, and the command after `--` if the verb takes one."""
    if not getattr(verb, "TAKES_COMMAND", False) or "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], list(words[at + 1 :])


def run(name: str, words: Sequence[str]) -> int:
    """Run a verb with the words that follow it; return the exit status."""
    try:
        return _run(name, words)
    except (UsageError, LookupError) as error:
        tell_error(f"trunkline {name}", str(error.args[0] if error.args else error))
        return USAGE_ERROR
    except UnreadableInput as error:
        tell_error(f"trunkline {name}", str(error))
        return UNREADABLE_INPUT
    except BrokenPipeError:
        return SUCCESS  # the reader has closed the pipe, as `head` does
    except OSError as error:
        what = "" if error.filename is None else f"{error.filename}: "
        tell_error(f"trunkline {name}", f"{what}{error.strerror or error}")
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
    except SystemExit as end:  # argparse exits for --help and for wrong usage
        return end.code if isinstance(end.code, int) else USAGE_ERROR

"""Runs one verb: parses its arguments, calls it and turns errors into one sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
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
    "declare_options",
    "load",
    "parser_of",
    "run",
    "split",
]

# What argparse says of an option that a verb does not have.
_UNKNOWN: Final = "unrecognized arguments: "
# Their modules are in a sub-package.
_LOGIN_VERBS: Final = ("login", "logout", "auth")


class UsageError(Exception):
    """The command line names something that does not exist; the text is shown to the user."""


class UnreadableInput(Exception):
    """An input file holds nothing the verb can read; the text says why."""


class Verb(Protocol):
    """A module of `commands`."""

    EXAMPLES: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, options: argparse.Namespace) -> int:
        """Run the verb and return the exit status."""


class _VerbParser(argparse.ArgumentParser):
    """A parser whose errors are one line that names the help."""

    # The words to parse; the error for a missing option does not name what stands in its place.
    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # argparse's
        self._words = args or ()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: {self._advised(message)}; try {self.prog} --help\n")

    def _advised(self, message: str) -> str:
        """Add what to write in place of an option of another tool, or a misspelt one."""
        # Imported here: most command lines are right.
        from .output.option_advice import advice_on_option, unknown_option

        known = self._option_string_actions
        if message.startswith("the following arguments are required: "):
            unknown = unknown_option(self._words, known)
            message = f"{_UNKNOWN}{unknown}" if unknown else message
        words = message.removeprefix(_UNKNOWN)
        return message if words == message else message + advice_on_option(self.prog, words, known)

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

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            # argparse does not count the indent of its words.
            self._action_max_length += self._indent_increment

    def _format_action_invocation(self, action: argparse.Action) -> str:
        # argparse repeats the value for each name.
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"

    def _split_lines(self, text: str, width: int) -> list[str]:
        # Imported here: only help needs it. argparse breaks words at hyphens.
        import textwrap

        return textwrap.wrap(
            " ".join(text.split()), width, break_long_words=False, break_on_hyphens=False
        )

    def _format_usage(self, *args: Any) -> str:
        # argparse wraps only what it composes itself.
        text = super()._format_usage(*args)
        hanging = " " * len(f"usage: {self._prog} ")
        return "\n".join(_wrapped(line, self._width, hanging) for line in text.split("\n"))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = (
            "\n".join(_wrapped_row(f"{indent}{line}", width) for line in part.splitlines())
            if "\n" in part
            else super(_Formatter, self)._fill_text(part, width, indent)
            for part in text.strip().split("\n\n")
        )
        return "\n\n".join(filled)


def _wrapped(line: str, width: int, hanging: str, *, end: str = "") -> str:
    """Return a line with line breaks between words; `end` stands at the end of all but the last."""
    if len(line) <= width:
        return line
    # Imported here: most lines fit.
    import textwrap

    lines = textwrap.wrap(
        line,
        width - len(end),
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )
    return f"{end}\n".join(lines)


def _wrapped_row(line: str, width: int) -> str:
    """Return a line of a table or an example, wrapped under its second column or for a shell."""
    text = line.lstrip()
    indent = len(line) - len(text)
    name, gap, rest = text.partition("  ")
    if gap:
        column = indent + len(name) + len(gap) + len(rest) - len(rest.lstrip())
        return _wrapped(line, width, " " * column)
    is_example = text.startswith("trunkline ")
    hanging = " " * (indent + 4 if is_example else indent)
    return _wrapped(line, width, hanging, end=" \\" if is_example else "")


def declare_options(
    parser: argparse._ActionsContainer, table: str, **more: Mapping[str, Any]
) -> None:
    """Declare the options of a table that is written as help shows them.

    A row has the names of an option, the name of its value, two spaces or more, and the help. An
    option without a value is a flag; one whose help ends in "repeatable" collects a list. A line
    that does not begin with a dash continues the help above it. `more` has what else
    `add_argument` takes, such as a type, by the attribute that the option sets.
    """
    rows: list[str] = []
    for line in map(str.strip, table.strip().splitlines()):
        if line.startswith("-"):
            rows.append(line)
        elif line:
            rows[-1] += f" {line}"
    for row in rows:
        head, _, text = row.partition("  ")
        words = head.replace(",", "").split()
        names = [word for word in words if word.startswith("-")]
        how: dict[str, Any] = {"metavar": words[-1]}
        if words == names:
            how = {"action": "store_true"}
        elif text.endswith("repeatable"):
            how |= {"action": "append", "default": []}
        how |= more.get(names[-1].lstrip("-").replace("-", "_"), {})
        parser.add_argument(*names, help=text.strip(), **how)


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
    folder = "logins." if name in _LOGIN_VERBS else ""
    return cast(Verb, import_module(f".commands.{folder}{name}", __package__))


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a verb."""
    parser = _VerbParser(
        prog=f"trunkline {name}",
        description=f"{VERBS[name][0].upper()}{VERBS[name][1:]}.",
        formatter_class=_Formatter,
    )
    verb = load(name)
    verb.configure(parser)
    title = "examples" if "\n" in verb.EXAMPLES.strip() else "example"
    examples = "\n".join(f"  {line}" for line in verb.EXAMPLES.strip().splitlines())
    _unify(parser)
    parser.epilog = "\n\n".join(filter(None, [parser.epilog, f"{title}:\n{examples}"]))
    return parser


def _unify(parser: argparse.ArgumentParser) -> None:
    """Give the parser and those of its words the same format and titles."""
    parser.formatter_class = _Formatter
    parser.color = False  # type: ignore[attr-defined, unused-ignore]  # since 3.14
    # argparse has no public name for either.
    parser._positionals.title = "arguments"
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            action.help = "show this help"
    parser.usage = parser.usage or _usage(parser)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _unify(each)


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the words of a verb in short: options that may be left out are not listed."""
    words, is_optional = [parser.prog], False
    for action in parser._actions:
        if not action.option_strings:
            shown = action.metavar if isinstance(action.metavar, str) else _choices(action)
            if isinstance(action, argparse._SubParsersAction):
                words.append(f"{shown} ..." if action.required else f"[{shown} ...]")
            else:
                words.append(shown if action.nargs is None else f"[{shown}]")
        elif action.required:
            words.append(f"{action.option_strings[-1]} {action.metavar}")
        else:
            is_optional |= not isinstance(action, argparse._HelpAction)
    return " ".join([*words, "[options]"] if is_optional else words)


def _choices(action: argparse.Action) -> str:
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


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
        words = getattr(verb, "expand", list)(words)
        options = parser_of(name).parse_args(words)
        options.command = command
        return verb.run(options)
    except SystemExit as end:  # argparse exits for --help and for wrong usage
        return end.code if isinstance(end.code, int) else USAGE_ERROR

"""The verb `completion`: prints a shell completion script.

The script is static and runs no Python. It is made from the parsers of the verbs, so it knows
what `--help` knows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from .. import VERBS
from ..command import load, parser_of
from ..exit_codes import SUCCESS
from ..output.reports import emit

__all__ = ["EXAMPLES", "configure", "run"]

EXAMPLES: Final = """\
trunkline completion bash > \\
  ~/.local/share/bash-completion/completions/trunkline
trunkline completion zsh > "${fpath[1]}/_trunkline"
trunkline completion fish > ~/.config/fish/completions/trunkline.fish
"""


class _CompletionContext(NamedTuple):
    """The words and options that may follow some words."""

    # The words so far, without the command: "spec diff".
    path: str
    # The words that may come next, with their help.
    words: Mapping[str, str]
    # The options with their values, if those are known.
    options: Mapping[str, tuple[str, ...]]
    helps: Mapping[str, str]
    # The options that take no value.
    flags: frozenset[str]
    # Whether each of the words has a parser of its own.
    is_nested: bool = False


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


def run(options: argparse.Namespace) -> int:
    """Print the script and return the exit status."""
    emit(_SCRIPTS[options.shell](list(_places())))
    return SUCCESS


# Words and options


def _places() -> Iterator[_CompletionContext]:
    top = {"--help": (), "--version": ()}
    yield _CompletionContext("", VERBS, top, {}, frozenset(top))
    for verb in VERBS:
        first, *inner = _of_parser(verb, parser_of(verb))
        known = dict.fromkeys(getattr(load(verb), "COMPLETES", ()), "")
        yield first._replace(words={**first.words, **known})
        yield from inner


def _of_parser(path: str, parser: argparse.ArgumentParser) -> Iterator[_CompletionContext]:
    """Yield the context of a parser, then those of its sub-parsers."""
    words: dict[str, str] = {}
    options: dict[str, tuple[str, ...]] = {}
    helps: dict[str, str] = {}
    flags: set[str] = set()
    inner: Mapping[str, argparse.ArgumentParser] = {}
    # argparse has no public way to list the arguments of a parser.
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        if isinstance(action, argparse._SubParsersAction):
            inner = action.choices
            words |= {each.dest: each.help or "" for each in action._choices_actions}
        elif not action.option_strings:
            words |= dict.fromkeys(choices, "")
        for name in action.option_strings:
            options[name], helps[name] = choices, action.help or ""
            flags |= {name} if action.nargs == 0 else set()
    yield _CompletionContext(path, words, options, helps, frozenset(flags), bool(inner))
    for word, each in inner.items():
        yield from _of_parser(f"{path} {word}", each)


def _nested(places: Iterable[_CompletionContext]) -> list[str]:
    """Return the verbs with sub-verbs, such as `spec`."""
    return sorted({place.path.split()[0] for place in places if " " in place.path})


# Scripts


def _bash(places: list[_CompletionContext]) -> str:
    return f"""\
_trunkline() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" at="" words=""
    COMPREPLY=()
    # The words after -- are another command.
    if [[ "$prev" == -- ]]; then COMPREPLY=($(compgen -c -- "$cur")); return; fi
    [[ " ${{COMP_WORDS[*]:1:COMP_CWORD-1}} " == *" -- "* ]] && return
    (( COMP_CWORD > 1 )) && at="${{COMP_WORDS[1]}}"
    case "$at" in
        {"|".join(_nested(places))}) (( COMP_CWORD > 2 )) && at="$at ${{COMP_WORDS[2]}}" ;;
    esac
{_cases(places)}
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _trunkline trunkline"""


def _zsh(places: list[_CompletionContext]) -> str:
    return f"""\
#compdef trunkline
_trunkline() {{
    local cur="$words[CURRENT]" prev="$words[CURRENT-1]" at="" found=""
    # The words after -- are another command.
    if [[ "$prev" == -- ]]; then _command_names; return; fi
    if (( ${{words[(I)--]}} > 0 && ${{words[(I)--]}} < CURRENT )); then _files; return; fi
    (( CURRENT > 2 )) && at="$words[2]"
    case "$at" in
        ({"|".join(_nested(places))}) (( CURRENT > 3 )) && at="$at $words[3]" ;;
    esac
{_cases(places).replace("words=", "found=")}
    if [[ -n "$found" ]]; then compadd -- ${{=found}}; else _files; fi
}}
if [[ "${{zsh_eval_context[-1]}}" == loadautofunc ]]; then
    _trunkline "$@"
else
    compdef _trunkline trunkline
fi"""


def _cases(places: list[_CompletionContext]) -> str:
    """Return the part that bash and zsh share: it sets `words` to the candidates."""
    values = [
        f'        "{place.path} {option}") words="{" ".join(choices)}" ;;'
        for place in places
        for option, choices in place.options.items()
        if choices
    ]
    next_words = [f'        "{place.path}") words="{" ".join(place.words)}" ;;' for place in places]
    options = [f'        "{place.path}") words="{" ".join(place.options)}" ;;' for place in places]
    return "\n".join(
        [
            '    case "$at $prev" in',
            *values,
            '    *) if [[ "$cur" == -* ]]; then case "$at" in',
            *options,
            '    esac; else case "$at" in',
            *next_words,
            "    esac; fi ;;",
            "    esac",
        ]
    )


def _fish(places: list[_CompletionContext]) -> str:
    return "\n".join(["complete -c trunkline -f", *(line for p in places for line in _rules(p))])


def _rules(place: _CompletionContext) -> Iterator[str]:
    begin = f"complete -c trunkline -n {_quoted(_condition(place, bool(place.words)))}"
    takes_files = not place.words and place.path == "validate"
    if takes_files:
        yield f"{begin} -F"
    for word, help in place.words.items():
        yield f"{begin} -a {word}{_described(help)}"
    begin = f"complete -c trunkline -n {_quoted(_condition(place, place.is_nested))}"
    for option, choices in place.options.items():
        name = f"l {option[2:]}" if option.startswith("--") else f"s {option[1:]}"
        if option in place.flags:
            yield f"{begin} -{name}{_described(place.helps.get(option, ''))}"
        else:
            values = f" -a {_quoted(' '.join(choices))}" if choices else ""
            yield f"{begin} -{name} -x{values}{_described(place.helps.get(option, ''))}"


def _condition(place: _CompletionContext, ends_with_a_word: bool) -> str:
    if not place.path:
        return "__fish_use_subcommand"
    seen = [f"__fish_seen_subcommand_from {word}" for word in place.path.split()]
    if ends_with_a_word and " " not in place.path:
        seen.append(f"not __fish_seen_subcommand_from {' '.join(place.words)}")
    return "; and ".join(seen)


def _described(help: str) -> str:
    return f" -d {_quoted(help)}" if help and help != argparse.SUPPRESS else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SCRIPTS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish}

"""Help: what it lists, that its examples are right, and that it fits the terminal."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

import pytest

from trunkline.cli import VERBS, main
from trunkline.cli.command import declare_options, load, parser_of, split
from trunkline.cli.output.option_advice import CONNECTING, OF_VERB
from trunkline.client.connect.resolve import is_target

_OUTPUT = {"-h", "--help", "-o", "--output", "--json"}
_HTTP = {"--header", "--header-env"}
_TLS = {"--tls-ca", "--tls-cert", "--tls-key"}
_CONNECTION = {"--revision", "--timeout", "--env", "--framing", *_HTTP, *_TLS}
_DIAGNOSIS = {"--log", "--trace", "--record", "-v", "--verbose"}
_CONNECTING = _OUTPUT | _CONNECTION | _DIAGNOSIS
_HELP = {"-h", "--help"}

# The options that each verb uses. An option that a verb would ignore is not offered: `ping` and
# `list` send no request in which a server may ask a question, and `ping` reads nothing that
# depends on roots.
OPTIONS: dict[str, set[str]] = {
    "list": _CONNECTING | {"--config", "--root", "--long"},
    "call": _CONNECTING | {"--config", "--root", "--answer", "--save"},
    "read": _CONNECTING | {"--config", "--root", "--answer", "--save", "--raw"},
    "prompt": _CONNECTING | {"--config", "--root", "--answer", "--save"},
    "ping": _CONNECTING | {"--config", "-c", "--count", "--interval"},
    "shell": _HELP
    | _CONNECTION
    | _DIAGNOSIS
    | {"--config", "--root", "--answer", "--plain", "--no-history"},
    "diff": _CONNECTING | {"--root", "--markdown", "--allow-announced"},
    "login": _HELP
    | {"--scope", "--client-id", "--client-secret-env", "--client-secret-prompt", "--issuer"}
    | {"--client-metadata-url", "--redirect-uri", "--no-browser", "--dpop", "--timeout"}
    | {"--tls-ca"},
    "logout": _HELP | {"--local", "--tls-ca"},
    "auth": _HELP,
    "init": _HELP | {"--name", "--title", "--keep", "--yes"},
    "serve": _HELP
    | {"--stdio", "--http", "--tcp", "--unix", "--auth", "--log", "--log-json"}
    | {"--reload", "--reload-dir", "--path", "--sse", "--ws", "--allowed-host"}
    | {"--allowed-origin", "--cors", "--trusted-proxy", "--public-url", "--rate", "--access-log"}
    | {"--metrics", "--workers", "--tls-cert", "--tls-key", "--tls-client-ca", "--framing"}
    | {"--max-connections", "--idle", "--keep-alive", "--linger"},
    "proxy": _HELP
    | _HTTP
    | _TLS
    | {
        "--record",
        "--trace",
        "--judge",
        "--fail",
        "--revision",
        "--source-framing",
        "--target-framing",
    }
    | {
        "--max-size",
        "--env",
        "--config",
        "--source-tls-cert",
        "--source-tls-key",
        "--source-tls-ca",
    }
    | {"--allowed-host", "--allowed-origin", "--sse", "--ws"},
    "install": _HELP
    | {"--to", "--name", "--env", "--env-file", "--uv", "--create", "--scope", "--dry-run"}
    | {"--record", "-y", "--yes"},
    "uninstall": _HELP | {"--from", "--scope", "--dry-run", "-y", "--yes"},
    "hosts": _HELP | {"--check", "--project", "--timeout", "-o", "--output"},
    "spec": _HELP,
    "validate": _HELP | {"--revision", "--from", "--format", "--strict"},
    "completion": _HELP,
}


def parsers(verb: str) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of a verb, and those of its words."""
    waiting = [parser_of(verb)]
    for parser in waiting:
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()


def examples(verb: str) -> list[str]:
    """Return the command lines in the help of a verb."""
    return load(verb).EXAMPLES.replace("\\\n", "").strip().splitlines()


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_offers_the_options_that_it_uses_and_no_others(verb: str) -> None:
    actions = parser_of(verb)._actions
    offered = {name for action in actions for name in action.option_strings}
    assert offered == OPTIONS[verb]


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_and_argument_is_explained(verb: str) -> None:
    for parser in parsers(verb):
        unexplained = [
            action.dest
            for action in parser._actions
            if not action.help and not isinstance(action, argparse._SubParsersAction)
        ]
        assert unexplained == [], parser.prog


@pytest.mark.parametrize("verb", VERBS)
def test_the_values_and_the_default_of_an_option_are_listed(verb: str) -> None:
    for parser in parsers(verb):
        for action in parser._actions:
            if not action.option_strings or action.nargs == 0:
                continue
            shown = f"{parser.prog} {action.option_strings[-1]}: {action.help}"
            told = f"{action.metavar or ''} {action.help or ''}"
            if action.metavar is None and action.choices:
                told = f"{{{','.join(map(str, action.choices))}}} {action.help}"
            for choice in action.choices or ():
                assert str(choice) in told, shown
            has_default = action.default not in (None, [], argparse.SUPPRESS)
            if has_default or action.choices or action.type is not None:
                assert ("required" if action.required else "default") in told, shown


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_two_examples_or_more_and_they_are_of_this_verb(verb: str) -> None:
    lines = examples(verb)
    assert len(lines) >= 2
    assert all(line.startswith("trunkline ") for line in lines)
    assert any(line.startswith(f"trunkline {verb} ") for line in lines)


@pytest.mark.parametrize(
    "line", [line for verb in VERBS for line in examples(verb)], ids=lambda line: line[10:50]
)
def test_an_example_is_parsed(line: str) -> None:
    _, verb, *words = shlex.split(line, comments=True)
    if ">" in words:
        words = words[: words.index(">")]
    found = load(verb)
    rest, command = split(found, words)
    rest = getattr(found, "expand", list)(rest)
    options = parser_of(verb).parse_args(rest)  # exits if it is wrong
    if command is None and "words" in options and verb not in ("diff", "spec"):
        assert is_target(options.words[0])
    if command is not None:
        assert command
        if command[0] == "trunkline":
            assert command[1] in VERBS


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_fits_the_terminal_and_breaks_no_word(
    verb: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["help", verb] if verb else ["help"]
    monkeypatch.setenv("COLUMNS", "400")
    assert main(words) == 0
    # Wider than 120 columns nothing is written; every word is there whole.
    whole = set(capsys.readouterr().out.split())
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if len(line) > columns] == []
    assert set(shown.split()) - whole <= {"\\"}


def test_a_line_of_help_uses_the_width_that_there_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = {}
    for columns in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        main(["help", "serve"])
        lengths[columns] = capsys.readouterr().out.count("\n")
    assert lengths[60] > lengths[80] > lengths[120]


@pytest.mark.parametrize("words", [["spec", "error"], ["auth", "status"]])
def test_help_reaches_the_words_of_a_verb(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["help", *words]) == 0
    assert capsys.readouterr().out.startswith(f"usage: trunkline {' '.join(words)}")


def test_help_of_an_unknown_verb_names_the_closest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "inspect"]) == 2
    assert capsys.readouterr().err.endswith("did you mean 'list'?\n")


def test_every_suggestion_for_the_verb_of_another_tool_is_a_verb_or_an_option() -> None:
    from trunkline.cli import _ELSEWHERE

    for word, meant in _ELSEWHERE.items():
        verb, *words = meant.split()
        assert word not in VERBS
        assert verb in VERBS or verb == "--version"
        # What follows is known to the verb too.
        for each in words:
            if each.startswith("-"):
                assert each in OPTIONS[verb]


@pytest.mark.parametrize("verb", OF_VERB)
def test_every_suggestion_for_an_option_of_a_verb_is_an_option_of_it(verb: str) -> None:
    known = {name for each in parsers(verb) for name in each._option_string_actions}
    assert OF_VERB[verb].keys().isdisjoint(OPTIONS[verb])
    for meant in OF_VERB[verb].values():
        words = meant.replace(",", " ").split()
        of = OPTIONS[words[1]] | {"--json"} if words[0] == "trunkline" else known
        assert {word for word in words if word.startswith("-") and word != "--"} <= of


@pytest.mark.parametrize("verb", ["list", "call", "read", "prompt", "ping", "diff"])
def test_a_suggestion_for_an_option_replaces_one_that_is_unknown(verb: str) -> None:
    for option, meant in CONNECTING.items():
        assert option not in OPTIONS[verb]
        if meant.startswith("-"):
            assert meant.split()[0] in OPTIONS[verb]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "x.py", "--port", "8000"], "--port 8000; use --http 8000;"),
        (["serve", "x.py", "--port=8000"], "--port=8000; use --http 8000;"),
        (["serve", "x.py", "--host", "0.0.0.0"], "--host 0.0.0.0; use --http HOST:PORT;"),
        (["serve", "x.py", "--transport", "sse"], "use --http PORT, --tcp PORT or --unix PATH;"),
        (["call", "tcp://a:1", "t", "-H", "A: b"], "; use --header NAME=VALUE;"),
        (["call", "tcp://a:1", "--tool-name", "t"], "; use the name after the server;"),
        (["list", "tcp://a:1", "--timout", "3"], "; did you mean --timeout?;"),
        (["install", "x.py", "--host", "cursor"], "--host; use --to HOST;"),
        (["install", "x.py", "--client=cursor"], "--client=cursor; use --to HOST;"),
        (["install", "x.py", "--zzz"], "unrecognized arguments: --zzz; try trunkline install"),
        (["uninstall", "x", "--to", "cursor"], "--to; use --from HOST;"),
        (["hosts", "--json"], "; use -o json;"),
        (["validate", "x", "--json"], "; use --format json;"),
        (["login", "http://a", "--scopes", "x"], "; use --scope SCOPE, once for each;"),
        (["auth", "--json"], "; use trunkline auth status --json;"),
        (["spec", "methods", "--protocol-version", "x"], "; use --revision R;"),
        (["proxy", "--port", "1", "tcp://a:1"], "; use a first word such as http://"),
        (["list", "tcp://a:1", "--zzz"], "unrecognized arguments: --zzz; try trunkline list"),
    ],
)
def test_an_option_of_another_tool_is_translated(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1


def test_a_missing_option_is_named_if_no_other_stands_in_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["install", "x.py", "--dry-run", "-y"]) == 2
    assert "the following arguments are required: --to; try" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_usage_is_short_and_has_the_words_in_their_order(verb: str) -> None:
    for parser in parsers(verb):
        usage = parser.format_usage()
        assert usage.startswith(f"usage: {parser.prog}")
        assert "[-h]" not in usage
        is_optional = any(
            not action.required and not isinstance(action, argparse._HelpAction)
            for action in parser._actions
            if action.option_strings
        )
        assert ("[options]" in usage) is is_optional


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["login"], "usage: trunkline login URL [options]"),
        (["uninstall"], "usage: trunkline uninstall NAME --from HOST [options]"),
        (["hosts"], "usage: trunkline hosts [HOST] [options]"),
        (["completion"], "usage: trunkline completion bash|zsh|fish"),
        (["spec"], "usage: trunkline spec WHAT ..."),
        (["auth"], "usage: trunkline auth [WHAT ...]"),
        (["spec", "error"], "usage: trunkline spec error CODE [options]"),
    ],
)
def test_usage_of_a_verb_is_one_line(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--help"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == usage


def test_options_are_declared_from_a_table() -> None:
    parser = argparse.ArgumentParser()
    table = """\
    -q, --quiet         print nothing
    --max-size N        largest size,
                        in bytes; default: 7
    --env KEY[=VALUE]   variable; repeatable
    """
    declare_options(parser, table, max_size={"type": int, "default": 7})

    assert vars(parser.parse_args([])) == {"quiet": False, "max_size": 7, "env": []}
    given = parser.parse_args(["-q", "--max-size", "9", "--env", "A=1", "--env", "B"])
    assert vars(given) == {"quiet": True, "max_size": 9, "env": ["A=1", "B"]}
    shown = {each.dest: (each.metavar, each.help) for each in parser._actions[1:]}
    assert shown == {
        "quiet": (None, "print nothing"),
        "max_size": ("N", "largest size, in bytes; default: 7"),
        "env": ("KEY[=VALUE]", "variable; repeatable"),
    }

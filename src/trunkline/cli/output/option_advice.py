"""What to write in place of an option that a verb does not have.

Options of similar commands are in tables, by verb; another one is compared with those that the
verb has, as it may be misspelt. This module is imported for an error only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

__all__ = ["CONNECTING", "OF_VERB", "advice_on_option", "unknown_option"]

_ARGUMENTS: Final = "key=value after the name, or --json OBJECT"
_TRANSPORTS: Final = "--http PORT, --tcp PORT or --unix PATH; the default is stdio"
_PLAIN_ADDRESS: Final = "the address without an option"
_COMMAND: Final = "the command after --"
_SOURCE: Final = "a first word such as http://127.0.0.1:8000/mcp"
_HOST_SCOPES: Final = {
    "--global": "--scope user",
    "-g": "--scope user",
    "--user": "--scope user",
    "--project": "--scope project",
    "--local": "--scope local",
    "--workspace": "--scope project",
    "-s": "--scope user, project or local",
    "--force": "--yes",
}

# Of the verbs that connect to a server.
CONNECTING: Final[Mapping[str, str]] = {
    "-H": "--header NAME=VALUE",
    "-e": "--env KEY=VALUE",
    "--args": _ARGUMENTS,
    "--arguments": _ARGUMENTS,
    "--command": _COMMAND,
    "--data": _ARGUMENTS,
    "-d": _ARGUMENTS,
    "--input-json": "--json OBJECT",
    "--format": "-o text or -o json",
    "--method": "a verb: list, call, read or prompt",
    "--protocol-version": "--revision R",
    "--stdio": _COMMAND,
    "--target": _PLAIN_ADDRESS,
    "--tool-arg": "key=value after the name",
    "--tool-name": "the name after the server",
    "--transport": "an address such as http://HOST:PORT/mcp, or a command after --",
    "--uri": "the URI after the server",
    "--url": _PLAIN_ADDRESS,
}

OF_VERB: Final[Mapping[str, Mapping[str, str]]] = {
    "serve": {
        "--bind": "--http HOST:PORT",
        "--host": "--http HOST:PORT",
        "--port": "--http PORT",
        "-p": "--http PORT",
        "--transport": _TRANSPORTS,
        "-t": _TRANSPORTS,
        "--debug": "--log debug",
        "--log-level": "--log LEVEL",
        "--verbose": "--log debug",
        "-v": "--log debug",
        "--watch": "--reload",
        "--record": "trunkline proxy --record FILE, with this command after --",
        "--trace": "trunkline proxy --record FILE, with this command after --",
    },
    "proxy": {
        "--listen": _SOURCE,
        "--port": _SOURCE,
        "--host": _SOURCE,
        "-o": "--record FILE",
        "--output": "--record FILE",
        "--framing": "--source-framing NAME or --target-framing NAME",
    },
    "install": {
        "--host": "--to HOST",
        "--client": "--to HOST",
        "--app": "--to HOST",
        "--into": "--to HOST",
        "--editor": "--to HOST",
        "-n": "--name NAME",
        "--server-name": "--name NAME",
        "-e": "--env KEY=VALUE",
        "--env-var": "--env KEY=VALUE",
        "-v": "--env KEY=VALUE",
        "-f": "--env-file FILE",
        "--command": _COMMAND,
        "--stdio": _COMMAND,
        "--url": _PLAIN_ADDRESS,
        "--trace": "--record FILE",
        "--with": "--uv, for the packages of the project of the file",
        "--with-editable": "--uv, for the packages of the project of the file",
        **_HOST_SCOPES,
    },
    "uninstall": {
        "--to": "--from HOST",
        "--host": "--from HOST",
        "--client": "--from HOST",
        "--name": "the name without an option",
        "-n": "the name without an option",
        **_HOST_SCOPES,
    },
    "hosts": {
        "--host": "the name of the host without an option",
        "--client": "the name of the host without an option",
        "--json": "-o json",
        "--format": "-o text or -o json",
    },
    "validate": {
        "--json": "--format json",
        "-o": "--format FORMAT",
        "--output": "--format FORMAT",
        "--protocol-version": "--revision R",
        "--side": "--from SIDE",
        "--fail": "--strict",
        "--file": "the file without an option",
    },
    "diff": {"--format": "-o text, -o json or --markdown"},
    "init": {
        "-y": "--yes",
        "--force": "--keep, which creates only the files that are missing",
        "--path": "the folder without an option",
        "--dir": "the folder without an option",
    },
    "login": {
        "--url": _PLAIN_ADDRESS,
        "--scopes": "--scope SCOPE, once for each",
        "-s": "--scope SCOPE, once for each",
        "--client-secret": "--client-secret-env VARIABLE or --client-secret-prompt",
        "--port": "--redirect-uri URI",
        "--callback-port": "--redirect-uri URI",
        "--headless": "--no-browser",
        "--device": "--no-browser",
    },
    "logout": {"--url": _PLAIN_ADDRESS, "--force": "--local"},
    "auth": {
        "--json": "trunkline auth status --json",
        "-o": "trunkline auth status --json",
        "--url": _PLAIN_ADDRESS,
        "--server": _PLAIN_ADDRESS,
    },
    "spec": {
        "--version": "--revision R",
        "--protocol-version": "--revision R",
        "-o": "--json",
        "--format": "--json",
        "--output": "--json",
    },
    "completion": {"--shell": "the name of the shell without an option"},
}


def unknown_option(words: Sequence[str], known: Collection[str]) -> str:
    """Return the first of some words that is an option which is not known; empty if there is none.

    An abbreviation of a known one is known.
    """
    for word in words:
        option = word.partition("=")[0]
        is_option = len(option) > 1 and option.startswith("-") and not option[1:].isdecimal()
        if is_option and not any(each.startswith(option) for each in known):
            return word
    return ""


def advice_on_option(prog: str, words: str, known: Collection[str]) -> str:
    """Return what to write in place of an option; empty if nothing is like it.

    Args:
        prog: the command, such as `trunkline serve`.
        words: the option that it does not have, and the words after it.
        known: those that it has.
    """
    option, _, value = words.replace("=", " ", 1).partition(" ")
    meant = _elsewhere(prog, option, known)
    number = value.split(" ")[0]
    if meant == "--http PORT" and number.isdecimal():
        meant = f"--http {number}"
    if meant:
        return f"; use {meant}"
    if not option.startswith("--"):
        return ""
    # Imported here: it is slow to load.
    from difflib import get_close_matches

    near = get_close_matches(option, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _elsewhere(prog: str, option: str, known: Collection[str]) -> str:
    return next(filter(None, (each.get(option) for each in _tables(prog, known))), "")


def _tables(prog: str, known: Collection[str]) -> Iterator[Mapping[str, str]]:
    verb = prog.split(" ")[1]
    yield OF_VERB.get(verb, {})
    if verb != "serve" and "--header" in known:
        yield CONNECTING

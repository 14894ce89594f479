"""The command `trunkline`: finds the verb, hands over, returns the exit status.

A verb is a module beside this one, imported when it is used, so that `--version`
and `--help` load nothing of the library. It has `configure(parser)` and `run(options) -> int`;
`TAKES_COMMAND = True` if there may be a command after `--`, and `COMPLETES` if there are words
that a shell can offer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .. import __version__
from .exit_codes import EXIT_CODES, INTERRUPTED, SUCCESS, USAGE_ERROR

__all__ = ["VERBS", "main"]

# Each verb, and what `--help` says of it.
VERBS = {
    "serve": "run a server from a file, on stdio or a socket",
    "list": "show what a server offers",
    "call": "call a tool",
    "read": "read a resource",
    "prompt": "fetch a prompt",
    "ping": "see whether a server answers, and how fast",
    "proxy": "join two transports, and record and judge what passes",
    "diff": "say what changed between two servers, and whether it breaks clients",
    "spec": "look up what the protocol says, in any revision",
    "validate": "judge a message, a list of them or a trace",
    "completion": "print a completion script for bash, zsh or fish",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status, one of `trunkline.cli.exit_codes`."""
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    if not words or words[0] in ("--help", "-h", "help"):
        return _say(_help())
    if words[0] in ("--version", "-V"):
        return _say(f"trunkline {__version__}\n")
    if words[0] not in VERBS:
        _complain(_unknown(words[0]))
        return USAGE_ERROR
    try:
        # Imported here: only a verb needs it.
        from .command import run

        return run(words[0], words[1:])
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if arguments is None:
            _leave()


def _leave() -> None:
    """Have the interpreter end without a last search through all that was loaded."""
    import gc
    import signal

    gc.freeze()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # All is done. Whoever is in a hurry now wants no traceback of the interpreter's end.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _say(text: str) -> int:
    """Print a text and return the exit status."""
    if sys.stdout is None:  # it was closed when Python started
        return SUCCESS
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # What is left must not be tried again on the way out.
        sys.stdout = None
        if isinstance(error, BrokenPipeError):
            return SUCCESS  # whoever reads has seen enough
        _complain(f"trunkline: standard output: {error.strerror}")
        return USAGE_ERROR
    return SUCCESS


def _complain(text: str) -> None:
    # Without this test a closed stream would have it printed on the other one.
    if sys.stderr is not None:
        print(text, file=sys.stderr)


def _help() -> str:
    verbs = "\n".join(f"  {name:12}{summary}" for name, summary in VERBS.items())
    exits = "\n".join(f"  {code:<12}{meaning}" for code, meaning in EXIT_CODES.items())
    return f"""\
usage: trunkline VERB ...
       trunkline [--version] [--help]

JSON-RPC 2.0, the Model Context Protocol and Agent2Agent.

verbs:
{verbs}

`trunkline VERB --help` says more. Exit status, for every verb:
{exits}
"""


def _unknown(word: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, VERBS, n=1)
    advice = f"did you mean {near[0]!r}?" if near else "try --help"
    kind = "option" if word.startswith("-") else "verb"
    return f"trunkline: unknown {kind} {word!r}; {advice}"

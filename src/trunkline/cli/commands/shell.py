"""The verb `shell`: an interactive session with one server."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from ..command import UsageError, declare_options
from ..connect.options import add_target, take_words
from ..connect.talk import run_conversation

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from subprocess import Popen

    from ..recording import FrameListener

__all__ = ["EXAMPLES", "TAKES_COMMAND", "configure", "run"]

TAKES_COMMAND: Final = True
EXAMPLES: Final = """\
trunkline shell tcp://localhost:9000
trunkline shell --no-history notes.py
trunkline shell --plain -- python notes.py < commands.txt
"""
_OPTION_TABLE: Final = """\
--plain       read lines without completion and history, as in a pipe
--no-history  neither read nor write the history of lines
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser, takes_output=False)
    parser.epilog = (
        "Commands are read from standard input; `help` shows them. Without a terminal the exit "
        "status is that of the first command that failed."
    )
    declare_options(parser, _OPTION_TABLE)


def run(options: argparse.Namespace) -> int:
    """Run the shell and return the exit status."""
    if take_words(options):
        raise UsageError("shell takes one target, or a command after --")
    # Imported here, as below: help needs none of it.
    from ..shell.notifications import ShellConsole

    console = ShellConsole(level=options.log or "warning", is_verbose=options.verbose)
    with ExitStack() as stack:
        trace_file = None
        if options.trace is not None:
            from ..recording import recording

            # Opened here: the recording numbers the connections of a shell.
            trace_file = stack.enter_context(recording(options.trace))
            options.trace = None

        def begin(
            _: FrameListener | None, process: Popen[bytes] | None
        ) -> Coroutine[Any, Any, int]:
            from ..shell.session import ShellSession

            return ShellSession(options, console, process, trace_file).run()

        return run_conversation(options, console, begin)

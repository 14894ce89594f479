"""Run commands, several at once; fail if one of them fails.

    python tools/side_by_side.py --at-once 4 "pytest tests/unit" "pytest tests/docs" "mypy src"

They start in the order given, the next one when another ends. The first writes to the terminal as
it runs. What the others write is shown when they end, each under its command.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from typing import IO, Final

_POLL_INTERVAL_S: Final = 0.2


class Command:
    """One command that runs, and the file that keeps its output; None for the terminal."""

    def __init__(self, text: str, output: IO[bytes] | None) -> None:
        self._text = text
        self._output = output
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            shlex.split(text), stdout=output, stderr=None if output is None else subprocess.STDOUT
        )

    @property
    def has_ended(self) -> bool:
        """Whether the process has exited."""
        return self._process.poll() is not None

    def show(self) -> bool:
        """Show what was not shown yet, after the end, and return True if it went well."""
        status = self._process.returncode
        took = time.monotonic() - self._began
        if self._output is not None:
            self._output.seek(0)
            written = self._output.read().decode("utf-8", "replace")
            print(f"--- {self._text}\n{written}", end="", flush=True)
        if status:
            print(f"--- failed with {status} after {took:.0f} s: {self._text}", flush=True)
        return status == 0

    def end(self) -> None:
        """End the process if it still runs."""
        if not self.has_ended:
            self._process.terminate()
            self._process.wait()


def main(arguments: list[str]) -> int:
    """Run the commands; return the exit status."""
    parser = argparse.ArgumentParser(description="run commands, several at once")
    parser.add_argument("--at-once", type=int, metavar="N", help="default: all")
    parser.add_argument("commands", nargs="+")
    options = parser.parse_args(arguments)
    most = options.at_once or len(options.commands)
    waiting = [
        (text, tempfile.TemporaryFile() if number else None)  # noqa: SIM115  # until the end
        for number, text in enumerate(options.commands)
    ]
    running: list[Command] = []
    is_well = True
    try:
        while waiting or running:
            while waiting and len(running) < most:
                running.append(Command(*waiting.pop(0)))
            for command in [each for each in running if each.has_ended]:
                running.remove(command)
                is_well = command.show() and is_well
            time.sleep(_POLL_INTERVAL_S)
        return 0 if is_well else 1
    except KeyboardInterrupt:
        return 130
    finally:
        for command in running:
            command.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

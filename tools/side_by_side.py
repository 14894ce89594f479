"""Run several commands at once; fail if one of them fails.

    python tools/side_by_side.py "pytest tests" "mypy src"

The first writes to the terminal as it runs. What the others write is shown when they end, each
under its command.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import time
from typing import IO


class Command:
    """One command that runs, and the file that keeps its output; None for the terminal."""

    def __init__(self, text: str, output: IO[bytes] | None) -> None:
        self._text = text
        self._output = output
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            shlex.split(text), stdout=output, stderr=None if output is None else subprocess.STDOUT
        )

    def finish(self) -> bool:
        """Wait for the end, show what was not shown yet, and return True if it went well."""
        status = self._process.wait()
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
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def main(texts: list[str]) -> int:
    """Run the commands; return the exit status."""
    commands = [
        Command(text, tempfile.TemporaryFile() if number else None)  # noqa: SIM115  # until the end
        for number, text in enumerate(texts)
    ]
    try:
        failed = [command for command in commands if not command.finish()]
        return 1 if failed else 0
    except KeyboardInterrupt:
        return 130
    finally:
        for command in commands:
            command.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

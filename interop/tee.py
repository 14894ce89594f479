"""Stand between a client and its server, and write down each line that goes by.

    python -m interop.tee RECORDING COMMAND [ARGUMENT ...]

The recording is one that `trunkline validate` reads; where there is one already, a number is
put to its name. Beside it, `RECORDING.log` is what the server wrote to its standard error, and
`RECORDING.end` says which processes there were and how the server ended. Knows nothing of
either library.

A line is written down before it is passed on: what answers it can only come later, so the
order in the recording is one that both sides agree with.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO, Any


class _Recording:
    """Lines of both directions, in one order."""

    def __init__(self, path: str) -> None:
        self.path = path
        number = 1
        while os.path.exists(self.path):
            number += 1
            self.path = f"{path}.{number}"
        self._file = open(self.path, "w", encoding="utf-8")  # noqa: SIM115  # open until we exit
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._put({"trunkline-trace": 1})

    def _put(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._file.flush()

    def add(self, sender: str, line: bytes) -> None:
        """Write down one line."""
        at = round(time.monotonic() - self._began, 4)
        raw = line.rstrip(b"\n").decode("utf-8", "backslashreplace")
        with self._lock:
            self._put({"at": at, "from": sender, "transport": "stdio", "raw": raw})


def _pass_on(sender: str, source: IO[bytes], sink: IO[bytes], recording: _Recording) -> None:
    try:
        for line in source:
            recording.add(sender, line)
            sink.write(line)
            sink.flush()
    except (BrokenPipeError, ValueError):
        pass  # the other side went first
    try:
        sink.close()
    except BrokenPipeError:
        pass  # as above


def main() -> None:
    """Run the command until it ends, and exit as it did."""
    path, *command = sys.argv[1:]
    recording = _Recording(path)
    path = recording.path
    # Both libraries signal the whole group, so the server has got it too: once is enough.
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: signals.append(number))
    with open(path + ".log", "wb") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            bufsize=0,
            # For whoever stands between us and the server, and writes something down too.
            env={**os.environ, "INTEROP_RECORDING": path},
        )
    end: dict[str, Any] = {"pids": [os.getpid(), child.pid]}
    _write(path, end)
    down = threading.Thread(
        target=_pass_on, args=("client", sys.stdin.buffer, child.stdin, recording), daemon=True
    )
    down.start()
    assert child.stdout is not None
    _pass_on(
        "server",
        os.fdopen(child.stdout.fileno(), "rb", closefd=False),
        sys.stdout.buffer,
        recording,
    )
    status = child.wait()
    _write(path, {**end, "status": status, "signals": signals})
    # Not `sys.exit`: the other thread may be reading for ever.
    os._exit(status if status >= 0 else 128 - status)


def _write(path: str, end: dict[str, Any]) -> None:
    # In one step, so that nobody reads half of it.
    with open(path + ".end.new", "w", encoding="utf-8") as file:
        json.dump(end, file)
    os.replace(path + ".end.new", path + ".end")


if __name__ == "__main__":
    main()

"""A server in a process of its own, and a client that writes and reads its pipes byte by byte."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.rigs.conditions import WAIT_S, until
from tests.rigs.leaks import nothing_left
from tests.rigs.messages import HANDSHAKE, META, initialize_params, message
from trunkline import Stdio

HERE = Path(__file__).parent
MIB = 1024 * 1024


def command(script: str, *args: str) -> list[str]:
    """Return how a script that lies beside the tests is started."""
    return [sys.executable, "-u", str(HERE / script), *args]


def address(script: str, *args: str, **options: Any) -> Stdio:
    """Return the address of a script that lies beside the tests."""
    return Stdio(command(script, *args), **options)


class Piped:
    """A server in a process of its own, spoken to over pipes; see `piped`."""

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self._log = log
        self._rest = b""
        self._ids = 0

    # -- saying

    def write(self, data: bytes) -> None:
        """Write bytes, for as long as the server takes them."""
        assert self.process.stdin is not None
        fd = self.process.stdin.fileno()
        deadline = time.monotonic() + WAIT_S
        view = memoryview(data)
        while view:
            left = deadline - time.monotonic()
            assert left > 0, "the server does not read"
            if select.select([], [fd], [], left)[1]:
                view = view[os.write(fd, view[: select.PIPE_BUF]) :]

    def write_until_full(self, data: bytes, times: int) -> int:
        """Write the same bytes again and again; return how often it went, broken pipe included."""
        assert self.process.stdin is not None
        fd = self.process.stdin.fileno()
        os.set_blocking(fd, False)
        for done in range(times):
            view = memoryview(data)
            while view:
                try:
                    view = view[os.write(fd, view) :]
                except BlockingIOError:
                    if not select.select([], [fd], [], WAIT_S)[1]:
                        return done
                except BrokenPipeError:
                    return done
        return times

    def send(self, value: Any) -> None:
        """Send one message."""
        self.write(json.dumps(value).encode() + b"\n")

    def request(self, method: str, id: Any, **params: Any) -> dict[str, Any]:
        """Return a request of the per-request era."""
        return message(method, {**params, "_meta": {**META, **params.get("_meta", {})}}, id)

    def call(self, tool: str, id: Any = None, **arguments: Any) -> Any:
        """Send a call of a tool; return its id."""
        if id is None:
            self._ids += 1
            id = f"call-{self._ids}"
        self.send(self.request("tools/call", id, name=tool, arguments=arguments))
        return id

    def handshake(self, **capabilities: Any) -> None:
        """Open a session of the handshake era."""
        self.send(message("initialize", initialize_params(HANDSHAKE, capabilities), "hello"))
        assert self.answer("hello")["result"]["protocolVersion"] == HANDSHAKE
        self.send(message("notifications/initialized", id=None))

    def end_input(self) -> None:
        """Say that nothing more will come."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    # -- hearing

    def line(self) -> bytes:
        """Return the next line; b"" at the end."""
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        deadline = time.monotonic() + WAIT_S
        parts = []
        while b"\n" not in self._rest:
            parts.append(self._rest)
            left = deadline - time.monotonic()
            assert left > 0, f"the server says nothing; its log: {self.log()[-2000:]}"
            ready, _, _ = select.select([fd], [], [], left)
            self._rest = os.read(fd, MIB) if ready else b""
            if ready and not self._rest:
                return b"".join(parts)
        line, _, self._rest = self._rest.partition(b"\n")
        return b"".join(parts) + line

    def speaks(self) -> bool:
        """Say whether there is something to read."""
        return bool(self._rest or select.select([self.process.stdout], [], [], 0)[0])

    def read(self) -> Any:
        """Return the next message."""
        line = self.line()
        assert line, f"the server has ended; its log: {self.log()[-2000:]}"
        found = json.loads(line)
        assert found["jsonrpc"] == "2.0"
        return found

    def answer(self, id: Any) -> Any:
        """Return the answer to a request, passing over what else is said."""
        while True:
            found = self.read()
            if "method" not in found and found.get("id") == id:
                return found

    def rest(self) -> list[Any]:
        """Return all messages up to the end of the output."""
        found = []
        while line := self.line():
            found.append(json.loads(line))
        return found

    def serves(self) -> bool:
        """Ask something easy, and say whether it is answered as it should be."""
        self._ids += 1
        id = self.call("echo", f"still-there-{self._ids}", text="hello")
        content = self.answer(id)["result"]["content"]
        return bool(content == [{"type": "text", "text": "hello"}])

    # -- the process

    def log(self) -> str:
        """Return what the server has written to stderr."""
        with open(self._log.name, "rb") as log:
            return log.read().decode("utf-8", "replace")

    def has_logged(self, text: str) -> None:
        """Wait until the log has a text in it."""
        until(lambda: text in self.log(), lambda: f"not logged: {text!r} in {self.log()}")

    def wait(self) -> int:
        """Wait for the exit; return its status."""
        return self.process.wait(WAIT_S)

    def resident(self, what: str = "VmRSS") -> int:
        """Return the bytes of memory in use; `VmHWM` for the most there ever were."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith(f"{what}:"))
        return int(line.split()[1]) * 1024


@contextmanager
def piped(script: str = "server.py", *args: str, **options: Any) -> Iterator[Piped]:
    """Start a server and end it for certain; nothing of it may be left."""
    with nothing_left(), tempfile.NamedTemporaryFile() as log:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log, **options}
        process = subprocess.Popen(command(script, *args), bufsize=0, **options)
        try:
            yield Piped(process, log)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(WAIT_S)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

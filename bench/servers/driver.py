"""Talk to a server on stdio in bytes and blocking calls: the same for every server.

Nothing of any library is used here but msgspec, which reads the answers: each is checked for
its id and its text. What the driver costs is not counted, because the CPU time is the
server's own, all its threads included, as the kernel counts it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.json import Decoder, encode

SERVERS: Final = Path(__file__).parent
HANDSHAKE: Final = "2025-11-25"
PER_REQUEST: Final = "2026-07-28"
Server = Literal["ours", "mcpserver", "lowlevel", "mcp1", "fastmcp4"]

NAMES: Final[dict[Server, str]] = {
    "ours": "trunkline",
    "mcpserver": "mcp",
    "lowlevel": "mcp low-level",
    "mcp1": "mcp 1.30",
    "fastmcp4": "FastMCP",
}
"""What each server is called in print, by its file."""

_ROOT: Final = SERVERS.parent.parent
# Servers that cannot share an environment with mcp 2.
_ENVIRONMENTS: Final[dict[Server, Path]] = {
    "mcp1": _ROOT / ".venv-bench-mcp1" / "bin" / "python",
    "fastmcp4": _ROOT / ".venv-bench-fastmcp" / "bin" / "python",
}
_PACKAGES: Final[dict[Server, str]] = {"mcp1": "mcp", "fastmcp4": "fastmcp"}
HANDSHAKE_ONLY: Final = ("mcp1",)
"""Servers that do not know the newest revision."""

_CLIENT: Final = {"name": "driver", "version": "1.0.0"}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _CLIENT,
}
_CHUNK: Final = 1 << 20
# How Linux numbers the clock of another process: its id inverted, and "scheduler time".
_SCHEDULER_TIME: Final = 2


class _Block(Struct):
    text: str


class _Content(Struct):
    content: list[_Block]


class _Answer(Struct):
    # What a server says without being asked has no id, and is passed over.
    id: int | None = None
    result: _Content | None = None


_read_answer: Final = Decoder(_Answer).decode


def command(server: Server, *tools: str) -> list[str]:
    """Return what starts a server in a process of its own."""
    python = str(_ENVIRONMENTS[server]) if server in _ENVIRONMENTS else sys.executable
    return [python, str(SERVERS / f"{server}.py"), *tools]


def is_available(server: Server) -> bool:
    """Return True if the environment of a server exists; print that it is left out otherwise."""
    python = _ENVIRONMENTS.get(server)
    if python is None or python.exists():
        return True
    print(
        f"{NAMES[server]}: left out, there is no {python.parent.parent.name}; `make bench` has it"
    )
    return False


def versions() -> dict[str, str]:
    """Return the versions of the servers that have environments of their own, and print them."""
    found = {}
    for server, python in _ENVIRONMENTS.items():
        if python.exists():
            program = f"import importlib.metadata as m; print(m.version({_PACKAGES[server]!r}))"
            ended = subprocess.run([python, "-c", program], capture_output=True, check=True)
            found[NAMES[server]] = ended.stdout.decode().strip()
            print(f"{NAMES[server]}: {found[NAMES[server]]}")
    return found


def clock_of(pid: int) -> int:
    """Return the clock of the CPU time of another process, for `time.clock_gettime_ns`."""
    return (~pid << 3) | _SCHEDULER_TIME


class Driver:
    """One server in a child process, and the pipes to it."""

    def __init__(
        self, server: Server, *tools: str, revision: str = HANDSHAKE, reports: bool = False
    ) -> None:
        """Start a server; with `reports` every call asks for progress, by its id."""
        self._meta: dict[str, Any] = {} if revision == HANDSHAKE else dict(_META)
        self._reports = reports
        self._has_handshake = revision == HANDSHAKE
        self._next_id = 1
        self._rest = b""
        self._process = subprocess.Popen(
            command(server, *tools),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("a process without pipes")
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        self._clock = clock_of(self._process.pid)

    def open(self) -> None:
        """Shake hands, where the revision wants that."""
        if not self._has_handshake:
            return
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT}
        self._send(_message(id=0, method="initialize", params=params))
        line = self._lines(1)[0]
        if f'"protocolVersion":"{HANDSHAKE}"'.encode() not in line:
            raise SystemExit(f"a server answered initialize with {line!r:.300}")
        self._send(_message(method="notifications/initialized"))

    def call(self, tool: str, texts: Sequence[str]) -> None:
        """Send a call for each text in one go, then read and check all answers.

        Raises:
            SystemExit: an answer is missing, or is not the text that was sent.
        """
        self.receive(self.send(tool, texts))

    def send(self, tool: str, texts: Iterable[str]) -> dict[int, str]:
        """Send a call for each text; return what is to come back, by id."""
        wanted: dict[int, str] = {}
        parts = []
        for text in texts:
            id = self._next_id
            self._next_id += 1
            wanted[id] = text
            meta = {**self._meta, "progressToken": id} if self._reports else self._meta
            parts.append(_call(id, tool, text, meta))
        self._send(b"".join(parts))
        return wanted

    def receive(self, wanted: dict[int, str]) -> None:
        """Read and check that many answers, in whatever order they come."""
        while wanted:
            for line in self._lines(len(wanted)):
                answer = _read_answer(line)
                if answer.id is None:
                    continue
                text = None if answer.result is None else answer.result.content[0].text
                if wanted.pop(answer.id, None) != text or text is None:
                    raise SystemExit(f"a server answered {line!r:.300}")

    def cpu_ns(self) -> int:
        """Return the CPU time that the server has used, all its threads together."""
        return time.clock_gettime_ns(self._clock)

    @property
    def pid(self) -> int:
        """The process of the server."""
        return self._process.pid

    def rss(self) -> int:
        """Return the memory of the server that is resident, in bytes."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def close(self) -> None:
        """End the server, however it is."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._in, rest) :]

    def _lines(self, most: int) -> list[bytes]:
        """Return lines once there are any, as many as there are up to `most`."""
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            chunk = os.read(self._out, _CHUNK)
            if not chunk:
                raise SystemExit("a server ended before it had answered")
            parts.append(chunk)
        *lines, self._rest = b"".join(parts).split(b"\n", most)
        return lines


def _message(**members: Any) -> bytes:
    return encode({"jsonrpc": "2.0", **members}) + b"\n"


def _call(id: int, tool: str, text: str, given: dict[str, Any]) -> bytes:
    meta = b',"_meta":' + encode(given) if given else b""
    return (
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b","arguments":'
        b'{"text":%b}%b}}\n' % (id, tool.encode(), encode(text), meta)
    )

"""A host at work: a home folder of its own, the entry of `trunkline install`, and one run.

No variable of the developer's environment reaches the host, and its files are in a folder of the
run. Whatever it leaves running is ended with it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from ..checks import Unexpected
from ..http.process import ended, free_port, served
from ..http.relay import Relay
from .model import Model
from .rows import NODE, Host

__all__ = ["PROJECT", "TRANSPORTS", "WAYS", "Run", "run_host", "transport_of"]

TRANSPORTS: Final = ("stdio", "HTTP")
# How a host comes to its server: by the file of the user over each transport, or by the file of
# the project, over stdio.
PROJECT: Final = "project"
WAYS: Final = (*TRANSPORTS, PROJECT)
SERVER: Final = Path(__file__).resolve().parent / "warehouse.py"
COMMAND: Final = (sys.executable, "-P", "-m", "trunkline")
NAME: Final = "warehouse"
PROMPT: Final = "Use every tool of the MCP server warehouse once, then say that you are done."
# Seconds for one run of a host, on a machine that is busy.
TIMEOUT_S: Final = 90.0
# Names what belongs to a run, in the environment of its processes.
MARK: Final = "TRUNKLINE_INTEROP_RUN"
# Asked by all: no telemetry, no colours, no questions.
SILENT: Final = {
    "CI": "1",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "TERM": "dumb",
    "LANG": "C.UTF-8",
}


class Run(NamedTuple):
    """What a run left: recordings, and what its model was given."""

    recordings: list[Path]
    results: list[str]
    offered: set[str]
    # Why the host was stopped, or what went wrong on our side.
    failure: str = ""


class _Scene:
    """The folders and the environment of one run."""

    def __init__(self, host: Host, folder: Path, model: str, packages: Path, node: str) -> None:
        self.host, self.folder, self._packages, self._node = host, folder, packages, node
        self.home, self.project = folder / "home", folder / "project"
        self.recordings = folder / "recordings"
        self.log = folder / "host.log"
        for each in (self.home, self.project, self.recordings):
            each.mkdir(parents=True)
        self._values = {"{model}": model, "{prompt}": PROMPT, "{project}": str(self.project)}
        self._mark = uuid4().hex
        self.environment = {
            **SILENT,
            MARK: self._mark,
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(Path(node).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_DATA_HOME": str(self.home / ".local" / "share"),
            "XDG_STATE_HOME": str(self.home / ".local" / "state"),
            "TMPDIR": str(folder),
            **{name: self.fill(value) for name, value in host.environment.items()},
        }
        for name, text in host.files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.fill(text), encoding="utf-8")

    def fill(self, text: str) -> str:
        for name, value in self._values.items():
            text = text.replace(name, value)
        return text

    def program(self) -> list[str]:
        return [
            self._node if word == NODE else str(self._packages / "node_modules" / word)
            for word in self.host.program
        ]

    async def install(self, scope: str, target: Sequence[str]) -> None:
        """Write the entry into a file of the host."""
        place = ["--to", self.host.id, "--name", NAME, "--scope", scope]
        status = await self.start([*COMMAND, "install", *place, "--create", "--yes", *target])
        if status != 0:
            raise Unexpected(f"trunkline install exited with {status}: {self.tail()}")

    async def start(self, command: Sequence[str]) -> int:
        """Run a command to its end, and whatever it has started.

        Raises:
            TimeoutError: it was ended.
        """
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=self.project,
                env=self.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await process.wait()
        finally:
            self._end_all(process.pid)
            await process.wait()

    def tail(self) -> str:
        """Return the last lines of what was printed."""
        return " | ".join(self.log.read_text(errors="replace").split("\n")[-6:])[-600:]

    def _end_all(self, pid: int) -> None:
        """End the group of a process, and those that have left it."""
        _kill_group(pid)
        for each in _marked(self._mark):
            _kill(each)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # all of them have ended


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended


def _marked(mark: str) -> Iterator[int]:
    """Yield the processes whose environment has a mark; on Linux, which shows it."""
    wanted = f"{MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)
        except OSError:
            continue  # it has ended, or is another user's


def transport_of(way: str) -> str:
    """Return the transport between host and server."""
    return "HTTP" if way == "HTTP" else "stdio"


async def run_host(host: Host, way: str, folder: Path, packages: Path, node: str) -> Run:
    """Install the server into a host, and run the host."""
    is_project = way == PROJECT
    approve = (host.approve,) if is_project and host.approve else ()
    with Model() as model:
        scene = _Scene(host, folder, model.url, packages, node)
        failure = ""
        try:
            async with _target(scene, transport_of(way)) as target:
                await scene.install(PROJECT if is_project else "user", target)
                for words in (*host.before, *approve, host.arguments):
                    status = await scene.start([*scene.program(), *map(scene.fill, words)])
                if status != 0:
                    failure = f"exited with {status}: {scene.tail()}"
        except TimeoutError:
            failure = f"no end after {TIMEOUT_S:g} s: {scene.tail()}"
        except (Unexpected, OSError) as error:
            failure = str(error)
        return Run(list(scene.recordings.iterdir()), model.results, model.offered, failure)


@asynccontextmanager
async def _target(scene: _Scene, transport: str) -> AsyncIterator[list[str]]:
    """Yield the words of `trunkline install` that name the server."""
    if transport == "stdio":
        yield [str(SERVER), "--record", str(scene.recordings / "stdio.jsonl")]
        return
    port, log = free_port(), scene.folder / "server.log"
    command = [*COMMAND, "serve", str(SERVER), "--http", str(port)]
    async with served(command, port, log) as process:
        async with Relay(port, scene.recordings / "http.jsonl") as relay:
            yield [f"{relay.url}/mcp"]
        await ended(process, log, is_quiet=True)

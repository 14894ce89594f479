"""Records a run of a suite: a relay between the suite and the server, in a thread.

The recording is a trace that `trunkline validate` reads. Each TCP connection of the suite has one
to the server, and bytes pass unchanged. What belongs together is written to `connection`: a session
from its `initialize` on, or all requests of a scenario that are in no session.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from interop.http.relay import Relay

__all__ = ["ScenarioLog", "SuiteRelay", "recording", "scenario_of"]

START_TIMEOUT_S: Final = 30.0
SESSION: Final = "mcp-session-id"
# Before the first scenario, and in a run of a single one, the log names none.
UNNAMED: Final = "-"
_STARTS: Final = re.compile(rb"^(?:\x1b\[\d+m)*=== Running scenario: (\S+) ===", re.MULTILINE)


class _Message(Struct):
    method: str = ""


_read: Final = Decoder(_Message).decode


def scenario_of(connection: object) -> str:
    """Return the scenario that the `connection` of an entry belongs to."""
    return str(connection).partition(" ")[0]


class ScenarioLog:
    """The output of a suite while it runs: the scenario it is at.

    A suite writes the name of a scenario to the file before the first request of it.
    """

    def __init__(self, path: Path, only: str | None = None) -> None:
        self._path = path
        self._read = 0
        self._rest = b""
        self._name = only or UNNAMED

    def __call__(self) -> str:
        """Return the scenario that was announced last."""
        if self._path.exists():
            with self._path.open("rb") as log:
                log.seek(self._read)
                added = log.read()
            self._read += len(added)
            *lines, self._rest = (self._rest + added).split(b"\n")
            for name in _STARTS.findall(b"\n".join(lines)):
                self._name = name.decode()
        return self._name


class SuiteRelay(Relay):
    """Records the traffic of a suite; `scenario` returns the one that it is at."""

    def __init__(self, port: int, path: Path, scenario: Callable[[], str]) -> None:
        super().__init__(port, path)
        self._scenario = scenario
        self._sessions = 0
        self._by_stream: dict[int, str] = {}
        self._by_session: dict[str, str] = {}

    def record(self, sender: str, stream: int, **members: Any) -> None:
        """Write one entry."""
        headers = members.get("http", {}).get("headers", {})
        if sender == "client":
            self._by_stream[stream] = self._connection(headers, members.get("raw", ""))
        elif SESSION in headers:
            self._by_session.setdefault(headers[SESSION], self._by_stream[stream])
        super().record(sender, stream, connection=self._by_stream[stream], **members)

    def _connection(self, headers: dict[str, str], text: str) -> str:
        known = self._by_session.get(headers.get(SESSION, ""))
        if known is not None:
            return known
        if not _is_initialize(text):
            return self._scenario()
        self._sessions += 1
        return f"{self._scenario()} {self._sessions}"


def _is_initialize(text: str) -> bool:
    try:
        return _read(text).method == "initialize"
    except DecodeError:
        return False


@contextmanager
def recording(port: int, path: Path, scenario: Callable[[], str]) -> Iterator[str]:
    """Record what passes during the block to `path`; yield the address to send it to.

    Raises:
        RuntimeError: the relay does not listen.
    """
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    ready = threading.Event()
    urls: list[str] = []

    async def relay() -> None:
        async with SuiteRelay(port, path, scenario) as relay:
            urls.append(relay.url)
            ready.set()
            await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(relay())
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="recorder", daemon=True)
    thread.start()
    if not ready.wait(START_TIMEOUT_S):
        raise RuntimeError("the relay does not listen")
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()

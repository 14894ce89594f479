"""A server over HTTP in a process of its own: its signals, its exit, its socket, its workers."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from tests.rigs.conditions import until
from tests.rigs.messages import META
from tests.rigs.processes import assert_gone

WAIT = 60.0
SERVER = """
import asyncio, os, sys
from trunkline import Server, ServerLimits

app = Server("child", limits=ServerLimits(grace=3600){options})

@app.tool
async def hold(folder: str) -> str:
    open(os.path.join(folder, "began"), "w").close()
    try:
        while not os.path.exists(os.path.join(folder, "go")):
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        open(os.path.join(folder, "cancelled"), "w").close()
        raise
    return "held by {version}"

@app.tool
async def pid() -> int:
    return os.getpid()
"""
RUN = """
import logging
logging.basicConfig(level=logging.INFO)
app.run(sys.argv[1])
"""
# One that keeps nothing between requests.
ALONE = ', revisions=["2026-07-28"], list_changed=False, subscribe=False'


class Process:
    """A child process, and the lines of its stderr as they come."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._queue: Queue[str | None] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._queue.put(line)
        self._queue.put(None)

    def until(self, text: str) -> str:
        """Return the first line, from now on, that has a text."""
        while True:
            try:
                line = self._queue.get(timeout=WAIT)
            except Empty:
                raise AssertionError(f"{text!r} did not come: {self.lines}") from None
            assert line is not None, f"the process has ended: {self.lines}"
            self.lines.append(line)
            if text in line:
                return line

    @property
    def port(self) -> int:
        found = re.search(r":(\d+)/", self.until("listening on"))
        assert found is not None
        return int(found[1])

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for the exit; return its status."""
        status = self.process.wait(WAIT)
        self._reader.join(WAIT)
        while not self._queue.empty():
            line = self._queue.get()
            self.lines += [] if line is None else [line]
        return status


@contextmanager
def started(*words: str) -> Iterator[Process]:
    child = Process(*words)
    try:
        yield child
    finally:
        child.process.kill()
        child.end()
        assert child.process.stderr is not None
        child.process.stderr.close()


def post(
    connection: http.client.HTTPConnection, tool: str, arguments: dict[str, Any]
) -> http.client.HTTPConnection:
    params = {"name": tool, "arguments": arguments, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    connection.request("POST", "/mcp", json.dumps(body), headers)
    return connection


def answer(connection: http.client.HTTPConnection) -> tuple[int, str]:
    response = connection.getresponse()
    body = json.loads(response.read())
    if "error" in body:
        return response.status, body["error"]["message"]
    return response.status, body["result"]["content"][0]["text"]


def connected(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "child.py"
    path.write_text(SERVER.format(options="", version="first"))
    return path


@pytest.fixture
def script(file: Path) -> Path:
    path = file.with_name("script.py")
    path.write_text(file.read_text() + RUN)
    return path


def test_a_signal_lets_a_running_call_finish_and_the_process_exits_with_0(
    script: Path, tmp_path: Path
) -> None:
    with started(str(script), "http://127.0.0.1:0/mcp") as child:
        port = child.port
        held = post(connected(port), "hold", {"folder": str(tmp_path)})
        until((tmp_path / "began").exists)
        child.signal()
        # No longer accepted.
        until(lambda: _is_refused(port))
        assert child.process.poll() is None
        (tmp_path / "go").touch()
        assert answer(held) == (200, "held by first")
        held.close()
        assert child.end() == 0
        assert not (tmp_path / "cancelled").exists()


def test_a_second_signal_cancels_what_runs_at_once(script: Path, tmp_path: Path) -> None:
    with started(str(script), "http://127.0.0.1:0/mcp") as child:
        port = child.port
        held = post(connected(port), "hold", {"folder": str(tmp_path)})
        until((tmp_path / "began").exists)
        child.signal(signal.SIGINT)
        until(lambda: _is_refused(port))
        child.signal(signal.SIGINT)
        assert answer(held)[0] == 503
        held.close()
        assert child.end() == 0
        assert (tmp_path / "cancelled").exists()


def test_a_port_in_use_ends_the_process_with_one_line(script: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with started(str(script), f"http://127.0.0.1:{port}/mcp") as child:
            assert child.end() == 1
            (line,) = child.lines
            assert line == (
                f"child: tcp://127.0.0.1:{port} cannot be listened on: Address already in use\n"
            )


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix domain sockets")
def test_the_file_of_a_unix_socket_is_removed_at_the_end(script: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with started(str(script), f"http+unix:{path}") as child:
        child.until("listening on")
        assert path.is_socket()
        connection = connected(1)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(path))
        post(connection, "pid", {})
        assert answer(connection) == (200, str(child.process.pid))
        connection.close()
        child.signal()
        assert child.end() == 0
    assert not path.exists()


# -- serve -------------------------------------------------------------------------------------


def test_serve_says_where_it_listens_and_ends_in_order(file: Path, tmp_path: Path) -> None:
    with started("-m", "trunkline", "serve", str(file), "--http", "0") as child:
        port = child.port
        assert child.lines == [f"listening on http://127.0.0.1:{port}/mcp\n"]
        held = post(connected(port), "hold", {"folder": str(tmp_path)})
        until((tmp_path / "began").exists)
        child.signal()
        (tmp_path / "go").touch()
        assert answer(held) == (200, "held by first")
        held.close()
        assert child.end() == 0


def test_serve_names_what_is_wrong_with_the_address(file: Path) -> None:
    with started("-m", "trunkline", "serve", str(file), "--http", "0.0.0.0:0") as child:
        assert child.end() == 2
        assert "--allowed-host" in child.lines[-1]
        assert not any("Traceback" in line for line in child.lines)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with started("-m", "trunkline", "serve", str(file), "--http", port) as child:
            assert child.end() == 2
            assert len(child.lines) == 1
            assert "Address already in use" in child.lines[0]


def test_serve_has_metrics_on_a_port_of_their_own(file: Path) -> None:
    words = ("--http", "0", "--metrics", "127.0.0.1:0", "--log", "info")
    with started("-m", "trunkline", "serve", str(file), *words) as child:
        found = re.search(r"metrics are at http://127.0.0.1:(\d+)/metrics", child.until("metrics"))
        assert found is not None
        connection = connected(int(found[1]))
        connection.request("GET", "/metrics")
        page = connection.getresponse().read()
        connection.close()
        assert b"\ntrunkline_sessions 0\n" in page
        child.signal()
        assert child.end() == 0


# -- several processes -------------------------------------------------------------------------


def test_workers_share_a_port_and_end_with_a_signal(file: Path, tmp_path: Path) -> None:
    file.write_text(SERVER.format(options=ALONE, version="first"))
    words = ("--http", "0", "--workers", "2")
    with started("-m", "trunkline", "serve", str(file), *words) as child:
        port = child.port
        assert child.lines[-1].endswith("with 2 workers\n")
        seen: set[str] = set()
        while len(seen) < 2:
            connection = connected(port)
            status, text = answer(post(connection, "pid", {}))
            connection.close()
            assert status == 200
            seen.add(text)
        assert str(child.process.pid) not in seen
        held = post(connected(port), "hold", {"folder": str(tmp_path)})
        until((tmp_path / "began").exists)
        child.signal()
        until(lambda: _is_refused(port))
        (tmp_path / "go").touch()
        assert answer(held) == (200, "held by first")
        held.close()
        assert child.end() == 0
        for each in seen:
            until(lambda pid=each: not os.path.exists(f"/proc/{pid}"))  # type: ignore[misc]  # a str


def test_a_worker_that_dies_is_replaced(file: Path) -> None:
    file.write_text(SERVER.format(options=ALONE, version="first"))
    with started("-m", "trunkline", "serve", str(file), "--http", "0", "--workers", "2") as child:
        port = child.port
        connection = connected(port)
        _, victim = answer(post(connection, "pid", {}))
        connection.close()
        os.kill(int(victim), signal.SIGKILL)
        child.until(f"worker {victim} exited with -9, replaced in ")
        seen: set[str] = set()
        while len(seen) < 2:
            try:
                connection = connected(port)
                seen.add(answer(post(connection, "pid", {}))[1])
            except OSError:
                pass  # the socket of the one that died had taken the connection
            finally:
                connection.close()
        assert victim not in seen
        child.signal()
        assert child.end() == 0


def _pids(port: int, count: int) -> set[str]:
    """Return the workers that answer."""
    seen: set[str] = set()
    deadline = time.monotonic() + WAIT
    while len(seen) < count:
        assert time.monotonic() < deadline, f"only {seen} answer"
        connection = connected(port)
        try:
            seen.add(answer(post(connection, "pid", {}))[1])
        except OSError:
            pass  # the socket of one that died had taken the connection
        finally:
            connection.close()
    return seen


def _kill(*pids: str) -> None:
    """Kill what a failed test would leave."""
    for each in pids:
        try:
            os.kill(int(each), signal.SIGKILL)
        except ProcessLookupError:
            pass


def test_workers_that_are_killed_again_and_again_are_replaced(file: Path) -> None:
    file.write_text(SERVER.format(options=ALONE, version="first"))
    with started("-m", "trunkline", "serve", str(file), "--http", "0", "--workers", "2") as child:
        port = child.port
        for _ in range(4):
            for victim in _pids(port, 2):
                os.kill(int(victim), signal.SIGKILL)
                child.until(f"worker {victim} exited with -9, replaced in ")
        assert len(_pids(port, 2)) == 2
        child.signal()
        assert child.end() == 0


def test_workers_end_when_their_supervisor_is_killed(file: Path) -> None:
    file.write_text(SERVER.format(options=ALONE, version="first"))
    with started("-m", "trunkline", "serve", str(file), "--http", "0", "--workers", "2") as child:
        port = child.port
        seen = _pids(port, 2)
        child.process.kill()
        try:
            for each in seen:
                assert_gone(int(each))
        finally:
            _kill(*seen)
        assert _is_refused(port)


LIFESPAN = """
from contextlib import asynccontextmanager
@asynccontextmanager
async def lifespan(app):
    {act}
    yield
"""


def test_worker_that_starts_ends_when_its_supervisor_is_killed(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pids"
    folder.mkdir()
    act = f"open(os.path.join({str(folder)!r}, str(os.getpid())), 'w'); await asyncio.sleep(3600)"
    server = SERVER.format(options=f"{ALONE}, lifespan=lifespan", version="first")
    file.write_text(server.replace("app = ", f"{LIFESPAN.format(act=act)}\napp = ", 1))
    with started("-m", "trunkline", "serve", str(file), "--http", "0", "--workers", "2") as child:
        until(lambda: len(os.listdir(folder)) == 2)
        child.process.kill()
        try:
            for each in os.listdir(folder):
                assert_gone(int(each))
        finally:
            _kill(*os.listdir(folder))


def test_workers_that_never_listen_end_the_supervisor_with_the_reason(file: Path) -> None:
    server = SERVER.format(options=f"{ALONE}, lifespan=lifespan", version="first")
    failing = LIFESPAN.format(act="raise SystemExit('no database')")
    file.write_text(server.replace("app = ", f"{failing}\napp = ", 1))
    with started("-m", "trunkline", "serve", str(file), "--http", "0", "--workers", "2") as child:
        assert child.end() == 2
        assert any(
            "exited with 1; no worker has listened after 6 starts, stopping" in line
            for line in child.lines
        )


def test_a_second_signal_ends_workers_at_once(file: Path, tmp_path: Path) -> None:
    file.write_text(SERVER.format(options=ALONE, version="first"))
    with started("-m", "trunkline", "serve", str(file), "--http", "0", "--workers", "2") as child:
        port = child.port
        held = post(connected(port), "hold", {"folder": str(tmp_path)})
        until((tmp_path / "began").exists)
        child.signal()
        until(lambda: _is_refused(port))
        child.signal()
        assert answer(held)[0] == 503
        held.close()
        assert child.end() == 0


def test_workers_of_a_server_with_sessions_are_refused_and_the_reason_is_given(file: Path) -> None:
    with started("-m", "trunkline", "serve", str(file), "--http", "0", "--workers", "2") as child:
        assert child.end() == 2
        (line,) = child.lines
        assert "--workers needs a server that keeps nothing between requests: sessions of" in line
        assert "listChanged is declared for tools" in line


# -- reload ------------------------------------------------------------------------------------


def test_a_reload_keeps_the_port_and_answers_open_requests(file: Path, tmp_path: Path) -> None:
    with started("-m", "trunkline", "serve", str(file), "--http", "0", "--reload") as child:
        port = child.port
        held = post(connected(port), "hold", {"folder": str(tmp_path)})
        until((tmp_path / "began").exists)
        file.write_text(SERVER.format(options="", version="second version"))
        child.until("reloaded")
        # The old worker answers what it has begun, the new one what comes.
        (tmp_path / "go").touch()
        newer = connected(port)
        assert answer(post(newer, "hold", {"folder": str(tmp_path)})) == (
            200,
            "held by second version",
        )
        newer.close()
        assert answer(held) == (200, "held by first")
        held.close()
        child.signal()
        assert child.end() == 0


def _is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=WAIT).close()
    except ConnectionRefusedError:
        return True
    return False

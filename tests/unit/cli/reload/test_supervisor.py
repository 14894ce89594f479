"""Workers that are started, report, and are ended; what a supervisor says of files."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.json import decode, encode

from tests.rigs.conditions import until_async
from tests.rigs.leaks import nothing_left
from tests.rigs.messages import META
from trunkline.cli.command import parser_of
from trunkline.cli.reload import supervisor as reloading
from trunkline.cli.reload.supervisor import SocketFront, Supervisor, Worker, close_pipes
from trunkline.cli.reload.worker import WorkerOrders, WorkerReport
from trunkline.errors import TransportError
from trunkline.transports.addresses import Tcp, Unix
from trunkline.transports.sockets import listener

WAIT = 30.0
SERVER = """
import os
from trunkline import Server
app = Server("x")

@app.tool
def pid() -> int:
    return os.getpid()
"""
DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return path


def orders(file: Path, *words: str) -> WorkerOrders:
    return WorkerOrders(vars(parser_of("serve").parse_args([str(file), *words])), -1, None, 0)


def run(script: Callable[[], Awaitable[Any]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WAIT):
            await script()

    with nothing_left():
        asyncio.run(bounded())


def test_worker_reports_ready_and_ends_on_stop(file: Path) -> None:
    async def script() -> None:
        worker = await Worker.start(orders(file), None)
        report = await worker.report
        assert report is not None
        assert report.is_ready
        worker.stop()
        close_pipes(worker)
        assert await worker.end() in (0, 128 + signal.SIGTERM)

    run(script)


def test_a_note_is_broken_at_spaces_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.cli.output.terminal._error_width", lambda: 80)
    reloading.notify("the server could not be loaded; still serving the previous version")
    assert capsys.readouterr().err == (
        "trunkline serve: the server could not be loaded; still serving the previous\n  version\n"
    )


def test_a_worker_that_ends_before_it_reports_has_no_report(file: Path) -> None:
    file.write_text("import os\nos._exit(5)")

    async def script() -> None:
        worker = await Worker.start(orders(file), None)
        assert await worker.report is None
        close_pipes(worker)
        assert await worker.end() == 5

    run(script)


def test_a_worker_whose_control_socket_breaks_before_it_reports_has_no_report(file: Path) -> None:
    mark = file.with_name("mark")
    file.write_text(
        f"import os, time\nwhile not os.path.exists({str(mark)!r}):\n"
        "    time.sleep(0.001)\nos._exit(5)"
    )

    async def script() -> None:
        worker = await Worker.start(orders(file), None)
        # A process that ends with data unread resets the connection.
        worker.stop_accepting()
        mark.touch()
        assert await worker.report is None
        close_pipes(worker)
        assert await worker.end() == 5

    run(script)


def test_a_worker_that_does_not_heed_signals_is_ended_by_force(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reloading, "_EXIT_TIMEOUT_S", 0.05)
    mark = file.with_name("mark")
    # The mark comes last: a signal before it would still end the process.
    file.write_text(f"{DEAF}\nopen({str(mark)!r}, 'w').close()\ntime.sleep(3600)")

    async def script() -> None:
        worker = await Worker.start(orders(file), None)
        await until_async(mark.exists)
        worker.stop()
        close_pipes(worker)
        assert await worker.end() == 128 + signal.SIGKILL

    run(script)
    assert "did not exit in time: killing it" in capsys.readouterr().err


def test_child_processes_of_a_worker_end_with_it(file: Path) -> None:
    mark = file.with_name("mark")
    file.write_text(
        "import subprocess, os\nchild = subprocess.Popen(['sleep', '3600'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\nos._exit(0)"
    )

    async def script() -> None:
        worker = await Worker.start(orders(file), None)
        close_pipes(worker)
        await worker.end()
        pid = int(mark.read_text())
        await until_async(lambda: not _runs(pid))

    run(script)


def _runs(pid: int) -> bool:
    """Say whether a process runs: one that has ended may wait for somebody to collect it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_python_that_cannot_be_started_leaves_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "_python", lambda: ["/nothing/like/python"])

    async def script() -> None:
        with pytest.raises(OSError, match="No such file"):
            await Worker.start(orders(file), None)

    run(script)


def test_an_interpreter_is_started_again_with_the_same_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.warnoptions", ["error"])
    monkeypatch.setattr("sys._xoptions", {"dev": True, "frozen_modules": "off"})
    assert reloading._python()[1:] == ["-P", "-Werror", "-Xdev", "-Xfrozen_modules=off"]


def test_a_socket_is_bound_once_and_its_port_is_handed_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def script() -> None:
        options: dict[str, Any] = {}
        front = SocketFront(Tcp("127.0.0.1", 0), options)
        await front.open()
        assert front.listen is not None
        (listening,) = front.listen
        port = listening.getsockname()[1]
        assert options["tcp"] == f"127.0.0.1:{port}"
        # Before there is any worker.
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT):
            pass
        await front.close()
        assert capsys.readouterr().err == f"listening on tcp://127.0.0.1:{port}\n"

    run(script)


def test_all_addresses_of_a_host_are_listened_on(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = ["127.0.0.1", "127.0.0.2"]

    async def several(_: object, host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
        assert host == "localhost"
        return [(socket.AF_INET, (each, port)) for each in hosts]

    monkeypatch.setattr(listener, "resolve", several)

    async def script() -> None:
        front = SocketFront(Tcp("localhost", 0), given := dict(orders(file).options))
        await front.open()
        worker = await Worker.start(WorkerOrders(given, -1, None, 0), front.listen)
        report = await worker.report
        assert report is not None
        await front.adopt(worker, report)
        for host in hosts:
            port = int(given["tcp"].removeprefix("localhost:"))
            assert await Caller.ask_once((host, port)) == worker.pid
        await front.close()

    run(script)


class Caller:
    """A connection to a worker, which is asked who it is."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    @classmethod
    async def connected(cls, where: Any) -> Caller:
        sock = socket.socket(socket.AF_INET if isinstance(where, tuple) else socket.AF_UNIX)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, where)
        return cls(sock)

    @classmethod
    async def ask_once(cls, where: Any) -> int:
        """Return who answers a new connection."""
        caller = await cls.connected(where)
        try:
            return await caller.ask()
        finally:
            caller.close()

    async def ask(self) -> int:
        """Return the number of the process that answers; -1 if none does."""
        loop, said = asyncio.get_running_loop(), b""
        params = {"name": "pid", "arguments": {}, "_meta": META}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        await loop.sock_sendall(self._sock, encode(call) + b"\n")
        while not said.endswith(b"\n"):
            data = await loop.sock_recv(self._sock, 65_536)
            if not data:
                return -1
            said += data
        return int(decode(said)["result"]["content"][0]["text"])

    async def ended(self) -> bool:
        """Wait for the end."""
        return await asyncio.get_running_loop().sock_recv(self._sock, 1) == b""

    def close(self) -> None:
        self._sock.close()


def holds(pid: int, sock: socket.socket) -> bool:
    """Say whether a process has a socket open."""
    fds = Path(f"/proc/{pid}/fd")
    inode = f"socket:[{os.fstat(sock.fileno()).st_ino}]"
    return any(os.readlink(each) == inode for each in fds.iterdir())


def test_last_connection_accepted_by_the_old_worker_is_served_by_it(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing but the end of all ends it in time.
    monkeypatch.setattr(reloading, "_LINGER_S", 3600.0)
    monkeypatch.chdir(tmp_path)

    async def script() -> None:
        front = SocketFront(Unix("s"), {})
        await front.open()
        assert front.listen is not None
        workers = []
        caller: Caller | None = None
        for _ in range(2):
            worker = await Worker.start(orders(file, "--unix", "s"), front.listen)
            report = await worker.report
            assert report is not None
            await front.adopt(worker, report)
            workers.append(worker)
            # Let in by the first; it has not asked anything before the second takes over.
            caller = caller or await Caller.connected("s")
            assert await Caller.ask_once("s") in [each.pid for each in workers]
        first, second = workers
        # The one before lets nobody in, without being told to end.
        await until_async(lambda: not holds(first.pid, front.listen[0]))
        assert [await Caller.ask_once("s") for _ in range(5)] == [second.pid] * 5
        assert caller is not None
        assert await caller.ask() == first.pid
        assert not first.is_stopping
        await front.close()
        assert await caller.ended()
        caller.close()
        assert [await each.ended for each in workers] == [0, 0]

    run(script)


def test_the_worker_before_ends_soon(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "_LINGER_S", 0.05)
    monkeypatch.chdir(tmp_path)

    async def script() -> None:
        front = SocketFront(Unix("s"), {})
        await front.open()
        workers = []
        for _ in range(2):
            worker = await Worker.start(orders(file, "--unix", "s"), front.listen)
            report = await worker.report
            assert report is not None
            await front.adopt(worker, report)
            workers.append(worker)
        assert await workers[0].ended == 0
        assert not workers[1].ended.done()
        await front.close()

    run(script)


def test_a_socket_file_is_gone_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def script() -> None:
        front = SocketFront(Unix("s"), {})
        await front.open()
        assert os.path.exists("s")
        await front.close()
        assert not os.path.exists("s")

    run(script)


def test_port_in_use_is_reported_in_a_sentence() -> None:
    async def script() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            front = SocketFront(Tcp("127.0.0.1", taken.getsockname()[1]), {})
            with pytest.raises(TransportError, match="cannot be listened on"):
                await front.open()
            await front.close()

    run(script)


def test_a_worker_that_has_ended_does_not_take_over(file: Path) -> None:
    file.write_text("import os\nos._exit(5)")

    async def script() -> None:
        worker = await Worker.start(orders(file), None)
        close_pipes(worker)
        await worker.end()
        front = SocketFront(Unix("s"), {})
        with pytest.raises(reloading.WorkerRejected, match="exited with status 5"):
            await front.adopt(worker, WorkerReport(True, []))
        assert not front.is_served

    run(script)


def test_files_are_named_by_where_they_lie() -> None:
    assert reloading._file_summary(["/a/b.py"], "/a") == "b.py"
    assert reloading._file_summary(["/a/b.py", "/a/c/d.py", "/a/b.py"], "/a") == "b.py and 1 more"


class Looked:
    """A file watch with scripted changes, one list per look; after those nothing changes."""

    def __init__(self, *found: list[str]) -> None:
        self.left = list(found)
        self.looks = 0

    def changes(self) -> list[str]:
        self.looks += 1
        return self.left.pop(0) if self.left else []


class Nowhere:
    """A front without connections."""

    async def open(self) -> None:
        """Begin."""

    async def close(self) -> None:
        """End."""


def test_a_worker_is_started_at_the_beginning_and_for_each_change_and_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reloading, "_WATCH_INTERVAL_S", 0.001)
    monkeypatch.setattr(reloading, "_SETTLE_INTERVAL_S", 0.001)
    # The second change is one with the first: it came before the files had settled.
    watch = Looked([], [], ["/a/b.py"], ["/a/c.py"], [], [], ["/a/d.py"])
    begun: list[int] = []

    async def attempt(supervisor: Supervisor) -> None:
        begun.append(watch.looks)

    monkeypatch.setattr(Supervisor, "_attempt_reload", attempt)

    async def script() -> None:
        played: Any = SimpleNamespace(folder="/a"), watch, Nowhere()
        supervisor = Supervisor({}, *played)
        running = asyncio.create_task(supervisor.run())
        await until_async(lambda: watch.looks > 20 or running.done())
        supervisor.finish(3)
        assert await running == 3

    run(script)
    # After the looks that found the last of each change, and nothing more.
    assert begun == [0, 5, 8]
    changed = ["b.py and 1 more changed", "d.py changed"]
    assert capsys.readouterr().err.splitlines() == [f"trunkline serve: {each}" for each in changed]

"""`trunkline proxy` as it is used: real processes, sockets, signals, and a terminal for Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tests.rigs.conditions import until
from tests.rigs.processes import assert_gone
from trunkline import Client, Stdio

WAIT = 30
MIB = 1024 * 1024
CANARY = "canary-51d0c9ab"
Start = Callable[..., Any]

ECHO = "import sys\nfor line in sys.stdin.buffer:\n os.write(1, line)\n"
PID = "print(os.getpid(), flush=True)\n"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


def python(script: str) -> list[str]:
    """Return the words of a command that runs a script."""
    return ["--", sys.executable, "-S", "-E", "-u", "-c", f"import os, signal, sys, time\n{script}"]


class Proxy:
    """One run, with pipes to it."""

    def __init__(self, *words: str) -> None:
        self.run = subprocess.Popen(
            [sys.executable, "-m", "trunkline", "proxy", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.stdin: Any = self.run.stdin
        self.stdout: Any = self.run.stdout
        self.stderr: Any = self.run.stderr

    def say(self, data: bytes) -> None:
        self.stdin.write(data)

    def line(self, stream: Any = None) -> bytes:
        """Return the next line, of standard output unless told otherwise."""
        found = b""
        stream = stream or self.stdout
        while not found.endswith(b"\n"):
            assert select.select([stream], [], [], WAIT)[0], "nothing came"
            byte = os.read(stream.fileno(), 1)
            if not byte:
                break
            found += byte
        return found

    def pid(self) -> int:
        """Return what a server says first."""
        return int(self.line())

    def finish(self) -> tuple[int, bytes, bytes]:
        """End the input; return the exit status, the output and the log."""
        out, log = self.run.communicate(timeout=WAIT)
        return self.run.returncode, out, log

    def close(self) -> None:
        if self.run.poll() is None:
            self.run.kill()
        self.run.wait(WAIT)
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


@pytest.fixture
def proxy() -> Iterator[Callable[..., Proxy]]:
    """Return what starts one; all are closed in the end."""
    opened: list[Proxy] = []

    def start(*words: str) -> Proxy:
        opened.append(Proxy(*words))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


# In the place of a server


def test_proxy_forwards_all_output_after_end_of_input(proxy: Callable[..., Proxy]) -> None:
    slow = "for line in sys.stdin:\n pass\ntime.sleep(0.5)\nprint(line.upper(), end='')"
    run = proxy(*python(slow))
    run.say(b"one\ntwo\n")
    assert run.finish() == (0, b"TWO\n", b"")


def test_proxy_forwards_bytes_that_are_not_a_message_unchanged(proxy: Callable[..., Proxy]) -> None:
    odd = b'\x00\xff\xfe\n{"a":1,"a":2}\n  [\n\xed\xa0\x80 \x1b[2J\n'
    run = proxy(*python(ECHO))
    run.say(odd)
    assert run.finish() == (0, odd, b"")


def test_the_exit_status_is_that_of_the_command(proxy: Callable[..., Proxy]) -> None:
    assert proxy(*python("sys.exit(7)")).finish() == (7, b"", b"")
    status, out, log = proxy(*python("input()\nos.kill(os.getpid(), 9)")).finish()
    assert (status, out) == (1, b"")  # its input has ended, which `input` does not like
    run = proxy(*python("input()\nos.kill(os.getpid(), 9)"))
    run.say(b"go\n")
    status, out, log = run.finish()
    assert (status, out) == (128 + 9, b"")
    assert log == b"trunkline proxy: the server was ended by SIGKILL\n"


def test_the_log_of_a_server_passes_live_and_unchanged(proxy: Callable[..., Proxy]) -> None:
    log = b"a\n\n\x1b[1mb\xff token=%s\n" % CANARY.encode()
    run = proxy(*python(f"os.write(2, {log!r})\nsys.stdin.read()\nos.write(2, b'no end')"))
    assert b"".join(run.line(run.stderr) for _ in range(3)) == log
    assert run.run.poll() is None
    assert run.finish() == (0, b"", b"no end")


def test_unread_stderr_blocks_neither_messages_nor_signals(
    proxy: Callable[..., Proxy],
) -> None:
    chatty = "while True:\n line = sys.stdin.readline()\n os.write(2, b'x' * 65536 * 160)\n"
    run = proxy(*python(PID + chatty + " os.write(1, line.encode())\n if not line: break"))
    pid = run.pid()
    for number in range(10):
        run.say(b"%d\n" % number)
        assert run.line() == b"%d\n" % number
    # 100 MiB of log, of which little was kept.
    assert _kilobytes(run.run.pid, "VmHWM") < 100 * 1024
    run.run.terminate()
    run.run.wait(WAIT)
    assert_gone(pid)


def test_a_command_that_cannot_be_started_is_said(proxy: Callable[..., Proxy]) -> None:
    status, out, log = proxy("--", "/no/such/server").finish()
    assert (status, out) == (3, b"")
    assert log.startswith(b"trunkline proxy: cannot start '/no/such/server'")


def test_a_message_that_is_too_large_ends_it_with_a_sentence(
    proxy: Callable[..., Proxy],
) -> None:
    run = proxy("--max-size", "1K", *python(ECHO))
    run.say(b"x" * 1024 + b"\n" + b"x" * 1025 + b"\n")
    status, out, log = run.finish()
    assert (status, out) == (3, b"x" * 1024 + b"\n")
    assert log == (b"trunkline proxy: the client sent a message, over the limit of 1024 bytes\n")


# Ends that nobody asked for


def test_a_server_that_is_killed_ends_the_client_too(proxy: Callable[..., Proxy]) -> None:
    run = proxy(*python(PID + "time.sleep(60)"))
    pid = run.pid()
    run.say(b"a call\n")
    os.kill(pid, signal.SIGKILL)
    assert run.line() == b""
    assert run.run.wait(WAIT) == 128 + 9


@pytest.mark.parametrize("pause", [0.0, pytest.param(0.5, marks=pytest.mark.full)])
def test_a_server_ends_whose_client_is_gone_in_the_middle_of_a_call(
    proxy: Callable[..., Proxy], pause: float
) -> None:
    run = proxy(*python(PID + "time.sleep(60)"))
    pid = run.pid()
    run.say(b"a call\n")
    run.stdin.close()
    time.sleep(pause)
    run.stdout.close()
    run.run.wait(WAIT)
    assert_gone(pid)


def test_killing_the_proxy_ends_its_server(proxy: Callable[..., Proxy]) -> None:
    run = proxy(*python(PID + "sys.stdin.read()"))
    pid = run.pid()
    run.run.kill()
    run.run.wait(WAIT)
    assert_gone(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_both_in_order(proxy: Callable[..., Proxy], number: int) -> None:
    run = proxy(*python(PID + "sys.stdin.read()\nprint('bye')\nsys.exit(5)"))
    pid = run.pid()
    run.run.send_signal(number)
    assert run.line() == b"bye\n"
    assert run.run.wait(WAIT) == (130 if number == signal.SIGINT else 5)
    assert_gone(pid)


def test_server_that_does_not_exit_is_killed(proxy: Callable[..., Proxy]) -> None:
    run = proxy(*python(STUBBORN + PID + "time.sleep(60)"))
    pid = run.pid()
    run.run.terminate()
    assert run.run.wait(WAIT) == 128 + 9
    assert_gone(pid)


def test_a_second_signal_does_not_wait(proxy: Callable[..., Proxy]) -> None:
    run = proxy(*python(STUBBORN + PID + "sys.stdin.read()\nprint('told')\ntime.sleep(60)"))
    pid = run.pid()
    run.run.terminate()
    assert run.line() == b"told\n"
    run.run.terminate()
    run.run.wait(WAIT)
    assert_gone(pid)


def test_memory_is_bounded_whatever_a_server_sends(proxy: Callable[..., Proxy]) -> None:
    flood = "for _ in range(256):\n os.write(1, b'x' * (1024 * 1024 - 1) + b'\\n')"
    run = proxy(*python(flood))
    # Until everything on the way is full.
    last, size = -1, -2
    while size != last:
        last, size = size, _kilobytes(run.run.pid, "VmRSS")
        time.sleep(0.5)
    taken = 0
    while data := os.read(run.stdout.fileno(), MIB):
        taken += len(data)
        if taken >= 255 * MIB:
            assert _kilobytes(run.run.pid, "VmHWM") < 100 * 1024
    assert taken == 256 * MIB
    assert run.run.wait(WAIT) == 0


def _kilobytes(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


# Sockets


def dial(address: str) -> socket.socket:
    """Connect to where a proxy listens."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(address.removeprefix("unix:"))
    else:
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        sock = socket.create_connection((host, int(port)))
    sock.settimeout(WAIT)
    return sock


def listening(run: Proxy) -> str:
    line = run.line(run.stderr).decode()
    assert line.startswith("trunkline proxy: listening on "), line
    return line.split()[-1]


def read_all(sock: socket.socket) -> bytes:
    with sock.makefile("rb") as file:
        return file.read()


@pytest.mark.parametrize("way", ["unix", "tcp"])
def test_every_client_has_a_server_of_its_own(
    proxy: Callable[..., Proxy], tmp_path: Path, way: str
) -> None:
    source = f"unix:{tmp_path}/s" if way == "unix" else "tcp://127.0.0.1:0"
    record = tmp_path / "talk.jsonl"
    run = proxy(source, "--record", str(record), *python(PID + ECHO))
    address = listening(run)
    clients = [dial(address) for _ in range(3)]
    files = [each.makefile("rwb", buffering=0) for each in clients]
    pids = [int(each.readline()) for each in files]
    assert len(set(pids)) == 3
    for number, each in enumerate(files):
        each.write(b'{"n":%d}\n' % number)
    assert [each.readline() for each in files] == [b'{"n":%d}\n' % n for n in range(3)]
    # One has said all it has to say, one leaves, and one is there when all ends.
    clients[0].shutdown(socket.SHUT_WR)
    assert files[0].readline() == b""
    assert_gone(pids[0])
    files[1].close()
    clients[1].close()
    assert_gone(pids[1])
    os.kill(pids[2], 0)
    run.run.terminate()
    assert files[2].readline() == b""
    assert run.run.wait(WAIT) == 0
    assert_gone(pids[2])
    assert not (tmp_path / "s").exists()
    for each in (*files, *clients):
        each.close()
    entries = [json.loads(line) for line in record.read_text().splitlines()[1:]]
    heard = {
        (e["connection"], e["from"], e["transport"], e["message"]["n"])
        for e in entries
        if isinstance(e["message"], dict)
    }
    both = {("client", way), ("server", "stdio")}
    assert heard == {(n + 1, who, via, n) for n in range(3) for who, via in both}


def test_a_client_whose_server_cannot_be_started_is_let_go_and_the_next_is_served(
    proxy: Callable[..., Proxy], tmp_path: Path
) -> None:
    server = tmp_path / "server"
    run = proxy(f"unix:{tmp_path}/s", "--", str(server))
    address = listening(run)
    with dial(address) as client:
        assert read_all(client) == b""
    assert run.line(run.stderr).startswith(b"trunkline proxy: connection 1: cannot start")
    server.write_text("#!/bin/sh\necho here\n")
    server.chmod(0o700)
    with dial(address) as client:
        assert read_all(client) == b"here\n"
    run.run.terminate()
    assert run.run.wait(WAIT) == 0


def test_remote_server_is_served_on_standard_streams(
    proxy: Callable[..., Proxy],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        run = proxy("stdio", f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        sock, _ = listener.accept()
        sock.settimeout(WAIT)
        run.say(b"one\n")
        run.stdin.close()
        assert read_all(sock) == b"one\n"
        sock.sendall(b"1\n2\n")
        sock.close()
        assert run.stdout.read() == b"1\n2\n"
        assert run.run.wait(WAIT) == 0
        assert run.stderr.read() == b""


def test_a_remote_server_that_is_not_there_is_said(
    proxy: Callable[..., Proxy], tmp_path: Path
) -> None:
    status, out, log = proxy(f"unix:{tmp_path}/none").finish()
    assert (status, out) == (3, b"")
    assert b"No such file or directory" in log
    assert log.count(b"\n") == 1


def test_two_framings_are_joined(proxy: Callable[..., Proxy], tmp_path: Path) -> None:
    reader = "data = os.read(0, 100)\nos.write(1, b'Content-Length: %d\\r\\n\\r\\n' % len(data))\n"
    run = proxy("--target-framing", "content-length", *python(reader + "os.write(1, data)"))
    run.say(b"hi\n")
    # What the server had read is what it says: the frame and its header.
    status, out, log = run.finish()
    assert (status, out) == (3, b"")
    assert b"what the other framing cannot carry" in log
    run = proxy(f"unix:{tmp_path}/s", "--source-framing", "length-prefix", *python(ECHO))
    with dial(listening(run)) as client:
        client.sendall(b"\0\0\0\x02hi")
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b"\0\0\0\x02hi"
    run.run.terminate()
    run.run.wait(WAIT)


def test_both_sides_may_be_encrypted(proxy: Callable[..., Proxy], tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.certificate("server", "127.0.0.1")
    words = ["--source-tls-cert", str(cert), "--source-tls-key", str(key)]
    address = listening(proxy("tls://127.0.0.1:0", *words, *python(ECHO)))
    assert address.startswith("tls://127.0.0.1:")
    run = proxy(address, "--tls-ca", str(authority.ca))
    run.say(b"hi\n")
    assert run.finish() == (0, b"hi\n", b"")
    # Who is not trusted is not spoken to.
    status, out, log = proxy(address).finish()
    assert (status, out) == (3, b"")
    assert b"TLS handshake failed" in log


def test_our_client_speaks_through_it_by_every_way(
    proxy: Callable[..., Proxy], tmp_path: Path, server: list[str]
) -> None:
    record = tmp_path / "talk.jsonl"
    address = listening(proxy(f"unix:{tmp_path}/s", "--record", str(record), *server))
    through = [sys.executable, "-m", "trunkline", "proxy"]

    async def names(target: Any, revision: str | None) -> list[str]:
        async with Client(target, revision=revision) as client:
            return [tool.name for tool in await client.list_tools()]

    async def script() -> list[list[str]]:
        ways = [Stdio(server[1:]), address, Stdio([*through, address]), Stdio([*through, *server])]
        return [
            await names(way, revision) for way in ways for revision in ("2025-06-18", "2026-07-28")
        ]

    found = asyncio.run(asyncio.wait_for(script(), WAIT))
    assert found[0]
    assert found == [found[0]] * 8
    assert '"connection":4' in record.read_text()


def test_an_address_in_use_is_said(proxy: Callable[..., Proxy], tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/s"
    listening(proxy(address, *python(ECHO)))
    status, out, log = proxy(address, *python(ECHO)).finish()
    assert (status, out) == (3, b"")
    assert log.startswith(b"trunkline proxy: ")
    assert log.count(b"\n") == 1


# What is heard


def message(id: int, method: str, **params: object) -> bytes:
    said = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return json.dumps(said).encode() + b"\n"


def test_a_recording_can_be_read_however_it_ended(
    proxy: Callable[..., Proxy], tmp_path: Path
) -> None:
    record = tmp_path / "talk.jsonl"
    run = proxy("--record", str(record), *python(PID + ECHO))
    run.pid()
    run.say(message(1, "tools/call", api_key=CANARY, city="Oslo"))
    assert CANARY.encode() in run.line()  # what is passed on is not what is written down
    run.say(b"\xff no message\n")
    assert run.line() == b"\xff no message\n"
    run.run.kill()
    run.run.wait(WAIT)
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert lines[0] == {"trunkline-trace": 1}
    senders = [each["from"] for each in lines[1:]]
    assert senders == ["server", "client", "server", "client", "server"]
    assert {each["transport"] for each in lines[1:]} == {"stdio"}
    assert CANARY not in record.read_text()
    assert "Oslo" in record.read_text()
    # It continues a recording, and nothing else.
    assert proxy("--record", str(record), *python("")).finish()[0] == 0
    assert [json.loads(line) for line in record.read_text().splitlines()] == lines
    other = tmp_path / "other"
    other.write_text("mine\n")
    status, _, log = proxy("--record", str(other), *python("")).finish()
    assert (status, other.read_text()) == (2, "mine\n")
    assert b"is not a recording" in log


def test_a_recording_that_cannot_be_written_on_changes_nothing(
    proxy: Callable[..., Proxy],
) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    run = proxy("--record", "/dev/full", *python(ECHO))
    run.say(b"one\n")
    status, out, log = run.finish()
    assert (status, out) == (2, b"")
    assert b"No space left" in log


def test_findings_are_said_while_the_conversation_goes_on(
    proxy: Callable[..., Proxy],
) -> None:
    run = proxy("--judge", *python(ECHO))
    run.say(message(1, "no/such/method", token=CANARY))
    first, second = run.line(run.stderr), run.line(run.stderr)
    assert first.startswith(b"trunkline proxy: error mcp.")
    assert b"message 1, no/such/method, client \xe2\x86\x92 server" in second
    assert run.run.poll() is None
    status, out, log = run.finish()
    assert status == 0
    assert out == message(1, "no/such/method", token=CANARY)
    assert log.splitlines()[-1].startswith(b"trunkline proxy: 2 messages: ")
    assert CANARY.encode() not in first + second + log


def test_errors_fail_the_run_only_if_that_was_asked_for(proxy: Callable[..., Proxy]) -> None:
    for words, script, expected in (
        (["--fail"], ECHO, 1),
        (["--judge"], ECHO, 0),
        (["--fail"], f"{ECHO}sys.exit(9)", 9),
    ):
        run = proxy(*words, *python(script))
        run.say(b"no message\n")
        status, out, log = run.finish()
        assert (status, out) == (expected, b"no message\n")
        assert b": error " in log
    assert proxy("--fail", *python(ECHO)).finish()[0] == 0


# Ctrl-C


def assert_interrupted(run: Any, *pids: int) -> None:
    assert run.wait() == 130
    for pid in pids:
        assert_gone(pid)
    assert "Traceback" not in run.text
    run.assert_usable()


def test_ctrl_c_before_anybody_connects(terminal: Start, tmp_path: Path) -> None:
    run = terminal("proxy", f"unix:{tmp_path}/s", *python(ECHO))
    run.until("listening on")
    run.type("\x03")
    assert_interrupted(run)
    assert not (tmp_path / "s").exists()


def test_ctrl_c_in_the_middle_of_a_call(terminal: Start, tmp_path: Path) -> None:
    script = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
    ready = f"sys.stdin.readline()\nopen({str(tmp_path / 'ready')!r}, 'w')\ntime.sleep(60)"
    run = terminal("proxy", "--judge", *python(script + ready))
    run.type("a call\n")
    run.until_there(tmp_path / "ready")
    run.type("\x03")
    assert_interrupted(run, int((tmp_path / "pid").read_text()))


def test_ctrl_c_while_a_client_is_connected(terminal: Start, tmp_path: Path) -> None:
    run = terminal("proxy", f"unix:{tmp_path}/s", *python(PID + STUBBORN + "time.sleep(60)"))
    run.until("listening on")
    with dial(f"unix:{tmp_path}/s") as client:
        pid = int(client.makefile().readline())
        run.type("\x03")
        assert_interrupted(run, pid)
        assert client.recv(1) == b""


def test_ctrl_c_while_the_server_is_being_reached(terminal: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # It takes the connection and never says a word of TLS.
        run = terminal("proxy", f"tls://127.0.0.1:{listener.getsockname()[1]}")
        sock, _ = listener.accept()
        run.type("\x03")
        assert_interrupted(run)
        sock.close()


def test_the_ends_of_many_clients_leave_nothing(
    proxy: Callable[..., Proxy], tmp_path: Path
) -> None:
    run = proxy(f"unix:{tmp_path}/s", *python(ECHO))
    address = listening(run)
    folder = Path(f"/proc/{run.run.pid}/fd")
    before = len(list(folder.iterdir()))

    def talk() -> None:
        for _ in range(5):
            with dial(address) as client:
                client.sendall(b"hi\n")
                client.shutdown(socket.SHUT_WR)
                found.append(read_all(client))

    found: list[bytes] = []
    threads = [threading.Thread(target=talk) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(WAIT)
    assert found == [b"hi\n"] * 20
    until(lambda: len(list(folder.iterdir())) <= before)
    children = Path(f"/proc/{run.run.pid}/task/{run.run.pid}/children")
    until(lambda: not children.read_text())
    run.run.terminate()
    assert run.run.wait(WAIT) == 0


def test_proxy_at_a_terminal_prints_what_it_waits_for(
    terminal: Callable[..., Any], server: list[str]
) -> None:
    run = terminal("proxy", *server)
    run.until("trunkline proxy: waiting for a client on standard input; to listen on a socket:")
    run.type("\x03")
    assert run.wait() == 130


def test_the_log_of_a_server_cannot_control_the_terminal(terminal: Callable[..., Any]) -> None:
    script = (
        "os.write(2, b'\\x1b]0;title\\x07\\x1b[2J\\xc3'); time.sleep(0.2)\n"
        "os.write(2, b'\\xa4 \\xff end of the log\\r\\n')"
    )
    run = terminal("proxy", *python(script))
    run.until("end of the log")
    assert run.wait() == 0
    assert "\\x1b]0;title\\x07\\x1b[2Jä \\xff end of the log" in run.text
    run.assert_usable()

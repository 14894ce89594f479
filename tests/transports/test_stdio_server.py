"""A server on its own standard streams, whatever they are connected to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import select
import socket
import subprocess
import sys
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trunkline.errors import LocalProtocolError, TransportError
from trunkline.jsonrpc import Limits, Oversize, Policy
from trunkline.testing.transport_contract import Observed, leftovers
from trunkline.transports import StdioServer
from trunkline.transports.io import fd as pipes
from trunkline.transports.stdio import server as stdio_server

WAIT = 20
FRAMES = b'{"n":1}\n{"n":2}\n'

# Echoes every frame, and leaves when its input ends.
ECHO = """
import asyncio, os, subprocess, sys
from trunkline.jsonrpc import Policy
from trunkline.transports import StdioServer

async def main():
    wire = StdioServer(Policy())
    ended = asyncio.Event()
    wire.on_message = lambda frame, route: wire.send(frame)
    wire.on_error = lambda error: ended.set()
{before}
    await wire.connect()
{during}
    await ended.wait()
    await wire.close()
{after}

asyncio.run(main())
"""


def echo(during: str = "", after: str = "", before: str = "") -> list[str]:
    parts = {"before": before, "during": during, "after": after}
    script = ECHO.format_map({name: indented(part) for name, part in parts.items()})
    # Without the environment, or PYTHONUNBUFFERED would let "before" out before we are there.
    return [sys.executable, "-E", "-c", script]


def indented(lines: str) -> str:
    return "\n".join(f"    {line}" for line in lines.splitlines())


def run(command: list[str], **streams: Any) -> subprocess.CompletedProcess[bytes]:
    streams.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(command, timeout=WAIT, check=False, **streams)


# Only frames reach the wire


def test_stray_output_goes_to_stderr() -> None:
    during = """
print("printed")
sys.__stdout__.write("held on to\\n")
os.write(1, b"written\\n")
subprocess.run(["echo", "by a child"])
"""
    done = run(echo(during, before='print("before")'), input=FRAMES, stdout=subprocess.PIPE)
    assert done.stdout == FRAMES
    said = sorted(done.stderr.decode().splitlines())
    assert said == ["before", "by a child", "held on to", "printed", "written"]


@pytest.mark.parametrize("when", ["at the start", "before it connects"])
def test_stray_output_reaches_nothing_where_stderr_is_closed(when: str) -> None:
    during = """
print("printed")
sys.__stdout__.write("held on to\\n")
os.write(1, b"written\\n")
subprocess.run(["echo", "by a child"])
"""
    if when == "at the start":
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *echo(during)]
    else:
        command = echo(during, before="os.close(2)")
    done = run(command, input=FRAMES, stdout=subprocess.PIPE)
    assert done.stdout == FRAMES
    assert done.returncode == 0


@pytest.mark.parametrize("how", ["sys.stdout.close()", "os.close(1)", "sys.__stdout__.close()"])
def test_closing_stdout_in_a_handler_closes_neither_the_wire_nor_stderr(how: str) -> None:
    during = f"""
print("begun", end="")
{how}
print("told", file=sys.stderr)
os.write(2, b"written\\n")
"""
    after = """
sys.stderr.write("after\\n")
os.write(1, b"put back\\n")
"""
    done = run(echo(during, after), input=FRAMES, stdout=subprocess.PIPE)
    assert done.stdout == FRAMES + b"put back\n"
    said = done.stderr.decode().replace("begun", "")
    assert said == "told\nwritten\nafter\n"
    assert done.stderr.count(b"begun") == 1
    assert done.returncode == 0


def test_print_of_any_text_goes_to_stderr() -> None:
    during = "print('\\ud800', 'é', sys.stdout.encoding, sys.stdout is sys.stderr)"
    done = run(echo(during), input=FRAMES, stdout=subprocess.PIPE)
    assert done.stdout == FRAMES
    assert done.stderr.decode() == "\\ud800 é utf-8 False\n"


def test_a_child_process_does_not_read_the_wire() -> None:
    during = """
child = await asyncio.create_subprocess_exec("cat", stdout=subprocess.PIPE)
taken, _ = await child.communicate()
os.write(2, b"%d taken" % len(taken))
"""
    done = run(echo(during), input=FRAMES, stdout=subprocess.PIPE)
    assert done.stdout == FRAMES
    assert done.stderr.endswith(b"0 taken")


def test_closing_puts_everything_back() -> None:
    after = """
print("after", os.get_blocking(0), os.get_blocking(1), sys.stdout is sys.__stdout__)
print(os.read(0, 10), len(os.listdir("/proc/self/fd")) == held + 1)
"""
    during = 'held = len(os.listdir("/proc/self/fd")) - 2'
    done = run(echo(during, "held -= 1\n" + after), input=FRAMES, stdout=subprocess.PIPE)
    assert done.stdout == FRAMES + b"after True True True\nb'' True\n"


# Whatever the streams are


def test_a_last_line_without_its_end_is_answered_and_so_is_all_before_it() -> None:
    done = run(echo(), input=FRAMES + b'{"n":3}', stdout=subprocess.PIPE)
    assert done.stdout == FRAMES + b'{"n":3}\n'
    assert done.returncode == 0


def test_files_can_stand_for_both_streams(tmp_path: Path) -> None:
    asked, answered = tmp_path / "in", tmp_path / "out"
    frames = b"".join(b'{"n":%d}\n' % n for n in range(20_000))
    asked.write_bytes(frames)
    with asked.open("rb") as stdin, answered.open("wb") as stdout:
        done = run(echo(), stdin=stdin, stdout=stdout)
    same = answered.read_bytes() == frames
    assert same, done.stderr


def test_nothing_can_stand_for_both_streams() -> None:
    done = run(echo(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert done.returncode == 0
    assert done.stderr == b""


def test_a_socket_can_be_both_streams() -> None:
    here, there = socket.socketpair()
    with here, there:
        process = subprocess.Popen(echo(), stdin=there, stdout=there, stderr=subprocess.DEVNULL)
        here.settimeout(WAIT)
        here.sendall(FRAMES)
        received = b""
        while len(received) < len(FRAMES):
            received += here.recv(1000)
        here.shutdown(socket.SHUT_WR)
        assert process.wait(WAIT) == 0
        assert received == FRAMES
        assert os.get_blocking(there.fileno())


@contextlib.contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    try:
        yield ours, theirs
    finally:
        for fd in (ours, theirs):
            with contextlib.suppress(OSError):
                os.close(fd)


def read_exactly(fd: int, size: int) -> bytes:
    received = b""
    while len(received) < size:
        assert select.select([fd], [], [], WAIT)[0], f"only {received!r} came"
        received += os.read(fd, size - len(received))
    return received


def test_a_terminal_can_be_both_streams_and_is_never_made_non_blocking() -> None:
    with terminal() as (ours, theirs):
        process = subprocess.Popen(echo(), stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
        os.write(ours, FRAMES)
        assert read_exactly(ours, len(FRAMES)) == FRAMES
        # The open file that the server uses is the one that we hold.
        assert os.get_blocking(theirs)
        os.close(theirs)
        os.close(ours)  # hanging up is how a terminal ends
        assert process.wait(WAIT) == 0


def test_a_large_answer_passes_through_a_terminal() -> None:
    async def script() -> None:
        with terminal() as (ours, theirs):
            near = Observed(StdioServer(Policy(), stdin=os.dup(ours), stdout=os.dup(ours)))
            far = Observed(StdioServer(Policy(), stdin=os.dup(theirs), stdout=os.dup(theirs)))
            await near.transport.connect()
            await far.transport.connect()
            near.transport.send(b"n" * 300_000)
            far.transport.send(b"f" * 300_000)
            sizes = [len(await end.received(1)) and len(end.frames[0]) for end in (near, far)]
            assert sizes == [300_000, 300_000]
            await far.transport.close()
            await near.transport.close()

    asyncio.run(script())


def test_a_terminal_that_takes_nothing_does_not_hold_up_the_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio_server, "_CLOSE_TIMEOUT_S", 0.05)

    async def script() -> None:
        with terminal() as (_, theirs):
            end = Observed(StdioServer(Policy(), stdin=os.dup(theirs), stdout=os.dup(theirs)))
            await end.transport.connect()
            end.transport.send(b"x" * 1_000_000)
            await asyncio.wait_for(end.transport.close(), WAIT)
            assert end.ends == [None]

    asyncio.run(script())


def test_stderr_stays_blocking_where_it_is_the_same_pipe_as_stdout() -> None:
    during = 'os.write(2, b"%d\\n" % os.get_blocking(2))'
    done = run(echo(during), input=FRAMES, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = done.stdout.splitlines()
    assert b"1" in lines
    assert [line for line in lines if line.startswith(b"{")] == FRAMES.splitlines()


# In this process


def piped(policy: Policy | None = None) -> tuple[Observed, int, int]:
    """Return a server on two pipes, and our ends of them: to read from, to write to."""
    stdin, write = os.pipe()
    read, stdout = os.pipe()
    return Observed(StdioServer(policy or Policy(), stdin=stdin, stdout=stdout)), read, write


def test_answers_are_written_after_the_end_of_the_input() -> None:
    async def script() -> None:
        before = leftovers()
        server, read, write = piped()
        await server.transport.connect()
        os.write(write, b'"asked"')
        os.close(write)
        assert await server.ended() is None
        assert server.frames == [b'"asked"']
        assert server.transport.is_connected
        server.transport.send(b'"answered"')
        await server.transport.close()
        assert os.read(read, 100) == b'"answered"\n'
        assert os.read(read, 100) == b""
        assert server.ends == [None]
        os.close(read)
        assert leftovers() == before

    asyncio.run(script())


def test_broken_pipe_ends_the_transport_with_one_error() -> None:
    async def script() -> None:
        server, read, write = piped()
        await server.transport.connect()
        os.close(read)
        server.transport.send(b'"nobody"')
        error = await server.ended()
        assert isinstance(error, TransportError)
        assert "Broken pipe" in str(error)
        assert not server.transport.is_connected
        server.transport.send(b'"nobody either"')
        os.write(write, b'"too late"\n')
        await server.transport.close()
        assert server.ends == [error]
        assert server.frames == []
        os.close(write)

    asyncio.run(script())


def test_a_client_that_takes_nothing_does_not_hold_up_the_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio_server, "_CLOSE_TIMEOUT_S", 0.05)

    async def script() -> None:
        server, read, write = piped()
        await server.transport.connect()
        server.transport.send(b"x" * 3_000_000)
        await asyncio.wait_for(server.transport.close(), WAIT)
        assert server.transport.backlog == 0
        assert server.ends == [None]
        os.close(read)
        os.close(write)

    asyncio.run(script())


def test_frame_over_the_limit_is_delivered_in_order_as_oversize() -> None:
    async def script() -> None:
        server, read, write = piped(Policy(limits=Limits(stdio=10)))
        await server.transport.connect()
        os.write(write, b'"a"\n"%s"\n"b"\n' % (b"x" * 100))
        first, second, third = await server.received(3)
        assert (first, third) == (b'"a"', b'"b"')
        assert isinstance(second, Oversize)
        await server.transport.close()
        os.close(read)
        os.close(write)

    asyncio.run(script())


def test_flags_of_a_shared_open_file_are_put_back() -> None:
    async def script() -> None:
        here, there = socket.socketpair()
        with here:
            shared = os.dup(there.fileno())
            fd = there.detach()
            server = StdioServer(Policy(), stdin=fd, stdout=fd)
            await server.connect()
            assert not os.get_blocking(shared)
            await server.close()
            assert os.get_blocking(shared)
            os.close(shared)

    asyncio.run(script())


def test_a_huge_frame_is_written_from_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 64 * 1024 * 1024
    message = bytes(size)
    written: list[tuple[int, int]] = []  # whose bytes, and how many
    write_really = os.write

    def write(fd: int, data: bytes | memoryview) -> int:
        count = write_really(fd, data)
        written.append((id(data.obj if isinstance(data, memoryview) else data), count))
        return count

    monkeypatch.setattr(pipes.os, "write", write)

    async def script() -> None:
        policy = Policy(limits=Limits(stdio=None))
        near_in, far_out = os.pipe()
        far_in, near_out = os.pipe()
        near = Observed(StdioServer(policy, stdin=near_in, stdout=near_out))
        far = Observed(StdioServer(policy, stdin=far_in, stdout=far_out))
        await asyncio.gather(near.transport.connect(), far.transport.connect())
        near.transport.send(message)
        (frame,) = await far.received(1)
        assert isinstance(frame, bytes)
        assert len(frame) == size
        await asyncio.gather(near.transport.close(), far.transport.close())

    asyncio.run(script())
    # Each byte once, from the message itself, and then its end: nothing was joined or copied.
    *of_message, (_, of_end) = written
    assert {whose for whose, _ in of_message} == {id(message)}
    assert (sum(count for _, count in of_message), of_end) == (size, 1)


@pytest.mark.parametrize("size", [65_535, 65_536, 300_000])
def test_a_frame_that_cannot_be_sent_leaves_nothing_on_the_wire(size: int) -> None:
    async def script() -> None:
        server, read, write = piped()
        await server.transport.connect()
        with pytest.raises(LocalProtocolError):
            server.transport.send(b"x" * (size - 1) + b"\n")
        assert server.transport.backlog == 0
        server.transport.send(b'"next"')
        await server.transport.close()
        assert os.read(read, 100) == b'"next"\n'
        os.close(read)
        os.close(write)

    asyncio.run(script())


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_stream_that_was_closed_is_refused_and_nothing_is_left(closed: str) -> None:
    script = """
import asyncio, os
from trunkline.errors import TransportError
from trunkline.jsonrpc import Policy
from trunkline.transports import StdioServer
async def main():
    wire = StdioServer(Policy())
    held = os.listdir("/proc/self/fd")
    try:
        await wire.connect()
    except TransportError as error:
        os.write(2, str(error).encode())
    assert held == os.listdir("/proc/self/fd")
    await asyncio.sleep(0)  # the loop, which got the free descriptor, still works
asyncio.run(main())
"""
    shell = f'exec "$0" -c "$1" {closed}'
    done = run(["sh", "-c", shell, sys.executable, script], stdin=subprocess.DEVNULL)
    assert done.stderr == b"standard input or output cannot be used: Bad file descriptor"
    assert done.returncode == 0

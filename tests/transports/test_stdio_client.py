"""A server as a child process: what it says, how it dies, and that it does."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.processes import assert_gone
from tests.without_posix import children_without_threads
from trunkline.errors import TransportError
from trunkline.jsonrpc import Policy
from trunkline.testing.transport_contract import Observed, leftovers
from trunkline.transports import Stdio
from trunkline.transports.stdio import client as stdio_client
from trunkline.transports.stdio.client import _StdioTransport

WAIT = 20
CANARY = "canary-7f3a91c2"


def child(script: str, *args: str, **options: Any) -> Stdio:
    """Return the address of a Python script."""
    return Stdio([sys.executable, "-S", "-E", "-u", "-c", script, *args], **options)


def with_child(address: Stdio, script: Callable[[Observed], Awaitable[None]]) -> None:
    """Run a script against a started child, close it, and see that nothing is left."""

    async def run() -> None:
        before = leftovers()
        end = Observed(address.transport(Policy()))
        await end.transport.connect()
        try:
            await script(end)
        finally:
            await end.transport.close()
        assert leftovers() == before

    asyncio.run(asyncio.wait_for(run(), WAIT))


def failure(end: Observed) -> TransportError:
    """Return the error that the end was reported with."""
    (error,) = end.ends
    assert isinstance(error, TransportError)
    return error


@pytest.fixture(params=["watched", "unwatched"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Try both ways: the loop watches our descriptors, or, as on Windows, has the pipes itself."""
    if request.param == "unwatched":
        monkeypatch.setattr(_StdioTransport, "_can_watch", lambda self, loop: False)
    with children_without_threads():
        yield


# Process groups and sessions are those of POSIX.
watched_alone = pytest.mark.parametrize("way", ["watched"], indirect=True)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits that such a child makes us wait to the end."""
    monkeypatch.setattr(stdio_client, "_REST_TIMEOUT_S", 0.1)


ECHO = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""


def test_an_echo_comes_back_and_a_close_ends_in_order() -> None:
    async def script(end: Observed) -> None:
        end.transport.send(b'{"n":1}')
        assert await end.received(1) == [b'{"n":1}']
        await end.transport.close()
        assert end.ends == [None]

    with_child(child(ECHO), script)


def test_output_during_close_is_still_received() -> None:
    says_goodbye = "import sys\nsys.stdin.read()\nprint('goodbye')"

    async def script(end: Observed) -> None:
        await end.transport.close()
        assert end.frames == [b"goodbye"]
        assert end.ends == [None]
        assert not end.after_the_end

    with_child(child(says_goodbye), script)


# An end that nobody asked for


def test_killed_server_is_reported_with_status_and_stderr() -> None:
    dies = """
import os, sys
for n in range(30): print("log", n, file=sys.stderr)
print('"last"')
os.kill(os.getpid(), 9)
"""

    async def script(end: Observed) -> None:
        await end.ended()
        error = failure(end)
        assert error.reason == "the server was ended by SIGKILL"
        assert error.exit_status == -9
        assert error.stderr == tuple(f"log {n}" for n in range(10, 30))
        assert end.frames == [b'"last"']
        assert not end.transport.is_connected

    with_child(child(dies), script)


def test_exit_of_the_server_is_an_error_after_all_its_output() -> None:
    leaves = """
import sys
for n in range(20000): sys.stdout.write('{"n":%d,"pad":"%s"}\\n' % (n, "x" * 100))
"""

    async def script(end: Observed) -> None:
        await end.ended()
        assert failure(end).reason == "the server exited"
        assert failure(end).exit_status == 0
        assert len(end.frames) == 20_000
        assert not end.after_the_end

    with_child(child(leaves), script)


def test_a_server_that_fails_at_once_says_why() -> None:
    async def script(end: Observed) -> None:
        await end.ended()
        assert failure(end).exit_status == 2
        assert "can't open file" in str(failure(end))

    with_child(Stdio(sys.executable, ["/no/such/script.py"]), script)


@pytest.mark.usefixtures("impatient")
def test_server_that_closes_its_output_is_reported_and_ended() -> None:
    stays = "import os, time\nos.close(1)\ntime.sleep(1000)"

    async def script(end: Observed) -> None:
        await end.ended()
        assert failure(end).reason == "the server closed its output"
        assert failure(end).exit_status is None

    with_child(child(stays, grace=0.05), script)


@pytest.mark.usefixtures("impatient")
def test_server_that_closes_its_input_is_reported_and_ended() -> None:
    stays = "import os, time\nos.close(0)\nprint('ready')\ntime.sleep(1000)"

    async def script(end: Observed) -> None:
        await end.received(1)
        end.transport.send(b"anybody?")
        await end.ended()
        assert failure(end).reason == "the server closed its input"

    with_child(child(stays, grace=0.05), script)


# Ending for certain


def test_a_server_that_ignores_everything_is_killed() -> None:
    ignores = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid())
while True: time.sleep(1000)
"""
    pids: list[int] = []

    async def script(end: Observed) -> None:
        (pid,) = await end.received(1)
        pids.append(int(pid))
        await end.transport.close()
        assert end.ends == [None]

    with_child(child(ignores, grace=0.05), script)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


PARENT = """
import subprocess, sys
sleeper = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)"
sleeper += "; time.sleep(1000)"
grandchild = subprocess.Popen(
    [sys.executable, "-S", "-E", "-c", sleeper], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
)
grandchild.stdout.readline()
print(grandchild.pid)
if sys.argv[1:] == ["wait"]: sys.stdin.read()
"""


@watched_alone
@pytest.mark.parametrize("how", ["wait", "leave"])
def test_child_processes_of_the_server_are_ended_with_it(how: str) -> None:
    pids: list[int] = []

    async def script(end: Observed) -> None:
        (pid,) = await end.received(1)
        pids.append(int(pid))
        if how == "leave":
            await end.ended()

    with_child(child(PARENT, how, grace=0.2), script)
    assert_gone(pids[0])


@watched_alone
def test_a_closing_that_the_end_of_the_loop_cuts_short_still_kills() -> None:
    ignores = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid())
while True: time.sleep(1000)
"""

    async def script() -> int:
        end = Observed(child(ignores, grace=WAIT).transport(Policy()))
        await end.transport.connect()
        (pid,) = await end.received(1)
        closing = asyncio.create_task(end.transport.close())
        await asyncio.sleep(0)
        closing.cancel()
        return int(pid)

    pid = asyncio.run(script())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_ends_when_its_client_dies() -> None:
    client = f"""
import asyncio, os, sys
from trunkline.jsonrpc import Policy
from trunkline.transports import Stdio
async def main():
    wire = Stdio([sys.executable, "-c", {ECHO!r}]).transport(Policy())
    await wire.connect()
    print(wire._child.pid, flush=True)
    os._exit(1)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", client], stdout=subprocess.PIPE, timeout=WAIT)
    assert_gone(int(done.stdout))


@watched_alone
def test_a_server_has_a_session_of_its_own() -> None:
    async def script(end: Observed) -> None:
        (frame,) = await end.received(1)
        assert frame != b"%d" % os.getsid(0)

    with_child(child("import os\nprint(os.getsid(0))\ninput()"), script)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_reads_nothing_does_not_hold_up_the_closing() -> None:
    async def script(end: Observed) -> None:
        end.transport.send(b"x" * 8_000_000)
        await end.transport.close()
        assert end.transport.backlog == 0

    with_child(child("import time\ntime.sleep(1000)", grace=0.05), script)


# Starting


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (Stdio("no-such-command"), "cannot start 'no-such-command' (No such file or directory)"),
        (Stdio("/etc/passwd"), "cannot start '/etc/passwd' (Permission denied)"),
        (Stdio("/tmp"), "cannot start '/tmp' (Permission denied)"),
        (Stdio("true", cwd="/no/where"), "cannot start 'true' in '/no/where' (No such file"),
        (Stdio("true", ["nul\0"]), "cannot start 'true' (embedded null byte)"),
    ],
)
def test_command_that_cannot_be_started_is_named_with_the_reason(
    address: Stdio, expected: str
) -> None:
    async def script() -> None:
        before = leftovers()
        wire = address.transport(Policy())
        with pytest.raises(TransportError) as caught:
            await wire.connect()
        assert str(caught.value).startswith(expected)
        await wire.close()
        assert leftovers() == before

    asyncio.run(script())


def test_the_environment_is_inherited_and_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "one")
    monkeypatch.setenv("REPLACED", "old")
    tells = """
import os
print(*(os.environ[name] for name in ("INHERITED", "REPLACED", "ADDED")), os.getcwd())
input()
"""

    async def script(end: Observed) -> None:
        assert await end.received(1) == [b"one new three /"]

    with_child(child(tells, env={"REPLACED": "new", "ADDED": "three"}, cwd="/"), script)


def test_of_the_environment_only_the_least_is_inherited_if_so_wished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLOUD_API_KEY", CANARY)
    monkeypatch.setenv("HOME", "/home/of/somebody")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("LANG", raising=False)
    tells = """
import os
print(os.environ["HOME"], os.environ["TZ"], "PATH" in os.environ, "LANG" in os.environ)
print("CLOUD_API_KEY" in os.environ, os.environ["ADDED"])
input()
"""

    async def script(end: Observed) -> None:
        received = await end.received(2)
        assert received == [b"/home/of/somebody new True False", b"False three"]

    with_child(child(tells, env={"TZ": "new", "ADDED": "three"}, inherit_env=False), script)


def test_no_shell_reads_the_arguments() -> None:
    async def script(end: Observed) -> None:
        assert await end.received(1) == [b"$HOME; *"]

    with_child(child("import sys\nprint(sys.argv[1])\ninput()", "$HOME; *"), script)


def test_a_path_can_be_an_argument(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text("print('here')\ninput()")

    async def script(end: Observed) -> None:
        assert await end.received(1) == [b"here"]

    with_child(Stdio([Path(sys.executable), "-S", "-E", "-u"], [server]), script)


def test_a_loop_that_starts_no_processes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(_StdioTransport, "_can_watch", lambda self, loop: False)
    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "subprocess_exec", refuse)

    async def script() -> None:
        before = leftovers()
        wire = Stdio("true").transport(Policy())
        with pytest.raises(TransportError, match="EventLoop cannot start processes: use the def"):
            await wire.connect()
        assert not wire.is_connected
        await wire.close()
        assert leftovers() == before

    asyncio.run(script())


# stderr


def test_the_log_is_handed_over_line_by_line_and_kept_in_part() -> None:
    logs = r"""
import os
os.write(2, b"one\r\n\ntw\xff\n" + b"x" * 20000 + b"\nlast")
"""
    lines: list[str] = []

    async def script(end: Observed) -> None:
        await end.ended()
        assert lines == ["one", "tw\ufffd", "x" * 1024 + "…", "last"]
        assert failure(end).stderr == tuple(lines)

    with_child(child(logs, on_stderr=lines.append), script)


def test_control_characters_in_kept_stderr_are_escaped() -> None:
    logs = r"""
import os
os.write(2, b"\x1b[2Jgone\x07\tkept \xe2\x80\xae\xc3\xa9\n")
"""
    lines: list[str] = []

    async def script(end: Observed) -> None:
        await end.ended()
        assert lines == ["\x1b[2Jgone\x07\tkept \u202eé"]
        assert failure(end).stderr == ("\\x1b[2Jgone\\x07\tkept \\u202eé",)

    with_child(child(logs, on_stderr=lines.append), script)


def test_raising_stderr_callback_does_not_break_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(line: str) -> None:
        raise ValueError(line)

    async def script(end: Observed) -> None:
        end.transport.send(b'"still there"')
        assert await end.received(1) == [b'"still there"']

    with caplog.at_level(logging.ERROR, "trunkline.transports"):
        with_child(child("import sys\nprint('!', file=sys.stderr)" + ECHO, on_stderr=fail), script)
    assert "on_stderr raised" in caplog.text


def test_a_flood_of_log_does_not_stop_the_server() -> None:
    floods = "import os\nfor _ in range(100): os.write(2, b'x' * 65535 + b'\\n')\nprint(1)\ninput()"

    async def script(end: Observed) -> None:
        assert await end.received(1) == [b"1"]

    with_child(child(floods), script)


def test_a_secret_that_was_handed_in_is_never_shown() -> None:
    tells = "import os, sys\nprint('refused:', os.environ['API_KEY'], sys.argv, file=sys.stderr)"
    address = child(tells, "--token", CANARY, f"--api-key={CANARY}", env={"API_KEY": CANARY})

    async def script(end: Observed) -> None:
        await end.ended()
        error = failure(end)
        assert error.stderr[0].startswith("refused: [redacted]")
        assert CANARY not in str(error) + repr(error) + repr(error.stderr) + repr(end.transport)

    with_child(address, script)
    assert CANARY not in repr(address) + str(address)

    async def refused() -> None:
        missing = Stdio("no-such-command", ["--token", CANARY], env={"A": CANARY}, cwd="/")
        with pytest.raises(TransportError) as caught:
            await missing.transport(Policy()).connect()
        assert CANARY not in str(caught.value) + repr(caught.value)
        assert caught.value.__cause__ is None

    asyncio.run(refused())


def test_signals_without_a_name_have_a_number() -> None:
    dies = f"import os\nos.kill(os.getpid(), {signal.SIGRTMIN + 3})"

    async def script(end: Observed) -> None:
        await end.ended()
        assert failure(end).reason == f"the server was ended by signal {signal.SIGRTMIN + 3}"

    with_child(child(dies), script)

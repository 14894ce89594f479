"""The library with everything hidden from it that Windows does not have; see `without_posix`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
WAIT: Final = 60
RUN: Final = [sys.executable, "-m", "tests.without_posix"]

SERVER: Final = """
import sys, time
from trunkline import Server, ToolError
app = Server("small", revisions=["2026-07-28", "2025-11-25", "2025-06-18"])
single = Server("single", revisions=["2026-07-28"], list_changed=False, subscribe=False)

@app.tool
def add(a: int, b: int = 2) -> int:
    return a + b

@app.tool
async def write(text: str) -> str:
    print(text)
    return text

if __name__ == "__main__":
    app.run()
    print("in order", file=sys.stderr)
"""


@pytest.fixture
def server(tmp_path: Path) -> Path:
    (tmp_path / "small_server.py").write_text(SERVER)
    return tmp_path


def run(folder: Path, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    return subprocess.run(
        [*RUN, *words],
        env=env,
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
        **options,
    )


def script(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "script_of_test.py").write_text(text)
    return run(folder, "script_of_test")


def test_names_are_hidden_from_the_library_and_from_nothing_else(tmp_path: Path) -> None:
    text = """
import os, select, signal, types
from tests.without_posix import MODULES, NAMES
seen = "[n for n in ('readv', 'fork', 'killpg') if hasattr(os, n)]"
print(eval(seen), eval(seen, {"__name__": "trunkline.x", "os": os}))
library = {"__name__": "trunkline.x", "__builtins__": __builtins__}
exec("import fcntl")
try:
    exec("import fcntl", library)
except ModuleNotFoundError as error:
    print(error)
try:
    exec("from select import poll", library)
except ImportError as error:
    print("no poll")
"""
    done = script(tmp_path, text)
    assert done.stderr == ""
    assert done.stdout == "['readv', 'fork', 'killpg'] []\nNo module named 'fcntl'\nno poll\n"


def test_every_module_but_that_of_socket_files_can_be_imported(tmp_path: Path) -> None:
    text = """
import importlib, pkgutil, trunkline
failed = []
for module in pkgutil.walk_packages(trunkline.__path__, "trunkline."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except (ImportError, AttributeError) as error:
            failed.append(module.name)
print(failed)
"""
    done = script(tmp_path, text)
    assert done.stderr == ""
    # A Unix domain socket is refused before its file is handled.
    assert done.stdout == "['trunkline.transports.sockets.unix_path']\n"


def test_client_and_server_exchange_messages(server: Path) -> None:
    text = f"""
import asyncio
from trunkline import Client, SyncClient
COMMAND = {[*RUN, "small_server"]!r}
async def main():
    for revision in (None, "2025-06-18"):
        async with Client(COMMAND, revision=revision) as client:
            calls = [client.call_tool("add", {{"a": n}}) for n in range(100)]
            assert [r.value for r in await asyncio.gather(*calls)] == list(range(2, 102))
            text = "é" * 500_000
            assert (await client.call_tool("write", {{"text": text}})).value == text
asyncio.run(main())
with SyncClient(COMMAND) as client:
    print(client.call_tool("add", {{"a": 1}}).value)
"""
    done = script(server, text)
    assert (done.stderr, done.stdout) == ("", "3\n")


def test_a_client_connects_over_http(server: Path) -> None:
    command = [sys.executable, "-m", "trunkline", "serve", "small_server.py:app", "--http", "0"]
    with subprocess.Popen(command, cwd=server, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stderr is not None
            address = serving.stderr.readline().split()[-1]
            found = run(server, "trunkline", "call", address, "add", "a=40")
            assert (found.stderr, found.stdout, found.returncode) == ("", "42\n", 0)
        finally:
            serving.terminate()


def test_print_in_a_handler_does_not_reach_the_wire(server: Path) -> None:
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
         "params": {"name": "write", "arguments": {"text": "printed"}}},
    ]  # fmt: skip
    done = run(server, "small_server", input="".join(json.dumps(each) + "\n" for each in lines))
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]
    assert done.stderr == "printed\nin order\n"
    assert done.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_in_order(server: Path, number: signal.Signals) -> None:
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{server}"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*RUN, "small_server"], env=env, stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        assert b'"id":1' in process.stdout.readline()
        process.send_signal(number)
        # Its input is still open: a thread waits there, and is left behind.
        try:
            status = process.wait(WAIT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert process.stderr is not None
        assert (status, process.stderr.read()) == (0, b"in order\n")


def test_the_command_lists_calls_and_forwards(server: Path) -> None:
    target = ["--", *RUN, "small_server"]
    found = run(server, "trunkline", "call", "add", "a=40", *target)
    assert (found.stderr, found.stdout, found.returncode) == ("", "42\n", 0)
    found = run(server, "trunkline", "list", *target)
    assert "add" in found.stdout
    assert found.returncode == 0
    proxied = ["--", *RUN, "trunkline", "proxy", *target]
    found = run(server, "trunkline", "call", "add", "a=1", *proxied)
    assert (found.stdout, found.returncode) == ("3\n", 0)


def test_a_recording_is_written(server: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    for _ in range(2):  # the second replaces the first
        found = run(
            server,
            "trunkline",
            "call",
            "add",
            "a=1",
            "--trace",
            str(trace),
            "--",
            *RUN,
            "small_server",
        )
        assert (found.stderr, found.stdout, found.returncode) == ("", "3\n", 0)
    assert b"tools/call" in trace.read_bytes()


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        (["serve", "small_server.py:app", "--tcp", "0"], "a socket needs os.readv"),
        (["serve", "small_server.py:app", "--http", "0"], "a socket needs os.readv"),
        (["serve", "small_server.py:app", "--reload"], "--reload needs os.readv"),
        (["serve", "small_server.py:single", "--http", "0", "--workers", "2"], "with fork"),
        (["list", "tcp://127.0.0.1:1"], "a socket needs os.readv"),
    ],
)  # fmt: skip
def test_feature_that_needs_posix_is_refused_with_the_reason(
    server: Path, words: list[str], needs: str
) -> None:
    found = run(server, "trunkline", *words, cwd=server)
    assert found.returncode != 0
    assert needs in found.stderr
    assert "Traceback" not in found.stderr

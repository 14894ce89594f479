"""`trunkline serve` as a process: started, talked to, edited under its feet, and ended."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tests.faults.piped_server import MIB, Piped
from tests.rigs.conditions import until
from tests.rigs.leaks import children, nothing_left
from tests.rigs.messages import HANDSHAKE, PER_REQUEST
from tests.rigs.processes import is_there
from trunkline import Client, Stdio, Tcp, Tls, TrunklineError
from trunkline.jsonrpc.policy import Policy
from trunkline.transports.addresses import parse_address

SERVE = [sys.executable, "-m", "trunkline", "serve"]
WAIT = 40.0
INTERNAL_ERROR = -32603
ERAS = [PER_REQUEST, HANDSHAKE]

HEAD = """
from trunkline import Context, Server, ServerLimits
from trunkline.jsonrpc.policy import Policy
import asyncio, contextlib, os, sys, time
from msgspec.structs import replace
"""
BODY = """
app = Server("edited"{options})

@app.tool
def version() -> str:
    return "{version}"

@app.tool
def pid() -> int:
    return os.getpid()

@app.tool
async def until_file(path: str) -> str:
    open(path + ".begun", "w").close()
    while not os.path.exists(path):
        await asyncio.sleep(0.01)
    return "{version}"

@app.tool
async def vanish(path: str) -> str:
    await until_file(path)
    os._exit(7)

@app.tool
def only_{version}() -> str:
    return "here"
"""


def source(version: str, more: str = "", **options: str) -> str:
    given = "".join(f", {name}={value}" for name, value in options.items())
    return HEAD + BODY.format(version=version, options=given) + textwrap.dedent(more)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "edited.py"
    path.write_text(source("one"))
    return path


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="tl") as folder:
        yield Path(folder)


@contextmanager
def serving(*words: object, **options: Any) -> Iterator[Piped]:
    """Run the command on pipes; nothing of it may be left, its own children included."""
    started: set[int] = set()
    with nothing_left(), tempfile.NamedTemporaryFile() as log:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log, **options}
        process = subprocess.Popen([*SERVE, *map(str, words)], bufsize=0, **options)
        try:
            yield Piped(process, log)
            if process.poll() is None:
                started = children(process.pid)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(WAIT)
                finally:
                    process.kill()
            process.wait(WAIT)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        gone(started)


def gone(pids: set[int]) -> None:
    until(lambda: not any(map(is_there, pids)), f"processes are left: {pids}")


def wait_for_log(server: Piped, what: str, times: int = 1) -> None:
    """Wait until the log says something so many times."""
    until(
        lambda: server.log().count(what) >= times,
        lambda: f"not {times} times {what!r}: {server.log()}",
    )


def text_of(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


def bounded(script: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(WAIT):
            await script

    asyncio.run(run())


# Without reloading


def test_a_file_is_served_on_standard_streams_and_prints_elsewhere(file: Path) -> None:
    file.write_text("print('at import', flush=True)\n" + source("one"))
    with serving(file) as server:
        assert text_of(server.answer(server.call("version"))) == "one"
        server.end_input()
        assert server.rest() == []
        assert server.wait() == 0
        assert server.log() == "at import\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0(file: Path, number: int) -> None:
    with serving(file) as server:
        assert text_of(server.answer(server.call("version"))) == "one"
        os.kill(server.pid, number)
        assert server.wait() == 0


def test_a_file_that_raises_shows_its_own_frames_and_ends_with_2(file: Path) -> None:
    file.write_text("def fail():\n    1 / 0\n\n\nfail()\n")
    with serving(file) as server:
        assert server.wait() == 2
        log = server.log()
        assert log.startswith("Traceback")
        assert log.count("  File ") == 2
        assert log.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize("framing", ["length-prefix", "content-length"])
def test_the_framing_of_the_command_wins_over_that_of_the_file(file: Path, framing: str) -> None:
    async def script() -> None:
        address = Stdio([*SERVE, file, "--framing", framing])
        policy = Policy(framing=framing)  # type: ignore[arg-type]  # one of its names
        async with Client(address, policy=policy) as client:
            assert (await client.call_tool("version")).text == "one"

    with nothing_left():
        bounded(script())


def address_in(log: str) -> str:
    (line,) = (line for line in log.splitlines() if line.startswith("listening on "))
    return line.removeprefix("listening on ")


def test_a_port_is_listened_on_and_said(file: Path) -> None:
    with serving(file, "--tcp", "0") as server:
        wait_for_log(server, "listening on ")
        address = address_in(server.log())
        assert address.startswith("tcp://127.0.0.1:")
        assert asyncio.run(text_of_call(address, "version")) == "one"
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == 0


def test_a_socket_file_is_listened_on_and_removed(file: Path, short: Path) -> None:
    path = short / "s"
    with serving(file, "--unix", path) as server:
        wait_for_log(server, "listening on ")
        assert asyncio.run(text_of_call(f"unix:{path}", "version")) == "one"
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == 0
        assert not path.exists()


def test_an_address_in_use_is_a_sentence(file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for words in ([], ["--reload"]):
            with serving(file, "--tcp", port, *words) as server:
                assert server.wait() == 2
                assert f"tcp://127.0.0.1:{port} cannot be listened on" in server.log()
                assert "Traceback" not in server.log()


async def text_of_call(address: str | Tcp, tool: str) -> str:
    async with asyncio.timeout(WAIT), Client(address) as client:
        return (await client.call_tool(tool)).text


@pytest.mark.parametrize("words", [[], ["--reload"]], ids=["plain", "reload"])
def test_tls_with_client_ca_refuses_clients_without_certificate(
    file: Path, tmp_path: Path, words: list[str]
) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.certificate("server", "127.0.0.1")
    theirs, their_key = authority.certificate("client", "client")
    given = ["--tls-cert", cert, "--tls-key", key, "--tls-client-ca", authority.ca]
    with serving(file, "--tcp", "0", *given, *words) as server:
        wait_for_log(server, "listening on tls://127.0.0.1:")
        where = parse_address(address_in(server.log()))
        assert isinstance(where, Tcp)

        def as_client(**shown: Path) -> Tcp:
            return Tcp(where.host, where.port, tls=Tls(ca=authority.ca, **shown))

        assert asyncio.run(text_of_call(as_client(cert=theirs, key=their_key), "version")) == "one"
        with pytest.raises(TrunklineError):
            asyncio.run(text_of_call(as_client(), "version"))


# Reloading on standard streams


@pytest.mark.parametrize("revision", ERAS)
def test_a_client_sees_the_new_tool_without_connecting_again(file: Path, revision: str) -> None:
    async def script() -> None:
        address = Stdio([*SERVE, file, "--reload"])
        async with Client(address, revision=revision) as client:
            assert (await client.call_tool("only_one")).text == "here"
            for version in ("two", "three"):
                file.write_text(source(version))
                while (await client.call_tool("version")).text != version:
                    await asyncio.sleep(0.02)
                names = {tool.name for tool in await client.list_tools()}
                assert f"only_{version}" in names
                assert "only_one" not in names

    with nothing_left():
        bounded(script())


@pytest.mark.parametrize("revision", ERAS)
def test_no_call_fails_however_often_the_file_changes(file: Path, revision: str) -> None:
    async def script() -> None:
        address = Stdio([*SERVE, file, "--reload"])
        seen = set()
        async with Client(address, revision=revision) as client:

            async def ask_on() -> None:
                while "four" not in seen:
                    seen.add((await client.call_tool("version")).text)

            async with asyncio.TaskGroup() as group:
                for _ in range(4):
                    group.create_task(ask_on())
                for version in ("two", "three", "four"):
                    file.write_text(source(version))
                    while version not in seen:
                        await asyncio.sleep(0.01)
        assert seen == {"one", "two", "three", "four"}

    with nothing_left():
        bounded(script())


def test_reload_sends_list_changed(file: Path) -> None:
    with serving(file, "--reload") as server:
        server.handshake()
        file.write_text(source("two"))
        assert server.read() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
        names = [tool["name"] for tool in server.answer(1)["result"]["tools"]]
        assert "only_two" in names


@pytest.mark.parametrize("broken", ["app = (", "import nothing_like_it", "app = 1", "1 / 0"])
def test_a_broken_edit_leaves_the_server_before(file: Path, broken: str) -> None:
    with serving(file, "--reload") as server:
        assert text_of(server.answer(server.call("version"))) == "one"
        file.write_text(broken)
        wait_for_log(server, "still serving the previous version")
        assert text_of(server.answer(server.call("version"))) == "one"
        file.write_text(source("two"))
        wait_for_log(server, "trunkline serve: reloaded")
        assert text_of(server.answer(server.call("version"))) == "two"


def test_the_error_of_a_broken_edit_is_shown(file: Path) -> None:
    with serving(file, "--reload") as server:
        assert text_of(server.answer(server.call("version"))) == "one"
        file.write_text("raise RuntimeError('out of order')")
        wait_for_log(server, "still serving the previous version")
        assert "RuntimeError: out of order\n" in server.log()
        assert "importlib" not in server.log()


@pytest.mark.parametrize("session", [True, False])
def test_a_lifespan_that_fails_leaves_the_server_before(file: Path, session: bool) -> None:
    more = """
    @contextlib.asynccontextmanager
    async def never(_):
        raise RuntimeError("no database")
        yield
    app._core.options = replace(app._core.options, lifespan=never)
    """
    with serving(file, "--reload") as server:
        if session:
            server.handshake()
        assert text_of(server.answer(server.call("version"))) == "one"
        file.write_text(source("two", more))
        wait_for_log(server, "still serving the previous version")
        assert "no database" in server.log()
        assert text_of(server.answer(server.call("version"))) == "one"


def test_worker_without_the_negotiated_revision_does_not_replace_the_old_one(file: Path) -> None:
    with serving(file, "--reload") as server:
        server.handshake()
        file.write_text(source("two", revisions="['2025-06-18']"))
        wait_for_log(server, "still serving the previous version")
        assert "negotiates '2025-06-18', and the client speaks '2025-11-25'" in server.log()
        assert text_of(server.answer(server.call("version"))) == "one"


def test_call_during_reload_is_finished_by_the_old_worker(file: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(file, "--reload") as server:
        first = server.call("until_file", path=str(gate))
        until(Path(f"{gate}.begun").exists)
        file.write_text(source("two"))
        wait_for_log(server, "trunkline serve: reloaded")
        assert text_of(server.answer(server.call("version"))) == "two"
        gate.touch()
        assert text_of(server.answer(first)) == "one"


def test_calls_sent_before_reload_but_unread_are_answered(file: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    more = f"""
    @app.tool(inline=True)
    def block() -> str:
        open({str(gate)!r} + ".begun", "w").close()
        while not os.path.exists({str(gate)!r}):
            time.sleep(0.01)
        return "done"
    """
    file.write_text(source("one", more))
    with serving(file, "--reload") as server:
        first = server.call("block")
        until(Path(f"{gate}.begun").exists)
        rest = [server.call("version") for _ in range(2000)]
        file.write_text(source("two"))
        wait_for_log(server, "trunkline serve: reloaded")
        gate.touch()
        answers = {}
        while len(answers) < 1 + len(rest):
            answer = server.read()
            answers[answer["id"]] = answer
        assert text_of(answers[first]) == "done"
        assert {text_of(answers[id]) for id in rest} == {"one"}


def test_call_lost_in_a_reload_is_answered_with_an_error(file: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(file, "--reload") as server:
        first = server.call("vanish", path=str(gate))
        until(Path(f"{gate}.begun").exists)
        file.write_text(source("two"))
        wait_for_log(server, "trunkline serve: reloaded")
        gate.touch()
        error = server.answer(first)["error"]
        assert error == {
            "code": INTERNAL_ERROR,
            "message": "the server was reloaded; send the request again",
        }
        assert text_of(server.answer(server.call("version"))) == "two"


def test_call_longer_than_the_grace_of_a_reload_is_answered_with_an_error(
    file: Path, tmp_path: Path
) -> None:
    file.write_text(source("one", limits="ServerLimits(grace=0.1)"))
    with serving(file, "--reload") as server:
        first = server.call("until_file", path=str(tmp_path / "never"))
        until((tmp_path / "never.begun").exists)
        file.write_text(source("two"))
        assert server.answer(first)["error"]["code"] == INTERNAL_ERROR


def test_a_batch_that_cannot_be_finished_is_answered_as_one(file: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(file, "--reload") as server:
        hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": CLIENT}
        server.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        server.answer(0)
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        call = {"name": "vanish", "arguments": {"path": str(gate)}}
        one = {"jsonrpc": "2.0", "method": "tools/call", "params": call}
        server.write(json.dumps([{**one, "id": 1}, {**one, "id": 2}]).encode() + b"\n")
        until(Path(f"{gate}.begun").exists)
        file.write_text(source("two"))
        wait_for_log(server, "trunkline serve: reloaded")
        gate.touch()
        answers: Any = {}
        while not isinstance(answers, list):
            answers = json.loads(server.line())
        assert [each["id"] for each in answers] == [1, 2]
        assert {each["error"]["code"] for each in answers} == {INTERNAL_ERROR}


CLIENT = {"name": "tests", "version": "1"}


# What a reload may have changed.
LISTS = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}


def test_elicitation_reply_after_a_reload_reaches_the_worker_that_sent_it(file: Path) -> None:
    more = """
    @app.tool
    async def ask(context: Context) -> str:
        answer = await context.elicit("which?", str)
        return f"{answer.content} of {VERSION}"
    """
    file.write_text(source("one", "VERSION = 'one'\n" + textwrap.dedent(more)))
    with serving(file, "--reload") as server:
        server.handshake(elicitation={})
        first = server_call(server, "ask", 1)
        question = server.read()
        file.write_text(source("two", "VERSION = 'two'\n" + textwrap.dedent(more)))
        assert {server.read()["method"] for _ in LISTS} == LISTS
        second = server_call(server, "ask", 2)
        another = server.read()
        assert another["id"] != question["id"]
        for each, value in ((question, "x"), (another, "y")):
            assert each["method"] == "elicitation/create"
            (field,) = each["params"]["requestedSchema"]["properties"]
            result = {"action": "accept", "content": {field: value}}
            server.send({"jsonrpc": "2.0", "id": each["id"], "result": result})
        answers = {each["id"]: text_of(each) for each in (server.read(), server.read())}
        assert answers == {first: "x of one", second: "y of two"}


def server_call(server: Piped, tool: str, id: int, **arguments: Any) -> int:
    """Call a tool within a session."""
    params = {"name": tool, "arguments": arguments}
    server.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    return id


def test_the_log_level_and_subscriptions_outlive_a_server(file: Path) -> None:
    more = """
    @app.resource("note://today")
    def today() -> str:
        return "rain"

    @app.tool
    async def tell(context: Context) -> str:
        await context.log("debug", "a word")
        app.notify_resource_updated("note://today")
        return "told"
    """
    file.write_text(source("one", more))
    with serving(file, "--reload") as server:
        server.handshake()
        uri = {"uri": "note://today"}
        for id, (method, params) in enumerate(
            [("logging/setLevel", {"level": "debug"}), ("resources/subscribe", uri)]
        ):
            server.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            assert "result" in server.answer(id)
        file.write_text(source("two", more))
        assert {server.read()["method"] for _ in LISTS} == LISTS
        server_call(server, "tell", 5)
        seen = [server.read() for _ in range(3)]
        assert {each.get("method") for each in seen} == {
            "notifications/message",
            "notifications/resources/updated",
            None,
        }


def test_a_server_that_ends_is_reported_and_started_again(file: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    with serving(file, "--reload") as server:
        server.handshake()
        server_call(server, "vanish", 1, path=str(gate))
        assert server.answer(1)["error"]["code"] == INTERNAL_ERROR
        wait_for_log(server, "the server exited with status 7; waiting for a change")
        server_call(server, "version", 2)
        assert "it is restarted when" in server.answer(2)["error"]["message"]
        file.write_text(source("two"))
        wait_for_log(server, "trunkline serve: reloaded")
        server_call(server, "version", 3)
        assert text_of(server.answer(3)) == "two"


def test_its_status_is_that_of_a_server_that_ended_before_the_client(
    file: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    with serving(file, "--reload") as server:
        assert "error" in server.answer(server.call("vanish", path=str(gate)))
        server.end_input()
        assert server.wait() == 7


def test_calls_before_end_of_input_are_answered(file: Path) -> None:
    with serving(file, "--reload") as server:
        id = server.call("version")
        server.end_input()
        (answer,) = server.rest()
        assert (answer["id"], text_of(answer)) == (id, "one")
        assert server.wait() == 0
        assert server.log() == ""


def test_file_broken_at_the_start_can_be_fixed(file: Path) -> None:
    file.write_text("import missing_part")
    with serving(file, "--reload") as server:
        wait_for_log(server, "the server could not be loaded; waiting for a change")
        assert "it is restarted when" in server.answer(server.call("version"))["error"]["message"]
        file.with_name("missing_part.py").write_text(source("two"))
        wait_for_log(server, "has no global Server")
        file.write_text("from missing_part import app")
        wait_for_log(server, "trunkline serve: reloaded")
        assert text_of(server.answer(server.call("version"))) == "two"


def test_only_files_that_were_imported_are_watched(file: Path) -> None:
    part = file.with_name("part.py")
    part.write_text("NAME = 'one'")
    other = file.with_name("other.py")
    other.write_text("")
    file.write_text(source("one") + "\nimport part\n")
    with serving(file, "--reload") as server:
        assert text_of(server.answer(server.call("version"))) == "one"
        other.write_text("NAME = 'changed'")
        part.write_text("NAME = 'changed'")
        wait_for_log(server, "trunkline serve: reloaded")
        assert "part.py changed\n" in server.log()
        assert "other.py" not in server.log()


def test_an_edit_of_the_same_second_and_size_is_not_taken_for_what_was_compiled(
    file: Path,
) -> None:
    part = file.with_name("part.py")
    part.write_text("NAME = 'one'")
    file.write_text(source("one", "import part\napp.add_tool(lambda: part.NAME, 'name')"))
    compiling = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with serving(file, "--reload", env=compiling) as server:
        assert text_of(server.answer(server.call("name"))) == "one"
        before = part.stat().st_mtime_ns
        part.write_text("NAME = 'two'")
        # Within the same second, and not the same moment.
        other = before + 1000 if (before + 1000) // 10**9 == before // 10**9 else before - 1000
        os.utime(part, ns=(other, other))
        wait_for_log(server, "trunkline serve: reloaded")
        assert text_of(server.answer(server.call("name"))) == "two"


def test_the_server_before_serves_while_the_next_one_begins(file: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    more = f"""
    @contextlib.asynccontextmanager
    async def slow(_):
        open({str(gate)!r} + ".begun", "w").close()
        while not os.path.exists({str(gate)!r}):
            await asyncio.sleep(0.01)
        yield
    app._core.options = replace(app._core.options, lifespan=slow)
    """
    for session in (True, False):
        file.write_text(source("one"))
        gate.unlink(missing_ok=True)
        Path(f"{gate}.begun").unlink(missing_ok=True)
        with serving(file, "--reload") as server:
            if session:
                server.handshake()
            assert text_of(server.answer(server.call("version"))) == "one"
            file.write_text(source("two", more))
            until(Path(f"{gate}.begun").exists)
            assert text_of(server.answer(server.call("version"))) == "one"
            gate.touch()
            wait_for_log(server, "trunkline serve: reloaded")
            assert text_of(server.answer(server.call("version"))) == "two"


def test_more_folders_can_be_watched(file: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    with serving(file, "--reload", "--reload-dir", more) as server:
        assert text_of(server.answer(server.call("version"))) == "one"
        (more / "new.py").write_text("")
        wait_for_log(server, "new.py changed\n")
        wait_for_log(server, "trunkline serve: reloaded")


def test_a_message_that_is_too_large_is_answered_as_without_reloading(file: Path) -> None:
    more = (
        "core = app._core\n"
        "core.policy = core.policy.replace(limits=type(core.policy.limits)(stdio=2000))\n"
    )
    file.write_text(source("one") + more)
    answers = []
    for words in ([], ["--reload"]):
        with serving(file, *words) as server:
            server.call("until_file", id=1, path="x" * 5000)
            answers.append(server.read())
            assert text_of(server.answer(server.call("version"))) == "one"
    assert answers[0] == answers[1]
    assert answers[0]["id"] == 1


def test_the_framing_is_that_of_the_file(file: Path) -> None:
    framed = "Policy(framing='content-length')"
    file.write_text(source("one", policy=framed))

    async def script() -> None:
        address = Stdio([*SERVE, file, "--reload"])
        async with Client(address, policy=Policy(framing="content-length")) as client:
            assert (await client.call_tool("version")).text == "one"
            file.write_text(source("two", policy=framed))
            while (await client.call_tool("version")).text != "two":
                await asyncio.sleep(0.02)

    with nothing_left():
        bounded(script())


def test_a_large_answer_passes_whole(file: Path) -> None:
    more = """
    @app.tool
    def large() -> str:
        return "x" * 20_000_000
    """
    file.write_text(source("one", more))
    with serving(file, "--reload") as server:
        ids = {server.call("large") for _ in range(3)}
        answers = [server.read() for _ in ids]
        assert {each["id"] for each in answers} == ids
        assert {len(text_of(each)) for each in answers} == {20_000_000}


# More than is kept for a worker that does not read, with what its pipe holds.
TOO_MUCH = "x" * 6 * MIB


def blocking(gate: Path) -> str:
    """Return a tool that keeps its worker from reading until a file is there."""
    return f"""
    @app.tool(inline=True)
    def block() -> str:
        open({str(gate)!r} + ".begun", "w").close()
        while not os.path.exists({str(gate)!r}):
            time.sleep(0.01)
        return "done"

    @app.tool
    def size(text: str) -> int:
        return len(text)
    """


def test_killed_worker_that_did_not_read_is_replaced_and_its_calls_answered(
    file: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    file.write_text(source("one", blocking(gate)))
    with serving(file, "--reload") as server:
        first = server.call("block")
        until(Path(f"{gate}.begun").exists)
        second = server.call("size", text=TOO_MUCH)
        (worker,) = children(server.pid)
        os.kill(worker, signal.SIGKILL)
        answers = {each["id"]: each for each in (server.read(), server.read())}
        assert {answers[id]["error"]["code"] for id in (first, second)} == {INTERNAL_ERROR}
        assert "it is restarted when" in server.answer(server.call("version"))["error"]["message"]
        file.write_text(source("two"))
        wait_for_log(server, "trunkline serve: reloaded")
        assert text_of(server.answer(server.call("version"))) == "two"
        server.end_input()
        assert server.wait() == 0


def test_new_worker_serves_while_the_old_one_does_not_read(file: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    file.write_text(source("one", blocking(gate)))
    with serving(file, "--reload") as server:
        first = server.call("block")
        until(Path(f"{gate}.begun").exists)
        second = server.call("size", text=TOO_MUCH)
        file.write_text(source("two"))
        wait_for_log(server, "trunkline serve: reloaded")
        assert text_of(server.answer(server.call("version"))) == "two"
        gate.touch()
        answers = {each["id"]: each for each in (server.read(), server.read())}
        assert set(answers) == {first, second}
        assert text_of(answers[first]) == "done"
        server.end_input()
        assert server.wait() == 0


def test_answers_of_a_worker_that_died_reach_a_client_that_reads_later(file: Path) -> None:
    more = """
    @app.tool
    def large() -> str:
        return "x" * 6_000_000

    @app.tool
    async def last_words() -> str:
        # After the answer is written.
        asyncio.get_running_loop().call_later(0.3, os._exit, 7)
        return "goodbye"
    """
    file.write_text(source("one", more))
    with serving(file, "--reload") as server:
        first = server.call("large")
        # It begins to be handed on, and there is no room for more.
        assert select.select([server.process.stdout], [], [], WAIT)[0]
        last = server.call("last_words")
        wait_for_log(server, "the server exited with status 7")
        # Longer than is waited for a worker that has nothing to say.
        time.sleep(1.5)
        assert len(text_of(server.answer(first))) == 6_000_000
        assert text_of(server.answer(last)) == "goodbye"


def test_a_stream_of_changes_ends_in_order(file: Path) -> None:
    with serving(file, "--reload") as server:
        listen = server.request("subscriptions/listen", 1, notifications={"toolsListChanged": True})
        server.send(listen)
        assert server.read()["method"] == "notifications/subscriptions/acknowledged"
        file.write_text(source("two"))
        assert "result" in server.answer(1)
        assert text_of(server.answer(server.call("version"))) == "two"


# Reloading on sockets


@pytest.fixture(params=["tcp", "unix"])
def where(request: pytest.FixtureRequest, short: Path) -> list[str]:
    return ["--tcp", "0"] if request.param == "tcp" else ["--unix", str(short / "s")]


def test_the_next_connection_sees_the_new_tool(file: Path, where: list[str]) -> None:
    with serving(file, *where, "--reload") as server:
        wait_for_log(server, "listening on ")
        address = address_in(server.log())

        async def script() -> None:
            async with Client(address) as client:
                assert (await client.call_tool("version")).text == "one"
                file.write_text(source("two"))
                until(lambda: "trunkline serve: reloaded" in server.log())
            assert await text_of_call(address, "only_two") == "here"
            file.write_text("app = (")
            until(lambda: "still serving the previous version" in server.log())
            assert await text_of_call(address, "version") == "two"

        bounded(script())
        os.kill(server.pid, signal.SIGTERM)
        workers = children(server.pid)
        assert server.wait() == 0
        gone(workers)
        assert not address.startswith("unix:") or not Path(address.removeprefix("unix:")).exists()


def test_call_on_a_socket_during_reload_is_finished_by_the_old_worker(
    file: Path, where: list[str], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with serving(file, *where, "--reload") as server:
        wait_for_log(server, "listening on ")
        address = address_in(server.log())

        async def script() -> None:
            async with Client(address) as client:
                call = asyncio.create_task(client.call_tool("until_file", {"path": str(gate)}))
                while not Path(f"{gate}.begun").exists():
                    await asyncio.sleep(0.01)
                file.write_text(source("two"))
                while await text_of_call(address, "version") != "two":
                    await asyncio.sleep(0.02)
                gate.touch()
                assert (await call).text == "one"

        bounded(script())


def test_no_connection_is_refused_during_reload(file: Path, where: list[str]) -> None:
    with serving(file, *where, "--reload") as server:
        wait_for_log(server, "listening on ")
        address = address_in(server.log())

        async def script() -> None:
            for version in ("two", "three"):
                file.write_text(source(version))
                while f"{version}" not in [await text_of_call_or_end(address)]:
                    pass

        bounded(script())


async def text_of_call_or_end(address: str) -> str:
    """Ask over a new connection; to be refused is a failure, to be told to go is none."""
    where: Any = address.removeprefix("unix:")
    family = socket.AF_UNIX
    if address.startswith("tcp://"):
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        where, family = (host, int(port)), socket.AF_INET
    with socket.socket(family) as sock:
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, where)
        call = Piped.request(None, "tools/call", 1, name="version", arguments={})  # type: ignore[arg-type]  # it needs no self
        await loop.sock_sendall(sock, json.dumps(call).encode() + b"\n")
        said = b""
        while not said.endswith(b"\n"):
            data = await loop.sock_recv(sock, 65536)
            if not data:
                return ""
            said += data
        answer = json.loads(said)
        return text_of(answer) if "result" in answer else ""


def test_connection_to_an_ended_worker_waits_for_the_next_one(
    file: Path, where: list[str], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    with serving(file, *where, "--reload") as server:
        wait_for_log(server, "listening on ")
        address = address_in(server.log())

        async def script() -> None:
            with pytest.raises(Exception, match=r"closed|lost|ended"):
                async with Client(address) as client:
                    await client.call_tool("vanish", {"path": str(gate)})
            until(lambda: "exited with status 7; waiting for a change" in server.log())
            waiting = asyncio.create_task(text_of_call(address, "version"))
            await asyncio.sleep(0.1)
            file.write_text(source("two"))
            assert await waiting == "two"

        bounded(script())


def test_a_server_may_be_called_as_we_are(file: Path) -> None:
    ours = file.with_name("trunkline.py")
    ours.write_text("1 / 0")
    command = [Path(sys.executable).with_name("trunkline"), "serve", file, "--reload"]

    async def script() -> None:
        async with Client(Stdio(command, cwd=file.parent)) as client:
            # It has what the file imports first: the file in its own folder.
            await client.call_tool("version")

    file.write_text("import sys\nsys.path.pop(0)\n" + source("one"))
    with nothing_left():
        bounded(script())


@pytest.mark.parametrize("words", [[], ["--reload"]], ids=["plain", "reload"])
@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_without_standard_streams_it_says_so(file: Path, words: list[str], closed: str) -> None:
    command = " ".join([*SERVE, str(file), *words, closed])
    run = subprocess.run(
        ["sh", "-c", command], stderr=subprocess.PIPE, text=True, timeout=WAIT, check=False
    )
    assert run.returncode == 2
    assert "standard input or output cannot be used" in run.stderr
    assert "Traceback" not in run.stderr


# How it ends


@pytest.mark.parametrize("words", [[], ["--tcp", "0"]], ids=["stdio", "tcp"])
def test_workers_end_when_the_parent_is_killed(file: Path, words: list[str]) -> None:
    with serving(file, *words, "--reload") as server:
        until(lambda: children(server.pid))
        if words:
            wait_for_log(server, "listening on ")
            assert asyncio.run(text_of_call(address_in(server.log()), "version")) == "one"
        else:
            assert text_of(server.answer(server.call("version"))) == "one"
        workers = children(server.pid)
        server.process.kill()
        server.wait()
        gone(workers)


STUCK = """
import os, time
open(os.environ["MARK"], "w").write(str(os.getpid()))
time.sleep(3600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("words", [[], ["--tcp", "0"]], ids=["stdio", "tcp"])
def test_a_signal_while_the_first_server_loads_leaves_nothing(
    file: Path, words: list[str], number: int, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    file.write_text(STUCK)
    with serving(file, *words, "--reload", env={**os.environ, "MARK": str(mark)}) as server:
        until(lambda: mark.exists() and mark.read_text())
        os.kill(server.pid, number)
        assert server.wait() == 0
        gone({int(mark.read_text())})
        assert "Traceback" not in server.log()


def test_an_edit_ends_a_server_that_does_not_finish_loading(file: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with serving(file, "--reload", env={**os.environ, "MARK": str(mark)}) as server:
        assert text_of(server.answer(server.call("version"))) == "one"
        file.write_text(STUCK)
        until(lambda: mark.exists() and mark.read_text(), server.log)
        file.write_text(source("two"))
        wait_for_log(server, "trunkline serve: reloaded")
        assert text_of(server.answer(server.call("version"))) == "two"
        gone({int(mark.read_text())})


def test_a_client_that_leaves_while_the_next_server_loads_leaves_nothing(
    file: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    with serving(file, "--reload", env={**os.environ, "MARK": str(mark)}) as server:
        assert text_of(server.answer(server.call("version"))) == "one"
        file.write_text(STUCK)
        until(lambda: mark.exists() and mark.read_text(), server.log)
        workers = children(server.pid)
        assert len(workers) == 2
        server.end_input()
        assert server.wait() == 0
        gone(workers)


def test_a_client_that_leaves_does_not_wait_for_the_server_before(
    file: Path, tmp_path: Path
) -> None:
    # Nothing but the client's leaving can end this in time.
    file.write_text(source("one", limits="ServerLimits(grace=3600)"))
    with serving(file, "--reload") as server:
        server.call("until_file", path=str(tmp_path / "never"))
        until((tmp_path / "never.begun").exists)
        file.write_text(source("two"))
        wait_for_log(server, "trunkline serve: reloaded")
        assert text_of(server.answer(server.call("version"))) == "two"
        workers = children(server.pid)
        server.end_input()
        assert server.wait() == 0
        gone(workers)


Start = Callable[..., Any]


def test_serve_at_a_terminal_prints_what_it_waits_for(terminal: Start, file: Path) -> None:
    # On one line, whatever the path of the file is.
    run = terminal("serve", str(file), columns=400)
    run.until("waiting for a client on standard input")
    run.until("--http 8000")
    run.type('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    run.until('"result":{}')
    run.type("\x03")
    assert run.wait() == 0
    assert "Traceback" not in run.text
    run.assert_usable()


@pytest.mark.parametrize("words", [["--stdio"], ["--tcp", "0"]], ids=["stdio", "tcp"])
def test_ctrl_c_ends_it_and_its_workers(
    terminal: Start, file: Path, words: list[str], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    file.write_text(source("one") + "open(os.environ['MARK'], 'w').write(str(os.getpid()))\n")
    run = terminal("serve", str(file), *words, "--reload", MARK=str(mark))
    run.until_there(mark)
    until(mark.read_text)
    first = int(mark.read_text())
    if words != ["--stdio"]:
        run.until("listening on tcp://127.0.0.1:")
    # In the middle of a reload there are two.
    second = tmp_path / "second"
    file.write_text(STUCK.replace('os.environ["MARK"]', repr(str(second))))
    run.until_there(second)
    until(second.read_text)
    assert is_there(first)
    run.type("\x03")
    assert run.wait() == 0
    gone({first, int(second.read_text())})
    assert "Traceback" not in run.text
    run.assert_usable()


def test_a_second_ctrl_c_does_not_wait_for_work(
    terminal: Start, file: Path, tmp_path: Path, short: Path
) -> None:
    file.write_text(source("one", limits="ServerLimits(grace=3600)"))
    run = terminal("serve", str(file), "--unix", str(short / "s"), "--reload")
    run.until("listening on unix:")

    async def script() -> None:
        async with Client(f"unix:{short / 's'}") as client:
            arguments = {"path": str(tmp_path / "never")}
            call = asyncio.create_task(client.call_tool("until_file", arguments))
            while not (tmp_path / "never.begun").exists():
                await asyncio.sleep(0.01)
            run.type("\x03")
            await asyncio.sleep(0.3)
            assert not call.done()
            run.type("\x03")
            with pytest.raises(Exception, match=r".+"):
                await call

    bounded(script())
    assert run.wait() == 0
    assert not (short / "s").exists()

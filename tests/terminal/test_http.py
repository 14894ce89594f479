"""The command over HTTP: verbs against a server, and the proxy between HTTP and everything else."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from trunkline import Client, PeerError, Stdio

WAIT = 60
CANARY = "CANARY-7d20"
SERVER = str(Path(__file__).parent / "server.py")
TRUNKLINE = [sys.executable, "-m", "trunkline"]
COMMAND = [sys.executable, SERVER]
WAYS = (
    *("stdio to http", "http to stdio", "http to http"),
    *("stdio to websocket", "websocket to stdio"),
)
ERAS = ("2025-11-25", "2026-07-28")

Start = Callable[..., "Running"]


class Running:
    """A process that listens, and says where on standard error."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.run = subprocess.Popen(
            [*TRUNKLINE, *words],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            bufsize=0,
        )
        self.log: Any = self.run.stderr
        self.address = ""

    def wait(self) -> None:
        """Wait until it listens."""
        line = self._line()
        assert "listening on " in line, line
        self.address = line.split()[-1]

    def _line(self) -> str:
        found = b""
        while not found.endswith(b"\n"):
            assert select.select([self.log], [], [], WAIT)[0], "nothing came"
            byte = os.read(self.log.fileno(), 1)
            assert byte, found
            found += byte
        return found.decode()

    def end(self) -> str:
        """End it in order; return the rest of its log."""
        self.run.terminate()
        _, log = self.run.communicate(timeout=WAIT)
        assert self.run.returncode == 0, log
        return log.decode()


@pytest.fixture
def start() -> Iterator[Start]:
    """Return what starts a process that listens; all are ended."""
    opened: list[Running] = []

    def begin(*words: str, **environment: str) -> Running:
        opened.append(Running(*words, **environment))
        opened[-1].wait()
        return opened[-1]

    yield begin
    for each in opened:
        if each.run.poll() is None:
            each.run.kill()
        each.run.wait(WAIT)
        each.log.close()


def verb(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TRUNKLINE, *words],
        capture_output=True,
        text=True,
        timeout=WAIT,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )


def serve(start: Start, *words: str) -> Running:
    return start("serve", SERVER, "--http", "127.0.0.1:0", *words)


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


# Verbs


def test_verbs_reach_a_server_over_http(start: Start) -> None:
    address = serve(start).address
    for revision in ERAS:
        done = verb("call", address, "add", "a=1", "b=2", "--revision", revision)
        assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    assert "forecast" in verb("list", address, "tools").stdout
    assert verb("read", address, "demo://city/Oslo").stdout == "Oslo is a city\n"
    assert "a dry report about Oslo" in verb("prompt", address, "report", "city=Oslo").stdout
    assert "in MCP 2026-07-28" in verb("ping", address).stdout
    assert verb("diff", address, "--", *COMMAND).returncode == 0


def test_a_url_without_a_path_is_answered_with_that_of_the_endpoint(start: Start) -> None:
    address = serve(start, "--ws").address
    base = address.removesuffix("/mcp")
    for typed in (base, f"{base}/", base.replace("http", "ws")):
        done = verb("list", typed)
        assert (done.returncode, done.stdout) == (3, "")
        assert "404" in done.stderr
        scheme = typed.partition(":")[0]
        assert done.stderr.endswith(f"; did you mean {address.replace('http', scheme)}?\n")
    done = verb("list", f"{base}/mpc")
    assert (done.returncode, "did you mean" in done.stderr) == (3, False)
    assert "the server has none at this path" in done.stderr
    # The host of a proxy reads the same.
    done = verb("list", "--", *TRUNKLINE, "proxy", base)
    assert (done.returncode, f"did you mean {address}?" in done.stderr) == (1, True)


def test_a_server_of_http_and_sse_is_reached_by_the_same_verbs(start: Start) -> None:
    address = serve(start, "--sse").address.replace("/mcp", "/sse")
    done = verb("call", address, "add", "a=1", "b=2", "--revision", "2024-11-05")
    assert (done.returncode, done.stdout) == (0, "3\n")


def test_a_websocket_is_reached_by_the_same_verbs(start: Start) -> None:
    address = serve(start, "--ws").address.replace("http://", "ws://")
    done = verb("call", address, "add", "a=1", "b=2")
    assert (done.returncode, done.stdout) == (0, "3\n")


def test_a_header_from_the_environment_reaches_the_server_and_no_output(
    start: Start, tmp_path: Path
) -> None:
    class Guarded(BaseHTTPRequestHandler):
        """Shows by its status whether it got the header."""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(418 if self.headers["X-Odd"] == CANARY else 403)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as guarded:
        threading.Thread(target=guarded.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{guarded.server_address[1]}/mcp"
        trace, record = tmp_path / "t.jsonl", tmp_path / "p.jsonl"
        given = ["--header-env", "X-Odd=ODD"]
        done = verb("ping", address, *given, "-v", "--trace", str(trace), ODD=CANARY)
        assert "418" in done.stderr
        assert CANARY not in done.stdout + done.stderr + trace.read_text()
        assert "403" in verb("ping", address).stderr
        proxied = [*TRUNKLINE, "proxy", "--judge", "--record", str(record), *given, address]
        done = verb("ping", "-v", "--", *proxied, ODD=CANARY)
        assert "418" in done.stderr
        assert CANARY not in done.stdout + done.stderr + record.read_text()
        first, second = entries(record)[:2]
        assert first["http"]["headers"]["x-odd"] == "[redacted]"
        assert second["http"]["status"] == 418
        guarded.shutdown()


# The proxy


def ways(start: Start, way: str, record: Path | None = None) -> Any:
    """Return what a client connects to, through a proxy."""
    recorded = [] if record is None else ["--judge", "--record", str(record)]
    proxy = ["proxy", *recorded]
    if way == "stdio to http":
        return Stdio([*TRUNKLINE, *proxy, serve(start).address])
    if way == "websocket to stdio":
        running = start(*proxy, "--ws", "http://127.0.0.1:0/mcp", "--", *COMMAND)
        return running.address.replace("http://", "ws://")
    if way == "stdio to websocket":
        address = serve(start, "--ws").address.replace("http://", "ws://")
        return Stdio([*TRUNKLINE, *proxy, address])
    if way == "http to stdio":
        return start(*proxy, "http://127.0.0.1:0/mcp", "--", *COMMAND).address
    return start(*proxy, "http://127.0.0.1:0/mcp", serve(start).address).address


async def conversation(target: Any, revision: str) -> dict[str, Any]:
    """Use what a proxy has to carry, and return what came of it."""
    asked: list[str] = []
    steps: list[float] = []

    def answer(question: Any) -> dict[str, Any]:
        asked.append(question.message)
        return {"name": "Ada", "size": "small"}

    async with Client(target, revision=revision, on_elicit=answer) as client:
        found: dict[str, Any] = {"revision": client.revision}
        found["tools"] = len(await client.list_tools())
        calls = (client.call_tool("add", {"a": n, "b": n}) for n in range(20))
        found["sums"] = [each.structured_content for each in await asyncio.gather(*calls)]
        counted = await client.call_tool(
            "count",
            {"steps": 3, "wait": 0.01},
            on_progress=lambda step, total, text: steps.append(step),
        )
        found["counted"], found["steps"] = counted.text, steps
        found["order"] = (await client.call_tool("order")).text
        found["asked"] = len(asked)
        try:
            await client.read_resource("demo://none")
        except PeerError as error:
            found["missing"] = error.code
        # A call that is not waited for does not hold up the next one.
        slow = asyncio.ensure_future(client.call_tool("count", {"steps": 100, "wait": 1}))
        await asyncio.sleep(0.1)
        slow.cancel()
        await asyncio.wait([slow])
        found["after"] = (await client.call_tool("add", {"a": 1, "b": 1})).structured_content
        return found


@cache
def without_a_proxy(revision: str) -> dict[str, Any]:
    return asyncio.run(asyncio.wait_for(conversation(Stdio(COMMAND), revision), WAIT))


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("way", WAYS)
def test_a_conversation_through_the_proxy_is_that_without_it(
    start: Start, way: str, revision: str, tmp_path: Path
) -> None:
    record = tmp_path / "talk.jsonl"
    plain = without_a_proxy(revision)
    target = ways(start, way, record)
    assert asyncio.run(asyncio.wait_for(conversation(target, revision), WAIT)) == plain
    assert plain["order"] == "Ada small 2 False"
    assert plain["steps"] == [1, 2, 3]
    kept = entries(record)
    if "websocket" in way:
        assert "websocket" in {each["transport"] for each in kept}
        return
    posts = [each for each in kept if each.get("http", {}).get("method") == "POST"]
    assert len(posts) > 20
    assert all(each["http"]["headers"]["host"] for each in posts)
    if way.endswith("http"):
        answers = [each for each in kept if each["from"] == "server"]
        assert {each["stream"] for each in answers} >= {each["stream"] for each in posts[:-2]}
        assert {200} <= {each["http"]["status"] for each in answers if "http" in each}


def test_http_and_sse_and_streamable_http_are_bridged_both_ways(start: Start) -> None:
    old = ("--revision", "2024-11-05")
    streamable = serve(start).address
    front = start("proxy", "--sse", "http://127.0.0.1:0/mcp", streamable).address
    done = verb("call", front.replace("/mcp", "/sse"), "add", "a=1", "b=2", *old)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    behind = serve(start, "--sse").address.replace("/mcp", "/sse")
    front = start("proxy", "http://127.0.0.1:0/mcp", behind).address
    done = verb("call", front, "add", "a=1", "b=2", *old)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_every_session_has_a_process_of_its_own_and_ends_it(start: Start, tmp_path: Path) -> None:
    note = f"import os; open({str(tmp_path)!r} + f'/{{os.getpid()}}', 'w').close()\n"
    script = tmp_path / "noted.py"
    script.write_text(f"{note}import runpy\nrunpy.run_path({SERVER!r}, run_name='__main__')\n")
    running = start("proxy", "http://127.0.0.1:0/mcp", "--", sys.executable, str(script))

    def pids() -> set[str]:
        return {each.name for each in tmp_path.iterdir() if each.name.isdecimal()}

    async def talk() -> None:
        older = Client(running.address, revision="2025-11-25")
        async with older, Client(running.address, revision="2025-11-25") as other:
            await asyncio.gather(older.ping(), other.ping())
            assert len(pids()) == 2
        # Those of single requests share one.
        single = Client(running.address, revision="2026-07-28")
        async with single, Client(running.address, revision="2026-07-28") as other:
            await asyncio.gather(single.list_tools(), other.list_tools())
            assert len(pids()) == 3

    asyncio.run(asyncio.wait_for(talk(), WAIT))
    running.end()
    for pid in pids():
        deadline = time.monotonic() + WAIT
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.parametrize("revision", ERAS)
def test_a_server_that_dies_is_replaced_for_the_next_request(start: Start, revision: str) -> None:
    mortal = (
        "import sys\nsys.argv = ['server']\nimport runpy, os\n"
        f"space = runpy.run_path({SERVER!r})\napp = space['app']\n"
        "app.add_tool(lambda: os._exit(3), 'die')\napp.run()\n"
    )
    running = start("proxy", "http://127.0.0.1:0/mcp", "--", sys.executable, "-c", mortal)

    async def talk() -> None:
        async with Client(running.address, revision=revision) as client:
            with pytest.raises(PeerError, match="the connection to the server has ended"):
                await client.call_tool("die")
        async with Client(running.address, revision=revision) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content

    asyncio.run(asyncio.wait_for(talk(), WAIT))
    assert "connection 1: " in running.end()


def test_a_script_that_sends_all_at_once_gets_all_answers(start: Start) -> None:
    opening = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "script", "version": "1"},
    }
    messages: list[Any] = [
        {"id": 1, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        *({"id": n, "method": "ping"} for n in range(2, 12)),
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **each}).encode() for each in messages]
    lines.insert(4, b"not JSON")
    done = subprocess.run(
        [*TRUNKLINE, "proxy", serve(start).address],
        input=b"\n".join(lines) + b"\n",
        capture_output=True,
        timeout=WAIT,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["id"] for each in answers} == {None, *range(1, 12)}
    assert [each["error"]["code"] for each in answers if "error" in each] == [-32700]


def test_a_server_that_cannot_be_reached_is_said() -> None:
    done = verb("proxy", "http://127.0.0.1:1/mcp")
    assert (done.returncode, done.stdout) == (3, "")
    assert "http://127.0.0.1:1/mcp cannot be reached" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_address_beyond_this_machine_needs_the_names_of_hosts() -> None:
    done = verb("proxy", "http://0.0.0.0:0/mcp", "--", *COMMAND)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--allowed-host" in done.stderr

"""An ASGI application under uvicorn, hypercorn and granian, by itself and mounted in frameworks."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Each wait ends after this many seconds, with a failure.
WAIT = 60
PATH = "/api/mcp"
HANDSHAKE = "2025-11-25"
PER_REQUEST = "2026-07-28"
BOTH_TYPES = "application/json, text/event-stream"

COMBINATIONS = [
    ("uvicorn", "starlette"),
    ("uvicorn", "django"),
    ("hypercorn", "fastapi"),
    ("granian", "plain"),
    *(
        pytest.param(each, marks=pytest.mark.full)
        for each in [
            ("uvicorn", "plain"),
            ("uvicorn", "fastapi"),
            ("hypercorn", "plain"),
            ("hypercorn", "starlette"),
            ("hypercorn", "django"),
            ("granian", "starlette"),
        ]
    ),
]


class UnixConnection(http.client.HTTPConnection):
    """HTTP on a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=WAIT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(WAIT)
        self.sock.connect(self._path)


class Host:
    """A server in a process of its own."""

    def __init__(self, server: str, mount: str, folder: Path) -> None:
        self._uds = str(folder / "s") if server == "granian" else None
        self._bound = socket.create_server(("127.0.0.1", 0))
        place = f"uds:{self._uds}" if self._uds else f"fd:{self._bound.fileno()}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.transports.asgi_host", server, mount, place],
            stdout=subprocess.PIPE,
            pass_fds=[self._bound.fileno()],
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.decode().strip())
        self._lines.put("")

    def expect(self, wanted: str) -> None:
        """Wait until the server prints a line; it is the next one."""
        assert self._lines.get(timeout=WAIT) == wanted

    def connect(self) -> http.client.HTTPConnection:
        if self._uds is None:
            host, port = self._bound.getsockname()
            return http.client.HTTPConnection(host, port, timeout=WAIT)
        for _ in range(WAIT * 20):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self._uds)
                break
            select.select([], [], [], 0.05)
        return UnixConnection(self._uds)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(WAIT)
        self._reader.join(WAIT)

    def close(self) -> None:
        self._process.kill()
        self._process.wait(WAIT)
        self._reader.join(WAIT)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._bound.close()


@pytest.fixture
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    made = Host(*request.param, tmp_path)
    yield made
    made.close()


def post(
    connection: http.client.HTTPConnection,
    message: dict[str, Any],
    path: str = PATH,
    **headers: str,
) -> http.client.HTTPResponse:
    given = {"Content-Type": "application/json", "Accept": BOTH_TYPES, "Host": "localhost"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    connection.request("POST", path, body, given)
    return connection.getresponse()


def events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yield the messages of an event stream."""
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/event-stream"
    while line := response.readline():
        if line.startswith(b"data: ") and len(line) > len(b"data: \n"):
            yield json.loads(line[6:])


def call(name: str, id: int = 1, *, per_request: bool = False, **arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": name, "arguments": arguments, "_meta": {"progressToken": id}}
    if per_request:
        params["_meta"] |= meta()
    return {"id": id, "method": "tools/call", "params": params}


def meta() -> dict[str, Any]:
    prefix = "io.modelcontextprotocol"
    return {
        f"{prefix}/protocolVersion": PER_REQUEST,
        f"{prefix}/clientInfo": {"name": "test", "version": "1"},
        f"{prefix}/clientCapabilities": {},
    }


def named(name: str) -> dict[str, str]:
    return {
        "MCP_Protocol_Version": PER_REQUEST,
        "Mcp_Method": "tools/call",
        "Mcp_Name": name,
    }


@pytest.mark.parametrize("host", COMBINATIONS, indirect=True, ids=lambda pair: "-".join(pair))
def test_a_mounted_server_does_what_it_does_on_its_own_socket(host: Host) -> None:
    first = host.connect()

    # A request by itself enters the lifespan.
    response = post(first, call("add", a=1, b=2, per_request=True), **named("add"))
    answer = json.loads(response.read())
    assert (response.status, answer["result"]["structuredContent"]) == (200, 3)
    host.expect("lifespan entered")

    # Paths: with a slash, and none that only looks like it.
    response = post(first, call("add", a=1, b=2, per_request=True), f"{PATH}/", **named("add"))
    assert json.loads(response.read())["result"]["structuredContent"] == 3
    for path in ("/api/mcpx", "/api/%6dcp", "/api/mcp/x"):
        response = post(first, call("add", a=1, b=2, per_request=True), path, **named("add"))
        assert (response.status, bool(response.read())) == (404, True)

    # A session.
    client = {"protocolVersion": HANDSHAKE, "clientInfo": {"name": "t", "version": "1"}}
    hello = {"id": 0, "method": "initialize", "params": {**client, "capabilities": {}}}
    response = post(first, hello)
    assert json.loads(response.read())["result"]["protocolVersion"] == HANDSHAKE
    ours = {
        "Mcp_Session_Id": response.headers["Mcp-Session-Id"],
        "MCP_Protocol_Version": HANDSHAKE,
    }
    response = post(first, {"method": "notifications/initialized"}, **ours)
    assert (response.status, response.read()) == (202, b"")
    response = post(first, call("add", a=2, b=3), **ours)
    assert json.loads(response.read())["result"]["structuredContent"] == {"result": 5}

    # A stream with progress, in both eras.
    for message, headers in (
        (call("count", to=3), ours),
        (call("count", to=3, per_request=True), named("count")),
    ):
        got = list(events(post(first, message, **headers)))
        assert [each["params"]["progress"] for each in got[:-1]] == [1, 2, 3]
        assert got[-1]["result"]["content"][0]["text"] == "state of the lifespan"

    # A list change comes on the stream of a session, and to one that listens.
    stream, listening = host.connect(), host.connect()
    given = {"Accept": "text/event-stream", "Host": "localhost"}
    stream.request("GET", PATH, headers=given | {k.replace("_", "-"): v for k, v in ours.items()})
    unasked = events(stream.getresponse())
    wanted = {"toolsListChanged": True}
    ask = {
        "id": 7,
        "method": "subscriptions/listen",
        "params": {"notifications": wanted, "_meta": meta()},
    }
    headers = {"MCP_Protocol_Version": PER_REQUEST, "Mcp_Method": "subscriptions/listen"}
    heard = events(post(listening, ask, **headers))
    assert next(heard)["method"] == "notifications/subscriptions/acknowledged"
    assert post(first, call("add_tool"), **ours).read()
    for each in (unasked, heard):
        assert next(each)["method"] == "notifications/tools/list_changed"

    # A client that leaves cancels its request.
    leaving = host.connect()
    leaving.putrequest("POST", PATH, skip_host=True)
    body = json.dumps({"jsonrpc": "2.0", **call("wait", per_request=True)}).encode()
    for name, value in {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **{name.replace("_", "-"): value for name, value in named("wait").items()},
    }.items():
        leaving.putheader(name, value)
    leaving.endheaders(body)
    host.expect("waiting")
    leaving.close()
    host.expect("cancelled")

    # The older transport: answers come on the stream that named the address of the POSTs.
    older = host.connect()
    older.request("GET", "/api/sse", headers=given)
    response = older.getresponse()
    assert response.readline() == b"event: endpoint\n"
    uri = response.readline().decode().removeprefix("data: ").strip()
    assert uri.startswith("/api/messages?session_id=")
    ping = post(first, {"id": 5, "method": "ping"}, uri)
    assert (ping.status, ping.read()) == (202, b"")
    assert next(events(response)) == {"jsonrpc": "2.0", "id": 5, "result": {}}
    older.close()

    # Sessions end by DELETE; names of other hosts are refused.
    first.request(
        "DELETE", PATH, headers={"Host": "localhost", "Mcp-Session-Id": ours["Mcp_Session_Id"]}
    )
    response = first.getresponse()
    assert (response.status, response.read()) == (204, b"")
    response = post(first, call("add", a=1, b=2), Host="attacker.example")
    assert (response.status, bool(response.read())) == (421, True)

    for each in (first, stream, listening):
        each.close()
    host.stop()
    host.expect("lifespan exited")

"""`conformance/recorder.py`: what is recorded, and to which conversation it belongs."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from conformance.recorder import ScenarioLog, recording, scenario_of


class Handler(BaseHTTPRequestHandler):
    """Answers an `initialize` with a session, and everything else with 202."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        begins = b'"initialize"' in body
        self.send_response(200 if begins else 202)
        if begins:
            self.send_header("Mcp-Session-Id", body.decode().partition("session-")[2][:1])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_the_log_names_the_scenario_that_began_last(tmp_path: Path) -> None:
    path = tmp_path / "log"
    scenario = ScenarioLog(path)
    assert scenario() == "-"
    path.write_text("Running all\n\n=== Running scenario: pi")
    assert scenario() == "-"
    with path.open("a") as log:
        log.write("ng ===\nRunning client scenario 'ping'\n")
    assert scenario() == "ping"
    assert scenario() == "ping"
    with path.open("a") as log:
        log.write("=== Running scenario: a ===\n\x1b[1m=== Running scenario: b/c ===\x1b[0m\n")
    assert scenario() == "b/c"
    assert ScenarioLog(tmp_path / "absent", "caching")() == "caching"


def test_recorder_separates_connections_by_session_and_scenario(tmp_path: Path, port: int) -> None:
    path = tmp_path / "trace.jsonl"
    names = ["first"]
    with recording(port, path, lambda: names[-1]) as url:
        client = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)

        def send(text: str, **headers: str) -> None:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            client.request("POST", "/mcp", text, given)
            client.getresponse().read()

        send('{"method": "initialize", "id": "session-a"}')
        send('{"method": "ping"}', Mcp_Session_Id="a")
        send('{"method": "initialize", "id": "session-b"}')
        send('{"method": "alone"}', X="y ")
        names.append("second")
        send('{"method": "late"}', Mcp_Session_Id="a")
        send("not JSON", Mcp_Session_Id="unknown")
        client.close()
    header, *entries = map(json.loads, path.read_text().splitlines())
    assert header == {"trunkline-trace": 1}
    found = [(each["connection"], each["from"], _about(each)) for each in entries]
    assert found == [
        ("first 1", "client", "initialize"),
        ("first 1", "server", 200),
        ("first 1", "client", "ping"),
        ("first 1", "server", 202),
        ("first 2", "client", "initialize"),
        ("first 2", "server", 200),
        ("first", "client", "alone"),
        ("first", "server", 202),
        ("first 1", "client", "late"),
        ("first 1", "server", 202),
        ("second", "client", "not JSON"),
        ("second", "server", 202),
    ]
    assert [scenario_of(each["connection"]) for each in entries[-3:]] == ["first", *["second"] * 2]
    # Blanks around a value are not part of it.
    assert entries[6]["http"]["headers"]["x"] == "y"


def test_response_is_recorded_whole_if_its_client_leaves_after_the_head(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    listening = socket.create_server(("127.0.0.1", 0))
    with listening, recording(listening.getsockname()[1], path, lambda: "first") as url:
        host, _, port = url.removeprefix("http://").partition(":")
        client = socket.create_connection((host, int(port)), timeout=30)
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        server, _ = listening.accept()
        with server:
            server.recv(1000)
            server.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
            client.recv(1000)
            client.close()
            time.sleep(0.05)  # the relay knows that the client has left
            server.sendall(b"null")
            assert server.recv(1000) == b""  # when the relay has read it
    entries = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert [(each["from"], each["raw"]) for each in entries] == [
        ("client", "{}"),
        ("server", "null"),
    ]


def _about(entry: dict[str, Any]) -> object:
    if entry["from"] == "server":
        return entry["http"]["status"]
    try:
        return json.loads(entry["raw"])["method"]
    except ValueError:
        return entry["raw"]

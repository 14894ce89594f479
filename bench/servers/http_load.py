"""Load generator for HTTP servers: one thread, blocking set-up, an epoll loop while it measures.

    python bench/servers/http_load.py

It runs in a process of its own and is the same for every server. Commands come on stdin, one JSON
object in each line, and each is answered with one line on stdout:

| command | does |
|---|---|
| `open` | opens connections to a server, with a session each where the revision has them |
| `run` | sends so many requests over the first `connections` of them; answers the wall time |
| `latencies` | answers p50 and p99 of all runs of a pool with so many connections |
| `sessions` | opens so many sessions over one connection, and leaves them |

Each connection has one request in flight; the next is sent when the answer was read. Requests are
bytes made beforehand, with texts of eight lengths, so that Content-Length differs from one to
the next as it does for real clients. With `varies` each request also has a new value of the
header of that name: `traceparent`, or `x-nonce`, which no server knows.

Every answer is checked for its status, its id and its text; `open` also decodes one.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from typing import Any, Final, NamedTuple

HANDSHAKE: Final = "2025-11-25"
PER_REQUEST: Final = "2026-07-28"

_CLIENT: Final = {"name": "load", "version": "1.0.0"}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _CLIENT,
}
_READ_BYTES: Final = 64 * 1024
# Requests that a connection repeats in turn.
_VARIANTS: Final = 8
_VARYING: Final = ("traceparent", "x-nonce")
_TIMEOUT_S: Final = 30.0


class Request(NamedTuple):
    """One request, and what its answer must contain."""

    whole: bytes
    varying: dict[str, tuple[bytes, bytes]]
    """With a header that varies, by its name: all before and all after its value."""
    id: bytes
    text: bytes


class Connection:
    """One connection, and the request that is in flight on it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests: list[Request] = []
        self.next = 0
        self.sent_at = 0
        self.request: Any = None
        # The part of an answer that was read.
        self.data = b""

    def ask(self, data: bytes) -> tuple[bytes, bytes]:
        """Send a request and return head and body of its answer."""
        self.socket.sendall(data)
        found = b""
        while not is_complete(found):
            part = self.socket.recv(_READ_BYTES)
            if not part:
                raise SystemExit(f"a server closed the connection after {found!r:.300}")
            found += part
        head, _, body = found.partition(b"\r\n\r\n")
        if b"chunked" in head.lower():
            body = _dechunked(body)
        return head, body


class Pool:
    """The connections to one server."""

    def __init__(
        self,
        port: int,
        revision: str,
        accept: str,
        tool: str,
        headers: dict[str, str] | None = None,
    ) -> None:
        self._address = ("127.0.0.1", port)
        self._revision = revision
        self.fixed = [
            ("Host", f"127.0.0.1:{port}"),
            ("User-Agent", "load/1.0"),
            ("Accept", accept),
            ("Accept-Encoding", "identity"),
            ("Content-Type", "application/json"),
            *(headers or {}).items(),
        ]
        self._tool = tool
        self.connections: list[Connection] = []
        self.latencies: dict[tuple[int, str], list[int]] = {}
        self._traces = int.from_bytes(os.urandom(16), "big") >> 1

    def open(self, count: int) -> None:
        """Open connections, and check an answer on each."""
        for number in range(count):
            connection = Connection(self._address)
            session = self.open_session(connection) if self._revision == HANDSHAKE else None
            connection.requests = [
                self.request(number * _VARIANTS + variant + 1_000_000, variant, session)
                for variant in range(_VARIANTS)
            ]
            for request in connection.requests:
                self._check(request, *connection.ask(request.whole))
            self.connections.append(connection)
        for connection in self.connections:
            connection.socket.setblocking(False)

    def open_session(self, connection: Any) -> str:
        """Shake hands over what can `ask`; return the id of the session."""
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        head, body = connection.ask(post(self.fixed, json.dumps(message).encode()))
        if b'"protocolVersion":"%b"' % HANDSHAKE.encode() not in body:
            raise SystemExit(f"a server answered initialize with {head + body!r:.300}")
        lines = [line.partition(":") for line in head.decode("latin-1").split("\r\n")]
        session = next(value.strip() for name, _, value in lines if name.lower() == _SESSION)
        note = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
        head, body = connection.ask(post([*self.fixed, *self.state(session)], note))
        if b" 202 " not in head[:20]:
            raise SystemExit(f"a server answered initialized with {head + body!r:.300}")
        return session

    def open_sessions(self, count: int) -> None:
        """Open sessions over one connection."""
        connection = Connection(self._address)
        for _ in range(count):
            self.open_session(connection)
        connection.socket.close()

    def run(self, connections: int, requests: int, *, varies: str) -> int:
        """Send requests, each when the answer before was read; return the wall time in ns."""
        used = self.connections[:connections]
        by_descriptor = {each.socket.fileno(): each for each in used}
        latencies = self.latencies.setdefault((connections, varies), [])
        poll = select.epoll()
        for descriptor in by_descriptor:
            poll.register(descriptor, select.EPOLLIN)
        clock = time.perf_counter_ns
        began = clock()
        for connection in used:
            self._send(connection, varies)
        to_send, to_read = requests - connections, requests
        while to_read:
            ready = poll.poll(_TIMEOUT_S)
            if not ready:
                raise SystemExit(f"{to_read} requests were not answered")
            for descriptor, _ in ready:
                connection = by_descriptor[descriptor]
                data = connection.socket.recv(_READ_BYTES)
                if not data:
                    raise SystemExit(f"a server closed a connection; {to_read} answers are due")
                if connection.data:
                    data = connection.data + data
                if not is_complete(data):
                    connection.data = data
                    continue
                latencies.append(clock() - connection.sent_at)
                connection.data = b""
                request = connection.request
                if request.text not in data or request.id not in data or data[9:12] != b"200":
                    raise SystemExit(f"a server answered {data!r:.500}")
                to_read -= 1
                if to_send:
                    to_send -= 1
                    self._send(connection, varies)
        spent = clock() - began
        poll.close()
        return spent

    def _send(self, connection: Connection, varies: str) -> None:
        number = connection.next
        request = connection.request = connection.requests[number]
        connection.next = (number + 1) % _VARIANTS
        if varies:
            self._traces += 1
            before, after = request.varying[varies]
            data = b"%b00-%032x-%016x-01%b" % (before, self._traces, number, after)
        else:
            data = request.whole
        connection.sent_at = time.perf_counter_ns()
        if connection.socket.send(data) != len(data):
            raise SystemExit("a server does not read")

    def state(self, session: str | None) -> list[tuple[str, str]]:
        """Return the headers that name the session, or those of a single request."""
        if session is not None:
            return [("Mcp-Session-Id", session), ("MCP-Protocol-Version", HANDSHAKE)]
        return [
            ("MCP-Protocol-Version", PER_REQUEST),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", self._tool),
        ]

    def request(self, id: int, variant: int, session: str | None) -> Request:
        """Return a call of the tool; `variant` decides the length of its text."""
        text = f"text {id} " + "x" * (variant * 7)
        params: dict[str, Any] = {"name": self._tool, "arguments": {"text": text}}
        meta = dict(_META) if session is None else {}
        if self._tool == "progress":
            meta["progressToken"] = id
        if meta:
            params["_meta"] = meta
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        body = json.dumps(message, separators=(",", ":")).encode()
        headers = [*self.fixed, *self.state(session)]
        varying = {}
        for name in _VARYING:
            before, _, after = post([*headers, (name, "@")], body).partition(b"@")
            varying[name] = before, after
        return Request(post(headers, body), varying, b'"id":%d' % id, b'"%b"' % text.encode())

    def _check(self, request: Request, head: bytes, body: bytes) -> None:
        if b"text/event-stream" in head:
            events = [line for line in body.decode().splitlines() if line.startswith("data: {")]
            body = events[-1][6:].encode()
        answer = json.loads(body)
        text = answer.get("result", {}).get("content", [{}])[0].get("text", "")
        wanted = request.text.decode()[1:-1]
        if text != wanted or f'"id":{answer["id"]}' != request.id.decode():
            raise SystemExit(f"a server answered {head + body!r:.500}")


_SESSION: Final = "mcp-session-id"


def is_complete(data: bytes) -> bool:
    """Return True if `data` is a whole response."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    start = data.find(b"content-length: ", 0, end)
    if start < 0:
        start = data.find(b"Content-Length: ", 0, end)
    if start >= 0:
        return len(data) >= end + 4 + int(data[start + 16 : data.find(b"\r\n", start)])
    if data.find(b"hunked", 0, end) >= 0:
        return data.endswith(b"0\r\n\r\n")
    return data[9:12] in (b"202", b"204")


def _dechunked(body: bytes) -> bytes:
    parts = []
    while True:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return b"".join(parts)
        parts.append(body[:length])
        body = body[length + 2 :]


def post(headers: list[tuple[str, str]], body: bytes) -> bytes:
    """Return a request."""
    lines = [f"{name}: {value}\r\n" for name, value in headers]
    lines.append(f"Content-Length: {len(body)}\r\n\r\n")
    return ("POST /mcp HTTP/1.1\r\n" + "".join(lines)).encode() + body


def percentile(values: list[int], percent: int) -> int:
    """Return the value that this share of them stays within."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else 0


def main() -> None:
    """Carry out commands until stdin ends."""
    pools: dict[str, Pool] = {}
    for line in sys.stdin:
        given = json.loads(line)
        command = given.pop("command")
        answer: Any = None
        if command == "pin":
            os.sched_setaffinity(0, given["cores"])
        elif command == "open":
            name, count = given.pop("pool"), given.pop("connections")
            pools[name] = Pool(**given)
            pools[name].open(count)
        elif command == "sessions":
            Pool(given["port"], HANDSHAKE, given["accept"], "echo").open_sessions(given["count"])
        elif command == "run":
            answer = pools[given.pop("pool")].run(**given)
        elif command == "latencies":
            found = pools[given["pool"]].latencies.get((given["connections"], given["varies"]), [])
            answer = [percentile(found, 50), percentile(found, 99)]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

"""What a peer can make a server hold: every bound is driven, and the memory is read."""

from __future__ import annotations

import json
import os
import select
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tests.faults.piped_server import MIB, Piped, piped
from tests.rigs.conditions import WAIT_S, until
from tests.rigs.messages import META, initialize_params
from trunkline import Tcp, Unix
from trunkline.transports.addresses import parse_address

INTERNAL_ERROR = -32603
MB = 1_000_000


def frame(id: Any, tool: str, revision: str = "2026-07-28", **arguments: Any) -> bytes:
    """Return a call; in another revision than the newest it belongs to a session."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if revision == "2026-07-28":
        params["_meta"] = META
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return json.dumps(message).encode() + b"\n"


def is_refusal(answer: Any) -> bool:
    error = answer.get("error", {})
    return error.get("code") == INTERNAL_ERROR and error.get("data", {}).get("retryAfterMs", 0) > 0


def limits(**given: Any) -> str:
    return json.dumps(given)


def stats(server: Piped) -> dict[str, Any]:
    """Return the stats of a server on standard streams; its other answers are passed over."""
    server.send(server.request("x/stats", "stats"))
    found: dict[str, Any] = server.answer("stats")["result"]
    return found


# Requests at work


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_hundred_calls_of_8_mib_at_work_hold_the_budget_and_the_rest_is_refused(
    tmp_path: Path, revision: str
) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", "{}") as server:
        server.handshake()
        before, begun = server.resident(), time.monotonic()
        # Written at once, so that the frames here are not made a hundred times.
        end = frame("ID", "hold", revision, text="TEXT", path=str(gate))
        head, tail = end.split(b"TEXT")
        for n in range(100):
            data = head.replace(b'"ID"', b"%d" % n) + b"x" * (8 * MIB) + tail
            assert server.write_until_full(data, 1)
        answers = [server.read() for _ in range(85)]
        assert all(map(is_refusal, answers))
        # 128 MiB hold 15 such calls. What is at work holds its text, not its frame beside it.
        assert server.resident() - before < 200 * MIB
        gate.touch()
        assert {server.read()["result"]["content"][0]["text"] for _ in range(15)} == {str(8 * MIB)}
        found = stats(server)
        assert found["refused"] == {"connection_bytes": 85}
        assert found["held_bytes"] < 1000
        # Once per second: a busy machine takes several for all of this.
        most = 1 + int(time.monotonic() - begun)
        assert 1 <= server.log().count("ServerLimits.connection_bytes is reached") <= most


def test_sixty_four_calls_of_1_mb_and_their_answers_fit_though_all_is_sent_before_any_is_read(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", "{}") as server:
        before = server.resident()
        for n in range(64):
            size = MB - len(frame(n, "echo", text=""))
            call = frame(n, "echo", text="x" * size)
            if n == 0:
                call = frame(n, "page", size=2 * MB, path=str(gate))
            assert server.write_until_full(call, 1)
        gate.touch()
        answers = [server.read() for _ in range(64)]
        assert {each["id"] for each in answers} == set(range(64))
        assert all("result" in each for each in answers)
        assert server.resident() - before < 300 * MIB
        assert stats(server)["refused"] == {}


def test_an_idle_connection_accepts_one_message_of_the_largest_size_whatever_its_budget(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", limits(connection_bytes=MIB)) as server:
        largest = "x" * (16 * MIB - len(frame("one", "hold", text="", path=str(gate))))
        assert server.write_until_full(frame("one", "hold", text=largest, path=str(gate)), 1)
        # A second one has no room. A small one has, and what needs no handler is served.
        server.write(frame("two", "hold", text="x" * 1000, path=str(gate)))
        assert is_refusal(server.answer("two"))
        server.write(frame("small", "echo", text="x"))
        assert "result" in server.answer("small")
        server.send(server.request("tools/list", "list"))
        assert server.answer("list")["result"]["tools"]
        gate.touch()
        assert server.answer("one")["result"]["content"][0]["text"] == str(len(largest))
        assert server.write_until_full(frame("three", "echo", text=largest), 1)
        assert len(server.answer("three")["result"]["content"][0]["text"]) == len(largest)


def test_a_request_is_refused_for_its_size_before_it_is_decoded(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", limits(connection_bytes=8 * MIB)) as server:
        server.write(frame("first", "hold", text="x", path=str(gate)))
        server.write(frame("begun", "echo", text="x"))
        assert "result" in server.answer("begun")
        before = server.resident("VmHWM")
        # 15 MiB of empty lists are 320 MiB of Python objects.
        text = b'{"text":' + b"[" + b"[]," * (5 * MIB) + b"[]]}"
        data = frame("large", "hold", text=0).replace(b'{"text": 0}', text)
        assert server.write_until_full(data, 1)
        assert is_refusal(server.answer("large"))
        assert server.resident("VmHWM") - before < 60 * MIB
        gate.touch()
        assert "result" in server.answer("first")


def test_waiting_requests_count_as_many_bytes_as_running_ones(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", limits(connection_bytes=8 * MIB, in_flight=1)) as server:
        server.write(frame("first", "hold", text="x", path=str(gate)))
        for n in range(30):
            server.write_until_full(frame(n, "echo", text="x" * MIB), 1)
        refused = [server.read() for _ in range(23)]
        assert all(map(is_refusal, refused))
        gate.touch()
        served = [server.read() for _ in range(8)]
        assert [each["id"] for each in served] == ["first", *range(7)]
        assert stats(server)["held_bytes"] < 1000


def test_cancelled_requests_hold_no_bytes(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", limits(connection_bytes=8 * MIB, in_flight=4)) as server:
        for round in range(5):
            ids = [f"{round}-{n}" for n in range(7)]
            for id in ids:
                server.write_until_full(frame(id, "hold", text="x" * MIB, path=str(gate)), 1)
            for id in ids:
                params = {"requestId": id}
                server.send(
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
                )
            until(lambda: stats(server)["held_bytes"] < 1000)
        assert stats(server)["refused"] == {}


def batch(*messages: dict[str, Any]) -> bytes:
    return json.dumps(messages).encode() + b"\n"


def call_of(id: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(frame(id, tool, "2025-03-26", **arguments))
    return message


def test_a_request_that_waits_does_not_keep_the_rest_of_its_batch(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", limits(in_flight=1, revision="2025-03-26")) as server:
        open_batches(server)
        before = server.resident()
        server.write(batch(call_of("first", "hold", text="x", path=str(gate))))
        junk = {"jsonrpc": "2.0", "method": "x/unknown", "params": {"junk": "x" * (4 * MIB)}}
        for n in range(50):
            assert server.write_until_full(batch(call_of(n, "echo", text="small"), junk), 1)
        server.write(b"garbage\n")
        assert server.read()["error"]["code"] == -32700  # all was read
        assert server.resident() - before < 40 * MIB
        gate.touch()
        answers = [json.loads(server.line()) for _ in range(51)]
        assert [each["id"] for (each,) in answers] == ["first", *range(50)]


def test_the_answers_of_a_batch_count_until_its_last_one_is_known(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    given = limits(connection_bytes=8 * MIB, revision="2025-03-26")
    with piped("budget_server.py", given) as server:
        open_batches(server)
        before = server.resident()
        # Each result is known before the next batch comes, and waits for that of `hold`.
        refused: list[Any] = []
        for n in range(40):
            slow = call_of(f"slow{n}", "hold", text="x", path=str(gate))
            server.write(batch(slow, call_of(n, "page", size=MIB)) + b"garbage\n")
            while isinstance(answer := json.loads(server.line()), list):
                refused += answer
            assert answer["error"]["code"] == -32700
        assert server.resident() - before < 60 * MIB
        # Both of a batch: it could be answered at once.
        assert all(map(is_refusal, refused))
        assert len(refused) >= 2 * 30
        gate.touch()
        for _ in range(40 - len(refused) // 2):
            assert all("result" in each for each in json.loads(server.line()))


def test_answers_of_a_batch_beyond_a_quarter_of_the_budget_are_errors() -> None:
    """Joined and written, they take three times as much again."""
    given = limits(connection_bytes=8 * MIB, revision="2025-03-26")
    with piped("budget_server.py", given) as server:
        open_batches(server)
        before = server.resident("VmHWM")
        server.write(batch(*(call_of(n, "page", size=MIB) for n in range(40))))
        answers = json.loads(server.line())
        assert sorted(each["id"] for each in answers) == list(range(40))
        assert sum("result" in each for each in answers) == 2  # of a little more than 1 MiB each
        assert sum("error" in each for each in answers) == 38
        assert server.resident("VmHWM") - before < 32 * MIB


def open_batches(server: Piped) -> None:
    params = initialize_params("2025-03-26")
    server.send({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})
    assert server.answer("hello")["result"]["protocolVersion"] == "2025-03-26"
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})


# Answers that are not read


@pytest.mark.full
def test_results_for_a_client_that_does_not_read_are_bounded_and_its_connection_ends(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    # Long enough for a busy machine to make the answers that exceed the budget.
    with piped("budget_server.py", limits(unread_timeout=8)) as server:
        server.handshake()
        before = server.resident()
        for n in range(100):
            server.write(frame(n, "page", size=8 * MIB, path=str(gate)))
        gate.touch()
        server.has_logged("dropped: the client has not read")
        server.has_logged("the client has not read any of")
        # 128 MiB, and the answer that exceeded them.
        assert server.resident("VmHWM") - before < 220 * MIB
        assert server.wait() == 0


def test_a_client_that_reads_late_gets_the_results_that_fit_and_an_error_for_each_other(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", limits(connection_bytes=8 * MIB)) as server:
        server.handshake()
        for n in range(20):
            server.write(frame(n, "page", size=MIB, path=str(gate)))
        gate.touch()
        server.has_logged("dropped: the client has not read")
        answers = [server.read() for _ in range(20)]
        assert {each["id"] for each in answers} == set(range(20))
        served = [each for each in answers if "result" in each]
        dropped = [each["error"] for each in answers if "error" in each]
        assert all(len(each["result"]["content"][0]["text"]) == MIB for each in served)
        assert 4 <= len(served) < 20
        # The handler has run: calling it again may do something twice.
        assert all(each["code"] == INTERNAL_ERROR and "data" not in each for each in dropped)
        found = stats(server)
        assert found["dropped_answers"] == len(dropped)
        assert found["closed_unread"] == 0


@pytest.mark.parametrize(
    "kind", ["unix", *(pytest.param(each, marks=pytest.mark.full) for each in ("tcp", "tls"))]
)
def test_a_client_on_a_socket_that_does_not_read_is_closed_and_others_are_served(
    tmp_path: Path, kind: str
) -> None:
    gate = tmp_path / "gate"
    given = {"connection_bytes": 16 * MIB, "unread_timeout": 1}
    with listening(kind, tmp_path, given) as place, place.connect() as other:
        before = place.server.resident()
        with place.connect() as deaf:
            for n in range(20):
                deaf.send(frame(n, "page", size=4 * MIB, path=str(gate)))
            gate.touch()
            place.server.has_logged("the client has not read any of")
            assert place.server.resident("VmHWM") - before < 80 * MIB
            until(lambda: other.stats()["connections"] == 1)
        found = other.stats()
        assert found["closed_unread"] == 1
        assert found["held_bytes"] < 1000


@pytest.mark.full
def test_the_input_of_a_client_that_only_sends_is_not_read_any_more_and_goes_on_later() -> None:
    with piped("budget_server.py", limits(connection_bytes=MIB, unread_timeout=1000)) as server:
        server.handshake()
        assert server.process.stdin is not None
        fd = server.process.stdin.fileno()
        line = b"x" * (select.PIPE_BUF - 1) + b"\n"  # written as a whole, or not at all
        before = server.resident()
        sent = 0
        while select.select([], [fd], [], 1)[1]:
            assert os.write(fd, line) == len(line)
            sent += 1
        assert server.resident() - before < 80 * MIB
        # Its client reads, and so does the server.
        for _ in range(sent):
            assert server.read()["error"]["code"] == -32700
        server.write(frame("echo", "echo", text="hello"))
        assert server.read()["id"] == "echo"


# All connections together


def test_bytes_held_by_all_connections_are_bounded(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    given = {"connection_bytes": 8 * MIB, "server_bytes": 10 * MIB}
    with listening("tcp", tmp_path, given) as place:
        with place.connect() as one, place.connect("127.0.0.2") as two:
            # While there is another client, it has half of them.
            for n in range(7):
                one.send(frame(n, "hold", text="x" * MIB, path=str(gate)))
            refused = [one.read() for _ in range(3)]
            assert all(map(is_refusal, refused))
            until(lambda: two.stats()["in_flight"] == 5)
            for n in range(7):
                two.send(frame(n, "hold", text="x" * MIB, path=str(gate)))
            refused = [two.read() for _ in range(3)]
            assert all(map(is_refusal, refused))
            # What needs no handler is served.
            two.send(
                b'{"jsonrpc":"2.0","id":"p","method":"tools/list","params":{"_meta":%s}}\n'
                % json.dumps(META).encode()
            )
            assert two.read()["id"] == "p"
            gate.touch()
            assert all("result" in one.read() for _ in range(4))
            assert all("result" in two.read() for _ in range(4))
            assert two.stats()["refused"] == {"client_bytes": 6}
        with place.connect() as three:
            until(lambda: three.stats()["connections"] == 1)
            assert three.stats()["held_bytes"] < 1000


# Notifications


def test_a_flood_of_notifications_for_a_handler_that_waits_is_bounded(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", limits(in_flight=10, in_flight_overall=20)) as server:
        server.handshake()
        server.write(frame("call", "hold", text="x", path=str(tmp_path / "never")))
        before = server.resident()
        params = {"path": str(gate), "x": "p" * 1000}
        note = json.dumps({"jsonrpc": "2.0", "method": "x/wait", "params": params}).encode() + b"\n"
        assert server.write_until_full(note * 1000, 50) == 50
        # Of the protocol's own none is dropped.
        server.send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": "call"},
            }
        )
        server.write(b"garbage\n")
        assert server.read()["error"]["code"] == -32700  # all was read
        assert server.resident() - before < 20 * MIB
        gate.touch()
        until(lambda: stats(server)["in_flight"] == 1)
        assert stats(server)["dropped_notifications"] == 50_000 - 9
        assert len(server.log()) < 2000
        assert "notification x/wait dropped: ServerLimits.in_flight is reached" in server.log()


def test_a_flood_of_notifications_for_a_handler_on_a_thread_logs_a_line(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", limits(threads=2, waiting_for_thread=2)) as server:
        server.handshake()
        params = {"path": str(gate), "x": "p" * 1000}
        note = json.dumps({"jsonrpc": "2.0", "method": "x/block", "params": params}).encode()
        server.write((note + b"\n") * 2000)
        until(lambda: stats(server)["dropped_notifications"] == 1996)
        assert len(server.log()) < 2000
        gate.touch()
        until(lambda: stats(server)["in_flight"] == 1)
        server.write(frame("tool", "on_a_thread"))
        assert "result" in server.answer("tool")


def test_notifications_count_their_bytes(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with piped("budget_server.py", limits(connection_bytes=8 * MIB)) as server:
        server.handshake()
        before = server.resident()
        params = {"path": str(gate), "x": "p" * MIB}
        note = json.dumps({"jsonrpc": "2.0", "method": "x/wait", "params": params}).encode()
        assert server.write_until_full(note + b"\n", 50) == 50
        until(lambda: stats(server)["dropped_notifications"] == 43)
        assert server.resident() - before < 60 * MIB
        gate.touch()
        until(lambda: stats(server)["held_bytes"] < 1000)


@pytest.mark.parametrize("how", ["exit", "interrupt"])
@pytest.mark.parametrize("method", ["x/exit", "x/exit-on-a-thread"])
def test_a_notification_handler_that_ends_the_process_ends_nothing(method: str, how: str) -> None:
    with piped("budget_server.py", "{}") as server:
        server.handshake()
        server.send({"jsonrpc": "2.0", "method": method, "params": {"how": how}})
        server.has_logged(f"handler of notification '{method}' failed")
        server.write(frame("still", "echo", text="there"))
        assert "result" in server.answer("still")
        server.end_input()
        assert server.wait() == 0


# Threads


def test_a_client_that_is_alone_uses_all_threads_but_some_and_then_leaves_others_half(
    tmp_path: Path,
) -> None:
    gate, other_gate = tmp_path / "gate", tmp_path / "other"
    begun, taken = Path(f"{gate}.begun"), Path(f"{other_gate}.begun")
    with listening("tcp", tmp_path, {"threads": 8}) as place, place.connect() as hog:
        for n in range(9):
            hog.send(frame(n, "block", path=str(gate)))
        until(lambda: begun.exists() and len(begun.read_text()) == 7)
        with place.connect("127.0.0.2") as other, place.connect("127.0.0.3") as third:
            # The hog keeps its seven: three more than eight are for others, who leave one.
            other.send(frame("quick", "on_a_thread"))
            assert other.read()["result"]
            for n in range(4):
                other.send(frame(n, "block", path=str(other_gate)))
            until(lambda: taken.exists() and len(taken.read_text()) == 3)
            third.send(frame("quick", "on_a_thread"))
            assert third.read()["result"]
            found = other.stats()
            assert found["threads_busy"] == 10
            assert found["threads_waiting"] == 3
            until(lambda: other.stats()["late_threads"] == 3)
            place.server.has_logged("calls wait for one of 8 threads")
            other_gate.touch()
            assert all(other.read()["result"] for _ in range(4))
        gate.touch()
        assert all(hog.read()["result"] for _ in range(9))


def test_blocked_threads_of_a_closed_connection_do_not_delay_others(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    begun = Path(f"{gate}.begun")
    with listening("unix", tmp_path, {"threads": 2, "linger": 0.1}) as place:
        with place.connect() as hog:
            for n in range(20):
                hog.send(frame(n, "block", path=str(gate)))
            until(lambda: begun.exists() and len(begun.read_text()) == 1)
        with place.connect() as other:
            until(lambda: other.stats()["connections"] == 1)
            for n in range(10):
                other.send(frame(n, "on_a_thread"))
            assert all(other.read()["result"] for _ in range(10))
            assert other.stats()["threads_waiting"] == 0
        gate.touch()


# Subscriptions


def test_subscriptions_count_the_bytes_of_their_uris_and_leave_room_for_requests() -> None:
    with piped("budget_server.py", limits(connection_bytes=MIB)) as server:
        server.handshake()
        accepted = 0
        for n in range(200):
            params = {"uri": f"note://{n:05}{'x' * 8000}"}
            server.send(
                {"jsonrpc": "2.0", "id": n, "method": "resources/subscribe", "params": params}
            )
            accepted += "result" in server.answer(n)
        assert 40 < accepted < 70
        held = stats(server)["held_bytes"]
        assert held > accepted * 8000
        server.write(frame("call", "echo", text="x" * 200_000))
        assert "result" in server.answer("call")
        for n in range(accepted):
            params = {"uri": f"note://{n:05}{'x' * 8000}"}
            server.send(
                {"jsonrpc": "2.0", "id": n, "method": "resources/unsubscribe", "params": params}
            )
            assert "result" in server.answer(n)
        assert stats(server)["held_bytes"] < 2000


# A server on a socket


class Conversation:
    """A client on a plain socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._rest = b""

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read(self) -> Any:
        parts = []
        while b"\n" not in self._rest:
            parts.append(self._rest)
            self._rest = self._socket.recv(MIB)
            assert self._rest, "the server has closed the connection"
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(b"".join((*parts, line)))

    def stats(self) -> dict[str, Any]:
        """Return the stats of the server; other answers are passed over."""
        params = {"_meta": META}
        message = {"jsonrpc": "2.0", "id": "stats", "method": "x/stats", "params": params}
        self.send(json.dumps(message).encode() + b"\n")
        while (answer := self.read()).get("id") != "stats":
            pass
        found: dict[str, Any] = answer["result"]
        return found


class Place:
    """A server that listens, and how to connect to it."""

    def __init__(self, server: Piped, address: Tcp | Unix, context: ssl.SSLContext | None) -> None:
        self.server = server
        self._address = address
        self._context = context

    def connect(self, source: str = "127.0.0.1") -> Conversation:
        """Connect; over TCP from an address that tells clients apart."""
        address = self._address
        if isinstance(address, Tcp):
            place = (address.host, address.port)
            sock = socket.create_connection(place, timeout=WAIT_S, source_address=(source, 0))
            if self._context is not None:
                sock = self._context.wrap_socket(sock, server_hostname="localhost")
        else:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(WAIT_S)
            sock.connect(str(address.path))
        return Conversation(sock)


@contextmanager
def listening(kind: str, folder: Path, given: dict[str, Any]) -> Iterator[Place]:
    """Start a server that listens on a socket of one kind."""
    text = f"unix:{folder / 's'}" if kind == "unix" else f"{kind}://127.0.0.1:0"
    files: tuple[str, ...] = ()
    context = None
    if kind == "tls":
        authority = Authority(folder)
        files = tuple(map(str, authority.certificate("localhost")))
        context = ssl.create_default_context(cafile=str(authority.ca))
    with piped("budget_server.py", json.dumps(given), text, *files) as server:
        yield Place(server, parse_address(server.line().decode()), context)

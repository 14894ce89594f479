"""More than a server takes on at once: it waits, refuses or ends, each as it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults.piped_server import MIB, Piped, piped
from tests.rigs.conditions import until

INTERNAL_ERROR = -32603


def is_refusal(answer: Any) -> bool:
    error = answer.get("error", {})
    return error.get("code") == INTERNAL_ERROR and error["data"]["retryAfterMs"] > 0


def cancel(server: Piped, id: Any) -> None:
    server.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
    )


def all_was_read(server: Piped) -> None:
    """Wait until the server has read everything: garbage is answered without waiting."""
    server.write(b"garbage\n")
    assert server.read()["error"]["code"] == -32700


def test_requests_beyond_what_one_client_may_have_at_work_wait_in_order(tmp_path: Path) -> None:
    gates = [tmp_path / f"gate{n}" for n in range(2)]
    with piped("server.py", '{"in_flight": 2}') as server:
        first = [server.call("until_file", path=str(gate)) for gate in gates]
        waiting = [server.call("quick", number=n) for n in range(50)]
        waiting += [server.call("echo", text=str(n)) for n in range(50)]
        all_was_read(server)
        gates[0].touch()
        assert server.read()["id"] == first[0]
        assert [server.read()["id"] for _ in waiting] == waiting
        gates[1].touch()
        assert server.read()["id"] == first[1]
        server.end_input()
        assert server.rest() == []
        assert server.wait() == 0


def test_thousands_that_wait_for_a_quick_handler_are_all_served(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with piped("server.py", '{"in_flight": 1}') as server:
        first = server.call("until_file", path=str(gate))
        lines = b"".join(
            json.dumps(
                server.request("tools/call", n, name="quick", arguments={"number": n})
            ).encode()
            + b"\n"
            for n in range(5000)
        )
        server.write(lines)
        all_was_read(server)
        gate.touch()
        assert server.read()["id"] == first
        for n in range(5000):
            answer = server.read()
            assert answer["id"] == n
            assert answer["result"]["content"][0]["text"] == str(n), answer
        assert server.serves()


def test_a_request_that_waits_can_be_cancelled(tmp_path: Path) -> None:
    gate, never = tmp_path / "gate", tmp_path / "never"
    with piped("server.py", '{"in_flight": 1}') as server:
        first = server.call("until_file", path=str(gate))
        second = server.call("touch", path=str(never))
        third = server.call("echo", text="third")
        cancel(server, second)
        all_was_read(server)
        gate.touch()
        assert [server.read()["id"], server.read()["id"]] == [first, third]
        server.end_input()
        assert server.rest() == []
        assert server.wait() == 0
        assert not never.exists()


def test_a_handler_that_asks_the_client_gets_its_answer_though_the_queue_is_full() -> None:
    with piped("server.py", '{"in_flight": 1, "waiting": 10}') as server:
        server.handshake()
        server.send(
            {
                "jsonrpc": "2.0",
                "id": "asks",
                "method": "tools/call",
                "params": {"name": "asks", "arguments": {}},
            }
        )
        question = server.read()
        assert question["method"] == "ping"
        waiting = [server.call("echo", text="waits") for _ in range(10)]
        all_was_read(server)
        server.send({"jsonrpc": "2.0", "id": question["id"], "result": {}})
        assert [server.read()["id"] for _ in range(11)] == ["asks", *waiting]


def test_beyond_what_all_clients_may_have_at_work_a_call_is_refused_with_when_to_try_again(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    with piped("server.py", '{"in_flight_overall": 2}') as server:
        ids = [server.call("until_file", path=str(gate)) for _ in range(2)]
        for tool, arguments in (("echo", {"text": "no"}), ("quick", {"number": 1})):
            assert is_refusal(server.answer(server.call(tool, **arguments)))
        # What needs no handler is served all the same.
        server.send(server.request("tools/list", "list"))
        assert server.answer("list")["result"]["tools"]
        gate.touch()
        assert {server.read()["id"], server.read()["id"]} == set(ids)
        assert server.serves()


def test_when_all_threads_are_at_work_and_enough_wait_a_call_is_refused(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with piped("server.py", '{"threads": 2, "waiting_for_thread": 3}') as server:
        ids = [server.call("blocked", path=str(gate)) for _ in range(5)]
        assert is_refusal(server.answer(server.call("on_a_thread", text="no")))
        # Coroutines need no thread.
        assert server.serves()
        gate.touch()
        assert {server.read()["id"] for _ in range(5)} == set(ids)
        assert server.answer(server.call("on_a_thread", text="yes"))["result"]


def test_one_request_too_many_that_waits_ends_the_connection_and_the_log_says_why(
    tmp_path: Path,
) -> None:
    marker = tmp_path / "marker"
    with piped("server.py", '{"in_flight": 1, "waiting": 5}') as server:
        server.call("announce", path=str(marker))
        until(lambda: marker.exists() and marker.read_text() == "begun")
        ids = [server.call("echo", text="waits") for _ in range(6)]
        rest = server.rest()
        assert is_refusal(rest[0])
        assert rest[0]["id"] == ids[-1]
        # What is owed is answered, too, before the end.
        assert all(is_refusal(each) for each in rest)
        assert len(rest) == 7
        assert server.wait() == 0
        assert "the client has 5 waiting requests" in server.log()
        assert marker.read_text() == "cleaned up"


# A client that does not read


def lines(server: Piped, what: str, first: int, count: int) -> bytes:
    """Return requests with ids of their own."""
    requests = {
        "lists": ("tools/list", {}),
        "echoes": ("tools/call", {"name": "echo", "arguments": {"text": "x" * 10_000}}),
        "large requests": ("tools/call", {"name": "length", "arguments": {"text": "x" * MIB}}),
    }
    method, params = requests[what]
    line = json.dumps(server.request(method, "PLACE", **params)).encode() + b"\n"
    return b"".join(line.replace(b"PLACE", b"%d" % n, 1) for n in range(first, first + count))


@pytest.mark.parametrize(
    "what",
    ["echoes", *(pytest.param(each, marks=pytest.mark.full) for each in ("lists", "garbage"))],
)
def test_a_client_that_never_reads_its_answers_is_disconnected_in_bounded_memory(
    what: str,
) -> None:
    limits = '{"waiting": 1000, "connection_bytes": 67108864, "unread_timeout": 1}'
    with piped("server.py", limits) as server:
        assert server.serves()
        before = peak = server.resident()
        for n in range(200):
            batch = b"garbage\n" * 5000 if what == "garbage" else lines(server, what, n * 50, 50)
            if not server.write_until_full(batch, 1):
                break
            peak = max(peak, server.resident())
        assert server.wait() == 0
        assert "connection closed: the client " in server.log()
        assert peak - before < 200 * MIB


def test_large_requests_of_a_client_that_never_reads_are_refused_in_bounded_memory() -> None:
    with piped() as server:
        assert server.serves()
        before = peak = server.resident()
        server.call("large", id="large", size=6 * MIB)
        for n in range(300):
            assert server.write_until_full(lines(server, "large requests", n, 1), 1)
            peak = max(peak, server.resident())
        assert peak - before < 200 * MIB
        # Now it reads. What waited is served, what had no room was refused.
        assert server.answer("large")["result"]
        answers = [server.read() for _ in range(300)]
        served = [each for each in answers if "result" in each]
        assert all(each["result"]["content"][0]["text"] == str(MIB) for each in served)
        assert all(is_refusal(each) for each in answers if "result" not in each)
        assert 1 < len(served) < 300
        assert server.serves()


def test_requests_waiting_for_a_slow_reader_are_answered_after_end_of_input() -> None:
    # Forty answers of 1 MiB: more than is written ahead, so that requests wait.
    with piped() as server:
        ids = [server.call("large", size=MIB) for _ in range(40)]
        server.end_input()
        answers = server.rest()
        assert [each["id"] for each in answers] == ids
        assert all(len(each["result"]["content"][0]["text"]) == MIB for each in answers)
        assert server.wait() == 0

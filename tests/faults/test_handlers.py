"""Handlers that do what they should not: each request is answered once, and the server lives."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.faults.piped_server import MIB, Piped, piped
from tests.rigs.conditions import until

INTERNAL_ERROR = -32603


def outcome(answer: dict[str, Any]) -> str:
    """Return the text of a result that is marked as an error."""
    assert answer["result"]["isError"] is True, answer
    return str(answer["result"]["content"][0]["text"])


def ends_in_order(server: Piped) -> list[Any]:
    """End the input; return what is still said, after a clean exit."""
    server.end_input()
    rest = server.rest()
    assert server.wait() == 0, server.log()
    return rest


# Never returning

NEVER = {
    "a coroutine": ("forever", {}),
    "a coroutine that swallows its cancellation": ("swallows", {"then": "never"}),
    "a thread": ("blocked", {}),
}


@pytest.mark.parametrize("what", NEVER)
@pytest.mark.parametrize("how", ["EOF", "SIGTERM", "SIGINT"])
def test_a_handler_that_never_returns_does_not_keep_the_server_from_exiting_with_0(
    what: str, how: str, tmp_path: Path
) -> None:
    tool, arguments = NEVER[what]
    path = tmp_path / "never"
    if tool != "forever":
        arguments = {**arguments, "path": str(path)}
    with piped("server.py", '{"grace": 0.1}') as server:
        id = server.call(tool, **arguments)
        if tool == "forever":
            assert server.serves()
        else:
            until(Path(f"{path}.begun").exists)
        if how == "EOF":
            server.end_input()
        else:
            os.kill(server.pid, getattr(signal, how))
        rest = server.rest()
        if how == "EOF":
            # The client has closed, and waits for nothing.
            assert rest == []
            assert (
                "1 requests unfinished after 1.5 s are not answered: 1 'tools/call'" in server.log()
            )
        else:
            assert [each["id"] for each in rest] == [id]
            assert rest[0]["error"]["code"] == INTERNAL_ERROR, rest
        assert server.wait() == 0
        assert "lifespan left" in server.log()


def test_as_many_threads_as_there_are_may_hang_and_the_server_still_exits(tmp_path: Path) -> None:
    with piped("server.py", '{"grace": 0.1, "threads": 64}') as server:
        ids = {server.call("blocked", path=str(tmp_path / f"never{n}")) for n in range(64)}
        until(lambda: len(list(tmp_path.iterdir())) == 64)
        os.kill(server.pid, signal.SIGTERM)
        rest = server.rest()
        assert {each["id"] for each in rest} == ids
        assert server.wait() == 0


@pytest.mark.parametrize("tool", ["announce", "swallows"])
def test_requests_that_wait_behind_one_that_never_returns_are_answered_too(
    tool: str, tmp_path: Path
) -> None:
    path = tmp_path / "never"
    arguments = {"path": str(path)} if tool == "announce" else {"path": str(path), "then": ""}
    with piped("server.py", '{"grace": 0.1, "in_flight": 1}') as server:
        ids = [server.call(tool, **arguments)]
        ids += [server.call("echo", text="waits") for _ in range(3)]
        # Answered without waiting: by then the others were read.
        server.write(b"garbage\n")
        assert server.read()["error"]["code"] == -32700
        os.kill(server.pid, signal.SIGTERM)
        rest = server.rest()
        assert [each["id"] for each in rest] == ids
        assert all(each["error"]["code"] == INTERNAL_ERROR for each in rest)
        assert server.wait() == 0


def test_call_cancelled_in_the_same_write_frees_its_slot() -> None:
    with piped("server.py", '{"in_flight": 2, "in_flight_overall": 2}') as server:
        lines = b""
        for n in range(10):
            call = server.request("tools/call", n, name="echo", arguments={"text": "no"})
            cancel = {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": n},
            }
            lines += json.dumps(call).encode() + b"\n" + json.dumps(cancel).encode() + b"\n"
        server.write(lines)
        assert server.serves()
        assert ends_in_order(server) == []


def test_signal_together_with_a_call_leaves_no_call_unanswered() -> None:
    with piped() as server:
        assert server.serves()
        # Both are there when it goes on.
        os.kill(server.pid, signal.SIGSTOP)
        ids = [server.call("forever") for _ in range(3)]
        os.kill(server.pid, signal.SIGTERM)
        os.kill(server.pid, signal.SIGTERM)
        os.kill(server.pid, signal.SIGINT)
        os.kill(server.pid, signal.SIGCONT)
        rest = server.rest()
        # What was not read before the end is not owed.
        assert [each["id"] for each in rest] in ([], ids)
        assert all(each["error"]["code"] == INTERNAL_ERROR for each in rest)
        assert server.wait() == 0


def test_client_request_after_end_of_input_raises_connection_lost(tmp_path: Path) -> None:
    # The grace is so long that only being told can end it.
    with piped("server.py", '{"grace": 3600}') as server:
        server.handshake()
        server.send(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "asks", "arguments": {}},
            }
        )
        assert server.read()["method"] == "ping"
        server.end_input()
        assert outcome(server.answer(1))
        assert server.wait() == 0
        assert "asking ended: ConnectionLost" in server.log()


# Raising

RAISED = [
    "SystemExit",
    "KeyboardInterrupt",
    "GeneratorExit",
    "CancelledError",
    "StopIteration",
    "StopAsyncIteration",
    "TimeoutError",
    "MemoryError",
    "ExceptionGroup",
    "Stubborn",
    "ValueError",
]


@pytest.mark.parametrize("tool", ["raises", "raises_on_a_thread", "raises_inline"])
def test_whatever_a_tool_raises_is_answered_once_and_the_server_lives(tool: str) -> None:
    with piped("server.py", '{"in_flight": 3}') as server:
        for what in RAISED:
            text = outcome(server.answer(server.call(tool, what=what)))
            assert tool in text, what
            assert what not in text
            assert "stubborn" not in text
            assert server.serves(), what
        # More than may be at work at a time: none of them is still counted.
        assert len(RAISED) > 3
        assert ends_in_order(server) == []


def test_whatever_a_resource_or_prompt_raises_is_an_error_with_a_fixed_text() -> None:
    with piped() as server:
        for what in RAISED:
            server.send(server.request("resources/read", 1, uri=f"raises://{what}"))
            server.send(
                server.request("prompts/get", 2, name="raising_prompt", arguments={"what": what})
            )
            for _ in range(2):
                answer = server.read()
                assert answer["error"]["code"] == INTERNAL_ERROR, (what, answer)
                assert what not in json.dumps(answer["error"])
            assert server.serves(), what
        assert ends_in_order(server) == []


def test_a_recursion_without_end_is_answered() -> None:
    with piped() as server:
        assert "recurses" in outcome(server.answer(server.call("recurses")))
        assert server.serves()
        assert len(server.log()) < 100_000


# Cancelling


def test_a_handler_that_cancels_itself_is_answered_once() -> None:
    with piped() as server:
        assert outcome(server.answer(server.call("cancels_itself")))
        answer = server.answer(server.call("cancels_itself_and_returns"))
        assert answer["result"]["content"][0]["text"] == "returned"
        assert server.serves()
        assert ends_in_order(server) == []


def test_a_cancelled_handler_that_goes_on_is_not_answered(tmp_path: Path) -> None:
    path = tmp_path / "go"
    with piped() as server:
        id = server.call("swallows", path=str(path), then="too late")
        until(Path(f"{path}.begun").exists)
        server.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
        )
        until(Path(f"{path}.swallowed").exists)
        assert server.serves()
        path.touch()
        until(Path(f"{path}.done").exists)
        assert server.serves()
        assert ends_in_order(server) == []


def test_a_cancelled_handler_runs_its_cleanup_and_is_not_answered(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with piped() as server:
        id = server.call("announce", path=str(marker))
        until(lambda: marker.exists() and marker.read_text() == "begun")
        server.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
        )
        until(lambda: marker.read_text() == "cleaned up")
        assert server.serves()
        assert ends_in_order(server) == []


def test_a_call_that_is_cancelled_while_it_waits_for_a_thread_is_never_begun(
    tmp_path: Path,
) -> None:
    gate, never = tmp_path / "gate", tmp_path / "never"
    with piped("server.py", '{"threads": 1}') as server:
        first = server.call("blocked", path=str(gate))
        until(Path(f"{gate}.begun").exists)
        second = server.call("touch", path=str(never))
        third = server.call("on_a_thread", text="third")
        server.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": second}}
        )
        assert server.serves()
        gate.touch()
        assert server.answer(first)["result"]
        assert server.answer(third)["result"]
        assert not never.exists()
        assert ends_in_order(server) == []


# Returning

RETURNED = [
    "an object",
    "a function",
    "not a number",
    "infinity",
    "a cyclic list",
    "a cyclic dict",
    "a deep list",
    "a lone surrogate",
    "bytes in a dict",
    "a generator",
    "an exception",
]


def test_whatever_a_tool_returns_is_answered_and_the_server_lives() -> None:
    with piped() as server:
        for what in RETURNED:
            answer = server.answer(server.call("returns", what=what))
            assert "error" in answer or answer["result"]["isError"] is True, (what, answer)
            assert server.serves(), what
        server.answer(server.call("returns", what="keys of two types"))
        assert "invalid result" in outcome(server.answer(server.call("promises_a_number")))
        assert ends_in_order(server) == []


def test_result_of_50_mb_is_delivered() -> None:
    with piped() as server:
        id = server.call("large", size=50 * 1000 * 1000)
        answer = server.answer(id)
        assert len(answer["result"]["content"][0]["text"]) == 50 * 1000 * 1000
        assert server.serves()


# Blocking the loop


def test_a_handler_that_blocks_the_loop_is_named_in_the_log_and_the_rest_is_served() -> None:
    with piped("server.py", '{"stall": 0.05}') as server:
        id = server.call("stall", seconds=0.5)
        assert server.serves()
        server.has_logged("the event loop was blocked for 0.05 s; it is in stall() (server.py:")
        assert server.log().count("the event loop was blocked") == 1
        assert ends_in_order(server) == []
        assert id


# Saying too much

FLOODS = ["floods", "floods_from_a_thread", "floods_and_awaits"]


@pytest.mark.parametrize("tool", FLOODS)
def test_a_flood_of_progress_to_a_client_that_does_not_read_stays_bounded(
    tool: str, tmp_path: Path
) -> None:
    done = tmp_path / "done"
    with piped() as server:
        assert server.serves()
        before = server.resident("VmHWM")
        # 200 MB of it.
        id = "flood"
        arguments = {"times": 20_000, "size": 10_000, "path": str(done)}
        meta = {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}
        server.send(server.request("tools/call", id, name=tool, arguments=arguments, _meta=meta))
        if tool != "floods_and_awaits":
            until(done.exists)
            assert server.resident("VmHWM") - before < 64 * MIB
        # Now it is read: whoever awaited goes on, and the result comes last.
        last, count = 0, 0
        while "method" in (message := server.read()):
            if message["method"] == "notifications/progress":
                assert message["params"]["progress"] > last
                last, count = message["params"]["progress"], count + 1
        assert message["id"] == id
        assert count
        if tool == "floods_and_awaits":
            assert count == 20_000
        assert server.resident("VmHWM") - before < 64 * MIB
        assert server.serves()


@pytest.mark.full
def test_many_small_reports_from_a_thread_stay_bounded(tmp_path: Path) -> None:
    done = tmp_path / "done"
    with piped() as server:
        assert server.serves()
        before = server.resident("VmHWM")
        arguments = {"times": 300_000, "size": 0, "path": str(done)}
        meta = {"progressToken": 1}
        server.send(
            server.request(
                "tools/call", 1, name="floods_from_a_thread", arguments=arguments, _meta=meta
            )
        )
        until(done.exists)
        assert server.answer(1)["result"]
        assert server.resident("VmHWM") - before < 64 * MIB
        assert server.serves()


def test_output_of_a_handler_does_not_reach_the_wire() -> None:
    ways = ["print", "stdout", "original stdout", "descriptor", "child", "read"]
    with piped() as server:
        for how in ways:
            assert server.answer(server.call("prints", how=how))["result"]["content"]
        assert ends_in_order(server) == []
        assert server.log().count("not a message") == len(ways) - 1


@pytest.mark.parametrize("how", ["close", "close descriptor"])
def test_a_handler_that_closes_stdout_harms_neither_the_wire_nor_the_log(how: str) -> None:
    with piped() as server:
        assert server.answer(server.call("prints", how=how))["result"]["content"]
        assert server.serves()
        # This one is logged.
        assert outcome(server.answer(server.call("raises", what="ValueError")))
        assert outcome(server.answer(server.call("raises_inline", what="ValueError")))
        server.call("echo")  # and so is this
        server.write(b"garbage\n")
        assert server.serves()
        assert ends_in_order(server) == []


# Going on after the answer


def test_a_task_that_outlives_its_call_is_cancelled_at_the_end(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with piped() as server:
        assert server.answer(server.call("leaves_a_task", path=str(marker)))["result"]
        assert server.serves()
        assert not marker.exists()
        assert ends_in_order(server) == []
        assert marker.read_text() == "cancelled"


def test_a_task_that_refuses_to_end_does_not_hold_up_the_exit() -> None:
    with piped() as server:
        assert server.answer(server.call("leaves_a_stubborn_task"))["result"]
        assert server.serves()
        assert ends_in_order(server) == []
        assert "s after it was cancelled, exiting without it" in server.log()


def test_progress_and_log_after_the_reply_are_dropped() -> None:
    with piped() as server:
        meta = {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}
        server.send(
            server.request("tools/call", 1, name="keeps_its_context", arguments={}, _meta=meta)
        )
        assert server.read()["id"] == 1
        server.call("uses_the_kept_context", id=2)
        answer = server.read()
        assert answer["id"] == 2
        assert "keeps_its_context" in answer["result"]["content"][0]["text"]
        assert ends_in_order(server) == []


def test_a_thread_may_report_even_after_the_server_has_ended(tmp_path: Path) -> None:
    path, reports = tmp_path / "stop", tmp_path / "stop.reports"
    with piped() as server:
        arguments = {"path": str(path)}
        meta = {"progressToken": 1}
        server.send(
            server.request(
                "tools/call",
                1,
                name="uses_its_context_in_a_thread_that_stays",
                arguments=arguments,
                _meta=meta,
            )
        )
        assert server.answer(1)["result"]
        server.end_input()
        server.has_logged("lifespan left")
        before = reports.read_text()
        # Its thread reports on, and goes when it is told to.
        until(lambda: reports.read_text() != before)
        path.touch()
        assert server.wait() == 0
        assert not Path(f"{path}.raised").exists(), Path(f"{path}.raised").read_text()

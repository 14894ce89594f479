"""SIGTERM and SIGINT, whatever standard input is and whatever goes on: exit status 0."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import tty
from pathlib import Path

import pytest

from tests.faults.piped_server import piped
from tests.rigs.conditions import until

SIGNALS = [signal.SIGTERM, signal.SIGINT]
INTERNAL_ERROR = -32603


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_an_idle_server_whose_input_is_open(number: int) -> None:
    with piped() as server:
        server.has_logged("started")
        os.kill(server.pid, number)
        assert server.wait() == 0
        assert server.rest() == []
        assert "lifespan left" in server.log()
        assert "Traceback" not in server.log()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_lets_work_finish_and_answers_it(number: int, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with piped("server.py", '{"grace": 3600}') as server:
        first = server.call("until_file", path=str(gate))
        assert server.serves()
        os.kill(server.pid, number)
        # The signal was taken note of when a new call is refused.
        until(lambda: "error" in server.answer(server.call("echo", text="too late")))
        gate.touch()
        rest = server.rest()
        assert [each["id"] for each in rest] == [first]
        assert rest[0]["result"]["content"][0]["text"] == str(gate)
        assert server.wait() == 0


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_a_second_signal_cancels_at_once(first: int, second: int, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    # Nothing but the second signal can end this in time.
    with piped("server.py", '{"grace": 3600}') as server:
        id = server.call("announce", path=str(marker))
        until(lambda: marker.exists() and marker.read_text() == "begun")
        os.kill(server.pid, first)
        until(lambda: "error" in server.answer(server.call("echo", text="too late")))
        os.kill(server.pid, second)
        rest = server.rest()
        assert [each["id"] for each in rest] == [id]
        assert rest[0]["error"]["code"] == INTERNAL_ERROR
        assert server.wait() == 0
        assert marker.read_text() == "cleaned up"


def test_two_signals_at_once_end_the_server_in_order(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with piped("server.py", '{"grace": 3600}') as server:
        id = server.call("announce", path=str(marker))
        until(lambda: marker.exists() and marker.read_text() == "begun")
        for number in SIGNALS:
            os.kill(server.pid, number)
        assert [each["id"] for each in server.rest()] == [id]
        assert server.wait() == 0
        assert marker.read_text() == "cleaned up"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_the_lifespan_is_entered_ends_the_server(
    number: int, tmp_path: Path
) -> None:
    environment = {**os.environ, "SLOW_START": str(tmp_path / "never")}
    with piped(env=environment) as server:
        server.has_logged("starting")
        os.kill(server.pid, number)
        assert server.wait() == 0
        assert server.rest() == []
        assert "Traceback" not in server.log()


def test_a_signal_while_a_large_answer_is_written_does_not_cut_it() -> None:
    size = 20_000_000
    with piped() as server:
        id = server.call("large", size=size)
        # It fills the pipe, and we do not read yet.
        until(server.speaks)
        os.kill(server.pid, signal.SIGTERM)
        (answer,) = server.rest()
        assert answer["id"] == id
        assert len(answer["result"]["content"][0]["text"]) == size
        assert server.wait() == 0


def test_a_signal_while_the_loop_is_blocked_is_heeded_after_it() -> None:
    with piped("server.py", '{"grace": 3600, "stall": 0.05}') as server:
        id = server.call("stall", seconds=0.5)
        server.has_logged("the event loop was blocked")
        os.kill(server.pid, signal.SIGTERM)
        assert [each["id"] for each in server.rest()] == [id]
        assert server.wait() == 0


# After the end of input


def test_calls_finished_within_linger_are_answered_and_the_rest_are_not(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    with piped("server.py", '{"linger": 3600}') as server:
        soon = server.call("until_file", path=str(gate))
        for _ in range(2):
            server.call("forever")
        server.send(server.request("resources/read", "read", uri="raises://ValueError"))
        assert server.answer("read")["error"]
        server.end_input()
        gate.touch()
        assert server.read()["id"] == soon
        # A signal ends the wait; what was not finished before it is not answered either.
        os.kill(server.pid, signal.SIGTERM)
        assert server.rest() == []
        assert server.wait() == 0
        assert "2 requests unfinished after 0 s are not answered: 2 'tools/call'" in server.log()


def test_after_linger_nothing_is_answered_any_more(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with piped("server.py", '{"linger": 0.1}') as server:
        server.handshake()
        task = {"name": "long_work", "arguments": {"path": str(tmp_path / "never")}, "task": {}}
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": task})
        id = server.answer(1)["result"]["task"]["taskId"]
        result = {"jsonrpc": "2.0", "id": 2, "method": "tasks/result", "params": {"taskId": id}}
        server.send(result)
        server.call("announce", path=str(marker))
        until(lambda: marker.exists() and marker.read_text() == "begun")
        server.end_input()
        assert server.rest() == []
        assert server.wait() == 0
        assert marker.read_text() == "cleaned up"
        log = server.log()
        assert "2 requests unfinished after 0.1 s are not answered: " in log
        assert "1 'tools/call'" in log
        assert "1 'tasks/result'" in log


def test_a_signal_before_the_end_of_input_answers_what_is_not_finished() -> None:
    with piped("server.py", '{"grace": 0.2}') as server:
        id = server.call("forever")
        assert server.serves()
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: "error" in server.answer(server.call("echo", text="too late")))
        server.end_input()
        (answer,) = server.rest()
        assert (answer["id"], answer["error"]["code"]) == (id, INTERNAL_ERROR)
        assert server.wait() == 0


# Other kinds of standard input


@pytest.mark.parametrize("number", SIGNALS)
def test_a_server_on_a_terminal_serves_and_ends_by_a_signal(number: int) -> None:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    try:
        with piped(stdin=theirs) as server:
            request = server.request("tools/call", 1, name="echo", arguments={"text": "typed"})
            os.write(ours, json.dumps(request).encode() + b"\n")
            assert server.answer(1)["result"]["content"][0]["text"] == "typed"
            os.kill(server.pid, number)
            assert server.wait() == 0
            assert server.rest() == []
            # The terminal is as it was.
            assert os.get_blocking(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_server_on_a_terminal_ends_when_the_terminal_does() -> None:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    is_open = True
    try:
        with piped(stdin=theirs) as server:
            server.has_logged("started")
            os.close(theirs)
            os.close(ours)
            is_open = False
            assert server.wait() == 0
    finally:
        if is_open:
            os.close(ours)
            os.close(theirs)


def test_a_server_with_a_file_for_input_answers_all_of_it_and_exits_with_0(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    with piped(stdin=subprocess.DEVNULL) as server:
        lines = [
            json.dumps(server.request("tools/call", n, name="echo", arguments={"text": str(n)}))
            for n in range(200)
        ]
    # The last line without its end.
    requests.write_text("\n".join(lines))
    with requests.open("rb") as file, piped(stdin=file) as server:
        answers = server.rest()
        assert sorted(each["id"] for each in answers) == list(range(200))
        assert all(each["result"]["content"][0]["text"] == str(each["id"]) for each in answers)
        assert server.wait() == 0


def test_a_file_for_output_holds_all_answers(tmp_path: Path) -> None:
    with (tmp_path / "answers").open("wb") as file, piped(stdout=file) as server:
        for n in range(100):
            server.call("echo", id=n, text="to a file")
        server.end_input()
        assert server.wait() == 0
    lines = (tmp_path / "answers").read_text().splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == list(range(100))


def test_a_server_on_dev_null_exits_with_0() -> None:
    with piped(stdin=subprocess.DEVNULL) as server:
        assert server.rest() == []
        assert server.wait() == 0


def test_a_server_without_standard_input_says_so_and_fails() -> None:
    with piped(preexec_fn=lambda: os.close(0)) as server:
        assert server.wait() != 0
        assert server.rest() == []
        assert "standard input or output cannot be used" in server.log()


@pytest.mark.parametrize("is_open", [True, False])
def test_a_server_whose_output_is_full_says_so_and_fails(is_open: bool) -> None:
    with open("/dev/full", "wb") as full, piped(stdout=full) as server:
        server.call("echo", text="lost")
        if not is_open:
            server.end_input()
        assert server.wait() == 1
        assert "faults: writing failed: No space left on device" in server.log()
        assert "lifespan left" in server.log()
        assert "Traceback" not in server.log()

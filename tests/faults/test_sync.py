"""Scripts that block: Ctrl-C wherever they are, and what they forget; no server is left behind.

A terminal sends Ctrl-C to all of its group. The servers lead sessions of their own, so only the
script gets it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.piped_server import Piped, address, piped
from tests.rigs.conditions import WAIT_S, until
from tests.rigs.leaks import children, nothing_left
from trunkline import ConnectionLost
from trunkline.client.sync.client import SyncClient

NOTHING_LEFT = "0 children, 1 threads"


@contextmanager
def script(*words: str) -> Iterator[Piped]:
    """Run the script in a session of its own; when it has ended, no server may be left."""
    with piped("sync_script.py", *words, start_new_session=True) as running:
        servers: set[int] = set()
        until(lambda: servers.update(children(running.pid)) or servers, running.log)
        yield running
        running.wait()
        # At once: the script itself has waited for them, and nobody else collects them.
        assert not [pid for pid in servers if Path(f"/proc/{pid}").exists()]


def interrupt(running: Piped) -> None:
    os.killpg(running.pid, signal.SIGINT)


def expect_lines(running: Piped, *lines: str) -> None:
    for line in lines:
        assert running.line().decode() == line, running.log()


def begun(marker: Path) -> None:
    until(lambda: marker.exists() and marker.read_text() == "begun")


def test_a_client_that_is_closed_leaves_no_thread_child_or_descriptor() -> None:
    with nothing_left():
        for _ in range(3):
            with SyncClient(address("server.py")) as one, SyncClient(address("server.py")) as two:
                assert one.call_tool("echo", {"text": "one"}).text == "one"
                assert two.submit_tool("quick", {"number": 2}).result(WAIT_S).text == "2"


def test_waiting_threads_get_connection_lost_when_the_server_is_killed() -> None:
    others = children()
    with nothing_left(), SyncClient(address("server.py")) as client, ThreadPoolExecutor(8) as pool:
        (server,) = children() - others
        waiting = [pool.submit(client.call_tool, "forever") for _ in range(8)]
        client.call_tool("echo", {"text": "some of them have begun"})
        os.kill(server, signal.SIGKILL)
        for each in waiting:
            error = each.exception(WAIT_S)
            assert isinstance(error, ConnectionLost)
            assert error.exit_status == -signal.SIGKILL
        assert not client.is_connected
        client.connect()
        assert client.call_tool("echo", {"text": "again"}).text == "again"


@pytest.mark.parametrize("is_deaf", [False, True], ids=["just started", "deaf"])
def test_ctrl_c_while_connecting_leaves_no_child(is_deaf: bool, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with script("connecting", "0.1", str(marker)) as running:
        if is_deaf:
            begun(marker)
        interrupt(running)
        expect_lines(running, "interrupt 1", NOTHING_LEFT)
        assert running.wait() == 0
        assert running.log() == ""


def test_a_second_ctrl_c_while_connecting_gives_up_at_once_and_the_exit_cleans_up(
    tmp_path: Path,
) -> None:
    marker = tmp_path / "marker"
    with script("connecting", "1.5", str(marker)) as running:
        begun(marker)
        interrupt(running)
        expect_lines(running, "interrupt 1")
        interrupt(running)
        expect_lines(running, "interrupt 2", "gave up")
        assert running.wait() == 0
        assert running.log() == ""


def test_ctrl_c_while_calling_cancels_the_call_and_leaves_the_client_usable(
    tmp_path: Path,
) -> None:
    marker = tmp_path / "marker"
    with script("calling", str(marker)) as running:
        begun(marker)
        interrupt(running)
        expect_lines(running, "interrupt 1", "cleaned up", "still usable", NOTHING_LEFT)
        assert running.wait() == 0
        assert running.log() == ""


def test_ctrl_c_inside_of_asyncio_run_takes_two(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with script("inside_of_a_loop", "asyncio.run", str(marker)) as running:
        begun(marker)
        interrupt(running)
        expect_lines(running, "kept")
        interrupt(running)
        expect_lines(running, "interrupted", "cleaned up", "still usable", "the loop had kept one")
        expect_lines(running, NOTHING_LEFT)
        assert running.wait() == 0
        assert running.log() == ""


def test_ctrl_c_inside_of_a_loop_that_leaves_it_alone_takes_one(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with script("inside_of_a_loop", "run_forever", str(marker)) as running:
        begun(marker)
        interrupt(running)
        expect_lines(running, "interrupted", "cleaned up", "still usable", NOTHING_LEFT)
        assert running.wait() == 0
        assert running.log() == ""


def test_ctrl_c_wherever_it_comes_leaves_no_thread() -> None:
    with piped("sync_script.py", "many", "200", start_new_session=True) as running:
        expect_lines(running, "interrupted", "still usable: 2", NOTHING_LEFT)
        assert running.wait() == 0
        # Python itself tells of one that comes while something is collected.
        assert "_bootstrap" not in running.log()


def test_ctrl_c_while_waiting_for_a_call_in_hand_cancels_it(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with script("waiting", str(marker)) as running:
        expect_lines(running, "waiting")
        begun(marker)
        interrupt(running)
        expect_lines(running, "interrupt 1", "cleaned up", "cancelled: True", NOTHING_LEFT)
        assert running.wait() == 0


def test_ctrl_c_while_listening_leaves_the_stream_and_the_client_usable() -> None:
    with script("listening", "raises://nothing") as running:
        expect_lines(running, "listening")
        interrupt(running)
        expect_lines(running, "interrupt 1", "still usable", NOTHING_LEFT)
        assert running.wait() == 0
        assert running.log() == ""


def test_ctrl_c_while_closing_finishes_closing(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with script("closing", "0.5", str(marker)) as running:
        begun(marker)
        interrupt(running)
        expect_lines(running, "interrupt 1", NOTHING_LEFT)
        assert running.wait() == 0
        assert running.log() == ""


def test_a_second_ctrl_c_while_closing_gives_up_at_once_and_the_exit_cleans_up(
    tmp_path: Path,
) -> None:
    marker = tmp_path / "marker"
    with script("closing", "1.5", str(marker)) as running:
        begun(marker)
        interrupt(running)
        expect_lines(running, "interrupt 1")
        interrupt(running)
        expect_lines(running, "interrupt 2", "gave up")
        assert running.wait() == 0
        assert running.log() == ""


def test_uncaught_ctrl_c_ends_the_script_with_a_short_traceback(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with script("uncaught", str(marker)) as running:
        begun(marker)
        interrupt(running)
        expect_lines(running, "interrupt 1")
        assert running.wait() == -signal.SIGINT
        trace = running.log()
        assert 'client.call_tool("announce"' in trace
        assert trace.rstrip().endswith("KeyboardInterrupt")
        # The script's, the verb, and what waits; nothing of the event loop.
        assert trace.count("Traceback") == 1
        assert "asyncio" not in trace
        assert marker.read_text() == "cleaned up"


@pytest.mark.parametrize(("how", "status"), [("end", 0), ("exit", 3), ("raise", 1)])
def test_a_script_that_forgets_to_close_leaves_no_child(how: str, status: int) -> None:
    with script("forgetting", how) as running:
        expect_lines(running, "connected")
        running.write(b"\n")
        assert running.wait() == status


def test_a_forked_process_has_a_loop_of_its_own_and_leaves_its_parents_alone() -> None:
    with script("forked", "") as running:
        refused = "this client was connected by the process that this one was forked from"
        expect_lines(
            running,
            refused,
            refused,
            "connected: False",
            "a loop of its own",
            f"the child ends with {NOTHING_LEFT}",
            "the parent goes on",
            NOTHING_LEFT,
        )
        assert running.wait() == 0
        assert running.log() == ""

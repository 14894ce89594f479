"""One side is killed in the middle of something; the other side finds out, and cleans up."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.faults.piped_server import address, piped
from tests.rigs.conditions import until, until_async
from tests.rigs.leaks import children, run
from trunkline import Client, ConnectionLost, TransportError


async def connected(client: Client) -> int:
    """Connect; return the process that this has started."""
    before = children()
    await client.connect()
    (pid,) = children() - before
    return pid


def test_all_open_calls_fail_at_once_when_the_server_is_killed() -> None:
    async def script() -> None:
        client = Client(address("server.py"))
        pid = await connected(client)
        calls = [asyncio.create_task(client.call_tool("forever")) for _ in range(100)]
        await client.call_tool("echo", {"text": "all of them have begun"})
        os.kill(pid, signal.SIGKILL)
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(error) for error in ended} == {ConnectionLost}
        for error in ended:
            assert isinstance(error, ConnectionLost)
            assert error.exit_status == -signal.SIGKILL
            # The last lines that it wrote.
            assert error.stderr[-1] == "started"
            assert "SIGKILL" in error.reason
            assert error.method == "tools/call"
        assert not client.is_connected
        with pytest.raises(ConnectionLost):
            await client.call_tool("echo", {"text": "nobody is there"})
        await client.close()

    run(script)


def test_a_client_whose_server_was_killed_can_connect_again() -> None:
    async def script() -> None:
        client = Client(address("server.py"))
        pid = await connected(client)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ConnectionLost):
            await client.call_tool("forever")
        await client.connect()
        assert (await client.call_tool("echo", {"text": "again"})).text == "again"
        await client.close()

    run(script)


def test_a_server_that_is_killed_between_two_calls_is_noticed_without_a_call() -> None:
    async def script() -> None:
        client = Client(address("server.py"))
        os.kill(await connected(client), signal.SIGKILL)
        await until_async(lambda: not client.is_connected)
        await client.close()

    run(script)


def test_a_server_that_is_killed_in_the_middle_of_an_answer_loses_the_connection() -> None:
    half = (
        "import os, sys, signal; sys.stdin.readline();"
        'os.write(1, b\'{"jsonrpc":"2.0","id":1,"resu\'); os.kill(os.getpid(), signal.SIGKILL)'
    )

    async def script() -> None:
        with pytest.raises(TransportError) as raised:
            await Client([sys.executable, "-c", half]).connect()
        assert raised.value.exit_status == -signal.SIGKILL

    run(script)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_when_the_client_is_killed_the_server_cancels_its_handlers_and_exits_with_0(
    how: int, tmp_path: Path
) -> None:
    marker, status = tmp_path / "marker", tmp_path / "status"
    # A shell of its own reports how the server exits, after its parent is gone.
    with piped("doomed_client.py", str(marker), str(status)) as client:
        until(lambda: marker.exists() and marker.read_text() == "begun", client.log)
        os.kill(client.pid, how)
        client.wait()
        until(lambda: marker.read_text() == "cleaned up", "the handler was not cancelled")
        until(lambda: status.exists() and status.read_text().strip(), "the server does not exit")
        assert status.read_text().strip() == "0"


def test_when_the_client_stops_reading_and_writing_handlers_are_cancelled(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with piped("server.py", '{"grace": 0.2}') as server:
        server.call("announce", path=str(marker))
        until(lambda: marker.exists() and marker.read_text() == "begun")
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.end_input()
        assert server.wait() == 0
        assert marker.read_text() == "cleaned up"
        assert "lifespan left" in server.log()


def test_server_exits_with_0_at_its_next_reply_after_stdout_was_closed() -> None:
    with piped() as server:
        assert server.serves()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.call("echo", text="nobody hears this")
        # Its input is still open.
        assert server.wait() == 0
        server.has_logged("the client stopped reading")

"""Servers that misbehave, as a client meets them, and clients that are closed at a bad moment."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.faults.piped_server import MIB, address, command
from tests.rigs.conditions import WAIT_S, until_async
from tests.rigs.leaks import children, run
from tests.rigs.messages import HANDSHAKE
from trunkline import (
    Client,
    ConnectionLost,
    PeerError,
    RequestAborted,
    RequestTimeout,
    Stdio,
    TransportError,
    TrunklineError,
)
from trunkline.jsonrpc import Policy

OTHERS: set[int] = set()


@pytest.fixture(autouse=True)
def _children_of_other_tests() -> None:
    """Take note of processes that were there before: other suites keep servers running."""
    OTHERS.clear()
    OTHERS.update(children())


def our_children() -> set[int]:
    return children() - OTHERS


def peer(*args: str, **options: Any) -> Stdio:
    return address("peer.py", *args, **options)


class Noted:
    """What a scripted server has noted of what came in."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        self.lines.append(line)

    @property
    def messages(self) -> list[Any]:
        return [json.loads(line) for line in self.lines if line.startswith(("{", '"'))]

    def cancels(self) -> list[Any]:
        return [
            each["params"]["requestId"]
            for each in self.messages
            if isinstance(each, dict) and each.get("method") == "notifications/cancelled"
        ]

    async def waits(self, count: int = 1) -> Any:
        """Wait until so many calls have reached the server; return the id of the last."""
        await until_async(lambda: sum("waits" in line for line in self.lines) >= count)
        return [each["waits"] for each in self.messages if "waits" in each][-1]


# Time


def test_a_call_that_is_never_answered_times_out_and_is_cancelled() -> None:
    async def script() -> None:
        noted = Noted()
        async with Client(peer("never answers", on_stderr=noted)) as client:
            with pytest.raises(RequestTimeout) as raised:
                await client.call_tool("echo", timeout=0.05)
            assert raised.value.method == "tools/call"
            id = await noted.waits()
            await until_async(lambda: noted.cancels() == [id])
            assert client.is_connected

    run(script)


def test_a_call_whose_task_is_cancelled_is_cancelled_at_the_server() -> None:
    async def script() -> None:
        noted = Noted()
        async with Client(peer("never answers", on_stderr=noted)) as client:
            call = asyncio.create_task(client.call_tool("echo"))
            id = await noted.waits()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until_async(lambda: noted.cancels() == [id])
            # So is one that a timeout of the caller's ends, and one that was submitted.
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.call_tool("echo")
            await until_async(lambda: len(noted.cancels()) == 2)
            submitted = client.submit_tool("echo")
            await noted.waits(3)
            submitted.cancel()
            await until_async(lambda: len(noted.cancels()) == 3)

    run(script)


# Connecting


@pytest.mark.parametrize("revision", [None, HANDSHAKE, "2026-07-28"])
@pytest.mark.parametrize("how", ["silent", "deaf", "garbage forever"])
def test_connecting_to_a_server_that_never_answers_is_bounded(
    how: str, revision: str | None
) -> None:
    async def script() -> None:
        client = Client(
            peer(how, grace=0.2), revision=revision, connect_timeout=0.5, probe_timeout=0.1
        )
        with pytest.raises(RequestTimeout):
            await client.connect()
        assert not client.is_connected
        assert not our_children()
        with pytest.raises(RequestTimeout):
            await client.connect()

    run(script)


def test_initialize_is_not_cancelled_when_it_is_never_answered() -> None:
    async def script() -> None:
        noted = Noted()
        address = peer("no answer to initialize", on_stderr=noted)
        client = Client(address, revision=HANDSHAKE, connect_timeout=0.5)
        with pytest.raises(RequestTimeout):
            await client.connect()
        assert noted.cancels() == []

    run(script)


@pytest.mark.parametrize("revision", [None, HANDSHAKE, "2026-07-28"])
@pytest.mark.parametrize("how", ["exits", "exits after a line"])
@pytest.mark.parametrize("status", [0, 3])
def test_server_exit_during_connect_is_raised_with_status_and_stderr(
    how: str, status: int, revision: str | None
) -> None:
    async def script() -> None:
        with pytest.raises(TransportError) as raised:
            await Client(peer(how, str(status)), revision=revision).connect()
        assert raised.value.exit_status == status
        assert raised.value.stderr == ("last words",)
        assert not isinstance(raised.value, BaseExceptionGroup)

    run(script)


def test_a_server_that_closes_its_output_is_lost_though_it_runs() -> None:
    async def script() -> None:
        with pytest.raises(TransportError):
            await Client(peer("closes its output", grace=0.1)).connect()

    run(script)


@pytest.mark.parametrize(
    "target",
    [
        ["/no/such/command"],
        ["no-such-command-anywhere"],
        ["/dev/null"],
        ["/"],
        [sys.executable, "/no/such/script.py"],
        Stdio(sys.executable, cwd="/no/such/directory"),
        Stdio("a\0b"),
    ],
)
def test_a_command_that_cannot_be_started_is_one_transport_error(target: Any) -> None:
    async def script() -> None:
        client = Client(target)
        for _ in range(2):
            with pytest.raises(TransportError) as raised:
                await client.connect()
            assert type(raised.value) is TransportError
            assert str(raised.value)
        await client.close()

    run(script)


def test_nothing_that_a_client_raises_is_a_group() -> None:
    failures: list[Callable[[], Awaitable[object]]] = [
        lambda: Client(["/no/such/command"]).connect(),
        lambda: Client(peer("exits", "1")).connect(),
        lambda: Client(peer("silent", grace=0.1), connect_timeout=0.2).connect(),
        lambda: in_a_call(peer("normal"), "exit", {"status": 4}),
        lambda: in_a_call(peer("never answers"), "echo", {}),
        lambda: in_a_call(peer("faulty", "both"), "faulty", {}),
    ]

    async def in_a_call(address: Stdio, tool: str, arguments: dict[str, Any]) -> None:
        async with Client(address) as client, asyncio.TaskGroup() as group:
            # Even a group around calls sees but one exception.
            group.create_task(client.call_tool(tool, arguments, timeout=0.2))

    async def script() -> None:
        for fail in failures:
            with pytest.raises((TrunklineError, ExceptionGroup)) as raised:
                await fail()
            error = raised.value
            if isinstance(error, ExceptionGroup):  # the TaskGroup of this test
                (error,) = error.exceptions
            assert isinstance(error, TrunklineError)
            assert not isinstance(error, BaseExceptionGroup)

    run(script)


# While connected


def test_server_exit_during_a_call_is_raised_with_status_and_stderr() -> None:
    async def script() -> None:
        async with Client(peer("normal")) as client:
            with pytest.raises(ConnectionLost) as raised:
                await client.call_tool("exit", {"status": 5})
            assert raised.value.exit_status == 5
            assert raised.value.stderr[-1] == "last words"

    run(script)


def test_garbage_on_the_output_of_a_server_harms_no_call() -> None:
    async def script() -> None:
        async with Client(peer("garbage first"), probe_timeout=0.2) as client:
            for _ in range(3):
                await client.call_tool("garbage")
                assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    run(script)


def test_an_answer_over_the_limit_ends_its_call_and_no_other() -> None:
    async def script() -> None:
        async with Client(peer("normal")) as client:
            with pytest.raises(TrunklineError) as raised:
                await client.call_tool("large", {"size": 17 * MIB})
            assert not isinstance(raised.value, RequestAborted)
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    run(script)


def test_client_with_exhausted_ids_reconnects_silently() -> None:
    async def script() -> None:
        noted = Noted()
        policy = Policy().replace(max_id=20)
        async with Client(peer("normal", on_stderr=noted), policy=policy) as client:
            pids = set()
            waiting = asyncio.create_task(client.call_tool("wait"))
            for _ in range(50):
                pids.add((await client.call_tool("pid")).text)
            assert len(pids) in (3, 4)
            # The first server is still there: somebody waits for it.
            await until_async(lambda: len(our_children()) == 2)
            assert not waiting.done()
            waiting.cancel()
            await asyncio.wait([waiting])
            await until_async(lambda: len(our_children()) == 1)
            calls = [client.call_tool("echo", {"text": str(n)}) for n in range(15)]
            texts = [result.text for result in await asyncio.gather(*calls)]
            assert texts == [str(n) for n in range(15)]

    run(script)


# Closing


def test_close_during_connect_ends_both() -> None:
    async def script() -> None:
        client = Client(peer("silent", grace=0.1))
        connecting = asyncio.create_task(client.connect())
        await until_async(our_children)
        await client.close()
        with pytest.raises(TrunklineError):
            await connecting
        assert not client.is_connected
        assert not our_children()

    run(script)


def test_cancelling_connect_leaves_nothing() -> None:
    async def script() -> None:
        client = Client(peer("silent", grace=0.1))
        connecting = asyncio.create_task(client.connect())
        await until_async(our_children)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        assert not our_children()
        await client.close()

    run(script)


def test_close_during_a_call_ends_the_call() -> None:
    async def script() -> None:
        noted = Noted()
        client = Client(peer("never answers", on_stderr=noted))
        await client.connect()
        calls = [asyncio.create_task(client.call_tool("echo")) for _ in range(10)]
        await noted.waits(10)
        await client.close()
        for call in calls:
            with pytest.raises(ConnectionLost):
                await call
        assert not our_children()
        with pytest.raises(TrunklineError):
            await client.call_tool("echo")

    run(script)


def test_close_may_be_called_twice_at_once_and_by_other_tasks() -> None:
    async def script() -> None:
        client = Client(peer("normal"))
        await client.connect()
        await asyncio.gather(*(asyncio.create_task(client.close()) for _ in range(5)))
        await client.close()
        assert not our_children()
        # And before there was anything to close.
        await Client(peer("normal")).close()

    run(script)


def test_a_close_that_is_cancelled_goes_on() -> None:
    async def script() -> None:
        client = Client(peer("normal"))
        await client.connect()
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        await client.close()
        await until_async(lambda: not our_children())

    run(script)


def test_close_from_a_callback_ends_the_call_that_goes_on() -> None:
    async def script() -> None:
        async def on_log(_: Any) -> None:
            await client.close()

        client = Client(peer("normal"), on_log=on_log)
        await client.connect()
        with pytest.raises(ConnectionLost):
            await client.call_tool("notifies")
        await until_async(lambda: not our_children())

    run(script)


def test_close_from_a_handler_of_what_the_server_asks() -> None:
    asked = {"messages": [], "maxTokens": 1}

    async def script() -> None:
        closed = asyncio.Event()

        async def on_sample(_: Any) -> Any:
            await client.close()
            closed.set()
            raise RuntimeError("nobody is there to be told")

        client = Client(peer("samples", json.dumps(asked)), revision=HANDSHAKE, on_sample=on_sample)
        await client.connect()
        await asyncio.wait_for(closed.wait(), 10)
        await until_async(lambda: not our_children())
        await client.close()

    run(script)


def test_raising_or_hanging_callback_does_not_delay_calls() -> None:
    async def script() -> None:
        def raises(*_: Any) -> None:
            raise RuntimeError("in a callback")

        async def never(*_: Any) -> None:
            await asyncio.Event().wait()

        for on_log in (raises, never):
            async with Client(peer("normal"), on_log=on_log) as client:
                waiting = asyncio.create_task(client.call_tool("notifies"))
                await asyncio.sleep(0.05)
                assert (await client.call_tool("echo", {"text": "on"})).text == "on"
                waiting.cancel()
                await asyncio.wait([waiting])

    run(script)


def test_a_loop_that_ends_without_a_close_leaves_no_process() -> None:
    async def script() -> None:
        # Whoever forgets to close has an event loop that ends all the same.
        code = """
import asyncio, sys
from trunkline import Client
async def main():
    client = Client(sys.argv[1:])
    await client.connect()
    await client.call_tool("echo", {"text": "x"})
asyncio.run(main())
"""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "ignore", "-c", code, *command("peer.py", "normal")
        )
        async with asyncio.timeout(10):
            assert await process.wait() == 0

    run(script)


def test_error_reply_does_not_end_the_connection() -> None:
    async def script() -> None:
        async with Client(address("server.py")) as client:
            with pytest.raises(PeerError):
                await client.call_tool("no such tool")
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    run(script)


def test_a_server_that_pings_and_does_not_read_does_not_grow_its_client() -> None:
    # Each answer repeats an id of 1000 characters: 40 MB of them.
    most = [0, -1]

    def settled(transport: Any) -> bool:
        most[:] = [max(most[0], transport.backlog), most[0]]
        return most[0] == most[1]

    async def script() -> None:
        noted = Noted()
        target = peer("pings", "40000", "1000", on_stderr=noted, grace=0.1)
        made: list[Any] = []

        class Remembered:
            """An address that lets the test see its transport."""

            def transport(self, policy: Policy) -> Any:
                made.append(target.transport(policy))
                return made[-1]

        async with Client(Remembered(), revision=HANDSHAKE) as client:
            await until_async(lambda: not client.is_connected or '"pinged"' in noted.lines)
            # All of it is read by now, or the connection was ended.
            await until_async(lambda: settled(made[0]))
        assert most[0] < 20 * MIB

    run(script)


# Notifications


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_slow_callbacks_hold_so_many_bytes_of_notifications_and_no_more(kind: str) -> None:
    # 256 MiB of log messages, to a callback that does not return.
    given = command("slow_client.py", kind, "64", "4")
    done = subprocess.run(given, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    said, grown, dropped = done.stdout.split()
    assert said == "logged"
    # 32 MiB wait. A message that is being read is there two or three times.
    assert int(grown) < 128
    assert int(dropped) == 64 - 32 // 4 + 1
    assert done.stderr.count("too slow") == 10

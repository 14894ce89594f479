"""Very many messages, and very large ones: bounded memory, and work that grows with the bytes."""

from __future__ import annotations

import asyncio
import json
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.piped_server import MIB, address, piped
from tests.rigs.conditions import WAIT_S, until_async
from tests.rigs.leaks import run
from tests.rigs.messages import HANDSHAKE
from trunkline import Client
from trunkline.jsonrpc import Limits, Policy

MANY = 100_000


# Very many


NOTIFICATIONS: dict[str, Any] = {
    "progress": {"method": "notifications/progress", "params": {"progressToken": 9, "progress": 1}},
    "cancels": {"method": "notifications/cancelled", "params": {"requestId": "nobody"}},
    "cancels of ever new ids": {"method": "notifications/cancelled", "params": {"requestId": 0}},
    "unknown methods": {"method": "notifications/nonsense", "params": {"text": "x" * 50}},
    "faulty ones": {"method": "notifications/cancelled", "params": {"requestId": []}},
    "replies nobody asked for": {"id": 99, "result": {}},
}


@pytest.mark.full
@pytest.mark.parametrize("what", NOTIFICATIONS)
def test_a_server_takes_100_000_notifications_in_bounded_memory(what: str) -> None:
    message = {"jsonrpc": "2.0", **NOTIFICATIONS[what]}
    line = json.dumps(message).encode() + b"\n"
    with piped() as server:
        server.handshake()
        assert server.serves()
        before = server.resident("VmHWM")
        for n in range(0, MANY, 1000):
            if what == "cancels of ever new ids":
                lines = (
                    line.replace(b'"requestId": 0', b'"requestId": %d' % each)
                    for each in range(n, n + 1000)
                )
                server.write(b"".join(lines))
            else:
                server.write(line * 1000)
        assert server.serves()
        assert server.resident("VmHWM") - before < 20 * MIB
        assert len(server.log()) < 10_000
        server.end_input()
        assert server.rest() == []
        assert server.wait() == 0


@pytest.mark.full
def test_a_client_takes_100_000_notifications_in_bounded_memory() -> None:
    heard = {"log": 0, "other": 0, "changed": 0}

    def count(what: str) -> Callable[..., None]:
        def on(*_: Any) -> None:
            heard[what] += 1

        return on

    async def script() -> None:
        client = Client(
            address("peer.py", "floods", str(MANY), "20"),
            revision=HANDSHAKE,
            on_log=count("log"),
            on_notification=count("other"),
            on_list_changed=count("changed"),
            timeout=WAIT_S,
        )
        tracemalloc.start()
        try:
            await client.connect()
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"
            assert tracemalloc.get_traced_memory()[1] < 10 * MIB
        finally:
            tracemalloc.stop()
        assert heard == {"log": MANY // 5, "other": MANY // 5, "changed": MANY // 5}
        await client.close()

    run(script)


@pytest.mark.full
def test_a_client_whose_callback_cannot_follow_a_flood_drops_what_is_too_much(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script() -> None:
        heard = 0
        go_on = asyncio.Event()

        async def on_log(_: Any) -> None:
            nonlocal heard
            heard += 1
            await go_on.wait()

        flood = address("peer.py", "floods", str(MANY), "20")
        client = Client(flood, revision=HANDSHAKE, on_log=on_log, timeout=WAIT_S)
        await client.connect()
        tracemalloc.start()
        try:
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"
            assert tracemalloc.get_traced_memory()[1] < 20 * MIB + kept_by_the_log(caplog)
        finally:
            tracemalloc.stop()
        assert heard == 1
        go_on.set()
        await until_async(lambda: heard > 500)
        assert heard < 2000
        await client.close()

    run(script)
    # That it was so is said, and not once for each.
    assert 0 < warnings_in(caplog) < 100


def kept_by_the_log(caplog: pytest.LogCaptureFixture) -> int:
    """Return, roughly, how many bytes the log of this test holds; pytest keeps all of it."""
    return 2000 * len(caplog.records)


def warnings_in(caplog: pytest.LogCaptureFixture) -> int:
    return sum(each.levelname == "WARNING" for each in caplog.records)


def test_a_server_that_writes_garbage_does_not_fill_the_log_of_its_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script() -> None:
        target = address("peer.py", "strays", json.dumps(["garbage"] * 5000))
        async with Client(target, revision=HANDSHAKE, timeout=WAIT_S) as client:
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    run(script)
    assert 0 < warnings_in(caplog) < 100


# Very large


def raised() -> Policy:
    return Policy().replace(limits=Limits(stdio=100 * MIB))


def test_64_mb_go_through_both_ways() -> None:
    text = "x" * (64 * MIB)

    async def script() -> None:
        async with Client(address("server.py", "{}", str(100 * MIB)), policy=raised()) as client:
            result = await client.call_tool("echo", {"text": text})
            assert len(result.text) == len(text)
            same = result.text == text
            assert same
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    run(script)


def test_a_server_holds_few_copies_of_a_large_message() -> None:
    size = 64 * MIB
    with piped("server.py", "{}", str(100 * MIB)) as server:
        assert server.serves()
        before = server.resident("VmHWM")
        server.call("length", text="x" * size)
        assert server.read()["result"]["content"][0]["text"] == str(size)
        assert server.resident("VmHWM") - before < 4 * size
        # And none of them for long.
        assert server.serves()
        assert server.resident() - before < size


class Work:
    """Counts calls, of Python and of C, and what memory was taken at most."""

    def __init__(self) -> None:
        self.calls = 0
        self.peak = 0

    def __enter__(self) -> Work:
        tracemalloc.start()
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self.peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    def _count(self, frame: object, event: str, arg: object) -> None:
        self.calls += event in ("call", "c_call")


@pytest.mark.parametrize("tool", ["length", "large"])
def test_eight_times_the_bytes_are_eight_times_the_work(tool: str) -> None:
    async def measured(client: Client, size: int) -> Work:
        arguments = {"text": "x" * size} if tool == "length" else {"size": size}
        with Work() as work:
            await client.call_tool(tool, arguments)
        return work

    async def script() -> None:
        async with Client(address("server.py", "{}", str(100 * MIB)), policy=raised()) as client:
            await measured(client, MIB)
            small = await measured(client, 8 * MIB)
            large = await measured(client, 64 * MIB)
        # A quarter more each, for the tick that a scheduler takes away.
        assert large.calls < 8 * 1.5 * small.calls + 2000
        assert large.peak < 8 * 1.25 * small.peak
        assert large.peak < 5 * 64 * MIB

    run(script)


def test_a_large_answer_that_is_read_bit_by_bit_is_whole_and_costs_no_second_copy() -> None:
    size = 8 * MIB
    with piped() as server:
        assert server.serves()
        server.call("large", id=1, size=size)
        assert len(server.read()["result"]["content"][0]["text"]) == size
        before = server.resident("VmHWM")
        for n in range(5):
            server.call("large", id=n, size=size)
            assert len(server.read()["result"]["content"][0]["text"]) == size
        # The same memory each time.
        assert server.resident("VmHWM") - before < size

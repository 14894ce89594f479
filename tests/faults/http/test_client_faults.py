"""A network that fails at any byte: no call hangs, none runs twice, each failure is typed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple, TypeAlias, get_args

import pytest

from tests.faults.http.fault_proxy import Direction, Fault, FaultProxy, Kind
from trunkline import Client, Context, HttpLimits, Server
from trunkline.errors import RemoteProtocolError, RequestAborted, TrunklineError

# For everything that could hang.
_HANGS: Final = 20.0
# The bytes of an exchange, with room: a request is about 500 bytes, a response 300.
_LONGEST: Final = {"request": 640, "response": 420}
REVISIONS: Final = ("2025-11-25", "2026-07-28")
_STEP: Final = 61  # of positions that a short run visits
_AT_ONCE: Final = 8  # attempts


class Counted:
    """A server that counts how often each call ran."""

    def __init__(self) -> None:
        self.runs: dict[int, int] = {}
        self.app = Server("counted", version="1")

        @self.app.tool
        async def count(number: int) -> int:
            self.runs[number] = self.runs.get(number, 0) + 1
            return number

        @self.app.tool(annotations={"idempotentHint": True})
        async def put(number: int) -> int:
            self.runs[number] = self.runs.get(number, 0) + 1
            return number

        @self.app.tool
        async def stream(number: int, context: Context) -> int:
            self.runs[number] = self.runs.get(number, 0) + 1
            await context.progress(1, 2)
            await context.progress(2, 2)
            return number


class Lane(NamedTuple):
    """A client, the proxy in front of it, and the server."""

    client: Client
    proxy: FaultProxy
    counted: Counted


Attempt: TypeAlias = Callable[[Lane, int, int], Awaitable[None]]


def at_each(revision: str, positions: Iterable[int], attempt: Attempt) -> None:
    """Make an attempt for each position, each with a number of its own, some at the same time."""

    async def scene() -> None:
        counted, numbered = Counted(), enumerate(positions)
        # Clients resume a stream at once.
        limits = HttpLimits(retry_ms=1)

        async def one_after_another(port: int) -> None:
            # A proxy has one fault at a time.
            async with FaultProxy(port).running() as proxy:
                url = f"http://127.0.0.1:{proxy.port}/mcp"
                async with Client(url, revision=revision, timeout=5) as client:
                    # Which of them are idempotent, and which headers they repeat.
                    await client.list_tools()
                    for number, at in numbered:
                        async with asyncio.timeout(_HANGS):
                            await attempt(Lane(client, proxy, counted), number, at)

        async with (
            counted.app.listen("http://127.0.0.1:0/mcp", limits=limits) as listening,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(_AT_ONCE):
                group.create_task(one_after_another(listening.address.port))

    asyncio.run(scene())


def positions(direction: Direction, *, full: bool) -> Iterable[int]:
    return range(0, _LONGEST[direction], 1 if full else _STEP)


@pytest.mark.parametrize("tool", ["count", "stream"])
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("direction", get_args(Direction))
@pytest.mark.parametrize("kind", ["reset", "close", "half-close"])
def test_a_call_whose_connection_fails_at_any_byte_ends_and_runs_once_at_most(
    kind: Kind, direction: Direction, revision: str, tool: str, request: pytest.FixtureRequest
) -> None:
    async def attempt(lane: Lane, number: int, at: int) -> None:
        await _call_once(lane, tool, number, kind, direction, at)

    at_each(revision, positions(direction, full=request.config.option.full), attempt)


async def _call_once(
    lane: Lane,
    tool: str,
    number: int,
    kind: Kind,
    direction: Direction,
    at: int,
    timeout: float = 5,
    most: int = 1,
) -> TrunklineError | None:
    """Call a tool while a fault happens, and once more; return how the first call failed."""
    client, proxy, counted = lane
    proxy.fault = Fault(kind, direction, at)
    failure = None
    try:
        arguments = {"number": number}
        result = await client.call_tool(
            tool, arguments, on_progress=lambda *_: None, timeout=timeout
        )
        assert result.value == number
    except TrunklineError as error:
        failure = error
    if failure is not None:
        assert isinstance(failure, RequestAborted | RemoteProtocolError)
        assert f":{proxy.port}/mcp" in str(failure)
    assert counted.runs.get(number, 0) <= most
    proxy.fault = None
    # The client has recovered. An idempotent call, because a fault at the end of the response
    # closes the connection while this one is sent on it.
    again = await client.call_tool("put", {"number": 10_000 + number})
    assert again.value == 10_000 + number
    return failure


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("direction", get_args(Direction))
def test_a_network_that_pauses_at_any_byte_only_takes_longer(
    direction: Direction, revision: str, request: pytest.FixtureRequest
) -> None:
    async def attempt(lane: Lane, number: int, at: int) -> None:
        failure = await _call_once(lane, "stream", number, "delay", direction, at)
        assert failure is None
        assert lane.counted.runs[number] == 1

    at_each(revision, positions(direction, full=request.config.option.full), attempt)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("direction", get_args(Direction))
@pytest.mark.parametrize("kind", ["stall", "truncate"])
def test_a_call_of_which_bytes_are_lost_ends_with_its_timeout(
    kind: Kind, direction: Direction, revision: str
) -> None:
    async def attempt(lane: Lane, number: int, at: int) -> None:
        failure = await _call_once(lane, "count", number, kind, direction, at, 0.5)
        assert failure is not None

    at_each(revision, (0, 1, 40, 200), attempt)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("tool", ["count", "stream"])
def test_a_response_that_is_repeated_from_any_byte_is_answered_once(
    tool: str, revision: str, request: pytest.FixtureRequest
) -> None:
    async def attempt(lane: Lane, number: int, at: int) -> None:
        await _call_once(lane, tool, number, "duplicate", "response", at)

    at_each(revision, positions("response", full=request.config.option.full), attempt)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("kind", ["reset", "close"])
def test_an_idempotent_call_is_sent_again_when_a_kept_connection_closes(
    kind: Kind, revision: str
) -> None:
    async def attempt(lane: Lane, number: int, at: int) -> None:
        failure = await _call_once(lane, "put", number, kind, "request", at, most=2)
        assert failure is None

    at_each(revision, (0, 100, 300), attempt)

"""Two server processes that share nothing but keys finish each other's rounds."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.json import decode, encode

from tests.unit.server.rounds_wire import accepted, meta
from trunkline.jsonrpc import Policy
from trunkline.testing.transport_contract import Observed, leftovers
from trunkline.transports import Stdio

WAIT = 30

# Says in every answer which process made it, and counts what `once` did.
SERVER = """
import os, sys
from trunkline import Context, Server

app = Server("shop", state_keys=[bytes.fromhex(each) for each in os.environ["KEYS"].split()])
done = []


@app.tool
async def order(context: Context, what: str) -> list[str]:
    def make():
        done.append(1)
        return f"made by {sys.argv[1]}"

    ticket = await context.once("ticket", make, type=str)
    size = await context.elicit("Which size?", str, key="size")
    colour = await context.elicit(f"Which colour of size {size.content}?", str, key="colour")
    told = f"{what} {size.content} {colour.content}"
    return [ticket, told, f"told by {sys.argv[1]}", f"{len(done)} made here"]


app.run()
"""

ONE, OTHER = "11" * 32, "22" * 32
CALL = {"name": "order", "arguments": {"what": "shoes"}}


class Process:
    """One server, and how it is asked."""

    def __init__(self, end: Observed) -> None:
        self._end = end
        self._asked = 0

    async def ask(self, **more: Any) -> dict[str, Any]:
        """Send the call, and return the answer to it."""
        self._asked += 1
        params = {**CALL, **more, "_meta": meta()}
        message = {"jsonrpc": "2.0", "id": self._asked, "method": "tools/call", "params": params}
        self._end.transport.send(encode(message))
        frames = await self._end.received(self._asked)
        reply: dict[str, Any] = decode(frames[self._asked - 1])  # type: ignore[arg-type]  # no faults here
        assert reply["id"] == self._asked
        return reply


@asynccontextmanager
async def started(name: str, *keys: str) -> AsyncIterator[Process]:
    address = Stdio([sys.executable, "-c", SERVER, name], env={"KEYS": " ".join(keys)})
    end = Observed(address.transport(Policy()))
    await end.transport.connect()
    try:
        yield Process(end)
    finally:
        await end.transport.close()


def run(script: Any) -> None:
    async def main() -> None:
        before = leftovers()
        await script()
        assert leftovers() == before

    asyncio.run(asyncio.wait_for(main(), WAIT))


def test_two_processes_with_one_key_finish_each_others_rounds() -> None:
    async def script() -> None:
        async with started("a", ONE) as a, started("b", ONE) as b:
            first = (await a.ask())["result"]
            assert list(first["inputRequests"]) == ["size"]
            second = (
                await b.ask(
                    requestState=first["requestState"],
                    inputResponses={"size": accepted(value="42")},
                )
            )["result"]
            question = second["inputRequests"]["colour"]["params"]["message"]
            assert question == "Which colour of size 42?"
            last = {
                "requestState": second["requestState"],
                "inputResponses": {"colour": accepted(value="red")},
            }
            # Whichever of them goes on, the ticket is the one that the first has made.
            for process, name, made in ((a, "a", 1), (b, "b", 0)):
                result = (await process.ask(**last))["result"]
                assert result["resultType"] == "complete"
                told = [f"told by {name}", f"{made} made here"]
                expected = ["made by a", "shoes 42 red", *told]
                assert result["structuredContent"] == expected

    run(script)


def test_a_process_that_died_is_replaced_in_the_middle_of_a_call() -> None:
    async def script() -> None:
        async with started("a", ONE) as a:
            first = (await a.ask())["result"]
        async with started("b", OTHER, ONE) as b:  # which has another key by now, and the old one
            second = await b.ask(
                requestState=first["requestState"], inputResponses={"size": accepted(value="42")}
            )
            assert list(second["result"]["inputRequests"]) == ["colour"]

    run(script)


@pytest.mark.parametrize("keys", [(OTHER,), ()], ids=["another key", "a key of its own"])
def test_a_process_without_the_key_refuses_what_another_gave_out(keys: tuple[str, ...]) -> None:
    async def script() -> None:
        async with started("a", ONE) as a, started("b", *keys) as b:
            first = (await a.ask())["result"]
            refused = await b.ask(
                requestState=first["requestState"], inputResponses={"size": accepted(value="42")}
            )
            assert refused["error"]["code"] == -32602
            assert "Invalid request state" in refused["error"]["message"]

    run(script)

"""What servers of the official SDK tell our client of changes, in either era."""

from __future__ import annotations

import asyncio
from typing import Any

from trunkline import ConnectionLost
from trunkline.client import ServerChange
from trunkline.spec.revisions import V2026_07_28, Window

from .checks import ANY, PATIENCE, Checks, expect, raised, until
from .menu import OFFICIAL_TOOLS, PROMPTS, RESOURCES, TOOLS
from .our_client import Talk, declared
from .recordings import sent

__all__ = ["BUSY_CHECKS", "CHECKS"]

PER_REQUEST = Window(V2026_07_28)
CHECKS = Checks()
BUSY_CHECKS = Checks()


@CHECKS.about(ANY)
async def who_subscribed_is_told(talk: Talk) -> None:
    """A resource that changes is told by the callback, until it is of no interest any more."""
    declared(talk, "resources", "subscribe")
    await talk.client.subscribe("note://hello")
    await talk.client.call_tool("touch")
    await until(lambda: "note://hello" in talk.updated, "update")
    await talk.client.unsubscribe("note://hello")
    talk.updated.clear()
    await talk.client.call_tool("touch")
    await talk.client.call_tool("echo", {"text": "what was sent before is here by now"})
    expect(talk.updated, [])


@CHECKS.about(ANY)
async def who_listens_is_told(talk: Talk) -> None:
    """A resource that changes is told on a stream that names it."""
    declared(talk, "resources", "subscribe")
    async with talk.client.listen(uris=["note://hello"]) as stream:
        expect(stream.honoured.uris, ("note://hello",), "what is honoured")
        await talk.client.call_tool("touch")
        expect(await _next(stream), ServerChange("resource", uri="note://hello"))


@CHECKS.about(ANY)
async def streams_are_told_apart(talk: Talk) -> None:
    """Of two streams each gets what it asked for."""
    declared(talk, "resources", "subscribe")
    async with (
        talk.client.listen(uris=["note://hello"]) as one,
        talk.client.listen(uris=["note://pixel"]) as two,
    ):
        await talk.client.call_tool("touch")
        expect(await _next(one), ServerChange("resource", uri="note://hello"))
        other = asyncio.ensure_future(anext(two))
        await asyncio.wait([other], timeout=0.1)
        expect(other.done(), False, "something on the other stream")
        other.cancel()
        await asyncio.wait([other])


@CHECKS.about(ANY)
async def that_lists_change_is_declared(talk: Talk) -> None:
    """A server that tells of its lists says so."""
    for kind in ("tools", "prompts", "resources"):
        declared(talk, kind, "list_changed")


@CHECKS.about(ANY)
async def lists_that_grow_are_told(talk: Talk) -> None:
    """A tool, a prompt and a resource that are added are told, and are there at once."""
    talk.lists.clear()
    await _listed(talk, [])
    await talk.client.call_tool("grow")
    for kind in ("tools", "prompts", "resources"):
        await until(lambda kind=kind: kind in talk.lists, f"word of the {kind}")
    await _listed(talk, ["grown"])


async def _listed(talk: Talk, more: list[str]) -> None:
    tools = [tool.name for tool in await talk.client.list_tools()]
    expect(tools, [*TOOLS, *OFFICIAL_TOOLS, *more])
    expect([each.name for each in await talk.client.list_prompts()], [*PROMPTS, *more])
    found = [each.uri for each in await talk.client.list_resources()]
    expect(found, [*RESOURCES, *(f"note://{each}" for each in more)])


@CHECKS.about(PER_REQUEST)
async def a_stream_ends_in_order(talk: Talk) -> None:
    """A stream that the server ends has ended, and what came before was told."""
    async with talk.client.listen(uris=["note://hello"]) as stream:
        await talk.client.call_tool("touch")
        hushed = await talk.client.call_tool("hush")
        expect(hushed.is_error, False, hushed.text)
        heard = [change.uri async for change in stream]
    expect(heard, ["note://hello"])


@CHECKS.about(PER_REQUEST)
async def a_stream_that_ended_is_opened_again(talk: Talk) -> None:
    """The stream behind the callbacks, which the server ended as well, is asked for anew."""
    hushed = await talk.client.call_tool("hush")
    expect(hushed.is_error, False, hushed.text)
    agreed = "notifications/subscriptions/acknowledged"
    before = len(sent(talk.recording, "server", agreed))
    await until(lambda: len(sent(talk.recording, "server", agreed)) > before, "new stream")
    talk.lists.clear()
    await talk.client.call_tool("grow")
    await until(lambda: "tools" in talk.lists, "word of the tools")


@CHECKS.about(ANY)
async def nothing_unknown_was_heard(talk: Talk) -> None:
    """Each notification went to whom it is for."""
    expect(talk.others, [])


async def _next(stream: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await anext(stream)


# -- closing in the middle -------------------------------------------------------------------


@BUSY_CHECKS.about(PER_REQUEST)
async def it_closes_while_it_listens(talk: Talk) -> None:
    """A stream ends with the connection, at once, and the server with it."""
    stream = talk.client.listen(tools=True)
    await stream.__aenter__()
    await talk.client.close()
    await raised(anext(stream), ConnectionLost)
    talk.place.begin_recording()
    await talk.client.connect()

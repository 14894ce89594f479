"""What our server tells the official client of changes, in either era."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from trunkline.spec.revisions import V2026_07_28, Window

from .checks import ANY, PATIENCE, Checks, expect, until
from .menu import OUR_TOOLS, PROMPTS, RESOURCES, TOOLS
from .official_client import HANDSHAKE, Talk, every, said
from .recordings import sent

__all__ = ["BUSY_CHECKS", "CHECKS", "ENDING_CHECKS"]

PER_REQUEST = Window(V2026_07_28)
UPDATED = "notifications/resources/updated"
CHECKS = Checks()
BUSY_CHECKS = Checks()
ENDING_CHECKS = Checks()


@CHECKS.about(HANDSHAKE)
async def who_subscribed_is_told(talk: Talk) -> None:
    """A resource that changes is told to whoever subscribed, and to no one else."""
    await said(talk, "touch")
    await talk.session.subscribe_resource("note://hello")
    await said(talk, "touch")
    await until(lambda: UPDATED in talk.notes, "update")
    await talk.session.unsubscribe_resource("note://hello")
    await said(talk, "touch")
    await said(talk, "echo", {"text": "what was sent before is here by now"})
    expect(talk.notes.count(UPDATED), 1, "updates")


@CHECKS.about(PER_REQUEST)
async def who_listens_is_told(talk: Talk) -> None:
    """A resource that changes is told on a stream that names it, and on no other."""
    await said(talk, "touch")
    async with talk.caller.listen(resource_subscriptions=["note://hello", "note://none"]) as stream:
        expect(stream.honored.resource_subscriptions, ["note://hello"], "what is honoured")
        await said(talk, "touch")
        expect(await _next(stream), ResourceUpdated("note://hello"))
    # The SDK says so in its own time, beside what is asked next; over HTTP it closes the stream.
    if not talk.is_http:
        await until(lambda: stream.subscription_id in _left(talk), "word that nobody listens")
    await said(talk, "touch")
    await said(talk, "echo", {"text": "what was sent before is here by now"})
    expect(talk.notes.count(UPDATED), 1, "updates")


def _left(talk: Talk) -> list[Any]:
    """Return the ids of requests that the client has told to be of no interest any more."""
    told = sent(talk.recording, "client", "notifications/cancelled")
    return [each["params"]["requestId"] for each in told]


@CHECKS.about(PER_REQUEST)
async def streams_are_told_apart(talk: Talk) -> None:
    """Of two streams each gets what it asked for."""
    listen = talk.caller.listen
    async with (
        listen(resource_subscriptions=["note://hello"]) as one,
        listen(resource_subscriptions=["note://pixel"], tools_list_changed=True) as two,
    ):
        expect(two.honored.tools_list_changed, True, "what is honoured")
        await said(talk, "touch")
        expect(await _next(one), ResourceUpdated("note://hello"))
        other = asyncio.ensure_future(anext(two))
        # As long as changes are gathered, and a little more.
        await asyncio.wait([other], timeout=0.1)
        expect(other.done(), False, "something on the other stream")
        other.cancel()
        await asyncio.wait([other])


@CHECKS.about(ANY)
async def lists_that_grow_are_told(talk: Talk) -> None:
    """A tool, a prompt and a resource that are added are told, and are there at once."""
    if PER_REQUEST.holds(talk.revision):
        await _grow_on_a_stream(talk)
    else:
        await _grow_in_a_session(talk)
    found, _ = await every(talk.session.list_tools, "tools")
    expect([tool.name for tool in found], [*TOOLS, *OUR_TOOLS, "grown"])
    found, _ = await every(talk.session.list_prompts, "prompts")
    expect([prompt.name for prompt in found], [*PROMPTS, "grown"])
    found, _ = await every(talk.session.list_resources, "resources")
    expect([str(each.uri) for each in found], [*RESOURCES, "note://grown"])
    expect(await said(talk, "grown", {"a": 2, "b": 2}), "4")


async def _grow_on_a_stream(talk: Talk) -> None:
    kinds = {
        "tools_list_changed": ToolsListChanged(),
        "prompts_list_changed": PromptsListChanged(),
        "resources_list_changed": ResourcesListChanged(),
    }
    async with talk.caller.listen(**dict.fromkeys(kinds, True)) as stream:
        expect([getattr(stream.honored, kind) for kind in kinds], [True] * 3, "what is honoured")
        await said(talk, "grow")
        heard = {await _next(stream) for _ in kinds}
    expect(heard, set(kinds.values()))


async def _grow_in_a_session(talk: Talk) -> None:
    await said(talk, "grow")
    for kind in ("tools", "prompts", "resources"):
        changed = f"notifications/{kind}/list_changed"
        await until(lambda changed=changed: changed in talk.notes, f"word of the {kind}")
        expect(talk.notes.count(changed), 1, f"words of the {kind}")


@CHECKS.about(ANY)
async def every_line_could_be_read(talk: Talk) -> None:
    """The SDK took every line for a message."""
    expect(talk.faults, [])


async def _next(stream: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await anext(stream)


# -- closing in the middle -------------------------------------------------------------------


@BUSY_CHECKS.about(PER_REQUEST)
async def it_closes_while_it_listens(talk: Talk) -> None:
    """A stream is left behind when the connection is closed."""
    has_begun = asyncio.Event()

    async def listen() -> None:
        async with talk.caller.listen(tools_list_changed=True) as stream:
            has_begun.set()
            await anext(stream)

    talk.left_behind.append(asyncio.create_task(listen()))
    await has_begun.wait()


@ENDING_CHECKS.about(PER_REQUEST)
async def a_server_that_ends_ends_its_streams(talk: Talk) -> None:
    """A server that stops answers its streams first, which the SDK takes for an end in order."""
    # The SDK looks a tool up, unless it was listed, when its result has come: too late here.
    await every(talk.session.list_tools, "tools")
    async with asyncio.timeout(PATIENCE):
        async with talk.caller.listen(resource_subscriptions=["note://hello"]) as stream:
            await said(talk, "touch")
            expect(await said(talk, "leave"), "left")
            expect([event async for event in stream], [ResourceUpdated("note://hello")])

"""Kinds that a server declares, and kinds that are switched off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trunkline import Client, Context, PeerError, Server
from trunkline.spec.revisions import REVISIONS


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_client_is_notified_of_the_first_resource_of_a_server(revision: str) -> None:
    app = Server("sticky notes")

    @app.tool
    async def add_note() -> str:
        app.add_resource(lambda: "milk", "note:///1", name="note")
        return "added"

    async def main() -> None:
        async with Client(app, revision=revision) as client:
            assert await client.list_resources() == []
            async with client.listen(resources=True) as changes:
                await client.call_tool("add_note")
                change = await asyncio.wait_for(anext(changes), 5)
            assert change.kind == "resources"
            assert [each.uri for each in await client.list_resources()] == ["note:///1"]

    asyncio.run(main())


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_completions_can_be_declared_before_there_is_one(revision: str) -> None:
    async def declared(**options: Any) -> bool:
        async with Client(Server("test", **options), revision=revision) as client:
            return client.server_capabilities.completions == {}

    assert not asyncio.run(declared())
    assert asyncio.run(declared(capabilities={"completions": True}))


def test_completions_that_are_switched_off_are_not_declared() -> None:
    app = Server("test", capabilities={"completions": False})
    app.add_prompt(lambda style: style, "review")

    @app.completion(prompt="review", argument="style")
    def styles(typed: str) -> list[str]:
        return [typed]

    for revision in REVISIONS:
        capabilities = app._core.revision(revision).capabilities()
        assert not capabilities.completions


@pytest.mark.parametrize("kind", ["prompts", "resources"])
def test_arguments_of_a_kind_that_is_switched_off_are_not_completed(kind: str) -> None:
    app = Server("test", capabilities={kind: False})
    app.add_prompt(lambda style: style, "review")
    app.add_resource(lambda name: name, "note://{name}")

    @app.completion(prompt="review", argument="style")
    @app.completion(resource="note://{name}", argument="name")
    def same(typed: str) -> list[str]:
        return [typed]

    async def main() -> None:
        off, on = {"prompt": "review"}, {"resource": "note://{name}"}
        if kind == "resources":
            off, on = on, off
        names = {"prompt": "style", "resource": "name"}
        async with Client(app) as client:
            for reference in (on, off):
                (what,) = reference
                asked = client.complete(names[what], "a", **reference)
                if reference is on:
                    assert (await asked).values == ["a"]
                else:
                    with pytest.raises(PeerError, match="Nothing to complete"):
                        await asked

    asyncio.run(main())


def test_log_messages_are_not_sent_and_still_checked_without_logging() -> None:
    app = Server("test", capabilities={"logging": False})
    logged: list[Any] = []

    @app.tool
    async def talk(context: Context, level: str) -> str:
        await context.log(level, "hello")
        return "done"

    async def main() -> None:
        async with Client(app, revision="2025-11-25", on_log=logged.append) as client:
            assert not (await client.call_tool("talk", {"level": "error"})).is_error
            assert (await client.call_tool("talk", {"level": "loud"})).is_error

    asyncio.run(main())
    assert logged == []


def test_a_kind_that_a_mounted_server_switched_off_is_not_offered() -> None:
    inner = Server("inner", capabilities={"prompts": False})
    inner.add_prompt(lambda: "x", "before")
    inner.add_tool(lambda: "x", "tool")
    outer = Server("outer")
    outer.mount(inner, prefix="in")
    inner.add_prompt(lambda: "x", "after")
    assert [entry.name for entry in outer._core.catalog.tools] == ["in_tool"]
    assert list(outer._core.catalog.prompts) == []


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"prompt": False}, ValueError, "no switch 'prompt'; it has tools, resources, prompts"),
        ({"prompts": None}, TypeError, "capabilities['prompts'] is True or False, not None"),
        (["prompts"], TypeError, 'a dict such as {"prompts": False}, not list'),
    ],
)
def test_switches_are_checked_where_they_are_given(given: Any, kind: type, text: str) -> None:
    with pytest.raises(kind) as caught:
        Server("test", capabilities=given)
    assert text in str(caught.value)

"""Kinds that a server declares, and kinds that are switched off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trunkline import Client, Context, Extension, PeerError, Server
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


def declares_logging(app: Server, revision: str = "2026-07-28") -> bool:
    """Return True if a server declares logging at present."""

    async def main() -> bool:
        async with Client(app, revision=revision) as client:
            return client.server_capabilities.logging is not None

    return asyncio.run(main())


@pytest.mark.parametrize("revision", REVISIONS)
def test_logging_is_declared_without_a_context_only_before_it_was_deprecated(revision: str) -> None:
    app = Server("test")
    app.add_tool(lambda: "x", "plain")
    assert declares_logging(app, revision) == (revision != "2026-07-28")
    assert not declares_logging(Server("test", capabilities={"logging": False}), revision)
    assert declares_logging(Server("test", capabilities={"logging": True}), revision)


async def _in_tool(app: Server) -> None:
    @app.tool
    async def talk(context: Context) -> None: ...


async def _in_resource(app: Server) -> None:
    @app.resource("note://1")
    async def note(context: Context) -> str:
        return "x"


async def _in_template(app: Server) -> None:
    @app.resource("note://{name}")
    async def note(name: str, context: Context) -> str:
        return name


async def _in_prompt(app: Server) -> None:
    @app.prompt
    async def ask(context: Context) -> str:
        return "x"


async def _in_completion(app: Server) -> None:
    app.add_prompt(lambda style: style, "review")

    @app.completion(prompt="review", argument="style")
    async def styles(typed: str, context: Context) -> list[str]:
        return [typed]


async def _in_method(app: Server) -> None:
    @app.method("stars/list")
    async def stars(context: Context) -> None: ...


async def _in_extension(app: Server) -> None:
    extension = Extension("com.example/stars")

    @extension.method("stars/list")
    async def stars(context: Context) -> None: ...

    app.add_extension(extension)


async def _in_middleware(app: Server) -> None:
    @app.middleware
    async def timed(context: Context, proceed: Any) -> Any:
        return await proceed()


async def _in_guard(app: Server) -> None:
    app.add_tool(lambda: "x", "guarded", allow=lambda context: True)


async def _in_mounted_tool(app: Server) -> None:
    inner = Server("inner")
    app.mount(inner, prefix="in")
    await _in_tool(inner)


async def _in_mounted_completion(app: Server) -> None:
    inner = Server("inner")
    app.mount(inner, prefix="in")
    await _in_completion(inner)


async def _in_mounted_middleware(app: Server) -> None:
    inner = Server("inner")
    app.mount(inner, prefix="in")
    await _in_middleware(inner)


@pytest.mark.parametrize(
    "register",
    [
        *(_in_tool, _in_resource, _in_template, _in_prompt, _in_completion, _in_method),
        *(_in_extension, _in_middleware, _in_guard),
        *(_in_mounted_tool, _in_mounted_completion, _in_mounted_middleware),
    ],
)
def test_logging_is_declared_from_the_first_function_on_that_gets_a_context(register: Any) -> None:
    app = Server("test")

    async def main() -> None:
        async with Client(app) as client:
            assert (await client.discover(fresh=True)).capabilities.logging is None
            await register(app)
            assert (await client.discover(fresh=True)).capabilities.logging == {}

    asyncio.run(main())


def test_logging_is_no_longer_declared_without_the_last_tool_that_gets_a_context() -> None:
    app = Server("test")
    asyncio.run(_in_tool(app))
    assert declares_logging(app)
    app.remove_tool("talk")
    assert not declares_logging(app)


def test_tools_that_are_switched_off_declare_no_logging() -> None:
    app = Server("test", capabilities={"tools": False})
    asyncio.run(_in_tool(app))
    assert not declares_logging(app)


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

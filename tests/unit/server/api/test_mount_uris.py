"""URIs of a mounted server: under the prefix, everywhere that a client names them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trunkline import Client, Context, Server
from trunkline.errors import PeerError
from trunkline.server.api.mount import prefixed_uri

BOTH = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


def inner(name: str) -> Server:
    app = Server(name)

    @app.resource("config://app")
    def config() -> str:
        return f"config of {name}"

    @app.resource("notes://{day}/{+path}")
    def note(ctx: Context, day: str, path: str) -> str:
        return f"{name} {day} {path} as {ctx.name}"

    @app.completion(resource="notes://{day}/{+path}", argument="day")
    def days(typed: str) -> list[str]:
        return [f"{typed}-{name}"]

    return app


@pytest.mark.parametrize(
    ("uri", "mounted"),
    [
        ("config://app", "config://b/app"),
        ("file:///etc/x", "file://b//etc/x"),
        ("urn:isbn:1", "urn:b/isbn:1"),
        ("notes://{day}/{+path}", "notes://b/{day}/{+path}"),
        ("{scheme}://x", "{scheme}://x"),
        ("{+uri}", "{+uri}"),
    ],
)
def test_the_prefix_is_the_first_segment_after_the_scheme(uri: str, mounted: str) -> None:
    assert prefixed_uri(uri, "b") == mounted
    assert prefixed_uri(uri, "") == uri


@BOTH
def test_two_servers_with_the_same_uris_are_mounted_side_by_side(revision: str) -> None:
    app = inner("outer")
    app.mount(inner("a"), prefix="a")
    app.mount(inner("b"), prefix="b")

    async def main() -> None:
        async with Client(app, revision=revision) as client:
            uris = [each.uri for each in await client.list_resources()]
            assert uris == ["config://app", "config://a/app", "config://b/app"]
            templates = [each.uri_template for each in await client.list_resource_templates()]
            assert templates == [
                "notes://{day}/{+path}",
                "notes://a/{day}/{+path}",
                "notes://b/{day}/{+path}",
            ]
            for uri, text in [
                ("config://app", "config of outer"),
                ("config://b/app", "config of b"),
            ]:
                (contents,) = (await client.read_resource(uri)).contents
                assert (contents.uri, contents.text) == (uri, text)
            completed = await client.complete(
                resource="notes://a/{day}/{+path}", argument="day", value="mon"
            )
            assert completed.values == ["mon-a"]

    asyncio.run(main())


@BOTH
def test_templates_of_a_mounted_server_match_below_the_prefix(revision: str) -> None:
    app = Server("outer")
    app.mount(inner("a"), prefix="a")

    async def main() -> None:
        async with Client(app, revision=revision) as client:
            uri = "notes://a/mon/x/y"
            (contents,) = (await client.read_resource(uri)).contents
            assert contents.text == f"a mon x/y as {uri}"
            for other in ("notes://mon/x", "notes://b/mon/x", "notes://a/mon/../x", "config://app"):
                with pytest.raises(PeerError, match="not found"):
                    await client.read_resource(other)

    asyncio.run(main())


@BOTH
@pytest.mark.parametrize("depth", [1, 2])
def test_updates_and_changes_of_lists_reach_subscribers_under_the_prefix(
    revision: str, depth: int
) -> None:
    mounted = inner("a")
    outer, prefix = Server("outer"), "in/" * (depth - 1) + "a"
    between = mounted
    if depth == 2:
        between = Server("between")
        between.mount(mounted, prefix="a")
        outer.mount(between, prefix="in")
    else:
        outer.mount(mounted, prefix="a")

    async def main() -> None:
        async with Client(outer, revision=revision) as client:
            uri = f"config://{prefix}/app"
            async with client.listen(resources=True, uris=[uri]) as changes:
                mounted.notify_resource_updated("config://app")
                change = await asyncio.wait_for(anext(changes), 5)
                assert change.uri == uri
                mounted.add_resource(lambda: "new", "config://new")
                change = await asyncio.wait_for(anext(changes), 5)
                assert change.kind == "resources"
                assert f"config://{prefix}/new" in {
                    each.uri for each in await client.list_resources()
                }
                mounted.remove_resource("config://new")
                await asyncio.wait_for(anext(changes), 5)
                assert f"config://{prefix}/new" not in {
                    each.uri for each in await client.list_resources()
                }
            completed = await client.complete(
                resource=f"notes://{prefix}/{{day}}/{{+path}}", argument="day", value="x"
            )
            assert completed.values == ["x-a"]

    asyncio.run(main())


@BOTH
def test_a_fixed_uri_stays_as_it_is(revision: str) -> None:
    mounted, outer = Server("a"), Server("outer")
    mounted.add_resource(lambda: "logo", "logo://main", fixed_uri=True)

    @mounted.resource("page://{name}", fixed_uri=True)
    def page(name: str) -> str:
        return name

    outer.mount(mounted, prefix="a")

    async def main() -> None:
        async with Client(outer, revision=revision) as client:
            assert (await client.read_resource("page://x")).contents[0].text == "x"
            assert [each.uri for each in await client.list_resources()] == ["logo://main"]
            async with client.listen(uris=["logo://main"]) as changes:
                mounted.notify_resource_updated("logo://main")
                assert (await asyncio.wait_for(anext(changes), 5)).uri == "logo://main"

    asyncio.run(main())


def test_a_uri_that_is_taken_is_refused_with_advice_that_helps() -> None:
    def refusal(outer: Server, **options: Any) -> str:
        with pytest.raises(ValueError, match="is taken") as caught:
            outer.mount(inner("b"), **options)
        return str(caught.value)

    outer = inner("outer")
    assert refusal(outer) == "'config://app' is taken; mount <Server 'b', 0 tools> with a prefix"
    outer.mount(inner("a"), prefix="a")
    text = "'config://a/app' is taken; mount <Server 'b', 0 tools> with another prefix"
    assert refusal(outer, prefix="a") == text

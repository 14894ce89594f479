"""What cannot work is refused when it is registered, in a sentence that names it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from msgspec import Meta

from trunkline import CacheHint, Client, Context, ParamHeader, PeerError, Server
from trunkline.mcp import PromptArgument
from trunkline.mcp.param_headers import InvalidParamHeader, param_headers
from trunkline.server.registry.entries import ToolEntry


def by_owner(typed: str, owner: str | None = None) -> list[str]:
    return []


def by_number(typed: int) -> list[str]:
    return []


def by_others(typed: str, others: Mapping[str, str]) -> list[str]:
    return []


def app() -> Server:
    return Server("test", version="1")


def call(server: Server, name: str, **arguments: Any) -> Any:
    async def main() -> Any:
        async with Client(server, revision="2026-07-28") as client:
            return (await client.call_tool(name, arguments)).value

    return asyncio.run(main())


def test_decorators_return_the_function_unchanged_with_and_without_parentheses() -> None:
    server = app()

    def one() -> str:
        return "1"

    def suggest(typed: str) -> list[str]:
        return [typed]

    assert server.tool(one) is one
    assert server.tool("two")(one) is one
    assert server.prompt(one) is one
    assert server.resource("a://b")(one) is one
    assert server.completion(prompt="one", argument="x")(suggest) is suggest
    assert server.completion(prompt="one", argument="y")(by_others) is by_others
    assert [entry.name for entry in server._core.catalog.tools] == ["one", "two"]


def test_options_reach_the_listing() -> None:
    server = app()

    @server.tool(
        "named",
        title="A title",
        description="What it does.",
        annotations={"readOnlyHint": True},
        icons=["https://example.com/i.png"],
        meta={"com.example/k": 1},
        timeout=5,
        cache=CacheHint(60),
        deprecated="use other",
    )
    def handler() -> str:
        """Not this."""
        return ""

    async def main() -> Any:
        async with Client(server, revision="2025-11-25") as client:
            return (await client.list_tools())[0]

    tool = asyncio.run(main())
    assert (tool.name, tool.title) == ("named", "A title")
    assert tool.description == "Deprecated: use other What it does."
    assert tool.annotations.read_only_hint is True
    assert tool.icons[0].src == "https://example.com/i.png"
    assert tool.meta == {"com.example/k": 1}


@pytest.mark.parametrize(
    ("register", "error", "says"),
    [
        (lambda s: s.tool(lambda: 1), ValueError, "needs a name"),
        (lambda s: s.tool("a b")(lambda: 1), ValueError, "no space"),
        (lambda s: s.tool("a" * 129)(lambda: 1), ValueError, "128"),
        (
            lambda s: s.add_tool(lambda: 1, "t", colour="red"),
            TypeError,
            "unexpected keyword argument 'colour'",
        ),
        (lambda s: s.add_tool(lambda: 1, "t", timeout=0), ValueError, "above 0"),
        (lambda s: s.add_tool(lambda: 1, "t", annotations={"x": 1}), TypeError, "no member 'x'"),
        (lambda s: s.add_tool(lambda: 1, "t", annotations=7), TypeError, "a dict"),
        (lambda s: s.add_resource(lambda: 1, "nowhere"), ValueError, "not a URI"),
        (lambda s: s.add_resource(lambda y: 1, "a://{x}"), TypeError, "variables"),
        (lambda s: s.add_resource(lambda y: 1, "a://b"), TypeError, "no variables"),
        (lambda s: s.add_resource(lambda x: 1, "a://{x"), ValueError, "every"),
        (lambda s: s.completion(argument="a")(lambda typed: []), TypeError, "either"),
        (lambda s: s.completion(prompt="p", argument="a")(lambda: []), TypeError, "typed so far"),
        (lambda s: s.completion(prompt="p", argument="a")(by_owner), TypeError, "other arguments"),
        (lambda s: s.completion(prompt="p", argument="a")(by_number), TypeError, "typed so far"),
        (lambda s: s.method("tools/call")(lambda: 1), ValueError, "method of MCP"),
        (lambda s: s.method("ping")(lambda: 1), ValueError, "method of MCP"),
        (lambda s: s.remove_tool("t"), LookupError, "no tool 't'"),
        (lambda s: s.remove_prompt("t"), LookupError, "no prompt 't'"),
        (lambda s: s.remove_resource("a://b"), LookupError, "no resource"),
        (lambda s: s.mount(s), ValueError, "mounts"),
        (lambda _: Server("x", revisions=[]), ValueError, "at least one"),
        (lambda _: Server("x", revisions=["2020-01-01"]), ValueError, "2020-01-01"),
    ],
)
def test_invalid_registrations_are_refused(
    register: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        register(app())


def test_a_name_is_taken_once() -> None:
    server = app()
    server.add_tool(lambda: 1, "t")
    server.add_prompt(lambda: "x", "p")
    server.add_resource(lambda: "x", "a://b")
    for again in (
        lambda: server.add_tool(lambda: 2, "t"),
        lambda: server.add_prompt(lambda: "y", "p"),
        lambda: server.add_resource(lambda: "y", "a://b"),
    ):
        with pytest.raises(ValueError, match="already"):
            again()


def test_a_mounted_server_is_offered_under_its_prefix_and_followed() -> None:
    server, other = app(), Server("other")

    @other.tool
    def forecast(city: str) -> str:
        return f"sun in {city}"

    server.mount(other, prefix="w")
    assert call(server, "w_forecast", city="Rome") == "sun in Rome"

    other.add_tool(lambda: "late", "later")
    assert call(server, "w_later") == "late"
    other.remove_tool("forecast")
    assert [entry.name for entry in server._core.catalog.tools] == ["w_later"]

    other.remove_tool("later")
    other.add_tool(lambda: "new", "later")
    assert call(server, "w_later") == "new"


def test_mounted_server_keeps_its_own_state_and_middleware() -> None:
    heard: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Server) -> Any:
        heard.append("opened")
        yield "state of other"
        heard.append("closed")

    server, other = app(), Server("other", lifespan=lifespan)

    @server.middleware
    async def outer(context: Context, proceed: Any) -> Any:
        heard.append(f"outer {context.method}")
        return await proceed()

    @other.middleware
    async def inner(_: Context, proceed: Any) -> Any:
        heard.append("inner")
        return (await proceed()) + "!"

    @other.tool
    def look(ctx: Context) -> str:
        return f"{ctx.state} in {ctx.app.name}"

    server.mount(other, prefix="o")
    assert call(server, "o_look") == "state of other in other!"
    assert heard == ["opened", "outer server/discover", "outer tools/call", "inner", "closed"]
    assert other.state is None


@pytest.mark.parametrize("depth", [1, 2])
def test_a_server_with_a_lifespan_is_mounted_before_the_other_is_served(depth: int) -> None:
    @asynccontextmanager
    async def lifespan(_: Server) -> Any:
        yield None

    server, other = app(), Server("other", lifespan=lifespan)
    for _ in range(depth - 1):
        inner, other = other, Server("between")
        other.mount(inner)
    server.add_tool(lambda: 1, "own")
    other.add_tool(lambda: 1, "t")

    async def main() -> None:
        async with Client(server) as client:
            with pytest.raises(RuntimeError, match="lifespan"):
                server.mount(other)
            assert {tool.name for tool in await client.list_tools()} == {"own"}
        server.mount(other)
        async with Client(server) as client:
            assert {tool.name for tool in await client.list_tools()} == {"own", "t"}

    asyncio.run(main())


def test_a_server_without_a_lifespan_can_be_mounted_while_the_other_is_served() -> None:
    server, other = app(), Server("other")
    server.add_tool(lambda: 1, "own")
    other.add_tool(lambda: 1, "t")

    async def main() -> None:
        async with Client(server) as client:
            server.mount(other)
            assert {tool.name for tool in await client.list_tools()} == {"own", "t"}

    asyncio.run(main())


def test_two_servers_cannot_mount_each_other_and_names_must_not_clash() -> None:
    server, other = app(), Server("other")
    other.mount(server)
    with pytest.raises(ValueError, match="mounts"):
        server.mount(other)
    server.add_tool(lambda: 1, "t")
    third = Server("third")
    third.add_tool(lambda: 2, "t")
    with pytest.raises(ValueError, match="with a prefix"):
        server.mount(third)
    assert isinstance(server._core.catalog.tools.get("t"), ToolEntry)


def test_lifespan_stays_open_until_the_last_connection_ends() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Server) -> Any:
        seen.append("open")
        yield {"db": 1}
        seen.append("close")

    server = Server("test", lifespan=lifespan)

    @server.tool
    async def state(ctx: Context) -> dict[str, int]:
        return ctx.state  # type: ignore[no-any-return]  # whatever the lifespan gave

    async def main() -> None:
        async with Client(server) as one:
            assert (await one.call_tool("state")).value == {"db": 1}
            async with Client(server) as two:
                assert (await two.call_tool("state")).value == {"db": 1}
            assert seen == ["open"]
        for _ in range(100):
            if seen == ["open", "close"]:
                break
            await asyncio.sleep(0.01)
        assert seen == ["open", "close"]

    asyncio.run(main())
    assert server._core.runtime.in_flight == 0


# -- headers that repeat arguments -----------------------------------------------------------


def found(server: Server, name: str) -> ToolEntry:
    entry = server._core.catalog.tools.get(name)
    assert entry is not None
    return entry


def test_an_entry_knows_which_arguments_headers_repeat() -> None:
    server = app()

    def handler(
        a: Annotated[str, ParamHeader("Region")],
        b: str,
        c: Annotated[int, Meta(extra_json_schema={"x-mcp-header": "Level"})] = 1,
    ) -> str:
        return a + b

    def plain(a: str) -> str:
        return a

    server.add_tool(handler, "marked")
    server.add_tool(plain, "plain")
    entry = found(server, "marked")
    assert [(row.header, row.path) for row in entry.param_headers] == [
        ("Mcp-Param-Region", ("a",)),
        ("Mcp-Param-Level", ("c",)),
    ]
    # The schema that clients see has the same annotations.
    assert param_headers(entry.arguments.schema) == entry.param_headers
    assert found(server, "plain").param_headers == ()


def test_the_headers_of_a_given_schema_are_known_and_mounted_with_the_tool() -> None:
    inner, outer = app(), app()
    level = {"type": "integer", "x-mcp-header": "Level"}
    schema = {"type": "object", "properties": {"a": {"properties": {"b": level}}}}
    inner.add_tool(lambda arguments: "x", "raw", input_schema=schema)
    outer.mount(inner, prefix="in")
    for server, name in ((inner, "raw"), (outer, "in_raw")):
        (row,) = found(server, name).param_headers
        assert (row.header, row.path) == ("Mcp-Param-Level", ("a", "b"))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "string", "x-mcp-header": "a b"},
        {"type": "number", "x-mcp-header": "A"},
        {"type": ["string", "null"], "x-mcp-header": "A"},
        {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}},
    ],
)
def test_a_given_schema_with_a_faulty_header_is_refused(part: dict[str, Any]) -> None:
    server = app()
    schema = {"type": "object", "properties": {"a": part}}
    with pytest.raises(InvalidParamHeader):
        server.add_tool(lambda arguments: "x", "raw", input_schema=schema)
    assert len(server._core.catalog.tools) == 0


def test_a_header_in_the_schema_of_a_type_is_checked_too() -> None:
    def named(a: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "a b"})]) -> str:
        return a

    def typed(a: Annotated[float, Meta(extra_json_schema={"x-mcp-header": "A"})]) -> str:
        return str(a)

    with pytest.raises(ValueError, match="cannot name a header"):
        app().tool(named)
    with pytest.raises(TypeError, match="cannot be repeated in a header"):
        app().tool(typed)


# -- arguments of prompts as data --------------------------------------------------------------


def prompts(app: Server, *calls: tuple[str, dict[str, str]]) -> tuple[list[Any], list[Any]]:
    """Return the listed prompts, and the texts or errors of some calls."""

    async def main() -> tuple[list[Any], list[Any]]:
        async with Client(app) as client:
            found: list[Any] = []
            for name, arguments in calls:
                try:
                    messages = (await client.get_prompt(name, arguments)).messages
                    found.append(messages[0].content.text)
                except PeerError as error:
                    found.append(error.message)
            return await client.list_prompts(), found

    return asyncio.run(main())


def test_arguments_of_a_prompt_may_be_data() -> None:
    app = Server("test")
    given = [
        "city",
        PromptArgument("tone", description="How it sounds.", title="Tone"),
        {"name": "from", "required": True},
    ]
    app.add_prompt(lambda arguments: f"{arguments}", "plain", arguments=given)

    @app.prompt(arguments=iter(["city"]))
    async def later(ctx: Context, arguments: dict[str, str]) -> str:
        return f"{ctx.name} {arguments}"

    app.add_prompt(lambda arguments: f"{arguments}", "none", arguments=[])
    (plain, second, third), found = prompts(
        app,
        ("plain", {"city": "Oslo", "from": "me"}),
        ("plain", {"city": "Oslo", "from": "me", "tone": "dry"}),
        ("plain", {"city": "Oslo"}),
        ("plain", {"city": "Oslo", "from": "me", "when": "now"}),
        ("later", {"city": "Oslo"}),
        ("none", {}),
    )
    assert plain.arguments == [
        PromptArgument("city", required=True),
        PromptArgument("tone", description="How it sounds.", title="Tone", required=False),
        PromptArgument("from", required=True),
    ]
    assert second.arguments == [PromptArgument("city", required=True)]
    assert not third.arguments
    assert found == [
        "{'city': 'Oslo', 'from': 'me'}",
        "{'city': 'Oslo', 'tone': 'dry', 'from': 'me'}",
        "Missing required argument: from",
        """Invalid arguments for prompt 'plain': unknown argument "when\"""",
        "later {'city': 'Oslo'}",
        "{}",
    ]


def test_arguments_of_a_prompt_that_are_data_can_be_completed_and_guarded() -> None:
    app, seen = Server("test"), []

    def allow(ctx: Any, city: str) -> bool:
        seen.append(city)
        return True

    app.add_prompt(lambda arguments: "x", "plain", arguments=["city"], allow=allow)

    @app.completion(prompt="plain", argument="city")
    def cities(typed: str) -> list[str]:
        return ["Oslo"]

    assert prompts(app, ("plain", {"city": "Oslo"}))[1] == ["x"]
    assert seen == ["Oslo"]


def test_two_arguments_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match='two arguments are named "a"'):
        Server("test").add_prompt(lambda arguments: "x", "p", arguments=["a", "b", "a"])


# -- tasks ---------------------------------------------------------------------------------------


def test_task_may_be_true_or_false() -> None:
    app = Server("test")
    app.add_tool(lambda: "x", "maybe", task=True)
    app.add_tool(lambda: "x", "never", task=False)

    async def main() -> list[Any]:
        async with Client(app, revision="2025-11-25") as client:
            return await client.list_tools()

    maybe, never = asyncio.run(main())
    assert maybe.execution.task_support == "optional"
    assert never.execution is None


# -- mounts --------------------------------------------------------------------------------------


def test_prefix_of_a_mount_may_be_positional() -> None:
    app, other = Server("outer"), Server("inner")
    other.add_tool(lambda: "x", "tool")
    app.mount(other, "a")
    assert [each.name for each in app._core.catalog.tools] == ["a_tool"]


@pytest.mark.parametrize(
    "other", [Client(Server("b")), "https://example.org/mcp", {"mcpServers": {}}, Server]
)
def test_what_is_not_a_server_cannot_be_mounted(other: Any) -> None:
    name = type(other).__name__
    text = f"mount takes a Server of this process, not a value of type {name}: a server elsewhere"
    with pytest.raises(TypeError, match=text):
        Server("a").mount(other, prefix="b")

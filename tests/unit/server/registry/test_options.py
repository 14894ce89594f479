"""Options of authors are checked where they are given."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from trunkline import Client, Server
from trunkline.mcp import Annotations, Icon, ToolAnnotations
from trunkline.store import MemoryStore


async def generates(app: Server) -> Any:
    yield 1


def generates_plainly(app: Server) -> Any:
    yield 1


async def returns(app: Server) -> int:
    return 1


@contextmanager
def plain(app: Server) -> Any:
    yield 1


SERVER: list[tuple[dict[str, Any], str]] = [
    ({"name": 5}, "the name of a server is a text, not 5"),
    ({"name": None}, "the name of a server is a text, not None"),
    ({"name": ""}, "the name of a server has at least one character"),
    ({"version": 1.0}, "the version of a server is a text, not 1.0"),
    ({"title": 5}, "title is a text, not 5"),
    ({"description": ["a"]}, "description is a text, not a list"),
    ({"instructions": b"a"}, "instructions is a text, not a bytes"),
    ({"website_url": 5}, "website_url is a text, not 5"),
    ({"icons": "x.png"}, "icons is a list of addresses or Icons: write icons=['x.png']"),
    ({"icons": Icon("x.png")}, "icons is a list of addresses or Icons: write icons=[...]"),
    ({"icons": [5]}, "an icon is an Icon or a dict, not 5"),
    ({"icons": [None]}, "an icon is an address or an Icon, not None"),
    ({"icons": [Icon(5)]}, "an icon is not a valid Icon: Expected `str`, got `int`"),  # type: ignore[arg-type]  # the mistake
    ({"revisions": "2025-11-25"}, "revisions is a list: write revisions="),
    ({"revisions": 5}, "revisions is a list"),
    ({"policy": "mcp"}, "policy is a Policy, not a str"),
    ({"page_size": "5"}, "page_size is an integer, not a str"),
    ({"page_size": True}, "page_size is an integer, not True"),
    ({"page_size": 0}, "page_size is at least 1, not 0"),
    ({"page_size": {"tools": 0}}, "page_size is at least 1, not 0"),
    ({"page_size": {"tools": "5"}}, "page_size is an integer, not a str"),
    (
        {"page_size": {"tool": 5}},
        "page_size has sizes for tools, prompts, resources, resource_templates, not for 'tool'",
    ),
    ({"cache": 60}, "cache is a CacheHint, not 60"),
    ({"limits": {}}, "limits is a ServerLimits, not a dict"),
    ({"tasks": {}}, "tasks is a TaskSettings, not a dict"),
    ({"store": "sqlite:x.db"}, "store is a Store, such as MemoryStore(), not a str"),
    ({"store": MemoryStore}, "store is a Store, such as MemoryStore(), not the class MemoryStore"),
    ({"list_changed": "no"}, "list_changed is True or False, not a str"),
    ({"subscribe": None}, "subscribe is True or False, not None"),
    ({"coerce_arguments": "lax"}, "coerce_arguments is True or False, not a str"),
    ({"state_keys": b"0" * 32}, "state_keys is a list of keys, which are bytes"),
    ({"state_keys": ["0" * 32]}, "state_keys is a list of keys, which are bytes"),
    ({"experimental": ["a"]}, "experimental is a Mapping, not a list"),
    ({"experimental": {"a": 1}}, "experimental has dicts by the names of capabilities"),
    ({"lifespan": 5}, "lifespan is a function that returns an async context manager, not 5"),
    ({"lifespan": generates}, "generates() does not return an async context manager: write @async"),
    ({"lifespan": generates_plainly}, "does not return an async context manager: write @async"),
    ({"lifespan": returns}, "returns() does not return an async context manager: write @async"),
    ({"lifespan": plain}, "plain() does not return an async context manager: write @async"),
]


def named(rows: list[tuple[dict[str, Any], str]]) -> list[str]:
    return [f"{next(iter(options))}-{text[:40]}" for options, text in rows]


@pytest.mark.parametrize(("options", "text"), SERVER, ids=named(SERVER))
def test_an_option_of_a_server_is_checked(options: dict[str, Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        Server(**{"name": "x", **options})
    assert text in str(refused.value)


def test_a_lifespan_of_the_usual_form_is_taken() -> None:
    @asynccontextmanager
    async def lifespan(app: Server) -> Any:
        yield 1

    class Life:
        def __init__(self, app: Server) -> None: ...

        async def __aenter__(self) -> int:
            return 1

        async def __aexit__(self, *_: object) -> None: ...

    Server("x", lifespan=lifespan)
    Server("x", lifespan=Life)


ENTRY: list[tuple[dict[str, Any], str]] = [
    ({"title": 5}, "title is a text, not 5"),
    ({"description": 5}, "description is a text, not 5"),
    ({"icons": "x.png"}, "icons is a list of addresses or Icons: write icons=['x.png']"),
    ({"meta": ["a"]}, "meta is a dict with texts as keys, not a list"),
    ({"meta": {1: 1}}, "meta is a dict with texts as keys"),
    ({"meta": {"a": object()}}, "meta cannot be sent: "),
    ({"timeout": "5"}, "timeout is a number of seconds, not a str"),
    ({"timeout": True}, "timeout is a number of seconds, not True"),
    ({"timeout": -1}, "timeout is a number of seconds above 0, not -1"),
    ({"timeout": math.nan}, "timeout is a number of seconds above 0, not nan"),
    ({"timeout": math.inf}, "timeout is a number of seconds above 0, not inf"),
    ({"inline": "yes"}, "inline is True or False, not a str"),
]
TOOL = [
    *ENTRY,
    ({"name": 5}, "the name of a tool is a text, not 5"),
    ({"cache": 5}, "cache is a CacheHint, not 5"),
    ({"annotations": 5}, "annotations is a ToolAnnotations or a dict, not 5"),
    ({"annotations": {"readOnly": True}}, "annotations has no member 'readOnly'; use "),
    ({"annotations": {"readOnlyHint": "yes"}}, "annotations is not a valid ToolAnnotations"),
    (
        {"annotations": ToolAnnotations(title=5)},  # type: ignore[arg-type]  # the mistake
        "annotations is not a valid ToolAnnotations: Expected `str",
    ),
    ({"deprecated": 5}, "deprecated is True or a text, not int"),
    ({"input_schema": "{}"}, "input_schema is a dict, not a str"),
    ({"output_schema": 5}, "its return type has no output schema"),
    ({"coerce_arguments": "lax"}, "coerce_arguments is True or False, not a str"),
    ({"task": "yes"}, "task is one of 'never', 'optional', 'required', not 'yes'"),
]
RESOURCE = [
    *ENTRY,
    ({"name": 5}, "name is a text, not 5"),
    ({"mime_type": 5}, "mime_type is a text, not 5"),
    ({"size": "5"}, "size is an integer, not a str"),
    ({"size": -5}, "size is at least 0, not -5"),
    ({"unsafe": 1}, "unsafe is True or False, not 1"),
    ({"fixed_uri": 1}, "fixed_uri is True or False, not 1"),
    ({"annotations": Annotations(priority="a")}, "annotations is not a valid Annotations"),  # type: ignore[arg-type]  # the mistake
]
PROMPT = [
    *ENTRY,
    ({"name": 5}, "the name of a prompt is a text, not 5"),
    ({"arguments": "city"}, "arguments is a list of names or PromptArguments: write arguments="),
    ({"arguments": {"city": 1}}, "arguments is a list of names or PromptArguments: write"),
    ({"arguments": 5}, "arguments is a list of names or PromptArguments: write arguments="),
    ({"arguments": ["city"]}, "has arguments of its own: it takes one parameter, the dict of"),
]


def handler() -> str:
    return ""


@pytest.mark.parametrize(("options", "text"), TOOL, ids=named(TOOL))
def test_an_option_of_a_tool_is_checked(options: dict[str, Any], text: str) -> None:
    app = Server("x")
    with pytest.raises((TypeError, ValueError)) as refused:
        app.tool(**options)(handler)
    assert text in str(refused.value)
    with pytest.raises((TypeError, ValueError)):
        app.add_tool(handler, **options)


@pytest.mark.parametrize(("options", "text"), RESOURCE, ids=named(RESOURCE))
def test_an_option_of_a_resource_is_checked(options: dict[str, Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        Server("x").resource("a://b", **options)(handler)
    assert text in str(refused.value)


def test_the_uri_of_a_resource_may_be_given_by_name() -> None:
    app = Server("test")

    @app.resource(uri="note://one")
    def note() -> str:
        return "one"

    async def main() -> None:
        async with Client(app) as client:
            assert [each.uri for each in await client.list_resources()] == ["note://one"]

    asyncio.run(main())


def test_the_uri_of_a_resource_is_a_text() -> None:
    with pytest.raises(TypeError, match="the URI of a resource is a str, not 5"):
        Server("x").resource(5)(handler)  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize(("options", "text"), PROMPT, ids=named(PROMPT))
def test_an_option_of_a_prompt_is_checked(options: dict[str, Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        Server("x").prompt(**options)(handler)
    assert text in str(refused.value)


COMPLETION: list[tuple[dict[str, Any], str]] = [
    ({"argument": 5}, "argument is a str, not 5"),
    ({"prompt": 5}, "prompt is a text, not 5"),
    ({"timeout": "5"}, "timeout is a number of seconds, not a str"),
    ({"inline": 5}, "inline is True or False, not 5"),
]


@pytest.mark.parametrize(("options", "text"), COMPLETION, ids=named(COMPLETION))
def test_an_option_of_a_completion_is_checked(options: dict[str, Any], text: str) -> None:
    def complete(typed: str) -> list[str]:
        return []

    given: dict[str, Any] = {"prompt": "p", "argument": "a", **options}
    with pytest.raises(TypeError) as refused:
        Server("x").completion(**given)(complete)
    assert text in str(refused.value)


def test_accepted_options_are_listed_to_clients() -> None:
    app = Server("x", icons=[{"src": "a.png", "mimeType": "image/png"}, "b.png"])  # type: ignore[list-item]  # a dict too

    @app.tool(annotations={"readOnlyHint": True}, icons=("c.png",), meta={"a": [1]})
    def tool() -> str:
        return ""

    async def main() -> None:
        async with Client(app, revision="2025-11-25") as client:
            assert client.server_info is not None
            assert client.server_info.icons == [Icon("a.png", mime_type="image/png"), Icon("b.png")]
            (listed,) = await client.list_tools()
            assert listed.icons == [Icon("c.png")]
            assert listed.meta == {"a": [1]}
            assert listed.annotations == ToolAnnotations(read_only_hint=True)

    asyncio.run(main())


DEFAULTS: list[tuple[Any, Any, str]] = [
    (int, "x", "expected an integer, got a string"),
    (int, True, "expected an integer, got a boolean"),
    (int, 1.5, "expected an integer, got a number"),
    (str, 5, "expected a string, got an integer"),
    (list[int], ["a"], '"[0]": expected an integer, got a string'),
    (list[int], {}, "expected an array, got an object"),
    (Literal["a", "b"], "c", "not one of the allowed values"),
    (Annotated[int, Meta(ge=1)], 0, "expected an integer >= 1"),
    (int | None, "x", "expected an integer or null, got a string"),
]


@pytest.mark.parametrize(("type_", "default", "text"), DEFAULTS, ids=[row[2] for row in DEFAULTS])
def test_a_default_that_does_not_fit_its_type_is_refused(
    type_: Any, default: Any, text: str
) -> None:
    def tool(a: Any = default) -> str:
        return ""

    tool.__annotations__["a"] = type_
    with pytest.raises(TypeError) as refused:
        Server("x").tool(tool)
    said = f'tool(): the default of parameter "a" does not fit its type: {text}'
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        (int, None),
        (str, object()),
        (float, 3),
        (float, math.inf),
        (list[int], ()),
        (list[int], [1]),
        (Literal["a"], "a"),
        (Any, object),
        (int | str, "a"),
        (Annotated[int, Meta(ge=1)], 1),
    ],
)
def test_a_default_that_fits_or_marks_an_argument_left_out_is_taken(
    type_: Any, default: Any
) -> None:
    def tool(a: Any = default) -> str:
        assert a == default
        return "ok"

    tool.__annotations__["a"] = type_
    app = Server("x")
    app.tool(tool)

    async def main() -> str:
        async with Client(app) as client:
            return (await client.call_tool("tool")).text

    assert asyncio.run(main()) == "ok"

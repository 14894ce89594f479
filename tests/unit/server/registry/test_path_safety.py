"""Values of templates that lead out of a folder: one test per trick, and what is harmless."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.cases import for_each
from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import connected
from trunkline import Client, PeerError, Server
from trunkline.server.registry.path_safety import is_safe_value
from trunkline.server.registry.uri_template import UriTemplate

# What comes after `x://` in a URI, and the trick.
TRICKS = {
    "..": "a parent",
    "../secret": "a parent",
    "a/../../secret": "a parent inside",
    "a/..": "a parent at the end",
    "./../a": "a parent after the folder itself",
    "..%2Fsecret": "an encoded separator",
    "..%2fsecret": "an encoded separator, small letters",
    "a%2Fb": "an encoded separator without dots",
    "%2e%2e/secret": "encoded dots",
    "%2E%2E/secret": "encoded dots, capitals",
    ".%2e/secret": "one encoded dot",
    "%2e%2e%2fsecret": "encoded dots and an encoded separator",
    "..%5Csecret": "an encoded backslash",
    "..%5csecret": "an encoded backslash, small letters",
    "..\\secret": "a backslash",
    "a\\b": "a backslash without dots",
    "..\\/secret": "mixed separators",
    "..%5c..%2fsecret": "mixed encoded separators",
    "%252e%252e%252fsecret": "encoded twice",
    "..%252fsecret": "a separator encoded twice",
    "..%255csecret": "a backslash encoded twice",
    "%25252e%25252e%25252fsecret": "encoded three times",
    "%c0%ae%c0%ae/secret": "overlong UTF-8 of two bytes",
    "..%c0%afsecret": "an overlong separator",
    "%e0%80%ae%e0%80%ae/secret": "overlong UTF-8 of three bytes",
    "%f0%80%80%ae/secret": "overlong UTF-8 of four bytes",
    "%25c0%25ae%25c0%25ae/secret": "overlong UTF-8, encoded twice",
    "%u002e%u002e%u002fsecret": "the %u escape",
    "..%00/secret": "NUL behind dots",
    "....//secret": "dots that one replacement of ../ leaves",
    "..././secret": "dots that one replacement of ../ leaves",
    "...": "three dots",
    ".": "the folder itself",
    "..;/secret": "a path parameter",
    "..;a=b/secret": "a path parameter with a value",
    "..%20/secret": "a space that Windows strips",
    "%20../secret": "a space before",
    "/etc/passwd": "an absolute path",
    "%2Fetc%2Fpasswd": "an encoded absolute path",
    "//host/share": "a network path",
    "\\\\host\\share": "a network path of Windows",
    "%5C%5Chost%5Cshare": "an encoded network path of Windows",
    "C:/x": "a drive",
    "C:\\x": "a drive with a backslash",
    "C%3A/x": "a drive with an encoded colon",
    "c:x": "a path relative to a drive",
    "file%00.txt": "NUL",
    "file%2500.txt": "NUL, encoded twice",
    "\uff0e\uff0e/secret": "full-width dots",
    "%EF%BC%8E%EF%BC%8E/secret": "full-width dots, encoded",
    "\uff0e\uff0e\uff0fsecret": "full-width dots and separator",
    "\u2025/secret": "a two dot leader",
}
# And what reaches the handler, as which value.
HARMLESS = {
    "readme.md": "readme.md",
    "2026/07/app.log": "2026/07/app.log",
    "a//b/": "a//b/",
    ".env": ".env",
    "..hidden": "..hidden",
    "a..b": "a..b",
    "v1.2/..x/y..": "v1.2/..x/y..",
    "a%20b%3F": "a b?",
    "100%25": "100%",
    "%2541": "%41",
    "日本/\uff05\uff0etxt": "日本/\uff05\uff0etxt",
    "Wait… what": "Wait… what",
    "notes.": "notes.",
    "a:b/C:x": None,  # `a:` is a drive
    "id:C:x": "id:C:x",
}


def app_with(**options: Any) -> tuple[Server, list[str]]:
    app, seen = Server("s"), []

    @app.resource("x://{+path}", **options)
    def read(path: str) -> str:
        seen.append(path)
        return path

    return app, seen


def code_of(app: Server, uri: str, revision: str) -> Any:
    async def script() -> Any:
        async with connected(app, revision) as wire:
            meta = {"_meta": META} if revision == PER_REQUEST else {}
            wire.ask(1, "resources/read", {"uri": uri, **meta})
            return (await wire.answer(1)).get("error", {}).get("code")

    return asyncio.run(script())


@for_each("rest", TRICKS)
def test_a_value_that_leads_out_of_a_folder_is_a_resource_that_does_not_exist(rest: str) -> None:
    app, seen = app_with()
    outer = Server("outer")
    outer.mount(app)
    further = Server("further")
    further.mount(outer)
    for server in (app, outer, further):
        assert code_of(server, f"x://{rest}", "2025-11-25") == -32002
        assert code_of(server, f"x://{rest}", PER_REQUEST) == -32602
    assert seen == []


@for_each("rest", TRICKS)
def test_no_operator_lets_such_a_value_through(rest: str) -> None:
    for template, uri in (
        ("x://a/{v}", f"x://a/{rest}"),
        ("x://a{/v}", f"x://a/{rest}"),
        ("x://a{/v,w}", f"x://a/{rest}"),
        ("x://a{?v}", f"x://a?v={rest}"),
        ("x://a{?w}{&v}", f"x://a?w=1&v={rest}"),
        ("x://a{#v}", f"x://a#{rest}"),
        ("x://a{;v}", f"x://a;v={rest}"),
        ("x://{+v}/b", f"x://{rest}/b"),
        ("x://{+v}%20{w}", f"x://{rest}%20b"),
    ):
        values = UriTemplate(template).match(uri, safe=True)
        # An operator may take a part of it that is harmless, never one that is not.
        assert values is None or all(is_safe_value(v, v) for v in values.values()), template


@for_each(("rest", "value"), HARMLESS.items())
def test_a_harmless_value_reaches_the_handler(rest: str, value: str | None) -> None:
    app, seen = app_with()
    code_of(app, f"x://{rest}", "2025-11-25")
    assert seen == ([] if value is None else [value])


def test_a_template_of_unsafe_values_takes_them_all_also_through_a_mount() -> None:
    app, seen = app_with(unsafe=True)
    outer = Server("outer")
    outer.mount(app)
    assert code_of(outer, "x://..%2F..%2Fetc/passwd%00", "2025-11-25") is None
    assert seen == ["../../etc/passwd\0"]


def test_a_template_behind_one_that_refuses_a_value_may_take_it() -> None:
    app, seen = app_with()
    app.add_resource(lambda name: f"found {name}", "x://{name}", unsafe=True)

    async def script() -> str:
        async with Client(app) as client:
            return (await client.read_resource("x://a%2Fb")).contents[0].text  # type: ignore[return-value]  # it is a text

    assert asyncio.run(script()) == "found a/b"
    assert seen == []


def test_unsafe_is_refused_for_a_resource_without_variables() -> None:
    with pytest.raises(ValueError, match="unsafe=True is for templates"):
        Server("s").add_resource(lambda: "x", "x://a", unsafe=True)


def test_an_unsafe_uri_cannot_be_subscribed_to() -> None:
    app, _ = app_with()

    async def script() -> None:
        async with Client(app, revision="2025-11-25") as client:
            with pytest.raises(PeerError, match="not found"):
                await client.subscribe("x://../secret")

    asyncio.run(script())


def test_completions_of_a_template_take_any_value() -> None:
    app, _ = app_with()

    @app.completion(argument="path", resource="x://{+path}")
    def paths(value: str) -> list[str]:
        return [f"{value}x"]

    async def script() -> Any:
        async with Client(app) as client:
            return await client.complete("path", "../a", resource="x://{+path}")

    assert asyncio.run(script()).values == ["../ax"]

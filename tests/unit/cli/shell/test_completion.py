"""Completion of lines, against a server in the same process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct

from trunkline import Client, Server
from trunkline.cli.shell.catalogue import Catalogue
from trunkline.cli.shell.completion import MAX_CANDIDATES, ShellCompleter

COMMANDS = {"call": "call a tool", "list": "", "read": "", "prompt": "", "log": "", "save": ""}
COMMANDS |= {"subscribe": "", "watch": "", "tasks": "", "help": "", "edit": "", "revision": ""}


class Place(Struct):
    lat: float
    kind: Literal["town", "city"] = "town"


def app() -> Server:
    app = Server("x", version="1")

    @app.tool
    def forecast(
        city: str,
        detail: Literal["short", "full"] = "short",
        is_dry: bool = False,
        tags: list[Literal["a", "b"]] | None = None,
        place: Place | None = None,
    ) -> str:
        """Say how the weather will be.

        There is more to say.
        """
        return ""

    @app.tool
    def caller() -> str:
        return ""

    @app.resource("note://one")
    def one() -> str:
        return ""

    @app.resource("city://{name}/{street}/map")
    def city_map(name: str, street: str) -> str:
        return ""

    @app.prompt
    def report(city: str, tone: str = "dry") -> str:
        return ""

    @app.completion(prompt="report", argument="city")
    def cities(typed: str, others: dict[str, str]) -> list[str]:
        found = ["Oslo", "New York", "Oxford"]
        return [each for each in found if each.startswith(typed)] + [*others.values()]

    @app.completion(resource="city://{name}/{street}/map", argument="street")
    def streets(typed: str, others: dict[str, str]) -> list[str]:
        return [f"{others['name']}-street", "Main Street"]

    return app


async def shown(text: str, server: Server | None = None, revision: str | None = None) -> list[str]:
    """Return the line after each candidate."""
    async with Client(server or app(), revision=revision) as client:
        completer = ShellCompleter(
            Catalogue(lambda: client), COMMANDS, lambda name: {"--json": "as JSON"}
        )
        start, found = await completer.candidates(text)
        return [text[:start] + each.text for each in found]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("ca", ["call ", "caller "]),
        ("fo", ["forecast "]),
        ("forecast ci", ["forecast city="]),
        ("call f", ["call forecast "]),
        ("call forecast d", ["call forecast detail="]),
        ("call forecast detail=", ["call forecast detail=full ", "call forecast detail=short "]),
        ("call forecast is_dry=t", ["call forecast is_dry=true "]),
        ("call forecast tags=a,", ["call forecast tags=a,a ", "call forecast tags=a,b "]),
        ("call forecast place.k", ["call forecast place.kind="]),
        ("call forecast place.kind=c", ["call forecast place.kind=city "]),
        ("call forecast city=Oslo c", []),
        ("call nothing x", []),
        ("edit fo", ["edit forecast "]),
        ("list t", ["list tools ", "list templates "]),
        ("list tools f", ["list tools forecast "]),
        ("list templates c", ["list templates 'city://{name}/{street}/map' "]),
        ("read n", ["read note://one "]),
        ("read ci", ["read city://"]),
        ("read city://a/", ["read city://a/a-street", "read 'city://a/Main Street'"]),
        ("subscribe n", ["subscribe note://one "]),
        ("prompt r", ["prompt report "]),
        ("prompt report ", ["prompt report city=", "prompt report tone="]),
        ("prompt report city=N", ["prompt report city='New York' "]),
        ("prompt report tone=x city='New", None),
        ("prompt report tone=x", []),
        ("log e", ["log error ", "log emergency "]),
        ("watch o", ["watch on ", "watch off "]),
        ("revision 2024", ["revision 2024-11-05 "]),
        ("tasks c", ["tasks cancel "]),
        ("help ca", ["help call "]),
        ("call --j", ["call --json "]),
        ("log error ", []),
    ],
)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_line_is_completed(text: str, lines: list[str] | None, revision: str) -> None:
    found = await shown(text, revision=revision)
    if lines is None:  # a quote is open, and another argument has a value
        lines = [
            "prompt report tone=x city='New York' ",
            "prompt report tone=x city=x ",
        ]
    assert found == lines


async def test_files_are_completed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "new folder").mkdir()
    (tmp_path / ".hidden").touch()
    assert await shown(f"save {tmp_path}/no") == [f"save {tmp_path}/notes.txt "]
    assert await shown(f"save {tmp_path}/") == [
        f"save '{tmp_path}/new folder/'",
        f"save {tmp_path}/notes.txt ",
    ]
    assert await shown(f"forecast city=@{tmp_path}/not") == [
        f"forecast city=@{tmp_path}/notes.txt "
    ]
    assert await shown(f"save {tmp_path}/nowhere/x") == []


async def test_entries_are_bounded_and_printable() -> None:
    server = Server("x")
    schema = {"type": "object"}

    def nothing(arguments: dict[str, Any]) -> str:
        return ""

    for at in range(300):
        server.add_tool(nothing, f"tool{at}", input_schema=schema)
    assert len(await shown("call tool", server)) == MAX_CANDIDATES
    odd = {
        "type": "object",
        "properties": {"a\x1b[31m": {}, "b\u202e": {}, "fine": {"enum": ["\x07", "ok", "x" * 300]}},
    }
    server.add_tool(nothing, "odd", input_schema=odd, description="one\x1b[2J")
    assert await shown("odd ", server) == ["odd fine="]
    assert await shown("odd fine=", server) == ["odd fine=ok "]


async def test_a_value_of_the_server_never_names_a_file_or_an_option() -> None:
    server = Server("x")
    enum = ["@/etc/passwd", "@x", "y"]
    schema = {"type": "object", "properties": {"v": {"enum": enum}, "w=@/etc/passwd": {}}}
    server.add_tool(lambda arguments: "", "odd", input_schema=schema)
    server.add_resource(lambda: "", "--save=a:b")

    @server.prompt
    def report(city: str) -> str:
        return ""

    @server.completion(prompt="report", argument="city")
    def cities(typed: str) -> list[str]:
        return [each for each in enum if each.startswith(typed)]

    assert await shown("odd ", server) == ["odd v="]
    assert await shown("odd v=", server) == ["odd v=@@/etc/passwd ", "odd v=@@x ", "odd v=y "]
    assert await shown("odd v=@@x", server) == ["odd v=@@x "]
    assert (await shown("prompt report city=", server))[1] == "prompt report city=@@x "
    assert await shown("prompt report city=@@x", server) == ["prompt report city=@@x "]
    assert await shown("read ", server) == []


async def test_a_schema_that_is_not_one_completes_nothing() -> None:
    server = Server("x")
    server.add_tool(
        lambda arguments: "",
        "loop",
        input_schema={
            "type": "object",
            "properties": {"a": {"$ref": "#/properties/a"}, "b": {"anyOf": [{"$ref": "#"}]}},
        },
    )
    assert "loop a=" in await shown("loop ", server)
    assert await shown("loop a=", server) == []


async def test_values_are_asked_for_once_in_a_while_and_never_after_a_refusal() -> None:
    asked: list[str] = []
    server = Server("x")

    @server.prompt
    def report(city: str) -> str:
        return ""

    @server.completion(prompt="report", argument="city")
    def cities(typed: str) -> list[str]:
        asked.append(typed)
        return ["Oslo"]

    async with Client(server) as client:
        catalogue = Catalogue(lambda: client)
        for _ in range(3):
            assert await catalogue.values("city", "O", prompt="report", others={}) == ["Oslo"]
        assert asked == ["O"]
        catalogue.forget("prompts")
        await catalogue.values("city", "O", prompt="report", others={})
        assert asked == ["O", "O"]


async def test_a_slow_list_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from trunkline.cli.shell import catalogue

    monkeypatch.setattr(catalogue, "_LIST_TIMEOUT_S", 0.01)
    server = app()

    @server.middleware
    async def slow(ctx: Any, proceed: Any) -> Any:
        if ctx.method == "tools/list":
            await asyncio.sleep(60)
        return await proceed()

    assert await shown("call f", server) == []

"""How many entries a page of a list has, in each revision."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import connected
from trunkline import Server
from trunkline.spec.revisions import REVISIONS

KINDS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def make(count: int, text: str = "", **options: Any) -> Server:
    app = Server("test", **options)
    for number in range(count):
        app.add_tool(lambda: "x", f"t{number}", description=text)
        app.add_prompt(lambda: "x", f"p{number}", description=text)
        app.add_resource(lambda: "x", f"r://{number}", description=text)
        app.add_resource(lambda a: a, f"r{number}://{{a}}", description=text)
    return app


def sizes(app: Server, method: str, revision: str) -> list[int]:
    async def main() -> list[int]:
        found: list[int] = []
        async with connected(app, revision) as wire:
            params = {"_meta": META} if revision == PER_REQUEST else {}
            while True:
                wire.ask(len(found) + 1, method, params)
                result = (await wire.answer(len(found) + 1))["result"]
                found.append(len(result[KINDS[method]]))
                if "nextCursor" not in result:
                    return found
                params = {**params, "cursor": result["nextCursor"]}

    return asyncio.run(main())


@pytest.mark.parametrize("method", KINDS)
def test_lists_are_one_page_in_sessions_and_pages_of_100_without(method: str) -> None:
    app = make(120)
    for revision in REVISIONS:
        expected = [100, 20] if revision == PER_REQUEST else [120]
        assert sizes(app, method, revision) == expected


@pytest.mark.parametrize("method", KINDS)
def test_a_list_beyond_half_a_mebibyte_has_pages_in_sessions_too(method: str) -> None:
    found = sizes(make(20, "x" * 60_000), method, "2025-11-25")
    assert found == [8, 8, 4]


@pytest.mark.parametrize("revision", ["2025-11-25", PER_REQUEST])
def test_a_page_size_holds_in_every_revision(revision: str) -> None:
    assert sizes(make(7, page_size=3), "tools/list", revision) == [3, 3, 1]


def test_a_page_has_at_least_one_entry() -> None:
    with pytest.raises(ValueError, match="page_size is at least 1"):
        Server("test", page_size=0)


@pytest.mark.parametrize("revision", ["2025-11-25", PER_REQUEST])
def test_each_kind_may_have_a_page_size_of_its_own(revision: str) -> None:
    app = make(7, page_size={"tools": 3, "prompts": 5, "resource_templates": 6})
    assert {method: sizes(app, method, revision) for method in KINDS} == {
        "tools/list": [3, 3, 1],
        "prompts/list": [5, 2],
        "resources/list": [7],
        "resources/templates/list": [6, 1],
    }


def test_kind_without_a_page_size_has_that_of_every_server() -> None:
    app = make(120, page_size={"tools": 110})
    assert sizes(app, "prompts/list", PER_REQUEST) == [100, 20]
    assert sizes(app, "prompts/list", "2025-11-25") == [120]
    assert sizes(app, "tools/list", "2025-11-25") == [110, 10]

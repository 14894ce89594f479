"""Lists: their pages, and what is said when they change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conversation.app import PAGE
from tests.conversation.rig import ClientCallbacks, Raw, Rig
from tests.conversation.rules import rule
from trunkline.spec.revisions import V2026_07_28

METHODS = [
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("prompts/list", "prompts"),
    ("resources/templates/list", "resourceTemplates"),
]


async def pages(raw: Raw, method: str) -> list[dict[str, Any]]:
    found, cursor = [], None
    while True:
        found.append(await raw.result(method, {} if cursor is None else {"cursor": cursor}))
        if (cursor := found[-1].get("nextCursor")) is None:
            return found


@rule("BP-157", "BP-158", "K-67", "F-24")
@pytest.mark.parametrize(("method", "member"), METHODS)
async def test_list_is_paginated_and_the_last_page_has_no_cursor(
    rig: Rig, method: str, member: str
) -> None:
    found = await pages(rig.raw, method)
    assert all(len(page[member]) == PAGE for page in found[:-1])
    assert 0 < len(found[-1][member]) <= PAGE
    assert "nextCursor" not in found[-1]
    names = [row["name"] for page in found for row in page[member]]
    assert len(names) == len(set(names))
    if member == "tools":
        assert len(found) > 3


@rule("BP-158", "K-66")
@pytest.mark.parametrize("method", ["tools/list", "resources/templates/list"])
async def test_unknown_cursor_is_invalid_params(rig: Rig, method: str) -> None:
    for cursor in ("nonsense", "", "AAAA", "0", "7", "é", "x" * 5000):
        assert (await rig.raw.error(method, {"cursor": cursor}))["code"] == -32602, cursor


@rule("BP-158", "K-66")
async def test_cursor_that_is_not_a_string_is_invalid_params(rig: Rig) -> None:
    for cursor in (5, None, ["a"], {}):
        assert (await rig.raw.error("tools/list", {"cursor": cursor}))["code"] == -32602, cursor


@rule("BP-158", "K-66")
async def test_cursor_of_one_list_is_invalid_for_another(rig: Rig) -> None:
    cursor = (await rig.raw.result("tools/list"))["nextCursor"]
    assert (await rig.raw.error("resources/list", {"cursor": cursor}))["code"] == -32602


@rule("BP-158", "K-66", fresh=True)
async def test_a_cursor_from_before_a_change_is_invalid_and_our_client_starts_again(
    rig: Rig,
) -> None:
    raw = await rig.line()
    cursor = (await raw.result("tools/list"))["nextCursor"]
    await raw.call("grow", kind="tool", names=["new"])
    assert (await raw.error("tools/list", {"cursor": cursor}))["code"] == -32602
    names = [row["name"] for page in await pages(raw, "tools/list") for row in page["tools"]]
    assert names[-1] == "new"


@rule("BP-157", "F-24")
async def test_client_follows_pagination_to_the_last_page(rig: Rig) -> None:
    found = await rig.client.list_tools_page()
    assert len(found.tools) == PAGE
    names = [tool.name for tool in await rig.client.list_tools(fresh=True)]
    assert names == [
        row["name"] for page in await pages(rig.raw, "tools/list") for row in page["tools"]
    ]


# -- changes ---------------------------------------------------------------------------------


async def quieten(raw: Raw) -> None:
    """Wait longer than changes are gathered for."""
    for number in range(4):
        await raw.call("step", key="quiet", name=str(number))
    await raw.settle()


@rule("K-55", "F-32", "C-35", until=V2026_07_28, fresh=True)
@pytest.mark.parametrize("kind", ["tool", "prompt", "resource"])
async def test_many_changes_of_a_list_send_one_list_changed_notification(
    rig: Rig, kind: str
) -> None:
    raw = await rig.line()
    names = [f"new-{number}" for number in range(20)]
    await raw.call("grow", kind=kind, names=names)
    notice = f"notifications/{kind}s/list_changed"
    await raw.wait_for_notifications(notice)
    await quieten(raw)
    assert len(raw.notifications(notice)) == 1
    raw.received.clear()
    await raw.call("shrink", kind=kind, names=names)
    await raw.wait_for_notifications(notice)
    await quieten(raw)
    assert [each["method"] for each in raw.received if "method" in each] == [notice]


@rule("K-55", "F-24", until=V2026_07_28, fresh=True)
async def test_client_receives_list_changed_and_lists_the_new_tool(rig: Rig) -> None:
    callbacks = ClientCallbacks()
    client = await rig.connect(**callbacks.options())
    before = {tool.name for tool in await client.list_tools()}
    await client.call_tool("grow", {"kind": "tool", "names": ["new"]})
    await callbacks.until(lambda: bool(callbacks.changes))
    assert callbacks.changes == ["tools"]
    assert {tool.name for tool in await client.list_tools()} == before | {"new"}
    assert (await client.call_tool("new")).text == "extra"
    await client.call_tool("shrink", {"kind": "tool", "names": ["new"]})
    assert {tool.name for tool in await client.list_tools(fresh=True)} == before


@rule("F-24", "F-25", "F-26", fresh=True)
async def test_added_items_can_be_used_and_removed_items_cannot(rig: Rig) -> None:
    raw = await rig.line()
    for kind in ("tool", "prompt", "resource"):
        await raw.call("grow", kind=kind, names=["new"])
    uses: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "new"}),
        ("prompts/get", {"name": "new"}),
        ("resources/read", {"uri": "extra://new"}),
    ]
    for method, params in uses:
        assert "result" in await raw.ask(method, params)
    for kind in ("tool", "prompt", "resource"):
        await raw.call("shrink", kind=kind, names=["new"])
    for method, params in uses:
        assert "error" in await raw.ask(method, params)

"""Mounted servers, lifespans, middleware, and custom methods and notifications."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.conversation.rig import Rig
from tests.conversation.rules import rule
from trunkline.errors import ConnectionLost, PeerError, RequestTimeout
from trunkline.spec.revisions import V2026_07_28


@rule("F-24", "F-26")
async def test_mounted_tools_and_prompts_are_offered_under_their_prefix(rig: Rig) -> None:
    names = {tool.name for tool in await rig.client.list_tools()}
    assert {"math_times", "math_state"} <= names
    assert "times" not in names
    # The mounted server has a middleware of its own, which doubles.
    result = await rig.client.call_tool("math_times", {"a": 3, "b": 4}, result_type=int)
    assert result.value == 24
    got = await rig.raw.result("prompts/get", {"name": "math_sum_up"})
    assert got["messages"][0]["content"]["text"] == "Sum it up."
    assert (await rig.raw.error("tools/call", {"name": "times"}))["code"] == -32602


@rule("F-24", "C-01")
async def test_each_server_has_the_state_of_its_own_lifespan(rig: Rig) -> None:
    assert await rig.raw.text("math_state") == "arithmetic is open as math_state"
    assert (await rig.raw.text("who"))["state"] == {"database": "connected"}


@rule("F-24", "F-25", "F-26", fresh=True)
async def test_middleware_wraps_every_handler_in_registration_order(rig: Rig) -> None:
    raw = await rig.line("wrapped")
    assert await raw.text("shout", text="hey") == "HEY"
    seen = ["outer shout", "inner", "outer again", "outer seen", "inner"]
    assert (await raw.text("seen"))[-5:] == seen
    read = await raw.result("resources/read", {"uri": "note://quiet"})
    assert read["contents"][0]["text"] == "QUIET"
    got = await raw.result("prompts/get", {"name": "soft"})
    assert got["messages"][0]["content"]["text"] == "SOFT"


@rule("K-69", fresh=True)
async def test_middleware_can_refuse_a_call(rig: Rig) -> None:
    raw = await rig.line("wrapped")
    error = await raw.error("tools/call", {"name": "closed"})
    assert (error["code"], error["message"]) == (-32600, "Closed today")


@rule("K-23")
async def test_custom_method_is_served_in_every_revision(rig: Rig) -> None:
    result = await rig.raw.result("example/double", {"value": 21})
    assert result["doubled"] == 42
    assert (await rig.client.request("example/double", {"value": 1}))["doubled"] == 2


@rule("K-23")
@pytest.mark.parametrize("params", [{}, {"value": "x"}, {"value": 1, "other": 2}])
async def test_custom_method_validates_its_params(rig: Rig, params: dict[str, Any]) -> None:
    assert (await rig.raw.error("example/double", params))["code"] == -32602


@rule("K-23", fresh=True)
async def test_custom_method_is_served_only_by_the_server_that_registered_it(rig: Rig) -> None:
    raw = await rig.line("only-tools")
    assert (await raw.error("example/double", {"value": 1}))["code"] == -32601


@rule("K-23", "F-32")
async def test_custom_notification_reaches_its_handler(rig: Rig) -> None:
    key = f"own-{rig.raw.new_id()}"
    rig.raw.notify("example/noted", {"key": key})
    assert await rig.raw.text("noted", key=key) == ["heard"]


@rule("C-12", "C-15", fresh=True)
async def test_close_fails_open_calls_with_connection_lost(rig: Rig) -> None:
    client = await rig.connect(judged=False)
    call = client.submit_tool("hold", {"key": "never"})
    await client.close()
    assert isinstance(call.exception(), ConnectionLost)
    assert not client.is_connected


@rule("C-01", "C-45", "K-47")
async def test_client_callbacks_run_on_the_loop_of_the_client(rig: Rig) -> None:
    here, threads = threading.get_ident(), set()
    done = asyncio.Event()

    def note(*_: Any) -> None:
        threads.add(threading.get_ident())

    def end(_: Any) -> None:
        note()
        done.set()

    before = threading.active_count()
    rig.client.submit_tool("report", {"values": [1]}, on_progress=note, on_success=end)
    timed = rig.client.submit_tool("hold", {"key": "callback"}, timeout=0.05, on_error=end)
    async with asyncio.timeout(10):
        await done.wait()
        with pytest.raises(RequestTimeout):
            await timed
    assert threads == {here}
    if rig.transport != "memory":
        assert threading.active_count() == before


@rule("K-16", since=V2026_07_28)
async def test_peer_error_names_its_method(rig: Rig) -> None:
    with pytest.raises(PeerError) as caught:
        await rig.client.read_resource("note://nowhere")
    assert caught.value.method == "resources/read"

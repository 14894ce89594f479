"""Methods of the systems that MCP does not have, where a server registers them."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from tests.rigs.server_connection import ServerConnection, connected
from trunkline import Client, Context, PeerError, RequestError, Server
from trunkline.compat import erlmcp, mcpp, pierre
from trunkline.compat._session_state import MAX_ENTRIES
from trunkline.jsonrpc import Policy

OWN = {
    "erlmcp": (
        *("requests/cancel", "tasks/create", "tasks/status", "tasks/progress"),
        *("roots/add", "roots/remove", "shutdown"),
    ),
    "mcpp": ("prompts/complete", "resources/complete"),
    "pierre": ("authenticate",),
}


async def ask(wire: ServerConnection, number: Any, method: str, /, **params: Any) -> Any:
    wire.ask(number, method, params)
    reply = await wire.answer(number)
    return reply.get("result", reply.get("error"))


@pytest.mark.parametrize("method", [each for names in OWN.values() for each in names])
async def test_a_method_of_a_system_is_not_served_unless_it_is_registered(method: str) -> None:
    async with connected(Server("plain")) as wire:
        assert (await ask(wire, 1, method))["code"] == -32601


# -- erlmcp --------------------------------------------------------------------------------------


async def test_a_request_is_cancelled_by_a_request() -> None:
    app = Server("erlmcp")
    erlmcp.methods(app)
    began, ended = asyncio.Event(), asyncio.Event()

    @app.tool
    async def hold() -> str:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return "held"

    async with connected(app) as wire:
        wire.call(1, "hold")
        await began.wait()
        assert await ask(wire, 2, "requests/cancel", requestId=7) == {"cancelled": False}
        assert await ask(wire, 3, "requests/cancel", requestId=3) == {"cancelled": False}
        assert not ended.is_set()
        cancelled = await ask(wire, 4, "requests/cancel", requestId=1, reason="enough")
        assert cancelled == {"cancelled": True}
        await ended.wait()
        assert await ask(wire, 5, "requests/cancel", requestId=1) == {"cancelled": False}
        assert [each["id"] for each in wire.got] == [2, 3, 4, 5]


async def test_a_client_creates_tasks_and_reports_their_progress() -> None:
    app = Server("erlmcp")
    own = erlmcp.methods(app)

    @app.tool
    def finish(ctx: Context) -> int:
        for task in own.tasks(ctx):
            task.status = "completed"
        return len(own.tasks(ctx))

    async with connected(app) as wire:
        created = await ask(wire, 1, "tasks/create", id="t-1", metadata={"owner": "Ada"})
        assert created == {"taskId": "t-1", "status": "pending"}
        assert (await ask(wire, 2, "tasks/create", id="t-1"))["code"] == -32602
        known = {"taskId": "t-1", "metadata": {"owner": "Ada"}}
        assert await ask(wire, 3, "tasks/status", taskId="t-1") == {**known, "status": "pending"}
        moved = await ask(wire, 4, "tasks/progress", taskId="t-1", progress=5, total=10)
        assert moved == {**known, "status": "processing", "progress": 5, "total": 10}
        moved = await ask(wire, 5, "tasks/progress", taskId="t-1", progress=6, message="on")
        assert (moved["progress"], moved["total"], moved["message"]) == (6, 10, "on")
        assert (await ask(wire, 6, "tasks/status", taskId="t-2"))["code"] == -32602
        wire.call(7, "finish")
        await wire.answer(7)
        assert (await ask(wire, 8, "tasks/status", taskId="t-1"))["status"] == "completed"
        async with connected(app) as other:
            assert (await ask(other, 1, "tasks/status", taskId="t-1"))["code"] == -32602


async def test_a_client_adds_and_removes_roots() -> None:
    app = Server("erlmcp")
    own = erlmcp.methods(app)

    @app.tool
    def roots(ctx: Context) -> list[str]:
        return [root.uri for root in own.roots(ctx)]

    async with connected(app) as wire:
        first = {"uri": "file:///a", "name": "A"}
        assert await ask(wire, 1, "roots/add", **first) == {"root": first}
        assert await ask(wire, 2, "roots/add", uri="file:///b") == {"root": {"uri": "file:///b"}}
        listed = await ask(wire, 3, "tools/call", name="roots")
        assert listed["structuredContent"]["result"] == ["file:///a", "file:///b"]
        assert await ask(wire, 4, "roots/remove", uri="file:///a") == {"removed": True}
        assert await ask(wire, 5, "roots/remove", uri="file:///a") == {"removed": False}
        listed = await ask(wire, 6, "tools/call", name="roots")
        assert listed["structuredContent"]["result"] == ["file:///b"]
        async with connected(app) as other:
            assert await ask(other, 1, "roots/remove", uri="file:///b") == {"removed": False}


async def test_shutdown_is_answered() -> None:
    app = Server("erlmcp")
    erlmcp.methods(app)
    async with connected(app) as wire:
        assert await ask(wire, 1, "shutdown") == {}


async def test_what_one_session_keeps_is_bounded_and_ends_with_it() -> None:
    app = Server("erlmcp")
    own = erlmcp.methods(app)

    async def fill() -> None:
        async with connected(app) as wire:
            for number in range(MAX_ENTRIES):
                wire.ask(number, "roots/add", {"uri": f"file:///{number}"})
            refused = await ask(wire, "more", "roots/add", uri="file:///more")
            assert refused["code"] == -32603
            assert str(MAX_ENTRIES) in refused["message"]
            assert "root" in await ask(wire, "again", "roots/add", uri="file:///1")
            assert len(own._state._of) == 1

    await asyncio.create_task(fill())
    gc.collect()
    assert len(own._state._of) == 0


async def test_clients_without_sessions_have_no_tasks_and_roots_of_their_own() -> None:
    app = Server("erlmcp")
    erlmcp.methods(app)
    async with Client(app, revision="2026-07-28") as client:
        with pytest.raises(PeerError, match="belongs to a session") as caught:
            await client.request("roots/add", {"uri": "file:///a"})
        assert caught.value.code == -32601
        cancelled = await client.request("requests/cancel", {"requestId": 99})
        assert cancelled["cancelled"] is False


# -- mcpp ----------------------------------------------------------------------------------------


def completing() -> Server:
    app = Server("mcpp")
    mcpp.methods(app)

    @app.prompt
    def trip(city: str) -> str:
        return city

    @app.resource("city://{name}")
    def city(name: str) -> str:
        return name

    @app.completion(prompt="trip", argument="city")
    @app.completion(resource="city://{name}", argument="name")
    def cities(value: str) -> list[str]:
        return [each for each in ("Bergen", "Bern", "Oslo") if each.startswith(value)]

    return app


@pytest.mark.parametrize(
    ("method", "reference", "argument"),
    [
        ("prompts/complete", {"name": "trip"}, "city"),
        ("resources/complete", {"uri": "city://{name}"}, "name"),
    ],
)
async def test_prompts_and_resources_are_completed(
    method: str, reference: dict[str, str], argument: str
) -> None:
    for revision in ("2025-11-25", "2026-07-28"):
        async with Client(completing(), revision=revision) as client:
            wanted = {"name": argument, "value": "Be"}
            result = await client.request(method, {**reference, "argument": wanted})
            assert result["completion"]["values"] == ["Bergen", "Bern"]
            nobody = dict.fromkeys(reference, "nobody")
            for wrong in ({"argument": wanted}, {**nobody, "argument": wanted}, reference):
                with pytest.raises(PeerError) as caught:
                    await client.request(method, wrong)
                assert caught.value.code == -32602


async def test_a_server_without_completions_completes_nothing() -> None:
    app = Server("mcpp")
    mcpp.methods(app)
    async with connected(app) as wire:
        params = {"name": "trip", "argument": {"name": "city", "value": ""}}
        assert (await ask(wire, 1, "prompts/complete", **params))["code"] == -32601


# -- Pierre --------------------------------------------------------------------------------------


async def test_a_client_of_pierre_authenticates_by_a_request() -> None:
    app = Server("pierre", policy=Policy.pierre())

    def check(token: str) -> dict[str, Any]:
        if token != "right":
            raise RequestError("AUTHENTICATION_FAILED")
        return {"authenticated": True, "user": "ada"}

    pierre.methods(app, check)
    async with Client(app, policy=Policy.pierre(), revision="2025-06-18") as client:
        result = await client.request("authenticate", {"token": "right"})
        assert result == {"authenticated": True, "user": "ada"}
        with pytest.raises(PeerError) as caught:
            await client.request("authenticate", {"token": "wrong"})
        assert caught.value.code == pierre.ERROR_AUTHENTICATION


def test_methods_are_registered_once() -> None:
    app = Server("all")
    for register in (erlmcp.methods, mcpp.methods, lambda app: pierre.methods(app, lambda: None)):
        register(app)
        with pytest.raises(ValueError, match="registered already"):
            register(app)

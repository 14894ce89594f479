"""What a type checker makes of clients: read by one, never run."""

from __future__ import annotations

from typing import Any, assert_type

from msgspec import Struct

from trunkline import Client, PendingCall, Server, Stdio, ToolResult, memory_pair
from trunkline.client import ServerChange, Subscription, SubscriptionTopics, TaskHandle
from trunkline.mcp import InitializeResult, Tool
from trunkline.mcp.types import Task, TaskStatus


class Forecast(Struct):
    """What a tool gives."""

    city: str


class Mine(Client):
    """A client of somebody's own."""

    def extra(self) -> int:
        """Return something that `Client` has not."""
        return 1


def targets(app: Server) -> None:
    """Whatever one can connect to, and nothing else."""
    Client(app)
    Client(Stdio("server"))
    Client(["python", "server.py"])
    Client(("python", "server.py"))
    Client(memory_pair()[0])
    Client(42)  # type: ignore[arg-type]  # this is what the file is for


async def of_ones_own(app: Server) -> None:
    """A subclass stays what it is."""
    async with Mine(app) as client:
        assert_type(client, Mine)
        client.extra()


async def tools(client: Client) -> None:
    """The value of a result is of the type that was asked for."""
    assert_type(await client.call_tool("x"), ToolResult[Any])
    found = await client.call_tool("x", result_type=Forecast)
    assert_type(found, ToolResult[Forecast])
    assert_type(found.value, Forecast)
    assert_type((await client.call_tool("x", result_type=list[int])).value, list[int])
    # A union is no class, so nothing is known of the value; it is not refused either.
    assert_type(await client.call_tool("x", result_type=Forecast | None), ToolResult[Any])
    assert_type(await client.list_tools(), list[Tool])


async def calls(client: Client) -> None:
    """Calls in hand, alone and in a batch."""
    assert_type(client.submit_tool("x", result_type=Forecast), PendingCall[ToolResult[Forecast]])
    assert_type(client.submit_tool("x", result_type=Forecast | int), PendingCall[ToolResult[Any]])
    assert_type(client.submit_tool("x"), PendingCall[ToolResult[Any]])
    assert_type(await client.submit("ping"), dict[str, Any])
    async with client.batch() as batch:
        one = batch.submit_tool("x", result_type=Forecast, timeout=5)
        assert_type(one, PendingCall[ToolResult[Forecast]])
        assert_type(
            batch.submit_tool("x", result_type=Forecast | None), PendingCall[ToolResult[Any]]
        )
        assert_type(batch.submit("ping"), PendingCall[dict[str, Any]])


async def requests(client: Client) -> None:
    """Requests of one's own."""
    assert_type(await client.request("acme/own"), dict[str, Any])
    assert_type(await client.request("acme/own", result_type=Forecast), Forecast)
    assert_type(await client.request("acme/own", result_type=Forecast | None), Any)
    assert_type(client.initialize_result, InitializeResult | None)


async def levels(client: Client) -> None:
    """Levels are names, and None is one too."""
    await client.set_logging_level("debug")
    await client.set_logging_level(None)
    await client.set_logging_level("loud")  # type: ignore[arg-type]  # as above


async def changes(client: Client) -> None:
    """A stream gives changes, and says what the server agreed to."""
    async with client.listen(tools=True, uris=["x:a"], timeout=5) as stream:
        assert_type(stream, Subscription)
        assert_type(stream.honoured, SubscriptionTopics)
        assert_type(stream.reason, str | None)
        async for change in stream:
            assert_type(change, ServerChange)
            assert_type(change.uri, str | None)
    client.listen(tools="all")  # type: ignore[arg-type]  # as above


async def notifications(client: Client, app: Server) -> None:
    """A notification may be awaited or not; a sampled text is a text."""
    client.notify("x/y", {"a": 1})
    assert_type(await client.notify("x/y"), None)
    assert_type(await client.send_roots_list_changed(), None)
    assert_type((await client.read_resource("x:a")).text, str)
    Client(app, on_sample=lambda params: "5")
    Client(app, on_sample=lambda params: 5)  # type: ignore[arg-type,return-value]  # as above
    Client({"mcpServers": {}}, prefix="always")
    Client({"mcpServers": {}}, prefix="never")  # type: ignore[arg-type]  # as above


async def tasks(client: Client) -> None:
    """A task has a result of the type that was asked for."""
    task = await client.call_tool_as_task("x", {"a": 1}, result_type=Forecast, ttl=60)
    assert_type(task, TaskHandle[Forecast])
    assert_type(task.id, str | None)
    assert_type(await task.result(), ToolResult[Forecast])
    async for status in task:
        assert_type(status, TaskStatus)
    assert_type(await client.call_tool_as_task("x"), TaskHandle[Any])
    assert_type(await client.call_tool_as_task("x", result_type=Forecast | None), TaskHandle[Any])
    assert_type(client.task("id"), TaskHandle[Any])
    assert_type(client.task("id", result_type=Forecast), TaskHandle[Forecast])
    assert_type(await client.list_tasks(), list[Task])

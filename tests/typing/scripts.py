"""What a type checker makes of clients that block: read by one, never run."""

from __future__ import annotations

from typing import Any, assert_type

from msgspec import Struct

from trunkline import Server, Stdio, SyncClient, ToolResult
from trunkline.client import (
    ServerChange,
    SubscriptionTopics,
    SyncPendingCall,
    SyncSubscription,
    SyncTaskHandle,
)
from trunkline.mcp import InitializeResult, Tool
from trunkline.mcp.types import Task, TaskStatus


class Forecast(Struct):
    """What a tool gives."""

    city: str


class Mine(SyncClient):
    """A client of somebody's own."""

    def extra(self) -> int:
        """Return something that `SyncClient` has not."""
        return 1


def options(app: Server) -> None:
    """The options of `Client`, and no others."""
    SyncClient(app, timeout=5, revision="2025-11-25", on_log=print, strict=True)
    SyncClient(Stdio("server"), on_elicit=lambda question: {"city": "Oslo"})
    SyncClient(["python", "server.py"], tasks=False, logging_level="debug")
    SyncClient(42)  # type: ignore[arg-type]  # this is what the file is for
    SyncClient(app, timeout="5")  # type: ignore[arg-type]  # as above
    SyncClient(app, colour="red")  # type: ignore[call-arg]  # as above
    SyncClient(app, logging_level="loud")  # type: ignore[arg-type]  # as above


def of_ones_own(app: Server) -> None:
    """A subclass stays what it is."""
    with Mine(app) as client:
        assert_type(client, Mine)
        client.extra()


def tools(client: SyncClient) -> None:
    """The value of a result is of the type that was asked for."""
    assert_type(client.call_tool("x"), ToolResult[Any])
    found = client.call_tool("x", result_type=Forecast)
    assert_type(found, ToolResult[Forecast])
    assert_type(found.value, Forecast)
    assert_type(client.call_tool("x", result_type=list[int]).value, list[int])
    assert_type(client.call_tool("x", result_type=Forecast | None), ToolResult[Any])
    assert_type(client.list_tools(), list[Tool])


def calls(client: SyncClient) -> None:
    """Calls in hand, alone and in a batch."""
    assert_type(
        client.submit_tool("x", result_type=Forecast), SyncPendingCall[ToolResult[Forecast]]
    )
    assert_type(
        client.submit_tool("x", result_type=Forecast | int), SyncPendingCall[ToolResult[Any]]
    )
    assert_type(client.submit_tool("x").result(5), ToolResult[Any])
    assert_type(client.submit("ping").result(), dict[str, Any])
    with client.batch() as batch:
        one = batch.submit_tool("x", result_type=Forecast, timeout=5)
        assert_type(one, SyncPendingCall[ToolResult[Forecast]])
        assert_type(batch.submit("ping"), SyncPendingCall[dict[str, Any]])
    assert_type(one.result().value, Forecast)


def requests(client: SyncClient) -> None:
    """Requests of one's own."""
    assert_type(client.request("acme/own"), dict[str, Any])
    assert_type(client.request("acme/own", result_type=Forecast), Forecast)
    assert_type(client.initialize_result, InitializeResult | None)
    client.set_logging_level("loud")  # type: ignore[arg-type]  # as above


def changes(client: SyncClient) -> None:
    """A stream gives changes, and says what the server agreed to."""
    with client.listen(tools=True, uris=["x:a"], timeout=5) as stream:
        assert_type(stream, SyncSubscription)
        assert_type(stream.honoured, SubscriptionTopics)
        assert_type(stream.get(5), ServerChange | None)
        for change in stream:
            assert_type(change, ServerChange)


def tasks(client: SyncClient) -> None:
    """A task has a result of the type that was asked for."""
    task = client.call_tool_as_task("x", {"a": 1}, result_type=Forecast, ttl=60)
    assert_type(task, SyncTaskHandle[Forecast])
    assert_type(task.id, str | None)
    assert_type(task.result(5), ToolResult[Forecast])
    for status in task:
        assert_type(status, TaskStatus)
    assert_type(client.call_tool_as_task("x", result_type=Forecast | None), SyncTaskHandle[Any])
    assert_type(client.task("id", result_type=Forecast), SyncTaskHandle[Forecast])
    assert_type(client.list_tasks(), list[Task])

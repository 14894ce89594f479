"""What keeps a server from running in several processes."""

from __future__ import annotations

from typing import Any

from trunkline import Server
from trunkline.server.runtime.workers import obstacles

ALONE: dict[str, Any] = {
    "revisions": ["2026-07-28"],
    "list_changed": False,
    "subscribe": False,
}


def make_app(**changes: Any) -> Server:
    app = Server("many", **{**ALONE, **changes})

    @app.tool
    async def echo(text: str) -> str:
        return text

    @app.resource("memo://a")
    async def memo() -> str:
        return "a"

    return app


def test_a_server_that_keeps_nothing_between_requests_has_no_obstacles() -> None:
    assert obstacles(make_app()._core) == []


def test_sessions_are_an_obstacle_to_workers_that_names_their_revisions() -> None:
    (why,) = obstacles(make_app(revisions=["2025-11-25", "2026-07-28"])._core)
    assert why.startswith("sessions of 2025-11-25 belong to one process")
    assert 'Server(revisions=["2026-07-28"])' in why


def test_list_changes_are_an_obstacle_to_workers() -> None:
    (why,) = obstacles(make_app(list_changed=True)._core)
    assert why.startswith("listChanged is declared for tools, prompts, resources,")
    assert "Server(list_changed=False)" in why


def test_resource_subscriptions_are_an_obstacle_to_workers() -> None:
    (why,) = obstacles(make_app(subscribe=True)._core)
    assert why.startswith("resources can be subscribed to")
    assert "Server(subscribe=False)" in why


def test_tasks_are_an_obstacle_to_workers() -> None:
    app = make_app()

    @app.tool(task="optional")
    async def long() -> str:
        return "done"

    assert obstacles(app._core) == ["tasks are kept in the memory of one process"]


def test_each_obstacle_is_named() -> None:
    app = Server("many")

    @app.tool(task="optional")
    async def long() -> str:
        return "done"

    @app.resource("memo://a")
    async def memo() -> str:
        return "a"

    assert len(obstacles(app._core)) == 4

"""What keeps a server from running in several processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trunkline import HttpSettings, Server
from trunkline.auth import (
    ApiKeys,
    AuthSettings,
    Chain,
    Dpop,
    JwtBearer,
    SigningKey,
    TenantLimits,
    Tenants,
)
from trunkline.server import RateLimit, RequestLog
from trunkline.server.runtime.workers import obstacles
from trunkline.store import MemoryStore

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


class SharedStore:
    """A store that processes share; nothing of it is used here."""


def bearer_tokens() -> JwtBearer:
    return JwtBearer(issuer="https://login.example.org", audience="x", keys={"keys": [PUBLIC]})


PUBLIC = SigningKey.generate("ES256").public_jwk
PROOFS = "used DPoP proofs are kept in the memory of one process"


@pytest.mark.parametrize(
    ("auth", "is_refused"),
    [
        (lambda: Dpop(bearer_tokens()), True),
        (lambda: Dpop(bearer_tokens(), store=MemoryStore()), True),
        (lambda: [ApiKeys([]), Dpop(bearer_tokens())], True),
        (lambda: Chain([ApiKeys([]), Dpop(bearer_tokens())]), True),
        (lambda: AuthSettings(verifiers=[Chain([Chain([Dpop(bearer_tokens())])])]), True),
        (lambda: Dpop(Dpop(bearer_tokens()), store=SharedStore()), True),  # type: ignore[arg-type]  # no more is needed
        (lambda: Dpop(bearer_tokens(), store=SharedStore()), False),  # type: ignore[arg-type]  # as above
        (bearer_tokens, False),
        (lambda: lambda request: "ann", False),
    ],
)
def test_proofs_in_the_memory_of_one_process_are_an_obstacle_to_workers(
    auth: Callable[[], Any], is_refused: bool
) -> None:
    found = obstacles(make_app(auth=auth())._core)
    assert [each.startswith(PROOFS) for each in found] == [True] * is_refused


def test_rates_of_http_are_an_obstacle_to_workers() -> None:
    core = make_app()._core
    assert obstacles(core, HttpSettings()) == []
    (why,) = obstacles(core, HttpSettings(rate=10))
    assert why.startswith("requests per second are counted by each process (remove --rate")


def test_rates_of_middleware_are_an_obstacle_to_workers() -> None:
    app = make_app()
    app.middleware(RequestLog())
    assert obstacles(app._core) == []
    app.middleware(RateLimit(5))
    (why,) = obstacles(app._core)
    assert why.startswith("requests per second are counted by each process (remove the RateLimit")


@pytest.mark.parametrize("name", ["in_flight", "bytes", "rate", "tasks", "sessions"])
@pytest.mark.parametrize("is_single", [False, True])
def test_limits_that_tenants_were_given_are_an_obstacle_to_workers(
    name: str, is_single: bool
) -> None:
    limits = TenantLimits(**{name: 10})
    tenants = Tenants(limits_of={"acme": limits}) if is_single else Tenants(limits=limits)
    auth = AuthSettings(verifiers=[ApiKeys([])], tenants=tenants)
    (why,) = obstacles(make_app(auth=auth)._core)
    assert why.startswith(f"limits of tenants ({name}) count in each process")


def test_tenants_with_a_share_of_each_process_are_not_an_obstacle_to_workers() -> None:
    auth = AuthSettings(verifiers=[ApiKeys([])], tenants=Tenants(claim="org"))
    assert obstacles(make_app(auth=auth)._core) == []

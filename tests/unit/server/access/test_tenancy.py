"""Limits, tool sets, labels and log fields of tenants."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from tests.rigs.messages import PER_REQUEST
from tests.rigs.server_connection import connected
from tests.unit.server.access.callers import BOTH, CallerWire, caller, connected_as
from trunkline import Context, Server, ServerLimits, TaskSettings, memory_pair
from trunkline.auth import AuthSettings, Fixed, Principal
from trunkline.auth.server.tenants import TenantLimits, Tenants
from trunkline.server.observability.json_log import JsonFormatter
from trunkline.server.runtime.auth_setup import use_auth

pytestmark = pytest.mark.anyio


def server(tenants: Tenants, **options: Any) -> tuple[Server, asyncio.Event]:
    app, gate = Server("tenants", **options), asyncio.Event()

    @app.tool
    async def hold() -> str:
        """Wait for the gate."""
        await gate.wait()
        return "held"

    @app.tool
    async def quick() -> str:
        return "quick"

    use_auth(app._core, AuthSettings(verifiers=[Fixed(Principal(subject="x"))], tenants=tenants))
    return app, gate


def of(tenant: str | None, subject: str = "ann") -> Principal:
    return caller(subject, tenant=tenant)


def use_of(app: Server, tenant: str) -> Any:
    tenancy = app._core.runtime.tenancy
    assert tenancy is not None
    return tenancy.use(tenant)


async def test_a_tenant_has_its_calls_in_flight_on_all_connections_together() -> None:
    app, gate = server(Tenants(limits=TenantLimits(in_flight=2)))
    async with (
        connected_as(app, of("acme")) as one,
        connected_as(app, of("acme", "bob")) as two,
        connected_as(app, of("bell")) as other,
    ):
        one.call("a", "hold")
        two.call("b", "hold")
        await until_async(lambda: use_of(app, "acme").in_flight >= 2)
        for wire in (one, two):
            refused = await wire.tool("quick")
            assert "retryAfterMs" in refused["data"]
        assert "content" in await other.tool("quick")
        gate.set()
        await one.answer("a")
        await two.answer("b")
        assert "content" in await one.tool("quick")
        assert use_of(app, "acme").in_flight == 0
    assert app.stats().refused == {"tenant_in_flight": 2}


async def test_a_tenant_has_half_of_the_calls_of_the_server_by_default() -> None:
    app, gate = server(Tenants(), limits=ServerLimits(in_flight_overall=4))
    async with connected_as(app, of("acme")) as noisy, connected_as(app, of("bell")) as quiet:
        for n in range(4):
            noisy.call(n, "hold")
        refused = [await noisy.answer(n) for n in (2, 3)]
        assert all("retryAfterMs" in each["error"]["data"] for each in refused)
        assert "content" in await quiet.tool("quick")
        gate.set()
        await noisy.answer(0)


async def test_a_tenant_has_a_rate_and_others_are_not_slowed_down() -> None:
    limits = {"acme": TenantLimits(rate=0.001, burst=2)}
    app, _ = server(Tenants(limits_of=limits))
    async with connected_as(app, of("acme")) as noisy, connected_as(app, of("bell")) as quiet:
        # `initialize` was the first.
        assert "content" in await noisy.tool("quick")
        refused = await noisy.tool("quick")
        assert refused["message"] == "Rate limit exceeded"
        assert refused["data"]["retryAfterMs"] > 1000
        for _ in range(5):
            assert "content" in await quiet.tool("quick")


async def test_a_tenant_holds_its_bytes_on_all_connections_together() -> None:
    app, gate = server(Tenants(limits=TenantLimits(bytes=300_000)))

    @app.tool
    async def keep(text: str) -> str:
        """Keep a text while the gate is closed."""
        await gate.wait()
        return "kept"

    async with (
        connected_as(app, of("acme")) as one,
        connected_as(app, of("acme", "bob")) as two,
        connected_as(app, of("bell")) as other,
    ):
        one.call("a", "keep", text="x" * 200_000)
        await until_async(lambda: use_of(app, "acme").budget.used >= 200_000)
        assert "retryAfterMs" in (await two.tool("keep", text="x" * 200_000))["data"]
        other.call("c", "keep", text="x" * 200_000)
        gate.set()
        for wire, id in ((one, "a"), (other, "c")):
            assert "result" in await wire.answer(id)
    assert use_of(app, "acme").budget.used == 0


async def test_a_tenant_has_its_running_tasks() -> None:
    app, gate = server(
        Tenants(limits_of={"acme": TenantLimits(tasks=1)}), tasks=TaskSettings(quick=0)
    )

    @app.tool(task="required")
    async def job() -> str:
        """Run a job."""
        await gate.wait()
        return "done"

    async def start(wire: CallerWire) -> Any:
        return await wire.request("tools/call", name="job", arguments={}, task={})

    async with connected_as(app, of("acme")) as one, connected_as(app, of("acme", "bob")) as two:
        assert "task" in await start(one)
        assert "retryAfterMs" in (await start(two))["data"]
        async with connected_as(app, of("bell")) as other:
            for _ in range(2):
                assert "task" in await start(other)
        gate.set()


@pytest.mark.parametrize("revision", BOTH)
async def test_the_tools_of_a_tenant_are_all_that_it_sees_and_calls(revision: str) -> None:
    app, _ = server(Tenants(tools={"acme": ["quick", "gone"]}, default_tools=[], required=False))
    async with connected_as(app, of("acme"), revision) as wire:

        async def names() -> list[str]:
            listed = await wire.request("tools/list")
            assert listed.get("cacheScope", "private") == "private"
            return [each["name"] for each in listed["tools"]]

        assert await names() == ["quick"]
        assert "content" in await wire.tool("quick")
        hidden, missing = await wire.tool("hold"), await wire.tool("hol?")
        assert str(hidden).replace("hold", "hol?") == str(missing)
        for other in (of("bell"), of(None), None):
            wire.become(other)
            assert await names() == []
            assert (await wire.tool("quick"))["code"] == -32602


async def test_metrics_name_a_bounded_number_of_tenants() -> None:
    app, _ = server(Tenants(named_in_metrics=2, required=False))
    app.enable_metrics()
    for tenant in ("a", "b", "c", "d", "a", None):
        async with connected_as(app, of(tenant), PER_REQUEST) as wire:
            await wire.tool("quick")
    lines = [each for each in app.metrics_page().decode().splitlines() if "_count{" in each]
    labels = {each.partition('tenant="')[2].partition('"')[0]: each[-1] for each in lines}
    assert labels == {"a": "2", "b": "1", "other": "2", "": "1"}


async def test_log_lines_of_a_handler_have_its_tenant_and_principal() -> None:
    app, _ = server(Tenants(required=False))
    records: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(self.format(record))

    log, handler = logging.getLogger("tests.tenants"), Keep()
    handler.setFormatter(JsonFormatter())
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    @app.tool
    def says() -> str:
        """Log a line, on a thread."""
        log.info("said")
        return "said"

    try:
        for who in (of("acme"), of(None, "bob"), None):
            async with connected_as(app, who) as wire:
                await wire.tool("says")
    finally:
        log.removeHandler(handler)
    log.info("outside")
    found = [json.loads(each) for each in records]
    assert [(each.get("principal"), each.get("tenant")) for each in found] == [
        ("ann", "acme"),
        ("bob", None),
        (None, None),
    ]


def test_the_listeners_of_a_server_have_the_same_tenants() -> None:
    app, _ = server(Tenants(claim="a"))
    who = [Fixed(Principal(subject="x"))]
    use_auth(app._core, AuthSettings(verifiers=who, tenants=Tenants(claim="a")))
    with pytest.raises(ValueError, match="the same tenants"):
        use_auth(app._core, AuthSettings(verifiers=who, tenants=Tenants(claim="b")))


async def test_a_connection_has_the_tenant_of_its_credential_or_is_refused() -> None:
    app = Server("peers")

    @app.tool
    def place(ctx: Context) -> str:
        """Return the tenant."""
        return str(ctx.tenant)

    for claims in ({"org": "acme"}, {}):
        rule = Fixed(Principal(subject="ann", claims=claims))
        app._core.auth = AuthSettings(verifiers=[rule], tenants=Tenants(claim="org"))
        if not claims:
            _, far = memory_pair()
            with pytest.raises(PermissionError, match="names no tenant"):
                await app.serve(far)
            return
        async with connected(app) as wire:
            wire.call(1, "place")
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "acme"

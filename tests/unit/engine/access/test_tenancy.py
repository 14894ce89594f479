"""What tenants use of a server, without a protocol."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline import ServerLimits
from trunkline.accounts.budget import ByteBudget
from trunkline.auth import Principal
from trunkline.auth.server.tenants import TenantLimits, Tenants
from trunkline.concurrency.thread_pool import ThreadShare
from trunkline.engine.access import tenancy as tenancy_module
from trunkline.engine.access.tenancy import Tenancy
from trunkline.engine.runtime import ServerRuntime
from trunkline.jsonrpc.limits import Limits
from trunkline.jsonrpc.peer.incoming import IncomingRequest


def make_tenancy(tenants: Tenants | None = None, **limits: Any) -> tuple[Tenancy, ServerRuntime]:
    runtime = ServerRuntime("test", ServerLimits(**limits), Limits(), lambda _: None)
    return Tenancy(runtime, tenants or Tenants()), runtime


def of(tenant: str | None) -> Principal:
    return Principal(subject="x", tenant=tenant)


def requests(count: int) -> list[IncomingRequest]:
    return [IncomingRequest(n, "do", None) for n in range(count)]


def test_tenants_that_use_nothing_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenancy_module, "_MAX_TENANTS", 3)
    tenancy, _ = make_tenancy()
    tenancy.use("busy").in_flight = 1
    for n in range(100):
        tenancy.use(f"t{n}")
    assert len(tenancy._tenants) == 3
    assert tenancy.use("busy").in_flight == 1


def test_threads_are_shared_while_another_tenant_has_running_calls() -> None:
    tenancy, _ = make_tenancy()
    use, asked = tenancy.use("a"), requests(3)
    seen = [use.threads.is_shared()]
    for tenant, request in zip("abb", asked, strict=True):
        assert tenancy.begin(of(tenant), request)
        seen.append(use.threads.is_shared())
    for request in asked[1:]:
        tenancy.end(request)
        seen.append(use.threads.is_shared())
    # Neither before, nor alone, nor after the others have gone.
    assert seen == [False, False, True, True, True, False]


def test_a_tenant_has_half_of_the_running_calls_and_others_are_not_counted() -> None:
    tenancy, _ = make_tenancy(in_flight_overall=4)
    first, second, third, *others = requests(10)
    assert tenancy.begin(of("a"), first)
    assert tenancy.begin(of("a"), second)
    assert not tenancy.begin(of("a"), third)
    assert all(tenancy.begin(of(None), each) for each in others)
    tenancy.end(first)
    assert tenancy.begin(of("a"), third)


def test_a_connection_is_charged_to_the_budget_and_threads_of_its_tenant() -> None:
    tenancy, runtime = make_tenancy()
    budget, share = ByteBudget(1000, runtime.budget), ThreadShare()
    tenancy.attach(of(None), budget, share)
    assert budget.parent is runtime.budget
    assert share.group is None
    tenancy.attach(of("a"), budget, share)
    budget.charge(10)
    assert tenancy.use("a").budget.used == runtime.budget.used == 10
    assert share.group is tenancy.use("a").threads


def test_a_request_beyond_the_rate_of_a_tenant_has_to_wait() -> None:
    tenants = Tenants(limits_of={"a": TenantLimits(rate=2.0, burst=2)})
    tenancy, runtime = make_tenancy(tenants)
    assert [tenancy.rate_wait_ms(of("a"), 100.0) for _ in range(3)] == [0, 0, 500]
    assert [tenancy.rate_wait_ms(each, 100.0) for each in (of("b"), of(None), None)] == [0, 0, 0]
    assert tenancy.rate_wait_ms(of("a"), 100.4999) == 1  # never 0, which would admit it
    assert tenancy.rate_wait_ms(of("a"), 100.5) == 0
    assert runtime.counters.refused == {"tenant_rate": 2}


@pytest.mark.parametrize("limits", [TenantLimits(sessions=2, tasks=2), TenantLimits()])
def test_a_tenant_has_its_sessions_and_tasks_or_half_of_those_of_the_server(
    limits: TenantLimits,
) -> None:
    tenancy, runtime = make_tenancy(Tenants(limits=limits))
    tenancy.session_opened("a", by=2)
    assert not tenancy.has_session_room("a", 4)
    assert tenancy.has_session_room("b", 4)
    assert tenancy.has_session_room(None, 4)
    assert tenancy.has_task_room("a", 1, 4)
    assert not tenancy.has_task_room("a", 2, 4)
    assert tenancy.has_task_room(None, 2, 4)
    assert runtime.counters.refused == {"tenant_sessions": 1, "tenant_tasks": 1}

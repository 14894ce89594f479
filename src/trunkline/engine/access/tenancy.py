"""Tenancy: what each tenant uses of a server, and its limits.

A server with tenants has one `Tenancy`, whatever the number of its listeners: a tenant has the
same limits on all of them together.

The rules that live here, and only here:

* A tenant has half of each limit of the server, unless its own limits say otherwise. A request
  beyond its limits is refused, as beyond those of the server; the requests of others are not.
* Waiting calls of tenants get threads in turn, and a tenant takes at most half of them while
  others have running calls.
* Tenants that use nothing are forgotten beyond 10,000, the idlest first. The number of names in
  metrics is bounded, and a name that has a place keeps it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ...accounts.budget import ByteBudget
from ...concurrency.thread_pool import ThreadGroup, ThreadShare

if TYPE_CHECKING:
    from ...auth.principal import Principal
    from ...auth.server.tenants import TenantLimits, Tenants
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ..runtime import ServerRuntime

__all__ = ["OTHER_TENANTS", "Tenancy", "TenantUse"]

# The label in metrics of tenants without a place of their own.
OTHER_TENANTS: Final = "other"
_MAX_TENANTS: Final = 10_000


class TenantUse:
    """What one tenant uses at the moment."""

    __slots__ = (
        "_full_at",
        "_interval",
        "_tolerance",
        "budget",
        "in_flight",
        "limits",
        "max_in_flight",
        "name",
        "sessions",
        "threads",
    )

    def __init__(
        self,
        name: str,
        limits: TenantLimits,
        max_in_flight: int,
        budget: ByteBudget,
        threads: ThreadGroup,
    ) -> None:
        self.name = name
        self.limits = limits
        self.max_in_flight = max_in_flight
        self.budget = budget
        self.threads = threads
        self.in_flight = 0
        self.sessions = 0
        # A token bucket as one number: the time at which it is full again.
        self._interval = 0.0 if limits.rate is None else 1 / limits.rate
        self._tolerance = (limits.burst - 1) * self._interval
        self._full_at = float("-inf")

    def __repr__(self) -> str:
        return f"<TenantUse: {self.in_flight} running, {self.sessions} sessions>"

    @property
    def is_idle(self) -> bool:
        """Whether it uses nothing."""
        return not (self.in_flight or self.sessions or self.budget.used or self.threads.busy)

    def wait(self, now: float) -> float:
        """Return the seconds until a request may come; 0 counts one."""
        full_at = max(self._full_at, now)
        excess = full_at - now - self._tolerance
        if excess > 0:
            return excess
        self._full_at = full_at + self._interval
        return 0.0


class Tenancy:
    """The tenants of one server."""

    def __init__(self, runtime: ServerRuntime, settings: Tenants) -> None:
        self.settings = settings
        self._runtime = runtime
        self._tenants: OrderedDict[str, TenantUse] = OrderedDict()
        self._running: dict[IncomingRequest, TenantUse] = {}
        self._labels: set[str] = set()
        # Tenants with running calls.
        self._active = 0

    def __repr__(self) -> str:
        return f"<Tenancy: {len(self._tenants)} tenants>"

    def use(self, tenant: str) -> TenantUse:
        """Return what a tenant uses."""
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = self._new(tenant)
        else:
            self._tenants.move_to_end(tenant)
        return found

    def _new(self, tenant: str) -> TenantUse:
        if len(self._tenants) >= _MAX_TENANTS:
            idle = next((name for name, each in self._tenants.items() if each.is_idle), None)
            if idle is not None:
                del self._tenants[idle]
        limits = self.settings.limits_of.get(tenant, self.settings.limits)
        whole = self._runtime.budget
        budget = ByteBudget(limits.bytes or whole.limit // 2, whole)
        running = limits.in_flight or max(1, self._runtime.limits.in_flight_overall // 2)
        return TenantUse(tenant, limits, running, budget, ThreadGroup(self._is_shared))

    def _is_shared(self) -> bool:
        return self._active > 1

    def of(self, principal: Principal | None) -> TenantUse | None:
        """Return what the tenant of a principal uses, or None if it has none."""
        if principal is None or principal.tenant is None:
            return None
        return self.use(principal.tenant)

    def label(self, tenant: str | None) -> str:
        """Return the name of a tenant in metrics: its own, "other", or "" without one."""
        if tenant is None:
            return ""
        if tenant not in self._labels:
            if len(self._labels) >= self.settings.named_in_metrics:
                return OTHER_TENANTS
            self._labels.add(tenant)
        return tenant

    # -- connections -------------------------------------------------------------------------

    def attach(self, principal: Principal | None, budget: ByteBudget, share: ThreadShare) -> None:
        """Count what a connection of one principal holds for its tenant."""
        use = self.of(principal)
        if use is not None:
            budget.parent = use.budget
            share.group = use.threads

    def has_session_room(self, tenant: str | None, overall: int) -> bool:
        """Return True if a tenant may open a session, where all may have `overall`."""
        if tenant is None:
            return True
        use = self.use(tenant)
        if use.sessions < (use.limits.sessions or max(1, overall // 2)):
            return True
        self._runtime.counters.refuse("tenant_sessions")
        return False

    def session_opened(self, tenant: str | None, by: int = 1) -> None:
        """Count a session of a tenant, or one less."""
        if tenant is not None:
            self.use(tenant).sessions += by

    # -- requests ----------------------------------------------------------------------------

    def rate_wait_ms(self, principal: Principal | None, now: float) -> int:
        """Return the milliseconds until the rate of a tenant allows a request.

        0 admits the request, and counts it; with any other number it is to be refused.
        """
        use = self.of(principal)
        if use is None or use.limits.rate is None:
            return 0
        wait = use.wait(now)
        if not wait:
            return 0
        self._runtime.counters.refuse("tenant_rate")
        return max(1, round(wait * 1000))

    def begin(self, principal: Principal | None, asked: IncomingRequest) -> bool:
        """Count a running call; return False if its tenant has too many."""
        use = self.of(principal)
        if use is None:
            return True
        if use.in_flight >= use.max_in_flight:
            return False
        self._active += not use.in_flight
        use.in_flight += 1
        self._running[asked] = use
        return True

    def end(self, asked: IncomingRequest) -> None:
        """Count a call less that has ended, or goes on as a task."""
        use = self._running.pop(asked, None)
        if use is not None:
            use.in_flight -= 1
            self._active -= not use.in_flight

    def has_task_room(self, tenant: str | None, running: int, overall: int) -> bool:
        """Return True if a tenant with so many running tasks may start one."""
        if tenant is None:
            return True
        most = self.use(tenant).limits.tasks or max(1, overall // 2)
        if running < most:
            return True
        self._runtime.counters.refuse("tenant_tasks")
        return False

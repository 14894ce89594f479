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
from typing import TYPE_CHECKING, Any, Final

from ...concurrency.thread_pool import ThreadGroup
from ...spec.error_kinds import ErrorKind
from ...spec.http_conditions import HTTP

if TYPE_CHECKING:
    from ...auth.principal import Principal
    from ...auth.server.tenants import TenantLimits, Tenants
    from ...engine.budget import ByteBudget
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ..api.core import ServerCore
    from ..dispatch.connection import Connection

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

    def __init__(self, core: ServerCore, settings: Tenants) -> None:
        self.settings = settings
        self._core = core
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
        core, limits = self._core, self.settings.limits_of.get(tenant, self.settings.limits)
        budget = type(core.runtime.budget)(
            limits.bytes or core.runtime.budget.limit // 2, core.runtime.budget
        )
        running = limits.in_flight or max(1, core.limits.in_flight_overall // 2)
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

    def attach(self, connection: Connection) -> None:
        """Count what a connection of one principal holds for its tenant."""
        use = self.of(connection.principal)
        if use is not None:
            connection.budget.parent = use.budget
            connection.runner.threads.group = use.threads

    def has_session_room(self, tenant: str | None, overall: int) -> bool:
        """Return True if a tenant may open a session, where all may have `overall`."""
        if tenant is None:
            return True
        use = self.use(tenant)
        if use.sessions < (use.limits.sessions or max(1, overall // 2)):
            return True
        self._core.runtime.counters.refuse("tenant_sessions")
        return False

    def session_opened(self, tenant: str | None, by: int = 1) -> None:
        """Count a session of a tenant, or one less."""
        if tenant is not None:
            self.use(tenant).sessions += by

    # -- requests ----------------------------------------------------------------------------

    def admits(self, connection: Connection, asked: IncomingRequest) -> bool:
        """Return True if the rate of a tenant allows a request; otherwise it was refused."""
        use = self.of(connection.principal_of(asked))
        if use is None or use.limits.rate is None:
            return True
        wait = use.wait(connection.loop.time())
        if not wait:
            return True
        self._core.runtime.counters.refuse("tenant_rate")
        route: Any = asked.route
        if asked.slot is None and hasattr(route, "status"):
            route.status = HTTP["rate-limited"].status
        milliseconds = max(1, round(wait * 1000))
        policy = connection.core.newest_revision.policy
        connection.refuse(asked, policy, ErrorKind.RATE_LIMITED, retryAfterMs=milliseconds)
        return False

    def begin(self, connection: Connection | Any, asked: IncomingRequest) -> bool:
        """Count a running call; return False if its tenant has too many."""
        use = self.of(connection.principal_of(asked))
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
        self._core.runtime.counters.refuse("tenant_tasks")
        return False

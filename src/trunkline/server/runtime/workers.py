"""What keeps a server from running in several processes that share nothing.

The rules that live here, and only here:

* What a client is told to find again, such as a session, is in one process.
* What is allowed once, or so many times, would be allowed so many times by each process: proofs,
  rates and the limits that tenants were given. Limits that are a share of what a process has are
  not multiplied: each process has its own resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from ...spec.mcp.tasks_extension import EXTENSION as TASKS
from ...store.memory import MemoryStore

if TYPE_CHECKING:
    from ...auth.server.settings import AuthSettings
    from ...transports.http.settings import HttpSettings
    from ..api.core import ServerCore

__all__ = ["obstacles"]

# Limits of a tenant; without a number each is a share, but for the rate, which there is not then.
_TENANT_LIMITS: Final = ("in_flight", "bytes", "rate", "tasks", "sessions")


def obstacles(core: ServerCore, http: HttpSettings | None = None) -> list[str]:
    """Return why requests of one client cannot go to different processes; empty if they can."""
    found = []
    with_handshake = [each for each in core.revisions if core.revision(each).has_handshake]
    if with_handshake:
        found.append(
            f"sessions of {', '.join(with_handshake)} belong to one process "
            '(Server(revisions=["2026-07-28"]) has none)'
        )
    if TASKS in core.extensions:
        found.append("tasks are kept in the memory of one process")
    declared = core.newest_revision.capabilities()
    lists = [
        name
        for name in ("tools", "prompts", "resources")
        if getattr(getattr(declared, name), "list_changed", None) is True
    ]
    if lists:
        found.append(
            f"listChanged is declared for {', '.join(lists)}, and a change in one process is not "
            "known to the others (Server(list_changed=False))"
        )
    if getattr(declared.resources, "subscribe", None) is True:
        found.append(
            "resources can be subscribed to, and an update in one process is not known to the "
            "others (Server(subscribe=False))"
        )
    return [*found, *_multiplied(core, http)]


def _multiplied(core: ServerCore, http: HttpSettings | None) -> Iterator[str]:
    """Yield what each process would allow by itself."""
    if core.auth is not None:
        # Imported here: most servers have none.
        from ...auth.server.settings import settings_of

        yield from _multiplied_auth(settings_of(core.auth))
    if http is not None and http.rate is not None:
        yield (
            "requests per second are counted by each process (remove --rate or HttpSettings.rate, "
            "and limit them at a proxy)"
        )
    if any(getattr(each, "counts_requests", False) for each in core.middleware):
        yield "requests per second are counted by each process (remove the RateLimit middleware)"


def _multiplied_auth(settings: AuthSettings) -> Iterator[str]:
    if any(map(_has_own_proofs, _all_verifiers(settings.verifiers))):
        yield (
            "used DPoP proofs are kept in the memory of one process, and each process would accept "
            "a proof once (Dpop(store=...) with a store that they share)"
        )
    tenants = settings.tenants
    if tenants is not None:
        each_limits = (tenants.limits, *tenants.limits_of.values())
        given = [
            name
            for name in _TENANT_LIMITS
            if any(getattr(limits, name) is not None for limits in each_limits)
        ]
        if given:
            yield (
                f"limits of tenants ({', '.join(given)}) count in each process (without "
                "TenantLimits a tenant has half of what each process has)"
            )


def _all_verifiers(verifiers: Iterable[Any]) -> Iterator[Any]:
    """Yield verifiers, and those inside them: of a chain, and below DPoP."""
    for each in verifiers:
        yield each
        yield from _all_verifiers(getattr(each, "verifiers", ()))
        inner = getattr(each, "verifier", None)
        if inner is not None:
            yield from _all_verifiers((inner,))


def _has_own_proofs(verifier: Any) -> bool:
    """Return True for a verifier of DPoP proofs whose store is not shared by processes."""
    if not getattr(verifier, "dpop_algorithms", ()) or not hasattr(verifier, "store"):
        return False
    return verifier.store is None or isinstance(verifier.store, MemoryStore)

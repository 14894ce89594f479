"""Tenants: which customer a request belongs to, and what each of them may use.

    Tenants(claim="org_id")                             a claim of the verified token
    Tenants(header="x-tenant-id")                       a header of a trusted proxy
    Tenants(certificate="organizationName")             the certificate of a TLS client
    Tenants(path="/{tenant}/mcp")                       a segment of the path

The rules that live here, and only here:

* A tenant belongs to a principal: a request without one has none, whatever it names.
* A header counts only on connections from a trusted proxy, `HttpSettings.trusted_proxies`: any
  client can send it.
* Where the credential lists the tenants of its principal, a tenant that is not among them is
  refused. Without such a list, a path names a tenant that the credential has to name too.
* A name is printable ASCII of up to 128 characters, without space and comma.
* Each tenant may use at most half of what the server has, unless its limits say otherwise, so that
  one cannot use up everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from ...errors import TrunklineError
from ...redaction import show

if TYPE_CHECKING:
    from ...transports.http.request import HttpRequest
    from ..principal import Principal

__all__ = ["TenantLimits", "TenantRefused", "Tenants"]

_is_name: Final = re.compile(r"[!-+\--~]{1,128}").fullmatch
_is_header: Final = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+").fullmatch
_VARIABLE: Final = "{tenant}"


class TenantRefused(TrunklineError):
    """A request whose tenant is missing, malformed, unknown, or not one of its principal."""

    def __init__(
        self, reason: str, *, is_malformed: bool = False, is_missing: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_malformed = is_malformed
        self.is_missing = is_missing


class TenantLimits(Struct, frozen=True, kw_only=True):
    """Limits on what one tenant uses at a time, on all its connections together.

    None is half of what the server has: of `ServerLimits.in_flight_overall`,
    `ServerLimits.server_bytes`, `TaskSettings.running` and `HttpLimits.sessions`.
    """

    # Running calls.
    in_flight: int | None = None
    # Bytes held: requests at work and waiting, unread answers, and subscriptions.
    bytes: int | None = None
    # Requests per second, and how many of them may come at once; None is any number.
    rate: float | None = None
    burst: int = 100
    # Running tasks, and sessions over HTTP.
    tasks: int | None = None
    sessions: int | None = None

    def __post_init__(self) -> None:
        for name in ("in_flight", "bytes", "burst", "tasks", "sessions"):
            value = getattr(self, name)
            is_number = isinstance(value, int) and not isinstance(value, bool)
            is_half = value is None and name != "burst"
            if not is_half and (not is_number or value < 1):
                raise ValueError(f"TenantLimits.{name} is an integer from 1, not {show(value)}")
        rate = self.rate
        if rate is not None and (not isinstance(rate, int | float) or not 0 < rate < 1e9):
            raise ValueError(f"TenantLimits.rate is a number above 0, not {show(rate)}")


class Tenants(Struct, frozen=True, kw_only=True):
    """How the tenant of a request is found, and the limits and tools of each.

    Tenants(claim="org_id", limits=TenantLimits(in_flight=100), tools={"free": ["search"]})

    One of `claim`, `header`, `certificate` and `path` says where the tenant is named; without any
    it is that of the principal, as the verifier has set it.
    """

    claim: str | None = None
    header: str | None = None
    certificate: str | None = None
    path: str | None = None
    # A claim with the tenants that the principal is a member of: a list of texts, or a text.
    members: str | None = None
    # Refuse requests of principals without a tenant.
    required: bool = True
    # The tenants that are served; None is all.
    known: Collection[str] | None = None
    # Of each tenant, and those of single ones.
    limits: TenantLimits = TenantLimits()
    limits_of: Mapping[str, TenantLimits] = {}
    # The tools of single tenants, and those of all others; None is every tool.
    tools: Mapping[str, Collection[str]] = {}
    default_tools: Collection[str] | None = None
    # How many tenants metrics name; the rest are "other".
    named_in_metrics: int = 100

    def __post_init__(self) -> None:
        sources = [
            name
            for name in ("claim", "header", "certificate", "path")
            if getattr(self, name) is not None
        ]
        if len(sources) > 1:
            raise ValueError(f"Tenants takes one source, not {' and '.join(sources)}")
        for name in (*sources, "members"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise ValueError(f"Tenants.{name} is a text, not {show(value)}")
        if self.header is not None:
            force_setattr(self, "header", self.header.lower())
            if _is_header(self.header) is None:
                raise ValueError(f"Tenants.header is the name of a header, not {show(self.header)}")
        if self.path is not None and (
            not self.path.startswith("/") or self.path.split("/").count(_VARIABLE) != 1
        ):
            raise ValueError(
                f"Tenants.path is a path such as '/{_VARIABLE}/mcp', not {show(self.path)}"
            )
        self._check_names()

    def _check_names(self) -> None:
        for option in ("limits_of", "tools"):
            if not isinstance(getattr(self, option), Mapping):
                raise ValueError(f"Tenants.{option} is a dict by the names of tenants")
        # In a text, any part of it would be found.
        if isinstance(self.known, str | bytes) or not isinstance(self.known, Collection | None):
            raise ValueError(f"Tenants.known is a list of names, not {show(self.known)}")
        if type(self.named_in_metrics) is not int or self.named_in_metrics < 0:
            raise ValueError(
                f"Tenants.named_in_metrics is an integer from 0, not {show(self.named_in_metrics)}"
            )
        for name in (*self.limits_of, *self.tools, *(self.known or ())):
            check_name(name)
        for limits in (self.limits, *self.limits_of.values()):
            if not isinstance(limits, TenantLimits):
                raise ValueError(f"the limits of a tenant are TenantLimits, not {show(limits)}")
        for tools in (self.default_tools, *self.tools.values()):
            if isinstance(tools, str) or not (tools is None or isinstance(tools, Collection)):
                raise ValueError(f"the tools of a tenant are a list of names, not {show(tools)}")

    def __repr__(self) -> str:
        names = ("claim", "header", "certificate", "path")
        found = [f"{name}={show(getattr(self, name))}" for name in names if getattr(self, name)]
        return f"Tenants({', '.join(found)})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]

    @property
    def has_tool_sets(self) -> bool:
        """Whether tenants have different tools."""
        return bool(self.tools) or self.default_tools is not None

    def matches(self, path: str) -> bool:
        """Return True if a path names a tenant."""
        return self.path is not None and self._in_path(path) is not None

    # -- the tenant of a caller --------------------------------------------------------------

    def of_request(
        self, principal: Principal, request: HttpRequest, is_from_proxy: Callable[[], bool]
    ) -> Principal:
        """Return the principal of an HTTP request as a member of its tenant.

        Raises:
            TenantRefused: it has none, or may not be one of its members.
        """
        if self.header is not None:
            given = request.all(self.header.encode()) if is_from_proxy() else []
            if len(given) > 1:
                raise TenantRefused("the tenant is named twice", is_malformed=True)
            named = given[0].decode("latin-1") if given else None
            return self._placed(principal, named)
        if self.path is not None:
            # An application is mounted at the path of a tenant, or has those of all.
            named = self._in_path(f"{request.mount}{request.path}") or self._in_path(request.path)
            if named is not None and self.members is None and principal.tenant != named:
                raise TenantRefused("the path names another tenant than the credential")
            return self._placed(principal, named)
        return self.of_credential(principal)

    def of_credential(self, principal: Principal) -> Principal:
        """Return a principal as a member of the tenant that its credential names.

        Raises:
            TenantRefused: as above.
        """
        return self._placed(principal, self._named_in(principal))

    def _named_in(self, principal: Principal) -> Any:
        """Return the tenant that a credential names, unchecked."""
        return principal.tenant if self.claim is None else principal.claims.get(self.claim)

    def of_peer(self, principal: Principal, certificate: Mapping[str, Any] | None) -> Principal:
        """Return the principal of a connection as a member of its tenant.

        Raises:
            TenantRefused: as above.
        """
        if self.certificate is None:
            return self.of_credential(principal)
        subject = (certificate or {}).get("subject", ())
        found = [value for part in subject for key, value in part if key == self.certificate]
        return self._placed(principal, found[-1] if found else principal.tenant)

    def named_by_client(self, principal: Principal, named: object) -> Principal:
        """Return a principal as a member of a tenant that the client has chosen.

        Raises:
            TenantRefused: the claims of its credential do not allow that.
        """
        if not isinstance(named, str):
            raise TenantRefused("the name of the tenant is malformed", is_malformed=True)
        if self.members is None and named != self._named_in(principal):
            raise TenantRefused("the credential is for another tenant")
        return self._placed(principal, named)

    def _placed(self, principal: Principal, named: Any) -> Principal:
        if named is None:
            if self.required:
                raise TenantRefused("the request names no tenant", is_missing=True)
            return principal if principal.tenant is None else principal.with_tenant(None)
        if not isinstance(named, str) or _is_name(named) is None:
            raise TenantRefused("the name of the tenant is malformed", is_malformed=True)
        if self.known is not None and named not in self.known:
            raise TenantRefused("the tenant is not known")
        if self.members is not None:
            listed = principal.claims.get(self.members)
            allowed = listed.split() if isinstance(listed, str) else listed
            if not isinstance(allowed, list | tuple) or named not in allowed:
                raise TenantRefused("the principal is not a member of the tenant")
        return principal if principal.tenant == named else principal.with_tenant(named)

    def _in_path(self, path: str) -> str | None:
        wanted, given = (self.path or "").split("/"), path.rstrip("/").split("/")
        if len(wanted) != len(given):
            return None
        named = None
        for part, value in zip(wanted, given, strict=True):
            if part == _VARIABLE:
                named = value
            elif part != value:
                return None
        return named if named and _is_name(named) and "%" not in named else None


def check_name(name: object) -> None:
    """Raise ValueError for what cannot name a tenant."""
    if not isinstance(name, str) or _is_name(name) is None:
        raise ValueError(
            f"{show(name)} cannot name a tenant: a name has up to 128 printable characters of "
            "ASCII, and no space or comma"
        )

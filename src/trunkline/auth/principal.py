"""The authenticated caller of a request.

The rules that live here, and only here:

* A principal is identified by issuer, subject and client: the same subject of two issuers is two
  principals, and so is one user with two clients.
* What outlives a request is bound to the key of its principal, which includes the tenant. A key
  is a digest: it tells nothing to a store or a log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from ..redaction import HIDDEN, show

__all__ = ["Principal"]

_NO_CLAIMS: Final[Mapping[str, Any]] = MappingProxyType({})


class Principal(Struct, frozen=True, kw_only=True, eq=False):
    """An authenticated caller: who vouches for it, who it is, and what it may do.

        Principal(issuer="https://login.example.org", subject="ann", scopes={"files:read"})

    Two principals are equal if issuer, subject, client and tenant are.
    """

    # The authorization server that vouches for the caller; "" for a principal of the
    # configuration.
    issuer: str = ""
    # The user, or the service, as the issuer calls it.
    subject: str
    # The OAuth client that acts for it; "" if the credential names none.
    client_id: str = ""
    # What the credential permits.
    scopes: frozenset[str] = frozenset()
    # The customer whose data it may use; None without tenants.
    tenant: str | None = None
    # All claims of the credential, such as those of a JWT. They appear in no repr and no log.
    claims: Mapping[str, Any] = _NO_CLAIMS
    # When the credential ends, as Unix time in seconds; None is never.
    expires_at: float | None = None
    # Identifies the principal in all that outlives a request. Computed.
    key: str = ""

    def __post_init__(self) -> None:
        for name in ("issuer", "subject", "client_id"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"Principal.{name} is a str, not {show(getattr(self, name))}")
        if not self.subject and not self.client_id:
            raise ValueError("a Principal has a subject or a client_id")
        if self.tenant is not None and not isinstance(self.tenant, str):
            raise TypeError(f"Principal.tenant is a str or None, not {show(self.tenant)}")
        if type(self.scopes) is not frozenset:
            force_setattr(self, "scopes", _scopes(self.scopes))
        if type(self.claims) is not MappingProxyType:
            force_setattr(self, "claims", MappingProxyType(dict(self.claims)))
        force_setattr(self, "key", _key(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Principal) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def with_tenant(self, tenant: str | None) -> Principal:
        """Return the same principal, as a member of a tenant."""
        return replace(self, tenant=tenant)

    def __reduce__(self) -> tuple[Any, ...]:
        # The view of the claims cannot be pickled.
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name != "key"}
        return _restore, ({**values, "claims": dict(self.claims)},)

    def __str__(self) -> str:
        return show(self.subject or self.client_id)

    def __repr__(self) -> str:
        return f"Principal({', '.join(f'{name}={text}' for name, text in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        shown = [(name, show(getattr(self, name))) for name in ("issuer", "subject", "client_id")]
        shown.append(("scopes", show(sorted(self.scopes))))
        shown.append(("tenant", show(self.tenant)))
        return [*shown, ("claims", HIDDEN if self.claims else "{}")]


def _restore(values: dict[str, Any]) -> Principal:
    return Principal(**values)


def _scopes(given: object) -> frozenset[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"Principal.scopes is a set of texts, not {show(given)}")
    found = frozenset(given)
    if not all(isinstance(each, str) for each in found):
        raise TypeError("Principal.scopes is a set of texts")
    return found


def _key(principal: Principal) -> str:
    # Each part with its length, so that no part can pass for two.
    parts = (principal.issuer, principal.subject, principal.client_id, principal.tenant)
    digest = hashlib.sha256()
    for part in parts:
        data = b"-" if part is None else part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%b" % (-1 if part is None else len(data), data))
    return digest.hexdigest()

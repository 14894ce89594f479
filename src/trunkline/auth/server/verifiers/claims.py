"""Claims of access tokens, in a JWT or in the answer of an authorization server.

The rules that live here, and only here:

* A time is a number that fits into dates. `nbf` and `iat` are not in the future, and `exp` is not
  past, all with a leeway for clocks that differ.               [RFC 7519, section 4.1]
* `aud` is a text or a list, and has a name of this server.     [RFC 8707; SEC-11]
* A token that is bound to a key is valid only with a proof of that key, and one that is bound to
  anything else is not valid.                                   [RFC 7800, 3; RFC 9449, 7.2]
* Scopes are those of `scope` and of `scp`, each a text with spaces or a list of texts.
* A token without the claim of its tenant is valid, and is refused with 403 unless the verifier
  admits it: another token of the same user would lack it too, so the client must not log in again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ....redaction import show
from ...challenge import split_scopes
from ...principal import Principal
from ..tenants import TenantRefused
from .credential import InvalidCredential

__all__ = [
    "CLIENT_CLAIMS",
    "LEEWAY_S",
    "check_audience",
    "check_binding",
    "check_tenant",
    "check_times",
    "principal_of",
    "scopes_of",
]

LEEWAY_S: Final = 30.0
# The first of them names the client.                    [RFC 9068, 2.2; OpenID Connect Core, 2]
CLIENT_CLAIMS: Final = ("client_id", "azp")
# A time beyond this, the year 9999, is a mistake; it would not fit into timers and dates.
_MAX_TIME: Final = 253_402_300_799

_BAD_TIME: Final = "A time of the token is malformed"
_EXPIRED: Final = "The token has expired"
_EARLY: Final = "The token is not valid yet"
_BAD_AUDIENCE: Final = "The token is not for this server"
_BAD_CALLER: Final = "The token does not name its subject"
_BAD_TENANT: Final = "The tenant of the token is malformed"
_BOUND: Final = "The token is bound to a key that was not proved"


def check_times(claims: Mapping[str, Any], now: float, leeway: float) -> float | None:
    """Return when a token ends, with the leeway; None if it does not say.

    Raises:
        InvalidCredential: it has ended, has not begun, or a time is malformed.
    """
    ends = None
    if "exp" in claims:
        ends = _time(claims["exp"]) + leeway
        if now >= ends:
            raise InvalidCredential(_EXPIRED)
    latest = now + leeway
    if "nbf" in claims and _time(claims["nbf"]) > latest:
        raise InvalidCredential(_EARLY)
    if "iat" in claims and _time(claims["iat"]) > latest:
        raise InvalidCredential(_EARLY)
    return ends


def check_audience(claims: Mapping[str, Any], allowed: Collection[str]) -> None:
    """Raise InvalidCredential unless a token is for one of the names of this server."""
    found = claims.get("aud")
    if isinstance(found, str):
        if found in allowed:
            return
    elif isinstance(found, list):
        for each in found:
            if isinstance(each, str) and each in allowed:
                return
    raise InvalidCredential(_BAD_AUDIENCE)


def check_binding(claims: Mapping[str, Any], thumbprint: str) -> None:
    """Raise InvalidCredential if a token is bound to a key other than the one that was proved."""
    if "cnf" in claims and not (thumbprint and claims["cnf"] == {"jkt": thumbprint}):
        raise InvalidCredential(_BOUND)


def check_tenant(principal: Principal, tenant_claim: str) -> None:
    """Raise TenantRefused if a token lacks the claim that names its tenant."""
    if principal.tenant is None:
        reason = f"the token has no claim {show(tenant_claim)}"
        raise TenantRefused(reason, is_missing=True)


def principal_of(
    claims: Mapping[str, Any],
    *,
    issuer: str,
    client_claims: Iterable[str],
    tenant_claim: str | None,
    expires_at: float | None,
) -> Principal:
    """Return the principal that claims describe.

    Raises:
        InvalidCredential: they name neither subject nor client, or the tenant is malformed.
    """
    subject = claims.get("sub", "")
    client_id = next((claims[name] for name in client_claims if name in claims), "")
    if not isinstance(subject, str) or not isinstance(client_id, str):
        raise InvalidCredential(_BAD_CALLER)
    if not subject and not client_id:
        raise InvalidCredential(_BAD_CALLER)
    tenant = None if tenant_claim is None else claims.get(tenant_claim)
    if tenant is not None and (not isinstance(tenant, str) or not tenant):
        raise InvalidCredential(_BAD_TENANT)
    return Principal(
        issuer=issuer,
        subject=subject,
        client_id=client_id,
        scopes=scopes_of(claims),
        tenant=tenant,
        claims=MappingProxyType(claims if isinstance(claims, dict) else dict(claims)),
        expires_at=expires_at,
    )


def scopes_of(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes of a token."""
    scope, scp = claims.get("scope"), claims.get("scp")
    if scp is None and isinstance(scope, str):
        return split_scopes(scope)
    found: frozenset[str] = frozenset()
    for each in (scope, scp):
        texts = each if isinstance(each, list) else [each]
        found = found.union(*(split_scopes(text) for text in texts))
    return found


def _time(value: object) -> float:
    # Not a bool, which is an int. A NaN is not between any numbers.
    if (type(value) is int or type(value) is float) and 0 <= value <= _MAX_TIME:
        return value
    raise InvalidCredential(_BAD_TIME)

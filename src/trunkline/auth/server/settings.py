"""`auth=` of a server: what it may be, and the settings that it is made into.

    auth=JwtBearer(...)                     one verifier
    auth=[JwtBearer(...), ApiKeys(...)]     several: the first that recognises a credential decides
    auth=function                           a function of the request, your own
    auth=AuthSettings(verifiers=[...], scopes=["files:read"])
    auth=Fixed(Principal(subject="ann"))    on standard streams and sockets

The rules that live here, and only here:

* `offline_access` is between a client and its authorization server: a resource neither lists it
  nor asks for it.                                  [MCP 2026-07-28, basic/authorization]
* A listener takes what applies to its transport, and does not start if nothing does: a server with
  authentication is not reachable without it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NewType, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from ...redaction import show
from ...transports.http.settings import is_public_url

if TYPE_CHECKING:
    from ...transports.http.request import HttpRequest
    from ..principal import Principal
    from .audit import AuditEvent
    from .tenants import Tenants
    from .verifiers.credential import Verifier
else:
    # Loaded on first use; `help` and `inspect.signature` of a Struct need a name.
    Tenants = NewType("Tenants", object)
    AuditEvent = NewType("AuditEvent", object)

__all__ = ["Auth", "AuthFunction", "AuthSettings", "PeerRule", "settings_of"]

# Returns the caller of a request, as a principal or by the name of its subject; None if it has no
# credential. PermissionError is answered with 401.
AuthFunction: TypeAlias = (
    "Callable[[HttpRequest], Principal | str | Awaitable[Principal | str | None] | None]"
)

# What `auth=` may be.
_Rule: TypeAlias = "Verifier | AuthFunction | PeerRule"
Auth: TypeAlias = "AuthSettings | _Rule | Sequence[_Rule]"

_NOT_ASKED: Final = "offline_access"
_is_scope: Final = re.compile(r"[!#-\[\]-~]+").fullmatch


class PeerRule(Protocol):
    """Recognises the peer of a connection."""

    @property
    def applies_to(self) -> frozenset[str]:
        """The kinds of connections: "stdio", "unix", "tcp", "tls", "default" inside a process."""

    def principal_of_peer(self, transport: Any) -> Principal | None:
        """Return the principal of a connection, or None if it is not known."""


class AuthSettings(Struct, frozen=True, kw_only=True):
    """How the callers of a server are recognised, and what the server says about that.

    AuthSettings(verifiers=[JwtBearer(...)], scopes=["files:read"], resource_name="Files")
    """

    # Verifiers and functions, in the order in which they are asked.
    verifiers: Sequence[Any] = ()
    # Refuse requests without a credential. Without, they are anonymous: `ctx.principal` is None.
    required: bool = True
    # The scopes that every client needs; the first challenge asks for them.
    scopes: Sequence[str] = ()
    # All scopes that the metadata lists; by default `scopes` and those of the verifiers.
    scopes_supported: Sequence[str] = ()
    # The URL of this server as tokens name it; by default that of the listener.
    resource: str | None = None
    # What people read: a name, and the URL of a page.
    resource_name: str | None = None
    documentation: str | None = None
    # Issuers that the metadata lists beside those of the verifiers.
    authorization_servers: Sequence[str] = ()
    # How the tenant of a request is found, and what each may use; None without tenants.
    tenants: Tenants | None = None
    # Called with an `AuditEvent` for each request of an authenticated caller, when it has ended.
    audit: Callable[[AuditEvent], object] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.verifiers, Sequence) or isinstance(self.verifiers, str):
            force_setattr(self, "verifiers", (self.verifiers,))
        force_setattr(self, "verifiers", tuple(self.verifiers))
        for each in self.verifiers:
            _check_verifier(each)
        if not self.verifiers:
            raise ValueError("AuthSettings.verifiers is empty: no credential would be recognised")
        if type(self.required) is not bool:
            raise ValueError(f"AuthSettings.required is a bool, not {show(self.required)}")
        for name in ("scopes", "scopes_supported", "authorization_servers"):
            force_setattr(self, name, _texts(name, getattr(self, name)))
        for name in ("scopes", "scopes_supported"):
            _check_scopes(name, getattr(self, name))
        if self.tenants is not None and type(self.tenants).__name__ != "Tenants":
            raise ValueError(f"AuthSettings.tenants is Tenants(...), not {show(self.tenants)}")
        if self.audit is not None and not callable(self.audit):
            raise ValueError(f"AuthSettings.audit is a function, not {show(self.audit)}")
        if self.resource is not None and not is_public_url(self.resource):
            raise ValueError(
                "AuthSettings.resource is a URL such as 'https://mcp.example.org/mcp', without "
                f"user, query or fragment, not {show(self.resource)}"
            )
        for name in ("resource_name", "documentation"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ValueError(f"AuthSettings.{name} is a text, not {show(value)}")

    def __repr__(self) -> str:
        kinds = ", ".join(type(each).__name__ for each in self.verifiers)
        return f"<AuthSettings of {kinds}, {'required' if self.required else 'optional'}>"


def settings_of(auth: object) -> AuthSettings:
    """Return the settings that `auth=` stands for.

    Raises:
        TypeError: it is not a verifier, a function or settings.
    """
    if isinstance(auth, AuthSettings):
        return auth
    if isinstance(auth, list | tuple):
        return AuthSettings(verifiers=tuple(auth))
    _check_verifier(auth)
    return AuthSettings(verifiers=(auth,))


def is_peer_rule(verifier: object) -> bool:
    """Return True for what recognises the peer of a connection, not the sender of a request."""
    return hasattr(verifier, "principal_of_peer")


def _check_verifier(given: object) -> None:
    if isinstance(given, type):
        raise TypeError(f"auth= takes an instance, not the class {given.__name__}")
    if not (callable(getattr(given, "verify", None)) or is_peer_rule(given) or callable(given)):
        raise TypeError(
            "auth= is a verifier such as JwtBearer(...), a list of them, a function of the request "
            f"or AuthSettings(...), not {show(given)}"
        )


def _texts(name: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise ValueError(f"AuthSettings.{name} is a list of texts, not {show(given)}")
    if not all(isinstance(each, str) for each in given):
        raise ValueError(f"AuthSettings.{name} is a list of texts, not {show(list(given))}")
    return tuple(given)


def _check_scopes(name: str, scopes: Sequence[str]) -> None:
    for each in scopes:
        if _is_scope(each) is None:
            raise ValueError(
                f"AuthSettings.{name} has scopes such as 'files:read', not {show(each)}"
            )
        if each == _NOT_ASKED:
            raise ValueError(
                f"AuthSettings.{name} has {_NOT_ASKED}, which clients ask for themselves: a "
                "resource does not need it"
            )

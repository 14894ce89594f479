"""Principals of connections that carry no credential: standard streams and sockets.

    app.run(auth=Fixed(Principal(subject="ann")))
    app.run("unix:/run/files.sock", auth=PeerUid())
    app.run(Tcp(host, 9000, tls=Tls(cert=..., key=..., ca=...)), auth=PeerCertificate())

The rules that live here, and only here:

* The operating system says which user a process belongs to that connects to a Unix socket. On TCP
  it does not: only a client certificate tells.
* A certificate tells nothing unless it was verified: the listener has to require one.
* The name of a certificate counts together with the authority that issued it.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec.structs import replace

from ...redaction import show
from ..principal import Principal
from .settings import PeerRule, is_peer_rule, settings_of
from .tenants import TenantRefused

if TYPE_CHECKING:
    from ...transports.addresses import Tcp, Unix
    from .tenants import Tenants

__all__ = ["Fixed", "PeerAuthenticator", "PeerCertificate", "PeerUid", "peer_rules_of"]

_NAMES: Final = ("common_name", "dns", "email", "uri")
_ALTERNATIVE_NAMES: Final = {"dns": "DNS", "email": "email", "uri": "URI"}


class Fixed:
    """One principal for all connections of a listener, as the configuration has it.

    On standard streams the client is the process that started the server. On a socket every client
    that can connect is this principal.
    """

    applies_to: frozenset[str] = frozenset(("stdio", "unix", "tcp", "tls", "default"))

    def __init__(self, principal: Principal | str) -> None:
        self.principal = _as_principal(principal, "")

    def __repr__(self) -> str:
        return f"Fixed({self.principal!r})"

    def principal_of_peer(self, transport: Any) -> Principal:
        """Return the principal."""
        return self.principal


class PeerUid:
    """The user of the process that has connected to a Unix socket.

    The subject is the number of the user. `users` names those that may connect, with the principal
    or the subject of each; without, each user is a principal.
    """

    applies_to: frozenset[str] = frozenset(("unix",))

    def __init__(self, users: Mapping[int, Principal | str] | Iterable[int] | None = None) -> None:
        self.users: Mapping[int, Principal] | None = None
        if users is not None:
            given = users if isinstance(users, Mapping) else {uid: str(uid) for uid in users}
            for uid in given:
                if type(uid) is not int or uid < 0:
                    raise ValueError(f"PeerUid.users has numbers of users, not {show(uid)}")
            self.users = {uid: _as_principal(each, "unix") for uid, each in given.items()}

    def __repr__(self) -> str:
        return "PeerUid()" if self.users is None else f"<PeerUid of {len(self.users)} users>"

    def principal_of_peer(self, transport: Any) -> Principal | None:
        """Return the principal of a user, or None if it may not connect."""
        uid = transport.peer_uid()
        if uid is None:
            return None
        if self.users is not None:
            return self.users.get(uid)
        return Principal(issuer="unix", subject=str(uid))


class PeerCertificate:
    """The name in the certificate of a TLS client.

    `name` is the part that is the subject: "common_name", or the first "dns", "email" or "uri" of
    the alternative names. `names` has those that may connect, with the principal or the subject of
    each; without, each verified certificate is a principal. A connection ends with the certificate
    that it was opened with.
    """

    applies_to: frozenset[str] = frozenset(("tls",))

    def __init__(
        self,
        name: Literal["common_name", "dns", "email", "uri"] = "common_name",
        *,
        names: Mapping[str, Principal | str] | Iterable[str] | None = None,
    ) -> None:
        if name not in _NAMES:
            raise ValueError(
                f"PeerCertificate.name is one of {', '.join(_NAMES)}, not {show(name)}"
            )
        if isinstance(names, str):
            raise TypeError("PeerCertificate.names is a list of names, not one name")
        self.name = name
        self.names: Mapping[str, Principal | str] | None = None
        if names is not None:
            self.names = names if isinstance(names, Mapping) else {each: each for each in names}

    def __repr__(self) -> str:
        return f"PeerCertificate({self.name!r})"

    def principal_of_peer(self, transport: Any) -> Principal | None:
        """Return the principal of a certificate, or None if it may not connect."""
        certificate: Mapping[str, Any] | None = transport.peer_certificate()
        subject = None if not certificate else _name_in(certificate, self.name)
        if not certificate or not subject:
            return None
        known: Principal | str | None = subject
        if self.names is not None:
            known = self.names.get(subject)
            if known is None:
                return None
        found = _as_principal(known, _issuer_of(certificate))
        return replace(found, expires_at=ssl.cert_time_to_seconds(certificate["notAfter"]))


class PeerAuthenticator:
    """The rules of one listener or connection, in order."""

    def __init__(
        self, rules: tuple[PeerRule, ...], *, required: bool, tenants: Tenants | None = None
    ) -> None:
        self._rules = rules
        self._required = required
        self._tenants = tenants

    def principal_of(self, transport: Any) -> Principal | None:
        """Return the principal of a connection, or None for an anonymous one.

        Raises:
            PermissionError: it is not known, and anonymous ones are not admitted.
        """
        for rule in self._rules:
            found = rule.principal_of_peer(transport)
            if found is not None:
                return self._placed(found, transport)
        if self._required:
            raise PermissionError("the peer of a connection is not known")
        return None

    def _placed(self, principal: Principal, transport: Any) -> Principal:
        """Return a principal as a member of its tenant, if the server has tenants."""
        if self._tenants is None:
            return principal
        certificate = getattr(transport, "peer_certificate", None)
        try:
            return self._tenants.of_peer(principal, certificate and certificate())
        except TenantRefused as error:
            raise PermissionError(error.reason) from None


def peer_rules_of(auth: object, kind: str, address: Tcp | Unix | None = None) -> PeerAuthenticator:
    """Return the rules of `auth=` for a kind of connection.

    Raises:
        TypeError: `auth` is not a verifier, a function or settings.
        ValueError: none is for this kind, or certificates are not verified at the address.
    """
    settings = settings_of(auth)
    rules = tuple(
        each for each in settings.verifiers if is_peer_rule(each) and kind in each.applies_to
    )
    if not rules and settings.required:
        where = {"default": "a connection inside a process", "stdio": "standard streams"}.get(kind)
        kinds = ", ".join(type(each).__name__ for each in settings.verifiers)
        raise ValueError(
            f"{kinds} cannot recognise a client on {where or address or kind}: add Fixed(...) for "
            "standard streams, PeerUid() for unix: or PeerCertificate() for tls:// to auth="
        )
    if address is not None and any(isinstance(each, PeerCertificate) for each in rules):
        _check_verified(address)
    return PeerAuthenticator(rules, required=settings.required, tenants=settings.tenants)


def _check_verified(address: Any) -> None:
    tls = address.tls
    is_required = (
        tls.verify_mode == ssl.CERT_REQUIRED
        if isinstance(tls, ssl.SSLContext)
        else getattr(tls, "ca", None) is not None
    )
    if not is_required:
        raise ValueError(
            "PeerCertificate needs a listener that requires certificates of clients: Tls(ca=...)"
        )


def _as_principal(given: object, issuer: str) -> Principal:
    if isinstance(given, Principal):
        return given
    if isinstance(given, str):
        return Principal(issuer=issuer, subject=given)
    raise TypeError(f"a principal is a Principal or the name of its subject, not {show(given)}")


def _name_in(certificate: Mapping[str, Any], name: str) -> str | None:
    if name == "common_name":
        # The last one, which is the most specific.
        names = [
            value
            for part in certificate.get("subject", ())
            for key, value in part
            if key == "commonName"
        ]
        return names[-1] if names else None
    kind = _ALTERNATIVE_NAMES[name]
    return next((each for key, each in certificate.get("subjectAltName", ()) if key == kind), None)


def _issuer_of(certificate: Mapping[str, Any]) -> str:
    parts = [f"{key}={value}" for part in certificate.get("issuer", ()) for key, value in part]
    return f"x509:{','.join(parts)}"

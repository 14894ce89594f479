"""Tokens of a grant that needs no user: each is obtained as the first one was.

The rules that live here, and only here:

* The authorization server is the one of the configuration, which the metadata of the server has to
  list; else the first that the server names. If the server names another one later, nothing is
  sent to it.                                                  [SEC-20]
* A server without metadata is used with an authorization server of the configuration alone: the
  credential of a machine is not sent where a server of 2025-03-26 may keep one.
* At most `MAX_STEP_UPS` tokens are for more scopes.             [SEC-28]
* A stored token is used if it is bound to a key exactly if new ones are, and to the one that the
  caller gave, if it gave one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from ....errors import AuthorizationFailed
from ....redaction import show
from ...challenge import Challenge
from ..flow.dpop import ClientProofs
from ..storage.token_store import StoredLogin
from .token_source import TokenRequest, TokenSource

if TYPE_CHECKING:
    from ...jose import SigningKey
    from ..flow.discovery import DiscoveredServer, MetadataDiscovery
    from ..flow.token_endpoint import IssuedToken

__all__ = ["GrantSource", "TokenGrant"]

MAX_STEP_UPS: Final = 3


class TokenGrant(Protocol):
    """What a client exchanges for a token."""

    async def obtain(self, discovery: MetadataDiscovery, request: TokenRequest) -> IssuedToken:
        """Return a token for a server.

        Raises:
            AuthorizationFailed: the authorization server refused.
        """


class GrantSource(TokenSource):
    """Tokens of a grant at one server."""

    max_step_ups = MAX_STEP_UPS

    def __init__(
        self,
        grant: TokenGrant,
        url: str,
        discovery: MetadataDiscovery,
        *,
        scopes: Collection[str] = (),
        client_id: str = "",
        issuer: str | None = None,
        on_issuer: Callable[[str], object] = str,
        key: SigningKey | None = None,
        has_own_key: bool = False,
    ) -> None:
        super().__init__(url, discovery, scopes=scopes, client_id=client_id)
        self._grant = grant
        self._issuer = issuer
        # Called with the authorization server that the credential is for from now on.
        self._on_issuer = on_issuer
        self._proofs = None if key is None else ClientProofs(key)
        self.wants_proofs = key is not None
        # Whether the caller gave the key of the proofs: a stored one does not replace it.
        self._has_own_key = has_own_key

    def accepts(self, stored: StoredLogin, scopes: frozenset[str]) -> bool:
        """Return True if a stored token is as a new one would be."""
        if self._issuer not in (None, stored.issuer) or not scopes <= frozenset(stored.scopes):
            return False
        if self._proofs is None or stored.dpop_key is None:
            return self._proofs is None and stored.dpop_key is None
        from ...jose import SigningKey

        own = self._proofs.key.thumbprint
        return not self._has_own_key or SigningKey.from_pem(stored.dpop_key).thumbprint == own

    def is_of(self, login: StoredLogin, server: DiscoveredServer) -> bool:
        """Return True if a token is for the resource, of an issuer that the server names."""
        is_listed = server.is_legacy or login.issuer in server.issuers
        return is_listed and login.resource == server.resource

    def can_renew(self, login: StoredLogin) -> bool:
        """Return True: the grant itself replaces a token."""
        return True

    def check(self, challenge: Challenge | None, scopes: frozenset[str]) -> None:
        """Check that tokens are bound to a key if the server asks for it."""
        if self._proofs is None and challenge is not None and challenge.scheme == "dpop":
            raise AuthorizationFailed(
                "the server asks for proofs of possession: use dpop=True", step="request"
            )

    async def obtain(self, request: TokenRequest, before: StoredLogin | None) -> StoredLogin:
        """Return the login with a new token."""
        return await self.renew(request)

    async def renew(self, request: TokenRequest) -> StoredLogin:
        """Return the login with a new token."""
        token = await self._grant.obtain(self.discovery, request)
        return replace(request.login.with_token(token), refresh_token=None)

    def _completed(self, request: TokenRequest, *, needs_proofs: bool) -> TokenRequest:
        issuer = self._issuer = request.endpoint.issuer
        self._on_issuer(issuer)
        proofs = request.proofs or self._proofs
        pem = None if proofs is None else proofs.key.pem.decode("ascii")
        return replace(request, login=replace(request.login, dpop_key=pem), proofs=proofs)

    def _issuer_of(self, server: DiscoveredServer) -> str:
        """Return the authorization server to ask."""
        issuer = self._issuer
        if server.is_legacy:
            if issuer is None:
                raise _failure("the server has no metadata: give the issuer of its tokens")
            return issuer
        if issuer is not None and issuer not in server.issuers:
            raise _failure(
                f"the server names the authorization server {show(server.issuers[0])}, "
                f"and the credential is for {show(issuer)}: nothing was sent to it"
            )
        return issuer or server.issuers[0]


def _failure(reason: str) -> AuthorizationFailed:
    return AuthorizationFailed(reason, step="discovery")

"""Where a session has its tokens from: what a login of a user and a grant have in common.

The rules that live here, and only here:

* Scopes are those of the configuration, else of the challenge, else all that the server lists,
  else none.                                           [MCP 2026-07-28, scope selection; SEC-28]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct

from ..flow.token_endpoint import TokenEndpoint, endpoint_of
from ..storage.token_store import KeyLocks, StoredLogin, server_key

if TYPE_CHECKING:
    from ...challenge import Challenge
    from ...metadata import AuthorizationServerMetadata
    from ..flow.discovery import DiscoveredServer, MetadataDiscovery
    from ..flow.dpop import ClientProofs

__all__ = ["OFFLINE", "TokenRequest", "TokenSource"]

# A scope for a refresh token: it is not one of the server.
OFFLINE: Final = "offline_access"


class TokenRequest(Struct, frozen=True, kw_only=True):
    """A token that is about to be asked for."""

    # What is stored with the token: the resource, the issuer, the client and the scopes.
    login: StoredLogin
    metadata: AuthorizationServerMetadata
    endpoint: TokenEndpoint
    # The key that the token is bound to, if it is.
    proofs: ClientProofs | None = None

    def __repr__(self) -> str:
        return "<TokenRequest>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


class TokenSource(ABC):
    """Obtains the tokens for one server."""

    # At most so many tokens are obtained for more scopes.
    max_step_ups: ClassVar[int]
    # One login at a time between the clients of a process; None if no user is asked.
    logins: KeyLocks | None = None
    # Whether tokens are bound to a key before the server asks for it.
    wants_proofs = False

    def __init__(
        self,
        url: str,
        discovery: MetadataDiscovery,
        *,
        scopes: Collection[str] = (),
        client_id: str = "",
    ) -> None:
        # The server, as records of the storage name it.
        self.server = server_key(url)
        self.discovery = discovery
        self.client_id = client_id
        self._scopes = frozenset(scopes)

    def accepts(self, stored: StoredLogin, scopes: frozenset[str]) -> bool:
        """Return True if a stored token may be sent in place of a new one with these scopes."""
        return True

    @abstractmethod
    def is_of(self, login: StoredLogin, server: DiscoveredServer) -> bool:
        """Return True if a login is of an authorization server that the server names."""

    @abstractmethod
    def can_renew(self, login: StoredLogin) -> bool:
        """Return True if a token that has ended can be replaced without a challenge."""

    @abstractmethod
    def check(self, challenge: Challenge | None, scopes: frozenset[str]) -> None:
        """Check that a token can be obtained at all, before anything is requested.

        Raises:
            AuthorizationFailed: it needs what the caller has not configured.
        """

    @abstractmethod
    async def obtain(self, request: TokenRequest, before: StoredLogin | None) -> StoredLogin:
        """Return the login with a new token; `before` is the login before this one.

        Raises:
            AuthorizationFailed: the user or the authorization server refused.
        """

    @abstractmethod
    async def renew(self, request: TokenRequest) -> StoredLogin:
        """Return the login with another token, or without one if it cannot be renewed.

        Raises:
            AuthorizationFailed: the authorization server refused, or cannot be reached.
        """

    async def plan(
        self,
        server: DiscoveredServer,
        challenge: Challenge | None,
        scopes: frozenset[str],
        proofs: ClientProofs | None,
    ) -> TokenRequest:
        """Return the request for a token; `scopes` are empty if the challenge names them.

        Raises:
            AuthorizationFailed: no authorization server of the server can be used.
        """
        named = frozenset[str]() if challenge is None else challenge.scopes
        login = StoredLogin(
            server=self.server,
            issuer=self._issuer_of(server),
            resource=server.resource,
            client_id=self.client_id,
            scopes=sorted(scopes or self._scopes or named or server.scopes_supported),
        )
        # The credential of a machine is not sent where a server of 2025-03-26 may keep one.
        login.is_legacy = (
            server.is_legacy and self.logins is not None and login.issuer in server.issuers
        )
        needs_proofs = server.needs_dpop or (challenge is not None and challenge.scheme == "dpop")
        request = await self.request(login, proofs)
        return self._completed(request, needs_proofs=needs_proofs)

    async def request(self, login: StoredLogin, proofs: ClientProofs | None) -> TokenRequest:
        """Return the request for another token of a login.

        Raises:
            AuthorizationFailed: its authorization server has no metadata, or issues no tokens.
        """
        found = await self.discovery.issuer(login.issuer, is_legacy=login.is_legacy)
        endpoint = endpoint_of(found, self.discovery)
        return TokenRequest(login=login, metadata=found, endpoint=endpoint, proofs=proofs)

    @abstractmethod
    def _issuer_of(self, server: DiscoveredServer) -> str:
        """Return the authorization server to ask."""

    @abstractmethod
    def _completed(self, request: TokenRequest, *, needs_proofs: bool) -> TokenRequest:
        """Return the request with what the authorization server supports."""

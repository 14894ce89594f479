"""Tokens of a login: the user is asked at the authorization server, and refresh tokens are used.

The rules that live here, and only here:

* If the server names another authorization server, the login begins from nothing, registration
  included.                                                                  [SEC-20]
* `offline_access` is added to other scopes if the authorization server lists it.
                                                       [MCP 2026-07-28, scope selection]
* A registration that is used again may be one that the authorization server has forgotten. If it
  answers `invalid_client`, the client registers once more, and the user is asked once more. Most
  show an error in the browser alone, which the client cannot see: the timeout says what to do.
                                                       [RFC 6749, sections 4.1.2.1, 5.2]
* A server cannot keep a user busy: at most `MAX_STEP_UPS` logins are for more scopes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ....errors import AuthorizationFailed
from ....redaction import show
from ...challenge import Challenge
from ..flow.client_authentication import ClientIdentity
from ..flow.registration import RegisteredClient, register
from ..session.renewal_limit import RenewalLimit
from ..session.token_source import OFFLINE, TokenRequest, TokenSource
from ..storage.token_store import KeyLocks, StoredLogin, TokenStorage
from .authorization_code import AuthorizationRequest, RedirectReceiver, check_code_flow

if TYPE_CHECKING:
    from ...jose import SigningKey
    from ...metadata import AuthorizationServerMetadata
    from ..flow.discovery import DiscoveredServer, MetadataDiscovery
    from ..flow.dpop import ClientProofs

__all__ = ["LoginSettings", "LoginSource"]

MAX_STEP_UPS: Final = 16
# Errors of a token endpoint that say nothing of the refresh token.
_PASSING_ERRORS: Final = ("server_error", "temporarily_unavailable", "slow_down")
_ADVICE_ON_CLIENT: Final = (
    "; if the browser shows that the client is unknown, delete the login that is kept, and log in "
    "again: the client then registers again"
)


class LoginSettings(Struct, frozen=True, kw_only=True):
    """What the caller has configured; see `OAuth`."""

    scopes: frozenset[str] = frozenset()
    # A client that was registered by hand, and its authorization server.
    client: ClientIdentity | None = None
    issuer: str | None = None
    # The client id metadata document, and the client that it describes.
    document: ClientIdentity | None = None
    client_name: str = "trunkline"
    # Returns how the user is reached for a login at a server.
    receiver: Callable[[str], RedirectReceiver]
    storage: TokenStorage
    # None if the server decides.
    dpop: bool | SigningKey | None = None
    # Whether there is a user to ask.
    is_interactive: bool = True
    # Seconds for a login.
    timeout: float = 300.0
    # One login at a time for a server, between the clients of a process.
    logins: KeyLocks
    # The authorization servers that a client without `issuer` was used with, by server.
    issuers: dict[str, str] = {}
    # How often a server has made the client obtain tokens.
    limits: dict[str, RenewalLimit] = {}

    def __repr__(self) -> str:
        return "<LoginSettings>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


class LoginSource(TokenSource):
    """Tokens of a login at one server."""

    max_step_ups = MAX_STEP_UPS

    def __init__(self, url: str, settings: LoginSettings, discovery: MetadataDiscovery) -> None:
        super().__init__(url, discovery, scopes=settings.scopes)
        self._settings = settings
        self.logins = settings.logins
        self.wants_proofs = bool(settings.dpop)

    def is_of(self, login: StoredLogin, server: DiscoveredServer) -> bool:
        """Return True if a login is of an authorization server that the server names."""
        settings = self._settings
        if settings.client is not None and login.client_id != settings.client.client_id:
            return False
        if settings.issuer is not None and login.issuer != settings.issuer:
            return False
        return login.issuer in server.issuers and login.is_legacy == server.is_legacy

    def can_renew(self, login: StoredLogin) -> bool:
        """Return True if the login has a refresh token."""
        return login.refresh_token is not None

    def check(self, challenge: Challenge | None, scopes: frozenset[str]) -> None:
        """Check that there is a user to ask."""
        if self._settings.is_interactive:
            return
        if scopes:
            names = show(" ".join(sorted(scopes)))
            raise AuthorizationFailed(
                f"the server asks for the scopes {names}, and the login has others",
                step="scope",
                error="insufficient_scope",
            )
        error = None if challenge is None else challenge.error
        raise AuthorizationFailed(
            "a login of the user is needed", step="authorization request", error=error
        )

    async def obtain(self, request: TokenRequest, before: StoredLogin | None) -> StoredLogin:
        """Ask the user; return the login with its token."""
        known = _registration(before, request.login.issuer)
        is_reused = known is not None and self._own_client(request.metadata) is None
        try:
            async with asyncio.timeout(self._settings.timeout):
                try:
                    return await self._ask_user(request, known)
                except AuthorizationFailed as error:
                    if error.error != "invalid_client" or not is_reused:
                        raise
                return await self._ask_user(request, None)
        except TimeoutError:
            advice = _ADVICE_ON_CLIENT if is_reused else ""
            raise AuthorizationFailed(
                f"no response of the user within {self._settings.timeout:g} s{advice}",
                step="authorization request",
            ) from None

    async def renew(self, request: TokenRequest) -> StoredLogin:
        """Return the login with a refreshed token, or the registration alone."""
        login = request.login
        form = {
            "grant_type": "refresh_token",
            "refresh_token": login.refresh_token or "",
            "resource": login.resource,
        }
        try:
            token = await request.endpoint.request(form, self._identity(login), request.proofs)
        except AuthorizationFailed as error:
            if error.error is None or error.error in _PASSING_ERRORS:
                raise
            kept = login.without_tokens()
            if error.error == "invalid_client":
                kept = replace(kept, client_id="", client_secret=None, redirect_uri=None)
            return kept
        return login.with_token(token)

    async def _ask_user(self, request: TokenRequest, known: StoredLogin | None) -> StoredLogin:
        receiver = self._settings.receiver(self.server)
        try:
            redirect_uri = await receiver.open(None if known is None else known.redirect_uri)
            if known is not None and known.redirect_uri != redirect_uri:
                known = None  # an authorization server compares it with the registered one
            login = await self._with_client(request, known, redirect_uri)
            code_request = AuthorizationRequest(
                request.metadata,
                login.client_id,
                redirect_uri=redirect_uri,
                resource=login.resource,
                scopes=login.scopes,
                proofs=request.proofs,
            )
            token = await code_request.run(
                receiver, request.endpoint, self._identity(login), request.proofs
            )
        finally:
            await receiver.close()
        return login.with_token(token)

    def _identity(self, login: StoredLogin) -> ClientIdentity:
        for known in (self._settings.client, self._settings.document):
            if known is not None and known.client_id == login.client_id:
                return known
        return login.identity

    def _own_client(self, metadata: AuthorizationServerMetadata) -> ClientIdentity | None:
        """Return the client of the configuration; None if one is registered."""
        settings = self._settings
        if settings.client is None and metadata.client_id_metadata_document_supported:
            return settings.document
        return settings.client

    async def _with_client(
        self,
        request: TokenRequest,
        known: StoredLogin | None,
        redirect_uri: str,
    ) -> StoredLogin:
        """Return the login with the client that the authorization server is told of."""
        settings, empty, metadata = self._settings, request.login, request.metadata
        own = self._own_client(metadata)
        if own is not None:
            return replace(empty, client_id=own.client_id)
        if known is not None:
            return replace(
                empty,
                client_id=known.client_id,
                client_secret=known.client_secret,
                client_secret_expires_at=known.client_secret_expires_at,
                auth_method=known.auth_method,
                redirect_uri=known.redirect_uri,
            )
        made = await register(
            metadata,
            client_name=settings.client_name,
            redirect_uri=redirect_uri,
            is_bound=request.proofs is not None,
            allow_private=self.discovery.is_private(),
            context=self.discovery.context_for(metadata.registration_endpoint or ""),
        )
        return replace(
            empty,
            client_id=made.client_id,
            client_secret=made.client_secret,
            client_secret_expires_at=made.client_secret_expires_at or 0,
            auth_method=made.auth_method,
            redirect_uri=redirect_uri,
        )

    def _issuer_of(self, server: DiscoveredServer) -> str:
        """Return the authorization server to ask."""
        settings = self._settings
        bound = settings.issuer
        if bound is None and settings.client is not None:
            bound = settings.issuers.setdefault(self.server, server.issuers[0])
        if bound is None:
            return server.issuers[0]
        if bound not in server.issuers and not server.is_legacy:
            raise AuthorizationFailed(
                f"the server names the authorization server {show(server.issuers[0])}, and the "
                f"client is registered at {show(bound)}: nothing was sent",
                step="registration",
            )
        return bound

    def _completed(self, request: TokenRequest, *, needs_proofs: bool) -> TokenRequest:
        metadata = request.metadata
        check_code_flow(metadata)
        scopes = frozenset(request.login.scopes) - {OFFLINE}
        if scopes and OFFLINE in (metadata.scopes_supported or ()):
            scopes |= {OFFLINE}
        proofs = self._proofs(needs_proofs, metadata, request.proofs)
        pem = None if proofs is None else proofs.key.pem.decode("ascii")
        login = replace(request.login, scopes=sorted(scopes), dpop_key=pem)
        return replace(request, login=login, proofs=proofs)

    def _proofs(
        self, is_needed: bool, metadata: AuthorizationServerMetadata, current: ClientProofs | None
    ) -> ClientProofs | None:
        """Return the key that tokens are bound to, if they are."""
        given = self._settings.dpop
        if given is False and is_needed:
            raise AuthorizationFailed(
                "the server asks for proofs of possession, and dpop=False", step="request"
            )
        if given is None and not is_needed:
            return None
        # Imported here: it needs the extra `auth`.
        from ...jose import SigningKey
        from ..flow.dpop import ClientProofs

        if isinstance(given, SigningKey):
            return ClientProofs(given)
        if current is not None:
            return current
        listed = metadata.dpop_signing_alg_values_supported or ["ES256"]
        algorithm = next((each for each in ("ES256", "EdDSA", "RS256") if each in listed), "ES256")
        return ClientProofs(SigningKey.generate(algorithm))


def _registration(login: StoredLogin | None, issuer: str) -> StoredLogin | None:
    """Return an earlier login that was registered at the same authorization server."""
    if login is None or login.issuer != issuer or login.redirect_uri is None:
        return None
    known = RegisteredClient(
        client_id=login.client_id,
        client_secret=login.client_secret,
        client_secret_expires_at=login.client_secret_expires_at,
    )
    return None if known.has_ended or not known.client_id else login

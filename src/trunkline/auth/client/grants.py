"""Grants of clients that act without a user at hand: machines, workloads, enterprises.

    Client(URL, auth=ClientCredentials("reports", client_secret=..., issuer=ISSUER))

The rules that live here, and only here:

* Every token request names the resource, as the metadata of the server does.   [RFC 8707; SEC-17]
* Enterprise-managed authorization: the identity provider exchanges an ID token for an assertion
  that is for one authorization server and one resource; that server exchanges it for a token, and
  the client authenticates there.  [RFC 8693; RFC 7523; MCP enterprise-managed-authorization]
* Workload identity: the assertion of the platform is the grant itself, without any authentication
  of the client. An assertion that was refused is not sent again, and no other grant is tried.
                                                               [RFC 7523, section 2.1]
"""

from __future__ import annotations

import hashlib
import os
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from ...errors import AuthorizationFailed
from ...redaction import show
from .flow.client_authentication import ClientIdentity
from .flow.dpop import signing_key_of
from .flow.secret_source import SecretFunction, SecretSource
from .flow.server_url import check_secure
from .session.renewal_limit import RenewalLimit

if TYPE_CHECKING:
    from ..jose import SigningKey
    from .flow.discovery import MetadataDiscovery
    from .flow.token_endpoint import IssuedToken, TokenEndpoint
    from .session.token_session import TokenSession
    from .session.token_source import TokenRequest
    from .storage.token_store import TokenStorage

__all__ = ["ClientCredentials", "TokenExchange", "WorkloadIdentity"]

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"
ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"


class _MachineGrant(ABC):
    """What all grants here have in common."""

    def __init__(
        self,
        scopes: Collection[str],
        issuer: str | None,
        dpop: bool | SigningKey,
        allow_http: bool,
        storage: TokenStorage | None = None,
        client_id: str = "",
    ) -> None:
        if isinstance(scopes, str):
            raise TypeError("scopes= is a list of texts")
        self._scopes = tuple(scopes)
        # By the URL of a server: the authorization server that its credential is for.
        self._issuers: dict[str, str] = {}
        self._limits: dict[str, RenewalLimit] = {}
        self._issuer = issuer
        self._key = signing_key_of(dpop)
        self._has_own_key = not isinstance(dpop, bool)
        self._storage = storage
        self._client_id = client_id
        self._allow_http = allow_http

    def for_server(
        self,
        url: str,
        *,
        context: ssl.SSLContext | None = None,
        is_private: Callable[[], bool] = bool,
    ) -> TokenSession:
        """Return the credentials for one server.

        Raises:
            ValueError: the connection to it is neither encrypted nor to this machine.
        """
        # Imported here: a configuration is made before anything is requested.
        from .flow.discovery import MetadataDiscovery
        from .session.grant_source import GrantSource
        from .session.token_session import TokenSession

        check_secure(url, allow_http=self._allow_http)
        source = GrantSource(
            self,
            url,
            MetadataDiscovery(url, context=context, is_private=is_private),
            scopes=self._scopes,
            client_id=self._client_id,
            issuer=self._issuer or self._issuers.get(url),
            on_issuer=lambda issuer: self._issuers.__setitem__(url, issuer),
            key=self._key,
            has_own_key=self._has_own_key,
        )
        limit = self._limits.setdefault(url, RenewalLimit())
        return TokenSession(source, storage=self._storage, limit=limit)

    @abstractmethod
    async def obtain(self, discovery: MetadataDiscovery, request: TokenRequest) -> IssuedToken:
        """Return a token for a server."""


class ClientCredentials(_MachineGrant):
    """The client itself is the user: it authenticates with a secret or a key.  [RFC 6749, 4.4]

        ClientCredentials("reports", client_secret=..., issuer="https://login.example.org")
        ClientCredentials("reports", private_key=pem, algorithm="ES256", issuer=...)

    `client_secret` is a text or a function; `method` is client_secret_basic or client_secret_post
    where the authorization server does not list what it supports. `issuer` is the authorization
    server that the credential is for. Without one, the first that a server names gets it: give one
    unless you trust the server. `dpop` binds the tokens to a key. Clients with the same `storage`
    share the token.
    """

    def __init__(
        self,
        client_id: str,
        *,
        client_secret: str | SecretFunction | None = None,
        private_key: str | bytes | SigningKey | None = None,
        algorithm: str | None = None,
        method: str | None = None,
        scopes: Collection[str] = (),
        issuer: str | None = None,
        dpop: bool | SigningKey = False,
        storage: TokenStorage | None = None,
        allow_http: bool = False,
    ) -> None:
        super().__init__(scopes, issuer, dpop, allow_http, storage, client_id)
        if client_secret is None and private_key is None:
            raise TypeError("ClientCredentials needs client_secret or private_key")
        self._identity = ClientIdentity(
            client_id,
            client_secret=client_secret,
            private_key=private_key,
            algorithm=algorithm,
            method=method,
        )

    def __repr__(self) -> str:
        return f"<ClientCredentials of {show(self._identity.client_id)}>"

    async def obtain(self, discovery: MetadataDiscovery, request: TokenRequest) -> IssuedToken:
        """Return a token for a server."""
        form = _form("client_credentials", request)
        return await request.endpoint.request(form, self._identity, request.proofs)


class TokenExchange(_MachineGrant):
    """Enterprise-managed authorization: the identity provider decides what a user may reach.

        TokenExchange(
            id_token=read_id_token, idp_issuer="https://idp.example.org", idp_client_id="desktop",
            client_id="reports", client_secret=..., issuer="https://login.example.org",
        )

    `id_token`, `id_token_env` or `id_token_file` is where the ID token of the user is; it is read
    each time a token is needed. The identity provider is named by its issuer, or by its token
    endpoint. The client is registered there as `idp_client_id`, and as `client_id` at the
    authorization server of the MCP server.
    """

    def __init__(
        self,
        client_id: str,
        *,
        client_secret: str | SecretFunction | None = None,
        private_key: str | bytes | SigningKey | None = None,
        algorithm: str | None = None,
        id_token: str | SecretFunction | None = None,
        id_token_env: str | None = None,
        id_token_file: str | os.PathLike[str] | None = None,
        idp_issuer: str | None = None,
        idp_token_endpoint: str | None = None,
        idp_client_id: str | None = None,
        idp_client_secret: str | SecretFunction | None = None,
        scopes: Collection[str] = (),
        issuer: str | None = None,
        dpop: bool | SigningKey = False,
        allow_http: bool = False,
    ) -> None:
        super().__init__(scopes, issuer, dpop, allow_http)
        if idp_issuer is None and idp_token_endpoint is None:
            raise TypeError("TokenExchange needs idp_issuer or idp_token_endpoint")
        self._identity = ClientIdentity(
            client_id, client_secret=client_secret, private_key=private_key, algorithm=algorithm
        )
        self._at_idp = ClientIdentity(idp_client_id or client_id, client_secret=idp_client_secret)
        self._id_token = SecretSource(
            "the ID token", id_token, env=id_token_env, file=id_token_file
        )
        self._idp_issuer = idp_issuer
        self._idp_endpoint = idp_token_endpoint

    def __repr__(self) -> str:
        return f"<TokenExchange of {show(self._identity.client_id)}>"

    async def obtain(self, discovery: MetadataDiscovery, request: TokenRequest) -> IssuedToken:
        """Return a token for a server."""
        form = _form(TOKEN_EXCHANGE, request)
        form |= {
            "requested_token_type": ID_JAG,
            "audience": request.endpoint.issuer,
            "subject_token": await self._id_token.read(),
            "subject_token_type": ID_TOKEN,
        }
        idp = await self._identity_provider(discovery)
        granted = await idp.request(form, self._at_idp, is_for_server=False)
        if granted.issued_token_type != ID_JAG:
            raise AuthorizationFailed(
                "the identity provider did not issue an identity assertion (id-jag)",
                step="token exchange",
            )
        form = {**_form(JWT_BEARER, request), "assertion": granted.access_token}
        return await request.endpoint.request(form, self._identity, request.proofs)

    async def _identity_provider(self, discovery: MetadataDiscovery) -> TokenEndpoint:
        # Imported here: a configuration is made before anything is requested.
        from .flow.token_endpoint import TokenEndpoint, endpoint_of

        url = self._idp_endpoint
        if url is None:
            return endpoint_of(await discovery.issuer(self._idp_issuer or ""), discovery)
        return TokenEndpoint(
            url=url,
            issuer=self._idp_issuer or url,
            allow_private=discovery.is_private(),
            context=discovery.context_for(url),
        )


class WorkloadIdentity(_MachineGrant):
    """The identity that a platform gives to a workload is the grant.       [RFC 7523, 2.1]

        WorkloadIdentity(file="/var/run/secrets/tokens/mcp", issuer="https://login.example.org")

    `assertion` is a function, sync or async, or a text; `env` and `file` are read each time a
    token is needed. `client_id` is sent along if the authorization server asks for one.
    """

    def __init__(
        self,
        assertion: str | SecretFunction | None = None,
        *,
        env: str | None = None,
        file: str | os.PathLike[str] | None = None,
        client_id: str | None = None,
        scopes: Collection[str] = (),
        issuer: str | None = None,
        dpop: bool | SigningKey = False,
        allow_http: bool = False,
    ) -> None:
        super().__init__(scopes, issuer, dpop, allow_http)
        self._assertion = SecretSource("the assertion", assertion, env=env, file=file)
        self._sent_client_id = client_id
        # The digest of an assertion that was refused.
        self._refused = b""

    def __repr__(self) -> str:
        return f"<WorkloadIdentity from {self._assertion.place}>"

    async def obtain(self, discovery: MetadataDiscovery, request: TokenRequest) -> IssuedToken:
        """Return a token for a server."""
        assertion = await self._assertion.read()
        digest = hashlib.sha256(assertion.encode()).digest()
        if digest == self._refused:
            raise AuthorizationFailed(
                "the authorization server has refused this assertion before", step="token"
            )
        form = {**_form(JWT_BEARER, request), "assertion": assertion}
        if self._sent_client_id is not None:
            form["client_id"] = self._sent_client_id
        try:
            return await request.endpoint.request(form, None, request.proofs)
        except AuthorizationFailed as error:
            if error.error is not None:  # it was refused, and not unreachable
                self._refused = digest
            raise


def _form(grant: str, request: TokenRequest) -> dict[str, str]:
    login = request.login
    form = {"grant_type": grant, "resource": login.resource}
    return {**form, "scope": " ".join(login.scopes)} if login.scopes else form

"""`AuthorizationServer`: an OAuth authorization server for tests and tutorials.

    async with AuthorizationServer(scopes=["files:read"]) as server:
        token = server.issue(subject="ann", scopes=["files:read"], audience=URL)

It is for development only: it has no passwords, keeps nothing, and listens on this machine alone.

The rules that live here, and only here:

* Metadata is found at all places that clients ask, for an issuer with a path too.
                                        [RFC 8414, section 3; OpenID Connect Discovery, 4]
* A token is for the resources that were asked for.                      [RFC 8707]
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from ...auth.jose import ALGORITHMS, PublicKey, SigningKey
from ...redaction import show
from .authorization import Approve, AuthorizationEndpoint
from .client_authentication import ClientAuthentication
from .clients import AUTH_METHODS, ClientRegistry, OAuthClient, public_keys
from .consent_page import SERVER_NAME, front_page
from .dpop_proofs import DpopProofs
from .failures import InjectedFailure, InjectedFailures
from .grants import GRANT_TYPES, TokenGrants
from .listener import EndpointListener
from .messages import (
    EndpointResponse,
    OAuthError,
    RecordedRequest,
    error_response,
    json_response,
)
from .tokens import Grant, TokenIssuer

if TYPE_CHECKING:
    from ...transports.http.request import HttpRequest

__all__ = ["AuthorizationServer"]

_log: Final = logging.getLogger("trunkline.testing")

# Requests that are kept for tests; the oldest give way.
_MAX_REQUESTS: Final = 10_000
_METHODS: Final = {
    "authorize": ("GET", "HEAD", "POST"),
    **dict.fromkeys(("token", "register", "introspect", "revoke"), ("POST",)),
}
_OAUTH: Final = "/.well-known/oauth-authorization-server"
_OPENID: Final = "/.well-known/openid-configuration"


class AuthorizationServer:
    """A small OAuth 2.1 authorization server in this process, for development only.

    It has metadata, authorization codes with PKCE, dynamic registration, client-id metadata
    documents, refresh tokens with rotation, client credentials, jwt-bearer, token exchange, DPoP,
    introspection and revocation; and it fails on demand.
    """

    def __init__(
        self,
        *,
        scopes: Iterable[str] = (),
        default_scopes: Iterable[str] = (),
        resources: Iterable[str] | None = None,
        users: Mapping[str, Mapping[str, Any]] | None = None,
        user: str = "user",
        claims: Mapping[str, Any] | None = None,
        approve: Approve = True,
        host: str = "127.0.0.1",
        port: int = 0,
        path: str = "",
        tls: ssl.SSLContext | None = None,
        algorithm: str = "ES256",
        discovery: Literal["both", "oauth", "openid"] = "both",
        registration: bool = True,
        metadata_documents: bool = True,
        refresh_tokens: bool | str = True,
        dpop_nonces: bool = False,
        opaque_tokens: bool = False,
        access_lifetime: float = 300.0,
        refresh_lifetime: float = 86_400.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Describe the server; `async with`, or `start`, starts it.

        scopes: what clients may ask for; without any, everything.
        default_scopes: granted to a client that asks for none.
        resources: the URLs of servers that tokens are issued for; None is any.
        users: claims of users by name, such as a tenant, which go into their access tokens.
        user: the user that consents if `approve` is True.
        claims: go into every access token; those of `users` are stronger.
        approve: how authorization requests are answered: True and False as a user that consents
            or does not, a text as another user, a function of the request (`ConsentRequest`)
            that returns one of these or an `Approval`; None shows a page.
        path: the path of the issuer, such as "/tenant1".
        tls: serve https.
        algorithm: of the signatures of tokens.
        discovery: which metadata there is.
        refresh_tokens: True issues them to each client that may use them, a text only with that
            scope, such as "offline_access".
        dpop_nonces: require a nonce in DPoP proofs.
        opaque_tokens: issue access tokens that only introspection explains.
        access_lifetime, refresh_lifetime: in seconds.
        """
        if path and (not path.startswith("/") or path.endswith("/") or "?" in path):
            raise ValueError(f'path is a text such as "/tenant1", not {show(path)}')
        self.issuer = ""
        self.scopes = tuple(scopes)
        self.default_scopes = frozenset(default_scopes)
        self.resources = None if resources is None else tuple(resources)
        self.users: Mapping[str, Mapping[str, Any]] = dict(users or {})
        self.claims: Mapping[str, Any] = dict(claims or {})
        self.access_lifetime = access_lifetime
        self.refresh_lifetime = refresh_lifetime
        self.refresh_tokens = refresh_tokens
        self.clock = clock
        # What was asked, in order.
        self.requests: list[RecordedRequest] = []
        # Members that replace those of the metadata; None removes one.
        self.metadata_changes: dict[str, Any] = {}
        # Other issuers whose assertions are accepted, and their keys.
        self.trusted: dict[str, tuple[PublicKey, ...]] = {}
        self._path = path
        self._host = host
        self._discovery = discovery
        self._has_registration = registration
        self._has_documents = metadata_documents
        self._scheme = "http" if tls is None else "https"
        self._new_listener = partial(EndpointListener, host, port, tls, self._handle)
        self._listener = self._new_listener()
        self._failures = InjectedFailures()
        self._clients = ClientRegistry(uses_documents=metadata_documents)
        self._tokens = TokenIssuer(algorithm, self._now, is_opaque=opaque_tokens)
        self._proofs = DpopProofs(self._now, uses_nonces=dpop_nonces)
        self._authorization = AuthorizationEndpoint(self._clients, self._now, self.check_request)
        self._authorization.user = user
        self._authorization.approve = approve
        self._authentication = ClientAuthentication(self._clients, self._now)
        self._grants = TokenGrants(self, self._tokens, self._authorization, self._authentication)

    def __repr__(self) -> str:
        return f"<AuthorizationServer for development only, {self.issuer or 'not started'}>"

    async def __aenter__(self) -> AuthorizationServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the address cannot be used.
        """
        listener = self._listener = self._new_listener()
        await listener.__aenter__()
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.issuer = f"{self._scheme}://{host}:{listener.port}{self._path}"
        self._tokens.issuer = self._authorization.issuer = self.issuer
        _log.warning("%s listens at %s", SERVER_NAME, self.issuer)

    async def close(self) -> None:
        """Stop to listen, and close every connection."""
        await self._listener.close()

    # -- what tests do -----------------------------------------------------------------------

    @property
    def approve(self) -> Approve:
        """How authorization requests are answered; see the constructor."""
        return self._authorization.approve

    @approve.setter
    def approve(self, value: Approve) -> None:
        self._authorization.approve = value

    @property
    def sends_iss(self) -> bool:
        """Whether authorization responses have `iss`, and the metadata says so.  [RFC 9207]"""
        return self._authorization.sends_iss

    @sends_iss.setter
    def sends_iss(self, value: bool) -> None:
        self._authorization.sends_iss = value

    def client(
        self,
        client_id: str,
        *,
        client_secret: str | None = None,
        redirect_uris: Sequence[str] = (),
        auth_method: str | None = None,
        grant_types: Sequence[str] = GRANT_TYPES,
        scopes: Iterable[str] | None = None,
        jwks: Mapping[str, Any] | None = None,
        key: SigningKey | None = None,
        client_name: str = "",
    ) -> OAuthClient:
        """Register a client as an administrator does, and return it.

        With a secret it authenticates by client_secret_basic, with `jwks` or `key` (its signing
        key, of which the public part is kept) by private_key_jwt, else not at all;
        `auth_method` is another method.
        """
        keys = public_keys(jwks) if jwks is not None else ()
        if key is not None:
            keys = (*keys, PublicKey(key.public_jwk))
        usual = "client_secret_basic" if client_secret is not None else "none"
        method = auth_method or ("private_key_jwt" if keys else usual)
        if method not in AUTH_METHODS:
            raise ValueError(f"auth_method is one of {', '.join(AUTH_METHODS)}")
        client = OAuthClient(
            client_id=client_id,
            client_secret=client_secret,
            client_name=client_name,
            redirect_uris=tuple(redirect_uris),
            auth_method=method,
            grant_types=tuple(grant_types),
            scopes=None if scopes is None else frozenset(scopes),
            keys=keys,
        )
        self._clients.add(client)
        return client

    def forget_client(self, client_id: str) -> None:
        """Remove a client, as a server that lost its registrations."""
        self._clients.remove(client_id)

    def document(self, url: str, document: Mapping[str, Any]) -> None:
        """Take a client-id metadata document as the one at its URL, which is not asked for."""
        self._clients.documents[url] = dict(document)

    def issue(
        self,
        *,
        subject: str = "user",
        client_id: str = "client",
        scopes: Iterable[str] = (),
        audience: str | Sequence[str] | None = None,
        lifetime: float | None = None,
        claims: Mapping[str, Any] | None = None,
        dpop_jkt: str | None = None,
    ) -> str:
        """Return an access token without any request.

        A claim that is None is left out; `lifetime` is in seconds, and may be negative.
        """
        grant = Grant(
            subject=subject,
            client_id=client_id,
            scopes=frozenset(scopes),
            claims=self.claims_of(subject),
            dpop_jkt=dpop_jkt,
        )
        return self._tokens.access_token(
            grant,
            self.audience_of(()) if audience is None else audience,
            self.access_lifetime if lifetime is None else lifetime,
            **(claims or {}),
        )

    def issue_id_token(
        self, *, subject: str = "user", client_id: str = "client", lifetime: float = 300.0
    ) -> str:
        """Return an identity token for a client, as a login returns it."""
        return self._tokens.id_token(Grant(subject=subject, client_id=client_id), lifetime)

    def sign(self, claims: Mapping[str, Any], *, type: str = "JWT") -> str:
        """Return any claims signed with the current key."""
        return self._tokens.sign(claims, type)

    def revoke(self, token: str) -> None:
        """Revoke a token: introspection reports it as not active, refresh tokens do not work."""
        self._tokens.revoke(token)

    def rotate_keys(self, *, keep_old: bool = True) -> None:
        """Sign with a new key from now on; without `keep_old` the old ones are not published."""
        self._tokens.rotate(keep_old=keep_old)

    def rotate_dpop_nonce(self) -> None:
        """Ask for another nonce in DPoP proofs; the last one is still accepted."""
        self._proofs.rotate_nonce()

    @property
    def jwks(self) -> dict[str, Any]:
        """The public keys, as their endpoint serves them."""
        return self._tokens.jwks

    def trust(self, issuer: str, keys: Mapping[str, Any] | SigningKey) -> None:
        """Accept assertions of another issuer, which are signed with these keys (a JWKS)."""
        if isinstance(keys, SigningKey):
            self.trusted[issuer] = (PublicKey(keys.public_jwk),)
        else:
            self.trusted[issuer] = public_keys(keys)

    def fail(
        self,
        endpoint: str,
        *,
        times: int | None = 1,
        error: str | None = None,
        status: int | None = None,
        delay: float = 0.0,
        body: bytes | None = None,
        malformed: bool = False,
        oversized: int | None = None,
        redirect: str | None = None,
        issuer: str | None = None,
        disconnect: bool = False,
    ) -> None:
        """Let the next `times` requests to an endpoint fail; None is until `recover`.

        endpoint: "metadata", "jwks", "authorize", "token", "register", "introspect" or "revoke".
        error: an OAuth error, with status 400 unless `status` is given.
        delay: seconds before the answer, which is the usual one if nothing else is given.
        malformed, oversized: a body that is not JSON, or JSON of so many bytes.
        issuer: another issuer in the metadata, or in the authorization response.
        disconnect: close the connection in place of an answer.
        """
        failure = InjectedFailure(
            error=error,
            status=status,
            delay=delay,
            body=b'{"issuer": ' if malformed else body,
            oversized=oversized,
            redirect=redirect,
            issuer=issuer,
            disconnect=disconnect,
        )
        self._failures.add(endpoint, failure, times)

    def recover(self) -> None:
        """Forget all failures that were asked for."""
        self._failures.clear()

    def asked(self, endpoint: str) -> list[RecordedRequest]:
        """Return the requests to an endpoint, in order."""
        return [each for each in self.requests if each.endpoint == endpoint]

    # -- URLs and metadata -------------------------------------------------------------------

    @property
    def authorization_endpoint(self) -> str:
        """The URL that browsers are sent to."""
        return f"{self.issuer}/authorize"

    @property
    def token_endpoint(self) -> str:
        """The URL of the token endpoint."""
        return f"{self.issuer}/token"

    @property
    def registration_endpoint(self) -> str:
        """The URL of dynamic client registration."""
        return f"{self.issuer}/register"

    @property
    def introspection_endpoint(self) -> str:
        """The URL of token introspection."""
        return f"{self.issuer}/introspect"

    @property
    def revocation_endpoint(self) -> str:
        """The URL of token revocation."""
        return f"{self.issuer}/revoke"

    @property
    def jwks_uri(self) -> str:
        """The URL of the key set."""
        return f"{self.issuer}/jwks"

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata, with the changes of the test.                         [RFC 8414]"""
        found: dict[str, Any] = {
            "issuer": self.issuer,
            "service_name": SERVER_NAME,
            "authorization_endpoint": self.authorization_endpoint,
            "token_endpoint": self.token_endpoint,
            "registration_endpoint": (
                self.registration_endpoint if self._has_registration else None
            ),
            "introspection_endpoint": self.introspection_endpoint,
            "revocation_endpoint": self.revocation_endpoint,
            "jwks_uri": self.jwks_uri,
            "scopes_supported": list(self.scopes) or None,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": list(GRANT_TYPES),
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self._tokens.algorithm],
            "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
            "token_endpoint_auth_signing_alg_values_supported": list(ALGORITHMS),
            "code_challenge_methods_supported": ["S256"],
            "dpop_signing_alg_values_supported": list(ALGORITHMS),
            "authorization_response_iss_parameter_supported": self.sends_iss,
            "client_id_metadata_document_supported": self._has_documents,
            **self.metadata_changes,
        }
        return {name: value for name, value in found.items() if value is not None}

    def claims_of(self, subject: str) -> dict[str, Any]:
        """Return the claims that go into the access tokens of a user."""
        return {**self.claims, **self.users.get(subject, {})}

    def audience_of(self, resources: Sequence[str]) -> str | list[str]:
        """Return the audience of a token for resources; without any it is this server."""
        if not resources:
            return self.issuer
        return resources[0] if len(resources) == 1 else list(resources)

    def check_request(
        self, scopes: frozenset[str], resources: Sequence[str], client: OAuthClient | None
    ) -> frozenset[str]:
        """Return the scopes that a client is granted of those it asks for.

        Raises:
            OAuthError: a scope or a resource is unknown.
        """
        for each in resources:
            parts = urlsplit(each)
            if not parts.scheme or "#" in each:
                raise OAuthError("invalid_target", "a resource is not a URL, or has a fragment")
            if self.resources is not None and each not in self.resources:
                raise OAuthError("invalid_target", "a resource is unknown")
        allowed = set(self.scopes) | {"openid", "offline_access"} if self.scopes else scopes
        if not scopes <= allowed:
            raise OAuthError("invalid_scope", "a scope is unknown")
        if client is not None and client.scopes is not None and not scopes <= client.scopes:
            raise OAuthError("invalid_scope", "a scope is not one of the client")
        return scopes or self.default_scopes

    # -- requests ----------------------------------------------------------------------------

    def _now(self) -> float:
        return self.clock()

    def _endpoint(self, path: str) -> str:
        places = {
            "metadata": self._metadata_paths(),
            "": (),
            **{
                name: (f"{self._path}/{name}",)
                for name in ("jwks", "authorize", "token", "register", "introspect", "revoke")
            },
        }
        return next((name for name, paths in places.items() if path in paths), "")

    def _metadata_paths(self) -> tuple[str, ...]:
        path = self._path
        oauth = (f"{_OAUTH}{path}",) if self._discovery != "openid" else ()
        openid = (f"{_OPENID}{path}", f"{path}{_OPENID}") if self._discovery != "oauth" else ()
        return (*oauth, *openid)

    async def _handle(self, request: HttpRequest, body: bytes) -> EndpointResponse | None:
        asked = RecordedRequest(self._endpoint(request.path), request, body)
        self.requests.append(asked)
        if len(self.requests) > _MAX_REQUESTS:
            del self.requests[0]
        failure = self._failures.take(asked.endpoint) or InjectedFailure()
        if failure.delay:
            await asyncio.sleep(failure.delay)
        if failure.disconnect:
            return None
        response = failure.response()
        if response is None:
            try:
                response = await self._respond(asked, failure)
            except OAuthError as error:
                asked.error = error.error
                response = error_response(error)
        else:
            asked.error = failure.error
        asked.status = response.status
        _log.debug("authorization server: %r", asked)
        return response

    async def _respond(
        self, request: RecordedRequest, failure: InjectedFailure
    ) -> EndpointResponse:
        endpoint = request.endpoint
        methods = _METHODS.get(endpoint, ("GET", "HEAD"))
        if request.method not in methods:
            allow = ((b"allow", ", ".join(methods).encode()),)
            raise OAuthError("invalid_request", "the method is wrong", status=405, headers=allow)
        if endpoint == "metadata":
            changed = {} if failure.issuer is None else {"issuer": failure.issuer}
            return json_response({**self.metadata, **changed})
        if endpoint == "jwks":
            return json_response(self.jwks)
        if endpoint == "authorize":
            return await self._authorization.handle(request, failure.issuer or self.issuer)
        if endpoint == "token":
            return await self._token(request)
        if endpoint == "register":
            return self._register(request)
        if endpoint == "introspect":
            return await self._introspect(request)
        if endpoint == "revoke":
            return await self._revoke(request)
        if request.path in ("/", self._path):
            return front_page(self.issuer)
        raise OAuthError("invalid_request", "there is nothing here", status=404)

    async def _token(self, request: RecordedRequest) -> EndpointResponse:
        proof, jkt = request.headers.get("dpop"), None
        if proof is not None:
            jkt = self._proofs.check(proof, request.method, self.token_endpoint)
        answer = await self._grants.handle(request, jkt)
        return json_response(answer, headers=self._proofs.headers if proof is not None else ())

    def _register(self, request: RecordedRequest) -> EndpointResponse:
        if not self._has_registration:
            raise OAuthError("invalid_request", "there is nothing here", status=404)
        request.check()
        client = self._clients.register(request.document)
        answer: dict[str, Any] = {
            **request.document,
            "client_id": client.client_id,
            "client_id_issued_at": int(self.clock()),
            "redirect_uris": list(client.redirect_uris),
            "grant_types": list(client.grant_types),
            "response_types": ["code"],
            "token_endpoint_auth_method": client.auth_method,
        }
        if client.client_secret is not None:
            answer |= {"client_secret": client.client_secret, "client_secret_expires_at": 0}
        return json_response(answer, 201)

    async def _introspect(self, request: RecordedRequest) -> EndpointResponse:
        request.check()
        await self._authenticate(request, is_public_allowed=False)
        found = self._tokens.find(request.required("token"))
        if found is None or found.is_refresh:
            return json_response({"active": False})
        kind = "Bearer" if found.grant.dpop_jkt is None else "DPoP"
        return json_response({**found.claims, "active": True, "token_type": kind})

    async def _revoke(self, request: RecordedRequest) -> EndpointResponse:
        request.check()
        client = await self._authenticate(request, is_public_allowed=True)
        self._tokens.revoke(request.required("token"), client.client_id)
        return json_response({})

    async def _authenticate(
        self, request: RecordedRequest, *, is_public_allowed: bool
    ) -> OAuthClient:
        audiences = (self.issuer, self.token_endpoint, f"{self.issuer}/{request.endpoint}")
        client = await self._authentication.authenticate(request, audiences)
        if client.is_public and not is_public_allowed:
            raise OAuthError("invalid_client", "the client has to authenticate", status=401)
        return client

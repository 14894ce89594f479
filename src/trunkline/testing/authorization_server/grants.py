"""The token endpoint of the development authorization server: one function for each grant type.

The rules that live here, and only here:

* A client uses the grant types it is registered for.              [RFC 7591, section 2]
* The resources of a token are among those of its grant; none named is all of them.  [RFC 8707]
* Scopes of a refreshed token are among those of its grant.        [RFC 6749, section 6]
* A token requested with a DPoP proof is bound to its key, and so is the refresh token of a client
  that does not authenticate.                                      [RFC 9449, section 5]
* An identity assertion (ID-JAG) is for the client that presents it; the access token has the
  resource that it names.             [draft-ietf-oauth-identity-assertion-authz-grant]
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec.structs import replace

from ...auth.jose import PublicKey
from .clients import OAuthClient
from .messages import OAuthError
from .tokens import Grant

if TYPE_CHECKING:
    from .authorization import AuthorizationEndpoint
    from .client_authentication import ClientAuthentication
    from .messages import RecordedRequest
    from .tokens import TokenIssuer

__all__ = ["GRANT_TYPES", "TokenGrants"]

AUTHORIZATION_CODE: Final = "authorization_code"
REFRESH_TOKEN: Final = "refresh_token"
CLIENT_CREDENTIALS: Final = "client_credentials"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
GRANT_TYPES: Final = (
    *(AUTHORIZATION_CODE, REFRESH_TOKEN, CLIENT_CREDENTIALS, JWT_BEARER, TOKEN_EXCHANGE),
)
_TYPE: Final = "urn:ietf:params:oauth:token-type:"
_SUBJECT_TYPES: Final = (f"{_TYPE}id_token", f"{_TYPE}access_token", f"{_TYPE}jwt")
_ID_JAG: Final = f"{_TYPE}id-jag"
ID_JAG_TYPE: Final = "oauth-id-jag+jwt"
_ASSERTION_LIFETIME_S: Final = 300
# Assertions that were used; the oldest give way.
_MAX_ASSERTIONS: Final = 10_000


class GrantSettings(Protocol):
    """What the grants need of the server."""

    issuer: str
    access_lifetime: float
    refresh_lifetime: float
    refresh_tokens: bool | str
    trusted: dict[str, tuple[PublicKey, ...]]
    clock: Callable[[], float]

    @property
    def token_endpoint(self) -> str:
        """The URL of the endpoint."""

    def claims_of(self, subject: str) -> dict[str, Any]:
        """Return the claims that go into the access tokens of a user."""

    def audience_of(self, resources: tuple[str, ...]) -> str | list[str]:
        """Return the audience of a token for resources."""

    def check_request(
        self, scopes: frozenset[str], resources: tuple[str, ...], client: OAuthClient | None
    ) -> frozenset[str]:
        """Return the scopes that a client is granted of those it asks for."""


class TokenGrants:
    """Exchanges grants for tokens."""

    def __init__(
        self,
        settings: GrantSettings,
        tokens: TokenIssuer,
        authorization: AuthorizationEndpoint,
        clients: ClientAuthentication,
    ) -> None:
        self._settings = settings
        self._tokens = tokens
        self._authorization = authorization
        self._clients = clients
        self._assertions: dict[object, None] = {}

    async def handle(self, request: RecordedRequest, jkt: str | None) -> dict[str, Any]:
        """Return the answer to a token request; `jkt` is the key of its DPoP proof.

        Raises:
            OAuthError: nothing is granted.
        """
        request.check()
        kind = request.required("grant_type")
        if kind not in GRANT_TYPES:
            raise OAuthError("unsupported_grant_type", "the grant type is not supported")
        if kind == JWT_BEARER and not _names_client(request):
            return self._workload(request, jkt)
        settings = self._settings
        client = await self._clients.authenticate(
            request, (settings.issuer, settings.token_endpoint)
        )
        if kind not in client.grant_types:
            raise OAuthError("unauthorized_client", "the client is not registered for this grant")
        if kind == AUTHORIZATION_CODE:
            return self._code(request, client, jkt)
        if kind == REFRESH_TOKEN:
            return self._refresh(request, client, jkt)
        if kind == CLIENT_CREDENTIALS:
            return self._client_credentials(request, client, jkt)
        if kind == JWT_BEARER:
            return self._identity_assertion(request, client, jkt)
        return self._token_exchange(request, client, jkt)

    def _code(
        self, request: RecordedRequest, client: OAuthClient, jkt: str | None
    ) -> dict[str, Any]:
        grant, was_used = self._authorization.exchange(request, client, jkt)
        if was_used:
            self._tokens.revoke_family(grant.family)
            raise OAuthError("invalid_grant", "the code was used before; its tokens are revoked")
        claims = {**self._settings.claims_of(grant.subject), **grant.claims}
        return self._answer(replace(grant, claims=claims), request, client, jkt)

    def _refresh(
        self, request: RecordedRequest, client: OAuthClient, jkt: str | None
    ) -> dict[str, Any]:
        token = request.required("refresh_token")
        asked = frozenset(request.parameters.get("scope", "").split())
        grant = self._tokens.use_refresh_token(token, client.client_id, jkt, asked)
        return self._answer(grant, request, client, jkt, narrowed=asked or None)

    def _client_credentials(
        self, request: RecordedRequest, client: OAuthClient, jkt: str | None
    ) -> dict[str, Any]:
        if client.is_public:
            raise OAuthError("unauthorized_client", "the client does not authenticate")
        scopes, client_id = self._scopes(request, client), client.client_id
        grant = self._grant(client_id, client_id, scopes, tuple(request.resources))
        return self._answer(grant, request, client, jkt, refreshable=False)

    def _identity_assertion(
        self, request: RecordedRequest, client: OAuthClient, jkt: str | None
    ) -> dict[str, Any]:
        claims = self._assertion(request)
        if claims.get("client_id", client.client_id) != client.client_id:
            raise OAuthError("invalid_grant", "the assertion is for another client")
        return self._asserted(request, claims, client.client_id, client, jkt)

    def _workload(self, request: RecordedRequest, jkt: str | None) -> dict[str, Any]:
        claims = self._assertion(request)
        if claims.get("client_id") is not None:
            raise OAuthError("invalid_client", "the client has to authenticate", status=401)
        return self._asserted(request, claims, str(claims["sub"]), None, jkt)

    def _asserted(
        self,
        request: RecordedRequest,
        claims: Mapping[str, Any],
        client_id: str,
        client: OAuthClient | None,
        jkt: str | None,
    ) -> dict[str, Any]:
        named = claims.get("resource")
        resources = tuple(request.resources) or ((named,) if isinstance(named, str) else ())
        if isinstance(named, str) and resources != (named,):
            raise OAuthError("invalid_target", "the assertion is for another resource")
        scopes = self._scopes(request, client)
        allowed = claims.get("scope")
        if isinstance(allowed, str):
            scopes = scopes & set(allowed.split()) if scopes else frozenset(allowed.split())
        while len(self._assertions) >= _MAX_ASSERTIONS:
            del self._assertions[next(iter(self._assertions))]
        self._assertions[(claims["iss"], claims.get("jti"))] = None
        grant = self._grant(str(claims["sub"]), client_id, scopes, resources)
        return self._answer(grant, request, client, jkt, refreshable=False)

    def _assertion(self, request: RecordedRequest) -> dict[str, Any]:
        token = self._tokens.verified(request.required("assertion"), self._settings.trusted)
        claims = token.claims
        audience = claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        if self._settings.issuer not in named and self._settings.token_endpoint not in named:
            raise OAuthError("invalid_grant", "the assertion is for another server")
        if not isinstance(claims.get("sub"), str):
            raise OAuthError("invalid_grant", "the assertion has no subject")
        if "client_id" in claims and token.header.get("typ") != ID_JAG_TYPE:
            raise OAuthError("invalid_grant", "the assertion is not an identity assertion")
        used = claims.get("jti")
        if used is not None and not isinstance(used, str):
            raise OAuthError("invalid_grant", "the jti of the assertion is not a text")
        if used is not None and (claims["iss"], used) in self._assertions:
            raise OAuthError("invalid_grant", "the assertion was used before")
        return claims

    def _token_exchange(
        self, request: RecordedRequest, client: OAuthClient, jkt: str | None
    ) -> dict[str, Any]:
        if request.required("subject_token_type") not in _SUBJECT_TYPES:
            raise OAuthError("invalid_request", "the type of the subject token is not supported")
        given = request.required("subject_token")
        claims = self._tokens.verified(given, self._settings.trusted).claims
        subject = claims.get("sub")
        if not isinstance(subject, str):
            raise OAuthError("invalid_grant", "the subject token has no subject")
        wanted = request.parameters.get("requested_token_type", f"{_TYPE}access_token")
        scopes = self._scopes(request, client)
        if wanted == _ID_JAG:
            return self._identity_token(request, client, subject, scopes)
        if wanted != f"{_TYPE}access_token":
            raise OAuthError("invalid_request", "the requested token type is not supported")
        grant = self._grant(subject, client.client_id, scopes, tuple(request.resources))
        answer = self._answer(grant, request, client, jkt, refreshable=False)
        return {**answer, "issued_token_type": wanted}

    def _identity_token(
        self, request: RecordedRequest, client: OAuthClient, subject: str, scopes: frozenset[str]
    ) -> dict[str, Any]:
        now = int(self._settings.clock())
        claims: dict[str, Any] = {
            "iss": self._settings.issuer,
            "sub": subject,
            "aud": request.required("audience"),
            "client_id": client.client_id,
            "jti": secrets.token_urlsafe(12),
            "iat": now,
            "exp": now + _ASSERTION_LIFETIME_S,
        }
        if request.resources:
            claims["resource"] = request.resources[0]
        if scopes:
            claims["scope"] = " ".join(sorted(scopes))
        return {
            "access_token": self._tokens.sign(claims, ID_JAG_TYPE),
            "issued_token_type": _ID_JAG,
            "token_type": "N_A",
            "expires_in": _ASSERTION_LIFETIME_S,
        }

    def _grant(
        self, subject: str, client_id: str, scopes: frozenset[str], resources: tuple[str, ...]
    ) -> Grant:
        """Return a grant with the claims of the user that it is for."""
        return Grant(
            subject=subject,
            client_id=client_id,
            scopes=scopes,
            resources=resources,
            claims=self._settings.claims_of(subject),
        )

    def _scopes(self, request: RecordedRequest, client: OAuthClient | None) -> frozenset[str]:
        asked = frozenset(request.parameters.get("scope", "").split())
        return self._settings.check_request(asked, tuple(request.resources), client)

    def _answer(
        self,
        grant: Grant,
        request: RecordedRequest,
        client: OAuthClient | None,
        jkt: str | None,
        *,
        narrowed: frozenset[str] | None = None,
        refreshable: bool = True,
    ) -> dict[str, Any]:
        settings, tokens = self._settings, self._tokens
        resources = tuple(request.resources) or grant.resources
        if grant.resources and not set(resources) <= set(grant.resources):
            raise OAuthError("invalid_target", "the resource is not one of the grant")
        settings.check_request(frozenset(), resources, client)
        bound = replace(grant, dpop_jkt=jkt, scopes=grant.scopes if narrowed is None else narrowed)
        answer: dict[str, Any] = {
            "access_token": tokens.access_token(
                bound, settings.audience_of(resources), settings.access_lifetime
            ),
            "token_type": "Bearer" if jkt is None else "DPoP",
            "expires_in": int(settings.access_lifetime),
            "scope": " ".join(sorted(bound.scopes)),
        }
        if refreshable and client is not None and self._is_refreshable(grant, client):
            kept = replace(grant, dpop_jkt=jkt if client.is_public else None)
            answer["refresh_token"] = tokens.refresh_token(kept, settings.refresh_lifetime)
        if "openid" in bound.scopes and client is not None:
            answer["id_token"] = tokens.id_token(grant, settings.access_lifetime)
        return answer

    def _is_refreshable(self, grant: Grant, client: OAuthClient) -> bool:
        rule = self._settings.refresh_tokens
        if REFRESH_TOKEN not in client.grant_types or rule is False:
            return False
        return rule is True or rule in grant.scopes


def _names_client(request: RecordedRequest) -> bool:
    given = request.parameters
    return (
        "client_id" in given
        or "client_assertion" in given
        or request.headers.get("authorization", "").lower().startswith("basic ")
    )

"""Access tokens that are JWTs, verified with the keys of their issuer.

    JwtBearer(issuer="https://login.example.org", audience="https://mcp.example.org/mcp")

The rules that live here, and only here:

* A token of another issuer is not of this kind; issuers are compared as texts.
* Signature and algorithm are checked before any claim but `iss`.
* `exp` is required; times, audience and the binding to a key are checked as `claims` says.
* A header `typ` says access token, or nothing in particular. Tokens that say to be ID tokens,
  refresh tokens or proofs are refused.                         [RFC 9068, 4; RFC 8725, 3.11]
* A token that was verified is not verified again while the key that signed it is one of the keys
  of the issuer. Times and binding are checked for every request. Tokens are kept as their hash, in
  a bounded table; one that was refused is not kept.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...jose import ALGORITHMS, InvalidSignature, PublicKey, SignedToken, parse_token
from ...principal import Principal
from .claims import (
    CLIENT_CLAIMS,
    LEEWAY_S,
    check_audience,
    check_binding,
    check_tenant,
    check_times,
    principal_of,
)
from .credential import InvalidCredential, VerifierUnavailable
from .jwks import MAX_AGE_S, KeySet, KeySource, RemoteKeys, StaticKeys

if TYPE_CHECKING:
    import ssl

    from .credential import Credential

__all__ = ["JwtBearer"]

# Claims of tokens that are not access tokens.   [OpenID Connect Core, 3.1.3.6; AWS; Keycloak]
_ID_TOKEN_CLAIMS: Final = frozenset({"at_hash", "c_hash", "s_hash"})
_OTHER_USES: Final = {
    "token_use": frozenset({"id", "refresh"}),
    "typ": frozenset({"id", "refresh", "offline", "logout"}),
}

# Some 2 KB each.
_MAX_VERIFIED: Final = 10_000
# Longer ones are verified each time.
_MAX_TOKEN_CHARS: Final = 16 * 1024

_BAD_SIGNATURE: Final = "The signature of the token is not valid"
_BAD_TYPE: Final = "The token is not an access token"
_ENDLESS: Final = "The token does not say when it expires"


class _Verified(NamedTuple):
    """A token whose signature, kind and audience were checked."""

    key: PublicKey
    key_id: str | None
    algorithm: str
    principal: Principal

    def __repr__(self) -> str:
        return "<verified token>"


class JwtBearer:
    """Verifies access tokens that are JWTs of one issuer.

    `audience` is the URL of this server, or several names of it: a token has one of them in `aud`.
    The keys are those that the metadata of the issuer leads to, those at `jwks_uri`, or `keys`: a
    JWKS as a dict or as JSON, or public keys in PEM. `tenant_claim` names the claim with the
    tenant; a token without it is refused with status 403, unless `tenant_required=False`.

    Raises:
        ValueError: an argument is empty or malformed, or an algorithm is not asymmetric.
        InvalidKey: a key of `keys` cannot be used.
    """

    schemes: tuple[str, ...] = ("bearer",)
    dpop_algorithms: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        issuer: str,
        audience: str | Iterable[str],
        algorithms: Iterable[str] = ALGORITHMS,
        leeway: float = LEEWAY_S,
        types: Iterable[str] = ("at+jwt", "jwt", ""),
        tenant_claim: str | None = None,
        tenant_required: bool = True,
        client_claims: Iterable[str] = CLIENT_CLAIMS,
        scopes_supported: Iterable[str] = (),
        jwks_uri: str | None = None,
        keys: Mapping[str, Any] | str | Iterable[str] | KeySource | None = None,
        max_age: float = MAX_AGE_S,
        allow_private: bool = True,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.issuer = issuer
        self.audience = frozenset({audience} if isinstance(audience, str) else audience)
        self.algorithms = tuple(algorithms)
        if not issuer or not self.audience or not all(self.audience) or not self.algorithms:
            raise ValueError("JwtBearer needs an issuer, an audience and an algorithm")
        if not set(self.algorithms) <= set(ALGORITHMS):
            raise ValueError(f"JwtBearer.algorithms are of {', '.join(ALGORITHMS)}")
        if not 0 <= leeway <= 3600:
            raise ValueError("JwtBearer.leeway is 0 to 3600 seconds")
        if keys is not None and jwks_uri is not None:
            raise ValueError("JwtBearer has keys or jwks_uri, not both")
        self.scopes_supported = tuple(scopes_supported)
        self.authorization_servers = (issuer,)
        self._types = frozenset(each.lower() for each in types)
        self._tenant_claim = tenant_claim
        self._required_claim = tenant_claim if tenant_required else None
        self._client_claims = tuple(client_claims)
        self._leeway = leeway
        self._clock = clock
        if keys is None:
            _check_urls(issuer, jwks_uri)
            self._keys: KeySource = RemoteKeys(
                issuer,
                jwks_uri=jwks_uri,
                algorithms=self.algorithms,
                max_age=max_age,
                allow_private=allow_private,
                tls=tls,
            )
        else:
            self._keys = _key_source(keys, self.algorithms)
        # By the hash of the token, the one used least recently first.
        self._verified: OrderedDict[bytes, _Verified] = OrderedDict()

    def __repr__(self) -> str:
        return f"<JwtBearer for {', '.join(sorted(self.audience))}, issued by {self.issuer}>"

    def verify(self, credential: Credential) -> Principal | Coroutine[Any, Any, Principal] | None:
        """Return the principal of a token, or None if it is not a JWT of this issuer.

        Raises:
            InvalidCredential: it is, and not valid.
            TenantRefused: it is valid, and lacks the claim of its tenant.
        """
        if credential.scheme != "bearer":
            return None
        digest = _digest(credential.token)
        principal = self._known(digest, credential)
        if principal is not None:
            return principal
        try:
            token = parse_token(credential.token)
        except InvalidSignature:
            return None
        if token.claims.get("iss") != self.issuer:
            return None
        key_id, algorithm = token.key_id, token.algorithm
        if algorithm not in self.algorithms or not (key_id is None or isinstance(key_id, str)):
            raise InvalidCredential(_BAD_SIGNATURE)
        keys = self._keys.find(key_id, algorithm)
        if keys is None:
            return self._fetch_and_check(digest, credential, token)
        return self._checked(digest, credential, token, keys)

    def verify_offline(self, credential: Credential) -> Principal | None:
        """Return what `verify` does, if the keys are at hand.

        Raises:
            InvalidCredential: the token is of this issuer, and not valid.
            VerifierUnavailable: keys have to be fetched.
        """
        found = self.verify(credential)
        if found is None or isinstance(found, Principal):
            return found
        found.close()  # it has not begun
        raise VerifierUnavailable("keys have to be fetched")

    def _known(self, digest: bytes | None, credential: Credential) -> Principal | None:
        """Return the principal of a token that was verified with a key that is still valid."""
        known = None if digest is None else self._verified.get(digest)
        if digest is None or known is None:
            return None
        keys = self._keys.find(known.key_id, known.algorithm)
        if keys is None or not any(each is known.key for each in keys):
            return None
        claims = known.principal.claims
        check_times(claims, self._clock(), self._leeway)
        check_binding(claims, credential.key_thumbprint)
        self._verified.move_to_end(digest)
        return known.principal

    async def _fetch_and_check(
        self, digest: bytes | None, credential: Credential, token: SignedToken
    ) -> Principal:
        keys = await self._keys.fetch(token.key_id, token.algorithm)
        return self._checked(digest, credential, token, keys)

    def _checked(
        self,
        digest: bytes | None,
        credential: Credential,
        token: SignedToken,
        keys: tuple[PublicKey, ...],
    ) -> Principal:
        for key in keys:
            if token.is_signed_by(key):
                break
        else:
            raise InvalidCredential(_BAD_SIGNATURE)
        claims = token.claims
        kind = token.header.get("typ", "")
        if not isinstance(kind, str) or self._is_other(kind, claims):
            raise InvalidCredential(_BAD_TYPE)
        ends = check_times(claims, self._clock(), self._leeway)
        if ends is None:
            raise InvalidCredential(_ENDLESS)
        check_audience(claims, self.audience)
        check_binding(claims, credential.key_thumbprint)
        principal = principal_of(
            claims,
            issuer=self.issuer,
            client_claims=self._client_claims,
            tenant_claim=self._tenant_claim,
            expires_at=ends,
        )
        if self._required_claim is not None:
            check_tenant(principal, self._required_claim)
        if digest is not None:
            self._verified[digest] = _Verified(key, token.key_id, token.algorithm, principal)
            if len(self._verified) > _MAX_VERIFIED:
                self._verified.popitem(last=False)
        return principal

    def _is_other(self, kind: str, claims: dict[str, Any]) -> bool:
        if kind.lower().removeprefix("application/") not in self._types:
            return True
        if not _ID_TOKEN_CLAIMS.isdisjoint(claims):
            return True
        for name, uses in _OTHER_USES.items():
            found = claims.get(name)
            if found is not None and (not isinstance(found, str) or found.lower() in uses):
                return True
        return False


def _digest(token: str) -> bytes | None:
    """Return the hash of a token, or None for one that is not kept."""
    if len(token) > _MAX_TOKEN_CHARS or not token.isascii():
        return None
    return sha256(token.encode("ascii")).digest()


def _check_urls(issuer: str, jwks_uri: str | None) -> None:
    from ....transports.http.client.fetch import FetchRefused, check_url

    for url in (issuer, jwks_uri):
        try:
            if url is not None and check_url(url).query and url is issuer:
                raise ValueError("JwtBearer.issuer has no query")
        except FetchRefused as error:
            raise ValueError(f"JwtBearer: {error}") from None


def _key_source(
    keys: Mapping[str, Any] | str | Iterable[str] | KeySource, algorithms: tuple[str, ...]
) -> KeySource:
    if isinstance(keys, Mapping):
        return StaticKeys(KeySet.of_jwks(keys, algorithms))
    if isinstance(keys, str):
        if keys.lstrip().startswith("{"):
            return StaticKeys(KeySet.parse(keys.encode(), algorithms))
        return StaticKeys(KeySet([PublicKey.from_pem(keys)], algorithms))
    if isinstance(keys, Iterable):
        return StaticKeys(KeySet([PublicKey.from_pem(each) for each in keys], algorithms))
    return keys

"""Tokens of the development authorization server: keys, access, refresh and identity tokens.

The rules that live here, and only here:

* An access token is a JWT of the type at+jwt, for the resources that were asked for.  [RFC 9068]
* A refresh token is used once: its answer has the next one. The use of an old one revokes all
  tokens of the same grant.                                     [OAuth 2.1, section 4.3.1]
* A key that was replaced verifies what it signed, until it is removed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from ...auth.jose import InvalidSignature, PublicKey, SignedToken, SigningKey, parse_token
from .messages import Concealed, OAuthError

__all__ = ["Grant", "TokenIssuer", "TokenRecord"]

# Kept for introspection and revocation; the oldest give way.
_MAX_TOKENS: Final = 100_000
_REUSED: Final = "the refresh token was used before; all tokens of its grant are revoked"


class Grant(Concealed, Struct, frozen=True, kw_only=True):
    """What a user, or the server itself, has permitted a client."""

    subject: str
    client_id: str
    scopes: frozenset[str] = frozenset()
    # What its tokens are for; empty is the default audience of the server.
    resources: tuple[str, ...] = ()
    claims: Mapping[str, Any] = {}
    # The thumbprint of the key that its tokens are bound to.                     [RFC 9449]
    dpop_jkt: str | None = None
    # All tokens of one consent are of one family.
    family: str = ""


class TokenRecord(Concealed, Struct, kw_only=True):
    """A token that was issued; it appears in no repr."""

    grant: Grant
    claims: Mapping[str, Any]
    is_refresh: bool = False
    is_revoked: bool = False
    is_used: bool = False


class TokenIssuer:
    """Signs tokens, and remembers them."""

    def __init__(self, algorithm: str, clock: Callable[[], float], *, is_opaque: bool) -> None:
        self.issuer = ""
        self.algorithm = algorithm
        self._clock = clock
        self._is_opaque = is_opaque
        self._keys = [self._new_key()]
        self._issued: dict[str, TokenRecord] = {}

    def rotate(self, *, keep_old: bool) -> None:
        """Sign with a new key. Old keys stay in the set, or are removed."""
        self._keys = [self._new_key(), *(self._keys if keep_old else ())]

    @property
    def jwks(self) -> dict[str, Any]:
        """The key set, the current key first."""
        extra = {"use": "sig", "alg": self.algorithm}
        return {"keys": [{**key.public_jwk, **extra} for key in self._keys]}

    def sign(self, claims: Mapping[str, Any], kind: str) -> str:
        """Return claims as a signed token of a type."""
        return self._keys[0].sign(claims, {"typ": kind})

    def is_own(self, token: SignedToken) -> bool:
        """Return True if a token was signed here."""
        return any(
            token.is_signed_by(PublicKey(key.public_jwk))
            for key in self._keys
            if token.key_id == key.key_id
        )

    def access_token(
        self, grant: Grant, audience: str | Iterable[str], lifetime: float, **extra: Any
    ) -> str:
        """Return a new access token."""
        now = self._clock()
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "sub": grant.subject,
            "aud": audience if isinstance(audience, str) else list(audience),
            "client_id": grant.client_id,
            "scope": " ".join(sorted(grant.scopes)),
            "iat": int(now),
            "exp": int(now + lifetime),
            "jti": secrets.token_urlsafe(12),
            **grant.claims,
            **extra,
        }
        if grant.dpop_jkt is not None:
            claims["cnf"] = {"jkt": grant.dpop_jkt}
        claims = {name: value for name, value in claims.items() if value is not None}
        token = secrets.token_urlsafe(32) if self._is_opaque else self.sign(claims, "at+jwt")
        self._keep(token, TokenRecord(grant=grant, claims=claims))
        return token

    def refresh_token(self, grant: Grant, lifetime: float) -> str:
        """Return a new refresh token."""
        now = int(self._clock())
        token = secrets.token_urlsafe(32)
        claims = {"iat": now, "exp": int(now + lifetime)}
        self._keep(token, TokenRecord(grant=grant, claims=claims, is_refresh=True))
        return token

    def id_token(self, grant: Grant, lifetime: float) -> str:
        """Return an identity token for the client.                [OpenID Connect Core, 2]"""
        now = self._clock()
        claims = {
            "iss": self.issuer,
            "sub": grant.subject,
            "aud": grant.client_id,
            "iat": int(now),
            "exp": int(now + lifetime),
        }
        return self.sign(claims, "JWT")

    def use_refresh_token(
        self, token: str, client_id: str, jkt: str | None, scopes: frozenset[str]
    ) -> Grant:
        """Return the grant of a refresh token, which cannot be used again.

        Raises:
            OAuthError: it is unknown, expired, of another client or key, was used, or does not
                include the scopes.
        """
        found = self._issued.get(token)
        if found is None or not found.is_refresh or found.grant.client_id != client_id:
            raise OAuthError("invalid_grant", "the refresh token is unknown")
        if found.is_used:
            self.revoke_family(found.grant.family)
            raise OAuthError("invalid_grant", _REUSED)
        if found.is_revoked or found.claims["exp"] <= self._clock():
            raise OAuthError("invalid_grant", "the refresh token is revoked or expired")
        if found.grant.dpop_jkt is not None and found.grant.dpop_jkt != jkt:
            raise OAuthError("invalid_grant", "the refresh token is bound to another key")
        if not scopes <= found.grant.scopes:
            raise OAuthError("invalid_scope", "a scope is not one of the grant")
        found.is_used = True
        return found.grant

    def find(self, token: str) -> TokenRecord | None:
        """Return a token that is neither revoked, used nor expired."""
        found = self._issued.get(token)
        if found is None or found.is_revoked or found.is_used:
            return None
        return found if found.claims.get("exp", 0) > self._clock() else None

    def revoke(self, token: str, client_id: str | None = None) -> None:
        """Revoke a token, and with a refresh token its whole grant.          [RFC 7009]"""
        found = self._issued.get(token)
        if found is None or client_id not in (None, found.grant.client_id):
            return
        found.is_revoked = True
        if found.is_refresh:
            self.revoke_family(found.grant.family)

    def revoke_family(self, family: str) -> None:
        """Revoke all tokens of a grant."""
        for each in self._issued.values():
            if family and each.grant.family == family:
                each.is_revoked = True

    def verified(self, token: str, foreign: Mapping[str, tuple[PublicKey, ...]]) -> SignedToken:
        """Return a token that was signed here, or with a key of a trusted issuer, and is valid.

        Raises:
            OAuthError: it is none of these.
        """
        try:
            found = parse_token(token)
        except InvalidSignature:
            raise OAuthError("invalid_grant", "the assertion is not a signed token") from None
        issuer = found.claims.get("iss")
        keys = foreign.get(issuer, ()) if isinstance(issuer, str) else ()
        is_signed = any(found.is_signed_by(key) for key in keys)
        if not is_signed and not (issuer == self.issuer and self.is_own(found)):
            raise OAuthError("invalid_grant", "the issuer of the assertion is not trusted")
        if not is_current(found.claims, self._clock()):
            raise OAuthError("invalid_grant", "the assertion is expired, or not valid yet")
        return found

    def _keep(self, token: str, issued: TokenRecord) -> None:
        while len(self._issued) >= _MAX_TOKENS:
            del self._issued[next(iter(self._issued))]
        self._issued[token] = issued

    def _new_key(self) -> SigningKey:
        return SigningKey.generate(self.algorithm, key_id=secrets.token_urlsafe(8))


def is_current(claims: Mapping[str, Any], now: float) -> bool:
    """Return True if claims are valid now: `exp` is required, `nbf` is not."""
    expires, begins = claims.get("exp"), claims.get("nbf", 0)
    return (
        isinstance(expires, int | float)
        and isinstance(begins, int | float)
        and begins <= now < expires
    )

"""A verifier of access tokens for mcp, which has none of its own for JWT."""

from __future__ import annotations

from typing import Any

from joserfc import jwk, jwt
from joserfc.errors import JoseError
from mcp.server.auth.provider import AccessToken

from bench.servers.tokens import AUDIENCE, ISSUER


class SameCheck:
    """A verifier for mcp that checks what `JwtBearer` does, with the same library."""

    def __init__(self, algorithm: str, key: dict[str, Any]) -> None:
        self._key = jwk.import_key(key)
        self._algorithms = [algorithm]
        self._registry = jwt.JWTClaimsRegistry(
            leeway=30,
            iss={"essential": True, "value": ISSUER},
            aud={"essential": True, "value": AUDIENCE},
            exp={"essential": True},
        )

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the token says, or None."""
        try:
            found = jwt.decode(token, self._key, algorithms=self._algorithms)
            self._registry.validate(found.claims)
        except (JoseError, ValueError):
            return None
        told = found.claims
        return AccessToken(
            token=token,
            client_id=told["client_id"],
            scopes=told["scope"].split(),
            expires_at=told["exp"],
            resource=AUDIENCE,
            subject=told["sub"],
            claims=told,
        )

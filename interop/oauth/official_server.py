"""The official server, protected by tokens of an authorization server.

    python -m interop.oauth.official_server PORT ISSUER

Its verifier asks the JWKS of the issuer for each token, with a library of its own.
"""

from __future__ import annotations

import json
import sys
from urllib.request import ProxyHandler, build_opener

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

__all__ = ["Verifier"]


class Verifier:
    """Verifies JWTs of one issuer for one resource."""

    def __init__(self, issuer: str, resource: str) -> None:
        self.issuer = issuer
        self.resource = resource

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token says, or None if it is not valid."""
        opener = build_opener(ProxyHandler({}))
        with opener.open(f"{self.issuer}/jwks", timeout=10) as response:
            keys = KeySet.import_key_set(json.load(response))
        try:
            claims = jwt.decode(token, keys, algorithms=["ES256"]).claims
            registry = jwt.JWTClaimsRegistry(
                iss={"essential": True, "value": self.issuer},
                aud={"essential": True, "value": self.resource},
                exp={"essential": True},
            )
            registry.validate(claims)
        except (JoseError, ValueError):
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims.get("scope", "").split(),
            expires_at=claims["exp"],
            resource=claims["aud"],
            subject=claims["sub"],
        )


def main() -> None:
    """Serve until a signal ends it."""
    port, issuer = sys.argv[1:]
    url = f"http://127.0.0.1:{port}/mcp"
    settings = AuthSettings(
        issuer_url=issuer,
        resource_server_url=url,
        required_scopes=["files:read"],
        validate_token_resource=True,
    )
    app = MCPServer("protected", auth=settings, token_verifier=Verifier(issuer, url))

    @app.tool()
    def whoami() -> str:
        """Return the caller."""
        token = get_access_token()
        assert token is not None
        return json.dumps({"client_id": token.client_id, "scopes": token.scopes})

    app.run("streamable-http", host="127.0.0.1", port=int(port))


if __name__ == "__main__":
    main()

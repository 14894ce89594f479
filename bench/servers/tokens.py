"""Access tokens of the benchmarks: their claims, and the verifier of Trunkline for them."""

from __future__ import annotations

import time
from typing import Any, Final

from trunkline.auth import JwtBearer

ISSUER: Final = "https://login.example.org"
AUDIENCE: Final = "https://mcp.example.org/mcp"
ALGORITHM: Final = "Ed25519"
"""Of tokens that a server checks; `bench.auth` has others too."""


def claims(audience: str = AUDIENCE) -> dict[str, Any]:
    """Return claims as an authorization server issues them."""
    now = int(time.time())
    return {
        "iss": ISSUER,
        "aud": [audience],
        "sub": "5c0b1d0e-0a54-4d9b-8a0c-6f6f5f3e9a11",
        "client_id": "https://editor.example.org/client.json",
        "scope": "files:read files:write offline_access",
        "tenant": "acme",
        "jti": "Yq5LhXw0cEJc2mEo1Vv0Ug",
        "iat": now,
        "nbf": now,
        "exp": now + 24 * 3600,
    }


def verifier_of(key: dict[str, Any]) -> JwtBearer:
    """Return the verifier of tokens that this key, a public JWK, has signed."""
    return JwtBearer(issuer=ISSUER, audience=AUDIENCE, keys={"keys": [key]}, tenant_claim="tenant")

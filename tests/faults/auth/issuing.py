"""Issuers of access tokens, principals of them, and a server that verifies the tokens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from trunkline.auth import AuthSettings, JwtBearer, SigningKey

AUDIENCE: Final = "https://mcp.example.org/mcp"


class Issuer:
    """Signs tokens for the tests."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._key = SigningKey.generate(key_id="k")

    def token(self, lifetime: float = 600, **claims: Any) -> str:
        now = time.time()
        given = {
            "iss": self.url,
            "aud": AUDIENCE,
            "iat": int(now) - 1,
            "exp": now + lifetime,
            "sub": "ann",
            "client_id": "app",
            "tenant": "acme",
        } | claims
        return self._key.sign(given, {"typ": "at+jwt", "kid": "k"})

    def verifier(self, **options: Any) -> JwtBearer:
        jwks = {"keys": [self._key.public_jwk]}
        given: dict[str, Any] = {"tenant_claim": "tenant", "leeway": 0, "keys": jwks} | options
        return JwtBearer(issuer=self.url, audience=AUDIENCE, **given)


FIRST: Final = Issuer("https://one.example.org")
SECOND: Final = Issuer("https://two.example.org")


class Who(NamedTuple):
    """A principal: its issuer and its claims."""

    issuer: Issuer = FIRST
    subject: str = "ann"
    client: str = "app"
    tenant: str = "acme"

    def headers(self, **options: Any) -> list[tuple[str, str]]:
        token = self.issuer.token(
            sub=self.subject, client_id=self.client, tenant=self.tenant, **options
        )
        return [("Authorization", f"Bearer {token}")]


ANN: Final = Who()
# Each differs from Ann in one part of what identifies a principal.
OTHERS: Final = {
    "another subject": Who(subject="bob"),
    "the same subject of another issuer": Who(issuer=SECOND),
    "the same subject with another client": Who(client="other app"),
    "the same subject in another tenant": Who(tenant="other"),
}


def auth(clock: Callable[[], float] = time.time, **options: Any) -> AuthSettings:
    verifiers = [each.verifier(clock=clock) for each in (FIRST, SECOND)]
    return AuthSettings(verifiers=verifiers, resource=AUDIENCE, **options)

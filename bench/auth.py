"""Verifying the access token of a request, with its key at hand, against the middleware of mcp.

    python -m bench.auth

What is compared, for each algorithm of signatures:

* `signature alone`: the check of the signature by joserfc and cryptography. All others include it.
* `trunkline`: from the value of the Authorization header to a principal: `JwtBearer.verify`.
* `mcp`: from the ASGI scope to the user of the request: the `BearerAuthBackend` of mcp, with a
  `TokenVerifier` that checks the same with the same library: signature, `iss`, `aud` and times.

The overhead is the best CPU time of a case without that of `signature alone`. Every result is
checked once, before the rounds, and so is that a token of another audience is refused.
The coroutine of mcp never waits, and is run without an event loop, which is in its favour.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from joserfc import jwk, jwt
from joserfc.errors import JoseError
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken
from pydantic import AnyHttpUrl
from starlette.requests import HTTPConnection

from bench import harness
from bench.harness import FULL, QUICK, Bench, Case, check
from bench.section import Section
from trunkline.auth import Credential, InvalidCredential, JwtBearer, Principal, SigningKey
from trunkline.auth.jose import PublicKey

DISTRIBUTIONS: Final = (
    *("trunkline", "msgspec", "joserfc", "cryptography", "mcp", "pydantic", "starlette"),
)

ISSUER: Final = "https://login.example.org"
AUDIENCE: Final = "https://mcp.example.org/mcp"
ALGORITHMS: Final = ("ES256", "RS256", "Ed25519")

ALONE: Final = "signature alone"
OWN: Final = "trunkline"
MCP: Final = "mcp"

Run = Callable[[Any], object]


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


def signature_alone(signer: SigningKey, token: str) -> Run:
    """Return the check of a signature, with what is signed at hand."""
    key = PublicKey(signer.public_jwk)
    signed, _, _ = token.encode().rpartition(b".")
    signature = _signature(token)

    def run(_: Any) -> bool:
        return key.verifies(signer.algorithm, signed, signature)

    check(run(None), True)
    return run


def own(signer: SigningKey, token: str) -> Run:
    """Return what a request costs in Trunkline: its header is read, and its token verified."""
    verifier = JwtBearer(
        issuer=ISSUER,
        audience=AUDIENCE,
        keys={"keys": [signer.public_jwk]},
        tenant_claim="tenant",
    )

    def run(header: str) -> object:
        scheme, _, text = header.partition(" ")
        return verifier.verify(Credential(scheme.lower(), text))

    found = run(f"Bearer {token}")
    assert isinstance(found, Principal)
    check((found.subject, found.tenant), (claims()["sub"], "acme"))
    try:
        run(f"Bearer {signer.sign(claims('https://other'))}")
    except InvalidCredential:
        return run
    raise RuntimeError("a token of another audience was accepted")


class SameCheck:
    """A verifier for mcp that checks what `JwtBearer` does, with the same library."""

    def __init__(self, signer: SigningKey) -> None:
        self._key = jwk.import_key(signer.public_jwk)
        self._algorithms = [signer.algorithm]
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


def rival(signer: SigningKey, token: str) -> Run:
    """Return what a request costs in the middleware of mcp."""
    backend = BearerAuthBackend(SameCheck(signer), resource_server_url=AnyHttpUrl(AUDIENCE))

    def run(header: str) -> Any:
        headers = [(b"host", b"mcp.example.org"), (b"authorization", header.encode())]
        scope = {"type": "http", "headers": headers, "path": "/mcp"}
        return finished(backend.authenticate(HTTPConnection(scope)))

    _, user = run(f"Bearer {token}")
    check(user.access_token.subject, claims()["sub"])
    check(run(f"Bearer {signer.sign(claims('https://other'))}"), None)
    return run


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("it waited")


def _signature(token: str) -> bytes:
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(token.rpartition(".")[2] + "==")


def register(bench: Bench) -> None:
    """Add every case, for each algorithm."""
    for algorithm in ALGORITHMS:
        signer = SigningKey.generate(algorithm, key_id="2026-01")
        token = signer.sign(claims(), {"typ": "at+jwt"})
        header = (f"Bearer {token}",)
        bench.add(Case(algorithm, ALONE, signature_alone(signer, token)))
        bench.add(Case(algorithm, OWN, own(signer, token), header))
        bench.add(Case(algorithm, MCP, rival(signer, token), header))
        bench.control(algorithm, OWN)


def overhead_us(bench: Bench, algorithm: str, name: str) -> float | None:
    """Return the best CPU time of a case without that of the signature, in microseconds."""
    whole, alone = bench.best(algorithm, name), bench.best(algorithm, ALONE)
    return None if whole is None or alone is None else (whole - alone) / 1000


def main() -> int:
    """Run it; the exit code says whether the targets hold."""
    about = "A verified access token with its key at hand, against the middleware of mcp."
    section = Section("auth", about, DISTRIBUTIONS)
    bench = section.bench(FULL, QUICK)
    register(bench)
    bench.run(harness.show_progress)
    for algorithm in ALGORITHMS:
        bench.compare(algorithm, lambda name: [] if name == ALONE else [MCP])
        harness.print_group(bench, algorithm)
    print(f"\n{'beside the signature':<36}{'trunkline':>12}{'mcp':>12}{'signature':>12}")
    for algorithm in ALGORITHMS:
        alone = bench.case(algorithm, ALONE)
        assert alone is not None
        ours, theirs = (overhead_us(bench, algorithm, each) or 0 for each in (OWN, MCP))
        line = f"{ours:9.1f} us{theirs:9.1f} us{alone.best / 1000:9.1f} us"
        print(f"  {algorithm:<34}{line}")
        for name, value in ((OWN, ours), (MCP, theirs)):
            section.value(f"beside the signature, {algorithm}", name, value, "us")
    harness.print_overhead(bench)
    harness.print_controls(bench)
    return section.conclude()


if __name__ == "__main__":
    sys.exit(main())

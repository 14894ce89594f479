"""Verifying the access token of a request, with its key at hand, against the middleware of mcp.

    python -m bench.auth

What is compared, for each algorithm of signatures:

* `signature alone`: the check of the signature by joserfc and cryptography. All others include it.
* `trunkline`: from the value of the Authorization header to a principal: `JwtBearer.verify`, of a
  token that it has not seen before. `trunkline, a token again` is one that it has, whose signature
  is not checked a second time.
* `mcp`: from the ASGI scope to the user of the request: the `BearerAuthBackend` of mcp, with a
  `TokenVerifier` that checks the same with the same library: signature, `iss`, `aud` and times.

The overhead is the best CPU time of a case without that of `signature alone`. Every result is
checked once, before the rounds, and so is that a token of another audience is refused.
The coroutine of mcp never waits, and is run without an event loop, which is in its favour.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from pydantic import AnyHttpUrl
from starlette.requests import HTTPConnection

from bench import harness
from bench.harness import FULL, QUICK, Bench, Case, check
from bench.section import Section
from bench.servers.token_check import SameCheck
from bench.servers.tokens import AUDIENCE, claims, verifier_of
from trunkline.auth import Credential, InvalidCredential, Principal, SigningKey
from trunkline.auth.jose import PublicKey

DISTRIBUTIONS: Final = (
    *("trunkline", "msgspec", "joserfc", "cryptography", "mcp", "pydantic", "starlette"),
)

ALGORITHMS: Final = ("ES256", "RS256", "Ed25519")

ALONE: Final = "signature alone"
OWN: Final = "trunkline"
AGAIN: Final = "trunkline, a token again"
MCP: Final = "mcp"

Run = Callable[[Any], object]


def signature_alone(signer: SigningKey, token: str) -> Run:
    """Return the check of a signature, with what is signed at hand."""
    key = PublicKey(signer.public_jwk)
    signed, _, _ = token.encode().rpartition(b".")
    signature = _signature(token)

    def run(_: Any) -> bool:
        return key.verifies(signer.algorithm, signed, signature)

    check(run(None), True)
    return run


def own(signer: SigningKey, token: str, *, is_new: bool) -> Run:
    """Return what a request costs in Trunkline: its header is read, and its token verified."""
    verifier = verifier_of(signer.public_jwk)

    def run(header: str) -> object:
        scheme, _, text = header.partition(" ")
        found = verifier.verify(Credential(scheme.lower(), text))
        if is_new:
            verifier._verified.clear()
        return found

    found = run(f"Bearer {token}")
    assert isinstance(found, Principal)
    check((found.subject, found.tenant), (claims()["sub"], "acme"))
    try:
        run(f"Bearer {signer.sign(claims('https://other'))}")
    except InvalidCredential:
        return run
    raise RuntimeError("a token of another audience was accepted")


def check_of(signer: SigningKey) -> SameCheck:
    """Return the verifier of mcp for a key."""
    return SameCheck(signer.algorithm, signer.public_jwk)


def rival(signer: SigningKey, token: str) -> Run:
    """Return what a request costs in the middleware of mcp."""
    backend = BearerAuthBackend(check_of(signer), resource_server_url=AnyHttpUrl(AUDIENCE))

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
        bench.add(Case(algorithm, OWN, own(signer, token, is_new=True), header))
        bench.add(Case(algorithm, AGAIN, own(signer, token, is_new=False), header))
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

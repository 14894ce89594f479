"""DPoP at a server: stolen tokens, stolen and replayed proofs, nonces."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.cases import for_each
from tests.rigs.clock import Clock
from tests.rigs.event_loop import on_a_loop
from tests.unit.auth.tokens import AUDIENCE, ISSUER, NOW, bearer, jwks, key, raw_token, token
from trunkline.auth import (
    ApiKeys,
    Chain,
    Credential,
    Dpop,
    InvalidCredential,
    JwtBearer,
    Principal,
    VerifierUnavailable,
)
from trunkline.auth.dpop import make_proof
from trunkline.auth.jose import ALGORITHMS, SigningKey
from trunkline.store import Key, MemoryStore, StoreLimits, StoreUnavailable

PROOF = "invalid_dpop_proof"
TOKEN = "invalid_token"
CLIENT = key(key_id=None, number=100)


class DpopVerifier:
    def __init__(self, **settings: Any) -> None:
        self.clock = Clock(NOW)
        self.inner = JwtBearer(issuer=ISSUER, audience=AUDIENCE, keys=jwks(), clock=self.clock)
        self.verifier = Dpop(self.inner, clock=self.clock, **settings)

    def bound(self, signer: SigningKey = CLIENT, **changes: Any) -> str:
        return token(cnf={"jkt": signer.thumbprint}, **changes)

    def credential(
        self, text: str | None = None, *proofs: str, scheme: str = "dpop", **proof: Any
    ) -> Credential:
        """Return a credential with a proof for it, unless proofs are given."""
        used = self.bound() if text is None else text
        return Credential(scheme, used, "POST", AUDIENCE, proofs or (self.proof(used, **proof),))

    def proof(self, text: str, **changes: Any) -> str:
        given: dict[str, Any] = {
            "key": CLIENT,
            "method": "POST",
            "url": AUDIENCE,
            "token": text,
            "issued_at": self.clock.now,
            **changes,
        }
        return make_proof(given.pop("key"), given.pop("method"), given.pop("url"), **given)

    async def verify(self, credential: Credential) -> str:
        """Return the subject, or the error code and description."""
        try:
            found = self.verifier.verify(credential)
            if found is not None and not isinstance(found, Principal):
                found = await found
        except InvalidCredential as error:
            return f"{error.error}: {error.description}"
        except VerifierUnavailable:
            return "unavailable"
        return "not recognised" if found is None else found.subject


@on_a_loop
async def test_a_bound_token_with_a_proof_is_accepted() -> None:
    scene = DpopVerifier()
    assert await scene.verify(scene.credential()) == "ann"
    for algorithm in ("RS256", "PS256", "ES384", "Ed25519", "EdDSA"):
        signer = key(algorithm, None)
        text = scene.bound(signer)
        assert await scene.verify(scene.credential(text, key=signer)) == "ann"


# Stolen tokens


@on_a_loop
async def test_a_stolen_token_without_its_key_is_worth_nothing() -> None:
    scene = DpopVerifier()
    thief = key(number=101)
    text = scene.bound()
    wrong = f"{TOKEN}: The token is bound to a key that was not proved"
    assert await scene.verify(scene.credential(text, key=thief)) == wrong
    assert await scene.verify(scene.credential(text, scheme="bearer")) == wrong
    assert await scene.verify(bearer(text)) == wrong


@on_a_loop
async def test_a_bound_token_sent_as_bearer_is_refused_where_bearer_tokens_are_accepted() -> None:
    scene = DpopVerifier(required=False)
    wrong = f"{TOKEN}: The token is bound to a key that was not proved"
    assert await scene.verify(bearer(scene.bound())) == wrong
    # A thumbprint in the credential is not a proof.
    assert await scene.verify(bearer(scene.bound(), key_thumbprint=CLIENT.thumbprint)) == wrong
    assert await scene.verify(bearer(token())) == "ann"


@on_a_loop
async def test_a_verifier_that_ignores_the_binding_does_not_undo_it() -> None:
    class Careless:
        schemes = ("bearer",)
        authorization_servers: tuple[str, ...] = ()
        scopes_supported: tuple[str, ...] = ()
        dpop_algorithms: tuple[str, ...] = ()

        def __init__(self) -> None:
            self.claims: dict[str, Any] = {"cnf": {"jkt": CLIENT.thumbprint}}

        def verify(self, credential: Credential) -> Principal:
            return Principal(subject="ann", claims=self.claims)

    careless = Careless()
    scene = DpopVerifier()
    scene.verifier = Dpop(careless, required=False, clock=scene.clock)
    assert await scene.verify(scene.credential("any")) == "ann"
    assert (await scene.verify(bearer("any"))).startswith(TOKEN)
    thief = scene.credential("any", key=key(number=101))
    assert (await scene.verify(thief)).startswith(TOKEN)
    for confirmation in ({}, None, "x", {"jkt": 1}, {"jkt": [CLIENT.thumbprint]}):
        careless.claims = {"cnf": confirmation}
        assert (await scene.verify(scene.credential("any"))).startswith(TOKEN)
    careless.claims = {}
    assert (await scene.verify(scene.credential("any"))).startswith(TOKEN)


@on_a_loop
async def test_a_token_that_is_not_bound_is_refused_with_a_proof() -> None:
    scene = DpopVerifier()
    wrong = f"{TOKEN}: The token is not bound to the key of the proof"
    assert await scene.verify(scene.credential(token())) == wrong
    assert await DpopVerifier(required=False).verify(scene.credential(token())) == wrong


@on_a_loop
async def test_an_unbound_bearer_token_is_refused_where_proofs_are_required() -> None:
    scene = DpopVerifier()
    assert await scene.verify(bearer(token())) == f"{TOKEN}: The token has to be sent with a proof"


@on_a_loop
async def test_a_token_that_is_not_valid_is_refused_with_any_proof() -> None:
    scene = DpopVerifier()
    assert await scene.verify(scene.credential(scene.bound(exp=1))) == (
        f"{TOKEN}: The token has expired"
    )
    assert await scene.verify(scene.credential(scene.bound(iss="https://x"))) == "not recognised"


# Stolen proofs


@on_a_loop
async def test_a_proof_is_accepted_once() -> None:
    scene = DpopVerifier()
    credential = scene.credential()
    replayed = f"{PROOF}: The proof was used before"
    assert await scene.verify(credential) == "ann"
    for _ in range(3):
        assert await scene.verify(credential) == replayed
    # With any number of seconds in between, it is used before or too old.
    for _ in range(75):
        scene.clock.now += 1
        assert (await scene.verify(credential)).startswith(PROOF)


@on_a_loop
async def test_a_proof_is_accepted_once_by_all_servers_of_a_store() -> None:
    store = MemoryStore()
    one, other = DpopVerifier(store=store), DpopVerifier(store=store)
    credential = one.credential()
    assert await one.verify(credential) == "ann"
    assert await other.verify(credential) == f"{PROOF}: The proof was used before"


@on_a_loop
async def test_the_marker_of_a_proof_outlives_the_proof() -> None:
    """A proof from a clock that is ahead is accepted for longest, and just as long remembered."""
    store_clock = Clock(0.0)
    scene = DpopVerifier(max_age=60, leeway=5, store=MemoryStore(clock=store_clock))
    credential = scene.credential(issued_at=NOW + 5)
    assert await scene.verify(credential) == "ann"
    for later in (1, 30, 60, 69, 70):
        scene.clock.now, store_clock.now = NOW + later, later
        assert await scene.verify(credential) == f"{PROOF}: The proof was used before"
    scene.clock.now, store_clock.now = NOW + 71, 71
    assert await scene.verify(credential) == f"{PROOF}: The proof was not issued just now"


@on_a_loop
async def test_equal_ids_of_two_clients_do_not_clash() -> None:
    scene = DpopVerifier()
    other = key(number=102)
    for signer in (CLIENT, other):
        text = scene.bound(signer)
        public = {name: value for name, value in signer.public_jwk.items() if name != "kid"}
        claims = {
            "jti": "same",
            "htm": "POST",
            "htu": AUDIENCE,
            "iat": NOW,
            "ath": ath(text),
        }
        proof = raw_token({"alg": "ES256", "typ": "dpop+jwt", "jwk": public}, claims, signer)
        assert await scene.verify(scene.credential(text, proof)) == "ann"


def ath(text: str) -> str:
    from trunkline.auth.dpop import token_hash

    return token_hash(text)


@for_each(
    ("change", "outcome"),
    [
        ({"method": "GET"}, "The proof is for another method"),
        ({"method": "post"}, "The proof is for another method"),
        ({"url": "https://mcp.example.org/other"}, "The proof is for another URL"),
        ({"url": "https://mcp.example.org/mcp/"}, "The proof is for another URL"),
        ({"url": "http://mcp.example.org/mcp"}, "The proof is for another URL"),
        ({"url": "https://mcp.example.org:8443/mcp"}, "The proof is for another URL"),
        ({"url": "https://evil.example.org/mcp"}, "The proof is for another URL"),
        ({"issued_at": NOW - 66}, "The proof was not issued just now"),
        ({"issued_at": NOW + 6}, "The proof was not issued just now"),
        ({"token": "other"}, "The proof is for another token"),
        ({"token": None}, "The proof is for another token"),
    ],
)
@on_a_loop
async def test_a_proof_of_another_request_is_refused(change: dict[str, Any], outcome: str) -> None:
    scene = DpopVerifier()
    text = scene.bound()
    credential = scene.credential(text, scene.proof(text, **change))
    assert await scene.verify(credential) == f"{PROOF}: {outcome}"


@for_each(
    "change",
    [
        {"url": f"{AUDIENCE}?q=1#f"},
        {"url": "HTTPS://MCP.example.org:443/mcp"},
        {"issued_at": NOW - 65},
        {"issued_at": NOW + 5},
    ],
)
@on_a_loop
async def test_a_proof_that_means_this_request_is_accepted(change: dict[str, Any]) -> None:
    scene = DpopVerifier()
    text = scene.bound()
    assert await scene.verify(scene.credential(text, scene.proof(text, **change))) == "ann"


@on_a_loop
async def test_a_request_has_one_proof() -> None:
    scene = DpopVerifier()
    text = scene.bound()
    wrong = f"{PROOF}: A request has one proof in one DPoP header"
    one, other = scene.proof(text), scene.proof(text)
    assert await scene.verify(scene.credential(text, one, other)) == wrong
    assert await scene.verify(scene.credential(text, one, one)) == wrong
    without = Credential("dpop", text, "POST", AUDIENCE)
    assert await scene.verify(without) == wrong


@for_each("url", ["", "/mcp", "not a url", "https://[::1"])
@on_a_loop
async def test_a_request_without_a_url_has_no_proof(url: str) -> None:
    scene = DpopVerifier()
    text = scene.bound()
    credential = Credential("dpop", text, "POST", url, (scene.proof(text),))
    assert await scene.verify(credential) == f"{PROOF}: The proof is for another URL"


@on_a_loop
async def test_a_proof_that_cannot_be_read_is_refused() -> None:
    scene = DpopVerifier()
    text = scene.bound()
    for proof in ("", "CANARY", "a.b.c", text, raw_token({"alg": "none"}, {})):
        found = await scene.verify(scene.credential(text, proof))
        assert found.startswith(f"{PROOF}: The")
        assert "CANARY" not in found


@on_a_loop
async def test_a_private_key_in_a_proof_makes_it_void() -> None:
    scene = DpopVerifier()
    text = scene.bound()
    header = {"alg": "ES256", "typ": "dpop+jwt", "jwk": CLIENT._key.as_dict(private=True)}
    claims = {"jti": "a", "htm": "POST", "htu": AUDIENCE, "iat": NOW, "ath": ath(text)}
    found = await scene.verify(scene.credential(text, raw_token(header, claims, CLIENT)))
    assert found == f"{PROOF}: The key of the proof cannot be used"


@on_a_loop
async def test_proofs_of_other_algorithms_are_refused() -> None:
    scene = DpopVerifier(algorithms=["ES384"])
    found = await scene.verify(scene.credential())
    assert found == f"{PROOF}: The algorithm of the proof is not accepted"


# The store


class Broken(MemoryStore):
    async def take(self, key: Key, *, ttl: float) -> bool:
        raise StoreUnavailable("CANARY")


@on_a_loop
async def test_a_proof_is_not_accepted_if_the_store_fails() -> None:
    scene = DpopVerifier(store=Broken())
    with pytest.raises(VerifierUnavailable) as raised:
        await waiting(scene.verifier.verify(scene.credential()))
    assert str(raised.value) == "the store of used proofs failed: StoreUnavailable"


@on_a_loop
async def test_a_full_store_accepts_no_proof() -> None:
    scene = DpopVerifier(store=MemoryStore(StoreLimits(keys=1)))
    assert await scene.verify(scene.credential()) == "ann"
    assert await scene.verify(scene.credential()) == "unavailable"


@on_a_loop
async def test_principal_with_many_proofs_leaves_room_for_those_of_others() -> None:
    scene = DpopVerifier(store=MemoryStore(StoreLimits(keys=16)))
    # With a key for each token.
    signers = [key(key_id=None, number=200 + each) for each in range(20)]
    flood = [
        await scene.verify(scene.credential(scene.bound(each, sub="eve"), key=each))
        for each in signers
    ]
    assert flood == ["eve"] * 14 + ["unavailable"] * 6
    assert await scene.verify(scene.credential()) == "ann"


@on_a_loop
async def test_only_proofs_of_valid_tokens_take_space_in_the_store() -> None:
    scene = DpopVerifier(store=MemoryStore(StoreLimits(keys=1)))
    for _ in range(5):
        assert (await scene.verify(scene.credential(scene.bound(exp=1)))).startswith(TOKEN)
        assert (await scene.verify(scene.credential(token()))).startswith(TOKEN)
    assert await scene.verify(scene.credential()) == "ann"


async def waiting(found: Principal | Awaitable[Principal | None] | None) -> Principal | None:
    assert found is not None
    assert not isinstance(found, Principal)
    return await found


# Nonces


@on_a_loop
async def test_beside_other_verifiers_the_nonce_is_that_of_the_one_that_knows_the_token() -> None:
    scene = DpopVerifier(nonces=True)
    other = JwtBearer(issuer="https://b.example", audience=AUDIENCE, keys=jwks(), clock=scene.clock)
    first = Dpop(other, nonces=True, clock=scene.clock)
    for order in ((first, scene.verifier), (scene.verifier, first)):
        both = Chain(order)
        with pytest.raises(InvalidCredential) as raised:
            await waiting(both.verify(scene.credential()))
        assert raised.value.nonce == scene.verifier.nonce()
        found = await waiting(both.verify(scene.credential(nonce=raised.value.nonce)))
        assert found is not None


@on_a_loop
async def test_a_nonce_is_asked_for_and_accepted() -> None:
    scene = DpopVerifier(nonces=True)
    with pytest.raises(InvalidCredential) as raised:
        await waiting(scene.verifier.verify(scene.credential()))
    error = raised.value
    assert error.error == "use_dpop_nonce"
    assert error.nonce == scene.verifier.nonce()
    assert error.nonce is not None
    assert error.nonce not in str(error)
    assert await scene.verify(scene.credential(nonce=error.nonce)) == "ann"


@on_a_loop
async def test_a_nonce_is_valid_in_its_period_and_the_next() -> None:
    scene = DpopVerifier(nonces=True)
    scene.clock.now = NOW // 300 * 300
    nonce = scene.verifier.nonce()
    for later, is_valid in ((0, True), (299, True), (300, True), (599, True), (600, False)):
        scene.clock.now = NOW // 300 * 300 + later
        found = await scene.verify(scene.credential(scene.bound(exp=NOW + 9999), nonce=nonce))
        assert (found == "ann") == is_valid, later
        if not is_valid:
            assert found.startswith("use_dpop_nonce")
    assert scene.verifier.nonce() != nonce


@for_each("nonce", ["x", "é", "A" * 30, "A" * 2000, "\ud800"])
@on_a_loop
async def test_another_nonce_is_refused(nonce: str) -> None:
    scene = DpopVerifier(nonces=True)
    text = scene.bound()
    claims = {"jti": "a", "htm": "POST", "htu": AUDIENCE, "iat": NOW, "ath": ath(text)}
    public = {name: value for name, value in CLIENT.public_jwk.items() if name != "kid"}
    header = {"alg": "ES256", "typ": "dpop+jwt", "jwk": public}
    proof = raw_token(header, {**claims, "nonce": nonce}, CLIENT)
    # A lone surrogate is not JSON.
    code = PROOF if nonce == "\ud800" else "use_dpop_nonce"
    assert (await scene.verify(scene.credential(text, proof))).startswith(code)


@on_a_loop
async def test_servers_with_one_secret_accept_the_nonces_of_each_other() -> None:
    one, other = (DpopVerifier(nonce_secret=b"s" * 32) for _ in range(2))
    stranger = DpopVerifier(nonces=True)
    assert one.verifier.nonce() == other.verifier.nonce()
    nonce = one.verifier.nonce()
    assert await other.verify(other.credential(nonce=nonce)) == "ann"
    found = await stranger.verify(stranger.credential(nonce=nonce))
    assert found.startswith("use_dpop_nonce")


def test_without_nonces_there_is_none() -> None:
    assert DpopVerifier().verifier.nonce() is None


# In a chain, and what the challenge needs


@on_a_loop
async def test_other_credentials_pass_through_to_the_next_verifier() -> None:
    text, record = ApiKeys.generate(subject="build")
    scene = DpopVerifier()
    chain = Chain([scene.verifier, ApiKeys([record])])
    found = chain.verify(bearer(text))
    assert isinstance(found, Principal)
    assert found.subject == "build"
    with pytest.raises(InvalidCredential, match="sent with a proof"):
        chain.verify(bearer(token()))
    principal = await waiting(chain.verify(scene.credential()))
    assert principal is not None
    assert principal.subject == "ann"


def test_a_verifier_says_what_the_challenge_needs() -> None:
    strict, mixed = (
        DpopVerifier().verifier,
        DpopVerifier(required=False, algorithms=["ES256"]).verifier,
    )
    assert (strict.schemes, strict.dpop_algorithms) == (("dpop",), ALGORITHMS)
    assert (mixed.schemes, mixed.dpop_algorithms) == (("dpop", "bearer"), ("ES256",))
    assert strict.authorization_servers == (ISSUER,)


@for_each(
    "settings",
    [{"algorithms": []}, {"algorithms": ["HS256"]}, {"nonce_secret": b"CANARY"}],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Dpop") as raised:
        DpopVerifier(**settings)
    assert "CANARY" not in str(raised.value)


@on_a_loop
async def test_no_secret_is_in_a_log_a_repr_or_an_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    scene = DpopVerifier(nonce_secret=b"CANARY" * 8)
    text = scene.bound(sub="CANARY")
    credentials = [
        scene.credential(text, nonce="CANARY"),
        scene.credential(text, method="CANARY"),
        scene.credential(text, url="https://canary.example/CANARY"),
        scene.credential(text, "CANARY"),
        scene.credential(text, issued_at=1),
    ]
    for credential in credentials:
        with pytest.raises(InvalidCredential) as raised:
            await waiting(scene.verifier.verify(credential))
        for shown in (str(raised.value), repr(raised.value), repr(credential)):
            assert "CANARY" not in shown
            assert text not in shown
    assert "CANARY" not in repr(scene.verifier)
    assert "CANARY" not in caplog.text

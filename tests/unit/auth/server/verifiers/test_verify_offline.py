"""Verification without the network, before a body is read: what is decided, and nothing used up."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest

from tests.rigs.clock import Clock
from tests.rigs.event_loop import on_a_loop
from tests.unit.auth.tokens import AUDIENCE, ISSUER, NOW, bearer, issuer, jwks, key, token
from trunkline.auth import (
    ApiKeys,
    Chain,
    Credential,
    Dpop,
    Introspection,
    InvalidCredential,
    JwtBearer,
    Principal,
    VerifierUnavailable,
)
from trunkline.auth.dpop import make_proof
from trunkline.auth.server.verifiers.credential import verify_offline

CLIENT = key(key_id=None, number=100)
KEY, RECORD = ApiKeys.generate(subject="build")


class Unknown:
    """A verifier of an author, which may do anything."""

    schemes = ("bearer",)
    authorization_servers = ()
    scopes_supported = ()
    dpop_algorithms = ()

    def verify(self, credential: Credential) -> Principal | None:
        raise AssertionError("it may need the network")


def jwt(**settings: Any) -> JwtBearer:
    given = {"issuer": ISSUER, "audience": AUDIENCE, "keys": jwks(), "clock": Clock(NOW)}
    return JwtBearer(**{**given, **settings})


def outcome(verifier: Any, credential: Credential) -> str:
    """Return the subject, the refusal, "not recognised" or "undecided"."""
    try:
        with warnings.catch_warnings():
            # A coroutine that is dropped without a word.
            warnings.simplefilter("error")
            found = verify_offline(verifier, credential)
            gc.collect(0)
    except InvalidCredential as error:
        return error.description
    except VerifierUnavailable:
        return "undecided"
    return "not recognised" if found is None else found.subject


def test_api_key_is_decided() -> None:
    keys = ApiKeys([RECORD])
    assert outcome(keys, bearer(KEY)) == "build"
    assert outcome(keys, bearer("tlk_made-up")) == "The API key is not known"
    assert outcome(keys, bearer("other")) == "not recognised"


def test_jwt_of_known_keys_is_decided() -> None:
    verifier = jwt()
    assert outcome(verifier, bearer(token())) == "ann"
    assert outcome(verifier, bearer(token(exp=1))) == "The token has expired"
    assert outcome(verifier, bearer(token()[:-4] + "AAAA")).startswith("The signature")
    assert outcome(verifier, bearer("opaque")) == "not recognised"


@on_a_loop
async def test_jwt_is_undecided_while_keys_are_not_at_hand() -> None:
    async with issuer() as server:
        verifier = jwt(issuer=server.origin, keys=None)
        text = token(iss=server.origin)
        assert outcome(verifier, bearer(text)) == "undecided"
        assert server.requests == []
        await verifier.verify(bearer(text))  # type: ignore[misc]  # it has to fetch
        assert outcome(verifier, bearer(text)) == "ann"
        # A key that is not known may be a new one.
        other = token(key(key_id="new", number=7), iss=server.origin)
        fetched = len(server.requests)
        for _ in range(20):
            assert outcome(verifier, bearer(other)) == "undecided"
        assert len(server.requests) == fetched


@on_a_loop
async def test_opaque_token_is_decided_if_its_answer_is_cached() -> None:
    async with issuer() as server:
        server.answers["/introspect"] = lambda body: {"active": b"token=good" in body, "sub": "ann"}
        verifier = Introspection(
            issuer=server.origin, client_id="a", client_secret="b", audience=None
        )
        assert outcome(verifier, bearer("good")) == "undecided"
        assert outcome(verifier, bearer("a b")) == "not recognised"
        assert server.requests == []
        for text in ("good", "bad"):
            try:
                await verifier.verify(bearer(text))  # type: ignore[misc]  # it has to ask
            except InvalidCredential:
                assert text == "bad"
        assert outcome(verifier, bearer("good")) == "ann"
        assert outcome(verifier, bearer("bad")) == "The token is not active"


def proved(text: str | None = None, **changes: Any) -> Credential:
    used = token(cnf={"jkt": CLIENT.thumbprint}) if text is None else text
    given: dict[str, Any] = {"token": used, "issued_at": NOW, **changes}
    proof = make_proof(CLIENT, "POST", AUDIENCE, **given)
    return Credential("dpop", used, "POST", AUDIENCE, (proof,))


@on_a_loop
async def test_dpop_proof_is_checked_and_not_used_up() -> None:
    verifier = Dpop(jwt(), clock=Clock(NOW))
    credential = proved()
    for _ in range(3):
        assert outcome(verifier, credential) == "ann"
    found = await verifier.verify(credential)  # type: ignore[misc]  # proofs are awaited
    assert found is not None
    assert found.subject == "ann"


def test_dpop_proof_that_is_not_valid_is_refused() -> None:
    verifier = Dpop(jwt(), clock=Clock(NOW))
    assert outcome(verifier, proved(issued_at=1)) == "The proof was not issued just now"
    assert outcome(verifier, proved(token())) == "The token is not bound to the key of the proof"
    expired = token(cnf={"jkt": CLIENT.thumbprint}, exp=1)
    assert outcome(verifier, proved(expired)) == "The token has expired"
    assert outcome(verifier, bearer(token())) == "The token has to be sent with a proof"
    assert outcome(verifier, proved(token(iss="https://x"))) == "not recognised"
    nonces = Dpop(jwt(), clock=Clock(NOW), nonces=True)
    assert outcome(nonces, proved()) == "The proof needs the nonce of this server"
    assert outcome(nonces, proved(nonce=nonces.nonce())) == "ann"
    # The key of a bound token has to be proved; naming it in the credential proves nothing.
    optional = Dpop(jwt(), clock=Clock(NOW), required=False)
    assert outcome(optional, bearer(token())) == "ann"
    bound = token(cnf={"jkt": CLIENT.thumbprint})
    claimed = bearer(bound, key_thumbprint=CLIENT.thumbprint)
    assert outcome(optional, claimed).startswith("The token is bound to a key")


def test_chain_is_undecided_from_the_first_verifier_that_needs_the_network() -> None:
    keys = ApiKeys([RECORD])
    assert outcome(Chain([keys, jwt()]), bearer(token())) == "ann"
    assert outcome(Chain([keys, jwt()]), bearer("other")) == "not recognised"
    assert outcome(Chain([keys, Unknown()]), bearer("tlk_made-up")) == "The API key is not known"
    assert outcome(Chain([keys, Unknown()]), bearer("other")) == "undecided"
    assert outcome(Chain([Unknown(), keys]), bearer("tlk_made-up")) == "undecided"


def test_verifier_of_an_author_is_not_asked() -> None:
    assert outcome(Unknown(), bearer("x")) == "undecided"
    assert outcome(Dpop(Unknown(), clock=Clock(NOW)), proved()) == "undecided"
    with pytest.raises(VerifierUnavailable, match="network"):
        verify_offline(Unknown(), bearer("x"))


def test_repr_of_a_credential_hides_token_and_proofs() -> None:
    credential = Credential("dpop", "CANARY", "GET", "https://a.example/?key=CANARY", ("CANARY",))
    hidden = "token=[redacted], method='GET', url='https://a.example/', proofs=[redacted]"
    assert repr(credential) == f"Credential(scheme='dpop', {hidden})"
    assert repr(Credential("bearer", "CANARY")).endswith("proofs=())")

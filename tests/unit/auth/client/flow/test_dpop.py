"""The proofs of a client: a new one for each request, with the nonce of its origin."""

from __future__ import annotations

import pytest

from tests.cases import for_each
from trunkline.auth.client.flow.dpop import ClientProofs, signing_key_of
from trunkline.auth.jose import SigningKey, parse_token

URL = "https://files.example.org/mcp"


def nonce(text: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", b"text/plain"), (b"dpop-nonce", text)]


def claims(proof: str) -> dict[str, object]:
    return parse_token(proof).claims


def test_each_request_has_a_proof_of_its_own() -> None:
    proofs = ClientProofs(SigningKey.generate())
    first, second = (proofs.proof("POST", URL, "token") for _ in range(2))
    assert claims(first)["jti"] != claims(second)["jti"]
    assert claims(first)["htm"] == "POST"
    assert claims(first)["htu"] == URL
    assert "ath" in claims(first)
    assert "ath" not in claims(proofs.proof("POST", URL))
    assert "nonce" not in claims(first)


def test_a_nonce_belongs_to_the_origin_that_sent_it() -> None:
    proofs = ClientProofs(SigningKey.generate())
    assert proofs.take_nonce(URL, nonce(b"one"))
    assert claims(proofs.proof("GET", "https://files.example.org:443/other"))["nonce"] == "one"
    assert claims(proofs.proof("GET", "wss://files.example.org/other"))["nonce"] == "one"
    for other in ("https://login.example.org/", "https://files.example.org:8443/"):
        assert "nonce" not in claims(proofs.proof("GET", other))


def test_known_nonce_does_not_cause_another_request() -> None:
    proofs = ClientProofs(SigningKey.generate())
    assert proofs.take_nonce(URL, nonce(b"one"))
    assert not proofs.take_nonce(URL, nonce(b"one"))
    assert proofs.take_nonce(URL, nonce(b"two"))
    assert not proofs.take_nonce(URL, [])
    assert claims(proofs.proof("GET", URL))["nonce"] == "two"


@for_each("text", [b"", b"two words", b'"quoted"', b"\xff", b"x" * 1025, b"a\\b"])
def test_a_malformed_nonce_is_ignored(text: bytes) -> None:
    proofs = ClientProofs(SigningKey.generate())
    assert not proofs.take_nonce(URL, nonce(text))
    assert "nonce" not in claims(proofs.proof("GET", URL))


def test_two_nonces_in_one_response_are_ignored() -> None:
    proofs = ClientProofs(SigningKey.generate())
    assert not proofs.take_nonce(URL, nonce(b"one") + nonce(b"two"))


def test_the_number_of_origins_is_bounded() -> None:
    proofs = ClientProofs(SigningKey.generate())
    for number in range(40):
        proofs.take_nonce(f"https://host{number}.example.org/", nonce(b"one"))
    assert len(proofs._nonces) == 16


def test_the_key_is_given_or_made() -> None:
    key = SigningKey.generate()
    assert signing_key_of(key) is key
    assert signing_key_of(False) is None
    made = signing_key_of(True)
    assert made is not None
    assert made.algorithm == "ES256"
    with pytest.raises(TypeError, match="a SigningKey"):
        signing_key_of("yes")  # type: ignore[arg-type]

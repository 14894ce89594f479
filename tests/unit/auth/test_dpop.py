"""Proofs of possession: what a proof says, and which URLs are the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import for_each
from tests.unit.auth.tokens import AUDIENCE, NOW, key, raw_token
from trunkline.auth.dpop import (
    InvalidProof,
    make_proof,
    parse_proof,
    proof_target,
    token_hash,
)
from trunkline.auth.jose import parse_token


def header(**changes: Any) -> dict[str, Any]:
    public = {name: value for name, value in key().public_jwk.items() if name != "kid"}
    found = {"alg": "ES256", "typ": "dpop+jwt", "jwk": public, **changes}
    return {name: value for name, value in found.items() if value is not ...}


def payload(**changes: Any) -> dict[str, Any]:
    found = {"jti": "id", "htm": "POST", "htu": AUDIENCE, "iat": int(NOW), **changes}
    return {name: value for name, value in found.items() if value is not ...}


@for_each("algorithm", ["ES256", "RS256", "Ed25519"])
def test_a_proof_is_read_as_it_was_made(algorithm: str) -> None:
    signer = key(algorithm)
    text = make_proof(
        signer, "POST", f"{AUDIENCE}?a=b#c", token="t", nonce="n", issued_at=NOW + 0.7
    )
    found = parse_proof(text)
    assert (found.method, found.target, found.issued_at) == ("POST", AUDIENCE, int(NOW))
    assert (found.token_hash, found.nonce) == (token_hash("t"), "n")
    assert found.key_thumbprint == signer.thumbprint
    assert repr(found) == "<Proof>"


def test_a_proof_has_the_public_key_in_its_header_and_no_name_of_it() -> None:
    found = parse_token(make_proof(key(), "GET", AUDIENCE))
    assert found.header == header()
    assert found.claims.keys() == {"jti", "htm", "htu", "iat"}


def test_every_proof_has_an_id_of_its_own() -> None:
    assert len({parse_proof(make_proof(key(), "GET", AUDIENCE)).id for _ in range(20)}) == 20


def test_the_hash_of_a_token_is_that_of_the_standard() -> None:
    """The example of RFC 9449, section 7.1."""
    text = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
    assert token_hash(text) == "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"


@for_each(
    "change",
    [
        {"typ": ...},
        {"typ": "JWT"},
        {"typ": "DPOP+JWT"},
        {"typ": ["dpop+jwt"]},
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "ES384"},
        {"alg": ["ES256"]},
        {"jwk": ...},
        {"jwk": None},
        {"jwk": "x"},
        {"jwk": {}},
        {"jwk": {"kty": "oct", "k": "AAAA"}},
        {"jwk": key(number=1).public_jwk},
        {"jwk": key("RS256").public_jwk},
        {"jwk": key()._key.as_dict(private=True)},
        {"crit": ["x"]},
    ],
)
def test_a_proof_with_another_header_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidProof):
        parse_proof(raw_token(header(**change), payload()))
    assert parse_proof(raw_token(header(), payload())).id == "id"


@for_each(
    "change",
    [
        *({name: ...} for name in ("jti", "htm", "htu", "iat")),
        *({name: ""} for name in ("jti", "htm", "htu", "ath", "nonce")),
        *({name: 1} for name in ("jti", "htm", "htu", "ath", "nonce")),
        *({name: None} for name in ("jti", "iat", "ath", "nonce")),
        {"iat": "1"},
        {"iat": True},
        {"jti": "x" * 257},
    ],
)
def test_a_proof_with_malformed_claims_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidProof, match="missing or malformed"):
        parse_proof(raw_token(header(), payload(**change)))


def test_a_proof_of_an_algorithm_that_is_not_accepted_is_refused() -> None:
    with pytest.raises(InvalidProof, match="not accepted"):
        parse_proof(make_proof(key(), "GET", AUDIENCE), ["ES384"])


@for_each("text", ["", "x", "a.b.c", "\ud800", "x" * 9000])
def test_malformed_proof_is_refused(text: str) -> None:
    with pytest.raises(InvalidProof):
        parse_proof(text)


def test_a_large_proof_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidProof, match="too large"):
        parse_proof(raw_token(header(), payload(padding="x" * 8000)))


@for_each(
    ("url", "target"),
    [
        ("https://a.example/mcp", "https://a.example/mcp"),
        ("https://a.example/mcp?x=1#y", "https://a.example/mcp"),
        ("HTTPS://A.Example:443/mcp", "https://a.example/mcp"),
        ("http://a.example:80", "http://a.example/"),
        ("https://a.example:8443/", "https://a.example:8443/"),
        ("http://a.example:443/", "http://a.example:443/"),
        ("https://[::1]:8443/x", "https://[::1]:8443/x"),
        ("https://a.example/%7euser/%2f/%3a", "https://a.example/~user/%2F/%3A"),
        ("https://a.example/a/./b/../c", "https://a.example/a/c"),
        ("https://a.example/a/..", "https://a.example/"),
        ("https://a.example/a/.", "https://a.example/a/"),
        ("https://a.example/../../a", "https://a.example/a"),
        ("https://a.example/a//b", "https://a.example/a//b"),
        ("https://a.example/mcp/", "https://a.example/mcp/"),
    ],
)
def test_a_url_has_one_form(url: str, target: str) -> None:
    assert proof_target(url) == target
    assert proof_target(target) == target


@for_each(
    "url",
    ["", "/mcp", "//a.example/mcp", "ftp://a.example/", "https://", "https://u@a.example/", "a:b"],
)
def test_proof_target_refuses_urls_that_are_not_absolute_http(url: str) -> None:
    with pytest.raises(ValueError, match="absolute URL"):
        proof_target(url)


def test_no_error_shows_anything_of_a_proof() -> None:
    marked = [
        raw_token(header(typ="CANARY"), payload()),
        raw_token(header(alg="CANARY"), payload()),
        raw_token(header(jwk={"kty": "CANARY"}), payload()),
        raw_token(header(), payload(htm=["CANARY"])),
        "CANARY",
    ]
    for text in marked:
        with pytest.raises(InvalidProof) as raised:
            parse_proof(text)
        assert "CANARY" not in repr(raised.value)
        assert raised.value.__cause__ is None

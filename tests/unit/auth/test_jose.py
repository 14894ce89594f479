"""Signed tokens and keys: one spelling, one algorithm per key, and no secret in any text."""

from __future__ import annotations

import warnings
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.cases import for_each
from tests.unit.auth.tokens import key, raw_token, token
from trunkline.auth import jose
from trunkline.auth.jose import (
    ALGORITHMS,
    InvalidKey,
    InvalidSignature,
    PublicKey,
    SigningKey,
    parse_object,
    parse_token,
)

ONE_PER_TYPE = ("RS256", "PS256", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
B64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def public(signer: SigningKey, **changes: Any) -> PublicKey:
    found = {**signer.public_jwk, **changes}
    return PublicKey({name: value for name, value in found.items() if value is not None})


@for_each("algorithm", ONE_PER_TYPE)
def test_a_token_is_signed_by_its_key_alone(algorithm: str) -> None:
    signer, other = key(algorithm), key(algorithm, number=1)
    found = parse_token(signer.sign({"sub": "ann"}))
    assert found.algorithm == algorithm
    assert found.is_signed_by(public(signer))
    assert not found.is_signed_by(public(other))


def test_all_algorithms_are_asymmetric() -> None:
    assert {each[:2] for each in ALGORITHMS} == {"RS", "PS", "ES", "Ed"}


@for_each("algorithm", ["EdDSA", "Ed25519"])
def test_both_names_of_eddsa_are_used_without_a_warning(algorithm: str) -> None:
    jose._algorithm.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = parse_token(key(algorithm).sign({}))
        assert found.is_signed_by(public(key(algorithm)))


def test_a_key_verifies_only_the_algorithm_that_it_names() -> None:
    signer = key("RS256")
    found = parse_token(signer.sign({}))
    assert found.is_signed_by(public(signer, alg="RS256"))
    assert not found.is_signed_by(public(signer, alg="PS256"))


def test_an_algorithm_of_another_type_of_key_is_not_verified() -> None:
    rsa_token = parse_token(key("RS256").sign({}))
    assert not rsa_token.is_signed_by(public(key("ES256")))
    assert not rsa_token.is_signed_by(public(key("Ed25519")))
    renamed = raw_token({"alg": "ES384"}, {}, key("ES256"))
    assert not parse_token(renamed).is_signed_by(public(key("ES256")))


@for_each("algorithm", ["none", "None", "NONE", "HS256", "", None, 1, ["ES256"], {"a": 1}])
def test_other_algorithms_are_never_verified(algorithm: object) -> None:
    found = parse_token(raw_token({"alg": algorithm}, {}))
    assert not found.is_signed_by(public(key()))


def test_a_changed_signature_is_not_valid() -> None:
    text = key().sign({"sub": "ann"})
    head, payload, signature = text.split(".")
    swapped = ("A" if signature[0] != "A" else "B") + signature[1:]
    assert not parse_token(f"{head}.{payload}.{swapped}").is_signed_by(public(key()))
    short = signature[:-2]
    assert not parse_token(f"{head}.{payload}.{short}").is_signed_by(public(key()))


@for_each(
    "text",
    [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c.d",
        "e30.e30.",
        ".e30.AAAA",
        "e30..AAAA",
        "e30=.e30.AAAA",
        "e30.e30.AAAA\n",
        " e30.e30.AAAA",
        "e30.e30.AA+A",
        "e30.e30.é",
        "e30.e30.\ud800",
        "e30.e30.A",
        "e3A.e30.AAAA",
        "W10.e30.AAAA",
        "e30.W10.AAAA",
        "e30.bnVsbA.AAAA",
        "e30." + "A" * (32 * 1024) + ".AAAA",
    ],
)
def test_malformed_signed_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidSignature) as raised:
        parse_token(text)
    assert str(raised.value) == "not a signed token"


@for_each(
    "document",
    [
        b'{"a": 1, "a": 1}',
        b'{"a": {"b": 1, "b": 2}}',
        b'{"a": [{"b": 1, "b": 2}]}',
        b'{"a": 1, "\\u0061": 2}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1,}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'{"a": 1} {"b": 2}',
        b"\xef\xbb\xbf{}",
        b"[]",
        b"",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)
def test_a_document_that_two_readers_read_differently_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object without duplicate names"):
        parse_object(document)


def test_white_space_around_an_object_is_read_over() -> None:
    assert parse_object(b' \r\n\t{"a" : [1, {"b": 2.5}]} \n') == {"a": [1, {"b": 2.5}]}


def test_duplicate_members_of_header_and_payload_are_refused() -> None:
    header, payload = b'{"alg":"ES256"}', b'{"sub":"ann"}'
    assert parse_token(raw_token(header, payload)).is_signed_by(public(key()))
    for one, other in (
        (b'{"alg":"ES256","alg":"ES256"}', payload),
        (header, b'{"sub":"ann","sub":"bob"}'),
    ):
        with pytest.raises(InvalidSignature):
            parse_token(raw_token(one, other))


def test_base64url_has_one_spelling() -> None:
    """The unused bits of the last character are zero, in each of the three parts."""
    text = raw_token({"alg": "ES256"}, {"s": 1})
    parts = text.split(".")
    # Four of 64 characters have four unused bits of zero, and 16 have two.
    steps = {2: 16, 3: 4}
    assert [len(part) % 4 for part in parts] == [2, 3, 2]
    for place, part in enumerate(parts):
        spellings = []
        for other in B64:
            changed = [*parts[:place], part[:-1] + other, *parts[place + 1 :]]
            # Other bits than the unused ones make another text, which may not be JSON.
            if urlsafe_b64decode(changed[place] + "==") != urlsafe_b64decode(part + "=="):
                continue
            try:
                parse_token(".".join(changed))
            except InvalidSignature:
                continue
            spellings.append(other)
        assert spellings == [part[-1]], place
        assert B64.index(part[-1]) % steps[len(part) % 4] == 0


@for_each("members", [["exp"], [], "exp", None])
def test_a_token_with_critical_members_is_refused(members: object) -> None:
    with pytest.raises(InvalidSignature, match="critical"):
        parse_token(raw_token({"alg": "ES256", "crit": members}, {}))


@for_each("name", ["d", "p", "q", "dp", "dq", "qi", "oth", "k"])
def test_a_private_key_is_not_a_public_key(name: str) -> None:
    with pytest.raises(InvalidKey, match="not a public key"):
        public(key("RS256"), **{name: "AAAA"})


@for_each(
    "changes",
    [
        {"kty": "oct", "k": None},
        {"kty": ["EC"]},
        {"kty": {}},
        {"crv": ["P-256"]},
        {"crv": "secp256k1"},
        {"crv": "P-384"},
        {"crv": "X25519", "kty": "OKP"},
        {"use": "enc"},
        {"use": ["sig"]},
        {"key_ops": ["sign"]},
        {"key_ops": "verify"},
        {"key_ops": [["verify"]]},
        {"alg": "RS256"},
        {"alg": "HS256"},
        {"alg": "none"},
        {"alg": ["ES256"]},
        {"x": 1},
        {"x": "AA"},
        {"x": "é"},
        {"x": None, "y": None},
        {"y": "A" * 43},
    ],
)
def test_a_key_that_cannot_verify_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidKey):
        public(key(), **changes)


def number(value: int) -> str:
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@for_each(
    ("modulus", "exponent"),
    [
        ((1 << 1023) | 1, 65537),
        ((1 << 2046) | 1, 65537),
        ((1 << 8192) | 1, 65537),
        ((1 << 200_000) | 1, 65537),
        ((1 << 2047) | 1, (1 << 40) | 1),
        ((1 << 2047) | 1, (1 << 2046) | 1),
    ],
    ids=lambda case: "a size",
)
def test_rsa_keys_are_bounded_in_size_and_exponent(modulus: int, exponent: int) -> None:
    with pytest.raises(InvalidKey, match=r"bits|too large"):
        PublicKey({"kty": "RSA", "n": number(modulus), "e": number(exponent)})


@for_each("given", [{}, {"n": "AQAB"}, {"n": 5, "e": "AQAB"}, {"n": "+/", "e": "AQAB"}])
def test_a_malformed_rsa_key_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidKey):
        PublicKey({"kty": "RSA", **given})


def test_the_thumbprint_is_that_of_the_standard() -> None:
    """The example of RFC 7638, section 3.1."""
    modulus = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJ"
        "ECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2"
        "QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh"
        "6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
    )
    found = PublicKey({"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RS256", "kid": "2011"})
    assert found.thumbprint == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


def test_the_thumbprints_of_both_parts_of_a_key_are_equal() -> None:
    for algorithm in ONE_PER_TYPE:
        assert key(algorithm).thumbprint == public(key(algorithm), use="sig").thumbprint


@for_each("algorithm", ONE_PER_TYPE)
def test_a_private_key_survives_pem_and_jwk(algorithm: str) -> None:
    signer = key(algorithm)
    again = SigningKey.from_pem(signer.pem, algorithm, key_id="two")
    assert (again.algorithm, again.key_id) == (algorithm, "two")
    assert parse_token(again.sign({})).is_signed_by(public(signer))
    private = {**signer._key.as_dict(private=True), "kid": "three"}
    third = SigningKey.from_jwk(private, algorithm)
    assert (third.algorithm, third.key_id) == (algorithm, "three")
    assert parse_token(third.sign({})).is_signed_by(public(signer))


def test_a_public_key_is_read_from_pem() -> None:
    for algorithm in ("ES256", "RS256", "Ed25519"):
        signer = key(algorithm)
        pem = signer._key.as_pem(private=False)
        found = PublicKey.from_pem(pem.decode(), key_id="one")
        assert (found.thumbprint, found.key_id) == (signer.thumbprint, "one")
        assert parse_token(signer.sign({})).is_signed_by(found)


PASSWORD = "CANARY-password"


def encrypted_pem() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )


def test_an_encrypted_pem_is_read_with_its_password_alone() -> None:
    pem = encrypted_pem()
    signer = SigningKey.from_pem(pem, password=PASSWORD)
    assert parse_token(signer.sign({})).is_signed_by(public(signer))
    for password, text in ((None, "there is no password"), ("CANARY-wrong", "cannot be decrypted")):
        with pytest.raises(InvalidKey, match=text) as raised:
            SigningKey.from_pem(pem, password=password)
        assert "CANARY" not in str(raised.value)
        assert raised.value.__cause__ is None


def plain_pem(private: Any) -> bytes:
    found: bytes = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return found


@for_each(
    "make",
    [
        lambda: b"CANARY",
        lambda: b"-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n",
        lambda: plain_pem(ec.generate_private_key(ec.SECP256K1())),
        lambda: plain_pem(rsa.generate_private_key(65537, 1024)),
        lambda: key()._key.as_pem(private=False),
    ],
    ids=["no PEM", "malformed", "curve", "size", "public"],
)
def test_a_pem_without_a_usable_private_key_is_refused(make: Callable[[], bytes]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joserfc warns of small keys as well
        with pytest.raises(InvalidKey) as raised:
            SigningKey.from_pem(make())
    assert "CANARY" not in str(raised.value)


def test_a_private_pem_is_not_read_as_a_public_key() -> None:
    with pytest.raises(InvalidKey, match="not a public key"):
        PublicKey.from_pem(key().pem)


@for_each(
    "given",
    [
        {},
        {"kty": "oct", "k": "Q0FOQVJZ"},
        {"kty": "EC", "crv": "P-256", "d": "CANARY"},
        {"kty": ["EC"]},
        key().public_jwk,
        {**key()._key.as_dict(private=True), "alg": "ES384"},
    ],
    ids=["empty", "oct", "EC", "type", "public", "algorithm"],
)
def test_a_jwk_without_a_usable_private_key_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidKey) as raised:
        SigningKey.from_jwk(given)
    assert "CANARY" not in str(raised.value)


def test_a_key_refuses_an_algorithm_of_another_type() -> None:
    with pytest.raises(InvalidKey, match="signs with ES256"):
        SigningKey.from_pem(key().pem, "RS256")
    private = {**key()._key.as_dict(private=True), "alg": "ES256"}
    with pytest.raises(InvalidKey, match="another algorithm"):
        SigningKey.from_jwk(private, "RS256")
    with pytest.raises(InvalidKey, match="unknown algorithm"):
        SigningKey.generate("HS256")


def test_the_public_part_has_no_private_member() -> None:
    for algorithm in ONE_PER_TYPE:
        assert not jose._PRIVATE_MEMBERS & key(algorithm).public_jwk.keys()


def test_no_repr_shows_a_key_or_a_token() -> None:
    signer = key("RS256")
    private = signer._key.as_dict(private=True)
    found = parse_token(token(signer, sub="CANARY"))
    text = repr([signer, public(signer), found])
    assert text == (
        "[<SigningKey for RS256>, <PublicKey for RS256, RS384, RS512, PS256, PS384, PS512>, "
        "<SignedToken>]"
    )
    assert not any(str(value) in text for value in private.values() if len(str(value)) > 4)


def test_header_members_can_be_added_and_left_out() -> None:
    found = parse_token(key().sign({}, {"typ": "x", "kid": None}))
    assert found.header == {"alg": "ES256", "typ": "x"}

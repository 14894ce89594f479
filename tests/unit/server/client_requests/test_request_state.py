"""Sealing: what was sealed opens as it was, and nothing else does."""

from __future__ import annotations

import base64
import sys
from typing import Any

import pytest

from trunkline.server.client_requests.request_state import InvalidSeal, StateSealer

OLD, NEW = b"o" * 32, b"n" * 32


@pytest.fixture(params=["encrypted", "signed"])
def crypto(request: Any, monkeypatch: Any) -> str:
    if request.param == "signed":
        # None makes the import fail, as where the extra is not installed.
        monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    return str(request.param)


def test_sealed_payload_round_trips(crypto: str) -> None:
    seal = StateSealer([NEW])
    assert seal.is_secret == (crypto == "encrypted")
    for payload in (b"", b"x", bytes(range(256)) * 40):
        text = seal.seal(payload, b"for this")
        assert text.isascii()
        assert "=" not in text
        assert seal.open(text, b"for this") == payload


def test_only_encryption_hides_what_is_inside(crypto: str) -> None:
    text = StateSealer([NEW]).seal(b"canary-7f3a", b"")
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    assert (b"canary-7f3a" in raw) == (crypto == "signed")


def test_a_text_opens_only_for_what_it_is_bound_to(crypto: str) -> None:
    seal = StateSealer([NEW])
    text = seal.seal(b"payload", b"one")
    for other in (b"two", b"", b"one\0", b"on"):
        with pytest.raises(InvalidSeal):
            seal.open(text, other)


def test_any_changed_character_breaks_the_seal(crypto: str) -> None:
    seal = StateSealer([NEW])
    text = seal.seal(b"payload of some length", b"")
    for place, old in enumerate(text):
        changed = text[:place] + ("A" if old != "A" else "B") + text[place + 1 :]
        with pytest.raises(InvalidSeal):
            seal.open(changed, b"")


@pytest.mark.parametrize("text", ["", "A", "!!!!", "åäö", "AAAA" * 20, "\ud800", "a b", "AA=="])
def test_opening_unsealed_text_raises_invalid_seal(crypto: str, text: str) -> None:
    with pytest.raises(InvalidSeal):
        StateSealer([NEW]).open(text, b"")


def test_every_key_of_the_ring_opens_and_the_first_one_seals(crypto: str) -> None:
    before = StateSealer([OLD]).seal(b"payload", b"")
    ring = StateSealer([NEW, OLD])
    assert ring.open(before, b"") == b"payload"
    after = ring.seal(b"payload", b"")
    assert StateSealer([NEW]).open(after, b"") == b"payload"
    with pytest.raises(InvalidSeal):
        StateSealer([OLD]).open(after, b"")


def test_a_signed_text_opens_where_texts_are_encrypted_too(monkeypatch: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
        signed = StateSealer([NEW]).seal(b"payload", b"")
    # A fleet whose machines differ still reads what any of them sealed.
    assert StateSealer([NEW]).open(signed, b"") == b"payload"


def test_an_encrypted_text_is_refused_with_a_reason_where_it_cannot_be_read(
    monkeypatch: Any,
) -> None:
    text = StateSealer([NEW]).seal(b"payload", b"")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(InvalidSeal, match="crypto extra"):
        StateSealer([NEW]).open(text, b"")


def test_two_seals_of_one_text_differ_where_they_are_encrypted() -> None:
    seal = StateSealer([NEW])
    assert seal.seal(b"payload", b"") != seal.seal(b"payload", b"")


def test_a_key_that_can_be_guessed_is_refused_and_none_is_shown() -> None:
    with pytest.raises(ValueError, match="at least 16 bytes"):
        StateSealer([b"canary"])
    assert "n" * 32 not in repr(StateSealer([NEW]))


def test_a_ring_without_keys_has_one_of_its_own() -> None:
    text = StateSealer([]).seal(b"payload", b"")
    with pytest.raises(InvalidSeal):
        StateSealer([]).open(text, b"")


@pytest.mark.parametrize(
    "keys",
    [
        b"k" * 32,
        "k" * 32,
        bytearray(32),
        ["k" * 32],
        [1000],
        [None],
        [[107] * 32],  # `bytes` would make a key of it
    ],
)
def test_key_ring_that_is_not_a_list_of_bytes_is_refused(keys: Any) -> None:
    with pytest.raises(TypeError):
        StateSealer(keys)


def test_a_key_of_nothing_but_zeros_is_refused() -> None:
    with pytest.raises(ValueError, match="zero"):
        StateSealer([bytes(48)])

"""Sealing what a client carries for us, so that it comes back as it was given out.

A client can keep a sealed text, lose it or present it twice; it cannot change it, and it
cannot use it where it does not belong, because what it is *bound to* (who asked, for what)
goes into the seal and has to be said again to open it.

With the `crypto` extra a text is also secret (AES-256-GCM); without, it is signed
(HMAC-SHA256) and anybody can read it. The first key of a ring seals; all of them open, so
keys can be changed while texts are out. To sign and to encrypt each has a key of its own,
derived from the one that was given; what else is signed with that begins with other words.

What computes all this is loaded when something is sealed: few servers do.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

__all__ = ["InvalidSeal", "StateSealer"]

# What a sealed text begins with: how it is sealed, and with which key.
_SIGNED: Final = b"\x01"
_ENCRYPTED: Final = b"\x02"
_KEY_ID_BYTES: Final = 4
_MAC_BYTES: Final = 32
_NONCE_BYTES: Final = 12
# A key that can be guessed protects nothing.
_MIN_KEY_BYTES: Final = 16


class InvalidSeal(ValueError):
    """A text that we did not seal, or not for this."""


class _Key(NamedTuple):
    id: bytes
    sign: bytes
    encrypt: bytes


class StateSealer:
    """A ring of keys, and what can be done with them."""

    __slots__ = ("_derived", "_given")

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Make a ring; without keys it has one that lasts as long as this process.

        Raises:
            TypeError: it is no list of bytes; the text shows nothing of it.
            ValueError: a key is too short to protect anything, or easily guessed.
        """
        if isinstance(keys, str | bytes | bytearray | memoryview):
            # One key without its brackets is a row of small numbers, and no secret.
            raise TypeError("the keys are a list of bytes, also if there is only one")
        given = [*keys] or [os.urandom(32)]
        for key in given:
            if not isinstance(key, bytes | bytearray):
                raise TypeError(f"a key is bytes, not {type(key).__name__}")
            if len(key) < _MIN_KEY_BYTES or not any(key):
                raise ValueError(f"a key has at least {_MIN_KEY_BYTES} bytes, not all of them zero")
        self._given = tuple(map(bytes, given))
        self._derived: tuple[_Key, ...] = ()

    @property
    def first(self) -> bytes:
        """The key that seals, as it was given."""
        return self._given[0]

    @property
    def _keys(self) -> tuple[_Key, ...]:
        if not self._derived:
            self._derived = tuple(map(_derived, self._given))
        return self._derived

    @property
    def is_secret(self) -> bool:
        """Whether what is sealed cannot be read either."""
        return _cipher(self._keys[0].encrypt) is not None

    def __repr__(self) -> str:
        return f"<Seal with {len(self._given)} keys>"

    def seal(self, payload: bytes, bound_to: bytes) -> str:
        """Return `payload` as a text that only opens when it is bound to the same."""
        key = self._keys[0]
        cipher = _cipher(key.encrypt)
        if cipher is None:
            head = _SIGNED + key.id
            body = _mac(key, head, payload, bound_to) + payload
        else:
            head, nonce = _ENCRYPTED + key.id, os.urandom(_NONCE_BYTES)
            body = nonce + cipher.encrypt(nonce, payload, head + bound_to)
        return urlsafe_b64encode(head + body).decode().rstrip("=")

    def open(self, text: str, bound_to: bytes) -> bytes:
        """Return what was sealed in `text`.

        Raises:
            BrokenSeal: it was not sealed by us, or was changed, or is bound to something else.
        """
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except (Base64Error, ValueError):
            raise InvalidSeal("it is not sealed") from None
        # One text has one form: padding bits that mean nothing are not ours.
        if urlsafe_b64encode(sealed).decode().rstrip("=") != text:
            raise InvalidSeal("it is not sealed")
        head, body = sealed[: 1 + _KEY_ID_BYTES], sealed[1 + _KEY_ID_BYTES :]
        for key in self._keys:
            if key.id == head[1:]:
                return _opened(key, head, body, bound_to)
        raise InvalidSeal("no key of ours fits")


def _derived(key: bytes) -> _Key:
    import hmac

    def for_use(use: bytes) -> bytes:
        return hmac.digest(key, b"trunkline state " + use, "sha256")

    return _Key(for_use(b"id")[:_KEY_ID_BYTES], for_use(b"sign"), for_use(b"encrypt"))


def _opened(key: _Key, head: bytes, body: bytes, bound_to: bytes) -> bytes:
    import hmac

    if head[:1] == _SIGNED:
        mac, payload = body[:_MAC_BYTES], body[_MAC_BYTES:]
        if hmac.compare_digest(mac, _mac(key, head, payload, bound_to)):
            return payload
    elif head[:1] == _ENCRYPTED:
        cipher = _cipher(key.encrypt)
        if cipher is None:
            raise InvalidSeal("it is encrypted, and the crypto extra is not installed")
        opened = _decrypted(cipher, body, head + bound_to)
        if opened is not None:
            return opened
    raise InvalidSeal("it was changed, or belongs to another request")


def _mac(key: _Key, head: bytes, payload: bytes, bound_to: bytes) -> bytes:
    import hashlib
    import hmac

    # Of a fixed length, so that nothing can move from one into the other.
    bound = hashlib.sha256(bound_to).digest()
    return hmac.digest(key.sign, head + bound + payload, "sha256")


def _cipher(key: bytes) -> Any:
    """Return what encrypts, or None without the extra."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        return None
    return AESGCM(key)


def _decrypted(cipher: Any, body: bytes, bound_to: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag

    try:
        found: bytes = cipher.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], bound_to)
    except (InvalidTag, ValueError):
        return None
    return found

"""Sealing of `requestState`: authenticated, and with the `crypto` extra encrypted.

A client can keep, lose or replay a sealed text; it cannot modify it, nor use it elsewhere: what
the text is *bound to* (server and purpose) is authenticated too, and must be given to open it.

With the `crypto` extra texts are encrypted (AES-256-GCM); without it they are signed (HMAC-SHA256)
and readable. The first key seals; all keys open, so that keys can be rotated. Signing and
encryption use separate keys derived from the given one; other uses of that key have other prefixes.

The cryptography modules are imported when a text is sealed: few servers do.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

__all__ = ["InvalidSeal", "StateSealer"]

# The first byte of a sealed text; the key id follows.
_SIGNED: Final = b"\x01"
_ENCRYPTED: Final = b"\x02"
_KEY_ID_BYTES: Final = 4
_MAC_BYTES: Final = 32
_NONCE_BYTES: Final = 12
# 128 bits: a shorter key can be guessed.
_MIN_KEY_BYTES: Final = 16


class InvalidSeal(ValueError):
    """A text that was not sealed with our keys, or for another purpose."""


class _Key(NamedTuple):
    id: bytes
    sign: bytes
    encrypt: bytes


class StateSealer:
    """Seals and opens texts with a list of keys, newest first."""

    __slots__ = ("_derived", "_given")

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Without keys, use a random one that lasts as long as this process.

        Raises:
            TypeError: not a list of bytes; the text does not show the value.
            ValueError: a key is too short, or all zero.
        """
        if isinstance(keys, str | bytes | bytearray | memoryview):
            # Iterating a single key would give small integers.
            raise TypeError("the keys are a list of bytes, even for a single key")
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
        """The key that seals, as given."""
        return self._given[0]

    @property
    def _keys(self) -> tuple[_Key, ...]:
        if not self._derived:
            self._derived = tuple(map(_derived, self._given))
        return self._derived

    @property
    def is_secret(self) -> bool:
        """Whether sealed texts are encrypted."""
        return _cipher(self._keys[0].encrypt) is not None

    def __repr__(self) -> str:
        return f"<StateSealer with {len(self._given)} keys>"

    def seal(self, payload: bytes, bound_to: bytes) -> str:
        """Return `payload` as a text that opens only with the same `bound_to`."""
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
        """Return the payload of a sealed text.

        Raises:
            InvalidSeal: not sealed with our keys, modified, or bound to something else.
        """
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except (Base64Error, ValueError):
            raise InvalidSeal("it is not sealed") from None
        # Reject other encodings of the same bytes: unused padding bits must be zero.
        if urlsafe_b64encode(sealed).decode().rstrip("=") != text:
            raise InvalidSeal("it is not sealed")
        head, body = sealed[: 1 + _KEY_ID_BYTES], sealed[1 + _KEY_ID_BYTES :]
        for key in self._keys:
            if key.id == head[1:]:
                return _opened(key, head, body, bound_to)
        raise InvalidSeal("it was sealed with an unknown key")


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
        from cryptography.exceptions import InvalidTag

        try:
            opened: bytes = cipher.decrypt(
                body[:_NONCE_BYTES], body[_NONCE_BYTES:], head + bound_to
            )
            return opened
        except (InvalidTag, ValueError):
            pass
    raise InvalidSeal("it was modified, or belongs to another server")


def _mac(key: _Key, head: bytes, payload: bytes, bound_to: bytes) -> bytes:
    import hashlib
    import hmac

    # Of fixed length, so that bytes cannot move between it and the payload.
    bound = hashlib.sha256(bound_to).digest()
    return hmac.digest(key.sign, head + bound + payload, "sha256")


def _cipher(key: bytes) -> Any:
    """Return the AES-GCM cipher, or None without the `crypto` extra."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        return None
    return AESGCM(key)

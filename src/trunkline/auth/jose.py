"""Signed JSON: keys, key sets, compact signatures and thumbprints, on top of joserfc.

The rules that live here, and only here:

* Signatures are asymmetric. `none` and HMAC do not exist here: a public key can then never be
  taken for a shared secret.                                    [RFC 8725, sections 3.1, 3.2]
* A key verifies the algorithms of its own type alone.          [RFC 8725, section 3.1]
* A header with `crit` is refused, because no extension of it is understood.  [RFC 7515, 4.1.11]
* Keys, and what was signed with them, appear in no repr and no error.
"""

from __future__ import annotations

import re
import warnings
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from msgspec import DecodeError
from msgspec.json import Decoder, encode

try:
    from joserfc import jwk
    from joserfc.errors import JoseError
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "joserfc":
        raise
    raise ImportError("authorization needs joserfc: pip install trunkline[auth]") from None

__all__ = [
    "ALGORITHMS",
    "InvalidKey",
    "InvalidSignature",
    "PublicKey",
    "SignedToken",
    "SigningKey",
    "parse_token",
]

# Algorithms of signatures that are accepted, by the type and curve of their keys.
_BY_KEY: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("RSA", ""): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA", "Ed25519"),
}
ALGORITHMS: Final = tuple(name for names in _BY_KEY.values() for name in names)
# Of a token; those of large identity providers have 2 to 8 KiB.
MAX_TOKEN_BYTES: Final = 32 * 1024
_MIN_RSA_BITS: Final = 2048
_PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})

_is_compact: Final = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+").fullmatch
_object: Final = Decoder(dict[str, Any]).decode
_UNREADABLE: Final = (DecodeError, UnicodeDecodeError, RecursionError, ValueError)


class InvalidKey(ValueError):
    """A key that cannot be used; the text says why, and shows nothing of it."""


class InvalidSignature(ValueError):
    """A token that is malformed, or whose signature is not that of the key."""


class SignedToken:
    """A compact JWS that was split and decoded, and not verified."""

    __slots__ = ("_signature", "_signed", "algorithm", "claims", "header", "key_id")

    def __init__(
        self, header: dict[str, Any], claims: dict[str, Any], signed: bytes, signature: bytes
    ) -> None:
        self.header = header
        self.claims = claims
        self.algorithm: Any = header.get("alg")
        self.key_id: Any = header.get("kid")
        self._signed = signed
        self._signature = signature

    def __repr__(self) -> str:
        return "<SignedToken>"

    def is_signed_by(self, key: PublicKey) -> bool:
        """Return True if the signature is that of a key, by an algorithm of that key."""
        return self.algorithm in key.algorithms and key.verifies(
            self.algorithm, self._signed, self._signature
        )


def parse_token(token: str | bytes) -> SignedToken:
    """Split and decode a compact JWS whose payload is a JSON object. Nothing is verified.

    Raises:
        InvalidSignature: it is malformed.
    """
    data = token.encode("ascii", "replace") if isinstance(token, str) else token
    if len(data) > MAX_TOKEN_BYTES or _is_compact(data) is None:
        raise InvalidSignature("not a signed token")
    signed, _, signature = data.rpartition(b".")
    header, _, payload = signed.partition(b".")
    try:
        decoded = SignedToken(
            _object(_unpadded(header)), _object(_unpadded(payload)), signed, _unpadded(signature)
        )
    except _UNREADABLE:
        raise InvalidSignature("not a signed token") from None
    if "crit" in decoded.header:
        raise InvalidSignature("the token has critical header members, none of which is known")
    return decoded


class PublicKey:
    """A public key that verifies signatures."""

    __slots__ = ("_key", "algorithms", "jwk", "key_id")

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Take a JWK.

        Raises:
            InvalidKey: it is private, symmetric, too small, or of an unknown type.
        """
        if _PRIVATE_MEMBERS & given.keys():
            raise InvalidKey("the key is not a public key")
        curve = given.get("crv", "")
        kind = (given.get("kty"), curve if given.get("kty") != "RSA" else "")
        algorithms = _BY_KEY.get(kind) if all(isinstance(each, str) for each in kind) else None  # type: ignore[arg-type]  # checked beside
        if algorithms is None:
            raise InvalidKey("the type of the key is not supported")
        if given.get("use", "sig") != "sig":
            raise InvalidKey("the key is not for signatures")
        named = given.get("alg")
        if named is not None:
            algorithms = tuple(each for each in algorithms if each == named)
            if not algorithms:
                raise InvalidKey("the algorithm of the key is not one of its type")
        try:
            key: Any = jwk.import_key(dict(given))
        except (JoseError, ValueError, TypeError, KeyError):
            raise InvalidKey("the key is malformed") from None
        if kind[0] == "RSA" and key.public_key.key_size < _MIN_RSA_BITS:
            raise InvalidKey(f"the key has fewer than {_MIN_RSA_BITS} bits")
        self._key = key
        self.algorithms = algorithms
        self.jwk = dict(given)
        found = given.get("kid")
        self.key_id: str | None = found if isinstance(found, str) else None

    def __repr__(self) -> str:
        return f"<PublicKey for {', '.join(self.algorithms)}>"

    @property
    def thumbprint(self) -> str:
        """The SHA-256 thumbprint.                                          [RFC 7638]"""
        found: str = self._key.thumbprint()
        return found

    def verifies(self, algorithm: str, signed: bytes, signature: bytes) -> bool:
        """Return True if a signature is that of this key."""
        try:
            return bool(_algorithm(algorithm).verify(signed, signature, self._key))
        except (JoseError, ValueError, TypeError):
            return False


class SigningKey:
    """A private key that signs."""

    __slots__ = ("_key", "algorithm", "key_id")

    def __init__(self, key: Any, algorithm: str | None = None, key_id: str | None = None) -> None:
        curve = "" if key.key_type == "RSA" else getattr(key, "curve_name", "")
        algorithms = _BY_KEY.get((key.key_type, curve), ())
        if not algorithms or not key.is_private:
            raise InvalidKey("the key is not a private key of a supported type")
        if algorithm is not None and algorithm not in algorithms:
            raise InvalidKey(f"the key signs with {' or '.join(algorithms)}")
        self._key = key
        self.algorithm = algorithm or algorithms[0]
        self.key_id = key_id

    @classmethod
    def generate(cls, algorithm: str = "ES256", *, key_id: str | None = None) -> SigningKey:
        """Return a new key.

        Raises:
            InvalidKey: the algorithm is unknown.
        """
        for (kind, curve), algorithms in _BY_KEY.items():
            if algorithm in algorithms:
                key = jwk.generate_key(kind, curve or _MIN_RSA_BITS)  # type: ignore[call-overload]  # types and sizes of the table
                return cls(key, algorithm, key_id)
        raise InvalidKey(f"unknown algorithm; known are {', '.join(ALGORITHMS)}")

    @classmethod
    def from_pem(
        cls, pem: str | bytes, algorithm: str | None = None, *, key_id: str | None = None
    ) -> SigningKey:
        """Read a private key in PEM.

        Raises:
            InvalidKey: it cannot be read, or is not a private key.
        """
        for kind in ("EC", "RSA", "OKP"):
            try:
                return cls(jwk.import_key(pem, kind), algorithm, key_id)
            except InvalidKey:
                raise
            except (JoseError, ValueError, TypeError):
                continue  # of another type
        raise InvalidKey("the PEM is not a private key that can be used")

    def __repr__(self) -> str:
        return f"<SigningKey for {self.algorithm}>"

    @property
    def public_jwk(self) -> dict[str, Any]:
        """The public part as a JWK."""
        found = {
            name: value
            for name, value in self._key.as_dict(private=False).items()
            if name not in ("kid", "alg", "use", "key_ops")
        }
        return found if self.key_id is None else {**found, "kid": self.key_id}

    @property
    def pem(self) -> bytes:
        """The private key in PEM, to be kept in a file that only its owner reads."""
        found: bytes = self._key.as_pem(private=True)
        return found

    @property
    def thumbprint(self) -> str:
        """The SHA-256 thumbprint of the public part.                       [RFC 7638]"""
        found: str = self._key.thumbprint()
        return found

    def sign(self, claims: Mapping[str, Any], header: Mapping[str, Any] | None = None) -> str:
        """Return claims as a compact JWS; `header` has members beside `alg` and `kid`."""
        named = {} if self.key_id is None else {"kid": self.key_id}
        head = {"alg": self.algorithm, **named, **(header or {})}
        signed = b"%b.%b" % (_text(encode(head)), _text(encode(dict(claims))))
        signature = _algorithm(self.algorithm).sign(signed, self._key)
        return f"{signed.decode()}.{_text(signature).decode()}"


@cache
def _algorithm(name: str) -> Any:
    from joserfc.jws import JWSRegistry

    with warnings.catch_warnings():
        # EdDSA has a newer name, and authorization servers use both.      [RFC 9864]
        warnings.simplefilter("ignore")
        return JWSRegistry(algorithms=[name]).get_alg(name)


def _unpadded(text: bytes) -> bytes:
    if len(text) % 4 == 1:
        raise ValueError("not base64url")
    return urlsafe_b64decode(text + b"=" * (-len(text) % 4))


def _text(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")

"""Signed JSON: keys, compact signatures and thumbprints, on top of joserfc.

The rules that live here, and only here:

* Signatures are asymmetric. `none` and HMAC do not exist here: a public key can then never be
  taken for a shared secret.                                    [RFC 8725, sections 3.1, 3.2]
* A key verifies the algorithms of its own type alone, and if it names one, that one alone.
                                                                [RFC 8725, section 3.1]
* A token is verified with a key that the caller has, or chose by `kid`. Keys and URLs of keys in a
  header (`jwk`, `jku`, `x5u`, `x5c`) are never followed.       [RFC 8725, section 3.10]
* A header with `crit` is refused, because no extension of it is understood.  [RFC 7515, 4.1.11]
* A member name occurs once in an object, and base64url has one spelling: two readers of a token
  then read the same, and two tokens differ in what they say.   [RFC 7515, section 4; RFC 4648, 3.5]
* Keys are bounded in size: the costs of a signature check are those of a usual key.
* Keys, and what was signed with them, appear in no repr and no error.
"""

from __future__ import annotations

import warnings
from base64 import urlsafe_b64encode
from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from json import JSONDecoder
from types import MappingProxyType
from typing import Any, Final

from msgspec import DecodeError
from msgspec.json import Decoder, encode

from ..extras import install_command

try:
    from joserfc import jwk
    from joserfc.errors import JoseError
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "joserfc":
        raise
    raise ImportError(f"authorization needs joserfc: {install_command('auth')}") from None

__all__ = [
    "ALGORITHMS",
    "InvalidKey",
    "InvalidSignature",
    "PublicKey",
    "SignedToken",
    "SigningKey",
    "parse_object",
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
# Headers that are kept decoded, and the bytes of one: those of an issuer have 100, and those of
# DPoP proofs 300. A stranger can displace them, which costs 3 us per token.
_MAX_KNOWN_HEADERS: Final = 256
_MAX_KNOWN_HEADER_BYTES: Final = 1024
# A check with 8192 bits and a usual exponent takes 0.3 ms. A peer chooses the key of a DPoP
# proof: without bounds, one proof could take a hundred times as long.
_MIN_RSA_BITS: Final = 2048
_MAX_RSA_BITS: Final = 8192
_MAX_RSA_EXPONENT_BITS: Final = 33
_PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})

# base64url as base64. What is not in its alphabet, padding too, becomes what is in neither.
_STANDARD: Final = bytes.maketrans(b"-_+/=", b"+/!!!")
_PADDING: Final = (b"", b"", b"==", b"=")
# The last characters whose unused bits are zero, by the length of the text modulo 4.
_LAST: Final = {2: frozenset(b"AQgw"), 3: frozenset(b"AEIMQUYcgkosw048")}
_object: Final = Decoder(dict[str, Any]).decode
_UNREADABLE: Final = (DecodeError, UnicodeDecodeError, RecursionError, ValueError)
# What joserfc and cryptography raise for keys that they cannot use.
_UNUSABLE: Final = (JoseError, ValueError, TypeError, KeyError)


class InvalidKey(ValueError):
    """A key that cannot be used; the text says why, and shows nothing of it."""


class InvalidSignature(ValueError):
    """A token that is malformed, or whose signature is not that of the key."""


class SignedToken:
    """A compact JWS that was split and decoded, and not verified."""

    __slots__ = ("_signature", "_signed", "algorithm", "claims", "header", "key_id")

    def __init__(
        self, header: Mapping[str, Any], claims: dict[str, Any], signed: bytes, signature: bytes
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
    signed, _, signature = data.rpartition(b".")
    header, _, payload = signed.partition(b".")
    if len(data) > MAX_TOKEN_BYTES or not signature:
        raise InvalidSignature("not a signed token")
    read_header = _known_header if len(header) <= _MAX_KNOWN_HEADER_BYTES else _header
    try:
        decoded = SignedToken(
            read_header(header), parse_object(_decoded(payload)), signed, _decoded(signature)
        )
    except ValueError:
        raise InvalidSignature("not a signed token") from None
    if "crit" in decoded.header:
        raise InvalidSignature("the token has critical header members, none of which is known")
    return decoded


def _header(segment: bytes) -> Mapping[str, Any]:
    return MappingProxyType(parse_object(_decoded(segment)))


# All tokens of one key have the same header.
_known_header: Final = lru_cache(maxsize=_MAX_KNOWN_HEADERS)(_header)


def parse_object(data: bytes) -> dict[str, Any]:
    """Return a JSON object in which no name of a member occurs twice, at any depth.

    Raises:
        ValueError: it is something else; the text shows nothing of it.
    """
    try:
        found = _object(data)
        if b"\\" in data:
            # A reader that is slower, and sees every member.
            found = _scan(data.decode("utf-8").lstrip())[0]
        elif data.count(b'"') != 2 * (len(found) + _count_strings(found.values())):
            # Without escapes a string has two quotes: one that is not there was a second member.
            raise ValueError("a name of a member occurs twice")
    except _UNREADABLE:
        raise ValueError("not a JSON object without duplicate names") from None
    return found


def _count_strings(values: Iterable[Any]) -> int:
    """Return how many strings decoded values have, the names of members of objects too."""
    count = 0
    for each in values:
        if isinstance(each, str):
            count += 1
        elif isinstance(each, dict):
            count += len(each) + _count_strings(each.values())
        elif isinstance(each, list):
            count += _count_strings(each)
    return count


def _without_duplicates(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("a name of a member occurs twice")
    return found


_scan: Final = JSONDecoder(object_pairs_hook=_without_duplicates).raw_decode


class PublicKey:
    """A public key that verifies signatures."""

    __slots__ = ("_key", "algorithms", "jwk", "key_id")

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Take a JWK.

        Raises:
            InvalidKey: it is private, symmetric, too small or large, or of an unknown type.
        """
        if _PRIVATE_MEMBERS & given.keys():
            raise InvalidKey("the key is not a public key")
        kind, curve = given.get("kty"), given.get("crv", "")
        if not isinstance(kind, str) or not isinstance(curve, str):
            raise InvalidKey("the type of the key is not supported")
        algorithms = _BY_KEY.get((kind, "" if kind == "RSA" else curve))
        if algorithms is None:
            raise InvalidKey("the type of the key is not supported")
        operations = given.get("key_ops", ["verify"])
        is_for_verifying = isinstance(operations, list) and "verify" in operations
        if given.get("use", "sig") != "sig" or not is_for_verifying:
            raise InvalidKey("the key is not for signatures")
        named = given.get("alg")
        if named is not None:
            algorithms = tuple(each for each in algorithms if each == named)
            if not algorithms:
                raise InvalidKey("the algorithm of the key is not one of its type")
        if kind == "RSA":
            _check_rsa(_number(given.get("n")), _number(given.get("e")))
        try:
            self._key: Any = jwk.import_key(dict(given))
        except _UNUSABLE:
            raise InvalidKey("the key is malformed") from None
        self.algorithms = algorithms
        self.jwk = dict(given)
        found = given.get("kid")
        self.key_id: str | None = found if isinstance(found, str) else None

    @classmethod
    def from_pem(cls, pem: str | bytes, *, key_id: str | None = None) -> PublicKey:
        """Read a public key, or that of a certificate, in PEM.

        Raises:
            InvalidKey: it cannot be read, is private, or cannot be used.
        """
        key = _key_of_pem(pem)
        if key.is_private:
            raise InvalidKey("the key is not a public key")
        named = {} if key_id is None else {"kid": key_id}
        return cls({**_public_members(key), **named})

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
        except _UNUSABLE:
            return False


class SigningKey:
    """A private key that signs."""

    __slots__ = ("_key", "algorithm", "key_id")

    def __init__(self, key: Any, algorithm: str | None = None, key_id: str | None = None) -> None:
        try:
            algorithms = _BY_KEY.get(
                (key.key_type, "" if key.key_type == "RSA" else key.curve_name), ()
            )
        except (AttributeError, KeyError):
            # A symmetric key, or a curve that joserfc has no name for.
            algorithms = ()
        if not algorithms or not key.is_private:
            raise InvalidKey("the key is not a private key of a supported type")
        if key.key_type == "RSA":
            numbers = key.public_key.public_numbers()
            _check_rsa(numbers.n, numbers.e)
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
                key = jwk.JWKRegistry.generate_key(kind, curve or _MIN_RSA_BITS)
                return cls(key, algorithm, key_id)
        raise InvalidKey(f"unknown algorithm; known are {', '.join(ALGORITHMS)}")

    @classmethod
    def from_pem(
        cls,
        pem: str | bytes,
        algorithm: str | None = None,
        *,
        key_id: str | None = None,
        password: str | bytes | None = None,
    ) -> SigningKey:
        """Read a private key in PEM, which may be encrypted with a password.

        Raises:
            InvalidKey: it cannot be read, or is not a private key.
        """
        return cls(_key_of_pem(pem, password), algorithm, key_id)

    @classmethod
    def from_jwk(cls, given: Mapping[str, Any], algorithm: str | None = None) -> SigningKey:
        """Take a private key as a JWK, with its `kid` and its `alg`.

        Raises:
            InvalidKey: it cannot be read, or is not a private key.
        """
        named = given.get("alg")
        if named is not None and (algorithm or named) != named:
            raise InvalidKey("the JWK is for another algorithm")
        key_id = given.get("kid")
        try:
            if given.get("kty") not in ("RSA", "EC", "OKP"):
                raise TypeError("not an asymmetric key")
            key = jwk.import_key(dict(given))
        except _UNUSABLE:
            raise InvalidKey("the JWK is not a private key that can be used") from None
        return cls(key, algorithm or named, key_id if isinstance(key_id, str) else None)

    def __repr__(self) -> str:
        return f"<SigningKey for {self.algorithm}>"

    @property
    def public_jwk(self) -> dict[str, Any]:
        """The public part as a JWK."""
        found = _public_members(self._key)
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
        """Return claims as a compact JWS; `header` has members beside `alg` and `kid`.

        A member of `header` that is None is left out, `kid` too.
        """
        members = {"alg": self.algorithm, "kid": self.key_id, **(header or {})}
        head = {name: value for name, value in members.items() if value is not None}
        signed = b"%b.%b" % (_text(encode(head)), _text(encode(dict(claims))))
        signature = _algorithm(self.algorithm).sign(signed, self._key)
        return f"{signed.decode()}.{_text(signature).decode()}"


def _key_of_pem(pem: str | bytes, password: str | bytes | None = None) -> Any:
    data = pem.encode() if isinstance(pem, str) else pem
    if b"-----BEGIN " not in data:
        raise InvalidKey("the key is not in PEM")
    if b"ENCRYPTED" in data:
        data = _decrypted(data, password)
    for kind in ("EC", "RSA", "OKP"):
        try:
            return jwk.import_key(data, kind)
        except _UNUSABLE:
            continue  # of another type
    raise InvalidKey("the PEM has no key that can be used")


def _decrypted(data: bytes, password: str | bytes | None) -> bytes:
    from cryptography.hazmat.primitives import serialization

    if password is None:
        raise InvalidKey("the PEM is encrypted, and there is no password for it")
    secret = password.encode() if isinstance(password, str) else password
    try:
        return serialization.load_pem_private_key(data, secret).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    except _UNUSABLE:
        raise InvalidKey("the PEM cannot be decrypted with this password") from None


def _public_members(key: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in key.as_dict(private=False).items()
        if name not in ("kid", "alg", "use", "key_ops")
    }


def _check_rsa(modulus: int, exponent: int) -> None:
    if not _MIN_RSA_BITS <= modulus.bit_length() <= _MAX_RSA_BITS:
        raise InvalidKey(f"the key does not have {_MIN_RSA_BITS} to {_MAX_RSA_BITS} bits")
    if exponent.bit_length() > _MAX_RSA_EXPONENT_BITS:
        raise InvalidKey("the exponent of the key is too large")


def _number(text: object) -> int:
    try:
        if isinstance(text, str):
            return int.from_bytes(_decoded(text.encode("ascii")), "big")
    except ValueError:
        pass  # malformed, as below
    raise InvalidKey("the key is malformed")


@cache
def _algorithm(name: str) -> Any:
    from joserfc.jws import JWSRegistry

    with warnings.catch_warnings():
        # EdDSA has a newer name, and authorization servers use both.      [RFC 9864]
        warnings.simplefilter("ignore")
        return JWSRegistry(algorithms=[name]).get_alg(name)


def _decoded(text: bytes) -> bytes:
    """Return the bytes of a text of base64url, without padding.

    Raises:
        ValueError: it is something else, or there is another text for the same bytes.
    """
    rest = len(text) % 4
    if rest == 1 or (rest and text[-1] not in _LAST[rest]):
        raise ValueError("not base64url")
    return a2b_base64(text.translate(_STANDARD) + _PADDING[rest], strict_mode=True)


def _text(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")

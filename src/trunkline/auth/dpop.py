"""Proofs of possession: a JWT per request, signed with the key that a token is bound to.

    header = make_proof(key, "POST", url, token=token)

The rules that live here, and only here:

* A proof is for one method and one URL, without its query and fragment. URLs are compared after
  the normalisation of their syntax and scheme.               [RFC 9449, section 4.3; RFC 3986, 6.2]
* It has `typ` dpop+jwt, an asymmetric algorithm, and the public key that verifies it; a private
  key in it makes it void.                                    [RFC 9449, section 4.3]
* With a token, it has the hash of that token.                [RFC 9449, section 4.2]
* Proofs, nonces and keys appear in no repr and no error.
"""

from __future__ import annotations

import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Collection
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from .jose import ALGORITHMS, InvalidKey, InvalidSignature, PublicKey, parse_token

if TYPE_CHECKING:
    from .jose import SigningKey

__all__ = ["InvalidProof", "Proof", "make_proof", "parse_proof", "proof_target", "token_hash"]

_TYPE: Final = "dpop+jwt"
# A proof with an RSA key of 4096 bits has 1.6 KiB.
MAX_PROOF_CHARS: Final = 8 * 1024
# Of `jti`, in characters.
MAX_ID_CHARS: Final = 256
_ID_BYTES: Final = 16
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_BAD_CLAIMS: Final = "A claim of the proof is missing or malformed"

_escape: Final = re.compile(r"%[0-9A-Fa-f]{2}").sub
_is_unreserved: Final = re.compile(r"[A-Za-z0-9._~-]").fullmatch


class InvalidProof(ValueError):
    """A proof that cannot be read, or is not signed by its key; the text is a fixed sentence."""


class Proof:
    """A proof whose signature is that of its key. Its claims were not checked, but for types."""

    __slots__ = ("id", "issued_at", "key_thumbprint", "method", "nonce", "target", "token_hash")

    def __init__(self, claims: dict[str, Any], key_thumbprint: str) -> None:
        self.key_thumbprint = key_thumbprint
        self.id = _claim(claims, "jti")
        self.method = _claim(claims, "htm")
        self.target = _claim(claims, "htu")
        self.token_hash = _claim(claims, "ath") if "ath" in claims else None
        self.nonce = _claim(claims, "nonce") if "nonce" in claims else None
        issued_at = claims.get("iat")
        # Not a bool, which is an int.
        if not isinstance(issued_at, int | float) or isinstance(issued_at, bool):
            raise InvalidProof(_BAD_CLAIMS)
        if len(self.id) > MAX_ID_CHARS:
            raise InvalidProof(_BAD_CLAIMS)
        self.issued_at: float = issued_at

    def __repr__(self) -> str:
        return "<Proof>"


def _claim(claims: dict[str, Any], name: str) -> str:
    found = claims.get(name)
    if not isinstance(found, str) or not found:
        raise InvalidProof(_BAD_CLAIMS)
    return found


def make_proof(
    key: SigningKey,
    method: str,
    url: str,
    *,
    token: str | None = None,
    nonce: str | None = None,
    issued_at: float | None = None,
) -> str:
    """Return the value of a DPoP header for one request; `issued_at` is now, unless given."""
    claims: dict[str, Any] = {
        "jti": secrets.token_urlsafe(_ID_BYTES),
        "htm": method,
        "htu": proof_target(url),
        "iat": int(time.time() if issued_at is None else issued_at),
    }
    if token is not None:
        claims["ath"] = token_hash(token)
    if nonce is not None:
        claims["nonce"] = nonce
    public = {name: value for name, value in key.public_jwk.items() if name != "kid"}
    # The key itself is in the header: a `kid` would be a second name for it.
    return key.sign(claims, {"typ": _TYPE, "jwk": public, "kid": None})


def parse_proof(text: str, algorithms: Collection[str] = ALGORITHMS) -> Proof:
    """Return a proof after its form and its signature were checked.

    Raises:
        InvalidProof: it is malformed, or not signed by its key with one of `algorithms`.
    """
    if len(text) > MAX_PROOF_CHARS:
        raise InvalidProof("The proof is too large")
    try:
        token = parse_token(text)
    except InvalidSignature:
        raise InvalidProof("The proof is not a signed token") from None
    if token.header.get("typ") != _TYPE:
        raise InvalidProof("The type of the proof is not dpop+jwt")
    if token.algorithm not in algorithms:
        raise InvalidProof("The algorithm of the proof is not accepted")
    given = token.header.get("jwk")
    if not isinstance(given, dict):
        raise InvalidProof("The proof has no key")
    proof = Proof(token.claims, "")
    try:
        key = PublicKey(given)
    except InvalidKey:
        raise InvalidProof("The key of the proof cannot be used") from None
    if not token.is_signed_by(key):
        raise InvalidProof("The signature of the proof is not valid")
    proof.key_thumbprint = key.thumbprint
    return proof


def token_hash(token: str) -> str:
    """Return the hash of an access token, as a proof has it in `ath`."""
    digest = sha256(token.encode("ascii", "replace")).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def proof_target(url: str) -> str:
    """Return a URL as a proof has it in `htu`: normalised, without query and fragment.

    Raises:
        ValueError: it is not an absolute http or https URL.
    """
    parts = urlsplit(url)
    host, scheme = parts.hostname, parts.scheme.lower()
    if not host or scheme not in _DEFAULT_PORTS or parts.username is not None:
        raise ValueError("not an absolute URL of HTTP")
    port = parts.port
    shown = f"[{host}]" if ":" in host else host
    if port is not None and port != _DEFAULT_PORTS[scheme]:
        shown = f"{shown}:{port}"
    return f"{scheme}://{shown}{_normal_path(parts.path)}"


def _normal_path(path: str) -> str:
    """Return a path with each escape in its one form, and without dot segments."""
    segments: list[str] = []
    parts = _escape(_normal_escape, path).split("/")[1:]
    for place, segment in enumerate(parts, 1):
        is_last = place == len(parts)
        if segment == "..":
            del segments[-1:]
        elif segment != ".":
            segments.append(segment)
            continue
        if is_last:
            segments.append("")
    return f"/{'/'.join(segments)}"


def _normal_escape(match: re.Match[str]) -> str:
    character = chr(int(match[0][1:], 16))
    return character if _is_unreserved(character) else match[0].upper()

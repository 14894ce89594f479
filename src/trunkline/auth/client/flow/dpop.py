"""Proofs of possession: the key of a client, and the nonces that servers gave it.  [RFC 9449]

The rules that live here, and only here:

* Every request has a proof of its own, with a `jti` of its own.             [section 4.2]
* A nonce belongs to the origin that sent it, and the last one counts. A response of any status
  may bring the next one.                                                    [sections 8, 9]
* A request is sent again for a nonce only if its proof had another one, or none.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from ...jose import SigningKey

__all__ = ["ClientProofs", "signing_key_of"]

# The origins of a client: its server, the authorization server, and perhaps an identity provider.
_MAX_ORIGINS: Final = 16
_is_nonce: Final = re.compile(rb"[!#-\[\]-~]{1,1024}").fullmatch
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class ClientProofs:
    """Makes the proofs of a client with one key."""

    __slots__ = ("_nonces", "key")

    def __init__(self, key: SigningKey) -> None:
        self.key = key
        self._nonces: OrderedDict[str, str] = OrderedDict()

    def __repr__(self) -> str:
        return "<ClientProofs>"

    def proof(self, method: str, url: str, token: str | None = None) -> str:
        """Return a new proof for one request; `token` is the access token it goes with."""
        # Imported here: it needs the extra `auth`.
        from ...dpop import make_proof

        # A WebSocket begins as a request of HTTP.
        target = f"http{url[2:]}" if url.startswith(("ws:", "wss:")) else url
        nonce = self._nonces.get(_origin(url))
        return make_proof(self.key, method, target, token=token, nonce=nonce)

    def take_nonce(self, url: str, headers: list[tuple[bytes, bytes]]) -> bool:
        """Keep the nonce in the headers of a response; return True if it is a new one."""
        found = [value for name, value in headers if name.lower() == b"dpop-nonce"]
        if len(found) != 1 or _is_nonce(found[0]) is None:
            return False
        origin, nonce = _origin(url), found[0].decode("ascii")
        is_new = self._nonces.get(origin) != nonce
        self._nonces[origin] = nonce
        self._nonces.move_to_end(origin)
        if len(self._nonces) > _MAX_ORIGINS:
            self._nonces.popitem(last=False)
        return is_new

    def is_outdated(self, url: str, sent: bytes) -> bool:
        """Return True if the proof in sent header lines has not the nonce that counts now."""
        from ...jose import InvalidSignature, parse_token

        nonce = self._nonces.get(_origin(url))
        proof = next(
            (line[5:] for line in sent.split(b"\r\n") if line[:5].lower() == b"dpop:"), b""
        )
        try:
            return nonce is not None and parse_token(proof.strip()).claims.get("nonce") != nonce
        except InvalidSignature:
            return True  # sent without a proof


def signing_key_of(dpop: bool | SigningKey) -> SigningKey | None:
    """Return the key for the `dpop=` of a client: a new one for True, None for False.

    Raises:
        TypeError: it is something else.
    """
    if dpop is False:
        return None
    from ...jose import SigningKey

    if dpop is True:
        return SigningKey.generate("ES256")
    if not isinstance(dpop, SigningKey):
        raise TypeError("dpop= is True, False or a SigningKey")
    return dpop


def _origin(url: str) -> str:
    parts = urlsplit(url)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    return f"{scheme}://{parts.hostname}:{parts.port or _PORTS.get(parts.scheme)}"

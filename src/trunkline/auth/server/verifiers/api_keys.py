"""API keys: random texts that a server hands out, of which it keeps the hashes.

    key, record = ApiKeys.generate(subject="build", scopes=["files:read"])
    ApiKeys([record])

The rules that live here, and only here:

* Only the SHA-256 of a key is kept. A slow hash is for passwords, which can be guessed; a key has
  256 random bits, and cannot be found from its hash by trying. A fast hash costs 1 µs per request,
  and a flood of wrong keys costs no more.
* Keys are compared by looking up their hash. The time of a lookup depends on bytes of the hash,
  which a caller cannot choose: it tells nothing about a key.
* A key begins with a prefix, by which it is told from tokens, and found by scanners of secrets.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ....redaction import HIDDEN, show
from ...principal import Principal
from .credential import InvalidCredential

if TYPE_CHECKING:
    from .credential import Credential

__all__ = ["ApiKey", "ApiKeys"]

PREFIX: Final = "tlk_"
_KEY_BYTES: Final = 32
_HASH_CHARS: Final = 64

_UNKNOWN: Final = "The API key is not known"
_EXPIRED: Final = "The API key has expired"


class ApiKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a server keeps of an API key: its hash, and the principal that it stands for.

    `sha256` is in hexadecimal digits; `expires_at` is Unix time in seconds.
    """

    sha256: str
    subject: str
    client_id: str = ""
    scopes: tuple[str, ...] = ()
    tenant: str | None = None
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"ApiKey({', '.join(f'{name}={text}' for name, text in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        names = ("subject", "client_id", "scopes", "tenant", "expires_at")
        return [("sha256", HIDDEN), *((name, show(getattr(self, name))) for name in names)]


class ApiKeys:
    """Verifies API keys that are sent as `Authorization: Bearer KEY`.

    `issuer` tells the principals of these keys from those of other verifiers. A token without
    `prefix` is left to the next verifier.

    Raises:
        ValueError: a hash is malformed, or occurs twice.
    """

    schemes: tuple[str, ...] = ("bearer",)
    dpop_algorithms: tuple[str, ...] = ()
    authorization_servers: tuple[str, ...] = ()

    def __init__(
        self,
        keys: Iterable[ApiKey],
        *,
        prefix: str = PREFIX,
        issuer: str = "",
        scopes_supported: Iterable[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.prefix = prefix
        self.scopes_supported = tuple(scopes_supported)
        self._clock = clock
        self._principals: dict[bytes, Principal] = {}
        for each in keys:
            digest = _digest(each)
            if digest in self._principals:
                raise ValueError("an API key is given twice")
            self._principals[digest] = Principal(
                issuer=issuer,
                subject=each.subject,
                client_id=each.client_id,
                scopes=frozenset(each.scopes),
                tenant=each.tenant,
                expires_at=each.expires_at,
            )

    def __repr__(self) -> str:
        return f"<ApiKeys, {len(self._principals)} keys>"

    @staticmethod
    def generate(
        *,
        subject: str,
        client_id: str = "",
        scopes: Iterable[str] = (),
        tenant: str | None = None,
        expires_at: float | None = None,
        prefix: str = PREFIX,
    ) -> tuple[str, ApiKey]:
        """Return a new key, which is shown to its owner once, and what the server keeps of it."""
        key = prefix + secrets.token_urlsafe(_KEY_BYTES)
        record = ApiKey(
            sha256=sha256(key.encode()).hexdigest(),
            subject=subject,
            client_id=client_id,
            scopes=tuple(scopes),
            tenant=tenant,
            expires_at=expires_at,
        )
        return key, record

    def verify(self, credential: Credential) -> Principal | None:
        """Return the principal of a key, or None for a token that is not an API key.

        Raises:
            InvalidCredential: the key is not known, or has expired.
        """
        token = credential.token
        if credential.scheme != "bearer" or not token.startswith(self.prefix):
            return None
        found = self._principals.get(sha256(token.encode("utf-8", "surrogatepass")).digest())
        if found is None:
            if not self.prefix:
                return None  # it may be a token of another kind
            raise InvalidCredential(_UNKNOWN)
        if found.expires_at is not None and self._clock() >= found.expires_at:
            raise InvalidCredential(_EXPIRED)
        return found

    def verify_offline(self, credential: Credential) -> Principal | None:
        """Return what `verify` does, which needs no network."""
        return self.verify(credential)


def _digest(key: ApiKey) -> bytes:
    try:
        digest = bytes.fromhex(key.sha256) if len(key.sha256) == _HASH_CHARS else b""
    except ValueError:
        digest = b""
    if len(digest) != _HASH_CHARS // 2:
        raise ValueError(f"ApiKey.sha256 has {_HASH_CHARS} hexadecimal digits")
    return digest

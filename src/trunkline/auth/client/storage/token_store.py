"""What a login leaves behind, and where it is kept.

A `TokenStorage` keeps bytes by key. The key of a login is the URL of its server; the record names
the authorization server that its registration and its tokens belong to.

The rules that live here, and only here:

* A record belongs to one server and one issuer. If the server names another authorization server,
  the whole record is void: nothing of it is sent there.                     [SEC-20]
* One process at a time changes a record: it holds the lock, reads, and then writes.
* A record that cannot be read, or whose token or secret cannot be sent, is as good as none.
* Tokens, secrets and keys appear in no repr.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from ....concurrency.backoff import backoff
from ....redaction import HIDDEN, show
from ..flow.client_authentication import ClientIdentity

if TYPE_CHECKING:
    from ..flow.token_endpoint import IssuedToken

__all__ = ["KeyLocks", "MemoryTokens", "StoredLogin", "TokenStorage", "server_key"]

# A token that ends within this time, in seconds, is renewed: a request takes time to arrive.
EARLY_S: Final = 10.0
_TYPES: Final = ("Bearer", "DPoP")
_METHODS: Final = (None, "none", "client_secret_basic", "client_secret_post")
_is_token: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*").fullmatch
_FIRST_WAIT_S: Final = 0.005
_LONGEST_WAIT_S: Final = 0.1


class TokenStorage(Protocol):
    """Keeps the logins of a client: `OAuth(storage=...)`."""

    def load(self, key: str) -> bytes | None:
        """Return what is stored for a key, or None.

        Raises:
            AuthorizationFailed: it cannot be read.
        """

    def store(self, key: str, data: bytes) -> None:
        """Replace what is stored for a key.

        Raises:
            AuthorizationFailed: it cannot be written; nothing is changed.
        """

    def delete(self, key: str) -> None:
        """Remove what is stored for a key, if anything is.

        Raises:
            AuthorizationFailed: it cannot be removed.
        """

    def lock(self, key: str) -> AbstractAsyncContextManager[None]:
        """Hold a lock between all that share the storage; others wait."""


class StoredLogin(Struct, kw_only=True, omit_defaults=True):
    """The login of a client at one server."""

    # The URL of the server.
    server: str
    # The authorization server.
    issuer: str
    # The server, as its metadata names it.
    resource: str
    # True of a server without metadata: the authorization server is at its origin.
    is_legacy: bool = False
    # The client, as the authorization server knows it. A client that was registered for this
    # login has a redirect URI, which later logins use again.
    client_id: str = ""
    client_secret: str | None = None
    # Unix time in seconds; 0 is never.
    client_secret_expires_at: float = 0
    auth_method: str | None = None
    redirect_uri: str | None = None
    # The token; "" before the first, and after one that was refused.
    access_token: str = ""
    token_type: str = "Bearer"
    # Unix time in seconds; None if the authorization server did not say.
    expires_at: float | None = None
    # When it is to be renewed, before it ends.
    renew_at: float | None = None
    refresh_token: str | None = None
    # What was asked for.
    scopes: list[str] = []
    # What was granted; None if the authorization server did not say: what was asked for.
    granted: list[str] | None = None
    # The private key in PEM that the tokens are bound to.
    dpop_key: str | None = None

    def __repr__(self) -> str:
        return f"<StoredLogin at {show(self.issuer)} for {show(self.server)}, {HIDDEN}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]

    @property
    def has_ended(self) -> bool:
        """Whether the token has ended, or will before a request arrives."""
        if self.renew_at is None:
            return self.expires_at is not None and time.time() >= self.expires_at - EARLY_S
        return time.time() >= self.renew_at

    @property
    def identity(self) -> ClientIdentity:
        """The client of the login, as it authenticates."""
        # Some servers register a secret for a client that has to send none.
        secret = None if self.auth_method == "none" else self.client_secret
        return ClientIdentity(self.client_id, client_secret=secret, method=self.auth_method)

    def with_token(self, token: IssuedToken) -> StoredLogin:
        """Return the login with a token that was just issued."""
        ends, now = token.expires_at, time.time()
        return replace(
            self,
            access_token=token.access_token,
            token_type=token.token_type,
            expires_at=ends,
            # Of a short life, half of it.
            renew_at=None if ends is None else ends - min(EARLY_S, (ends - now) / 2),
            # One that is not rotated stays valid.                       [RFC 6749, section 6]
            refresh_token=token.refresh_token or self.refresh_token,
            granted=self.granted if token.scopes is None else sorted(token.scopes),
        )

    def without_tokens(self) -> StoredLogin:
        """Return the registration alone."""
        return StoredLogin(
            server=self.server,
            issuer=self.issuer,
            resource=self.resource,
            is_legacy=self.is_legacy,
            client_id=self.client_id,
            client_secret=self.client_secret,
            client_secret_expires_at=self.client_secret_expires_at,
            auth_method=self.auth_method,
            redirect_uri=self.redirect_uri,
        )

    def encode(self) -> bytes:
        """Return the record for a storage."""
        return encode(self)

    @classmethod
    def decode(cls, data: bytes | None) -> StoredLogin | None:
        """Return a record of a storage; None if there is none, or none that can be read."""
        try:
            found = None if data is None else _decode(data)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return found if found is not None and found._is_usable else None

    @property
    def _is_usable(self) -> bool:
        """Whether everything can be sent where it belongs: in a line of a header, for most."""
        secret = self.client_secret or ""
        return (
            (not self.access_token or _is_token(self.access_token) is not None)
            and self.token_type in _TYPES
            and self.auth_method in _METHODS
            and (secret.isascii() and (not secret or secret.isprintable()))
        )


_decode: Final = Decoder(StoredLogin).decode


def server_key(url: str) -> str:
    """Return the key of the login at a server: its URL, without what does not name it."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    default = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


class KeyLocks:
    """Locks by key, between all event loops and threads of a process."""

    __slots__ = ("_guard", "_held")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: set[str] = set()

    def __repr__(self) -> str:
        return f"<KeyLocks, {len(self._held)} held>"

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        """Hold the lock of a key while the block runs."""
        for wait in backoff(_FIRST_WAIT_S, _LONGEST_WAIT_S):
            with self._guard:
                is_mine = key not in self._held
                self._held.add(key)
            if is_mine:
                break
            await asyncio.sleep(wait)
        try:
            yield
        finally:
            with self._guard:
                self._held.discard(key)


class MemoryTokens:
    """Logins in memory, until the process ends: the default of a client."""

    __slots__ = ("_locks", "_records")

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self._locks = KeyLocks()

    def __repr__(self) -> str:
        return f"<MemoryTokens, {len(self._records)} logins>"

    def load(self, key: str) -> bytes | None:
        """Return what is stored for a key, or None."""
        return self._records.get(key)

    def store(self, key: str, data: bytes) -> None:
        """Replace what is stored for a key."""
        self._records[key] = data

    def delete(self, key: str) -> None:
        """Remove what is stored for a key, if anything is."""
        self._records.pop(key, None)

    def lock(self, key: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of a key."""
        return self._locks.hold(key)

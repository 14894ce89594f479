"""Credentials of a client that no user has to approve, for one server.

The rules that live here, and only here:

* The first request has no credential. The challenge in its refusal tells which authorization
  server is asked, and for which scopes.                      [MCP 2026-07-28, authorization]
* An authorization server that the configuration names is the only one that is asked. Without
  one, the first that the server names is: if the server names another one later, nothing is sent
  to it.                                                       [SEC-20]
* Scopes are those of the configuration; without them those of the challenge, else all that the
  server lists, else none. A refusal for missing scopes adds those of its challenge, at most three
  times.                                                       [SEC-28]
* Requests that are refused at the same time wait for one token. A token that was refused as often
  as it was sent is followed by an error: a new one would be refused as well.
* A token is replaced before it ends; without a known end, when it is refused, which `RenewalLimit`
  bounds.
* Clients that share a storage share the token, and one of them at a time asks for another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from ....errors import AuthorizationFailed
from ....redaction import show
from ...challenge import Challenge, challenges_in
from ..flow.protected_server import ProtectedServer, find_server
from ..flow.token_endpoint import IssuedToken
from ..storage.token_store import EARLY_S, StoredLogin, server_key
from .renewal_limit import RenewalLimit

if TYPE_CHECKING:
    from ..flow.discovery import MetadataDiscovery
    from ..flow.dpop import ClientProofs
    from ..storage.token_store import TokenStorage

__all__ = ["GrantSession", "TokenSource"]

_MAX_STEP_UPS: Final = 3


class TokenSource(Protocol):
    """How a client obtains a token."""

    async def obtain(
        self,
        discovery: MetadataDiscovery,
        server: ProtectedServer,
        scopes: Collection[str],
        proofs: ClientProofs | None,
    ) -> IssuedToken:
        """Return a token for a server.

        Raises:
            AuthorizationFailed: the authorization server refused.
        """
        ...


class GrantSession:
    """The `HttpAuth` of a grant."""

    def __init__(
        self,
        source: TokenSource,
        discovery: MetadataDiscovery,
        *,
        issuer: str | None = None,
        on_issuer: Callable[[str], object] = str,
        scopes: Collection[str] = (),
        proofs: ClientProofs | None = None,
        has_own_key: bool = False,
        storage: TokenStorage | None = None,
        url: str = "",
        client_id: str = "",
        limit: RenewalLimit | None = None,
    ) -> None:
        self._source = source
        self._discovery = discovery
        self._issuer = issuer
        # Called with the authorization server that the credential is for from now on.
        self._on_issuer = on_issuer
        self._scopes = frozenset(scopes)
        self._proofs = proofs
        # Whether the caller gave the key of the proofs: a stored one does not replace it.
        self._has_own_key = has_own_key
        self._storage = storage
        # Beside the login of a user at the same server.
        self._key = f"{server_key(url)} {client_id}"
        self._url = url
        self._client_id = client_id
        self._is_loaded = storage is None
        # Whether the token was issued to this session, and not found in the storage.
        self._is_fresh = False
        self._server: ProtectedServer | None = None
        self._token: IssuedToken | None = None
        self._asked: frozenset[str] = frozenset()
        # Unix time in seconds.
        self._renew_at = inf
        self._sent = self._refused = self._step_ups = 0
        self._limit = RenewalLimit() if limit is None else limit
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return "<GrantSession>"

    def headers(self, method: str, url: str) -> bytes | None:
        """Return the credential for a request; b"" before the first challenge."""
        token = self._token
        if token is None:
            return b"" if self._server is None and self._is_loaded else None
        if time.time() >= self._renew_at:
            return None
        self._sent += 1
        line = f"authorization: {token.token_type} {token.access_token}\r\n"
        if self._proofs is not None:
            line += f"dpop: {self._proofs.proof(method, url, token.access_token)}\r\n"
        return line.encode("ascii")

    async def prepare(self, url: str) -> None:
        """Load a token, or replace one that has ended."""
        ended = self._token
        async with self._turn:
            if not self._is_loaded:
                self._is_loaded = True
                self._adopt(self._stored())
            elif self._token is not ended:
                pass  # replaced meanwhile
            elif self._server is not None:
                await self._obtain(self._server, self._asked)
            else:
                self._token = None  # a stored one: the next challenge tells where to ask

    async def refused(
        self, method: str, url: str, status: int, headers: list[tuple[bytes, bytes]], sent: bytes
    ) -> bool:
        """Obtain a token for a request that was refused; return True to send it again."""
        challenge = self._challenge(headers)
        async with self._turn:
            token = self._token
            if token is not None and f" {token.access_token}\r\n".encode() not in sent:
                return True  # replaced meanwhile
            if self._proofs is not None and token is not None and _asks_nonce(challenge):
                # `responded` has taken the nonce.
                return self._proofs.is_outdated(url, sent)
            if status == 403:
                return await self._step_up(challenge)
            if token is not None:
                self._refused += 1
                if self._is_fresh and self._refused >= self._sent:
                    raise AuthorizationFailed(
                        "the server refused a token that was just issued for it",
                        step="request",
                        error=None if challenge is None else challenge.error,
                        status=status,
                    )
            self._limit.count_token()
            server = await self._found(challenge)
            await self._obtain(server, self._wanted(challenge, server))
            return True

    def responded(self, url: str, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Take the nonce for the next request."""
        if self._proofs is not None:
            self._proofs.take_nonce(url, headers)

    def _challenge(self, headers: list[tuple[bytes, bytes]]) -> Challenge | None:
        found = {each.scheme: each for each in reversed(challenges_in(headers))}
        wanted, other = ("bearer", "dpop") if self._proofs is None else ("dpop", "bearer")
        if self._proofs is None and wanted not in found and other in found:
            raise AuthorizationFailed(
                "the server asks for proofs of possession: use dpop=True", step="request"
            )
        return found.get(wanted, found.get(other))

    async def _step_up(self, challenge: Challenge | None) -> bool:
        if challenge is None or challenge.error != "insufficient_scope" or self._server is None:
            return False
        wanted = self._asked | challenge.scopes
        if wanted == self._asked or self._step_ups >= _MAX_STEP_UPS:
            raise AuthorizationFailed(
                f"the server asks for the scopes {show(' '.join(sorted(challenge.scopes)))}, "
                "which its authorization server did not grant",
                step="request",
                error="insufficient_scope",
                status=403,
                scopes=wanted,
            )
        self._step_ups += 1
        await self._obtain(self._server, wanted)
        return True

    async def _found(self, challenge: Challenge | None) -> ProtectedServer:
        found = await find_server(self._discovery, challenge, self._issuer)
        self._issuer = found.endpoint.issuer
        self._on_issuer(self._issuer)
        self._server = found
        return found

    def _wanted(self, challenge: Challenge | None, server: ProtectedServer) -> frozenset[str]:
        if self._token is not None:
            return self._asked  # with what step-ups have added
        if self._scopes:
            return self._scopes
        named = frozenset[str]() if challenge is None else challenge.scopes
        return named or frozenset(server.scopes_supported)

    async def _obtain(self, server: ProtectedServer, scopes: frozenset[str]) -> None:
        if self._storage is None:
            self._take(await self._ask(server, scopes), scopes)
            return
        refused = self._token
        async with self._storage.lock(self._key):
            found = self._stored()
            if (
                found is not None
                and found.resource == server.resource
                and scopes <= frozenset(found.scopes)
                and (refused is None or found.access_token != refused.access_token)
                and not found.has_ended
                and self._adopt(found)
            ):
                return  # another client has asked meanwhile
            token = await self._ask(server, scopes)
            record = StoredLogin(
                server=self._url,
                issuer=server.endpoint.issuer,
                resource=server.resource,
                client_id=self._client_id,
                access_token=token.access_token,
                token_type=token.token_type,
                expires_at=token.expires_at,
                scopes=sorted(scopes),
                granted=None if token.scopes is None else sorted(token.scopes),
                dpop_key=None if self._proofs is None else self._proofs.key.pem.decode(),
            )
            self._storage.store(self._key, record.encode())
        self._take(token, scopes)

    async def _ask(self, server: ProtectedServer, scopes: frozenset[str]) -> IssuedToken:
        return await self._source.obtain(self._discovery, server, sorted(scopes), self._proofs)

    def _take(self, token: IssuedToken, scopes: frozenset[str], *, is_fresh: bool = True) -> None:
        self._token = token
        self._is_fresh = is_fresh
        self._renew_at = inf if token.expires_at is None else renewal(token.expires_at)
        self._asked = scopes
        self._sent = self._refused = 0

    def _stored(self) -> StoredLogin | None:
        """Return the record of the storage, if it is of the authorization server."""
        assert self._storage is not None
        found = StoredLogin.decode(self._storage.load(self._key))
        is_other = found is not None and self._issuer not in (None, found.issuer)
        return None if is_other else found

    def _adopt(self, record: StoredLogin | None) -> bool:
        """Use a stored token, if its key is ours; return True if it is."""
        if record is None or not record.access_token:
            return False
        if (record.dpop_key is None) != (self._proofs is None):
            return False
        if self._proofs is not None and record.dpop_key is not None:
            from ...jose import SigningKey

            stored = SigningKey.from_pem(record.dpop_key)
            if stored.thumbprint != self._proofs.key.thumbprint:
                if self._has_own_key:
                    return False
                self._proofs.key = stored
        self._take(
            IssuedToken(
                access_token=record.access_token,
                token_type=record.token_type,
                expires_at=record.expires_at,
            ),
            frozenset(record.scopes),
            is_fresh=False,
        )
        self._issuer = record.issuer
        return True


def renewal(expires_at: float) -> float:
    """Return when a token that was just issued is to be replaced, as Unix time in seconds."""
    left = expires_at - time.time()
    return expires_at - min(EARLY_S, left / 2)


def _asks_nonce(challenge: Challenge | None) -> bool:
    return challenge is not None and challenge.error == "use_dpop_nonce"

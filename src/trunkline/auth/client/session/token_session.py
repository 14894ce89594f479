"""The token of a client at one server: when it is sent, renewed, and obtained from a source.

The rules that live here, and only here:

* The first request has the token that was stored, or none. The challenge in a refusal tells which
  authorization server is asked, and for which scopes.         [MCP 2026-07-28, authorization]
* A token that is about to end is renewed before the next request. One that was refused is
  refreshed once it is known that the server still names its authorization server. One renewal at
  a time, also between processes: a token that another has obtained is used.  [RFC 6749, section 6]
* A token of an authorization server that the server no longer names is not used. [SEC-20]
* A refusal for missing scopes asks for those of its challenge beside all that were asked for
  before. What was asked for once is not asked for again.      [MCP 2026-07-28, step-up; SEC-28]
* At most `MAX_IN_A_ROW` logins of a user without a request that was accepted: a server cannot keep
  a user busy. A token that was refreshed and then refused at once is not refreshed again. One that
  was refused as often as it was sent is followed by an error: a new one would be refused as well.
* A renewal that was sent is not abandoned: a refresh token that is rotated can be used once, and
  what came for it is stored, even if the client is closed meanwhile.
* Requests that meet a step of the authorization wait for it, and share its failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ....errors import AuthorizationFailed
from ....redaction import show
from ...challenge import Challenge, challenges_in
from ..storage.token_store import MemoryTokens, StoredLogin, TokenStorage
from .renewal_limit import RenewalLimit
from .token_source import OFFLINE, TokenRequest, TokenSource

if TYPE_CHECKING:
    from ..flow.discovery import DiscoveredServer
    from ..flow.dpop import ClientProofs

__all__ = ["TokenSession"]

T = TypeVar("T")

MAX_IN_A_ROW: Final = 3
# Seconds that a client which is closed waits for a renewal that was sent.
_CLOSE_WAIT_S: Final = 5.0


class TokenSession:
    """The `HttpAuth` of all sources."""

    __slots__ = (
        *("_discovery", "_failure", "_failures", "_in_a_row", "_is_busy", "_is_loaded"),
        *("_is_untried", "_key", "_limit", "_login", "_proofs", "_refused", "_sent"),
        *("_source", "_step_ups", "_storage", "_tried", "_turn"),
    )

    def __init__(
        self,
        source: TokenSource,
        *,
        storage: TokenStorage | None = None,
        limit: RenewalLimit | None = None,
    ) -> None:
        self._source = source
        self._discovery = source.discovery
        # The token of a grant is kept beside the login of a user.
        self._key = source.server if source.logins else f"{source.server} {source.client_id}"
        self._storage = MemoryTokens() if storage is None else storage
        self._limit = RenewalLimit() if limit is None else limit
        self._login: StoredLogin | None = None
        self._is_loaded = storage is None
        self._proofs: ClientProofs | None = None
        self._turn = asyncio.Lock()
        # True while a token is obtained: requests wait for it.
        self._is_busy = False
        # How many steps have failed, and the last failure: those that waited share it.
        self._failures = 0
        self._failure: AuthorizationFailed | None = None
        # True of a token that was renewed and with which no request was accepted yet.
        self._is_untried = False
        # Requests with the current token, and how many of them were refused.
        self._sent = self._refused = 0
        # Tokens since a request was accepted, those for scopes, and what was asked for.
        self._in_a_row = self._step_ups = 0
        self._tried: set[frozenset[str]] = set()

    def __repr__(self) -> str:
        return f"<TokenSession at {show(self._key)}>"

    # -- the contract of the transport -------------------------------------------------------

    def headers(self, method: str, url: str) -> bytes | None:
        """Return the credential for a request, b"" without one, or None if it has to wait."""
        if not self._is_loaded or self._is_busy:
            return None
        login = self._login
        if login is None or not login.access_token:
            return b""
        if self._is_due(login):
            return None
        self._sent += 1
        line = f"authorization: {login.token_type} {login.access_token}\r\n"
        if self._proofs is not None:
            line += f"dpop: {self._proofs.proof(method, url, login.access_token)}\r\n"
        return line.encode("ascii")

    async def prepare(self, url: str) -> None:
        """Load the token that was stored, wait for one that is obtained, or renew one."""
        failures = self._failures
        async with self._turn:
            if not self._is_loaded:
                self._use(await self._load())
                self._is_loaded = True
            login = self._login
            if login is not None and self._is_due(login):
                async with self._step(failures):
                    await self._renew(login)
            elif login is None or not login.access_token:
                self._share_failure(failures)

    async def refused(
        self, method: str, url: str, status: int, headers: list[tuple[bytes, bytes]], sent: bytes
    ) -> bool:
        """Obtain a token for a request that was refused; return True to send it again."""
        challenge = self._challenge(headers)
        failures = self._failures
        async with self._turn:
            login = self._login
            token = "" if login is None else login.access_token
            if token and f" {token}\r\n".encode() not in sent:
                return True  # replaced meanwhile
            if self._proofs is not None and token and _error(challenge) == "use_dpop_nonce":
                # `responded` has taken the nonce.
                return self._proofs.is_outdated(url, sent)
            if status == 403 and _error(challenge) != "insufficient_scope":
                return False
            # A token that the server repeats is not a scope.
            named = frozenset[str]() if challenge is None else challenge.scopes - {token}
            if status == 403 and login is not None:
                named |= frozenset(login.scopes)  # those of a login that has all
            async with self._step(failures, status, named - {OFFLINE}):
                if status == 403 and challenge is not None:
                    await self._step_up(challenge, challenge.scopes - {token})
                else:
                    self._check_refusals(challenge)
                    await self._reauthorize(challenge)
            return True

    def responded(self, url: str, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Take the nonce for the next request, and note that a request was accepted."""
        if self._proofs is not None:
            self._proofs.take_nonce(url, headers)
        if status not in (401, 403):
            self._in_a_row = 0
            self._is_untried = False

    # -- refusals ----------------------------------------------------------------------------

    @asynccontextmanager
    async def _step(
        self, failures: int, status: int | None = None, scopes: Collection[str] = ()
    ) -> AsyncIterator[None]:
        """Let requests wait; `failures` is how many there were when this one began to wait.

        `status` and `scopes` are those of the refusal, for an error.
        """
        self._share_failure(failures)
        self._is_busy = True
        try:
            yield
        except AuthorizationFailed as error:
            error.status, error.scopes = status, frozenset(scopes)
            self._failures += 1
            self._failure = _copy_of(error)
            raise
        finally:
            self._is_busy = False

    def _share_failure(self, failures: int) -> None:
        """Raise the failure of a step that was waited for."""
        if self._failures != failures and (failure := self._failure) is not None:
            raise _copy_of(failure)

    def _challenge(self, headers: list[tuple[bytes, bytes]]) -> Challenge | None:
        found = {each.scheme: each for each in reversed(challenges_in(headers))}
        wants_proofs = self._proofs is not None or self._source.wants_proofs
        wanted, other = ("dpop", "bearer") if wants_proofs else ("bearer", "dpop")
        return found.get(wanted, found.get(other))

    def _check_refusals(self, challenge: Challenge | None) -> None:
        if self._login is not None and self._login.access_token:
            self._refused += 1
        if self._sent and self._refused >= self._sent and self._in_a_row:
            raise AuthorizationFailed(
                "the server refused a token that was just issued for it: the audience that it "
                "expects may not be the URL that clients use",
                step="request",
                error=_error(challenge),
            )

    def _check_row(self, challenge: Challenge | None) -> None:
        if self._source.logins is not None and self._in_a_row >= MAX_IN_A_ROW:
            raise AuthorizationFailed(
                f"{MAX_IN_A_ROW} logins in a row brought no token that the server accepts",
                step="scope" if _error(challenge) == "insufficient_scope" else "request",
                error=_error(challenge),
            )

    async def _step_up(self, challenge: Challenge, scopes: frozenset[str]) -> None:
        login = self._login
        asked = frozenset[str]() if login is None else frozenset(login.scopes)
        wanted = asked | scopes
        is_spent = self._step_ups >= self._source.max_step_ups
        if wanted == asked or wanted in self._tried or is_spent:
            raise AuthorizationFailed(
                f"the server asks for the scopes {show(' '.join(sorted(scopes)))}, "
                "which its authorization server did not grant",
                step="scope",
                error="insufficient_scope",
            )
        self._source.check(challenge, scopes)
        self._check_row(challenge)
        self._step_ups += 1
        server = await self._discovery.server(challenge)
        self._drop_foreign(server)
        await self._obtain(server, challenge, wanted)

    async def _reauthorize(self, challenge: Challenge | None) -> None:
        """Refresh a token that was refused, or obtain one."""
        server = await self._discovery.server(challenge)
        login = self._login
        asked = frozenset[str]()
        if login is not None and self._source.logins is None:
            asked = frozenset(login.scopes)  # with what step-ups have added
        if await self._use_newer(login, server, asked):
            return
        self._drop_foreign(server)
        login = self._login
        if login is not None and login.refresh_token is not None and not self._is_untried:
            self._limit.count_token()
            if await self._renew(login):
                return
        self._tried.clear()
        await self._obtain(server, challenge, asked)

    def _drop_foreign(self, server: DiscoveredServer) -> None:
        """Forget a login of another authorization server, or of another client."""
        if self._login is not None and not self._source.is_of(self._login, server):
            self._use(None)

    # -- storage -----------------------------------------------------------------------------

    async def _load(self, scopes: frozenset[str] = frozenset()) -> StoredLogin | None:
        found = StoredLogin.decode(await asyncio.to_thread(self._storage.load, self._key))
        # A record of another server would be a fault of the storage.
        is_ours = found is not None and found.server == self._source.server
        return found if found and is_ours and self._source.accepts(found, scopes) else None

    async def _use_newer(
        self, before: StoredLogin | None, server: DiscoveredServer, scopes: frozenset[str]
    ) -> bool:
        """Use a token that another client has obtained; return False if there is none."""
        stored = await self._load(scopes)
        if stored is None or not stored.access_token or not self._source.is_of(stored, server):
            return False
        if before is not None and stored.access_token == before.access_token:
            return False
        self._use(stored)
        return True

    def _use(self, login: StoredLogin | None) -> None:
        """Use a login from now on."""
        self._login = login
        self._is_untried = False
        self._sent = self._refused = 0
        if login is not None and not login.access_token:
            return
        pem = None if login is None else login.dpop_key
        if pem is None:
            self._proofs = None
        elif self._proofs is None or self._proofs.key.pem.decode("ascii") != pem:
            self._proofs = _proofs_of(pem)

    async def _keep(self, login: StoredLogin) -> None:
        self._use(login)
        await asyncio.to_thread(self._storage.store, self._key, login.encode())

    # -- tokens ------------------------------------------------------------------------------

    def _is_due(self, login: StoredLogin) -> bool:
        return bool(login.access_token) and login.has_ended and self._source.can_renew(login)

    async def _renew(self, login: StoredLogin) -> bool:
        """Renew a token; return False if another has to be obtained."""
        async with self._storage.lock(self._key):
            stored = await self._load(frozenset(login.scopes))
            if stored is not None and stored.issuer != login.issuer:
                stored = None
            if stored is None and self._source.logins is not None:
                self._use(None)  # logged out meanwhile
                return False
            if stored is not None and stored.access_token != login.access_token:
                self._use(stored)  # another has renewed it
                return bool(stored.access_token)
            request = await self._source.request(login, self._proofs)
            return await _to_its_end(self._exchange(request))

    async def _exchange(self, request: TokenRequest) -> bool:
        login = await self._source.renew(request)
        await self._keep(login)
        self._is_untried = True
        return bool(login.access_token)

    async def _obtain(
        self, server: DiscoveredServer, challenge: Challenge | None, scopes: frozenset[str]
    ) -> None:
        """Obtain a token; `scopes` are those to ask for, none for those of the challenge."""
        source, before = self._source, self._login
        source.check(challenge, frozenset())
        self._check_row(challenge)
        logins = source.logins
        # The storage is not locked while a user is asked.
        async with (self._storage.lock if logins is None else logins.hold)(self._key):
            if await self._use_newer(before, server, scopes):
                return
            request = await source.plan(server, challenge, scopes, self._proofs)
            if logins is None:
                self._limit.count_token()
            else:
                self._limit.count_login()
            self._in_a_row += 1
            try:
                login = await source.obtain(request, before)
            except AuthorizationFailed as error:
                if error.error is not None:  # the user or the authorization server refused
                    self._tried.add(frozenset(request.login.scopes))
                raise
            self._tried.add(frozenset(login.scopes))
            async with nullcontext() if logins is None else self._storage.lock(self._key):
                self._proofs = request.proofs
                await self._keep(login)


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Run something that is not to be cancelled half-way, for a few seconds."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,), timeout=_CLOSE_WAIT_S)
        if task.done() and not task.cancelled():
            task.exception()  # the one that waited is gone
        raise
    finally:
        task.cancel()


def _copy_of(error: AuthorizationFailed) -> AuthorizationFailed:
    """Return the same failure, for another request."""
    return AuthorizationFailed(
        error.reason,
        step=error.step,
        error=error.error,
        status=error.status,
        scopes=error.scopes,
    )


def _proofs_of(pem: str) -> ClientProofs:
    # Imported here: it needs the extra `auth`.
    from ...jose import SigningKey
    from ..flow.dpop import ClientProofs

    return ClientProofs(SigningKey.from_pem(pem))


def _error(challenge: Challenge | None) -> str | None:
    return None if challenge is None else challenge.error

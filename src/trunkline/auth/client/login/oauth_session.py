"""The login of a user at one server: its token, when it is renewed, and when the user is asked.

The rules that live here, and only here:

* The first request has the token that was kept, or none. The challenge in a refusal begins a
  login.                                                       [MCP 2026-07-28, authorization]
* A token that is about to end is refreshed before the next request; one that was refused is
  refreshed once it is known that the server still names its authorization server. One refresh at a
  time, also between processes: a token that another has refreshed is used.  [RFC 6749, section 6]
* If the server names another authorization server, the login begins from nothing, registration
  included.                                                                  [SEC-20]
* Scopes are those of the configuration, else of the challenge, else all that the server lists,
  else none. `offline_access` is added to others if the authorization server lists it.
                                                       [MCP 2026-07-28, scope selection]
* A refusal for missing scopes asks for those of its challenge beside all that were asked for
  before. What was asked for once is not asked for again.      [MCP 2026-07-28, step-up; SEC-28]
* At most `MAX_IN_A_ROW` logins without a request that was accepted, and `MAX_STEP_UPS` for scopes
  in all: a server cannot keep a user busy. A token that was refreshed and then refused at once is
  not refreshed again: the user is asked.
* A refresh that was sent is not abandoned: a refresh token that is rotated can be used once, and
  what came for it is kept, even if the client is closed meanwhile.
* Requests that meet a login wait for it, and share its failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ....errors import AuthorizationFailed
from ....redaction import show
from ...challenge import Challenge, challenges_in
from ..flow.client_authentication import ClientIdentity
from ..flow.registration import RegisteredClient, register
from ..flow.token_endpoint import TokenEndpoint
from ..session.renewal_limit import RenewalLimit
from ..storage.token_store import KeyLocks, StoredLogin, TokenStorage, server_key
from .authorization_code import AuthorizationRequest, RedirectReceiver, check_code_flow

if TYPE_CHECKING:
    from ...jose import SigningKey
    from ...metadata import AuthorizationServerMetadata
    from ..flow.discovery import DiscoveredServer, MetadataDiscovery
    from ..flow.dpop import ClientProofs

__all__ = ["LoginSettings", "OAuthSession"]

T = TypeVar("T")

MAX_IN_A_ROW: Final = 3
MAX_STEP_UPS: Final = 16
_OFFLINE: Final = "offline_access"
# Seconds that a client which is closed waits for a refresh that was sent.
_CLOSE_WAIT_S: Final = 5.0
# Errors of a token endpoint that say nothing of the refresh token.
_PASSING_ERRORS: Final = ("server_error", "temporarily_unavailable", "slow_down")


class LoginSettings(Struct, frozen=True, kw_only=True):
    """What the caller has configured; see `OAuth`."""

    scopes: frozenset[str] = frozenset()
    # A client that was registered by hand, and its authorization server.
    client: ClientIdentity | None = None
    issuer: str | None = None
    # The client id metadata document, and the client that it describes.
    document: ClientIdentity | None = None
    client_name: str = "trunkline"
    # Returns how the user is reached.
    receiver: Callable[[], RedirectReceiver] = RedirectReceiver
    storage: TokenStorage
    # None if the server decides.
    dpop: bool | SigningKey | None = None
    # Whether there is a user to ask.
    is_interactive: bool = True
    # Seconds for a login.
    timeout: float = 300.0
    # One login at a time for a server, between the clients of a process.
    logins: KeyLocks
    # The authorization servers that a client without `issuer` was used with, by server.
    issuers: dict[str, str] = {}
    # How often a server has made the client obtain tokens.
    limits: dict[str, RenewalLimit] = {}

    def __repr__(self) -> str:
        return "<LoginSettings>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


class OAuthSession:
    """The `HttpAuth` of a login."""

    __slots__ = (
        *("_discovery", "_failure", "_failures", "_in_a_row", "_is_busy", "_is_loaded"),
        *("_is_untried", "_key", "_limit", "_login", "_proofs", "_refused", "_sent", "_settings"),
        *("_step_ups", "_tried", "_turn"),
    )

    def __init__(self, url: str, settings: LoginSettings, discovery: MetadataDiscovery) -> None:
        self._key = server_key(url)
        self._settings = settings
        self._limit = settings.limits.setdefault(self._key, RenewalLimit())
        self._discovery = discovery
        self._login: StoredLogin | None = None
        self._is_loaded = False
        self._proofs: ClientProofs | None = None
        self._turn = asyncio.Lock()
        # True while a token is obtained: requests wait for it.
        self._is_busy = False
        # How many steps have failed, and the last failure: those that waited share it.
        self._failures = 0
        self._failure: AuthorizationFailed | None = None
        # True of a token that was refreshed and with which no request was accepted yet.
        self._is_untried = False
        # Requests with the current token, and how many of them were refused.
        self._sent = self._refused = 0
        # Logins since a request was accepted, those for scopes, and what was asked for.
        self._in_a_row = self._step_ups = 0
        self._tried: set[frozenset[str]] = set()

    def __repr__(self) -> str:
        return f"<OAuthSession at {show(self._key)}>"

    # -- the contract of the transport -------------------------------------------------------

    def headers(self, method: str, url: str) -> bytes | None:
        """Return the credential for a request, b"" without one, or None if it has to wait."""
        if not self._is_loaded or self._is_busy:
            return None
        login = self._login
        if login is None or not login.access_token:
            return b""
        if login.has_ended and login.refresh_token is not None:
            return None
        self._sent += 1
        line = f"authorization: {login.token_type} {login.access_token}\r\n"
        if self._proofs is not None:
            line += f"dpop: {self._proofs.proof(method, url, login.access_token)}\r\n"
        return line.encode("ascii")

    async def prepare(self, url: str) -> None:
        """Load the login that was kept, wait for one that is in progress, or refresh its token."""
        failures = self._failures
        async with self._turn:
            if not self._is_loaded:
                self._use(await self._load())
                self._is_loaded = True
            login = self._login
            if login is not None and login.has_ended and login.refresh_token is not None:
                async with self._step(failures):
                    await self._refresh(login)
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
            async with self._step(failures, status, named - {_OFFLINE}):
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
        """Raise the failure of a login that was waited for."""
        if self._failures != failures and (failure := self._failure) is not None:
            raise _copy_of(failure)

    def _challenge(self, headers: list[tuple[bytes, bytes]]) -> Challenge | None:
        found = {each.scheme: each for each in reversed(challenges_in(headers))}
        wants_proofs = self._proofs is not None or bool(self._settings.dpop)
        wanted, other = ("dpop", "bearer") if wants_proofs else ("bearer", "dpop")
        return found.get(wanted, found.get(other))

    def _check_refusals(self, challenge: Challenge | None) -> None:
        if self._login is not None and self._login.access_token:
            self._refused += 1
        if self._sent and self._refused >= self._sent and self._in_a_row:
            raise AuthorizationFailed(
                "the server refused a token that was just issued for it",
                step="request",
                error=_error(challenge),
            )

    def _check_row(self, challenge: Challenge | None) -> None:
        if self._in_a_row >= MAX_IN_A_ROW:
            raise AuthorizationFailed(
                f"{MAX_IN_A_ROW} logins in a row brought no token that the server accepts",
                step="scope" if _error(challenge) == "insufficient_scope" else "request",
                error=_error(challenge),
            )

    async def _step_up(self, challenge: Challenge, scopes: frozenset[str]) -> None:
        login = self._login
        asked = frozenset[str]() if login is None else frozenset(login.scopes)
        wanted = asked | scopes
        names = show(" ".join(sorted(scopes)))
        if wanted == asked or wanted in self._tried or self._step_ups >= MAX_STEP_UPS:
            raise AuthorizationFailed(
                f"the server asks for the scopes {names}, which a login did not bring",
                step="scope",
                error="insufficient_scope",
            )
        if not self._settings.is_interactive:
            raise AuthorizationFailed(
                f"the server asks for the scopes {names}, and the login has others",
                step="scope",
                error="insufficient_scope",
            )
        self._check_row(challenge)
        self._step_ups += 1
        server = await self._discovery.server(challenge)
        self._drop_foreign(server)
        await self._log_in(server, challenge, wanted)

    async def _reauthorize(self, challenge: Challenge | None) -> None:
        """Refresh a token that was refused, or ask the user."""
        server = await self._discovery.server(challenge)
        before = self._login
        stored = await self._load()
        if (
            stored is not None
            and stored.access_token
            and (before is None or stored.access_token != before.access_token)
            and self._is_of(stored, server)
        ):
            self._use(stored)  # another process has logged in, or refreshed
            return
        self._drop_foreign(server)
        login = self._login
        if login is not None and login.refresh_token is not None and not self._is_untried:
            self._limit.count_token()
            if await self._refresh(login):
                return
        self._tried.clear()
        await self._log_in(server, challenge, frozenset())

    def _drop_foreign(self, server: DiscoveredServer) -> None:
        """Forget a login of another authorization server, or of another client."""
        if self._login is not None and not self._is_of(self._login, server):
            self._use(None)

    def _is_of(self, login: StoredLogin, server: DiscoveredServer) -> bool:
        settings = self._settings
        if settings.client is not None and login.client_id != settings.client.client_id:
            return False
        if settings.issuer is not None and login.issuer != settings.issuer:
            return False
        return login.issuer in server.issuers and login.is_legacy == server.is_legacy

    # -- storage -----------------------------------------------------------------------------

    async def _load(self) -> StoredLogin | None:
        found = await asyncio.to_thread(self._settings.storage.load, self._key)
        login = StoredLogin.decode(found)
        # A key of another server would be a fault of the storage.
        return login if login is not None and login.server == self._key else None

    def _use(self, login: StoredLogin | None) -> None:
        """Use a login from now on."""
        self._login = login
        self._is_untried = False
        self._sent = self._refused = 0
        if login is not None and login.dpop_key is not None and login.access_token:
            self._proofs = _proofs_of(login.dpop_key)
        elif login is None or login.access_token:
            self._proofs = None

    async def _keep(self, login: StoredLogin) -> None:
        self._use(login)
        await asyncio.to_thread(self._settings.storage.store, self._key, login.encode())

    # -- refreshing --------------------------------------------------------------------------

    async def _refresh(self, login: StoredLogin) -> bool:
        """Refresh a token; return False if the user has to be asked."""
        async with self._settings.storage.lock(self._key):
            stored = await self._load()
            if stored is None or stored.issuer != login.issuer:
                self._use(None)  # logged out meanwhile
                return False
            if stored.access_token != login.access_token:
                self._use(stored)  # another has refreshed it
                return bool(stored.access_token)
            server = await self._discovery.issuer(login.issuer, is_legacy=login.is_legacy)
            form = {
                "grant_type": "refresh_token",
                "refresh_token": login.refresh_token or "",
                "resource": login.resource,
            }
            return await _to_its_end(self._exchange(login, self._endpoint(server), form))

    async def _exchange(
        self, login: StoredLogin, endpoint: TokenEndpoint, form: dict[str, str]
    ) -> bool:
        try:
            token = await endpoint.request(form, self._identity(login), self._proofs)
        except AuthorizationFailed as error:
            if error.error is None or error.error in _PASSING_ERRORS:
                raise
            kept = login.without_tokens()
            if error.error == "invalid_client":
                kept = replace(kept, client_id="", client_secret=None, redirect_uri=None)
            await self._keep(kept)
            return False
        await self._keep(login.with_token(token))
        self._is_untried = True
        return True

    def _endpoint(self, server: AuthorizationServerMetadata) -> TokenEndpoint:
        url = server.token_endpoint
        if url is None:
            raise AuthorizationFailed(f"{show(server.issuer)} issues no tokens", step="discovery")
        return TokenEndpoint(
            url=url,
            issuer=server.issuer,
            auth_methods=server.token_endpoint_auth_methods_supported,
            allow_private=self._discovery.is_private(),
            context=self._discovery.context_for(url),
        )

    def _identity(self, login: StoredLogin) -> ClientIdentity:
        for known in (self._settings.client, self._settings.document):
            if known is not None and known.client_id == login.client_id:
                return known
        return login.identity

    # -- logging in --------------------------------------------------------------------------

    async def _log_in(
        self, server: DiscoveredServer, challenge: Challenge | None, scopes: frozenset[str]
    ) -> None:
        """Ask the user; `scopes` are those to ask for, none for those of the challenge."""
        if not self._settings.is_interactive:
            raise AuthorizationFailed(
                "a login of the user is needed", step="authorization", error=_error(challenge)
            )
        self._check_row(challenge)
        before = self._login
        async with self._settings.logins.hold(self._key):
            stored = await self._load()
            if stored is not None and _is_newer(stored, before) and self._is_of(stored, server):
                self._use(stored)  # another client of this process has logged in
                return
            issuer = self._issuer(server)
            is_legacy = server.is_legacy and issuer in server.issuers
            metadata = await self._discovery.issuer(issuer, is_legacy=is_legacy)
            check_code_flow(metadata)
            wanted = self._scopes(server, metadata, challenge, scopes)
            proofs = self._proofs_for(server, metadata, challenge)
            empty = StoredLogin(
                server=self._key,
                issuer=issuer,
                resource=server.resource,
                is_legacy=is_legacy,
                scopes=sorted(wanted),
                dpop_key=None if proofs is None else proofs.key.pem.decode("ascii"),
            )
            self._limit.count_login()
            self._in_a_row += 1
            try:
                async with asyncio.timeout(self._settings.timeout):
                    login = await self._ask_user(empty, metadata, proofs)
            except AuthorizationFailed as error:
                if error.error is not None:  # the user or the authorization server refused
                    self._tried.add(wanted)
                raise
            except TimeoutError:
                raise AuthorizationFailed(
                    f"no response of the user within {self._settings.timeout:g} s",
                    step="authorization",
                ) from None
            self._tried.add(wanted)
            async with self._settings.storage.lock(self._key):
                await self._keep(login)

    async def _ask_user(
        self,
        empty: StoredLogin,
        metadata: AuthorizationServerMetadata,
        proofs: ClientProofs | None,
    ) -> StoredLogin:
        known = self._registration(empty)
        receiver = self._settings.receiver()
        try:
            redirect_uri = await receiver.open(None if known is None else known.redirect_uri)
            if known is not None and known.redirect_uri != redirect_uri:
                known = None  # an authorization server compares it with the registered one
            login = await self._with_client(empty, known, metadata, redirect_uri, proofs)
            request = AuthorizationRequest(
                metadata,
                login.client_id,
                redirect_uri=redirect_uri,
                resource=login.resource,
                scopes=login.scopes,
                proofs=proofs,
            )
            identity = self._identity(login)
            token = await request.run(receiver, self._endpoint(metadata), identity, proofs)
        finally:
            await receiver.close()
        return login.with_token(token)

    def _registration(self, empty: StoredLogin) -> StoredLogin | None:
        """Return an earlier registration at the same authorization server."""
        login = self._login
        if login is None or login.issuer != empty.issuer or login.redirect_uri is None:
            return None
        known = RegisteredClient(
            client_id=login.client_id,
            client_secret=login.client_secret,
            client_secret_expires_at=login.client_secret_expires_at,
        )
        return None if known.has_ended or not known.client_id else login

    async def _with_client(
        self,
        empty: StoredLogin,
        known: StoredLogin | None,
        metadata: AuthorizationServerMetadata,
        redirect_uri: str,
        proofs: ClientProofs | None,
    ) -> StoredLogin:
        """Return the login with the client that the authorization server is told of."""
        settings = self._settings
        if settings.client is not None:
            return replace(empty, client_id=settings.client.client_id)
        if settings.document is not None and metadata.client_id_metadata_document_supported:
            return replace(empty, client_id=settings.document.client_id)
        if known is not None:
            return replace(
                empty,
                client_id=known.client_id,
                client_secret=known.client_secret,
                client_secret_expires_at=known.client_secret_expires_at,
                auth_method=known.auth_method,
                redirect_uri=known.redirect_uri,
            )
        made = await register(
            metadata,
            client_name=settings.client_name,
            redirect_uri=redirect_uri,
            is_bound=proofs is not None,
            allow_private=self._discovery.is_private(),
            context=self._discovery.context_for(metadata.registration_endpoint or ""),
        )
        return replace(
            empty,
            client_id=made.client_id,
            client_secret=made.client_secret,
            client_secret_expires_at=made.client_secret_expires_at or 0,
            auth_method=made.auth_method,
            redirect_uri=redirect_uri,
        )

    def _issuer(self, server: DiscoveredServer) -> str:
        """Return the authorization server to ask."""
        settings = self._settings
        bound = settings.issuer
        if bound is None and settings.client is not None:
            bound = settings.issuers.setdefault(self._key, server.issuers[0])
        if bound is None:
            return server.issuers[0]
        if bound not in server.issuers and not server.is_legacy:
            raise AuthorizationFailed(
                f"the server names the authorization server {show(server.issuers[0])}, and the "
                f"client is registered at {show(bound)}: nothing was sent",
                step="registration",
            )
        return bound

    def _scopes(
        self,
        server: DiscoveredServer,
        metadata: AuthorizationServerMetadata,
        challenge: Challenge | None,
        wanted: frozenset[str],
    ) -> frozenset[str]:
        named = frozenset[str]() if challenge is None else challenge.scopes
        found = (wanted or self._settings.scopes or named or frozenset(server.scopes_supported)) - {
            _OFFLINE
        }
        is_listed = _OFFLINE in (metadata.scopes_supported or ())
        return found | {_OFFLINE} if found and is_listed else found

    def _proofs_for(
        self,
        server: DiscoveredServer,
        metadata: AuthorizationServerMetadata,
        challenge: Challenge | None,
    ) -> ClientProofs | None:
        """Return the key that tokens are bound to, if they are."""
        given = self._settings.dpop
        needs = server.needs_dpop or (challenge is not None and challenge.scheme == "dpop")
        if given is False and needs:
            raise AuthorizationFailed(
                "the server asks for proofs of possession, and dpop=False", step="request"
            )
        if given is None and not needs:
            return None
        # Imported here: it needs the extra `auth`.
        from ...jose import SigningKey
        from ..flow.dpop import ClientProofs

        if isinstance(given, SigningKey):
            return ClientProofs(given)
        if self._proofs is not None:
            return self._proofs
        listed = metadata.dpop_signing_alg_values_supported or ["ES256"]
        algorithm = next((each for each in ("ES256", "EdDSA", "RS256") if each in listed), "ES256")
        return ClientProofs(SigningKey.generate(algorithm))


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


def _is_newer(stored: StoredLogin, before: StoredLogin | None) -> bool:
    return bool(stored.access_token) and (
        before is None or stored.access_token != before.access_token
    )


def _proofs_of(pem: str) -> ClientProofs:
    from ...jose import SigningKey
    from ..flow.dpop import ClientProofs

    return ClientProofs(SigningKey.from_pem(pem))


def _error(challenge: Challenge | None) -> str | None:
    return None if challenge is None else challenge.error

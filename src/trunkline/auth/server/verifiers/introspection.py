"""Opaque access tokens, verified by asking the authorization server.

    Introspection(
        issuer="https://login.example.org",
        client_id="files",
        client_secret=SECRET,
        audience="https://mcp.example.org/mcp",
    )

The rules that live here, and only here:

* A token is valid if the answer says `active: true`, and nothing else.   [RFC 7662, section 2.2]
* `aud` names this server, unless the verifier was made with `audience=None`; an answer about
  another issuer is refused; the other claims are checked as `claims` says.
* Answers are cached by the hash of their token: a valid one until it expires, and not longer than
  `max_age`; one that is not valid for a short time, in a table of its own, so that a flood of
  wrong tokens displaces no valid one. Both tables are bounded.           [RFC 7662, section 4]
* One request is sent per token at a time, and a bounded number in all, of which each client has its
  share. Beyond that a verification waits for its turn, as `fair_slots` says, and is unavailable
  only if the queue is full, or its turn does not come within the timeout of a request.
* A failure of the authorization server is not a refusal of the token. A token whose answer was one
  is not asked about for a while. After `MAX_FAILURES` in a row no token is: an outage is not made
  worse (circuit breaker). Answers about one token count once, so that a token that provokes a
  failure does not keep out others; a request without an answer counts in any case.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import quote_plus, urlencode

from ....accounts.client_key import client_key
from ....concurrency.backoff import backoff
from ....errors import TransportError
from ....redaction import HIDDEN
from ...jose import parse_object
from ...principal import Principal
from .claims import (
    CLIENT_CLAIMS,
    LEEWAY_S,
    check_audience,
    check_binding,
    check_tenant,
    check_times,
    principal_of,
)
from .credential import InvalidCredential, VerifierUnavailable
from .fair_slots import FairSlots, QueueFull

if TYPE_CHECKING:
    import ssl

    from .credential import Credential

__all__ = ["Introspection"]

_T = TypeVar("_T")

_log: Final = logging.getLogger("trunkline.auth")

MAX_AGE_S: Final = 60.0
# Long enough to absorb the retries of a client, short enough for a token that becomes valid.
INVALID_MAX_AGE_S: Final = 5.0
MAX_CACHED: Final = 10_000
MAX_IN_FLIGHT: Final = 64
# Verifications that wait for one of them: each is a task of some kilobytes.
MAX_WAITING: Final = 512
TIMEOUT_S: Final = 5.0
# In a row, before no token is asked about for a while.
MAX_FAILURES: Final = 5
MAX_RESPONSE_BYTES: Final = 64 * 1024
_MAX_TOKEN_CHARS: Final = 16 * 1024
# Between requests that fail.
_FIRST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 30.0
# Between two log lines about single failures, which a client may provoke.
_WARNING_INTERVAL_S: Final = 1.0

# What can be a token.                                                   [RFC 6750, 2.1]
_is_token: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*").fullmatch

_INACTIVE: Final = "The token is not active"
_BAD_ISSUER: Final = "The token is of another issuer"


class _BadAnswer(TransportError):
    """An answer that is a failure, and that another token might not get."""


class _Lookup:
    """The verification of one token, and the callers that wait for it."""

    __slots__ = ("callers", "is_sent", "task")

    task: asyncio.Task[Principal]

    def __init__(self) -> None:
        self.callers = 0
        # Whether the authorization server was asked; before, the task waits for its turn.
        self.is_sent = False


class Introspection:
    """Verifies tokens at the introspection endpoint of an authorization server.

    The endpoint is `endpoint`, or the one that the metadata of `issuer` names. `audience` is the
    URL of this server, or several names of it; `None` states that every token of this endpoint is
    for this server. Only tokens that begin with `prefix` are asked about: in a chain, the others
    are left to the next verifier, and are not sent to the authorization server. `tenant_claim`
    names the claim with the tenant; a token without it is refused with status 403, unless
    `tenant_required=False`.

    Raises:
        ValueError: an argument is missing or malformed.
    """

    schemes: tuple[str, ...] = ("bearer",)
    dpop_algorithms: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        client_id: str,
        client_secret: str,
        audience: str | Iterable[str] | None,
        issuer: str | None = None,
        endpoint: str | None = None,
        method: Literal["basic", "post"] = "basic",
        prefix: str = "",
        leeway: float = LEEWAY_S,
        tenant_claim: str | None = None,
        tenant_required: bool = True,
        client_claims: Iterable[str] = CLIENT_CLAIMS,
        scopes_supported: Iterable[str] = (),
        max_age: float = MAX_AGE_S,
        allow_private: bool = True,
        tls: ssl.SSLContext | None = None,
        timeout: float = TIMEOUT_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        _check_settings(issuer, endpoint, client_id, client_secret, method)
        names = {audience} if isinstance(audience, str) else audience
        self.audience = None if names is None else frozenset(names)
        if self.audience is not None and not (self.audience and all(self.audience)):
            raise ValueError("Introspection.audience is a name of this server, or None")
        self.issuer = issuer
        self.authorization_servers = () if issuer is None else (issuer,)
        self.scopes_supported = tuple(scopes_supported)
        self._given_endpoint = endpoint
        self._endpoint = endpoint
        self._headers, self._form = _client_authentication(client_id, client_secret, method)
        self._prefix = prefix
        self._leeway = leeway
        self._tenant_claim = tenant_claim
        self._required_claim = tenant_claim if tenant_required else None
        self._client_claims = tuple(client_claims)
        self._max_age = max_age
        self._allow_private = allow_private
        self._tls = tls
        self._timeout = timeout
        self._clock = clock
        # Until when an answer counts, by the hash of its token; the oldest first.
        self._valid: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()
        self._invalid: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        # Of one event loop.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: dict[bytes, _Lookup] = {}
        self._slots = FairSlots(MAX_IN_FLIGHT, max_waiting=MAX_WAITING)
        # The circuit breaker. Failures since the last success: how many had no answer, and when
        # tokens may be asked about again that had one, by their hash.
        self._unanswered = 0
        self._bad_answers: dict[bytes, float] = {}
        self._retry_at = float("-inf")
        self._delays = backoff(_FIRST_RETRY_S, _LONGEST_RETRY_S)
        self._warned_at = float("-inf")

    def __repr__(self) -> str:
        return f"<Introspection, {len(self._valid)} tokens cached, client_secret={HIDDEN}>"

    def verify(self, credential: Credential) -> Principal | Coroutine[Any, Any, Principal] | None:
        """Return the principal of a token, or None for what is not one.

        Raises:
            InvalidCredential: the token is not valid here.
            TenantRefused: it is valid, and lacks the claim of its tenant.
            VerifierUnavailable: the authorization server does not answer.
        """
        token = credential.token
        if credential.scheme != "bearer" or not token.startswith(self._prefix):
            return None
        if len(token) > _MAX_TOKEN_CHARS or _is_token(token) is None:
            return None
        digest = sha256(token.encode("ascii")).digest()
        now = self._clock()
        valid = self._valid.get(digest)
        if valid is not None and now < valid[0]:
            return self._usable(valid[1], credential)
        invalid = self._invalid.get(digest)
        if invalid is not None and now < invalid[0]:
            raise InvalidCredential(invalid[1])
        return self._ask_once(digest, credential)

    def verify_offline(self, credential: Credential) -> Principal | None:
        """Return what `verify` does, if the answer is cached.

        Raises:
            InvalidCredential: the token is not valid here.
            VerifierUnavailable: the authorization server has to be asked.
        """
        found = self.verify(credential)
        if found is None or isinstance(found, Principal):
            return found
        found.close()  # it has not begun
        raise VerifierUnavailable("the authorization server has to be asked")

    def _usable(self, principal: Principal, credential: Credential) -> Principal:
        # Not cached with the answer: the same token may come with a proof and without.
        check_binding(principal.claims, credential.key_thumbprint)
        if self._required_claim is not None:
            check_tenant(principal, self._required_claim)
        return principal

    async def _ask_once(self, digest: bytes, credential: Credential) -> Principal:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # Requests of an event loop that has ended will never be done.
            self._loop, self._running = loop, {}
            self._slots = FairSlots(MAX_IN_FLIGHT, max_waiting=MAX_WAITING)
        running = self._running.get(digest)
        if running is None:
            self._check_breaker(digest)
            running = self._start(digest, credential)
        running.callers += 1
        try:
            # A caller that is cancelled leaves the request to the others.
            return self._usable(await asyncio.shield(running.task), credential)
        finally:
            running.callers -= 1
            if not running.callers and not running.is_sent:
                # Nothing was sent that could be of use. Forgotten at once: the next caller must
                # not wait for a task that ends as cancelled.
                self._forget(digest, running)
                running.task.cancel()

    def _start(self, digest: bytes, credential: Credential) -> _Lookup:
        running = self._running[digest] = _Lookup()
        running.task = asyncio.create_task(self._ask_in_turn(running, digest, credential))
        running.task.add_done_callback(lambda _: self._forget(digest, running))
        return running

    def _forget(self, digest: bytes, running: _Lookup) -> None:
        if self._running.get(digest) is running:
            del self._running[digest]
        task = running.task
        if task.done() and not task.cancelled():
            # Marked as seen, for the case that every caller was cancelled.
            task.exception()

    async def _ask_in_turn(
        self, running: _Lookup, digest: bytes, credential: Credential
    ) -> Principal:
        slots, client = self._slots, client_key(credential.client)
        try:
            await slots.acquire(client, timeout=self._timeout)
        except QueueFull:
            raise VerifierUnavailable("too many introspections are waiting") from None
        except TimeoutError:
            text = f"an introspection has waited {self._timeout:g} s for others"
            raise VerifierUnavailable(text) from None
        try:
            # It may have opened meanwhile.
            self._check_breaker(digest)
            running.is_sent = True
            return await self._decide(digest, credential.token)
        finally:
            slots.release(client)

    async def _decide(self, digest: bytes, token: str) -> Principal:
        try:
            claims = await self._request(token)
        except TransportError as error:
            self._fail(str(error), digest if isinstance(error, _BadAnswer) else None)
            raise VerifierUnavailable(f"introspection failed: {error}") from None
        self._unanswered = 0
        self._bad_answers.clear()
        self._delays = backoff(_FIRST_RETRY_S, _LONGEST_RETRY_S)
        now = self._clock()
        try:
            principal = self._principal(claims, now)
        except InvalidCredential as error:
            _keep(self._invalid, digest, (now + INVALID_MAX_AGE_S, error.description))
            self._valid.pop(digest, None)
            raise
        ends = now + self._max_age
        if principal.expires_at is not None:
            ends = min(ends, principal.expires_at)
        _keep(self._valid, digest, (ends, principal))
        return principal

    def _principal(self, claims: dict[str, Any], now: float) -> Principal:
        if claims.get("active") is not True:
            raise InvalidCredential(_INACTIVE)
        if self.issuer is not None and claims.get("iss", self.issuer) != self.issuer:
            raise InvalidCredential(_BAD_ISSUER)
        ends = check_times(claims, now, self._leeway)
        if self.audience is not None:
            check_audience(claims, self.audience)
        return principal_of(
            claims,
            issuer=self.issuer or self._endpoint or "",
            client_claims=self._client_claims,
            tenant_claim=self._tenant_claim,
            expires_at=ends,
        )

    async def _request(self, token: str) -> dict[str, Any]:
        from ....transports.http.client.fetch import FetchRefused, fetch

        url = await self._find_endpoint()
        form = {"token": token, "token_type_hint": "access_token", **self._form}
        try:
            response = await fetch(
                url,
                method="POST",
                headers=self._headers,
                body=urlencode(form).encode(),
                allow_private=self._allow_private,
                context=self._tls,
                max_bytes=MAX_RESPONSE_BYTES,
                timeout=self._timeout,
            )
        except FetchRefused as error:  # the answer is too large
            raise _BadAnswer(error.reason) from None
        if 400 <= response.status < 500:
            # Of this server's credentials, or of this token: other tokens may do better.
            self._warn(f"the endpoint answered {response.status}")
            raise VerifierUnavailable(f"the endpoint answered with status {response.status}")
        if response.status != 200:
            raise _BadAnswer(f"the endpoint answered with status {response.status}")
        try:
            return parse_object(response.body)
        except ValueError as error:
            raise _BadAnswer(str(error)) from None

    async def _find_endpoint(self) -> str:
        if self._endpoint is None:
            from .issuer import read_metadata

            found = await read_metadata(
                self.issuer or "",
                allow_private=self._allow_private,
                tls=self._tls,
                timeout=self._timeout,
            )
            if found.introspection_endpoint is None:
                raise TransportError("the metadata names no introspection endpoint")
            self._endpoint = found.introspection_endpoint
        return self._endpoint

    # -- failures ----------------------------------------------------------------------------

    def _check_breaker(self, digest: bytes) -> None:
        """Raise VerifierUnavailable if a token is not asked about now, because requests failed."""
        wait = max(self._retry_at, self._bad_answers.get(digest, 0.0)) - self._clock()
        if wait > 0:
            raise VerifierUnavailable("the last introspection failed", retry_after=wait)

    def _fail(self, reason: str, digest: bytes | None) -> None:
        """Count a failure: of the answer about one token, or of any request."""
        # What the metadata said may have changed.
        self._endpoint = self._given_endpoint
        now = self._clock()
        is_first = digest not in self._bad_answers
        if digest is None:
            self._unanswered += 1
        elif not is_first or len(self._bad_answers) < MAX_FAILURES:
            self._bad_answers[digest] = now + _FIRST_RETRY_S
        if not is_first or self._unanswered + len(self._bad_answers) < MAX_FAILURES:
            self._warn(reason)
        elif now >= self._retry_at:
            # Not again for requests that were sent before.
            delay = next(self._delays)
            self._retry_at = now + delay
            _log.warning("introspection failed: %s; the next request in %.2g s", reason, delay)

    def _warn(self, reason: str) -> None:
        now = self._clock()
        if not 0 <= now - self._warned_at < _WARNING_INTERVAL_S:
            self._warned_at = now
            _log.warning("introspection failed: %s", reason)


def _keep(table: OrderedDict[bytes, _T], digest: bytes, entry: _T) -> None:
    table[digest] = entry
    table.move_to_end(digest)
    if len(table) > MAX_CACHED:
        table.popitem(last=False)


def _client_authentication(
    client_id: str, client_secret: str, method: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers and the members of the form that authenticate this server."""
    headers = {
        "accept": "application/json",
        "content-type": "application/x-www-form-urlencoded",
    }
    if method == "post":
        return headers, {"client_id": client_id, "client_secret": client_secret}
    # Both parts are encoded as in a form before they are joined.           [RFC 6749, 2.3.1]
    pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
    return {**headers, "authorization": f"Basic {b64encode(pair.encode()).decode()}"}, {}


def _check_settings(
    issuer: str | None, endpoint: str | None, client_id: str, client_secret: str, method: str
) -> None:
    from ....transports.http.client.fetch import FetchRefused, check_url

    if not issuer and not endpoint:
        raise ValueError("Introspection needs an issuer or an endpoint")
    if not client_id or not client_secret:
        raise ValueError("Introspection needs a client_id and a client_secret")
    if method not in ("basic", "post"):
        raise ValueError('Introspection.method is "basic" or "post"')
    try:
        for url in (issuer, endpoint):
            if url is not None:
                check_url(url)
    except FetchRefused as error:
        raise ValueError(f"Introspection: {error}") from None

"""Credentials in the envelope of messages: the caller of each request, under `Policy.pierre()`.

Other policies have no such envelope: there a token in a message is data like any other.

The rules that live here, and only here:

* The Authorization header of HTTP, or what else the transport knows of the caller, precedes the
  envelope. A token in the envelope is verified by the same verifiers.            [R-PI-09]
* `initialize` and `ping` need no token. With `AuthSettings.required`, other requests without one
  are refused.                                                                      [P-53]
* An `x-tenant-id` in the headers or the metadata of the envelope counts only if the claims of the
  verified token allow that tenant. Without a token it selects nothing.            [R-PI-11]
* A session over HTTP belongs to the first principal that uses it. Requests of others in it are
  refused, and its streams and its end need that principal in the Authorization header: the id of a
  session is not a credential.                                                     [SEC-06]
* A tool is refused without a tenant, where tenants are required; other methods are served.
* Requests whose token is being verified are shared by clients, and count as held bytes meanwhile.
* A refusal has the code of its cause, and its data says that authentication has failed; nothing
  of the token is in it.                                                           [R-PI-10]
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from ...accounts.shares import SharedLimit
from ...auth.server.audit import RefusalAudit
from ...auth.server.settings import is_peer_rule
from ...auth.server.tenants import TenantRefused
from ...auth.server.verifiers.credential import Credential, InvalidCredential, VerifierUnavailable
from ...engine.runner import RETRY_AFTER_MS
from ...errors import RequestError
from ...spec.error_kinds import ErrorKind
from ...spec.mcp.methods import ALIASES, METHODS
from ..errors import as_redacted, refusal

if TYPE_CHECKING:
    import asyncio

    from ...accounts.account import Account
    from ...accounts.budget import ByteBudget
    from ...auth.principal import Principal
    from ...auth.server.settings import AuthSettings
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ..api.core import ServerCore
    from ..dispatch.connection import Connection

__all__ = ["EnvelopeAuth"]

_log: Final = logging.getLogger("trunkline.auth")

# Those that the audit names: a caller writes no text of its own into it.
_NAMES: Final = frozenset(row.name for row in METHODS)
_OPEN: Final = frozenset(("initialize", "ping"))
_CALLS: Final = frozenset(
    ("tools/call", *(each.spelling for each in ALIASES if each.official == "tools/call"))
)
_TENANT: Final = "x-tenant-id"
_SCHEME: Final = "bearer "
_NO_TOKEN: Final = "Authentication token required"
_UNKNOWN: Final = "The access token is not known"
_EXPIRED: Final = "has expired"
# Requests of all connections whose token is being verified.
_MAX_VERIFYING: Final = 1000


class EnvelopeAuth:
    """Finds the caller of each request on a server whose messages carry credentials."""

    def __init__(self, core: ServerCore, settings: AuthSettings) -> None:
        self._core = core
        self._settings = settings
        # Functions of the author take an HTTP request, and rules for peers a connection.
        self._verifiers: list[Any] = [
            each
            for each in settings.verifiers
            if hasattr(each, "verify") and not is_peer_rule(each)
        ]
        accounts = core.runtime.accounts
        self._limit = SharedLimit(_MAX_VERIFYING, accounts.shares, accounts)
        self._verifying: set[asyncio.Task[None]] = set()
        self._verifying_of: Counter[Account | None] = Counter()
        self._audit = None if settings.audit is None else RefusalAudit(settings.audit)

    def __repr__(self) -> str:
        return f"<EnvelopeAuth of {self._settings!r}>"

    def receive(
        self,
        connection: Connection,
        asked: IncomingRequest,
        size: int,
        proceed: Callable[[IncomingRequest], None],
    ) -> None:
        """Find the caller of a request, and proceed with it, now or later; or refuse it.

        size: the bytes that it holds meanwhile.
        """
        known = connection.principal_of(asked)
        if known is not None:
            self._finish(connection, asked, known, proceed)
            return
        token = getattr(asked.envelope, "auth", None)
        if not isinstance(token, str) or not token:
            self._finish(connection, asked, None, proceed)
            return
        if token[: len(_SCHEME)].lower() == _SCHEME:
            token = token[len(_SCHEME) :].strip()
        account = connection.runner.account
        client = "" if account is None else account.key
        credential = Credential("bearer", token, client=client)
        outcome: Any = RequestError(ErrorKind.INVALID_TOKEN, data=_failed(_UNKNOWN))
        for place, verifier in enumerate(self._verifiers):
            try:
                found = verifier.verify(credential)
            except Exception as error:  # noqa: BLE001  # sorted below; the client gets an answer
                outcome = self._failure(error)
                break
            if isawaitable(found):
                if self._admits(connection, size):
                    outcome = self._outcome(found, credential, place)
                    self._start(connection, asked, size, outcome, proceed)
                else:
                    if hasattr(found, "close"):  # a coroutine that is not awaited
                        found.close()
                    busy = RequestError(ErrorKind.OVERLOADED, data={"retryAfterMs": RETRY_AFTER_MS})
                    self._refuse(connection, asked, busy)
                return
            if found is not None:
                outcome = found
                break
        self._decided(connection, asked, outcome, proceed)

    def _admits(self, connection: Connection, size: int) -> bool:
        """Return True if the client of a connection may have one more token verified."""
        account = connection.runner.account
        of_client = 0 if account is None else self._verifying_of[account]
        return self._limit.admits(of_client) and connection.runner.has_room(size)

    def _start(
        self,
        connection: Connection,
        asked: IncomingRequest,
        size: int,
        verifying: Awaitable[Principal | RequestError],
        proceed: Callable[[IncomingRequest], None],
    ) -> None:
        """Decide on a request in a task of its own, during which it is held."""
        account = connection.runner.account

        async def decide() -> None:
            outcome = await verifying
            self._count(account, connection.budget, -1, -size)  # `proceed` counts it again
            # Or it was cancelled meanwhile.
            if asked in connection.peer.incoming:
                self._decided(connection, asked, outcome, proceed)

        self._count(account, connection.budget, 1, size)
        task = connection.loop.create_task(decide())
        self._verifying.add(task)
        task.add_done_callback(self._verifying.discard)

    def _count(self, account: Account | None, budget: ByteBudget, more: int, size: int) -> None:
        """Count so many requests and bytes more, or less."""
        self._limit.charge(more)
        self._verifying_of[account] += more
        if not self._verifying_of[account]:
            del self._verifying_of[account]
        budget.charge(size)

    async def _outcome(
        self, deciding: Awaitable[Principal | None], credential: Credential, place: int
    ) -> Principal | RequestError:
        """Return what the verifiers from a place on find; that of the place has begun."""
        try:
            found: Any = await deciding
            for verifier in self._verifiers[place + 1 :]:
                if found is not None:
                    break
                answer = verifier.verify(credential)
                found = await answer if isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001  # sorted below; the client gets an answer
            return self._failure(error)
        if found is None:
            return RequestError(ErrorKind.INVALID_TOKEN, data=_failed(_UNKNOWN))
        principal: Principal = found
        return principal

    def _failure(self, error: Exception) -> RequestError:
        """Return the refusal of a token, or of a request whose token cannot be verified."""
        if isinstance(error, InvalidCredential):
            is_expired = _EXPIRED in error.description
            kind = ErrorKind.TOKEN_EXPIRED if is_expired else ErrorKind.INVALID_TOKEN
            return RequestError(kind, data=_failed(error.description))
        if isinstance(error, TenantRefused):
            return _tenant_refusal(error)
        if isinstance(error, VerifierUnavailable):
            self._core.runtime.counters.warn(
                "verifier", "credentials cannot be checked: %s", error.reason
            )
            data = {"retryAfterMs": max(1, round(error.retry_after * 1000))}
            return RequestError(ErrorKind.SERVICE_UNAVAILABLE, data=data)
        _log.error("the principal of a request cannot be determined\n%s", as_redacted(error))
        return RequestError(ErrorKind.INTERNAL_ERROR)

    def _decided(
        self,
        connection: Connection,
        asked: IncomingRequest,
        outcome: Principal | RequestError,
        proceed: Callable[[IncomingRequest], None],
    ) -> None:
        if isinstance(outcome, RequestError):
            self._refuse(connection, asked, outcome)
        else:
            self._finish(connection, asked, outcome, proceed)

    def _finish(
        self,
        connection: Connection,
        asked: IncomingRequest,
        principal: Principal | None,
        proceed: Callable[[IncomingRequest], None],
    ) -> None:
        if principal is None:
            if self._settings.required and asked.method not in _OPEN:
                error = RequestError(
                    ErrorKind.AUTHENTICATION_FAILED, _NO_TOKEN, data=_failed(_NO_TOKEN)
                )
                self._refuse(connection, asked, error)
            else:
                proceed(asked)
            return
        if not _is_admitted(connection.transport, principal):
            self._refuse(connection, asked, RequestError(ErrorKind.AUTHORIZATION_FAILED))
            return
        try:
            asked.owner = self._placed(principal, asked)
        except TenantRefused as error:
            self._refuse(connection, asked, _tenant_refusal(error))
        else:
            proceed(asked)

    def _placed(self, principal: Principal, asked: IncomingRequest) -> Principal:
        """Return a principal as a member of the tenant that it may use."""
        tenants = self._settings.tenants
        if tenants is None:
            return principal
        named = _named_tenant(asked.envelope)
        if named is not None:
            return tenants.named_by_client(principal, named)
        try:
            return tenants.of_credential(principal)
        except TenantRefused as error:
            if error.is_missing and asked.method not in _CALLS:
                return principal.with_tenant(None)
            raise

    def _refuse(self, connection: Connection, asked: IncomingRequest, error: RequestError) -> None:
        policy = connection.policy
        answer = refusal(error, policy)
        if self._audit is not None and getattr(asked.envelope, "auth", None):
            method = asked.method if asked.method in _NAMES else ""
            request = getattr(asked.route, "request", None)
            self._audit(
                method=method,
                code=answer.code,
                transport=connection.transport.name,
                address="" if request is None else str(request.client),
                request_id=asked.id,
            )
        connection.answer(asked, answer, policy)


def _is_admitted(transport: Any, principal: Principal) -> bool:
    """Return True if a principal may use a session; the first one binds it to itself."""
    if not hasattr(transport, "binding"):
        return True  # a connection, which has one client at its end
    if transport.binding is None:
        # In whichever tenant: a client may choose that for each message.
        key = principal.with_tenant(None).key
        transport.binding = lambda owner: owner is not None and owner.with_tenant(None).key == key
    is_same: bool = transport.binding(principal)
    return is_same


def _named_tenant(envelope: Any) -> object:
    for member in ("headers", "metadata"):
        found = getattr(envelope, member, None)
        if isinstance(found, dict):
            for name, value in found.items():
                if isinstance(name, str) and name.lower() == _TENANT:
                    return value
    return None


def _tenant_refusal(error: TenantRefused) -> RequestError:
    data = {"error_type": "tenant_required" if error.is_missing else "tenant_refused"}
    return RequestError(ErrorKind.AUTHORIZATION_FAILED, data=data)


def _failed(reason: str) -> dict[str, Any]:
    return {"detailed_error": reason, "authentication_failed": True}

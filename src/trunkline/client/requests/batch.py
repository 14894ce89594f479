"""JSON-RPC batches of a client: several requests in one message, in 2025-03-26 only.

    async with client.batch() as batch:
        one = batch.submit_tool("forecast", {"city": "Oslo"})
        two = batch.submit("ping")
    print(await one, await two)

Leaving the block sends the batch. If the block raises, nothing is sent and the calls are
cancelled. If the batch cannot be sent, each call ends with that error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from ...errors import LocalProtocolError, TrunklineError
from ...jsonrpc.messages import Notification, shown_tuple
from ..session.method_checks import check_method, check_sendable
from ..session.options import check_seconds
from ..session.request import SENT, OutgoingRequest
from ..session.session import NOT_SENT, Session
from .call import PendingCall, SubmitMethods, future_of, sent_as

__all__ = ["CallBatch"]

T = TypeVar("T")


class _UnsentCall(NamedTuple):
    request: OutgoingRequest
    call: PendingCall[Any]

    def __repr__(self) -> str:
        return shown_tuple(self)


class CallBatch(SubmitMethods):
    """Requests that are collected and sent as one message."""

    def __init__(
        self,
        session: Session,
        renew: Callable[[Session], Awaitable[Session]],
        *,
        strict: bool,
    ) -> None:
        self._session = session
        self._renew = renew
        self._strict = strict
        self._calls: list[_UnsentCall | Notification] = []
        # None until the block is entered; a batch is one message, so it is entered once.
        self._is_open: bool | None = None

    async def __aenter__(self) -> CallBatch:
        if self._is_open is not None:
            raise TrunklineError("a batch is sent once: create another with `client.batch()`")
        if not self._session.policy.sends_batches:
            raise LocalProtocolError(
                "jsonrpc.batch.not-allowed",
                got=self._session.revision,
                expected="single messages: clients of this revision send no batches",
            )
        self._is_open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_open = False
        if error is not None:
            self._abort(None)
            return
        try:
            try:
                self._send_on(self._session)
            except NOT_SENT:
                self._send_on(await self._renew(self._session))
        except BaseException as failure:  # the calls must not wait for replies that never come
            self._abort(failure)
            raise

    def notify(self, method: str, params: dict[str, Any] | None = None) -> Awaitable[None]:
        """Add a notification; awaiting it is optional."""
        self._check_open()
        check_method(method, self._session.revision, "notification")
        self._calls.append(Notification(method, params))
        return SENT

    def _revision(self) -> str:
        return self._session.revision

    def _submit(
        self,
        request: OutgoingRequest,
        reader: Callable[[Any], T],
        on_success: Callable[[T], object] | None,
        on_error: Callable[[TrunklineError], object] | None,
    ) -> PendingCall[T]:
        if request.method == "initialize":
            raise LocalProtocolError(
                "mcp.batch.initialize", got="initialize", expected="it as a message of its own"
            )
        self._check_open()
        session = self._session
        check_sendable(request.method, request.kind, session, strict=self._strict)
        if request.timeout is not None:
            check_seconds("timeout", request.timeout)
        call = PendingCall(session, request.method, reader, on_success, on_error)
        self._calls.append(_UnsentCall(request, call))
        return call

    def _check_open(self) -> None:
        if not self._is_open:
            raise TrunklineError("a batch takes calls only inside its block")

    def _send_on(self, session: Session) -> None:
        # Calls that were cancelled meanwhile are not sent.
        left = [
            each
            for each in self._calls
            if not isinstance(each, _UnsentCall) or not each.call.done()
        ]
        if not left:
            return
        calls = [each for each in left if isinstance(each, _UnsentCall)]
        sent = session.start_batch(
            [each.request if isinstance(each, _UnsentCall) else each for each in left],
            [future_of(each.call) for each in calls],
        )
        for each, pending in zip(calls, sent, strict=True):
            sent_as(each.call, pending, session)

    def _abort(self, failure: BaseException | None) -> None:
        for each in self._calls:
            if not isinstance(each, _UnsentCall) or each.call.done():
                continue
            if isinstance(failure, TrunklineError):
                future_of(each.call).set_exception(failure)
            else:
                each.call.cancel()

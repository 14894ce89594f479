"""Several calls in one message, in the one revision that sends such.

    async with client.batch() as batch:
        one = batch.submit_tool("forecast", {"city": "Oslo"})
        two = batch.submit("ping")
    print(await one, await two)

Leaving the block sends them; if it is left by an exception nothing is sent, and the calls are
cancelled. Where they cannot be sent, each call ends with the error that says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from ...errors import LocalProtocolError, TrunklineError
from ...jsonrpc.messages import Notification
from ..options import check_seconds
from ..session import NOT_SENT, Session
from .call import PendingCall
from .method_checks import check_method, check_sendable
from .request import OutgoingRequest
from .submitting import Submitting

__all__ = ["CallBatch"]

T = TypeVar("T")


class _Waiting(NamedTuple):
    """A request that is not sent yet, and who waits for its answer."""

    request: OutgoingRequest
    call: PendingCall[Any]
    future: asyncio.Future[Any]


class CallBatch(Submitting):
    """Calls that are collected, to be sent as one message."""

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
        self._calls: list[_Waiting | Notification] = []
        # None until the block is entered; a batch is one message, so it is entered once.
        self._is_open: bool | None = None

    async def __aenter__(self) -> CallBatch:
        if self._is_open is not None:
            raise TrunklineError("a batch is sent once: ask the client for another")
        if not self._session.policy.sends_batches:
            raise LocalProtocolError(
                "jsonrpc.batch.not-allowed",
                got=self._session.revision,
                expected="single messages: this revision has no batches to send",
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
            self._give_up(None)
            return
        try:
            await self._send()
        except BaseException as failure:  # the calls must not wait for what was never sent
            self._give_up(failure)
            raise

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Add a notification."""
        self._check_open()
        check_method(method, self._session.revision, "notification")
        self._calls.append(Notification(method, params))

    def _spoken(self) -> str:
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
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = PendingCall(session, request.method, future, reader, on_success, on_error)
        self._calls.append(_Waiting(request, call, future))
        return call

    def _check_open(self) -> None:
        if not self._is_open:
            raise TrunklineError("a batch takes calls inside its `async with` block")

    async def _send(self) -> None:
        try:
            self._send_by(self._session)
        except NOT_SENT:
            self._send_by(await self._renew(self._session))

    def _send_by(self, session: Session) -> None:
        # What was cancelled meanwhile is not sent at all.
        left = [
            each for each in self._calls if not isinstance(each, _Waiting) or not each.future.done()
        ]
        if not left:
            return
        waiting = [each for each in left if isinstance(each, _Waiting)]
        sent = session.start_batch(
            [each.request if isinstance(each, _Waiting) else each for each in left],
            [each.future for each in waiting],
        )
        for each, pending in zip(waiting, sent, strict=True):
            each.call.sent_as(pending, session)

    def _give_up(self, failure: BaseException | None) -> None:
        for each in self._calls:
            if not isinstance(each, _Waiting) or each.future.done():
                continue
            if isinstance(failure, TrunklineError):
                each.future.set_exception(failure)
            else:
                each.call.cancel()

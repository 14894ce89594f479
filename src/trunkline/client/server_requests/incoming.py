"""What a server asks by requests of its own, which is how the handshake revisions do it.

Each question has a task of its own, so a user who thinks for an hour keeps nobody waiting, and
a server that changes its mind can say so. Who answers, and what may be asked, is in
`answering`.

The rules that live here, and only here:

* `ping` is answered at once, whatever else goes on.  [MCP 2025-11-25, basic/utilities/ping]
* What is not handled is "method not found".                   [JSON-RPC 2.0, section 5.1]
* What may not be asked like this is "invalid params".    [MCP 2025-11-25, client/elicitation]
* A question that was cancelled is not answered.
  [MCP 2025-11-25, basic/utilities/cancellation]
* Any other is, also when its handler is cancelled by something else than the server.
* What a handler raises stays here: the server gets a fixed text, or what `RequestError` chose. So
  does what is wrong with an answer: the log says which field of a form it does not fit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from ...concurrency.thread_pool import NoThreadFree
from ...errors import NOTHING, LocalProtocolError, RemoteProtocolError, RequestError
from ...jsonrpc.decode_errors import UNREADABLE
from ...jsonrpc.error_codes import named_error
from ...jsonrpc.incoming import IncomingRequest
from ...jsonrpc.messages import ErrorObject
from ...jsonrpc.peer import Peer
from ...jsonrpc.policy import Policy
from ...mcp.tables import params_type
from ...mcp.types import CancelledNotificationParams
from ...spec.error_kinds import ErrorKind
from ..diagnostics import RateLimitedLog, current_task
from ..requests.decode import decoder
from .handlers import ClientHandlers

__all__ = ["ServerRequestRunner"]


class ServerRequestRunner:
    """Answers the requests of one server."""

    __slots__ = ("_handlers", "_on_busy", "_server_log", "_tasks")

    def __init__(
        self,
        answering: ClientHandlers,
        server_log: RateLimitedLog,
        on_busy: Callable[[bool], object],
    ) -> None:
        self._handlers = answering
        self._server_log = server_log
        # Told when the first request is being answered, and when none is any more.
        self._on_busy = on_busy
        self._tasks: dict[IncomingRequest, asyncio.Task[None]] = {}

    def take(
        self, asked: IncomingRequest, peer: Peer, policy: Policy, *, is_busy: bool = False
    ) -> None:
        """Answer a request, now or later; no handler is called while the line `is_busy`."""
        if asked.method == "ping":
            peer.answer(asked, {})
            return
        method, revision, answering = asked.method, policy.revision, self._handlers
        if not answering.answers(method) or params_type(method, revision) is None:
            peer.fail(asked, named_error(ErrorKind.METHOD_NOT_FOUND, policy=policy))
            return
        if is_busy or answering.is_full:
            peer.fail(asked, named_error(ErrorKind.OVERLOADED, policy=policy))
            return
        try:
            params = answering.read(method, asked.params, revision, "/params")
        except RemoteProtocolError as error:
            self._server_log.warning("the server asked what it may not: %s", error)
            text = f"Invalid params: expected {error.expected}"
            peer.fail(asked, named_error(ErrorKind.INVALID_PARAMS, policy=policy, message=text))
            return
        task = answering.begin(self._answer(asked, peer, policy, params))
        if not self._tasks:
            self._on_busy(True)
        self._tasks[asked] = task
        task.add_done_callback(lambda _: self._forget(asked))

    def _forget(self, asked: IncomingRequest) -> None:
        self._tasks.pop(asked, None)
        if not self._tasks:
            self._on_busy(False)

    def cancel(self, params: Any, peer: Peer) -> None:
        """Stop answering what the server no longer wants to know."""
        try:
            note = decoder(CancelledNotificationParams)(b"{}" if params is UNSET else params)
        except UNREADABLE:
            return  # a cancel that cannot be read cancels nothing
        asked = None if note.request_id is UNSET else peer.incoming.find(note.request_id)
        if asked is not None:
            peer.drop(asked)
            task = self._tasks.get(asked)
            if task is not None:
                task.cancel()

    async def _answer(
        self, asked: IncomingRequest, peer: Peer, policy: Policy, params: Any
    ) -> None:
        try:
            answer = await self._handlers.answer(asked.method, params, policy.revision)
            peer.answer(asked, answer)
        except LocalProtocolError as error:
            self._fail(asked, peer, policy, error, f"the answer to {asked.method}")
        except RequestError as refusal:
            peer.fail(asked, self._refused(refusal, policy))
        except NoThreadFree:
            peer.fail(asked, named_error(ErrorKind.OVERLOADED, policy=policy))
        except asyncio.CancelledError as error:
            task = current_task()
            if task is None or task.cancelling():
                raise  # by us: the server said so, or the connection has ended
            self._fail(asked, peer, policy, error, f"the handler of {asked.method}")
        except Exception as error:  # noqa: BLE001  # somebody else's code
            self._fail(asked, peer, policy, error, f"the handler of {asked.method}")

    def _fail(
        self, asked: IncomingRequest, peer: Peer, policy: Policy, error: BaseException, what: str
    ) -> None:
        self._server_log.exception(error, what)
        peer.fail(asked, named_error(ErrorKind.INTERNAL_ERROR, policy=policy))

    def _refused(self, refusal: RequestError, policy: Policy) -> ErrorObject:
        data = UNSET if refusal.data is NOTHING else refusal.data
        if isinstance(refusal.kind, int):
            return ErrorObject(refusal.kind, refusal.message or "Refused", data)
        try:
            return named_error(refusal.kind, policy=policy, message=refusal.message, data=data)
        except LookupError as error:
            self._server_log.exception(error, "a handler's refusal, whose symbol has no number,")
            return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)

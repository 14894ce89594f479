"""Requests of the server, which only the handshake revisions have.

Each request has a task of its own, so a slow handler blocks no other message, and the server can
cancel it. The handlers and their checks are in `handlers`.

The rules that live here, and only here:

* `ping` is answered at once.                         [MCP 2025-11-25, basic/utilities/ping]
* A method without a handler is "method not found".            [JSON-RPC 2.0, section 5.1]
* Invalid or undeclared params are "invalid params".      [MCP 2025-11-25, client/elicitation]
* A cancelled request gets no reply.        [MCP 2025-11-25, basic/utilities/cancellation]
* Every other request gets one, even if its handler was cancelled by something else.
* Exceptions of a handler are logged; the server gets a fixed text, or what `RequestError` chose.
  So is an answer that does not match its form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from ...concurrency.thread_pool import NoThreadFree
from ...errors import NOTHING, LocalProtocolError, RemoteProtocolError, RequestError
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.error_codes import application_error, code_warning, named_error
from ...jsonrpc.messages import ErrorObject
from ...jsonrpc.peer.incoming import IncomingRequest
from ...jsonrpc.peer.peer import Peer
from ...jsonrpc.policy import Policy
from ...mcp.tables import params_type
from ...mcp.types import CancelledNotificationParams
from ...spec.error_kinds import ErrorKind
from ..session.decode import decoder
from ..session.diagnostics import RateLimitedLog, current_task
from .handlers import ClientHandlers

__all__ = ["ServerRequestRunner"]


class ServerRequestRunner:
    """Runs the requests of one server."""

    __slots__ = ("_handlers", "_on_busy", "_server_log", "_tasks")

    def __init__(
        self,
        answering: ClientHandlers,
        server_log: RateLimitedLog,
        on_busy: Callable[[bool], object],
    ) -> None:
        self._handlers = answering
        self._server_log = server_log
        # Called with True when the first request begins, and with False when the last has ended.
        self._on_busy = on_busy
        self._tasks: dict[IncomingRequest, asyncio.Task[None]] = {}

    def take(
        self, asked: IncomingRequest, peer: Peer, policy: Policy, *, is_busy: bool = False
    ) -> None:
        """Reply to a request, now or later; reject it if the transport `is_busy`."""
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
            self._server_log.warning("request of the server rejected: %s", error)
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
        """Cancel the request that a `notifications/cancelled` names."""
        try:
            note = decoder(CancelledNotificationParams)(b"{}" if params is UNSET else params)
        except UNREADABLE:
            return  # invalid params cancel nothing
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
        except Exception as error:  # noqa: BLE001  # application code
            self._fail(asked, peer, policy, error, f"the handler of {asked.method}")

    def _fail(
        self, asked: IncomingRequest, peer: Peer, policy: Policy, error: BaseException, what: str
    ) -> None:
        self._server_log.exception(error, what)
        peer.fail(asked, named_error(ErrorKind.INTERNAL_ERROR, policy=policy))

    def _refused(self, refusal: RequestError, policy: Policy) -> ErrorObject:
        data = UNSET if refusal.data is NOTHING else refusal.data
        if isinstance(refusal.kind, int):
            warning = code_warning(refusal.kind, policy)
            if warning is not None:
                self._server_log.warning("RequestError of a handler: %s", warning)
            return application_error(refusal.kind, refusal.message, data, policy=policy)
        try:
            return named_error(refusal.kind, policy=policy, message=refusal.message, data=data)
        except LookupError as error:
            self._server_log.exception(error, "a handler's refusal, whose symbol has no number,")
            return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)

"""Several calls in one message, in the one revision that sends such.

    async with client.batch() as batch:
        one = batch.submit_tool("forecast", {"city": "Oslo"})
        two = batch.submit("ping")
    print(await one, await two)

Leaving the block sends them; if it is left by an exception nothing is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, overload

from msgspec import UNSET, Struct

from ..errors import LocalProtocolError, TrunklineError
from ..jsonrpc.messages import Notification, Request
from ..mcp.types import CallToolRequestParams
from .calls import Call
from .permitted import check_method
from .reading import read
from .results import ToolResult, tool_result
from .session import Session

__all__ = ["CallBatch"]

T = TypeVar("T")


class CallBatch:
    """Calls that are collected, to be sent as one message."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._calls: list[tuple[Request | Notification, Call[Any] | None]] = []
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._is_open = False

    async def __aenter__(self) -> CallBatch:
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
        if error is None:
            try:
                self._send()
            except BaseException:  # the calls must not wait for what was never sent
                self._give_up()
                raise
        else:
            self._give_up()

    def submit(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        on_success: Callable[[dict[str, Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> Call[dict[str, Any]]:
        """Add a request; its result is a dict."""
        revision = self._session.revision
        check_method(method, revision, "request")
        if method == "initialize":
            raise LocalProtocolError(
                "mcp.batch.initialize", got=method, expected="it as a message of its own"
            )
        return self._add(
            method,
            None,
            dict(params or {}),
            lambda raw: read(raw, dict[str, Any], method, revision),
            on_success,
            on_error,
        )

    @overload
    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: type[T],
        on_success: Callable[[ToolResult[T]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> Call[ToolResult[T]]: ...

    @overload
    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: None = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> Call[ToolResult[Any]]: ...

    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> Call[ToolResult[Any]]:
        """Add a call of a tool."""
        revision = self._session.revision
        return self._add(
            "tools/call",
            CallToolRequestParams,
            {"name": name, "arguments": UNSET if arguments is None else arguments},
            lambda raw: tool_result(raw, result_type, revision),
            on_success,
            on_error,
        )

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Add a notification."""
        self._check_open()
        check_method(method, self._session.revision, "notification")
        self._calls.append((Notification(method, params), None))

    def _add(
        self,
        method: str,
        kind: type[Struct] | None,
        fields: dict[str, Any],
        reader: Callable[[Any], T],
        on_success: Callable[[T], object] | None,
        on_error: Callable[[TrunklineError], object] | None,
    ) -> Call[T]:
        self._check_open()
        session = self._session
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = Call(session, method, future, reader, on_success, on_error)
        params = session.params(kind, fields, None)
        self._calls.append((Request(method, params, id=None), call))
        self._futures[id(call)] = future
        return call

    def _check_open(self) -> None:
        if not self._is_open:
            raise TrunklineError("a batch takes calls inside its `async with` block")

    def _send(self) -> None:
        # What was cancelled meanwhile is not sent at all.
        left = [(sent, call) for sent, call in self._calls if call is None or not call.done()]
        if not left:
            return
        calls = [call for _, call in left if call is not None]
        waiters = [self._futures[id(call)] for call in calls]
        pending = self._session.start_batch([sent for sent, _ in left], waiters)
        for call, each in zip(calls, pending, strict=True):
            call.sent_as(each)

    def _give_up(self) -> None:
        for _, call in self._calls:
            if call is not None:
                call.cancel()

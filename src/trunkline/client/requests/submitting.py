"""Requests that are sent at once and awaited later: the methods that return a `PendingCall`.

A client sends them at once, a batch when its block is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from msgspec import UNSET, UnsetType

from ...errors import TrunklineError
from ...mcp.types import CallToolRequestParams
from .call import PendingCall
from .decode import read_own
from .method_checks import check_method
from .request import OnProgress, OutgoingRequest
from .tool_result import ToolResult, tool_result

__all__ = ["Submitting", "tool_call"]

T = TypeVar("T")


class Submitting:
    """Whatever takes requests and gives calls."""

    def submit(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[dict[str, Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> PendingCall[dict[str, Any]]:
        """Send any request; return the call, to be awaited, asked or cancelled later."""
        revision = self._spoken()
        check_method(method, revision, "request")
        return self._submit(
            OutgoingRequest(method, None, dict(params or {}), timeout, on_progress),
            lambda raw: read_own(raw, dict[str, Any], method, revision),
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
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[T]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> PendingCall[ToolResult[T]]: ...

    @overload
    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> PendingCall[ToolResult[Any]]: ...

    @overload
    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> PendingCall[ToolResult[Any]]: ...

    def submit_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        result_type: Any = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_success: Callable[[ToolResult[Any]], object] | None = None,
        on_error: Callable[[TrunklineError], object] | None = None,
    ) -> PendingCall[ToolResult[Any]]:
        """Call a tool; return the call, to be awaited, asked or cancelled later."""
        revision = self._spoken()
        given = UNSET if arguments is None else arguments
        return self._submit(
            tool_call(name, given, timeout, on_progress),
            lambda raw: tool_result(raw, result_type, revision),
            on_success,
            on_error,
        )

    def _spoken(self) -> str:
        """Return the revision that is spoken."""
        raise NotImplementedError

    def _submit(
        self,
        request: OutgoingRequest,
        reader: Callable[[Any], T],
        on_success: Callable[[T], object] | None,
        on_error: Callable[[TrunklineError], object] | None,
    ) -> PendingCall[T]:
        """Send a request in its own way; return the call, whose answer `reader` reads."""
        raise NotImplementedError


def tool_call(
    name: str,
    arguments: dict[str, Any] | UnsetType,
    timeout: float | None = None,
    on_progress: OnProgress | None = None,
    meta: Mapping[str, Any] | None = None,
) -> OutgoingRequest:
    """Return the question that a call of a tool is."""
    fields = {"name": name, "arguments": arguments}
    return OutgoingRequest("tools/call", CallToolRequestParams, fields, timeout, on_progress, meta)

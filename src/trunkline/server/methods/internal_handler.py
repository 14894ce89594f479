"""Handlers of the server itself, which run as those of authors do.

They are counted, timed out and cancelled like any other handler. Their value is the result as it
is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..context import Context, request_of
from ..dispatch.request import ServerRequest
from ..handlers.arguments import raw_arguments
from ..registry.entries import Entry

__all__ = ["internal_entry"]


def internal_entry(name: str, function: Callable[[ServerRequest, Any], Awaitable[Any]]) -> Entry:
    """Return an entry whose handler is `function`, called with the request and the values."""

    async def call(context: Context, values: Any) -> Any:
        return await function(request_of(context), values)

    return Entry(name=name, owner=None, arguments=raw_arguments(call))

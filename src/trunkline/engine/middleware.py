"""Calling a handler: through the middleware of mounted servers, on the loop or on a thread."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .request import HandledRequest, HandlerEntry
    from .runtime import ServerRuntime

__all__ = ["Proceed", "invoke"]

Proceed: TypeAlias = Callable[[], Awaitable[Any]]


async def invoke(
    runtime: ServerRuntime, entry: HandlerEntry, values: Any, request: HandledRequest
) -> Any:
    """Call a handler through the middleware of mounted servers, the outermost first."""
    proceed: Proceed = partial(_call, runtime, entry, values, request)
    for server in reversed(entry.path):
        for function in reversed(server.middleware):
            proceed = partial(function, request.context, proceed)
    return await proceed()


async def _call(
    runtime: ServerRuntime, entry: HandlerEntry, values: Any, request: HandledRequest
) -> Any:
    """Call a handler: on the event loop if it is a coroutine or inline, else on a thread."""
    call = entry.arguments.call
    if entry.on_thread:
        share = request.connection.runner.threads
        value = await runtime.threads.run(partial(call, values, request.context), share)
    else:
        value = call(values, request.context)
    # A plain function may return a coroutine, as lambdas and wrappers do.
    return await value if inspect.isawaitable(value) else value

"""Middleware: functions around requests, and those of mounted servers around their handlers.

A server without middleware calls its handlers directly; `middleware_chain.py` has the chain of
one with middleware.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ..context import Context, context_of

if TYPE_CHECKING:
    from ..api.core import ServerCore
    from ..registry.entries import Entry
    from .request import ServerRequest

__all__ = ["Middleware", "invoke"]

Proceed: TypeAlias = Callable[[], Awaitable[Any]]
Middleware: TypeAlias = Callable[[Context, Proceed], Awaitable[Any]]


async def invoke(core: ServerCore, entry: Entry, values: Any, request: ServerRequest) -> Any:
    """Call a handler through the middleware of mounted servers, the outermost first."""
    proceed: Proceed = partial(_call, core, entry, values, request)
    if entry.path:
        context = context_of(request)
        for server in reversed(entry.path):
            for function in reversed(server.middleware):
                proceed = partial(function, context, proceed)
    return await proceed()


async def _call(core: ServerCore, entry: Entry, values: Any, request: ServerRequest) -> Any:
    """Call a handler: on the event loop if it is a coroutine or inline, else on a thread."""
    call = entry.arguments.call
    if entry.on_thread:
        share = request.connection.runner.threads
        value = await core.runtime.threads.run(partial(call, values, request.context), share)
    else:
        value = call(values, request.context)
    # A plain function may return a coroutine, as lambdas and wrappers do.
    return await value if inspect.isawaitable(value) else value

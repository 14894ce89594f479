"""Requests of a server with middleware: the chain around each request, and its result.

Without middleware nothing here is loaded. With it, every request but `initialize` runs in its
handler task: the middleware first, in the order of registration, then the method itself. What the
method handler returns is the action that `proceed` carries out: it calls the handler, returns the
answer, or raises the refusal.

The rules that live here, and only here:

* `initialize` is not passed through middleware: it decides how the next message is read.
* `proceed` returns what a handler returned, and of a request without one the typed result; it
  raises what a handler raised, and a `RequestError` for a request that is refused.
* A middleware may answer without `proceed`; the value is rendered as that of a handler.
* The middleware of a mounted server is around its handlers only, inside that of the server that
  the client talks to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct
from msgspec.json import decode

from ...engine.handler_run import handler_run_of
from ...engine.request import Action, Answer, Later, Refuse, Run, context_of
from ...errors import RequestError
from ...jsonrpc.error_codes import peer_error
from ...jsonrpc.messages import ErrorObject
from ...mcp.names import official
from ...mcp.tables import result_type, result_types
from ...redaction import redact
from ...spec.error_kinds import ErrorKind
from ...spec.mcp.headers import NAME_MEMBERS
from ..dispatch.middleware_params import MiddlewareParams
from ..dispatch.params import UNREADABLE, ToolCall, members_of, params_of
from ..dispatch.request import ServerRequest
from ..errors import RefusedRequest, brief, unreadable_params
from .entry_methods import ENTRY_METHODS, entries_of
from .internal_handler import internal_entry
from .methods import OwnMethod

if TYPE_CHECKING:
    from ...engine.request import HandlerEntry, ResultRenderer
    from ..dispatch.request import MethodHandler
    from ..registry.entries import Entry

__all__ = ["through_middleware"]

_NULL: Final = Raw(b"null")


def through_middleware(request: ServerRequest, serve: MethodHandler | None) -> Action:
    """Return the run of a request through the middleware; `serve` is None for an unknown method."""
    message, rev = request.message, request.rev
    method = official(message.method, rev.policy, rev.revision)
    request.name = _name_of(request, method)
    params = MiddlewareParams(message, method, rev)
    handler_run_of(request).params = params
    chain = _Chain(serve, params)
    return Run(chain, _entry(), chain)


@cache
def _entry() -> Entry:
    """Return the entry of every chain: its handler calls the middleware."""
    return internal_entry("", lambda request, chain: chain.run(request))


def _name_of(request: ServerRequest, method: str) -> str:
    """Return the tool, prompt or URI that a request names, or its method."""
    message = request.message
    if type(message.params) is ToolCall:
        return message.params.name
    member = NAME_MEMBERS.get(method)
    if member is None:
        return message.method
    try:
        found = decode(members_of(params_of(message)).get(member, _NULL))
    except UNREADABLE:
        return message.method
    return found if isinstance(found, str) else message.method


class _Chain:
    """One request on its way through the middleware, and the renderer of its result."""

    __slots__ = ("_action", "_params", "_serve", "_typed")

    def __init__(self, serve: MethodHandler | None, params: MiddlewareParams) -> None:
        self._serve = serve
        self._params = params
        # What the method handler returned, once `proceed` was called; and the answer as Structs.
        self._action: Action | None = None
        self._typed: Any = None

    async def run(self, request: ServerRequest) -> Any:
        """Call the middleware, the outermost first."""
        context = context_of(request)
        proceed: Callable[[], Awaitable[Any]] = partial(self._proceed, request)
        for function in reversed(request.connection.core.middleware):
            proceed = partial(function, context, proceed)
        return await proceed()

    async def _proceed(self, request: ServerRequest) -> Any:
        request.message.set_params(self._params.raw)
        self._action = action = self._serve_method(request)
        if isinstance(action, Refuse):
            raise RefusedRequest(action.error, action.kind)
        if isinstance(action, Later):
            return None
        if isinstance(action, Answer):
            return self._answered(request, action)
        run = request.run
        if run is not None and run.begin is not None:
            await run.begin(request)
        return await request.connection.runner.call(action.entry, action.values, request)

    def _serve_method(self, request: ServerRequest) -> Action:
        method = request.method
        if self._serve is None:
            known = {"method": brief(method)}
            text = f"Unknown method: {redact(method)}"
            return request.refuse(ErrorKind.METHOD_NOT_FOUND, text, known)
        try:
            return self._serve(request)
        except UNREADABLE as error:
            raise unreadable_params(error, method, request.rev.policy) from None

    def _answered(self, request: ServerRequest, answer: Answer) -> Any:
        result, rev = answer.result, request.rev
        if type(result) is ErrorObject:
            raise RefusedRequest(result, peer_error(result, request.method, rev.policy).kind)
        kind = result_type(self._params.method, rev.revision)
        # Lists are kept as JSON.
        is_json = isinstance(result, Raw) and kind is not None
        self._typed = decode(result, type=kind) if is_json else result
        return self._typed

    # -- the result --------------------------------------------------------------------------

    def finish(self, _: Any, request: ServerRequest, value: Any) -> Any:
        """Return the result in its wire form; None if the request is answered later."""
        action, method, rev = self._action, self._params.method, request.rev
        if isinstance(action, Later):
            return None
        if isinstance(action, Answer):
            if value is self._typed:
                return action.result
            if value is None:
                raise TypeError(
                    f"a middleware returned None for {request.method}: "
                    "end it with `return await proceed()`"
                )
        types = result_types(method, rev.revision)
        if isinstance(value, Struct) and type(value) in types and method != "tools/call":
            return _sent(value, request)
        renderer, entry = self._renderer(request)
        return renderer.finish(entry, request, value)

    def fail(self, _: Any, request: ServerRequest, error: BaseException) -> Any:
        """Return the result, or the error, of a request that failed."""
        if isinstance(error, RefusedRequest):
            return error.error
        renderer, entry = self._renderer(request)
        return renderer.fail(entry, request, error)

    def _renderer(self, request: ServerRequest) -> tuple[ResultRenderer, HandlerEntry | None]:
        """Return what renders a value of the handler, or of a middleware in its place."""
        if isinstance(self._action, Run):
            return self._action.renderer, self._action.entry
        row = ENTRY_METHODS.get(self._params.method)
        if row is None:
            return OwnMethod(None), None
        try:
            params = self._params.get()
        except RequestError:
            return row.renderer, None
        request.name = row.name(params)
        return row.renderer, next(entries_of(row, request.connection.core, params), None)


def _sent(value: Any, request: ServerRequest) -> Any:
    """Return a result that a middleware made or changed, in its wire form."""
    rev, result = request.rev, request.rev.result(value)
    if getattr(value, "ttl_ms", 0) in (UNSET, None):
        return rev.cached(result, request.connection.core.options.cache)
    return result

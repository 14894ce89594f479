"""Requests of a server with middleware: the chain around each request, and its result.

Without middleware nothing here is loaded. With it, every request but `initialize` runs in its
handler task: the middleware first, in the order of registration, then the method itself. The
functions that serve methods are called as always, with a `_Capture` in place of the connection:
what they would answer, and the handler they would start, becomes what `proceed` returns or
raises.

The rules that live here, and only here:

* `initialize` is not passed through middleware: it decides how the next message is read.
* `proceed` returns what a handler returned, and of a request without one the typed result; it
  raises what a handler raised, and a `RequestError` for a request that is refused.
* A middleware may answer without `proceed`; the value is rendered as that of a handler.
* The middleware of a mounted server is around its handlers only, inside that of the server that
  the client talks to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import UNSET, Raw, Struct
from msgspec.json import Decoder, decode, encode
from msgspec.structs import fields, force_setattr, replace

from ...errors import NOTHING, RequestError
from ...jsonrpc.error_codes import peer_error
from ...jsonrpc.messages import ErrorObject
from ...mcp.names import official
from ...mcp.tables import params_type, result_type, result_types
from ...redaction import redact
from ...spec.error_kinds import ErrorKind
from ...spec.mcp.headers import NAME_MEMBERS
from ..context import Context
from ..errors import worded_error
from ..handlers.output import output_of
from ..registry.entries import Entry
from .connection import brief, plain
from .handler_run import handler_run_of
from .methods import RENDERERS, OwnMethod
from .params import EMPTY, UNREADABLE, ToolCall, members_of, params_of

if TYPE_CHECKING:
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ...jsonrpc.policy import Policy
    from ...mcp.meta import Caller
    from .connection import Connection
    from .handler_run import HandlerRun
    from .requests import ResultRenderer
    from .revision import MethodHandler, ServerRevision

__all__ = ["begin_request"]

# Answers when its stream ends, not when it is served.
_LISTEN: Final = "subscriptions/listen"
_object: Final = Decoder(dict[str, Any])


class _Refused(RequestError):
    """A request that was refused before its handler; `error` is sent as it is."""

    def __init__(self, error: ErrorObject, kind: str) -> None:
        data = NOTHING if error.data is UNSET else error.data
        super().__init__(kind, error.message, data=data)
        self.error = error


def _unreadable(error: Exception, method: str, policy: Policy) -> _Refused:
    kind = ErrorKind.INVALID_PARAMS
    return _Refused(worded_error(kind, policy, method, plain(error)), kind)


class _Capture:
    """In place of a connection while a method is served: records its answer or its handler."""

    def __init__(self, connection: Connection, context: Context) -> None:
        self.itself = connection
        self.middleware_context = context
        self.runner = SimpleNamespace(begin=self._begin, is_stopping=connection.runner.is_stopping)
        self.outcome: Any = None
        self.call: tuple[ResultRenderer, Entry, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.itself, name)

    def _begin(self, work: ResultRenderer, entry: Entry, values: Any, _: Context) -> None:
        self.call = work, entry, values

    def answer(self, asked: IncomingRequest, outcome: Any, policy: Policy) -> None:
        """Record an answer."""
        if type(outcome) is ErrorObject:
            raise _Refused(outcome, peer_error(outcome, asked.method, policy).kind)
        self.outcome = outcome

    def refuse(
        self,
        asked: IncomingRequest,
        policy: Policy,
        kind: str,
        message: str | None = None,
        known: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> None:
        """Raise an error in place of sending it."""
        raise _Refused(worded_error(kind, policy, asked.method, message, known, **facts), kind)


class RequestParams:
    """The params of a request as middleware reads and replaces them."""

    __slots__ = ("_rev", "_typed", "method", "raw")

    def __init__(self, asked: IncomingRequest, method: str, rev: ServerRevision) -> None:
        # The runner may drop those of the request.
        self.raw = asked.params
        # As MCP spells it.
        self.method = method
        self._rev = rev
        self._typed: Any = None

    def get(self) -> Any:
        """Return the params as a Struct; those of methods outside MCP are a dict.

        Absent members are None: UNSET is for the readers of the library, which refuse null.
        """
        if self._typed is None:
            raw = self.raw
            if raw is UNSET:
                raw = EMPTY
            elif type(raw) is ToolCall:
                raw = encode(raw)
            try:
                kind = params_type(self.method, self._rev.revision)
                self._typed = _object.decode(raw) if kind is None else decode(raw, type=kind)
                _show_absent(self._typed)
            except UNREADABLE as error:
                raise _unreadable(error, self.method, self._rev.policy) from None
        return self._typed

    def set(self, params: Any) -> None:
        """Replace the params: a Struct, or a dict with the names of the wire."""
        self.raw, self._typed = Raw(encode(_hide_absent(params))), None


def _show_absent(value: Any) -> None:
    """Set the absent members of Structs that were just decoded to None."""
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            member = getattr(value, name)
            if member is UNSET:
                force_setattr(value, name, None)
            else:
                _show_absent(member)


def _hide_absent(value: Any) -> Any:
    """Return a Struct with UNSET for the members that `_show_absent` set to None."""
    if not isinstance(value, Struct):
        return value
    members = {name: _hide_absent(getattr(value, name)) for name in value.__struct_fields__}
    absent = {
        each.name: UNSET
        for each in fields(value)
        if members[each.name] is None and each.default is UNSET
    }
    return replace(value, **{**members, **absent})


class _Request:
    """One request on its way through the middleware."""

    __slots__ = ("_call", "_outcome", "_serve", "_typed", "is_streamed", "params")

    def __init__(self, serve: MethodHandler | None, params: RequestParams) -> None:
        self._serve = serve
        self.params = params
        # The handler that was called, or the answer without one, as it is sent and typed.
        self._call: tuple[ResultRenderer, Entry, Any] | None = None
        self._outcome: Any = None
        self._typed: Any = None
        self.is_streamed = False

    async def run(self, context: Context) -> Any:
        """Call the middleware, the outermost first."""
        proceed: Callable[[], Awaitable[Any]] = partial(self._proceed, context)
        for function in reversed(context._connection.core.middleware):
            proceed = partial(function, context, proceed)
        return await proceed()

    async def _proceed(self, context: Context) -> Any:
        connection, asked, rev = context._connection, context._asked, context._rev
        serve = self._serve
        asked.set_params(self.params.raw)
        if serve is None:
            text = f"Unknown method: {redact(asked.method)}"
            kind = ErrorKind.METHOD_NOT_FOUND
            known = {"method": brief(asked.method)}
            raise _Refused(worded_error(kind, rev.policy, asked.method, text, known), kind)
        if self.params.method == _LISTEN:
            self.is_streamed = True
            serve(connection, asked, context._caller, rev)
            return None
        capture = _Capture(connection, context)
        try:
            context._connection = cast("Connection", capture)
            serve(context._connection, asked, context._caller, rev)
        except UNREADABLE as error:
            raise _unreadable(error, asked.method, rev.policy) from None
        finally:
            context._connection = connection
        if capture.call is None:
            self._outcome = capture.outcome
            self._typed = _typed(self._outcome, self.params.method, rev.revision)
            return self._typed
        self._call = capture.call
        _, entry, values = capture.call
        run = context._run
        if run is not None and run.begin is not None:
            await run.begin(context)
        return await connection.runner.call(entry, values, context)

    # -- the result --------------------------------------------------------------------------

    def finish(self, context: Context, value: Any) -> Any:
        """Return the result in its wire form; None if the request is answered later."""
        if self.is_streamed:
            return None
        if self._outcome is not None:
            if value is self._typed:
                return self._outcome
            if value is None:
                raise TypeError(
                    f"a middleware returned None for {context.method}: "
                    "end it with `return await proceed()`"
                )
        method, rev = self.params.method, context._rev
        types = result_types(method, rev.revision)
        if isinstance(value, Struct) and type(value) in types and method != "tools/call":
            return _sent(value, context)
        if self._call is not None:
            work, entry, _ = self._call
            return work.finish(entry, context, value)
        work, found = self._renderer(context)
        return work.finish(found, context, value)

    def fail(self, context: Context, error: BaseException) -> Any:
        """Return the result, or the error, of a request that failed."""
        if isinstance(error, _Refused):
            return error.error
        if self._call is not None:
            work, entry, _ = self._call
            return work.fail(entry, context, error)
        work, found = self._renderer(context)
        return work.fail(found, context, error)

    def _renderer(self, context: Context) -> tuple[ResultRenderer, Any]:
        """Return what renders a value that a middleware answered in place of the method."""
        method, core = self.params.method, context._connection.core
        work = RENDERERS.get(method)
        if work is None:
            return OwnMethod(_REQUEST), _REQUEST
        entry: Any = None
        try:
            params = self.params.get()
        except RequestError:
            return work, _ANYTHING
        if method == "tools/call":
            context.name, entry = params.name, core.tools.get(params.name)
        elif method == "prompts/get":
            context.name, entry = params.name, core.prompts.get(params.name)
        elif method == "resources/read":
            context.name = params.uri
            entry = next((entry for entry, _ in core.find_resources(params.uri)), None)
        return work, entry or _ANYTHING


class _RequestRenderer:
    """Renders requests as `_Request` says."""

    def finish(self, _: Any, context: Context, value: Any) -> Any:
        return _request_of(context).finish(context, value)

    def fail(self, _: Any, context: Context, error: BaseException) -> Any:
        return _request_of(context).fail(context, error)


def begin_request(
    connection: Connection,
    asked: IncomingRequest,
    caller: Caller | None,
    rev: ServerRevision,
    serve: MethodHandler | None,
) -> None:
    """Serve a request through the middleware; `serve` is None for an unknown method."""
    method = official(asked.method, rev.policy, rev.revision)
    name = _name_of(asked, method)
    context = Context(connection, asked, rev, caller, connection.core, name)
    request = _Request(serve, RequestParams(asked, method, rev))
    handler_run_of(context).request = request
    connection.runner.begin(_RENDERER, _REQUEST, request, context)


def _name_of(asked: IncomingRequest, method: str) -> str:
    """Return the tool, prompt or URI that a request names, or its method."""
    if type(asked.params) is ToolCall:
        return asked.params.name
    member = NAME_MEMBERS.get(method)
    if member is None:
        return asked.method
    try:
        found = decode(members_of(params_of(asked)).get(member, _NULL))
    except UNREADABLE:
        return asked.method
    return found if isinstance(found, str) else asked.method


def _request_of(context: Context) -> _Request:
    run: HandlerRun = handler_run_of(context)
    return cast("_Request", run.request)


def _typed(outcome: Any, method: str, revision: str) -> Any:
    """Return a result as a Struct; lists are kept as JSON."""
    kind = result_type(method, revision)
    return decode(outcome, type=kind) if isinstance(outcome, Raw) and kind is not None else outcome


def _sent(value: Any, context: Context) -> Any:
    """Return a result that a middleware made or changed, in its wire form."""
    rev, result = context._rev, context._rev.result(value)
    if getattr(value, "ttl_ms", 0) in (UNSET, None):
        return rev.cached(result, context._connection.core.cache)
    return result


_NULL: Final = Raw(b"null")
_RENDERER: Final = _RequestRenderer()
# Of a tool, prompt or resource that is not registered.
_ANYTHING: Final = SimpleNamespace(
    output=output_of(lambda: None, None), mime_type=None, cache=None, description="", guard=None
)
# In the place of a handler: calls the middleware.
_REQUEST: Final = Entry(
    name="",
    owner=None,
    arguments=cast(
        "Any",
        SimpleNamespace(
            is_async=True,
            wants_context=True,
            call=lambda request, context: request.run(context),
        ),
    ),
)

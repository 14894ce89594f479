"""The methods of MCP: decode params, find the registered entry, run its handler.

The tables at the end map methods and notifications to functions. A `ServerRevision` takes from
them what the rows of its revision list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError, field
from msgspec.json import Decoder, encode

from ...errors import RequestError
from ...jsonrpc.messages import ErrorObject, Shown
from ...jsonrpc.peer.incoming import IncomingRequest
from ...mcp.meta import Caller
from ...mcp.names import official
from ...mcp.types import (
    CancelledNotificationParams,
    CompleteRequestParams,
    CompleteResult,
    CompleteResultCompletion,
    GetPromptRequestParams,
    GetPromptResult,
    InitializeRequestParams,
    PaginatedRequestParams,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    SetLevelRequestParams,
    SubscribeRequestParams,
)
from ...redaction import redact
from ...spec.error_kinds import ErrorKind
from ...spec.lookup import method
from ...spec.mcp.tasks_extension import EXTENSION as TASKS
from .. import errors
from ..context import Context
from ..extensions import ExtensionResult, sent
from ..handlers.arguments import Arguments, explain
from ..handlers.custom_types import read_custom
from ..handlers.output import OutputMismatch, contents_of, messages_of
from ..registry.entries import Completer, Entry, PromptEntry, ResourceEntry, ToolEntry
from ..registry.paged_list import InvalidCursor, PagedList
from ..settings import CacheHint
from . import initialize
from .connection import Connection, brief
from .params import EMPTY, UNREADABLE, ToolCall, members_of, params_of
from .requests import ResultRenderer
from .revision import MethodHandler, ServerRevision

if TYPE_CHECKING:
    from ..core import ServerCore

__all__ = [
    "RENDERERS",
    "NotificationHandler",
    "OwnMethod",
    "adopted",
    "method_handlers",
    "notification_handlers",
]

# Of a URI that an error repeats.
_MAX_URI_CHARS: Final = 8192

_log: Final = logging.getLogger("trunkline.server")

NotificationHandler = Callable[[Connection, Any], None]

# Values of one completion.                          [MCP 2025-11-25, server/utilities/completion]
_MAX_COMPLETIONS: Final = 100


class _Retry(Shown, Struct, frozen=True):
    """Of any params, the members of a retry."""

    input_responses: Raw | UnsetType = field(default=UNSET, name="inputResponses")
    request_state: Raw | UnsetType = field(default=UNSET, name="requestState")


_read_initialize: Final = Decoder(InitializeRequestParams)
_read_page: Final = Decoder(PaginatedRequestParams)
_read_tool_call: Final = Decoder(ToolCall)
_read_resource: Final = Decoder(ReadResourceRequestParams)
_read_prompt: Final = Decoder(GetPromptRequestParams)
_read_retry: Final = Decoder(_Retry)
_read_complete: Final = Decoder(CompleteRequestParams)
_read_level: Final = Decoder(SetLevelRequestParams)
_read_subscribe: Final = Decoder(SubscribeRequestParams)
_read_cancelled: Final = Decoder(CancelledNotificationParams)


def adopted(known: Context, made: Context) -> Context:
    """Return the context that middleware has, for the handler that `made` was made for."""
    known._core, known.name = made._core, made.name
    return known


def _converted(entry: Entry, texts: Mapping[str, str]) -> Any:
    """Return arguments that came as texts, converted to the types of the handler.

    Raises:
        ValidationError: one of them cannot be converted.
    """
    struct = entry.arguments.struct
    return msgspec.convert(texts, struct, strict=False, dec_hook=read_custom)


# -- negotiation -----------------------------------------------------------------------------


def _initialize(
    connection: Connection, asked: IncomingRequest, _: Caller | None, rev: ServerRevision
) -> None:
    initialize.initialize(connection, asked, _read_initialize, rev)


def _discover(
    connection: Connection, asked: IncomingRequest, _: Caller | None, rev: ServerRevision
) -> None:
    connection.answer(asked, rev.discovered(), rev.policy)


def _ping(
    connection: Connection, asked: IncomingRequest, _: Caller | None, rev: ServerRevision
) -> None:
    connection.answer(asked, rev.empty(), rev.policy)


def _set_level(
    connection: Connection, asked: IncomingRequest, _: Caller | None, rev: ServerRevision
) -> None:
    try:
        level = _read_level.decode(params_of(asked)).level
    except ValidationError as error:
        connection.refuse(asked, rev.policy, ErrorKind.INVALID_LOG_LEVEL, brief(str(error)))
        return
    if connection.session is not None:
        connection.session.log_level = level
    connection.answer(asked, rev.empty(), rev.policy)


# -- lists -----------------------------------------------------------------------------------


def _lister(find: Callable[[ServerCore], PagedList[Any]]) -> MethodHandler:

    def serve(
        connection: Connection, asked: IncomingRequest, caller: Caller | None, rev: ServerRevision
    ) -> None:
        core = connection.core
        cursor = _read_page.decode(params_of(asked)).cursor
        listed, place = find(core), None if cursor is UNSET else cursor
        try:
            tail = rev.tail(core.cache_of(listed))
            if core.varies(listed):
                from .guarded import page_for  # here, as below: most servers have no guards

                page = page_for(listed, connection, asked, caller, rev, place, tail)
            else:
                page = listed.page(rev.revision, place, tail=tail, max_bytes=rev.page_bytes)
        except InvalidCursor as error:
            known = {"cursor": brief(str(cursor))}
            connection.refuse(asked, rev.policy, ErrorKind.INVALID_CURSOR, str(error), known)
        else:
            connection.answer(asked, page, rev.policy)

    return serve


def _not_offered(connection: Connection, asked: IncomingRequest, rev: ServerRevision) -> None:
    text = f"Unknown method: {redact(asked.method)} (this server does not offer it)"
    row = method(official(asked.method, rev.policy, rev.revision), rev.revision)
    known = {"capability": None if row is None else row.capability}
    connection.refuse(asked, rev.policy, ErrorKind.CAPABILITY_NOT_SUPPORTED, text, known)


# -- tools -----------------------------------------------------------------------------------


_NOTHING_RETURNED: Final = (
    "it is None after middleware: if the handler returns a value, a middleware does not return "
    "what `await proceed()` returned"
)


class _Tool:
    """Renders tools: one that ran and failed has a result too."""

    def finish(self, entry: ToolEntry, context: Context, value: Any) -> Any:
        if value.__class__ is ExtensionResult:
            return sent(value, context)
        try:
            rendered = entry.output.render(value)
        except OutputMismatch:
            if value is None and context._core.middleware:
                raise OutputMismatch(_NOTHING_RETURNED) from None
            raise
        return context._rev.tool_result(rendered, entry.output)

    def fail(self, entry: ToolEntry, context: Context, error: BaseException) -> Any:
        rev = context._rev
        if isinstance(error, RequestError):
            return errors.refusal(error, rev.policy)
        return rev.failed_tool(errors.tool_failure(error, context))


def _call_tool(
    connection: Connection, asked: IncomingRequest, caller: Caller | None, rev: ServerRevision
) -> None:
    params = asked.params
    if type(params) is not ToolCall:
        params = _read_tool_call.decode(params_of(asked))
    core = connection.core
    entry: ToolEntry | None = core.tools.get(params.name)
    if entry is None:
        _no_such_tool(connection, asked, rev, params.name)
        return
    context = Context(connection, asked, rev, caller, entry.owner, entry.name)
    if connection.middleware_context is not None:
        context = adopted(connection.middleware_context, context)
    guard = entry.guard
    if guard is not None or core.tool_sets is not None:
        from .guarded import hides, refuses

        if hides(context, entry):
            _no_such_tool(connection, asked, rev, params.name)
            return
        if refuses(context, entry):
            return
    may_be_task = entry.task != "never" or params.task is not UNSET
    if may_be_task and not core.tasks.admit(context, entry, params.task):
        return
    raw = params.arguments
    try:
        values = _values_of(entry, asked) if raw is UNSET else entry.arguments.decode(raw)
    except UNREADABLE as error:
        try:
            values = _second_reading(entry.arguments, raw, error)
        except UNREADABLE as still:
            _bad_arguments(context, entry, still, raw)
            return
    if entry.check is not None and (problem := entry.check.problem(values)) is not None:
        _refuse_arguments(context, entry, problem)
        return
    if entry.deprecated:
        core.warn_deprecated(entry)
    brings = params.input_responses is not UNSET or params.request_state is not UNSET
    if brings and rev.asks_in_results and not _resume(context, params):
        return
    if guard is not None:
        from .guarded import require_allow

        require_allow(context, entry, values)
    connection.runner.begin(_TOOL, entry, values, context)


def _values_of(entry: ToolEntry, asked: IncomingRequest) -> Any:
    """Return the arguments of a call without raw ones: it has none, or they are decoded."""
    read = getattr(asked.envelope, "values", None)
    return entry.arguments.decode(EMPTY) if read is None else read


def _second_reading(arguments: Arguments, raw: Any, error: Exception) -> Any:
    """Decode arguments again whose integers are written as `5.0`, or raise the error."""
    # Imported here, because most arguments are decoded at once.
    from ...mcp.integers import decode_integers

    return decode_integers(raw, arguments.decode, error)


def _is_retry(params: Any) -> bool:
    return params.input_responses is not UNSET or params.request_state is not UNSET


def _resume(context: Context, params: ToolCall | _Retry) -> bool:
    """Resume a call with its answers; return False, and answer, if they are invalid."""
    connection, policy = context._connection, context._rev.policy
    try:
        connection.core.rounds.resume(context, params.input_responses, params.request_state)
    except RequestError as error:
        connection.answer(context._asked, errors.refusal(error, policy), policy)
        return False
    return True


def _may_begin(
    context: Context, params: GetPromptRequestParams | ReadResourceRequestParams
) -> bool:
    """Resume a retry, if the revision has retries; return False if it was answered."""
    if not context._rev.asks_in_results or not _is_retry(params):
        return True
    return _resume(context, _read_retry.decode(params_of(context._asked)))


def _no_such_tool(
    connection: Connection, asked: IncomingRequest, rev: ServerRevision, name: str
) -> None:
    text = f"Unknown tool: {redact(name)}"
    known = {"tool": brief(name)}
    connection.refuse(asked, rev.policy, ErrorKind.TOOL_NOT_FOUND, text, known)


def _bad_arguments(context: Context, entry: ToolEntry, error: Exception, raw: Any) -> None:
    if raw is not UNSET and not bytes(raw).lstrip().startswith(b"{"):
        text = "Invalid params: arguments must be an object"
        policy = context._rev.policy
        context._connection.refuse(context._asked, policy, ErrorKind.INVALID_PARAMS, text)
        return
    _refuse_arguments(context, entry, explain(error, raw, entry.arguments))


def _refuse_arguments(context: Context, entry: ToolEntry, problem: str) -> None:
    connection, asked, rev = context._connection, context._asked, context._rev
    text = f"Invalid arguments for tool {entry.name!r}: {problem}"
    # A client that requested a task expects a task or an error.
    run = context._run
    wants_task = rev.has_handshake and run is not None and run.become is not None
    if rev.bad_arguments_are_results and not wants_task:
        result = rev.tool_result(errors.failed(text), entry.output)
        connection.answer(asked, result, rev.policy)
    else:
        known = {"tool": entry.name}
        connection.refuse(asked, rev.policy, ErrorKind.INVALID_TOOL_ARGUMENTS, text, known)


# -- resources -------------------------------------------------------------------------------


class _Answered:
    """Renders resources, prompts, completions and methods: a failure is an error."""

    def fail(self, _: Any, context: Context, error: BaseException) -> ErrorObject:
        return errors.error_of(error, context, context._rev.policy)


def _mismatch(entry: Entry, error: OutputMismatch) -> OutputMismatch:
    """Return the error for a value that cannot be sent, with its handler."""
    arguments = entry.arguments
    return OutputMismatch(
        f"{arguments.label} ({arguments.location}) returned a value that cannot be sent: {error}"
    )


class _Resource(_Answered):
    def finish(self, entry: ResourceEntry, context: Context, value: Any) -> Any:
        rev = context._rev
        if value is None:
            text, shown = _missing(context.name)
            kind, method = ErrorKind.RESOURCE_NOT_FOUND, "resources/read"
            return errors.worded_error(kind, rev.policy, method, text, uri=shown)
        try:
            contents = contents_of(value, context.name, entry.mime_type)
        except OutputMismatch as error:
            raise _mismatch(entry, error) from None
        result = ReadResourceResult(contents)
        # Depends on an answer: not cached.  [MCP 2026-07-28, server/utilities/caching]
        is_kept = context._run is None or context._run.round is None
        cache = (entry.cache or context._core.cache) if is_kept else CacheHint()
        if entry.guard is not None and cache.scope != "private":
            cache = CacheHint(cache.seconds)  # another caller may not read it
        return rev.cached(rev.result(result), cache)


def _read(
    connection: Connection, asked: IncomingRequest, caller: Caller | None, rev: ServerRevision
) -> None:
    core = connection.core
    params = _read_resource.decode(params_of(asked))
    uri = params.uri
    for entry, variables in core.find_resources(uri):
        try:
            values = _converted(entry, variables)
        except ValidationError:
            continue  # no resource of the template has such a name
        context = Context(connection, asked, rev, caller, entry.owner, uri)
        if connection.middleware_context is not None:
            context = adopted(connection.middleware_context, context)
        if entry.guard is not None:
            from .guarded import hides, refuses, require_allow

            if hides(context, entry):
                continue
            if refuses(context, entry):
                return
            require_allow(context, entry, values)
        if _may_begin(context, params):
            connection.runner.begin(_RESOURCE, entry, values, context)
        return
    _refuse_missing(connection, asked, rev, uri)


def _missing(uri: str) -> tuple[str, str]:
    """Return the text of an error about a resource that does not exist, and its URI."""
    # A longer one names nothing: it is longer than any URI that is matched.
    shown = uri if len(uri) <= _MAX_URI_CHARS else brief(uri)
    return f"Resource not found: {redact(uri)}", shown


def _refuse_missing(
    connection: Connection, asked: IncomingRequest, rev: ServerRevision, uri: str
) -> None:
    text, shown = _missing(uri)
    connection.refuse(asked, rev.policy, ErrorKind.RESOURCE_NOT_FOUND, text, uri=shown)


def _subscribe(
    connection: Connection, asked: IncomingRequest, caller: Caller | None, rev: ServerRevision
) -> None:
    core = connection.core
    uri = _read_subscribe.decode(params_of(asked)).uri
    if connection.session is None:
        _not_offered(connection, asked, rev)
        return
    for entry, values in core.served_resources(uri):
        if entry.guard is not None:
            from .guarded import begin_checked, hides, refuses

            context = Context(connection, asked, rev, caller, entry.owner, uri)
            if connection.middleware_context is not None:
                context = adopted(connection.middleware_context, context)
            if hides(context, entry):
                continue
            if refuses(context, entry):
                return
            if entry.guard.allow:
                joins = partial(_subscribed, connection.itself, asked, rev, uri)
                begin_checked(context, entry, values, joins)
                return
        connection.answer(asked, _subscribed(connection.itself, asked, rev, uri), rev.policy)
        return
    _refuse_missing(connection, asked, rev, uri)


def _subscribed(
    connection: Connection, asked: IncomingRequest, rev: ServerRevision, uri: str
) -> Any:
    """Subscribe a session to a resource; return the answer."""
    core = connection.core
    if core.streams.subscribe(connection, uri, connection.principal_of(asked)):
        return rev.empty()
    text, kind = (
        f"No more than {core.limits.subscriptions} subscriptions",
        (ErrorKind.SUBSCRIPTION_FAILED),
    )
    return errors.worded_error(kind, rev.policy, asked.method, text)


def _unsubscribe(
    connection: Connection, asked: IncomingRequest, _: Caller | None, rev: ServerRevision
) -> None:
    uri = _read_subscribe.decode(params_of(asked)).uri
    connection.core.streams.unsubscribe(connection.itself, uri)
    connection.answer(asked, rev.empty(), rev.policy)


def _listen(
    connection: Connection, asked: IncomingRequest, caller: Caller | None, rev: ServerRevision
) -> None:
    from ..subscriptions.listen import listen  # here: few clients listen

    listen(connection, asked, caller, rev)


# -- prompts and completions -----------------------------------------------------------------


class _Prompt(_Answered):
    def finish(self, entry: PromptEntry, context: Context, value: Any) -> Any:
        result: GetPromptResult = messages_of(value)
        if result.description is None and entry.description:
            result = msgspec.structs.replace(result, description=entry.description)
        return context._rev.result(result)


def _get_prompt(
    connection: Connection, asked: IncomingRequest, caller: Caller | None, rev: ServerRevision
) -> None:
    core = connection.core
    params = _read_prompt.decode(params_of(asked))
    entry: PromptEntry | None = core.prompts.get(params.name)
    if entry is None:
        _no_such_prompt(connection, asked, rev, params.name)
        return
    context = Context(connection, asked, rev, caller, entry.owner, entry.name)
    if connection.middleware_context is not None:
        context = adopted(connection.middleware_context, context)
    if entry.guard is not None:
        from .guarded import hides, refuses

        if hides(context, entry):
            _no_such_prompt(connection, asked, rev, params.name)
            return
        if refuses(context, entry):
            return
    given: Mapping[str, str] = {} if params.arguments is UNSET else params.arguments
    missing = [name for name in entry.arguments.required if name not in given]
    if missing:
        text = f"Missing required argument: {', '.join(missing)}"
        known = {"prompt": entry.name, "argument": missing[0]}
        connection.refuse(asked, rev.policy, ErrorKind.PROMPT_ARGUMENT_MISSING, text, known)
        return
    try:
        values = _converted(entry, given)
    except ValidationError as error:
        problem = explain(error, arguments=entry.arguments)
        text = f"Invalid arguments for prompt {entry.name!r}: {problem}"
        known = {"prompt": entry.name}
        connection.refuse(asked, rev.policy, ErrorKind.INVALID_PROMPT_ARGUMENTS, text, known)
        return
    if entry.guard is not None:
        from .guarded import require_allow

        require_allow(context, entry, values)
    if _may_begin(context, params):
        connection.runner.begin(_PROMPT, entry, values, context)


def _no_such_prompt(
    connection: Connection, asked: IncomingRequest, rev: ServerRevision, name: str
) -> None:
    text = f"Unknown prompt: {redact(name)}"
    known = {"prompt": brief(name)}
    connection.refuse(asked, rev.policy, ErrorKind.PROMPT_NOT_FOUND, text, known)


class _Completion(_Answered):
    def finish(self, _: Completer, context: Context, value: Any) -> Any:
        if isinstance(value, CompleteResultCompletion):
            values, total, more = value.values, value.total, value.has_more is True
        else:
            values = [] if value is None else [value] if isinstance(value, str) else list(value)
            total, more = len(values), False
        found = CompleteResultCompletion(
            [str(each) for each in values[:_MAX_COMPLETIONS]],
            has_more=more or len(values) > _MAX_COMPLETIONS,
            total=total,
        )
        return context._rev.result(CompleteResult(found))


def _complete(
    connection: Connection, asked: IncomingRequest, caller: Caller | None, rev: ServerRevision
) -> None:
    core = connection.core
    if not core.has_completions:
        _not_offered(connection, asked, rev)
        return
    params = _read_complete.decode(params_of(asked))
    is_prompt = isinstance(params.ref, PromptReference)
    name = params.ref.name if isinstance(params.ref, PromptReference) else params.ref.uri
    argument = params.argument
    context = Context(connection, asked, rev, caller, core, name)
    if connection.middleware_context is not None:
        context = adopted(connection.middleware_context, context)
    kind = "prompt" if is_prompt else "resource"
    entries: list[Entry] = []
    if core.offers("prompts" if is_prompt else "resources"):
        entries = list(core.completed_entries(kind, name))
    guarded = any(entry.guard is not None for entry in entries)
    if guarded:
        from .guarded import hides

        entries = [entry for entry in entries if not hides(context, entry)]
    if not entries:
        text, known = f"Nothing to complete: {redact(name)}", {"reference": brief(name)}
        symbol = ErrorKind.INVALID_COMPLETION_REFERENCE
        connection.refuse(asked, rev.policy, symbol, text, known)
        return
    if guarded:
        from .guarded import refuses, require_allow_for_completion

        for entry in entries:
            if refuses(context, entry):
                return
            require_allow_for_completion(context, entry)
    completer = core.completer(kind, entries, argument.name)
    if completer is None:
        # An argument without a completion.
        result = CompleteResult(CompleteResultCompletion([], has_more=False, total=0))
        connection.answer(asked, rev.result(result), rev.policy)
        return
    others: Mapping[str, str] = {}
    if params.context is not UNSET and params.context.arguments is not UNSET:
        others = params.context.arguments
    context._core = completer.owner
    given = (argument.value, others)[: len(completer.arguments.names)]
    struct = completer.arguments.struct
    values = struct(**dict(zip(struct.__struct_fields__, given, strict=False)))
    connection.runner.begin(_COMPLETION, completer, values, context)


# -- tasks -----------------------------------------------------------------------------------


def _of_tasks(name: str) -> MethodHandler:
    """Return the handler of a task method, for revisions with tasks in their core."""

    def serve(
        connection: Connection, asked: IncomingRequest, caller: Caller | None, rev: ServerRevision
    ) -> None:
        if TASKS not in connection.core.extensions:
            _not_offered(connection, asked, rev)
            return
        # Imported here: most servers have no tasks.
        from ..tasks.methods import TASK_METHODS

        TASK_METHODS[name](connection, asked, caller, rev)

    return serve


# -- methods outside the specification -------------------------------------------------------


class OwnMethod(_Answered):
    """A registered method outside the specification."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    def __call__(
        self,
        connection: Connection,
        asked: IncomingRequest,
        caller: Caller | None,
        rev: ServerRevision,
    ) -> None:
        """Serve it."""
        raw = _without_meta(params_of(asked))
        try:
            values = self.entry.arguments.decode(raw)
        except UNREADABLE as error:
            try:
                values = _second_reading(self.entry.arguments, raw, error)
            except UNREADABLE as still:
                text = f"Invalid params: {explain(still, raw, self.entry.arguments)}"
                connection.refuse(asked, rev.policy, ErrorKind.INVALID_PARAMS, text)
                return
        entry = self.entry
        context = Context(connection, asked, rev, caller, entry.owner, entry.name)
        if connection.middleware_context is not None:
            context = adopted(connection.middleware_context, context)
        connection.runner.begin(self, entry, values, context)

    def finish(self, _: Entry, context: Context, value: Any) -> Any:
        """Return the result: an object as it is, None as empty, anything else under `result`."""
        if value is None:
            return context._rev.empty()
        if value.__class__ is ExtensionResult:
            return sent(value, context)
        plain = msgspec.to_builtins(value)
        members = plain if isinstance(plain, dict) else {"result": plain}
        always = context._rev.empty()
        if "_meta" in members and "_meta" in always:
            always = {**always, "_meta": {**always["_meta"], **members["_meta"]}}
        return {**members, **always}


def _without_meta(raw: Raw) -> bytes:
    return encode({name: value for name, value in members_of(raw).items() if name != "_meta"})


_TOOL: Final = _Tool()
_RESOURCE: Final = _Resource()
_PROMPT: Final = _Prompt()
_COMPLETION: Final = _Completion()

# What renders the values of handlers, by method.
RENDERERS: Final[dict[str, ResultRenderer]] = {
    "tools/call": _TOOL,
    "resources/read": _RESOURCE,
    "prompts/get": _PROMPT,
    "completion/complete": _COMPLETION,
}


# -- notifications ---------------------------------------------------------------------------


def _initialized(connection: Connection, _: Any) -> None:
    if connection.session is not None:
        connection.session.is_ready = True
        connection.core.streams.ready(connection)


def _cancelled(connection: Connection, params: Any) -> None:
    id = _read_cancelled.decode(EMPTY if params is UNSET else params).request_id
    if id is UNSET:
        initialize.cancel_by_token(connection, params)
    else:
        connection.core.streams.cancel(connection, id)
        connection.runner.cancel(id)


def _ignored(_: Connection, params: Any) -> None:
    """Do nothing: a server need not act on it."""


method_handlers: Final[dict[str, MethodHandler]] = {
    "initialize": _initialize,
    "server/discover": _discover,
    "ping": _ping,
    "logging/setLevel": _set_level,
    "tools/list": _lister(lambda core: core.tools),
    "tools/call": _call_tool,
    "resources/list": _lister(lambda core: core.resources),
    "resources/templates/list": _lister(lambda core: core.templates),
    "resources/read": _read,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _unsubscribe,
    "subscriptions/listen": _listen,
    "prompts/list": _lister(lambda core: core.prompts),
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
    "tasks/get": _of_tasks("tasks/get"),
    "tasks/result": _of_tasks("tasks/result"),
    "tasks/list": _of_tasks("tasks/list"),
    "tasks/cancel": _of_tasks("tasks/cancel"),
}

notification_handlers: Final[dict[str, NotificationHandler]] = {
    "notifications/initialized": _initialized,
    "notifications/cancelled": _cancelled,
    "notifications/progress": _ignored,
    "notifications/roots/list_changed": _ignored,
}

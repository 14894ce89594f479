"""Methods that name a registered entry: one table, and one function that walks it.

Each row says how the entry of a request is found, what its absence is called, how arguments are
read, and what renders the value of the handler. `serve_entry` does the rest for all of them, so
that no method has its own way past a guard.

The rules that live here, and only here:

* In this order: find the entry, hide it from a caller that may not see it, check its scopes, read
  the arguments, require `allow`, resume the round trip of a retry, run the handler.
* An entry that is hidden is answered like one that is not registered.
* A completion needs the rights of every entry that its reference may mean; its `allow` functions
  that take arguments are not called, because there are none yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError, field
from msgspec.json import Decoder

from ...engine.request import Action, Answer, Refuse, ResultRenderer, Run
from ...errors import RequestError
from ...jsonrpc.messages import Shown
from ...mcp.names import official
from ...mcp.types import (
    CompleteRequestParams,
    CompleteResult,
    CompleteResultCompletion,
    GetPromptRequestParams,
    PromptReference,
    ReadResourceRequestParams,
    SubscribeRequestParams,
)
from ...redaction import redact
from ...spec.error_kinds import ErrorKind
from ...spec.lookup import method as method_row
from ...spec.mcp.methods import LISTED
from .. import errors
from ..dispatch.params import EMPTY, UNREADABLE, ToolCall, params_of
from ..dispatch.request import ServerRequest
from ..errors import brief
from ..handlers.arguments import Arguments, explain
from ..handlers.custom_types import read_custom
from . import renderers

if TYPE_CHECKING:
    from ...spec.rows import EntryKind
    from ..api.core import ServerCore
    from ..registry.entries import Completer, Entry, PromptEntry, ResourceEntry, ToolEntry

__all__ = [
    "ENTRY_METHODS",
    "EntryMethod",
    "entries_of",
    "entry_handler",
    "is_guarded",
    "not_offered",
    "second_reading",
]

# What `arguments` may return in place of values, for params that cannot be used.
_ACTIONS: Final = (Refuse, Answer)
# Longest arguments that are coerced to find out whether the log should say that they could be.
_MAX_BYTES_TRIED: Final = 4096


class _Retry(Shown, Struct, frozen=True):
    """Of any params, the members of a retry."""

    input_responses: Raw | UnsetType = field(default=UNSET, name="inputResponses")
    request_state: Raw | UnsetType = field(default=UNSET, name="requestState")


_read_retry: Final = Decoder(_Retry).decode


class EntryMethod(Shown, Struct, frozen=True, kw_only=True, eq=False):
    """How one method that names an entry is served."""

    # Decodes params; those of `decoded` were decoded with the envelope.
    read: Callable[[Any], Any]
    decoded: type | None = None
    # Returns the name of the entry that the params have.
    name: Callable[[Any], str]
    # The list that has the entry under that name; or returns the entries that the params may mean,
    # best first, with what was found of arguments.
    listed: EntryKind | None = None
    find: Callable[[ServerCore, Any], Iterable[tuple[Any, Any]]] | None = None
    # Returns the refusal of a request about an entry that does not exist.
    missing: Callable[[ServerRequest, str], Refuse]
    # Returns the arguments of the handler; or, before `allow`, the answer to unusable params.
    arguments: Callable[[ServerRequest, Any, Any, Any], Any]
    # Makes results of what the handler returns and raises.
    renderer: ResultRenderer
    # Whether the handler may ask its client in a result, so that the request comes again.
    is_retried: bool = False
    # Whether the rights of every entry found are needed, and `allow` has no arguments.
    needs_all: bool = False
    # Refuses a request that the server does not offer at all.
    offered: Callable[[ServerRequest], Refuse | None] | None = None
    # In place of the handler of the entry: does the work itself, and returns the result as it is
    # sent. It is called after `allow`.
    perform: Callable[[ServerRequest, Any], Any] | None = None
    # Returns another handler to run, or an answer without one; it changes nothing.
    begin: Callable[[ServerRequest, Any, Any], Action] | None = None


def entry_handler(method: EntryMethod) -> Callable[[ServerRequest], Action]:
    """Return what serves a method."""
    return partial(serve_entry, method)


def serve_entry(method: EntryMethod, request: ServerRequest) -> Action:
    """Find the entry that a request names, check access to it, and return what is to happen."""
    message, core = request.message, request.connection.core
    if method.offered is not None and (refused := method.offered(request)) is not None:
        return refused
    params = message.params
    if type(params) is not method.decoded:
        params = method.read(params_of(message))
    request.name = method.name(params)
    if method.find is None:
        entry = core.catalog.lists[method.listed].get(request.name)
        candidates: Iterable[tuple[Any, Any]] = () if entry is None else ((entry, None),)
    else:
        candidates = method.find(core, params)
    guarded: list[Entry] = []
    visible: list[Entry] = []
    for entry, given in candidates:  # noqa: B007  # read after the loop
        request.owner = entry.owner
        if entry.guard is not None or core.catalog.tool_sets is not None:
            from .guarded import is_hidden, missing_scopes  # here: most servers have no guards

            if is_hidden(request, entry):
                continue
            if (refused := missing_scopes(request, entry)) is not None:
                return refused
            guarded.append(entry)
        if not method.needs_all:
            break
        visible.append(entry)
    else:
        if not visible:
            return method.missing(request, request.name)
        entry, given = visible[0], visible
    values = method.arguments(request, entry, params, given)
    if type(values) in _ACTIONS:
        return values  # type: ignore[no-any-return]  # one of these
    if guarded:
        from .guarded import require_allow

        for each in guarded:
            require_allow(request, each, values, has_arguments=not method.needs_all)
    if method.is_retried and request.rev.asks_in_results:
        is_retry = params.input_responses is not UNSET or params.request_state is not UNSET
        if is_retry and (refused := _resume(request, params)) is not None:
            return refused
    if method.perform is not None:
        if request.run is None:
            return Answer(method.perform(request, values))
        return Run(renderers.WIRE_FORM, _performance(), (method.perform, values))
    if method.begin is None:
        return Run(method.renderer, entry, values)
    action = method.begin(request, entry, values)
    if type(action) is Answer and request.run is not None:
        return Run(renderers.WIRE_FORM, _performance(), (lambda *_: action.result, values))
    return action


@cache
def _performance() -> Entry:
    """Return the entry of work without a handler: it runs in a handler task, after `allow`."""
    from .internal_handler import internal_entry  # here: most entries have no `allow`

    async def perform(request: ServerRequest, work: Any) -> Any:
        function, values = work
        return function(request, values)

    return internal_entry("", perform)


def _resume(request: ServerRequest, params: Any) -> Refuse | None:
    """Resume a call with its answers; return the refusal of invalid ones."""
    retry = params if type(params) is ToolCall else _read_retry(params_of(request.message))
    rounds = request.connection.core.services.rounds
    try:
        rounds.resume(request, retry.input_responses, retry.request_state)
    except RequestError as error:
        return Refuse(errors.refusal(error, request.rev.policy), str(error.kind))
    return None


def is_guarded(core: ServerCore, method: str, params: Any) -> bool:
    """Return True if the answer to a request depends on the rights of its caller."""
    listed = core.catalog.lists.get(LISTED.get(method))
    if listed is not None:
        return core.catalog.varies(listed)
    row = ENTRY_METHODS.get(method)
    if row is None:
        return False
    if core.catalog.tool_sets is not None and row.listed == "tool":
        return True
    return any(entry.guard is not None for entry in entries_of(row, core, params))


def entries_of(method: EntryMethod, core: ServerCore, params: Any) -> Iterator[Entry]:
    """Yield the entries that the params of a request may mean, best first, for any caller."""
    if method.find is not None:
        yield from (entry for entry, _ in method.find(core, params))
    elif (entry := core.catalog.lists[method.listed].get(method.name(params))) is not None:
        yield entry


# -- tools -----------------------------------------------------------------------------------


def _no_such_tool(request: ServerRequest, name: str) -> Refuse:
    known = {"tool": brief(name)}
    return request.refuse(ErrorKind.TOOL_NOT_FOUND, f"Unknown tool: {redact(name)}", known)


def _tool_arguments(request: ServerRequest, entry: ToolEntry, params: ToolCall, _: None) -> Any:
    core = request.connection.core
    if entry.task != "never" or params.task is not UNSET:
        refused = core.services.tasks.admit(request, entry, params.task)
        if refused is not None:
            return refused
    raw = params.arguments
    try:
        values = _values_of(request, entry) if raw is UNSET else entry.arguments.decode(raw)
    except UNREADABLE as error:
        try:
            values = second_reading(entry.arguments, raw, error)
        except UNREADABLE as still:
            found = _coerced_values(request, entry, raw)
            return _bad_arguments(request, entry, still, raw) if found is None else found
    if entry.check is not None and (problem := entry.check.problem(values)) is not None:
        found = _coerced_values(request, entry, raw)
        return _refuse_arguments(request, entry, problem) if found is None else found
    if entry.deprecated:
        core.catalog.warn_deprecated(entry)
    return values


def _values_of(request: ServerRequest, entry: ToolEntry) -> Any:
    """Return the arguments of a call without raw ones: it has none, or they are decoded."""
    read = getattr(request.message.envelope, "values", None)
    return entry.arguments.decode(EMPTY) if read is None else read


def second_reading(arguments: Arguments, raw: Any, error: Exception) -> Any:
    """Decode arguments again whose integers are written as `5.0`, or raise the error."""
    # Imported here, because most arguments are decoded at once.
    from ...mcp.integers import decode_integers

    return decode_integers(raw, arguments.decode, error)


def _coerced_values(request: ServerRequest, entry: ToolEntry, raw: Any) -> Any:
    """Return arguments that do not fit with texts in them read as the values that they say.

    Returns None if there are no such texts, or the tool does not read them so; the answer to the
    call if the arguments do not fit so either.
    """
    counters = request.connection.core.runtime.counters
    is_on = entry.coerces if entry.coerces is not None else entry.owner.options.coerce_arguments
    if raw is UNSET:
        return None
    if not is_on and (len(bytes(raw)) > _MAX_BYTES_TRIED or not counters.is_due("arguments")):
        return None
    # Imported here, as above.
    from ...mcp.coercion import coerced

    changed = coerced(raw, entry.schema)
    if changed is None:
        return None
    try:
        try:
            values = entry.arguments.decode(changed)
        except UNREADABLE as error:
            values = second_reading(entry.arguments, changed, error)
    except UNREADABLE as still:
        return _bad_arguments(request, entry, still, changed) if is_on else None
    problem = None if entry.check is None else entry.check.problem(values)
    if problem is not None:
        return _refuse_arguments(request, entry, problem) if is_on else None
    if not is_on:
        counters.warn(
            "arguments",
            "arguments of tool %r refused: they have texts in place of numbers, booleans or JSON; "
            "Server(coerce_arguments=True) accepts them, or @app.tool(coerce_arguments=True)",
            entry.name,
        )
        return None
    counters.coerced_calls += 1
    if entry.deprecated:
        request.connection.core.catalog.warn_deprecated(entry)
    return values


def _bad_arguments(
    request: ServerRequest, entry: ToolEntry, error: Exception, raw: Any
) -> Answer | Refuse:
    if raw is not UNSET and not bytes(raw).lstrip().startswith(b"{"):
        text = "Invalid params: arguments must be an object"
        return request.refuse(ErrorKind.INVALID_PARAMS, text)
    return _refuse_arguments(request, entry, explain(error, raw, entry.arguments))


def _refuse_arguments(request: ServerRequest, entry: ToolEntry, problem: str) -> Answer | Refuse:
    rev, run = request.rev, request.run
    text = f"Invalid arguments for tool {entry.name!r}: {problem}"
    # A client that requested a task expects a task or an error.
    wants_task = rev.has_handshake and run is not None and run.become is not None
    if rev.bad_arguments_are_results and not wants_task:
        return Answer(rev.tool_result(errors.failed(text), entry.output))
    return request.refuse(ErrorKind.INVALID_TOOL_ARGUMENTS, text, {"tool": entry.name})


# -- resources -------------------------------------------------------------------------------


def _find_resources(core: ServerCore, params: Any) -> Iterator[tuple[ResourceEntry, Any]]:
    return core.catalog.served_resources(params.uri)


def _no_such_resource(request: ServerRequest, uri: str) -> Refuse:
    text, shown = renderers.missing_resource(uri)
    return request.refuse(ErrorKind.RESOURCE_NOT_FOUND, text, uri=shown)


def _found_arguments(_: ServerRequest, entry: ResourceEntry, params: Any, values: Any) -> Any:
    """Return the arguments that a template has found in its URI."""
    return values


def _has_session(request: ServerRequest) -> Refuse | None:
    return not_offered(request) if request.connection.session is None else None


def _subscribe(request: ServerRequest, _: Any) -> Any:
    """Subscribe a session to a resource; return the answer."""
    connection, rev = request.connection, request.rev
    core = connection.core
    text = core.services.streams.subscribe(connection, request.name, request.principal)
    if text is None:
        return rev.empty()
    return errors.worded_error(ErrorKind.SUBSCRIPTION_FAILED, rev.policy, request.method, text)


def not_offered(request: ServerRequest) -> Refuse:
    """Return the refusal of a method that the revision has and the server does not offer."""
    rev, name = request.rev, request.method
    text = f"Unknown method: {redact(name)} (this server does not offer it)"
    row = method_row(official(name, rev.policy, rev.revision), rev.revision)
    known = {"capability": None if row is None else row.capability}
    return request.refuse(ErrorKind.CAPABILITY_NOT_SUPPORTED, text, known)


# -- prompts ---------------------------------------------------------------------------------


def _no_such_prompt(request: ServerRequest, name: str) -> Refuse:
    known = {"prompt": brief(name)}
    return request.refuse(ErrorKind.PROMPT_NOT_FOUND, f"Unknown prompt: {redact(name)}", known)


def _prompt_arguments(
    request: ServerRequest, entry: PromptEntry, params: GetPromptRequestParams, _: None
) -> Any:
    given: Mapping[str, str] = {} if params.arguments is UNSET else params.arguments
    missing = [name for name in entry.arguments.required if name not in given]
    if missing:
        text = f"Missing required argument: {', '.join(missing)}"
        known = {"prompt": entry.name, "argument": missing[0]}
        return request.refuse(ErrorKind.PROMPT_ARGUMENT_MISSING, text, known)
    try:
        return msgspec.convert(given, entry.arguments.struct, strict=False, dec_hook=read_custom)
    except ValidationError as error:
        problem = explain(error, arguments=entry.arguments)
        text = f"Invalid arguments for prompt {entry.name!r}: {problem}"
        return request.refuse(ErrorKind.INVALID_PROMPT_ARGUMENTS, text, {"prompt": entry.name})


# -- completions -----------------------------------------------------------------------------


def _has_completions(request: ServerRequest) -> Refuse | None:
    return None if request.connection.core.catalog.has_completions else not_offered(request)


def _reference(params: CompleteRequestParams) -> str:
    ref = params.ref
    return ref.name if isinstance(ref, PromptReference) else ref.uri


def _completed_kind(params: CompleteRequestParams) -> str:
    return "prompt" if isinstance(params.ref, PromptReference) else "resource"


def _find_completed(
    core: ServerCore, params: CompleteRequestParams
) -> Iterator[tuple[Entry, None]]:
    kind = _completed_kind(params)
    if core.catalog.offers(f"{kind}s"):
        for entry in core.catalog.completed_entries(kind, _reference(params)):
            yield entry, None


def _nothing_to_complete(request: ServerRequest, name: str) -> Refuse:
    text, known = f"Nothing to complete: {redact(name)}", {"reference": brief(name)}
    return request.refuse(ErrorKind.INVALID_COMPLETION_REFERENCE, text, known)


def _completion_arguments(
    request: ServerRequest, _: Entry, params: CompleteRequestParams, entries: list[Entry]
) -> Any:
    argument, core = params.argument, request.connection.core
    completer = core.catalog.completer(_completed_kind(params), entries, argument.name)
    if completer is None:
        return None, None
    others: Mapping[str, str] = {}
    if params.context is not UNSET and params.context.arguments is not UNSET:
        others = params.context.arguments
    request.owner = completer.owner
    given = (argument.value, others)[: len(completer.arguments.names)]
    struct = completer.arguments.struct
    values = struct(**dict(zip(struct.__struct_fields__, given, strict=False)))
    return completer, values


def _complete(request: ServerRequest, _: Entry, found: tuple[Completer | None, Any]) -> Action:
    completer, values = found
    if completer is None:
        # An argument without a completion.
        result = CompleteResult(CompleteResultCompletion([], has_more=False, total=0))
        return Answer(request.rev.result(result))
    return Run(renderers.COMPLETION, completer, values)


# -- the table -------------------------------------------------------------------------------

ENTRY_METHODS: Final[Mapping[str, EntryMethod]] = {
    "tools/call": EntryMethod(
        read=Decoder(ToolCall).decode,
        decoded=ToolCall,
        listed="tool",
        name=attrgetter("name"),
        missing=_no_such_tool,
        arguments=_tool_arguments,
        renderer=renderers.TOOL,
        is_retried=True,
    ),
    "resources/read": EntryMethod(
        read=Decoder(ReadResourceRequestParams).decode,
        find=_find_resources,
        name=attrgetter("uri"),
        missing=_no_such_resource,
        arguments=_found_arguments,
        renderer=renderers.RESOURCE,
        is_retried=True,
    ),
    "resources/subscribe": EntryMethod(
        read=Decoder(SubscribeRequestParams).decode,
        find=_find_resources,
        name=attrgetter("uri"),
        missing=_no_such_resource,
        arguments=_found_arguments,
        renderer=renderers.WIRE_FORM,
        offered=_has_session,
        perform=_subscribe,
    ),
    "prompts/get": EntryMethod(
        read=Decoder(GetPromptRequestParams).decode,
        listed="prompt",
        name=attrgetter("name"),
        missing=_no_such_prompt,
        arguments=_prompt_arguments,
        renderer=renderers.PROMPT,
        is_retried=True,
    ),
    "completion/complete": EntryMethod(
        read=Decoder(CompleteRequestParams).decode,
        find=_find_completed,
        name=_reference,
        missing=_nothing_to_complete,
        arguments=_completion_arguments,
        renderer=renderers.COMPLETION,
        offered=_has_completions,
        needs_all=True,
        begin=_complete,
    ),
}

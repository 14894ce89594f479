"""Results of handlers: what a tool, resource, prompt or completion returned, in its wire form.

A renderer makes the result of one kind of handler, and the error or result of one that failed.
`entry` is None for a value that a middleware answered with in place of an entry that is not
registered.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from msgspec.structs import replace

from ...errors import RequestError
from ...jsonrpc.messages import ErrorObject
from ...mcp.types import (
    CompleteResult,
    CompleteResultCompletion,
    GetPromptResult,
    ReadResourceResult,
)
from ...redaction import redact
from ...spec.error_kinds import ErrorKind
from .. import errors
from ..dispatch.request import ServerRequest
from ..errors import brief
from ..handlers.output import Output, OutputMismatch, contents_of, messages_of, output_of
from ..registry.entries import Completer, Entry, PromptEntry, ResourceEntry, ToolEntry
from ..registry.extensions import ExtensionResult, sent
from ..settings import CacheHint

__all__ = [
    "COMPLETION",
    "PROMPT",
    "RESOURCE",
    "TOOL",
    "WIRE_FORM",
    "FailsWithError",
    "missing_resource",
]

# Longest URI that an error repeats, in characters.
_MAX_URI_CHARS: Final = 8192
# Values of one completion.                          [MCP 2025-11-25, server/utilities/completion]
_MAX_COMPLETIONS: Final = 100

_NOTHING_RETURNED: Final = (
    "it is None after middleware: if the handler returns a value, a middleware does not return "
    "what `await proceed()` returned"
)


class _Tool:
    """Renders tools: one that ran and failed has a result too."""

    def finish(self, entry: ToolEntry | None, request: ServerRequest, value: Any) -> Any:
        if value.__class__ is ExtensionResult:
            return sent(value, request)
        output = _any_output() if entry is None else entry.output
        try:
            rendered = output.render(value)
        except OutputMismatch:
            if value is None and request.owner.middleware:
                raise OutputMismatch(_NOTHING_RETURNED) from None
            raise
        return request.rev.tool_result(rendered, output)

    def fail(self, entry: ToolEntry | None, request: ServerRequest, error: BaseException) -> Any:
        rev = request.rev
        if isinstance(error, RequestError):
            if rev.missing_capabilities_are_results and errors.is_missing_capability(error):
                return rev.failed_tool(errors.failed(error.message or str(error)))
            return errors.refusal(error, rev.policy)
        return rev.failed_tool(errors.tool_failure(error, request))


@cache
def _any_output() -> Output:
    return output_of(lambda: None, None)


class FailsWithError:
    """Renders everything but tools: a failure is an error."""

    def fail(self, _: Any, request: ServerRequest, error: BaseException) -> ErrorObject:
        """Return the error of a failed handler."""
        return errors.error_of(error, request, request.rev.policy)


class _Resource(FailsWithError):
    def finish(self, entry: ResourceEntry | None, request: ServerRequest, value: Any) -> Any:
        rev, uri = request.rev, request.name
        if value is None:
            text, shown = missing_resource(uri)
            kind, method = ErrorKind.RESOURCE_NOT_FOUND, "resources/read"
            return errors.worded_error(kind, rev.policy, method, text, uri=shown)
        try:
            contents = contents_of(value, uri, None if entry is None else entry.mime_type)
        except OutputMismatch as error:
            raise error if entry is None else _mismatch(entry, error) from None
        return rev.cached(rev.result(ReadResourceResult(contents)), _cache_of(entry, request))


def _cache_of(entry: ResourceEntry | None, request: ServerRequest) -> CacheHint:
    if request.run is not None and request.run.round is not None:
        # Depends on an answer: not cached.  [MCP 2026-07-28, server/utilities/caching]
        cache = CacheHint()
    else:
        own = None if entry is None else entry.cache
        cache = own or request.owner.options.cache
    if entry is not None and entry.guard is not None and cache.scope != "private":
        return CacheHint(cache.seconds)  # another caller may not read it
    return cache


def _mismatch(entry: Entry, error: OutputMismatch) -> OutputMismatch:
    """Return the error for a value that cannot be sent, with its handler."""
    arguments = entry.arguments
    return OutputMismatch(
        f"{arguments.label} ({arguments.location}) returned a value that cannot be sent: {error}"
    )


def missing_resource(uri: str) -> tuple[str, str]:
    """Return the text of an error about a resource that does not exist, and its URI."""
    # A longer one names nothing: it is longer than any URI that is matched.
    shown = uri if len(uri) <= _MAX_URI_CHARS else brief(uri)
    return f"Resource not found: {redact(uri)}", shown


class _Prompt(FailsWithError):
    def finish(self, entry: PromptEntry | None, request: ServerRequest, value: Any) -> Any:
        result: GetPromptResult = messages_of(value)
        if result.description is None and entry is not None and entry.description:
            result = replace(result, description=entry.description)
        return request.rev.result(result)


class _Completion(FailsWithError):
    def finish(self, _: Completer | None, request: ServerRequest, value: Any) -> Any:
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
        return request.rev.result(CompleteResult(found))


class _WireForm(FailsWithError):
    """Renders handlers of the server itself, which return results as they are sent."""

    def finish(self, _: Any, request: ServerRequest, value: Any) -> Any:
        return value


TOOL: Final = _Tool()
RESOURCE: Final = _Resource()
PROMPT: Final = _Prompt()
COMPLETION: Final = _Completion()
WIRE_FORM: Final = _WireForm()

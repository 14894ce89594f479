"""What a handler raised, as what goes out on the wire: one table for every transport.

A tool that ran and failed is a *result* marked `isError`; a request that could not be
served is an *error*. Nothing of an exception that was not meant for the peer reaches it:
it gets a fixed sentence and a reference, and the log has the rest under that reference.
"""

from __future__ import annotations

import logging
import os
import traceback
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from ..errors import NOTHING, PeerError, RequestAborted, RequestError, ToolError
from ..jsonrpc.error_codes import named_error
from ..jsonrpc.messages import ErrorObject
from ..jsonrpc.policy import Policy
from ..mcp.types import CallToolResult, TextContent
from ..migration_hints import CONTEXT_ATTRIBUTES, missing_attribute
from ..redaction import redact, show
from ..spec.error_kinds import ErrorKind
from ..spec.mcp.methods import METHODS
from .handlers.json_encoding import OutputMismatch

if TYPE_CHECKING:
    from .context import Context

__all__ = ["HandlerTimeout", "as_redacted", "error_of", "failed", "refusal", "tool_failure"]

_log: Final = logging.getLogger("trunkline.server")

# What a server asks a client, in any revision.
_ASKED: Final = frozenset(
    row.name for row in METHODS if row.kind == "request" and row.by == "server"
)


class HandlerTimeout(Exception):
    """A handler took longer than its author allows."""


def refusal(error: RequestError, policy: Policy) -> ErrorObject:
    """Return the wire error that a handler chose by raising `RequestError`."""
    data = UNSET if error.data is NOTHING else error.data
    if isinstance(error.kind, int):
        return ErrorObject(error.kind, error.message or "Refused", data)
    try:
        return named_error(error.kind, policy=policy, message=error.message, data=data)
    except LookupError as unknown:
        _log.error("a handler refused with a symbol that has no number: %s", unknown)
        return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)


def error_of(error: BaseException, context: Context, policy: Policy) -> ErrorObject:
    """Return the wire error for what a resource, prompt, completion or method raised."""
    if isinstance(error, RequestError):
        return refusal(error, policy)
    if isinstance(error, HandlerTimeout):
        return named_error(ErrorKind.TIMEOUT, policy=policy)
    if _is_unanswered(error):
        _log_unanswered(error, context)
        return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)
    _reference(error, context)
    return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)


def tool_failure(error: BaseException, context: Context) -> CallToolResult:
    """Return the result of a tool that raised; `RequestError` is not for here."""
    if isinstance(error, ToolError):
        return failed(str(error) or "The tool failed.")
    if isinstance(error, HandlerTimeout):
        return failed(f"The tool {context.name!r} ran out of time.")
    if _is_unanswered(error):
        _log_unanswered(error, context)
        return failed(f"The tool {context.name!r} did not get an answer to its question.")
    reference = _reference(error, context)
    # A result that was not what the tool promises is told apart: its author's next question.
    how = (
        "returned an invalid result" if isinstance(error, OutputMismatch) else "failed unexpectedly"
    )
    return failed(f"The tool {context.name!r} {how} (reference {reference}).")


def _is_unanswered(error: BaseException) -> bool:
    """Say whether a question of the handler's was answered with an error, or not at all."""
    return isinstance(error, PeerError | RequestAborted) and error.method in _ASKED


def _log_unanswered(error: BaseException, context: Context) -> None:
    # Without a traceback: it is the client's doing, which could fill a disk with them.
    what = show(context.name)
    _log.warning("%s %s got no answer to its question: %s", context.method, what, error)


def failed(text: str) -> CallToolResult:
    """Return the result of a tool that ran and failed, with what the caller is to read."""
    return CallToolResult([TextContent(text)], is_error=True)


def _reference(error: BaseException, context: Context) -> str:
    """Log what was raised; return what the log can be searched for."""
    reference = os.urandom(4).hex()
    if isinstance(error, AttributeError) and error.obj is context:
        # Here rather than in `Context.__getattr__`, which would slow down every other attribute.
        error.args = missing_attribute("Context", str(error.name), CONTEXT_ATTRIBUTES).args
    trace = as_redacted(error)
    what = show(context.name)  # it may be a URI, with whatever its author put in there
    _log.error("%s %s failed (reference %s)\n%s", context.method, what, reference, trace)
    return reference


def as_redacted(error: BaseException) -> str:
    """Return an exception with its traceback, for a log: a logger would print it as it is."""
    told = traceback.TracebackException.from_exception(error)
    _without_marks(told, error)
    # Line by line: what is redacted is cut to a length that suits a value, not a page.
    lines = "".join(told.format()).splitlines()
    return "\n".join(str(redact(line)) for line in lines)


def _without_marks(told: traceback.TracebackException, error: BaseException) -> None:
    """Have a traceback printed without marks under its lines.

    To place them Python parses each line anew, which in 3.11 fails now and then with a
    SystemError when two threads do so at once.
    """
    told.stack = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__))
    for inner, cause in ((told.__cause__, error.__cause__), (told.__context__, error.__context__)):
        if inner is not None and cause is not None:
            _without_marks(inner, cause)

"""Exceptions of handlers as wire errors and tool results, for every transport.

The rules that live here, and only here:

* A tool that ran and failed is a *result* with `isError`; a request that could not be served is
  an *error*. In handshake revisions a tool that asks what its client cannot be asked has failed.
* The client never sees an exception that was not meant for it: it gets a fixed sentence and a
  reference, and the log has the traceback under that reference.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, ValidationError

from ..engine.runner import HandlerTimeout
from ..errors import (
    NOTHING,
    InvalidMessage,
    PeerError,
    RequestAborted,
    RequestError,
    ToolError,
    visible,
)
from ..exception_text import as_redacted, one_line
from ..jsonrpc.error_codes import application_error, code_warning, named_error, serialization_error
from ..jsonrpc.messages import ErrorObject
from ..jsonrpc.policy import Policy
from ..mcp.types import CallToolResult, TextContent
from ..migration_hints import CONTEXT_ATTRIBUTES, missing_attribute
from ..redaction import redact, show
from ..spec.error_kinds import ErrorKind
from ..spec.mcp.methods import METHODS
from ..spec.profiles.wording import wording
from .handlers.json_encoding import OutputMismatch

if TYPE_CHECKING:
    from .dispatch.request import ServerRequest

__all__ = [
    "RefusedRequest",
    "as_redacted",
    "brief",
    "error_of",
    "failed",
    "is_missing_capability",
    "one_line",
    "plain",
    "refusal",
    "tool_failure",
    "unreadable_params",
    "worded_error",
]

_log: Final = logging.getLogger("trunkline.server")

# Requests from a server to a client, in any revision.
_ASKED: Final = frozenset(
    row.name for row in METHODS if row.kind == "request" and row.by == "server"
)


# Codes of handlers that were logged. A handler could count through the integers.
_reported: set[int] = set()
_MAX_REPORTED: Final = 1000


class RefusedRequest(RequestError):
    """A request that was refused before its handler; `error` is sent as it is."""

    def __init__(self, error: ErrorObject, kind: str) -> None:
        data = NOTHING if error.data is UNSET else error.data
        super().__init__(kind, error.message, data=data)
        self.error = error


def brief(text: str) -> str:
    """Return the text of a peer, or one that quotes it, redacted and cut, on one line."""
    return visible(str(redact(text)), kept="")


def plain(error: Exception) -> str:
    """Return the message of a decoder as the text of an error."""
    # It may quote a value of any length.
    text = brief(str(error)) if isinstance(error, ValidationError) else "not JSON"
    return f"Invalid params: {text}"


def unreadable_params(error: Exception, method: str, policy: Policy) -> RefusedRequest:
    """Return the refusal of a request whose params cannot be decoded."""
    kind = ErrorKind.INVALID_PARAMS
    return RefusedRequest(worded_error(kind, policy, method, plain(error)), kind)


def worded_error(
    kind: str,
    policy: Policy,
    method: str,
    message: str | None = None,
    known: Mapping[str, Any] | None = None,
    **facts: Any,
) -> ErrorObject:
    """Return the error of a kind, in the words of the policy's profile if it has its own.

    Without such words `message` is the text and `facts` are the data; `known` is for the words
    of a profile alone.
    """
    words = wording(policy.codes, kind, method)
    if words is None:
        return named_error(kind, policy=policy, message=message, **facts)
    given = {"method": method, "details": message, **facts, **(known or {})}
    text = words.message.format_map(given) if words.message else None
    data = {name: given[name] for name in words.data if given.get(name) is not None}
    return named_error(kind, policy=policy, message=text, **data)


def refusal(error: RequestError, policy: Policy) -> ErrorObject:
    """Return the wire error that a handler chose by raising `RequestError`."""
    data = UNSET if error.data is NOTHING else error.data
    if isinstance(error.kind, int):
        _warn_of_code(error.kind, policy)
        return application_error(error.kind, error.message, data, policy=policy)
    try:
        return named_error(error.kind, policy=policy, message=error.message, data=data)
    except LookupError as unknown:
        _log.error(
            "RequestError of a handler has an unknown kind, answering with an internal error: %s",
            one_line(unknown),
        )
        return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)


def _warn_of_code(code: int, policy: Policy) -> None:
    """Log, once per code, that a code of a handler is not sent to every client."""
    warning = None if code in _reported else code_warning(code, policy)
    if warning is not None and len(_reported) < _MAX_REPORTED:
        _reported.add(code)
        _log.warning("RequestError of a handler: %s", warning)


def error_of(error: BaseException, request: ServerRequest, policy: Policy) -> ErrorObject:
    """Return the wire error for what a resource, prompt, completion or method raised."""
    if isinstance(error, RequestError):
        return refusal(error, policy)
    if isinstance(error, HandlerTimeout):
        return named_error(ErrorKind.TIMEOUT, policy=policy)
    if _is_unanswered(error):
        _log_unanswered(error, request)
        return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)
    _reference(error, request)
    if isinstance(error, OutputMismatch):
        return serialization_error(policy)
    return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)


def is_missing_capability(error: RequestError) -> bool:
    """Return True if a question failed because the client cannot be asked.

    An error of that kind which a handler chose by itself is not one.
    """
    if error.kind != ErrorKind.MISSING_REQUIRED_CLIENT_CAPABILITY:
        return False
    # Imported here: few servers ask.
    from .client_requests.client_request import MissingCapability

    return isinstance(error, MissingCapability)


def tool_failure(error: BaseException, request: ServerRequest) -> CallToolResult:
    """Return the result of a tool that raised anything but `RequestError`."""
    if isinstance(error, ToolError):
        return failed(str(error) or "The tool failed.")
    if isinstance(error, HandlerTimeout):
        return failed(f"The tool {request.name!r} exceeded its timeout.")
    if _is_unanswered(error):
        _log_unanswered(error, request)
        return failed(f"The tool {request.name!r} did not get an answer to its question.")
    reference = _reference(error, request)
    how = (
        "returned an invalid result" if isinstance(error, OutputMismatch) else "failed unexpectedly"
    )
    return failed(f"The tool {request.name!r} {how} (reference {reference}).")


def _is_unanswered(error: BaseException) -> bool:
    """Return True if a request of the handler to the client failed."""
    if isinstance(error, PeerError | RequestAborted):
        return error.method in _ASKED
    return isinstance(error, InvalidMessage)  # the reply was one


def _log_unanswered(error: BaseException, request: ServerRequest) -> None:
    # Without a traceback: a client could fill the disk with them.
    what = show(request.name)
    _log.warning(
        "%s %s failed, its request to the client was not answered: %s",
        request.method,
        what,
        one_line(error),
    )


def failed(text: str) -> CallToolResult:
    """Return the result of a tool that ran and failed, with a text for the caller."""
    return CallToolResult([TextContent(text)], is_error=True)


def _reference(error: BaseException, request: ServerRequest) -> str:
    """Log an exception; return the reference to search the log for."""
    reference = os.urandom(4).hex()
    if isinstance(error, AttributeError) and error.obj is request.context:
        # Here rather than in `Context.__getattr__`, which would slow down every other attribute.
        error.args = missing_attribute("Context", str(error.name), CONTEXT_ATTRIBUTES).args
    report = getattr(request.connection.transport, "report_exception", None)
    if report is not None:  # a client in this process
        report(request.message.id, error)
    trace = as_redacted(error)
    what = show(request.name)  # it may be a URI with a secret in it
    _log.error("%s %s failed (reference %s)\n%s", request.method, what, reference, trace)
    return reference

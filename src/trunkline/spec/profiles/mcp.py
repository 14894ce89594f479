"""The error numbers of the Model Context Protocol itself, revision by revision.

The specification defines few codes; everything else is one of the five codes of
JSON-RPC. So most symbols here share a number: the first row of a number in a
revision is its meaning when it is read, the others only say under which number a
more specific error is sent.

Numbers change between revisions:

* -32002 is a missing resource up to 2025-11-25. In 2026-07-28 a missing resource
  is -32602; -32002 is still read, never sent.
* -32042 exists in 2025-11-25 only. 2026-07-28 forbids sending it; it is still
  read there, so that the log says what an older server meant.
* 401 and 403 refuse access, in every revision; the specification has no numbers for that.
* -32020 to -32022 begin in 2026-07-28, which keeps -32020 to -32099 for the
  specification and asks that nothing new be put into -32000 to -32019.

Where the specification leaves a choice, ours is: the fault of the message or its
sender is -32600, of its params -32602, ours -32603. `http` is the status that the
specification asks for, or else the one the official SDKs answer with; where
neither says anything the reply travels with 200 and the field is None.

`retry` says what a client may do: "retry" the same request later, fall back to a
changed one (another version, a fresh token, a new session), or "abort".
"""

from __future__ import annotations

from typing import Final

from ..error_kinds import ErrorKind as Kind
from ..revisions import HANDSHAKE, PER_REQUEST, V2025_11_25, V2026_07_28, Window
from ..rows import ALWAYS, Retry
from ..rows import ErrorCode as Row

__all__ = ["CODES"]

# Tasks are part of the core in 2025-11-25 and an extension in the next revision.
TASKS: Final = Window(V2025_11_25)
# Only in 2025-11-25.
ONE_REVISION: Final = Window(V2025_11_25, V2026_07_28)

# One row per line, so that the tables can be read beside the specification.
# fmt: off

# [JSON-RPC 2.0, section 5.1]
_STANDARD: Final = (
    Row(-32700, Kind.PARSE_ERROR, "Parse error", "jsonrpc", "critical", http=400),
    Row(-32600, Kind.INVALID_REQUEST, "Invalid Request", "jsonrpc", "critical", http=400),
    Row(-32602, Kind.INVALID_PARAMS, "Invalid params", "jsonrpc"),
    Row(-32603, Kind.INTERNAL_ERROR, "Internal error", "jsonrpc", "critical"),
)

# 2024-11-05 to 2025-11-25.
_HANDSHAKE: Final = (
    Row(-32601, Kind.METHOD_NOT_FOUND, "Method not found", "jsonrpc"),
    Row(-32002, Kind.RESOURCE_NOT_FOUND, "Resource not found", "resource", ref="K-16"),
    Row(-1, Kind.USER_REJECTED, "User rejected sampling request", "sampling", "info", ref="K-76"),
    Row(-32602, Kind.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", "protocol"),
    Row(-32602, Kind.PROTOCOL_VERSION_MISMATCH, "Protocol version mismatch", "protocol"),
    Row(-32601, Kind.CAPABILITY_NOT_SUPPORTED, "Capability not supported", "capability"),
    Row(-32600, Kind.HEADER_MISMATCH, "Header mismatch", "transport", http=400),
    Row(-32600, Kind.MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing client capability", "capability"),
    Row(-32600, Kind.NOT_INITIALIZED, "Server not initialized", "lifecycle", http=400, ref="K-19"),
    Row(-32600, Kind.ALREADY_INITIALIZED, "Server already initialized", "lifecycle", http=400, ref="K-19"),
    Row(-32600, Kind.SESSION_NOT_FOUND, "Session not found", "auth", http=404),
    Row(-32600, Kind.SESSION_EXPIRED, "Session expired", "auth", http=404),
)

# 2025-11-25 and the tasks extension of 2026-07-28.  [K-77]
_TASKS: Final = (
    Row(-32602, Kind.TASK_NOT_FOUND, "Task not found", "task"),
)

# 2025-11-25 alone.
_ONE_REVISION: Final = (
    Row(-32042, Kind.URL_ELICITATION_REQUIRED, "URL elicitation required", "elicitation", "info"),
    Row(-32602, Kind.INVALID_ELICITATION_MODE, "Elicitation mode not supported", "elicitation"),
    Row(-32601, Kind.TASK_REQUIRED, "Tool must be called as a task", "task"),
    Row(-32601, Kind.TASK_NOT_ALLOWED, "Tool cannot be called as a task", "task"),
    Row(-32602, Kind.TASK_ALREADY_COMPLETED, "Task already completed", "task"),
)

# 2026-07-28.
_PER_REQUEST: Final = (
    Row(-32601, Kind.METHOD_NOT_FOUND, "Method not found", "jsonrpc", http=404),
    Row(-32020, Kind.HEADER_MISMATCH, "Header mismatch", "transport", http=400),
    Row(-32021, Kind.MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing client capability", "capability", http=400),
    Row(-32022, Kind.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", "protocol", http=400),
    Row(-32022, Kind.PROTOCOL_VERSION_MISMATCH, "Protocol version mismatch", "protocol", http=400),
    Row(-32602, Kind.RESOURCE_NOT_FOUND, "Resource not found", "resource", ref="K-16"),
    Row(-32002, Kind.RESOURCE_NOT_FOUND, "Resource not found", "resource", sent=False, ref="K-16"),
    Row(-32042, Kind.URL_ELICITATION_REQUIRED, "URL elicitation required", "elicitation", "info", sent=False),
    Row(-32601, Kind.CAPABILITY_NOT_SUPPORTED, "Capability not supported", "capability", http=404),
    Row(-32602, Kind.MISSING_REQUEST_META, "Missing request metadata", "protocol", http=400),
    Row(-32602, Kind.INVALID_REQUEST_STATE, "Invalid request state", "elicitation"),
    Row(-32602, Kind.INVALID_INPUT_RESPONSES, "Invalid input responses", "elicitation"),
)

# Exact names for cases of the five, in every revision.
_CASES: Final = (
    Row(-32600, Kind.MESSAGE_TOO_LARGE, "Message too large", "transport", http=413, ref="K-40"),
    Row(-32600, Kind.BATCH_REQUEST_TOO_LARGE, "Batch too large", "transport", http=413),
    Row(-32600, Kind.REQUEST_ID_INVALID, "Invalid request id", "protocol", http=400),
    Row(-32600, Kind.REQUEST_ID_CONFLICT, "Request id already in use", "protocol", http=400),
    Row(-32600, Kind.AUTHENTICATION_FAILED, "Authentication failed", "auth", http=401),
    Row(-32600, Kind.INVALID_TOKEN, "Invalid token", "auth", http=401),
    Row(-32600, Kind.TOKEN_EXPIRED, "Token expired", "auth", http=401),
    Row(-32600, Kind.ORIGIN_NOT_ALLOWED, "Origin not allowed", "transport", http=403),
    Row(-32602, Kind.TOOL_NOT_FOUND, "Unknown tool", "tool", ref="K-17"),
    Row(-32602, Kind.PROMPT_NOT_FOUND, "Unknown prompt", "prompt", ref="K-18"),
    Row(-32602, Kind.VALIDATION_FAILED, "Validation failed", "validation"),
    Row(-32602, Kind.INVALID_URI, "Invalid URI", "resource"),
    Row(-32602, Kind.INVALID_CURSOR, "Invalid cursor", "pagination", ref="K-66"),
    Row(-32602, Kind.INVALID_LOG_LEVEL, "Invalid log level", "logging"),
    Row(-32602, Kind.INVALID_TOOL_ARGUMENTS, "Invalid arguments for tool", "tool", ref="K-68"),
    Row(-32602, Kind.INVALID_PROMPT_ARGUMENTS, "Invalid arguments for prompt", "prompt"),
    Row(-32602, Kind.PROMPT_ARGUMENT_MISSING, "Missing required argument", "prompt"),
    Row(-32602, Kind.INVALID_COMPLETION_REFERENCE, "Invalid completion reference", "completion"),
    Row(-32602, Kind.INVALID_COMPLETION_ARGUMENT, "Invalid completion argument", "completion"),
    Row(-32603, Kind.TOOL_EXECUTION_FAILED, "Tool execution failed", "tool", ref="K-69"),
    Row(-32603, Kind.SUBSCRIPTION_FAILED, "Subscription failed", "resource"),
    Row(-32603, Kind.TOO_MANY_ROUNDS, "Too many rounds of questions", "elicitation"),
    Row(-32603, Kind.REQUEST_STATE_TOO_LARGE, "Request state too large", "elicitation"),
    Row(-32603, Kind.REQUEST_CANCELLED, "Request cancelled", "load", "info"),
    Row(-32603, Kind.TIMEOUT, "Request timed out", "load", "warning"),
    Row(-32603, Kind.RATE_LIMITED, "Rate limit exceeded", "load", "warning", http=429),
    Row(-32603, Kind.OVERLOADED, "Server overloaded", "load", "warning", http=503),
    Row(-32603, Kind.SERVICE_UNAVAILABLE, "Service unavailable", "load", "warning", http=503),
)

# Refusals of access, in every revision. Numbers of their own, outside the range that JSON-RPC
# reserves and 2026-07-28 closes: over a socket or in a batch there is no HTTP status to tell a
# refusal from an invalid request.
_ACCESS: Final = (
    Row(401, Kind.UNAUTHORIZED, "Authentication required", "auth", http=401),
    Row(403, Kind.INSUFFICIENT_PERMISSIONS, "Insufficient permissions", "auth", http=403),
    Row(403, Kind.AUTHORIZATION_FAILED, "Authorization failed", "auth", http=403),
)

# The members of `data` by symbol, the same in every revision that has the symbol.
_DATA: Final[dict[str, tuple[str, ...]]] = {
    Kind.RESOURCE_NOT_FOUND: ("uri",),
    Kind.URL_ELICITATION_REQUIRED: ("elicitations",),
    Kind.UNSUPPORTED_PROTOCOL_VERSION: ("supported", "requested"),
    Kind.PROTOCOL_VERSION_MISMATCH: ("supported", "requested"),
    Kind.MISSING_REQUIRED_CLIENT_CAPABILITY: ("requiredCapabilities",),
    Kind.MESSAGE_TOO_LARGE: ("maxSize", "unit"),
    Kind.UNAUTHORIZED: ("requiredScopes", "missingScopes"),
    Kind.INSUFFICIENT_PERMISSIONS: ("requiredScopes", "missingScopes"),
    Kind.RATE_LIMITED: ("retryAfterMs",),
    Kind.OVERLOADED: ("retryAfterMs",),
    Kind.SERVICE_UNAVAILABLE: ("retryAfterMs",),
}

# By symbol, whether a retry can help; "abort" if not listed.
_RETRY: Final[dict[str, Retry]] = {
    Kind.UNSUPPORTED_PROTOCOL_VERSION: "fallback",
    Kind.PROTOCOL_VERSION_MISMATCH: "fallback",
    Kind.HEADER_MISMATCH: "fallback",
    Kind.SESSION_NOT_FOUND: "fallback",
    Kind.SESSION_EXPIRED: "fallback",
    Kind.URL_ELICITATION_REQUIRED: "fallback",
    Kind.TASK_REQUIRED: "fallback",
    Kind.TASK_NOT_ALLOWED: "fallback",
    Kind.UNAUTHORIZED: "fallback",
    Kind.TOKEN_EXPIRED: "fallback",
    Kind.INSUFFICIENT_PERMISSIONS: "fallback",
    Kind.TIMEOUT: "retry",
    Kind.RATE_LIMITED: "retry",
    Kind.OVERLOADED: "retry",
    Kind.SERVICE_UNAVAILABLE: "retry",
}

# The exact names come last: a number read from the wire means its first row.
_SECTIONS: Final = (
    (ALWAYS, _STANDARD),
    (HANDSHAKE, _HANDSHAKE),
    (TASKS, _TASKS),
    (ONE_REVISION, _ONE_REVISION),
    (PER_REQUEST, _PER_REQUEST),
    (ALWAYS, _ACCESS),
    (ALWAYS, _CASES),
)
# fmt: on

CODES: Final[tuple[Row, ...]] = tuple(
    row._replace(when=when, data=_DATA.get(row.symbol, ()), retry=_RETRY.get(row.symbol, "abort"))
    for when, rows in _SECTIONS
    for row in rows
)

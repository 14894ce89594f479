"""The error numbers of erlmcp, an Erlang implementation of MCP.

Two of its lists are here: the 122 codes of its core header, and the 51 refusals
1001 to 1089 that come with an HTTP status. That project has three more meanings
for 1001 to 1089; one is the profile `erlmcp-spec`, one is in `erlmcp-guide`, and
the ten of its core header are left out as the vaguest.  [K-27]

Its sender replaces every number outside a list of 118 by -32603. The numbers it
defines but does not list (-32101 to -32104, and all refusals) are therefore
understood here and never sent.  [E-37, E-86]

Symbols are unique, though the originals are not. Four experimental task codes
repeat names of the task range and carry EXPERIMENTAL_ in front. The refusals keep
the prefix REFUSAL_ of their own header, all of them and not only the ten that
would collide, so that a reader can tell the list from the name.

What a number is worth is known in two ways, which differ:  [K-26]

* By range, as the original code computes it: `range_group` and `range_severity`.
* By symbol, as its documentation says and as the rows state it. A missing
  resource, tool or prompt is an `error` of the category `resource`, `tool` or
  `prompt`, although its number lies in the core range, whose severity is
  `warning`; and numbers outside all ranges have a category here.

The refusals say `warn` where our vocabulary says `warning`.  [K-30]
"""

from __future__ import annotations

from typing import Final

from ..error_kinds import ErrorKind as Kind
from ..rows import ErrorCode as Row
from ..rows import Retry, Severity

__all__ = ["CODES", "DEFINED", "REFUSALS", "SHARED", "range_group", "range_severity"]

# One row per line, so that the tables can be read beside the original.
# fmt: off

# (lowest, highest, group)  [R-EM-03]
_GROUPS: Final = (
    (-32700, -32600, "jsonrpc"),
    (-32010, -32000, "mcp_core"),
    (-32020, -32011, "content"),
    (-32030, -32021, "resource"),
    (-32040, -32031, "tool"),
    (-32050, -32041, "prompt"),
    (-32060, -32051, "auth"),
    (-32070, -32061, "protocol"),
    (-32080, -32071, "pagination"),
    (-32090, -32081, "task"),
    (-32100, -32091, "progress"),
    (-32113, -32110, "completion"),
)

# (lowest, highest, severity); what lies in none of them is `info`.  [R-EM-04]
_SEVERITIES: Final[tuple[tuple[int, int, Severity], ...]] = (
    (-32700, -32700, "critical"),
    (-32600, -32600, "critical"),
    (-32603, -32603, "critical"),
    (-32602, -32601, "error"),
    (-32099, -32080, "error"),
    (-32079, -32000, "warning"),
    (-32113, -32110, "warning"),
)

# Where the symbol says more than the range does: (lowest, highest, category, severity).  [K-26, E-83, E-84]
_BY_SYMBOL: Final[tuple[tuple[int, int, str, Severity], ...]] = (
    (-32001, -32001, "resource", "error"),
    (-32002, -32002, "tool", "error"),
    (-32003, -32003, "prompt", "error"),
    (-32104, -32101, "prompt", "info"),
    (1090, 1094, "elicitation", "info"),
    (1095, 1099, "task", "info"),
)

# Worth asking again after a pause; everything else is not.  [R-EM-07]
_RETRIED: Final = frozenset((-32008, -32009, -32010, -32603, 1005, 1056, 1057, 1058, 1059, 1060))

# Defined in the core header and missing from its list of valid codes.
_UNLISTED: Final = frozenset((-32101, -32102, -32103, -32104))

# (number, symbol, default message, members of `data` in order)
_CORE_HEADER: Final[tuple[tuple[int, str, str, *tuple[str, ...]], ...]] = (
    # Core.  [E-69]
    (-32000, "CUSTOM_SERVER_ERROR", "Custom server error"),
    (-32001, Kind.RESOURCE_NOT_FOUND, "Resource not found", "uri"),
    (-32002, Kind.TOOL_NOT_FOUND, "Tool not found", "tool"),
    (-32003, Kind.PROMPT_NOT_FOUND, "Prompt not found", "prompt"),
    (-32004, Kind.CAPABILITY_NOT_SUPPORTED, "Capability not supported", "capability"),
    (-32005, Kind.NOT_INITIALIZED, "Server not initialized"),
    (-32006, Kind.SUBSCRIPTION_FAILED, "Subscription failed"),
    (-32007, Kind.VALIDATION_FAILED, "Validation failed", "details"),
    (-32008, "TRANSPORT_ERROR", "Transport error"),
    (-32009, Kind.TIMEOUT, "Request timeout"),
    (-32010, Kind.RATE_LIMITED, "Rate limit exceeded"),
    # Content.  [E-70]
    (-32011, "TOOL_DESCRIPTION_TOO_LONG", "Tool description exceeds maximum length", "actualSize", "maxSize"),
    (-32012, Kind.MESSAGE_TOO_LARGE, "Message size exceeds maximum allowed", "maxSize", "unit"),
    (-32013, "INVALID_CONTENT_TYPE", "Invalid content type", "contentType"),
    (-32014, "CONTENT_TOO_LARGE", "Content too large", "actualSize", "maxSize"),
    (-32015, "INVALID_ENCODING", "Invalid encoding", "encoding"),
    (-32016, "BINARY_DATA_TOO_LARGE", "Binary data too large"),
    (-32017, "TEXT_TOO_LONG", "Text too long"),
    (-32018, "INVALID_MIME_TYPE", "Invalid MIME type"),
    (-32019, "UNSUPPORTED_MEDIA_TYPE", "Unsupported media type"),
    (-32020, "MEDIA_TYPE_NOT_ACCEPTABLE", "Media type not acceptable"),
    # Resources.  [E-71]
    (-32021, "RESOURCE_TEMPLATE_NOT_FOUND", "Resource template not found", "templateUri"),
    (-32022, Kind.INVALID_URI, "Invalid URI", "uri"),
    (-32023, "URI_SYNTAX_ERROR", "URI syntax error", "uri", "reason"),
    (-32024, "URI_TOO_LONG", "URI too long"),
    (-32025, "RESOURCE_ACCESS_DENIED", "Resource access denied", "uri"),
    (-32026, "RESOURCE_ALREADY_EXISTS", "Resource already exists"),
    (-32027, "RESOURCE_LOCKED", "Resource locked"),
    (-32028, "RESOURCE_VERSION_MISMATCH", "Resource version mismatch"),
    (-32029, "TEMPLATE_RENDER_FAILED", "Template render failed", "templateUri", "reason"),
    (-32030, "INVALID_URI_TEMPLATE", "Invalid URI template"),
    # Tools.  [E-72]
    (-32031, Kind.TOOL_EXECUTION_FAILED, "Tool execution failed", "tool", "reason"),
    (-32032, "TOOL_TIMEOUT", "Tool execution timeout", "tool", "timeoutMs"),
    (-32033, "TOOL_CANCELLED", "Tool execution cancelled", "tool"),
    (-32034, Kind.INVALID_TOOL_ARGUMENTS, "Invalid tool arguments", "tool", "details"),
    (-32035, "TOOL_DISABLED", "Tool is disabled"),
    (-32036, "TOOL_RESULT_TOO_LARGE", "Tool result too large"),
    (-32037, "TOOL_NOT_ALLOWED", "Tool not allowed"),
    (-32038, "MAX_CONCURRENT_TOOLS", "Maximum concurrent tools exceeded"),
    (-32039, "TOOL_DEPENDENCY_FAILED", "Tool dependency failed"),
    (-32040, "TOOL_SCHEMA_INVALID", "Tool schema invalid"),
    # Prompts and sampling; -32041 is not defined.  [E-73]
    (-32042, Kind.URL_ELICITATION_REQUIRED, "URL elicitation required"),
    (-32043, Kind.PROMPT_ARGUMENT_MISSING, "Prompt argument missing", "prompt", "argument"),
    (-32044, "PROMPT_RENDER_FAILED", "Prompt render failed", "prompt", "reason"),
    (-32045, Kind.INVALID_PROMPT_ARGUMENTS, "Invalid prompt arguments", "prompt", "details"),
    (-32046, "SAMPLING_FAILED", "Sampling failed", "reason"),
    (-32047, "SAMPLING_TIMEOUT", "Sampling timeout"),
    (-32048, "INVALID_MODEL_PREFERENCES", "Invalid model preferences"),
    (-32049, "MODEL_NOT_AVAILABLE", "Model not available"),
    (-32050, "SAMPLING_RATE_LIMITED", "Sampling rate limited"),
    # Authentication and authorization.  [E-74]
    (-32051, Kind.AUTHENTICATION_FAILED, "Authentication failed", "reason"),
    (-32052, Kind.AUTHORIZATION_FAILED, "Authorization failed", "reason"),
    (-32053, "INVALID_CREDENTIALS", "Invalid credentials"),
    (-32054, Kind.TOKEN_EXPIRED, "Token expired"),
    (-32055, Kind.INSUFFICIENT_PERMISSIONS, "Insufficient permissions"),
    (-32056, "ACCESS_DENIED", "Access denied", "resource"),
    (-32057, Kind.SESSION_EXPIRED, "Session expired"),
    (-32058, Kind.SESSION_NOT_FOUND, "Session not found"),
    (-32059, Kind.INVALID_TOKEN, "Invalid token"),
    (-32060, "UNAUTHORIZED_OPERATION", "Unauthorized operation"),
    # Protocol.  [E-75]
    (-32061, Kind.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", "version"),
    (-32062, Kind.PROTOCOL_VERSION_MISMATCH, "Protocol version mismatch", "clientVersion", "serverVersion"),
    (-32063, "CAPABILITY_NEGOTIATION_FAILED", "Capability negotiation failed", "reason"),
    (-32064, "INCOMPATIBLE_CAPABILITIES", "Incompatible capabilities"),
    (-32065, "METHOD_NOT_SUPPORTED", "Method not supported", "method"),
    (-32066, "NOTIFICATION_NOT_SUPPORTED", "Notification not supported"),
    (-32067, Kind.REQUEST_ID_INVALID, "Invalid request ID"),
    (-32068, Kind.REQUEST_ID_CONFLICT, "Request ID conflict"),
    (-32069, Kind.BATCH_REQUEST_TOO_LARGE, "Batch request too large"),
    (-32070, "BATCH_PARTIAL_FAILURE", "Batch partial failure"),
    # Pagination.  [E-76]
    (-32071, Kind.INVALID_CURSOR, "Invalid cursor", "cursor"),
    (-32072, "CURSOR_EXPIRED", "Cursor expired", "cursor"),
    (-32073, "PAGINATION_NOT_SUPPORTED", "Pagination not supported", "method"),
    (-32074, "PAGE_SIZE_TOO_LARGE", "Page size too large", "actualSize", "maxSize"),
    (-32075, "PAGE_SIZE_INVALID", "Invalid page size"),
    (-32076, "INVALID_OFFSET", "Invalid offset"),
    (-32077, "CURSOR_REQUIRES_PARAMETER", "Cursor requires parameter"),
    (-32078, "CURSOR_ENCODING_FAILED", "Cursor encoding failed"),
    (-32079, "PAGINATION_LIMIT_EXCEEDED", "Pagination limit exceeded"),
    (-32080, "CURSOR_POSITION_INVALID", "Cursor position invalid"),
    # Tasks.  [E-77]
    (-32081, Kind.TASK_NOT_FOUND, "Task not found", "taskId"),
    (-32082, "TASK_ALREADY_EXISTS", "Task already exists", "taskId"),
    (-32083, "TASK_FAILED", "Task failed", "taskId", "reason"),
    (-32084, "TASK_CANCELLED", "Task cancelled", "taskId"),
    (-32085, "TASK_TIMEOUT", "Task timeout", "taskId", "timeoutMs"),
    (-32086, "TASK_STATE_INVALID", "Task state invalid"),
    (-32087, "MAX_CONCURRENT_TASKS", "Maximum concurrent tasks exceeded"),
    (-32088, "TASK_DEPENDENCY_FAILED", "Task dependency failed"),
    (-32089, "TASK_RESULT_NOT_READY", "Task result not ready"),
    (-32090, Kind.TASK_ALREADY_COMPLETED, "Task already completed"),
    # Progress and notifications; -32100 is not defined.  [E-78]
    (-32091, "INVALID_PROGRESS_TOKEN", "Invalid progress token", "progressToken"),
    (-32092, "PROGRESS_TOKEN_EXPIRED", "Progress token expired", "progressToken"),
    (-32093, "PROGRESS_UPDATE_FAILED", "Progress update failed", "progressToken", "reason"),
    (-32094, "NOTIFICATION_FAILED", "Notification failed", "notificationType", "reason"),
    (-32095, "NOTIFICATION_QUEUE_FULL", "Notification queue full", "queueSize"),
    (-32096, "INVALID_NOTIFICATION_TYPE", "Invalid notification type"),
    (-32097, "NOTIFICATION_NOT_DELIVERED", "Notification not delivered"),
    (-32098, "PROGRESS_VALUE_INVALID", "Progress value invalid"),
    (-32099, "PROGRESS_TOTAL_INVALID", "Progress total invalid"),
    # Prompt security, outside the valid list.
    (-32101, "PROMPT_TOO_LARGE", "Prompt template exceeds maximum size"),
    (-32102, "DANGEROUS_PATTERN_DETECTED", "Dangerous pattern detected in prompt"),
    (-32103, "INVALID_VARIABLE_NAME", "Invalid variable name"),
    (-32104, "PROMPT_RATE_LIMITED", "Prompt compilation rate limit exceeded"),
    # Completion.  [E-79]
    (-32110, "COMPLETION_NOT_FOUND", "Completion not found", "completionId"),
    (-32111, Kind.INVALID_COMPLETION_REFERENCE, "Invalid completion reference", "reference"),
    (-32112, Kind.INVALID_COMPLETION_ARGUMENT, "Invalid completion argument", "argument", "details"),
    (-32113, "COMPLETION_FAILED", "Completion failed", "completionId", "reason"),
    # JSON-RPC.  [E-63 to E-67]
    (-32600, Kind.INVALID_REQUEST, "Invalid Request"),
    (-32601, Kind.METHOD_NOT_FOUND, "Method not found", "method"),
    (-32602, Kind.INVALID_PARAMS, "Invalid params", "details"),
    (-32603, Kind.INTERNAL_ERROR, "Internal error"),
    (-32700, Kind.PARSE_ERROR, "Parse error"),
    # Experimental: elicitation, then tasks a second time.  [E-80, K-77]
    (1090, "ELICITATION_FAILED", "Elicitation failed", "reason"),
    (1091, "ELICITATION_TIMEOUT", "Elicitation timeout", "timeoutMs"),
    (1092, "ELICITATION_CANCELLED", "Elicitation cancelled"),
    (1093, Kind.INVALID_ELICITATION_MODE, "Invalid elicitation mode", "mode"),
    (1094, "ELICITATION_SECURITY_ERROR", "Elicitation security error", "reason"),
    (1095, "EXPERIMENTAL_TASK_NOT_FOUND", "Task not found", "taskId"),
    (1096, "EXPERIMENTAL_TASK_DEPENDENCY_FAILED", "Task dependency failed", "taskId", "dependencyId"),
    (1097, "EXPERIMENTAL_TASK_CANCELLED", "Task cancelled", "taskId"),
    (1098, "EXPERIMENTAL_TASK_TIMEOUT", "Task timeout", "taskId", "timeoutMs"),
    (1099, "INVALID_TASK_STATE", "Invalid task state", "taskId", "currentState", "expectedState"),
)

# (number, symbol, HTTP status, default message, category, severity)
_REFUSAL_HEADER: Final[tuple[tuple[int, str, int, str, str, Severity], ...]] = (
    (1001, "REFUSAL_QUEUE_CAP_EXCEEDED", 429, "Queue capacity exceeded", "queue", "error"),
    (1002, "REFUSAL_QUEUE_BYTE_CAP_EXCEEDED", 429, "Byte capacity exceeded", "queue", "error"),
    (1003, "REFUSAL_QUEUE_TENANT_CAP_EXCEEDED", 429, "Tenant quota exceeded", "queue", "critical"),
    (1004, "REFUSAL_BUFFER_OVERFLOW", 503, "Buffer overflow", "queue", "critical"),
    (1005, "REFUSAL_BACKPRESSURE_ACTIVE", 503, "Backpressure active", "queue", "warning"),
    (1011, "REFUSAL_AUTH_FAILED", 401, "Authentication failed", "auth", "error"),
    (1012, "REFUSAL_AUTH_EXPIRED", 401, "Authentication expired", "auth", "error"),
    (1013, "REFUSAL_AUTH_INVALID_CREDENTIALS", 401, "Invalid credentials", "auth", "error"),
    (1014, "REFUSAL_AUTHZ_FORBIDDEN", 403, "Authorization denied", "auth", "error"),
    (1015, "REFUSAL_AUTH_MISSING", 401, "Missing authentication", "auth", "error"),
    (1016, "REFUSAL_SESSION_INVALID", 401, "Invalid session ID", "auth", "error"),
    (1021, "REFUSAL_INVALID_PARAMS", 400, "Invalid parameters", "validation", "error"),
    (1022, "REFUSAL_INVALID_JSON_SCHEMA", 400, "JSON schema validation failed", "validation", "error"),
    (1023, "REFUSAL_INVALID_URI", 400, "Invalid URI format", "validation", "error"),
    (1024, "REFUSAL_INVALID_CONTENT_TYPE", 415, "Invalid Content-Type", "validation", "error"),
    (1025, "REFUSAL_INVALID_HEADER", 400, "Required header missing or invalid", "validation", "error"),
    (1026, "REFUSAL_INVALID_SESSION_ID", 400, "Session ID invalid", "validation", "error"),
    (1027, "REFUSAL_INVALID_PROTOCOL_VERSION", 400, "Protocol version not supported", "validation", "error"),
    (1028, "REFUSAL_MISSING_REQUIRED_FIELD", 400, "Required field missing", "validation", "error"),
    (1029, "REFUSAL_FIELD_TYPE_MISMATCH", 400, "Field type mismatch", "validation", "error"),
    (1036, "REFUSAL_PATH_TRAVERSAL_DETECTED", 400, "Path traversal detected", "path", "critical"),
    (1037, "REFUSAL_PATH_INVALID", 400, "Invalid path format", "path", "error"),
    (1038, "REFUSAL_SYMLINK_TRAVERSAL_DETECTED", 400, "Symlink traversal detected", "path", "critical"),
    (1039, "REFUSAL_URI_OUT_OF_BOUNDS", 400, "URI out of bounds", "path", "error"),
    (1040, "REFUSAL_CANONICAL_PATH_VIOLATION", 400, "Canonical path violation", "path", "error"),
    (1046, "REFUSAL_RESOURCE_NOT_FOUND", 404, "Resource not found", "entity", "warning"),
    (1047, "REFUSAL_RESOURCE_DUPLICATE", 409, "Resource already exists", "entity", "warning"),
    (1048, "REFUSAL_TOOL_NOT_FOUND", 404, "Tool not found", "entity", "warning"),
    (1049, "REFUSAL_TOOL_DUPLICATE", 409, "Tool already registered", "entity", "warning"),
    (1050, "REFUSAL_PROMPT_NOT_FOUND", 404, "Prompt not found", "entity", "warning"),
    (1051, "REFUSAL_PROMPT_DUPLICATE", 409, "Prompt already exists", "entity", "warning"),
    (1052, "REFUSAL_ENTITY_DUPLICATE", 409, "Entity already exists", "entity", "warning"),
    (1056, "REFUSAL_RATE_LIMIT_EXCEEDED", 429, "Rate limit exceeded", "rate", "error"),
    (1057, "REFUSAL_RATE_LIMIT_PER_SECOND", 429, "Per-second rate limit exceeded", "rate", "error"),
    (1058, "REFUSAL_RATE_LIMIT_PER_MINUTE", 429, "Per-minute rate limit exceeded", "rate", "error"),
    (1059, "REFUSAL_QUOTA_EXCEEDED", 429, "Quota exceeded", "rate", "error"),
    (1060, "REFUSAL_CONCURRENT_LIMIT_EXCEEDED", 429, "Concurrent connection limit exceeded", "rate", "error"),
    (1066, "REFUSAL_PROTOCOL_ERROR", 400, "Protocol error", "transport", "error"),
    (1067, "REFUSAL_TRANSPORT_ERROR", 503, "Transport error", "transport", "error"),
    (1068, "REFUSAL_MESSAGE_TOO_LARGE", 413, "Message too large", "transport", "error"),
    (1069, "REFUSAL_TIMEOUT", 503, "Operation timeout", "transport", "warning"),
    (1070, "REFUSAL_UNSUPPORTED_ENCODING", 415, "Encoding not supported", "transport", "error"),
    (1076, "REFUSAL_SERVER_UNINITIALIZED", 503, "Server not initialized", "server", "error"),
    (1077, "REFUSAL_SERVER_SHUTTING_DOWN", 503, "Server shutting down", "server", "warning"),
    (1078, "REFUSAL_SERVICE_UNAVAILABLE", 503, "Service unavailable", "server", "warning"),
    (1079, "REFUSAL_INTERNAL_ERROR", 503, "Internal error", "server", "critical"),
    (1080, "REFUSAL_DEPENDENCY_UNAVAILABLE", 503, "Dependency unavailable", "server", "warning"),
    (1086, "REFUSAL_CIRCUIT_BREAKER_OPEN", 503, "Circuit breaker open", "health", "warning"),
    (1087, "REFUSAL_HEALTH_CHECK_FAILED", 503, "Health check failed", "health", "warning"),
    (1088, "REFUSAL_DEGRADED_SERVICE", 503, "Service degraded", "health", "warning"),
    (1089, "REFUSAL_RESOURCE_EXHAUSTED", 503, "Resource exhausted", "health", "critical"),
)

# Symbols the original has no name of its own for, and the number it answers with.  [K-19, K-76, R-EM-06]
SHARED: Final[tuple[Row, ...]] = (
    Row(-32005, Kind.ALREADY_INITIALIZED, "Server already initialized", "mcp_core", "warning", ref="K-19"),
    Row(-32046, Kind.USER_REJECTED, "Sampling failed", "prompt", "warning", data=("reason",), ref="K-76"),
    Row(-32051, Kind.UNAUTHORIZED, "Authentication failed", "auth", "warning", data=("reason",)),
)
# fmt: on


def range_group(number: int) -> str:
    """Return the group whose range `number` lies in, or "unknown"."""
    for lowest, highest, group in _GROUPS:
        if lowest <= number <= highest:
            return group
    return "unknown"


def range_severity(number: int) -> Severity:
    """Return the severity that the range of `number` has."""
    for lowest, highest, severity in _SEVERITIES:
        if lowest <= number <= highest:
            return severity
    return "info"


def _defined(number: int, symbol: str, message: str, *data: str) -> Row:
    category, severity = range_group(number), range_severity(number)
    for lowest, highest, its_category, its_severity in _BY_SYMBOL:
        if lowest <= number <= highest:
            category, severity = its_category, its_severity
    return Row(
        number,
        symbol,
        message,
        category,
        severity,
        _retry(number),
        data=data,
        sent=number not in _UNLISTED,
    )


def _refusal(
    number: int, symbol: str, http: int, message: str, category: str, severity: Severity
) -> Row:
    return Row(number, symbol, message, category, severity, _retry(number), http, sent=False)


def _retry(number: int) -> Retry:
    return "retry" if number in _RETRIED else "abort"


DEFINED: Final[tuple[Row, ...]] = tuple(_defined(*row) for row in _CORE_HEADER)
REFUSALS: Final[tuple[Row, ...]] = tuple(_refusal(*row) for row in _REFUSAL_HEADER)
# Last: a number that is read has the meaning the original gives it.
CODES: Final[tuple[Row, ...]] = (*DEFINED, *REFUSALS, *SHARED)

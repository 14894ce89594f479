"""The error numbers that erlmcp's guide to validators teaches.

They disagree with that project's own code (profile `erlmcp`) about every number
they share outside JSON-RPC: -32002 is a cancelled request here and a missing tool
there. The list is small and complete: the five of JSON-RPC, ten in -32001 to
-32010, eleven refusals.  [R-EM-96, K-16 to K-19, K-27]

Symbols go by what the guide says a number is for: "Cursor not found" covers an
invalid and an expired cursor, so it is INVALID_CURSOR. Its second internal error,
1089, has a symbol of its own, because a symbol is sent as one number.

The guide grades nothing: severity and retry are those of the same events in
`erlmcp`, where that has them.
"""

from __future__ import annotations

from typing import Final

from ..error_kinds import ErrorKind as Kind
from ..rows import ErrorCode as Row

__all__ = ["CODES"]

# One row per line, so that the table can be read beside the original.
# fmt: off
CODES: Final[tuple[Row, ...]] = (
    Row(-32700, Kind.PARSE_ERROR, "Parse error", "jsonrpc", "critical"),
    Row(-32600, Kind.INVALID_REQUEST, "Invalid request", "jsonrpc", "critical", ref="K-75"),
    Row(-32601, Kind.METHOD_NOT_FOUND, "Method not found", "jsonrpc"),
    Row(-32602, Kind.INVALID_PARAMS, "Invalid params", "jsonrpc"),
    Row(-32603, Kind.INTERNAL_ERROR, "Internal error", "jsonrpc", "critical", "retry"),
    # [R-EM-96]
    Row(-32001, Kind.TIMEOUT, "Request timed out", "mcp", "warning", "retry"),
    Row(-32002, Kind.REQUEST_CANCELLED, "Request cancelled", "mcp", "warning"),
    Row(-32003, Kind.NOT_INITIALIZED, "Server not initialized", "mcp", "warning"),
    Row(-32004, Kind.REQUEST_ID_CONFLICT, "Request already exists", "mcp", "warning"),
    Row(-32005, Kind.INVALID_CURSOR, "Cursor not found", "mcp", "warning"),
    Row(-32006, Kind.VALIDATION_FAILED, "Validation error", "mcp", "warning"),
    Row(-32007, Kind.CAPABILITY_NOT_SUPPORTED, "Unsupported capability", "mcp", "warning"),
    Row(-32008, Kind.RESOURCE_NOT_FOUND, "Resource not found", "mcp"),
    Row(-32009, Kind.TOOL_NOT_FOUND, "Tool not found", "mcp"),
    Row(-32010, Kind.PROMPT_NOT_FOUND, "Prompt not found", "mcp"),
    # [K-27, table D]
    Row(1001, "PERMISSION_DENIED", "Permission denied", "refusal"),
    Row(1002, Kind.RATE_LIMITED, "Rate limit exceeded", "refusal", "warning", "retry"),
    Row(1003, "RESOURCE_UNAVAILABLE", "Resource unavailable", "refusal", "warning", "retry"),
    Row(1004, Kind.TOOL_EXECUTION_FAILED, "Tool execution failed", "refusal", "warning"),
    Row(1005, Kind.INVALID_URI, "Invalid URI", "refusal", "warning"),
    Row(1006, "INVALID_ARGUMENTS", "Invalid arguments", "refusal", "warning"),
    Row(1007, "SAMPLING_UNAVAILABLE", "Sampling unavailable", "refusal", "warning"),
    Row(1008, "ROOT_NOT_FOUND", "Root not found", "refusal"),
    Row(1009, Kind.SUBSCRIPTION_FAILED, "Subscription failed", "refusal", "warning"),
    Row(1010, Kind.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", "refusal", "warning"),
    Row(1089, "INTERNAL_SERVER_ERROR", "Internal server error", "refusal", "critical"),
)
# fmt: on

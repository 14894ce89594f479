"""The error numbers of Pierre's agent-to-agent side.

It uses the envelope of its MCP side but other meanings of -32000 to -32010: -32001 is
a failed authentication here and a failed resource there. Its "invalid request" is sent
as invalid params.  [R-PI-31, R-PI-32]

The HTTP statuses are those of the classes Pierre sorts its errors into; where the
class is open, so is the field. The three codes of JSON-RPC that its list leaves out
come from the envelope.  [R-PI-29, P-27]
"""

from __future__ import annotations

from typing import Final

from ..error_kinds import ErrorKind as Kind
from ..rows import ErrorCode as Row

__all__ = ["CODES"]

# One row per line, so that the table can be read beside the original.
# fmt: off
CODES: Final[tuple[Row, ...]] = (
    Row(-32700, Kind.PARSE_ERROR, "Parse error", "jsonrpc", "critical", http=400),
    Row(-32600, Kind.INVALID_REQUEST, "Invalid Request", "jsonrpc", "critical"),
    Row(-32601, Kind.METHOD_NOT_FOUND, "Method not found", "jsonrpc"),
    Row(-32602, Kind.INVALID_PARAMS, "Invalid params", "jsonrpc", http=400),
    Row(-32001, Kind.AUTHENTICATION_FAILED, "Authentication failed", "auth", http=401),
    Row(-32003, "CLIENT_NOT_REGISTERED", "Client not registered", "auth"),
    Row(-32000, "DATABASE_ERROR", "Database error", "server", "critical", http=500),
    Row(-32603, Kind.INTERNAL_ERROR, "Internal error", "jsonrpc", "critical", http=500),
    Row(-32004, "CLIENT_DEACTIVATED", "Client deactivated", "auth"),
    Row(-32005, Kind.RATE_LIMITED, "Rate limit exceeded", "load", "warning", "retry", http=429),
    Row(-32006, Kind.SESSION_EXPIRED, "Session expired", "auth", http=401),
    Row(-32007, "INVALID_SESSION_TOKEN", "Invalid session token", "auth", http=401),
    Row(-32008, Kind.INSUFFICIENT_PERMISSIONS, "Insufficient permissions", "auth", http=403),
    Row(-32009, Kind.RESOURCE_NOT_FOUND, "Resource not found", "resource", http=404),
    Row(-32010, Kind.SERVICE_UNAVAILABLE, "Service unavailable", "load", "warning", "retry", http=503),
)
# fmt: on

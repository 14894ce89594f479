"""The error numbers of Pierre, a fitness data platform that speaks MCP.

Pierre keeps to the five of JSON-RPC where a desktop client would otherwise stumble,
so tokens and versions share -32602 and -32603, and it has seven numbers of its own
in -32000 to -32006. Its application errors know an HTTP status as well; what is not
there, be it a tool or a resource, is answered like an unknown method.
[R-PI-06, R-PI-07, R-PI-10, R-PI-16, R-PI-29]

Pierre grades nothing; the severities are ours. Its agent-to-agent side has another
list: profile `pierre-a2a`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..error_kinds import ErrorKind as Kind
from ..revisions import V2024_11_05
from ..rows import ErrorCode as Row

__all__ = ["CODES", "SERVER_ERRORS", "VERSIONS", "PierreVersion", "negotiated"]

# The block that Pierre leaves to applications, lowest first.  [P-27, K-29]
SERVER_ERRORS: Final = (-32099, -32000)

# What `data` carries: for application errors, and when credentials were refused.
_APP: Final = ("pierre_code", "details")
_AUTH: Final = ("detailed_error", "authentication_failed")

# One row per line, so that the table can be read beside the original.
# fmt: off
CODES: Final[tuple[Row, ...]] = (
    # JSON-RPC; Pierre has a text of its own for invalid params.  [P-27]
    Row(-32700, Kind.PARSE_ERROR, "Parse error", "jsonrpc", "critical", http=400),
    Row(-32600, Kind.INVALID_REQUEST, "Invalid Request", "jsonrpc", "critical"),
    Row(-32601, Kind.METHOD_NOT_FOUND, "Method not found", "jsonrpc"),
    Row(-32602, Kind.INVALID_PARAMS, "Invalid parameters", "jsonrpc"),
    Row(-32603, Kind.INTERNAL_ERROR, "Internal error", "jsonrpc", "critical"),
    # Names that share a number of JSON-RPC.  [R-PI-06, K-13]
    Row(-32603, Kind.UNAUTHORIZED, "Authentication required", "auth", http=401, data=_AUTH),
    Row(-32603, Kind.TOKEN_EXPIRED, "JWT token has expired", "auth", http=401, data=_AUTH),
    Row(-32603, Kind.INVALID_TOKEN, "JWT token signature is invalid", "auth", http=401, data=_AUTH),
    Row(-32602, "TOKEN_MALFORMED", "JWT token is malformed", "auth", http=401, data=_AUTH),
    Row(-32602, Kind.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported MCP protocol version", "protocol"),
    # Numbers of its own.  [R-PI-06]
    Row(-32000, Kind.TOOL_EXECUTION_FAILED, "Tool execution failed", "tool", ref="K-69"),
    Row(-32001, "RESOURCE_ACCESS_FAILED", "Resource access failed", "resource"),
    Row(-32002, Kind.AUTHENTICATION_FAILED, "Authentication failed", "auth", http=401, data=_AUTH),
    Row(-32003, Kind.AUTHORIZATION_FAILED, "Authorization failed", "auth", http=403),
    Row(-32004, "SERIALIZATION_FAILED", "Data serialization failed", "server", "critical"),
    Row(-32005, "PROGRESS_TRACKING_FAILED", "Progress tracking failed", "progress"),
    Row(-32006, Kind.REQUEST_CANCELLED, "Operation cancelled", "progress", "info"),
    # Application errors that have no number of their own.  [R-PI-16]
    Row(-32601, Kind.TOOL_NOT_FOUND, "Tool not found", "tool", http=404, data=_APP, ref="K-17"),
    Row(-32601, Kind.RESOURCE_NOT_FOUND, "Resource not found", "resource", http=404, data=_APP, ref="K-16"),
    Row(-32601, Kind.PROMPT_NOT_FOUND, "Prompt not found", "prompt", http=404, data=_APP),
    Row(-32602, Kind.INVALID_TOOL_ARGUMENTS, "Invalid parameters", "tool", http=400, data=_APP, ref="K-68"),
    Row(-32603, Kind.INSUFFICIENT_PERMISSIONS, "Authorization failed", "auth", http=403, data=_APP),
)
# fmt: on


class PierreVersion(NamedTuple):
    """The answer of Pierre to a version that is not a released revision."""

    # The version in the answer, and the revision whose rules then apply.
    answer: str
    revision: str
    # The capabilities that are declared, of those that the server has.
    capabilities: tuple[str, ...]
    # What the log says; "" is nothing.
    warning: str = ""


_LEGACY: Final = "Client using legacy MCP version, some features unavailable"
_UNKNOWN: Final = "Unknown client version, attempting compatibility"


# By the version that the client requests; "" is every other one.  [P-56, P-57, P-58, P-63]
VERSIONS: Final[dict[str, PierreVersion]] = {
    "2024-10-07": PierreVersion("2024-10-07", V2024_11_05, ("tools", "resources")),
    "1.0": PierreVersion("1.0", V2024_11_05, ("tools",), _LEGACY),
    "1": PierreVersion("1.0", V2024_11_05, ("tools",), _LEGACY),
    "": PierreVersion(
        V2024_11_05, V2024_11_05, ("tools", "resources", "prompts", "logging"), _UNKNOWN
    ),
}


def negotiated(requested: str) -> PierreVersion:
    """Return the answer to a version that the server does not have."""
    return VERSIONS.get(requested) or VERSIONS[""]

"""The error table of erlmcp's parser of the MCP specification.

97 entries: the five of JSON-RPC, three of its own, and a refusal for each of 1001
to 1089. Those numbers mean something else to the rest of that project (profiles
`erlmcp` and `erlmcp-guide`), so a conversation declares which list it uses.  [K-27]

Symbols are made from the names: `refused: invalid argument` is
REFUSED_INVALID_ARGUMENT. Two entries have the name `refused: rate limited`; the
second, which closes the table, carries its number.
"""

from __future__ import annotations

from typing import Final

from ..error_kinds import ErrorKind as Kind
from ..rows import ErrorCode as Row

__all__ = ["CODES"]

# The two categories of this table.
JSON_RPC: Final = "json_rpc"
PROTOCOL: Final = "mcp_protocol"

# One row per line, so that the table can be read beside the original.
# fmt: off
CODES: Final[tuple[Row, ...]] = (
    Row(-32700, Kind.PARSE_ERROR, "Parse error", JSON_RPC),
    Row(-32600, Kind.INVALID_REQUEST, "Invalid Request", JSON_RPC),
    Row(-32601, Kind.METHOD_NOT_FOUND, "Method not found", JSON_RPC),
    Row(-32602, Kind.INVALID_PARAMS, "Invalid params", JSON_RPC),
    Row(-32603, Kind.INTERNAL_ERROR, "Internal error", JSON_RPC, "error", "retry"),
    Row(-32001, Kind.RESOURCE_NOT_FOUND, "Resource not found", PROTOCOL),
    Row(-32002, Kind.TOOL_NOT_FOUND, "Tool not found", PROTOCOL),
    Row(-32010, Kind.OVERLOADED, "Server overloaded", PROTOCOL, "error", "retry"),
    Row(1001, "REFUSED_UNSPECIFIED", "refused: unspecified", PROTOCOL),
    Row(1002, "REFUSED_INVALID_ARGUMENT", "refused: invalid argument", PROTOCOL),
    Row(1003, "REFUSED_INVALID_ARGUMENT_NAME", "refused: invalid argument name", PROTOCOL),
    Row(1004, "REFUSED_INVALID_ARGUMENT_VALUE", "refused: invalid argument value", PROTOCOL),
    Row(1005, "REFUSED_INVALID_ARGUMENT_TYPE", "refused: invalid argument type", PROTOCOL),
    Row(1006, "REFUSED_MISSING_REQUIRED_ARGUMENT", "refused: missing required argument", PROTOCOL),
    Row(1007, "REFUSED_EXTRA_ARGUMENT", "refused: extra argument", PROTOCOL),
    Row(1008, "REFUSED_INVALID_REQUEST", "refused: invalid request", PROTOCOL),
    Row(1009, "REFUSED_INVALID_REQUEST_TYPE", "refused: invalid request type", PROTOCOL),
    Row(1010, "REFUSED_INVALID_REQUEST_ID", "refused: invalid request ID", PROTOCOL),
    Row(1011, "REFUSED_INVALID_METHOD", "refused: invalid method", PROTOCOL),
    Row(1012, "REFUSED_METHOD_NOT_FOUND", "refused: method not found", PROTOCOL),
    Row(1013, "REFUSED_METHOD_NOT_SUPPORTED", "refused: method not supported", PROTOCOL),
    Row(1014, "REFUSED_INVALID_CAPABILITY", "refused: invalid capability", PROTOCOL),
    Row(1015, "REFUSED_CAPABILITY_NOT_SUPPORTED", "refused: capability not supported", PROTOCOL),
    Row(1016, "REFUSED_INVALID_RESOURCE", "refused: invalid resource", PROTOCOL),
    Row(1017, "REFUSED_RESOURCE_NOT_FOUND", "refused: resource not found", PROTOCOL),
    Row(1018, "REFUSED_INVALID_TOOL", "refused: invalid tool", PROTOCOL),
    Row(1019, "REFUSED_TOOL_NOT_FOUND", "refused: tool not found", PROTOCOL),
    Row(1020, "REFUSED_INVALID_PROMPT", "refused: invalid prompt", PROTOCOL),
    Row(1021, "REFUSED_PROMPT_NOT_FOUND", "refused: prompt not found", PROTOCOL),
    Row(1022, "REFUSED_INVALID_URI", "refused: invalid URI", PROTOCOL),
    Row(1023, "REFUSED_INVALID_URI_SCHEME", "refused: invalid URI scheme", PROTOCOL),
    Row(1024, "REFUSED_INVALID_URI_AUTHORITY", "refused: invalid URI authority", PROTOCOL),
    Row(1025, "REFUSED_INVALID_URI_PATH", "refused: invalid URI path", PROTOCOL),
    Row(1026, "REFUSED_INVALID_URI_QUERY", "refused: invalid URI query", PROTOCOL),
    Row(1027, "REFUSED_INVALID_URI_FRAGMENT", "refused: invalid URI fragment", PROTOCOL),
    Row(1028, "REFUSED_INVALID_JSON", "refused: invalid JSON", PROTOCOL),
    Row(1029, "REFUSED_INVALID_JSON_STRUCTURE", "refused: invalid JSON structure", PROTOCOL),
    Row(1030, "REFUSED_INVALID_JSON_RPC", "refused: invalid JSON-RPC", PROTOCOL),
    Row(1031, "REFUSED_INVALID_JSON_RPC_VERSION", "refused: invalid JSON-RPC version", PROTOCOL),
    Row(1032, "REFUSED_INVALID_JSON_RPC_MESSAGE_TYPE", "refused: invalid JSON-RPC message type", PROTOCOL),
    Row(1033, "REFUSED_INVALID_CONTENT", "refused: invalid content", PROTOCOL),
    Row(1034, "REFUSED_INVALID_CONTENT_TYPE", "refused: invalid content type", PROTOCOL),
    Row(1035, "REFUSED_INVALID_CONTENT_ENCODING", "refused: invalid content encoding", PROTOCOL),
    Row(1036, "REFUSED_INVALID_MESSAGE", "refused: invalid message", PROTOCOL),
    Row(1037, "REFUSED_INVALID_MESSAGE_TYPE", "refused: invalid message type", PROTOCOL),
    Row(1038, "REFUSED_INVALID_MESSAGE_ID", "refused: invalid message ID", PROTOCOL),
    Row(1039, "REFUSED_INVALID_MESSAGE_TIMESTAMP", "refused: invalid message timestamp", PROTOCOL),
    Row(1040, "REFUSED_INVALID_MESSAGE_VERSION", "refused: invalid message version", PROTOCOL),
    Row(1041, "REFUSED_INVALID_BATCH", "refused: invalid batch", PROTOCOL),
    Row(1042, "REFUSED_INVALID_BATCH_SIZE", "refused: invalid batch size", PROTOCOL),
    Row(1043, "REFUSED_INVALID_BATCH_ITEM", "refused: invalid batch item", PROTOCOL),
    Row(1044, "REFUSED_INVALID_PAGINATION", "refused: invalid pagination", PROTOCOL),
    Row(1045, "REFUSED_INVALID_CURSOR", "refused: invalid cursor", PROTOCOL),
    Row(1046, "REFUSED_INVALID_LIMIT", "refused: invalid limit", PROTOCOL),
    Row(1047, "REFUSED_INVALID_OFFSET", "refused: invalid offset", PROTOCOL),
    Row(1048, "REFUSED_INVALID_SORT", "refused: invalid sort", PROTOCOL),
    Row(1049, "REFUSED_INVALID_FILTER", "refused: invalid filter", PROTOCOL),
    Row(1050, "REFUSED_INVALID_AUTHENTICATION", "refused: invalid authentication", PROTOCOL),
    Row(1051, "REFUSED_AUTHENTICATION_FAILED", "refused: authentication failed", PROTOCOL),
    Row(1052, "REFUSED_AUTHENTICATION_REQUIRED", "refused: authentication required", PROTOCOL),
    Row(1053, "REFUSED_INVALID_AUTHORIZATION", "refused: invalid authorization", PROTOCOL),
    Row(1054, "REFUSED_AUTHORIZATION_FAILED", "refused: authorization failed", PROTOCOL),
    Row(1055, "REFUSED_AUTHORIZATION_REQUIRED", "refused: authorization required", PROTOCOL),
    Row(1056, "REFUSED_INVALID_TOKEN", "refused: invalid token", PROTOCOL),
    Row(1057, "REFUSED_TOKEN_EXPIRED", "refused: token expired", PROTOCOL),
    Row(1058, "REFUSED_TOKEN_REVOKED", "refused: token revoked", PROTOCOL),
    Row(1059, "REFUSED_INVALID_CREDENTIALS", "refused: invalid credentials", PROTOCOL),
    Row(1060, "REFUSED_INSUFFICIENT_PERMISSIONS", "refused: insufficient permissions", PROTOCOL),
    Row(1061, "REFUSED_ACCESS_DENIED", "refused: access denied", PROTOCOL),
    Row(1062, "REFUSED_QUOTA_EXCEEDED", "refused: quota exceeded", PROTOCOL, "warning", "retry"),
    Row(1063, "REFUSED_RATE_LIMITED", "refused: rate limited", PROTOCOL, "warning", "retry"),
    Row(1064, "REFUSED_SERVER_OVERLOADED", "refused: server overloaded", PROTOCOL, "warning", "retry"),
    Row(1065, "REFUSED_SERVER_UNAVAILABLE", "refused: server unavailable", PROTOCOL, "error", "retry"),
    Row(1066, "REFUSED_SERVER_ERROR", "refused: server error", PROTOCOL, "error", "retry"),
    Row(1067, "REFUSED_NETWORK_ERROR", "refused: network error", PROTOCOL, "error", "retry"),
    Row(1068, "REFUSED_TIMEOUT", "refused: timeout", PROTOCOL, "error", "retry"),
    Row(1069, "REFUSED_CONNECTION_LOST", "refused: connection lost", PROTOCOL, "error", "retry"),
    Row(1070, "REFUSED_CONNECTION_CLOSED", "refused: connection closed", PROTOCOL, "error", "retry"),
    Row(1071, "REFUSED_CONNECTION_REFUSED", "refused: connection refused", PROTOCOL, "error", "retry"),
    Row(1072, "REFUSED_INVALID_STATE", "refused: invalid state", PROTOCOL),
    Row(1073, "REFUSED_STATE_MISMATCH", "refused: state mismatch", PROTOCOL),
    Row(1074, "REFUSED_NOT_INITIALIZED", "refused: not initialized", PROTOCOL),
    Row(1075, "REFUSED_ALREADY_INITIALIZED", "refused: already initialized", PROTOCOL),
    Row(1076, "REFUSED_SHUTTING_DOWN", "refused: shutting down", PROTOCOL),
    Row(1077, "REFUSED_OPERATION_NOT_SUPPORTED", "refused: operation not supported", PROTOCOL),
    Row(1078, "REFUSED_OPERATION_CANCELLED", "refused: operation cancelled", PROTOCOL, "warning"),
    Row(1079, "REFUSED_OPERATION_TIMEOUT", "refused: operation timeout", PROTOCOL, "error", "retry"),
    Row(1080, "REFUSED_OPERATION_FAILED", "refused: operation failed", PROTOCOL),
    Row(1081, "REFUSED_VALIDATION_FAILED", "refused: validation failed", PROTOCOL),
    Row(1082, "REFUSED_SCHEMA_VALIDATION_FAILED", "refused: schema validation failed", PROTOCOL),
    Row(1083, "REFUSED_CONSTRAINT_VIOLATION", "refused: constraint violation", PROTOCOL),
    Row(1084, "REFUSED_DATA_TOO_LARGE", "refused: data too large", PROTOCOL),
    Row(1085, "REFUSED_DATA_TOO_SMALL", "refused: data too small", PROTOCOL),
    Row(1086, "REFUSED_INVALID_DATA_FORMAT", "refused: invalid data format", PROTOCOL),
    Row(1087, "REFUSED_INVALID_DATA_ENCODING", "refused: invalid data encoding", PROTOCOL),
    Row(1088, "REFUSED_INVALID_DATA_COMPRESSION", "refused: invalid data compression", PROTOCOL),
    Row(1089, "REFUSED_RATE_LIMITED_1089", "refused: rate limited", PROTOCOL, "warning", "retry"),
)
# fmt: on

"""Category, severity and range of an error code.

The category is that of the symbol, so a missing resource is a `resource` error although
its code is in the core range; `range_group` classifies by range. A code without a symbol
has the category and severity of its range.  [K-26]
"""

from __future__ import annotations

from typing import Final

from ...spec.profiles import profile
from ...spec.profiles.erlmcp import range_group, range_severity
from ...spec.rows import Severity
from ._policy import POLICY
from .constants import VALID_ERROR_CODES

__all__ = [
    "ERROR_ATOMS",
    "error_category",
    "error_code",
    "error_severity",
    "is_jsonrpc_standard_error",
    "is_mcp_auth_error",
    "is_mcp_completion_error",
    "is_mcp_content_error",
    "is_mcp_core_error",
    "is_mcp_pagination_error",
    "is_mcp_progress_error",
    "is_mcp_prompt_error",
    "is_mcp_protocol_error",
    "is_mcp_resource_error",
    "is_mcp_task_error",
    "is_mcp_tool_error",
    "range_group",
    "validate_error_code",
]

_codes: Final = profile(POLICY.codes)

# The names that the original turns into numbers; it knows no others.  [R-EM-06]
ERROR_ATOMS: Final = (
    "parse_error",
    "invalid_request",
    "method_not_found",
    "invalid_params",
    "internal_error",
    "resource_not_found",
    "tool_not_found",
    "not_initialized",
    "validation_failed",
    "rate_limited",
    "unauthorized",
)


def error_code(atom: str) -> int:
    """Return the number of one of `ERROR_ATOMS`; any other name is an internal error."""
    symbol = atom.upper() if atom in ERROR_ATOMS else "INTERNAL_ERROR"
    return _codes.number(symbol, POLICY.revision)


def validate_error_code(code: int) -> bool:
    """Return True if `code` goes out as it is; any other goes out as -32603."""
    return code in VALID_ERROR_CODES


def error_category(code: int) -> str:
    """Return what the error is about: `error_category(-32001)` is "resource"."""
    row = _codes.meaning(code, POLICY.revision)
    return range_group(code) if row is None else row.category


def error_severity(code: int) -> Severity:
    """Return how bad the error is: "critical", "error", "warning" or "info"."""
    row = _codes.meaning(code, POLICY.revision)
    return range_severity(code) if row is None else row.severity


def _is_in(code: int, group: str) -> bool:
    """Return True if a number lies in the range of `group`, or is sent with a symbol of it."""
    if range_group(code) == group:
        return True
    return code in VALID_ERROR_CODES and error_category(code) == group


def is_jsonrpc_standard_error(code: int) -> bool:
    """Return True if the number is one of JSON-RPC itself, -32700 to -32600."""
    return _is_in(code, "jsonrpc")


def is_mcp_core_error(code: int) -> bool:
    """Return True if the number lies in -32010 to -32000."""
    return _is_in(code, "mcp_core")


def is_mcp_content_error(code: int) -> bool:
    """Return True if the number lies in -32020 to -32011."""
    return _is_in(code, "content")


def is_mcp_resource_error(code: int) -> bool:
    """Return True if the number is -32001 or lies in -32030 to -32021."""
    return _is_in(code, "resource")


def is_mcp_tool_error(code: int) -> bool:
    """Return True if the number is -32002 or lies in -32040 to -32031."""
    return _is_in(code, "tool")


def is_mcp_prompt_error(code: int) -> bool:
    """Return True if the number is -32003 or lies in -32050 to -32041."""
    return _is_in(code, "prompt")


def is_mcp_auth_error(code: int) -> bool:
    """Return True if the number lies in -32060 to -32051."""
    return _is_in(code, "auth")


def is_mcp_protocol_error(code: int) -> bool:
    """Return True if the number lies in -32070 to -32061."""
    return _is_in(code, "protocol")


def is_mcp_pagination_error(code: int) -> bool:
    """Return True if the number lies in -32080 to -32071."""
    return _is_in(code, "pagination")


def is_mcp_task_error(code: int) -> bool:
    """Return True if the number lies in -32090 to -32081, or in 1095 to 1099."""
    return _is_in(code, "task")


def is_mcp_progress_error(code: int) -> bool:
    """Return True if the number lies in -32100 to -32091."""
    return _is_in(code, "progress")


def is_mcp_completion_error(code: int) -> bool:
    """Return True if the number lies in -32113 to -32110."""
    return _is_in(code, "completion")

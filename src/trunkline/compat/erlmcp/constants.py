"""Field names, versions and error codes, as the header of erlmcp spells them.

The codes come from the rows of profile `erlmcp`. Those of JSON-RPC start with
`JSONRPC_`, those of MCP with `MCP_ERROR_`; the ten experimental ones have no prefix and
the refusals keep their `REFUSAL_`.
"""

from __future__ import annotations

from typing import Final

from ...spec.profiles.erlmcp import DEFINED, REFUSALS
from ...spec.rows import ErrorCode
from ._policy import POLICY

__all__ = [
    "CODE_CONSTANTS",
    "JSONRPC_ERROR_FIELD_CODE",
    "JSONRPC_ERROR_FIELD_DATA",
    "JSONRPC_ERROR_FIELD_MESSAGE",
    "JSONRPC_FIELD_ERROR",
    "JSONRPC_FIELD_ID",
    "JSONRPC_FIELD_JSONRPC",
    "JSONRPC_FIELD_METHOD",
    "JSONRPC_FIELD_PARAMS",
    "JSONRPC_FIELD_RESULT",
    "JSONRPC_VERSION",
    "MCP_METHOD_INITIALIZE",
    "MCP_VERSION",
    "VALID_ERROR_CODES",
]

JSONRPC_VERSION: Final = "2.0"
MCP_VERSION: Final = POLICY.revision

JSONRPC_FIELD_JSONRPC: Final = "jsonrpc"
JSONRPC_FIELD_ID: Final = "id"
JSONRPC_FIELD_METHOD: Final = "method"
JSONRPC_FIELD_PARAMS: Final = "params"
JSONRPC_FIELD_RESULT: Final = "result"
JSONRPC_FIELD_ERROR: Final = "error"

JSONRPC_ERROR_FIELD_CODE: Final = "code"
JSONRPC_ERROR_FIELD_MESSAGE: Final = "message"
JSONRPC_ERROR_FIELD_DATA: Final = "data"

MCP_METHOD_INITIALIZE: Final = "initialize"

# The codes that may be sent; any other is sent as -32603.
VALID_ERROR_CODES: Final = frozenset(row.number for row in DEFINED if row.sent)


def _spelling(row: ErrorCode) -> str:
    if row.category == "jsonrpc":
        return f"JSONRPC_{row.symbol}"
    if row.number > 0:
        # The header defines these as bare names, beside MCP_ERROR_ ones of the same name.
        return row.symbol.removeprefix("EXPERIMENTAL_")
    return f"MCP_ERROR_{row.symbol}"


CODE_CONSTANTS: Final = {_spelling(row): row.number for row in (*DEFINED, *REFUSALS)}

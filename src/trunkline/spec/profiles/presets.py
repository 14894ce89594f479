"""Policy presets and size limits of the described systems, as rows.

Keys are fields of `trunkline.jsonrpc.Policy` and `trunkline.jsonrpc.Limits`; a missing
key means the default of that field, which is the official position.
"""

from __future__ import annotations

from typing import Any, Final

from ..revisions import LATEST, V2025_06_18, V2025_11_25

__all__ = ["LIMITS", "POLICIES"]

_MIB: Final = 1024 * 1024
_MAX_ID_ERLMCP: Final = 2**60 - 1

LIMITS: Final[dict[str, dict[str, Any]]] = {
    "mcp-16m": {},
    # The document's table; "default" is unlimited there.                       E-88…E-93, K-39
    "erlmcp-doc": {
        "default": None,
        "stdio": 10 * _MIB,
        "tcp": 100 * _MIB,
        "unix": 100 * _MIB,
        "http": 50 * _MIB,
        "websocket": 50 * _MIB,
        "sse": 10 * _MIB,
    },
    # One body limit for every transport.                                       R-PI-19, K-39
    "pierre-5m": dict.fromkeys(
        ("default", "stdio", "tcp", "unix", "http", "websocket", "sse"), 5 * _MIB
    ),
}

POLICIES: Final[dict[str, dict[str, Any]]] = {
    # The official position of one revision; the caller adds which.
    "mcp": {"revision": LATEST},
    # JSON-RPC 2.0 by itself: arrays as params, any result, null ids answered.  K-03, K-06, K-07
    "jsonrpc": {
        "batch": "accept",
        "null_id": "as-request",
        "unreadable_id": "null",
        "params": "structured",
        "params_fault": "INVALID_REQUEST",
        "results": "any",
        "id_reuse": "open",
        "explain": False,
    },
    # The document's reading of 2025-11-25.                                     E-01…E-131
    "erlmcp": {
        "revision": V2025_11_25,
        "codes": "erlmcp",
        "unknown_code": "to-internal",
        "batch": "accept",
        "mixed_batches": True,
        "unreadable_id": "null",
        "oversize_id": "null",  # E-94
        "params": "nullable",
        "results": "any",
        "max_id": _MAX_ID_ERLMCP,
        "id_reuse": "open",
        "version_policy": "reject",
        "ping_first": False,  # E-99
        "tool_failures": "error",
        "method_names": "emit-bare",
        # 5 s for a call, 2 s for a list.                                       R-EM-59, K-63
        "timeout_s": 5.0,
        "list_timeout_s": 2.0,
        "limits": "erlmcp-doc",
        "explain": False,
    },
    # The chapter's envelope with credentials and context in it.                P-01…P-65
    "pierre": {
        "revision": V2025_06_18,
        "codes": "pierre",
        "null_id": "as-request",
        "unreadable_id": "null",
        "params": "structured",
        "results": "any",
        "id_reuse": "open",
        "version_policy": "pierre",
        "tool_failures": "error",
        # It logs with `logging/logMessage`, and its figure has `progress`.      P-34, K-53, K-54
        "method_names": "accept-bare",
        "limits": "pierre-5m",
        "envelope": "pierre",
        "redaction": "first-and-last",
        "explain": False,
    },
    # The leniencies of its parser; ids count from 0.                           C-16, R-CP-20, K-64
    "mcpp": {
        "revision": V2025_11_25,
        "mixed_batches": True,
        "params": "nullable",
        "results": "any",
        "first_id": 0,
        "timeout_s": 300.0,  # R-CP-02, K-63
        "strictness": "lenient",
        "framing": "detect",
        "explain": False,
    },
}

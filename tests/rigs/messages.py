"""JSON-RPC messages as a client of MCP writes them, in the handshake era and after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

HANDSHAKE: Final = "2025-11-25"
PER_REQUEST: Final = "2026-07-28"
INFO: Final = {"name": "tests", "version": "1"}
# `_meta` of a request of the revision that has no handshake.
META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": INFO,
}


def message(method: str, params: Mapping[str, Any] | None = None, id: Any = 1) -> dict[str, Any]:
    """Return a request, or a notification if `id` is None; `params` is absent if it is None."""
    named = {} if id is None else {"id": id}
    given = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", **named, "method": method, **given}


def frame(method: str, params: Mapping[str, Any] | None = None, id: Any = 1) -> bytes:
    """Return a message as bytes."""
    return json.dumps(message(method, params, id)).encode()


def initialize_params(
    revision: str = HANDSHAKE, capabilities: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the parameters of `initialize`."""
    declared = {} if capabilities is None else capabilities
    return {"protocolVersion": revision, "capabilities": declared, "clientInfo": INFO}

"""Playing the rounds of 2026-07-28 by hand: send a call, answer what it asks, send it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.rigs.messages import META
from tests.rigs.server_connection import ServerConnection

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
EVERYTHING = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}


def meta(capabilities: Mapping[str, Any] = EVERYTHING, **more: Any) -> dict[str, Any]:
    return {**META, CAPABILITIES: dict(capabilities), **more}


async def attempt(
    wire: ServerConnection,
    id: Any,
    params: dict[str, Any],
    *,
    method: str = "tools/call",
    state: Any = None,
    responses: Any = None,
    capabilities: Mapping[str, Any] = EVERYTHING,
    **more: Any,
) -> Any:
    """Send a request, and with it what an earlier attempt gave; return its reply."""
    sent = {**params, "_meta": meta(capabilities, **more)}
    if state is not None:
        sent["requestState"] = state
    if responses is not None:
        sent["inputResponses"] = responses
    wire.ask(id, method, sent)
    return await wire.answer(id)


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}

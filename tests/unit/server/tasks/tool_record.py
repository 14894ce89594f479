"""A record of a task of MCP, for tests."""

from __future__ import annotations

from typing import Any

from trunkline.engine.tasks.records import new_id
from trunkline.server.tasks.records import ToolTaskRecord


def record(**changes: Any) -> ToolTaskRecord:
    facts: dict[str, Any] = {
        "id": new_id(),
        "tenant": "",
        "owner": None,
        "form": "extension",
        "tool": "work",
        "runner": "r",
        "created": 1000.0,
        "updated": 1000.0,
        "ttl": 60.0,
        "poll_interval": 1.0,
    }
    return ToolTaskRecord(**{**facts, **changes})

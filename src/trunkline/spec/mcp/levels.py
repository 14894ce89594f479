"""Log levels of MCP: the eight severities of RFC 5424."""

from __future__ import annotations

from typing import Final

__all__ = ["LOG_LEVELS"]

# From the least severe to the most.          [MCP 2025-11-25, server/utilities/logging]
LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)

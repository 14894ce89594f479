"""What a server does differently from revision to revision, where no other row says so."""

from __future__ import annotations

from typing import Final

from ..revisions import V2025_11_25, Window

__all__ = ["BAD_ARGUMENTS_ARE_RESULTS"]

# Arguments that do not fit a tool are told to the model, as a result marked `isError`; before,
# they were an error of the protocol.       [MCP 2025-11-25, server/tools#error-handling; K-68]
BAD_ARGUMENTS_ARE_RESULTS: Final = Window(V2025_11_25)

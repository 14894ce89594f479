"""How each MCP revision narrows plain JSON-RPC 2.0, one fact per line.

The codec reads these through `Policy.mcp(revision)`; nothing else decides which revision a rule
of the envelope belongs to.
"""

from __future__ import annotations

from typing import Final

from ..revisions import V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28, Window

__all__ = [
    "BATCHES_RECEIVED",
    "BATCHES_SENT",
    "ID_NAMES_ONE_REQUEST_PER_SESSION",
    "UNREADABLE_ID_OMITTED",
]

# 2024-11-05 does not mention batches and so inherits them from JSON-RPC 2.0; 2025-03-26
# requires receivers to accept them; 2025-06-18 removed them.       [MCP 2025-03-26, basic]
BATCHES_RECEIVED: Final = Window(V2024_11_05, V2025_06_18)
BATCHES_SENT: Final = Window(V2025_03_26, V2025_06_18)

# The schema of an error reply requires an id up to 2025-06-18, where JSON-RPC's null is the
# only way to say "unreadable"; from 2025-11-25 the id is optional.  [MCP 2025-11-25, basic]
UNREADABLE_ID_OMITTED: Final = Window(V2025_11_25)

# Since 2026-07-28 an id only has to differ from those still open.   [MCP 2026-07-28, basic]
ID_NAMES_ONE_REQUEST_PER_SESSION: Final = Window(V2024_11_05, V2026_07_28)

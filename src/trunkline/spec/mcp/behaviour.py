"""Behaviour that differs between revisions and is in no other row.

The windows of the envelope say how a revision narrows JSON-RPC 2.0. The codec reads them through
`Policy.mcp(revision)`; nothing else decides which revision a rule of the envelope belongs to.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..revisions import (
    HANDSHAKE,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    Window,
)
from ..rows import ALWAYS

__all__ = [
    "ASKING_NEEDS",
    "BAD_ARGUMENTS_ARE_RESULTS",
    "BATCHES_RECEIVED",
    "BATCHES_SENT",
    "ID_NAMES_ONE_REQUEST_PER_SESSION",
    "IMPLIED",
    "MISSING_CAPABILITIES_ARE_RESULTS",
    "UNREADABLE_ID_OMITTED",
    "AskingNeed",
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

# Invalid arguments of a tool give a result with `isError`, which the model can read; before, they
# were a protocol error.                    [MCP 2025-11-25, server/tools#error-handling; K-68]
BAD_ARGUMENTS_ARE_RESULTS: Final = Window(V2025_11_25)

# A tool that needs a client capability which was not declared gives a result with `isError`, which
# the model can read: these revisions have no error for it. Since 2026-07-28 it is error -32021.
#                                                                  [MCP 2026-07-28, basic#_meta]
MISSING_CAPABILITIES_ARE_RESULTS: Final = HANDSHAKE


class AskingNeed(NamedTuple):
    """A member of a request to the client that needs a further capability."""

    method: str
    member: str
    # None means any value.
    value: str | None
    capability: str
    when: Window


# In addition to the capability of the method itself. A capability that a revision does not have
# counts as not declared.                              [MCP 2025-11-25, client/sampling, client/elicitation]
ASKING_NEEDS: Final = (
    AskingNeed("sampling/createMessage", "tools", None, "sampling.tools", ALWAYS),
    AskingNeed("sampling/createMessage", "toolChoice", None, "sampling.tools", ALWAYS),
    AskingNeed(
        "sampling/createMessage",
        "includeContext",
        "thisServer",
        "sampling.context",
        Window(V2025_11_25),
    ),
    AskingNeed(
        "sampling/createMessage",
        "includeContext",
        "allServers",
        "sampling.context",
        Window(V2025_11_25),
    ),
    AskingNeed("elicitation/create", "mode", "form", "elicitation.form", Window(V2025_11_25)),
    AskingNeed("elicitation/create", "mode", "url", "elicitation.url", ALWAYS),
)

# Capabilities that an empty parent object declares.       [MCP 2025-11-25, client/elicitation]
IMPLIED: Final = frozenset(("elicitation.form",))

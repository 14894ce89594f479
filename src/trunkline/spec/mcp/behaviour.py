"""Behaviour of a server that differs between revisions and is in no other row."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..revisions import V2025_11_25, Window
from ..rows import ALWAYS

__all__ = ["ASKING_NEEDS", "BAD_ARGUMENTS_ARE_RESULTS", "IMPLIED", "AskingNeed"]

# Invalid arguments of a tool give a result with `isError`, which the model can read; before, they
# were a protocol error.                    [MCP 2025-11-25, server/tools#error-handling; K-68]
BAD_ARGUMENTS_ARE_RESULTS: Final = Window(V2025_11_25)


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

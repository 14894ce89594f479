"""What a server does differently from revision to revision, where no other row says so."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..revisions import V2025_11_25, Window
from ..rows import ALWAYS

__all__ = ["ASKING_NEEDS", "BAD_ARGUMENTS_ARE_RESULTS", "IMPLIED", "AskingNeed"]

# Arguments that do not fit a tool are told to the model, as a result marked `isError`; before,
# they were an error of the protocol.       [MCP 2025-11-25, server/tools#error-handling; K-68]
BAD_ARGUMENTS_ARE_RESULTS: Final = Window(V2025_11_25)


class AskingNeed(NamedTuple):
    """A member of a question that a client must have said it can deal with."""

    method: str
    member: str
    # Only with this value; None is any.
    value: str | None
    capability: str
    when: Window


# Beside the capability of the method itself. What a revision does not have counts as not declared,
# and so cannot be asked.                              [MCP 2025-11-25, client/sampling, client/elicitation]
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

# Capabilities that an empty one above them declares.      [MCP 2025-11-25, client/elicitation]
IMPLIED: Final = frozenset(("elicitation.form",))

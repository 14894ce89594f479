"""What is known to be otherwise with the official SDKs and FastMCP, and why.

A check that fails and stands here is shown as different, with the reason. One that stands here
and does not fail is an error: the row has to go.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from trunkline.spec.revisions import V2025_11_25, V2026_07_28, Window

from .checks import ANY

__all__ = ["DIFFERENCES", "Difference", "difference"]

HANDSHAKE: Final = Window(until=V2026_07_28)
PER_REQUEST: Final = Window(V2026_07_28)
CORE: Final = Window(V2025_11_25, V2026_07_28)

# Reasons that several rows have.
NO_SUBSCRIBE: Final = "it has no resources/subscribe"
NO_END: Final = "it keeps its streams to itself, and gives no way to end one"
DEFAULTS: Final = "over HTTP it declares what it derives, and takes no options for the rest"
NO_TASKS: Final = "it has no tasks of 2025-11-25, and no place for them: extensions came later"


class Difference(NamedTuple):
    """One check that fails with one peer, in some revisions."""

    peer: str
    check: str
    when: Window
    why: str


DIFFERENCES: Final = (
    Difference(
        "client",
        "a call asks to be a task",
        CORE,
        "its session sends `task`, and then refuses the task for lack of the result of a tool",
    ),
    Difference("MCPServer", "a list has pages", ANY, "it gives every list as one page"),
    Difference(
        "MCPServer",
        "an unknown tool is refused",
        ANY,
        "it answers with a result marked isError, where the specification has -32602",
    ),
    Difference(
        "MCPServer",
        "the log begins at its level",
        HANDSHAKE,
        "it has no logging/setLevel and declares no logging, yet sends lines of every level",
    ),
    Difference(
        "MCPServer",
        "a missing resource is an error",
        HANDSHAKE,
        "it answers -32602 in every revision; before 2026-07-28 the number is -32002",
    ),
    Difference("MCPServer", "who subscribed is told", HANDSHAKE, NO_SUBSCRIBE),
    Difference("MCPServer", "who listens is told", HANDSHAKE, NO_SUBSCRIBE),
    Difference("MCPServer", "streams are told apart", HANDSHAKE, NO_SUBSCRIBE),
    Difference(
        "MCPServer",
        "that lists change is declared",
        HANDSHAKE,
        "it declares no listChanged with a handshake, and yet tells",
    ),
    Difference("MCPServer", "a stream ends in order", PER_REQUEST, NO_END),
    Difference("MCPServer", "a stream that ended is opened again", PER_REQUEST, NO_END),
    Difference("MCPServer", "a task is followed", CORE, NO_TASKS),
    Difference("MCPServer", "a task is cancelled", CORE, NO_TASKS),
    Difference("MCPServer", "a task asks", CORE, NO_TASKS),
    Difference("MCPServer", "tasks are listed", CORE, NO_TASKS),
    Difference("MCPServer", "a task of nobody is refused", CORE, NO_TASKS),
    Difference(
        "MCPServer",
        "an unknown prompt is refused",
        ANY,
        "it answers code 0 with a handshake and -32603 without, where -32602 is asked for",
    ),
    Difference(
        "typescript",
        "a missing resource is an error",
        HANDSHAKE,
        "it answers -32602 in every revision; before 2026-07-28 the number is -32002",
    ),
    Difference(
        "typescript client",
        "a missing resource is an error",
        HANDSHAKE,
        "it shows the -32002 of older revisions as -32602",
    ),
    Difference(
        "fastmcp",
        "an unknown tool is refused",
        ANY,
        "it answers with a result marked isError, where the specification has -32602",
    ),
    Difference(
        "fastmcp",
        "a missing resource is an error",
        HANDSHAKE,
        "it answers -32602 in every revision; before 2026-07-28 the number is -32002",
    ),
    Difference(
        "fastmcp",
        "the log begins at its level",
        ANY,
        "it logs an object with `msg` and `extra` in place of the text",
    ),
    Difference(
        "fastmcp client",
        "a number is a number",
        HANDSHAKE,
        "it unwraps what a server of FastMCP wrapped, by a mark of its own in the schema",
    ),
    Difference("low-level HTTP", "that lists change is declared", HANDSHAKE, DEFAULTS),
    Difference("low-level HTTP", "a task is followed", CORE, DEFAULTS),
    Difference("low-level HTTP", "a task is cancelled", CORE, DEFAULTS),
    Difference("low-level HTTP", "a task asks", CORE, DEFAULTS),
    Difference("low-level HTTP", "tasks are listed", CORE, DEFAULTS),
    Difference("low-level HTTP", "a task of nobody is refused", CORE, DEFAULTS),
)


def difference(peer: str, check: str, revision: str) -> Difference | None:
    """Return what is known of a check with a peer in a revision."""
    for row in DIFFERENCES:
        if row.peer == peer and row.check == check and row.when.holds(revision):
            return row
    return None

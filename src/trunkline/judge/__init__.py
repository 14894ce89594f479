"""Conformance checks of MCP messages: which rule is broken, where, and which page says so.

`judge` checks one message, `Conversation` a recording of many, `compare` two listings of a
server. No I/O and no clock. Whatever the input is, a check does not raise: it returns findings,
and an empty list for a message without faults.
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "conversation.conversation": "Conversation",
        "conversation.outcomes": "Outcome",
        "diff": "Change Comparison compare read_listing",
        "finding": "Finding",
        "messages.message": "judge",
        "trace.reader": "TraceEntry TraceFault read_trace",
        "trace.writer": "TraceWriter",
        "types.type_checks": "judge_type",
    },
)

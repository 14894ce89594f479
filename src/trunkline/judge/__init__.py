"""Judges of other people's messages: what is wrong, where, and who says so.

No I/O and no clock. A judge does not raise over what it is given to judge: it returns
findings, and an empty list for a message that is in order.
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "conversation": "Conversation Outcome",
        "diff": "Change Comparison compare read_listing",
        "finding": "Finding",
        "message": "judge",
        "trace": "TraceEntry TraceFault TraceWriter read_trace",
        "types.type_checks": "judge_type",
    },
)

"""Judges of other people's messages: what is wrong, where, and who says so.

No I/O and no clock. A judge does not raise over what it is given to judge: it returns
findings, and an empty list for a message that is in order.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .conversation import Conversation, Outcome
    from .diff import Change, Comparison, compare, read_listing
    from .finding import Finding
    from .message import judge
    from .trace import TraceEntry, TraceFault, TraceWriter, read_trace
    from .types.type_checks import judge_type

__all__ = [
    "Change",
    "Comparison",
    "Conversation",
    "Finding",
    "Outcome",
    "TraceEntry",
    "TraceFault",
    "TraceWriter",
    "compare",
    "judge",
    "judge_type",
    "read_listing",
    "read_trace",
]

# Loaded when first asked for: a judge reads the rows of the whole specification.  [PEP 562]
_HOMES = {
    "Change": "diff",
    "Comparison": "diff",
    "Conversation": "conversation",
    "Finding": "finding",
    "Outcome": "conversation",
    "TraceEntry": "trace",
    "TraceFault": "trace",
    "TraceWriter": "trace",
    "compare": "diff",
    "judge": "message",
    "judge_type": "types.type_checks",
    "read_listing": "diff",
    "read_trace": "trace",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)

# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .conversation.conversation import Conversation as Conversation
from .conversation.outcomes import Outcome as Outcome
from .diff import Change as Change
from .diff import Comparison as Comparison
from .diff import compare as compare
from .diff import read_listing as read_listing
from .finding import Finding as Finding
from .messages.message import judge as judge
from .trace.reader import TraceEntry as TraceEntry
from .trace.reader import TraceFault as TraceFault
from .trace.reader import read_trace as read_trace
from .trace.writer import TraceWriter as TraceWriter
from .types.type_checks import judge_type as judge_type


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

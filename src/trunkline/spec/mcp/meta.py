"""The `_meta` keys that MCP revisions define, the grammar of other keys, and the log levels.

`trunkline.spec.lookup.meta_key_check` applies the grammar.
"""

from __future__ import annotations

from typing import Final

from ..revisions import PER_REQUEST, V2025_06_18, V2025_11_25, V2026_07_28, Window
from ..rows import MetaGrammar, MetaKey, Place

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "GRAMMARS",
    "LOG_LEVEL",
    "LOG_LEVELS",
    "META_KEYS",
    "PROGRESS_TOKEN",
    "PROTOCOL_VERSION",
    "RELATED_TASK",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
]

ONE_REVISION: Final = Window(V2025_11_25, V2026_07_28)

# Keys that code uses by name.
PROGRESS_TOKEN: Final = "progressToken"
PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

ANYWHERE: Final[tuple[Place, ...]] = ("request", "notification", "result")
TRACING: Final = "Propagate it if you trace; the format is that of the W3C."

# One row per line, so that the tables can be read beside the specification.
# fmt: off
META_KEYS: Final[tuple[MetaKey, ...]] = (
    MetaKey(PROGRESS_TOKEN, ("request",), "ProgressToken", doc="Asks for notifications/progress under this token.", anchor="2026-07-28 · basic/patterns/progress#progress-flow"),
    MetaKey(RELATED_TASK, ANYWHERE, "RelatedTaskMetadata", "must", only="messages that belong to a task and do not name it otherwise", when=ONE_REVISION, status="experimental", doc="Names the task to which a message belongs.", anchor="2025-11-25 · basic/utilities/tasks#related-task-metadata", instead="Drop it: the input requests of a task are in the result of tasks/get."),
    MetaKey("io.modelcontextprotocol/model-immediate-response", ("result",), "string", only="results that start a task for tools/call", when=ONE_REVISION, status="experimental", doc="What a model may be told while the task it started is running.", anchor="2025-11-25 · basic/utilities/tasks#creating-tasks", instead="Drop it: nothing reads it any more."),
    MetaKey(PROTOCOL_VERSION, ("request",), "string", "must", when=PER_REQUEST, doc="The revision that the request is written in.", anchor="2026-07-28 · basic#meta", adopt="Send it on every request; it replaces initialize."),
    MetaKey(CLIENT_INFO, ("request",), "Implementation", "should", when=PER_REQUEST, doc="The name and version of the client, for display and logs.", anchor="2026-07-28 · basic#meta", adopt="Send it on every request; do not make decisions based on it."),
    MetaKey(CLIENT_CAPABILITIES, ("request",), "ClientCapabilities", "must", when=PER_REQUEST, doc="What the client can do for this request.", anchor="2026-07-28 · basic#meta", adopt="Send it on every request, empty if there is nothing to declare; it replaces initialize."),
    MetaKey(LOG_LEVEL, ("request",), "LoggingLevel", when=PER_REQUEST, status="deprecated", doc="Asks for the log of this request, from this level upwards.", anchor="2026-07-28 · server/utilities/logging", adopt="Use it instead of logging/setLevel, or better not at all: logging is deprecated."),
    MetaKey(SERVER_INFO, ("result",), "Implementation", "should", when=PER_REQUEST, doc="The name and version of the server, for display and logs.", anchor="2026-07-28 · basic#meta", adopt="Send it with every result; do not make decisions based on it."),
    MetaKey(SUBSCRIPTION_ID, ("notification", "result"), "RequestId", "must", only="messages of a subscriptions/listen stream, and its result", when=PER_REQUEST, doc="The id of the subscriptions/listen request on whose stream a message travels.", anchor="2026-07-28 · basic/patterns/subscriptions#receiving-notifications", adopt="Send it with every message of a subscriptions/listen stream; it identifies the stream."),
    # Like progressToken these have no prefix, as an exception: they are older than MCP.
    MetaKey("traceparent", ANYWHERE, "string", when=PER_REQUEST, doc="The span that a message belongs to, as in W3C Trace Context.", anchor="2026-07-28 · basic#meta", adopt=TRACING),
    MetaKey("tracestate", ANYWHERE, "string", when=PER_REQUEST, doc="What tracing systems add to the span, as in W3C Trace Context.", anchor="2026-07-28 · basic#meta", adopt=TRACING),
    MetaKey("baggage", ANYWHERE, "string", when=PER_REQUEST, doc="Application data of a trace, as in W3C Baggage.", anchor="2026-07-28 · basic#meta", adopt=TRACING),
)

LABELS: Final = ("modelcontextprotocol", "mcp")

GRAMMARS: Final[tuple[MetaGrammar, ...]] = (
    MetaGrammar(Window(until=V2025_06_18), formed=False, reserved="nothing", anchor="2025-03-26 · basic"),
    MetaGrammar(Window(V2025_06_18, V2025_11_25), formed=True, reserved="before-another", labels=LABELS, anchor="2025-06-18 · basic#meta"),
    MetaGrammar(Window(V2025_11_25), formed=True, reserved="second", labels=LABELS, anchor="2026-07-28 · basic#meta"),
)
# fmt: on

# The severities of RFC 5424, from the least to the most.  [MCP 2025-11-25, server/utilities/logging]
LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)

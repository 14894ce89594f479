"""The rules that a single MCP message can break, beyond those of JSON-RPC, as rows.

The id of a rule is on the finding, the test vector and the docs; the row has the level of a
breach, the expected form, and the page of the specification. The rules of the envelope are in
`spec/jsonrpc.py`; all of them are errors.

Levels: an *error* is forbidden by the specification, or a receiver will reject it. A *warning*
is discouraged, or a receiver of this revision will not understand it. An *info* breaks nothing.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from ..revisions import (
    HANDSHAKE,
    PER_REQUEST,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2026_07_28,
    Window,
)
from ..rows import ALWAYS

__all__ = ["RULES", "Level", "McpRule", "rule"]

Level: TypeAlias = Literal["error", "warn", "info"]


class McpRule(NamedTuple):
    """One rule about the content of a message."""

    id: str
    level: Level
    # The expected form; a finding may be more specific.
    expected: str
    # The page, without the revision: that is the one a message is checked against.
    anchor: str
    when: Window = ALWAYS
    # Rows of other lists that state the same rule.
    ref: str = ""


FORMED_KEYS: Final = Window(V2025_06_18)
# Other revisions have members that the first and the newest do not.
HAS_EARLIER: Final = Window(V2025_03_26)

# One row per line, in the order in which a message is judged.
# fmt: off
_ROWS: Final = (
    # Batches.
    McpRule("mcp.batch.unstated", "warn", "single messages: this revision does not mention batches", "basic/messages", Window(V2024_11_05, V2025_03_26), "K-02"),
    McpRule("mcp.batch.initialize", "error", "initialize as a message of its own", "basic/lifecycle#initialization", HANDSHAKE, "BP-012"),

    # The envelope and its method.
    McpRule("mcp.envelope.unknown-member", "info", "no members but those of JSON-RPC", "basic"),
    McpRule("mcp.method.unknown", "error", "a method of this revision", "schema", ref="BP-021 K-22 S-33"),
    McpRule("mcp.method.vendor", "info", "a method of the specification, or an extension that both sides declare", "schema"),
    McpRule("mcp.notification.unknown", "warn", "a notification of this revision", "schema", ref="K-22"),
    McpRule("mcp.notification.vendor", "info", "a notification of the specification, or an extension that both sides declare", "schema"),
    McpRule("mcp.method.not-yet", "error", "a method of this revision", "schema", Window(until=V2026_07_28)),
    McpRule("mcp.method.no-longer", "error", "a method of this revision", "changelog", PER_REQUEST),
    McpRule("mcp.method.inside-result", "error", "the method in inputRequests of a result", "basic/patterns/mrtr", PER_REQUEST, "BP-022"),
    McpRule("mcp.method.direction", "error", "a method that this side may send", "schema"),
    McpRule("mcp.method.deprecated", "info", "something that is not deprecated", "deprecated", PER_REQUEST),
    McpRule("mcp.request.id-missing", "warn", "an id: without one there is no reply", "basic#requests", ref="K-05 K-45 S-28 S-34"),
    McpRule("mcp.notification.id", "error", "no id: a notification is not answered", "basic#notifications", ref="K-05 BP-009 S-34"),
    McpRule("mcp.reply.from-client", "error", "no reply: a client of this revision receives no requests", "basic/patterns", PER_REQUEST, "BP-022"),
    McpRule("mcp.reply.id", "error", "the id of the request it answers, of the same type", "basic#responses", ref="BP-006"),
    McpRule("mcp.params.required", "error", "params", "schema"),

    # Values: the type rows, whatever they are part of.
    McpRule("mcp.type.json-type", "error", "another JSON type", "schema"),
    McpRule("mcp.type.required", "error", "this member", "schema"),
    McpRule("mcp.type.constant", "error", "one of the listed values", "schema"),
    McpRule("mcp.type.limit", "error", "a value within its bounds", "schema"),
    McpRule("mcp.type.format", "error", "text of the right form", "schema"),
    McpRule("mcp.type.told-by-value", "warn", "a member that the prose requires, although the schema file does not", "schema", PER_REQUEST),
    McpRule("mcp.type.not-yet", "info", "no member of a later revision", "schema", HANDSHAKE),
    McpRule("mcp.type.no-longer", "warn", "no member of an earlier revision", "schema", HAS_EARLIER),
    McpRule("mcp.type.deprecated", "info", "something that is not deprecated", "deprecated", PER_REQUEST),
    McpRule("mcp.type.unknown-member", "info", "members that the type lists", "schema"),
    McpRule("mcp.capability.unknown", "info", "capabilities that this revision lists", "schema", ref="K-33 E-96"),
    McpRule("mcp.capability.wrong-side", "warn", "a capability of the other side only", "schema", ref="K-33"),
    McpRule("mcp.extension.id", "error", "a prefix, a slash and a name", "basic/versioning#extension-negotiation", PER_REQUEST, "BP-050"),
    McpRule("mcp.root.file", "error", "a file:// URI", "client/roots#root"),

    # `_meta`.
    McpRule("mcp.meta.key-syntax", "error", "an optional prefix and slash, then a name", "basic#_meta", FORMED_KEYS, "BP-052 F-36"),
    McpRule("mcp.meta.key-reserved", "error", "another prefix: this one is reserved for the specification", "basic#_meta", FORMED_KEYS, "BP-052 F-36 K-31"),
    McpRule("mcp.meta.trace", "error", "a value in the format of the W3C specification", "basic#_meta", PER_REQUEST, "BP-053"),
    McpRule("mcp.meta.version", "warn", "the revision that the message is judged by", "basic#_meta", PER_REQUEST),
    McpRule("mcp.meta.advised", "info", "a key that every message of this kind should carry", "basic#_meta", PER_REQUEST, "BP-042"),
    McpRule("mcp.meta.subscription", "error", "the id of the subscriptions/listen request", "basic/patterns/subscriptions", PER_REQUEST, "BP-142"),

    # Results.
    McpRule("mcp.result.type-unknown", "error", "complete, input_required, or task with the tasks extension", "basic#responses", PER_REQUEST, "BP-017"),
    McpRule("mcp.result.input-not-allowed", "error", "a complete result: only tools/call, prompts/get and resources/read may ask", "basic/patterns/mrtr", PER_REQUEST, "BP-130"),
    McpRule("mcp.result.input-empty", "error", "inputRequests, requestState or both", "basic/patterns/mrtr", PER_REQUEST, "BP-131"),
    McpRule("mcp.result.of-unknown-method", "info", "a known method, which determines the type of the result", "schema"),

    # Errors.
    McpRule("mcp.error.not-sent", "error", "-32602 for a missing resource, input_required for an elicitation", "basic#error-codes", PER_REQUEST, "BP-018"),
    McpRule("mcp.error.undefined", "error", "-32020, -32021 or -32022: the specification reserves this block", "basic#error-codes", PER_REQUEST, "BP-018"),
    McpRule("mcp.error.legacy-range", "warn", "a code outside -32768 to -32000: new codes do not belong here", "basic#error-codes", PER_REQUEST, "BP-020"),
    McpRule("mcp.error.reserved", "warn", "a code outside -32768 to -32000: JSON-RPC reserves that block", "basic#error-codes"),

    # The judge itself.
    McpRule("judge.findings.cut", "info", "at most 1000 findings", "Trunkline limits"),
)
# fmt: on

RULES: Final = {row.id: row for row in _ROWS}


def rule(rule_id: str) -> McpRule:
    """Return the row of `rule_id`."""
    return RULES[rule_id]

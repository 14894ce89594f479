"""The rules of JSON-RPC 2.0 and of our limits on it, as rows.

The id of a rule is on the error, the finding, the test vector and the docs; the row has the
error that answers a breach, the expected form, and the source.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .error_kinds import ErrorKind

__all__ = ["LOCAL_RULES", "RULES", "Rule"]


class Rule(NamedTuple):
    """One rule of the message layer."""

    id: str
    # The error that answers a message which breaks it.
    answer: ErrorKind
    expected: str
    source: str
    # Rows of other lists that state the same rule.
    ref: str = ""


_PARSE: Final = ErrorKind.PARSE_ERROR
_REQUEST: Final = ErrorKind.INVALID_REQUEST
_PARAMS: Final = ErrorKind.INVALID_PARAMS
_LARGE: Final = ErrorKind.MESSAGE_TOO_LARGE

# In the order in which a message is read: size, text, version, kind, fields, params, batch.
# One row per line, so that the table can be read as one.
# fmt: off
_ROWS: Final = (
    Rule("jsonrpc.limit.message-size", _LARGE, "a message within the size limit", "Trunkline limits", "E-87 K-39 K-40"),
    Rule("jsonrpc.limit.depth", _REQUEST, "less nesting", "RFC 8259, section 9"),
    Rule("jsonrpc.limit.number", _REQUEST, "numbers that fit a double, integers within the digit limit", "RFC 8259, section 9"),
    Rule("jsonrpc.text.utf8", _PARSE, "UTF-8", "RFC 8259, section 8.1", "F-45"),
    Rule("jsonrpc.text.bom", _PARSE, "no byte order mark", "RFC 8259, section 8.1"),
    Rule("jsonrpc.text.json", _PARSE, "one JSON value", "JSON-RPC 2.0, section 5.1", "E-06 E-63"),
    Rule("jsonrpc.text.surrogate", _PARSE, "text without lone surrogates", "RFC 8259, section 8.2"),
    Rule("jsonrpc.text.duplicate-key", _REQUEST, "each member name once", "RFC 8259, section 4"),
    Rule("jsonrpc.message.object", _REQUEST, "an object, or an array of objects", "JSON-RPC 2.0, section 4", "E-07 E-64"),
    Rule("jsonrpc.version.required", _REQUEST, 'a member "jsonrpc" with the value "2.0"', "JSON-RPC 2.0, section 4", "E-14 S-32 K-64"),
    Rule("jsonrpc.version.value", _REQUEST, '"2.0"', "JSON-RPC 2.0, section 4", "E-121"),
    Rule("jsonrpc.message.kind", _REQUEST, "a method, a result or an error", "JSON-RPC 2.0, sections 4 and 5", "R-EM-20"),
    Rule("jsonrpc.message.mixed", _REQUEST, "a method without result and error", "JSON-RPC 2.0, sections 4 and 5", "K-34"),
    Rule("jsonrpc.reply.one-outcome", _REQUEST, "either a result or an error", "JSON-RPC 2.0, section 5", "E-38 F-13 P-25 S-36 K-65"),
    Rule("jsonrpc.reply.id-required", _REQUEST, "the id of the request it answers", "JSON-RPC 2.0, section 5", "E-39 F-12 K-44"),
    Rule("jsonrpc.id.type", _REQUEST, "a string or an integer", "JSON-RPC 2.0, section 4", "E-16 F-03 K-52"),
    Rule("jsonrpc.id.not-null", _REQUEST, "a string or an integer; a notification has no id at all", "MCP 2025-11-25, basic", "E-24 F-04 K-03"),
    Rule("jsonrpc.limit.id-length", _REQUEST, "a shorter id", "Trunkline limits"),
    Rule("jsonrpc.method.type", _REQUEST, "a string", "JSON-RPC 2.0, section 4", "E-15"),
    Rule("jsonrpc.method.empty", _REQUEST, "a method name of at least one character", "Trunkline", "E-117 E-119"),
    Rule("jsonrpc.limit.method-length", _REQUEST, "a shorter method name", "Trunkline limits"),
    Rule("jsonrpc.result.object", _REQUEST, "an object", "MCP 2025-11-25, basic", "F-10 K-06"),
    Rule("jsonrpc.error.object", _REQUEST, "an object with code and message", "JSON-RPC 2.0, section 5.1", "E-41 F-11 S-37"),
    Rule("jsonrpc.error.code", _REQUEST, "an integer code", "JSON-RPC 2.0, section 5.1", "E-81"),
    Rule("jsonrpc.error.message", _REQUEST, "a message text", "JSON-RPC 2.0, section 5.1", "E-81"),
    Rule("jsonrpc.error.unknown-code", _REQUEST, "a code that the profile defines", "Trunkline policies", "E-120"),
    Rule("jsonrpc.error.empty-message", _REQUEST, "a message of at least one character", "Trunkline policies", "E-120"),
    Rule("jsonrpc.params.type", _PARAMS, "an object or an array, or no params at all", "JSON-RPC 2.0, section 4.2", "E-17 K-07"),
    Rule("jsonrpc.params.object", _PARAMS, "an object, or no params at all", "MCP 2025-11-25, basic", "F-06 K-07"),
    Rule("jsonrpc.envelope.auth", _REQUEST, "a string", "Pierre envelope", "P-06"),
    Rule("jsonrpc.envelope.headers", _REQUEST, "an object", "Pierre envelope", "P-07"),
    Rule("jsonrpc.envelope.metadata", _REQUEST, "an object of strings", "Pierre envelope", "P-08"),
    Rule("jsonrpc.batch.empty", _REQUEST, "at least one message", "JSON-RPC 2.0, section 6", "E-54"),
    Rule("jsonrpc.batch.not-allowed", _REQUEST, "a single message", "MCP 2025-06-18, changelog", "F-41 K-02"),
    Rule("jsonrpc.batch.mixed", _REQUEST, "requests and notifications, or replies, not both", "MCP 2025-03-26, basic", "E-55 K-10"),
    Rule("jsonrpc.limit.batch-length", _REQUEST, "a shorter batch", "Trunkline limits", "R-EM-32"),
    Rule("jsonrpc.id.duplicate", _REQUEST, "an id that no open request of this sender has", "MCP 2026-07-28, basic", "K-50"),
)
# fmt: on

RULES: Final = {row.id: row for row in _ROWS}

# Rules that our own side must not break: `LocalProtocolError.rule` → what the caller should pass.
LOCAL_RULES: Final = {
    "jsonrpc.id.type": "a str or an int as id; True is not a number here",
    "jsonrpc.id.in-use": "an id that is neither open nor, where ids last a session, used before; leave it out to have one chosen",
    "jsonrpc.id.exhausted": "a new connection: this one has used every id up to its maximum",
    "jsonrpc.number.finite": "a finite number: JSON has no NaN or Infinity, send None or a string instead",
    "jsonrpc.value.unserialisable": "str, int, float, bool, None, dict, list, or a msgspec Struct",
    "jsonrpc.value.cyclic": "a value that does not contain itself",
    "jsonrpc.text.surrogate": "text without lone surrogates: it cannot be written as UTF-8",
    "jsonrpc.message.kind": "a Request, Notification, Success, Failure or Batch",
    "jsonrpc.reply.one-outcome": "a result or an error, not both and not neither",
    "jsonrpc.batch.empty": "at least one message in a batch",
    "jsonrpc.batch.not-allowed": "single messages: this revision has no batches to send",
    "jsonrpc.batch.mixed": "a batch of requests and notifications, or a batch of replies",
    "jsonrpc.error.unknown-code": "a code that the profile defines",
    "jsonrpc.error.code-range": "a code that the 32 bits of the other side hold",
    "jsonrpc.error.empty-message": "a message of at least one character",
    "jsonrpc.envelope.not-allowed": "a policy whose envelope is 'pierre', or no auth, headers and metadata",
    "jsonrpc.method.type": "a method name: a str of at least one character",
    "jsonrpc.params.type": "params as a dict, a list, a Struct, or None for no params",
    "jsonrpc.framing.newline-inside": "a message on one line",
    "jsonrpc.framing.too-long": "at most 4294967295 bytes, which is what four bytes can count",
    "jsonrpc.framing.not-utf-8": "text in UTF-8, which a message of a WebSocket is",
    "sse.field.line-break": "text without CR, LF and NUL",
    "sse.retry.negative": "a number of milliseconds",
    "jsonrpc.peer.closed": "an open peer: this one was closed",
}

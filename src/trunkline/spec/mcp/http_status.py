"""The HTTP status of each answer that MCP calls for, in every revision.

The specification names few: those for a foreign origin, sessions, the headers of 2026-07-28 and
unknown methods. It is silent about a body that is not JSON and errors of methods. Rows of level
"own" are our choices there; `anchor` then has the section of HTTP that defines the status. What
HTTP itself calls for, such as a wrong Accept, is in `../http_conditions.py`; a row here takes the place
of one there that has the same condition.

An error whose kind is in no row is an ordinary answer, with status 200: an unknown tool, invalid
params, an internal error. So is an unknown method before 2026-07-28. The rows with kinds agree
with the column `http` of the error codes (`profiles/mcp.py`).

HTTP+SSE follows the rows of 2024-11-05. All of them are our choices, because its page names no
status.
"""

from __future__ import annotations

from typing import Final

from ..error_kinds import ErrorKind as Kind
from ..http_conditions import LOGIN, RIGHTS
from ..revisions import (
    HANDSHAKE,
    PER_REQUEST,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    Window,
)
from ..rows import HttpStatus as Row

__all__ = ["HTTP_STATUSES", "MCP"]

FIRST: Final = Window(until=V2025_03_26)
STREAMABLE: Final = Window(V2025_03_26)
WITH_SESSIONS: Final = Window(V2025_03_26, V2026_07_28)

SESSION: Final = (Kind.SESSION_NOT_FOUND, Kind.SESSION_EXPIRED)
VERSION: Final = (Kind.UNSUPPORTED_PROTOCOL_VERSION, Kind.PROTOCOL_VERSION_MISMATCH)

# One row per line, in the order in which a request is checked.
# fmt: off
HTTP_STATUSES: Final[tuple[Row, ...]] = (

    # What HTTP has a row for as well, asked for by the specification
    Row("origin-not-allowed", 403, "must", (Kind.ORIGIN_NOT_ALLOWED,), Window(V2025_11_25), doc="Origin is not allowed.", anchor="2026-07-28 · basic/transports/streamable-http#security-endpoint"),
    Row("authentication-required", 401, "must", LOGIN, STREAMABLE, doc="The credentials are missing, invalid or expired.", anchor="2026-07-28 · basic/authorization#token-handling"),
    Row("permission-denied", 403, "should", RIGHTS, STREAMABLE, doc="The credentials are valid and do not suffice.", anchor="2026-07-28 · basic/authorization#scope-challenge-handling"),

    # A GET or a DELETE
    Row("get-not-offered", 405, "must", when=WITH_SESSIONS, doc="A GET asks for a stream, and the server offers none.", anchor="2025-11-25 · basic/transports#listening-for-messages-from-the-server"),
    Row("get-not-offered", 405, "should", when=PER_REQUEST, doc="A GET reaches a server without handshake revisions.", anchor="2026-07-28 · basic/transports/streamable-http#backward-compatibility"),
    Row("delete-not-offered", 405, "may", when=WITH_SESSIONS, doc="A DELETE asks to end a session, and clients may not end it.", anchor="2025-11-25 · basic/transports#session-management"),
    Row("delete-not-offered", 405, "should", when=PER_REQUEST, doc="A DELETE reaches a server without handshake revisions.", anchor="2026-07-28 · basic/transports/streamable-http#backward-compatibility"),
    Row("event-id-unknown", 400, "own", when=WITH_SESSIONS, doc="Last-Event-ID names no event that is still stored, so that events would be missing.", anchor="RFC 9110 · section-15.5.1"),

    # The body of a POST
    Row("parse-error", 400, "own", (Kind.PARSE_ERROR,), doc="The body is not JSON.", anchor="RFC 9110 · section-15.5.1"),
    Row("invalid-message", 400, "own", (Kind.INVALID_REQUEST, Kind.REQUEST_ID_INVALID, Kind.REQUEST_ID_CONFLICT), doc="The body is not a message that may be sent here.", anchor="RFC 9110 · section-15.5.1"),

    # Session and lifecycle
    Row("session-required", 400, "should", when=WITH_SESSIONS, doc="Mcp-Session-Id is missing, and the message is not initialize.", anchor="2025-11-25 · basic/transports#session-management"),
    Row("session-unknown", 404, "own", SESSION, FIRST, doc="The address of the POST belongs to no open event stream.", anchor="RFC 9110 · section-15.5.5"),
    Row("session-unknown", 404, "must", SESSION, WITH_SESSIONS, doc="Mcp-Session-Id names no session, an ended one, or one of another principal.", anchor="2025-11-25 · basic/transports#session-management"),
    Row("version-header-unsupported", 400, "must", when=Window(V2025_06_18, V2026_07_28), doc="MCP-Protocol-Version names a revision that the server does not serve.", anchor="2025-11-25 · basic/transports#protocol-version-header"),
    Row("wrong-lifecycle-phase", 400, "own", (Kind.NOT_INITIALIZED, Kind.ALREADY_INITIALIZED), HANDSHAKE, doc="The request comes before initialize, or is a second one.", anchor="RFC 9110 · section-15.5.1"),

    # Headers, metadata and method
    Row("header-mismatch", 400, "own", (Kind.HEADER_MISMATCH,), HANDSHAKE, doc="A header contradicts the message or the session.", anchor="RFC 9110 · section-15.5.1"),
    Row("header-mismatch", 400, "must", (Kind.HEADER_MISMATCH,), PER_REQUEST, doc="A required header is missing, malformed, or differs from the body.", anchor="2026-07-28 · basic/transports/streamable-http#server-validation"),
    Row("version-unsupported", 400, "must", VERSION, PER_REQUEST, doc="The request names a revision that the server does not serve.", anchor="2026-07-28 · basic/versioning"),
    Row("incomplete-meta", 400, "must", (Kind.MISSING_REQUEST_META,), PER_REQUEST, doc="The _meta of the request lacks the version or the capabilities of the client.", anchor="2026-07-28 · basic#_meta"),
    Row("method-unknown", 404, "must", (Kind.METHOD_NOT_FOUND, Kind.CAPABILITY_NOT_SUPPORTED), PER_REQUEST, doc="The server does not have the method.", anchor="2026-07-28 · basic/transports/streamable-http#sending-messages"),
    Row("capability-missing", 400, "must", (Kind.MISSING_REQUIRED_CLIENT_CAPABILITY,), PER_REQUEST, doc="The request needs a capability that the client did not declare.", anchor="2026-07-28 · basic#_meta"),

    # The answer
    Row("accepted", 202, "own", when=FIRST, doc="The message was accepted; what the server sends is on the event stream.", anchor="RFC 9110 · section-15.3.3"),
    Row("accepted", 202, "must", when=WITH_SESSIONS, doc="All messages of the body are notifications or replies, and were accepted.", anchor="2025-11-25 · basic/transports#sending-messages-to-the-server"),
    Row("accepted", 202, "must", when=PER_REQUEST, doc="The notification was accepted.", anchor="2026-07-28 · basic/transports/streamable-http#sending-messages"),
    Row("not-accepted", 400, "must", when=STREAMABLE, doc="A notification or reply was not accepted; another error status is allowed.", anchor="2026-07-28 · basic/transports/streamable-http#sending-messages"),
    Row("answered", 200, "own", when=FIRST, doc="An event stream was opened.", anchor="RFC 9110 · section-15.3.1"),
    Row("answered", 200, "own", when=STREAMABLE, doc="The request was answered, with a result or with an error of a kind that no other row has.", anchor="RFC 9110 · section-15.3.1"),
)
# fmt: on

# The rows, by condition; of one with several windows, the newest.
MCP: Final = {row.condition: row for row in HTTP_STATUSES}

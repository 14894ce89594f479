"""The HTTP status of each answer that HTTP itself calls for, whatever protocol it carries.

All of them are our choices among what HTTP allows: `anchor` has the section that defines the
status. A protocol that asks for the same status itself has a row of the same condition in its
own table (`mcp/http_status.py`), which takes the place of the row here.
"""

from __future__ import annotations

from typing import Final

from .error_kinds import ErrorKind as Kind
from .rows import HttpStatus as Row

__all__ = ["HTTP", "HTTP_STATUSES", "LOGIN", "RIGHTS"]

LOGIN: Final = (Kind.UNAUTHORIZED, Kind.AUTHENTICATION_FAILED, Kind.INVALID_TOKEN, Kind.TOKEN_EXPIRED)  # fmt: skip
RIGHTS: Final = (Kind.AUTHORIZATION_FAILED, Kind.INSUFFICIENT_PERMISSIONS)

# One row per line, in the order in which a request is checked.
# fmt: off
HTTP_STATUSES: Final[tuple[Row, ...]] = (

    # The head of the request
    Row("malformed-request", 400, "own", doc="The request is not valid HTTP, or its framing can be read in two ways.", anchor="RFC 9112 · section-6.3"),
    Row("request-timeout", 408, "own", doc="The headers or the body did not arrive in time.", anchor="RFC 9110 · section-15.5.9"),
    Row("headers-too-large", 431, "own", doc="There are too many headers, or too many bytes of them.", anchor="RFC 6585 · section-5"),
    Row("target-too-long", 414, "own", doc="The request target has too many bytes.", anchor="RFC 9110 · section-15.5.15"),
    Row("target-invalid", 400, "own", doc="The request target is neither a path nor a URL of the host in Host.", anchor="RFC 9112 · section-3.2"),
    Row("http-version-unsupported", 505, "own", doc="The request is in a version of HTTP other than 1.1 and 1.0.", anchor="RFC 9110 · section-15.6.6"),
    Row("transfer-coding-unknown", 501, "own", doc="The body is in a transfer coding other than chunked.", anchor="RFC 9112 · section-6.1"),
    Row("expectation-unknown", 417, "own", doc="Expect asks for something other than 100-continue.", anchor="RFC 9110 · section-15.5.18"),

    # The gate
    Row("host-missing", 400, "own", doc="The request has no Host.", anchor="RFC 9112 · section-3.2"),
    Row("host-not-allowed", 421, "own", doc="Host names none of the allowed hosts, which also stops DNS rebinding.", anchor="RFC 9110 · section-15.5.20"),
    Row("origin-not-allowed", 403, "own", (Kind.ORIGIN_NOT_ALLOWED,), doc="Origin is not allowed, or is missing where one is required.", anchor="RFC 9110 · section-15.5.4"),
    Row("path-unknown", 404, "own", doc="Nothing is served at the path.", anchor="RFC 9110 · section-15.5.5"),
    Row("method-not-allowed", 405, "own", doc="The path exists, and not for this HTTP method; Allow lists the others.", anchor="RFC 9110 · section-15.5.6"),
    Row("rate-limited", 429, "own", (Kind.RATE_LIMITED,), doc="The client sends more requests than its rate allows; Retry-After has the delay.", anchor="RFC 6585 · section-4"),
    Row("overloaded", 503, "own", (Kind.OVERLOADED, Kind.SERVICE_UNAVAILABLE), doc="Too many connections or requests are open, or the server is shutting down.", anchor="RFC 9110 · section-15.6.4"),
    Row("credential-malformed", 400, "own", doc="Authorization cannot be read, or the tenant that the request names.", anchor="RFC 6750 · section-3.1"),
    Row("authentication-required", 401, "own", LOGIN, doc="The credentials are missing, invalid or expired.", anchor="RFC 9110 · section-15.5.2"),
    Row("permission-denied", 403, "own", RIGHTS, doc="The credentials are valid and do not suffice.", anchor="RFC 9110 · section-15.5.4"),
    Row("service-unavailable", 503, "own", doc="A service that the answer depends on does not respond, such as a store or an authorization server.", anchor="RFC 9110 · section-15.6.4"),

    # The request for another protocol
    Row("upgrade-malformed", 400, "own", doc="The request for another protocol is malformed, offers no subprotocol that is served, or data follows it.", anchor="RFC 6455 · section-4.2.1"),
    Row("upgrade-version-unsupported", 426, "own", doc="The request asks for a version of WebSocket other than 13.", anchor="RFC 6455 · section-4.4"),

    # The body
    Row("wrong-content-type", 415, "own", doc="The body is not application/json; a page of another site can send other types unasked.", anchor="RFC 9110 · section-15.5.16"),
    Row("wrong-accept", 406, "own", doc="Accept allows neither JSON nor an event stream; where it is missing, both are allowed.", anchor="RFC 9110 · section-15.5.7"),
    Row("body-too-large", 413, "own", (Kind.MESSAGE_TOO_LARGE, Kind.BATCH_REQUEST_TOO_LARGE), doc="The body exceeds the limit on messages.", anchor="RFC 9110 · section-15.5.14"),

    # The answer
    Row("internal-error", 500, "own", doc="The server failed, by a defect.", anchor="RFC 9110 · section-15.6.1"),
    Row("server-behind-unavailable", 502, "own", doc="The server behind a proxy has ended.", anchor="RFC 9110 · section-15.6.3"),
)
# fmt: on

# The rows, by condition.
HTTP: Final = {row.condition: row for row in HTTP_STATUSES}

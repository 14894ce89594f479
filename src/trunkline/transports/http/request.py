"""One parsed HTTP request: request line, headers and where it came from, without the body.

A server makes one for each request, so it is a plain class with slots. The headers that every
request is asked for have attributes, which the server fills while it parses:

    known, length = read_headers(headers, limits)
    HttpRequest("POST", "/mcp", "", "1.1", headers, client, is_secure, *known)

The rules that live here, and only here:

* A header that has an attribute, or says how long the body is, occurs once: of two values, a
  proxy may have checked the other one. Accept is a list, which may be given in parts.
                                        [RFC 9110, section 5.3; RFC 9112, sections 3.2, 6.3]
* Headers are bounded in number, in bytes, and in bytes of one.     [RFC 6585, section 5]
* A repr shows no header value and no query: they hold tokens and session ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...redaction import redact
from ...spec.http_conditions import HTTP
from .response import Refusal

if TYPE_CHECKING:
    from .settings import HttpLimits

__all__ = ["KNOWN_HEADERS", "HttpRequest", "read_headers"]

# Headers with an attribute, in the order of the arguments of `HttpRequest`.
KNOWN_HEADERS: Final = {
    b"host": 0,
    b"origin": 1,
    b"content-type": 2,
    b"accept": 3,
    b"mcp-session-id": 4,
    b"mcp-protocol-version": 5,
    b"last-event-id": 6,
    b"authorization": 7,
}
# Others of which a request has one at most, after them.
_LENGTH: Final = len(KNOWN_HEADERS)
_PLACES: Final = {
    **KNOWN_HEADERS,
    b"content-length": _LENGTH,
    b"transfer-encoding": _LENGTH + 1,
    b"mcp-method": _LENGTH + 2,
    b"mcp-name": _LENGTH + 3,
}
# Of a header line, beside name and value: a colon, a space and the line end.
_LINE_BYTES: Final = 4
# Of Content-Length. Python rejects integers of thousands of digits.
_MAX_DIGITS: Final = 18


class HttpRequest:
    """A request: method, target, headers, and the address of the client.

    `path` and `query` are as sent, not percent-decoded. `headers` are in order, with names in
    lower case and duplicates kept. `client` is the address of the peer, a proxy perhaps, and
    empty on a Unix socket; `is_secure` is True if TLS ends at this server. The attributes for
    single headers are None if there is no such header.
    """

    __slots__ = (
        "accept",
        "authorization",
        "client",
        "content_type",
        "headers",
        "host",
        "http_version",
        "is_secure",
        "last_event_id",
        "method",
        "origin",
        "path",
        "protocol_version",
        "query",
        "session_id",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query: str,
        http_version: str,
        headers: list[tuple[bytes, bytes]],
        client: str,
        is_secure: bool,
        host: bytes | None = None,
        origin: bytes | None = None,
        content_type: bytes | None = None,
        accept: bytes | None = None,
        session_id: bytes | None = None,
        protocol_version: bytes | None = None,
        last_event_id: bytes | None = None,
        authorization: bytes | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.http_version = http_version
        self.headers = headers
        self.client = client
        self.is_secure = is_secure
        self.host = host
        self.origin = origin
        self.content_type = content_type
        self.accept = accept
        self.session_id = session_id
        self.protocol_version = protocol_version
        self.last_event_id = last_event_id
        self.authorization = authorization

    @property
    def mount(self) -> str:
        """What precedes `path` in the URL: where the application is mounted in another one."""
        return ""

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of a header, or None; `name` is in lower case."""
        for each, value in self.headers:
            if each == name:
                return value
        return None

    def all(self, name: bytes) -> list[bytes]:
        """Return every value of a header, in order; `name` is in lower case."""
        return [value for each, value in self.headers if each == name]

    def with_headers(self, headers: list[tuple[bytes, bytes]]) -> HttpRequest:
        """Return the request with other headers, of which those with an attribute are the same."""
        return HttpRequest(
            self.method,
            self.path,
            self.query,
            self.http_version,
            headers,
            self.client,
            self.is_secure,
            self.host,
            self.origin,
            self.content_type,
            self.accept,
            self.session_id,
            self.protocol_version,
            self.last_event_id,
            self.authorization,
        )

    def readable_headers(self) -> dict[str, str]:
        """Return the headers as texts by lower-case name; of duplicates the values are joined."""
        found: dict[str, str] = {}
        for raw, value in self.headers:
            name, text = raw.decode("latin-1"), value.decode("latin-1")
            found[name] = f"{found[name]}, {text}" if name in found else text
        return found

    def __repr__(self) -> str:
        return (
            f"<HttpRequest {redact(self.method)!r} {redact(self.path)!r} "
            f"from {redact(self.client)!r}, {len(self.headers)} headers>"
        )


def read_headers(
    headers: Sequence[tuple[bytes, bytes]], limits: HttpLimits
) -> tuple[list[bytes | None], int] | Refusal:
    """Return the headers that have an attribute, and Content-Length; or why they are refused.

    The values are in the order of the arguments. A length that was not given is 0.
    """
    found: list[bytes | None] = [None] * len(_PLACES)
    longest, size = limits.header_line_bytes, 0
    for name, value in headers:
        size += len(name) + len(value) + _LINE_BYTES
        if len(value) > longest:
            return Refusal(HTTP["headers-too-large"], "A request header is too large")
        place = _PLACES.get(name)
        if place is not None:
            before = found[place]
            if before is not None:
                if name != b"accept":
                    return Refusal(
                        HTTP["malformed-request"], f"The header {name.decode()} is given twice"
                    )
                value = before + b", " + value
            found[place] = value
    if len(headers) > limits.header_count:
        return Refusal(HTTP["headers-too-large"], "Too many request headers")
    if size > limits.header_bytes:
        return Refusal(HTTP["headers-too-large"], "The request head is too large")
    length = found[_LENGTH]
    if length is not None and not (length.isdigit() and len(length) <= _MAX_DIGITS):
        return Refusal(HTTP["malformed-request"], "Content-Length is not a number")
    return found[: len(KNOWN_HEADERS)], int(length or 0)

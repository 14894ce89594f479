"""One parsed HTTP request: request line, headers and where it came from, without the body.

A server makes one for each request, so it is a plain class with slots. The headers that every
request is asked for have attributes, which the server fills while it parses:

    known: list[bytes | None] = [None] * len(KNOWN_HEADERS)
    known[KNOWN_HEADERS[name]] = value
    HttpRequest("POST", "/mcp", "", "1.1", headers, client, is_secure, *known)

The rules that live here, and only here:

* A header that has an attribute occurs once: of two values, a proxy may have checked the other
  one.  [RFC 9110, section 5.3; RFC 9112, section 3.2]
* A repr shows no header value and no query: they hold tokens and session ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...redaction import redact

__all__ = ["KNOWN_HEADERS", "DuplicateHeader", "HttpRequest", "known_headers"]

# Headers with an attribute, in the order of the arguments of `HttpRequest`.
KNOWN_HEADERS: Final = {
    b"host": 0,
    b"origin": 1,
    b"content-type": 2,
    b"accept": 3,
    b"mcp-session-id": 4,
    b"mcp-protocol-version": 5,
    b"last-event-id": 6,
}


class HttpRequest:
    """A request: method, target, headers, and the address of the client.

    `path` and `query` are as sent, not percent-decoded. `headers` are in order, with names in
    lower case and duplicates kept. `client` is the address of the peer, a proxy perhaps, and
    empty on a Unix socket; `is_secure` is True if TLS ends at this server. The attributes for
    single headers are None if there is no such header.
    """

    __slots__ = (
        "accept",
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

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of a header, or None; `name` is in lower case."""
        for each, value in self.headers:
            if each == name:
                return value
        return None

    def all(self, name: bytes) -> list[bytes]:
        """Return every value of a header, in order; `name` is in lower case."""
        return [value for each, value in self.headers if each == name]

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


class DuplicateHeader(ValueError):
    """A header that may occur once occurs twice; the argument is its name."""


def known_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[bytes | None]:
    """Return the values of the headers that have an attribute, in the order of the arguments.

    Raises:
        DuplicateHeader: one of them occurs twice.
    """
    known: list[bytes | None] = [None] * len(KNOWN_HEADERS)
    for name, value in headers:
        place = KNOWN_HEADERS.get(name)
        if place is not None:
            if known[place] is not None:
                raise DuplicateHeader(name.decode("ascii"))
            known[place] = value
    return known

"""A strict reader of HTTP/1.1 responses that shares no code with the server.   [RFC 9110, 9112]

It accepts the one spelling that a careful server writes: no bare LF, no folded headers, no
extensions of chunks, no trailers, and one way to tell the length of a body.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

STATUS_LINE: Final = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2}) ([A-Za-z][A-Za-z' -]*)")
HEADER: Final = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)"
)
LENGTH: Final = re.compile(rb"0|[1-9][0-9]{0,17}")
CHUNK_SIZE: Final = re.compile(rb"[0-9a-f]{1,8}")
WITHOUT_BODY: Final = (204, 304)


class Malformed(AssertionError):
    """Bytes that are not a response."""


class Response(NamedTuple):
    """One response; `is_whole` is False if its stream goes on."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    is_whole: bool
    # Everything that was sent before it as interim responses: their status codes.
    interim: tuple[int, ...] = ()

    @property
    def closes(self) -> bool:
        return self.headers.get(b"connection") == b"close"


def read_responses(stream: bytes, methods: Sequence[str], is_closed: bool) -> list[Response]:
    """Return the responses to requests of these methods, in order.

    Raises:
        Malformed: the stream is anything else.
    """
    found: list[Response] = []
    interim: list[int] = []
    at = 0
    while at < len(stream):
        if found and (found[-1].closes or not found[-1].is_whole):
            raise Malformed(f"bytes after the last response: {stream[at : at + 80]!r}")
        status, headers, at = _head(stream, at)
        if status < 200:
            if headers:
                raise Malformed(f"headers of an interim response: {headers}")
            interim.append(status)
            continue
        method = methods[len(found)] if len(found) < len(methods) else ""
        body, is_whole, at = _body(stream, at, status, headers, method, is_closed)
        found.append(Response(status, headers, body, is_whole, tuple(interim)))
        interim.clear()
    return found


def _head(stream: bytes, at: int) -> tuple[int, dict[bytes, bytes], int]:
    end = stream.find(b"\r\n\r\n", at)
    if end < 0:
        raise Malformed(f"a head without an end: {stream[at : at + 80]!r}")
    first, *lines = stream[at:end].split(b"\r\n")
    status = STATUS_LINE.fullmatch(first)
    if status is None:
        raise Malformed(f"not a status line: {first!r}")
    headers: dict[bytes, bytes] = {}
    for line in lines:
        header = HEADER.fullmatch(line)
        if header is None:
            raise Malformed(f"not a header: {line!r}")
        name = header[1].lower()
        if name in headers:
            raise Malformed(f"a header given twice: {line!r}")
        headers[name] = header[2]
    return int(status[1]), headers, end + 4


def _body(
    stream: bytes,
    at: int,
    status: int,
    headers: dict[bytes, bytes],
    method: str,
    is_closed: bool,
) -> tuple[bytes, bool, int]:
    length, coding = headers.get(b"content-length"), headers.get(b"transfer-encoding")
    if length is not None and coding is not None:
        raise Malformed("two lengths of one body")
    if status in WITHOUT_BODY:
        if length is not None or coding is not None:
            raise Malformed(f"the length of a body that {status} does not have")
        return b"", True, at
    if method == "HEAD":
        return b"", True, at
    if coding is not None:
        if coding != b"chunked":
            raise Malformed(f"an unknown coding: {coding!r}")
        return _chunks(stream, at)
    if length is None:
        if headers.get(b"connection") != b"close":
            raise Malformed("a body without an end")
        return stream[at:], is_closed, len(stream)
    if LENGTH.fullmatch(length) is None:
        raise Malformed(f"not a length: {length!r}")
    end = at + int(length)
    if end > len(stream):
        raise Malformed(f"{end - len(stream)} bytes of a body are missing")
    return stream[at:end], True, end


def _chunks(stream: bytes, at: int) -> tuple[bytes, bool, int]:
    body = b""
    while True:
        end = stream.find(b"\r\n", at)
        if end < 0:
            if at != len(stream):
                raise Malformed(f"not a chunk: {stream[at : at + 80]!r}")
            return body, False, at
        size = stream[at:end]
        if CHUNK_SIZE.fullmatch(size) is None:
            raise Malformed(f"not the size of a chunk: {size!r}")
        at = end + 2 + int(size, 16)
        if stream[at : at + 2] != b"\r\n":
            raise Malformed(f"a chunk of another size than {size!r}")
        body += stream[end + 2 : at]
        at += 2
        if not int(size, 16):
            return body, True, at

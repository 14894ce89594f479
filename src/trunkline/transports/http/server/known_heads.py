"""Memo of the request heads of one connection: a head that came before is not parsed again.

A client that keeps its connection alive repeats the head of its requests, byte for byte but for
the number in Content-Length and the values of some headers, as that of `traceparent`. `KnownHeads`
compares what was read with heads that the parser and the admission accepted on this connection
before, and returns the request that was made of it, with these values replaced.

The rules that live here, and only here:

* Nothing is accepted that the parser would not accept: a head is compared whole, and the message
  has to end where the read data ends. Otherwise the parser decides.
* A value that may differ belongs to a header that decides nothing before the body is read, and
  has printable ASCII alone.                        [RFC 9110, section 5.5]
* A head is remembered if its end and its length are beyond doubt: every line ends with CR LF,
  there is one Content-Length and it equals the rest of the data, and no header changes how the
  message is read or what follows it.               [RFC 9112, sections 2.2, 6.3]
* What may change between two requests is not remembered: the session, the principal and the rate
  are checked for each.
* A client whose heads differ each time costs a few attempts, after which nothing is remembered.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ..request import HttpRequest

__all__ = ["MAX_HEAD_BYTES", "MAX_KNOWN_BYTES", "MAX_VALUE_BYTES", "KnownHeads"]

# Data up to this size is compared; in larger messages the head is a small part of the work.
MAX_KNOWN_BYTES: Final = 16 * 1024
# The longest head that is remembered, and how many: a client can make each connection hold them.
MAX_HEAD_BYTES: Final = 2048
_MAX_HEADS: Final = 4
# Heads that are remembered in a row without being seen again.
_MAX_ATTEMPTS: Final = 8

# The longest value that may differ from the one before.
MAX_VALUE_BYTES: Final = 256

_LENGTH: Final = b"content-length"
# Blanks at the ends are not part of a value.
_plain: Final = re.compile(rb"[!-~](?:[ -~]{0,%d}[!-~])?" % (MAX_VALUE_BYTES - 2)).fullmatch
# Headers that change how a message is read, or what follows it.
_EXCLUDED: Final = frozenset((b"transfer-encoding", b"expect", b"upgrade", b"trailer", b"te"))
# Headers whose values differ from request to request. `Mcp-Method` and `Mcp-Name` are compared with
# each body; the server does not read the others.
_VARYING: Final = frozenset(
    (
        _LENGTH,
        b"mcp-method",
        b"mcp-name",
        b"traceparent",
        b"tracestate",
        b"baggage",
        b"b3",
        b"x-b3-traceid",
        b"x-b3-spanid",
        b"x-b3-parentspanid",
        b"x-request-id",
        b"x-correlation-id",
    )
)


class _Head(NamedTuple):
    """A head, cut before and after each value that may differ."""

    # What precedes each value, and the place of its header in the request.
    parts: tuple[tuple[bytes, int], ...]
    # What follows the last one, to the end of the head.
    end: bytes
    # The place of Content-Length in the request.
    length: int
    request: HttpRequest

    def __repr__(self) -> str:
        # Without the text, which has tokens and session ids.
        return f"<_Head, {len(self.parts)} values vary>"


class KnownHeads:
    """The heads that one connection has repeated."""

    __slots__ = ("_attempts", "heads")

    def __init__(self) -> None:
        # Those to compare with, the newest first.
        self.heads: list[_Head] = []
        self._attempts = _MAX_ATTEMPTS

    @property
    def learns(self) -> bool:
        """Whether another head may be remembered."""
        return self._attempts > 0

    def find(self, data: bytes) -> tuple[HttpRequest, bytes] | None:
        """Return the request in `data` and its body, if its head is known; else None."""
        for parts, end, length, request in self.heads:
            if len(parts) > 1:
                found = _find(data, parts, end, length, request)
                if found is not None:
                    self._attempts = _MAX_ATTEMPTS
                    return found
                continue
            # The same, where Content-Length alone may differ.
            before, _ = parts[0]
            if data.startswith(before):
                start = len(before)
                at = data.find(b"\r\n", start)
                if data.startswith(end, at):
                    body = data[at + len(end) :]
                    size = b"%d" % len(body)
                    if data[start:at] != size:
                        return None
                    self._attempts = _MAX_ATTEMPTS
                    headers = request.headers
                    if headers[length][1] != size:
                        headers = headers.copy()
                        headers[length] = (_LENGTH, size)
                        request = request.with_headers(headers)
                    return request, body
        return None

    def learn(self, data: bytes, request: HttpRequest) -> None:
        """Remember the head of `data`, which was read as one whole request and admitted."""
        self._attempts -= 1
        if not self._attempts:
            self.heads.clear()
            return
        size = data.find(b"\r\n\r\n") + 4
        head = _cut(data[:size], len(data) - size, request)
        if head is not None:
            self.heads = [head, *self.heads[: _MAX_HEADS - 1]]


def _find(
    data: bytes,
    parts: tuple[tuple[bytes, int], ...],
    end: bytes,
    length: int,
    request: HttpRequest,
) -> tuple[HttpRequest, bytes] | None:
    """Return the request in `data` and its body, if it has this head."""
    at = 0
    headers = former = request.headers
    for before, place in parts:
        if not data.startswith(before, at):
            return None
        start = at + len(before)
        at = data.find(b"\r\n", start)
        value = data[start:at]
        header = former[place]
        if value != header[1]:
            if _plain(value) is None:
                return None
            if headers is former:
                headers = former.copy()
            headers[place] = (header[0], value)
    if not data.startswith(end, at):
        return None
    at += len(end)
    body = data[at:]
    if headers[length][1] != b"%d" % len(body) or at > MAX_HEAD_BYTES:
        return None
    return (request if headers is former else request.with_headers(headers)), body


def _cut(head: bytes, length: int, request: HttpRequest) -> _Head | None:
    """Return what is remembered of a head, or None if its end or its length is in doubt."""
    headers = request.headers
    names = [name for name, _ in headers]
    if (
        len(head) > MAX_HEAD_BYTES
        or request.method != "POST"
        or request.http_version != "1.1"
        or names.count(_LENGTH) != 1
        or headers[names.index(_LENGTH)][1] != b"%d" % length
        or not _EXCLUDED.isdisjoint(names)
        or not head.count(b"\r") == head.count(b"\n") == head.count(b"\r\n")
    ):
        return None
    _, *lines = head[:-4].split(b"\r\n")
    if len(lines) != len(headers):
        return None
    parts: list[tuple[bytes, int]] = []
    at, begun = head.index(b"\r\n") + 2, 0
    for place, (line, (name, value)) in enumerate(zip(lines, headers, strict=True)):
        if name in _VARYING:
            start = at + len(name) + 2
            if line[: len(name)].lower() + line[len(name) :] != name + b": " + value:
                return None
            parts.append((head[begun:start], place))
            begun = start + len(value)
        at += len(line) + 2
    return _Head(tuple(parts), head[begun:], names.index(_LENGTH), request)

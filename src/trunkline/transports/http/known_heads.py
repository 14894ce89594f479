"""Memo of the request heads of one connection: a head that came before is not parsed again.

A client that keeps its connection alive repeats the head of its requests, byte for byte but for
the number in Content-Length. `KnownHeads` compares what was read with heads that the parser and
the admission accepted on this connection before, and returns the request that was made of it.

The rules that live here, and only here:

* Nothing is accepted that the parser would not accept: a head is compared whole, and the message
  has to end where the read data ends. Otherwise the parser decides.
* A head is remembered if its end and its length are beyond doubt: every line ends with CR LF,
  there is one Content-Length and it equals the rest of the data, and no header changes how the
  message is read or what follows it.               [RFC 9112, sections 2.2, 6.3]
* What may change between two requests is not remembered: the session, the principal and the rate
  are checked for each.
* A client whose heads differ each time costs a few attempts, after which nothing is remembered.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .request import HttpRequest

__all__ = ["MAX_KNOWN_BYTES", "KnownHeads"]

# Data up to this size is compared; in larger messages the head is a small part of the work.
MAX_KNOWN_BYTES: Final = 16 * 1024
# The longest head that is remembered, and how many: a client can make each connection hold them.
_MAX_HEAD_BYTES: Final = 2048
_MAX_HEADS: Final = 4
# Heads that are remembered in a row without being seen again.
_MAX_ATTEMPTS: Final = 8

_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?(\d+)\r\n", re.IGNORECASE)
# Headers that change how a message is read, or what follows it.
_EXCLUDED: Final = frozenset((b"transfer-encoding", b"expect", b"upgrade", b"trailer", b"te"))


class KnownHeads:
    """The heads that one connection has repeated."""

    __slots__ = ("_attempts", "_heads")

    def __init__(self) -> None:
        # What precedes and follows the number in Content-Length, the request, and the place of
        # that header in it.
        self._heads: list[tuple[bytes, bytes, HttpRequest, int]] = []
        self._attempts = _MAX_ATTEMPTS

    def __bool__(self) -> bool:
        """Return True if there is a head to compare with."""
        return bool(self._heads)

    @property
    def learns(self) -> bool:
        """Whether another head may be remembered."""
        return self._attempts > 0

    def find(self, data: bytes) -> tuple[HttpRequest, bytes] | None:
        """Return the request in `data` and its body, if its head is known; else None."""
        for before, after, request, place in self._heads:
            if data.startswith(before):
                end = data.find(b"\r\n", len(before))
                if data.startswith(after, end):
                    body = data[end + len(after) :]
                    length = b"%d" % len(body)
                    if data[len(before) : end] != length:
                        return None
                    self._attempts = _MAX_ATTEMPTS
                    if request.headers[place][1] != length:
                        request = request.with_header(place, length)
                    return request, body
        return None

    def learn(self, data: bytes, request: HttpRequest) -> None:
        """Remember the head of `data`, which was read as one whole request and admitted."""
        self._attempts -= 1
        if not self._attempts:
            self._heads.clear()
            return
        end = data.find(b"\r\n\r\n") + 4
        head = data[:end]
        lines = head.count(b"\n")
        found = _LENGTH.search(head)
        if (
            found is None
            or end > _MAX_HEAD_BYTES
            or found[1] != b"%d" % (len(data) - end)
            or head.lower().count(b"content-length") != 1
            or not lines == head.count(b"\r") == head.count(b"\r\n") == len(request.headers) + 2
            or request.method != "POST"
            or request.http_version != "1.1"
        ):
            return
        names = [name for name, _ in request.headers]
        if not _EXCLUDED.isdisjoint(names):
            return
        start, stop = found.span(1)
        known = (head[:start], head[stop:], request, names.index(b"content-length"))
        self._heads = [known, *self._heads[: _MAX_HEADS - 1]]

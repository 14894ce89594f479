"""Server-sent events: encode and parse an event stream.

`EventReader` is fed bytes as they arrive, split anywhere, and returns whole
events in order. Reconnection and replay are up to the transport. An event over
the limit is returned as an `Oversize`, and the next one is read as usual.

The rules that live here, and only here:

* Lines, fields and when an event is dispatched.      [WHATWG HTML, 9.2.5 and 9.2.6]
* An event with an id and empty data primes a client
  to reconnect; it carries no message.                [MCP 2025-11-25, basic/transports]
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

from ...errors import LocalProtocolError
from ...redaction import show
from ...spec.jsonrpc import LOCAL_RULES
from .framing import Buffer, Oversize, Pieces, head_size

__all__ = ["Event", "EventReader", "encode_comment", "encode_event"]

_BOM: Final = b"\xef\xbb\xbf"
# As numbers: `10 in data` is several times faster than `b"\n" in data`.
_NUL: Final = 0
_LF: Final = 10
_CR: Final = 13

_SOURCE: Final = "WHATWG HTML, 9.2.6"

# Python rejects integers of thousands of digits.
_MAX_RETRY_DIGITS: Final = 18

# A name or an id. The id is sent back to its server as a header, and servers
# reject headers over 8 KiB. [WHATWG HTML, 9.2.4]
_MAX_NAME_BYTES: Final = 4096

# The longest start of a line that is not its value: "event: " or "retry: ".
_LONGEST_START: Final = 7


class Event(NamedTuple):
    """One event. `id` and `retry` are None unless this event has them."""

    data: str
    event: str = "message"
    id: str | None = None
    retry: int | None = None

    def __repr__(self) -> str:
        # The length of the data, not its text: that may hold a secret.
        return (
            f"Event(data=<{len(self.data)} characters>, event={show(self.event)}, "
            f"id={show(self.id)}, retry={self.retry})"
        )


def encode_event(
    data: bytes | str,
    *,
    event: str | None = None,
    id: str | None = None,
    retry: int | None = None,
) -> bytes:
    """Return one encoded event.

    Each line of `data` becomes a `data` field, so the reader gets every line end as a line
    feed. Empty data is encoded too: an event without a `data` field is not dispatched.

    Raises:
        LocalProtocolError: a name or an id has a line break, a text has no UTF-8 form, or
            `retry` is negative.
    """
    fields = ""
    if event is not None:
        fields = f"event: {_one_line(event)}\n"
    if id is not None:
        fields += f"id: {_one_line(id)}\n"
    if retry is not None:
        if retry < 0:
            rule = "sse.retry.negative"
            raise LocalProtocolError(rule, got=retry, expected=LOCAL_RULES[rule], source=_SOURCE)
        fields += f"retry: {retry}\n"
    lines = _utf8(data) if isinstance(data, str) else data
    if _LF in lines or _CR in lines:
        lines = _unify(lines).replace(b"\n", b"\ndata: ")
    return b"%sdata: %s\n\n" % (_utf8(fields), lines)


def encode_comment(text: str = "") -> bytes:
    """Return a comment, which readers ignore: it keeps an idle connection open."""
    lines = _unify(_utf8(text)).split(b"\n")
    return b"".join(b": %s\n" % line if line else b":\n" for line in lines) + b"\n"


class EventReader:
    """Parses the events of one stream, or of several in succession.

    The limit is the size of an event's data in bytes, inclusive. A name or an id may
    take 4 KiB. No more than that is kept of ignored lines, so a peer cannot fill memory
    with comments.

    An event with empty data carries no message, and is left out unless `empty` is
    true, which is what the standard asks for. Its id is recorded either way.
    """

    def __init__(self, limit: int | None = None, *, empty: bool = False) -> None:
        self._head = head_size(limit)
        self._most = sys.maxsize if limit is None else limit
        self._empty = empty
        self._last_event_id = ""
        self._retry_ms: int | None = None
        # The start of a stream, then the line in progress.
        self._at_start = True
        self._start = b""  # at most three bytes, a byte order mark or part of one
        self._after_cr = False
        self._line = bytearray()
        self._in_data = False  # that line is data, and is added as it arrives
        self._skipping = False  # that line is ignored
        # The event in progress.
        self._data = Pieces()  # its lines joined by LF
        self._has_data = False
        self._event = b""
        self._id: str | None = None
        self._retry: int | None = None
        self._refused = False  # too large, and reported

    @property
    def last_event_id(self) -> str:
        """The id to resume from: the last one in a completed event, or empty."""
        return self._last_event_id

    @property
    def retry_ms(self) -> int | None:
        """The reconnection delay that the peer has asked for, in milliseconds."""
        return self._retry_ms

    def feed(self, data: Buffer, /) -> list[Event | Oversize]:
        """Return the events and faults that `data` completes, in order."""
        chunk = data if type(data) is bytes else bytes(data)
        if self._at_start:
            chunk = self._after_bom(chunk)
        found: list[Event | Oversize] = []
        if not chunk:
            return found
        if self._after_cr:
            # A CR ends its line at once, so that an event does not wait for the
            # next one; the LF of a CRLF may follow and is ignored.
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        if _LF not in chunk and _CR not in chunk:
            if chunk:
                self._hold(chunk, found)  # far faster than splitting
            return found
        lines = chunk.splitlines()  # of bytes: at CR, LF and CRLF, nowhere else
        rest = b"" if self._after_cr or chunk.endswith(b"\n") else lines.pop()
        self._end_line(lines, found)
        for line in lines:
            if line:
                self._read_field(line, found)
            else:
                self._dispatch(found)
        if rest:
            self._hold(rest, found)
        return found

    def end(self) -> None:
        """Drop the event in progress; what is fed next is the start of a new stream.

        A truncated event is not dispatched, nor its id recorded: it will be sent again.
        `last_event_id` and `retry_ms` outlive a connection.
        """
        self._at_start = True
        self._start = b""
        self._after_cr = False
        self._line.clear()
        self._in_data = self._skipping = False
        self._forget()

    def _after_bom(self, chunk: bytes) -> bytes:
        start = self._start + chunk
        if _BOM.startswith(start):
            self._start = start
            return b""
        self._at_start = False
        return start.removeprefix(_BOM)

    def _end_line(self, lines: list[bytes], found: list[Event | Oversize]) -> None:
        """Complete the first of `lines` with the line in progress, or remove it."""
        if self._line:
            self._line += lines[0]
            lines[0] = bytes(self._line)
            self._line.clear()
        elif self._in_data:
            self._in_data = False
            self._add_data(lines.pop(0), found)
        elif self._skipping:
            self._skipping = False
            del lines[0]

    def _hold(self, rest: bytes, found: list[Event | Oversize]) -> None:
        if self._skipping:
            return
        if self._in_data:
            self._add_data(rest, found)
            return
        self._line += rest
        if self._line.startswith(b"data:"):
            if len(self._line) == len(b"data:"):
                return  # a space may follow, which is not part of the value
            self._in_data = True
        elif len(self._line) > _MAX_NAME_BYTES + _LONGEST_START:
            # A comment, or a value over its limit: the start of the line is enough.
            self._skipping = True
        else:
            return
        self._read_field(bytes(self._line), found)
        self._line.clear()

    def _read_field(self, line: bytes, found: list[Event | Oversize]) -> None:
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            if self._has_data:
                self._add_data(b"\n", found)
            self._has_data = True
            self._add_data(value, found)
        elif name in (b"event", b"id") and len(value) > _MAX_NAME_BYTES:
            self._refuse(_MAX_NAME_BYTES, found)
        elif name == b"event":
            self._event = value
        elif name == b"id" and _NUL not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self._retry_ms = self._retry = int(value)

    def _add_data(self, value: bytes, found: list[Event | Oversize]) -> None:
        if self._refused:
            return
        self._data.add(value)
        if self._data.size > self._most:
            self._refuse(self._most, found)

    def _refuse(self, limit: int, found: list[Event | Oversize]) -> None:
        if not self._refused:
            self._refused = True
            found.append(Oversize(self._data.take()[: self._head], None, limit))

    def _dispatch(self, found: list[Event | Oversize]) -> None:
        # The id of a rejected event counts too. Otherwise each resumption would
        # bring the same event again.
        if self._id is not None:
            self._last_event_id = self._id
        if not self._refused and self._has_data and (self._data.size or self._empty):
            # Fields are split at ASCII bytes, which are never part of a UTF-8 sequence, so
            # decoding by field gives the same as decoding the stream.
            data = self._data.take().decode("utf-8", "replace")
            name = self._event.decode("utf-8", "replace") if self._event else "message"
            found.append(Event(data, name, self._id, self._retry))
        self._forget()

    def _forget(self) -> None:
        self._data.clear()
        self._has_data = False
        self._event = b""
        self._id = None
        self._retry = None
        self._refused = False


def _unify(text: bytes) -> bytes:
    """Return `text` with every line end as a line feed."""
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    rule = "jsonrpc.text.surrogate"
    raise LocalProtocolError(rule, expected=LOCAL_RULES[rule])


def _one_line(value: str) -> str:
    if "\n" in value or "\r" in value or "\0" in value:
        rule = "sse.field.line-break"
        raise LocalProtocolError(rule, got=value, expected=LOCAL_RULES[rule], source=_SOURCE)
    return value

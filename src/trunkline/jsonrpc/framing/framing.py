"""Framing: split a byte stream into messages, and delimit the messages we send.

A framing is fed bytes as they arrive, split anywhere, and returns whole frames
in order. It does not parse JSON. A mistake of the peer is returned as a value in
place of the frame, at most one per frame (a stream that loses its framing may
add one more), so a transport can answer and continue.

The rules that live here, and only here:

* A newline ends a message and is never inside one.      [MCP 2025-11-25, basic/transports]
* A header block, then as many bytes as it declares.     [LSP 3.17, Base Protocol]
* Four bytes, big-endian, then as many bytes as they declare. (ours, for custom transports)

The same stream gives the same frames and faults however it was split: a fault
states only what is known at the byte that caused it. Every byte is examined a
bounded number of times, and no more is kept than the limit plus the current
chunk. The limit is the size of the largest frame to be read, None for any; it
does not bound what we send.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from ...errors import LocalProtocolError
from ...redaction import show
from ...spec.jsonrpc import LOCAL_RULES
from ..messages import shown_tuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BadHeader",
    "Buffer",
    "ContentLengthFraming",
    "DetectingFraming",
    "Fault",
    "Framing",
    "FramingName",
    "LengthPrefixFraming",
    "NewlineFraming",
    "Oversize",
    "Truncated",
    "framing_named",
]

# Enough of an oversize frame to find its id, which is usually near the start.
MAX_HEAD_BYTES: Final = 1024

# Limits a header block that never ends; two lines of usual headers take under 100 bytes.
MAX_HEADER_BYTES: Final = 4096

# Up to an exabyte: longer numbers would slow down arithmetic.
_MAX_LENGTH_DIGITS: Final = 18

# How much a fault quotes of an invalid header line: enough to recognise another
# framing, too little to leak a secret.
_MAX_QUOTED_BYTES: Final = 40

# Pieces under the first size are gathered into ones of about the second: else a
# peer that sends single bytes would cost an object per byte.
_SMALL_BYTES: Final = 4096
_GATHER_BYTES: Final = 65536

_BLANK: Final = b" \t\r"
# As numbers: `10 in data` is several times faster than `b"\n" in data`.
_LF: Final = 10
_CR: Final = 13

# The characters of a header name. [RFC 9110, 5.6.2]
_TOKEN: Final = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

Buffer: TypeAlias = bytes | bytearray | memoryview


class Oversize(NamedTuple):
    """A frame over the limit: reported as soon as that is certain, then skipped to its end.

    `head` is the start of the frame, at most 1024 bytes and never more than the
    limit. `size` is what the peer declared, or None where a frame ends by a delimiter.
    """

    head: bytes
    size: int | None
    limit: int

    def __repr__(self) -> str:
        # The length of the head, not its text: that may hold a secret.
        return f"Oversize(head={show(self.head)}, size={self.size}, limit={self.limit})"


class BadHeader(NamedTuple):
    """A header block with an invalid or missing Content-Length, or an invalid line.

    If `lost`, the start of the next frame is unknown: all that follows is ignored, and
    the connection has to be closed. Otherwise the length was valid, the body is
    skipped, and the next frame is read as usual. `got` is for logs; it quotes nothing
    of the line but a number, since a line in the wrong place may be a part of a message.
    """

    got: str
    lost: bool

    def __repr__(self) -> str:
        return f"BadHeader(got={show(self.got)}, lost={self.lost})"

    def __str__(self) -> str:
        return self.got


class Truncated(NamedTuple):
    """The stream ended inside a frame.

    `got` is the number of bytes of the body that arrived. If the stream ended before
    the length was known, `expected` is None and `got` is the bytes before the body.
    """

    got: int
    expected: int | None

    def __repr__(self) -> str:
        return shown_tuple(self)

    def __str__(self) -> str:
        whole = "" if self.expected is None else f" of {self.expected}"
        return f"the end of the stream after {self.got}{whole} bytes of a frame"


Fault: TypeAlias = Oversize | BadHeader | Truncated
FramingName: TypeAlias = Literal["newline", "content-length", "length-prefix", "detect"]


class Framing(Protocol):
    """One direction of bytes read into frames, and frames written for the other."""

    @property
    def held(self) -> int:
        """The number of bytes that are kept of an unfinished frame."""

    @property
    def is_unfinished(self) -> bool:
        """Whether a frame has begun and not ended, kept or skipped."""

    def feed(self, data: Buffer, /) -> list[bytes | Fault]:
        """Return the frames and faults that `data` completes, in order."""

    def end(self) -> list[bytes | Fault]:
        """Return the frame or fault that the end of the stream completes or truncates."""

    def frame(self, message: bytes, /) -> bytes:
        """Return `message` with its delimiter or header."""

    def parts(self, message: bytes, /) -> tuple[bytes, bytes]:
        """Return what `frame` does in two parts, one of which is `message` itself.

        For messages so large that a copy costs more than another write.
        """


def framing_named(name: FramingName, limit: int | None) -> Framing:
    """Return a new framing by its name; with `limit` None frames may have any size."""
    kind = _FRAMINGS.get(name)
    if kind is None:
        raise ValueError(f"no framing is called {name!r}; known: {', '.join(_FRAMINGS)}")
    return kind(limit)


def head_size(limit: int | None) -> int:
    """Return how many bytes of an oversize frame are kept.

    Never more than the limit, so that the head does not depend on how the stream
    was split.

    Raises:
        ValueError: the limit is negative.
    """
    if limit is None:
        return MAX_HEAD_BYTES
    if limit < 0:
        raise ValueError(f"a limit cannot be negative: {limit}")
    return min(MAX_HEAD_BYTES, limit)


class Pieces:
    """Bytes that arrive in pieces and are joined once.

    Joining at the end takes less than half the time of growing one buffer, which
    is moved again and again.
    """

    __slots__ = ("_parts", "size")

    def __init__(self, first: bytes = b"") -> None:
        self.size = len(first)
        self._parts: list[bytes | bytearray] = [first] if first else []

    def add(self, piece: bytes) -> None:
        """Append `piece`."""
        self.size += len(piece)
        parts = self._parts
        if len(piece) >= _SMALL_BYTES or not parts or len(parts[-1]) >= _GATHER_BYTES:
            parts.append(piece)
        elif isinstance(last := parts[-1], bytearray):
            last += piece
        else:
            parts[-1] = gathered = bytearray(last)
            gathered += piece

    def take(self) -> bytes:
        """Return all bytes, and clear."""
        whole = b"".join(self._parts)
        self.clear()
        return whole

    def clear(self) -> None:
        """Drop all bytes."""
        self.size = 0
        self._parts.clear()


class NewlineFraming:
    """One message per line: LF ends it, one CR before that is trimmed.

    Blank lines are ignored. The limit counts a line without its end, inclusive. A
    last line without its LF is still a frame: if it is truncated, the codec
    rejects it.
    """

    __slots__ = ("_head", "_most", "_partial", "_skipping")

    def __init__(self, limit: int | None = None) -> None:
        self._head = head_size(limit)
        self._most = sys.maxsize if limit is None else limit
        self._partial = Pieces()  # the line in progress, without an LF
        self._skipping = False  # the line in progress was too long and is reported

    @property
    def held(self) -> int:
        """The number of bytes that are kept of an unfinished line."""
        return self._partial.size

    @property
    def is_unfinished(self) -> bool:
        """Whether a line has begun and not ended, kept or skipped."""
        return self._skipping or self._partial.size > 0

    def feed(self, data: Buffer, /) -> list[bytes | Fault]:
        """Return the lines and faults that `data` completes, in order."""
        chunk = data if type(data) is bytes else bytes(data)
        found: list[bytes | Fault] = []
        # `find` is twenty times faster than `split`, which matters for a long line
        # that arrives in many chunks.
        first_end = chunk.find(b"\n")
        if first_end < 0:
            self._hold(chunk, found)
            return found
        if first_end == len(chunk) - 1:
            lines, rest = [chunk[:-1]], b""
        else:
            lines = chunk.split(b"\n")
            rest = lines.pop()
        if self._skipping:
            self._skipping = False
            del lines[0]
        elif self._partial.size:
            self._partial.add(lines[0])
            lines[0] = self._partial.take()
        most = self._most
        for line in lines:
            if not line:
                continue
            if line[-1] == _CR:
                line = line[:-1]
            if len(line) > most:
                found.append(Oversize(line[: self._head], None, most))
            elif line.lstrip(_BLANK):  # returns the same object, not a copy
                found.append(line)
        if rest:
            self._hold(rest, found)
        return found

    def end(self) -> list[bytes | Fault]:
        """Return the last line if it lacks its LF and is not blank."""
        line = self._partial.take().removesuffix(b"\r")
        self._skipping = False
        return [line] if line.lstrip(_BLANK) else []

    def frame(self, message: bytes, /) -> bytes:
        """Return `message` as a line.

        Raises:
            LocalProtocolError: the message holds a newline; the peer would read two.
        """
        if _LF in message:
            raise _two_lines(message)
        return message + b"\n"

    def parts(self, message: bytes, /) -> tuple[bytes, bytes]:
        """Return `message` and its line end; raises as `frame` does."""
        if _LF in message:
            raise _two_lines(message)
        return message, b"\n"

    def _hold(self, rest: bytes, found: list[bytes | Fault]) -> None:
        if self._skipping or not rest:
            return
        self._partial.add(rest)
        over = self._partial.size - self._most
        # One byte over the limit may be the CR of a line end whose LF is still to come.
        if over > 1 or (over == 1 and rest[-1] != _CR):
            found.append(Oversize(self._partial.take()[: self._head], None, self._most))
            self._skipping = True


class _SizedFraming:
    """Reads bodies whose size precedes them; the subclass reads the size."""

    __slots__ = ("_before", "_closed", "_head", "_kept", "_left", "_most", "_refused", "_size")

    def __init__(self, limit: int | None = None) -> None:
        self._head = head_size(limit)
        self._most = sys.maxsize if limit is None else limit
        self._before = 0  # bytes read of the size or header block
        self._size: int | None = None  # of the current body; None before one
        self._left = 0  # bytes of that body still to come
        self._kept = Pieces()  # that body so far, or its head when it is too large
        self._refused = False  # that body was reported and is only skipped
        self._closed = False  # the stream ended or lost its framing: the rest is ignored

    @property
    def held(self) -> int:
        """The number of bytes that are kept of an unfinished body."""
        return self._kept.size

    @property
    def is_unfinished(self) -> bool:
        """Whether a size or a body has begun and not ended, kept or skipped."""
        return self._size is not None or self._before > 0

    def feed(self, data: Buffer, /) -> list[bytes | Fault]:
        """Return the frames and faults that `data` completes, in order."""
        chunk = data if type(data) is bytes else bytes(data)
        found: list[bytes | Fault] = []
        at = 0
        while at < len(chunk) and not self._closed:
            if self._size is None:
                at = self._read_size(chunk, at, found)
            # Not an `else`: an empty body ends where its size does.
            if self._size is not None:
                at = self._read_body(self._size, chunk, at, found)
        return found

    def end(self) -> list[bytes | Fault]:
        """Return the frame that the end of the stream truncates, unless it was reported."""
        if self._closed:
            return []
        self._closed = True
        if self._size is None:
            return [Truncated(self._before, None)] if self._before else []
        if self._refused:
            return []
        if self._size > self._most:
            return [Oversize(self._kept.take(), self._size, self._most)]
        return [Truncated(self._kept.size, self._size)]

    def _read_size(self, chunk: bytes, at: int, found: list[bytes | Fault]) -> int:
        """Read from `at`, and call `_begin` once the size is known; return the new offset."""
        raise NotImplementedError

    def _begin(self, size: int, *, refused: bool = False) -> None:
        self._size = self._left = size
        self._refused = refused
        self._before = 0

    def _read_body(self, size: int, chunk: bytes, at: int, found: list[bytes | Fault]) -> int:
        step = min(self._left, len(chunk) - at)
        stop = at + step
        self._left -= step
        if self._refused:
            pass
        elif size > self._most:
            self._kept.add(chunk[at : min(stop, at + self._head - self._kept.size)])
            if self._kept.size == self._head:
                found.append(Oversize(self._kept.take(), size, self._most))
                self._refused = True
        elif step == size:
            found.append(chunk[at:stop])
        else:
            self._kept.add(chunk[at:stop])
            if not self._left:
                found.append(self._kept.take())
        if not self._left:
            self._size = None
        return stop


class ContentLengthFraming(_SizedFraming):
    """Header lines, an empty line, then the bytes counted by `Content-Length`.

    Lenient where that is safe: names in any case, LF alone as a line end, other
    headers, the same length twice, empty lines before a block. An uncertain length
    ends the stream, because a guess lets text of one peer become a message of
    another: no length, two lengths, one that is not plain digits, a block over
    4 KiB, or an invalid line before the length. Such a line after the length
    invalidates only its own frame.
    """

    __slots__ = ("_length", "_line", "_spoiled")

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(limit)
        self._line = bytearray()
        self._length: int | None = None
        self._spoiled = False

    def frame(self, message: bytes, /) -> bytes:
        """Return the header block and `message`."""
        return b"Content-Length: %d\r\n\r\n%s" % (len(message), message)

    def parts(self, message: bytes, /) -> tuple[bytes, bytes]:
        """Return the header block and `message`."""
        return b"Content-Length: %d\r\n\r\n" % len(message), message

    def _read_size(self, chunk: bytes, at: int, found: list[bytes | Fault]) -> int:
        room = at + MAX_HEADER_BYTES - self._before
        line_end = chunk.find(b"\n", at, room)
        stop = min(len(chunk), room) if line_end < 0 else line_end + 1
        self._line += chunk[at:stop]
        self._before += stop - at
        if line_end >= 0:
            line = bytes(self._line[:-1]).removesuffix(b"\r")
            is_first = self._before == len(self._line)
            self._line.clear()
            if line:
                self._read_header(line, found)
            elif is_first:
                self._before = 0
            else:
                self._end_headers(found)
        if self._before >= MAX_HEADER_BYTES:
            self._lose(f"more than {MAX_HEADER_BYTES} bytes of headers", found)
        return stop

    def _read_header(self, line: bytes, found: list[bytes | Fault]) -> None:
        name, colon, value = line.partition(b":")
        if not colon or not name or name.translate(None, _TOKEN):
            why = f"a line of {len(line)} bytes that is not a header"
            if self._length is None:
                self._lose(why, found)
            elif not self._spoiled:
                self._spoiled = True
                found.append(BadHeader(why, lost=False))
        elif name.lower() == b"content-length":
            digits = value.strip(b" \t")
            if not digits.isdigit() or len(digits) > _MAX_LENGTH_DIGITS:
                self._lose(_quoted_length(digits), found)
            elif self._length is not None and self._length != int(digits):
                self._lose(f"Content-Length {self._length}, then {int(digits)}", found)
            else:
                self._length = int(digits)

    def _end_headers(self, found: list[bytes | Fault]) -> None:
        if self._length is None:
            self._lose("headers without Content-Length", found)
        else:
            self._begin(self._length, refused=self._spoiled)
            self._length = None
            self._spoiled = False

    def _lose(self, got: str, found: list[bytes | Fault]) -> None:
        if not self._closed:
            self._closed = True
            self._line.clear()
            found.append(BadHeader(got, lost=True))


class LengthPrefixFraming(_SizedFraming):
    """Four bytes, big-endian and unsigned, then as many bytes as they declare."""

    __slots__ = ("_prefix",)

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(limit)
        self._prefix = bytearray()

    def frame(self, message: bytes, /) -> bytes:
        """Return the length and `message`.

        Raises:
            LocalProtocolError: the length does not fit in four bytes.
        """
        return b"".join(self.parts(message))

    def parts(self, message: bytes, /) -> tuple[bytes, bytes]:
        """Return the length and `message`; raises as `frame` does."""
        size = len(message)
        if size > 0xFFFFFFFF:
            rule = "jsonrpc.framing.too-long"
            raise LocalProtocolError(rule, got=size, expected=LOCAL_RULES[rule])
        return size.to_bytes(4, "big"), message

    def _read_size(self, chunk: bytes, at: int, found: list[bytes | Fault]) -> int:
        self._prefix += chunk[at : at + 4 - self._before]
        stop = at + len(self._prefix) - self._before
        self._before = len(self._prefix)
        if self._before == 4:
            self._begin(int.from_bytes(self._prefix, "big"))
            self._prefix.clear()
        return stop


class DetectingFraming:
    """Newline or Content-Length, whichever the peer uses first.

    For peers that use the framing of LSP. No JSON value starts with `content-`, so
    those eight characters, in any case, decide; blanks before them are dropped. Until
    the peer has sent something we send lines. [MCP 2025-11-25, basic/transports]
    """

    __slots__ = ("_chosen", "_limit", "_start")

    def __init__(self, limit: int | None = None) -> None:
        head_size(limit)  # rejects an invalid limit now, not at the first byte
        self._limit = limit
        self._start = b""  # at most seven bytes that may still become "content-"
        self._chosen: NewlineFraming | ContentLengthFraming | None = None

    @property
    def held(self) -> int:
        """The number of bytes that are kept of an unfinished frame."""
        return len(self._start) if self._chosen is None else self._chosen.held

    @property
    def is_unfinished(self) -> bool:
        """Whether a frame has begun and not ended, kept or skipped."""
        return bool(self._start) if self._chosen is None else self._chosen.is_unfinished

    def feed(self, data: Buffer, /) -> list[bytes | Fault]:
        """Return the frames and faults that `data` completes, in order."""
        if self._chosen is not None:
            return self._chosen.feed(data)
        start = (self._start + bytes(data)).lstrip(b" \t\r\n")
        if len(start) < 8 and b"content-".startswith(start.lower()):
            self._start = start
            return []
        self._start = b""
        is_header = start[:8].lower() == b"content-"
        self._chosen = (ContentLengthFraming if is_header else NewlineFraming)(self._limit)
        return self._chosen.feed(start)

    def end(self) -> list[bytes | Fault]:
        """Return the frame or fault that the end of the stream completes or truncates."""
        chosen = self._chosen or NewlineFraming(self._limit)
        found = chosen.feed(self._start)
        self._start = b""
        return found + chosen.end()

    def frame(self, message: bytes, /) -> bytes:
        """Return `message` in the framing that the peer uses.

        Raises:
            LocalProtocolError: we send lines and the message holds a newline.
        """
        return (self._chosen or _LINES).frame(message)

    def parts(self, message: bytes, /) -> tuple[bytes, bytes]:
        """Return what `frame` would, in two parts; raises as it does."""
        return (self._chosen or _LINES).parts(message)


# Sending lines needs no state, so one object serves every undecided connection.
_LINES: Final = NewlineFraming()

_FRAMINGS: Final[dict[str, Callable[[int | None], Framing]]] = {
    "newline": NewlineFraming,
    "content-length": ContentLengthFraming,
    "length-prefix": LengthPrefixFraming,
    "detect": DetectingFraming,
}


def _two_lines(message: bytes) -> LocalProtocolError:
    rule = "jsonrpc.framing.newline-inside"
    got = f"a line feed at byte {message.index(_LF)}"
    return LocalProtocolError(rule, got=got, expected=LOCAL_RULES[rule])


def _quoted_length(value: bytes) -> str:
    if len(value) <= _MAX_QUOTED_BYTES and not value.translate(None, b"0123456789+-.,_ "):
        return f"Content-Length: {value.decode()}"
    return f"a Content-Length of {len(value)} bytes that is not a number"

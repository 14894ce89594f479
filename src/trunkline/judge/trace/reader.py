"""Recordings of conversations (traces): JSON Lines, a header and then one message per line.

    {"trunkline-trace": 1}
    {"at": 0.0, "from": "client", "transport": "stdio", "message": {"jsonrpc": "2.0", …}}

A file of bare JSON-RPC messages is a recording as well, one without senders. The reader is
lazy and keeps no lines; a malformed line becomes a `TraceFault`, and reading continues. Entries
are written by `writer.py`, which hides secrets.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Raw, Struct
from msgspec.json import Decoder
from msgspec.structs import replace

from ...errors import NOTHING
from ...jsonrpc.codec.decode_errors import mended
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.messages import Shown
from ...redaction import hidden_places
from ...spec.rows import Role

__all__ = [
    "HEADER",
    "VERSION",
    "StreamId",
    "TextFault",
    "TraceEntry",
    "TraceFault",
    "TraceHttp",
    "UnreadFrame",
    "read_trace",
]

HEADER: Final = "trunkline-trace"
VERSION: Final = 1

# Members that mark a bare message; an entry has "from" or none of these.
_BARE: Final = frozenset(("jsonrpc", "method", "id", "result", "error", "params"))

_read: Final = Decoder().decode
StreamId: TypeAlias = str | int


class TraceHttp(Shown, Struct, frozen=True):
    """The HTTP side of a message: `method` and `path` of a request, `status` of a response."""

    method: str = ""
    path: str = ""
    status: int | None = None
    # None if they were not recorded: then no header counts as missing.
    headers: Mapping[str, str] | None = None

    def header(self, name: str) -> str | None:
        """Return the value of a header, or None; `name` is in lower case."""
        for each, value in (self.headers or {}).items():
            if each.lower() == name:
                return value
        return None


class TextFault(Shown, Struct, frozen=True):
    """A rule that the text of a frame breaks, found when it was recorded."""

    rule: str
    where: str = ""
    expected: str = ""


class UnreadFrame(Shown, Struct, frozen=True):
    """What a recording keeps of a frame that is not JSON."""

    length: int
    digest: str = ""
    method: str = ""
    id: int | str | None = None
    # What a tolerant reader made of it, secrets hidden.
    value: Any = NOTHING


class TraceEntry(Shown, Struct, frozen=True):
    """One recorded message. `message` is parsed JSON, `raw` the text if it was recorded."""

    at: float | None = None
    sender: Role | None = None
    transport: str = ""
    message: Any = NOTHING
    raw: str | bytes | None = None
    http: TraceHttp | None = None
    # An HTTP request and everything sent in response to it share a stream.
    stream: StreamId | None = None
    connection: StreamId | None = None
    # The fields of a server-sent event other than data: id, event, retry.
    event: Mapping[str, Any] | None = None
    # True if the sender closed the stream properly after this entry.
    ends: bool = False
    # The JSON pointers of what was hidden: the value there, or part of it, is unknown.
    hidden: tuple[str, ...] = ()
    # What only the text of the frame showed.
    faults: tuple[TextFault, ...] = ()
    # In place of `message`, if the frame was not JSON.
    unread: UnreadFrame | None = None
    line: int | None = None


class TraceFault(Shown, Struct, frozen=True):
    """A line that is not an entry, and why."""

    line: int
    why: str


def read_trace(lines: Iterable[str | bytes]) -> Iterator[TraceEntry | TraceFault]:
    """Yield one entry or fault per line; blank lines and the header are skipped."""
    for number, line in enumerate(lines, 1):
        text = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        text = text.strip()
        if not text:
            continue
        try:
            value, readable = _read(text), text
        except UNREADABLE:
            try:
                # A lone surrogate: the judge names it, and needs the text of the message for that.
                readable = mended(text)
                value = _read(readable)
            except UNREADABLE:
                yield TraceFault(number, "the line is not JSON")
                continue
        if type(value) is dict and HEADER in value:
            if value[HEADER] != VERSION:
                yield TraceFault(number, f"unsupported trace version, expected {VERSION}")
            continue
        entry = _entry(value, text, number)
        if readable is not text and isinstance(entry, TraceEntry) and entry.raw is None:
            entry = replace(entry, raw=_text_of_message(text, readable))
        yield entry


# Reading


class _EntryMessage(Shown, Struct):
    """An entry, of which only the text of its message is decoded."""

    message: Raw = Raw()


_read_message: Final = Decoder(_EntryMessage).decode


def _text_of_message(text: bytes, readable: bytes) -> bytes | None:
    """Return the message of an entry as it is in `text`, which `readable` has the length of."""
    message = bytes(_read_message(readable).message)
    start = readable.find(message)
    return text[start : start + len(message)] or None


def _entry(value: Any, text: bytes, line: int) -> TraceEntry | TraceFault:
    if type(value) is list or (type(value) is dict and _is_bare(value)):
        return TraceEntry(message=value, raw=text, line=line)
    if type(value) is not dict:
        return TraceFault(line, "an entry must be an object")
    fault = _malformed(value)
    if fault:
        return TraceFault(line, fault)
    raw = value.get("raw")
    if raw is None and "base64" in value:
        try:
            raw = b64decode(value["base64"], validate=True)
        except (TypeError, ValueError):
            return TraceFault(line, "'base64' is not Base64")
    return TraceEntry(
        at=value.get("at"),
        sender=value.get("from"),
        transport=value.get("transport") or "",
        message=value.get("message", NOTHING),
        raw=raw,
        http=_http(value["http"]) if value.get("http") else None,
        stream=value.get("stream"),
        connection=value.get("connection"),
        event=value.get("event"),
        ends=value.get("ends") is True,
        hidden=_hidden(value, text),
        faults=tuple(map(_text_fault, value.get("faults") or ())),
        unread=_unread(value["unread"]) if value.get("unread") else None,
        line=line,
    )


def _hidden(value: dict[str, Any], text: bytes) -> tuple[str, ...]:
    if "hidden" in value:
        return tuple(value["hidden"] or ())
    # Recordings of earlier versions do not list what was hidden.
    return tuple(hidden_places(value["message"], text)) if "message" in value else ()


def _text_fault(value: dict[str, Any]) -> TextFault:
    return TextFault(value["rule"], value.get("where", ""), value.get("expected", ""))


def _unread(value: dict[str, Any]) -> UnreadFrame:
    return UnreadFrame(
        length=value.get("length", 0),
        digest=value.get("digest", ""),
        method=value.get("method", ""),
        id=value.get("id"),
        value=value.get("value", NOTHING),
    )


def _is_bare(value: dict[str, Any]) -> bool:
    return "jsonrpc" in value or ("from" not in value and not _BARE.isdisjoint(value))


# The members whose type is checked, and the wording of the fault.
_TYPES: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "at": ((int, float), "a number of seconds"),
    "transport": ((str,), "a string"),
    "raw": ((str,), "a string"),
    "http": ((dict,), "an object"),
    "stream": ((str, int), "a string or an integer"),
    "connection": ((str, int), "a string or an integer"),
    "event": ((dict,), "an object"),
    "hidden": ((list,), "an array"),
    "faults": ((list,), "an array"),
    "unread": ((dict,), "an object"),
}
_UNREAD_TYPES: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "length": ((int,), "an integer"),
    "digest": ((str,), "a string"),
    "method": ((str,), "a string"),
    "id": ((str, int), "a string or an integer"),
}


def _malformed(value: dict[str, Any]) -> str:
    if value.get("from") not in ("client", "server", None):
        return "'from' must be client or server"
    if mismatch := _mismatch(value, _TYPES):
        return mismatch
    if not all(type(each) is str for each in value.get("hidden") or ()):
        return "'hidden' must be an array of strings"
    if not all(map(_is_text_fault, value.get("faults") or ())):
        return "'faults' must be an array of objects with a rule"
    if mismatch := _mismatch(value.get("unread") or {}, _UNREAD_TYPES):
        return mismatch
    http = value.get("http") or {}
    headers, status = http.get("headers"), http.get("status")
    if headers is not None and type(headers) is not dict:
        return "'headers' must be an object"
    if status is not None and type(status) is not int:
        return "'status' must be an integer"
    return ""


def _mismatch(value: dict[str, Any], types: dict[str, tuple[tuple[type, ...], str]]) -> str:
    for name, (kinds, called) in types.items():
        item = value.get(name)
        if item is not None and (not isinstance(item, kinds) or isinstance(item, bool)):
            return f"{name!r} must be {called}"
    return ""


def _is_text_fault(value: Any) -> bool:
    if type(value) is not dict or not value.get("rule"):
        return False
    return all(type(value.get(name, "")) is str for name in ("rule", "where", "expected"))


def _http(value: dict[str, Any]) -> TraceHttp:
    headers = value.get("headers")
    plain = None if headers is None else {name: str(item) for name, item in headers.items()}
    return TraceHttp(
        str(value.get("method") or "").upper(),
        str(value.get("path") or ""),
        value.get("status"),
        plain,
    )

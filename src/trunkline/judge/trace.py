"""Recordings of conversations (traces): JSON Lines, a header and then one message per line.

    {"trunkline-trace": 1}
    {"at": 0.0, "from": "client", "transport": "stdio", "message": {"jsonrpc": "2.0", …}}

A file of bare JSON-RPC messages is a recording as well, one without senders. The reader is
lazy and keeps no lines; a malformed line becomes a `TraceFault`, and reading continues. Secrets
are redacted when an entry is written, not when it is read.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.json import Decoder, Encoder

from ..errors import NOTHING
from ..jsonrpc.decode_errors import UNREADABLE
from ..redaction import conceal
from ..spec.rows import Role

__all__ = [
    "HEADER",
    "VERSION",
    "Http",
    "TraceEntry",
    "TraceFault",
    "TraceWriter",
    "read_trace",
    "write_entry",
]

HEADER: Final = "trunkline-trace"
VERSION: Final = 1

# Members that mark a bare message; an entry has "from" or none of these.
_BARE: Final = frozenset(("jsonrpc", "method", "id", "result", "error", "params"))

_read: Final = Decoder().decode
_write: Final = Encoder().encode
StreamId: TypeAlias = str | int


class Http(Struct, frozen=True):
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


class TraceEntry(Struct, frozen=True):
    """One recorded message. `message` is parsed JSON, `raw` the text if it was recorded."""

    at: float | None = None
    sender: Role | None = None
    transport: str = ""
    message: Any = NOTHING
    raw: str | bytes | None = None
    http: Http | None = None
    # An HTTP request and everything sent in response to it share a stream.
    stream: StreamId | None = None
    connection: StreamId | None = None
    # The fields of a server-sent event other than data: id, event, retry.
    event: Mapping[str, Any] | None = None
    # True if the sender closed the stream properly after this entry.
    ends: bool = False
    line: int | None = None


class TraceFault(Struct, frozen=True):
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
            value = _read(text)
        except UNREADABLE:
            yield TraceFault(number, "the line is not JSON")
            continue
        if type(value) is dict and HEADER in value:
            if value[HEADER] != VERSION:
                yield TraceFault(number, f"unsupported trace version, expected {VERSION}")
            continue
        yield _entry(value, text, number)


def write_entry(entry: TraceEntry) -> bytes:
    """Return an entry as one line with its line break, secrets redacted.

    Raises:
        RecursionError: the message contains itself, or nests too deep to be written.
    """
    members: dict[str, object] = {"at": entry.at, "from": entry.sender}
    members["transport"] = entry.transport or None
    if entry.message is not NOTHING:
        members["message"] = entry.message
    elif isinstance(entry.raw, bytes):
        members |= _bytes(entry.raw)
    elif entry.raw is not None:
        members["raw"] = entry.raw
    if entry.http is not None:
        members["http"] = _http_members(entry.http)
    members |= {"stream": entry.stream, "connection": entry.connection, "event": entry.event}
    members["ends"] = entry.ends or None
    given = {
        name: value for name, value in members.items() if value is not None or name == "message"
    }
    # Encoded once as it is: a message that contains itself fails here, not in an endless copy.
    _write(given)
    return _write(conceal(given)) + b"\n"


class TraceWriter:
    """Writes a recording: the header at once, then one line for each entry.

    `write` takes bytes, for example the method of a file opened in binary mode. `about` are
    further members of the header.
    """

    def __init__(self, write: Callable[[bytes], object], **about: object) -> None:
        self._write = write
        write(_write(conceal({HEADER: VERSION, **about})) + b"\n")

    def write(self, entry: TraceEntry) -> None:
        """Write one entry, secrets redacted."""
        self._write(write_entry(entry))


def _bytes(raw: bytes) -> dict[str, object]:
    try:
        return {"raw": raw.decode("utf-8")}
    except UnicodeDecodeError:
        # Redacted before it is encoded: Base64 would hide secrets from the redaction. Latin-1
        # maps each byte to one character.
        shown = str(conceal(raw.decode("latin-1")))
        return {"base64": b64encode(shown.encode("latin-1")).decode("ascii")}


def _http_members(http: Http) -> dict[str, object]:
    members: dict[str, object] = {"method": http.method, "path": http.path}
    members |= {"status": http.status, "headers": http.headers}
    return {name: value for name, value in members.items() if value or value == {}}


# Reading


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
        line=line,
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
}


def _malformed(value: dict[str, Any]) -> str:
    if value.get("from") not in ("client", "server", None):
        return "'from' must be client or server"
    for name, (kinds, called) in _TYPES.items():
        item = value.get(name)
        if item is not None and (not isinstance(item, kinds) or isinstance(item, bool)):
            return f"{name!r} must be {called}"
    http = value.get("http") or {}
    headers, status = http.get("headers"), http.get("status")
    if headers is not None and type(headers) is not dict:
        return "'headers' must be an object"
    if status is not None and type(status) is not int:
        return "'status' must be an integer"
    return ""


def _http(value: dict[str, Any]) -> Http:
    headers = value.get("headers")
    plain = None if headers is None else {name: str(item) for name, item in headers.items()}
    return Http(
        str(value.get("method") or "").upper(),
        str(value.get("path") or ""),
        value.get("status"),
        plain,
    )

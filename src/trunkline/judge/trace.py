"""Recordings of conversations: JSON Lines, a header and then one message per line.

    {"trunkline-trace": 1}
    {"at": 0.0, "from": "client", "transport": "stdio", "message": {"jsonrpc": "2.0", …}}

A file of bare JSON-RPC messages is a recording as well, one that does not say who sent what.
Reading goes line by line and keeps none; a line that cannot be read becomes a `TraceFault`,
and the next one is read. Secrets are hidden when an entry is written, and not before: what
is read back is what the file says.
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

# What tells an entry from a bare message, which may have members of any name.
_BARE: Final = frozenset(("jsonrpc", "method", "id", "result", "error", "params"))

_read: Final = Decoder().decode
_write: Final = Encoder().encode
StreamId: TypeAlias = str | int


class Http(Struct, frozen=True):
    """What HTTP says around a message: `method` and `path` of a request, `status` of an answer."""

    method: str = ""
    path: str = ""
    status: int | None = None
    # None where they were not recorded: then nothing is lacking.
    headers: Mapping[str, str] | None = None

    def header(self, name: str) -> str | None:
        """Return a header, however its name is capitalised, or None."""
        for each, value in (self.headers or {}).items():
            if each.lower() == name:
                return value
        return None


class TraceEntry(Struct, frozen=True):
    """One thing that was sent. `message` is JSON; `raw` is the text, where that says more."""

    at: float | None = None
    sender: Role | None = None
    transport: str = ""
    message: Any = NOTHING
    raw: str | bytes | None = None
    http: Http | None = None
    # An HTTP request and all that answers it are one stream.
    stream: StreamId | None = None
    connection: StreamId | None = None
    # The fields of a server-sent event beside its data: id, event, retry.
    event: Mapping[str, Any] | None = None
    # Whether the stream ended here, properly, by the will of the sender.
    ends: bool = False
    line: int | None = None


class TraceFault(Struct, frozen=True):
    """A line that is no entry, and why."""

    line: int
    why: str


def read_trace(lines: Iterable[str | bytes]) -> Iterator[TraceEntry | TraceFault]:
    """Yield what each line holds. Blank lines and the header are passed over."""
    for number, line in enumerate(lines, 1):
        text = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        text = text.strip()
        if not text:
            continue
        try:
            value = _read(text)
        except UNREADABLE:
            yield TraceFault(number, "this line is not JSON")
            continue
        if type(value) is dict and HEADER in value:
            if value[HEADER] != VERSION:
                yield TraceFault(number, f"this reads version {VERSION} of the format")
            continue
        yield _entry(value, text, number)


def write_entry(entry: TraceEntry) -> bytes:
    """Return an entry as one line, its end included, with all secrets hidden.

    Raises:
        RecursionError: the message contains itself, or nests deeper than can be written.
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
    # Written once as it is: what contains itself is refused here, before a copy without end.
    _write(given)
    return _write(conceal(given)) + b"\n"


class TraceWriter:
    """Writes a recording: the header at once, then each entry it is given.

    `write` takes bytes: that of a file opened in binary mode, say.
    """

    def __init__(self, write: Callable[[bytes], object], **about: object) -> None:
        self._write = write
        write(_write(conceal({HEADER: VERSION, **about})) + b"\n")

    def write(self, entry: TraceEntry) -> None:
        """Write one entry, with all secrets hidden."""
        self._write(write_entry(entry))


def _bytes(raw: bytes) -> dict[str, object]:
    """Return the member that holds bytes: as text if they are, else as they are."""
    try:
        return {"raw": raw.decode("utf-8")}
    except UnicodeDecodeError:
        # Hidden before it is encoded: in base64 nothing looks like a secret. Each byte is one
        # character here, and what hides a secret is ASCII.
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
        return TraceFault(line, "an entry is an object")
    fault = _misfit(value)
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


# The members whose type matters, and what each may be.
_TYPES: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "at": ((int, float), "a number of seconds"),
    "transport": ((str,), "text"),
    "raw": ((str,), "text"),
    "http": ((dict,), "an object"),
    "stream": ((str, int), "text or a number"),
    "connection": ((str, int), "text or a number"),
    "event": ((dict,), "an object"),
}


def _misfit(value: dict[str, Any]) -> str:
    """Return why an object is no entry, or nothing."""
    if value.get("from") not in ("client", "server", None):
        return "'from' is client or server"
    for name, (kinds, called) in _TYPES.items():
        item = value.get(name)
        if item is not None and (not isinstance(item, kinds) or isinstance(item, bool)):
            return f"{name!r} is {called}"
    http = value.get("http") or {}
    headers, status = http.get("headers"), http.get("status")
    if headers is not None and type(headers) is not dict:
        return "'headers' is an object"
    if status is not None and type(status) is not int:
        return "'status' is a whole number"
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

"""Writes recordings: the entry that is kept of a frame, and its line in the file.

The rules that live here, and only here:

* Secrets are hidden before anything else sees an entry, and the entry lists the places. The
  judge of a live connection reads the same entry as the judge of its recording.
* Faults that only the text shows, such as a duplicate name, are kept beside the message.
* A frame that is not JSON is read by a tolerant reader, and its value is kept with secrets
  hidden. If that fails too, its length, a digest, its method and its id are kept, and none of
  its other bytes: without its structure there is no telling what is a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from ...errors import NOTHING
from ...jsonrpc.codec.decode_errors import kind_of, read_json
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.codec.tokenizer import message_heads
from ...redaction import HIDDEN, conceal, conceal_message, may_hide
from ...spec.jsonrpc import RULES
from ..messages.envelope import text_faults
from .reader import HEADER, VERSION, TextFault, TraceEntry, TraceHttp, UnreadFrame

if TYPE_CHECKING:
    from ...jsonrpc.framing.framing import Fault

__all__ = ["TraceWriter", "capture", "encode_entry", "frame_entry", "write_entry"]

# Beyond this the tolerant reader, which makes a Python call for each number, is not tried.
MAX_TOLERANT_BYTES: Final = 4 * 1024 * 1024
# Searched for the method and the id of a frame that cannot be read.
MAX_OUTLINE_BYTES: Final = 65536
# A longer number is kept as text.
_MAX_DIGITS: Final = 300
_METHOD: Final = rb'"method"\s*+:\s*+"([\w$./-]{1,128}+)"'

_read: Final = Decoder().decode
_write: Final = Encoder().encode


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


def write_entry(entry: TraceEntry) -> bytes:
    """Return an entry as one line with its line break, secrets redacted.

    Raises:
        RecursionError: the message contains itself, or nests too deep to be written.
    """
    return encode_entry(capture(entry))


def frame_entry(frame: bytes | Fault, entry: TraceEntry) -> TraceEntry:
    """Return `entry` with what is kept of a frame, or of one that could not be framed."""
    if isinstance(frame, bytes):
        return capture(replace(entry, raw=frame))
    head: bytes = getattr(frame, "head", b"")
    size = getattr(frame, "size", None)
    unread = _outline(head, len(head) if size is None else size, "")
    faults = (_fault("jsonrpc.limit.message-size"),) if head else ()
    return replace(entry, unread=unread, faults=faults)


def capture(entry: TraceEntry) -> TraceEntry:
    """Return an entry as it is recorded: secrets hidden, and no text.

    Raises:
        RecursionError: the message contains itself, or nests too deep to be written.
    """
    if entry.message is not NOTHING:
        return _with_message(entry, entry.message)
    if entry.unread is not None and entry.unread.value is not NOTHING:
        value, hidden = _hide(entry.unread.value)
        unread = replace(entry.unread, value=value)
        return replace(entry, unread=unread, hidden=_joined(entry.hidden, hidden))
    if entry.raw is None:
        return entry
    raw = entry.raw
    data = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    try:
        value = read_json(data)
    except UNREADABLE:
        return _unread(replace(entry, raw=None), data) if data.strip() else entry
    faults = tuple(TextFault(each.rule, each.where, each.expected) for each in text_faults(data))
    return _with_message(replace(entry, faults=faults), value)


def _with_message(entry: TraceEntry, message: Any) -> TraceEntry:
    shown, hidden = _hide(message)
    return replace(entry, message=shown, raw=None, hidden=_joined(entry.hidden, hidden))


def _hide(value: Any) -> tuple[Any, list[str]]:
    # Encoded first: a value that contains itself fails here, not in an endless copy.
    return conceal_message(value) if may_hide(_write(value)) else (value, [])


def _joined(before: tuple[str, ...], now: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*before, *now)))


# -- what cannot be read ---------------------------------------------------------------------


def _unread(entry: TraceEntry, data: bytes) -> TraceEntry:
    faults = tuple(TextFault(each.rule, each.where, each.expected) for each in text_faults(data))
    faults = faults or (_fault("jsonrpc.text.json"),)
    value = _tolerant(data) if len(data) <= MAX_TOLERANT_BYTES else NOTHING
    if value is NOTHING:
        digest = f"sha256:{sha256(data).hexdigest()}"
        return replace(entry, unread=_outline(data, len(data), digest), faults=faults)
    shown, hidden = _hide(value)
    unread = UnreadFrame(length=len(data), value=shown)
    return replace(entry, unread=unread, faults=faults, hidden=_joined(entry.hidden, hidden))


def _fault(rule: str) -> TextFault:
    return TextFault(rule, "", RULES[rule].expected)


def _outline(data: bytes, length: int, digest: str) -> UnreadFrame:
    head = data[:MAX_OUTLINE_BYTES]
    found = message_heads(head) if kind_of(head) == "object" else []
    is_call = len(found) == 1 and b"method" in found[0].names
    methods = re.findall(_METHOD, head) if is_call else []
    return UnreadFrame(
        length=length,
        digest=digest,
        method=str(conceal(methods[0].decode("ascii"))) if len(methods) == 1 else "",
        id=_shown_id(found[0].id) if len(found) == 1 else None,
    )


def _shown_id(id: int | str | None) -> int | str | None:
    if not isinstance(id, str):
        return id
    return str(conceal(id)) if len(id) <= 128 and id.isprintable() else None


def _tolerant(data: bytes) -> Any:
    """Return the value of a text that is almost JSON, or NOTHING.

    Bad UTF-8 and lone surrogates become U+FFFD, numbers that fit no double become text.
    """
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    try:
        value = json.loads(
            text, strict=False, parse_int=_integer, parse_float=_double, parse_constant=str
        )
        if not isinstance(value, dict | list):
            return NOTHING
        written = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        return _read(written.decode("utf-16-le", "replace"))
    except (ValueError, RecursionError):
        return NOTHING


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= _MAX_DIGITS else text


def _double(text: str) -> float | str:
    number = float(text) if len(text) <= _MAX_DIGITS else float("inf")
    return number if isfinite(number) else text


# -- the line --------------------------------------------------------------------------------


def encode_entry(entry: TraceEntry) -> bytes:
    """Return an entry of `capture` as one line with its line break."""
    about: dict[str, object] = {"at": entry.at, "from": entry.sender}
    about["transport"] = entry.transport or None
    if entry.http is not None:
        about["http"] = _http_members(entry.http)
    about |= {"stream": entry.stream, "connection": entry.connection, "event": entry.event}
    about["ends"] = entry.ends or None
    concealed = conceal({name: value for name, value in about.items() if value is not None})
    members: dict[str, object] = dict(concealed)  # type: ignore[call-overload]  # a copy of it
    if entry.message is not NOTHING:
        members["message"] = entry.message
    elif entry.unread is not None:
        members["unread"] = _unread_members(entry.unread)
    elif entry.raw is not None:
        members["raw"] = ""  # an empty body
    if entry.faults:
        members["faults"] = [_fault_members(each) for each in entry.faults]
    if entry.hidden:
        members["hidden"] = entry.hidden
    line = _write(members)
    if not entry.hidden and HIDDEN.encode() in line:
        # A peer sent the placeholder itself: nothing was hidden.
        line = _write({**members, "hidden": ()})
    return line + b"\n"


def _unread_members(unread: UnreadFrame) -> dict[str, object]:
    members: dict[str, object] = {"length": unread.length, "digest": unread.digest}
    members |= {"method": unread.method, "id": unread.id}
    kept = {name: value for name, value in members.items() if value is not None and value != ""}
    return kept if unread.value is NOTHING else {**kept, "value": unread.value}


def _fault_members(fault: TextFault) -> dict[str, str]:
    members = {"rule": fault.rule, "where": fault.where, "expected": fault.expected}
    return {name: value for name, value in members.items() if value}


def _http_members(http: TraceHttp) -> dict[str, object]:
    members: dict[str, object] = {"method": http.method, "path": http.path}
    members |= {"status": http.status, "headers": http.headers}
    return {name: value for name, value in members.items() if value or value == {}}

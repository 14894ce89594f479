"""Reads a listing from a file.

The file holds the document of `trunkline list -o json`, the result of a `tools/list`, an array
of tools, or a recording of a conversation with list requests. In a recording the last list that
was requested from its first page counts; its pages are joined.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.json import Decoder

from ...errors import NOTHING
from ...jsonrpc.codec.decoders import UNREADABLE
from ...redaction import show_json
from ..trace.reader import HEADER, TraceFault, read_trace
from .compare import PARTS

__all__ = ["FORMAT", "read_listing"]

FORMAT: Final = "trunkline.listing/1"

_METHODS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_HELLO: Final = frozenset(("initialize", "server/discover"))
# Requests without a reply: bounds the memory for a recording of nothing else.
_MAX_OPEN_REQUESTS: Final = 10_000

_read: Final = Decoder().decode


def read_listing(data: bytes | str) -> dict[str, Any]:
    """Return the listing that a file holds.

    Raises:
        ValueError: it holds no listing; the text says what it holds instead.
    """
    text = (data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data).strip()
    text = text.removeprefix(b"\xef\xbb\xbf")
    if not text:
        raise ValueError("it is empty")
    try:
        value = _read(text)
    except UNREADABLE:
        return _from_lines(text)
    if isinstance(value, list) and not _is_recorded(value):
        if not all(isinstance(each, dict) and "name" in each for each in value):
            raise ValueError("it is an array, but not of tools")
        return {"tools": value}
    if isinstance(value, dict) and not _is_recorded([value]):
        return _from_object(value)
    return _from_lines(text)


def _is_recorded(values: list[Any]) -> bool:
    # Messages, or entries of a recording.
    first = values[0] if values else None
    return isinstance(first, dict) and any(name in first for name in ("jsonrpc", "message", HEADER))


def _from_object(value: dict[str, Any]) -> dict[str, Any]:
    form = value.get("format", FORMAT)
    if form != FORMAT:
        raise ValueError(f"its format is {show_json(form)}, expected {show_json(FORMAT)}")
    parts = [name for name in PARTS if name in value]
    if not parts and "format" not in value:
        raise ValueError("it is an object without tools, prompts or resources")
    for name in parts:
        if not isinstance(value[name], list):
            raise ValueError(f"its {name} are not an array")
    return value


# Recordings


def _from_lines(text: bytes) -> dict[str, Any]:
    pages = _PageCollector()
    is_recording = False
    why = ""
    for entry in read_trace(text.splitlines()):
        if isinstance(entry, TraceFault):
            why = why or entry.why
            continue
        is_recording = True
        message = entry.message
        if message is NOTHING:
            continue
        for each in message if isinstance(message, list) else [message]:
            pages.take(each, entry.connection)
    if not is_recording:
        raise ValueError(f"it is neither a listing nor a recording: {why or 'no message in it'}")
    return pages.listing()


class _PageCollector:
    def __init__(self) -> None:
        self._listing: dict[str, Any] = {}
        self._unfinished: set[str] = set()
        self._open: dict[Any, tuple[str, bool]] = {}

    def listing(self) -> dict[str, Any]:
        if not any(part in self._listing for part in PARTS):
            raise ValueError("it is a recording without a list request")
        if self._unfinished:
            parts = ", ".join(sorted(self._unfinished))
            raise ValueError(f"the recording ends before the last page of {parts}")
        return self._listing

    def take(self, message: Any, connection: Any) -> None:
        if not isinstance(message, dict):
            return
        id = message.get("id")
        if not isinstance(id, str | int):
            return
        # 1 and "1" are different ids; the sender does not matter, since only servers list.
        key = (connection, type(id), id)
        method, result = message.get("method"), message.get("result")
        if isinstance(method, str) and (method in _METHODS or method in _HELLO):
            params = message.get("params")
            is_first = not isinstance(params, dict) or params.get("cursor") is None
            self._open[key] = (method, is_first)
            if len(self._open) > _MAX_OPEN_REQUESTS:
                del self._open[next(iter(self._open))]
        elif isinstance(result, dict):
            method, is_first = self._open.pop(key, (_method_of(result), True))
            if method in _HELLO:
                self._hello(result)
            elif method in _METHODS:
                self._page(_METHODS[method], result, is_first=is_first)

    def _hello(self, result: dict[str, Any]) -> None:
        for name, member in (
            ("serverInfo", "server"),
            ("protocolVersion", "revision"),
            ("capabilities", "capabilities"),
            ("supportedVersions", "supportedVersions"),
        ):
            if name in result:
                self._listing[member] = result[name]

    def _page(self, part: str, result: dict[str, Any], *, is_first: bool) -> None:
        entries = result.get(part)
        if not isinstance(entries, list):
            raise ValueError(f"a result in it has no array of {part}")
        kept = self._listing.get(part, [])
        self._listing[part] = list(entries) if is_first else kept + entries
        if isinstance(result.get("nextCursor"), str):
            self._unfinished.add(part)
        else:
            self._unfinished.discard(part)


def _method_of(result: dict[str, Any]) -> str:
    # For a result whose request was not recorded.
    for method, part in _METHODS.items():
        if isinstance(result.get(part), list):
            return method
    return ""

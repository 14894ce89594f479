"""What a tool gave back, as the type that the caller asked for.

The result is read when it comes, apart from `structuredContent`: that is read when the value,
or the plain content, is first asked for, and straight into the type that was wanted.

The rules that live here, and only here:

* In 2025-06-18 and 2025-11-25 structured content is an object, so a server wraps what is
  none as `{"result": value}`; it is unwrapped where the object itself does not fit.
* A tool that failed has content and no value: asking for its value raises.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

from msgspec import UNSET, Raw, UnsetType

from ..errors import NOTHING, RemoteProtocolError, ToolFailed
from ..jsonrpc.faults import UNREADABLE
from ..mcp.types import CallToolResult, ContentBlock, TextContent
from ..redaction import show
from .reading import decoder, read, where_and_what

__all__ = ["ToolResult", "tool_result"]

T = TypeVar("T")


class _Answer(CallToolResult, frozen=True):
    """A result of `tools/call` whose structured content is not read yet."""

    structured_content: Raw | UnsetType = UNSET


class ToolResult(Generic[T]):
    """The result of a tool: its content as it came, and its value as the type asked for."""

    __slots__ = ("_answer", "_plain", "_revision", "_type", "_value")

    def __init__(self, answer: _Answer, kind: Any, revision: str) -> None:
        self._answer = answer
        self._type = kind
        self._revision = revision
        self._value: Any = NOTHING
        self._plain: Any = NOTHING

    @property
    def content(self) -> list[ContentBlock]:
        """The blocks that a model would be shown."""
        return self._answer.content

    @property
    def is_error(self) -> bool:
        """Whether the tool ran and failed; `text` then says why."""
        return self._answer.is_error is True

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the result; empty where there is none."""
        meta = self._answer.meta
        return {} if meta is UNSET else meta

    @property
    def text(self) -> str:
        """The text blocks, one below the other; empty where there are none."""
        blocks = self._answer.content
        return "\n".join([block.text for block in blocks if isinstance(block, TextContent)])

    @property
    def structured_content(self) -> Any:
        """The structured content as plain JSON values, or None where there is none."""
        if self._plain is NOTHING:
            raw = self._answer.structured_content
            self._plain = None if raw is UNSET else _decode(raw, Any)
        return self._plain

    @property
    def value(self) -> T:
        """What the tool returned: the structured content, else the text.

        Raises:
            ToolFailed: the tool ran and failed; the text is what it said.
            RemoteProtocolError: what came does not fit the type that was asked for.
        """
        if self._value is NOTHING:
            if self.is_error:
                raise ToolFailed(self.text or "the tool failed and did not say why", self)
            self._value = self._read_value()
        return cast(T, self._value)

    def _read_value(self) -> Any:
        kind, raw = self._type, self._answer.structured_content
        if kind is None:
            return self.text if raw is UNSET else self._plain_value()
        if raw is not UNSET:
            return self._read_structured(kind, raw)
        if kind is str:
            return self.text
        return _decode(self.text.encode("utf-8", "surrogatepass"), kind, "/content")

    def _read_structured(self, kind: Any, raw: Raw) -> Any:
        try:
            return _decode(raw, kind)
        except RemoteProtocolError:
            inner = _unwrapped(raw)
            if inner is None:
                raise
            return _decode(inner, kind, "/structuredContent/result")

    def _plain_value(self) -> Any:
        """Return the structured content as the tool meant it.

        Some revisions take objects alone, and some servers send nothing else, so a value that
        is none comes as `{"result": value}`. An object that only looks so is told by its text,
        which is that of the whole.
        """
        found = self.structured_content
        if type(found) is dict and found.keys() == {"result"}:
            inner, text = found["result"], self.text
            if type(inner) is str:
                return inner if text == inner else found
            try:
                return (
                    inner if _decode(text.encode("utf-8", "surrogatepass"), Any) == inner else found
                )
            except RemoteProtocolError:
                return found
        return found

    def __repr__(self) -> str:
        failed = ", is_error=True" if self.is_error else ""
        return f"ToolResult({show(self.text)}, {len(self.content)} blocks{failed})"


def tool_result(raw: Raw, kind: type[T] | None, revision: str) -> ToolResult[T]:
    """Return what a result of `tools/call` holds.

    Raises:
        RemoteProtocolError: it is no such result.
    """
    return ToolResult(read(raw, _Answer, "tools/call", revision), kind, revision)


def _unwrapped(raw: Raw) -> Raw | None:
    """Return the value within `{"result": value}`, or None where that is not what there is."""
    try:
        members: dict[str, Raw] = decoder(dict[str, Raw])(raw)
    except UNREADABLE:
        return None
    return members["result"] if list(members) == ["result"] else None


def _decode(raw: Raw | bytes, kind: Any, where: str = "/structuredContent") -> Any:
    try:
        return decoder(kind)(raw)
    except UNREADABLE as error:
        place, what = where_and_what(error)
    name = getattr(kind, "__name__", None) or str(kind)
    raise RemoteProtocolError("mcp.type.json-type", where=where + place, expected=f"{name}: {what}")

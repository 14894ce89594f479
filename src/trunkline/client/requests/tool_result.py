"""`ToolResult`: the result of a tool call, with its value as the type that was requested.

The result is decoded when it arrives, except `structuredContent`: that is decoded on first use,
directly into the requested type.

The rules that live here, and only here:

* In 2025-06-18 and 2025-11-25 structured content is an object, so servers wrap any other value as
  `{"result": value}`; some servers do so in every revision, so the revision is not considered.
  Such an object is unwrapped, unless the type has a member `result`, or may have one: then the
  text content decides, which is that of the intended value.
* A tool that failed has content and no value: `value` raises.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Generic, TypeVar, cast

from msgspec import UNSET, Raw, UnsetType
from msgspec.json import Decoder

from ...errors import NOTHING, RemoteProtocolError, ToolFailed
from ...jsonrpc.decode_errors import UNREADABLE
from ...mcp.types import CallToolResult, ContentBlock, TextContent
from ...redaction import show
from .decode import decoder, look_again, where_and_what

__all__ = ["ToolResult", "tool_result"]

T = TypeVar("T")


class _CallResult(CallToolResult, frozen=True):
    """A result of `tools/call` with undecoded structured content."""

    structured_content: Raw | UnsetType = UNSET


# Created at import: every tool call uses it.
_read_answer: Final = Decoder(_CallResult).decode


class ToolResult(Generic[T]):
    """The result of a tool: its content as received, and its value as the requested type."""

    __slots__ = ("_answer", "_plain", "_type", "_value")

    def __init__(self, answer: _CallResult, kind: Any) -> None:
        self._answer = answer
        self._type = kind
        self._value: Any = NOTHING
        self._plain: Any = NOTHING

    @property
    def content(self) -> list[ContentBlock]:
        """The content blocks, for a model."""
        return self._answer.content

    @property
    def is_error(self) -> bool:
        """Whether the tool ran and failed; `text` then says why."""
        return self._answer.is_error is True

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the result; empty if it has none."""
        meta = self._answer.meta
        return {} if meta is None else meta

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines; empty if there are none."""
        blocks = self._answer.content
        return "\n".join([block.text for block in blocks if isinstance(block, TextContent)])

    @property
    def structured_content(self) -> Any:
        """The structured content as plain JSON values, or None if there is none."""
        if self._plain is NOTHING:
            raw = self._answer.structured_content
            self._plain = None if raw is UNSET else _decode(raw, Any)
        return self._plain

    @property
    def has_value(self) -> bool:
        """Whether the result has structured content, null included; else `value` is the text."""
        return self._answer.structured_content is not UNSET

    @property
    def value(self) -> T:
        """What the tool returned: the structured content, else the text.

        Raises:
            ToolFailed: the tool ran and failed; the text is its error message.
            RemoteProtocolError: the value does not match the requested type.
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
        inner = _unwrapped(raw)
        if inner is None:
            return _decode(raw, kind)
        tries = [(inner, "/structuredContent/result"), (raw, "/structuredContent")]
        if _may_have_result(kind) and not self._says(_decode(inner, Any)):
            tries.reverse()
        try:
            return _decode(tries[0][0], kind, tries[0][1])
        except RemoteProtocolError as error:
            try:
                return _decode(tries[1][0], kind, tries[1][1])
            except RemoteProtocolError:
                raise error from None

    def _plain_value(self) -> Any:
        """Return the structured content, unwrapped if necessary."""
        found = self.structured_content
        if type(found) is dict and found.keys() == {"result"} and self._says(found["result"]):
            return found["result"]
        return found

    def _says(self, value: Any) -> bool:
        """Return True if the text content is that of `value`."""
        text = self.text
        if type(value) is str:
            return text == value
        try:
            return bool(_decode(text.encode("utf-8", "surrogatepass"), Any) == value)
        except (RemoteProtocolError, RecursionError):
            return False

    def __repr__(self) -> str:
        failed = ", is_error=True" if self.is_error else ""
        return f"ToolResult({show(self.text)}, {len(self.content)} blocks{failed})"


def tool_result(raw: Raw, kind: type[T] | None, revision: str) -> ToolResult[T]:
    """Decode a result of `tools/call`.

    Raises:
        NotComplete: it has another `resultType`.
        RemoteProtocolError: it is not a result of `tools/call`.
    """
    try:
        answer = _read_answer(raw)
    except UNREADABLE:
        answer = None  # decoded again below, so that an error has no decoder error as context
    if answer is None:
        answer = look_again(raw, _CallResult, "tools/call", revision)
    return ToolResult(answer, kind)


def _unwrapped(raw: Raw) -> Raw | None:
    """Return the value in `{"result": value}`, or None if it is not of that form."""
    try:
        members: dict[str, Raw] = decoder(dict[str, Raw])(raw)
    except UNREADABLE:
        return None
    return members["result"] if list(members) == ["result"] else None


@lru_cache(maxsize=512)
def _may_have_result(kind: Any) -> bool:
    """Return True if an object with the member `result` can be a value of a type."""
    # Imported here, as below: few results are wrapped.
    from msgspec import inspect

    return _takes_result(inspect.type_info(kind))


def _takes_result(info: Any) -> bool:
    from msgspec import inspect

    if isinstance(info, inspect.Metadata):
        return _takes_result(info.type)
    if isinstance(info, inspect.UnionType):
        return any(map(_takes_result, info.types))
    if isinstance(info, inspect.StructType | inspect.DataclassType | inspect.TypedDictType):
        return any(field.encode_name == "result" for field in info.fields)
    return isinstance(
        info, inspect.AnyType | inspect.DictType | inspect.RawType | inspect.CustomType
    )


def _decode(raw: Raw | bytes, kind: Any, where: str = "/structuredContent") -> Any:
    try:
        return decoder(kind)(raw)
    except UNREADABLE as error:
        place, what = where_and_what(error)
    name = getattr(kind, "__name__", None) or str(kind)
    raise RemoteProtocolError("mcp.type.json-type", where=where + place, expected=f"{name}: {what}")

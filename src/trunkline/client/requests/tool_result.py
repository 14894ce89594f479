"""`ToolResult`: the result of a tool call, with its value as the type that was requested.

The result is decoded when it arrives, except `structuredContent`: that is decoded on first use,
directly into the requested type.

The rules that live here, and only here:

* In 2025-06-18 and 2025-11-25 structured content is an object, so servers wrap any other value as
  `{"result": value}`; some servers do so in every revision, so the revision is not considered.
  Such an object is unwrapped, unless the type has a member `result`, or may have one: then the
  text content decides, which is that of the intended value, or of each item of a list.
* A server of this library marks what it wrapped where the text is not that of the value.
* A result without content and without structured content is None: a tool that returned none.
* A tool that failed has content and no value: `value` raises.
* A result that is sent on, by a handler that returns it, has no `_meta` of the connection it was
  received on: the name of the server, the task, the span.
* A value that is not of the requested type is not the server's fault alone: the type may be
  wrong, so the error is not one of the protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, Never, TypeVar, cast, final

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder, encode

from ...errors import NOTHING, RemoteProtocolError, ResultTypeMismatch, ToolFailed
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.messages import Shown
from ...mcp.meta import WRAPPED
from ...mcp.types import CallToolResult, ContentBlock, TextContent
from ...migration_hints import TOOL_RESULT_ATTRIBUTES, missing_attribute
from ...redaction import show
from ...spec.mcp.meta import META_KEYS
from ..session.decode import decode_again, decoder, look_again, type_name, where_and_what

__all__ = ["ErrorFlag", "ToolResult", "read_answer", "tool_result"]

T = TypeVar("T")


@final
class _CallResult(CallToolResult, frozen=True):
    """A result of `tools/call` with undecoded structured content."""

    structured_content: Raw | UnsetType = UNSET


class ErrorFlag(Shown, Struct, frozen=True, rename="camel"):
    """The one member of a result of `tools/call` that decides about its task."""

    is_error: bool | None = None


# Keys of `_meta` that are about one connection or one request.
_OF_CONNECTION: Final = frozenset(row.key for row in META_KEYS)
# Created at import: every tool call uses it.
read_answer: Final = Decoder(_CallResult).decode


class ToolResult(Generic[T]):
    """The result of a tool: its content as received, and its value as the requested type.

    A tool of a server may return it, which sends it on.
    """

    __slots__ = ("_answer", "_plain", "_type", "_value")

    def __init__(
        self, answer: _CallResult | None = None, kind: Any = None, **foreign: Never
    ) -> None:
        if answer is None:
            # In FastMCP a tool returns a class of this name.
            raise TypeError(
                "a client makes the ToolResult of a call; a tool returns a value, or "
                "ToolOutput(value, text=...) with a text of its own"
            )
        self._answer = answer
        self._type = kind
        self._value: Any = NOTHING
        self._plain: Any = NOTHING

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute("ToolResult", name, TOOL_RESULT_ATTRIBUTES, self)

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
        """What the tool returned: the structured content, else the text; None without content.

        Raises:
            ToolFailed: the tool ran and failed; the text is its error message.
            ResultTypeMismatch: the value is not of the requested type.
        """
        if self._value is NOTHING:
            if self.is_error:
                raise ToolFailed(self.text or "the tool failed and did not say why", self)
            self._value = self._read_value()
        return cast(T, self._value)

    def to_call_tool_result(self) -> CallToolResult:
        """Return the result as a server sends it: content, structure, `_meta` and error flag.

        Raises:
            RemoteProtocolError: the structured content is not JSON.
        """
        meta = {key: value for key, value in self.meta.items() if key not in _OF_CONNECTION}
        return CallToolResult(
            self.content,
            meta=meta or None,
            is_error=self._answer.is_error,
            # Decoded, because raw JSON may have line breaks, which end a message on stdio.
            structured_content=self.structured_content if self.has_value else UNSET,
        )

    def _read_value(self) -> Any:
        kind, raw = self._type, self._answer.structured_content
        if kind is None:
            if raw is not UNSET:
                return self._plain_value()
            return self.text if self._answer.content else None
        return self._read_text(kind) if raw is UNSET else self._read_structured(kind, raw)

    def _read_text(self, kind: Any) -> Any:
        """Return the text as a value of a type: the text itself, or what its JSON says."""
        if kind is str:
            return self.text
        takes_null, takes_only_texts = _texts_of(kind)
        if not self._answer.content and takes_null:
            return None
        if takes_only_texts:
            return self.text
        where = "/content"
        if not self._answer.content:
            raise ResultTypeMismatch(type_name(kind), where, "there is no content")
        written = self.text.encode("utf-8", "surrogatepass")
        try:
            return _decode(written, kind, where)
        except ResultTypeMismatch as error:
            # Texts are sent bare: that of an enum, a date, a UUID.
            try:
                return _decode(encode(self.text), kind, where)
            except (ResultTypeMismatch, UnicodeEncodeError):
                raise error from None

    def _read_structured(self, kind: Any, raw: Raw) -> Any:
        inner = _unwrapped(raw)
        if inner is None:
            return _decode(raw, kind)
        tries = [(inner, "/structuredContent/result"), (raw, "/structuredContent")]
        if _may_have_result(kind) and not self._is_wrapped(_decode(inner, Any)):
            tries.reverse()
        try:
            return _decode(tries[0][0], kind, tries[0][1])
        except ResultTypeMismatch as error:
            try:
                return _decode(tries[1][0], kind, tries[1][1])
            except ResultTypeMismatch:
                raise error from None

    def _plain_value(self) -> Any:
        """Return the structured content, unwrapped if necessary."""
        found = self.structured_content
        if type(found) is dict and found.keys() == {"result"}:
            return found["result"] if self._is_wrapped(found["result"]) else found
        return found

    def _is_wrapped(self, value: Any) -> bool:
        """Return True if `value`, the only member of an object, is what the tool returned."""
        return self.meta.get(WRAPPED) is True or self._says(value)

    def _says(self, value: Any) -> bool:
        """Return True if the text content is that of `value`, or has a text for each item."""
        if _is_text_of(self.text, value):
            return True
        if value is not None and type(value) is not list:
            return False
        # The official SDKs send an item per block, those of inner lists too, and none for null.
        texts = [each.text for each in self.content if isinstance(each, TextContent)]
        try:
            items = list(_items(value))
        except RecursionError:
            return False
        if not len(texts) == len(items) == len(self.content):
            return False
        return all(map(_is_text_of, texts, items))

    def __repr__(self) -> str:
        failed = ", is_error=True" if self.is_error else ""
        return f"ToolResult({show(self.text)}, {len(self.content)} blocks{failed})"


def tool_result(raw: Raw | _CallResult, kind: type[T] | None, revision: str) -> ToolResult[T]:
    """Decode a result of `tools/call`, unless `read_answer` has decoded it.

    Raises:
        NotComplete: it has another `resultType`.
        RemoteProtocolError: it is not a result of `tools/call`.
    """
    if type(raw) is _CallResult:
        return ToolResult(raw, kind)
    try:
        answer = read_answer(raw)
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


def _is_text_of(text: str, value: Any) -> bool:
    """Return True for the text of a value: its JSON, or a text itself."""
    if type(value) is str and text == value:
        return True
    try:
        return bool(_decode(text.encode("utf-8", "surrogatepass"), Any) == value)
    except (RemoteProtocolError, RecursionError):
        return False


def _items(value: Any) -> Iterator[Any]:
    """Yield what is in a list, and in lists in it, except null."""
    if type(value) is list:
        for each in value:
            yield from _items(each)
    elif value is not None:
        yield value


@lru_cache(maxsize=512)
def _texts_of(kind: Any) -> tuple[bool, bool]:
    """Return whether a type takes null, and whether it takes nothing but texts and null."""
    from msgspec import inspect

    info = inspect.type_info(kind)
    kinds = info.types if isinstance(info, inspect.UnionType) else (info,)
    null = any(isinstance(each, inspect.NoneType | inspect.AnyType) for each in kinds)
    return null, all(isinstance(e, inspect.StrType | inspect.NoneType) for e in kinds)


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
        try:
            return decode_again(raw, kind, error)
        except UNREADABLE as still:
            place, what = where_and_what(still)
    if kind is Any:
        raise RemoteProtocolError("mcp.type.json-type", where=where + place, expected=what)
    raise ResultTypeMismatch(type_name(kind), where + place, what)

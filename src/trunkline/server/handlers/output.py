"""The output of a tool: its schema, and each returned value as a `CallToolResult`.

`output_of(function)` reads the return annotation once and returns an `Output`, which renders
each value the tool returns.

How a value is rendered:

    a text, None, bytes, content blocks,    content alone; a text is not sent twice
    files
    `CallToolResult`, or the `ToolResult` of a client
                                            itself
    `ToolOutput(value, text=...)`           the value, with another text beside it; data in it is
                                            structured with any `output_schema`
    anything, if the annotation or `output_schema` gives a type
                                            `structuredContent`, and the same JSON as a text,
                                            or the text itself where the JSON is a string
    an object (dict, Struct, dataclass...), without an annotation
                                            `structuredContent`, and the same JSON as a text
    anything else, without an annotation
                                            its JSON as a text
    a list, if the annotation is `list` without items or of any
                                            its content blocks if it has some, else
                                            `structuredContent`, and the same JSON as a text

`-> str`, `-> None` and `-> str | None` promise a text or nothing, without structure;
`output_schema=str` asks for structure. With `output_schema=None` values are sent as text alone,
except that of a `ToolOutput`, which is structure on purpose.

A value is encoded once, and the JSON is decoded again by the promised type, so a result that
breaks its schema is found here and not by a client.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Never,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from msgspec import UNSET, DecodeError, Raw, Struct
from msgspec.json import Decoder, decode
from msgspec.structs import replace

from ...jsonrpc.messages import Shown
from ...mcp.meta import WRAPPED
from ...mcp.types import CallToolResult, TextContent
from .annotations import bare, plain
from .content import BLOCKS, Audio, File, Image, as_typed, blocks_of, contents_of, messages_of
from .custom_types import Adapted, read_custom
from .error_messages import fault
from .json_encoding import OutputMismatch, encoded, sendable
from .json_schema import check, schema_of
from .pydantic_models import is_model
from .signature import Handler

if TYPE_CHECKING:
    from .schema_validator import SchemaCheck

__all__ = [
    "DERIVE",
    "Output",
    "OutputMismatch",
    "ToolOutput",
    "contents_of",
    "messages_of",
    "output_of",
]

T = TypeVar("T")


class _OutputMarker:
    """A constant with a name of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


# Take the output schema from the return annotation.
DERIVE: Final[Any] = _OutputMarker("DERIVE")
# Nothing was promised.
_FREE: Final[Any] = _OutputMarker("FREE")


class _Given(Shown, Struct, Generic[T], frozen=True):
    value: T
    text: str | None = None


class ToolOutput(_Given[T], Generic[T], frozen=True, kw_only=True):
    """A structured value with a text of its own: `ToolOutput(forecast, text="Rain until noon")`.

    `text` replaces the value's JSON in the content: short for a reader, while programs use the
    structure. Beside a value that is an image, audio or a file, it comes first. `content` holds
    further blocks, texts or bytes; `meta` is the `_meta` of the result. `is_error` marks a tool
    that ran and failed; the value then need not fit the output schema. The value is structured
    content without an output schema too, unless it is a text, a content block or None; up to
    2025-11-25 structured content is an object.
    """

    content: Sequence[Any] = ()
    meta: dict[str, Any] | None = None
    is_error: bool = False


class Output:
    """The output of one tool: its schema, and how its values are rendered."""

    __slots__ = (
        "_check",
        "_given",
        "_is_open",
        "_promises",
        "_read",
        "_returned",
        "_schema",
        "_takes_texts",
        "_texts",
        "_trusted",
        "_type",
        "_wrapped",
        "_wraps",
        "label",
    )

    def __init__(
        self,
        handler: Handler,
        type_: Any,
        given: dict[str, Any] | None = None,
        *,
        hooked: bool = False,
        texts: tuple[type, ...] = (),
        is_open: bool = False,
    ) -> None:
        self.label = handler.label
        # The beginning of an error.
        self._returned = f"{handler.label} ({handler.location}) returned"
        self._type = type_  # _FREE: no promise; None: never structured
        self._promises = type_ is not _FREE and type_ is not None
        self._texts = texts  # what an annotation of texts allows; empty: anything
        # A list of anything, content blocks too: it has no schema that holds for both.
        self._is_open = is_open
        self._takes_texts = not self._promises and (not texts or str in texts)
        self._given = given
        self._check: SchemaCheck | None = None
        if given is not None:
            # Imported here: only a schema given as JSON needs it.
            from .schema_validator import SchemaCheck

            self._check = SchemaCheck(given)
        self._schema: dict[str, Any] | None = given
        self._wrapped: dict[str, Any] | None = None
        self._wraps: bool | None = None if self._promises else False
        if is_open:
            self._wraps = True
        # Values of these classes fit by themselves, and are not decoded again. A pydantic model
        # has checked itself, and may encode members under other names than it decodes.
        self._trusted = frozenset(filter(_is_trusted, _members(type_)))
        self._read: Callable[[bytes], Any] = self._first_hooked if hooked else self._first

    def __repr__(self) -> str:
        return f"<Output of {self.label}: {'structured' if self._promises else 'free'}>"

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the value, or None. It is cached: do not change it."""
        if self._schema is None and self._promises and not self._is_open:
            self._schema = schema_of(self._type)
        return self._schema

    @property
    def wraps(self) -> bool:
        """Whether revisions that allow only objects are sent `{"result": value}`."""
        if self._wraps is None:
            schema = self.schema
            self._wraps = schema is not None and schema.get("type") != "object"
        return self._wraps

    @property
    def wrapped(self) -> dict[str, Any] | None:
        """The schema for revisions that allow only objects: of the value, or of its wrapper."""
        if not self.wraps:
            return self.schema
        if self._wrapped is None and self.schema is not None:
            self._wrapped = _wrapping(self.schema, is_ours=self._given is None)
        return self._wrapped

    def render(self, value: Any) -> CallToolResult:
        """Return a value of the tool as its result; the structure is raw JSON, not wrapped.

        Raises:
            OutputMismatch: it cannot be encoded, or does not fit the output schema.
        """
        if type(value) is str and self._takes_texts and value.isascii():
            return CallToolResult(
                [TextContent(value)]
            )  # the most frequent, so without further calls
        if isinstance(value, ToolOutput):
            return self._around(value)
        if isinstance(value, CallToolResult):
            return self._passed(as_typed(value))
        if hasattr(type(value), _RECEIVED):
            return self._forwarded(value.to_call_tool_result())
        if self._is_open and (blocks := self._blocks(value)) is not None:
            return CallToolResult(blocks)
        if self._promises:
            written = self._fitting(value)
            return CallToolResult([_text(written)], structured_content=Raw(written))
        return self._free(value)

    def _blocks(self, value: Any) -> Any:
        """Return the content blocks in a list, or None if it is data, or not a list."""
        try:
            return blocks_of(value) if isinstance(value, list | tuple) else None
        except OutputMismatch as error:
            raise self._cannot_send(error) from None

    def _free(
        self, value: Any, *, is_error: bool = False, is_explicit: bool = False
    ) -> CallToolResult:
        try:
            blocks = blocks_of(value)
            written = b"" if blocks is not None else encoded(value)
        except OutputMismatch as error:
            if type(value).__name__ in _RESULT_NAMES:
                raise OutputMismatch(f"{self._returned} {_advice(type(value))}") from None
            raise self._cannot_send(error) from None
        if type(value).__name__ in _RESULT_NAMES and _is_foreign_result(type(value)):
            raise OutputMismatch(f"{self._returned} {_advice(type(value))}")
        if self._texts and not is_error and not isinstance(value, self._texts):
            wanted = " or ".join(_TEXT_NAMES[each] for each in self._texts)
            raise OutputMismatch(
                f"{self._returned} a value that does not fit its return annotation: "
                f"expected {wanted}, got a value of type {type(value).__name__}"
            )
        if blocks is not None:
            return CallToolResult(blocks)
        # Each revision with structured content allows objects; only the newest allows the rest.
        is_structure = is_explicit or (written[:1] == b"{" and self._type is not None)
        return CallToolResult(
            [_text(written)], structured_content=Raw(written) if is_structure else UNSET
        )

    def _around(self, result: ToolOutput[Any]) -> CallToolResult:
        promised = self._promises and not result.is_error
        inner = (
            self.render(result.value)
            if promised
            else self._free(result.value, is_error=result.is_error, is_explicit=True)
        )
        structured = inner.structured_content
        if self._promises and not promised:
            structured = UNSET  # an error need not fit the schema, so it is not sent as structure
        content = inner.content
        try:
            if result.text is not None:
                # It stands for the text of the value; an image or a file has none, and stays.
                others = [block for block in content if not isinstance(block, TextContent)]
                text = [TextContent(sendable(result.text))] if result.text else []
                content = [*text, *others]
            more = [block for each in result.content for block in blocks_of(each) or ()]
        except OutputMismatch as error:
            raise self._cannot_send(error) from None
        return CallToolResult(
            [*content, *more],
            meta=result.meta,
            is_error=result.is_error or None,
            structured_content=structured,
        )

    def _passed(self, result: CallToolResult) -> CallToolResult:
        if self._promises and not self._is_open and result.is_error is not True:
            if result.structured_content is UNSET:
                raise OutputMismatch(
                    f"{self._returned} a result without structured_content, which its "
                    f"output schema requires"
                )
            self._fitting(result.structured_content)
        return result

    def _forwarded(self, result: CallToolResult) -> CallToolResult:
        """Return a result of another server, which may have wrapped its value in an object."""
        try:
            return self._passed(result)
        except OutputMismatch:
            wrapped = result.structured_content
            if type(wrapped) is not dict or wrapped.keys() != {"result"}:
                raise
            meta = {key: each for key, each in (result.meta or {}).items() if key != WRAPPED}
            inner = replace(result, structured_content=wrapped["result"], meta=meta or None)
            return self._passed(inner)

    def _fitting(self, value: Any) -> bytes:
        """Return a value as JSON that fits the output schema."""
        try:
            written = encoded(value)
        except OutputMismatch as error:
            raise self._cannot_send(error) from None
        if type(value) in self._trusted:
            return written
        if self._check is not None:
            problem = self._check.problem(decode(written))
            if problem is not None:
                raise OutputMismatch(
                    f"{self._returned} a value that does not fit its output schema: {problem}"
                )
            return written
        try:
            self._read(written)
        except (DecodeError, RecursionError) as error:
            place, text = fault(error)
            where = f'"{place}": ' if place else ""
            raise OutputMismatch(
                f"{self._returned} a value that does not fit its output schema: {where}{text}"
            ) from None
        return written

    def _cannot_send(self, error: OutputMismatch) -> OutputMismatch:
        return OutputMismatch(f"{self._returned} a value that cannot be sent: {error}")

    def _first(self, written: bytes) -> Any:
        self._read = Decoder(self._type).decode
        return self._read(written)

    def _first_hooked(self, written: bytes) -> Any:
        self._read = Decoder(self._type, dec_hook=read_custom).decode
        return self._read(written)


def _text(written: bytes) -> TextContent:
    """Return JSON as a text block; a string is sent bare, as the text that it is."""
    return TextContent(decode(written) if written[:1] == b'"' else written.decode())


def output_of(function: Callable[..., Any], output_schema: Any = DERIVE) -> Output:
    """Return the output of `function`.

    `output_schema` is DERIVE for the return annotation, None for unstructured results, a type,
    or a JSON Schema as a dict, which is listed as it is.

    Raises:
        TypeError: the type has no JSON Schema; the text says why.
        BadSchema: the schema cannot be used.
        ImportError: checking a JSON Schema needs the `schema` extra.
    """
    handler = Handler(function)
    if output_schema is None:
        return Output(handler, None)
    if isinstance(output_schema, dict):
        return Output(handler, dict, output_schema)
    asked = output_schema is not DERIVE
    try:
        type_ = plain(output_schema) if asked else _promised(handler.returned())
        if type_ is _FREE:
            return Output(handler, _FREE, texts=_texts(handler.returned()))
        is_open = not asked and _is_open_list(handler.returned())
        return Output(handler, type_, hooked=check([type_]), is_open=is_open)
    except TypeError as error:
        if str(error).startswith(handler.label):
            raise
        returned = bare(handler.returned())
        if getattr(returned, "__name__", "") in _RESULT_NAMES:
            raise TypeError(f"{handler.label} returns {_advice(returned)}") from None
        raise TypeError(
            f"{handler.label}: its return type has no output schema: {error}; or pass "
            f"output_schema=None"
        ) from None


# -- return annotations ----------------------------------------------------------------------

# What the `ToolResult` of a client has; a server that has no client does not import it.
_RECEIVED: Final = "to_call_tool_result"
# Classes of results in other libraries. Those of these packages can be encoded, as any object.
_RESULT_NAMES: Final = ("ToolResult", "CallToolResult")
_FOREIGN: Final = ("mcp", "mcp_types", "fastmcp")
_TEXTS: Final = (str, NoneType, None)
_TEXT_NAMES: Final[dict[type, str]] = {str: "a text", NoneType: "None"}
_CONTENTS: Final = (*BLOCKS, CallToolResult, bytes, bytearray, Audio, File, Image)
_NOTHING_SAID: Final = (Any, object, inspect.Signature.empty, NoReturn, Never)
_ROWS: Final = (list, tuple, Sequence, Iterable)


def _promised(annotation: Any) -> Any:
    """Return the type of structured output that an annotation promises, or _FREE."""
    annotation = bare(annotation) if _is_content(bare(annotation)) else annotation
    origin = get_origin(annotation)
    if origin is ToolOutput:
        return _promised(get_args(annotation)[0])
    if origin in (Awaitable, Coroutine):
        return _promised(get_args(annotation)[-1])
    if _is_foreign_result(annotation):
        raise TypeError(f"it is {_advice(annotation)}")
    if annotation is ToolOutput or annotation in _NOTHING_SAID or isinstance(annotation, TypeVar):
        return _FREE
    if annotation in _TEXTS or _is_content(annotation) or _has_content(annotation):
        return _FREE
    if _is_union(annotation) and all(each in _TEXTS for each in get_args(annotation)):
        return _FREE
    return plain(annotation)


def _texts(annotation: Any) -> tuple[type, ...]:
    """Return what an annotation of texts and None alone allows; nothing for any other."""
    origin = get_origin(annotation)
    if origin is ToolOutput:
        return _texts(get_args(annotation)[0])
    if origin in (Awaitable, Coroutine):
        return _texts(get_args(annotation)[-1])
    kinds = get_args(annotation) if _is_union(annotation) else (annotation,)
    if not all(each in _TEXTS for each in kinds):
        return ()
    return tuple(NoneType if each is None else each for each in kinds)


def _is_open_list(annotation: Any) -> bool:
    """Return True for a list of which nothing is said but that it is one."""
    annotation = bare(annotation)
    origin, inner = get_origin(annotation) or annotation, get_args(annotation)
    if origin in (ToolOutput, Awaitable, Coroutine) and inner:
        return _is_open_list(inner[-1])
    return origin in (list, tuple, Sequence) and all(e in (Any, object, ...) for e in inner)


def _members(type_: Any) -> Iterable[Any]:
    """Return the types of a union that `unions` reads, or the type itself."""
    if isinstance(type_, type) and issubclass(type_, Adapted) and hasattr(type_.reader, "parts"):
        parts: Iterable[Any] = type_.reader.parts()
        return parts
    return (type_,)


def _is_trusted(type_: Any) -> bool:
    return type_ in (int, float, bool) or is_model(type_)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _is_content(annotation: Any) -> bool:
    """Return True for a content block, or a list of them and texts."""
    if annotation in _CONTENTS or hasattr(get_origin(annotation) or annotation, _RECEIVED):
        return True
    if get_origin(annotation) not in _ROWS:
        return False
    inner = [each for each in get_args(annotation) if each is not ...]
    flat = [each for one in inner for each in (get_args(one) if _is_union(one) else (one,))]
    return any(each in _CONTENTS for each in flat) and all(
        each in _CONTENTS or each is str for each in flat
    )


def _is_foreign_result(cls: Any) -> bool:
    """Return True for a class of results of another MCP library."""
    if getattr(cls, "__name__", "") not in _RESULT_NAMES:
        return False
    return str(cls.__module__).partition(".")[0] in _FOREIGN


def _advice(cls: Any) -> str:
    return (
        f"a {cls.__name__} of {cls.__module__}: return a ToolOutput of trunkline, as in "
        f"ToolOutput(value, text=...)"
    )


def _has_content(annotation: Any) -> bool:
    """Return True for a union with content: values of it are not always structured."""
    return _is_union(annotation) and any(
        _is_content(each) or each is ToolOutput or get_origin(each) is ToolOutput
        for each in get_args(annotation)
    )


def _wrapping(schema: dict[str, Any], *, is_ours: bool) -> dict[str, Any]:
    """Return the schema of `{"result": value}`."""
    inner = dict(schema)
    outer: dict[str, Any] = {}
    if "$schema" in inner:
        outer["$schema"] = inner.pop("$schema")
    outer |= {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    if is_ours and "$defs" in inner:
        outer["$defs"] = inner.pop("$defs")  # the target of its references
    elif not is_ours and "$id" not in inner and _refers(inner):
        # With an id of its own its references still start at its own root.
        inner["$id"] = "urn:trunkline:result"
    return outer


def _refers(value: Any) -> bool:
    if isinstance(value, dict):
        return "$ref" in value or "$dynamicRef" in value or any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))

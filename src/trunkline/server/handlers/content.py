"""Content blocks, resource contents and prompt messages, made of what handlers return.

A handler returns a text, bytes, a block, or a list of those. Whether a value is *structured*
is decided in `output`.

MCP wants a MIME type for bytes. It is found from the first few of them for the image and audio
formats that models take; other bytes are sent as a blob.
"""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from typing import Any, Final, TypeVar

from msgspec import Struct, ValidationError
from msgspec.json import Decoder

from ...mcp.types import (
    AudioContent,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    PromptMessage,
    ReadResourceResult,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from .json_encoding import OutputMismatch, encoded, sendable

__all__ = ["BLOCKS", "as_typed", "block_of_bytes", "blocks_of", "contents_of", "messages_of"]

S = TypeVar("S", bound=Struct)

Block = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

BLOCKS: Final = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)
_BYTES: Final = (bytes, bytearray)

# First bytes; the place of further bytes, and those; the MIME type.
_MARKS: Final = (
    (b"\x89PNG\r\n\x1a\n", 0, b"", "image/png"),
    (b"\xff\xd8\xff", 0, b"", "image/jpeg"),
    (b"GIF87a", 0, b"", "image/gif"),
    (b"GIF89a", 0, b"", "image/gif"),
    (b"RIFF", 8, b"WEBP", "image/webp"),
    (b"RIFF", 8, b"WAVE", "audio/wav"),
    (b"OggS", 0, b"", "audio/ogg"),
    (b"fLaC", 0, b"", "audio/flac"),
    (b"ID3", 0, b"", "audio/mpeg"),
    (b"\xff\xfb", 0, b"", "audio/mpeg"),
    (b"\xff\xf3", 0, b"", "audio/mpeg"),
    (b"\xff\xf2", 0, b"", "audio/mpeg"),
)
_UNKNOWN: Final = "application/octet-stream"
# A blob in the result of a tool needs a URI, though it cannot be read from there.
_NO_ADDRESS: Final = "urn:trunkline:blob"


def blocks_of(value: Any) -> list[Block] | None:
    """Return a value as content blocks, or None if it is data.

    A list is content if it holds a block or bytes, and otherwise only texts: a list of texts
    alone is data.
    """
    if isinstance(value, str):
        return [TextContent(sendable(value))]
    if value is None:
        return []
    if isinstance(value, BLOCKS):
        return [as_typed(value)]
    if isinstance(value, _BYTES):
        return [block_of_bytes(value)]
    if not isinstance(value, list | tuple) or not _is_mixed(value, (*BLOCKS, *_BYTES)):
        return None
    return [block for each in value for block in blocks_of(each) or ()]


def block_of_bytes(data: bytes | bytearray) -> Block:
    """Return bytes as image, audio or blob, by their first bytes."""
    kind = _kind(data)
    text = b64encode(data).decode("ascii")
    if kind.startswith("image/"):
        return ImageContent(text, kind)
    if kind.startswith("audio/"):
        return AudioContent(text, kind)
    return EmbeddedResource(ResourceContents(_NO_ADDRESS, blob=text, mime_type=kind))


def contents_of(value: Any, uri: str, mime_type: str | None = None) -> list[ResourceContents]:
    """Return what the handler of a resource returned as resource contents.

    A text is sent as it is, bytes as a blob, contents as they are; anything else as JSON.

    Raises:
        OutputMismatch: the value cannot be sent.
    """
    if isinstance(value, ReadResourceResult):
        return [_one_content(each) for each in as_typed(value).contents]
    if isinstance(value, ResourceContents):
        return [_one_content(as_typed(value))]
    if isinstance(value, list | tuple) and _is_mixed(value, (ResourceContents, *_BYTES)):
        return [item for each in value for item in contents_of(each, uri, mime_type)]
    if isinstance(value, str):
        text, kind = sendable(value), "text/plain"
    elif isinstance(value, _BYTES):
        blob = b64encode(value).decode("ascii")
        return [ResourceContents(uri, blob=blob, mime_type=mime_type or _kind(value))]
    else:
        text, kind = encoded(value).decode(), "application/json"
    return [ResourceContents(uri, text=text, mime_type=mime_type or kind)]


def messages_of(value: Any) -> GetPromptResult:
    """Return what the handler of a prompt returned as messages; a text or block is the user's.

    Raises:
        OutputMismatch: the value cannot be part of a message.
    """
    if isinstance(value, GetPromptResult):
        return as_typed(value)
    items = value if isinstance(value, list | tuple) else (value,)
    return GetPromptResult([_message(each) for each in items])


def _message(value: Any) -> PromptMessage:
    if isinstance(value, PromptMessage):
        if isinstance(value.content, str):  # a common mistake, with one meaning
            return PromptMessage(TextContent(sendable(value.content)), value.role)
        return as_typed(value)
    blocks = None if value is None or isinstance(value, list | tuple) else blocks_of(value)
    if not blocks:
        raise OutputMismatch(
            f"a prompt is made of texts, messages and content blocks, not of a value of type "
            f"{type(value).__name__}"
        )
    return PromptMessage(blocks[0], "user")


def as_typed(value: S) -> S:
    """Return a protocol type that a handler made, decoded as a client would.

    Raises:
        OutputMismatch: a field has the wrong type; the constructor of a Struct does not check.
    """
    try:
        return _decoder(type(value)).decode(encoded(value))  # type: ignore[no-any-return]  # read as it
    except ValidationError as error:
        raise OutputMismatch(f"it is not a valid {type(value).__name__}: {error}") from None


@lru_cache(maxsize=16)  # as many as there are types that handlers may return
def _decoder(kind: type[Struct]) -> Decoder[Any]:
    return Decoder(kind)


def _one_content(contents: ResourceContents) -> ResourceContents:
    if (contents.text is None) == (contents.blob is None):
        raise OutputMismatch("the contents of a resource have either a text or a blob")
    return contents


def _is_mixed(values: list[Any] | tuple[Any, ...], wanted: tuple[type, ...]) -> bool:
    return any(isinstance(each, wanted) for each in values) and all(
        isinstance(each, (str, *wanted)) for each in values
    )


def _kind(data: bytes | bytearray) -> str:
    for start, place, more, kind in _MARKS:
        if data.startswith(start) and data[place : place + len(more)] == more:
            return kind
    return _UNKNOWN

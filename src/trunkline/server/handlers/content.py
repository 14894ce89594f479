"""Content blocks, resource contents and prompt messages, made of what handlers return.

A handler returns a text, bytes, a block, a file, or a list of those. Whether a value is
*structured* is decided in `output`.

MCP wants a MIME type for bytes. It is found from the first few of them for common formats;
other bytes are sent as a blob. A file that they do not tell is known by the end of its name.
"""

from __future__ import annotations

import os
from base64 import b64encode
from functools import lru_cache
from typing import Any, Final, TypeVar

from msgspec import Struct, ValidationError
from msgspec.json import Decoder
from msgspec.structs import replace

from ...mcp.types import (
    AudioContent,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    PromptMessage,
    ReadResourceResult,
    ResourceContents,
    ResourceLink,
    Role,
    TextContent,
)
from ...redaction import redact, show
from .json_encoding import OutputMismatch, encoded, sendable

__all__ = [
    "BLOCKS",
    "AssistantMessage",
    "Audio",
    "File",
    "Image",
    "Media",
    "UserMessage",
    "as_typed",
    "block_of_bytes",
    "blocks_of",
    "contents_of",
    "messages_of",
]

S = TypeVar("S", bound=Struct)

Block = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

BLOCKS: Final = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)
_BYTES: Final = (bytes, bytearray)

# First bytes; the place of further bytes, and those; the MIME type.
_MARKS: Final = (
    (b"%PDF-", 0, b"", "application/pdf"),
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
    (b"\xff\xf1", 0, b"", "audio/aac"),
    (b"\xff\xf9", 0, b"", "audio/aac"),
    (b"FORM", 8, b"AIFF", "audio/aiff"),
    (b"", 4, b"ftypM4A ", "audio/mp4"),
    (b"", 4, b"ftypavif", "image/avif"),
    (b"", 4, b"ftypheic", "image/heic"),
    (b"", 4, b"ftypqt", "video/quicktime"),
    (b"", 4, b"ftyp", "video/mp4"),
    (b"\x1a\x45\xdf\xa3", 0, b"", "video/webm"),
    (b"II*\x00", 0, b"", "image/tiff"),
    (b"MM\x00*", 0, b"", "image/tiff"),
    (b"BM", 6, b"\x00\x00\x00\x00", "image/bmp"),  # reserved bytes of its header
    (b"\x00\x00\x01\x00", 0, b"", "image/x-icon"),
    (b"PK\x03\x04", 0, b"", "application/zip"),
    (b"PK\x05\x06", 0, b"", "application/zip"),
    (b"\x1f\x8b\x08", 0, b"", "application/gzip"),
    (b"BZh", 0, b"", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", 0, b"", "application/x-xz"),
    (b"7z\xbc\xaf\x27\x1c", 0, b"", "application/x-7z-compressed"),
    (b"\x28\xb5\x2f\xfd", 0, b"", "application/zstd"),
    (b"Rar!\x1a\x07", 0, b"", "application/vnd.rar"),
    (b"", 257, b"ustar", "application/x-tar"),
    (b"SQLite format 3\x00", 0, b"", "application/vnd.sqlite3"),
    (b"PAR1", 0, b"", "application/vnd.apache.parquet"),
    (b"\x00asm", 0, b"", "application/wasm"),
    (b"wOFF", 0, b"", "font/woff"),
    (b"wOF2", 0, b"", "font/woff2"),
    (b"{\\rtf", 0, b"", "application/rtf"),
)
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
# By the end of the name; a table of our own, because that of a system differs between systems.
_ENDINGS: Final = {
    "txt": "text/plain",
    "log": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
    "htm": "text/html",
    "css": "text/css",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "py": "text/x-python",
    "js": "text/javascript",
    "ts": "text/x-typescript",
    "xml": "application/xml",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "sql": "application/sql",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "docx": f"{_OFFICE}wordprocessingml.document",
    "xlsx": f"{_OFFICE}spreadsheetml.sheet",
    "pptx": f"{_OFFICE}presentationml.presentation",
    "epub": "application/epub+zip",
}
# Types that are sent as a text if they can be decoded; so are those that begin with "text/".
_TEXT_TYPES: Final = ("json", "jsonl", "xml", "yaml", "toml", "sql", "javascript")
_UNKNOWN: Final = "application/octet-stream"
# A blob in the result of a tool needs a URI, though it cannot be read from there.
_NO_ADDRESS: Final = "urn:trunkline:blob"


class Media:
    """Bytes of a file, with their MIME type; the base of `File`, `Image` and `Audio`.

    A file is read when the object is made, so that what cannot be read fails in the handler.
    """

    __slots__ = ("data", "mime_type", "name")

    _family = ""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        data: bytes | None = None,
        name: str | None = None,
        mime_type: str | None = None,
        format: str | None = None,
    ) -> None:
        """Read the file at `path`, or take `data`.

        `format` is a short form of `mime_type`: "png" is "image/png".

        Raises:
            TypeError: not exactly one of path and data is given.
            ValueError: the bytes are not of this kind, as far as they can be told.
            OSError: the file cannot be read.
        """
        if (path is None) == (data is None):
            raise TypeError(f"{type(self).__name__} takes either path= or data=")
        if path is not None:
            with open(path, "rb") as file:
                data = file.read()
            name = name or os.path.basename(os.fspath(path))
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data is bytes, not {type(data).__name__}")
        self.data = bytes(data)
        self.name = name or ""
        if format is not None and mime_type is None:
            family = self._family or "application/"
            mime_type = _ENDINGS.get(format.lower(), f"{family}{format.lower()}")
        self.mime_type = mime_type or _kind_of_file(self.data, self.name)
        if not self.mime_type.startswith(self._family):
            raise ValueError(
                f"{type(self).__name__} has a MIME type of its own, and {self.mime_type} is not "
                f"one: give mime_type={self._family + '...'!r}, or use File"
            )

    def __repr__(self) -> str:
        size = f"{len(self.data)} bytes"
        return f"<{type(self).__name__} {show(self.name)}, {redact(self.mime_type)}, {size}>"

    @property
    def block(self) -> Block:
        """The content block that is sent."""
        raise NotImplementedError

    def contents(self, uri: str) -> ResourceContents:
        """Return the contents of a resource; a text is sent as text."""
        text = _text_of(self.data, self.mime_type)
        if text is not None:
            return ResourceContents(uri, text=text, mime_type=self.mime_type)
        blob = b64encode(self.data).decode("ascii")
        return ResourceContents(uri, blob=blob, mime_type=self.mime_type)


class File(Media):
    """A file as the result of a tool: `File(path="report.pdf")` or `File(data=..., name=...)`.

    It is sent as an embedded resource, a text as text. The name of the file is sent and not the
    path; `mime_type` is found from the first bytes and the name.
    """

    __slots__ = ()

    @property
    def block(self) -> Block:
        """An embedded resource."""
        from urllib.parse import quote  # here: most servers send no files

        uri = f"file:///{quote(self.name)}" if self.name else _NO_ADDRESS
        return EmbeddedResource(self.contents(uri))


class Image(Media):
    """An image as the result of a tool: `Image(path="chart.png")` or `Image(data=...)`."""

    __slots__ = ()

    _family = "image/"

    @property
    def block(self) -> Block:
        """An image block."""
        return ImageContent(b64encode(self.data).decode("ascii"), self.mime_type)


class Audio(Media):
    """A sound as the result of a tool: `Audio(path="bell.wav")` or `Audio(data=...)`."""

    __slots__ = ()

    _family = "audio/"

    @property
    def block(self) -> Block:
        """An audio block."""
        return AudioContent(b64encode(self.data).decode("ascii"), self.mime_type)


class _Message:
    """A message of a prompt: a text, bytes, a file or a content block, with a role."""

    __slots__ = ("content",)

    role: Role

    def __init__(self, content: str | bytes | Block | Media) -> None:
        self.content = content

    def __repr__(self) -> str:
        return f"{type(self).__name__}({show(self.content)})"


class UserMessage(_Message):
    """A message of the user in a prompt: `UserMessage("Review this.")`."""

    __slots__ = ()

    role: Role = "user"


class AssistantMessage(_Message):
    """A message of the model in a prompt: `AssistantMessage("Here is my review.")`."""

    __slots__ = ()

    role: Role = "assistant"


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
    if isinstance(value, Media):
        return [value.block]
    if not isinstance(value, list | tuple) or not _is_mixed(value, (*BLOCKS, *_BYTES, Media)):
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
    if isinstance(value, Media):
        found = value.contents(uri)
        return [found if mime_type is None else replace(found, mime_type=mime_type)]
    if isinstance(value, list | tuple) and _is_mixed(value, (ResourceContents, Media, *_BYTES)):
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
    role: Role = "user"
    if isinstance(value, _Message):
        role, value = value.role, value.content
    blocks = None if value is None or isinstance(value, list | tuple) else blocks_of(value)
    if not blocks:
        raise OutputMismatch(
            f"a prompt is made of texts, messages and content blocks, not of a value of type "
            f"{type(value).__name__}"
        )
    return PromptMessage(blocks[0], role)


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


def _kind_of_file(data: bytes, name: str) -> str:
    """Return the MIME type of a file: by its first bytes, then by its name."""
    kind = _kind(data)
    ending = _ENDINGS.get(name.rpartition(".")[2].lower(), _UNKNOWN)
    # Several formats are archives, and only the name tells them apart.
    return ending if kind in (_UNKNOWN, "application/zip") and ending != _UNKNOWN else kind


def _text_of(data: bytes, mime_type: str) -> str | None:
    """Return the text of a type that is one, or None."""
    plain = mime_type.partition(";")[0]
    is_text = plain.startswith("text/") or plain.endswith(("+json", "+xml"))
    if not is_text and plain.removeprefix("application/") not in _TEXT_TYPES:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _kind(data: bytes | bytearray) -> str:
    for start, place, more, kind in _MARKS:
        if data.startswith(start) and data[place : place + len(more)] == more:
            return kind
    return _UNKNOWN

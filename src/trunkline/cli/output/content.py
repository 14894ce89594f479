"""Shows content blocks: text as it is, structured values as JSON, binary content as files.

Control characters are escaped, on a terminal and in a pipe alike: what a pipe carries may be
printed later. Newlines and tabs of a text are kept. `read --raw` and `-o json` lose nothing. JSON
is coloured on a terminal.

Images, audio and blobs are saved, and their path is shown. The file name is made from the name of
the tool or resource, which the server chooses: it never leaves the folder and never replaces a
file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TextIO

from msgspec import DecodeError
from msgspec.json import decode, encode, format

from ...errors import visible
from ..exit_codes import SUCCESS, USAGE_ERROR
from .terminal import highlighted, highlighted_document, tell, wants_colour

if TYPE_CHECKING:
    from io import RawIOBase

    from ...client.requests.tool_result import ToolResult
    from ...mcp.types import ContentBlock, ResourceContents

__all__ = [
    "SaveFolder",
    "blocks_shown",
    "contents_shown",
    "document_shown",
    "json_line",
    "json_shown",
    "json_text",
    "plain",
    "result_shown",
    "text_shown",
]

# White space that stays as it is.
_KEPT: Final = "\t\n\xa0\u3000"
# Common file extensions; `mimetypes`, which has the others, is slow to load.
_EXTENSIONS: Final = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/svg+xml": ".svg",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "application/pdf": ".pdf",
    "application/json": ".json",
    "text/plain": ".txt",
}
_MAX_NAME_LENGTH: Final = 60
# Names tried before saving fails.
_MAX_FILE_NUMBER: Final = 10_000


def plain(text: str) -> str:
    """Return a server's text with control characters escaped."""
    return visible(text.replace("\r\n", "\n"), kept=_KEPT)


def json_text(value: Any) -> str:
    """Return a value as indented JSON with control characters escaped."""
    try:
        text = format(encode(value), indent=2).decode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 form; `json` writes its escape.
        import json

        text = json.dumps(value, indent=2)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else _escape(each) for each in text)


def json_line(value: Any) -> str:
    """Return a value as JSON on one line; control characters are not escaped."""
    try:
        return encode(value).decode()
    except UnicodeEncodeError:
        import json

        return json.dumps(value)


def json_shown(value: Any, stream: TextIO | None = None) -> str:
    """Return a value as `json_text` does, coloured if `stream` (default: stdout) takes colour."""
    return highlighted(json_text(value), stream)


def document_shown(value: Any) -> str:
    """Return a JSON document for programs, coloured on a terminal only."""
    return highlighted_document(json_text(value))


def text_shown(text: str, stream: TextIO | None = None) -> str:
    """Return a server's text as `plain` does, coloured if it is JSON and `stream` takes colour."""
    shown = plain(text)
    return highlighted(shown, stream) if wants_colour(stream) and _is_json(text) else shown


def _is_json(text: str) -> bool:
    """Return True for an object or array: a number or a word is a text like any other."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        decode(text.encode("utf-8", "surrogatepass"))
    except (DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


class SaveFolder:
    """Saves binary content in a folder under new names; an error is kept for `status`."""

    def __init__(self, folder: str | None, stem: str) -> None:
        self._folder = "." if folder is None else folder
        self.is_given = folder is not None
        self._stem = _file_name(stem)
        self._next = 1
        self._problem = ""

    def save(self, data: str, mime_type: str) -> str:
        """Save Base64 data; return a line with the path, or why it was not saved."""
        from base64 import b64decode

        # On one line: a line break in it would look like a line of our own.
        kind = visible(mime_type or "bytes", kept="")
        try:
            raw = b64decode(data, validate=True)
        except ValueError:
            return f"[{kind}: not saved, it is not Base64]"
        try:
            path = self._write(raw, _extension(mime_type))
        except OSError as error:
            self._problem = error.strerror or str(error)
            return f"[{kind}: not saved, {len(raw)} bytes]"
        return f"saved {path} ({kind}, {len(raw)} bytes)"

    def status(self, prog: str) -> int:
        """Return the exit status; print the error if something was not saved."""
        if not self._problem:
            return SUCCESS
        tell(f"{prog}: cannot save in {self._folder!r}: {self._problem}")
        return USAGE_ERROR

    def _write(self, raw: bytes, extension: str) -> str:
        while self._next < _MAX_FILE_NUMBER:
            path = os.path.join(self._folder, f"{self._stem}-{self._next}{extension}")
            self._next += 1
            try:
                # "x" follows no link and replaces no file.
                with open(path, "xb", buffering=0) as file:
                    _write_all(file, path, raw)
            except FileExistsError:
                continue
            return path
        raise OSError(errno.EEXIST, f"it has {_MAX_FILE_NUMBER} files called {self._stem}-N")


def _write_all(file: RawIOBase, path: str, raw: bytes) -> None:
    rest = memoryview(raw)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        os.unlink(path)  # a partial file is of no use
        raise


def _file_name(stem: str) -> str:
    kept = "".join(
        each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in stem
    )
    return kept.strip("._-")[:_MAX_NAME_LENGTH] or "content"


def _extension(mime_type: str) -> str:
    known = _EXTENSIONS.get(mime_type.partition(";")[0].strip().lower())
    if known is not None:
        return known
    from mimetypes import guess_extension

    return guess_extension(mime_type.partition(";")[0].strip()) or ".bin"


# Blocks


def result_shown(
    result: ToolResult[Any], folder: SaveFolder, stream: TextIO | None = None
) -> list[str]:
    """Return the lines of a tool result: its text or structured value, and other blocks.

    JSON is coloured if `stream` (default: stdout) takes colour.
    """
    structured = result.structured_content
    if structured is None or result.is_error:
        return list(blocks_shown(result.content, folder, stream))
    value = result.value
    text = result.text
    if text and not _repeats(text, structured, value):
        return list(blocks_shown(result.content, folder, stream))
    others = [block for block in result.content if block.type != "text"]
    shown = text_shown(value, stream) if isinstance(value, str) else json_shown(value, stream)
    return [shown, *blocks_shown(others, folder, stream)]


def _repeats(text: str, structured: Any, value: Any) -> bool:
    """Return True if a text only repeats the structured content."""
    if text == value:
        return True
    try:
        read = decode(text.encode("utf-8", "surrogatepass"))
    except (DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return read in (structured, value)


def blocks_shown(
    blocks: Iterable[ContentBlock], folder: SaveFolder, stream: TextIO | None = None
) -> Iterator[str]:
    """Yield the text of each block; other content is saved."""
    for block in blocks:
        if block.type == "text":
            yield text_shown(block.text, stream)
        elif block.type == "resource_link":
            name = block.title if isinstance(block.title, str) else block.name
            yield f"{visible(name, kept='')} <{visible(block.uri, kept='')}>"
        elif block.type == "resource":
            yield from contents_shown([block.resource], folder, stream)
        else:
            yield folder.save(block.data, block.mime_type)


def contents_shown(
    contents: Iterable[ResourceContents], folder: SaveFolder, stream: TextIO | None = None
) -> Iterator[str]:
    """Yield the text of each part of a resource; binary parts are saved.

    A blob of text in UTF-8 is shown too, unless the user has named a folder.
    """
    for each in contents:
        mime_type = each.mime_type if isinstance(each.mime_type, str) else ""
        blob = each.blob if isinstance(each.blob, str) else ""
        text = each.text if isinstance(each.text, str) else None
        if text is None and mime_type.startswith("text/") and not folder.is_given:
            text = _text_in(blob)
        yield folder.save(blob, mime_type) if text is None else text_shown(text, stream)


def _text_in(blob: str) -> str | None:
    """Return the text in Base64 data, or None if it is not UTF-8."""
    from base64 import b64decode

    try:
        return b64decode(blob, validate=True).decode()
    except ValueError:
        return None

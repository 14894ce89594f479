"""What a server gave, for people: texts as they are, JSON made readable, the rest in files.

Bytes have no place on a terminal: images, sounds and blobs are saved, and the path is shown. A
name of a file is made from a tool's or a resource's, which are a server's text: it never leaves
the folder, and never takes the place of another file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import DecodeError
from msgspec.json import decode, encode, format

from ...errors import visible
from ..exit_codes import SUCCESS, USAGE_ERROR
from .terminal import tell

if TYPE_CHECKING:
    from io import RawIOBase

    from ...client.requests.tool_result import ToolResult
    from ...mcp.types import ContentBlock, ResourceContents

__all__ = ["SaveFolder", "blocks_shown", "contents_shown", "json_text", "plain", "result_shown"]

# What a terminal shows as a blank is one.
_KEPT: Final = "\t\n\xa0\u3000"
# The endings of what is often sent; others are looked up when they come.
_ENDINGS: Final = {
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
_NAME_LENGTH: Final = 60
# How many names are tried before a folder counts as full.
_TRIES: Final = 10_000


def plain(text: str) -> str:
    """Return a server's text with nothing in it that a terminal would act on."""
    return visible(text.replace("\r\n", "\n"), kept=_KEPT)


def json_text(value: Any) -> str:
    """Return a value as JSON over several lines, which is safe to show on a terminal."""
    try:
        text = format(encode(value), indent=2).decode()
    except UnicodeEncodeError:
        # Half a character, which has no bytes: written as its escape.
        import json

        text = json.dumps(value, indent=2)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else _escape(each) for each in text)


def _escape(character: str) -> str:
    """Return a character as JSON escapes it; outside of strings there is none to escape."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


class SaveFolder:
    """A folder where things are saved, under names that are not taken yet.

    What cannot be saved keeps nothing else from being shown.
    """

    def __init__(self, folder: str | None, stem: str) -> None:
        self._folder = "." if folder is None else folder
        self._stem = _file_name(stem)
        self._next = 1
        # Why something could not be written.
        self._problem = ""

    def save(self, data: str, mime_type: str) -> str:
        """Save what is given in Base64; return a line that says where, or why not."""
        from base64 import b64decode

        kind = plain(mime_type or "bytes")
        try:
            raw = b64decode(data, validate=True)
        except ValueError:
            return f"[{kind}: not saved, it is no Base64]"
        try:
            path = self._write(raw, _ending(mime_type))
        except OSError as error:
            self._problem = error.strerror or str(error)
            return f"[{kind}: not saved, {len(raw)} bytes]"
        return f"saved {path} ({kind}, {len(raw)} bytes)"

    def status(self, prog: str) -> int:
        """Return the exit status; say on standard error if something could not be saved."""
        if not self._problem:
            return SUCCESS
        tell(f"{prog}: not all could be saved in {self._folder!r}: {self._problem}")
        return USAGE_ERROR

    def _write(self, raw: bytes, ending: str) -> str:
        while self._next < _TRIES:
            path = os.path.join(self._folder, f"{self._stem}-{self._next}{ending}")
            self._next += 1
            try:
                # Never through a link, and never over what is there.
                with open(path, "xb", buffering=0) as file:
                    _write_all(file, path, raw)
            except FileExistsError:
                continue
            return path
        raise OSError(errno.EEXIST, f"it is full of files called {self._stem}-N")


def _write_all(file: RawIOBase, path: str, raw: bytes) -> None:
    rest = memoryview(raw)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        os.unlink(path)  # half a picture is none
        raise


def _file_name(stem: str) -> str:
    """Return a name made of what any file system takes."""
    kept = "".join(
        each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in stem
    )
    return kept.strip("._-")[:_NAME_LENGTH] or "content"


def _ending(mime_type: str) -> str:
    known = _ENDINGS.get(mime_type.partition(";")[0].strip().lower())
    if known is not None:
        return known
    from mimetypes import guess_extension

    return guess_extension(mime_type.partition(";")[0].strip()) or ".bin"


# Blocks


def result_shown(result: ToolResult[Any], shelf: SaveFolder) -> list[str]:
    """Return the lines that show what a tool gave: text, or its structured value, and the rest."""
    structured = result.structured_content
    if structured is None or result.is_error:
        return list(blocks_shown(result.content, shelf))
    value = result.value
    text = result.text
    if text and not _says(text, structured, value):
        return list(blocks_shown(result.content, shelf))
    others = [block for block in result.content if block.type != "text"]
    shown = plain(value) if isinstance(value, str) else json_text(value)
    return [shown, *blocks_shown(others, shelf)]


def _says(text: str, structured: Any, value: Any) -> bool:
    """Say whether a text is that of the structured content, and so no more than it."""
    if text == value:
        return True
    try:
        read = decode(text.encode("utf-8", "surrogatepass"))
    except (DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return read in (structured, value)


def blocks_shown(blocks: Iterable[ContentBlock], shelf: SaveFolder) -> Iterator[str]:
    """Yield the text of each block; what has none is saved."""
    for block in blocks:
        if block.type == "text":
            yield plain(block.text)
        elif block.type == "resource_link":
            name = block.title if isinstance(block.title, str) else block.name
            yield f"{visible(name, kept='')} <{visible(block.uri, kept='')}>"
        elif block.type == "resource":
            yield from contents_shown([block.resource], shelf)
        else:
            yield shelf.save(block.data, block.mime_type)


def contents_shown(contents: Iterable[ResourceContents], shelf: SaveFolder) -> Iterator[str]:
    """Yield the text of each part of a resource; what has none is saved."""
    for each in contents:
        if isinstance(each.text, str):
            yield plain(each.text)
        else:
            mime_type = each.mime_type if isinstance(each.mime_type, str) else ""
            yield shelf.save(each.blob if isinstance(each.blob, str) else "", mime_type)

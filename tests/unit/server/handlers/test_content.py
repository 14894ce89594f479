"""Files, images, sounds and messages as results, and the formats that are recognised."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import Any

import pytest

from trunkline import (
    AssistantMessage,
    Audio,
    Client,
    File,
    Image,
    Server,
    ToolOutput,
    UserMessage,
)
from trunkline.mcp import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    PromptMessage,
    ResourceContents,
    TextContent,
)
from trunkline.server.handlers.content import block_of_bytes
from trunkline.server.handlers.output import output_of

PNG = b"\x89PNG\r\n\x1a\n"
WAV = b"RIFF\x00\x00\x00\x00WAVE"


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_an_image_and_a_sound_are_blocks_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    assert Image(path=tmp_path / "a.png").block == ImageContent(coded(PNG), "image/png")
    assert Image(str(tmp_path / "a.png")).block == ImageContent(coded(PNG), "image/png")
    assert Audio(data=WAV).block == AudioContent(coded(WAV), "audio/wav")
    assert Image(data=b"?", format="png").mime_type == "image/png"
    assert Image(data=b"?", format="JPG").mime_type == "image/jpeg"
    assert Image(data=b"?", format="x-own").mime_type == "image/x-own"
    assert Image(data=PNG, mime_type="image/apng").mime_type == "image/apng"


def test_a_file_is_an_embedded_resource_with_its_name_and_without_its_folder(
    tmp_path: Path,
) -> None:
    path = tmp_path / "my report.pdf"
    path.write_bytes(b"%PDF-1.7")
    contents = ResourceContents(
        "file:///my%20report.pdf", blob=coded(b"%PDF-1.7"), mime_type="application/pdf"
    )
    assert File(path).block == EmbeddedResource(contents)
    assert File(path=path, name="b.pdf").name == "b.pdf"
    block: Any = File(data=b"?").block
    assert block.resource.uri == "urn:trunkline:blob"
    assert block.resource.mime_type == "application/octet-stream"


@pytest.mark.parametrize(
    ("name", "data", "mime_type", "is_text"),
    [
        ("a.txt", b"hello", "text/plain", True),
        ("a.MD", "ä".encode(), "text/markdown", True),
        ("a.json", b"{}", "application/json", True),
        ("a.svg", b"<svg/>", "image/svg+xml", True),
        ("a.txt", b"\xff\xfe", "text/plain", False),
        ("a.unknown", b"hello", "application/octet-stream", False),
        ("a", b"hello", "application/octet-stream", False),
        ("a.txt", b"%PDF-1.7", "application/pdf", False),
        ("a.zip", b"PK\x03\x04", "application/zip", False),
        (
            "a.docx",
            b"PK\x03\x04",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            False,
        ),
    ],
)
def test_a_file_is_known_by_its_bytes_and_then_by_its_name(
    name: str, data: bytes, mime_type: str, is_text: bool
) -> None:
    contents = File(data=data, name=name).contents("a://b")
    assert contents.mime_type == mime_type
    assert (contents.text == data.decode()) if is_text else (contents.blob == coded(data))


FORMATS: list[tuple[bytes, str]] = [
    (b"%PDF-1.7", "application/pdf"),
    (b"PK\x03\x04....", "application/zip"),
    (b"\x1f\x8b\x08....", "application/gzip"),
    (b"\x00\x00\x00\x18ftypisom", "video/mp4"),
    (b"\x00\x00\x00\x18ftypqt  ", "video/quicktime"),
    (b"\x1a\x45\xdf\xa3....", "video/webm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"\x00asm\x01", "application/wasm"),
    (b"x" * 257 + b"ustar\x00", "application/x-tar"),
    (b"{\\rtf1", "application/rtf"),
    (b"wOF2....", "font/woff2"),
    (b"Rar!\x1a\x07\x00", "application/vnd.rar"),
]
IMAGES: list[tuple[bytes, str]] = [
    (b"\x00\x00\x00\x18ftypavif", "image/avif"),
    (b"\x00\x00\x00\x18ftypheic", "image/heic"),
    (b"II*\x00....", "image/tiff"),
    (b"BM\x00\x00\x00\x00\x00\x00\x00\x00", "image/bmp"),
]
SOUNDS: list[tuple[bytes, str]] = [
    (b"\x00\x00\x00\x18ftypM4A ", "audio/mp4"),
    (b"FORM....AIFF", "audio/aiff"),
    (b"\xff\xf1....", "audio/aac"),
]


@pytest.mark.parametrize(("data", "mime_type"), [*FORMATS, *IMAGES, *SOUNDS])
def test_common_formats_are_recognised_by_their_first_bytes(data: bytes, mime_type: str) -> None:
    block: Any = block_of_bytes(data)
    if mime_type.startswith(("image/", "audio/")):
        assert isinstance(block, ImageContent if mime_type[:1] == "i" else AudioContent)
        assert block.mime_type == mime_type
    else:
        assert block.resource.mime_type == mime_type


@pytest.mark.parametrize("data", [b"", b"BMW is not a bitmap", b"hello", b"PK", b"ftyp"])
def test_other_bytes_are_not_taken_for_a_format(data: bytes) -> None:
    block: Any = block_of_bytes(data)
    assert block.resource.mime_type == "application/octet-stream"


def test_invalid_file_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="File takes either path= or data="):
        File()
    with pytest.raises(TypeError, match="Image takes either path= or data="):
        Image("a.png", data=PNG)
    with pytest.raises(TypeError, match="data is bytes, not str"):
        File(data="text")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ValueError, match=r"application/pdf is not one: give mime_type='image/..."):
        Image(data=b"%PDF-1.7")
    with pytest.raises(ValueError, match="image/png is not one"):
        Audio(data=PNG)
    with pytest.raises(FileNotFoundError):
        File(tmp_path / "missing")


def test_a_file_prints_without_its_content() -> None:
    shown = repr(File(data=b"secret", name="a.txt"))
    assert shown == "<File 'a.txt', text/plain, 6 bytes>"
    assert "sk-live_0123456789abcdef" not in repr(UserMessage("sk-live_0123456789abcdef"))


@pytest.mark.parametrize("annotation", [File, Image, list[Image], list[str | File], Image | None])
def test_a_tool_that_returns_files_has_no_output_schema(annotation: Any) -> None:
    def tool() -> Any: ...

    tool.__annotations__["return"] = annotation
    assert output_of(tool).schema is None


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
def test_files_and_messages_reach_clients(revision: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("hello")
    app = Server("x")

    @app.tool
    def several() -> list[str | Image | File]:
        return ["text", Image(data=PNG), File(path)]

    @app.tool
    def beside() -> ToolOutput[int]:
        return ToolOutput(5, content=[File(path)])

    @app.resource("a://b")
    def read() -> File:
        return File(path)

    @app.resource("b://c", mime_type="text/x-own")
    def read_own() -> File:
        return File(path)

    @app.prompt
    def prompt() -> list[Any]:
        return [UserMessage("a"), AssistantMessage(Image(data=PNG)), UserMessage(File(path)), "b"]

    text = EmbeddedResource(ResourceContents("file:///a.txt", text="hello", mime_type="text/plain"))

    async def main() -> None:
        async with Client(app, revision=revision) as client:
            result = await client.call_tool("several")
            image = ImageContent(coded(PNG), "image/png")
            assert result.content == [TextContent("text"), image, text]
            assert (await client.call_tool("beside")).content[-1] == text
            (contents,) = (await client.read_resource("a://b")).contents
            assert contents == ResourceContents("a://b", text="hello", mime_type="text/plain")
            (contents,) = (await client.read_resource("b://c")).contents
            assert contents.mime_type == "text/x-own"
            messages = (await client.get_prompt("prompt")).messages
            assert messages == [
                PromptMessage(TextContent("a"), "user"),
                PromptMessage(image, "assistant"),
                PromptMessage(text, "user"),
                PromptMessage(TextContent("b"), "user"),
            ]

    asyncio.run(main())


def test_a_path_may_be_of_any_kind(tmp_path: Path) -> None:
    class Own(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(tmp_path / "a.txt")

    (tmp_path / "a.txt").write_text("hello")
    assert File(Own()).name == "a.txt"

"""What a server gave, for people: what is printed, and what is saved where."""

from __future__ import annotations

import json
import resource
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from msgspec.json import encode

from trunkline.cli.output import content
from trunkline.cli.output.content import (
    SaveFolder,
    blocks_shown,
    contents_shown,
    document_shown,
    json_shown,
    json_text,
    plain,
    result_shown,
    text_shown,
)
from trunkline.client.requests.tool_result import tool_result
from trunkline.mcp import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent
from trunkline.mcp.types import ResourceContents

DATA = b64encode(b"bytes").decode()


def shown(result: dict[str, Any], folder: Path) -> list[str]:
    answer = tool_result(Raw(encode({"content": [], **result})), None, "2025-11-25")
    return result_shown(answer, SaveFolder(str(folder), "tool"))


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


# Text


def test_text_keeps_its_lines_and_nothing_that_acts_on_a_terminal() -> None:
    assert plain("a\tb\r\nc\x1b[31m\x9b\u202e\xa0d") == "a\tb\nc\\x1b[31m\\x9b\\u202e\xa0d"


@pytest.mark.parametrize("odd", ["\x1b", "\x7f", "\x9b", "\u202e", "\U000e0041", "\xa0"])
def test_json_is_safe_to_show_and_still_json(odd: str) -> None:
    document = json_text({"a": [odd, "é"]})
    assert json.loads(document) == {"a": [odd, "é"]}
    assert document.replace("\n", "").isprintable()
    assert "é" in document


def test_half_a_character_is_still_json() -> None:
    assert json.loads(json_text(["\ud800"])) == ["\ud800"]


# Results


def test_a_text_is_printed_as_it_is(tmp_path: Path) -> None:
    assert shown({"content": [text("one"), text("two")]}, tmp_path) == ["one", "two"]


def test_structured_content_without_text_is_printed(tmp_path: Path) -> None:
    assert shown({"structuredContent": {"a": 1}}, tmp_path) == ['{\n  "a": 1\n}']


def test_a_text_that_is_the_json_of_it_is_made_readable(tmp_path: Path) -> None:
    given = {"content": [text('{"a":1}')], "structuredContent": {"a": 1}}
    assert shown(given, tmp_path) == ['{\n  "a": 1\n}']


def test_a_wrapped_value_is_unwrapped(tmp_path: Path) -> None:
    given = {"content": [text("3")], "structuredContent": {"result": 3}}
    assert shown(given, tmp_path) == ["3"]
    given = {"content": [text("\x1bx")], "structuredContent": {"result": "\x1bx"}}
    assert shown(given, tmp_path) == ["\\x1bx"]


def test_a_text_that_says_something_else_goes_before_it(tmp_path: Path) -> None:
    given = {"content": [text("one degree")], "structuredContent": {"a": 1}}
    assert shown(given, tmp_path) == ["one degree"]


def test_a_failure_is_its_text(tmp_path: Path) -> None:
    given = {"content": [text("no")], "structuredContent": {"a": 1}, "isError": True}
    assert shown(given, tmp_path) == ["no"]


def test_pictures_are_saved_beside_structured_content(tmp_path: Path) -> None:
    image = {"type": "image", "data": DATA, "mimeType": "image/png"}
    given = {"content": [text("[1]"), image], "structuredContent": [1]}
    assert shown(given, tmp_path)[0] == "[\n  1\n]"
    assert (tmp_path / "tool-1.png").read_bytes() == b"bytes"


# Blocks


def test_each_kind_of_block(tmp_path: Path) -> None:
    blocks = [
        TextContent("a"),
        ImageContent(DATA, "image/png"),
        AudioContent(DATA, "audio/wav; rate=8000"),
        ResourceLink("notes", "x:\x1by"),
        ResourceLink("notes", "x:z", title="My notes"),
        EmbeddedResource(ResourceContents("x:a", text="b")),
        EmbeddedResource(ResourceContents("x:a", blob=DATA, mime_type="application/x-odd")),
    ]
    shelf = SaveFolder(str(tmp_path), "tool")
    assert list(blocks_shown(blocks, shelf)) == [
        "a",
        f"saved {tmp_path}/tool-1.png (image/png, 5 bytes)",
        f"saved {tmp_path}/tool-2.wav (audio/wav; rate=8000, 5 bytes)",
        "notes <x:\\x1by>",
        "My notes <x:z>",
        "b",
        f"saved {tmp_path}/tool-3.bin (application/x-odd, 5 bytes)",
    ]


def test_a_blob_of_text_is_shown_and_saved_only_in_a_folder_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = ResourceContents("x:a", blob="aGkbWzJK", mime_type="text/plain; charset=utf-8")
    assert list(contents_shown([text], SaveFolder(None, "a"))) == ["hi\\x1b[2J"]
    assert not list(tmp_path.iterdir())
    not_utf_8 = ResourceContents("x:a", blob="/w==", mime_type="text/plain")
    image = ResourceContents("x:a", blob=DATA, mime_type="image/png")
    for each in (not_utf_8, image):
        (line,) = contents_shown([each], SaveFolder(None, "a"))
        assert line.startswith("saved ")
    (line,) = contents_shown([text], SaveFolder(str(tmp_path), "named"))
    assert line == f"saved {tmp_path}/named-1.txt (text/plain; charset=utf-8, 6 bytes)"


def test_invalid_base64_is_not_saved(tmp_path: Path) -> None:
    shelf = SaveFolder(str(tmp_path), "tool")
    (line,) = contents_shown([ResourceContents("x:a", blob="?")], shelf)
    assert line == "[bytes: not saved, it is not Base64]"
    assert not list(tmp_path.iterdir())


def test_a_media_type_cannot_print_a_line_of_its_own(tmp_path: Path) -> None:
    shelf = SaveFolder(str(tmp_path), "tool")
    (line,) = blocks_shown([ImageContent(DATA, "image/x\nsaved all")], shelf)
    assert line == f"saved {tmp_path}/tool-1.bin (image/x\\nsaved all, 5 bytes)"


# Files


def test_no_file_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "tool-1.png").write_text("mine")
    (tmp_path / "tool-2.png").symlink_to(tmp_path / "elsewhere")
    line = SaveFolder(str(tmp_path), "tool").save(DATA, "image/png")
    assert "tool-3.png" in line
    assert (tmp_path / "tool-1.png").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("stem", ["../../etc/passwd", "/etc/passwd", "..", "", "a\x00b", "é" * 99])
def test_no_name_leaves_the_folder(tmp_path: Path, stem: str) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    SaveFolder(str(folder), stem).save(DATA, "image/png")
    (saved,) = tmp_path.rglob("*.png")
    assert saved.parent == folder
    assert saved.name.isascii()


def test_failed_save_is_reported_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shelf = SaveFolder(str(tmp_path / "gone"), "tool")
    blocks = [TextContent("a"), ImageContent(DATA, "image/png"), TextContent("b")]
    assert list(blocks_shown(blocks, shelf)) == ["a", "[image/png: not saved, 5 bytes]", "b"]
    assert shelf.status("prog") == 2
    told = capsys.readouterr().err
    assert told.startswith("prog: cannot save in ")
    assert "gone': No such file or directory" in told


def test_folder_without_free_file_names_is_reported_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "_MAX_FILE_NUMBER", 3)
    for number in (1, 2):
        (tmp_path / f"tool-{number}.png").write_bytes(b"before")
    shelf = SaveFolder(str(tmp_path), "tool")
    assert shelf.save(DATA, "image/png") == "[image/png: not saved, 5 bytes]"
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"before"}
    assert shelf.status("prog") == 2
    assert "files called tool-N" in capsys.readouterr().err


def test_half_a_file_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Or a module that is loaded meanwhile would have half its bytecode kept.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    shelf = SaveFolder(str(tmp_path), "tool")
    resource.setrlimit(resource.RLIMIT_FSIZE, (3, before[1]))
    try:
        line = shelf.save(DATA, "image/png")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert line == "[image/png: not saved, 5 bytes]"
    assert not list(tmp_path.iterdir())
    assert shelf.status("prog") == 2


def test_successful_save_has_status_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shelf = SaveFolder(str(tmp_path), "tool")
    shelf.save(DATA, "image/png")
    assert (shelf.status("prog"), capsys.readouterr().err) == (0, "")


def test_a_mime_type_cannot_forge_a_line(tmp_path: Path) -> None:
    folder = SaveFolder(str(tmp_path), "plain")
    for data in ("QQ==", "not Base64"):
        assert "\n" not in folder.save(data, "image/x\nFAKE: line\x1b[2J")


# Colour


@pytest.mark.parametrize(
    ("text", "is_coloured"), [('{"a": 1}', True), (" [1]", True), ("1", False), ("{a}", False)]
)
def test_text_that_is_json_is_coloured(
    text: str, is_coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert ("\x1b[" in text_shown(text)) == is_coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert text_shown(text) == text


def test_an_escape_sequence_inside_json_stays_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert json_shown("\x1b[31m") == '\x1b[32m"\\u001b[31m"\x1b[0m'
    assert document_shown("\x1b[31m") == '"\\u001b[31m"'

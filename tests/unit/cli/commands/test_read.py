"""The verb `read`: what a resource holds, shown, saved, or as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_a_text_is_shown(run: Any, server: list[str]) -> None:
    assert run("read", "demo://notes", *server) == (0, "one\ntwo\\x1b[2J\n", "")


def test_a_template_is_filled_in_by_the_address(run: Any, server: list[str]) -> None:
    assert run("read", "demo://city/Oslo", *server).out == "Oslo is a city\n"


def test_bytes_are_saved(run: Any, server: list[str], tmp_path: Path) -> None:
    shown = run("read", "demo://picture.png", "--save", str(tmp_path), *server)
    assert shown == (0, f"saved {tmp_path}/picture-1.png (image/png, 28 bytes)\n", "")


def test_json_is_one_document(run: Any, server: list[str]) -> None:
    document = json.loads(run("read", "demo://notes", "--json", *server).out)
    assert document["contents"][0]["text"] == "one\ntwo\x1b[2J"


@pytest.mark.parametrize(
    ("uri", "raw"),
    [
        ("demo://notes", b"one\ntwo\x1b[2J"),
        ("demo://picture.png", b"\x89PNG\r\n\x1a\n" + bytes(20)),
    ],
)
def test_raw_is_every_byte_and_no_other(server: list[str], uri: str, raw: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trunkline", "read", uri, "--raw", *server],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, raw, b"")


def test_a_reader_that_leaves_early_sees_no_traceback(server: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "trunkline", "read", "demo://notes", "--raw", *server],
            stdin=subprocess.DEVNULL,
            stdout=gone,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([], 2),
        (["a:b", "c:d"], 2),
        (["demo://gone"], 1),
        (["x:\udcff"], 2),
        (["demo://notes", "--raw", "-o", "json"], 2),
        (["demo://notes", "--raw", "--json"], 2),
        (["demo://notes", "--save", "/nowhere/at/all"], 2),
    ],
)
def test_invalid_words_and_unreadable_resources_are_errors(
    run: Any, server: list[str], words: list[str], status: int
) -> None:
    shown = run("read", *words, *server)
    assert (shown.status, shown.out) == (status, "")
    assert shown.err.startswith("trunkline read: ")

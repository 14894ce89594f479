"""The verb `call`: its arguments, what it shows, and how it ends."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

CANARY = "canary-9920"


# Arguments


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_a_tool_is_called_with_words(run: Any, server: list[str], revision: str) -> None:
    shown = run("call", "add", "a=1", "b=2", "--revision", revision, *server)
    assert shown == (0, "3\n", "")


def test_words_are_read_by_the_schema(run: Any, server: list[str]) -> None:
    words = ["city=12", "days=3", "tags=a", "tags=b", "place.lat=1.5", "is_dry=yes", "detail=full"]
    shown = run("call", "forecast", *words, *server)
    assert (shown.status, shown.err) == (0, "")
    assert json.loads(shown.out) == {
        "city": "12",
        "days": 3,
        "detail": "full",
        "tags": ["a", "b"],
        "place": [1.5, 0.0],
        "is_dry": True,
    }


def test_options_may_stand_between_the_words(run: Any, server: list[str]) -> None:
    words = ["--timeout", "30", "add", "a=1", "--revision", "2025-11-25", "b=2"]
    assert run("call", *words, *server).out == "3\n"


def test_a_wrong_word_is_pointed_at_and_nothing_is_called(run: Any, server: list[str]) -> None:
    shown = run("call", "add", "a=x", "b=2", *server)
    assert shown == (2, "", "trunkline call: a takes an integer, not 'x'\n  a=x\n    ^\n")


def test_missing_argument_is_named(run: Any, server: list[str]) -> None:
    shown = run("call", "forecast", *server)
    assert shown.status == 2
    assert "city: string  the city to look at\n" in shown.err


def test_a_secret_is_never_echoed(run: Any, server: list[str]) -> None:
    shown = run("call", "login", "user=ada", f"password={CANARY}", *server)
    assert shown.status == 2
    assert "password takes an integer\n" in shown.err
    assert CANARY not in shown.out + shown.err


def test_arguments_as_one_object(run: Any, server: list[str]) -> None:
    assert run("call", "add", "--json", '{"a": 1, "b": 2}', *server).out == "3\n"


def test_arguments_from_standard_input(
    run: Any, server: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = SimpleNamespace(buffer=io.BytesIO(b'{"a": 1, "b": 5}'), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", given)
    assert run("call", "add", "--json", "-", *server).out == "6\n"


def test_an_object_is_for_the_server_to_judge(run: Any, server: list[str]) -> None:
    shown = run("call", "add", "--json", '{"a": "x", "b": 2}', *server)
    assert (shown.status, shown.out) == (1, "")
    assert "expected an integer" in shown.err


def test_an_object_needs_no_list_of_tools(run: Any, server: list[str], tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    run("call", "add", "--json", '{"a": 1, "b": 2}', "--trace", str(trace), *server)
    assert "tools/call" in trace.read_text()
    assert "tools/list" not in trace.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "--json", "[1]"], "a JSON object"),
        (["add", "--json", "{"], "not JSON"),
        (["add", "a=1", "--json", "{}"], "not both"),
        (["add", "--json", "a=1"], "-o json"),
        (["add", "--json", '{"a": "\udcff"}'], "not UTF-8 text"),
        (["\udcff", "--json", "{}"], "TOOL is not UTF-8 text"),
        ([], "TOOL is missing"),
        (["add", '{"a": 1, "b": "canary-9920"}'], "are given by --json OBJECT\n"),
        (["tcp://127.0.0.1:1", "add"], "not both"),
    ],
)
def test_misuse_is_a_sentence(run: Any, server: list[str], words: list[str], said: str) -> None:
    shown = run("call", *words, *server)
    assert (shown.status, shown.out) == (2, "")
    assert said in shown.err
    assert CANARY not in shown.err


@pytest.mark.parametrize(
    ("verb", "word", "entry"),
    [
        ("call", "TOOL", "add(a: integer, b: integer)"),
        ("read", "URI", "demo://notes"),
        ("prompt", "NAME", "report("),
    ],
)
def test_what_a_server_has_is_listed_if_no_name_is_given(
    run: Any, server: list[str], verb: str, word: str, entry: str
) -> None:
    shown = run(verb, *server)
    assert (shown.status, shown.out) == (2, "")
    first, *lines = shown.err.splitlines()
    assert first == f"trunkline {verb}: {word} is missing; the server has"
    assert any(line.strip().startswith(entry) for line in lines)


def test_a_server_that_cannot_be_reached_is_an_error_without_a_name_too(run: Any) -> None:
    shown = run("call", "tcp://127.0.0.1:1")
    assert (shown.status, shown.out) == (3, "")
    assert shown.err == "trunkline call: tcp://127.0.0.1:1: Connection refused\n"


@pytest.mark.parametrize("option", ["--trace", "--record"])
def test_a_recording_has_two_names(
    run: Any, server: list[str], option: str, tmp_path: Path
) -> None:
    file = tmp_path / "talk.jsonl"
    assert run("call", "add", "a=1", "b=2", option, str(file), *server).out == "3\n"
    assert "tools/call" in file.read_text()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ('city:="\udcff"', "city takes UTF-8 text"),
        ("city=\udcff", "city takes UTF-8 text"),
        ("city=@@\udcff", "city takes UTF-8 text"),
        ("\udcff=x", "the name of an argument is not UTF-8 text"),
        ("city.x=1", "city takes a string, which has no members\n  city.x=1\n  ^^^^^^"),
    ],
)
def test_invalid_argument_words_are_refused(
    run: Any, server: list[str], word: str, said: str
) -> None:
    shown = run("call", "forecast", word, *server)
    assert (shown.status, shown.out) == (2, "")
    assert said in shown.err


def test_closed_standard_input_is_reported(
    run: Any, server: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    shown = run("call", "add", "--json", "-", *server)
    assert shown == (2, "", "trunkline call: --json - reads standard input, which is closed\n")


def test_a_broken_object_is_not_quoted(run: Any, server: list[str]) -> None:
    shown = run("call", "login", "--json", f'{{"password": "{CANARY}"', *server)
    assert shown.status == 2
    assert CANARY not in shown.err


@pytest.mark.parametrize("words", [["ad", "a=1"], ["ad", "--json", "{}"]])
def test_an_unknown_tool_is_guessed(run: Any, server: list[str], words: list[str]) -> None:
    shown = run("call", *words, *server)
    said = "trunkline call: the server has no tool 'ad'; did you mean 'add'?\n"
    assert shown == (2, "", said)


# Results


@pytest.mark.parametrize("words", [["-o", "json"], ["--json"], ["--output", "json"]])
def test_json_is_one_document(run: Any, server: list[str], words: list[str]) -> None:
    shown = run("call", "add", "a=1", "b=2", *words, *server)
    assert (shown.status, shown.err) == (0, "")
    document = json.loads(shown.out)
    assert document["content"] == [{"type": "text", "text": "3"}]
    assert document["isError"] is False


def test_object_and_json_output_go_together(run: Any, server: list[str]) -> None:
    shown = run("call", "add", "--json", '{"a": 1, "b": 2}', "-o", "json", *server)
    assert json.loads(shown.out)["content"][0]["text"] == "3"


def test_a_tool_that_fails_says_so_on_standard_error(run: Any, server: list[str]) -> None:
    assert run("call", "fail", *server) == (1, "", "the sky is \\x1b[1mfalling\n")


def test_a_tool_that_fails_is_a_document_too(run: Any, server: list[str]) -> None:
    shown = run("call", "fail", "-o", "json", *server)
    assert (shown.status, shown.err) == (1, "")
    assert json.loads(shown.out)["isError"] is True


def test_a_picture_is_saved(run: Any, server: list[str], tmp_path: Path) -> None:
    shown = run("call", "draw", "--save", str(tmp_path), *server)
    assert shown == (0, f"saved {tmp_path}/draw-1.png (image/png, 28 bytes)\n", "")
    assert (tmp_path / "draw-1.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("folder", ["gone", "file", "closed"])
def test_unwritable_save_folder_is_reported_before_the_tool_is_called(
    run: Any, server: list[str], tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "closed").mkdir()
    # Who runs this may be root, to whom nothing is closed.
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("closed"))
    monkeypatch.setenv("PIDFILE", str(tmp_path / "pid"))
    shown = run("call", "draw", "--save", str(tmp_path / folder), *server)
    assert (shown.status, shown.out) == (2, "")
    assert folder in shown.err
    assert not (tmp_path / "pid").exists()


def test_content_that_cannot_be_saved_is_reported_beside_the_rest(
    run: Any, server: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    shown = run("call", "draw", *server)
    assert (shown.status, shown.out) == (2, "[image/png: not saved, 28 bytes]\n")
    assert shown.err.startswith("trunkline call: cannot save in '.': ")


def test_a_link_is_shown(run: Any, server: list[str]) -> None:
    assert run("call", "point", *server).out == "notes <demo://notes>\n"


def test_a_text_cannot_act_on_a_terminal(run: Any, server: list[str]) -> None:
    assert run("call", "shout", *server).out == "\\x1b[31mred\\x07\nnext\n"


def test_there_is_nothing_of_progress_in_a_pipe(run: Any, server: list[str]) -> None:
    assert run("call", "count", "steps=2", "wait=0", *server) == (0, "counted\n", "")


# A tool whose schema does not forbid other arguments.
OPEN = """
import json
from typing import Any
from trunkline import Server
app = Server("open")
SCHEMA = {"type": "object", "properties": {"duration": {"type": "integer"}}}
async def wait(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments)
app.add_tool(wait, input_schema=SCHEMA)
app.run()
"""
BROKEN = """
from trunkline import Server
app = Server("broken")
@app.tool
def fail() -> int:
    return 1 // 0
@app.tool
def nothing() -> int | None:
    return None
app.run()
"""


def test_an_unknown_optional_argument_is_reported_and_sent(run: Any, tmp_path: Path) -> None:
    (tmp_path / "open.py").write_text(OPEN)
    server = ["--", sys.executable, str(tmp_path / "open.py")]
    shown = run("call", "wait", "duraton=3", *server)
    assert shown.status == 0
    assert json.loads(shown.out) == {"duraton": 3}
    assert shown.err == (
        "trunkline call: 'duraton' is not in the schema of the tool; did you mean 'duration'?\n"
    )
    assert run("call", "wait", "duration=3", *server).err == ""


def test_structured_content_that_is_null_is_shown_as_json(run: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    server = ["--", sys.executable, str(tmp_path / "broken.py")]
    for revision, members in (("2026-07-28", {"structuredContent": None}), ("2025-03-26", {})):
        shown = run("call", "nothing", "-o", "json", "--revision", revision, *server)
        found = json.loads(shown.out)
        del found["content"], found["isError"]
        found.pop("_meta", None)
        assert found == members

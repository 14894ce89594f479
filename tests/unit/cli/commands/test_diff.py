"""The verb `diff`: what it compares, what it prints, and how it ends."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from trunkline.cli import command

WAIT = 30
# One server through three releases: it announces that a tool will go, and then removes it.
SERVER = """
import sys
from trunkline import Server

version = sys.argv[1]
app = Server("calculator", version=version)

@app.tool
def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b

if version < "2":
    @app.tool(deprecated=version > "1.0" and "use add.")
    def plus(a: int, b: int) -> int:
        "Add two numbers, as before."
        return a + b

app.run(sys.argv[2] if len(sys.argv) > 2 else None)
"""
ADD = {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
TEXT = {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
MARKED = {"name": "plus", "description": "Deprecated: use add."}


@pytest.fixture
def save(tmp_path: Path) -> Any:
    """Return what writes listings into files, and gives their names."""

    def save(name: str, *tools: Any, **members: Any) -> str:
        path = tmp_path / name
        path.write_text(json.dumps({"tools": list(tools), **members}), encoding="utf-8")
        return str(path)

    return save


@pytest.fixture
def server(tmp_path: Path) -> list[str]:
    """Return the words that start the server; its version comes next."""
    path = tmp_path / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    return [sys.executable, str(path)]


# Exit statuses


def test_breaking_changes_end_with_1_and_are_printed_first(run: Any, save: Any) -> None:
    shown = run("diff", save("old", ADD), save("new", TEXT, MARKED))
    assert (shown.status, shown.err) == (1, "")
    assert shown.out.splitlines() == [
        "BREAKING (1)",
        '  tool add, argument a: the old type is no longer accepted: "integer" → "string"',
        "    listing.input.type-narrowed: Calls with a value of the old type are refused.",
        "",
        "SAFE (1)",
        "  tool plus: the tool is new",
        "    listing.tool.added: No client calls it yet.",
        "",
        "1 breaking, 0 announced, 0 deprecated, 1 safe: "
        "the new server breaks clients of the old one",
    ]


def test_safe_changes_end_with_0(run: Any, save: Any) -> None:
    shown = run("diff", save("old", ADD), save("new", ADD, TEXT | {"name": "b"}))
    assert shown.status == 0
    assert shown.out.endswith("1 safe: nothing breaks\n")
    same = run("diff", save("old", ADD), save("new", ADD))
    assert same.status == 0
    assert same.out == "0 breaking, 0 announced, 0 deprecated, 0 safe: no changes\n"


def test_announced_removal_is_allowed_with_the_next_major_version(run: Any, save: Any) -> None:
    old = save("old", MARKED, server={"version": "1.1"})
    minor = save("minor", server={"version": "1.2"})
    major = save("major", server={"version": "2.0"})
    early = run("diff", old, minor)
    assert early.status == 1
    assert "deprecated entries are gone before the next major version" in early.out
    assert run("diff", old, minor, "--allow-announced").status == 0
    late = run("diff", old, major)
    assert late.status == 0
    assert "ANNOUNCED (1)\n  tool plus: the tool is gone, as was announced" in late.out


def test_a_surprise_is_not_excused_by_what_was_announced(run: Any, save: Any) -> None:
    old, new = save("old", MARKED, ADD), save("new")
    assert run("diff", old, new, "--allow-announced").status == 1


@pytest.mark.parametrize("text", ["", "hello", "{}", '{"tools": 5}', "[1]"])
def test_unreadable_listing_ends_with_6_and_a_sentence(
    run: Any, save: Any, tmp_path: Path, text: str
) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text(text)
    shown = run("diff", save("old", ADD), str(odd))
    assert (shown.status, shown.out) == (6, "")
    assert shown.err.startswith(f"trunkline diff: {odd}: it")
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["one"],
        ["one", "two", "three"],
        ["one", "two", "--", "command"],
        ["--", "command"],
        ["-", "-"],
        ["--trace", "t", "tcp://127.0.0.1:1", "tcp://127.0.0.1:2"],
    ],
)
def test_other_than_two_listings_is_misuse(run: Any, words: list[str]) -> None:
    shown = run("diff", *words)
    assert (shown.status, shown.out) == (2, "")
    assert shown.err.startswith("trunkline diff: ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--trace", "t"], "neither side is a server"),
        (["--env", "A=b"], "--env needs a command after --"),
        (["--markdown", "-o", "json"], "not both"),
        (["--markdown", "--json"], "not both"),
    ],
)
def test_an_option_that_would_do_nothing_is_misuse(
    run: Any, save: Any, words: list[str], told: str
) -> None:
    shown = run("diff", save("old", ADD), save("new", ADD), *words)
    assert (shown.status, shown.out) == (2, "")
    assert told in shown.err
    assert not os.path.exists("t")


def test_a_file_that_is_not_there_is_named(run: Any, save: Any, tmp_path: Path) -> None:
    shown = run("diff", save("old", ADD), str(tmp_path / "missing.json"))
    assert (shown.status, shown.out) == (2, "")
    assert "missing.json" in shown.err


def test_a_server_that_is_not_there_ends_with_3(run: Any, save: Any, tmp_path: Path) -> None:
    shown = run("diff", save("old", ADD), f"unix:{tmp_path}/nobody")
    assert (shown.status, shown.out) == (3, "")
    assert shown.err.startswith("trunkline diff: ")


def test_that_nothing_was_compared_ends_with_6_and_a_sentence(
    run: Any, save: Any, tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.json"
    prompts.write_text('{"prompts": []}')
    for words in ([], ["--json"]):
        shown = run("diff", save("old", ADD), str(prompts), *words)
        assert (shown.status, shown.out) == (6, "")
        assert shown.err.startswith("trunkline diff: nothing was compared: ")
        assert shown.err.count("\n") == 1
    assert run("diff", str(prompts), str(prompts)).status == 0


# What is compared


def test_standard_input_is_one_of_the_two(
    run: Any, save: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = io.BytesIO(json.dumps([TEXT]).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    assert run("diff", save("old", ADD), "-").status == 1


def test_a_recording_is_a_listing(run: Any, save: Any, tmp_path: Path) -> None:
    recording = tmp_path / "talk.jsonl"
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [TEXT]}}
    entries = [{"from": "client", "message": asked}, {"from": "server", "message": answer}]
    recording.write_text("".join(f"{json.dumps(each)}\n" for each in entries))
    assert run("diff", save("old", ADD), str(recording)).status == 1
    assert run("diff", str(recording), save("new", TEXT)).status == 0


def test_a_tool_is_announced_and_removed_by_a_live_server(
    run: Any, server: list[str], tmp_path: Path
) -> None:
    """The whole way of a deprecation, by what the wire shows of it."""
    saved = {}
    for version in ("1.0", "1.1"):
        listed = run("list", "-o", "json", "--", *server, version)
        assert listed.status == 0
        saved[version] = tmp_path / f"{version}.json"
        saved[version].write_text(listed.out)
    marked = run("diff", str(saved["1.0"]), "--", *server, "1.1")
    assert (marked.status, marked.err) == (0, "")
    assert "DEPRECATED (1)\n  tool plus: the tool is marked as deprecated" in marked.out
    gone = run("diff", str(saved["1.1"]), "--", *server, "2.0")
    assert gone.status == 0
    assert "1 announced" in gone.out
    surprise = run("diff", str(saved["1.0"]), "--", *server, "2.0")
    assert surprise.status == 1
    assert "BREAKING (1)\n  tool plus: the tool is gone\n" in surprise.out


def test_a_revision_that_a_live_server_drops_is_found(
    run: Any, server: list[str], tmp_path: Path
) -> None:
    listed = json.loads(run("list", "-o", "json", "--", *server, "1.0").out)
    assert listed["revision"] in listed["supportedVersions"]
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps({**listed, "supportedVersions": ["1999-12-31"]}))
    shown = run("diff", str(kept), "--", *server, "1.0")
    assert shown.status == 1
    assert "listing.revision.dropped" in shown.out
    kept.write_text(json.dumps(listed))
    assert run("diff", str(kept), "--", *server, "1.0").status == 0


def accepts(path: Path) -> bool:
    """Return True if a server listens at a path; the file is there a moment before."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def test_an_address_is_compared_with_a_command(run: Any, server: list[str], tmp_path: Path) -> None:
    path = tmp_path / "s"
    with subprocess.Popen([*server, "1.0", f"unix:{path}"]) as listening:
        deadline = time.monotonic() + WAIT
        while not accepts(path):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        shown = run("diff", f"unix:{path}", "--env", "A=b", "--", *server, "2.0")
        listening.kill()
    assert (shown.status, shown.err) == (1, "")
    assert "tool plus: the tool is gone\n" in shown.out


def test_in_a_process_of_its_own(save: Any, server: list[str]) -> None:
    words = ["diff", save("old", ADD), "--json", "--", *server, "1.0"]
    ended = subprocess.run(
        [sys.executable, "-m", "trunkline", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=WAIT,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert (ended.returncode, ended.stderr) == (1, "")
    found = json.loads(ended.stdout)
    # The first schema did not ask for `a`, and let others pass.
    assert [each["rule"] for each in found["changes"] if each["level"] == "breaking"] == [
        "listing.input.property-required",
        "listing.input.closed",
    ]


# Formats


@pytest.mark.parametrize("words", [["--json"], ["-o", "json"]])
def test_json_is_one_document(run: Any, save: Any, words: list[str]) -> None:
    shown = run("diff", save("old", ADD), save("new", TEXT), *words)
    assert (shown.status, shown.err) == (1, "")
    found = json.loads(shown.out)
    assert found["format"] == "trunkline.diff/1"
    assert (found["ok"], found["counts"]["breaking"]) == (False, 1)
    (change,) = found["changes"]
    assert change == {
        "rule": "listing.input.type-narrowed",
        "level": "breaking",
        "what": "tool add",
        "where": "/inputSchema/properties/a",
        "old": '"integer"',
        "new": '"string"',
        "says": 'the old type is no longer accepted: "integer" → "string"',
        "why": "Calls with a value of the old type are refused.",
    }


def test_markdown_is_a_table_in_which_a_name_stays_a_name(run: Any, save: Any) -> None:
    name = "a|b ![x](http://x)\n<b>"
    shown = run("diff", save("old"), save("new", {"name": name}), "--markdown")
    row = (
        r"| safe | tool a\|b \!\[x\]\(http://x\)\\n\<b\> | the tool is new | `listing.tool.added` |"
    )
    assert row in shown.out.splitlines()


@pytest.mark.parametrize("words", [[], ["--markdown"], ["--json"]])
def test_a_name_cannot_steer_a_terminal(run: Any, save: Any, words: list[str]) -> None:
    name = "\x1b[31mred\x07\u202e\x9b\x7f"
    odd = {"type": "object", "properties": {name: {"type": "integer", "default": name}}}
    shown = run("diff", save("old", {"name": name, "inputSchema": odd}), save("new"), *words)
    assert shown.status == 1
    assert not set("\x1b\x07\u202e\x9b\x7f") & set(shown.out)


def test_no_secret_is_printed(run: Any, save: Any) -> None:
    def given(value: str) -> dict[str, Any]:
        member = {"type": "string", "default": value}
        return {"name": "t", "inputSchema": {"type": "object", "properties": {"token": member}}}

    old, new = save("old", given("canary-1")), save("new", given("canary-2"))
    for words in ([], ["--json"], ["--markdown"]):
        shown = run("diff", old, new, *words)
        assert "default" in shown.out
        assert "canary" not in shown.out + shown.err


def test_changes_beyond_the_limit_are_counted(run: Any, save: Any) -> None:
    many = [{"name": str(number)} for number in range(2500)]
    shown = run("diff", save("old", *many), save("new"))
    assert "BREAKING (2500)" in shown.out
    assert "\nand 500 more\n" in shown.out


def test_notes_are_printed(run: Any, save: Any) -> None:
    old = save("old", ADD, server={"version": "1.0.0"}, prompts=[{"name": "p"}])
    new = save("new", ADD | {"name": "sum"}, server={"version": "1.0.1"})
    shown = run("diff", old, new)
    assert "note: tool 'add' may have been renamed to 'sum'" in shown.out
    assert "note: prompts were not compared" in shown.out
    assert "note: the version goes from '1.0.0' to '1.0.1'" in shown.out


def test_a_terminal_gets_colour(
    save: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert command.run("diff", [save("old", ADD), save("new", TEXT)]) == 1
    assert "\x1b[31mBREAKING (1)\x1b[0m" in capsys.readouterr().out

"""Every screen of the verbs that use a server or look something up, as a user sees it.

Each runs at 60, 80 and 120 columns with and without colour, and is compared with a stored screen.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Terminal

    Start = Callable[..., Terminal]

SERVER = Path(__file__).with_name("server.py")

# By name: the exit status and the words after the address.
WITH_SERVER = {
    "list": (0, ["list"]),
    "list-tool": (0, ["list", "tools", "forecast"]),
    "list-long": (0, ["list", "tools", "add", "--long"]),
    "list-resource": (0, ["list", "resources", "demo://picture.png"]),
    "list-prompt": (0, ["list", "prompts", "report"]),
    "list-json": (0, ["list", "prompts", "-o", "json"]),
    "call-value": (0, ["call", "forecast", "city=Oslo", "tags=a,b", "is_dry=yes"]),
    "call-text": (0, ["call", "shout"]),
    "call-wrong-argument": (2, ["call", "forecast", "city=Oslo", "days=three"]),
    "call-unknown-tool": (2, ["call", "forecats"]),
    "call-without-name": (2, ["call"]),
    "call-failed": (1, ["call", "fail"]),
    "call-log": (0, ["call", "warn", "--log", "warning"]),
    "read": (0, ["read", "demo://notes"]),
    "read-unknown": (1, ["read", "demo://nothing"]),
    "prompt": (0, ["prompt", "report", "city=Oslo"]),
}
WITHOUT_SERVER = {
    "spec-methods": ["spec", "methods"],
    "spec-method": ["spec", "method", "tools/list"],
    "spec-requirement": ["spec", "requirement", "mcp.progress.grows"],
    "spec-error": ["spec", "error", "-32602"],
    "spec-type": ["spec", "type", "Tool"],
    "spec-statuses": ["spec", "statuses"],
    "spec-diff": ["spec", "diff", "2025-03-26", "2025-06-18"],
    "spec-schema": ["spec", "schema", "Root"],
    "spec-find": ["spec", "logging"],
}
TIMES = {r"\d+\.\d+ ms": "N ms", r"(min|avg|max) [\d.]+": r"\1 N", r"max N ms": "max N"}


@pytest.mark.parametrize("name", WITH_SERVER)
def test_a_verb_with_a_server(on_screen: Start, address: str, name: str) -> None:
    status, (verb, *words) = WITH_SERVER[name]
    run = on_screen(verb, address, *words)
    assert run.wait() == status
    run.assert_usable()
    run.assert_screen(name)


@pytest.mark.parametrize("name", WITHOUT_SERVER)
def test_a_look_into_the_specification(on_screen: Start, name: str) -> None:
    run = on_screen(*WITHOUT_SERVER[name])
    assert run.wait() == 0
    run.assert_usable()
    run.assert_screen(name)


def test_pings(on_screen: Start, address: str) -> None:
    run = on_screen("ping", address, "-c", "2", "--interval", "0")
    assert run.wait() == 0
    run.assert_usable()
    run.assert_screen("ping", TIMES)


def test_a_form(on_screen: Start, address: str) -> None:
    run = on_screen("call", address, "order")
    run.until("Your name:")
    run.type("Ada\n")
    run.until("size (1 to 2):")
    run.type("huge\n")
    run.until("expected a number")
    run.type("2\n")
    run.until("number [2]:")
    run.type("\n")
    run.until("gift (y/n) [n]:")
    run.type("y\n")
    assert run.wait() == 0
    run.assert_usable()
    run.assert_screen("form")


def test_a_page_to_visit(on_screen: Start, address: str) -> None:
    run = on_screen("call", address, "pay")
    run.until("[y/N]:")
    run.type("n\n")
    assert run.wait() == 0
    run.assert_usable()
    run.assert_screen("page")


def test_a_bar_of_progress(on_screen: Start, address: str) -> None:
    run = on_screen("call", address, "count", "steps=4", "wait=0.3")
    run.until("50% step 2")
    run.assert_screen("progress")
    assert run.wait() == 0
    run.assert_usable()
    assert run.text == "counted"


def test_a_wait(on_screen: Start, address: str) -> None:
    run = on_screen("call", address, "pause")
    run.until(" calling pause 1 s")
    run.assert_screen("waiting", {"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]": "⠋"})
    run.type("\x03")
    assert run.wait() == 130
    run.assert_usable()
    assert run.text == ""


def test_a_server_that_is_not_there(on_screen: Start, tmp_path: Path) -> None:
    run = on_screen("list", "unix:gone.sock", cwd=tmp_path)
    assert run.wait() == 3
    run.assert_usable()
    run.assert_screen("unreachable")


@pytest.mark.parametrize(
    ("name", "words", "last", "status"),
    [
        ("serve-stdio", ["serve", "server.py"], "--http 8000", 0),
        ("serve-socket", ["serve", "server.py", "--unix", "demo.sock"], "unix:demo.sock", 0),
        ("proxy-stdio", ["proxy", "--", sys.executable, "server.py"], "127.0.0.1:9000 ...", 130),
    ],
)
def test_a_verb_that_waits_for_clients(
    on_screen: Start, tmp_path: Path, name: str, words: list[str], last: str, status: int
) -> None:
    (tmp_path / "server.py").write_text(SERVER.read_text())
    run = on_screen(*words, cwd=tmp_path)
    run.until(last)
    # The end of the line may come later than its words, and what is typed is shown at once.
    run.read_until(lambda: run.screen.cursor.x == 0)
    if name.endswith("stdio"):
        # Its words come before: a signal would end a server that does not serve yet.
        run.read_until(lambda: run.is_read)
    run.type("\x03")
    assert run.wait() == status
    run.assert_usable()
    run.assert_screen(name)


MESSAGES = [
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": 7, "arguments": {"text": f"\x1b[31m {'a long text ' * 8}漢字"}},
    },
]


def test_findings(on_screen: Start, tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps(each)}\n" for each in MESSAGES)
    (tmp_path / "messages.jsonl").write_text(lines)
    run = on_screen("validate", "messages.jsonl", "--revision", "2025-11-25", cwd=tmp_path)
    assert run.wait() == 1
    run.assert_usable()
    run.assert_screen("validate")


def test_differences(on_screen: Start, tmp_path: Path) -> None:
    old = {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {}}}}
    new = {
        "name": "add",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "\x1b[2J": {"type": "string"}},
            "required": ["a"],
        },
    }
    (tmp_path / "old.json").write_text(json.dumps({"tools": [old]}))
    (tmp_path / "new.json").write_text(json.dumps({"tools": [new, {**old, "name": "plus"}]}))
    run = on_screen("diff", "old.json", "new.json", cwd=tmp_path)
    assert run.wait() == 1
    run.assert_usable()
    run.assert_screen("diff")


# The width in a pipe


def test_in_a_pipe_text_is_as_wide_as_the_terminal_of_the_user(terminal: Start) -> None:
    code = (
        "import subprocess, sys;"
        "print(subprocess.run([sys.executable, '-m', 'trunkline', 'spec', 'diff', '2025-03-26', "
        "'2025-06-18'], stdout=subprocess.PIPE, text=True).stdout)"
    )
    run = terminal("-c", code, program=[sys.executable], columns=66, rows=300)
    assert run.wait() == 0
    widths = [len(line) for line in run.text.split("\n")]
    assert 60 < max(widths) <= 66
    assert run.text.startswith("From MCP 2025-03-26")

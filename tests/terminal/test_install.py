"""`install` and `uninstall` at a terminal: the question, and every way to answer it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each

Start = Callable[..., Any]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of Cursor; the current folder has a server."""
    path = tmp_path / "home" / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text('{\n  "mcpServers": {\n    "old": {"command": "npx"}\n  }\n}\n')
    project = tmp_path / "weather"
    project.mkdir()
    (project / "server.py").write_text("from trunkline import Server\napp = Server('demo')\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(project)
    return path


@for_each("answer", ["y\n", "YES\n"])
def test_a_yes_writes(terminal: Start, config: Path, answer: str) -> None:
    words = ("install", "server.py", "--to", "cursor", "--name", f"n{len(answer)}")
    run = terminal(*words, columns=400)  # the question is on one line, however long the path
    run.until("[y/N]")
    assert "Cursor (user)" in run.text
    assert '+    "n' in run.text
    run.type(answer)
    assert run.wait() == 0
    assert "is added to Cursor" in run.text
    assert f"n{len(answer)}" in json.loads(config.read_text())["mcpServers"]
    run.assert_usable()


@for_each("answer", ["\n", "n\n", "no\n", "\x04"])
def test_anything_but_a_yes_writes_nothing(terminal: Start, config: Path, answer: str) -> None:
    before = config.read_text()
    for words in (
        ["install", "server.py", "--to", "cursor"],
        ["uninstall", "old", "--from", "cursor"],
    ):
        run = terminal(*words)
        run.until("[y/N]")
        run.type(answer)
        assert run.wait() == 2
        assert "nothing was written" in run.text
        assert config.read_text() == before
        run.assert_usable()


def test_another_answer_is_asked_again(terminal: Start, config: Path) -> None:
    run = terminal("uninstall", "old", "--from", "cursor")
    run.until("[y/N]")
    run.type("maybe\n")
    run.until("y or n, please")
    run.type("y\n")
    assert run.wait() == 0
    assert json.loads(config.read_text()) == {"mcpServers": {}}


def test_ctrl_c_writes_nothing(terminal: Start, config: Path) -> None:
    before = config.read_text()
    run = terminal("install", "server.py", "--to", "cursor")
    run.until("[y/N]")
    run.type("\x03")
    assert run.wait() == 130
    assert config.read_text() == before
    assert [each.name for each in config.parent.iterdir()] == ["mcp.json"]
    assert "Traceback" not in run.text
    run.assert_usable()


def test_the_file_may_change_while_the_user_reads(terminal: Start, config: Path) -> None:
    run = terminal("install", "server.py", "--to", "cursor")
    run.until("[y/N]")
    config.write_text('{"mcpServers": {"other": {"command": "x"}}, "new": [1]}')
    run.type("y\n")
    assert run.wait() == 0
    document = json.loads(config.read_text())
    assert list(document["mcpServers"]) == ["other", "weather"]
    assert document["new"] == [1]


def test_an_entry_that_changes_while_the_user_reads_is_not_replaced(
    terminal: Start, config: Path
) -> None:
    run = terminal("uninstall", "old", "--from", "cursor", columns=120)
    run.until("[y/N]")
    text = '{"mcpServers": {"old": {"command": "another"}}}'
    config.write_text(text)
    run.type("y\n")
    assert run.wait() == 6
    assert "changed meanwhile: nothing was written" in run.text.replace("\n", "")
    assert config.read_text() == text


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("colour", [True, False])
def test_the_screen_of_a_question(
    terminal: Start, config: Path, columns: int, colour: bool
) -> None:
    environment = {} if colour else {"NO_COLOR": "1"}
    words = ["install", "--to", "cursor", "--name", "n", "--env", "TOKEN=CANARY", "--", "/bin/sh"]
    run = terminal(*words, "-c", "x", columns=columns, **environment)
    run.until("[y/N]")
    run.type("n\n")
    assert run.wait() == 2
    shown = run.raw.decode().replace("\r\n", "\n")
    assert "CANARY" not in shown
    assert (b"\x1b[" in run.raw) == colour
    if not colour:
        start = shown.index("host:")
        assert shown[start : shown.index("Write")] == (
            "host:     Cursor (user)\n"
            f"file:     {config}\n"
            "entry:    n\n"
            "command:  /bin/sh -c x\n"
            "env:      TOKEN\n"
            "\n"
            f"--- {config}\n"
            f"+++ {config}\n"
            "@@ -1,5 +1,13 @@\n"
            " {\n"
            '   "mcpServers": {\n'
            '-    "old": {"command": "npx"}\n'
            '+    "old": {"command": "npx"},\n'
            '+    "n": {\n'
            '+      "type": "stdio",\n'
            '+      "command": "/bin/sh",\n'
            '+      "args": ["-c", "x"],\n'
            '+      "env": {\n'
            '+        "TOKEN": "[redacted: new value]"\n'
            "+      }\n"
            "+    }\n"
            "   }\n"
            " }\n"
        )


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("colour", [True, False])
def test_the_screen_of_hosts(terminal: Start, config: Path, columns: int, colour: bool) -> None:
    config.write_text(
        '{"mcpServers": {"a": {"command": "/no/such", "args": ["\\u001b[2J", "x y"]}}}'
    )
    environment = {} if colour else {"NO_COLOR": "1"}
    run = terminal("hosts", "cursor", columns=columns, **environment)
    assert run.wait() == 0
    assert (b"\x1b[" in run.raw) == colour
    assert b"\x1b[2J" not in run.raw
    if not colour:
        # The path of the project is long: its line is broken at spaces.
        shown = re.sub(
            r"(project:|mcp.json)\n +(/|\(missing)",
            r"\1 \2",
            run.raw.decode().replace("\r\n", "\n"),
        )
        assert shown == (
            "Cursor (cursor)\n"
            f"  project: {Path.cwd()}/.cursor/mcp.json (missing)\n"
            "  user: ~/.cursor/mcp.json\n"
            "    a\n"
            "      /no/such '\\x1b[2J' 'x y'\n"
            "      fails: no such program: /no/such\n"
        )
    run.assert_usable()


def test_ctrl_c_during_a_check_ends_the_servers(
    terminal: Start, config: Path, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    script = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    entry = {"command": sys.executable, "args": ["-c", script]}
    config.write_text(json.dumps({"mcpServers": {"a": entry}}))
    run = terminal("hosts", "cursor", "--check")
    run.until("checking 1 server, 30 s each at most")
    run.until_there(pid)
    run.type("\x03")
    assert run.wait() == 130
    assert "Traceback" not in run.text
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    run.assert_usable()

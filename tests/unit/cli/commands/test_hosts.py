"""The verb `hosts`: what is here, and which entries fail to start."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.host_variables import HOST_VARIABLES

CANARY = "CANARY-a07b33"
TERMINAL = Path(__file__).parents[3] / "terminal"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in HOST_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    project = tmp_path / "p"
    project.mkdir()
    monkeypatch.chdir(project)
    return home


def write(home: Path, **servers: Any) -> Path:
    path = home / ".cursor" / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_hosts_that_are_here_are_listed_with_their_files_and_entries(run: Any, home: Path) -> None:
    write(
        home,
        local={"command": sys.executable, "args": ["-m", "x"], "env": {"KEY": CANARY}},
        remote={"url": f"https://u:{CANARY}@h/mcp", "headers": {"Authorization": CANARY}},
        bad={"command": 1},
        gone={"command": "no-such-program-here"},
        unset={"command": "${env:NOT_SET_HERE}"},
    )
    shown = run("hosts")
    assert (shown.status, shown.err) == (0, "")
    assert CANARY not in shown.out
    assert shown.out.startswith(
        "Cursor (cursor)\n"
        f"  project: {Path.cwd()}/.cursor/mcp.json (missing)\n"
        "  user: ~/.cursor/mcp.json\n"
        f"    local\n      {sys.executable} -m x\n      env: KEY\n"
        "    remote\n      https://"
    )
    assert "      headers: Authorization\n" in shown.out
    assert "    bad\n      wrong: command: expected a string, got a number\n" in shown.out
    assert "      fails: no such program: no-such-program-here\n" in shown.out
    assert "      fails: command: the environment variable NOT_SET_HERE is not set\n" in shown.out
    assert "\nnot here: claude-desktop, claude-code, vscode" in shown.out


def test_lines_are_broken_at_spaces_on_a_narrow_terminal(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.cli.commands.hosts.row_width", lambda: 60)
    write(home, weather={"command": "trunkline", "args": ["serve", "/folder/of/the/" + "x" * 30]})
    shown = run("hosts").out
    assert "      trunkline serve\n        /folder/of/the/xxx" in shown
    absent = shown[shown.index("not here:") :]
    assert absent.count("\n  ") >= 1
    assert max(map(len, absent.splitlines())) <= 60
    # No name is cut.
    assert "copilot-cli," in absent.split()


def test_entries_are_started_and_ended_by_a_check(run: Any, home: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    crash = f"import sys; sys.exit('the key {CANARY} is wrong')"
    write(
        home,
        good={
            "command": sys.executable,
            "args": [str(TERMINAL / "server.py")],
            "env": {"PIDFILE": str(pid)},
        },
        crash={"command": sys.executable, "args": ["-c", crash], "env": {"K": CANARY}},
        noise={"command": sys.executable, "args": ["-c", "print('hello'); input()"]},
        gone={"command": "no-such-program-here"},
        off={"url": "http://127.0.0.1:1/mcp"},
    )
    shown = run("hosts", "cursor", "--check", "--timeout", "20")
    assert shown.status == 1
    assert "      answers: demo 1.0, MCP 2026-07-28\n" in shown.out
    assert "      fails: no such program: no-such-program-here\n" in shown.out
    assert CANARY not in shown.out.split("crash\n")[1].split("fails:")[1]
    failures = [line for line in shown.out.splitlines() if line.startswith("      fails: ")]
    assert len(failures) == 4
    assert any("[redacted] is wrong" in line for line in failures)
    assert shown.err == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_server_that_does_not_answer_is_ended(run: Any, home: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    sleep = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    write(home, silent={"command": sys.executable, "args": ["-c", sleep]})
    shown = run("hosts", "cursor", "--check", "--timeout", "1")
    assert shown.status == 1
    assert "      fails: no answer within 1 s\n" in shown.out
    if pid.exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)


def test_a_check_without_problems_succeeds(run: Any, home: Path) -> None:
    write(home, good={"command": sys.executable, "args": [str(TERMINAL / "server.py")]})
    assert run("hosts", "--check").status == 0


def test_entries_that_are_switched_off_are_not_started(run: Any, home: Path) -> None:
    path = home / ".codeium" / "windsurf" / "mcp_config.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"off": {"command": "no-such-program", "disabled": true}}}')
    shown = run("hosts", "windsurf", "--check")
    assert shown.status == 0
    assert "    off (disabled)\n" in shown.out
    assert "fails" not in shown.out


def test_a_file_that_cannot_be_read_is_said_and_does_not_hide_the_rest(
    run: Any, home: Path
) -> None:
    write(home).write_text("{")
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text('{"mcpServers": {"g": {"command": "x"}}}')
    shown = run("hosts")
    assert shown.status == 0
    assert "    cannot be read: not JSON: line 1, column 2" in shown.out
    assert "    g\n" in shown.out
    assert run("hosts", "cursor", "--check").status == 1


def test_json_has_all_hosts(run: Any, home: Path) -> None:
    write(
        home,
        a={"command": "x", "args": ["--token", CANARY], "env": {"K": CANARY}},
        b={"url": "https://h/mcp"},
    )
    shown = run("hosts", "-o", "json")
    assert CANARY not in shown.out
    document = json.loads(shown.out)
    assert document["format"] == "trunkline.hosts/1"
    found = {each["id"]: each for each in document["hosts"]}
    assert len(found) >= 14
    assert (found["cursor"]["isHere"], found["zed"]["isHere"]) == (True, False)
    [project, user] = found["cursor"]["files"]
    assert (project["isThere"], user["isThere"]) == (False, True)
    [a, b] = user["entries"]
    assert a == {
        "name": "a",
        "transport": "stdio",
        "command": ["x", "--token", "[redacted]"],
        "env": ["K"],
        "isDisabled": False,
        "problem": "no such program: x",
    }
    assert (b["transport"], b["url"], b["headers"]) == ("http", "https://h/mcp", [])


def test_names_of_entries_cannot_control_the_terminal(run: Any, home: Path) -> None:
    write(home, **{"\x1b[2J\n\u202e": {"command": "x\x1b[2J"}})
    shown = run("hosts")
    assert "\x1b" not in shown.out
    assert "\u202e" not in shown.out
    assert "\\x1b[2J\\n" in shown.out


def test_json_has_no_control_characters_and_loses_none(run: Any, home: Path) -> None:
    name = "\x1b[2J\x9b31m\u202e"
    write(home, **{name: {"command": "x"}})
    shown = run("hosts", "cursor", "-o", "json")
    assert shown.out.replace("\n", "").isprintable()
    assert json.loads(shown.out)["hosts"][0]["files"][1]["entries"][0]["name"] == name


def test_errors_about_entries_cannot_control_the_terminal(run: Any, home: Path) -> None:
    hostile = "\x1b]0;x\x07\u202e"
    write(
        home,
        typed={"command": "x", "env": {hostile: 5}},
        unset={"command": "x", "env": {"A": f"${{env:{hostile}}}"}},
    )
    for name in ("typed", "unset"):
        for words in ((f"cursor:{name}",), ("--config", str(home / ".cursor/mcp.json"), name)):
            shown = run("list", *words)
            assert shown.status == 2
            assert shown.err.replace("\n", "").isprintable()
            assert "\\x1b]0;x" in shown.err


def test_the_query_of_a_url_is_hidden(run: Any, home: Path) -> None:
    write(home, a={"url": f"https://h/mcp?key={CANARY}&b=${{env:B}}&c"})
    for words in (("hosts",), ("hosts", "-o", "json")):
        shown = run(*words)
        assert "https://h/mcp?key=[redacted]&b=${env:B}&c" in shown.out
        assert CANARY not in shown.out


def test_secrets_in_a_text_for_a_shell_and_in_the_command_are_hidden(run: Any, home: Path) -> None:
    write(
        home,
        shell={"command": "sh", "args": ["-c", f"exec server --key {CANARY} --port 1"]},
        command={"command": f"no-such-program --api-key {CANARY} --port 1"},
    )
    for words in (("hosts",), ("hosts", "-o", "json"), ("hosts", "cursor", "--check")):
        shown = run(*words)
        assert "exec server --key [redacted] --port 1" in shown.out
        assert "no-such-program --api-key [redacted] --port 1" in shown.out
        assert CANARY not in shown.out


def test_a_failed_check_does_not_quote_the_value_of_an_option(run: Any, home: Path) -> None:
    crash = "import sys; sys.exit(f'the key {sys.argv[2]} is wrong')"
    write(home, a={"command": sys.executable, "args": ["-c", crash, "--key", CANARY]})
    shown = run("hosts", "cursor", "--check", "--timeout", "20")
    assert shown.status == 1
    assert "the key [redacted] is wrong" in shown.out
    assert CANARY not in shown.out


def test_a_failed_check_does_not_quote_the_query_of_a_url(run: Any, home: Path) -> None:
    write(home, a={"url": f"ftp://h/mcp?key={CANARY}"})
    shown = run("hosts", "cursor", "--check")
    assert shown.status == 1
    assert "fails: 'ftp://h/mcp?key=[redacted]' is not an address" in shown.out
    assert CANARY not in shown.out


@pytest.mark.parametrize("file", ["a\0b", "/dev/zero", "none.env"])
def test_a_file_of_variables_that_cannot_be_read_is_a_problem(
    run: Any, home: Path, file: str
) -> None:
    Path(".vscode").mkdir()
    entry = {"command": sys.executable, "envFile": file}
    Path(".vscode/mcp.json").write_text(json.dumps({"servers": {"a": entry}}))
    shown = run("hosts", "vscode")
    assert shown.status == 0
    assert "      fails: envFile: " in shown.out


def test_servers_that_the_current_folder_names_are_not_started_unasked(
    run: Any, home: Path, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    code = f"open({str(started)!r}, 'w')"
    Path(".cursor").mkdir()
    Path(".cursor/mcp.json").write_text(
        json.dumps({"mcpServers": {"evil": {"command": sys.executable, "args": ["-c", code]}}})
    )
    shown = run("hosts", "--check")
    assert (shown.status, started.exists()) == (0, False)
    assert "      not started: this folder names it; add --project to start it\n" in shown.out
    [file] = [
        each
        for host in json.loads(run("hosts", "--check", "-o", "json").out)["hosts"]
        for each in host["files"]
        if each["entries"]
    ]
    assert "not started" in file["entries"][0]["note"]
    assert not started.exists()
    assert run("hosts", "--check", "--project").status == 1
    assert started.exists()


def test_a_host_that_is_named_is_shown_even_if_it_is_not_here(run: Any, home: Path) -> None:
    shown = run("hosts", "claude")
    assert shown.out.startswith("Claude Desktop (claude-desktop)\n  user: ~/")
    assert run("hosts", "emacs").status == 2


def test_another_name_of_a_file_is_listed_if_it_is_there(run: Any, home: Path) -> None:
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(
        '{"mcp": {"a": {"type": "local", "command": ["x", "y"]}}}'
    )
    shown = run("hosts", "opencode").out
    assert "opencode.json\n    a\n      x y\n" in shown
    assert "opencode.jsonc" not in shown
    (folder / "opencode.jsonc").write_text('{"mcp": {"b": {"type": "remote", "url": "http://x/"}}}')
    shown = run("hosts", "opencode").out
    assert shown.index("opencode.jsonc\n    b\n") < shown.index("opencode.json\n    a\n")


def test_a_file_in_yaml_is_listed(run: Any, home: Path) -> None:
    folder = home / ".continue"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        f"mcpServers:\n- name: a\n  url: https://h/mcp\n  requestOptions:\n    headers:\n"
        f"      X-Key: {CANARY}\n- name: b\n  command: {sys.executable}\n  args: [x]\n"
        f"  env: {{K: {CANARY}}}\n"
    )
    shown = run("hosts", "continue")
    assert (shown.status, CANARY in shown.out) == (0, False)
    assert "    a\n      https://h/mcp\n      headers: X-Key\n" in shown.out
    assert f"    b\n      {sys.executable} x\n      env: K\n" in shown.out
    (folder / "config.yaml").write_text(f"a: [{CANARY}\n")
    shown = run("hosts", "continue", "--check")
    assert (shown.status, CANARY in shown.out) == (1, False)
    assert "cannot be read: not YAML: line " in shown.out

"""Configuration files: where they are on each platform, and what is read from them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import for_each
from trunkline.hosts.errors import HostConfigError
from trunkline.hosts.files import (
    load_config,
    load_entry,
    load_files,
    load_host,
    locate,
    read_config,
)
from trunkline.hosts.table import find_host

UNIX = {"HOME": "/home/me"}
WINDOWS = {"USERPROFILE": "C:\\Users\\me", "APPDATA": "C:\\Users\\me\\AppData\\Roaming"}


@for_each(
    ("name", "platform", "environ", "path"),
    [
        ("claude", "linux", UNIX, "/home/me/.config/Claude/claude_desktop_config.json"),
        (
            "claude",
            "linux",
            {**UNIX, "XDG_CONFIG_HOME": "/x"},
            "/x/Claude/claude_desktop_config.json",
        ),
        (
            "claude",
            "linux",
            {**UNIX, "XDG_CONFIG_HOME": "relative"},
            "/home/me/.config/Claude/claude_desktop_config.json",
        ),
        (
            "claude",
            "darwin",
            UNIX,
            "/home/me/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        (
            "claude",
            "win32",
            WINDOWS,
            "C:\\Users\\me\\AppData\\Roaming\\Claude\\claude_desktop_config.json",
        ),
        (
            "claude",
            "win32",
            {"USERPROFILE": "C:\\Users\\me"},
            "C:\\Users\\me\\AppData\\Roaming\\Claude\\claude_desktop_config.json",
        ),
        ("claude-code", "linux", UNIX, "/home/me/.claude.json"),
        ("claude-code", "linux", {**UNIX, "CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("cursor", "darwin", UNIX, "/home/me/.cursor/mcp.json"),
        ("cursor", "win32", WINDOWS, "C:\\Users\\me\\.cursor\\mcp.json"),
        ("vscode", "linux", UNIX, "/home/me/.config/Code/User/mcp.json"),
        ("windsurf", "linux", UNIX, "/home/me/.codeium/windsurf/mcp_config.json"),
        ("gemini", "linux", UNIX, "/home/me/.gemini/settings.json"),
        ("codex", "linux", {**UNIX, "CODEX_HOME": "/cx"}, "/cx/config.toml"),
        ("zed", "win32", WINDOWS, "C:\\Users\\me\\AppData\\Roaming\\Zed\\settings.json"),
        ("cline", "linux", {**UNIX, "CLINE_MCP_SETTINGS_PATH": "/m.json"}, "/m.json"),
        ("cursor", "freebsd14", UNIX, "/home/me/.cursor/mcp.json"),
    ],
)
def test_the_user_file_of_a_host(
    name: str, platform: str, environ: dict[str, str], path: str
) -> None:
    host = find_host(name)
    location = next(each for each in host.locations if each.scope == "user")
    assert locate(host, location, environ=environ, platform=platform) == path


def test_the_project_file_is_in_the_folder_of_the_project() -> None:
    host = find_host("vscode")
    [location] = [each for each in host.locations if each.scope == "project"]
    found = locate(host, location, environ=UNIX, platform="linux", project="/w")
    assert found == "/w/.vscode/mcp.json"
    found = locate(host, location, environ=WINDOWS, platform="win32", project="C:\\w")
    assert found == "C:\\w\\.vscode\\mcp.json"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def test_a_stronger_scope_hides_a_weaker_one(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()

    def servers(command: str, *names: str) -> dict[str, object]:
        return {"mcpServers": {name: {"command": command} for name in names}}

    (home / ".claude.json").write_text(
        json.dumps(
            {**servers("user", "a", "b", "c"), "projects": {str(project): servers("local", "a")}}
        )
    )
    (project / ".mcp.json").write_text(json.dumps(servers("project", "a", "b", "d")))
    found = load_host("claude-code", project=str(project))
    assert {name: each.command for name, each in found.items()} == {
        "a": "local",
        "b": "project",
        "c": "user",
        "d": "project",
    }
    assert {name: each.scope for name, each in found.items()} == {
        "a": "local",
        "b": "project",
        "c": "user",
        "d": "project",
    }
    assert load_entry("claude-code", "b", project=str(project)).command == "project"


def test_a_missing_file_has_no_entries(home: Path) -> None:
    assert load_host("cursor", project=str(home)) == {}
    files = load_files(find_host("cursor"), project=str(home))
    assert [(each.is_there, each.entries, each.error) for each in files] == [(False, (), "")] * 2


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff"])
def test_an_empty_file_has_no_entries(home: Path, text: str) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text(text)
    assert load_host("cursor") == {}


@for_each(
    ("data", "problem"),
    [
        (b'{"mcpServers": {', "not JSON: line 1, column 17: expected a name"),
        (b"\xff{}", "not UTF-8, at byte 0"),
        (b"[]", "expected an object, got an array"),
        (b'{"mcpServers": {"x": {"command": 1}}}', "entry 'x': command: expected a string"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_its_path(
    home: Path, data: bytes, problem: str
) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    with pytest.raises(HostConfigError) as raised:
        load_host("cursor")
    assert str(raised.value).startswith(str(path))
    assert problem in str(raised.value)


def test_toml_is_read(home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        'model = "x"\n[mcp_servers.a]\ncommand = "c"\nargs = ["1"]\n[mcp_servers.a.env]\nK = "v"\n'
        '[mcp_servers.b]\nurl = "https://a"\nenabled = false\n'
    )
    found = load_host("codex")
    assert (found["a"].command, found["a"].args, dict(found["a"].env)) == ("c", ("1",), {"K": "v"})
    assert (found["b"].url, found["b"].disabled) == ("https://a", True)
    (home / ".codex" / "config.toml").write_text("[x")
    with pytest.raises(HostConfigError, match="not TOML"):
        load_host("codex")


def test_an_entry_that_is_missing_is_an_error_with_what_there_is(home: Path) -> None:
    (home / ".cursor").mkdir()
    path = home / ".cursor" / "mcp.json"
    path.write_text('{"mcpServers": {"github": {"command": "x"}, "bad": {}}}')
    with pytest.raises(HostConfigError, match=r"has no entry 'githb'; did you mean 'github'\?"):
        load_entry("cursor", "githb")
    with pytest.raises(HostConfigError, match="has no entry 'zzz'; it has github"):
        load_entry("cursor", "zzz")
    with pytest.raises(HostConfigError, match="entry 'bad': has no command and no url"):
        load_entry("cursor", "bad")
    assert load_entry("cursor", "github").command == "x"
    path.write_text("{}")
    with pytest.raises(HostConfigError, match="it has no entries"):
        load_entry("cursor", "github")


@for_each("key", ["mcpServers", "servers", "context_servers"])
def test_any_file_with_servers_is_read(tmp_path: Path, key: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(f'{{"{key}": {{"a": {{"command": "${{X}}"}}}}}} // comment')
    assert load_config(str(path))["a"].command == "${X}"


def test_any_toml_file_with_servers_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[mcp_servers.a]\ncommand = "x"\n')
    assert load_config(str(path), "a")["a"].command == "x"


def test_a_config_without_what_was_asked_for_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    with pytest.raises(HostConfigError, match="no such file"):
        load_config(str(path))
    path.write_text("{}")
    with pytest.raises(HostConfigError, match="has no servers: none of mcpServers, servers"):
        load_config(str(path))
    path.write_text('{"mcpServers": {"a": {"command": "x"}, "b": 1}}')
    assert list(load_config(str(path), "a")) == ["a"]
    with pytest.raises(HostConfigError, match="entry 'b': expected an object, got a number"):
        load_config(str(path))
    with pytest.raises(HostConfigError, match="has no entry 'c'; it has a, b"):
        load_config(str(path), "c")
    with pytest.raises(HostConfigError, match="expected an object, got an array"):
        read_config([])


def test_a_file_that_cannot_be_opened_is_an_error(home: Path) -> None:
    (home / ".cursor" / "mcp.json").mkdir(parents=True)
    with pytest.raises(HostConfigError, match=r"mcp\.json: Is a directory"):
        load_host("cursor")


def test_the_package_is_not_loaded_with_the_library_or_the_help() -> None:
    script = (
        "import sys, trunkline, trunkline.cli; trunkline.Client; trunkline.cli.main(['--help']);"
        "print(any(name.startswith('trunkline.hosts') for name in sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.splitlines()[-1] == "False"

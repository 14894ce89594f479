"""Configuration files: where they are on each platform, and what is read from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import for_each
from trunkline.hosts.entries import ServerEntry
from trunkline.hosts.errors import HostConfigError
from trunkline.hosts.files import MAX_PROJECT_BYTES, load_files, locate, read_file
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
        ("opencode", "linux", UNIX, "/home/me/.config/opencode/opencode.json"),
        ("opencode", "win32", WINDOWS, "C:\\Users\\me\\.config\\opencode\\opencode.json"),
        ("qwen", "linux", {**UNIX, "QWEN_HOME": "/q"}, "/q/settings.json"),
        ("droid", "darwin", UNIX, "/home/me/.factory/mcp.json"),
        ("crush", "linux", UNIX, "/home/me/.config/crush/crush.json"),
        ("crush", "linux", {**UNIX, "XDG_CONFIG_HOME": "/x"}, "/x/crush/crush.json"),
        ("crush", "linux", {**UNIX, "CRUSH_GLOBAL_CONFIG": "/c"}, "/c/crush.json"),
    ],
)
def test_the_user_file_of_a_host(
    name: str, platform: str, environ: dict[str, str], path: str
) -> None:
    host = find_host(name)
    [location] = (
        each for each in host.locations if each.scope == "user" and not each.is_alternative
    )
    assert locate(location, environ=environ, platform=platform) == path


def test_the_project_file_is_in_the_folder_of_the_project() -> None:
    host = find_host("vscode")
    [location] = [each for each in host.locations if each.scope == "project"]
    found = locate(location, environ=UNIX, platform="linux", project="/w")
    assert found == "/w/.vscode/mcp.json"
    found = locate(location, environ=WINDOWS, platform="win32", project="C:\\w")
    assert found == "C:\\w\\.vscode\\mcp.json"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def entries(host: str, project: str | None = None) -> dict[str, ServerEntry]:
    """Return the entries of a host by name, the strongest scope first; raise what is wrong."""
    found: dict[str, ServerEntry] = {}
    for file in load_files(find_host(host), project=project):
        if file.error:
            raise HostConfigError(file.error, file=file.path)
        for problem in file.problems:
            raise HostConfigError(problem.problem, file=file.path, entry=problem.name)
        for entry in file.entries:
            found.setdefault(entry.name, entry)
    return found


def test_files_come_from_the_strongest_scope_to_the_weakest(home: Path, tmp_path: Path) -> None:
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
    found = entries("claude-code", project=str(project))
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


def test_the_file_of_the_home_folder_is_that_of_the_user_alone(home: Path, tmp_path: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    for is_there in (False, True):
        (only,) = load_files(find_host("cursor"), project=str(home))
        assert (only.location.scope, only.path, only.is_there) == ("user", str(path), is_there)
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    assert [each.scope for each in entries("cursor", project=str(home)).values()] == ["user"]
    # By another name of the folder too.
    (tmp_path / "link").symlink_to(home)
    (only,) = load_files(find_host("cursor"), project=str(tmp_path / "link"))
    assert (only.location.scope, only.path) == ("user", str(path))


def test_two_places_in_one_file_stay_apart(home: Path) -> None:
    files = load_files(find_host("claude-code"), project=str(home))
    assert [each.location.scope for each in files] == ["local", "project", "user"]
    assert files[0].path == files[2].path


def test_a_missing_file_has_no_entries(home: Path, tmp_path: Path) -> None:
    assert entries("cursor", project=str(tmp_path)) == {}
    files = load_files(find_host("cursor"), project=str(tmp_path))
    assert [(each.is_there, each.entries, each.error) for each in files] == [(False, (), "")] * 2


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff"])
def test_an_empty_file_has_no_entries(home: Path, text: str) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text(text)
    assert entries("cursor") == {}


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
        entries("cursor")
    assert str(raised.value).startswith(str(path))
    assert problem in str(raised.value)


def test_toml_is_read(home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        'model = "x"\n[mcp_servers.a]\ncommand = "c"\nargs = ["1"]\n[mcp_servers.a.env]\nK = "v"\n'
        '[mcp_servers.b]\nurl = "https://a"\nenabled = false\n'
    )
    found = entries("codex")
    assert (found["a"].command, found["a"].args, dict(found["a"].env)) == ("c", ("1",), {"K": "v"})
    assert (found["b"].url, found["b"].disabled) == ("https://a", True)
    (home / ".codex" / "config.toml").write_text("[x")
    with pytest.raises(HostConfigError, match="not TOML"):
        entries("codex")


def test_a_file_that_cannot_be_opened_is_an_error(home: Path) -> None:
    (home / ".cursor" / "mcp.json").mkdir(parents=True)
    with pytest.raises(HostConfigError, match=r"mcp\.json: Is a directory"):
        entries("cursor")


def test_the_package_is_not_loaded_with_the_library_or_the_help() -> None:
    script = (
        "import sys, trunkline, trunkline.cli; trunkline.Client; trunkline.cli.main(['--help']);"
        "print(any(name.startswith('trunkline.hosts') for name in sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.splitlines()[-1] == "False"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_or_a_terminal_in_the_place_of_a_file_is_not_read(
    home: Path, tmp_path: Path
) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(HostConfigError, match=r"mcp\.json: not a regular file"):
        entries("cursor")
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(HostConfigError, match=r"mcp\.json: not a regular file"):
        entries("cursor")
    with pytest.raises(HostConfigError, match="not the name of a file"):
        read_file("a\0b")


def test_a_large_file_of_a_project_is_not_read(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "p" / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}".ljust(MAX_PROJECT_BYTES))
    assert entries("cursor", str(tmp_path / "p")) == {}
    path.write_text("{}".ljust(MAX_PROJECT_BYTES + 1))
    with pytest.raises(HostConfigError, match=r"mcp\.json: larger than 1 MiB"):
        entries("cursor", str(tmp_path / "p"))

"""The verbs `install` and `uninstall`: entries of hosts, shown, asked for and written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each
from tests.host_variables import HOST_VARIABLES
from trunkline.hosts.files import load_files
from trunkline.hosts.table import HOSTS, find_host

CANARY = "CANARY-51c7e0"
SERVER = "from trunkline import Server\napp = Server('demo')\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home folder with Cursor in it; the current folder is a project."""
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in HOST_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    project = tmp_path / "weather"
    project.mkdir()
    (project / "server.py").write_text(SERVER)
    monkeypatch.chdir(project)
    return home


@pytest.fixture
def config(home: Path) -> Path:
    """Return the file of Cursor, with an entry and comments."""
    path = home / ".cursor" / "mcp.json"
    path.write_text(
        '{\n  // mine\n  "mcpServers": {\n'
        f'    "old": {{"command": "npx", "env": {{"PLAIN": "{CANARY}"}}}} // x\n'
        "  }\n}\n"
    )
    return path


def entries(host: str) -> dict[str, Any]:
    files = load_files(find_host(host))
    assert not [file.error or file.problems for file in files if file.error or file.problems]
    return {each.name: each for file in files for each in file.entries}


def servers(path: Path) -> dict[str, Any]:
    return {name: each for name, each in entries("cursor").items() if each.file == str(path)}


def test_a_file_is_installed_with_absolute_paths(run: Any, config: Path) -> None:
    shown = run("install", "server.py", "--to", "cursor", "--yes")
    assert shown.status == 0
    entry = servers(config)["weather"]
    file = os.path.abspath("server.py")
    assert entry.command == sys.executable
    assert entry.args == ("-P", "-m", "trunkline", "serve", file)
    assert f"command:  {sys.executable} -P -m trunkline serve {file}\n" in shown.out
    assert f"--- {config}\n+++ {config}\n" in shown.out
    assert '+    "weather": {\n' in shown.out
    assert "trunkline install: 'weather' is added to Cursor\n" in shown.err
    assert f"trunkline install: the file as it was: {config}.bak.1\n" in shown.err
    assert "// mine" in config.read_text()
    assert "old" in servers(config)


def test_the_entry_works_in_another_folder(run: Any, config: Path) -> None:
    assert run("install", "server.py:app", "--to", "cursor", "--yes").status == 0
    entry = servers(config)["weather"]
    ping = subprocess.run(
        [sys.executable, "-m", "trunkline", "ping", "--", entry.command, *entry.args],
        cwd="/",
        env={**os.environ, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ping.returncode == 0
    assert ping.stdout.startswith("demo ")


def test_a_module_of_this_folder_is_found_from_another(run: Any, config: Path) -> None:
    (Path.cwd() / "pack").mkdir()
    (Path.cwd() / "pack" / "__init__.py").write_text("")
    (Path.cwd() / "pack" / "tools.py").write_text(SERVER)
    assert run("install", "pack.tools:app", "--to", "cursor", "--yes").status == 0
    entry = servers(config)["pack"]
    assert entry.args[-2:] == ("serve", "pack.tools:app")
    assert dict(entry.env) == {"PYTHONPATH": os.getcwd()}
    ping = subprocess.run(
        [sys.executable, "-m", "trunkline", "ping", "--", entry.command, *entry.args],
        cwd="/",
        env={**os.environ, **entry.env},
        capture_output=True,
        timeout=60,
    )
    assert ping.returncode == 0


def test_a_command_is_installed_with_absolute_paths(run: Any, config: Path) -> None:
    words = ["--to", "cursor", "--name", "n", "--yes", "--", "python3", "server.py", "-x", "word"]
    assert run("install", *words).status == 0
    entry = servers(config)["n"]
    assert os.path.isabs(entry.command)
    assert entry.args == (os.path.abspath("server.py"), "-x", "word")


def test_an_address_is_installed_as_the_host_writes_it(run: Any, home: Path) -> None:
    (home / ".gemini").mkdir()
    url = "https://mcp.example.org/mcp"
    assert run("install", url, "--to", "gemini", "--name", "ex", "--yes").status == 0
    document = json.loads((home / ".gemini" / "settings.json").read_text())
    assert document == {"mcpServers": {"ex": {"httpUrl": url}}}


@for_each(
    ("host", "address"),
    [
        ("claude-desktop", "https://mcp.example.org/mcp"),
        ("cursor", "tcp://127.0.0.1:9000"),
    ],
)
def test_an_address_that_a_host_cannot_reach_goes_through_a_proxy(
    run: Any, home: Path, host: str, address: str
) -> None:
    shown = run("install", address, "--to", host, "--dry-run", "--create", "--name", "x")
    assert shown.status == 0
    assert f"-m trunkline proxy {address}\n" in shown.out
    assert "the entry starts `trunkline proxy`, which does" in shown.err


@for_each("host", HOSTS, ids=lambda host: host.id)
def test_every_host_takes_an_entry_and_gives_it_back(run: Any, home: Path, host: Any) -> None:
    assert run("install", "server.py", "--to", host.id, "--create", "--yes").status == 0
    [entry] = entries(host.id).values()
    assert (entry.name, entry.command) == ("weather", sys.executable)
    shown = run("uninstall", "weather", "--from", host.id, "--yes")
    assert shown.status == 0
    assert f"'weather' is removed from {host.title}" in shown.err
    assert entries(host.id) == {}
    for location in host.locations:
        if location.scope == "project":
            path = Path.cwd() / location.paths["linux"]
            path.unlink(missing_ok=True)


def test_scopes_are_files(run: Any, home: Path) -> None:
    for scope in ("user", "project", "local"):
        words = ["--to", "claude-code", "--scope", scope, "--name", scope, "--yes"]
        assert run("install", "server.py", *words).status == 0
    document = json.loads((home / ".claude.json").read_text())
    assert list(document["mcpServers"]) == ["user"]
    assert list(document["projects"][os.getcwd()]["mcpServers"]) == ["local"]
    assert list(json.loads(Path(".mcp.json").read_text())["mcpServers"]) == ["project"]
    assert (home / ".claude.json").stat().st_mode & 0o777 == 0o600
    shown = run("uninstall", "project", "--from", "claude-code", "--yes")
    assert shown.status == 0
    assert json.loads(Path(".mcp.json").read_text()) == {"mcpServers": {}}
    shown = run("install", "server.py", "--to", "claude-desktop", "--scope", "project")
    assert (shown.status, "it has: user" in shown.err) == (2, True)


def test_a_name_in_several_files_needs_a_scope(run: Any, home: Path) -> None:
    for scope in ("user", "project"):
        run("install", "server.py", "--to", "cursor", "--scope", scope, "--yes")
    shown = run("uninstall", "weather", "--from", "cursor", "--yes")
    assert shown.status == 2
    assert "'weather' is in several files; add --scope project or --scope user" in shown.err
    assert run("uninstall", "weather", "--from", "cursor", "--scope", "user", "--yes").status == 0


def test_in_the_home_folder_the_file_of_the_user_is_one_file(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("install", "server.py", "--to", "cursor", "--yes")
    monkeypatch.chdir(home)
    assert run("hosts", "cursor").out.count("mcp.json") == 1
    shown = run("uninstall", "weather", "--from", "cursor", "--yes")
    assert shown.status == 0
    assert json.loads((home / ".cursor" / "mcp.json").read_text()) == {"mcpServers": {}}


def test_nothing_is_written_without_a_yes(run: Any, config: Path) -> None:
    before = config.read_bytes()
    shown = run("install", "server.py", "--to", "cursor")
    assert shown.status == 2
    assert '+    "weather": {' in shown.out
    assert "nothing was written: there is no terminal to ask at; add --yes" in shown.err
    shown = run("install", "server.py", "--to", "cursor", "--dry-run")
    assert (shown.status, shown.err) == (0, "")
    assert '+    "weather": {' in shown.out
    shown = run("uninstall", "old", "--from", "cursor")
    assert shown.status == 2
    assert config.read_bytes() == before
    assert os.listdir(config.parent) == ["mcp.json"]


def test_no_secret_is_shown(run: Any, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_HERE", CANARY)
    Path(".env").write_text(f"IN_FILE={CANARY}\n")
    words = ["--env", f"PLAIN={CANARY}", "--env", "FROM_HERE", "--env-file", ".env"]
    for _ in range(2):
        shown = run("install", "server.py", "--to", "cursor", "--yes", *words)
        assert shown.status == 0
        assert CANARY not in shown.out + shown.err
    assert "has this entry already; nothing to do" in shown.err
    assert "env:      IN_FILE, PLAIN, FROM_HERE" in shown.out
    assert dict(servers(config)["weather"].env) == dict.fromkeys(
        ["IN_FILE", "PLAIN", "FROM_HERE"], CANARY
    )
    shown = run("uninstall", "old", "--from", "cursor", "--yes")
    assert CANARY not in shown.out + shown.err


def test_a_replacement_is_shown_as_one(run: Any, config: Path) -> None:
    words = ["--to", "cursor", "--name", "old", "--env", "NEW=1", "--yes"]
    shown = run("install", "server.py", *words)
    assert shown.status == 0
    assert "entry:    old (there already: to be replaced)" in shown.out
    assert '-    "old": {"command": "npx"' in shown.out
    entry = servers(config)["old"]
    assert entry.command == sys.executable
    # Variables that are not given again stay.
    assert dict(entry.env) == {"PLAIN": CANARY, "NEW": "1"}
    assert "'old' is replaced in Cursor" in shown.err


@for_each(
    ("text", "problem"),
    [
        ("{", "not JSON: line 1"),
        ('{"mcpServers": 1}', "mcpServers: expected an object, got a number"),
        ('{"mcpServers": {"weather": []}}', "is not an object; edit the file by hand"),
    ],
)
def test_a_file_that_cannot_be_read_is_never_written(
    run: Any, config: Path, text: str, problem: str
) -> None:
    config.write_text(text)
    shown = run("install", "server.py", "--to", "cursor", "--yes")
    assert (shown.status, problem in shown.err) == (6, True)
    assert config.read_text() == text
    assert os.listdir(config.parent) == ["mcp.json"]


@for_each(
    ("words", "problem"),
    [
        (["server.py", "--to", "cursr"], "unknown host 'cursr'; did you mean 'cursor'?"),
        (["server.py", "--to", "zed"], "Zed does not seem to be installed: there is no folder"),
        (["none.py", "--to", "cursor"], "was read as a file, and there is no file 'none.py'"),
        (["none.module:app", "--to", "cursor"], "there is no module none"),
        (["codex:x", "--to", "cursor"], "was read as the entry 'x' of Codex"),
        (["ftp://x", "--to", "cursor"], "was read as an address"),
        (["--to", "cursor"], "name a server, or put its command after --"),
        (["server.py", "--to", "cursor", "--", "x"], "or a command after --, not both"),
        (["--to", "cursor", "--", "no-such-program"], "no such program"),
        (["server.py", "--to", "cursor", "--name", "a b"], "is not a name that all hosts take"),
        (["server.py", "--to", "cursor", "--env", "NOT_SET_HERE"], "the variable is not set here"),
        (["https://a.example/mcp", "--to", "cursor", "--env", "A=b"], "--env and --env-file need"),
        (["server.py"], "the following arguments are required: --to"),
        (["--to", "cursor", "--uv", "--name", "x", "--", "python3"], "--uv is for a file"),
    ],
)
def test_wrong_usage_is_one_sentence(run: Any, home: Path, words: list[str], problem: str) -> None:
    shown = run("install", *words)
    assert shown.status == 2
    assert problem in shown.err
    assert shown.err.count("\n") == 1
    assert os.listdir(home / ".cursor") == []


def test_an_entry_of_a_host_is_not_copied(run: Any, config: Path) -> None:
    config.write_text('{"mcpServers": {"x": {"command": "sh"}}}')
    shown = run("install", "cursor:x", "--to", "cursor", "--yes")
    assert (shown.status, "is an entry of a host; install the server" in shown.err) == (2, True)


def test_a_wrong_file_of_variables_is_not_quoted(run: Any, home: Path) -> None:
    Path(".env").write_text(f"A=1\n{CANARY}\n")
    shown = run("install", "server.py", "--to", "cursor", "--env-file", ".env", "--yes")
    assert shown.status == 6
    assert ".env: line 2 is not NAME=VALUE" in shown.err
    assert CANARY not in shown.err


def test_an_entry_that_is_not_there_is_not_removed(run: Any, config: Path) -> None:
    shown = run("uninstall", "none", "--from", "cursor", "--yes")
    assert (shown.status, "has no entry 'none'" in shown.err) == (2, True)


def test_an_entry_that_changed_meanwhile_is_not_written(
    run: Any, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trunkline.cli.connect import host_change

    real = host_change.change_file

    def change(path: str, *given: Any, **named: Any) -> Any:
        config.write_text('{"mcpServers": {"weather": {"command": "of another author"}}}')
        return real(path, *given, **named)

    monkeypatch.setattr(host_change, "change_file", change)
    shown = run("install", "server.py", "--to", "cursor", "--yes")
    assert (shown.status, "changed meanwhile: nothing was written" in shown.err) == (6, True)
    assert servers(config)["weather"].command == "of another author"


def test_an_entry_that_is_hostile_cannot_control_the_terminal(run: Any, config: Path) -> None:
    config.write_text('{\n  "\u202e": 1, // \x1b[2J\n  "mcpServers": {}\n}\n')
    shown = run("install", "server.py", "--to", "cursor", "--dry-run")
    assert shown.status == 0
    assert "\x1b" not in shown.out
    assert "\u202e" not in shown.out


def test_uv_runs_a_file_in_its_project(
    run: Any, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(uv.parent))
    Path("pyproject.toml").write_text("")
    assert run("install", "server.py", "--to", "cursor", "--uv", "--yes").status == 0
    entry = servers(config)["weather"]
    assert entry.command == str(uv)
    assert entry.args == (
        *("run", "--directory", os.getcwd(), "trunkline", "serve"),
        os.path.abspath("server.py"),
    )
    monkeypatch.setenv("PATH", "")
    shown = run("install", "server.py", "--to", "cursor", "--uv", "--yes")
    assert (shown.status, "uv is not on PATH" in shown.err) == (2, True)


@pytest.mark.parametrize("host", ["cursor", "codex"])
def test_processes_that_install_at_once_lose_nothing(home: Path, host: str) -> None:
    (home / ".codex").mkdir()
    names = [f"n{number}" for number in range(5)]
    command = [sys.executable, "-m", "trunkline", "install", "server.py", "--to", host, "--yes"]
    runs = [
        subprocess.Popen(
            [*command, "--name", name],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for name in names
    ]
    found = [(run.communicate(timeout=60)[1], run.returncode) for run in runs]
    assert [status for _, status in found] == [0] * len(names), found
    assert sorted(entries(host)) == names
    if host == "codex":
        tomllib.loads((home / ".codex" / "config.toml").read_text())


def test_bytes_that_are_not_text_are_an_error_and_not_a_traceback(run: Any, config: Path) -> None:
    before = config.read_text()
    shown = run("install", "server.py", "--to", "cursor", "--env", "A=\udcff", "--yes")
    assert shown.status == 6
    assert shown.err == (
        "trunkline install: entry 'weather', env: is not UTF-8, and the file has to be\n"
    )
    assert config.read_text() == before


def test_a_long_command_is_shown_whole(run: Any, config: Path) -> None:
    words = [f"word-{number}" for number in range(100)]
    shown = run("install", "--to", "cursor", "--dry-run", "--", sys.executable, *words, "x" * 300)
    [line] = [each for each in shown.out.splitlines() if each.startswith("command:")]
    assert line.split()[2:] == [*words, "x" * 300]


@for_each("address", ["https://", "https://[::1/mcp", "tcp://host"])
def test_an_address_that_is_not_complete_is_not_written(
    run: Any, config: Path, address: str
) -> None:
    before = config.read_text()
    shown = run("install", address, "--to", "cursor", "--name", "x", "--yes")
    assert (shown.status, shown.out) == (2, "")
    assert shown.err.startswith(f"trunkline install: '{address}' ")
    assert config.read_text() == before


def test_an_entry_that_is_null_is_removed(run: Any, config: Path) -> None:
    config.write_text('{"mcpServers": {"a": null, "b": {"command": "x"}}}')
    assert run("uninstall", "a", "--from", "cursor", "--yes").status == 0
    assert config.read_text() == '{"mcpServers": {"b": {"command": "x"}}}'


def test_a_file_under_its_other_name_is_the_one_that_is_changed(run: Any, home: Path) -> None:
    # Amp does not read settings.jsonc any more once settings.json is there.
    folder = home / ".config" / "amp"
    folder.mkdir(parents=True)
    (folder / "settings.jsonc").write_text('{\n  // mine\n  "amp.url": "x"\n}\n')
    assert run("install", "server.py", "--to", "amp", "--yes").status == 0
    assert [each.name for each in folder.iterdir() if each.suffix == ".json"] == []
    assert "// mine" in (folder / "settings.jsonc").read_text()
    assert list(entries("amp")) == ["weather"]


def test_of_several_files_of_a_scope_the_one_with_the_entry_is_changed(
    run: Any, home: Path
) -> None:
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text("{}\n")
    (folder / "opencode.json").write_text('{"mcp": {"weather": {"type": "local"}}}\n')
    assert run("install", "server.py", "--to", "opencode", "--yes").status == 0
    assert (folder / "opencode.jsonc").read_text() == "{}\n"
    document = json.loads((folder / "opencode.json").read_text())
    assert document["mcp"]["weather"]["command"][0] == sys.executable
    assert run("install", "server.py", "--to", "opencode", "--name", "b", "--yes").status == 0
    assert list(json.loads((folder / "opencode.jsonc").read_text())["mcp"]) == ["b"]
    # Both files have it: the stronger one loses it, and then the other.
    (folder / "opencode.jsonc").write_text('{"mcp": {"weather": {"type": "local"}}}\n')
    for file in ("opencode.jsonc", "opencode.json"):
        assert run("uninstall", "weather", "--from", "opencode", "--yes").status == 0
        assert "weather" not in (folder / file).read_text()


def test_an_entry_of_a_host_with_a_command_list_is_a_target(run: Any, home: Path) -> None:
    words = ["install", "server.py", "--to", "opencode", "--create", "--yes", "--env", "A=1"]
    assert run(*words).status == 0
    shown = run("list", "opencode:weather", "-o", "json")
    assert (shown.status, json.loads(shown.out)["server"]["name"]) == (0, "demo")


@for_each(
    ("host", "scope", "needed"),
    [
        ("claude-code", "project", 'shows "Pending approval" in `claude mcp list`'),
        ("codex", "project", 'put `trust_level = "trusted"` below `[projects."{folder}"]`'),
        ("copilot-cli", "project", "ignores it until the folder is trusted"),
        ("gemini", "user", "starts no server, that of the user neither, in a folder that is not"),
        ("amp", "project", "`amp mcp approve weather`"),
        ("claude-code", "user", ""),
        ("cursor", "user", ""),
    ],
)
def test_an_install_says_what_the_host_needs_before_it_uses_the_entry(
    run: Any, home: Path, host: str, scope: str, needed: str
) -> None:
    words = ["--to", host, "--scope", scope, "--create", "--yes"]
    said = run("install", "server.py", *words).err.replace("\n", " ")
    if needed:
        assert needed.format(folder=os.getcwd()) in said
    else:
        assert "until" not in said
    assert "until" not in run("uninstall", "weather", "--from", host, "--scope", scope, "-y").err


# Any other host


def test_an_entry_for_any_other_host_is_printed_and_nothing_is_written(
    run: Any, home: Path
) -> None:
    before = sorted(Path(home.parent).rglob("*"))
    words = ["install", "server.py", "--to", "json", "--env", "A=1"]
    shown = run(*words)
    assert (shown.status, shown.err) == (0, "")
    args = ["-P", "-m", "trunkline", "serve", str(Path("server.py").absolute())]
    entry = {"command": sys.executable, "args": args, "env": {"A": "1"}}
    assert json.loads(shown.out) == {"mcpServers": {"weather": entry}}
    shown = run("install", "https://mcp.example.org/mcp", "--to", "json", "--name", "x")
    url = {"type": "http", "url": "https://mcp.example.org/mcp"}
    assert json.loads(shown.out) == {"mcpServers": {"x": url}}
    shown = run("install", "tcp://127.0.0.1:9", "--to", "json", "--name", "x")
    assert json.loads(shown.out)["mcpServers"]["x"]["args"][-1] == "tcp://127.0.0.1:9"
    assert sorted(Path(home.parent).rglob("*")) == before
    shown = run(*words, "--scope", "project")
    assert (shown.status, "--to json writes none" in shown.err) == (2, True)


def test_the_printed_entry_is_a_configuration_that_works(run: Any, home: Path) -> None:
    Path("mcp.json").write_text(run("install", "server.py", "--to", "json").out)
    shown = run("list", "--config", "mcp.json", "weather", "-o", "json")
    assert (shown.status, json.loads(shown.out)["server"]["name"]) == (0, "demo")


def test_an_unknown_host_is_answered_with_all_names_and_json(run: Any, home: Path) -> None:
    shown = run("install", "server.py", "--to", "aider")
    said = " ".join(shown.err.split())
    assert shown.status == 2
    assert "did you mean" not in said
    assert "known hosts: claude-desktop, claude-code" in said
    assert "--to json prints an entry" in said
    assert "did you mean 'claude'?" in run("install", "server.py", "--to", "cluade").err
    shown = run("install", "server.py", "--to", "jsno")
    assert (shown.status, "unknown host 'jsno'; did you mean 'json'?; try" in shown.err) == (
        2,
        True,
    )
    # Of the others, only `install` prints entries.
    assert "json" not in run("hosts", "aider").err
    assert "json" not in run("uninstall", "weather", "--from", "aider").err


# Recordings


def nested(run: Any, *words: str) -> list[str]:
    """Return the command of an entry as it is printed for any host."""
    shown = run("install", "--to", "json", "--name", "x", *words)
    assert shown.status == 0, shown.err
    entry = json.loads(shown.out)["mcpServers"]["x"]
    return [entry["command"], *entry["args"]]


def test_every_program_and_file_of_a_nested_command_is_absolute(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", bin + os.pathsep + os.environ["PATH"])
    here, python, trunkline = os.getcwd(), f"{bin}/python", f"{bin}/trunkline"
    Path("data").mkdir()
    proxy = ["trunkline", "proxy", "--record", "t.jsonl", "--"]
    assert nested(run, "--", *proxy, "trunkline", "serve", "server.py") == [
        *(trunkline, "proxy", "--record", f"{here}/t.jsonl", "--"),
        *(trunkline, "serve", f"{here}/server.py"),
    ]
    inner = ["python", "-m", "trunkline", "proxy", "--record=u.jsonl", "--judge", "--"]
    assert nested(run, "--", *proxy, *inner, "python", "server.py", "./data", "data") == [
        *(trunkline, "proxy", "--record", f"{here}/t.jsonl", "--"),
        *(python, "-m", "trunkline", "proxy", f"--record={here}/u.jsonl", "--judge", "--"),
        *(python, f"{here}/server.py", f"{here}/data", "data"),
    ]
    words = nested(run, "--", "trunkline", "serve", "server.py:app", "--env-file=server.py")
    assert words[2:] == [f"{here}/server.py:app", f"--env-file={here}/server.py"]
    # What follows the -- of another program is its own matter.
    assert nested(run, "--", "env", "--", "python", "--record", "x")[1:] == [
        *("--", "python", "--record", "x")
    ]
    shown = run("install", "--to", "json", "--name", "x", "--", *proxy, "no-such-program")
    assert (shown.status, "no-such-program" in shown.err) == (2, True)


@for_each("scope", ["user", "project"])
def test_an_install_with_record_records_what_passes(run: Any, home: Path, scope: str) -> None:
    Path("server.py").write_text(
        "import os\nfrom trunkline import Server\napp = Server('demo')\n"
        "@app.tool\ndef variable() -> str: return os.environ['A']\n"
    )
    words = ["--to", "cursor", "--scope", scope, "--record", "t.jsonl", "--env", "A=1", "--yes"]
    assert run("install", "server.py", *words).status == 0
    record = Path("t.jsonl").absolute()
    assert not record.exists()
    elsewhere = home / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    [entry] = (each for each in entries("cursor").values() if each.scope == scope)
    command = [entry.command, *entry.args]
    shown = subprocess.run(
        [sys.executable, "-m", "trunkline", "call", "variable", "--", *command],
        cwd=elsewhere,
        env={**os.environ, "PATH": "/nowhere", "A": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (shown.returncode, shown.stdout.strip()) == (0, "1"), shown.stderr
    assert '"tools/call"' in record.read_text()
    run("uninstall", "weather", "--from", "cursor", "--scope", scope, "--yes")
    record.unlink()


def test_an_address_is_recorded_through_a_proxy(run: Any, home: Path) -> None:
    words = nested(run, "https://mcp.example.org/mcp", "--record", "t.jsonl")
    assert words[1:] == [
        *("-P", "-m", "trunkline", "proxy", "--record", f"{os.getcwd()}/t.jsonl"),
        "https://mcp.example.org/mcp",
    ]


def test_a_file_that_is_not_a_recording_is_not_named_for_one(run: Any, home: Path) -> None:
    for file, problem in (
        ("server.py", "is not a recording"),
        ("no/t.jsonl", "there is no folder"),
    ):
        shown = run("install", "server.py", "--to", "json", "--record", file)
        assert (shown.status, problem in shown.err) == (2, True)

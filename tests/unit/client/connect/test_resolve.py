"""What people type is read by its form, and every error says how it was read."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.canaries import CANARY
from trunkline.client import Client
from trunkline.client.connect.configured import config_entry, config_servers
from trunkline.client.connect.resolve import (
    ADDRESSES,
    IN_CODE,
    IN_SHELL,
    ResolvedTarget,
    TargetError,
    is_configuration,
    is_target,
    resolve,
)
from trunkline.client.connect.targets import resolved_target, target_of
from trunkline.hosts.table import HOSTS
from trunkline.transports import Stdio
from trunkline.transports.addresses import HTTP_SCHEMES, SCHEMES, WS_SCHEMES, Http, Tcp, Unix

SERVED = (sys.executable, "-P", "-m", "trunkline", "serve")
ENTRIES = {
    "github": {
        "command": "github-server",
        "args": ["--stdio"],
        "env": {"GITHUB_TOKEN": f"{CANARY}-env"},
    },
    "remote": {
        "url": f"https://mcp.example.org/mcp?key={CANARY}-query",
        "headers": {"Authorization": f"Bearer {CANARY}-header"},
    },
    "asks": {"command": "x", "env": {"KEY": "${input:key}"}},
    "unset": {"command": "x", "args": ["${TRUNKLINE_UNSET}"]},
    "wrong": {"command": 5},
    "off": {"command": "x", "disabled": True},
    "odd url": {"url": f"nothing {CANARY}-url"},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and a home without any host."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("TRUNKLINE_UNSET", raising=False)
    monkeypatch.setenv("APPDATA", str(tmp_path / "home"))
    return tmp_path / "work"


def resolve_error(text: str, wording: Any = IN_SHELL) -> str:
    with pytest.raises(TargetError) as caught:
        resolve(text, wording)
    return str(caught.value)


def config(here: Path, servers: Any = ENTRIES, name: str = "mcp.json") -> str:
    path = here / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


# Addresses


def test_the_schemes_are_those_of_addresses() -> None:
    known = (*SCHEMES, *HTTP_SCHEMES, *WS_SCHEMES)
    assert len(known) == len(ADDRESSES)
    assert all(each.startswith(ADDRESSES) for each in known)


@pytest.mark.parametrize("scheme", ADDRESSES)
def test_a_scheme_wins_over_a_file_of_that_name(here: Path, scheme: str) -> None:
    if "/" not in scheme:
        (here / f"{scheme}x.py").touch()
    assert resolve(f"{scheme}x.py") == ResolvedTarget(f"{scheme}x.py", address=f"{scheme}x.py")


def test_a_file_that_is_called_like_a_scheme_has_a_folder(here: Path) -> None:
    (here / "unix:x.py").touch()
    assert resolve("./unix:x.py").command == (*SERVED, "./unix:x.py")
    assert resolve(str(here / "unix:x.py")).command == (*SERVED, str(here / "unix:x.py"))


def test_an_unknown_scheme_is_not_a_file(here: Path) -> None:
    assert resolve_error("ftp://host/x.py") == (
        "'ftp://host/x.py' was read as an address, and ftp:// is not the scheme of a server; name "
        "the server by tcp://, tls://, unix:, http://, https://, http+unix:, ws:// or wss://, or "
        "put a command after --"
    )


@pytest.mark.parametrize(
    ("text", "url", "socket"),
    [
        ("localhost:8000", "http://localhost:8000/mcp", "tcp://localhost:8000"),
        ("10.0.0.1:80/x", "http://10.0.0.1:80/x", "tcp://10.0.0.1:80"),
    ],
)
def test_a_host_and_a_port_lack_a_scheme(here: Path, text: str, url: str, socket: str) -> None:
    assert resolve_error(text) == (
        f"'{text}' was read as a host and a port without a scheme; write {url} or {socket}"
    )


def test_a_host_name_lacks_a_scheme(here: Path) -> None:
    assert resolve_error("mcp-1.example.org") == (
        "'mcp-1.example.org' was read as a host name without a scheme; "
        "write https://mcp-1.example.org/mcp"
    )
    assert resolve_error("example.org") == (
        "'example.org' was read as a module or a host name, and neither is complete; write "
        "example.org:app for an object in a module, or https://example.org/mcp for an address"
    )


# Files


def test_a_file_is_served_by_a_process_of_its_own(here: Path) -> None:
    (here / "server.py").touch()
    assert resolve("server.py").command == (*SERVED, "server.py")
    assert resolve("server.py:app").command == (*SERVED, "server.py:app")
    assert resolve("server.py:apps.main").command == (*SERVED, "server.py:apps.main")


def test_a_file_whose_name_begins_with_a_dash_is_not_an_option(here: Path) -> None:
    (here / "-v.py").touch()
    assert resolve("-v.py").command == (*SERVED, os.path.join(".", "-v.py"))


def test_a_missing_file_names_the_nearest(here: Path) -> None:
    assert resolve_error("weather.py:app") == (
        "'weather.py:app' was read as a file, and there is no file 'weather.py'"
    )
    (here / "wether.py").touch()
    assert resolve_error("weather.py") == (
        "'weather.py' was read as a file, and there is no file 'weather.py'; "
        "did you mean 'wether.py'?"
    )
    assert resolve_error("none/weather.py") == (
        "'none/weather.py' was read as a file, and there is no file 'none/weather.py'; "
        "the folder 'none' does not exist"
    )


def test_a_folder_is_not_a_file(here: Path) -> None:
    (here / "src").mkdir()
    for text in ("src", "./src"):
        assert resolve_error(text) == (
            f"'{text}' was read as a file, and '{text}' is a folder; "
            "name a Python file in it, or a module as package.module:app"
        )


def test_a_drive_letter_is_neither_a_host_nor_a_module(here: Path) -> None:
    assert resolve_error(r"C:\srv\server.py") == (
        r"'C:\\srv\\server.py' was read as a file, and there is no file 'C:\\srv\\server.py'"
    )
    assert resolve_error("C:/srv/server.py:app") == (
        "'C:/srv/server.py:app' was read as a file, and there is no file 'C:/srv/server.py'; "
        "the folder 'C:/srv' does not exist"
    )


def test_an_object_is_a_name(here: Path) -> None:
    (here / "server.py").touch()
    assert resolve_error("server.py:1x") == (
        "'server.py:1x' was read as a file and an object in it, and '1x' is not the name of one; "
        "write FILE:app"
    )


def test_a_file_of_another_language_has_a_command(here: Path) -> None:
    for name in ("server.js", "notes.txt", "run"):
        (here / name).touch()
    (here / "run").chmod(0o755)
    read = "was read as a file, and only Python files (.py) are served"
    assert resolve_error("server.js") == (
        f"'server.js' {read}; put its command after --: -- node server.js"
    )
    with pytest.raises(ValueError) as caught:
        Client("server.js")
    assert str(caught.value) == (
        f'\'server.js\' {read}; pass its command as a list: ["node", "server.js"]'
    )
    assert resolve_error("notes.txt") == f"'notes.txt' {read}; put a command after --"
    assert resolve_error("run") == f"'run' {read}; put its command after --: -- ./run"


def test_a_command_line_is_never_run(here: Path) -> None:
    assert resolve_error("python server.py") == (
        "'python server.py' was read as a command line, and a text is never run; "
        "put its command after --: -- python server.py"
    )
    (here / "my server.py").touch()
    assert resolve("my server.py").command == (*SERVED, "my server.py")


def test_a_secret_in_a_command_line_is_not_quoted(here: Path) -> None:
    assert CANARY not in resolve_error(f"server --api-key={CANARY}")


# Modules


def test_an_object_in_a_module_is_served(here: Path) -> None:
    (here / "own.py").touch()
    (here / "package").mkdir()
    for text in ("own:app", "package.module:app", "package:app", "json.tool:main"):
        assert resolve(text).command == (*SERVED, text)


def test_a_missing_module_is_not_started(here: Path) -> None:
    read = "and there is no module claud, neither in the current folder nor installed"
    assert resolve_error("claud:github") == (
        f"'claud:github' was read as the object github in the module claud, {read}; "
        "did you mean 'claude:github'?"
    )
    assert resolve_error("qqqq.x:app").endswith(
        "no module qqqq, neither in the current folder nor installed; of a host, write HOST:NAME "
        f"with one of {', '.join(host.id for host in HOSTS)}"
    )


# Bare words


def test_a_bare_name_says_all_forms(here: Path) -> None:
    assert resolve_error("github") == (
        "'github' was read as a bare name, which is not a server; put a command after --, or write "
        "an address (https://HOST/PATH, tcp://HOST:PORT, unix:PATH), a file (server.py), "
        "package.module:app, or an entry of a host (claude:NAME)"
    )
    assert resolve_error("  ").startswith(
        "the target is empty; put a command after --, or write an address"
    )


def test_a_bare_name_that_is_known_elsewhere_is_suggested(here: Path) -> None:
    (here / "github.py").touch()
    config(here, name=".cursor/mcp.json")
    assert resolve_error("github") == (
        "'github' was read as a bare name, which is not a server; "
        "did you mean 'github.py' or 'cursor:github'?"
    )


# Entries of hosts


def test_an_entry_of_a_host_is_its_command_or_its_address(here: Path) -> None:
    config(here, name=".cursor/mcp.json")
    found = resolve("cursor:github")
    assert found.command == ("github-server", "--stdio")
    assert found.env == {"GITHUB_TOKEN": f"{CANARY}-env"}
    remote = resolve("cursor:remote")
    assert remote.address == f"https://mcp.example.org/mcp?key={CANARY}-query"
    assert remote.headers == {"Authorization": f"Bearer {CANARY}-header"}


def test_a_host_wins_over_a_module_of_that_name(here: Path) -> None:
    (here / "cursor.py").touch()
    assert resolve_error("cursor:app") == (
        "'cursor:app' was read as the entry 'app' of Cursor, which has no configuration here "
        f"(looked for {here}/.cursor/mcp.json, {here.parent}/home/.cursor/mcp.json); "
        "for an object in a file write cursor.py:app"
    )
    assert resolve("cursor.py:app").command == (*SERVED, "cursor.py:app")


def test_an_unknown_entry_names_the_nearest_or_all(here: Path) -> None:
    config(here, {"github": {"command": "x"}, "files": {"command": "y"}}, ".cursor/mcp.json")
    assert resolve_error("cursor:githb") == (
        "'cursor:githb' was read as the entry 'githb' of Cursor, and there is no entry 'githb'; "
        "did you mean 'cursor:github'?"
    )
    assert resolve_error("cursor:zzzz") == (
        "'cursor:zzzz' was read as the entry 'zzzz' of Cursor, and there is no entry 'zzzz'; "
        "there are: 'github', 'files'"
    )
    assert resolve_error("cursor:") == (
        "'cursor:' was read as an entry of Cursor, without a name; there are: 'github', 'files'"
    )
    config(here, {}, ".cursor/mcp.json")
    assert resolve_error("cursor:zzzz").endswith("and there is no entry 'zzzz'; there are none")


def test_a_disabled_entry_is_not_started(here: Path) -> None:
    path = config(here, ENTRIES, "mcp.json")
    with pytest.raises(TargetError) as caught:
        config_entry(path, "off", IN_SHELL)
    assert str(caught.value) == (
        f"'off' was read as an entry of '{path}', which is disabled in {path}; enable it there"
    )
    text = (here / "mcp.json").read_text()
    windsurf = here.parent / "home/.codeium/windsurf/mcp_config.json"
    windsurf.parent.mkdir(parents=True)
    windsurf.write_text(text)
    assert resolve_error("windsurf:off") == (
        "'windsurf:off' was read as the entry 'off' of Windsurf, which is disabled in "
        f"{windsurf}; enable it there"
    )


def test_a_question_of_the_host_has_no_answer_here(here: Path) -> None:
    servers = {"servers": {"github": {"command": "x", "env": {"KEY": "${input:key}"}}}}
    (here / ".vscode").mkdir()
    (here / ".vscode/mcp.json").write_text(json.dumps(servers))
    assert resolve_error("vscode:github") == (
        "'vscode:github' was read as the entry 'github' of VS Code, which cannot be used: "
        "env.KEY: ${input:key} is a question that the host asks its user; put the value into an "
        "environment variable and write ${env:NAME} instead"
    )


def test_a_variable_without_a_value_is_named(here: Path) -> None:
    with pytest.raises(TargetError) as caught:
        config_entry(config(here), "unset", IN_SHELL)
    assert str(caught.value).endswith(
        "which cannot be used: args: the environment variable TRUNKLINE_UNSET is not set"
    )


def test_invalid_entry_and_invalid_file_are_reported_with_their_path(here: Path) -> None:
    config(here, name=".cursor/mcp.json")
    assert resolve_error("cursor:wrong") == (
        "'cursor:wrong' was read as the entry 'wrong' of Cursor, which cannot be used: "
        f"{here}/.cursor/mcp.json: command: expected a string, got a number"
    )
    (here / ".cursor/mcp.json").write_text("{")
    assert resolve_error("cursor:github").startswith(
        "'cursor:github' was read as the entry 'github' of Cursor, whose file cannot be read: "
        f"{here}/.cursor/mcp.json: not JSON: "
    )


# Files of `--config`


def test_a_file_has_entries_by_name(here: Path) -> None:
    path = config(here)
    assert config_entry(path, "github", IN_SHELL).command == ("github-server", "--stdio")
    for name, why in [
        ("githb", "and there is no such entry; did you mean 'github'?"),
        ("wrong", "which cannot be used: command: expected a string, got a number"),
    ]:
        with pytest.raises(TargetError) as caught:
            config_entry(path, name, IN_SHELL)
        assert str(caught.value) == f"'{name}' was read as an entry of '{path}', {why}"
    with pytest.raises(TargetError) as caught:
        config_entry("none.json", "x", IN_SHELL)
    assert str(caught.value) == (
        "'x' was read as an entry of 'none.json', which cannot be read: no such file"
    )


def test_a_configuration_file_needs_a_name_on_the_command_line(here: Path) -> None:
    config(here, {"github": {"command": "x"}, "my shop": {"url": f"https://h/{CANARY}"}})
    assert resolve_error("mcp.json") == (
        "'mcp.json' was read as a configuration file; name a server in it, as mcp.json:NAME; "
        "there are: 'github', 'my shop'"
    )
    config(here, {})
    assert resolve_error("mcp.json").endswith("; there are none")
    config(here, {f"s{number}": {"command": "x"} for number in range(21)})
    assert resolve_error("mcp.json").endswith("'s18', 's19', …")


def test_a_file_that_is_not_a_configuration_is_not_advised_to_be_one(here: Path) -> None:
    (here / "package.json").write_text('{"name": "x"}')
    assert resolve_error("package.json").startswith(
        "'package.json' was read as a configuration file: has no servers: none of mcpServers"
    )
    (here / "broken.json").write_text("{")
    said = resolve_error("broken.json")
    assert said.startswith("'broken.json' was read as a configuration file: ")
    assert "NAME" not in said


def test_a_colon_without_a_name_after_a_configuration_file_gets_advice(here: Path) -> None:
    config(here, {"github": {"command": "x"}})
    assert resolve_error("mcp.json:").endswith("as mcp.json:NAME; there are: 'github'")
    assert resolve_error("mcp.json:", IN_CODE) == (
        "'mcp.json:' was read as a configuration file without a name: give 'mcp.json', or "
        "'mcp.json:NAME'; there are: 'github'"
    )


def test_the_name_of_an_entry_follows_its_file(here: Path) -> None:
    config(here, {**ENTRIES, "my-shop": {"url": "https://a.example/mcp?key=CANARY"}})
    (here / "other.toml").write_text('[mcp_servers.tea]\ncommand = "tea"\n')
    for wording in (IN_CODE, IN_SHELL):
        found = resolve("mcp.json:github", wording)
        assert (found.text, found.command) == ("mcp.json:github", ("github-server", "--stdio"))
        assert resolve(f"{here}/mcp.json:my-shop", wording).address.startswith("https://a.example/")
        assert resolve("other.toml:tea", wording).command == ("tea",)
    assert all(map(is_target, ("mcp.json:github", "a/mcp.json:my-shop", "other.toml:tea")))
    assert resolve_error("mcp.json:githb") == (
        "'githb' was read as an entry of 'mcp.json', and there is no such entry; did you mean "
        "'github'?"
    )
    assert resolve_error("none.json:x") == (
        "'x' was read as an entry of 'none.json', which cannot be read: no such file"
    )


# The target of a client


def test_a_text_becomes_an_address(here: Path) -> None:
    (here / "server.py").touch()
    config(here, name=".cursor/mcp.json")
    assert target_of("server.py").address == Stdio(SERVED[0], [*SERVED[1:], "server.py"])
    assert target_of(Path("server.py")).address == Stdio(SERVED[0], [*SERVED[1:], "./server.py"])
    assert target_of("tcp://h:1").address == Tcp("h", 1)
    assert target_of("unix:/x").address == Unix("/x")
    remote = target_of("cursor:remote").address
    assert isinstance(remote, Http)
    assert remote.options is not None
    assert remote.options.headers == {"Authorization": f"Bearer {CANARY}-header"}


def test_a_path_is_never_an_address_or_a_host(here: Path) -> None:
    for name in ("unix:x.py", "cursor:x.py"):
        (here / name).touch()
        found = target_of(Path(name)).address
        assert isinstance(found, Stdio)
        assert found.args[-1] == os.path.join(".", name)


def test_a_configuration_with_one_server_is_that_server(here: Path) -> None:
    servers = {"one": {"command": "x", "args": ["y"]}, "off": {"command": "z", "disabled": True}}
    for given in ({"mcpServers": servers}, {"servers": servers}, config(here, servers)):
        assert target_of(given).address == Stdio("x", ["y"])
    assert target_of(Path(config(here, servers))).address == Stdio("x", ["y"])


def test_headers_of_the_client_come_before_those_of_an_entry(here: Path) -> None:
    servers = {"one": {"url": "https://h/x", "headers": {"A": "entry", "B": "entry"}}}
    client = Client({"mcpServers": servers}, headers={"a": "client"})
    found = client._connection._target.address
    assert isinstance(found, Http)
    assert found.options is not None
    assert found.options.headers == {"a": "client", "B": "entry"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "the configuration: has no servers: none of mcpServers, servers"),
        ({"mcpServers": {}}, "the configuration: there are no servers"),
        ({"mcpServers": {"a": {"command": "x", "disabled": True}}}, "all servers are disabled"),
        ({"mcpServers": []}, "mcpServers: expected an object, got an array"),
        ({"mcpServers": {"a": {"command": 5}}}, "'a' cannot be used: command: expected a string"),
        ("none.json", "'none.json' was read as a configuration file: no such file"),
    ],
)
def test_configuration_without_usable_servers_is_refused_with_a_reason(
    here: Path, given: Any, why: str
) -> None:
    with pytest.raises(ValueError) as caught:
        Client(given)
    assert why in str(caught.value)


def test_form_of_a_target_is_recognised_without_reading_files() -> None:
    assert is_configuration({})
    assert is_configuration("a/mcp.json")
    assert is_configuration(Path("config.toml"))
    assert not is_configuration("https://h/openrpc.json")
    assert not is_configuration("unix:/run/x.json")
    assert not is_configuration(["mcp.json"])
    assert all(map(is_target, ["tcp://h:1", "x.py", "x.py:app", "a.b:c", "claude:x", "cursor:a/b"]))
    assert not any(map(is_target, ["x", "a=1", "a:=1", "demo://x", "list", "a.b"]))


# Secrets


def test_no_error_and_no_repr_has_a_secret_of_an_entry(here: Path) -> None:
    path = config(here)
    found = config_servers(path)
    shown = [repr(found), *map(str, found.values())]
    for name in ("github", "remote", "odd url"):
        resolved = config_entry(path, name, IN_SHELL)
        shown.append(repr(resolved))
        try:
            shown.append(repr(resolved_target(resolved)))
        except ValueError as error:
            shown.append(str(error))
    assert "'odd url': the URL of the entry is not the address of a server" in shown
    assert CANARY not in "".join(shown)


def test_a_file_of_the_current_folder_does_not_replace_an_entry_of_the_user(here: Path) -> None:
    home = here.parent / "home"
    own = config(home, {"github": {"command": "mine"}}, name=".cursor/mcp.json")
    found = config(here, {"github": {"command": "evil"}, "x": {"command": "y"}}, ".cursor/mcp.json")
    assert resolve_error("cursor:github") == (
        f"'cursor:github' was read as the entry 'github' of Cursor, and {found}, in the current "
        f"folder, has another server of that name than {own}; name the file: --config FILE github"
    )
    assert resolve_error("cursor:github", IN_CODE).endswith(
        'pass a command as a list, such as ["python", "server.py"]'
    )
    assert config_entry(found, "github", IN_SHELL).command == ("evil",)
    assert resolve("cursor:x").command == ("y",)
    config(here, {"github": {"command": "mine"}}, name=".cursor/mcp.json")
    assert resolve("cursor:github").command == ("mine",)


def test_entries_of_a_file_are_objects(here: Path) -> None:
    path = config(here, {"a": ["sh", "-c", "exit"], "b": "server.py"})
    with pytest.raises(ValueError) as caught:
        Client(path)
    assert str(caught.value) == (
        "no server can be used:\n"
        "  'a': 'a' cannot be used: expected an object, got an array\n"
        "  'b': 'b' cannot be used: expected an object, got a string"
    )


def test_advice_for_a_shell_has_quotes_where_they_are_needed(here: Path) -> None:
    (here / "a b").mkdir()
    (here / "a b/server.js").write_text("")
    (here / "a b/server.py").write_text("")
    path = config(here, name="a b/mcp.json")
    assert f"name a server in it, as '{path}':NAME; there are:" in resolve_error(path)
    assert resolve_error("a b/server.js").endswith(
        "put its command after --: -- node 'a b/server.js'"
    )
    assert resolve_error("a b/server.js", IN_CODE).endswith('["node", "a b/server.js"]')
    assert resolve_error("a b/servr.py") == (
        "'a b/servr.py' was read as a file, and there is no file 'a b/servr.py'; did you mean "
        "'a b/server.py'?"
    )


def test_a_name_with_a_space_is_not_a_command_line_if_an_entry_has_it(here: Path) -> None:
    config(here, {"my server": {"command": "x"}}, name=".cursor/mcp.json")
    assert resolve_error("my server").endswith("did you mean 'cursor:my server'?")
    assert "was read as a command line" in resolve_error("other server")

"""Every verb takes the same targets: files, modules, entries of hosts, and entries of a file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.canaries import CANARY

SERVER = Path(__file__).parents[3] / "terminal" / "server.py"
SHOWS = """
import os, sys
from trunkline import Server
app = Server("shows", version="1.0")

@app.tool
def where() -> str:
    given, key = os.environ.get("GIVEN", ""), os.environ.get("KEY", "")
    return "|".join([given, os.path.basename(os.getcwd()), key])

print("a line on stderr", file=sys.stderr)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a server, and a home without hosts."""
    for name in ("home", "work", "other"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("KEY_OF_TEST", "expanded")
    (tmp_path / "work" / "shows.py").write_text(SHOWS)
    return tmp_path / "work"


def serving(here: Path, **more: Any) -> dict[str, Any]:
    args = ["-P", "-m", "trunkline", "serve", str(here / "shows.py")]
    return {"command": sys.executable, "args": args, **more}


def write(path: Path, key: str, **servers: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({key: servers}))
    return str(path)


@pytest.mark.parametrize("target", ["shows.py", "./shows.py", "shows.py:app", "shows:app"])
def test_a_file_or_a_module_is_served_for_the_verb(run: Any, here: Path, target: str) -> None:
    assert run("call", target, "where", "--env", "GIVEN=x") == (0, "x|work|\n", "")


def test_every_verb_takes_a_file(run: Any, here: Path) -> None:
    target = os.path.relpath(SERVER)
    assert run("call", target, "add", "a=1", "b=2") == (0, "3\n", "")
    assert "add" in run("list", target, "tools").out
    assert run("ping", target).status == 0
    assert run("read", target, "demo://notes").status == 0
    assert run("prompt", target, "report", "city=Oslo").status == 0
    assert run("diff", target, f"{target}:app").status == 0


def test_a_process_of_its_own_has_its_own_stderr(run: Any, here: Path) -> None:
    assert "a line on stderr" not in run("call", "shows.py", "where").err
    assert "a line on stderr" in run("call", "shows.py", "where", "-v").err


def test_a_file_without_a_server_says_so(run: Any, here: Path) -> None:
    (here / "empty.py").touch()
    shown = run("call", "empty.py", "x")
    assert shown.status == 3
    assert "empty.py has no global Server" in shown.err
    assert "is started by its own command, such as python empty.py" in shown.err


def test_an_entry_of_a_host_is_started_as_the_host_does(run: Any, here: Path) -> None:
    variables = {"GIVEN": "entry", "KEY": "${env:KEY_OF_TEST}"}
    write(here / ".cursor/mcp.json", "mcpServers", shows=serving(here, env=variables))
    write(here / ".vscode/mcp.json", "servers", shows=serving(here, env=variables))
    shell = {**variables, "KEY": "$KEY_OF_TEST"}
    there = serving(here, env=shell, cwd="../other")
    write(here / ".gemini/settings.json", "mcpServers", shows=there)
    wanted = {"cursor:shows": "work", "vscode:shows": "work", "gemini:shows": "other"}
    for target, folder in wanted.items():
        assert run("call", target, "where") == (0, f"entry|{folder}|expanded\n", "")
        # An option is stronger than the entry.
        shown = run("call", target, "where", "--env", "GIVEN=option")
        assert shown == (0, f"option|{folder}|expanded\n", "")
    assert run("diff", "cursor:shows", "vscode:shows").status == 0


def test_an_entry_of_a_file_is_named_after_config(run: Any, here: Path) -> None:
    path = write(here / "mcp.json", "mcpServers", one=serving(here), two={"command": "x"})
    for words in (["one", "where", "--config", path], ["--config", "mcp.json", "one", "where"]):
        assert run("call", *words).status == 0
    shown = run("list", "--config", "mcp.json", "thre")
    assert shown == (
        2,
        "",
        "trunkline list: 'thre' was read as an entry of 'mcp.json', and there is no such entry; "
        "there are: 'one', 'two'\n",
    )
    shown = run("list", "--config", "mcp.json")
    assert shown.status == 2
    assert "no server given" in shown.err
    shown = run("list", "--config", "mcp.json", "--", "x")
    assert shown.err == (
        "trunkline list: give --config and a name, or a command after --, not both\n"
    )


def test_headers_of_an_entry_are_sent_and_shown_nowhere(run: Any, here: Path) -> None:
    secret = f"{CANARY}-5518"
    write(
        here / ".cursor/mcp.json",
        "mcpServers",
        far={
            "url": f"http://127.0.0.1:1/mcp?key={secret}",
            "headers": {"Authorization": f"Bearer {secret}"},
        },
        odd={"url": f"odd {secret}"},
        gone={"command": "no-such-5518", "args": ["--token", secret], "env": {"TOKEN": secret}},
    )
    for target, status in [("cursor:far", 3), ("cursor:odd", 2), ("cursor:gone", 3)]:
        for verb in ("ping", "proxy"):
            if verb == "proxy" and target != "cursor:odd":
                continue
            shown = run(verb, target)
            assert shown.status == status
            assert shown.err
            assert CANARY not in shown.err + shown.out
    shown = run("login", "cursor:gone")
    assert shown.err == (
        "trunkline login: 'cursor:gone' is not the URL of a server, such as https://HOST/PATH\n"
    )


def test_options_of_http_are_checked_against_the_entry(run: Any, here: Path) -> None:
    write(here / ".cursor/mcp.json", "mcpServers", one=serving(here))
    shown = run("ping", "cursor:one", "--header", "A=b")
    assert shown.status == 2
    assert "--header and --header-env need an address" in shown.err


def test_a_target_and_a_command_are_not_given_together(run: Any, here: Path) -> None:
    shown = run("ping", "tcp://h:1", "--", "x")
    assert shown.err == (
        "trunkline ping: give the address 'tcp://h:1' or a command after --, not both\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["call", "where", "shows.py"], "the target comes first: trunkline call shows.py where"),
        (["list", "tools", "cursor:x"], "the target comes first: trunkline list cursor:x tools"),
        (["list", "sh", "shows.py"], "put the command after --: trunkline list -- sh shows.py"),
        (
            ["call", "where", "shows.py", "a=b c"],
            "the target comes first: trunkline call shows.py where 'a=b c'",
        ),
        (
            ["list", "--config", "mcp.json"],
            "no server given: name one of 'mcp.json', as --config FILE NAME; there are: 'a', 'b'",
        ),
        (["list", "--config", "none.json"], "was read as a configuration file: no such file"),
        *(
            ([verb, "mcp.json"], "name a server in it, as mcp.json:NAME; there are: 'a', 'b'")
            for verb in ("list", "call", "ping", "proxy", "shell", "login", "logout")
        ),
        (["call", "shows", "where"], "is not a server; did you mean 'shows.py'?"),
        (["proxy", "shows.js"], "'shows.js' was read as a file, and there is no file 'shows.js'"),
    ],
)
def test_advice_names_what_to_type(run: Any, here: Path, words: list[str], said: str) -> None:
    write(here / "mcp.json", "mcpServers", a=serving(here), b={"url": "https://h.invalid/mcp"})
    shown = run(*words)
    assert (shown.status, shown.out) == (2, "")
    assert said in shown.err

"""Variables of an entry: replaced as the host replaces them, and errors without values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import for_each
from trunkline.hosts.entries import ServerEntry, read_entry
from trunkline.hosts.errors import HostConfigError
from trunkline.hosts.expand import expand_entry, parse_env_file
from trunkline.hosts.table import ANY_FILE, find_host

ENVIRON = {"KEY": "k", "EMPTY": "", "DOLLAR": "${KEY}"}
CANARY = "CANARY-55aa"


def expanded(host: str, text: str) -> str:
    row = find_host(host) if host else ANY_FILE
    words = {"command": "c", "args": [text]} if row.fields.args else {"command": ["c", text]}
    entry = read_entry("x", words, row, file="/f.json")
    return expand_entry(entry, environ=ENVIRON, workspace="/w/p", home="/h").args[0]


@for_each(
    ("host", "text", "value"),
    [
        ("claude-code", "${KEY}/x", "k/x"),
        ("claude-code", "${NO:-d}", "d"),
        ("claude-code", "${KEY:-d}", "k"),
        ("claude-code", "${EMPTY:-d}", "d"),
        ("claude-code", "${NO:-}", ""),
        ("claude-code", "$KEY ${a b}", "$KEY ${a b}"),
        ("claude-code", "${DOLLAR}", "${KEY}"),
        ("claude-code", "a$b ${} $ {x}", "a$b ${} $ {x}"),
        ("cursor", "${env:KEY}", "k"),
        ("cursor", "${userHome}${/}a", "/h/a"),
        ("cursor", "${workspaceFolder}|${workspaceFolderBasename}", "/w/p|p"),
        ("cursor", "${KEY}", "${KEY}"),
        ("vscode", "${env:KEY}${pathSeparator}", "k/"),
        ("gemini", "$KEY-${KEY}-${NO:-d}", "k-k-d"),
        ("gemini", "${env:KEY}", "${env:KEY}"),
        ("claude-desktop", "${KEY} $KEY ${NO}", "${KEY} $KEY ${NO}"),
        ("codex", "${KEY}", "${KEY}"),
        ("opencode", "{env:KEY}-${KEY}-{env:NO}-{env:DOLLAR}", "k-${KEY}--${KEY}"),
        ("qwen", "$KEY-${KEY}", "k-k"),
        ("amp", "${KEY}-$KEY", "k-$KEY"),
        ("crush", "$KEY-${NO:-d}", "k-d"),
        ("", "${KEY}${env:KEY}${NO:-d}${userHome}", "kkd/h"),
    ],
)
def test_a_host_replaces_the_forms_of_its_row(host: str, text: str, value: str) -> None:
    assert expanded(host, text) == value


@for_each(
    ("host", "text", "problem"),
    [
        ("claude-code", "${NO}", "the environment variable NO is not set"),
        ("cursor", "${env:NO}", "the environment variable NO is not set"),
        ("gemini", "$NO", "the environment variable NO is not set"),
        ("opencode", "{file:~/key}", "{file:~/key} is a file that the host reads"),
        ("crush", "$(op read x)", r"\$\(...\) is a command that the host runs"),
        ("vscode", "${input:key}", r"\${input:key} is a question that the host asks its user"),
    ],
)
def test_a_variable_without_a_value_is_an_error(host: str, text: str, problem: str) -> None:
    with pytest.raises(HostConfigError, match=rf"/f.json, entry 'x', args: {problem}"):
        expanded(host, text)


def test_every_value_of_an_entry_is_replaced() -> None:
    entry = ServerEntry(
        name="x",
        transport="stdio",
        command="${KEY}",
        args=("${KEY}",),
        env={"A": "${KEY}"},
        cwd="${KEY}",
        url="${KEY}",
        headers={"H": "${KEY}"},
        variables=("${NAME}",),
    )
    found = expand_entry(entry, environ=ENVIRON, workspace="/w")
    assert (found.command, found.args, found.cwd, found.url) == ("k", ("k",), "/w/k", "k")
    assert (dict(found.env), dict(found.headers)) == ({"A": "k"}, {"H": "k"})


def test_an_error_names_the_member_and_quotes_no_other_value() -> None:
    raw = {"url": "https://a", "headers": {"X-Key": f"{CANARY} ${{NO}}"}}
    entry = read_entry("x", raw, find_host("claude-code"), file="f")
    with pytest.raises(HostConfigError) as raised:
        expand_entry(entry, environ={}, workspace="/w")
    assert raised.value.key == "headers.X-Key"
    assert CANARY not in str(raised.value)


def test_headers_are_taken_from_variables() -> None:
    raw = {"url": "https://a", "bearer_token_env_var": "KEY", "env_http_headers": {"X": "KEY"}}
    entry = read_entry("x", raw, find_host("codex"))
    assert dict(expand_entry(entry, environ=ENVIRON).headers) == {
        "X": "k",
        "Authorization": "Bearer k",
    }
    with pytest.raises(HostConfigError, match="the environment variable KEY is not set"):
        expand_entry(entry, environ={})


def test_a_file_of_variables_is_read_and_env_is_stronger(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nB=2\n")
    raw = {"command": "c", "env": {"B": "b"}, "envFile": "${workspaceFolder}/.env"}
    entry = read_entry("x", raw, find_host("vscode"))
    found = expand_entry(entry, environ={}, workspace=str(tmp_path))
    assert dict(found.env) == {"A": "1", "B": "b"}
    with pytest.raises(HostConfigError, match=r"envFile: .*No such file"):
        expand_entry(entry, environ={}, workspace=str(tmp_path / "none"))


def test_lines_of_a_file_of_variables() -> None:
    text = b"""\xef\xbb\xbf# comment
A=1
export B = two words # comment
C="quoted # text" # comment
D='x'
E=
F=a=b
"""
    assert parse_env_file(text, ValueError) == {
        "A": "1",
        "B": "two words",
        "C": "quoted # text",
        "D": "x",
        "E": "",
        "F": "a=b",
    }


@for_each(
    ("data", "problem"),
    [
        (f"A=1\n{CANARY}\n", "line 2 is not NAME=VALUE"),
        (f"{CANARY}=1\n", "line 1 is not NAME=VALUE"),
        (f'A="{CANARY}\n', "line 1: the quote is not closed"),
    ],
)
def test_a_wrong_line_is_an_error_that_does_not_quote_it(data: str, problem: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_env_file(data.encode(), ValueError)
    assert str(raised.value) == problem


def test_a_file_of_variables_that_is_not_text_is_an_error() -> None:
    with pytest.raises(ValueError, match="not UTF-8"):
        parse_env_file(b"A=\xff", ValueError)


LOGIN = {"type": "oauth", "client_id": "${KEY}", "scopes": ["${KEY}:read"]}


def login(raw: dict[str, object], file: str = "/f.json") -> dict[str, object]:
    entry = read_entry("x", {"url": "https://a/mcp", "auth": raw}, ANY_FILE, file=file)
    found = expand_entry(entry, environ=ENVIRON).auth
    assert found is not None
    return dict(found)


def test_the_options_of_a_login_have_variables() -> None:
    assert login(LOGIN) == {"client_id": "k", "scopes": ("k:read",)}
    assert login({**LOGIN, "client_secret": "${KEY}"})["client_secret"] == "k"


def test_a_secret_of_a_client_is_not_written_into_a_file() -> None:
    given: dict[str, object] = {**LOGIN, "client_secret": CANARY}
    with pytest.raises(HostConfigError) as caught:
        login(given)
    assert caught.value.key == "auth.client_secret"
    assert CANARY not in str(caught.value)
    # A program may have read it from anywhere.
    assert login(given, file="")["client_secret"] == CANARY

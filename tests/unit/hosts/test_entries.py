"""Entries of a configuration file: what is read, and what is said about a wrong one."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.cases import for_each
from trunkline.hosts.entries import read_entries, read_entry, servers_of
from trunkline.hosts.errors import HostConfigError
from trunkline.hosts.table import ANY_FILE, HOSTS, find_host

CANARY = "CANARY-7f3a"


def test_a_command_is_read() -> None:
    raw = {
        "command": "npx",
        "args": ["-y", "pkg"],
        "env": {"A": "1"},
        "cwd": "/srv",
        "autoApprove": [1],
    }
    entry = read_entry("x", raw, find_host("gemini"), file="f.json")
    assert (entry.transport, entry.command, entry.args) == ("stdio", "npx", ("-y", "pkg"))
    assert (dict(entry.env), entry.cwd, entry.disabled) == ({"A": "1"}, "/srv", False)
    assert (entry.host, entry.scope, entry.file) == ("gemini", "user", "f.json")


@for_each(
    ("host", "raw", "transport"),
    [
        ("cursor", {"url": "https://a/mcp"}, "http"),
        ("cursor", {"url": "https://a/sse", "type": "sse"}, "sse"),
        ("vscode", {"url": "https://a/mcp", "type": "http"}, "http"),
        ("windsurf", {"serverUrl": "https://a/mcp"}, "http"),
        ("gemini", {"httpUrl": "https://a/mcp"}, "http"),
        ("gemini", {"url": "https://a/sse"}, "sse"),
        ("gemini", {"url": "https://a/mcp", "type": "http"}, "http"),
        ("cline", {"url": "https://a/sse"}, "sse"),
        ("cline", {"url": "https://a/mcp", "type": "streamableHttp"}, "http"),
        ("roo", {"url": "https://a/mcp", "type": "streamable-http"}, "http"),
        ("codex", {"url": "https://a/mcp"}, "http"),
        ("opencode", {"url": "https://a/mcp", "type": "remote"}, "http"),
        ("amp", {"url": "https://a/mcp"}, "http"),
        ("droid", {"url": "https://a/mcp", "type": "http"}, "http"),
        ("crush", {"url": "https://a/sse", "type": "sse"}, "sse"),
    ],
)
def test_a_url_is_read(host: str, raw: dict[str, Any], transport: str) -> None:
    entry = read_entry("x", raw, find_host(host))
    assert entry.transport == transport
    assert entry.url.startswith("https://a/")
    assert entry.command == ""


def test_headers_of_codex_are_names_of_variables() -> None:
    raw = {
        "url": "https://a/mcp",
        "http_headers": {"X-Region": "eu"},
        "env_http_headers": {"X-Key": "KEY"},
        "bearer_token_env_var": "TOKEN",
    }
    entry = read_entry("x", raw, find_host("codex"))
    assert dict(entry.headers) == {"X-Region": "eu"}
    assert entry.env_headers == (("X-Key", "", "KEY"), ("Authorization", "Bearer ", "TOKEN"))


@for_each(
    ("host", "raw"),
    [
        ("windsurf", {"command": "x", "disabled": True}),
        ("cline", {"command": "x", "disabled": True}),
        ("codex", {"command": "x", "enabled": False}),
        ("zed", {"command": "x", "enabled": False}),
    ],
)
def test_an_entry_can_be_switched_off(host: str, raw: dict[str, Any]) -> None:
    key = "disabled" if "disabled" in raw else "enabled"
    assert read_entry("x", raw, find_host(host)).disabled
    assert not read_entry("x", {**raw, key: not raw[key]}, find_host(host)).disabled


@for_each(
    ("raw", "key", "problem"),
    [
        ([CANARY], "", "expected an object, got an array"),
        (CANARY, "", "expected an object, got a string"),
        ({}, "", "has no command and no url"),
        ({"command": [CANARY]}, "command", "expected a string, got an array"),
        ({"command": ""}, "command", "is empty"),
        ({"command": "x", "args": CANARY}, "args", "expected an array of strings, got a string"),
        ({"command": "x", "args": ["a", 1]}, "args[1]", "expected a string, got a number"),
        ({"command": "x", "env": [CANARY]}, "env", "expected an object of strings, got an array"),
        ({"command": "x", "env": {"K": 7}}, "env.K", "expected a string, got a number"),
        ({"command": "x", "envFile": True}, "envFile", "expected a string, got a boolean"),
        ({"url": 1}, "url", "expected a string, got a number"),
        ({"url": ""}, "url", "is empty"),
        ({"url": "https://a", "type": CANARY}, "type", "is not a transport that is known"),
        ({"url": "https://a", "headers": CANARY}, "headers", "expected an object of strings"),
        ({"url": "https://a", "headers": {"K": [CANARY]}}, "headers.K", "expected a string"),
    ],
)
def test_a_wrong_type_is_an_error_that_names_its_place_and_no_value(
    raw: Any, key: str, problem: str
) -> None:
    with pytest.raises(HostConfigError) as raised:
        read_entry("one", raw, find_host("cursor"), file="/f.json")
    error = raised.value
    assert (error.file, error.entry, error.key) == ("/f.json", "one", key)
    assert problem in error.problem
    assert str(error).startswith("/f.json, entry 'one'")
    assert CANARY not in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), repr(again)) == (str(error), repr(error))


def test_a_wrong_type_of_the_switch_is_an_error() -> None:
    with pytest.raises(HostConfigError, match="disabled: expected true or false, got a string"):
        read_entry("x", {"command": "x", "disabled": "no"}, find_host("cline"))


def test_one_wrong_entry_does_not_hide_the_others() -> None:
    servers = {"a": {"command": "x"}, "b": {"command": 1}, "c": {"url": "https://a"}}
    entries, problems = read_entries(servers, find_host("cursor"))
    assert [each.name for each in entries] == ["a", "c"]
    assert [(each.name, each.problem) for each in problems] == [
        ("b", "command: expected a string, got a number")
    ]


def test_null_is_as_if_the_member_were_missing() -> None:
    raw = {"command": "x", "args": None, "env": None}
    entry = read_entry("x", raw, find_host("cursor"))
    assert (entry.args, dict(entry.env)) == ((), {})


def test_servers_are_found_below_their_keys() -> None:
    [local, _, user] = find_host("claude-code").locations
    document = {
        "mcpServers": {"u": {}},
        "projects": {"/p": {"mcpServers": {"l": {}}}, "/q": {}},
    }
    assert list(servers_of(document, user)) == ["u"]
    assert list(servers_of(document, local, project="/p")) == ["l"]
    assert servers_of(document, local, project="/q") == {}
    assert servers_of({}, user) == {}


@for_each(
    ("document", "problem"),
    [
        ([], "expected an object, got an array"),
        ({"mcpServers": []}, "mcpServers: expected an object, got an array"),
        ({"mcpServers": None}, "mcpServers: expected an object, got null"),
    ],
)
def test_servers_that_are_not_an_object_are_an_error(document: Any, problem: str) -> None:
    with pytest.raises(HostConfigError, match=problem):
        servers_of(document, find_host("cursor").locations[0], file="f")


@for_each("host", HOSTS, ids=lambda host: host.id)
def test_the_repr_of_an_entry_shows_no_value_of_env_and_headers(host: Any) -> None:
    fields = host.fields
    command = "x" if fields.args else ["x"]
    stdio = read_entry("x", {fields.command: command, fields.env: {"PLAIN": CANARY}}, host)
    assert CANARY not in repr(stdio)
    assert "PLAIN" in repr(stdio)
    for url in fields.urls:
        outer, dot, inner = fields.headers.rpartition(".")
        headers: dict[str, Any] = {inner: {"X-Plain": CANARY}}
        http = read_entry("x", {url: "https://a", **({outer: headers} if dot else headers)}, host)
        assert CANARY not in repr(http)
        assert "X-Plain" in repr(http)


def test_a_secret_among_the_arguments_is_hidden_in_the_repr() -> None:
    raw = {"command": "x", "args": ["--token", CANARY]}
    assert CANARY not in repr(read_entry("x", raw, find_host("cursor")))


@for_each(
    ("given", "options"),
    [
        (None, None),
        ("oauth", {}),
        ({"type": "oauth"}, {}),
        ({"type": "oauth", "scopes": ["a", "b"]}, {"scopes": ("a", "b")}),
        (
            {"type": "oauth", "client_id": "desk", "issuer": "https://login.example.org"},
            {"client_id": "desk", "issuer": "https://login.example.org"},
        ),
    ],
)
def test_the_login_of_a_server_is_read(given: Any, options: dict[str, Any] | None) -> None:
    entry = read_entry("x", {"url": "https://a/mcp", "auth": given}, ANY_FILE)
    assert (None if entry.auth is None else dict(entry.auth)) == options
    # Hosts have members of that name with another meaning, which they read themselves.
    assert (
        read_entry("x", {"url": "https://a/mcp", "auth": given}, find_host("cursor")).auth is None
    )


@for_each(
    ("given", "key", "problem"),
    [
        (CANARY, "auth", 'expected "oauth"; a token goes into headers'),
        (7, "auth", 'expected "oauth" or {"type": "oauth", "scopes": ["..."]}, got a number'),
        ({"CLIENT_ID": CANARY}, "auth.type", 'expected "oauth", as in'),
        ({"type": "bearer", "token": CANARY}, "auth.type", 'expected "oauth"'),
        ({"type": "oauth", "clientId": CANARY}, "auth", "did you mean 'client_id'?"),
        ({"type": "oauth", "audience": CANARY}, "auth", "there are scopes, client_id, "),
        ({"type": "oauth", "scopes": CANARY}, "scopes", "expected an array of strings"),
        ({"type": "oauth", "client_id": 7}, "client_id", "expected a string"),
    ],
)
def test_a_login_that_cannot_be_read_is_an_error_without_its_values(
    given: Any, key: str, problem: str
) -> None:
    with pytest.raises(HostConfigError) as caught:
        read_entry("x", {"url": "https://a/mcp", "auth": given}, ANY_FILE, file="f.json")
    assert (caught.value.key, problem in caught.value.problem) == (key, True), caught.value.problem
    assert CANARY not in str(caught.value)

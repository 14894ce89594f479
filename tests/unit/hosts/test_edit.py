"""Entries added, replaced and removed in the documented format of every host."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import for_each
from trunkline.hosts.edit import EntryPlace, entry_members, put_entry, take_entry
from trunkline.hosts.entries import ServerEntry, read_entry
from trunkline.hosts.errors import HostConfigError
from trunkline.hosts.files import parse_text
from trunkline.hosts.table import HOSTS, PROJECT_KEY, Host, Location, find_host

PROJECT = "/w/p"
STDIO = ServerEntry(
    name="new", transport="stdio", command="/usr/bin/python3", args=("-m", "x"), env={"K": "v"}
)
HTTP = ServerEntry(
    name="new", transport="http", url="https://a.example/mcp", headers={"X-Key": "v"}
)
PLACES = [(host, location) for host in HOSTS for location in host.locations]


def sample(host: Host, location: Location) -> str:
    """Return a file as a user has it: another server, comments, members that no row names."""
    if host.format == "toml":
        return (
            '# my settings\nmodel = "o3"\n\n[mcp_servers.old] # old\ncommand = "x"\nlater = 1\n\n'
            '[mcp_servers.old.env]\nTOKEN = "t" # secret\n\n[tui]\n# loud\nsound = true\n'
        )
    if host.format == "yaml":
        fields = host.fields
        dash, blanks = ("- name: old", "    ") if host.is_list else ("old:", "    ")
        return (
            f"# my settings\nmodel: 'o3'\n{location.keys[0]}: # servers\n  # about old\n"
            f'  {dash}  # old\n{blanks}{fields.command}: "x" # how\n{blanks}{fields.env}:\n'
            f"{blanks}  TOKEN: t   # secret\n{blanks}unknownMember: [1, 2.50, null]\n"
            "    # last\n# after\nnumbers:\n- 1e5\n-   -0\ntext: |\n  # no comment\n\n# end\n"
        )
    keys = [PROJECT if key == PROJECT_KEY else key for key in location.keys]
    opening = "".join(f'"{key}": {{ ' for key in keys)
    closing = "} " * len(keys)
    command = '"x"' if host.fields.args else '["x"]'
    return (
        f'{{\n    // first\n    "theme": "dark", /* mine */\n    {opening}\n'
        f'        // about old\n        "old": {{\n            "command": {command}, // how\n'
        f'            "{host.fields.env}": {{"TOKEN": "t"}}, // secret\n'
        '            "unknownMember": [1, 2.50, null]'
        f"\n        }} // end of old\n        // last\n    {closing}, // after\n"
        '    "numbers": [1e5, 1.0, -0],\n    "z": {}\n}\n'
    )


COMMENTS = {
    "yaml": [
        *("# my settings", "# servers", "# about old", "# old", "# how", "# secret", "# last"),
        *("# after", "# no comment", "# end", "2.50", "1e5", "'o3'", "-   -0", "\n- "),
    ],
    "toml": ["# my settings", "# old", "# secret", "# loud"],
    "json": [
        *("// first", "/* mine */", "// about old", "// how", "// secret", "// end of old"),
        *("// last", "// after", "2.50", "1e5"),
    ],
}


def put(text: str, host: Host, location: Location, entry: ServerEntry) -> str:
    return put_entry(text, EntryPlace(host, location, "f", PROJECT), entry)


def take(text: str, host: Host, location: Location, name: str) -> str:
    return take_entry(text, EntryPlace(host, location, "f", PROJECT), name)


def raw(text: str, host: Host, location: Location, name: str) -> Any:
    return EntryPlace(host, location, "f", PROJECT).raw(text, name)


@for_each(("host", "location"), PLACES, ids=lambda part: part[0])
def test_an_entry_is_added_and_removed_and_nothing_else_changes(
    host: Host, location: Location
) -> None:
    text = sample(host, location)
    entries = [STDIO, HTTP] if host.fields.urls else [STDIO]
    for entry in entries:
        new = put(text, host, location, entry)
        found = read_entry("new", raw(new, host, location, "new"), host)
        assert found.transport == entry.transport
        assert (found.command, found.args, found.url) == (entry.command, entry.args, entry.url)
        assert (dict(found.env), dict(found.headers)) == (dict(entry.env), dict(entry.headers))
        for comment in COMMENTS[host.format.removesuffix("c")]:
            assert comment in new
        assert raw(new, host, location, "old") == raw(text, host, location, "old")
        assert take(new, host, location, "new") == text


@for_each(("host", "location"), PLACES, ids=lambda part: part[0])
def test_an_entry_is_added_to_a_file_that_is_empty_or_missing(
    host: Host, location: Location
) -> None:
    for text in ("", "\n", "\ufeff"):
        new = put(text, host, location, STDIO)
        assert raw(new, host, location, "new") == entry_members(STDIO, host)
        assert new.removeprefix("\ufeff").startswith(host.new_file)
        assert new.startswith("\ufeff") == text.startswith("\ufeff")
        assert new.endswith("\n")


@for_each(("host", "location"), PLACES, ids=lambda part: part[0])
def test_a_replacement_keeps_what_it_does_not_set(host: Host, location: Location) -> None:
    text = sample(host, location)
    entry = ServerEntry(name="old", transport="stdio", command="/y", args=("1",), env={"A": "b"})
    new = put(text, host, location, entry)
    found = raw(new, host, location, "old")
    read = read_entry("old", found, host)
    assert (read.command, read.args) == ("/y", ("1",))
    assert dict(read.env) == {"TOKEN": "t", "A": "b"}
    assert found.get("unknownMember", [1, 2.5, None]) == [1, 2.5, None]
    assert found.get("later", 1) == 1
    for comment in COMMENTS[host.format.removesuffix("c")]:
        assert comment in new
    assert put(new, host, location, entry) == new


@for_each("host", [host for host in HOSTS if host.fields.urls], ids=lambda host: host.id)
def test_a_command_becomes_a_url_and_back(host: Host) -> None:
    location = host.locations[-1]
    text = sample(host, location)
    url = ServerEntry(name="old", transport="http", url="https://a.example/mcp")
    new = put(text, host, location, url)
    found = raw(new, host, location, "old")
    fields = host.fields
    assert not {fields.command, fields.args, fields.env} & set(found)
    assert read_entry("old", found, host).url == url.url
    command = ServerEntry(name="old", transport="stdio", command="/y")
    again = raw(put(new, host, location, command), host, location, "old")
    assert read_entry("old", again, host).command == "/y"
    assert not {*host.fields.urls} & set(again)


def test_an_entry_that_is_switched_off_stays_off() -> None:
    host = find_host("cline")
    text = '{"mcpServers": {"a": {"command": "x", "disabled": true}}}'
    entry = ServerEntry(name="a", transport="stdio", command="/y")
    new = put(text, host, host.locations[0], entry)
    assert raw(new, host, host.locations[0], "a")["disabled"] is True


@for_each(
    ("name", "entry", "members"),
    [
        ("claude", STDIO, {"command": "/usr/bin/python3", "args": ["-m", "x"], "env": {"K": "v"}}),
        (
            "opencode",
            STDIO,
            {
                "type": "local",
                "command": ["/usr/bin/python3", "-m", "x"],
                "environment": {"K": "v"},
            },
        ),
        ("opencode", HTTP, {"type": "remote", "url": HTTP.url, "headers": {"X-Key": "v"}}),
        ("qwen", HTTP, {"httpUrl": HTTP.url, "headers": {"X-Key": "v"}}),
        ("droid", HTTP, {"type": "http", "url": HTTP.url, "headers": {"X-Key": "v"}}),
        ("amp", HTTP, {"url": HTTP.url, "headers": {"X-Key": "v"}}),
        ("crush", HTTP, {"type": "http", "url": HTTP.url, "headers": {"X-Key": "v"}}),
        ("vscode", HTTP, {"type": "http", "url": HTTP.url, "headers": {"X-Key": "v"}}),
        ("windsurf", HTTP, {"serverUrl": HTTP.url, "headers": {"X-Key": "v"}}),
        ("gemini", HTTP, {"httpUrl": HTTP.url, "headers": {"X-Key": "v"}}),
        ("codex", HTTP, {"url": HTTP.url, "http_headers": {"X-Key": "v"}}),
        ("cline", HTTP, {"type": "streamableHttp", "url": HTTP.url, "headers": {"X-Key": "v"}}),
        (
            "copilot-cli",
            HTTP,
            {"type": "http", "url": HTTP.url, "headers": {"X-Key": "v"}, "tools": ["*"]},
        ),
    ],
)
def test_the_members_of_an_entry_are_those_of_the_host(
    name: str, entry: ServerEntry, members: dict[str, Any]
) -> None:
    assert entry_members(entry, find_host(name)) == members


def test_a_host_without_urls_takes_none() -> None:
    with pytest.raises(
        HostConfigError, match="Claude Desktop does not connect to servers over HTTP"
    ):
        entry_members(HTTP, find_host("claude"))
    sse = ServerEntry(name="x", transport="sse", url="https://a/sse")
    assert entry_members(sse, find_host("gemini")) == {"url": "https://a/sse"}
    with pytest.raises(HostConfigError, match="Codex does not connect to servers over SSE"):
        entry_members(sse, find_host("codex"))


@for_each(
    ("name", "text", "problem"),
    [
        ("cursor", "{", "not JSON"),
        ("cursor", "[]", "expected an object, got an array"),
        ("cursor", '{"mcpServers": []}', "mcpServers: expected an object, got an array"),
        ("cursor", '{"mcpServers": {"new": 1}}', "is not an object; edit the file by hand"),
        ("cursor", '{"mcpServers": {"new": {}, "new": {}}}', "appears twice"),
        ("cursor", '{"mcpServers": {}, "mcpServers": {}}', "appears twice"),
        ("codex", "[", "not TOML"),
        ("codex", "mcp_servers = 1", "mcp_servers: expected an object, got a number"),
        ("codex", "mcp_servers = {}", "edit the file by hand"),
        ("codex", 'mcp_servers.new.command = "x"', "edit the file by hand"),
    ],
)
def test_a_text_that_cannot_be_edited_safely_is_an_error(
    name: str, text: str, problem: str
) -> None:
    host = find_host(name)
    with pytest.raises(HostConfigError, match=problem):
        put(text, host, host.locations[-1], STDIO)


def test_an_edit_that_goes_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    host = find_host("cursor")
    for wrong in ("{", '{"mcpServers": {"new": {}}}', '{"x": 1}'):
        monkeypatch.setattr("trunkline.hosts.jsonc.set_member", lambda *_, wrong=wrong: wrong)
        with pytest.raises(HostConfigError, match=r"edit (it|the file) by hand"):
            put("{}", host, host.locations[-1], STDIO)


def test_the_order_of_members_stays() -> None:
    host = find_host("cursor")
    text = '{"b": 1, "mcpServers": {"z": {"command": "x"}, "a": {"command": "y"}}, "a": 2}'
    new = put(text, host, host.locations[-1], STDIO)
    document = parse_text(new, "json", "f")
    assert list(document) == ["b", "mcpServers", "a"]
    assert list(document["mcpServers"]) == ["z", "a", "new"]

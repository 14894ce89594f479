"""The table of hosts: rows that agree with themselves."""

from __future__ import annotations

import pytest

from tests.cases import for_each
from trunkline.hosts.errors import UnknownHost
from trunkline.hosts.table import ANY_HOST, HOSTS, PLATFORMS, Host, find_host, near_host

FORMS = {
    *("$NAME", "${NAME}", "${NAME:-default}", "${env:NAME}", "${input:id}", "${userHome}"),
    *("{env:NAME}", "{file:PATH}", "$(COMMAND)", "${{ secrets.NAME }}"),
    *("${workspaceFolder}", "${workspaceFolderBasename}", "${pathSeparator}", "${/}"),
}


@for_each("host", HOSTS, ids=lambda host: host.id)
def test_a_row_agrees_with_itself(host: Host) -> None:
    assert host.source
    assert all(each.startswith("https://") for each in host.source)
    assert host.locations
    usual = [each.scope for each in host.locations if not each.is_alternative]
    assert len(set(usual)) == len(usual)
    assert set(usual) == {each.scope for each in host.locations}
    # The files of a scope stand together, so that one of another scope never comes between.
    scopes = [each.scope for each in host.locations]
    assert scopes == sorted(scopes, key=list(dict.fromkeys(scopes)).index)
    assert set(host.variables) <= FORMS
    for location in host.locations:
        assert set(location.paths) <= set(PLATFORMS)
        for path in location.paths.values():
            assert path.endswith((".json", ".jsonc", ".toml", ".yaml", ".json}"))
            assert (path.endswith(".yaml")) == (host.format == "yaml")
            is_relative = not path.startswith(("~", "${"))
            assert is_relative == (location.scope == "project")
            assert (path.endswith(".toml")) == (host.format == "toml")
    assert set(host.approval) <= {each.scope for each in host.locations}
    assert not any(each.endswith(".") for each in (host.reload, *host.approval.values()))
    fields = host.fields
    for kind, transport in (
        (fields.stdio_type, "stdio"),
        (fields.http_type, "http"),
        (fields.sse_type, "sse"),
    ):
        assert not kind or fields.type
        assert not kind or fields.type_aliases[kind] == transport


def test_names_and_aliases_are_unique() -> None:
    names = [name for host in HOSTS for name in (host.id, *host.aliases)]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() for name in names)


@for_each(
    ("name", "found"),
    [("claude", "claude-desktop"), ("Cursor", "cursor"), ("code", "vscode"), ("gemini", "gemini")],
)
def test_a_host_is_found_by_id_and_alias(name: str, found: str) -> None:
    assert find_host(name).id == found


@for_each(
    ("typed", "meant"),
    [
        *(("cluade", "claude"), ("cursr", "cursor"), ("cursorr", "cursor"), ("gemni", "gemini")),
        *(("opencod", "opencode"), ("continu", "continue"), ("goos", "goose"), ("qewn", "qwen")),
        *(("vscodee", "vscode"), ("windsurv", "windsurf"), ("claude-cod", "claude-code")),
    ],
)
def test_a_typing_error_is_answered_with_the_name(typed: str, meant: str) -> None:
    assert near_host(typed) == meant


def test_another_program_is_never_taken_for_a_typing_error() -> None:
    others = (
        "aider amazon-q android auggie augment boltai cherry-studio chatwise claude-dev coder cody "
        "cline-dev cursive emacs grok helix idea jan jetbrains junie kilo kilocode kimi librechat "
        "msty neovim pycharm raycast tabnine trae vibe vim void witsy zencoder roo-cline q kiwi "
        "clive wrap codet gemma open-code-interpreter warpd zeta crash"
    )
    # `wrap` is `warp` with two letters swapped.
    assert [each for each in others.split() if near_host(each)] == ["wrap"]


def test_an_unknown_host_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UnknownHost, match=r"unknown host 'cursr'; did you mean 'cursor'\?"):
        find_host("cursr")
    with pytest.raises(UnknownHost, match="known hosts: claude-desktop, claude-code"):
        find_host("emacs")


@for_each("typed", ["jsno", "josn", "jsonn", "JSNO"])
def test_json_is_suggested_only_where_it_is_taken(typed: str) -> None:
    with pytest.raises(UnknownHost, match=r"; did you mean 'json'\?$"):
        find_host(typed, takes_any=True)
    with pytest.raises(UnknownHost, match="known hosts: "):
        find_host(typed)
    assert near_host(typed) == ""


def test_the_name_of_any_host_is_found_only_where_it_is_taken() -> None:
    assert find_host("JSON", takes_any=True) is ANY_HOST
    assert find_host("code", takes_any=True).id == "vscode"
    with pytest.raises(UnknownHost, match="known hosts: "):
        find_host("json")

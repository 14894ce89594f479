"""The command that a user is told to paste."""

from __future__ import annotations

import shlex

import pytest

from tests.cases import for_each
from trunkline.cli.output.login_advice import is_about_login, login_advice, login_command
from trunkline.errors import AuthorizationFailed


@for_each("scope", ["a;touch${IFS}x", "`id`", "$(id)", "a'b", "a&b", "a|b", "--no-browser", "<x"])
def test_a_scope_of_a_server_is_one_word_in_a_shell(scope: str) -> None:
    command = login_command("https://mcp.example.org/mcp", [scope])
    assert shlex.split(command, comments=True) == [
        *("trunkline", "login", "https://mcp.example.org/mcp"),
        f"--scope={scope}",
    ]


def test_an_address_is_one_word_in_a_shell() -> None:
    assert shlex.split(login_command("https://a.example/?x=1&y=$z"))[2:] == [
        "https://a.example/?x=1&y=$z"
    ]
    assert "\x1b" not in login_command("https://a.example/\x1b[31m")


def test_scopes_are_named_if_they_are_missing() -> None:
    plain = "trunkline login https://a.example"
    ended = AuthorizationFailed("x", step="request", status=401, scopes=["a"])
    missing = AuthorizationFailed(
        "x", step="scope", status=403, error="insufficient_scope", scopes=["b", "a"]
    )
    assert login_advice(ended, "https://a.example") == plain
    assert login_advice(missing, "https://a.example") == f"{plain} --scope a --scope b"


def test_many_or_long_scopes_are_left_out() -> None:
    plain = "trunkline login https://a.example"
    assert login_command("https://a.example", [f"s{each}" for each in range(21)]) == plain
    assert login_command("https://a.example", ["s" * 1001]) == plain


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (AuthorizationFailed("x", step="request", status=401), True),
        (AuthorizationFailed("x", step="request", status=403), False),
        (AuthorizationFailed("x", step="scope", status=403, error="insufficient_scope"), True),
        (AuthorizationFailed("x", step="token", error="invalid_grant"), True),
        (AuthorizationFailed("x", step="storage"), False),
    ],
)
def test_a_refusal_is_about_a_login(error: AuthorizationFailed, expected: bool) -> None:
    assert is_about_login(error) is expected

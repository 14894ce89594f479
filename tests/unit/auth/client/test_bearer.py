"""A token that the client was given."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each
from trunkline.auth.client.bearer import Bearer
from trunkline.errors import AuthorizationFailed

URL = "https://files.example.org/mcp"
CANARY = "CANARY-9a02"
CHALLENGE = b'Bearer error="insufficient_scope", scope="files:write files:read"'


def first_lines(auth: Any) -> bytes:
    assert auth.headers("POST", URL) is None
    asyncio.run(auth.prepare(URL))
    found: bytes = auth.headers("POST", URL)
    return found


def refused(auth: Any, status: int, sent: bytes, challenge: bytes = b"Bearer") -> bool:
    headers = [(b"www-authenticate", challenge)]
    found: bool = asyncio.run(auth.refused("POST", URL, status, headers, sent))
    return found


def test_the_token_is_a_header() -> None:
    assert first_lines(Bearer("abc").for_server(URL)) == b"authorization: Bearer abc\r\n"


def test_a_rotated_file_is_noticed_after_401(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    auth = Bearer(file=path).for_server(URL)
    sent = first_lines(auth)
    path.write_text("two")
    assert refused(auth, 401, sent)
    assert auth.headers("POST", URL) == b"authorization: Bearer two\r\n"


def test_a_request_that_was_sent_with_an_older_token_is_sent_again(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    auth = Bearer(file=path).for_server(URL)
    sent = first_lines(auth)
    path.write_text("two")
    assert refused(auth, 401, sent)
    path.unlink()  # not read again
    assert refused(auth, 401, sent)


def test_the_same_token_is_not_sent_a_second_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(CANARY)
    for bearer in (Bearer(CANARY), Bearer(file=path), Bearer(lambda: CANARY)):
        auth = bearer.for_server(URL)
        sent = first_lines(auth)
        with pytest.raises(AuthorizationFailed, match="refused the bearer token") as caught:
            refused(auth, 401, sent, b'Bearer error="invalid_token"')
        assert caught.value.error == "invalid_token"
        assert CANARY not in f"{caught.value!r} {auth!r} {bearer!r}"


def test_missing_scopes_are_named() -> None:
    auth = Bearer("abc").for_server(URL)
    sent = first_lines(auth)
    with pytest.raises(AuthorizationFailed, match="scopes 'files:read files:write'") as caught:
        refused(auth, 403, sent, CHALLENGE)
    assert caught.value.error == "insufficient_scope"


def test_status_403_without_a_challenge_is_not_about_the_token() -> None:
    auth = Bearer("abc").for_server(URL)
    sent = first_lines(auth)
    assert asyncio.run(auth.refused("POST", URL, 403, [], sent)) is False


@for_each("text", ["two words", "a\r\nx: y", "caf\u00e9", ""])
def test_a_text_that_is_not_a_token_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"token") as caught:
        Bearer(text)
    assert not text or text not in str(caught.value)


@for_each(
    ("url", "is_allowed"),
    [
        (URL, True),
        ("wss://files.example.org/mcp", True),
        ("http://127.0.0.1:8000/mcp", True),
        ("http://localhost:8000/mcp", True),
        ("http://[::1]:8000/mcp", True),
        ("http+unix:/run/files.sock", True),
        ("http://files.example.org/mcp", False),
        ("ws://files.example.org/mcp", False),
        ("http://192.168.1.7/mcp", False),
        ("http://127.0.0.1.example.org/mcp", False),
    ],
)
def test_a_token_is_not_sent_in_the_clear(url: str, is_allowed: bool) -> None:
    if not is_allowed:
        with pytest.raises(ValueError, match="is not encrypted"):
            Bearer("abc").for_server(url)
        assert first_lines(Bearer("abc", allow_http=True).for_server(url))
    else:
        assert first_lines(Bearer("abc").for_server(url))

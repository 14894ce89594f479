"""What a login leaves behind, and locks between event loops."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from msgspec.structs import replace

from tests.cases import for_each
from trunkline.auth import MemoryTokens
from trunkline.auth.client.flow.token_endpoint import IssuedToken
from trunkline.auth.client.storage.token_store import KeyLocks, StoredLogin, server_key

LOGIN = StoredLogin(
    server="https://mcp.example.org/mcp",
    issuer="https://login.example.org",
    resource="https://mcp.example.org/mcp",
    client_id="desk",
    client_secret="CANARY-secret",
    redirect_uri="http://127.0.0.1:8765/callback",
    refresh_token="CANARY-refresh",
    dpop_key="CANARY-key",
)


@for_each(
    ("url", "key"),
    [
        ("https://mcp.example.org/mcp", "https://mcp.example.org/mcp"),
        ("https://MCP.example.org:443/mcp/", "https://mcp.example.org/mcp"),
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp"),
        ("http://[::1]:80", "http://[::1]"),
        ("https://mcp.example.org/mcp?token=x", "https://mcp.example.org/mcp"),
    ],
)
def test_a_server_has_one_key(url: str, key: str) -> None:
    assert server_key(url) == key


def test_a_record_is_written_and_read() -> None:
    assert StoredLogin.decode(LOGIN.encode()) == LOGIN
    assert StoredLogin.decode(None) is None
    assert "CANARY" not in f"{LOGIN!r} {LOGIN.__rich_repr__()}"


@for_each(
    "changes",
    [
        {"access_token": "a\r\nx: y"},
        {"access_token": "\u00fc"},
        {"token_type": "Bearer\r\nx"},
        {"token_type": "mac"},
        {"client_secret": "\u00fc"},
        {"client_secret": "a\nb"},
        {"auth_method": "private_key_jwt"},
    ],
)
def test_a_record_that_cannot_be_sent_is_as_good_as_none(changes: dict[str, str]) -> None:
    assert StoredLogin.decode(replace(LOGIN, **changes).encode()) is None


def test_granted_scopes_are_kept_until_others_are_granted() -> None:
    token = IssuedToken(access_token="a", token_type="Bearer")
    asked = replace(LOGIN, scopes=["a", "b"])
    assert asked.with_token(token).granted is None
    fewer = asked.with_token(replace(token, scopes=frozenset("a")))
    assert (fewer.scopes, fewer.granted) == (["a", "b"], ["a"])
    assert fewer.with_token(token).granted == ["a"]
    assert StoredLogin.decode(fewer.encode()) == fewer


def test_a_token_replaces_the_one_before_and_keeps_a_refresh_token_that_was_not_rotated() -> None:
    token = IssuedToken(access_token="a", token_type="Bearer", expires_at=time.time() + 100)
    first = LOGIN.with_token(token)
    assert (first.access_token, first.refresh_token) == ("a", "CANARY-refresh")
    assert not first.has_ended
    rotated = IssuedToken(access_token="b", token_type="Bearer", refresh_token="r")
    second = first.with_token(rotated)
    assert (second.refresh_token, second.expires_at, second.renew_at) == ("r", None, None)
    assert not second.has_ended
    assert replace(first, renew_at=time.time() - 1).has_ended
    assert replace(first, renew_at=None, expires_at=time.time() + 5).has_ended


def test_a_registration_alone_has_no_token() -> None:
    token = IssuedToken(access_token="CANARY-token", token_type="DPoP", refresh_token="CANARY-r")
    bare = LOGIN.with_token(token).without_tokens()
    assert (bare.client_id, bare.client_secret) == ("desk", "CANARY-secret")
    assert bare.redirect_uri == LOGIN.redirect_uri
    text = bare.encode()
    assert not [word for word in (b"token", b"CANARY-r", b"CANARY-key") if word in text]


def test_a_storage_in_memory_forgets_with_its_owner() -> None:
    storage = MemoryTokens()
    assert storage.load("a") is None
    storage.store("a", b"CANARY")
    assert storage.load("a") == b"CANARY"
    assert "CANARY" not in repr(storage)
    storage.delete("a")
    storage.delete("a")
    assert storage.load("a") is None


def test_a_lock_is_held_by_one_between_all_event_loops() -> None:
    locks = KeyLocks()
    inside = 0
    most = 0
    rounds: list[int] = []

    async def use() -> None:
        nonlocal inside, most
        for _ in range(3):
            async with locks.hold("a"):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                rounds.append(1)
                inside -= 1

    async def both() -> None:
        await asyncio.gather(use(), use())

    threads = [threading.Thread(target=asyncio.run, args=(both(),)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert (most, len(rounds)) == (1, 12)


def test_a_lock_is_released_by_what_raises_and_is_apart_from_others() -> None:
    async def main() -> None:
        locks = KeyLocks()
        with pytest.raises(KeyError):
            async with locks.hold("a"), locks.hold("b"):
                raise KeyError
        async with locks.hold("a"), locks.hold("b"):
            assert repr(locks) == "<KeyLocks, 2 held>"

    asyncio.run(asyncio.wait_for(main(), 60))

"""Tokens in a keyring: here one of the test, as the package is not a dependency."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType

import pytest

from trunkline.auth.client.storage.keyring_tokens import KeyringTokens
from trunkline.errors import AuthorizationFailed

KEY = "https://files.example.org/mcp https://login.example.org"
CANARY = "CANARY-77aa"


class Keyring(ModuleType):
    """What the library uses of the package."""

    def __init__(self) -> None:
        super().__init__("keyring")
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, password: str) -> None:
        if "refused" in password:
            raise RuntimeError(f"cannot keep {password}")
        self.kept[service, name] = password

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Keyring:
    made = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", made)
    return made


def test_record_is_loaded_until_it_is_deleted(keyring: Keyring, tmp_path: Path) -> None:
    tokens = KeyringTokens(locks=tmp_path / "locks")
    assert tokens.load(KEY) is None
    tokens.delete(KEY)
    tokens.store(KEY, b"one")
    assert tokens.load(KEY) == b"one"
    assert KeyringTokens("another").load(KEY) is None
    ((service, name),) = keyring.kept
    assert service == "trunkline"
    assert "example" not in name
    tokens.delete(KEY)
    assert tokens.load(KEY) is None


def test_an_error_of_the_keyring_does_not_quote_what_was_stored(keyring: Keyring) -> None:
    with pytest.raises(AuthorizationFailed, match="the keyring failed with RuntimeError") as caught:
        KeyringTokens().store(KEY, f"refused {CANARY}".encode())
    assert CANARY not in f"{caught.value!r}"
    assert caught.value.__cause__ is None


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(AuthorizationFailed, match="pip install keyring"):
        KeyringTokens().load(KEY)


def test_locks_are_files(keyring: Keyring, tmp_path: Path) -> None:
    folder = tmp_path / "locks"

    async def take() -> None:
        async with KeyringTokens(locks=folder).lock(KEY):
            assert len(list(folder.glob("*.lock"))) == 1

    asyncio.run(take())
    assert keyring.kept == {}

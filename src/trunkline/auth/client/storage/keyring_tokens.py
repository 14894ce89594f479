"""Tokens in the keyring of the system, through the package `keyring` if it is installed.

The rules that live here, and only here:

* The package is imported on first use, and is not a dependency.
* A keyring has no locks: those are files in the folder of `FileTokens`, which hold nothing.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from ....errors import AuthorizationFailed
from ....redaction import show
from .file_tokens import FileTokens

__all__ = ["KeyringTokens"]

_SERVICE: Final = "trunkline"


class KeyringTokens:
    """Tokens in the keyring of the system; needs the package `keyring`.

        Client(URL, auth=OAuth(storage=KeyringTokens()))

    `service` is the name under which the keyring shows them. `locks` is a folder for the locks
    between processes.
    """

    __slots__ = ("_locks", "service")

    def __init__(
        self, service: str = _SERVICE, *, locks: str | os.PathLike[str] | None = None
    ) -> None:
        self.service = service
        self._locks = FileTokens(locks)

    def __repr__(self) -> str:
        return f"KeyringTokens({show(self.service)})"

    def load(self, key: str) -> bytes | None:
        """Return what is stored for a key, or None.

        Raises:
            AuthorizationFailed: the keyring cannot be read.
        """
        found: str | None = self._ask("get_password", _name(key))
        return None if found is None else found.encode()

    def store(self, key: str, data: bytes) -> None:
        """Replace what is stored for a key.

        Raises:
            AuthorizationFailed: the keyring cannot be written.
        """
        self._ask("set_password", _name(key), data.decode())

    def delete(self, key: str) -> None:
        """Remove what is stored for a key, if anything is.

        Raises:
            AuthorizationFailed: the keyring cannot be written.
        """
        if self.load(key) is not None:
            self._ask("delete_password", _name(key))

    def lock(self, key: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of a key between all processes that share the folder of the locks."""
        return self._locks.lock(f"{self.service} {key}")

    def _ask(self, function: str, *words: str) -> Any:
        try:
            import keyring  # type: ignore[import-not-found, unused-ignore]  # not a dependency
        except ImportError:
            raise AuthorizationFailed(
                "KeyringTokens needs keyring: pip install keyring", step="storage"
            ) from None
        try:
            return getattr(keyring, function)(self.service, *words)
        except Exception as error:  # noqa: BLE001  # each keyring has errors of its own
            # Without its text, which may quote what was to be stored.
            raise AuthorizationFailed(
                f"the keyring failed with {type(error).__name__}", step="storage"
            ) from None


def _name(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

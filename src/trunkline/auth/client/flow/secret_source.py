"""Where a client finds a secret: a text, an environment variable, a file or a function.

The rules that live here, and only here:

* A variable or a file is read each time a secret is needed, so that a rotated one is found.
* What is missing, empty or not one line of printable ASCII is an error that names the place.
* The secret appears in no repr and no error.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from ....errors import AuthorizationFailed
from ....redaction import show

__all__ = ["SecretFunction", "SecretSource"]

# A function, sync or async, that returns a secret.
SecretFunction: TypeAlias = Callable[[], "str | Awaitable[str]"]

# Tokens of large identity providers have 2 to 8 KiB.
MAX_SECRET_BYTES: Final = 64 * 1024


class SecretSource:
    """One secret, and where it is read."""

    __slots__ = ("_env", "_file", "_function", "_text", "name")

    def __init__(
        self,
        name: str,
        given: str | SecretFunction | None = None,
        *,
        env: str | None = None,
        file: str | os.PathLike[str] | None = None,
    ) -> None:
        """Take one of a text or function, the name of a variable, and a path.

        `name` is what the owner calls the secret, for errors.

        Raises:
            ValueError: none or several are given, one is of a wrong type, or the text cannot be a
                secret.
        """
        if (given is not None) + (env is not None) + (file is not None) != 1:
            raise ValueError(f"{name} is a text or a function, or in env= or in file=: one of them")
        if given is not None and not isinstance(given, str) and not callable(given):
            raise ValueError(f"{name} is a text or a function")
        if env is not None and (not isinstance(env, str) or not env or "=" in env):
            raise ValueError(f"env= of {name} is the name of an environment variable")
        self.name = name
        self._text = given if isinstance(given, str) else None
        self._function = None if given is None or isinstance(given, str) else given
        self._env = env
        self._file = None if file is None else os.fspath(file)
        if self._text is not None and (problem := _problem(self._text)) is not None:
            raise ValueError(f"{name} {problem}")

    def __repr__(self) -> str:
        return f"<SecretSource {self.place}>"

    @property
    def place(self) -> str:
        """Where the secret is, for errors."""
        if self._env is not None:
            return f"the environment variable {show(self._env)}"
        if self._file is not None:
            return f"the file {show(self._file)}"
        return "the text" if self._function is None else "the function"

    @property
    def is_fixed(self) -> bool:
        """True if the secret cannot change."""
        return self._text is not None

    async def read(self) -> str:
        """Return the secret as it is now.

        Raises:
            AuthorizationFailed: there is none; the text says where it was looked for.
        """
        if self._text is not None:
            return self._text
        if self._env is not None:
            found = os.environ.get(self._env)
            if found is None:
                raise self._failure("is not set")
            return self._checked(found.strip())
        if self._file is not None:
            return self._checked(self._content(self._file))
        return self._checked(await self._called())

    def _content(self, path: str) -> str:
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_SECRET_BYTES + 1)
        except OSError as error:
            raise self._failure(f"cannot be read: {error.strerror}") from None
        return data.decode("ascii", "replace").strip()

    async def _called(self) -> Any:
        assert self._function is not None
        try:
            found: Any = self._function()
            if inspect.isawaitable(found):
                found = await found
        except AuthorizationFailed:
            raise
        except Exception as error:  # whatever a function of the author raises
            # Without its text, which may hold the secret.
            raise self._failure(f"raised {type(error).__name__}") from error
        if not isinstance(found, str):
            raise self._failure("did not return a text")
        return found

    def _checked(self, found: str) -> str:
        problem = _problem(found)
        if problem is not None:
            raise self._failure(problem)
        return found

    def _failure(self, what: str) -> AuthorizationFailed:
        return AuthorizationFailed(f"{self.place} for {self.name} {what}", step="credential")


def _problem(found: str) -> str | None:
    if not found:
        return "is empty"
    if len(found) > MAX_SECRET_BYTES or not found.isascii() or not found.isprintable():
        return "is too long, or not one line of printable ASCII"
    return None

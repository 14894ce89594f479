"""A token that the client was given: `Bearer`.

The rules that live here, and only here:

* The token is read when the first request needs it, and again after status 401: a rotated file,
  variable or function then has another one, and the request is sent once more. The same token is
  not sent a second time.
* The token is a `b64token`: no other text can be sent in the header.        [RFC 6750, 2.1]
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable
from typing import Final

from ...errors import AuthorizationFailed
from ...redaction import show
from ..challenge import challenges_in
from .flow.secret_source import SecretFunction, SecretSource
from .flow.server_url import check_secure

__all__ = ["Bearer"]

_is_token: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*").fullmatch


class Bearer:
    """A token from a text, an environment variable, a file or a function, sync or async.

        Client(URL, auth=Bearer(env="FILES_TOKEN"))
        Client(URL, auth=Bearer(file="/run/secrets/files-token"))
        Client(URL, auth=Bearer(fetch_token))

    A variable, file or function is asked again after the server refused the token. `allow_http`
    permits plain HTTP to hosts other than this machine.
    """

    __slots__ = ("_allow_http", "_source")

    def __init__(
        self,
        token: str | SecretFunction | None = None,
        *,
        env: str | None = None,
        file: str | os.PathLike[str] | None = None,
        allow_http: bool = False,
    ) -> None:
        """Take one of the four.

        Raises:
            ValueError: the text is not a token, or none or several are given.
        """
        self._source = SecretSource("the bearer token", token, env=env, file=file)
        self._allow_http = allow_http
        if isinstance(token, str) and _is_token(token) is None:
            # Without the value: it is a secret.
            raise ValueError("a token has letters, digits and -._~+/ alone")

    def __repr__(self) -> str:
        return f"<Bearer from {self._source.place}>"

    def for_server(
        self,
        url: str,
        *,
        context: ssl.SSLContext | None = None,
        is_private: Callable[[], bool] = bool,
    ) -> BearerAuth:
        """Return the credentials for one server.

        Raises:
            ValueError: the connection to it is neither encrypted nor to this machine.
        """
        check_secure(url, allow_http=self._allow_http)
        return BearerAuth(self._source)


class BearerAuth:
    """The `HttpAuth` of a given token."""

    __slots__ = ("_lines", "_source")

    def __init__(self, source: SecretSource) -> None:
        self._source = source
        self._lines: bytes | None = None

    def __repr__(self) -> str:
        return "<Bearer for a server>"

    def headers(self, method: str, url: str) -> bytes | None:
        """Return the header of a request, or None before the token was read."""
        return self._lines

    async def prepare(self, url: str) -> None:
        """Read the token."""
        self._lines = _line(await self._source.read())

    async def refused(
        self, method: str, url: str, status: int, headers: list[tuple[bytes, bytes]], sent: bytes
    ) -> bool:
        """Read the token again after status 401; return True if it is another one."""
        if self._lines is not None and self._lines not in sent:
            return True  # replaced meanwhile
        if status == 401 and not self._source.is_fixed:
            before = self._lines
            await self.prepare(url)
            if self._lines != before:
                return True
        failure = _refusal(status, headers, sent)
        if status == 403 and failure.error is None:
            return False  # not about the token, as far as the server says
        raise failure

    def responded(self, url: str, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Ignore the headers of a response."""


def _line(token: str) -> bytes:
    if _is_token(token) is None:
        raise AuthorizationFailed(
            "the bearer token has characters that no token has", step="credential"
        )
    return f"authorization: Bearer {token}\r\n".encode("ascii")


def _refusal(status: int, headers: list[tuple[bytes, bytes]], sent: bytes) -> AuthorizationFailed:
    found = next((each for each in challenges_in(headers) if each.scheme == "bearer"), None)
    # A token that the server repeats is not a scope.
    token = sent.decode("ascii").strip().rpartition(" ")[2]
    scopes = [] if found is None else sorted(found.scopes - {token})
    needs = f"; it asks for the scopes {show(' '.join(scopes))}" if scopes else ""
    return AuthorizationFailed(
        f"the server refused the bearer token with status {status}{needs}",
        step="request",
        error=None if found is None else found.error,
        status=status,
        scopes=scopes,
    )

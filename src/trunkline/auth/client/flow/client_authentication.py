"""How a client proves to an authorization server who it is: a secret, a key, or nothing.

The rules that live here, and only here:

* The method is one that the authorization server lists, in this order: private_key_jwt for a
  client with a key; client_secret_basic, then client_secret_post for one with a secret. Without a
  list it is client_secret_basic.                              [RFC 8414, section 2]
* The parts of Basic are form-encoded before they are joined.   [RFC 6749, section 2.3.1]
* An assertion names the client as issuer and subject and the issuer of the authorization server
  as its audience, ends within a minute, and is used once.      [RFC 7523, sections 3, 4]
"""

from __future__ import annotations

import secrets
import time
from base64 import b64encode
from collections.abc import Collection
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus

from ....errors import AuthorizationFailed
from .secret_source import SecretFunction, SecretSource

if TYPE_CHECKING:
    from ...jose import SigningKey

__all__ = ["ClientIdentity"]

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_LIFETIME_S: Final = 60
_WITH_SECRET: Final = ("client_secret_basic", "client_secret_post")


class ClientIdentity:
    """The identifier of a client, and what proves it."""

    __slots__ = ("_key", "_secret", "client_id", "method")

    def __init__(
        self,
        client_id: str,
        *,
        client_secret: str | SecretFunction | SecretSource | None = None,
        private_key: str | bytes | SigningKey | None = None,
        algorithm: str | None = None,
        method: str | None = None,
    ) -> None:
        """Take a secret, a private key in PEM, or neither.

        Raises:
            TypeError: a secret and a key are given, or a method that does not go with them.
            InvalidKey: the key cannot be used.
        """
        if not isinstance(client_id, str) or not client_id:
            raise TypeError("client_id is a text")
        if client_secret is not None and private_key is not None:
            raise TypeError("a client has client_secret or private_key, not both")
        if client_secret is not None and not isinstance(client_secret, SecretSource):
            client_secret = SecretSource("the client secret", client_secret)
        self.client_id = client_id
        self._secret = client_secret
        self._key = None if private_key is None else _key_of(private_key, algorithm)
        self.method = method
        if method is not None and method not in self._methods():
            raise TypeError(f"such a client authenticates by {' or '.join(self._methods())}")

    def __repr__(self) -> str:
        return f"<ClientIdentity by {' or '.join(self._methods())}>"

    async def apply(
        self,
        form: dict[str, str],
        headers: dict[str, str],
        issuer: str,
        supported: Collection[str] | None,
    ) -> None:
        """Add the proof to a token request of the authorization server `issuer`.

        `supported` are the methods that it lists, None without a list.

        Raises:
            AuthorizationFailed: it supports none of those that the client has.
        """
        method = self._chosen(supported)
        if method == "client_secret_basic":
            assert self._secret is not None
            pair = f"{quote_plus(self.client_id)}:{quote_plus(await self._secret.read())}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
            return
        form["client_id"] = self.client_id
        if method == "client_secret_post":
            assert self._secret is not None
            form["client_secret"] = await self._secret.read()
        elif method == "private_key_jwt":
            form["client_assertion_type"] = ASSERTION_TYPE
            form["client_assertion"] = self._assertion(issuer)

    def _methods(self) -> tuple[str, ...]:
        if self._key is not None:
            return ("private_key_jwt",)
        return ("none",) if self._secret is None else _WITH_SECRET

    def _chosen(self, supported: Collection[str] | None) -> str:
        if self.method is not None:
            return self.method
        methods = self._methods()
        # A client without any proof names itself, whatever the server lists: the grant decides.
        if supported is None or methods == ("none",):
            return methods[0]
        found = next((each for each in methods if each in supported), None)
        if found is None:
            raise AuthorizationFailed(
                f"the authorization server does not support {' or '.join(methods)}", step="token"
            )
        return found

    def _assertion(self, issuer: str) -> str:
        assert self._key is not None
        now = int(time.time())
        return self._key.sign(
            {
                "iss": self.client_id,
                "sub": self.client_id,
                "aud": issuer,
                "jti": secrets.token_urlsafe(16),
                "iat": now,
                "exp": now + ASSERTION_LIFETIME_S,
            },
            {"typ": "JWT"},
        )


def _key_of(given: str | bytes | SigningKey, algorithm: str | None) -> SigningKey:
    from ...jose import SigningKey

    if isinstance(given, SigningKey):
        return given
    return SigningKey.from_pem(given, algorithm)

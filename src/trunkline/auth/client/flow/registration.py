"""Which client an authorization server is told of: a known one, a metadata document, a new one.

The rules that live here, and only here:

* A client that was registered before, by the configuration, is used first; then a client id
  metadata document, if the authorization server supports them; then dynamic registration.
                                                       [MCP 2026-07-28, client registration]
* A client of the configuration belongs to its issuer. Another authorization server is an error,
  not a reason to register.                                                  [SEC-20]
* A registration names its application type, the grants it uses, and a way to authenticate that
  the authorization server lists. Without a list that is client_secret_basic.
                                                       [RFC 7591; RFC 8414, section 2]
* The answer decides how the client authenticates.             [RFC 7591, section 3.2.1]
"""

from __future__ import annotations

import re
import ssl
import time
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from ....errors import AuthorizationFailed, TransportError
from ....redaction import HIDDEN, show
from ....transports.http.client.fetch import FetchedResponse, fetch, is_loopback_host
from ...metadata import AuthorizationServerMetadata

__all__ = ["RegisteredClient", "is_metadata_url", "register"]

MAX_ANSWER_BYTES: Final = 256 * 1024
# In order of preference: a program that users install keeps no secret.
_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")
_is_error: Final = re.compile(r"[ !#-\[\]-~]{1,100}").fullmatch


class RegisteredClient(Struct, frozen=True, kw_only=True):
    """A client, as its authorization server knows it."""

    client_id: str
    client_secret: str | None = None
    # Unix time in seconds; 0 is never, and so is None, which some servers send.
    client_secret_expires_at: float | None = 0
    token_endpoint_auth_method: str | None = None

    def __repr__(self) -> str:
        return f"<RegisteredClient {show(self.client_id)}, {HIDDEN}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]

    @property
    def auth_method(self) -> str:
        """How the client authenticates."""
        if self.client_secret is None:
            return "none"
        return self.token_endpoint_auth_method or "client_secret_basic"

    @property
    def has_ended(self) -> bool:
        """Whether the secret of the client has ended."""
        return 0 < (self.client_secret_expires_at or 0) <= time.time()


_clients: Final = Decoder(RegisteredClient).decode
_refusals: Final = Decoder(dict[str, Any]).decode


def is_metadata_url(url: object) -> bool:
    """Return True if a URL can be a client id: https, with a path.      [MCP 2026-07-28]"""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        return False
    if parts is None or parts.scheme != "https" or not parts.hostname:
        return False
    return parts.path not in ("", "/") and not parts.fragment and parts.username is None


async def register(
    server: AuthorizationServerMetadata,
    *,
    client_name: str,
    redirect_uri: str,
    is_bound: bool = False,
    allow_private: bool = False,
    context: ssl.SSLContext | None = None,
) -> RegisteredClient:
    """Register a new client; `is_bound` if its tokens are bound to a key.

    Raises:
        AuthorizationFailed: the server refused, or cannot be reached.
    """
    if server.registration_endpoint is None:
        raise _failure(
            f"{show(server.issuer)} registers no clients: register one there, and give its "
            "client_id to OAuth()"
        )
    try:
        response = await fetch(
            server.registration_endpoint,
            method="POST",
            headers={"accept": "application/json", "content-type": "application/json"},
            body=encode(_document(server, client_name, redirect_uri, is_bound)),
            allow_private=allow_private,
            context=context,
            max_bytes=MAX_ANSWER_BYTES,
        )
    except TransportError as error:
        raise _failure(error.reason) from None
    if response.status not in (200, 201):
        raise _refusal(response)
    try:
        found: RegisteredClient = _clients(response.body)
    except (DecodeError, ValidationError, UnicodeDecodeError, RecursionError):
        raise _failure("the answer is not a registration") from None
    if not found.client_secret:
        found = replace(found, client_secret=None)  # some servers send "" for none
    elif not found.client_secret.isascii() or not found.client_secret.isprintable():
        raise _failure("the secret of the client has characters that it cannot send")
    method = found.auth_method
    if not found.client_id or method not in _METHODS:
        raise _failure(f"the client is to authenticate by {show(method)}, which it cannot")
    return found


def _document(
    server: AuthorizationServerMetadata, client_name: str, redirect_uri: str, is_bound: bool
) -> dict[str, Any]:
    supported = server.token_endpoint_auth_methods_supported
    method = next((each for each in _METHODS if each in (supported or ())), "client_secret_basic")
    is_native = is_loopback_host(urlsplit(redirect_uri).hostname or "")
    document: dict[str, Any] = {
        "client_name": client_name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native" if is_native else "web",
    }
    return {**document, "dpop_bound_access_tokens": True} if is_bound else document


def _refusal(response: FetchedResponse) -> AuthorizationFailed:
    try:
        error = _refusals(response.body).get("error")
    except (DecodeError, UnicodeDecodeError, RecursionError):
        error = None
    return _failure(
        f"the authorization server refused with status {response.status}",
        error if isinstance(error, str) and _is_error(error) else None,
    )


def _failure(reason: str, error: str | None = None) -> AuthorizationFailed:
    return AuthorizationFailed(reason, step="registration", error=error)

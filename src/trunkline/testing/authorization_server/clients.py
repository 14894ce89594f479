"""The clients of the development authorization server: known, registered, or with a document.

The rules that live here, and only here:

* A redirect URI is compared as a text. The port of a loopback one may differ, because a native
  client takes whatever port is free.              [OAuth 2.1, 8.4.2; RFC 8252, section 7.3]
* A redirect URI is `https`, `http` to this machine, or of a private scheme with a dot; it has no
  fragment. A client of the application type `web` uses `https` alone, and not with a name of this
  machine.                                     [RFC 8252, section 7.1; OpenID Registration, 2]
* A client identified by a URL is described by the document there, which names the same URL. The
  URL is `https` with a path, or `http` on this machine.   [draft-ietf-oauth-client-id-metadata]
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from msgspec import DecodeError, Struct, json

from ...auth.jose import InvalidKey, PublicKey
from ...errors import TransportError
from ...redaction import show
from ...transports.http.client.fetch import fetch, is_loopback_host
from .messages import Concealed, OAuthError

__all__ = ["AUTH_METHODS", "ClientRegistry", "OAuthClient", "public_keys"]

AUTH_METHODS: Final = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")
# Registered by requests, which anything on this machine can send.
_MAX_CLIENTS: Final = 10_000
_MAX_REDIRECT_URIS: Final = 32
_MAX_DOCUMENT_BYTES: Final = 64 * 1024
_FETCH_TIMEOUT_S: Final = 5.0
_is_private_scheme: Final = re.compile(r"[a-z][a-z0-9+-]*\.[a-z0-9.+-]+").fullmatch
_is_uri_text: Final = re.compile(r"[!-~]+").fullmatch


class OAuthClient(Concealed, Struct, frozen=True, kw_only=True):
    """A client of an authorization server; its secret appears in no repr."""

    client_id: str
    client_secret: str | None = None
    client_name: str = ""
    redirect_uris: tuple[str, ...] = ()
    auth_method: str = "none"
    grant_types: tuple[str, ...] = ("authorization_code", "refresh_token")
    # Scopes it may ask for; None is all of the server.
    scopes: frozenset[str] | None = None
    keys: tuple[PublicKey, ...] = ()

    @property
    def is_public(self) -> bool:
        """True if it does not authenticate."""
        return self.auth_method == "none"

    def __repr__(self) -> str:
        return f"<OAuthClient {show(self.client_id)}, {show(self.auth_method)}>"

    def redirects_to(self, uri: str) -> bool:
        """Return True if a redirect URI is one of this client."""
        if uri in self.redirect_uris:
            return True
        return any(_differ_in_port(uri, each) for each in self.redirect_uris)


class ClientRegistry:
    """The clients by id."""

    def __init__(self, *, uses_documents: bool) -> None:
        self._uses_documents = uses_documents
        self._clients: dict[str, OAuthClient] = {}
        # By URL; asked for no longer.
        self.documents: dict[str, Mapping[str, Any]] = {}

    def add(self, client: OAuthClient) -> None:
        """Keep a client, in place of the one of its id."""
        if client.client_id not in self._clients and len(self._clients) >= _MAX_CLIENTS:
            raise OAuthError("invalid_request", "too many clients are registered", status=503)
        self._clients[client.client_id] = client

    def remove(self, client_id: str) -> None:
        """Forget a client."""
        self._clients.pop(client_id, None)

    async def find(self, client_id: str) -> OAuthClient:
        """Return a client.

        Raises:
            OAuthError: it is unknown, or its document cannot be used.
        """
        found = self._clients.get(client_id)
        if found is not None:
            return found
        if not self._uses_documents or not _is_document_url(client_id):
            raise OAuthError("invalid_client", "the client is unknown", status=401)
        document = self.documents.get(client_id)
        if document is None:
            document = await _document(client_id)
        if document.get("client_id") != client_id:
            raise OAuthError("invalid_client", "the document is that of another client")
        if document.get("token_endpoint_auth_method", "none") in AUTH_METHODS[1:3]:
            raise OAuthError("invalid_client", "a client with a document has no secret")
        return client_of({"token_endpoint_auth_method": "none", **document}, client_id)

    def register(self, document: Mapping[str, Any]) -> OAuthClient:
        """Add a client that describes itself, and return it.                [RFC 7591]

        Raises:
            OAuthError: the description cannot be used.
        """
        client = client_of(document, f"client-{secrets.token_urlsafe(12)}")
        if client.auth_method in ("client_secret_basic", "client_secret_post"):
            client = _with_secret(client)
        self.add(client)
        return client


def client_of(document: Mapping[str, Any], client_id: str) -> OAuthClient:
    """Return the client that a description is of."""
    redirect_uris = _texts(document, "redirect_uris", ())
    grant_types = _texts(document, "grant_types", ("authorization_code",))
    kind = document.get("application_type")
    if kind not in (None, "web", "native"):
        raise _invalid("application_type is neither web nor native")
    if len(redirect_uris) > _MAX_REDIRECT_URIS:
        raise _invalid("there are too many redirect_uris")
    if not redirect_uris and "authorization_code" in grant_types:
        raise OAuthError("invalid_redirect_uri", "redirect_uris are missing")
    for uri in redirect_uris:
        _check_redirect(uri, kind)
    auth_method = document.get("token_endpoint_auth_method", "client_secret_basic")
    if auth_method not in AUTH_METHODS:
        raise _invalid("token_endpoint_auth_method is not supported")
    name = document.get("client_name", "")
    if not isinstance(name, str):
        raise _invalid("client_name is not a text")
    keys: tuple[PublicKey, ...] = ()
    if auth_method == "private_key_jwt":
        keys = public_keys(document.get("jwks"))
    return OAuthClient(
        client_id=client_id,
        client_name=name,
        redirect_uris=redirect_uris,
        auth_method=auth_method,
        grant_types=grant_types,
        keys=keys,
    )


def public_keys(jwks: object) -> tuple[PublicKey, ...]:
    """Return the keys of a key set.

    Raises:
        OAuthError: there are none, or one of them cannot be used.
    """
    given = jwks.get("keys") if isinstance(jwks, Mapping) else None
    if not isinstance(given, list) or not given:
        raise _invalid("jwks is not a set of keys")
    try:
        return tuple(PublicKey(each) for each in given if isinstance(each, Mapping))
    except InvalidKey as error:
        raise _invalid(f"a key of jwks cannot be used: {error}") from None


def _with_secret(client: OAuthClient) -> OAuthClient:
    from msgspec.structs import replace

    return replace(client, client_secret=secrets.token_urlsafe(32))


def _texts(document: Mapping[str, Any], name: str, default: Iterable[str]) -> tuple[str, ...]:
    found = document.get(name, default)
    if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
        raise _invalid(f"{name} is not a list of texts")
    return tuple(found)


def _invalid(description: str) -> OAuthError:
    return OAuthError("invalid_client_metadata", description)


def _check_redirect(uri: str, kind: object) -> None:
    parts = _split(uri)
    if parts is None or "#" in uri or parts.username is not None:
        raise OAuthError("invalid_redirect_uri", "a redirect URI is malformed")
    host = parts.hostname or ""
    is_local = bool(host) and is_loopback_host(host)
    if parts.scheme == "https":
        is_allowed = bool(host) and not (is_local and kind == "web")
    elif parts.scheme == "http":
        is_allowed = is_local and kind != "web"
    else:
        is_allowed = _is_private_scheme(parts.scheme) is not None and kind != "web"
    if not is_allowed:
        raise OAuthError(
            "invalid_redirect_uri",
            "a redirect URI is neither https, nor http to this machine for a native client",
        )


def _differ_in_port(one: str, other: str) -> bool:
    left, right = _split(one), _split(other)
    if left is None or right is None or left.scheme != "http" or right.scheme != "http":
        return False
    return (
        left.hostname == right.hostname
        and is_loopback_host(left.hostname or "")
        and left.username is None
        and (left.path, left.query, left.fragment) == (right.path, right.query, right.fragment)
    )


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme and _is_uri_text(uri) and "\\" not in uri else None


def _is_document_url(client_id: str) -> bool:
    parts = _split(client_id)
    if parts is None or parts.path in ("", "/") or parts.fragment or parts.username is not None:
        return False
    host = parts.hostname or ""
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback_host(host))


async def _document(url: str) -> Mapping[str, Any]:
    try:
        response = await fetch(
            url, allow_private=True, max_bytes=_MAX_DOCUMENT_BYTES, timeout=_FETCH_TIMEOUT_S
        )
    except TransportError:
        raise OAuthError("invalid_client", "the document of the client is not there") from None
    try:
        found = json.decode(response.body) if response.status == 200 else None
    except (DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise OAuthError("invalid_client", "the document of the client cannot be read")
    return found

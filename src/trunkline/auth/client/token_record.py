"""What a client keeps of an authorization: one JSON document in a token storage.

The rules that live here, and only here:

* A record belongs to one server and one authorization server. The storage finds it by the URL of
  the server; a client whose server names another issuer does not use it.     [SEC-20]
* The key of proofs is kept with the tokens that are bound to it.              [RFC 9449, section 5]
* A record that cannot be read is treated as none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from ...redaction import HIDDEN, show

if TYPE_CHECKING:
    from .token_endpoint import IssuedToken

__all__ = ["TokenRecord", "decode_record", "record_key"]

_DEFAULT_PORTS = {"http": 80, "https": 443}


class TokenRecord(Struct, kw_only=True, omit_defaults=True):
    """An authorization of a client at one server."""

    # The URL of the MCP server, and the issuer of its tokens.
    server: str
    issuer: str
    # The resource that the tokens are for, as the metadata of the server names it.
    resource: str = ""
    client_id: str = ""
    client_secret: str | None = None
    # Whether the authorization server gave the identifier by dynamic registration.
    is_registered: bool = False
    # Scopes that were asked for, and those that were granted, if the server said so.
    asked_scopes: list[str] = []
    scopes: list[str] | None = None
    access_token: str = ""
    token_type: str = ""
    # Unix time in seconds; None if it is not known.
    expires_at: float | None = None
    refresh_token: str | None = None
    # The private key of DPoP, in PEM.
    dpop_key: str | None = None
    # Where a token is revoked, if the authorization server has that.           [RFC 7009]
    revocation_endpoint: str | None = None

    def __repr__(self) -> str:
        return f"<TokenRecord for {show(self.server)}: {HIDDEN}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]

    def encode(self) -> bytes:
        """Return the record for a storage."""
        return encode(self)

    def take(self, token: IssuedToken) -> None:
        """Keep a new token; a refresh token stays if the server did not send another one."""
        self.access_token = token.access_token
        self.token_type = token.token_type
        self.expires_at = token.expires_at
        self.refresh_token = token.refresh_token or self.refresh_token
        self.scopes = None if token.scopes is None else sorted(token.scopes)


def decode_record(data: bytes | None) -> TokenRecord | None:
    """Return what is in a storage, or None if there is nothing that can be used."""
    try:
        return None if data is None else decode(data, type=TokenRecord)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def record_key(server: str, *parts: str) -> str:
    """Return the key of a record: the URL of a server, and what else tells records apart."""
    url = urlsplit(server)
    host, port = url.hostname or "", url.port
    is_default = port is None or port == _DEFAULT_PORTS.get(url.scheme)
    place = host if is_default else f"{host}:{port}"
    query = f"?{url.query}" if url.query else ""
    return " ".join((f"{url.scheme}://{place}{url.path.rstrip('/')}{query}", *parts))

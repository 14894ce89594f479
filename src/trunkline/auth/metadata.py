"""Metadata of protected resources and of authorization servers, and where they are found.

The rules that live here, and only here:

* Metadata of a resource is at the well-known path with the path of the resource behind it, then
  at the well-known path alone.             [RFC 9728, section 3; MCP 2026-07-28]
* That of an authorization server is at three places for an issuer with a path, and two for one
  without; documents at other places are not asked for.
                                 [RFC 8414, section 3; MCP 2026-07-28, server discovery]
* An issuer in a document that differs from the one it was found by makes the document void. They
  are compared as texts, without any normalisation.           [RFC 8414, section 3.3]
* Members of a wrong type make a document void; members that are not known are ignored.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from ..redaction import show

__all__ = [
    "RESOURCE_PATH",
    "AuthorizationServerMetadata",
    "ProtectedResourceMetadata",
    "covers",
    "issuer_urls",
    "resource_urls",
]

RESOURCE_PATH: Final = "/.well-known/oauth-protected-resource"
_SERVER: Final = "/.well-known/oauth-authorization-server"
_OPENID: Final = "/.well-known/openid-configuration"
_is_url_text: Final = re.compile(r"[!-~]+").fullmatch


class ProtectedResourceMetadata(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a protected resource says of itself.                                [RFC 9728]"""

    resource: str
    authorization_servers: list[str] = []
    scopes_supported: list[str] | None = None
    bearer_methods_supported: list[str] | None = None
    resource_name: str | None = None
    resource_documentation: str | None = None
    dpop_signing_alg_values_supported: list[str] | None = None
    dpop_bound_access_tokens_required: bool = False

    def __repr__(self) -> str:
        return f"<ProtectedResourceMetadata of {show(self.resource)}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


class AuthorizationServerMetadata(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an authorization server says of itself.      [RFC 8414; OpenID Connect Discovery]"""

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    introspection_endpoint: str | None = None
    jwks_uri: str | None = None
    scopes_supported: list[str] | None = None
    response_types_supported: list[str] | None = None
    grant_types_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    token_endpoint_auth_signing_alg_values_supported: list[str] | None = None
    code_challenge_methods_supported: list[str] | None = None
    dpop_signing_alg_values_supported: list[str] | None = None
    authorization_response_iss_parameter_supported: bool = False
    client_id_metadata_document_supported: bool = False

    def __repr__(self) -> str:
        return f"<AuthorizationServerMetadata of {show(self.issuer)}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


def resource_urls(server: str) -> list[str]:
    """Return where the metadata of a resource can be, the most specific place first."""
    url = urlsplit(server)
    root = f"{_origin(url)}{RESOURCE_PATH}"
    path = url.path.rstrip("/")
    return [root + path, root] if path else [root]


def issuer_urls(issuer: str) -> list[str]:
    """Return where the metadata of an authorization server can be, in order."""
    url = urlsplit(issuer)
    origin, path = _origin(url), url.path.rstrip("/")
    if not path:
        return [origin + _SERVER, origin + _OPENID]
    return [origin + _SERVER + path, origin + _OPENID + path, origin + path + _OPENID]


def covers(resource: str, server: str) -> bool:
    """Return True if a resource, as its metadata names it, includes the URL of a server.

    The origins are equal, and the path of the server is that of the resource or below it. The text
    is sent as it is written, so that it has nothing that a parser of URLs leaves out.
    """
    if _is_url_text(resource) is None:
        return False
    try:
        one, other = urlsplit(resource), urlsplit(server)
        is_same = _parts(one) == _parts(other)
    except ValueError:
        return False
    if (
        not is_same
        or one.fragment
        or one.username is not None
        or one.scheme not in ("http", "https")
    ):
        return False
    path = one.path.rstrip("/")
    return not one.query and (other.path.rstrip("/") == path or other.path.startswith(f"{path}/"))


def _origin(url: SplitResult) -> str:
    return f"{url.scheme}://{url.netloc}"


def _parts(url: SplitResult) -> tuple[str, str | None, int | None]:
    default = {"http": 80, "https": 443}.get(url.scheme)
    return url.scheme, url.hostname, url.port if url.port is not None else default

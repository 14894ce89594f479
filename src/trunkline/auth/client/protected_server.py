"""What a grant without a user needs to know of a server: its resource, and who issues its tokens.

The rules that live here, and only here:

* Metadata of the resource is at the place that the challenge names, else at the well-known
  places; it covers the URL of the server.                     [RFC 9728, sections 3.3, 5]
* The authorization server is the one of the configuration, which the metadata has to list; else
  the first of the list.                                       [SEC-20]
* Its metadata names it by the same text.                      [RFC 8414, section 3.3; SEC-18]
* Private addresses are asked only if the server itself is at one.      [SEC-26]
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TypeVar

from msgspec import DecodeError, Struct
from msgspec.json import decode

from ...errors import AuthorizationFailed, TransportError
from ...redaction import show
from ...transports.http.client.fetch import fetch
from ..challenge import Challenge
from ..metadata import (
    AuthorizationServerMetadata,
    ProtectedResourceMetadata,
    covers,
    issuer_urls,
    resource_urls,
)
from .token_endpoint import TokenEndpoint

__all__ = ["ProtectedServer", "ServerDiscovery"]

T = TypeVar("T")


class ProtectedServer(Struct, frozen=True, kw_only=True):
    """A server that asks for a credential."""

    # The server, as its metadata names it.
    resource: str
    # Where its tokens are issued.
    endpoint: TokenEndpoint
    # The scopes that it lists.
    scopes_supported: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<ProtectedServer {show(self.resource)}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


class ServerDiscovery:
    """Finds what a server asks for."""

    def __init__(
        self,
        url: str,
        *,
        context: ssl.SSLContext | None = None,
        is_private: Callable[[], bool] = bool,
    ) -> None:
        self._url = url
        self._context = context
        self._is_private = is_private

    def __repr__(self) -> str:
        return f"<ServerDiscovery of {show(self._url)}>"

    async def find(self, challenge: Challenge | None, issuer: str | None) -> ProtectedServer:
        """Return what a server asks for, by the challenge in its refusal.

        `issuer` is the only authorization server that may be asked; None is any.

        Raises:
            AuthorizationFailed: there is no metadata, or it names other servers.
        """
        named = None if challenge is None else challenge.resource_metadata
        urls = [named] if named is not None else resource_urls(self._url)
        found = await self._first(urls, ProtectedResourceMetadata)
        if found is None:
            if issuer is None:
                raise _failure("the server has no metadata that names its authorization server")
            found = ProtectedResourceMetadata(resource=self._url, authorization_servers=[issuer])
        if not covers(found.resource, self._url):
            raise _failure(f"its metadata is that of another resource: {show(found.resource)}")
        if not found.authorization_servers:
            raise _failure("the metadata of the server names no authorization server")
        if issuer is not None and issuer not in found.authorization_servers:
            raise _failure(
                f"the server names the authorization server {show(found.authorization_servers[0])}"
                f", and the credential is for {show(issuer)}: nothing was sent to it"
            )
        return ProtectedServer(
            resource=found.resource,
            endpoint=await self.endpoint(issuer or found.authorization_servers[0]),
            scopes_supported=tuple(found.scopes_supported or ()),
        )

    async def endpoint(self, issuer: str, url: str | None = None) -> TokenEndpoint:
        """Return the token endpoint of an issuer, which is `url` if that is known.

        Raises:
            AuthorizationFailed: it has no metadata, or none that names it.
        """
        methods = None
        if url is None:
            found = await self._first(issuer_urls(issuer), AuthorizationServerMetadata)
            if found is None:
                raise _failure(f"the authorization server {show(issuer)} has no metadata")
            if found.issuer != issuer:
                raise _failure(
                    f"the metadata of {show(issuer)} is that of another: {show(found.issuer)}"
                )
            if found.token_endpoint is None:
                raise _failure(f"the authorization server {show(issuer)} issues no tokens")
            url, methods = found.token_endpoint, found.token_endpoint_auth_methods_supported
        return TokenEndpoint(
            url=url,
            issuer=issuer,
            auth_methods=methods,
            allow_private=self._is_private(),
            context=self._context,
        )

    async def _first(self, urls: list[str], kind: type[T]) -> T | None:
        """Return the first document that there is."""
        for url in urls:
            try:
                response = await fetch(
                    url,
                    headers={"accept": "application/json"},
                    allow_private=self._is_private(),
                    context=self._context,
                )
                if response.status == 200:
                    return decode(response.body, type=kind)
            except TransportError as error:
                raise _failure(error.reason) from None
            except (DecodeError, UnicodeDecodeError, RecursionError):
                raise _failure("metadata is malformed") from None
        return None


def _failure(reason: str) -> AuthorizationFailed:
    return AuthorizationFailed(reason, step="discovery")

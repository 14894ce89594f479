"""What a grant without a user needs to know of a server: its resource, and who issues its tokens.

The rules that live here, and only here:

* The authorization server is the one of the configuration, which the metadata of the server has to
  list; else the first of the list.                                       [SEC-20]
* A server without metadata is used with an authorization server of the configuration alone: the
  credential of a machine is not sent where a server of 2025-03-26 may keep one.
"""

from __future__ import annotations

from msgspec import Struct

from ....errors import AuthorizationFailed
from ....redaction import show
from ...challenge import Challenge
from .discovery import MetadataDiscovery
from .token_endpoint import TokenEndpoint

__all__ = ["ProtectedServer", "find_server", "token_endpoint"]


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


async def find_server(
    discovery: MetadataDiscovery, challenge: Challenge | None, issuer: str | None
) -> ProtectedServer:
    """Return what a server asks for, by the challenge in its refusal.

    `issuer` is the only authorization server that may be asked; None is any.

    Raises:
        AuthorizationFailed: there is no metadata, or it names other authorization servers.
    """
    found = await discovery.server(challenge)
    if found.is_legacy:
        if issuer is None:
            raise _failure("the server has no metadata: give the issuer of its tokens")
    elif issuer is not None and issuer not in found.issuers:
        raise _failure(
            f"the server names the authorization server {show(found.issuers[0])}, "
            f"and the credential is for {show(issuer)}: nothing was sent to it"
        )
    return ProtectedServer(
        resource=found.resource,
        endpoint=await token_endpoint(discovery, issuer or found.issuers[0]),
        scopes_supported=found.scopes_supported,
    )


async def token_endpoint(
    discovery: MetadataDiscovery, issuer: str, url: str | None = None
) -> TokenEndpoint:
    """Return the token endpoint of an issuer, which is `url` if that is known.

    Raises:
        AuthorizationFailed: it has no metadata, or none that names it.
    """
    methods = None
    if url is None:
        found = await discovery.issuer(issuer)
        if found.token_endpoint is None:
            raise _failure(f"the authorization server {show(issuer)} issues no tokens")
        url, methods = found.token_endpoint, found.token_endpoint_auth_methods_supported
    return TokenEndpoint(
        url=url,
        issuer=issuer,
        auth_methods=methods,
        allow_private=discovery.is_private(),
        context=discovery.context_for(url),
    )


def _failure(reason: str) -> AuthorizationFailed:
    return AuthorizationFailed(reason, step="discovery")

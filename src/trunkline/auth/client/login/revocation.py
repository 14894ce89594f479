"""Revocation of the tokens of a login, before it is forgotten.                       [RFC 7009]

The rules that live here, and only here:

* The refresh token is revoked first: with it a server ends the tokens that came of it.
* An authorization server without the endpoint, or one that does not know the type of a token, is
  not an error: the tokens end by themselves.               [RFC 7009, sections 2.2.1, 5]
* The endpoint of an authorization server at a public address is at a public address too.  [SEC-26]
"""

from __future__ import annotations

import ssl
from typing import Final
from urllib.parse import urlencode

from ....errors import AuthorizationFailed, TransportError
from ....transports.http.client.fetch import fetch
from ..flow.discovery import MetadataDiscovery
from ..flow.server_url import has_public_address
from ..storage.token_store import StoredLogin

__all__ = ["revoke"]

_MAX_ANSWER_BYTES: Final = 64 * 1024


async def revoke(login: StoredLogin, *, context: ssl.SSLContext | None = None) -> bool:
    """Revoke the tokens of a login; return False if the authorization server cannot do it.

    `context` is how the client connects to its server.

    Raises:
        AuthorizationFailed: the authorization server cannot be reached, or refused.
    """
    if not login.client_id:
        # The authorization server no longer knew the client, and with it the tokens are dropped.
        return True
    is_private = not await has_public_address(login.issuer)
    discovery = MetadataDiscovery(login.server, context=context, is_private=lambda: is_private)
    found = await discovery.issuer(login.issuer, is_legacy=login.is_legacy)
    url = found.revocation_endpoint
    if url is None:
        return False
    identity = login.identity
    for kind in ("refresh_token", "access_token"):
        token: str | None = getattr(login, kind)
        if not token:
            continue
        form = {"token": token, "token_type_hint": kind}
        headers = {"content-type": "application/x-www-form-urlencoded"}
        await identity.apply(
            form, headers, login.issuer, found.token_endpoint_auth_methods_supported
        )
        try:
            response = await fetch(
                url,
                method="POST",
                headers=headers,
                body=urlencode(form).encode("ascii"),
                allow_private=is_private,
                context=discovery.context_for(url),
                max_bytes=_MAX_ANSWER_BYTES,
            )
        except TransportError as error:
            raise AuthorizationFailed(error.reason, step="revocation") from None
        if response.status != 200 and b"unsupported_token_type" not in response.body:
            raise AuthorizationFailed(
                f"the authorization server refused with status {response.status}",
                step="revocation",
            )
    return True

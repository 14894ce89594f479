"""Requests of a resource server to the authorization server it trusts: metadata and documents.

The rules that live here, and only here:

* Metadata is looked for at the places of RFC 8414 and of OpenID Connect, in order. A document
  whose `issuer` is not the one that was asked for is void.         [RFC 8414, section 3.3]
* Issuers are the operator's choice: private addresses are asked, unless the settings forbid it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import ValidationError, convert

from ....errors import TransportError
from ....transports.http.client.fetch import MAX_BODY_BYTES, fetch
from ...jose import parse_object
from ...metadata import AuthorizationServerMetadata, issuer_urls

if TYPE_CHECKING:
    import ssl

__all__ = ["UnexpectedStatus", "get_json", "read_metadata"]

_MAX_METADATA_BYTES: Final = 128 * 1024


class UnexpectedStatus(TransportError):
    """A response whose status is not 200."""

    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"{url.partition('?')[0]} answered with status {status}")
        self.status = status


async def read_metadata(
    issuer: str, *, allow_private: bool, tls: ssl.SSLContext | None, timeout: float
) -> AuthorizationServerMetadata:
    """Return the metadata of an authorization server.

    Raises:
        TransportError: no place has a document of this issuer; the text is about the place that
            has something else, if there is one.
    """
    failure = None
    for url in issuer_urls(issuer):
        try:
            document = await get_json(
                url,
                allow_private=allow_private,
                tls=tls,
                timeout=timeout,
                max_bytes=_MAX_METADATA_BYTES,
            )
            found = convert(parse_object(document), AuthorizationServerMetadata)
        except UnexpectedStatus as error:
            if error.status != 404:
                failure = error.reason
        except (ValueError, ValidationError):
            failure = f"{url} is not the metadata of an authorization server"
        else:
            if found.issuer == issuer:
                return found
            failure = f"{url} is the metadata of another issuer"
    raise TransportError(failure or f"{issuer} has no metadata at the places for it")


async def get_json(
    url: str,
    *,
    allow_private: bool,
    tls: ssl.SSLContext | None,
    timeout: float,
    max_bytes: int = MAX_BODY_BYTES,
) -> bytes:
    """Return the body of a JSON document.

    Raises:
        UnexpectedStatus: the status is not 200.
        TransportError: the server cannot be reached, or may not be asked.
    """
    response = await fetch(
        url,
        headers={"accept": "application/json"},
        allow_private=allow_private,
        context=tls,
        timeout=timeout,
        max_bytes=max_bytes,
    )
    if response.status != 200:
        raise UnexpectedStatus(url, response.status)
    return response.body

"""Client authentication at the endpoints of the development authorization server.

The rules that live here, and only here:

* A client authenticates by the method it is registered with, and by one method alone.
                                                       [RFC 6749, section 2.3]
* Secrets are compared in constant time.
* An assertion is issued by the client about itself, for this server, is not expired, and is used
  once.                                                [RFC 7523, section 3]
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Collection
from typing import Final
from urllib.parse import unquote_plus

from ...auth.jose import InvalidSignature, parse_token
from .clients import ClientRegistry, OAuthClient
from .messages import OAuthError, RecordedRequest
from .tokens import is_current

__all__ = ["ClientAuthentication"]

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
# Assertions that were used; the oldest give way.
_MAX_ASSERTIONS: Final = 10_000


class ClientAuthentication:
    """Authenticates the clients of a registry."""

    def __init__(self, clients: ClientRegistry, clock: Callable[[], float]) -> None:
        self._clients = clients
        self._clock = clock
        self._used: dict[tuple[str, object], None] = {}

    async def authenticate(
        self, request: RecordedRequest, audiences: Collection[str]
    ) -> OAuthClient:
        """Return the client that a request comes from.

        Raises:
            OAuthError: it is unknown, or did not authenticate as it has to.
        """
        parameters = request.parameters
        basic = _basic(request)
        methods = [
            *(["client_secret_basic"] if basic is not None else []),
            *(["client_secret_post"] if "client_secret" in parameters else []),
            *(["private_key_jwt"] if "client_assertion" in parameters else []),
        ]
        if len(methods) > 1:
            raise OAuthError("invalid_request", "the client authenticates in two ways")
        method = methods[0] if methods else "none"
        client_id, secret = basic or (parameters.get("client_id"), parameters.get("client_secret"))
        if method == "private_key_jwt":
            client_id = client_id or _subject(parameters["client_assertion"])
        if client_id is None or parameters.get("client_id", client_id) != client_id:
            raise _refused("it does not name itself, or in two ways")
        client = await self._clients.find(client_id)
        if client.auth_method != method:
            raise _refused(f"it is registered for {client.auth_method}")
        if method == "private_key_jwt":
            self._check_assertion(client, request, audiences)
        elif method != "none" and not hmac.compare_digest(
            (secret or "").encode(), (client.client_secret or "").encode()
        ):
            raise _refused("its secret is wrong")
        return client

    def _check_assertion(
        self, client: OAuthClient, request: RecordedRequest, audiences: Collection[str]
    ) -> None:
        if request.parameters.get("client_assertion_type") != ASSERTION_TYPE:
            raise _refused("client_assertion_type is wrong")
        try:
            token = parse_token(request.parameters["client_assertion"])
        except InvalidSignature:
            raise _refused("its assertion is malformed") from None
        claims = token.claims
        if not any(token.is_signed_by(key) for key in client.keys):
            raise _refused("its assertion is not signed with its key")
        if claims.get("iss") != client.client_id or claims.get("sub") != client.client_id:
            raise _refused("its assertion is that of another client")
        audience = claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        if not any(isinstance(each, str) and each in audiences for each in named):
            raise _refused("its assertion is for another server")
        if not is_current(claims, self._clock()):
            raise _refused("its assertion is expired, or not valid yet")
        used = (client.client_id, claims.get("jti"))
        if not isinstance(used[1], str) or used in self._used:
            raise _refused("its assertion has no jti, or was used before")
        while len(self._used) >= _MAX_ASSERTIONS:
            del self._used[next(iter(self._used))]
        self._used[used] = None


def _basic(request: RecordedRequest) -> tuple[str, str] | None:
    """Return id and secret of an Authorization header.          [RFC 6749, section 2.3.1]"""
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = b64decode(encoded.strip(), validate=True).decode()
    except (Base64Error, ValueError):
        raise _refused("its Authorization header is malformed") from None
    client_id, _, secret = text.partition(":")
    return unquote_plus(client_id), unquote_plus(secret)


def _subject(assertion: str) -> str | None:
    try:
        found = parse_token(assertion).claims.get("sub")
    except InvalidSignature:
        return None
    return found if isinstance(found, str) else None


def _refused(why: str) -> OAuthError:
    headers = ((b"www-authenticate", b'Basic realm="development authorization server"'),)
    return OAuthError(
        "invalid_client", f"the client is not authenticated: {why}", status=401, headers=headers
    )

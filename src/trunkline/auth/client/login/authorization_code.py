"""One authorization code grant: the request, the response, and the exchange of the code.

The rules that live here, and only here:

* PKCE with S256, always. An authorization server that does not announce it is not used.
                                                       [RFC 7636; OAuth 2.1, 7.5.2; SEC-16]
* `resource` is in both requests, byte for byte as the metadata of the server has it.
                                                       [RFC 8707; SEC-17]
* The issuer is recorded with `state` and verifier before the request, and compared with the
  response.                                            [RFC 9207; SEC-19]
* Codes, verifiers and states appear in no repr, no log and no error.
* A client that opens the browser by itself logs a warning that it waits for the user: programs
  that configure no logging show it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Collection
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlencode

from ....errors import AuthorizationFailed
from ....redaction import show
from ...metadata import AuthorizationServerMetadata
from .redirect import (
    ExpectedResponse,
    LoopbackListener,
    check_authorization_url,
    open_browser,
)

if TYPE_CHECKING:
    from ..flow.client_authentication import ClientIdentity
    from ..flow.dpop import ClientProofs
    from ..flow.token_endpoint import IssuedToken, TokenEndpoint

__all__ = ["AuthorizationRequest", "OnAuthorize", "RedirectReceiver", "check_code_flow"]

# Shows a URL to the user, and returns the URL that the authorization server redirected to.
OnAuthorize: TypeAlias = Callable[[str], Awaitable[str]]

# Where nothing listens: the user copies the address that the browser was sent to. Only the
# administrator of a machine can listen at its port.
PASTE_REDIRECT_URI: Final = "http://127.0.0.1/callback"
_METHOD: Final = "S256"
# 256 bits each.
_SECRET_BYTES: Final = 32
_log: Final = logging.getLogger("trunkline.auth")


def check_code_flow(server: AuthorizationServerMetadata) -> None:
    """Check that an authorization server has what the grant needs.

    Raises:
        AuthorizationFailed: it does not announce PKCE with S256, codes, or an endpoint.
    """
    name = show(server.issuer)
    if server.authorization_endpoint is None or server.token_endpoint is None:
        raise _failure(f"{name} has no endpoints for a login")
    if _METHOD not in (server.code_challenge_methods_supported or ()):
        raise _failure(f"{name} does not announce PKCE with {_METHOD}: nothing was asked for")
    if "code" not in (server.response_types_supported or ("code",)):
        raise _failure(f"{name} does not issue codes")


class RedirectReceiver:
    """How the user is sent to the authorization server, and how the response comes back."""

    def __init__(
        self,
        server: str,
        *,
        timeout: float,
        on_authorize: OnAuthorize | None = None,
        open_url: Callable[[str], object] | None = None,
        redirect_uri: str | None = None,
    ) -> None:
        """Reach the user for a login at `server`, which ends after `timeout` seconds."""
        self._server = server
        self._timeout = timeout
        self._on_authorize = on_authorize
        self._open_url = open_url
        self._given = redirect_uri
        self._listener: LoopbackListener | None = None

    def __repr__(self) -> str:
        return "<RedirectReceiver>"

    async def open(self, preferred: str | None = None) -> str:
        """Return the redirect URI, from now on; `preferred` is one that was used before.

        Raises:
            AuthorizationFailed: the port of the configuration is taken.
        """
        if self._on_authorize is not None:
            return self._given or PASTE_REDIRECT_URI
        if self._given is None and preferred is not None:
            self._listener = LoopbackListener(preferred)
            try:
                await self._listener.open()
            except AuthorizationFailed:
                self._listener = None  # another program has its port now
        if self._listener is None:
            self._listener = LoopbackListener(self._given)
            await self._listener.open()
        return self._listener.redirect_uri

    async def receive(self, url: str, expected: ExpectedResponse) -> str:
        """Send the user to a URL; return the code of the response.

        Raises:
            AuthorizationFailed: the user or the authorization server refused, or the response is
                not the expected one.
        """
        check_authorization_url(url)
        if self._on_authorize is not None:
            return expected.code_of(await _answer_of(self._on_authorize, url))
        if self._listener is None:
            raise RuntimeError("the receiver is not open")
        if self._open_url is None:
            _log.warning(
                "the server %s asks for a login: log in in the browser within %g s",
                show(self._server),
                self._timeout,
            )
        waiting = asyncio.ensure_future(self._listener.wait(expected))
        opening = asyncio.ensure_future(open_browser(url, self._open_url))
        try:
            # A browser of a terminal runs until it is closed, which may be after the response.
            await asyncio.wait((waiting, opening), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                opening.result()
            return expected.code_of(await waiting)
        finally:
            waiting.cancel()
            opening.cancel()

    async def close(self) -> None:
        """End the listener."""
        if self._listener is not None:
            await self._listener.close()


async def _answer_of(on_authorize: OnAuthorize, url: str) -> str:
    try:
        answer = await on_authorize(url)
    except AuthorizationFailed:
        raise
    except Exception as error:  # of the author: the request that waits has to end
        raise AuthorizationFailed(
            f"on_authorize raised {type(error).__name__}", step="authorization request"
        ) from error
    if not isinstance(answer, str):
        raise AuthorizationFailed(
            "on_authorize returns the URL that the browser was sent to",
            step="authorization request",
        )
    return answer.strip()


class AuthorizationRequest:
    """One request for a code, and its secrets."""

    __slots__ = ("_expected", "_form", "_verifier", "url")

    def __init__(
        self,
        server: AuthorizationServerMetadata,
        client_id: str,
        *,
        redirect_uri: str,
        resource: str,
        scopes: Collection[str],
        proofs: ClientProofs | None = None,
    ) -> None:
        verifier = self._verifier = secrets.token_urlsafe(_SECRET_BYTES)
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        state = secrets.token_urlsafe(_SECRET_BYTES)
        self._form = {"redirect_uri": redirect_uri, "resource": resource}
        query = {
            "response_type": "code",
            "client_id": client_id,
            **self._form,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": _METHOD,
        }
        if scopes:
            query["scope"] = " ".join(scopes)
        if "offline_access" in scopes:
            query["prompt"] = "consent"  # else it is ignored  [OpenID Connect Core, section 11]
        if proofs is not None:
            query["dpop_jkt"] = proofs.key.thumbprint
        endpoint = server.authorization_endpoint or ""
        joint = "&" if "?" in endpoint else "?"
        # The address of the login, for a browser.
        self.url = f"{endpoint}{joint}{urlencode(query)}"
        self._expected = ExpectedResponse(
            redirect_uri=redirect_uri,
            state=state,
            issuer=server.issuer,
            has_iss=server.authorization_response_iss_parameter_supported,
        )

    def __repr__(self) -> str:
        return "<AuthorizationRequest>"

    async def run(
        self,
        receiver: RedirectReceiver,
        endpoint: TokenEndpoint,
        identity: ClientIdentity,
        proofs: ClientProofs | None = None,
    ) -> IssuedToken:
        """Send the user to the authorization server; return the token for the code.

        Raises:
            AuthorizationFailed: the response is not the expected one, or a request was refused.
        """
        code = await receiver.receive(self.url, self._expected)
        form = {"grant_type": "authorization_code", "code": code, **self._form}
        form["code_verifier"] = self._verifier
        return await endpoint.request(form, identity, proofs)


def _failure(reason: str) -> AuthorizationFailed:
    return AuthorizationFailed(reason, step="discovery")

"""One request to the token endpoint of an authorization server, and its answer.

The rules that live here, and only here:

* A token is a Bearer token, or with proofs a DPoP token; other types are not used. A server that
  answers a proof with a Bearer token did not bind it, and is refused.
                                                               [RFC 6749, 7.1; RFC 9449, 5]
* A request that is refused for its nonce is sent once more with the nonce of that refusal, and a
  new proof.                                                               [RFC 9449, section 8]
* The words of a refusal are shown if they repeat nothing that was sent.
* A redirect is not followed: the request holds secrets.
"""

from __future__ import annotations

import re
import ssl
import time
from base64 import b64decode
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_plus, urlencode

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import Decoder

from ....errors import AuthorizationFailed, TransportError
from ....jsonrpc.messages import Shown
from ....redaction import HIDDEN, show
from ....transports.http.client.fetch import FetchedResponse, fetch
from ...challenge import split_scopes
from .client_authentication import ClientIdentity

if TYPE_CHECKING:
    from ...metadata import AuthorizationServerMetadata
    from .discovery import MetadataDiscovery
    from .dpop import ClientProofs

__all__ = ["IssuedToken", "TokenEndpoint", "endpoint_of"]

MAX_ANSWER_BYTES: Final = 256 * 1024
# Longer lifetimes are as good as none, and so are those that end before a request arrives.
_MAX_LIFETIME_S: Final = 10 * 365 * 24 * 3600
_MIN_LIFETIME_S: Final = 1
_MIN_SECRET_CHARS: Final = 6
_is_token: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*").fullmatch
_is_error: Final = re.compile(r"[ !#-\[\]-~]{1,100}").fullmatch


class _Answer(Shown, Struct):
    access_token: str = ""
    token_type: str = ""
    expires_in: int | float | str | None = None
    refresh_token: str | None = None
    scope: str | None = None
    issued_token_type: str | None = None


class _Refusal(Shown, Struct):
    error: str = ""
    error_description: str = ""


class IssuedToken(Struct, frozen=True, kw_only=True):
    """A token, and what its authorization server says of it."""

    access_token: str
    # "Bearer", "DPoP", or for a token that is not used at a server "N_A".
    token_type: str
    # Unix time in seconds; None if the server does not say.
    expires_at: float | None = None
    refresh_token: str | None = None
    # None if the server does not say: those that were asked for.
    scopes: frozenset[str] | None = None
    issued_token_type: str | None = None

    def __repr__(self) -> str:
        return f"<IssuedToken {HIDDEN}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


class TokenEndpoint(Struct, frozen=True, kw_only=True):
    """The token endpoint of an authorization server, and how it is reached."""

    url: str
    # The issuer, which is the audience of an assertion of the client.
    issuer: str
    # The ways a client may authenticate; None if the metadata does not say.
    auth_methods: Collection[str] | None = None
    allow_private: bool = False
    context: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return f"<TokenEndpoint of {show(self.issuer)}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]

    async def request(
        self,
        form: Mapping[str, str],
        identity: ClientIdentity | None = None,
        proofs: ClientProofs | None = None,
        *,
        is_for_server: bool = True,
    ) -> IssuedToken:
        """Ask for a token.

        `is_for_server` is False for a token that is only shown to another authorization server.

        Raises:
            AuthorizationFailed: the server refused, or cannot be reached.
        """
        for is_last in (False, True):
            fields, headers = dict(form), {"accept": "application/json"}
            headers["content-type"] = "application/x-www-form-urlencoded"
            if identity is not None:
                await identity.apply(fields, headers, self.issuer, self.auth_methods)
            if proofs is not None:
                headers["dpop"] = proofs.proof("POST", self.url)
            response = await self._send(fields, headers)
            is_new = proofs is not None and proofs.take_nonce(self.url, response.headers)
            if response.status == 200:
                break
            failure = _failure(response, [*fields.values(), *headers.values()])
            if failure.error != "use_dpop_nonce" or not is_new or is_last:
                raise failure
        return _token(response, proofs is not None if is_for_server else None)

    async def _send(self, form: dict[str, str], headers: dict[str, str]) -> FetchedResponse:
        try:
            return await fetch(
                self.url,
                method="POST",
                headers=headers,
                body=urlencode(form).encode("ascii"),
                allow_private=self.allow_private,
                context=self.context,
                max_bytes=MAX_ANSWER_BYTES,
            )
        except TransportError as error:
            raise AuthorizationFailed(error.reason, step="token") from None


def endpoint_of(server: AuthorizationServerMetadata, discovery: MetadataDiscovery) -> TokenEndpoint:
    """Return the token endpoint of an authorization server.

    Raises:
        AuthorizationFailed: it has none.
    """
    url = server.token_endpoint
    if url is None:
        reason = f"the authorization server {show(server.issuer)} issues no tokens"
        raise AuthorizationFailed(reason, step="discovery")
    return TokenEndpoint(
        url=url,
        issuer=server.issuer,
        auth_methods=server.token_endpoint_auth_methods_supported,
        allow_private=discovery.is_private(),
        context=discovery.context_for(url),
    )


def _token(response: FetchedResponse, is_bound: bool | None) -> IssuedToken:
    """Read an answer; `is_bound` is None for a token of any type."""
    answer: _Answer = _decoded(_answers, response, "an answer that is not a token")
    kind = answer.token_type
    if _is_token(answer.access_token) is None:
        raise AuthorizationFailed("the authorization server sent no token", step="token")
    if is_bound is not None:
        wanted = "DPoP" if is_bound else "Bearer"
        if kind.lower() != wanted.lower():
            raise AuthorizationFailed(
                f"the authorization server sent a token of the type {show(kind)}, not {wanted}",
                step="token",
            )
        kind = wanted
    return IssuedToken(
        access_token=answer.access_token,
        token_type=kind,
        expires_at=_expiry(answer.expires_in),
        refresh_token=answer.refresh_token or None,
        scopes=None if answer.scope is None else split_scopes(answer.scope),
        issued_token_type=answer.issued_token_type,
    )


def _expiry(given: float | str | None) -> float | None:
    # Some servers send a text.
    try:
        seconds = float(given) if given is not None else None
    except (ValueError, OverflowError):
        return None
    if seconds is None or not _MIN_LIFETIME_S <= seconds < _MAX_LIFETIME_S:
        return None
    return time.time() + seconds


def _failure(response: FetchedResponse, sent: list[str]) -> AuthorizationFailed:
    try:
        refusal: _Refusal = _decoded(_refusals, response, "")
    except AuthorizationFailed:
        refusal = _Refusal()
    secrets = _in_all_forms(sent)
    error, said = refusal.error, refusal.error_description
    shown = error if _is_error(error) and not _repeats(error, secrets) else None
    words = f": {show(said, limit=200)}" if said and not _repeats(said, secrets) else ""
    return AuthorizationFailed(
        f"the authorization server refused with status {response.status}{words}",
        step="token",
        error=shown,
    )


def _in_all_forms(sent: list[str]) -> set[str]:
    """Return what was sent, and the parts of Basic, in lower case."""
    found = set(sent)
    for each in sent:
        scheme, _, value = each.partition(" ")
        if scheme == "Basic":
            try:
                pair = b64decode(value).decode("ascii")
            except ValueError:
                continue  # the value of a field, which is there already
            found |= {value, pair, *pair.split(":"), *map(unquote_plus, pair.split(":"))}
    return {each.lower() for each in found if len(each) >= _MIN_SECRET_CHARS}


def _repeats(said: str, secrets: set[str]) -> bool:
    """Return True if the words of a server have something that it was sent."""
    forms = (said.lower(), unquote_plus(said).lower())
    return any(each in form for each in secrets for form in forms)


_answers: Final = Decoder(_Answer).decode
_refusals: Final = Decoder(_Refusal).decode


def _decoded(decode: Any, response: FetchedResponse, what: str) -> Any:
    try:
        return decode(response.body)
    except (DecodeError, ValidationError, UnicodeDecodeError, RecursionError):
        raise AuthorizationFailed(f"the authorization server sent {what}", step="token") from None

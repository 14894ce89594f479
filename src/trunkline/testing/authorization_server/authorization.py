"""The authorization endpoint of the development authorization server, and its codes.

The rules that live here, and only here:

* An unknown client or redirect URI is answered with a page and leads nowhere; any other error is
  sent to the redirect URI, with `state` and `iss`.   [RFC 6749, 4.1.2.1; RFC 9207, section 2]
* PKCE with S256 is required.                                      [RFC 7636; OAuth 2.1]
* A code is for one client, redirect URI and challenge, is valid for a minute, and is used once. Its
  second use revokes what it was exchanged for.                    [OAuth 2.1, section 4.1.3]
* The consent page has a token that is valid once, beside a cookie of the browser it was shown to;
  no other site can send its form, or show it in a frame.          [SEC-25]
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from ...redaction import show
from .clients import ClientRegistry, OAuthClient
from .consent_page import consent_page, error_page, page_response
from .messages import NO_STORE, Concealed, EndpointResponse, OAuthError, RecordedRequest
from .tokens import Grant

__all__ = ["Approval", "Approve", "AuthorizationEndpoint", "ConsentRequest"]

_CODE_LIFETIME_S: Final = 60.0
_CONSENT_LIFETIME_S: Final = 600.0
# Codes, and pages that were shown; the oldest give way.
_MAX_OPEN: Final = 10_000
_COOKIE: Final = "trunkline-consent"
_is_challenge: Final = re.compile(r"[A-Za-z0-9_-]{43}").fullmatch
_is_verifier: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}").fullmatch
_is_subject: Final = re.compile(r"[!-~]{1,64}").fullmatch


class ConsentRequest(Concealed, Struct, frozen=True, kw_only=True):
    """What a client asks the user for."""

    client_id: str
    client_name: str
    redirect_uri: str
    scopes: frozenset[str]
    resources: tuple[str, ...] = ()
    # The user that the client expects, if it named one.
    login_hint: str | None = None

    def __repr__(self) -> str:
        return f"<ConsentRequest of {show(self.client_id)} for {show(sorted(self.scopes))}>"


class Approval(Concealed, Struct, frozen=True, kw_only=True):
    """The consent of a user: who it is, and what is granted."""

    subject: str
    # None grants what was asked for.
    scopes: frozenset[str] | None = None
    # Added to the access token.
    claims: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        return f"<Approval of {show(self.subject)}>"


# True is the usual user, a text another user, False a refusal.
Answer: TypeAlias = "bool | str | Approval"
# None shows the page.
Approve: TypeAlias = "Answer | Callable[[ConsentRequest], Answer | Awaitable[Answer]] | None"


class AuthorizationCode(Concealed, Struct, kw_only=True):
    """A code that was sent to a client; it appears in no repr."""

    grant: Grant
    redirect_uri: str
    challenge: str
    expires_at: float
    is_used: bool = False


class _Asked(Concealed, Struct, frozen=True, kw_only=True):
    """An authorization request that was found valid."""

    consent: ConsentRequest
    challenge: str
    state: str | None
    dpop_jkt: str | None


class _Shown(Concealed, Struct, frozen=True):
    """A consent page that was shown."""

    asked: _Asked
    cookie: str
    expires_at: float


class AuthorizationEndpoint:
    """Answers authorization requests, and exchanges codes for grants."""

    def __init__(
        self,
        clients: ClientRegistry,
        clock: Callable[[], float],
        check_request: Callable[[frozenset[str], tuple[str, ...], OAuthClient], frozenset[str]],
    ) -> None:
        self.issuer = ""
        self.approve: Approve = True
        self.user = "user"
        self.sends_iss = True
        self._clients = clients
        self._clock = clock
        self._check_request = check_request
        self._codes: dict[str, AuthorizationCode] = {}
        self._pages: dict[str, _Shown] = {}

    async def handle(self, request: RecordedRequest, issuer: str) -> EndpointResponse:
        """Answer a request of a browser; `issuer` is sent as `iss`."""
        if request.method == "POST":
            return self._submitted(request, issuer)
        try:
            request.check()
            client = await self._clients.find(request.required("client_id"))
            redirect_uri = request.required("redirect_uri")
            if not client.redirects_to(redirect_uri):
                raise OAuthError("invalid_request", "the redirect URI is not one of the client")
        except OAuthError as error:
            request.error = error.error
            return error_page(400, error.description)
        state = request.parameters.get("state")
        try:
            asked = self._read(request, client, redirect_uri)
            if self.approve is None:
                return self._show(asked)
            approval = await self._decide(asked.consent)
        except OAuthError as error:
            request.error = error.error
            content = {"error": error.error, "error_description": error.description}
            return self._redirect(redirect_uri, content, state, issuer)
        return self._approved(asked, approval, issuer)

    def exchange(
        self, request: RecordedRequest, client: OAuthClient, jkt: str | None
    ) -> tuple[Grant, bool]:
        """Return the grant of a code, and True if the code was used before.

        Raises:
            OAuthError: the code is not valid for this client and request.
        """
        found = self._codes.get(request.required("code"))
        if found is None or found.grant.client_id != client.client_id:
            raise OAuthError("invalid_grant", "the code is unknown")
        if found.is_used:
            return found.grant, True
        if found.expires_at <= self._clock():
            raise OAuthError("invalid_grant", "the code is expired")
        if request.parameters.get("redirect_uri", found.redirect_uri) != found.redirect_uri:
            raise OAuthError("invalid_grant", "the redirect URI is not that of the code")
        if not _is_proof(request.parameters.get("code_verifier", ""), found.challenge):
            raise OAuthError("invalid_grant", "the code_verifier is missing or wrong")
        if found.grant.dpop_jkt is not None and found.grant.dpop_jkt != jkt:
            raise OAuthError("invalid_grant", "the code is bound to another key")
        found.is_used = True
        return found.grant, False

    def _read(self, request: RecordedRequest, client: OAuthClient, redirect_uri: str) -> _Asked:
        given = request.parameters
        if request.required("response_type") != "code":
            raise OAuthError("unsupported_response_type", "the only response_type is code")
        if "authorization_code" not in client.grant_types:
            raise OAuthError("unauthorized_client", "the client is not registered for codes")
        challenge = given.get("code_challenge", "")
        if given.get("code_challenge_method") != "S256" or not _is_challenge(challenge):
            raise OAuthError("invalid_request", "a code_challenge with S256 is required")
        resources = tuple(request.resources)
        asked = frozenset(given.get("scope", "").split())
        scopes = self._check_request(asked, resources, client)
        consent = ConsentRequest(
            client_id=client.client_id,
            client_name=client.client_name,
            redirect_uri=redirect_uri,
            scopes=scopes,
            resources=resources,
            login_hint=given.get("login_hint"),
        )
        return _Asked(
            consent=consent,
            challenge=challenge,
            state=given.get("state"),
            dpop_jkt=given.get("dpop_jkt"),
        )

    async def _decide(self, consent: ConsentRequest) -> Approval:
        answer: Any = self.approve
        if callable(answer):
            answer = answer(consent)
            if isawaitable(answer):
                answer = await answer
        if answer is False or answer is None:
            raise OAuthError("access_denied", "the user does not consent")
        if isinstance(answer, Approval):
            return answer
        return Approval(subject=self.user if answer is True else answer)

    def _approved(self, asked: _Asked, approval: Approval, issuer: str) -> EndpointResponse:
        consent = asked.consent
        granted = consent.scopes if approval.scopes is None else approval.scopes
        grant = Grant(
            subject=approval.subject,
            client_id=consent.client_id,
            scopes=granted,
            resources=consent.resources,
            claims=approval.claims,
            dpop_jkt=asked.dpop_jkt,
            family=secrets.token_urlsafe(12),
        )
        code = secrets.token_urlsafe(32)
        _bound(self._codes)
        self._codes[code] = AuthorizationCode(
            grant=grant,
            redirect_uri=consent.redirect_uri,
            challenge=asked.challenge,
            expires_at=self._clock() + _CODE_LIFETIME_S,
        )
        return self._redirect(consent.redirect_uri, {"code": code}, asked.state, issuer)

    def _redirect(
        self, uri: str, content: dict[str, str], state: str | None, issuer: str
    ) -> EndpointResponse:
        parts = urlsplit(uri)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        pairs += content.items()
        if state is not None:
            pairs.append(("state", state))
        if self.sends_iss:
            pairs.append(("iss", issuer))
        location = urlunsplit(parts._replace(query=urlencode(pairs)))
        headers = ((b"location", location.encode()), *NO_STORE)
        return EndpointResponse(303, b"", headers)

    def _show(self, asked: _Asked) -> EndpointResponse:
        token, cookie = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        _bound(self._pages)
        self._pages[token] = _Shown(asked, cookie, self._clock() + _CONSENT_LIFETIME_S)
        path = urlsplit(self.issuer).path or "/"
        set_cookie = f"{_COOKIE}={cookie}; HttpOnly; SameSite=Lax; Path={path}"
        page = consent_page(asked.consent, token, self.user)
        return page_response(
            200, page, ((b"set-cookie", set_cookie.encode()),), asked.consent.redirect_uri
        )

    def _submitted(self, request: RecordedRequest, issuer: str) -> EndpointResponse:
        given = request.parameters
        shown = self._pages.pop(given.get("csrf_token", ""), None)
        if shown is None or shown.expires_at <= self._clock():
            return error_page(403, "the form is unknown, expired, or was sent before")
        if not hmac.compare_digest(_cookie(request).encode(), shown.cookie.encode()):
            return error_page(403, "the form was shown to another browser")
        consent, subject = shown.asked.consent, given.get("subject", self.user)
        if given.get("decision") != "allow":
            request.error = "access_denied"
            content = {"error": "access_denied", "error_description": "the user does not consent"}
            return self._redirect(consent.redirect_uri, content, shown.asked.state, issuer)
        if _is_subject(subject) is None:
            return error_page(400, "the user name has 1 to 64 visible characters of ASCII")
        return self._approved(shown.asked, Approval(subject=subject), issuer)


def _is_proof(verifier: str, challenge: str) -> bool:
    if _is_verifier(verifier) is None:
        return False
    digest = hashlib.sha256(verifier.encode()).digest()
    computed = urlsafe_b64encode(digest).rstrip(b"=")
    return hmac.compare_digest(computed, challenge.encode())


def _cookie(request: RecordedRequest) -> str:
    for each in request.headers.get("cookie", "").split(";"):
        name, _, value = each.strip().partition("=")
        if name == _COOKIE:
            return value
    return ""


def _bound(open_: dict[str, Any]) -> None:
    while len(open_) >= _MAX_OPEN:
        del open_[next(iter(open_))]

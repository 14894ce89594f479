"""The resource server: who sent a request, the challenges of a refusal, and its metadata.

A `ResourceServer` stands at the gate of an HTTP endpoint. It reads the Authorization header, asks
the verifiers in order, and returns a principal or the refusal of the request.

The rules that live here, and only here:

* A token is read from the Authorization header alone, never from a query or a body.
                             [RFC 6750, section 2; MCP 2026-07-28, basic/authorization]
* A request without a credential is 401, and its challenge has no error code; a malformed one is 400
  `invalid_request`; one that is refused is 401 `invalid_token`; one that lacks scopes is 403
  `insufficient_scope`. A verifier that cannot decide is 503.     [RFC 6750, section 3.1]
* A challenge names the metadata of the resource and the scopes to ask for, never `offline_access`.
                                                  [RFC 9728, section 5.1; MCP 2026-07-28]
* Metadata is served at the well-known path with the path of the resource behind it, and at the
  well-known path alone.                                            [RFC 9728, section 3]
* A server whose URL nothing else tells is the audience of its tokens, if all verifiers have the
  same one and it is a URL: no token for another resource would be accepted.
* A server that has no authorization server has no metadata: its clients bring their credentials.
* A refusal is not cached, and its text is fixed: nothing of the request is in it. Characters that a
  verifier or a handler put into a challenge, and that it cannot have, are replaced or left out.
                                                  [RFC 6750, section 3; RFC 6749, section 3.3]
* Functions of the author may take any credential. Beside them alone the challenge is of the scheme
  Bearer: a refusal with 401 has a challenge.                [RFC 9110, section 15.5.2]
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from msgspec.json import encode

from ...exception_text import as_redacted
from ...redaction import show
from ...spec.http_conditions import HTTP
from ...transports.http.response import Refusal
from ...transports.http.settings import is_public_url
from ..challenge import format_challenge, split_scopes
from ..metadata import RESOURCE_PATH, ProtectedResourceMetadata, resource_urls
from ..principal import Principal
from .audit import RefusalAudit
from .settings import AuthSettings, is_peer_rule, settings_of
from .tenants import TenantRefused
from .verifiers.credential import (
    Credential,
    InvalidCredential,
    VerifierUnavailable,
    verify_offline,
)

if TYPE_CHECKING:
    from ...spec.rows import HttpStatus
    from ...transports.http.gate.authentication import Owner
    from ...transports.http.request import HttpRequest
    from ...transports.http.response import Headers
    from .verifiers.credential import Verifier

__all__ = ["ResourceServer", "resource_server_of"]

_log: Final = logging.getLogger("trunkline.auth")

# Seconds between two log lines about a verifier that cannot decide, or tokens without a tenant.
_WARNING_INTERVAL_S: Final = 10.0

# Of UTF-8 each has 4 bytes at most, and a key of a store takes 512.
_MAX_TENANT_CHARS: Final = 128

_SCHEMES: Final = {"bearer": "Bearer", "dpop": "DPoP"}
_NO_STORE: Final = (b"cache-control", b"no-store")
_REQUIRED: Final = HTTP["authentication-required"]

# One or more spaces separate the two, as in any list of parameters.  [RFC 9110, section 11.4]
_credential: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?: +(.*))?", re.DOTALL).fullmatch
_token68: Final = re.compile(rb"[A-Za-z0-9._~+/-]+=*").fullmatch
# What an error and its description do not have.                      [RFC 6750, section 3]
_replace_others: Final = re.compile(r"[^ !#-\[\]-~]").sub
# Of the scopes in one challenge: a header is bounded for clients and proxies.
_MAX_CHALLENGED_SCOPES: Final = 64

_MALFORMED: Final = "The Authorization header is malformed"
_UNAUTHORIZED: Final = "Unauthorized"
_NO_TENANT: Final = "The tenant of the request cannot be used"
_MISSING_TENANT: Final = "The credential of the request names no tenant"


class ResourceServer:
    """Authenticates the requests of one endpoint; it implements `Authenticator`.

    `resource` is the URL of the server as clients use it, or None if it has none; `url_of` returns
    the URL of a request as its client sent it, and `client_of` its client, behind proxies.
    """

    def __init__(
        self,
        settings: AuthSettings,
        resource: str | None = None,
        url_of: Callable[[HttpRequest], str] | None = None,
        is_from_proxy: Callable[[HttpRequest], bool] | None = None,
        client_of: Callable[[HttpRequest], str] | None = None,
    ) -> None:
        self.settings = settings
        self._client_of = client_of
        self._is_from_proxy = is_from_proxy or (lambda request: False)
        self.resource = settings.resource or resource
        recognisers: list[Any] = [each for each in settings.verifiers if not is_peer_rule(each)]
        self._steps = tuple(
            (_verifier_step if hasattr(each, "verify") else _function_step, each)
            for each in recognisers
        )
        verifiers: list[Verifier] = [each for each in recognisers if hasattr(each, "verify")]
        self._has_functions = len(verifiers) != len(recognisers)
        self._schemes = _distinct(scheme for each in verifiers for scheme in each.schemes)
        self._challenged = self._schemes or ("bearer",)
        self._algorithms = _distinct(name for each in verifiers for name in each.dpop_algorithms)
        self._issuers = _distinct(
            issuer for each in verifiers for issuer in each.authorization_servers
        )
        self._issuers = _distinct((*self._issuers, *settings.authorization_servers))
        own = (*settings.scopes, *(scope for each in verifiers for scope in each.scopes_supported))
        self._scopes = _distinct(settings.scopes_supported or own, without="offline_access")
        # The URL of a request is part of DPoP proofs alone.
        self._url_of = url_of if self._algorithms else None
        self._metadata_url = ""
        if self._issuers and self.resource is not None:
            self._metadata_url = resource_urls(self.resource)[0]
        self._missing = self._refusal(_REQUIRED, _UNAUTHORIZED)
        # When each warning was logged last.
        self._warned: dict[str, float] = {}
        self._audit = None if settings.audit is None else RefusalAudit(settings.audit)

    def __repr__(self) -> str:
        return f"<ResourceServer {show(self.resource)}, {self.settings!r}>"

    @property
    def is_required(self) -> bool:
        """Whether anonymous requests are refused."""
        return self.settings.required

    # -- requests ----------------------------------------------------------------------------

    def precheck(self, request: HttpRequest) -> Refusal | None:
        """Refuse a request without a credential, or with a malformed one, by its head."""
        if self._has_functions:
            return None  # they may read another header
        found = self._read(request)
        if found is None:
            return self._missing if self.settings.required else None
        return found if type(found) is Refusal else None

    def check_head(self, request: HttpRequest) -> Refusal | None:
        """Refuse a request whose credential is not valid, as far as that is known by now."""
        credential = self._read(request)
        if type(credential) is not Credential:
            return None  # as `precheck` has decided, or a function will
        for step, recogniser in self._steps:
            if step is not _verifier_step:
                return None  # a function of the author may do anything
            try:
                found = verify_offline(recogniser, credential)
            except VerifierUnavailable:
                return None
            except Exception as error:  # noqa: BLE001  # sorted there; the client gets an answer
                return self._failed(error, credential)
            if found is not None:
                checked = self._checked(found, request, credential)
                return checked if type(checked) is Refusal else None
        return self._unrecognised(credential)

    def authenticate(
        self, request: HttpRequest
    ) -> Principal | Refusal | Awaitable[Principal | Refusal | None] | None:
        """Return the principal of a request, None for an anonymous one, or its refusal."""
        credential = self._read(request)
        if type(credential) is Refusal and not self._has_functions:
            return credential
        for place, (step, recogniser) in enumerate(self._steps):
            try:
                found = step(recogniser, request, credential)
            except Exception as error:  # noqa: BLE001  # sorted below; the client gets an answer
                return self._failed(error, credential)
            if found is not None:
                if isinstance(found, Principal):
                    return self._checked(found, request, credential)
                return self._decide(found, place, request, credential)
        return self._unrecognised(credential)

    async def _decide(
        self, deciding: Any, place: int, request: HttpRequest, credential: Any
    ) -> Principal | Refusal | None:
        """Wait for a decision, and ask those after it if it is none."""
        try:
            found = _principal(await deciding)
            for step, recogniser in self._steps[place + 1 :]:
                if found is not None:
                    break
                answer = step(recogniser, request, credential)
                is_decided = answer is None or isinstance(answer, Principal)
                found = answer if is_decided else _principal(await answer)
        except Exception as error:  # noqa: BLE001  # as above
            return self._failed(error, credential)
        if found is None:
            return self._unrecognised(credential)
        return self._checked(found, request, credential)

    def serves_path(self, path: str) -> bool:
        """Return True if a path is one of a tenant."""
        return self.settings.tenants is not None and self.settings.tenants.matches(path)

    def _checked(
        self, principal: Principal, request: HttpRequest, credential: Any
    ) -> Principal | Refusal:
        tenants = self.settings.tenants
        if tenants is not None:
            try:
                return tenants.of_request(principal, request, lambda: self._is_from_proxy(request))
            except TenantRefused as error:
                return _tenant_refusal(error)
        # A tenant is part of the keys of a store, which are bounded.
        tenant = principal.tenant
        if tenant is None or len(tenant) <= _MAX_TENANT_CHARS:
            return principal
        text = "The tenant of the access token is too long"
        scheme = credential.scheme if isinstance(credential, Credential) else None
        return self._refusal(_REQUIRED, _UNAUTHORIZED, "invalid_token", text, scheme)

    def _read(self, request: HttpRequest) -> Credential | Refusal | None:
        """Return the credential of a request; None if it has none of a scheme that is known."""
        header = request.authorization
        if header is None or not self._schemes:
            return None
        parts = _credential(header)
        if parts is None:
            return self._malformed()
        scheme = parts[1].decode("ascii").lower()
        if scheme not in self._schemes:
            return None
        token = parts[2]
        if token is None or _token68(token) is None:
            return self._malformed(scheme)
        url = "" if self._url_of is None else self._url_of(request)
        proofs = tuple(each.decode("latin-1") for each in request.all(b"dpop")) if url else ()
        client = request.client if self._client_of is None else self._client_of(request)
        return Credential(
            scheme, token.decode("ascii"), request.method, url, proofs, request, "", client
        )

    # -- refusals ----------------------------------------------------------------------------

    def note_refusal(self, request: HttpRequest, refusal: Refusal, client: str) -> None:
        """Report a request whose credential was refused to the audit hook, if there is one."""
        is_bare = refusal is self._missing and request.authorization is None
        if self._audit is not None and not is_bare:
            method, code = request.method[:16], refusal.status
            self._audit(method=method, code=code, transport="http", address=client)

    def _malformed(self, scheme: str | None = None) -> Refusal:
        return self._refusal(
            HTTP["credential-malformed"], _MALFORMED, "invalid_request", _MALFORMED, scheme
        )

    def _unrecognised(self, credential: Credential | Refusal | None) -> Refusal | None:
        """Return the answer to a request that nothing has recognised."""
        if credential is None:
            return self._missing if self.settings.required else None
        if isinstance(credential, Refusal):
            return credential
        text = "The access token is not known"
        return self._refusal(_REQUIRED, _UNAUTHORIZED, "invalid_token", text, credential.scheme)

    def _failed(self, error: Exception, credential: Any) -> Refusal:
        scheme = credential.scheme if isinstance(credential, Credential) else None
        if isinstance(error, InvalidCredential):
            extra: Headers = ()
            if error.nonce is not None:
                extra = ((b"dpop-nonce", _replace_others("?", error.nonce).encode()),)
            return self._refusal(
                _REQUIRED, _UNAUTHORIZED, error.error, error.description, scheme, extra
            )
        if isinstance(error, TenantRefused):
            self._warn(
                "request refused with 403: %s; tenant_required=False of the verifier admits it",
                error.reason,
            )
            return _tenant_refusal(error)
        if isinstance(error, VerifierUnavailable):
            self._warn("credentials cannot be checked, requests get 503: %s", error.reason)
            seconds = max(1, -int(-error.retry_after // 1))
            headers = ((b"retry-after", b"%d" % seconds), _NO_STORE)
            return Refusal(
                HTTP["service-unavailable"], "Credentials cannot be checked now", headers
            )
        if isinstance(error, PermissionError):
            return self._missing
        _log.error("the principal of a request cannot be determined\n%s", as_redacted(error))
        return Refusal(HTTP["internal-error"], "Internal error", (_NO_STORE,))

    def _warn(self, text: str, reason: str) -> None:
        now = time.monotonic()
        if now - self._warned.get(text, float("-inf")) >= _WARNING_INTERVAL_S:
            self._warned[text] = now
            _log.warning(text, reason)

    def _refusal(
        self,
        row: HttpStatus,
        message: str,
        error: str | None = None,
        description: str = "",
        scheme: str | None = None,
        extra: Headers = (),
    ) -> Refusal:
        headers = self._challenges(self.settings.scopes, error, description, scheme)
        return Refusal(row, message, (*headers, _NO_STORE, *extra))

    def _challenges(
        self,
        scopes: Iterable[str],
        error: str | None = None,
        description: str = "",
        scheme: str | None = None,
    ) -> Headers:
        """Return a challenge for each scheme; the error is of the scheme that was used."""
        found: list[tuple[bytes, bytes]] = []
        scope = " ".join(_distinct(scopes, without="offline_access"))
        for each in self._challenged:
            parameters: dict[str, str] = {}
            if error is not None and (scheme is None or each == self._answered(scheme)):
                parameters["error"] = _replace_others("?", error)
                if description:
                    parameters["error_description"] = _replace_others("?", description)
            if scope:
                parameters["scope"] = scope
            if self._metadata_url:
                parameters["resource_metadata"] = self._metadata_url
            if each == "dpop":
                parameters["algs"] = " ".join(self._algorithms)
            found.append(
                (b"www-authenticate", format_challenge(_SCHEMES.get(each, each), parameters))
            )
        return tuple(found)

    def _answered(self, scheme: str) -> str:
        # A token that is bound to a key and comes as Bearer is answered with the scheme to use.
        return scheme if scheme in self._schemes else self._schemes[0]

    def insufficient(self, scopes: frozenset[str], owner: Owner | None) -> Headers:
        """Return the headers of a refusal that names the scopes of an operation."""
        # A handler may pass on what another server has named.
        wanted = sorted(each for each in scopes if split_scopes(each) == {each})[
            :_MAX_CHALLENGED_SCOPES
        ]
        error = None if owner is None else "insufficient_scope"
        return (*self._challenges(wanted, error), _NO_STORE)

    # -- metadata ----------------------------------------------------------------------------

    def documents(self, path: str) -> dict[str, bytes]:
        """Return the metadata of the resource, by the paths where clients look for it."""
        if not self._issuers or self.resource is None:
            return {}
        settings = self.settings
        only_dpop = self._schemes == ("dpop",)
        document = encode(
            ProtectedResourceMetadata(
                resource=self.resource,
                authorization_servers=list(self._issuers),
                scopes_supported=list(self._scopes) or None,
                bearer_methods_supported=["header"],
                resource_name=settings.resource_name,
                resource_documentation=settings.documentation,
                dpop_signing_alg_values_supported=list(self._algorithms) or None,
                dpop_bound_access_tokens_required=only_dpop,
            )
        )
        # A proxy may have cut a prefix off the path that clients use.
        paths = {path, urlsplit(self.resource).path}
        places = {RESOURCE_PATH, *(f"{RESOURCE_PATH}{each.rstrip('/')}" for each in paths)}
        return dict.fromkeys(sorted(places), document)


def resource_server_of(
    auth: object,
    *,
    path: str,
    public_url: str | None = None,
    address: str | None = None,
    scheme_of: Callable[[HttpRequest], str] | None = None,
    host_of: Callable[[HttpRequest], str] | None = None,
    is_from_proxy: Callable[[HttpRequest], bool] | None = None,
    client_of: Callable[[HttpRequest], str] | None = None,
) -> ResourceServer:
    """Return the resource server for `auth=` of an HTTP listener.

    `address` is the URL that it listens on; `public_url`, the one that clients use, precedes it.
    Without both, as in ASGI, the only audience of the verifiers is the URL.
    `client_of` returns the client of a request; without it, that is the peer of its connection.

    Raises:
        TypeError: `auth` is not a verifier, a function or settings.
        ValueError: it is not for HTTP; or the server has authorization servers, and its own URL
            is not known.
    """
    settings = settings_of(auth)
    if all(map(is_peer_rule, settings.verifiers)):
        kinds = ", ".join(type(each).__name__ for each in settings.verifiers)
        raise ValueError(f"{kinds} is for standard streams and sockets, not for HTTP")
    url_of = _UrlOf(path, public_url, scheme_of, host_of)
    resource = public_url or address or _only_audience(settings.verifiers)
    made = ResourceServer(settings, resource, url_of, is_from_proxy, client_of)
    if made._issuers and made.resource is None:
        raise ValueError(
            "the URL of this server is not known, and tokens are issued for it: give it with "
            "HttpSettings(public_url=...) or AuthSettings(resource=...), or as the only audience "
            "of the verifiers"
        )
    return made


class _UrlOf:
    """The URL of a request as its client sent it, without its query."""

    def __init__(
        self,
        path: str,
        public_url: str | None,
        scheme_of: Callable[[HttpRequest], str] | None,
        host_of: Callable[[HttpRequest], str] | None,
    ) -> None:
        self._scheme_of = scheme_of
        self._host_of = host_of
        self._path = path.rstrip("/")
        self._public_url = public_url
        # What precedes the paths of this server, if the proxy has not changed their names.
        self._prefix = None
        if public_url is not None and public_url.rstrip("/").endswith(self._path):
            self._prefix = public_url.rstrip("/").removesuffix(self._path)

    def __call__(self, request: HttpRequest) -> str:
        if self._prefix is not None:
            return f"{self._prefix}{request.path}"
        if self._public_url is not None:
            return self._public_url
        scheme = "https" if request.is_secure else "http"
        if self._scheme_of is not None:
            scheme = self._scheme_of(request)
        host = (request.host or b"").decode("latin-1")
        if self._host_of is not None:
            host = self._host_of(request)
        return f"{scheme}://{host}{quote(request.mount)}{request.path}"


def _verifier_step(verifier: Any, request: HttpRequest, credential: Any) -> Any:
    return verifier.verify(credential) if type(credential) is Credential else None


def _function_step(function: Any, request: HttpRequest, credential: Any) -> Any:
    found = function(request)
    return found if isinstance(found, Awaitable) else _principal(found)


def _principal(found: object) -> Principal | None:
    """Return what a verifier or a function has found as a principal."""
    if found is None or isinstance(found, Principal):
        return found
    if isinstance(found, str):
        return Principal(subject=found) if found else None
    raise TypeError(f"auth= returned {show(found)}, not a Principal, a subject or None")


def _only_audience(verifiers: Iterable[Any]) -> str | None:
    """Return the audience of all verifiers, if it is one URL."""
    found: set[str] = set()
    pending = list(verifiers)
    while pending:
        each = pending.pop()
        # Those of a `Chain`, and the one of a `Dpop`.
        inner = getattr(each, "verifiers", None) or getattr(each, "verifier", None)
        if inner is not None:
            pending += inner if isinstance(inner, tuple) else (inner,)
        audience = getattr(each, "audience", None)
        found.update(audience if isinstance(audience, frozenset) else ())
    url = found.pop() if len(found) == 1 else None
    return url if is_public_url(url) else None


def _tenant_refusal(error: TenantRefused) -> Refusal:
    row = HTTP["credential-malformed" if error.is_malformed else "permission-denied"]
    return Refusal(row, _MISSING_TENANT if error.is_missing else _NO_TENANT, (_NO_STORE,))


def _distinct(texts: Iterable[str], without: str = "") -> tuple[str, ...]:
    return tuple(each for each in dict.fromkeys(texts) if each != without)

"""Requests to the endpoints of the development authorization server, and their responses.

The rules that live here, and only here:

* A parameter is given once, except `resource`; one without a value counts as absent.
                                          [RFC 6749, section 3.1; RFC 8707, section 2]
* What was asked is kept for tests. A repr shows the names of its parameters and the values that
  are not secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from msgspec import DecodeError, Struct, json

from ...redaction import show

if TYPE_CHECKING:
    from ...transports.http.request import HttpRequest
    from ...transports.http.response import Headers

__all__ = [
    "Concealed",
    "EndpointResponse",
    "OAuthError",
    "RecordedRequest",
    "error_response",
    "json_response",
]

_FORM: Final = b"application/x-www-form-urlencoded"
_JSON: Final = b"application/json"
# More than any grant has, and less than takes time.
_MAX_PARAMETERS: Final = 64
# Responses with tokens and codes are not kept by any cache.         [RFC 6749, section 5.1]
NO_STORE: Final = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
_SHOWN: Final = ("grant_type", "client_id", "scope", "redirect_uri", "response_type")


class Concealed:
    """A mixin of Structs: neither repr nor rich shows more than the class, unless it says what."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    # The one of Struct would show everything.
    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


class OAuthError(Exception):
    """Raised by an endpoint to answer with an OAuth error."""

    def __init__(
        self, error: str, description: str, *, status: int = 400, headers: Headers = ()
    ) -> None:
        super().__init__(f"{error}: {description}")
        self.error = error
        self.description = description
        self.status = status
        self.headers = headers


class EndpointResponse(Concealed, Struct, frozen=True):
    """A response; its body appears in no repr, because it may hold tokens."""

    status: int
    body: bytes = b""
    headers: Headers = ()

    def __repr__(self) -> str:
        return f"<EndpointResponse {self.status}, {len(self.body)} bytes>"


class RecordedRequest:
    """A request that an `AuthorizationServer` was sent, and how it was answered.

    `endpoint` is one of "metadata", "jwks", "authorize", "token", "register", "introspect",
    "revoke" and "" for any other path. `status` is 0 until the request is answered; `error` is
    the OAuth error of the answer.
    """

    def __init__(self, endpoint: str, request: HttpRequest, body: bytes) -> None:
        self.endpoint = endpoint
        self.method = request.method
        self.path = request.path
        self.headers: Mapping[str, str] = request.readable_headers()
        self.status = 0
        self.error: str | None = None
        self.parameters: dict[str, str] = {}
        self.resources: list[str] = []
        # The body of a registration.
        self.document: dict[str, Any] = {}
        self._problem: OAuthError | None = None
        try:
            self._read(request.query, request.content_type or b"", body)
        except OAuthError as error:
            self._problem = error

    def __repr__(self) -> str:
        shown = [f"{name}={show(self.parameters[name])}" for name in self._plain()]
        shown += [f"resource={show(each)}" for each in self.resources]
        hidden = sorted(self.parameters.keys() - set(self._plain()))
        if hidden:
            shown.append(f"and {', '.join(map(show, hidden))}")
        outcome = f" {show(self.error)}" if self.error else ""
        return (
            f"<{show(self.method)} {show(self.path)} {self.status or 'open'}{outcome}"
            f"{': ' if shown else ''}{', '.join(shown)}>"
        )

    def check(self) -> None:
        """Raise what was wrong with the parameters, if anything was."""
        if self._problem is not None:
            raise self._problem

    def required(self, name: str) -> str:
        """Return a parameter.

        Raises:
            OAuthError: it is absent.
        """
        found = self.parameters.get(name)
        if found is None:
            raise OAuthError("invalid_request", f"the parameter {name} is missing")
        return found

    def _plain(self) -> list[str]:
        return [name for name in _SHOWN if name in self.parameters]

    def _read(self, query: str, content_type: bytes, body: bytes) -> None:
        kind = content_type.partition(b";")[0].strip().lower()
        if self.method != "POST":
            self._read_form(query)
        elif kind == _JSON:
            try:
                found = json.decode(body)
            except (DecodeError, UnicodeDecodeError, RecursionError):
                found = None
            if not isinstance(found, dict):
                raise OAuthError("invalid_request", "the body is not a JSON object")
            self.document = found
        elif kind == _FORM:
            # Credentials belong in the body, never in the URL.       [RFC 6749, 2.3.1]
            self._read_form(body.decode("utf-8", "replace"))
        else:
            raise OAuthError("invalid_request", "the body is neither a form nor JSON")

    def _read_form(self, text: str) -> None:
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
        except ValueError:
            raise OAuthError("invalid_request", "there are too many parameters") from None
        for name, value in pairs:
            if not value:
                continue
            if name == "resource":
                self.resources.append(value)
            elif name in self.parameters:
                raise OAuthError("invalid_request", "a parameter is given twice")
            else:
                self.parameters[name] = value


def json_response(
    content: Mapping[str, Any], status: int = 200, headers: Headers = ()
) -> EndpointResponse:
    """Return a JSON object as a response that is not cached."""
    head = ((b"content-type", _JSON), *NO_STORE, *headers)
    return EndpointResponse(status, json.encode(dict(content)), head)


def error_response(error: OAuthError) -> EndpointResponse:
    """Return an OAuth error as a response.                        [RFC 6749, section 5.2]"""
    content = {"error": error.error, "error_description": error.description}
    return json_response(content, error.status, error.headers)

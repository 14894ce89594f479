"""Failures on demand of the development authorization server."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, json

from ...redaction import show
from .messages import Concealed, EndpointResponse, OAuthError, error_response

__all__ = ["ENDPOINTS", "InjectedFailure", "InjectedFailures"]

ENDPOINTS: Final = (
    *("metadata", "jwks", "authorize", "token", "register", "introspect", "revoke"),
)


class InjectedFailure(Concealed, Struct, frozen=True, kw_only=True):
    """How an endpoint fails. What is not given stays as usual."""

    # An OAuth error, with status 400 unless `status` is given.
    error: str | None = None
    # The status alone, without a body that a client understands.
    status: int | None = None
    # Seconds before the answer.
    delay: float = 0.0
    # The body of the answer, in place of the usual one.
    body: bytes | None = None
    # The size of a JSON object in place of the usual body.
    oversized: int | None = None
    # Where the answer redirects to.
    redirect: str | None = None
    # The issuer in the metadata, or `iss` of an authorization response.
    issuer: str | None = None
    # Close the connection in place of an answer.
    disconnect: bool = False

    def __repr__(self) -> str:
        given = [name for name in self.__struct_fields__ if getattr(self, name)]
        return f"<InjectedFailure: {', '.join(given) or 'none'}>"

    def response(self) -> EndpointResponse | None:
        """Return the answer of the endpoint, or None if it is the usual one."""
        if self.redirect is not None:
            return EndpointResponse(self.status or 302, b"", _location(self.redirect))
        if self.error is not None:
            return error_response(
                OAuthError(self.error, "a failure on demand", status=self.status or 400)
            )
        body = self.body
        if self.oversized is not None:
            body = json.encode({"padding": "a" * self.oversized})
        if body is None and self.status is None:
            return None
        headers = ((b"content-type", b"application/json"),)
        return EndpointResponse(self.status or 200, body or b"", headers)


class InjectedFailures:
    """The failures that wait for requests."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[tuple[InjectedFailure, int | None]]] = {}

    def add(self, endpoint: str, failure: InjectedFailure, times: int | None) -> None:
        """Let the next `times` requests to an endpoint fail; None is all of them."""
        if endpoint not in ENDPOINTS:
            raise ValueError(
                f"there is no endpoint {show(endpoint)}; there are {', '.join(ENDPOINTS)}"
            )
        if times is not None and times < 1:
            raise ValueError("times is at least 1, or None for all requests")
        self._waiting.setdefault(endpoint, []).append((failure, times))

    def clear(self) -> None:
        """Forget all failures."""
        self._waiting.clear()

    def take(self, endpoint: str) -> InjectedFailure | None:
        """Return how a request fails, if it does."""
        waiting = self._waiting.get(endpoint)
        if not waiting:
            return None
        failure, times = waiting[0]
        if times is not None:
            waiting[0] = (failure, times - 1)
            if times == 1:
                del waiting[0]
        return failure


def _location(url: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"location", url.encode()),)

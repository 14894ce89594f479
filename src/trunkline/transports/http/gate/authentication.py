"""What an endpoint needs of authentication: an owner for each request, or a refusal.

The endpoint knows no tokens. An `Authenticator` decides on the head of a request, and an `Owner`
is what it hands to the server behind the endpoint.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..request import HttpRequest
    from ..response import Headers, Refusal

__all__ = ["Authenticator", "Owner", "key_of"]


class Owner(Protocol):
    """An authenticated caller, as a transport sees it."""

    @property
    def key(self) -> str:
        """What tells it from all others, in tables that outlive a request."""

    @property
    def tenant(self) -> str | None:
        """The tenant it belongs to; None without tenants."""

    @property
    def expires_at(self) -> float | None:
        """When its credential ends, as Unix time in seconds; None is never."""


def key_of(owner: Owner | None) -> str | None:
    """Return the key of an owner; that of an anonymous caller is None."""
    return None if owner is None else owner.key


class Authenticator(Protocol):
    """Decides who sent a request."""

    @property
    def is_required(self) -> bool:
        """Whether anonymous requests are refused."""

    def precheck(self, request: HttpRequest) -> Refusal | None:
        """Refuse a request that has no credential, before its body is read; None reads it.

        It decides by the syntax of the head alone, so that equal heads are decided alike.
        """

    def check_head(self, request: HttpRequest) -> Refusal | None:
        """Refuse a request by its credential, while its body is still sent; None reads the rest.

        It is asked if the body did not come with the head, before `authenticate`. It decides
        without the network, and uses up nothing; what it cannot decide so, it lets pass.
        """

    def authenticate(
        self, request: HttpRequest
    ) -> Owner | Refusal | Awaitable[Owner | Refusal | None] | None:
        """Return the owner of a request, None for an anonymous one, or the refusal of both.

        It does not raise. An awaitable is returned only if a decision needs the network or a
        function of the author, so that most requests cost no task.
        """

    def note_refusal(self, request: HttpRequest, refusal: Refusal, client: str) -> None:
        """Note that a request of a client was refused, as one of the methods above says."""

    def documents(self, path: str) -> dict[str, bytes]:
        """Return JSON documents to serve beside a protocol at `path`, by their own path."""

    def serves_path(self, path: str) -> bool:
        """Return True if a path that has no route is one of a tenant."""

    def insufficient(self, scopes: frozenset[str], owner: Owner | None) -> Headers:
        """Return the headers of a 403 that names the scopes of an operation."""

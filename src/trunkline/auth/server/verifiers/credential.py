"""What a request brings to be recognised by, and what a verifier of it is.

    class Verifier:
        def verify(self, credential): ...  # a Principal, None, or an awaitable of either
        def verify_offline(self, credential): ...  # optional: a Principal or None

The rules that live here, and only here:

* A verifier returns None for a credential that is not of its kind: the next one decides. A
  credential of its kind that is not valid raises `InvalidCredential`, and no other one is asked.
* A verifier that cannot decide now, because something it depends on does not respond, raises
  `VerifierUnavailable`: the credential may be valid, and the client keeps it.
* A result is returned without an awaitable if no network is needed for it, so that most requests
  cost no task.
* `verify_offline` decides without the network, and uses up nothing, such as a proof that is
  accepted once: it may be called before `verify`, for the same request. If it cannot decide so, it
  raises `VerifierUnavailable`, and so does a verifier that does not have it.
* Descriptions are fixed sentences: nothing of a credential is in them, and nothing of a key.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, NewType, Protocol

from msgspec import Struct

from ....errors import TrunklineError
from ....redaction import HIDDEN, show

if TYPE_CHECKING:
    from ....transports.http.request import HttpRequest
    from ...principal import Principal
else:
    # Loaded on first use; `help` and `inspect.signature` of a Struct need a name.
    HttpRequest = NewType("HttpRequest", object)

__all__ = [
    "Credential",
    "InvalidCredential",
    "Verifier",
    "VerifierUnavailable",
    "verify_offline",
]

# After which a client may try again, if the verifier names no other time.
_RETRY_AFTER_S: Final = 5.0


class Credential(Struct, frozen=True):
    """The credential of one request: a scheme and a token, and the request that it came with.

    `scheme` is in lower case: "bearer" or "dpop". `method` and `url` are those of the request as
    the client sent it, before any proxy; `proofs` are the values of its DPoP headers. They are
    empty where a credential does not come by HTTP, and so is `request`. `key_thumbprint` is set
    by `Dpop` alone, for the verifier below it: the key that the client has proved to possess.
    `client` is the address of the client, as trusted proxies report it, or another name of it;
    empty if it is not known.
    """

    scheme: str
    token: str
    method: str = ""
    url: str = ""
    proofs: tuple[str, ...] = ()
    request: HttpRequest | None = None
    key_thumbprint: str = ""
    client: str = ""

    def __repr__(self) -> str:
        return f"Credential({', '.join(f'{name}={text}' for name, text in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        # A URL may have a secret in its query.
        url = self.url.partition("?")[0]
        shown = [("scheme", show(self.scheme)), ("token", HIDDEN), ("method", show(self.method))]
        return [*shown, ("url", show(url)), ("proofs", HIDDEN if self.proofs else "()")]


class InvalidCredential(TrunklineError):
    """A credential that a verifier has recognised and refuses: status 401.

    `error` and `description` are sent in the challenge. `nonce` is set if the client has to send
    its DPoP proof again with it, as the header DPoP-Nonce says.      [RFC 6750, 3.1; RFC 9449, 9]
    """

    def __init__(
        self, description: str, *, error: str = "invalid_token", nonce: str | None = None
    ) -> None:
        super().__init__(description)
        self.description = description
        self.error = error
        self.nonce = nonce

    def __str__(self) -> str:
        return f"{self.error}: {self.description}"


class VerifierUnavailable(TrunklineError):
    """A verifier cannot decide now: status 503, and the credential is neither valid nor invalid.

    `reason` is for the log of the server, not for the client. The client may try again after
    `retry_after` seconds.
    """

    def __init__(self, reason: str, *, retry_after: float = _RETRY_AFTER_S) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.reason


class Verifier(Protocol):
    """Recognises the callers of a server by their credentials."""

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes of the credentials it knows, in lower case; the challenge names them."""

    @property
    def authorization_servers(self) -> tuple[str, ...]:
        """The issuers of its credentials, for the metadata of the resource."""

    @property
    def scopes_supported(self) -> tuple[str, ...]:
        """The scopes that the metadata of the resource lists."""

    @property
    def dpop_algorithms(self) -> tuple[str, ...]:
        """The algorithms of DPoP proofs that it accepts; empty without DPoP."""

    def verify(self, credential: Credential) -> Principal | Awaitable[Principal | None] | None:
        """Return the principal of a credential, or None if it is not of this kind.

        Raises:
            InvalidCredential: it is of this kind, and not valid.
            VerifierUnavailable: something that is needed to decide does not respond.
        """


def verify_offline(verifier: Verifier, credential: Credential) -> Principal | None:
    """Return what a verifier decides about a credential without the network.

    Raises:
        InvalidCredential: it is of this kind, and not valid.
        VerifierUnavailable: the verifier needs the network, or may need it.
    """
    decide = getattr(verifier, "verify_offline", None)
    if decide is None:
        raise VerifierUnavailable("the verifier does not decide without the network")
    found: Principal | None = decide(credential)
    return found

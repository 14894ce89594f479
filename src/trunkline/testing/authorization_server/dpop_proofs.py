"""DPoP proofs at the token endpoint of the development authorization server.

The rules that live here, and only here:

* A proof is for the token endpoint, issued within a minute, and used once.
                                                                   [RFC 9449, section 4.3]
* Where nonces are required, a proof has the current one or the one before.  [RFC 9449, section 8]
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...auth.dpop import InvalidProof, parse_proof
from .messages import OAuthError

if TYPE_CHECKING:
    from ...transports.http.response import Headers

__all__ = ["DpopProofs"]

_WINDOW_S: Final = 60.0
_MAX_PROOFS: Final = 100_000


class DpopProofs:
    """Checks proofs, and remembers them for as long as they are valid."""

    def __init__(self, clock: Callable[[], float], *, uses_nonces: bool) -> None:
        self.uses_nonces = uses_nonces
        self._clock = clock
        self._nonces = (secrets.token_urlsafe(12),) * 2
        # The ids of proofs, by the time they were seen.
        self._seen: dict[tuple[str, str], float] = {}

    def rotate_nonce(self) -> None:
        """Ask for another nonce; the last one is still accepted."""
        self._nonces = (secrets.token_urlsafe(12), self._nonces[0])

    @property
    def headers(self) -> Headers:
        """The header with the nonce of the next proof, where nonces are used."""
        return ((b"dpop-nonce", self._nonces[0].encode()),) if self.uses_nonces else ()

    def check(self, proof: str, method: str, url: str) -> str:
        """Return the thumbprint of the key of a proof.

        Raises:
            OAuthError: the proof is not valid here and now, or its nonce is not.
        """
        try:
            found = parse_proof(proof)
        except InvalidProof as error:
            raise _invalid(str(error)) from None
        if found.method != method or found.target != url:
            raise _invalid("it is for another request")
        now = self._clock()
        if abs(now - found.issued_at) > _WINDOW_S:
            raise _invalid("it is too old, or of the future")
        if self.uses_nonces and found.nonce not in self._nonces:
            raise OAuthError(
                "use_dpop_nonce",
                "a DPoP proof needs the nonce of this server",
                headers=self.headers,
            )
        self._remember((found.key_thumbprint, found.id), now)
        return found.key_thumbprint

    def _remember(self, proof: tuple[str, str], now: float) -> None:
        if proof in self._seen:
            raise _invalid("it was used before")
        while self._seen and (
            len(self._seen) >= _MAX_PROOFS
            or now - self._seen[next(iter(self._seen))] > 2 * _WINDOW_S
        ):
            del self._seen[next(iter(self._seen))]
        self._seen[proof] = now


def _invalid(why: str) -> OAuthError:
    return OAuthError("invalid_dpop_proof", f"the DPoP proof is not valid: {why}")

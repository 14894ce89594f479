"""Tokens that are bound to a key of the client: DPoP, on top of any verifier.

    Dpop(JwtBearer(issuer="https://login.example.org", audience=URL))

The rules that live here, and only here:

* A request has one proof, for its own method and URL, issued just now, with the hash of its token.
                                                                  [RFC 9449, section 4.3]
* The token is bound to the key of the proof: `cnf.jkt` is its thumbprint. A token that is not
  bound is not accepted with a proof.                             [RFC 9449, sections 6, 7.1]
* A proof is accepted once, as `used_proofs` says, and is marked as used after all else was checked.
                                                                  [RFC 9449, section 11.1]
* A bound token that is sent as a bearer token is refused.        [RFC 9449, section 7.2]
* Nonces are not kept: each is a time and a keyed hash of it, valid for one to two periods.
                                                                  [RFC 9449, section 8]
"""

from __future__ import annotations

import hmac
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...dpop import InvalidProof, Proof, parse_proof, proof_target, token_hash
from ...jose import ALGORITHMS
from ...principal import Principal
from .credential import InvalidCredential, verify_offline

if TYPE_CHECKING:
    from ....store.base import Store
    from .credential import Credential, Verifier
    from .used_proofs import UsedProofs

__all__ = ["Dpop"]

# How long ago a proof may have been issued, and how far ahead the clock of a client may be.
MAX_AGE_S: Final = 60.0
LEEWAY_S: Final = 5.0
# Of a nonce: it is accepted in its own period and the next.
NONCE_PERIOD_S: Final = 300.0
_NONCE_HASH_BYTES: Final = 16
_PERIOD_BYTES: Final = 6
_MIN_SECRET_BYTES: Final = 32

_PROOF: Final = "invalid_dpop_proof"
_ONE_PROOF: Final = "A request has one proof in one DPoP header"
_BAD_METHOD: Final = "The proof is for another method"
_BAD_TARGET: Final = "The proof is for another URL"
_BAD_TIME: Final = "The proof was not issued just now"
_BAD_HASH: Final = "The proof is for another token"
_REPLAYED: Final = "The proof was used before"
_NEEDS_NONCE: Final = "The proof needs the nonce of this server"
_UNBOUND: Final = "The token is not bound to the key of the proof"
_NEEDS_PROOF: Final = "The token has to be sent with a proof"


class Dpop:
    """Verifies proofs of possession, and the tokens with them by another verifier.

    Without `required` that verifier also accepts bearer tokens that are not bound to a key.
    `store` has the proofs that were used; without one it is the memory of this process. `nonces`
    makes clients fetch a nonce first, which limits proofs that were made in advance; servers that
    share traffic share `nonce_secret`, of 32 bytes or more.

    Raises:
        ValueError: an algorithm is not asymmetric, or the secret is too short.
    """

    def __init__(
        self,
        verifier: Verifier,
        *,
        required: bool = True,
        algorithms: Iterable[str] = ALGORITHMS,
        store: Store | None = None,
        nonces: bool = False,
        nonce_secret: bytes | None = None,
        max_age: float = MAX_AGE_S,
        leeway: float = LEEWAY_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.dpop_algorithms = tuple(algorithms)
        if not self.dpop_algorithms or not set(self.dpop_algorithms) <= set(ALGORITHMS):
            raise ValueError(f"Dpop.algorithms are of {', '.join(ALGORITHMS)}")
        if nonce_secret is not None and len(nonce_secret) < _MIN_SECRET_BYTES:
            raise ValueError(f"Dpop.nonce_secret has {_MIN_SECRET_BYTES} bytes or more")
        self.verifier = verifier
        self.required = required
        self.schemes = ("dpop",) if required else ("dpop", "bearer")
        self.authorization_servers = verifier.authorization_servers
        self.scopes_supported = verifier.scopes_supported
        # As it was given; without one, each process has its own.
        self.store = store
        self._used: UsedProofs | None = None
        self._nonces = nonces or nonce_secret is not None
        self._secret = nonce_secret or secrets.token_bytes(_MIN_SECRET_BYTES)
        self._max_age = max_age
        self._leeway = leeway
        self._clock = clock

    def __repr__(self) -> str:
        return f"<Dpop on {self.verifier!r}>"

    def nonce(self) -> str | None:
        """Return a nonce for the next proofs of a client; None without nonces."""
        return self._nonce(self._period()) if self._nonces else None

    def verify(self, credential: Credential) -> Principal | Awaitable[Principal | None] | None:
        """Return the principal of a token that came with a proof of its key.

        Raises:
            InvalidCredential: the token is not valid, or the proof is not one for it.
            VerifierUnavailable: the store, or what the verifier of the token needs, failed.
        """
        if credential.scheme == "dpop":
            proof = self._checked_proof(credential)
            return self._accept(self.verifier.verify(_proved(credential, proof)), proof)
        if credential.key_thumbprint:
            credential = replace(credential, key_thumbprint="")
        found = self.verifier.verify(credential)
        if found is None or isinstance(found, Principal):
            return self._checked_bearer(found)
        return self._await_bearer(found)

    def verify_offline(self, credential: Credential) -> Principal | None:
        """Return the principal of a token, whose proof is not marked as used.

        Raises:
            InvalidCredential: the token is not valid, or the proof is not one for it.
            VerifierUnavailable: the verifier of the token needs the network.
        """
        if credential.scheme != "dpop":
            if credential.key_thumbprint:
                credential = replace(credential, key_thumbprint="")
            return self._checked_bearer(verify_offline(self.verifier, credential))
        proof = self._checked_proof(credential)
        principal = verify_offline(self.verifier, _proved(credential, proof))
        if principal is not None:
            self._check_proof_of(principal, proof)
        return principal

    def _checked_proof(self, credential: Credential) -> Proof:
        if len(credential.proofs) != 1:
            raise InvalidCredential(_ONE_PROOF, error=_PROOF)
        try:
            proof = parse_proof(credential.proofs[0], self.dpop_algorithms)
        except InvalidProof as error:
            raise InvalidCredential(str(error), error=_PROOF) from None
        if proof.method != credential.method:
            raise InvalidCredential(_BAD_METHOD, error=_PROOF)
        if not _is_target(proof.target, credential.url):
            raise InvalidCredential(_BAD_TARGET, error=_PROOF)
        now = self._clock()
        if not now - self._max_age - self._leeway <= proof.issued_at <= now + self._leeway:
            raise InvalidCredential(_BAD_TIME, error=_PROOF)
        if proof.token_hash is None or not hmac.compare_digest(
            proof.token_hash.encode(), token_hash(credential.token).encode()
        ):
            raise InvalidCredential(_BAD_HASH, error=_PROOF)
        return proof

    async def _accept(
        self, found: Principal | Awaitable[Principal | None] | None, proof: Proof
    ) -> Principal | None:
        principal = found if found is None or isinstance(found, Principal) else await found
        if principal is None:
            return None
        self._check_proof_of(principal, proof)
        # Last, so that only proofs of valid tokens take space in the store.
        if self._used is None:
            self._used = self._make_used()
        if not await self._used.take(proof, principal.key):
            raise InvalidCredential(_REPLAYED, error=_PROOF)
        return principal

    def _check_proof_of(self, principal: Principal, proof: Proof) -> None:
        """Raise InvalidCredential unless a proof is of the key of a token, with a nonce if needed.

        After the token: beside other verifiers, only the one that knows it asks for its nonce.
        """
        if _bound_to(principal) != proof.key_thumbprint:
            raise InvalidCredential(_UNBOUND)
        if self._nonces and not self._is_nonce(proof.nonce):
            raise InvalidCredential(_NEEDS_NONCE, error="use_dpop_nonce", nonce=self.nonce())

    def _make_used(self) -> UsedProofs:
        # Imported here: few servers have DPoP.
        from ....store.memory import MemoryStore
        from .used_proofs import UsedProofs

        store = MemoryStore() if self.store is None else self.store
        return UsedProofs(store, self._max_age + 2 * self._leeway + 1)

    def _checked_bearer(self, principal: Principal | None) -> Principal | None:
        if principal is not None and (self.required or "cnf" in principal.claims):
            raise InvalidCredential(_NEEDS_PROOF)
        return principal

    async def _await_bearer(self, waiting: Awaitable[Principal | None]) -> Principal | None:
        return self._checked_bearer(await waiting)

    def _period(self) -> int:
        return int(self._clock() // NONCE_PERIOD_S)

    def _nonce(self, period: int) -> str:
        time_part = period.to_bytes(_PERIOD_BYTES, "big")
        digest = hmac.digest(self._secret, b"dpop-nonce" + time_part, "sha256")
        data = time_part + digest[:_NONCE_HASH_BYTES]
        return urlsafe_b64encode(data).rstrip(b"=").decode()

    def _is_nonce(self, given: str | None) -> bool:
        if given is None:
            return False
        period = self._period()
        data = given.encode("utf-8", "surrogatepass")
        is_now = hmac.compare_digest(data, self._nonce(period).encode())
        return is_now or hmac.compare_digest(data, self._nonce(period - 1).encode())


def _proved(credential: Credential, proof: Proof) -> Credential:
    """Return the credential for the verifier of the token."""
    return replace(credential, scheme="bearer", key_thumbprint=proof.key_thumbprint)


def _is_target(given: str, url: str) -> bool:
    try:
        # A query or a fragment does not belong there, and is ignored.      [RFC 9449, 4.3]
        return proof_target(given) == proof_target(url)
    except ValueError:
        return False


def _bound_to(principal: Principal) -> str | None:
    found = principal.claims.get("cnf")
    thumbprint = found.get("jkt") if isinstance(found, Mapping) else None
    return thumbprint if isinstance(thumbprint, str) else None

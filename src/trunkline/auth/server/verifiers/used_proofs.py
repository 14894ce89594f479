"""DPoP proofs that were used: one-time markers in a store, of which each principal has a share.

The rules that live here, and only here:

* A proof is accepted once, by all servers that share a store. The marker is kept for as long as the
  proof could be accepted, and if the store fails, the proof is not accepted.
                                                                  [RFC 9449, section 11.1]
* Of the markers that a memory store has room for, a principal has its share, as `accounts.shares`
  says: half while others have some, 7/8 alone. Beyond it, proofs are not accepted until markers of
  the principal expire. How much a store of several processes holds is up to its engine.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ....accounts.shares import ClientShares, SharedLimit
from ....store.errors import StoreError
from ....store.memory import MemoryStore
from ....store.values import Key
from .credential import VerifierUnavailable

if TYPE_CHECKING:
    from ....store.base import Store
    from ...dpop import Proof

__all__ = ["UsedProofs"]

_KIND: Final = "dpop-proof"
# Markers that are released at each use: more than it adds, so that expired ones do not accumulate,
# and few enough to be cheap.
_MAX_SWEPT: Final = 256
_MARKER: Final = Key("", _KIND, sha256(b"").hexdigest())


class UsedProofs:
    """The proofs that were used within the last `ttl` seconds.

    `clock` returns the seconds of a monotonic clock, that of the store.
    """

    def __init__(
        self, store: Store, ttl: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._ttl = ttl
        self._clock = clock
        # By principal; and when each marker of them expires, the oldest first.
        self._counts: Final[dict[str, int]] = {}
        self._expiring: Final[deque[tuple[float, str]]] = deque()
        self._limit: SharedLimit | None = None
        if isinstance(store, MemoryStore):
            self._limit = SharedLimit(store.max_markers(_MARKER), ClientShares(), self._counts)

    async def take(self, proof: Proof, principal: str) -> bool:
        """Return True for the first use of a proof, by the principal of a key.

        Raises:
            VerifierUnavailable: the store failed, or has no room for more of the principal.
        """
        if not self._has_room(principal):
            raise VerifierUnavailable("a principal has used its share of proofs")
        name = sha256(f"{proof.key_thumbprint} {proof.id}".encode("utf-8", "surrogatepass"))
        now = self._clock()
        try:
            is_first = await self._store.take(Key("", _KIND, name.hexdigest()), ttl=self._ttl)
        except StoreError as error:
            raise VerifierUnavailable(
                f"the store of used proofs failed: {type(error).__name__}"
            ) from error
        if is_first and self._limit is not None:
            self._limit.charge(1)
            self._counts[principal] = self._counts.get(principal, 0) + 1
            self._expiring.append((now + self._ttl, principal))
        return is_first

    def _has_room(self, principal: str) -> bool:
        limit = self._limit
        if limit is None:
            return True
        self._release_expired(limit, _MAX_SWEPT)
        if limit.admits(self._counts.get(principal, 0)):
            return True
        self._release_expired(limit, len(self._expiring))
        return limit.admits(self._counts.get(principal, 0))

    def _release_expired(self, limit: SharedLimit, most: int) -> None:
        """Count markers no longer that have expired, up to `most` of them."""
        now, expiring, counts = self._clock(), self._expiring, self._counts
        while most and expiring and expiring[0][0] <= now:
            principal = expiring.popleft()[1]
            count = counts.pop(principal)
            if count > 1:
                counts[principal] = count - 1
            limit.release(1)
            most -= 1

"""Rate limit per client: a token bucket for each, kept as one number.

A bucket is the time at which it will be full again, so nothing has to refill it and there are no
timers (the generic cell rate algorithm). The clock is handed in.

The rules that live here, and only here:

* A refused request takes nothing from its bucket, so a client that waits for `Retry-After` is
  admitted.  [RFC 6585, section 4]
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ....accounts.client_key import client_key

__all__ = ["RateLimiter"]

# Clients that are remembered. Beyond that, the one that has been silent for longest is
# forgotten; its bucket is full by then, unless this many are sending at the same time.
MAX_CLIENTS: Final = 10_000
# Sums of floats are not exact: a client that waits as told arrives "early" by less than this.
_EARLY_S: Final = 1e-6


class RateLimiter:
    """`rate` requests per second and client, `burst` of them at once."""

    __slots__ = ("_buckets", "_interval", "_tolerance")

    def __init__(self, rate: float, burst: int) -> None:
        self._interval = 1 / rate
        self._tolerance = (burst - 1) / rate
        # When the bucket of each client is full again; the longest silent client first.
        self._buckets: OrderedDict[str, float] = OrderedDict()

    def wait(self, client: str, now: float) -> float | None:
        """Return the seconds until a client may send a request, or None if it may now.

        None takes a token from the bucket.
        """
        buckets = self._buckets
        key = client_key(client)
        full_at = buckets.get(key, now)
        if full_at < now:
            full_at = now
        excess = full_at - now - self._tolerance
        is_admitted = excess <= _EARLY_S
        buckets[key] = full_at + self._interval if is_admitted else full_at
        buckets.move_to_end(key)
        if len(buckets) > MAX_CLIENTS:
            buckets.popitem(last=False)
        return None if is_admitted else excess

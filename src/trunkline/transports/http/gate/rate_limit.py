"""Rate limit per client: a token bucket for each, kept as one number.

A bucket is the time at which it will be full again, so nothing has to refill it and there are no
timers (the generic cell rate algorithm). The clock is handed in.

The rules that live here, and only here:

* An IPv6 client is its network of 64 bits: within it a host chooses its address.
  [RFC 4291, section 2.5.1]
* A refused request takes nothing from its bucket, so a client that waits for `Retry-After` is
  admitted.  [RFC 6585, section 4]
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

__all__ = ["ClientRateLimit"]

# Clients that are remembered. Beyond that, the one that has been silent for longest is
# forgotten; its bucket is full by then, unless this many are sending at the same time.
MAX_CLIENTS: Final = 10_000
# Longer names are kept as their hash, so that names of a peer's choice bound the memory too.
_MAX_NAME: Final = 64
# Sums of floats are not exact: a client that waits as told arrives "early" by less than this.
_EARLY_S: Final = 1e-6


class ClientRateLimit:
    """`rate` requests per second and client, `burst` of them at once."""

    __slots__ = ("_buckets", "_interval", "_tolerance")

    def __init__(self, rate: float, burst: int) -> None:
        self._interval = 1 / rate
        self._tolerance = (burst - 1) / rate
        # When the bucket of each client is full again; the longest silent client first.
        self._buckets: OrderedDict[str | int, float] = OrderedDict()

    def wait(self, client: str, now: float) -> float | None:
        """Return the seconds until a client may send a request, or None if it may now.

        None takes a token from the bucket.
        """
        buckets = self._buckets
        key = _key(client)
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


def _key(client: str) -> str | int:
    if ":" in client:
        client = _network(client)
    return client if len(client) <= _MAX_NAME else hash(client)


def _network(client: str) -> str:
    """Return the network of an IPv6 address; an IPv4 address in IPv6 form, or another name."""
    # Imported here: most servers limit no rate.
    from ipaddress import IPv6Address

    try:
        address = IPv6Address(client)
    except ValueError:
        return client  # a principal
    mapped = address.ipv4_mapped
    return str(mapped) if mapped is not None else f"{int(address) >> 64:x}::/64"

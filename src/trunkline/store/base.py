"""The store interface: state that several requests or processes share.

Versioned values, replayable logs, publish/subscribe channels, one-time markers and leases. A store
does not interpret the bytes. The rules of every driver, tested by
`trunkline.testing.store_contract`:

* A key has three separate parts, tenant, kind and name: a name, whatever it contains, cannot reach
  data of another tenant or kind.
* A key may have a value, a log, a marker and a lease, independent of each other.
* Each operation is atomic and isolated; two operations are not.
* A `ttl` is in seconds from now, by the clock of the engine. Expired data is gone for every
  operation at once. Live data is never evicted: a full store raises `StoreFull`, unchanged.
* A `ttl` that is not positive, and a `limit` outside 1 to 1000, raise ValueError.
* An engine that does not respond raises `StoreUnavailable`: whether the operation happened is
  unknown. The same holds for a cancelled operation. There is no fallback to memory: markers and
  leases fail closed.
* An engine that restarts or fails over may have lost acknowledged writes. Each operation states
  what holds after that.

A store belongs to one event loop.
"""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

from .values import Cursor, Key, Lease, LogPage, Message, RecordPage, Retention, Stored

__all__ = ["ChannelSubscription", "Store"]


class ChannelSubscription(Protocol):
    """Messages of one or several channels: `async for message in subscription`.

    Delivery is at most once; messages of one publisher on one channel arrive in order. The
    iteration stops after `close`. When it ends for another reason it raises `SubscriptionEnded`,
    immediately (queued messages are dropped) and on every further iteration. Cancelling a waiting
    iteration loses no message.
    """

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Message: ...

    async def close(self) -> None:
        """End the subscription; may be called twice."""


@runtime_checkable
class Store(Protocol):
    """The operations of every driver; any may raise StoreUnavailable or StoreClosed."""

    # Values

    async def get(self, key: Key) -> Stored | None:
        """Return the value of `key`, or None.

        It is the latest one written. After the engine lost writes it may be an earlier one, with
        its earlier version.
        """

    async def put(self, key: Key, value: bytes, *, ttl: float | None) -> int:
        """Write a value unconditionally, and return its version.

        `ttl` replaces the earlier one; None: never expires. An acknowledged write is not durable:
        a caller that must survive the loss of the engine has to recreate the value.
        """

    async def compare_and_set(
        self, key: Key, value: bytes, *, version: int | None, ttl: float | None
    ) -> int | None:
        """Write a value if the current one has `version`; return the new version.

        `version=None` requires that there is no value. Returns None on a conflict; nothing has
        changed. Of several callers with the same version, one wins. After StoreUnavailable, read
        again to see whether the write happened. A driver whose engine can lose writes uses random
        versions, so that a lost version is never reused.
        """

    async def touch(self, key: Key, *, ttl: float | None) -> bool:
        """Give the value of `key` a new `ttl`; return False if there is no value.

        The version stays, so that renewing a value does not conflict with changing it.
        """

    async def delete(self, key: Key, *, version: int | None = None) -> bool:
        """Delete the value of `key`, only at `version` if given; return True if it was deleted.

        After the engine lost writes a deleted value may reappear.
        """

    async def scan(self, prefix: Key, *, after: str | None = None, limit: int = 100) -> RecordPage:
        """Return a page of keys that have a value, with tenant, kind and name prefix of `prefix`.

        At most `limit` keys, maybe none, after the cursor `after` of an earlier page; the last
        page has no cursor. The order is unspecified. A key that exists throughout the scan is
        returned at least once; one added or deleted meanwhile may be.
        """

    # Logs

    async def append(self, key: Key, data: bytes, *, retention: Retention) -> Cursor:
        """Append an entry to the log of `key`, creating the log if needed; return its position.

        Numbers increase by one. A new log gets a random epoch. After the engine lost writes a
        number may be reused: a driver that detects the loss starts new epochs, and one that cannot
        detect it documents that.
        """

    async def read(self, key: Key, *, after: Cursor | None = None, limit: int = 100) -> LogPage:
        """Return up to `limit` entries after `after`, or from the oldest one.

        For a cursor of another epoch, or ahead of the log, the log was lost or recreated: `missed`
        is None. Otherwise `missed` counts entries that expired or were trimmed.
        """

    async def delete_log(self, key: Key) -> bool:
        """Delete the log of `key` with its epoch; return False if there was none."""

    # Messages

    async def publish(self, channel: Key, data: bytes) -> None:
        """Send a message to the current subscribers, without waiting for them.

        Delivery is at most once and unconfirmed: data that must not be missed belongs in a value
        or a log, with the message as a hint to read it.
        """

    async def subscribe(self, *channels: Key) -> ChannelSubscription:
        """Subscribe to channels: messages published after this returns arrive in order.

        A driver that lost its engine ends the subscription as LOST, even if it could reconnect:
        only the subscriber can read again what it missed.
        """

    # Markers

    async def take(self, key: Key, *, ttl: float) -> bool:
        """Return True for the first caller to take `key` within `ttl` seconds.

        A marker cannot be released. `ttl` must outlast what it guards, such as the expiry of a
        token. After an error the caller has not taken it, though the marker may exist. After the
        engine lost writes a second caller may take it: what must never happen twice needs an
        engine that does not lose writes.
        """

    # Leases

    async def acquire(self, key: Key, *, ttl: float) -> Lease | None:
        """Return a lease of `key`, or None while another one is held, even by the same caller.

        A lease expires after `ttl` without notice to its holder: the guarded resource checks the
        fencing token. Tokens increase while the engine keeps its writes; a driver whose engine can
        lose them derives tokens from something monotonic, such as its clock.
        """

    async def renew(self, lease: Lease, *, ttl: float) -> bool:
        """Extend a lease to `ttl` from now; return False if it was lost: stop working then."""

    async def release(self, lease: Lease) -> bool:
        """Release a lease; return False if it was lost."""

    async def close(self) -> None:
        """End all subscriptions and free all tasks, connections and memory.

        May be called twice. All other operations raise StoreClosed afterwards.
        """

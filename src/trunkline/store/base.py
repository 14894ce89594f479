"""What a store is: the little that several processes, or several requests, must share.

Values with versions, logs that can be replayed, messages to whoever listens, markers that one
caller takes, leases. Who stores what is not known here, nor what the bytes mean. The rules
that every driver keeps, and that `trunkline.testing.store_contract` checks for any of them:

* A key says whose it is: tenant, kind and name are three things and never one text, so that
  no name, whatever is in it, reaches what belongs to another tenant or another kind.
* One key may have a value, a log, a marker and a lease, which know nothing of each other.
* Each operation happens whole or not at all, and as if alone; two operations are never one.
* A `ttl` is in seconds from now, by the clock of the engine. What has expired is gone for
  every operation from that moment on, and what is there is never evicted: a store that is
  full refuses with `StoreFull`, and nothing has changed.
* A `ttl` that is no positive number, and a `limit` that is not from 1 to 1000, is a ValueError.
* An engine that does not answer is `StoreUnavailable`, and so it is not known whether the
  operation happened. The same holds for who cancels one. Nothing is answered from memory
  instead: what guards something (a marker, a lease) fails closed.
* An engine that restarts, or fails over, may have lost the last writes it acknowledged, or
  all. Each operation says what its caller can then still rely on.

A store belongs to one event loop.
"""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

from .values import Cursor, Key, Lease, LogPage, Message, RecordPage, Retention, Stored

__all__ = ["ChannelSubscription", "Store"]


class ChannelSubscription(Protocol):
    """Messages as they come: `async for message in subscription`.

    At most once: a message comes once or not at all, and those of one publisher on one channel
    in order. The iteration stops when this side has called `close`; when it ends for another
    reason it raises `SubscriptionEnded`, at once and also if messages were waiting, and again
    each time it is asked. Who awaits a message may be cancelled, and loses none.
    """

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Message: ...

    async def close(self) -> None:
        """End the subscription; it may be called twice."""
        ...


@runtime_checkable
class Store(Protocol):
    """The operations of every driver; any may raise StoreUnavailable or StoreClosed."""

    # Values

    async def get(self, key: Key) -> Stored | None:
        """Return the value of `key`, or None where there is none.

        It is the latest that was written. After the engine lost writes it may be an earlier
        one, with the version of an earlier one.
        """
        ...

    async def put(self, key: Key, value: bytes, *, ttl: float | None) -> int:
        """Write a value over whatever is there, and return its version.

        `ttl` replaces any earlier one; None is for ever. Acknowledged is not durable: who must
        survive the loss of the engine has to be able to make the value again.
        """
        ...

    async def compare_and_set(
        self, key: Key, value: bytes, *, version: int | None, ttl: float | None
    ) -> int | None:
        """Write a value if `version` is that of the one there; return the new version.

        None as the version asks that there be no value; None as the answer says that another
        was there, and nothing has changed. Of several who compare with one version, one wins.
        Whoever gets StoreUnavailable reads again to learn whether it was them. A driver whose
        engine can lose writes makes versions at random, so that a lost one never comes again.
        """
        ...

    async def touch(self, key: Key, *, ttl: float | None) -> bool:
        """Give the value of `key` a new `ttl`; say whether it is there.

        The version stays, so that keeping something alive and changing it do not collide.
        """
        ...

    async def delete(self, key: Key, *, version: int | None = None) -> bool:
        """Delete the value of `key`, if it has `version` where one is given; say whether it did.

        After the engine lost writes a deleted value may be there again.
        """
        ...

    async def scan(self, prefix: Key, *, after: str | None = None, limit: int = 100) -> RecordPage:
        """Return keys with a value, of the tenant and kind of `prefix`, whose names begin so.

        At most `limit` of them, maybe none, behind the cursor `after` of an earlier page; the
        end is where the cursor is None. In no order that is promised. A key that is there from
        the first page to the last is on one of them at least; one that comes or goes meanwhile
        may be, and may be gone when it is looked at.
        """
        ...

    # Logs

    async def append(self, key: Key, data: bytes, *, retention: Retention) -> Cursor:
        """Append an entry to the log of `key`, making one where there is none; return its place.

        Numbers rise by one, whoever appends. A log that is made gets a new epoch, at random.
        After the engine lost writes a number may be given out again: a driver that learns of
        such a loss begins new epochs, and one that cannot learn of it says so.
        """
        ...

    async def read(self, key: Key, *, after: Cursor | None = None, limit: int = 100) -> LogPage:
        """Return up to `limit` entries behind `after`, or from the oldest that is kept.

        A cursor of another epoch, or ahead of the log, shows that the log was lost or
        restarted: `missed` is None. Entries that expired or were trimmed are counted in it.
        """
        ...

    async def delete_log(self, key: Key) -> bool:
        """Delete the log of `key` with its epoch; say whether there was one."""
        ...

    # Messages

    async def publish(self, channel: Key, data: bytes) -> None:
        """Send a message to those who are subscribed now; it waits for none of them.

        At most once: nobody is told who received it, and what must not be missed is a value or
        a log that the message only points to.
        """
        ...

    async def subscribe(self, *channels: Key) -> ChannelSubscription:
        """Listen to channels: what is published after this returns comes, in order.

        A driver that lost its engine ends the subscription as LOST, even where it could
        reconnect: only the subscriber can look again for what it missed.
        """
        ...

    # Markers

    async def take(self, key: Key, *, ttl: float) -> bool:
        """Say whether this caller is the first to take `key`: one is, until `ttl` has passed.

        There is no giving back. `ttl` has to outlast what is guarded, as a token's own expiry.
        Who gets an error treats it as not taken, though it may be. After the engine lost writes a
        second taker is possible: what may never happen twice needs an engine that does not.
        """
        ...

    # Leases

    async def acquire(self, key: Key, *, ttl: float) -> Lease | None:
        """Return a lease of `key`, or None while another one is held, be it the caller's own.

        A lease ends by itself after `ttl`, and its holder is not told: what it works on checks
        the token. Tokens rise for as long as the engine keeps its writes; a driver whose engine
        can lose them makes tokens of something that does not go back, such as its clock.
        """
        ...

    async def renew(self, lease: Lease, *, ttl: float) -> bool:
        """Hold a lease for `ttl` from now; say whether it was still held. If not, stop working."""
        ...

    async def release(self, lease: Lease) -> bool:
        """Give a lease up; say whether it was still held."""
        ...

    async def close(self) -> None:
        """End every subscription, and leave nothing behind: no task, connection or memory.

        It may be called twice. Everything else raises StoreClosed from now on.
        """
        ...

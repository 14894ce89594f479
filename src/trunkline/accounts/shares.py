"""Shares: how much of a limit one client may have, of what the clients of a server share.

A `SharedLimit` is for what cannot be taken back from a client, such as running calls. `Holdings`
are for what can, such as connections.

The rules that live here, and only here:

* While there are other clients, a client has at most the share `together` of a limit: half.
* Alone, a client has all of what can be taken back, and the share `alone` of what cannot: 7/8. The
  rest is for newcomers.
* The same proportion holds for what is free: a client never has more than 7 times what it leaves,
  so that a newcomer finds room however many clients have all that they can get. What is left after
  each of them is an eighth of what it found.
* A client that has nothing may have one, or one message, as long as the limit itself has room.
* What is taken back is of the client that has most: what is idle, if that has more than the
  newcomer has; anything, if it still has more afterwards. A client that has its share gives of its
  own. Of a proxy, which is many clients, what is idle is taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from .account import Account

__all__ = ["ClientShares", "Holdings", "SharedLimit", "by_most"]

T = TypeVar("T")

_FEW: Final = 16


class ClientShares(Struct, frozen=True, kw_only=True):
    """What one client may have of a limit that it shares with others, as fractions of it."""

    # While there are other clients.
    together: float = 0.5
    # Alone, of what cannot be taken back.
    alone: float = 0.875
    # Of `server_bytes`, in messages that are being received.
    receiving: float = 0.125

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 < value <= 1:
                raise ValueError(f"ClientShares.{name} is a fraction up to 1, not {value!r}")


class SharedLimit:
    """A number of things that clients share, and that cannot be taken back.

    `clients` are those that are there: the account that asks, and others.
    """

    __slots__ = ("_clients", "_together", "few", "limit", "ratio", "used")

    def __init__(self, limit: int, shares: ClientShares, clients: Sized) -> None:
        self.limit = limit
        self.used = 0
        # A client with less than this may have one more as long as there is one: `admits` need
        # not be asked.
        self.few = min(_FEW, limit // 64)
        self._together = max(1, int(limit * shares.together))
        # What a client may have, as a multiple of what it leaves; None is any.
        self.ratio = shares.alone / (1 - shares.alone) if shares.alone < 1 else None
        self._clients = clients

    def __repr__(self) -> str:
        return f"<SharedLimit {self.used} of {self.limit}>"

    def charge(self, count: int) -> None:
        """Count so many more as used."""
        self.used += count

    def release(self, count: int) -> None:
        """Count so many less."""
        self.used -= count

    def admits(self, held: int, more: int = 1) -> bool:
        """Return True if a client that holds so many may have more."""
        left = self.limit - self.used - more
        if left < 0:
            return False
        if not held:
            return True
        held += more
        if len(self._clients) > 1 and held > self._together:
            return False
        return self.ratio is None or held <= self.ratio * left


def by_most(keys: Mapping[T, Hashable]) -> list[T]:
    """Return things so that those come first whose client has most, and of these the oldest.

    keys: the client of each thing, the oldest first.
    """
    counts = Counter(keys.values())
    return sorted(keys, key=lambda each: -counts[keys[each]])


class Holdings(Generic[T]):
    """What clients hold of one limit, where it can be taken back; of each, the oldest first."""

    __slots__ = ("_by_account", "_by_size", "_count", "_most", "_together", "limit")

    def __init__(self, limit: int, shares: ClientShares) -> None:
        self.limit = limit
        self._together = max(1, int(limit * shares.together))
        self._by_account: dict[Account, dict[T, None]] = {}
        # Accounts by how many they hold, and how many the largest do. A proxy is not a client.
        self._by_size: dict[int, dict[Account, None]] = {}
        self._most = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<Holdings {self._count} of {self.limit}, {len(self._by_account)} clients>"

    def of(self, account: Account) -> Iterator[T]:
        """Iterate over what an account holds, the oldest first."""
        return iter(self._by_account.get(account, ()))

    def largest(self) -> list[Account]:
        """Return the accounts that hold most; it is one, while one client has more than others."""
        return list(self._by_size.get(self._most, ()))

    def add(self, account: Account, thing: T) -> None:
        """Let an account hold a thing."""
        held = self._by_account.get(account)
        if held is None:
            held = self._by_account[account] = {}
        if thing not in held:
            held[thing] = None
            self._count += 1
            self._resize(account, len(held) - 1, len(held))

    def touch(self, account: Account, thing: T) -> None:
        """Let a thing be the one that was used last, of those that an account holds."""
        held = self._by_account[account]
        del held[thing]
        held[thing] = None

    def discard(self, account: Account, thing: T) -> bool:
        """Take a thing from an account; return False if it does not hold it."""
        held = self._by_account.get(account)
        if held is None or thing not in held:
            return False
        del held[thing]
        self._count -= 1
        self._resize(account, len(held) + 1, len(held))
        if not held:
            del self._by_account[account]
        return True

    def _resize(self, account: Account, before: int, now: int) -> None:
        if account.is_many:
            return
        if before:
            accounts = self._by_size[before]
            del accounts[account]
            if not accounts:
                del self._by_size[before]
        if now:
            self._by_size.setdefault(now, {})[account] = None
        if now > self._most or self._most not in self._by_size:
            self._most = now

    def has_room(self, account: Account) -> bool:
        """Return True if an account may hold one more as it is."""
        return self._count < self.limit and not self._has_share(account)

    def may_take(self, account: Account, holder: Account, *, is_idle: bool) -> bool:
        """Return True if a thing may be taken back so that an account may hold one more.

        holder: the account that holds the thing.
        is_idle: whether nothing is lost with it.
        """
        if holder is account or self._has_share(account):
            return holder is account and is_idle
        if holder.is_many:
            return is_idle
        size = self._size_of(holder)
        return size == self._most and size > self._size_of(account) + (not is_idle)

    def _has_share(self, account: Account) -> bool:
        """Return True if an account has as many as it may while others hold some."""
        others = len(self._by_account) - (account in self._by_account)
        return others > 0 and not account.is_many and self._size_of(account) >= self._together

    def _size_of(self, account: Account) -> int:
        return len(self._by_account.get(account, ()))

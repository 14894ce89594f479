"""The accounts of a server: one for each client, over all its connections.

A client is its principal, else its address; on a Unix socket it is its user. A client on stdio, or
in the same process, has no account, and its limits are those of its connection.

    account = accounts.open(client_key(address))   # one more use
    account.close()                                # the last one forgets it

Connections, sessions and requests each use the account of their client. What they hold is counted
there; `shares` decides how much that may be.

The rules that live here, and only here:

* An account lasts as long as it is used, or holds bytes: a task outlives the connection of its
  client. One that is used no more leaves nothing behind.
* Bytes of messages that are being received count from the first one, at most an eighth of those
  of the server for one client at any time. So do complete messages that wait: for the response
  before theirs, or for the verification of their credential.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..concurrency.thread_pool import ThreadGroup, ThreadShare
from .budget import ByteBudget, ClientBudget
from .shares import ClientShares, SharedLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["UNCOUNTED_BYTES", "Account", "Accounts", "ReceivedBytes"]

# Complete messages of one connection that wait count above this many bytes.
UNCOUNTED_BYTES: Final = 16 * 1024
# What clients share where no server with limits of its own is behind a listener.
_DEFAULT_BYTES: Final = 1024 * 1024 * 1024


class Account:
    """What one client uses at the moment."""

    __slots__ = (
        "_accounts",
        "budget",
        "calls",
        "is_many",
        "key",
        "open_requests",
        "receiving",
        "requests",
        "share",
        "threads",
        "uses",
    )

    def __init__(
        self,
        accounts: Accounts,
        key: str,
        budget: ByteBudget | None,
        threads: ThreadGroup | None,
        *,
        is_many: bool,
    ) -> None:
        self._accounts = accounts
        self.key = key
        # Whether it stands for many clients: a proxy, before the client of a request is known.
        self.is_many = is_many
        self.uses = 0
        # Running handlers; HTTP requests that stand by themselves; and all that are open, where
        # they are limited apart from connections.
        self.calls = 0
        self.requests = 0
        self.open_requests = 0
        # The bytes that it holds, and beside them those of messages that are being received.
        self.budget = ClientBudget(accounts.bytes, budget)
        self.receiving = 0
        # The threads of all its connections; of these, those of requests that stand by themselves.
        self.threads = ThreadGroup(accounts.is_shared, threads, ratio=accounts.calls.ratio)
        self.share = ThreadShare(self.threads)

    def __repr__(self) -> str:
        return f"<Account: {self.uses} uses, {self.calls} calls, {self.budget.used} bytes>"

    def close(self) -> None:
        """End a use; the last one forgets the account."""
        self.uses -= 1
        if not self.uses:
            if self.budget.used:
                self.budget.on_empty = self._end  # a task goes on
            else:
                self._accounts.forget(self)

    def _end(self) -> None:
        self.budget.on_empty = None
        if not self.uses:
            self._accounts.forget(self)

    def open_other(self, key: str) -> Account:
        """Use the account of another client of the same server, such as one behind a proxy."""
        return self._accounts.open(key)

    @property
    def most_received(self) -> int:
        """The number of bytes that it may be sending at one time."""
        return self._accounts.most_received

    def admits_call(self) -> bool:
        """Return True if it may run one more handler."""
        return self._accounts.calls.admits(self.calls)

    def receive(self, size: int) -> bool:
        """Count bytes of a message that is being received; return False if there is no room."""
        accounts, budget = self._accounts, self.budget
        if (
            self.receiving + size > accounts.most_received
            or not accounts.bytes.admits(self.receiving, size)
            or not budget.has_shared_room(size)
        ):
            if accounts.on_excess is not None:
                accounts.on_excess()
            return False
        self.receiving += size
        budget.above.charge(size)
        return True

    def received(self, size: int) -> None:
        """Release bytes of a message that is complete, or will never be."""
        self.receiving -= size
        self.budget.above.release(size)


class ReceivedBytes:
    """The bytes of messages that are being received, or wait, which count for their client.

    `close` ends the use of the account.
    """

    __slots__ = ("account", "size")

    def __init__(self, account: Account) -> None:
        self.account = account
        self.size = 0

    def weigh(self, size: int) -> bool:
        """Count so many bytes in place of those before; return False if there is no room."""
        more = size - self.size
        if more > 0 and not self.account.receive(more):
            return False
        if more < 0:
            self.account.received(-more)
        self.size = size
        return True

    def close(self) -> None:
        """Count none: the message is complete, or will never be."""
        self.weigh(0)
        self.account.close()


class Accounts:
    """The accounts of one server, and the limits that they share."""

    def __init__(
        self, calls: int, size: int = _DEFAULT_BYTES, shares: ClientShares | None = None
    ) -> None:
        """Share `calls` running handlers, and `size` bytes."""
        self.shares: Final = shares or ClientShares()
        self._accounts: Final[dict[str, Account]] = {}
        self.calls: Final = SharedLimit(calls, self.shares, self._accounts)
        self.bytes: Final = SharedLimit(size, self.shares, self._accounts)
        # Called when a client is sending more than it may.
        self.on_excess: Callable[[], object] | None = None
        # Called with an account that is not used any more.
        self.on_forget: Callable[[Account], object] | None = None
        self.most_received: Final = max(1, int(size * self.shares.receiving))

    def __len__(self) -> int:
        return len(self._accounts)

    def __iter__(self) -> Iterator[Account]:
        return iter(list(self._accounts.values()))

    def largest(self) -> dict[str, int]:
        """Return the most that one client has at the moment, of each thing."""
        found = {"in_flight": 0, "held_bytes": 0, "received_bytes": 0, "threads": 0}
        for each in self:
            found["in_flight"] = max(found["in_flight"], each.calls)
            found["held_bytes"] = max(found["held_bytes"], each.budget.used)
            found["received_bytes"] = max(found["received_bytes"], each.receiving)
            found["threads"] = max(found["threads"], each.threads.busy)
        return found

    def is_shared(self) -> bool:
        """Return True while there are several clients."""
        return len(self._accounts) > 1

    def open(
        self,
        key: str,
        budget: ByteBudget | None = None,
        threads: ThreadGroup | None = None,
        *,
        is_many: bool = False,
    ) -> Account:
        """Use the account of a client; with the budget and threads of its tenant, if it has one."""
        found = self._accounts.get(key)
        if found is None:
            found = Account(self, key, budget, threads, is_many=is_many)
            self._accounts[key] = found
        found.uses += 1
        return found

    def find(self, key: str) -> Account | None:
        """Return the account of a client, if there is one."""
        return self._accounts.get(key)

    def forget(self, account: Account) -> None:
        """Remove an account that is not used any more."""
        if self._accounts.get(account.key) is account:
            del self._accounts[account.key]
            if self.on_forget is not None:
                self.on_forget(account)

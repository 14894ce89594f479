"""Open requests that wait for a task to end.

A waiter is an open request: it has no handler and no asyncio task, and does not count against the
limit of running requests. `Tasks.settle` answers waiters; `InputCarriers` sends questions on them.

The rules that live here, and only here:

* A waiter ends when its client cancels it, and when its connection closes, after a grace period
  for its task to end.
* The number of waiters is limited, in total and for one requestor; clients share it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic

from ...jsonrpc.error_codes import named_error
from ...spec.error_kinds import ErrorKind
from ..runner import RETRY_AFTER_MS
from .records import Record, TaskRecord

if TYPE_CHECKING:
    from ...accounts.shares import SharedLimit
    from ...jsonrpc.peer.incoming import IncomingRequest
    from .dialect import TaskConnection, TaskDialect, TaskRequest

__all__ = ["ResultWaiter", "ResultWaiters"]


class ResultWaiter:
    """One open request that waits for a task."""

    __slots__ = (
        "asked",
        "can_carry",
        "client",
        "connection",
        "done",
        "request",
        "requestor",
        "task",
    )

    def __init__(self, request: TaskRequest, requestor: str, record: TaskRecord) -> None:
        self.request = request
        self.connection: TaskConnection = request.connection
        self.asked = request.message
        # For the limits of one requestor, and for the share of a client, the key of its account.
        self.requestor = requestor
        account = self.connection.runner.account
        self.client = None if account is None else account.key
        # Tenant and id.
        self.task = record.tenant, record.id
        # False after a question that was sent on it got no response.
        self.can_carry = True
        self.done: asyncio.Future[None] = self.connection.loop.create_future()


class ResultWaiters(Generic[Record]):
    """The waiters of one server, by tenant and id of their task."""

    def __init__(self, dialect: TaskDialect[Record], shared: SharedLimit, max_each: int) -> None:
        self._dialect = dialect
        self._shared = shared
        self._max_each = max_each
        self._by_task: dict[tuple[str, str], list[ResultWaiter]] = {}
        self._by_request: dict[IncomingRequest, ResultWaiter] = {}

    def __len__(self) -> int:
        return len(self._by_request)

    def tasks(self) -> list[tuple[str, str]]:
        """Return tenant and id of the tasks that have waiters."""
        return list(self._by_task)

    def add(self, waiter: ResultWaiter) -> bool:
        """Add a waiter; return False if a limit is reached."""
        waiters, client = self._by_request.values(), waiter.client
        own = sum(each.requestor == waiter.requestor for each in waiters)
        of_client = 0 if client is None else sum(each.client == client for each in waiters)
        self._shared.used = len(self)
        if own >= self._max_each or not self._shared.admits(of_client):
            return False
        self._by_task.setdefault(waiter.task, []).append(waiter)
        self._by_request[waiter.asked] = waiter
        return True

    def open(self, tenant: str, id: str) -> Iterator[ResultWaiter]:
        """Yield the waiters of one task; they may be removed meanwhile."""
        yield from list(self._by_task.get((tenant, id), ()))

    def drop(self, asked: IncomingRequest) -> ResultWaiter | None:
        """Remove the waiter of a cancelled request; return it, or None if there was none."""
        waiter = self._by_request.get(asked)
        if waiter is not None:
            self._remove(waiter)
        return waiter

    def _remove(self, waiter: ResultWaiter) -> None:
        del self._by_request[waiter.asked]
        left = self._by_task[waiter.task]
        left.remove(waiter)
        if not left:
            del self._by_task[waiter.task]
        if not waiter.done.done():
            waiter.done.set_result(None)

    async def finish(self, connection: TaskConnection, seconds: float) -> None:
        """Wait up to `seconds` for the waiters of a closing connection to be answered."""
        until = connection.loop.time() + seconds
        while (left := until - connection.loop.time()) > 0:
            waits = [each.done for each in self._of(connection)]
            if not waits:
                return
            await asyncio.wait(waits, timeout=left)

    def _of(self, connection: TaskConnection) -> list[ResultWaiter]:
        return [each for each in self._by_request.values() if each.connection is connection]

    def settle(self, tenant: str, id: str, record: Record | None) -> None:
        """Answer the waiters of a task that has ended, or is gone (`record` is None)."""
        for waiter in self.open(tenant, id):
            self._remove(waiter)
            request = waiter.request
            answer = self._dialect.ending(record, request)
            waiter.connection.answer(waiter.asked, answer, request.policy)

    def release(self, connection: TaskConnection) -> None:
        """Fail the waiters of a closing connection with a retryable error."""
        for waiter in self._of(connection):
            self._remove(waiter)
            policy = waiter.request.policy
            kind = ErrorKind.SERVICE_UNAVAILABLE
            error = named_error(kind, policy=policy, retryAfterMs=RETRY_AFTER_MS)
            connection.answer(waiter.asked, error, policy)

"""Open `tasks/result` requests, which wait for their task to end.

A waiter is an open request: it has no handler and no asyncio task, and does not count against the
limit of running requests. `Tasks.settle` answers waiters; `InputCarriers` sends questions on them.

The rules that live here, and only here:

* `tasks/result` returns the result the original `tools/call` would have returned.
                                            [MCP 2025-11-25, basic/utilities/tasks]
* A waiter ends when its client cancels it, and when its connection closes, after a grace period
  for its task to end.
* The number of waiters is limited, in total and for one requestor.
* A question of a task goes out on exactly one waiter of its owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ...engine.runner import RETRY_AFTER_MS
from ...jsonrpc.error_codes import named_error
from ...spec.error_kinds import ErrorKind
from . import wire
from .records import TaskRecord

if TYPE_CHECKING:
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ..dispatch.connection import Connection
    from ..dispatch.revision import ServerRevision

__all__ = ["NOT_FOUND", "ResultWaiter", "ResultWaiters"]

# The same for a task that never existed, has expired, or belongs to another principal.
NOT_FOUND: Final = "Task not found"


class ResultWaiter:
    """One open `tasks/result` request."""

    __slots__ = ("asked", "can_carry", "connection", "done", "requestor", "rev", "task")

    def __init__(
        self,
        connection: Connection,
        asked: IncomingRequest,
        rev: ServerRevision,
        requestor: str,
        record: TaskRecord,
    ) -> None:
        self.connection = connection
        self.asked = asked
        self.rev = rev
        self.requestor = requestor
        # Tenant and id.
        self.task = record.tenant, record.id
        # False after a question that was sent on it got no response.
        self.can_carry = True
        self.done: asyncio.Future[None] = connection.loop.create_future()


class ResultWaiters:
    """The open `tasks/result` requests of one server, by tenant and id of their task."""

    def __init__(self, max_waiters: int, max_each: int) -> None:
        self._max_waiters = max_waiters
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
        own = sum(each.requestor == waiter.requestor for each in self._by_request.values())
        if len(self) >= self._max_waiters or own >= self._max_each:
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

    async def finish(self, connection: Connection, seconds: float) -> None:
        """Wait up to `seconds` for the waiters of a closing connection to be answered."""
        until = connection.loop.time() + seconds
        while (left := until - connection.loop.time()) > 0:
            waits = [each.done for each in self._of(connection)]
            if not waits:
                return
            await asyncio.wait(waits, timeout=left)

    def _of(self, connection: Connection) -> list[ResultWaiter]:
        return [each for each in self._by_request.values() if each.connection is connection]

    def settle(self, tenant: str, id: str, record: TaskRecord | None) -> None:
        """Answer the waiters of a task that has ended, or is gone (`record` is None)."""
        for waiter in self.open(tenant, id):
            self._remove(waiter)
            connection, policy = waiter.connection, waiter.rev.policy
            if record is None:
                gone = named_error(ErrorKind.TASK_NOT_FOUND, policy=policy, message=NOT_FOUND)
                connection.answer(waiter.asked, gone, policy)
            else:
                connection.answer(waiter.asked, wire.task_payload(record, waiter.rev), policy)

    def release(self, connection: Connection) -> None:
        """Fail the waiters of a closing connection with a retryable error."""
        for waiter in self._of(connection):
            self._remove(waiter)
            policy = waiter.rev.policy
            kind = ErrorKind.SERVICE_UNAVAILABLE
            error = named_error(kind, policy=policy, retryAfterMs=RETRY_AFTER_MS)
            connection.answer(waiter.asked, error, policy)

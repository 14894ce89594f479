"""Calls of `tasks/result` that wait for their task to end.

They are open requests and nothing else: no handler, no asyncio task and no place among those at
work is theirs. Whoever learns that a task has ended, or has a question, comes here.

The rules that live here, and only here:

* Such a call is answered what the request would have been that became the task.
                                            [MCP 2025-11-25, basic/utilities/tasks]
* It ends with its connection, after a while in which its task may end, and when its client
  cancels it.
* So many may wait, for all and for one requestor.
* A question of a task goes out on a call of its owner that waits, and only on one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ...jsonrpc.error_codes import named_error
from ...spec.error_kinds import ErrorKind
from ..dispatch.requests import RETRY_AFTER
from . import wire as forms
from .records import TaskRecord

if TYPE_CHECKING:
    from ...jsonrpc.incoming import IncomingRequest
    from ..dispatch.connection import Connection
    from ..dispatch.revision import Surface

__all__ = ["NOT_FOUND", "ResultWaiter", "ResultWaiters"]

# The same for a task that never was, is gone, or is somebody else's.
NOT_FOUND: Final = "Task not found"


class ResultWaiter:
    """One open call."""

    __slots__ = ("asked", "can_carry", "circle", "connection", "done", "surface", "task")

    def __init__(
        self,
        connection: Connection,
        asked: IncomingRequest,
        surface: Surface,
        circle: str,
        record: TaskRecord,
    ) -> None:
        self.connection = connection
        self.asked = asked
        self.surface = surface
        # Whose call it is, and for which task it waits: its tenant and id.
        self.circle = circle
        self.task = record.tenant, record.id
        # Whether a question may still go out on it: one that did has not been lost.
        self.can_carry = True
        self.done: asyncio.Future[None] = connection.loop.create_future()


class ResultWaiters:
    """All such calls of one server, by the tenant and id of their task."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._calls: dict[tuple[str, str], list[ResultWaiter]] = {}
        self._by_request: dict[IncomingRequest, ResultWaiter] = {}

    def __len__(self) -> int:
        return len(self._by_request)

    def tasks(self) -> list[tuple[str, str]]:
        """Return the tasks that somebody waits for."""
        return list(self._calls)

    def add(self, waiter: ResultWaiter) -> bool:
        """Let a call wait; say no if there are too many."""
        own = sum(each.circle == waiter.circle for each in self._by_request.values())
        if len(self) >= self._most or own >= self._most_each:
            return False
        self._calls.setdefault(waiter.task, []).append(waiter)
        self._by_request[waiter.asked] = waiter
        return True

    def open(self, tenant: str, id: str) -> Iterator[ResultWaiter]:
        """Yield the calls that wait for one task."""
        yield from list(self._calls.get((tenant, id), ()))

    def drop(self, asked: IncomingRequest) -> ResultWaiter | None:
        """Forget a call that its client has cancelled; return it if it is one of these."""
        waiter = self._by_request.get(asked)
        if waiter is not None:
            self._remove(waiter)
        return waiter

    def _remove(self, waiter: ResultWaiter) -> None:
        del self._by_request[waiter.asked]
        left = self._calls[waiter.task]
        left.remove(waiter)
        if not left:
            del self._calls[waiter.task]
        if not waiter.done.done():
            waiter.done.set_result(None)

    async def finish(self, connection: Connection, seconds: float) -> None:
        """Let the calls of a connection that is to end wait for so long."""
        until = connection.loop.time() + seconds
        while (left := until - connection.loop.time()) > 0:
            waits = [each.done for each in self._of(connection)]
            if not waits:
                return
            await asyncio.wait(waits, timeout=left)

    def _of(self, connection: Connection) -> list[ResultWaiter]:
        return [each for each in self._by_request.values() if each.connection is connection]

    def settle(self, tenant: str, id: str, record: TaskRecord | None) -> None:
        """Answer the calls for a task that has ended, or is gone."""
        for waiter in self.open(tenant, id):
            self._remove(waiter)
            connection, policy = waiter.connection, waiter.surface.policy
            if record is None:
                gone = named_error(ErrorKind.TASK_NOT_FOUND, policy=policy, message=NOT_FOUND)
                connection.answer(waiter.asked, gone, policy)
            else:
                connection.answer(waiter.asked, forms.payload(record, waiter.surface), policy)

    def release(self, connection: Connection) -> None:
        """Let the calls of a connection go, which ends; who still listens is told to come again."""
        for waiter in self._of(connection):
            self._remove(waiter)
            policy = waiter.surface.policy
            kind = ErrorKind.SERVICE_UNAVAILABLE
            error = named_error(kind, policy=policy, retryAfterMs=RETRY_AFTER)
            connection.answer(waiter.asked, error, policy)

"""Calls of `tasks/result` that wait for their task to end.

They are open requests and nothing else: no handler, no asyncio task and no place among those at
work is theirs. Whoever learns that a task has ended, or has a question, comes here.

The rules that live here, and only here:

* Such a call is answered what the request would have been that became the task.
                                            [MCP 2025-11-25, basic/utilities/tasks]
* It ends with its connection, and when its client cancels it.
* A question of a task goes out on a call of its owner that waits, and only on one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..jsonrpc.named import named_error
from ..spec.kinds import ErrorKind
from . import task_forms as forms
from .jobs import RETRY_AFTER
from .task_records import TaskRecord

if TYPE_CHECKING:
    from ..jsonrpc.inbox import Asked
    from .connection import Connection
    from .surface import Surface

__all__ = ["NOT_FOUND", "Waiter", "Waiting"]

# The same for a task that never was, is gone, or is somebody else's.
NOT_FOUND: Final = "Task not found"


class Waiter(Struct, frozen=True, eq=False):
    """One open call."""

    connection: Connection
    asked: Asked
    surface: Surface

    @property
    def is_open(self) -> bool:
        """Whether somebody still waits: the client may have cancelled, or left."""
        return self.asked in self.connection.peer.inbox


class Waiting:
    """All such calls of one server, by the tenant and id of their task."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: dict[tuple[str, str], list[Waiter]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._calls.values()))

    def tasks(self) -> list[tuple[str, str]]:
        """Return the tasks that somebody waits for."""
        self._tidy()
        return list(self._calls)

    def add(self, record: TaskRecord, waiter: Waiter) -> bool:
        """Let a call wait; say no if there are too many."""
        if len(self) >= self._most:
            self._tidy()
            if len(self) >= self._most:
                return False
        self._calls.setdefault((record.tenant, record.id), []).append(waiter)
        return True

    def open(self, tenant: str, id: str) -> Iterator[Waiter]:
        """Yield the calls that wait for one task."""
        yield from [each for each in self._calls.get((tenant, id), ()) if each.is_open]

    def settle(self, tenant: str, id: str, record: TaskRecord | None) -> None:
        """Answer the calls for a task that has ended, or is gone."""
        for waiter in self._calls.pop((tenant, id), ()):
            connection, policy = waiter.connection, waiter.surface.policy
            if record is None:
                gone = named_error(ErrorKind.TASK_NOT_FOUND, policy=policy, message=NOT_FOUND)
                connection.answer(waiter.asked, gone, policy)
            else:
                connection.answer(waiter.asked, forms.payload(record, waiter.surface), policy)

    def release(self, connection: Connection) -> None:
        """Let the calls of a connection go, which ends; who still listens is told to come again."""
        for key, waiters in list(self._calls.items()):
            for waiter in [each for each in waiters if each.connection is connection]:
                waiters.remove(waiter)
                policy = waiter.surface.policy
                kind = ErrorKind.SERVICE_UNAVAILABLE
                error = named_error(kind, policy=policy, retryAfterMs=RETRY_AFTER)
                connection.answer(waiter.asked, error, policy)
            if not waiters:
                del self._calls[key]

    def _tidy(self) -> None:
        """Forget calls that were cancelled: nothing tells us when that happens."""
        for key, waiters in list(self._calls.items()):
            waiters[:] = [each for each in waiters if each.is_open]
            if not waiters:
                del self._calls[key]

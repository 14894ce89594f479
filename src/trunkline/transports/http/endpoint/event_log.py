"""The events of a session that can be sent again: a log in the store, read by `Last-Event-ID`.

An event is written to the log when it is sent, or would be: a client whose connection broke gets
what it missed when it resumes the stream.

The rules that live here, and only here:

* An event id names the stream and the place in it, `STREAM-NUMBER`. Numbers of a stream count up
  by one, so that a gap is noticed.                    [MCP 2025-11-25, basic/transports]
* Only events of the stream that is resumed are sent again.
* A log has at most so many events and bytes; the oldest are dropped.
* An event that could not be kept leaves a gap: resuming across it is an error, not a silence. The
  event is sent all the same.
* Drivers run in a task: they may use `asyncio.timeout`. Only `MemoryStore`, which never waits, is
  called without one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from ....store.errors import StoreError, StoreUnavailable
from ....store.memory import MemoryStore
from ....store.values import Key, Retention

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....store.base import Store
    from ..settings import HttpLimits

__all__ = ["EventLog", "parse_event_id"]

# The longest event id of ours: two numbers.
_MAX_ID_BYTES: Final = 40
# Entries read from the store at a time.
_PAGE: Final = 500
_NOT_KEPT: Final = "event of a session not kept, its stream cannot be resumed: %s"


def parse_event_id(text: bytes) -> tuple[int, int] | None:
    """Return the stream and the number of an event id, or None if it is not one of ours."""
    stream, dash, number = text.partition(b"-")
    if len(text) > _MAX_ID_BYTES or not dash or not stream.isdigit() or not number.isdigit():
        return None
    # Streams count from 1: 0 is that of exchanges which cannot be resumed.
    return (int(stream), int(number)) if int(stream) else None


class EventLog:
    """The log of one session."""

    def __init__(
        self,
        store: Store,
        name: str,
        limits: HttpLimits,
        on_error: Callable[[str, StoreError], object],
        tenant: str = "",
    ) -> None:
        self._store = store
        self._on_error = on_error
        self._key = Key(tenant, "http-events", name)
        self._limits = limits
        # Sizes of the events that are kept, and their sum.
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._is_deleted = False
        self._is_used = False
        # A method in its place, of a subclass or a wrapper, may wait.
        self._is_memory = getattr(store.append, "__func__", None) is MemoryStore.append
        # Entries that wait for the store, and the task that writes them.
        self._waiting: deque[bytes] = deque()
        self._writer: asyncio.Task[None] | None = None

    def append(self, stream: int, number: int, frame: bytes) -> None:
        """Write an event, without waiting for the store."""
        if self._is_deleted:
            return
        self._is_used = True
        entry = b"%d-%d %b" % (stream, number, frame)
        self._count(len(entry))
        if self._is_memory:
            try:
                self._write(entry).send(None)
            except StopIteration:
                pass
            return
        self._waiting.append(entry)
        if len(self._waiting) > len(self._sizes):
            self._waiting.popleft()  # it would be dropped as soon as it is written
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_waiting())

    def _count(self, size: int) -> None:
        limits, sizes = self._limits, self._sizes
        sizes.append(size)
        self._bytes += size
        while len(sizes) > 1 and (
            self._bytes > limits.replay_bytes or len(sizes) > limits.replay_events
        ):
            self._bytes -= sizes.popleft()

    async def _write(self, entry: bytes) -> None:
        ttl = self._limits.replay_ttl
        # The store drops by number: as many are kept as fit the bytes.
        retention = Retention(len(self._sizes), ttl, ttl)
        try:
            await self._store.append(self._key, entry, retention=retention)
        except StoreError as error:
            self._on_error(_NOT_KEPT, error)
        except Exception as error:  # noqa: BLE001  # of a driver: the next event is kept again
            self._on_error(_NOT_KEPT, StoreUnavailable(f"{type(error).__name__}: {error}"))

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                await self._write(self._waiting.popleft())
        finally:
            self._writer = None

    async def read(self, stream: int, after: int) -> list[tuple[int, bytes]] | None:
        """Return the events of a stream after a number, or None if some of them are lost.

        Raises:
            StoreError: the store does not answer.
        """
        if self._writer is not None:
            await asyncio.wait([self._writer])
        if self._is_deleted:
            return None
        prefix, found, cursor = b"%d-" % stream, [], None
        while True:
            page = await self._store.read(self._key, after=cursor, limit=_PAGE)
            for entry in page.entries:
                if entry.data.startswith(prefix):
                    head, _, frame = entry.data.partition(b" ")
                    number = int(head[len(prefix) :])
                    if number > after:
                        found.append((number, frame))
            if len(page.entries) < _PAGE:
                break
            cursor = page.cursor
        return found if all(n == after + 1 + i for i, (n, _) in enumerate(found)) else None

    async def delete(self) -> None:
        """Remove the log, because its session has ended."""
        self._is_deleted = True
        self._waiting.clear()
        if self._writer is not None:
            self._writer.cancel()
            self._writer = None  # a task that has not begun does not do it
        if self._is_used:
            try:
                await self._store.delete_log(self._key)
            except StoreError as error:
                self._on_error("events of an ended session not deleted: %s", error)

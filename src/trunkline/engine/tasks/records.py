"""Task records in the store: their fields, their state transitions and their retention.

A `TaskRecord` is a value; the transition functions return the next record, or None if the
transition does not apply. A protocol has a record type of its own, with its statuses and with the
fields that only it has. `TaskRecords` reads and writes records of one type, and knows nothing of
handlers or connections: any server on the same store may change any record, and the server that
runs the task reads the change. `TaskRetention` bounds the finished tasks kept for one requestor.

The rules that live here, and only here:

* A final status never changes.                          [MCP 2025-11-25, basic/utilities/tasks]
* The status says that input is required exactly while a question is open. A response to an unknown
  question is ignored; a response to an open one is stored until the handler has received it.
* Every change is a compare-and-set, retried after a conflict. Each transition is idempotent, since
  a lost store reply leaves open whether it was applied.
* The TTL counts from creation. An expired task is gone, even if its handler still runs.
* A task id has 192 random bits: without authentication the id is the capability.    [SEP-2663]
* The oldest finished tasks of a requestor make room for its newer ones; running tasks do not count
  (they are bounded when they start). The bound covers tasks run by this server, is lost on restart,
  and protects a store that all clients share; the store's own limits hold in any case.

Keys of answered questions are not recorded: they come from the single call that became the task,
which never uses a key twice.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Container, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from ...concurrency.backoff import backoff
from ...jsonrpc.messages import ErrorObject, Shown, shown_tuple
from ...store.base import Store
from ...store.errors import StoreUnavailable
from ...store.values import Key, Lease

__all__ = [
    "InputResponse",
    "Record",
    "RetainedTask",
    "TaskChange",
    "TaskOutcome",
    "TaskRecord",
    "TaskRecords",
    "TaskRetention",
    "TaskStatuses",
    "answered",
    "cancelled",
    "ended",
    "new_id",
    "requestor_id",
    "timestamp",
    "with_message",
    "with_question",
    "without_question",
    "without_responses",
]

_log: Final = logging.getLogger("trunkline.server")

_ID_BYTES: Final = 24
_ID_CHARS: Final = 32  # the same in Base64
# Compare-and-set attempts. Each conflict is another writer's success, so this many in a row mean a
# store whose compare-and-set is broken.
_MAX_TRIES: Final = 100
# Backoff while the store is unavailable.
_MIN_RETRY_DELAY_S: Final = 0.05
_MAX_RETRY_DELAY_S: Final = 1.0
# The smallest TTL a store accepts.
_MIN_TTL_S: Final = 0.001


class InputResponse(Shown, Struct, frozen=True, omit_defaults=True):
    """The response to a question: a result, an error, or a timeout."""

    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET
    is_timeout: bool = False


class TaskStatuses(Shown, Struct, frozen=True, kw_only=True):
    """The statuses of tasks in a protocol, by what the engine does with them."""

    initial: str
    working: str
    # While a question is open.
    input_required: str
    cancelled: str
    # Those that never change, with the ones that the engine does not set itself.
    final: frozenset[str]


class TaskRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task as seen by every server on the same store.

    A protocol subclasses it with its statuses, and with what else it keeps about a task.
    """

    statuses: ClassVar[TaskStatuses]

    id: str
    tenant: str
    # The key of the principal that owns it; None without authentication.
    owner: str | None
    # The name of the server that runs it.
    runner: str
    # Seconds since the epoch: servers on one store compare these.
    created: float
    updated: float
    # Seconds from creation until it expires; None: never.
    ttl: float | None
    status: str
    status_message: str = ""
    # As sent, or as it would have been sent, in answer to the call.
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    # Open questions in wire form, and responses the handler has not received yet.
    questions: dict[str, Raw] = {}  # never changed in place
    responses: dict[str, InputResponse] = {}

    @property
    def is_over(self) -> bool:
        """Whether its status is final."""
        return self.status in self.statuses.final

    def remaining(self, now: float) -> float | None:
        """Return the seconds until it expires, zero or less if it has; None: never."""
        return None if self.ttl is None else self.created + self.ttl - now

    def __repr__(self) -> str:
        return f"<TaskRecord, {self.status}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # a Struct's own shows the id, which is a capability


Record = TypeVar("Record", bound=TaskRecord)


def new_id() -> str:
    """Return an unguessable id."""
    return secrets.token_urlsafe(_ID_BYTES)


def timestamp(seconds: float) -> str:
    """Return seconds since the epoch as an RFC 3339 timestamp, with milliseconds in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def requestor_id(name: str) -> str:
    """Return the digest that the tasks of a requestor are listed under; it hides the name."""
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


# -- transitions -----------------------------------------------------------------------------


def ended(
    record: Record,
    status: str,
    message: str = "",
    *,
    result: Raw | UnsetType = UNSET,
    error: Raw | UnsetType = UNSET,
) -> Record | None:
    """Return the record with a final status; None if it has one."""
    if record.is_over:
        return None
    return replace(
        record,
        status=status,
        status_message=message,
        result=result,
        error=error,
        questions={},
        responses={},
    )


class TaskOutcome(NamedTuple):
    """The final state of a task."""

    status: str
    message: str
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    def __repr__(self) -> str:
        return shown_tuple(self)

    def applied_to(self, record: Record) -> Record | None:
        """Return the record with this outcome; None if its status is final."""
        return ended(record, self.status, self.message, result=self.result, error=self.error)


def cancelled(record: Record) -> Record | None:
    """Return the record cancelled; None if its status is final."""
    return ended(record, record.statuses.cancelled, "The task was cancelled.")


def with_message(record: Record, message: str) -> Record | None:
    """Return the record with a status message; None if it is final or has that message."""
    if record.is_over or record.status_message == message:
        return None
    return replace(record, status_message=message)


def with_question(record: Record, key: str, question: Raw) -> Record | None:
    """Return the record with one more open question; None if it is final or has that question."""
    if record.is_over or key in record.questions or key in record.responses:
        return None
    return _with_questions(record, {**record.questions, key: question})


def answered(record: Record, responses: Mapping[str, InputResponse]) -> Record | None:
    """Return the record with these responses; None if none of them belongs to an open question."""
    known = {key: response for key, response in responses.items() if key in record.questions}
    if not known:
        return None
    return replace(_without(record, known), responses={**record.responses, **known})


def without_question(record: Record, key: str) -> Record | None:
    """Return the record with a question withdrawn; None if that question is not open."""
    return _without(record, {key: None}) if key in record.questions else None


def without_responses(record: Record, keys: Container[str]) -> Record | None:
    """Return the record with received responses removed; None if it has none of them."""
    left = {key: response for key, response in record.responses.items() if key not in keys}
    return replace(record, responses=left) if len(left) < len(record.responses) else None


def _without(record: Record, keys: Mapping[str, Any]) -> Record:
    left = {key: value for key, value in record.questions.items() if key not in keys}
    return _with_questions(record, left)


def _with_questions(record: Record, questions: dict[str, Raw]) -> Record:
    statuses = record.statuses
    status = statuses.input_required if questions else statuses.working
    return replace(record, status=status, questions=questions)


# -- the store -------------------------------------------------------------------------------


class TaskChange(NamedTuple, Generic[Record]):
    """The outcome of an attempted change: the record now and before, and whether it was applied.

    `record` is None if the task is gone.
    """

    record: Record | None
    before: Record | None = None
    is_ours: bool = False

    def __repr__(self) -> str:
        return shown_tuple(self)


class TaskRecords(Generic[Record]):
    """The task records of one type in a store."""

    def __init__(
        self, store: Store, kind: type[Record], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._read: Final[Callable[[bytes], Record]] = Decoder(kind).decode
        self.clock = clock

    async def add(self, record: Record, requestor: str | None) -> None:
        """Store a new task; with `requestor`, list it among the tasks of that requestor.

        Raises:
            StoreError: the store is full or unavailable; the record may exist, remove it.
        """
        left = record.remaining(self.clock())
        # A client may request a TTL shorter than the time elapsed so far.
        ttl = None if left is None else max(left, _MIN_TTL_S)
        if requestor is not None:
            await self._store.put(_listed(record, requestor), record.id.encode(), ttl=ttl)
        await self._store.compare_and_set(_key(record), encode(record), version=None, ttl=ttl)

    async def remove(self, record: Record, requestor: str | None) -> None:
        """Delete a task and its list entry."""
        if requestor is not None:
            await self._store.delete(_listed(record, requestor))
        await self._store.delete(_key(record))

    async def get(self, tenant: str, id: str) -> Record | None:
        """Return a task, or None if it does not exist or has expired."""
        found = await self._find(tenant, id)
        return None if found is None else found[0]

    async def change(
        self,
        tenant: str,
        id: str,
        to: Callable[[Record], Record | None],
        *,
        quietly: bool = False,
    ) -> TaskChange[Record]:
        """Replace a task by `to(task)`; None from `to` leaves it unchanged.

        `quietly` keeps `updated`: clients cannot observe the change.

        Raises:
            StoreFull: the new record does not fit; the old one remains.
            StoreUnavailable: the change may have been applied, or not.
        """
        for _ in range(_MAX_TRIES):
            found = await self._find(tenant, id)
            if found is None:
                return TaskChange(None)
            record, version, left = found
            wanted = to(record)
            if wanted is None:
                return TaskChange(record, record)
            if not quietly:
                # Monotonic even if the clock is not: notifications are ordered by it.
                wanted = replace(wanted, updated=max(self.clock(), record.updated))
            value = encode(wanted)
            set_ = await self._store.compare_and_set(_key(record), value, version=version, ttl=left)
            if set_ is not None:
                return TaskChange(wanted, record, True)
        raise StoreUnavailable(f"{_MAX_TRIES} compare-and-set conflicts in a row on one task")

    async def change_with_retry(
        self,
        tenant: str,
        id: str,
        to: Callable[[Record], Record | None],
        timeout: float,
    ) -> TaskChange[Record]:
        """Change a task as `change` does, retrying for `timeout` seconds an unavailable store.

        Raises:
            StoreFull: the new record does not fit; the old one remains.
            StoreUnavailable: the store was unavailable for the whole time.
        """
        until = time.monotonic() + timeout
        delays = backoff(_MIN_RETRY_DELAY_S, _MAX_RETRY_DELAY_S)
        while True:
            try:
                return await self.change(tenant, id, to)
            except StoreUnavailable as error:
                delay = next(delays)
                if time.monotonic() + delay > until:
                    raise
                _log.warning("task not updated, retrying in %.2g s: %s", delay, error)
            await asyncio.sleep(delay)

    async def page(
        self, tenant: str, requestor: str, after: str | None, limit: int
    ) -> tuple[list[Record], str | None]:
        """Return a page of the tasks of one requestor, and the cursor of the next page."""
        prefix = Key(tenant, "task-of", f"{requestor}/")
        page = await self._store.scan(prefix, after=after, limit=limit)
        found = []
        for key in page.keys:
            record = await self.get(tenant, key.name.rpartition("/")[2])
            if record is not None:
                found.append(record)
        return found, page.cursor

    async def claim(self, record: Record, key: str, ttl: float) -> Lease | None:
        """Return the lease to send a question to the client, or None if another server has it."""
        name = sha256(f"{record.id}/{key}".encode("utf-8", "surrogatepass")).hexdigest()
        return await self._store.acquire(Key(record.tenant, "task-question", name), ttl=ttl)

    async def renew_claim(self, lease: Lease, ttl: float) -> None:
        """Extend the lease to `ttl` seconds from now."""
        await self._store.renew(lease, ttl=ttl)

    async def release_claim(self, lease: Lease) -> None:
        """Release the lease."""
        await self._store.release(lease)

    async def _find(self, tenant: str, id: str) -> tuple[Record, int, float | None] | None:
        # Ids come from clients: one of another shape never reaches the store.
        if len(id) != _ID_CHARS or not id.isascii():
            return None
        stored = await self._store.get(Key(tenant, "task", id))
        if stored is None:
            return None
        try:
            record = self._read(stored.value)
        except (ValidationError, DecodeError) as error:
            # Written by a newer version, perhaps; treated as missing.
            _log.error("task record in the store is not readable, ignoring the task: %s", error)
            return None
        left = record.remaining(self.clock())
        return None if left is not None and left <= 0 else (record, stored.version, left)


def _key(record: TaskRecord) -> Key:
    return Key(record.tenant, "task", record.id)


def _listed(record: TaskRecord, requestor: str) -> Key:
    # Sorts by creation time in a store that keeps keys in order.
    name = f"{requestor}/{int(record.created * 1000):013d}/{record.id}"
    return Key(record.tenant, "task-of", name)


# -- retention -------------------------------------------------------------------------------


class RetainedTask(NamedTuple, Generic[Record]):
    """A finished task."""

    # As it began; its result is in the store.
    record: Record
    # Of its result, in bytes.
    size: int

    def __repr__(self) -> str:
        return shown_tuple(self)


class TaskRetention(Generic[Record]):
    """The finished tasks of each requestor, oldest first."""

    def __init__(self, max_tasks: int, max_bytes: int) -> None:
        self._max_tasks = max_tasks
        self._max_bytes = max_bytes
        self._tasks: dict[str, deque[RetainedTask[Record]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._tasks.values()))

    def add(self, requestor: str, task: RetainedTask[Record], now: float) -> list[Record]:
        """Add a finished task; return the older ones to delete."""
        retained = self._tasks.setdefault(requestor, deque())
        retained.append(task)
        if not self._exceeds(retained):
            return []
        retained = self._tasks[requestor] = _unexpired(retained, now)
        evicted = []
        # The newest stays: the store has accepted it.
        while len(retained) > 1 and self._exceeds(retained):
            evicted.append(retained.popleft().record)
        return evicted

    def tidy(self, now: float) -> None:
        """Drop expired tasks."""
        for requestor, retained in list(self._tasks.items()):
            self._tasks[requestor] = left = _unexpired(retained, now)
            if not left:
                del self._tasks[requestor]

    def _exceeds(self, tasks: deque[RetainedTask[Record]]) -> bool:
        return len(tasks) > self._max_tasks or sum(each.size for each in tasks) > self._max_bytes


def _unexpired(tasks: deque[RetainedTask[Record]], now: float) -> deque[RetainedTask[Record]]:
    times = ((each, each.record.remaining(now)) for each in tasks)
    return deque(each for each, left in times if left is None or left > 0)

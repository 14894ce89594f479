"""One task as it is kept in the store: what is known of it, and how it may change.

A `TaskRecord` is a value; the functions here return what becomes of it, or None where that
cannot be. `TaskRecords` reads and writes them, and knows nothing of handlers or connections:
any server that shares the store may change any record, and the one that runs the task looks.

The rules that live here, and only here:

* A task that has ended stays as it ended.               [MCP 2025-11-25, basic/utilities/tasks]
* It waits for input exactly as long as one of its questions is open; what answers none of
  them is ignored, and what answers one is kept until the handler has taken it.
* Every change compares and sets, and is tried anew when another one came first. Made twice,
  because nobody knows whether it was made, it is made once.
* Its time to live counts from its creation. Then it is gone, whoever still works at it.
* An id has 192 random bits, because for a client without a name the id is the right to it.
                                                                                     [SEP-2663]

Keys of questions are not kept after they were answered: they come from the one call that the
task is, which uses none twice.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Container, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from ...jsonrpc.messages import ErrorObject
from ...mcp.types import TaskStatus
from ...store.base import Store
from ...store.errors import StoreUnavailable
from ...store.values import Key, Lease

__all__ = [
    "InputResponse",
    "TaskChange",
    "TaskForm",
    "TaskRecord",
    "TaskRecords",
    "answered",
    "cancelled",
    "ended",
    "new_id",
    "requestor_id",
    "timestamp",
    "with_question",
    "without_question",
    "without_responses",
]

_log: Final = logging.getLogger("trunkline.server")

# The two ways in which revisions have tasks: the record of one means nothing to the other.
TaskForm = Literal["core", "extension"]

_ID_BYTES: Final = 24
_ID_CHARS: Final = 32  # the same in Base64
_OVER: Final = frozenset(("completed", "failed", "cancelled"))
# How often a change is tried anew. Each loss is somebody else's gain, so that whoever loses this
# often has met a store that does not compare.
_MAX_TRIES: Final = 100
# Between two tries to reach a store that does not answer, in seconds: at first, and at most.
_MIN_RETRY_DELAY_S: Final = 0.05
_MAX_RETRY_DELAY_S: Final = 1.0
# In seconds: a store takes no less.
_MIN_TTL_S: Final = 0.001


class InputResponse(Struct, frozen=True, omit_defaults=True):
    """What became of a question: a result or an error, or that it took too long."""

    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET
    is_late: bool = False


class TaskRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task, as every server that shares the store sees it."""

    id: str
    tenant: str
    # The principal it belongs to; None where nobody has a name.
    owner: str | None
    form: TaskForm
    tool: str
    # The server that works at it.
    runner: str
    # Seconds since 1970, so that servers with one store mean the same.
    created: float
    updated: float
    # Seconds from its creation until it is gone; None is never.
    ttl: float | None
    poll_interval: float
    status: TaskStatus = "working"
    status_message: str = ""
    # As it was sent, or would have been, in the revision that the call came in.
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    # Open ones, as they are on the wire, and replies that the handler has not taken yet.
    questions: dict[str, Raw] = {}  # never changed in place
    replies: dict[str, InputResponse] = {}

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status in _OVER

    def left(self, now: float) -> float | None:
        """Return how many seconds it still has; None is for ever, and none may be left."""
        return None if self.ttl is None else self.created + self.ttl - now

    def __repr__(self) -> str:
        return f"<TaskRecord of {self.tool!r}, {self.status}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # a Struct's own would show the id, which is a right


def new_id() -> str:
    """Return an id that nobody guesses."""
    return secrets.token_urlsafe(_ID_BYTES)


def timestamp(seconds: float) -> str:
    """Return a time as it is on the wire."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def requestor_id(name: str) -> str:
    """Return what the tasks of one requestor are listed under, which shows nothing of its name."""
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


# -- what may become of one ------------------------------------------------------------------


def ended(
    record: TaskRecord,
    status: TaskStatus,
    message: str = "",
    *,
    result: Raw | UnsetType = UNSET,
    error: Raw | UnsetType = UNSET,
) -> TaskRecord | None:
    """Return a task that has ended; None for one that had."""
    if record.is_over:
        return None
    return replace(
        record,
        status=status,
        status_message=message,
        result=result,
        error=error,
        questions={},
        replies={},
    )


def cancelled(record: TaskRecord) -> TaskRecord | None:
    """Return a task that was cancelled; None for one that had ended."""
    return ended(record, "cancelled", "The task was cancelled.")


def with_question(record: TaskRecord, key: str, question: Raw) -> TaskRecord | None:
    """Return a task with one open question more; None for one that has ended, or has it."""
    if record.is_over or key in record.questions or key in record.replies:
        return None
    return replace(record, status="input_required", questions={**record.questions, key: question})


def answered(record: TaskRecord, replies: Mapping[str, InputResponse]) -> TaskRecord | None:
    """Return a task some of whose questions were answered; None where none of them was."""
    known = {key: reply for key, reply in replies.items() if key in record.questions}
    if not known:
        return None
    changed = _without(record, known)
    return replace(changed, replies={**record.replies, **known})


def without_question(record: TaskRecord, key: str) -> TaskRecord | None:
    """Return a task without a question that nobody waits for any more; None if it has none."""
    return _without(record, {key: None}) if key in record.questions else None


def without_responses(record: TaskRecord, keys: Container[str]) -> TaskRecord | None:
    """Return a task some of whose replies were taken; None if it has none of them."""
    left = {key: reply for key, reply in record.replies.items() if key not in keys}
    return replace(record, replies=left) if len(left) < len(record.replies) else None


def _without(record: TaskRecord, keys: Mapping[str, Any]) -> TaskRecord:
    left = {key: value for key, value in record.questions.items() if key not in keys}
    return replace(record, questions=left, status="input_required" if left else "working")


# -- keeping them ----------------------------------------------------------------------------


class TaskChange(NamedTuple):
    """What is there after a change was tried: the record, the one before, and whether it was ours.

    `record` is None where it is gone.
    """

    record: TaskRecord | None
    before: TaskRecord | None = None
    is_ours: bool = False


class TaskRecords:
    """The tasks in one store."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self.clock = clock

    async def add(self, record: TaskRecord, circle: str | None) -> None:
        """Keep a new task; with a circle it is listed among those of one requestor.

        Raises:
            StoreError: there is no room, or no answer; it may have to be removed.
        """
        left = record.left(self.clock())
        # A client may ask for less time than it takes to get here.
        ttl = None if left is None else max(left, _MIN_TTL_S)
        if circle is not None:
            await self._store.put(_listed(record, circle), record.id.encode(), ttl=ttl)
        await self._store.compare_and_set(_key(record), encode(record), version=None, ttl=ttl)

    async def remove(self, record: TaskRecord, circle: str | None) -> None:
        """Let a task go of which nobody was told."""
        if circle is not None:
            await self._store.delete(_listed(record, circle))
        await self._store.delete(_key(record))

    async def get(self, tenant: str, id: str) -> TaskRecord | None:
        """Return a task, or None if there is none, or none any more."""
        found = await self._find(tenant, id)
        return None if found is None else found[0]

    async def change(
        self,
        tenant: str,
        id: str,
        to: Callable[[TaskRecord], TaskRecord | None],
        *,
        quietly: bool = False,
    ) -> TaskChange:
        """Make of a task what `to` returns of it; None there leaves it as it is.

        `quietly` is a change that no client would notice.

        Raises:
            StoreFull: what it was to become has no room; it is as it was.
            StoreUnavailable: it may have changed, or not.
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
                # Whatever the clock does: who is told of changes goes by this.
                wanted = replace(wanted, updated=max(self.clock(), record.updated))
            value = encode(wanted)
            set_ = await self._store.compare_and_set(_key(record), value, version=version, ttl=left)
            if set_ is not None:
                return TaskChange(wanted, record, True)
        raise StoreUnavailable("a task was changed by others each time it was to be changed")

    async def insist(
        self,
        tenant: str,
        id: str,
        to: Callable[[TaskRecord], TaskRecord | None],
        seconds: float,
    ) -> TaskChange:
        """Change a task as `change` does, and again for so long while the store does not answer.

        Raises:
            StoreFull: what it was to become has no room; it is as it was.
            StoreUnavailable: there was no answer all the time.
        """
        until, pause = time.monotonic() + seconds, _MIN_RETRY_DELAY_S
        while True:
            try:
                return await self.change(tenant, id, to)
            except StoreUnavailable as error:
                if time.monotonic() + pause > until:
                    raise
                _log.warning("a task is not changed yet: %s", error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_RETRY_DELAY_S)

    async def page(
        self, tenant: str, circle: str, after: str | None, limit: int
    ) -> tuple[list[TaskRecord], str | None]:
        """Return some of the tasks of one requestor, and where to go on."""
        prefix = Key(tenant, "task-of", f"{circle}/")
        page = await self._store.scan(prefix, after=after, limit=limit)
        found = []
        for key in page.keys:
            record = await self.get(tenant, key.name.rpartition("/")[2])
            if record is not None:
                found.append(record)
        return found, page.cursor

    async def claim(self, record: TaskRecord, key: str, ttl: float) -> Lease | None:
        """Return the right to carry a question to the client, or None if somebody has it."""
        name = sha256(f"{record.id}/{key}".encode("utf-8", "surrogatepass")).hexdigest()
        return await self._store.acquire(Key(record.tenant, "task-question", name), ttl=ttl)

    async def keep_claim(self, lease: Lease, ttl: float) -> None:
        """Keep that right for so long from now on."""
        await self._store.renew(lease, ttl=ttl)

    async def unclaim(self, lease: Lease) -> None:
        """Give that right up."""
        await self._store.release(lease)

    async def _find(self, tenant: str, id: str) -> tuple[TaskRecord, int, float | None] | None:
        # Whatever a client sends: what no id looks like is not looked for.
        if len(id) != _ID_CHARS or not id.isascii():
            return None
        stored = await self._store.get(Key(tenant, "task", id))
        if stored is None:
            return None
        try:
            record = _read(stored.value)
        except (ValidationError, DecodeError) as error:
            # Of a server that is newer than this one, say; to us it is none.
            _log.error("a task in the store cannot be read: %s", error)
            return None
        left = record.left(self.clock())
        return None if left is not None and left <= 0 else (record, stored.version, left)


_read: Final = Decoder(TaskRecord).decode


def _key(record: TaskRecord) -> Key:
    return Key(record.tenant, "task", record.id)


def _listed(record: TaskRecord, circle: str) -> Key:
    """Return where a task is listed; in a store that keeps order, in that of creation."""
    return Key(record.tenant, "task-of", f"{circle}/{int(record.created * 1000):013d}/{record.id}")

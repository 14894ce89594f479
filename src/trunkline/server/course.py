"""What is particular about one run of a handler; most runs have nothing of the kind.

A handler that asks, that is run again with answers, or that goes on as a task after its
request was answered, has a `Course`. It says where its questions go, where what it reports
goes, and who gets its outcome. A call that does none of that never makes one.

The rules that live here, and only here:

* A key names one question of a call. Where the author gives none it is the kind of question
  and its number among those of its kind, counted in the order they are put; those of a task
  that the handler has begun are counted by themselves, because how tasks take turns is not
  the same when answers are there already.
* The time that a client takes to answer is not the handler's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw, Struct

if TYPE_CHECKING:
    from .context import Context

__all__ = ["Asker", "Course", "Question", "RoundOver"]


class RoundOver(BaseException):
    """Ends a handler whose questions have gone out; it will be run again with the answers.

    No Exception, so that a handler that catches those does not catch this.
    """


class Question(Struct, frozen=True):
    """One question of one handler."""

    key: str
    method: str
    # As they are on the wire: `ElicitRequestParams` and its like.
    params: Any
    # Tells whether it is still the same question when the handler is run again.
    digest: bytes
    # How long its answer may take, where the client is asked while the handler waits.
    timeout: float | None = None


class Asker(Protocol):
    """Where the questions of a running handler go."""

    async def ask(self, question: Question) -> Raw:
        """Return what the client answered, unread."""
        ...

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]], *, is_secret: bool) -> Raw:
        """Return what `work` gave, now or when the handler ran before."""
        ...


class Course:
    """One run: where its questions, its reports and its outcome go."""

    __slots__ = (
        "_branches",
        "_counted",
        "_keys",
        "_left",
        "_open",
        "asker",
        "begin",
        "heard",
        "on_end",
        "outlet",
        "round",
        "waits",
    )

    def __init__(self) -> None:
        self.asker: Asker | None = None
        # What a request that asks inside its result is answered, if it comes to that.
        self.round: Ending | None = None
        # Where progress and log lines go, in place of the request that is open.
        self.outlet: Callable[[str, Any], object] | None = None
        # Gets the outcome, in place of the client.
        self.on_end: Callable[[Any], object] | None = None
        # Awaited before the handler is called.
        self.begin: Callable[[Context], Awaitable[object]] | None = None
        # So many of its reports the client has heard, when the handler ran before.
        self.heard = 0
        # What threads wait for, to be stopped with the handler.
        self.waits: set[asyncio.Future[Any]] = set()
        self._counted: Counter[str] = Counter()
        # Tasks of the handler's own that ask, in the order they began to.
        self._branches: dict[asyncio.Task[Any], int] = {}
        self._keys: set[str] = set()
        # How many questions the client has before it, and the time that is left meanwhile.
        self._open = 0
        self._left = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the handler was ended because its questions have to go out."""
        return self.round is not None and self.round.is_over

    def key_of(self, kind: str, key: str | None, own: asyncio.Task[Any] | None = None) -> str:
        """Return the key of the next question of a kind; `own` is the handler's own task.

        Raises:
            ValueError: the author gave a key that another question of this call has.
        """
        if key is None:
            prefix = f"{kind}-{self._branch(own)}"
            self._counted[prefix] += 1
            key = f"{prefix}{self._counted[prefix]}"
        if key in self._keys:
            raise ValueError(f"the key {key!r} names another question of this call already")
        self._keys.add(key)
        return key

    def _branch(self, own: asyncio.Task[Any] | None) -> str:
        """Return what tells the questions of this task from others; nothing for the handler."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return ""  # on a thread
        if task is None or task is own or own is None:
            return ""
        return f"{self._branches.setdefault(task, len(self._branches) + 1)}."

    @contextmanager
    def paused(self, context: Context) -> Iterator[None]:
        """Stop the handler's clock while the client has something to answer."""
        limit, now = context._limit, asyncio.get_running_loop().time
        if limit is not None and context.deadline is not None:
            self._left = context.deadline - now()
            context.deadline = None
            limit.reschedule(None)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if limit is not None and not self._open and not limit.expired():
                context.deadline = now() + self._left
                limit.reschedule(context.deadline)

    def stop(self) -> None:
        """Stop what threads of the handler wait for: nobody wants its outcome any more."""
        for each in list(self.waits):
            each.cancel()


class Ending(Protocol):
    """How a run ends that could not get all its answers."""

    is_over: bool

    def ending(self) -> Any:
        """Return what the request is answered: a result, or an `ErrorObject`."""
        ...

"""What is particular about one run of a handler; most runs have nothing of the kind.

A handler that asks, that is run again with answers, or that goes on as a task after its
request was answered, has a `HandlerRun`. It says where its questions go, where what it reports
goes, and who gets its outcome. A call that does none of that never makes one.

The rules that live here, and only here:

* A key names one question of a call. Where the author gives none it is the kind of question
  and its number among those of its kind, counted in the order they are put; those of a task
  that the handler has begun are counted by themselves, because how tasks take turns is not
  the same when answers are there already. Two such tasks cannot ask the same without keys:
  nobody could say whose answer is whose.
* The time that a client takes to answer is not the handler's.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec import Raw, Struct
from msgspec.json import Encoder

if TYPE_CHECKING:
    from ..context import Context

__all__ = [
    "Asker",
    "HandlerRun",
    "InputQuestion",
    "QuestionName",
    "SuspendHandler",
    "handler_run_of",
]

# In hexadecimal digits: enough that nobody finds two questions with one digest by accident.
_DIGEST_HEX_DIGITS: Final = 24

_sorted: Final = Encoder(order="sorted")
# Of all courses: several threads of one handler may put questions.
_lock: Final = threading.Lock()


class SuspendHandler(BaseException):
    """Ends a handler whose questions have gone out; it will be run again with the answers.

    No Exception, so that a handler that catches those does not catch this.
    """


class QuestionName(NamedTuple):
    """What a question goes by."""

    key: str
    # Which of the handler's own tasks has put it without a key of its author's; "" for others.
    branch: str = ""


class InputQuestion(Struct, frozen=True):
    """One question of one handler."""

    key: str
    method: str
    # As they are on the wire: `ElicitRequestParams` and its like.
    params: Any
    # How long its answer may take, where the client is asked while the handler waits.
    timeout: float | None = None
    # See `QuestionName`.
    branch: str = ""

    def digest(self) -> str:
        """Return what tells whether it is still the same question in another run."""
        import hashlib  # here: it takes its time to load, and few servers ask

        return hashlib.sha256(_sorted.encode([self.method, self.params])).hexdigest()[
            :_DIGEST_HEX_DIGITS
        ]


class Asker(Protocol):
    """Where the questions of a running handler go."""

    async def ask(self, question: InputQuestion) -> Raw:
        """Return what the client answered, unread."""
        ...

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Return what `work` gave, now or when the handler ran before."""
        ...


class HandlerRun:
    """One run: where its questions, its reports and its outcome go."""

    __slots__ = (
        "_alike",
        "_branches",
        "_counted",
        "_keys",
        "_left",
        "_open",
        "asker",
        "become",
        "begin",
        "heard",
        "is_done",
        "on_end",
        "outlet",
        "round",
        "waits",
    )

    def __init__(self) -> None:
        self.asker: Asker | None = None
        # What a request that asks inside its result is answered, if it comes to that.
        self.round: RoundTripState | None = None
        # Where progress and log lines go, in place of the request that is open.
        self.outlet: Callable[[str, Any], object] | None = None
        # Gets the outcome, in place of the client.
        self.on_end: Callable[[Any], object] | None = None
        # How the call goes on as a task, where it may; says whether it is one then.
        self.become: Callable[[], Awaitable[bool]] | None = None
        # Awaited before the handler is called.
        self.begin: Callable[[Context], Awaitable[object]] | None = None
        # So many of its reports the client has heard, when the handler ran before.
        self.heard = 0
        # What the handler waits for, on threads and in tasks of its own; to be stopped with it.
        self.waits: set[asyncio.Future[Any]] = set()
        # Whether the request was answered, or nobody wants an answer any more.
        self.is_done = False
        self._counted: Counter[str] = Counter()
        # Tasks of the handler's own that ask, in the order they began to.
        self._branches: dict[asyncio.Task[Any], int] = {}
        # Which of them has put a question, by its digest.
        self._alike: dict[str, str] = {}
        self._keys: set[str] = set()
        # How many questions the client has before it, and the time that is left meanwhile.
        self._open = 0
        self._left = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the handler was ended because its questions have to go out."""
        return self.round is not None and self.round.is_over

    def name(
        self, kind: str, key: str | None, own: asyncio.Task[Any] | None = None
    ) -> QuestionName:
        """Return what the next question of a kind goes by; `own` is the handler's own task.

        Raises:
            ValueError: the author gave a key that another question of this call has.
        """
        with _lock:
            if key is not None:
                if key in self._keys:
                    text = f"the key {key!r} names another question of this call already"
                    raise ValueError(text)
                self._keys.add(key)
                return QuestionName(key)
            branch = self._branch(own)
            prefix = f"{kind}-{branch}"
            while True:
                self._counted[prefix] += 1
                key = f"{prefix}{self._counted[prefix]}"
                if key not in self._keys:  # or its author has used it
                    self._keys.add(key)
                    return QuestionName(key, branch)

    def check_unambiguous(self, question: InputQuestion) -> None:
        """Refuse a question that another task of the handler has put as well.

        Raises:
            ValueError: it was; both need keys.
        """
        if question.branch and self._alike.setdefault(question.digest(), question.branch) != (
            question.branch
        ):
            raise ValueError(
                "two tasks of this call ask the same question, and nobody could tell whose answer "
                "is whose: give each a key"
            )

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
            # Unless the handler has ended meanwhile, and this is a task that it left behind.
            if limit is not None and not self._open and context._limit is limit:
                context.deadline = now() + self._left
                limit.reschedule(context.deadline)

    def stop(self) -> None:
        """Stop what the handler waits for: nobody wants its outcome any more."""
        for each in list(self.waits):
            each.cancel()

    def end(self) -> None:
        """Withdraw what the handler has left open: its request is done with."""
        self.is_done = True
        self.stop()
        if self.round is not None:
            self.round.end()


def handler_run_of(context: Context) -> HandlerRun:
    """Return the run of a run, made now if it had none."""
    if context._run is None:
        with _lock:
            if context._run is None:
                context._run = HandlerRun()
    return context._run


class RoundTripState(Protocol):
    """How a run ends that could not get all its answers."""

    is_over: bool

    def ending(self) -> Any:
        """Return what the request is answered: a result, or an `ErrorObject`."""
        ...

    def end(self) -> None:
        """Be done with: the handler has ended."""
        ...

    async def give_way(self) -> None:
        """End who calls this if questions are to go out; otherwise return at once."""
        ...

    def known(self, question: InputQuestion) -> Raw | None:
        """Return what the client has answered to a question, in an earlier run."""
        ...

    def done(self, key: str) -> Raw | None:
        """Return what `once` gave under a key, in this run or an earlier one."""
        ...

"""State of one run of a handler that elicits, samples, is resumed or becomes a task.

A `HandlerRun` says where the handler's requests to the client, its reports and its outcome go.
Other calls do not have one.

The rules that live here, and only here:

* A key identifies one question of a call. By default it is the kind of question and its number
  among those of its kind, in order. Questions of an asyncio task that the handler started are
  counted separately, because tasks interleave differently when answers are known already. Two
  such tasks cannot ask the same question without keys: the answers would be ambiguous.
* The timeout of a handler is paused while the client answers.
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

from ..jsonrpc.messages import Shown, shown_tuple

if TYPE_CHECKING:
    from .request import HandledRequest

__all__ = [
    "Asker",
    "HandlerRun",
    "InputQuestion",
    "QuestionName",
    "SuspendHandler",
    "handler_run_of",
]

# 96 bits: two questions do not have the same digest by accident.
_DIGEST_HEX_DIGITS: Final = 24

_sorted: Final = Encoder(order="sorted")
# Shared by all runs: several threads of one handler may ask questions.
_lock: Final = threading.Lock()


class SuspendHandler(BaseException):
    """Ends a handler whose questions were sent; it is run again with the answers.

    Not an Exception, so that handlers do not catch it by accident.
    """


class QuestionName(NamedTuple):
    """The key of a question."""

    key: str
    # The asyncio task of the handler that asked without an explicit key; "" for others.
    branch: str = ""
    # Whether the handler gave the key.
    is_given: bool = False

    def __repr__(self) -> str:
        return shown_tuple(self)


class InputQuestion(Shown, Struct, frozen=True):
    """One request of a handler to the client."""

    key: str
    method: str
    # Wire types, such as `ElicitMiddlewareParams`.
    params: Any
    # In seconds, if the client is asked while the handler waits.
    timeout: float | None = None
    # See `QuestionName`.
    branch: str = ""
    # Raises ValueError for a decoded result that does not fit the question.
    check: Any = None
    # Whether the handler gave the key: such a key names the question in any call.
    has_given_key: bool = False

    def digest(self) -> str:
        """Return a digest that is equal for the same question in another run."""
        import hashlib  # here: slow to load, and few servers ask

        return hashlib.sha256(_sorted.encode([self.method, self.params])).hexdigest()[
            :_DIGEST_HEX_DIGITS
        ]


class Asker(Protocol):
    """Sends the questions of a running handler to the client."""

    async def ask(self, question: InputQuestion) -> Raw:
        """Return the raw answer of the client."""

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Return what `work` returned, now or in an earlier run."""


class HandlerRun:
    """One run of a handler: where its questions, its reports and its outcome go."""

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
        "is_allowed",
        "is_done",
        "on_end",
        "outlet",
        "params",
        "progress",
        "round",
        "waits",
    )

    def __init__(self) -> None:
        self.asker: Asker | None = None
        # The round trip, in revisions that ask inside results.
        self.round: RoundTripState | None = None
        # Gets progress and log notifications, in place of the client.
        self.outlet: Callable[[str, Any], object] | None = None
        # Gets progress too, if the call may be a task that shows it as its status message.
        self.progress: ProgressReports | None = None
        # Gets the outcome, in place of the client.
        self.on_end: Callable[[Any], object] | None = None
        # Makes the call a task, if it may be one; returns True if it is one then.
        self.become: Callable[[], Awaitable[bool]] | None = None
        # Awaited before the handler is called.
        self.begin: Callable[[HandledRequest], Awaitable[object]] | None = None
        # Whether no check of access has to be awaited first.
        self.is_allowed = True
        # The params of the request, for the middleware of the server.
        self.params: Any = None
        # Reports that were sent in earlier runs.
        self.heard = 0
        # What the handler waits for, on threads and in tasks; cancelled with it.
        self.waits: set[asyncio.Future[Any]] = set()
        # Whether the request was answered or cancelled.
        self.is_done = False
        self._counted: Counter[str] = Counter()
        # Asyncio tasks of the handler that ask, in the order of their first question.
        self._branches: dict[asyncio.Task[Any], int] = {}
        # By digest of a question, the task that asked it.
        self._alike: dict[str, str] = {}
        self._keys: set[str] = set()
        # Open questions, and the seconds left of the timeout meanwhile.
        self._open = 0
        self._left = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the handler was suspended to send its questions."""
        return self.round is not None and self.round.is_over

    def name(
        self, kind: str, key: str | None, own: asyncio.Task[Any] | None = None
    ) -> QuestionName:
        """Return the key of the next question of a kind; `own` is the handler's own task.

        Raises:
            ValueError: another question of this call has the key.
        """
        with _lock:
            if key is not None:
                if key in self._keys:
                    text = f"another question of this call has the key {key!r} already"
                    raise ValueError(text)
                self._keys.add(key)
                return QuestionName(key, is_given=True)
            branch = self._branch(own)
            prefix = f"{kind}-{branch}"
            while True:
                self._counted[prefix] += 1
                key = f"{prefix}{self._counted[prefix]}"
                if key not in self._keys:  # or it was given explicitly
                    self._keys.add(key)
                    return QuestionName(key, branch)

    def check_unambiguous(self, question: InputQuestion) -> None:
        """Raise ValueError if another task of the handler asked the same question."""
        if question.branch and self._alike.setdefault(question.digest(), question.branch) != (
            question.branch
        ):
            raise ValueError(
                "two tasks of this call ask the same question, and the answers would be "
                "ambiguous: give each a key"
            )

    def _branch(self, own: asyncio.Task[Any] | None) -> str:
        """Return the prefix of keys in this asyncio task; "" for the handler itself."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return ""  # on a thread
        if task is None or task is own or own is None:
            return ""
        return f"{self._branches.setdefault(task, len(self._branches) + 1)}."

    @contextmanager
    def paused(self, request: HandledRequest) -> Iterator[None]:
        """Pause the timeout of the handler while the client answers."""
        limit, now = request.limit, asyncio.get_running_loop().time
        deadline = None if limit is None else limit.when()
        if limit is not None and deadline is not None:
            self._left = deadline - now()
            limit.reschedule(None)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            # Unless the handler has ended, and this is a task that it left behind.
            if limit is not None and not self._open and request.limit is limit:
                limit.reschedule(now() + self._left)

    def stop(self) -> None:
        """Cancel what the handler waits for."""
        for each in list(self.waits):
            each.cancel()

    def end(self) -> None:
        """Cancel what the handler left open, after its request was answered."""
        self.is_done = True
        self.stop()
        if self.round is not None:
            self.round.end()


def handler_run_of(request: HandledRequest) -> HandlerRun:
    """Return the `HandlerRun` of a call, made now if it had none."""
    if request.run is None:
        with _lock:
            if request.run is None:
                request.run = HandlerRun()
    return request.run


class ProgressReports(Protocol):
    """The progress of a call that may be a task."""

    def report(self, progress: float, total: float | None, message: str | None) -> bool:
        """Take a report, on any thread; return True if the call is a task."""


class RoundTripState(Protocol):
    """The round trip of a run, in revisions that ask inside results."""

    is_over: bool

    def ending(self) -> Any:
        """Return the answer to the request: a result, or an `ErrorObject`."""

    def end(self) -> None:
        """Clean up after the handler has ended."""

    async def give_way(self) -> None:
        """Suspend the caller if questions are to be sent; otherwise return at once."""

    def known(self, question: InputQuestion) -> Raw | None:
        """Return the answer to a question from an earlier run."""

    def done(self, key: str) -> Raw | None:
        """Return what `once` returned for a key, in this run or an earlier one."""

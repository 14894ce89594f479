"""How one call becomes a task: at once, after a moment, or when its handler says so.

What is done about it is in `tasks.py`; here is who may want it, how often, and what happens
where it cannot be.

The rules that live here, and only here:

* A call becomes a task once, however many want it; all of them learn of it.
* One that cannot be a task just now goes on as it was, unless it has to be a task.
* Where questions wait to go out with the round, they go first: the call that brings their
  answers becomes the task.
* A call that is to be a task soon is one from its first question on, so that whether its
  handler is run again does not depend on how quick it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Raw

from ...errors import RequestAborted, RequestError
from ..dispatch.handler_run import Asker, SuspendHandler, course_of

if TYPE_CHECKING:
    from ..client_requests.multi_round_trip import RoundTrips
    from ..context import Context
    from ..dispatch.handler_run import Question
    from .lifecycle import Tasks

__all__ = ["DeferredTaskAsker", "TaskStart"]


class TaskStart:
    """One call that may become a task."""

    __slots__ = ("_begun", "_context", "_must", "_tasks", "_ttl")

    def __init__(
        self, tasks: Tasks, context: Context, *, must: bool, ttl: float | None = None
    ) -> None:
        self._tasks = tasks
        self._context = context
        # Whether it is refused if it cannot be one.
        self._must = must
        self._ttl = ttl
        # While it becomes one.
        self._begun: asyncio.Task[None] | None = None

    async def __call__(self) -> bool:
        """Make the call a task, if it can be one; say whether it is one now.

        Raises:
            RequestError: it has to be one, and cannot; the call goes on if this is caught.
            RequestAborted: the call has ended.
            RoundOver: it ends with its round, and comes again.
        """
        course = course_of(self._context)
        if course.on_end is not None:
            return True
        try:
            await asyncio.shield(self._begin())
        except RequestError:
            if self._must:
                raise
            return False
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if course.is_done and (task is None or not task.cancelling()):
                # The handler has ended, and left what wanted this behind.
                text = "the call has ended"
                raise RequestAborted(text, method=self._context.method) from None
            raise
        return True

    def _begin(self) -> asyncio.Task[None]:
        if self._begun is None:
            waits = course_of(self._context).waits
            begun = self._tasks.track(self._tasks.begin(self._context, ttl=self._ttl))
            self._begun = begun
            waits.add(begun)  # it ends with the call
            begun.add_done_callback(waits.discard)
            begun.add_done_callback(self._over)
        return self._begun

    def _over(self, begun: asyncio.Task[None]) -> None:
        self._begun = None  # what could not be may be tried again
        if not begun.cancelled():
            begun.exception()  # maybe nobody waits for it any more

    def after_a_moment(self) -> None:
        """Make the call a task now that its moment has passed, if it is still at work."""
        context = self._context
        connection = context._connection
        is_at_work = connection.jobs.at_work.get(context._asked) is context
        # A client that says nothing more can have no use for a task.
        if is_at_work and connection.hears and not context.cancelled:
            self._tasks.spawn(self._try())

    async def _try(self) -> None:
        try:
            await self()
        except (RequestError, RequestAborted, SuspendHandler):
            pass  # it goes on, or has ended, as it was


class DeferredTaskAsker:
    """Asks for a call that is to be a task soon: the first question makes it one.

    Where it cannot be, questions are asked as those of any call.
    """

    __slots__ = ("_context", "_otherwise", "_rounds", "_start")

    def __init__(self, start: TaskStart, context: Context, rounds: RoundTrips) -> None:
        self._start = start
        self._context = context
        self._rounds = rounds
        # What asks where it cannot be a task.
        self._otherwise: Asker | None = None

    async def ask(self, question: Question) -> Raw:
        """Return what the client answered, unread."""
        course = course_of(self._context)
        if not await self._start() and course.asker is self:
            course.asker = self._round()
        asker = course.asker
        assert asker is not None  # that of the task, or of the round
        return await asker.ask(question)

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Do it, and keep what it gave: this may come to a round."""
        return await self._round().once(key, work)

    def _round(self) -> Asker:
        if self._otherwise is None:
            self._otherwise = self._rounds.begin(self._context, course_of(self._context))
        return self._otherwise

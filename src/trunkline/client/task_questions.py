"""What a task asks of its caller, and the answers.

Since 2026-07-28 a task that needs something says so when it is asked how it stands, and is told
the answers by a request. Meanwhile it is asked about as before: a user may think for an hour.

The rules that live here, and only here:

* Each question of a task has a key of its own for as long as the task lives, and is answered
  once.                                                                         [SEP-2663]
* What is asked together is answered together: the questions that one look brings go by one
  request, once all have an answer. A server need not take some of them without the others.
  What a later look brings is answered by a later request, and waits for no earlier one.
* There is no place for an error among the answers. What went wrong is for whoever waits for the
  task, once it is known that it has not ended all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ..errors import RequestEnded, TrunklineError
from ..mcp.types import UpdateTaskRequestParams
from .failures import report
from .questions import Question
from .rounds import Asking, fulfil

if TYPE_CHECKING:
    from .changes import ChangeVerbs
    from .session import Session

__all__ = ["TaskQuestions"]

# How many questions a task may ask in its life. A server invents the keys, and we remember them
# all; nobody answers so many.
MOST_QUESTIONS: Final = 1000
# How many looks have their questions answered at a time. Each answers a few of them side by side,
# and all together have no more handlers at work than a client has threads.
_LOOKS: Final = 6


class TaskQuestions:
    """The questions of one task."""

    __slots__ = ("_answering", "_asked", "_id", "_on_news", "_timeout", "_turns", "_verbs", "fault")

    def __init__(
        self, verbs: ChangeVerbs, id: str, timeout: float | None, on_news: Callable[[], None]
    ) -> None:
        # What went wrong with the first that could not be answered.
        self.fault: TrunklineError | None = None
        self._verbs = verbs
        self._id = id
        self._timeout = timeout
        # Called when those of a look were answered, or could not be.
        self._on_news = on_news
        # Every key there was.
        self._asked: set[str] = set()
        self._answering: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(_LOOKS)

    def take(self, requests: Mapping[str, Asking], session: Session) -> None:
        """Begin to answer what was not asked before."""
        new = {key: asking for key, asking in requests.items() if key not in self._asked}
        if not new:
            return
        if len(self._asked) + len(new) > MOST_QUESTIONS:
            reason = f"the task asked {MOST_QUESTIONS} questions, and goes on"
            self._fail(RequestEnded(reason, method="tools/call"))
            return
        self._asked.update(new)
        task = self._verbs._keep_task(self._answer(new, session))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    def stop(self) -> None:
        """Answer nothing any more: the task has ended, or nobody waits for it."""
        for task in list(self._answering):
            task.cancel()

    async def _answer(self, requests: Mapping[str, Asking], session: Session) -> None:
        try:
            async with self._turns:
                answers = await fulfil(session, requests, "tools/call")
                fields = {"task_id": self._id, "input_responses": answers}
                method = "tasks/update"
                question = Question(method, UpdateTaskRequestParams, fields, self._timeout)
                await self._verbs._ask(question)
        except TrunklineError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001  # whoever waits must not wait for good
            report(error, "answering a task")
            reason = "a question of the task could not be answered"
            self._fail(RequestEnded(reason, method="tools/call"))
        else:
            self._on_news()

    def _fail(self, error: TrunklineError) -> None:
        if self.fault is None:
            self.fault = error
        self._on_news()

"""What a task asks of its caller, and the answers.

Since 2026-07-28 a task that needs something says so when it is asked how it stands, and is told
the answers by a request. Meanwhile it is asked about as before: a user may think for an hour.

The rules that live here, and only here:

* Each question of a task has a key of its own for as long as the task lives, and is answered
  once.                                                                         [SEP-2663]
* What is asked together is answered together: the questions that one look brings go by one
  request, once all have an answer. A server need not take some of them without the others.
  What a later look brings is answered by a later request, and waits for no earlier one.
* An answer that could not be brought is brought again, and nobody is asked a second time for
  it. Where it cannot be brought at all the question counts as not asked: whoever looks at the
  task later is asked again.
* There is no place for an error among the answers. What went wrong is for whoever waits for the
  task, once it is known that it has not ended all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...errors import PeerError, RequestAborted, RequestTimeout, TrunklineError
from ...mcp.types import UpdateTaskRequestParams
from ..diagnostics import report
from ..requests.request import OutgoingRequest
from ..server_requests.input_required import InputRequest, fulfil
from .retry import RetryPolicy

if TYPE_CHECKING:
    from ..session import Session
    from ..subscriptions.stream import ChangeVerbs

__all__ = ["TaskInputRequests"]

# How many questions a task may ask in its life. A server invents the keys, and we remember them
# all; nobody answers so many.
MOST_QUESTIONS: Final = 1000
# How many looks have their questions answered at a time. Each answers a few of them side by side,
# and all together have no more handlers at work than a client has threads.
_LOOKS: Final = 6


class TaskInputRequests:
    """The questions of one task."""

    __slots__ = (
        "_asked",
        "_fault",
        "_handlers",
        "_id",
        "_on_news",
        "_on_thinking",
        "_turns",
        "_verbs",
        "timeout",
    )

    def __init__(
        self,
        verbs: ChangeVerbs,
        id: str,
        timeout: float | None,
        on_news: Callable[[], None],
        on_thinking: Callable[[bool], None],
    ) -> None:
        # How long a request may take that brings answers.
        self.timeout = timeout
        # What went wrong with the first that could not be answered, until somebody is told.
        self._fault: TrunklineError | None = None
        self._verbs = verbs
        self._id = id
        # Called when those of a look were answered, or could not be.
        self._on_news = on_news
        # Called when the questions of a look begin to wait for somebody, and when they no
        # longer do.
        self._on_thinking = on_thinking
        # Every key there was.
        self._asked: set[str] = set()
        self._handlers: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(_LOOKS)

    def take(self, requests: Mapping[str, InputRequest], session: Session) -> None:
        """Begin to answer what was not asked before."""
        new = {key: asking for key, asking in requests.items() if key not in self._asked}
        if not new:
            return
        if len(self._asked) + len(new) > MOST_QUESTIONS:
            reason = f"the task asked {MOST_QUESTIONS} questions, and goes on"
            self._fail(RequestAborted(reason, method="tools/call"))
            return
        self._asked.update(new)
        task = self._verbs._keep_task(self._answer(new, session))
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)

    def take_fault(self) -> TrunklineError | None:
        """Return what went wrong, for one who is told of it; others find out for themselves."""
        fault, self._fault = self._fault, None
        return fault

    def stop(self) -> None:
        """Answer nothing any more: the task has ended, or nobody waits for it."""
        for task in list(self._handlers):
            task.cancel()

    async def _answer(self, requests: Mapping[str, InputRequest], session: Session) -> None:
        try:
            async with self._turns:
                answers = await self._thought(requests, session)
                await self._bring(answers)
        except TrunklineError as error:
            self._asked.difference_update(requests)
            self._fail(error)
        except Exception as error:  # noqa: BLE001  # whoever waits must not wait for good
            report(error, "answering a task")
            self._asked.difference_update(requests)
            reason = "a question of the task could not be answered"
            self._fail(RequestAborted(reason, method="tools/call"))
        else:
            self._on_news()

    async def _thought(
        self, requests: Mapping[str, InputRequest], session: Session
    ) -> dict[str, Any]:
        self._on_thinking(True)
        try:
            return await fulfil(session, requests, "tools/call")
        finally:
            self._on_thinking(False)

    async def _bring(self, answers: dict[str, Any]) -> None:
        """Give the server its answers; more than once where it stumbles."""
        fields = {"task_id": self._id, "input_responses": answers}
        retry = RetryPolicy()
        was_lost = False
        while True:
            request = OutgoingRequest("tasks/update", UpdateTaskRequestParams, fields, self.timeout)
            try:
                await self._verbs._ask(request)
            except (PeerError, RequestTimeout) as error:
                respite = retry.next_delay(error)
                if respite is None and was_lost and isinstance(error, PeerError):
                    # It may have taken them when it said nothing; if not, it asks on.
                    self._asked.difference_update(answers)
                    return
                if respite is None:
                    raise
                was_lost = was_lost or isinstance(error, RequestTimeout)
            else:
                return
            await asyncio.sleep(respite)

    def _fail(self, error: TrunklineError) -> None:
        if self._fault is None:
            self._fault = error
        self._on_news()

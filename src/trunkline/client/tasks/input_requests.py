"""Input requests of a task, and the answers to them.

Since 2026-07-28 a task that needs input lists its requests in `tasks/get`, and receives the
answers by `tasks/update`. The task is polled meanwhile: a user may take an hour.

The rules that live here, and only here:

* Each input request has a key that is unique for the lifetime of the task, and is answered once.
                                                                                [SEP-2663]
* All requests of one poll are answered by one `tasks/update`, once all have an answer: a server
  need not accept a part of them. Requests of a later poll do not wait for earlier ones.
* If `tasks/update` fails transiently it is repeated with the same answers. If it fails for good
  the requests count as unanswered, and are handled again at a later poll.
* `tasks/update` has no place for an error. A failure is raised by `TaskHandle.result`, unless the
  task has ended in the meantime.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...errors import PeerError, RequestAborted, RequestTimeout, TrunklineError
from ...mcp.types import UpdateTaskRequestParams
from ..server_requests.input_required import InputRequest, fulfil
from ..session.diagnostics import report
from ..session.request import OutgoingRequest
from .retry import RetryPolicy

if TYPE_CHECKING:
    from ..requests.sender import RequestSender
    from ..session.session import Session

__all__ = ["TaskInputRequests"]

# The server chooses the keys, and all are remembered; no user answers this many.
MAX_INPUT_REQUESTS: Final = 1000
# The requests of this many polls are answered at a time. Each runs up to 16 handlers, and together
# they stay below the number of handler threads.
_MAX_POLLS_ANSWERED: Final = 6


class TaskInputRequests:
    """The input requests of one task."""

    __slots__ = (
        "_answering",
        "_error",
        "_id",
        "_keys",
        "_on_change",
        "_on_pause",
        "_sender",
        "_slots",
        "timeout",
    )

    def __init__(
        self,
        sender: RequestSender,
        id: str,
        timeout: float | None,
        on_change: Callable[[], None],
        on_pause: Callable[[bool], None],
    ) -> None:
        # The timeout of `tasks/update`.
        self.timeout = timeout
        # The first failure, until it is raised.
        self._error: TrunklineError | None = None
        self._sender = sender
        self._id = id
        # Called when the requests of a poll were answered, or could not be.
        self._on_change = on_change
        # Called with True when handlers begin to answer, and with False when they are done.
        self._on_pause = on_pause
        self._keys: set[str] = set()
        self._answering: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_MAX_POLLS_ANSWERED)

    def take(self, requests: Mapping[str, InputRequest], session: Session) -> None:
        """Start to answer the requests whose keys are new."""
        new = {key: request for key, request in requests.items() if key not in self._keys}
        if not new:
            return
        if len(self._keys) + len(new) > MAX_INPUT_REQUESTS:
            reason = f"the task sent more than {MAX_INPUT_REQUESTS} input requests"
            self._fail(RequestAborted(reason, method="tools/call"))
            return
        self._keys.update(new)
        task = self._sender.in_background(self._answer(new, session))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    def take_error(self) -> TrunklineError | None:
        """Return the failure, once."""
        error, self._error = self._error, None
        return error

    def stop(self) -> None:
        """Stop all handlers: the task has ended, or its caller has left."""
        for task in list(self._answering):
            task.cancel()

    async def _answer(self, requests: Mapping[str, InputRequest], session: Session) -> None:
        try:
            async with self._slots:
                self._on_pause(True)
                try:
                    answers = await fulfil(session, requests, "tools/call")
                finally:
                    self._on_pause(False)
                await self._send(answers)
        except TrunklineError as error:
            self._keys.difference_update(requests)
            self._fail(error)
        except Exception as error:  # noqa: BLE001  # the waiting caller needs an outcome
            report(error, "answering a task")
            self._keys.difference_update(requests)
            reason = "an input request of the task could not be answered"
            self._fail(RequestAborted(reason, method="tools/call"))
        else:
            self._on_change()

    async def _send(self, answers: dict[str, Any]) -> None:
        """Send the answers, again after transient errors."""
        fields = {"task_id": self._id, "input_responses": answers}
        retry = RetryPolicy()
        has_timed_out = False
        while True:
            request = OutgoingRequest("tasks/update", UpdateTaskRequestParams, fields, self.timeout)
            try:
                await self._sender.ask(request)
            except (PeerError, RequestTimeout) as error:
                delay = retry.next_delay(error)
                if delay is None and has_timed_out and isinstance(error, PeerError):
                    # The server may have accepted the attempt that timed out; if not, it lists
                    # the requests again.
                    self._keys.difference_update(answers)
                    return
                if delay is None:
                    raise
                has_timed_out = has_timed_out or isinstance(error, RequestTimeout)
            else:
                return
            await asyncio.sleep(delay)

    def _fail(self, error: TrunklineError) -> None:
        if self._error is None:
            self._error = error
        self._on_change()

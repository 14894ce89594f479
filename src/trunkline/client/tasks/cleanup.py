"""Requests that are sent on the way out, and whose answer nobody waits for.

Whoever leaves has no use for the answer, and may have been cancelled, so there is no time to
wait for one. Where it cannot be sent the connection is at its end. A subscription ends with it;
a task does not, and of one that nobody else knows a connection that we close tells the server
with its last words. One that breaks leaves it to the server, which keeps no task for ever.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ...errors import ConnectionLost, LocalProtocolError, TrunklineError
from ...mcp.types import CancelTaskRequestParams
from ...redaction import show
from ..diagnostics import log

if TYPE_CHECKING:
    from ..session import Session

__all__ = ["end_task_of", "send_unawaited"]

CANCEL: Final = "tasks/cancel"


def send_unawaited(session: Session, method: str, kind: type[Struct], **fields: Any) -> None:
    """Send a request, and go on."""
    try:
        pending = session.send(method, kind(meta=session.meta, **fields))
    except (ConnectionLost, LocalProtocolError) as error:
        log.debug("%s was not sent: %s", method, show(str(error)))
        return
    pending.waiter.add_done_callback(_answered)


def end_task_of(session: Session, raw: Any) -> None:
    """End the task that a call became, where that is what its answer says and nobody waits."""
    # Imported here: that module needs this one.
    from ..requests.decode import result_type
    from .methods import TASK
    from .poller import ENDED, created

    if CANCEL not in session.methods or (session.is_per_request and result_type(raw) != TASK):
        return
    try:
        state = created(raw, session)
    except TrunklineError as error:
        log.debug("an answer that nobody waited for: %s", show(str(error)))
        return
    if state is not None and state.status not in ENDED:
        send_unawaited(session, CANCEL, CancelTaskRequestParams, task_id=state.task_id)


def _answered(waiter: asyncio.Future[Any]) -> None:
    """Look at an answer, so that nobody is told of an error that no one waits for."""
    error = None if waiter.cancelled() else waiter.exception()
    if isinstance(error, TrunklineError) and not isinstance(error, ConnectionLost):
        log.debug("an answer that nobody waited for: %s", show(str(error)))

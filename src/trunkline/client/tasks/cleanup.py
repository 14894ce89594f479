"""Requests whose reply is not awaited: they release something on the server.

The caller has left, or was cancelled, so there is no time to wait. If the request cannot be sent
the connection is at its end. A subscription ends with its connection, but a task does not:
`Session.closing_requests` cancel the tasks that only this client knows. After a lost connection
the server's `ttl` ends them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ...errors import ConnectionLost, LocalProtocolError, TrunklineError
from ...mcp.types import CancelTaskRequestParams
from ...redaction import show
from ..session.diagnostics import log

if TYPE_CHECKING:
    from ..session.session import Session

__all__ = ["cancel_late_task", "send_unawaited"]

CANCEL: Final = "tasks/cancel"


def send_unawaited(session: Session, method: str, kind: type[Struct], **fields: Any) -> None:
    """Send a request; an error reply is logged."""
    try:
        pending = session.send(method, kind(meta=session.meta, **fields))
    except (ConnectionLost, LocalProtocolError) as error:
        log.debug("%s was not sent: %s", method, show(str(error)))
        return
    pending.waiter.add_done_callback(_log_error)


def cancel_late_task(session: Session, raw: Any) -> None:
    """Cancel the task that a call became, if the caller had left before the reply arrived."""
    # Imported here: these modules import this one.
    from ..session.decode import result_type
    from .methods import TASK
    from .poller import ENDED, created

    if CANCEL not in session.methods or (session.is_per_request and result_type(raw) != TASK):
        return
    try:
        state = created(raw, session)
    except TrunklineError as error:
        log.debug("late reply to tools/call: %s", show(str(error)))
        return
    if state is not None and state.status not in ENDED:
        send_unawaited(session, CANCEL, CancelTaskRequestParams, task_id=state.task_id)


def _log_error(waiter: asyncio.Future[Any]) -> None:
    error = None if waiter.cancelled() else waiter.exception()
    if isinstance(error, TrunklineError) and not isinstance(error, ConnectionLost):
        log.debug("error reply to a request that was not awaited: %s", show(str(error)))

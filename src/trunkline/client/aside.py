"""Requests that are sent on the way out, and whose answer nobody waits for.

Whoever leaves has no use for the answer, and may have been cancelled, so there is no time to
wait for one. Where it cannot be sent the connection is at its end, and with it what was to be
ended by the request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..errors import ConnectionLost, LocalProtocolError, TrunklineError
from ..redaction import show
from .failures import log

if TYPE_CHECKING:
    from .session import Session

__all__ = ["send_aside"]


def send_aside(session: Session, method: str, kind: type[Struct], **fields: Any) -> None:
    """Send a request, and go on."""
    try:
        pending = session.send(method, kind(meta=session.meta, **fields))
    except (ConnectionLost, LocalProtocolError) as error:
        log.debug("%s was not sent: %s", method, show(str(error)))
        return
    pending.waiter.add_done_callback(_answered)


def _answered(waiter: asyncio.Future[Any]) -> None:
    """Look at an answer, so that nobody is told of an error that no one waits for."""
    error = None if waiter.cancelled() else waiter.exception()
    if isinstance(error, TrunklineError) and not isinstance(error, ConnectionLost):
        log.debug("an answer that nobody waited for: %s", show(str(error)))

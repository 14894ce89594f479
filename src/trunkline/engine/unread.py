"""Answers that a client has not read: weighed, and watched for progress.

An answer leaves the budget of its request when the transport has it. From then on it is weighed
here, with the rest of what the transport has not written yet, until the client takes it.

The rules that live here, and only here:

* A connection is closed for not reading only if more than a quarter of its budget is unread and
  the client has taken none of it for `ServerLimits.unread_timeout` seconds. A client that reads
  slowly is not closed.
* While more than the whole budget is unread, the server does not read from the client either. A
  transport that cannot pause is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..errors import TransportError
from ..transports.base import HIGH_WATER

if TYPE_CHECKING:
    from ..accounts.budget import ByteBudget
    from ..jsonrpc.peer.peer import Peer
    from ..transports.base import Transport
    from .runtime import ServerRuntime

__all__ = ["WEIGHED_BYTES", "UnreadAnswers"]

# Less than this is not weighed: an answer is written at the end of the tick that made it, and
# most are gone before they could be weighed. What 1000 connections may hold unweighed is 64 MiB.
WEIGHED_BYTES: Final = 64 * 1024
# Seconds between two looks at a connection with unread answers.
_CHECK_INTERVAL_S: Final = 1.0
# Looks within `unread_timeout`, at least: the end is at most a quarter late.
_CHECKS_PER_TIMEOUT: Final = 4


class UnreadAnswers:
    """What one client has not read of what it was sent."""

    __slots__ = (
        "_bound",
        "_budget",
        "_end",
        "_interval",
        "_is_closed",
        "_is_paused",
        "_loop",
        "_peer",
        "_runtime",
        "_since",
        "_timer",
        "_transport",
        "_written",
        "bytes",
        "is_over",
    )

    def __init__(
        self,
        runtime: ServerRuntime,
        budget: ByteBudget,
        peer: Peer,
        transport: Transport,
        end: Callable[[TransportError], object],
    ) -> None:
        self._runtime = runtime
        self._budget = budget
        self._peer = peer
        self._transport = transport
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._bound = budget.limit // 4
        timeout = runtime.limits.unread_timeout
        self._interval = min(_CHECK_INTERVAL_S, timeout / _CHECKS_PER_TIMEOUT)
        self._timer: asyncio.TimerHandle | None = None
        # Bytes that the transport had written when the client last took some, and when that was.
        self._written = 0
        self._since = 0.0
        self._is_paused = False
        self._is_closed = False
        # What was weighed, and whether that alone exceeds the budget.
        self.bytes = 0
        self.is_over = False

    def weigh(self) -> None:
        """Weigh what is unread now; pause the input, or close, if it exceeds the budget."""
        if self._is_closed:
            return
        transport, budget = self._transport, self._budget
        backlog = transport.backlog
        size = backlog + self._peer.batched_bytes
        if size <= WEIGHED_BYTES:
            size = 0
        budget.charge(size - self.bytes)
        self.bytes = size
        self.is_over = size > budget.limit
        if size and self._timer is None:
            self._written, self._since = transport.written, self._loop.time()
            self._timer = self._loop.call_later(self._interval, self._check)
        # Above HIGH_WATER only: the transport then reports when it has drained.
        if backlog > budget.limit and backlog > HIGH_WATER and not self._is_paused:
            self._pause()

    def drained(self) -> None:
        """Read from the client again, since it has read most of what it was sent."""
        self.weigh()
        if self._is_paused:
            self._is_paused = False
            getattr(self._transport, "resume")()  # noqa: B009  # a transport need not have it

    def close(self) -> None:
        """Stop to weigh and to watch, because the connection has ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._budget.release(self.bytes)
        self.bytes, self._is_closed = 0, True

    def _pause(self) -> None:
        pause = getattr(self._transport, "pause", None)
        if pause is None:
            self._runtime.counters.closed_unread += 1
            self._end(TransportError("the client sends requests and does not read the answers"))
            return
        self._is_paused = True
        pause()

    def _check(self) -> None:
        now, written = self._loop.time(), self._transport.written
        timeout = self._runtime.limits.unread_timeout
        if written != self._written or self._transport.backlog <= self._bound:
            self._written, self._since = written, now
        elif now - self._since >= timeout:
            self._runtime.counters.closed_unread += 1
            text = f"the client has not read any of {self.bytes} bytes for {timeout:g} s"
            self._end(TransportError(text))
            return
        self.weigh()
        self._timer = self._loop.call_later(self._interval, self._check) if self.bytes else None

"""How long calls may take, and who hears of their progress.

The deadlines of all calls share one timer, which is set when an earlier one than all others
comes along and otherwise left to find out for itself. Most calls are like any other and have
nothing here; of those that are not, a `RequestWatch` holds what is particular.

The rules that live here, and only here:

* Progress gives a request its time again, up to a maximum.  [MCP 2025-11-25, basic/lifecycle]
* A token is sent only where somebody listens, and is that of one call.
* While a request of the server waits for a user of ours the clock of all calls stands still:
  nobody can tell which of them the server asks for. In all it stands for as long as the longest
  call may take, however often the server asks, and has that time again once no call is awaited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from math import inf

from ...jsonrpc.messages import RequestId
from ...jsonrpc.outgoing import Pending
from ...jsonrpc.peer import Peer
from ..options import check_seconds
from .request import OnProgress, OutgoingRequest

__all__ = ["RequestTimeouts", "RequestWatch"]


class RequestWatch:
    """What is particular about one call: its time, its progress."""

    __slots__ = ("cap", "lasts", "on_progress", "pending", "seconds", "token")

    def __init__(self, seconds: float, on_progress: OnProgress | None) -> None:
        self.seconds = seconds
        self.on_progress = on_progress
        self.cap = inf
        self.token: int | None = None
        self.pending: Pending | None = None
        # Whether progress is told beyond the answer.
        self.lasts = False


class RequestTimeouts:
    """The deadlines of one connection. `on_late` is told of a call that has none left, and why."""

    __slots__ = (
        "_left",
        "_let_go",
        "_loop",
        "_lost",
        "_max_timeout",
        "_new_token",
        "_on_late",
        "_on_progress",
        "_peer",
        "_since",
        "_wake",
        "timeout",
        "tokens",
        "wake_at",
        "watches",
    )

    def __init__(
        self,
        peer: Peer,
        *,
        timeout: float,
        max_timeout: float,
        on_progress: OnProgress | None,
        on_late: Callable[[Pending, str], object],
    ) -> None:
        # What a call may take that is like any other.
        self.timeout = min(timeout, max_timeout)
        # When the timer goes off.
        self.wake_at = inf
        self.watches: dict[RequestId, RequestWatch] = {}
        self.tokens: dict[int | str, RequestWatch] = {}
        self._max_timeout = max_timeout
        self._on_progress = on_progress
        self._on_late = on_late
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._wake: asyncio.TimerHandle | None = None
        self._new_token = count(1)
        # Since when the clock stands still, what makes it go on, and how long it has stood.
        self._since: float | None = None
        self._let_go: asyncio.TimerHandle | None = None
        self._lost = 0.0
        # How long it may stand yet, for as long as any call is awaited.
        self._left = max_timeout

    def now(self) -> float:
        """Return the time that calls are measured by."""
        return (self._loop.time() if self._since is None else self._since) - self._lost

    def begin(self) -> float:
        """Return the time at which a call begins that is about to be sent."""
        if not len(self._peer.outgoing):
            is_held = self._since is not None
            self.go_on()
            self._left = self._max_timeout
            if is_held:  # so far it stood for nobody
                self.hold()
        return self.now()

    def hold(self) -> None:
        """Stop the clock, unless it has stood for too long already: somebody thinks."""
        if not len(self._peer.outgoing):
            self._left = self._max_timeout
        if self._since is None and self._left > 0:
            self._since = self._loop.time()
            # Neither a user who never answers may keep calls for good, nor a server that asks
            # again and again.
            self._let_go = self._loop.call_later(self._left, self.go_on)

    def go_on(self) -> None:
        """Let the clock go on; every call has as much time left as it had."""
        if self._since is None:
            return
        if self._let_go is not None:
            self._let_go.cancel()
        stood = self._loop.time() - self._since
        self._lost += stood
        self._left -= stood
        self._since = None
        when = self._peer.next_deadline()
        if when is not None and when < inf:
            self.arm(when)

    def watch(self, request: OutgoingRequest) -> RequestWatch | None:
        """Return what a call needs that is not like any other.

        Raises:
            ValueError: its time is none.
        """
        timeout, on_progress = request.timeout, request.on_progress or self._on_progress
        if timeout is None and on_progress is None:
            return None
        if timeout is not None:
            check_seconds("timeout", timeout)
        seconds = self.timeout if timeout is None else min(timeout, self._max_timeout)
        watch = RequestWatch(seconds, on_progress)
        if on_progress is not None:
            watch.token = next(self._new_token)
            self.tokens[watch.token] = watch
        return watch

    def keep(self, watch: RequestWatch, pending: Pending) -> None:
        """Take note of which request a watch is about."""
        if pending.waiter.done():  # answered before it was even sent, as it were
            self.forget(watch)
        else:
            watch.pending = pending
            watch.cap = self.now() + self._max_timeout
            self.watches[pending.id] = watch

    def end(self, pending: Pending) -> RequestWatch | None:
        """Stop watching a request; return what was particular about it."""
        watch = self.watches.pop(pending.id, None)
        if watch is not None and not watch.lasts:
            self.forget(watch)
        return watch

    def outlive(self, pending: Pending) -> RequestWatch | None:
        """Have progress told until `forget`: a task goes on under the token of its request."""
        watch = self.watches.get(pending.id)
        if watch is not None:
            watch.lasts = True
        return watch

    def forget(self, watch: RequestWatch | None) -> None:
        """Give up a watch, whose request may never have been sent."""
        if watch is not None and watch.token is not None:
            self.tokens.pop(watch.token, None)

    def progressed(self, token: int | str) -> OnProgress | None:
        """Give a call its time again; return who is to hear of it, if anybody is."""
        watch = self.tokens.get(token)
        if watch is None:
            return None  # of a call that has ended, or of none
        if watch.pending is not None:
            self.set_deadline(watch.pending, min(self.now() + watch.seconds, watch.cap))
        return watch.on_progress

    def set_deadline(self, pending: Pending, when: float) -> None:
        """Have a request end by another time than it had."""
        if self._peer.outgoing.set_deadline(pending, when) and when < self.wake_at:
            self.arm(when)

    def arm(self, when: float) -> None:
        """Look for what has run out of time by then; nothing does before."""
        if self._wake is not None:
            self._wake.cancel()
        self.wake_at = when
        self._wake = self._loop.call_at(when + self._lost, self._expire)

    def stop(self) -> None:
        """Forget everything: nothing is awaited any more."""
        for timer in (self._wake, self._let_go):
            if timer is not None:
                timer.cancel()
        self.watches.clear()
        self.tokens.clear()

    def _expire(self) -> None:
        self._wake, self.wake_at = None, inf
        if self._since is not None:
            return  # looked for again when the clock goes on
        now = self.now()
        for pending in self._peer.expire(now)[0]:
            self._on_late(pending, self._reason(self.end(pending), now))
        when = self._peer.next_deadline()
        if when is not None and when < inf:
            self.arm(when)

    def _reason(self, watch: RequestWatch | None, now: float) -> str:
        if watch is not None and watch.cap <= now:
            return f"no answer within {self._max_timeout:g} s, which is the most there is"
        return f"no answer within {self.timeout if watch is None else watch.seconds:g} s"

"""Request timeouts of one session, and the progress callbacks of its requests.

All deadlines share one timer. It is set again only for an earlier deadline; a later one is found
when the timer expires. Only a request with a timeout or a progress callback of its own has a
`RequestWatch`.

The rules that live here, and only here:

* Progress restarts the timeout of a request, up to `max_timeout`. [MCP 2025-11-25, basic/lifecycle]
* A progress token is sent only if there is a callback, and belongs to one request.
* All request timeouts are paused while a user answers a request of the server, since it cannot be
  known which request it belongs to: for at most `max_timeout` in total, counted again once no
  request is pending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from math import inf

from ...jsonrpc.messages import RequestId
from ...jsonrpc.peer.outgoing import Pending
from ...jsonrpc.peer.peer import Peer
from ...mcp.types import PaginatedRequestParams
from .options import check_seconds
from .request import OnProgress, OutgoingRequest

__all__ = ["PausableClock", "RequestTimeouts", "RequestWatch"]


class PausableClock:
    """`clock` without the time it was paused, of which at most `max_pause_s` count in total."""

    __slots__ = ("_clock", "_max_pause_s", "_paused_at", "paused_s", "remaining_pause_s")

    def __init__(self, clock: Callable[[], float], max_pause_s: float) -> None:
        self._clock = clock
        self._max_pause_s = max_pause_s
        self._paused_at: float | None = None
        # The total of all pauses that have ended, and how much more may be paused.
        self.paused_s = 0.0
        self.remaining_pause_s = max_pause_s

    @property
    def is_paused(self) -> bool:
        """Whether `pause` was called, and `resume` was not."""
        return self._paused_at is not None

    def now(self) -> float:
        """Return the time in seconds; it does not change while the clock is paused."""
        return self._clock() - self.paused_s - self._current_pause()

    def pause(self) -> None:
        """Stop the clock, unless it is stopped."""
        if self._paused_at is None:
            self._paused_at = self._clock()

    def resume(self) -> None:
        """Start the clock again, unless it runs."""
        pause = self._current_pause()
        self.paused_s += pause
        self.remaining_pause_s -= pause
        self._paused_at = None

    def reset_limit(self) -> None:
        """Allow the whole `max_pause_s` again, counted from now."""
        if self._paused_at is not None:
            self.resume()
            self.pause()
        self.remaining_pause_s = self._max_pause_s

    def _current_pause(self) -> float:
        if self._paused_at is None:
            return 0.0
        return min(self._clock() - self._paused_at, self.remaining_pause_s)


class RequestWatch:
    """The timeout and the progress callback of one request."""

    __slots__ = ("cap", "keeps_progress", "on_progress", "pending", "seconds", "token")

    def __init__(self, seconds: float, on_progress: OnProgress | None) -> None:
        self.seconds = seconds
        self.on_progress = on_progress
        # The latest deadline that progress may set.
        self.cap = inf
        self.token: int | None = None
        self.pending: Pending | None = None
        # Whether progress is reported beyond the reply.
        self.keeps_progress = False


class RequestTimeouts:
    """The deadlines of one session; `on_timeout` is called with a late request and the reason."""

    __slots__ = (
        "_clock",
        "_list_timeout",
        "_loop",
        "_max_timeout",
        "_new_token",
        "_on_progress",
        "_on_timeout",
        "_peer",
        "_resume",
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
        on_timeout: Callable[[Pending, str], object],
        list_timeout: float | None = None,
    ) -> None:
        # The timeout of a request without one of its own.
        self.timeout = min(timeout, max_timeout)
        # When the timer expires.
        self.wake_at = inf
        self.watches: dict[RequestId, RequestWatch] = {}
        self.tokens: dict[int | str, RequestWatch] = {}
        # The same for a page of a list; None is `timeout`.
        self._list_timeout = list_timeout
        self._max_timeout = max_timeout
        self._on_progress = on_progress
        self._on_timeout = on_timeout
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._clock = PausableClock(self._loop.time, max_timeout)
        self._wake: asyncio.TimerHandle | None = None
        self._resume: asyncio.TimerHandle | None = None
        self._new_token = count(1)

    def now(self) -> float:
        """Return the time by which requests are measured."""
        return self._clock.now()

    def begin(self) -> float:
        """Return the time at which a request begins that is about to be sent."""
        if not len(self._peer.outgoing):
            is_paused = self._clock.is_paused
            self.resume()
            self._clock.reset_limit()
            if is_paused:  # so far it was paused for no request
                self.pause()
        return self._clock.now()

    def pause(self) -> None:
        """Pause all timeouts, as long as the total allows it."""
        clock = self._clock
        if not len(self._peer.outgoing):
            clock.reset_limit()
        if not clock.is_paused and clock.remaining_pause_s > 0:
            clock.pause()
            # A user who never answers, or a server that asks again and again, must not keep
            # requests for ever.
            self._resume = self._loop.call_later(clock.remaining_pause_s, self.resume)

    def resume(self) -> None:
        """Continue all timeouts; every request has as much time left as before the pause."""
        if not self._clock.is_paused:
            return
        if self._resume is not None:
            self._resume.cancel()
        self._clock.resume()
        self._arm_next()

    def watch(self, request: OutgoingRequest) -> RequestWatch | None:
        """Return a watch for a request with a timeout or callback of its own, else None.

        Raises:
            ValueError: its timeout is not above 0.
        """
        timeout, on_progress = request.timeout, request.on_progress or self._on_progress
        if timeout is None and request.kind is PaginatedRequestParams:
            timeout = self._list_timeout
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
        """Attach a watch to the request that was sent."""
        if pending.waiter.done():  # the reply came while the request was being sent
            self.forget(watch)
        else:
            watch.pending = pending
            watch.cap = self.now() + self._max_timeout
            self.watches[pending.id] = watch

    def end(self, pending: Pending) -> RequestWatch | None:
        """Remove the watch of a request, and return it."""
        watch = self.watches.pop(pending.id, None)
        if watch is not None and not watch.keeps_progress:
            self.forget(watch)
        return watch

    def keep_progress(self, pending: Pending) -> RequestWatch | None:
        """Report progress until `forget`: a task continues under the token of its request."""
        watch = self.watches.get(pending.id)
        if watch is not None:
            watch.keeps_progress = True
        return watch

    def forget(self, watch: RequestWatch | None) -> None:
        """Remove the token of a watch, whose request may never have been sent."""
        if watch is not None and watch.token is not None:
            self.tokens.pop(watch.token, None)

    def progressed(self, token: int | str) -> OnProgress | None:
        """Restart the timeout of a request; return its progress callback, if any."""
        watch = self.tokens.get(token)
        if watch is None:
            return None  # the request has ended, or never existed
        if watch.pending is not None:
            self.set_deadline(watch.pending, min(self.now() + watch.seconds, watch.cap))
        return watch.on_progress

    def set_deadline(self, pending: Pending, when: float) -> None:
        """Change the deadline of a request."""
        if self._peer.outgoing.set_deadline(pending, when) and when < self.wake_at:
            self.arm(when)

    def arm(self, when: float) -> None:
        """Set the timer to `when`, the earliest deadline."""
        if self._wake is not None:
            self._wake.cancel()
        self.wake_at = when
        self._wake = self._loop.call_at(when + self._clock.paused_s, self._expire)

    def stop(self) -> None:
        """Cancel all timers, and forget all watches."""
        for timer in (self._wake, self._resume):
            if timer is not None:
                timer.cancel()
        self.watches.clear()
        self.tokens.clear()

    def _arm_next(self) -> None:
        when = self._peer.next_deadline()
        if when is not None and when < inf:
            self.arm(when)

    def _expire(self) -> None:
        self._wake, self.wake_at = None, inf
        if self._clock.is_paused:
            return  # `resume` sets the timer again
        now = self.now()
        for pending in self._peer.expire(now)[0]:
            self._on_timeout(pending, self._reason(self.end(pending), now))
        self._arm_next()

    def _reason(self, watch: RequestWatch | None, now: float) -> str:
        if watch is not None and watch.cap <= now:
            return f"no answer within {self._max_timeout:g} s, the maximum"
        return f"no answer within {self.timeout if watch is None else watch.seconds:g} s"

"""The subscription of the client's callbacks, on one session of 2026-07-28.

Servers of the handshake revisions send notifications without a subscription. In 2026-07-28 the
client opens one: for the lists, if there is a callback for them, and for the resources of
`subscribe`. Its notifications go to the callbacks.

The rules that live here, and only here:

* When the topics change, a new subscription is acknowledged before the old one is closed: both
  may report a change, but none is missed.
* A subscription that the server ended, or whose stream was lost, is opened again, with exponential
  backoff from 0.5 s to 30 s, at most 8 times. Then each callback is called once: something may
  have changed in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from ...concurrency.backoff import backoff
from ...errors import (
    ConnectionLost,
    IdsExhausted,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    RequestAborted,
    RequestTimeout,
    TrunklineError,
)
from ...redaction import show
from ..session.diagnostics import log
from .dispatch import ListenStream, SubscriptionRouter, SubscriptionTopics

__all__ = ["CallbackSubscription"]

# Backoff between attempts, with jitter: a restarted server would otherwise get all of its clients
# at once.
FIRST_DELAY_S: Final = 0.5
MAX_DELAY_S: Final = 30.0
# About two minutes.
MAX_ATTEMPTS: Final = 8
# A subscription that was open this long resets the attempts.
STABLE_AFTER_S: Final = 60.0


class CallbackSubscription:
    """The topics of the callbacks, and the open subscription to them."""

    __slots__ = (
        "_attempts",
        "_delays",
        "_is_over",
        "_lock",
        "_opened_at",
        "_reopening",
        "_router",
        "_seconds",
        "_stream",
        "_wanted",
    )

    def __init__(self, router: SubscriptionRouter, seconds: float) -> None:
        self._router = router
        # The timeout of the acknowledgement when it is opened again.
        self._seconds = seconds
        self._wanted = SubscriptionTopics()
        self._stream: ListenStream | None = None
        # One change of the topics at a time.
        self._lock = asyncio.Lock()
        self._reopening: asyncio.Task[None] | None = None
        self._attempts = 0
        self._delays: Iterator[float] = iter(())
        self._opened_at = 0.0
        self._is_over = False

    async def begin(self, wanted: SubscriptionTopics, seconds: float) -> SubscriptionTopics:
        """Subscribe on a new session; return the acknowledged topics.

        A missing acknowledgement does not fail the connection: it is opened again later.

        Raises:
            PeerError: the server rejected it; it is not opened again.
            ConnectionLost: the connection is lost.
        """
        async with self._lock:
            self._wanted = wanted
            try:
                stream = await self._open(wanted, seconds)
            except (ConnectionLost, IdsExhausted, PeerError):
                raise
            except (RequestAborted, RemoteProtocolError) as error:
                self._reopen_later(error)
                return wanted
            self._use(stream)
            self._wanted = wanted._replace(uris=stream.honoured.uris)
            return stream.honoured

    async def add(self, uri: str, seconds: float) -> None:
        """Add a resource.

        Raises:
            LocalProtocolError: the server did not acknowledge it; nothing has changed.
            PeerError, RequestAborted, IdsExhausted: as `SubscriptionRouter.open`; no change.
        """
        async with self._lock:
            if uri in self._wanted.uris and self._stream is not None:
                return
            uris = dict.fromkeys((*self._wanted.uris, uri))
            stream = await self._open(self._wanted._replace(uris=tuple(uris)), seconds)
            if uri not in stream.honoured.uris:
                self._router.close(stream)
                raise LocalProtocolError(
                    "mcp.capability.negotiated-only",
                    where="/params/notifications/resourceSubscriptions",
                    got=uri,
                    expected="a resource in the acknowledgement of the server",
                )
            self._use(stream)

    async def remove(self, uri: str, seconds: float) -> None:
        """Remove a resource.

        Raises:
            PeerError, RequestAborted, IdsExhausted: as `SubscriptionRouter.open`; no change.
        """
        async with self._lock:
            uris = tuple(each for each in self._wanted.uris if each != uri)
            wanted = self._wanted._replace(uris=uris)
            if wanted == self._wanted:
                return
            if wanted.is_empty or self._stream is None:
                self._wanted = wanted
                self._close()
            else:
                self._use(await self._open(wanted, seconds))

    def stop(self) -> None:
        """Close the subscription: the session has ended, or was replaced."""
        self._is_over = True
        self._close()
        if self._reopening is not None:
            self._reopening.cancel()

    async def _open(self, wanted: SubscriptionTopics, seconds: float) -> ListenStream:
        opened: list[ListenStream] = []

        def ended(error: TrunklineError | None) -> None:
            if opened and self._stream is opened[0]:
                self._stream = None
                self._reopen_later(error)

        opened.append(await self._router.open(wanted, seconds, on_end=ended))
        return opened[0]

    def _use(self, stream: ListenStream) -> bool:
        """Use a new subscription in place of the one before; return False if it has ended."""
        self._close()
        if self._is_over:
            self._router.close(stream)
            return False
        self._wanted = stream.wanted
        if stream.has_ended:  # together with its acknowledgement
            self._reopen_later(stream.error)
            return False
        self._stream = stream
        self._opened_at = asyncio.get_running_loop().time()
        return True

    def _close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            self._router.close(stream)

    # -- opening it again --------------------------------------------------------------------

    def _reopen_later(self, error: TrunklineError | None) -> None:
        if self._is_over or self._router.is_over:
            return  # the next session subscribes again
        loop = asyncio.get_running_loop()
        is_stable = self._opened_at and loop.time() - self._opened_at >= STABLE_AFTER_S
        if is_stable or not self._attempts:
            self._attempts = 0
            self._delays = backoff(FIRST_DELAY_S, MAX_DELAY_S)
        if self._reopening is None or self._reopening.done():
            self._reopening = loop.create_task(self._reopen())

    async def _reopen(self) -> None:
        while self._attempts < MAX_ATTEMPTS:
            wait = next(self._delays)
            self._router.on_event("reconnect", f"the subscription to changes, in {wait:.2g} s")
            await asyncio.sleep(wait)
            self._attempts += 1
            async with self._lock:
                if self._stream is not None or self._is_over or self._wanted.is_empty:
                    return  # opened by another task, or there is no topic left
                try:
                    was_open = self._opened_at > 0
                    stream = await self._open(self._wanted, self._seconds)
                    if self._use(stream):
                        if was_open:
                            self._router.report_missed(stream.honoured)
                        return
                except IdsExhausted:
                    return  # as below
                except PeerError as error:
                    log.warning("subscription to changes rejected, giving up: %s", show(str(error)))
                    self._router.on_event("given-up", "the subscription to changes was refused")
                    return
                except (RequestTimeout, RequestAborted, RemoteProtocolError) as error:
                    if self._router.is_over:
                        return  # the next session subscribes again
                    log.debug("subscription to changes failed: %s", show(str(error)))
        self._router.on_event("given-up", "the subscription to changes cannot be opened")
        log.warning(
            "subscription to changes ended %d times, giving up: no more notifications", MAX_ATTEMPTS
        )

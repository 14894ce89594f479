"""The stream of changes that a client keeps for its callbacks, on one connection.

Revisions of the handshake tell a client of changes without being asked. In 2026-07-28 somebody
has to listen, so the client does: to the lists, if a callback was given for them, and to the
resources that were subscribed to. What comes goes to the callbacks by the usual way.

The rules that live here, and only here:

* When other things are wanted a new stream is acknowledged first, and the old one left then:
  for a moment both tell, and nothing is missed in between.
* A stream that the server has ended is opened again, later each time and not for ever. What
  changed meanwhile is not told.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

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
from ..diagnostics import log
from .dispatch import ListenStream, SubscriptionRouter, SubscriptionTopics

__all__ = ["CallbackSubscription"]

# Seconds before the first try to open a stream again, and at most. Each wait is about twice the
# one before; a server that restarts would else be met by all of its clients at once.
FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 30.0
# So many tries take some two minutes. A server that ends every stream by then means it.
TRIES: Final = 8
# A stream that was open for so many seconds was a success, and tries are counted anew.
LASTING: Final = 60.0


class CallbackSubscription:
    """What a client listens to for its callbacks."""

    __slots__ = (
        "_again",
        "_is_over",
        "_opened_at",
        "_seconds",
        "_stream",
        "_streams",
        "_tries",
        "_turn",
        "_wanted",
    )

    def __init__(self, streams: SubscriptionRouter, seconds: float) -> None:
        self._streams = streams
        # How long the server may take to acknowledge a stream that is opened again.
        self._seconds = seconds
        self._wanted = SubscriptionTopics()
        self._stream: ListenStream | None = None
        # One change of what is wanted at a time.
        self._turn = asyncio.Lock()
        self._again: asyncio.Task[None] | None = None
        self._tries = 0
        self._opened_at = 0.0
        self._is_over = False

    async def begin(self, wanted: SubscriptionTopics, seconds: float) -> SubscriptionTopics:
        """Listen on a new connection; return what is listened to.

        Where the server says nothing in time it is asked again later: that is no reason to
        have no connection.

        Raises:
            PeerError: it refused, and is not asked again.
            ConnectionLost: it is gone.
        """
        async with self._turn:
            self._wanted = wanted
            try:
                stream = await self._open(wanted, seconds)
            except (ConnectionLost, IdsExhausted, PeerError):
                raise
            except (RequestAborted, RemoteProtocolError) as error:
                self._try_again(error)
                return wanted
            self._use(stream)
            self._wanted = wanted._replace(uris=stream.honoured.uris)
            return stream.honoured

    async def add(self, uri: str, seconds: float) -> None:
        """Listen to one more resource.

        Raises:
            LocalProtocolError: the server does not tell of it; all is as it was.
            PeerError, RequestAborted, IdsExhausted: as `SubscriptionRouter.open`; all is as it was.
        """
        async with self._turn:
            if uri in self._wanted.uris and self._stream is not None:
                return
            uris = dict.fromkeys((*self._wanted.uris, uri))
            stream = await self._open(self._wanted._replace(uris=tuple(uris)), seconds)
            if uri not in stream.honoured.uris:
                self._streams.close(stream)
                raise LocalProtocolError(
                    "mcp.capability.negotiated-only",
                    where="/params/notifications/resourceSubscriptions",
                    got=uri,
                    expected="a resource that the server tells of: "
                    "it left this one out of its acknowledgement",
                )
            self._use(stream)

    async def remove(self, uri: str, seconds: float) -> None:
        """Listen to one resource less.

        Raises:
            PeerError, RequestAborted, IdsExhausted: as `SubscriptionRouter.open`; all is as it was.
        """
        async with self._turn:
            uris = tuple(each for each in self._wanted.uris if each != uri)
            wanted = self._wanted._replace(uris=uris)
            if wanted == self._wanted:
                return
            if wanted.is_empty or self._stream is None:
                self._wanted = wanted
                self._leave()
            else:
                self._use(await self._open(wanted, seconds))

    def stop(self) -> None:
        """Listen no more: the connection has ended, or another has taken over."""
        self._is_over = True
        self._leave()
        if self._again is not None:
            self._again.cancel()

    async def _open(self, wanted: SubscriptionTopics, seconds: float) -> ListenStream:
        opened: list[ListenStream] = []

        def ended(error: TrunklineError | None) -> None:
            if opened and self._stream is opened[0]:
                self._stream = None
                self._try_again(error)

        opened.append(await self._streams.open(wanted, seconds, on_end=ended))
        return opened[0]

    def _use(self, stream: ListenStream) -> bool:
        """Have a stream for the callbacks, in place of the one before; say whether it is open."""
        self._leave()
        if self._is_over:
            self._streams.close(stream)
            return False
        self._wanted = stream.wanted
        if stream.has_ended:  # together with its acknowledgement
            self._try_again(stream.error)
            return False
        self._stream = stream
        self._opened_at = asyncio.get_running_loop().time()
        return True

    def _leave(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            self._streams.close(stream)

    # -- again -------------------------------------------------------------------------------

    def _try_again(self, error: TrunklineError | None) -> None:
        if self._is_over or isinstance(error, ConnectionLost):
            return
        loop = asyncio.get_running_loop()
        if self._opened_at and loop.time() - self._opened_at >= LASTING:
            self._tries = 0
        if self._again is None or self._again.done():
            self._again = loop.create_task(self._open_again())

    async def _open_again(self) -> None:
        while self._tries < TRIES:
            await asyncio.sleep(_wait(self._tries))
            self._tries += 1
            async with self._turn:
                if self._stream is not None or self._is_over or self._wanted.is_empty:
                    return  # somebody else was here first, or nothing is wanted any more
                try:
                    if self._use(await self._open(self._wanted, self._seconds)):
                        return
                except (ConnectionLost, IdsExhausted):
                    return  # whoever connects again listens again
                except PeerError as error:
                    log.warning("the server tells of no more changes: %s", show(str(error)))
                    return
                except (RequestTimeout, RequestAborted, RemoteProtocolError) as error:
                    log.debug("a stream of changes was not opened: %s", show(str(error)))
        log.warning("the server ended the stream of changes %d times: it is left at that", TRIES)


def _wait(tries: int) -> float:
    """Return how many seconds to wait before another try."""
    longest = min(FIRST_WAIT * 2.0**tries, LONGEST_WAIT)
    return longest * random.uniform(0.5, 1.0)  # spread, not secret

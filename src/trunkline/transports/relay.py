"""A relay between two transports: it forwards frames both ways.

    end = await Relay(source, target).run()

The source leads to a client, the target to its server. Frames are forwarded unchanged and not
parsed, each in the framing of its transport. `hear(sender, frame)` is called with each frame
before it is forwarded; the exceptions it raises are logged and change nothing.

The rules that live here, and only here:

* Frames are forwarded in order; none is added or left out. A frame that cannot be forwarded ends
  the relay: one that could not be read, or that the other framing cannot carry.
* Backpressure: a transport is paused while more than HIGH_WATER is to be written to the other.
  One without `pause` is not paused.
* When the client ends its input the server's input is ended, and its answers are still
  forwarded. When the server ends, the relay ends.
* What was forwarded is written before the end, for as long as the other side reads it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ..errors import LocalProtocolError, TransportError
from ..jsonrpc.framing.framing import BadHeader, Oversize
from .base import HIGH_WATER, ignore, log_raised

if TYPE_CHECKING:
    from .base import Frame, Transport

__all__ = ["Relay", "RelayEnd"]


Hear: TypeAlias = "Callable[[Literal['client', 'server'], Frame], object]"

# How long a server may take to end after its client is gone and its input has ended.
_SERVER_END_TIMEOUT_S: Final = 5.0
# How often a client that has ended its input is checked for still reading the answers.
_POLL_INTERVAL_S: Final = 1.0


class RelayEnd(NamedTuple):
    """The side that ended first, and the error, if any.

    It is `"relay"` if a frame could not be forwarded.
    """

    by: Literal["source", "target", "relay"]
    error: TransportError | None = None

    def __repr__(self) -> str:
        from ..jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)


class Relay:
    """Forwards frames between a client's transport and its server's; neither is connected yet.

    `linger` is an idle timeout in seconds: for a server that sends nothing after the client has
    ended its input, and for a client that reads nothing of the last answers. None waits without
    a limit, as a pipe does.
    """

    def __init__(
        self,
        source: Transport,
        target: Transport,
        *,
        hear: Hear | None = None,
        linger: float | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._hear = hear
        self._has_failed = False  # `hear` has, and that was logged: once is enough
        self._linger = linger
        # Frames of a client whose server is not connected yet; None once it is.
        self._early: list[Frame] | None = []
        self._late = 0.0  # time of the last answer after the client has ended its input
        # Made by `run`: how each side has ended, and what could not be forwarded.
        self._source_end: asyncio.Future[TransportError | None]
        self._target_end: asyncio.Future[TransportError | None]
        self._spoilt: asyncio.Future[TransportError]

    async def run(self) -> RelayEnd:
        """Connect both sides, forward frames until one ends, and close both.

        When cancelled it closes both, the server first, and still forwards what the server sends.

        Raises:
            TransportError: one side cannot be connected; neither is left open.
        """
        loop = asyncio.get_running_loop()
        self._source_end, self._target_end = loop.create_future(), loop.create_future()
        self._spoilt = loop.create_future()
        source, target = self._source, self._target
        source.on_error = lambda error: _settle(self._source_end, error)
        target.on_error = lambda error: _settle(self._target_end, error)
        source.on_message = self._keep
        target.on_message = self._forwarder("server", target, source)
        source.on_drained = getattr(target, "resume", ignore)
        target.on_drained = getattr(source, "resume", ignore)
        try:
            await source.connect()
            await target.connect()
            self._begin()
            return await self._wait_for_end()
        finally:
            try:
                await target.close()
            finally:
                await source.close()

    # Forwarding

    def _keep(self, frame: Frame, route: Any) -> None:
        """Keep what arrives before the server is connected, and stop reading."""
        if self._early is not None:
            self._early.append(frame)
        getattr(self._source, "pause", ignore)()

    def _begin(self) -> None:
        early, self._early = self._early or [], None
        self._source.on_message = forward = self._forwarder("client", self._source, self._target)
        for frame in early:
            forward(frame, None)
        if self._target.backlog <= HIGH_WATER:
            getattr(self._source, "resume", ignore)()

    def _forwarder(
        self, sender: Literal["client", "server"], here: Transport, there: Transport
    ) -> Callable[[Frame, Any], None]:
        send, hear = there.send, self._observe if self._hear is not None else None
        pause: Callable[[], object] = getattr(here, "pause", ignore)

        def forward(frame: Frame, route: Any) -> None:
            if hear is not None:
                hear(sender, frame)
            if type(frame) is not bytes:
                self._spoil(here, f"the {sender} sent {_fault(frame)}")
                return
            try:
                send(frame)
            except LocalProtocolError as error:
                self._spoil(here, f"the {sender} sent what the other framing cannot carry: {error}")
                return
            if there.backlog > HIGH_WATER:
                pause()

        return forward

    def _observe(self, sender: Literal["client", "server"], frame: Frame) -> None:
        try:
            if self._hear is not None:
                self._hear(sender, frame)
        except Exception as error:  # noqa: BLE001  # a failed observer ends no connection
            if not self._has_failed:
                self._has_failed = True
                log_raised(error, "relay: hear raised; its further exceptions are not logged")

    def _spoil(self, here: Transport, why: str) -> None:
        # Later frames would follow a gap. The other direction goes on until the end.
        here.on_message = ignore
        _settle(self._spoilt, TransportError(why))

    # The end

    async def _wait_for_end(self) -> RelayEnd:
        ends = (self._source_end, self._target_end, self._spoilt)
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not self._target_end.done() and not self._spoilt.done():
            await self._finish_target()
        if self._spoilt.done():
            return RelayEnd("relay", self._spoilt.result())
        await self._finish_source()
        lost = self._target_end.result() if self._target_end.done() else None
        if self._source_end.done() and lost is None:
            return RelayEnd("source", self._source_end.result())
        return RelayEnd("target", lost)

    async def _finish_target(self) -> None:
        """End the server's input, and forward its answers until it ends."""
        finish = getattr(self._target, "finish", None)
        if finish is None:
            return  # it can only be closed
        loop = asyncio.get_running_loop()
        forward, self._late = self._target.on_message, loop.time()

        def forward_late(frame: Frame, route: Any) -> None:
            self._late = loop.time()
            forward(frame, route)

        self._target.on_message = forward_late
        finishing = loop.create_task(finish())
        try:
            gone_since: float | None = None
            while not self._target_end.done() and not self._spoilt.done():
                now = loop.time()
                if gone_since is None and not self._can_answer():
                    gone_since = now
                if gone_since is not None and now - gone_since > _SERVER_END_TIMEOUT_S:
                    return
                is_slow = self._source.backlog or self._target.backlog
                if self._linger is not None and not is_slow and now - self._late > self._linger:
                    return
                await asyncio.wait(
                    (self._target_end, self._spoilt),
                    timeout=_POLL_INTERVAL_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
        finally:
            finishing.cancel()

    def _can_answer(self) -> bool:
        """Return True if the client, which has ended its input, may still read answers."""
        source = self._source
        if self._source_end.result() is not None or not source.is_connected:
            return False
        # Polled: when a client is killed its input may end a moment before its output.
        is_abandoned: Callable[[], bool] = getattr(source, "is_abandoned", lambda: False)
        return not is_abandoned()

    async def _finish_source(self) -> None:
        """Wait until the client has read what was sent to it."""
        finish = getattr(self._source, "finish", None)
        if finish is None:
            return
        finishing = asyncio.get_running_loop().create_task(finish())
        try:
            while not finishing.done():
                before = self._source.backlog
                await asyncio.wait((finishing,), timeout=self._linger)
                if self._source.backlog == before:
                    return
        finally:
            finishing.cancel()


def _settle(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


def _fault(fault: object) -> str:
    if isinstance(fault, Oversize):
        size = "" if fault.size is None else f" of {fault.size} bytes"
        return f"a message{size}, over the limit of {fault.limit} bytes"
    if isinstance(fault, BadHeader):
        return "a header without a valid Content-Length"
    return "a truncated message"

"""Two transports joined: what arrives at one is sent by the other, both ways.

    ending = await Relay(source, target).run()

The source is where a client is, the target where its server is. Frames pass as they are, each
by the framing of the way it goes; what they say is read by nobody here. `hear(sender, frame)`
is called with each before it is passed on, and what it raises changes nothing.

The rules that live here, and only here:

* Order is kept, and nothing is made up or left out. A frame that cannot be passed on as it is
  ends the connection: one that could not be read, or that the other framing cannot carry.
* Whoever sends faster than the other side reads has to wait: a transport is not read from while
  more than HIGH_WATER is to be written to the other. One that cannot be paused is not.
* When the client has said all it has to say the server is told, and its answers still pass. When
  the server has, there is nothing left to wait for, and all ends.
* What was passed on is written before the end of it, for as long as somebody takes it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ..errors import LocalProtocolError, TransportError
from ..jsonrpc.framing import BadHeader, Oversize
from .base import HIGH_WATER, ignore

if TYPE_CHECKING:
    from .base import Frame, Transport

__all__ = ["Ending", "Relay"]

_log: Final = logging.getLogger("trunkline.transports")

Hear: TypeAlias = "Callable[[Literal['client', 'server'], Frame], object]"

# How long a server may take to end whose client is gone, once it was told, in seconds.
_PARTING: Final = 5.0
# How often it is looked whether a client that has said all is still there for the answers.
_LOOK_AGAIN: Final = 1.0


class Ending(NamedTuple):
    """How it ended: who was first, and what went wrong, if anything did.

    It is the relay itself that ends what it cannot pass on.
    """

    by: Literal["source", "target", "relay"]
    error: TransportError | None = None


class Relay:
    """A client's transport and its server's, to be joined once; neither is connected yet.

    `linger` is for how many seconds a server may say nothing while it still answers a client
    that has said all it has to say, and for how many a client may take nothing of the last
    that was sent to it. None waits for both, as a pipe does.
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
        # What came of a client before there was a server; None once there is.
        self._early: list[Frame] | None = []
        self._late = 0.0  # when the last answer came to a client that has said all
        # Made by `run`: how each has ended, and what could not be passed on.
        self._source_end: asyncio.Future[TransportError | None]
        self._target_end: asyncio.Future[TransportError | None]
        self._spoilt: asyncio.Future[TransportError]

    async def run(self) -> Ending:
        """Connect both, pass frames until it ends, and close both.

        Cancelled, it closes both in order, the server first: what that still says is passed on.

        Raises:
            TransportError: there is no connecting to one of them; neither is left open.
        """
        loop = asyncio.get_running_loop()
        self._source_end, self._target_end = loop.create_future(), loop.create_future()
        self._spoilt = loop.create_future()
        source, target = self._source, self._target
        source.on_error = lambda error: _settle(self._source_end, error)
        target.on_error = lambda error: _settle(self._target_end, error)
        source.on_message = self._keep
        target.on_message = self._passing("server", target, source)
        source.on_drained = getattr(target, "resume", ignore)
        target.on_drained = getattr(source, "resume", ignore)
        try:
            await source.connect()
            await target.connect()
            self._begin()
            return await self._until_the_end()
        finally:
            try:
                await target.close()
            finally:
                await source.close()

    # Passing on

    def _keep(self, frame: Frame, route: Any) -> None:
        """Keep what comes before there is a server; no more is read than had arrived."""
        if self._early is not None:
            self._early.append(frame)
        getattr(self._source, "pause", ignore)()

    def _begin(self) -> None:
        early, self._early = self._early or [], None
        self._source.on_message = pass_on = self._passing("client", self._source, self._target)
        for frame in early:
            pass_on(frame, None)
        if self._target.backlog <= HIGH_WATER:
            getattr(self._source, "resume", ignore)()

    def _passing(
        self, sender: Literal["client", "server"], here: Transport, there: Transport
    ) -> Callable[[Frame, Any], None]:
        """Return what hands frames on from one transport to the other."""
        send, hear = there.send, self._tell if self._hear is not None else None
        pause: Callable[[], object] = getattr(here, "pause", ignore)

        def pass_on(frame: Frame, route: Any) -> None:
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

        return pass_on

    def _tell(self, sender: Literal["client", "server"], frame: Frame) -> None:
        try:
            if self._hear is not None:
                self._hear(sender, frame)
        except Exception:  # noqa: BLE001  # a fault in listening changes no connection
            if not self._has_failed:
                self._has_failed = True
                _log.exception("hear raised; its further faults are not logged")

    def _spoil(self, here: Transport, why: str) -> None:
        # What comes behind it would not be what was sent. The other way goes on until the end.
        here.on_message = ignore
        _settle(self._spoilt, TransportError(why))

    # The end

    async def _until_the_end(self) -> Ending:
        ends = (self._source_end, self._target_end, self._spoilt)
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not self._target_end.done() and not self._spoilt.done():
            await self._let_answer()
        if self._spoilt.done():
            return Ending("relay", self._spoilt.result())
        await self._write_out()
        lost = self._target_end.result() if self._target_end.done() else None
        if self._source_end.done() and lost is None:
            return Ending("source", self._source_end.result())
        return Ending("target", lost)

    async def _let_answer(self) -> None:
        """Tell the server that nothing more comes, and let it answer what did."""
        finish = getattr(self._target, "finish", None)
        if finish is None:
            return  # it can only be closed
        loop = asyncio.get_running_loop()
        pass_on, self._late = self._target.on_message, loop.time()

        def pass_late(frame: Frame, route: Any) -> None:
            self._late = loop.time()
            pass_on(frame, route)

        self._target.on_message = pass_late
        finishing = loop.create_task(finish())
        try:
            gone_since: float | None = None
            while not self._target_end.done() and not self._spoilt.done():
                now = loop.time()
                if gone_since is None and not self._is_there():
                    gone_since = now
                if gone_since is not None and now - gone_since > _PARTING:
                    return
                is_slow = self._source.backlog or self._target.backlog
                if self._linger is not None and not is_slow and now - self._late > self._linger:
                    return
                await asyncio.wait(
                    (self._target_end, self._spoilt),
                    timeout=_LOOK_AGAIN,
                    return_when=asyncio.FIRST_COMPLETED,
                )
        finally:
            finishing.cancel()

    def _is_there(self) -> bool:
        """Say whether the client, which has said all, can still be sent something."""
        source = self._source
        if self._source_end.result() is not None or not source.is_connected:
            return False
        # Asked again and again: the input of one that is killed may end a moment before the rest.
        is_abandoned: Callable[[], bool] = getattr(source, "is_abandoned", lambda: False)
        return not is_abandoned()

    async def _write_out(self) -> None:
        """Wait until a client has taken what was sent to it."""
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
    """Return what was sent in the place of a frame that could not be read."""
    if isinstance(fault, Oversize):
        size = "" if fault.size is None else f" of {fault.size} bytes"
        return f"a message{size} where {fault.limit} bytes are the most"
    if isinstance(fault, BadHeader):
        return "a header that does not say how long its message is"
    return "a message that was cut short"

"""One run of `proxy`: clients and servers are joined, and it ends as they do.

The rules that live here, and only here:

* Whoever starts this in the place of a server notices no difference: messages, log, exit status
  and signals are those of the server. Standard output carries messages and nothing else.
* Every client has a server of its own. One whose server cannot be reached is let go, and the
  others go on.
* The log of a server is written through as it comes. Where nobody reads ours, what is more than
  is worth keeping is dropped, and the conversation goes on.
* A signal ends everything in order, a second one at once.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ...errors import TransportError
from ...jsonrpc.limits import Limits
from ...jsonrpc.policy import Policy
from ...transports.base import HIGH_WATER, ignore
from ...transports.io.thread import ThreadWriter
from ...transports.relay import Relay
from ...transports.stdio.client import Stdio
from ..exit_codes import INTERRUPTED, PROBLEMS_FOUND, SUCCESS, UNREACHABLE

if TYPE_CHECKING:
    from ...transports.addresses import Tcp, Unix
    from ...transports.base import Address, Transport
    from ...transports.sockets.connection import AcceptedSocket
    from ..recording import Recording
    from .observer import ProxyObserver

__all__ = ["join"]

# How long a server may take to leave once its input has ended, and again after SIGTERM. In all
# less than the two seconds after which a host that told us to end kills us.
_GRACE: Final = 0.75
# How long a server may be silent whose client has ended its input, and a client may take nothing
# of the last answers, in seconds: over a socket nobody tells who will never come back.
_LINGER: Final = 60.0
# How many clients there may be: each can cost a process.
_CLIENTS: Final = 256
# How long the end waits for whoever reads our log.
_LAST_WORDS: Final = 1.0


def join(
    options: argparse.Namespace,
    source: Tcp | Unix | None,
    target: Address,
    record: Recording | None,
) -> int:
    """Join clients of `source`, None being the standard streams, and servers of `target`."""
    return asyncio.run(_ProxyRun(options, source, target, record).run())


class _ProxyRun:
    """One run of the verb."""

    def __init__(
        self,
        options: argparse.Namespace,
        source: Tcp | Unix | None,
        target: Address,
        record: Recording | None,
    ) -> None:
        self._options = options
        self._source = source
        self._target = replace(target, grace=_GRACE) if isinstance(target, Stdio) else target
        self._record = record
        self._judges = bool(options.judge or options.fail)
        self._log: ThreadWriter | None = None
        self._heard: ProxyObserver | None = None
        self._status = SUCCESS
        self._signals: list[int] = []
        self._clients: set[asyncio.Task[None]] = set()
        self._count = 0

    async def run(self) -> int:
        """Do it, and return the exit status."""
        loop = asyncio.get_running_loop()
        if sys.stderr is not None:
            # Written by a thread: our loop waits for nobody who reads a log.
            self._log = ThreadWriter(loop, 2, ignore, ignore)
        self._heard = self._overhearing()
        work = self._pipe() if self._source is None else self._listen(self._source)
        try:
            await self._until_told(loop, work)
            if self._heard is not None and self._judges:
                self.say(self._heard.summary())
        finally:
            if self._log is not None:
                await self._log.finish(_LAST_WORDS)
                self._log.close()
        return self._exit()

    def _overhearing(self) -> ProxyObserver | None:
        """Return what hears the frames; nothing is looked at that nobody wants to know of."""
        if self._record is None and not self._judges:
            return None
        # Imported here: who forwards and no more starts sooner.
        from .observer import ProxyObserver

        return ProxyObserver(
            self.say, record=self._record, judges=self._judges, revision=self._options.revision
        )

    def _exit(self) -> int:
        if signal.SIGINT in self._signals:
            return INTERRUPTED
        errors = 0 if self._heard is None else self._heard.counts["error"]
        return (
            PROBLEMS_FOUND if self._options.fail and errors and not self._status else self._status
        )

    async def _until_told(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]
    ) -> None:
        """Work until that is done, or a signal comes."""
        task = loop.create_task(work)

        def on_signal(number: int) -> None:
            self._signals.append(number)
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # Whoever started us with nohup does not want to be told of that one.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, on_signal, number)
        try:
            await task
        except asyncio.CancelledError:
            if not self._signals:
                raise

    # What is said

    def say(self, text: str) -> None:
        """Say something to whoever runs this."""
        self._put(f"trunkline proxy: {text}\n".encode("utf-8", "backslashreplace"))

    def _put(self, data: bytes) -> None:
        if self._log is not None and self._log.backlog < HIGH_WATER:
            self._log.write(data)

    # One client

    def _policy(self, framing: Any) -> Policy:
        size = self._options.max_size
        return Policy(framing=framing, limits=Limits(stdio=size, tcp=size, unix=size))

    def _server(self) -> Transport:
        target = self._target.transport(self._policy(self._options.target_framing))
        if hasattr(target, "on_stderr"):
            target.on_stderr = self._put
        return target

    async def _join(
        self, source: Transport, target: Transport, number: int | None, linger: float | None
    ) -> TransportError | None:
        """Join two transports until they end; return what went wrong, if it was not the client."""
        ear = None
        if self._heard is not None:
            ear = self._heard.connection(number, source.name, target.name)
        hear = None if ear is None else ear.hear
        try:
            ending = await Relay(source, target, hear=hear, linger=linger).run()
        except TransportError as error:
            return error
        finally:
            if ear is not None:
                ear.end()
        return None if ending.by == "source" else ending.error

    async def _pipe(self) -> None:
        """Serve the client that started us."""
        # Imported here: who listens does not need it.
        from ...transports.stdio.server import StdioServer

        source = StdioServer(self._policy(self._options.source_framing))
        target = self._server()
        try:
            problem = await self._join(source, target, None, None)
        finally:
            # Also when we are told to end: the status of a server is ours.
            status = getattr(target, "exit_status", None)
            if status is not None:
                self._status = status if status >= 0 else 128 - status
        if problem is None:
            return
        if status is None or problem.exit_status is None:
            # It is not the server's end that ended it.
            self._status = UNREACHABLE
        if problem.exit_status is None or problem.exit_status < 0:
            self.say(problem.reason)

    # Many

    async def _listen(self, address: Tcp | Unix) -> None:
        """Serve whoever connects, until we are told to end."""
        # Imported here, as above.
        from ...transports.addresses import is_exposed
        from ...transports.sockets.listener import Listener

        policy = self._policy(self._options.source_framing)
        listener = Listener(address, policy, self._take)
        try:
            await listener.open()
            self.say(f"listening on {listener.address}")
            if is_exposed(listener.address):
                self.say("whoever reaches this address may use everything that the server offers")
            await asyncio.get_running_loop().create_future()
        except TransportError as error:
            self.say(error.reason)
            self._status = UNREACHABLE
        finally:
            listener.close()
            for task in self._clients:
                task.cancel()
            if self._clients:
                await asyncio.wait(self._clients)

    def _take(self, source: AcceptedSocket) -> None:
        if len(self._clients) >= _CLIENTS:
            self.say(f"a client was sent away: there are {_CLIENTS}")
            source.discard()
            return
        self._count += 1
        task = asyncio.get_running_loop().create_task(self._serve(source, self._count))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, source: AcceptedSocket, number: int) -> None:
        try:
            problem = await self._join(source, self._server(), number, _LINGER)
        finally:
            source.discard()  # if it was never connected
        if problem is not None and problem.exit_status != 0:
            status = problem.exit_status
            how = f" with status {status}" if status is not None and status > 0 else ""
            self.say(f"connection {number}: {problem.reason}{how}")

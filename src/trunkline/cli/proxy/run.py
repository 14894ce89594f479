"""One run of `proxy`: forwards messages between clients and servers until they end.

The rules that live here, and only here:

* On stdio the proxy looks like the server: messages, stderr, exit status and signals are the
  server's. Standard output carries messages and nothing else.
* Each client gets a server of its own. If that cannot be reached, the client is disconnected and
  the others continue.
* The stderr of a server is forwarded as it comes; at a terminal, control characters in it are
  escaped. If our own stderr is not read, what exceeds the buffer is dropped; messages are not held
  up.
* A signal closes all connections; a second one cancels that.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Coroutine
from dataclasses import replace
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from ...concurrency.signal_handlers import handle_signals
from ...errors import TransportError, visible
from ...jsonrpc.limits import Limits
from ...jsonrpc.policy import Policy
from ...transports.addresses import Http
from ...transports.base import HIGH_WATER, ignore
from ...transports.io.thread import ThreadWriter
from ...transports.relay import Relay
from ...transports.stdio.client import Stdio
from ..exit_codes import INTERRUPTED, PROBLEMS_FOUND, SUCCESS, UNREACHABLE, USAGE_ERROR
from ..output.terminal import is_terminal

if TYPE_CHECKING:
    from ...transports.addresses import Tcp, Unix
    from ...transports.base import Address, Frame, Transport
    from ...transports.http.request import HttpRequest
    from ...transports.sockets.connection import AcceptedSocket
    from ..recording import Recording
    from .http_source import SourceConnection
    from .observer import ConnectionObserver, ProxyObserver, Side

__all__ = ["join"]

# For a server to exit after its input has ended, and again after SIGTERM. Together less than the
# 2 s after which hosts kill a process they asked to end.
_EXIT_TIMEOUT_S: Final = 0.75
# For a server to stay silent after its client has ended its input, and for a client to read none
# of the last answers: a socket does not show that the other side is gone.
_LINGER_S: Final = 60.0
# Each client can cost a process.
_MAX_CLIENTS: Final = 256
# For the last large messages to be recorded and judged after a signal.
_OBSERVER_TIMEOUT_S: Final = 0.5
# For the last lines of our stderr to be read.
_LOG_FLUSH_TIMEOUT_S: Final = 1.0


def join(
    options: argparse.Namespace,
    source: Http | Tcp | Unix | None,
    target: Address,
    record: Recording | None,
) -> int:
    """Forward between clients of `source`, None for the standard streams, and `target`."""
    return asyncio.run(_ProxyRun(options, source, target, record).run())


class _ProxyRun:
    def __init__(
        self,
        options: argparse.Namespace,
        source: Http | Tcp | Unix | None,
        target: Address,
        record: Recording | None,
    ) -> None:
        self._options = options
        self._source = source
        self._target = (
            replace(target, grace=_EXIT_TIMEOUT_S) if isinstance(target, Stdio) else target
        )
        self._record = record
        self._judges = bool(options.judge or options.fail)
        self._log: ThreadWriter | None = None
        self._observer: ProxyObserver | None = None
        self._status = SUCCESS
        self._signals: list[int] = []
        self._clients: set[asyncio.Task[None]] = set()
        self._count = 0

    async def run(self) -> int:
        """Forward until the end, and return the exit status."""
        loop = asyncio.get_running_loop()
        if sys.stderr is not None:
            # Written by a thread: a stderr that is not read must not block the event loop.
            self._log = ThreadWriter(loop, 2, ignore, ignore)
        self._observer = self._make_observer()
        if isinstance(self._source, Http):
            work = self._listen_http(self._source)
        else:
            work = self._pipe() if self._source is None else self._listen(self._source)
        try:
            await self._run_until_signal(loop, work)
            await self._finish_observing(loop)
        finally:
            if self._log is not None:
                await self._log.finish(_LOG_FLUSH_TIMEOUT_S)
                self._log.close()
        return self._exit()

    def _make_observer(self) -> ProxyObserver | None:
        if self._record is None and not self._judges:
            return None
        # Imported here: plain forwarding starts sooner without it.
        from .observer import ProxyObserver

        loop, own = asyncio.get_running_loop(), get_ident()

        def say(text: str) -> None:
            if get_ident() == own:
                self.say(text)
            else:
                loop.call_soon_threadsafe(self.say, text)

        return ProxyObserver(
            say,
            record=self._record,
            judges=self._judges,
            revision=self._options.revision,
            call=loop.call_soon_threadsafe,
        )

    async def _finish_observing(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for large messages that are still recorded or judged, and print the summary."""
        observer = self._observer
        if observer is None:
            return
        if not observer.jobs.is_idle:
            # After a signal not for long: hosts kill a process that does not end.
            timeout = _OBSERVER_TIMEOUT_S if self._signals else None
            is_done = await loop.run_in_executor(None, observer.jobs.wait, timeout)
            if not is_done:
                self.say("stopped before the last messages were recorded and judged")
        if self._judges:
            self.say(observer.summary())

    def _exit(self) -> int:
        if signal.SIGINT in self._signals:
            return INTERRUPTED
        errors = 0 if self._observer is None else self._observer.counts["error"]
        return (
            PROBLEMS_FOUND if self._options.fail and errors and not self._status else self._status
        )

    async def _run_until_signal(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]
    ) -> None:
        task = loop.create_task(work)

        def on_signal(number: int) -> None:
            self._signals.append(number)
            task.cancel()

        numbers = [signal.SIGTERM, signal.SIGINT]
        # Under `nohup` SIGHUP stays ignored. Windows has none.
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        handle_signals(loop, numbers, on_signal)
        try:
            await task
        except asyncio.CancelledError:
            if not self._signals:
                raise

    # Standard error

    def say(self, text: str) -> None:
        """Print a line on standard error."""
        self._put(f"trunkline proxy: {text}\n".encode("utf-8", "backslashreplace"))

    def _put(self, data: bytes) -> None:
        if self._log is not None and self._log.backlog < HIGH_WATER:
            self._log.write(data)

    # One client

    def _policy(self, framing: Any) -> Policy:
        size = self._options.max_size
        return Policy(
            framing=framing, limits=Limits(stdio=size, tcp=size, unix=size, http=size, sse=size)
        )

    def _server(self) -> Transport:
        target = self._target.transport(self._policy(self._options.target_framing))
        if hasattr(target, "on_stderr"):
            target.on_stderr = _escaping(self._put) if is_terminal(sys.stderr) else self._put
        if isinstance(self._target, Http):
            # Imported here: most proxies start a command.
            from .http_target import HttpTarget

            return HttpTarget(target, self.say)  # type: ignore[arg-type]  # that of an Http
        return target

    async def _join(
        self, source: Transport, target: Transport, number: int | None, linger: float | None
    ) -> TransportError | None:
        """Forward until either side ends; return the error unless the client caused it."""
        observer = None
        if self._observer is not None:
            sides: dict[Side, object] = {"client": source, "server": target}
            observer = self._observer.connection(number, source.name, target.name, sides)
        hear = None if observer is None else self._listener(observer, source, target)
        try:
            ending = await Relay(source, target, hear=hear, linger=linger).run()
        except TransportError as error:
            return error
        finally:
            if observer is not None:
                observer.end()
        return None if ending.by == "source" else ending.error

    def _listener(
        self, observer: ConnectionObserver, source: Transport, target: Transport
    ) -> Callable[[Side, Frame], object]:
        """Return what a relay calls with each frame; a side of HTTP records its own."""
        from_http = isinstance(self._source, Http)
        to_http = isinstance(self._target, Http)
        if not from_http and not to_http:
            return observer.receive
        # Imported here, as above.
        from .http_record import HttpRecorder, request_facts

        recorder: HttpRecorder | None = None
        if to_http:
            recorder = HttpRecorder(observer, records_requests=not from_http)
            target.recorder = recorder  # type: ignore[attr-defined]  # an HttpTarget

        def observe(frame: Frame, request: HttpRequest | None) -> None:
            if request is None:  # it has none of its own
                observer.receive("client", frame)
                return
            stream = observer.new_stream()
            observer.receive("client", frame, http=request_facts(request), stream=stream)
            if recorder is not None:
                recorder.expect(frame, stream)

        def hear(sender: Side, frame: Frame) -> None:
            if sender == "server" and not to_http:
                observer.receive(sender, frame)

        if from_http:
            source.observe = observe  # type: ignore[attr-defined]  # a SourceConnection
        return hear

    async def _pipe(self) -> None:
        """Serve the client that started us."""
        # Imported here: a listening proxy does not need it.
        from ...transports.stdio.server import StdioServer

        source = StdioServer(self._policy(self._options.source_framing))
        target = self._server()
        try:
            problem = await self._join(source, target, None, None)
        finally:
            # Also after a signal: the exit status is the server's.
            status = getattr(target, "exit_status", None)
            if status is not None:
                self._status = status if status >= 0 else 128 - status
        if problem is None:
            return
        if status is None or problem.exit_status is None:
            # The connection failed, not the server.
            self._status = UNREACHABLE
        if problem.exit_status is None or problem.exit_status < 0:
            self.say(problem.reason)

    # Many clients

    async def _listen(self, address: Tcp | Unix) -> None:
        # Imported here, as above.
        from ...transports.addresses import is_exposed
        from ...transports.sockets.listener import Listener

        policy = self._policy(self._options.source_framing)
        listener = Listener(address, policy, self._accept)
        try:
            await listener.open()
            self.say(f"listening on {listener.address}")
            if is_exposed(listener.address):
                self.say("this address is reachable from other machines, without authentication")
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

    def _accept(self, source: AcceptedSocket) -> None:
        if len(self._clients) >= _MAX_CLIENTS:
            self.say(f"a client was rejected: {_MAX_CLIENTS} are connected")
            source.discard()
            return
        self._count += 1
        task = asyncio.get_running_loop().create_task(self._serve(source, self._count))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, source: AcceptedSocket, number: int) -> None:
        try:
            problem = await self._join(source, self._server(), number, _LINGER_S)
        finally:
            source.discard()  # if it was never used
        self._say_problem(problem, number)

    def _say_problem(self, problem: TransportError | None, number: int) -> None:
        if problem is not None and problem.exit_status != 0:
            status = problem.exit_status
            how = f" with status {status}" if status is not None and status > 0 else ""
            self.say(f"connection {number}: {problem.reason}{how}")

    # Clients over HTTP

    async def _listen_http(self, address: Http) -> None:
        # Imported here, as above.
        from ...transports.addresses import is_exposed
        from ...transports.http.settings import HttpLimits, HttpSettings
        from .http_listener import HttpSourceListener
        from .http_source import HttpSource

        options = self._options
        limits = HttpLimits(sessions=_MAX_CLIENTS)
        try:
            settings = HttpSettings(
                hosts=options.allowed_host,
                origins=options.allowed_origin,
                old_sse=options.sse,
                websocket=options.ws,
            )
            policy = self._policy("newline")
            source = HttpSource(limits, self._accept_http)
            listener = HttpSourceListener(address, policy, settings, limits, source)
        except ValueError as error:
            self.say(str(error))
            self._status = USAGE_ERROR
            return
        try:
            async with listener:
                self.say(f"listening on {listener.address}")
                if is_exposed(listener.address):
                    text = "this address is reachable from other machines, without authentication"
                    self.say(text)
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    listener.stop()
                    for task in self._clients:
                        task.cancel()
                    if self._clients:
                        await asyncio.wait(self._clients)
        except TransportError as error:
            self.say(error.reason)
            self._status = UNREACHABLE

    def _accept_http(self, source: SourceConnection) -> None:
        self._count += 1
        task = asyncio.get_running_loop().create_task(self._serve_http(source, self._count))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve_http(self, source: SourceConnection, number: int) -> None:
        problem = await self._join(source, self._server(), number, _LINGER_S)  # type: ignore[arg-type]  # one of its kinds
        self._say_problem(problem, number)


def _escaping(put: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Return `put` for bytes of a server that must not control the terminal."""
    # A character can be split between two reads.
    decode = getincrementaldecoder("utf-8")("backslashreplace").decode

    def put_escaped(data: bytes) -> None:
        text = decode(data).replace("\r\n", "\n")
        put(visible(text, kept="\t\n").encode("utf-8", "backslashreplace"))

    return put_escaped

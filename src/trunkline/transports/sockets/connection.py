"""A connection over a socket: dialled by a client, or accepted by a `Listener`.

Frames end at a newline unless the policy says otherwise; both sides must say the same.

The rules that live here, and only here:

* The directions end one by one: a client that has said all it has to say still gets answers. A
  server that has is done, and the client ends too.
* Nothing that was written is lost by the ending. The other side is told that nothing more comes
  and is given a moment to say the same; to close a socket with something unread in it throws
  away what the other side has not read yet.                              [RFC 1122, 4.2.2.13]
* What fails is told after what had arrived: a reason may be among it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from typing import TYPE_CHECKING, Any, Final

from ...errors import TransportError
from ..addresses import Tcp, Tls
from ..framed import FramedTransport
from ..io.fd import FdReader, FdWriter, check_platform

if TYPE_CHECKING:
    import ssl

    from ...jsonrpc.policy import Policy
    from ..addresses import Unix

__all__ = ["AcceptedSocket", "DialledSocket", "SocketTransport", "resolve", "tune"]

# How long `close` waits for another side that is there and takes nothing.
_PATIENCE: Final = 5.0
# How long the other side may take to end, when we have. One that is gone says so at once.
_PARTING: Final = 0.5
# How long what arrived may take to be read, once writing has failed.
_LAST_WORDS: Final = 1.0
# How long one of a host's addresses may take before the next is tried, in seconds.
_EACH: Final = 10.0
# How long one waits before a path whose queue is full is tried again: ever longer.
_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.1


class SocketTransport(FramedTransport):
    """One connected socket, and how it ends."""

    def __init__(self, policy: Policy, address: Tcp | Unix) -> None:
        super().__init__(policy, "tcp" if isinstance(address, Tcp) else "unix")
        # Bytes, for whoever asks now and then whether anything still comes.
        self.received = 0
        self._socket: socket.socket | None = None
        self._is_used = False
        self._connecting: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[None] | None = None  # the other side has
        self._telling: asyncio.TimerHandle | None = None

    @property
    def written(self) -> int:
        """How many bytes the other side has taken, for whoever asks whether it reads."""
        return 0 if self._writer is None else self._writer.written

    async def connect(self) -> None:
        """Open the connection, and begin to call `on_message`.

        Raises:
            TransportError: there is nothing to connect to, or the two do not trust each other.
        """
        if self._is_used or self._ending is not None:
            raise TransportError("a transport connects once")
        self._is_used = True
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        # A task, so that `close` can end it however long a host takes to answer.
        self._connecting = loop.create_task(self._connect(loop))
        try:
            await asyncio.wait((self._connecting,))
        except asyncio.CancelledError:
            self._connecting.cancel()
            await asyncio.wait((self._connecting,))
            self._clear_away()
            raise
        if self._connecting.cancelled():
            self._clear_away()
            raise TransportError("closed while connecting")
        error = self._connecting.exception()
        if error is not None:
            self._clear_away()
            raise error

    def give_up(self) -> None:
        """Have `connect` fail, if it is still waiting for the other side."""
        if self._connecting is not None:
            self._connecting.cancel()

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        raise NotImplementedError

    async def _use(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, secured: _Secured | None
    ) -> None:
        """Begin to read and write a connected socket, which is ours from here on."""
        self._socket = sock
        fd = sock.fileno()
        # From the first byte on: what it asks may be answered before `connect` returns.
        self._is_open = True
        if secured is None:
            self._writer = FdWriter(loop, fd, self._drained, self._output_broke)
            self._reader = FdReader(loop, fd, self._receive, self._input_ended)
            return
        # Imported here: few connections on one machine are encrypted.
        from .tls import TlsChannel

        channel = TlsChannel(
            secured.context,
            server_side=secured.name is None,
            server_name=secured.name,
            on_bytes=self._receive,
            on_end=self._input_ended,
        )
        self._writer = channel
        writer = FdWriter(loop, fd, self._drained, self._output_broke)
        self._reader = FdReader(loop, fd, channel.feed, channel.feed_end)
        await channel.shake(writer, loop)

    # What the other side does

    def _receive(self, data: bytes) -> None:
        self.received += len(data)
        super()._receive(data)

    def _input_ended(self, error: OSError | None) -> None:
        self._receive_end()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        if error is None:
            self._report(None)
        else:
            self._is_open = False
            self._report(TransportError(f"the connection was lost: {_words(error)}"))

    def _output_broke(self, error: OSError) -> None:
        self._is_open = False
        lost = TransportError(f"the connection was lost: {_words(error)}")
        # What it sent before it went is still to be read, and then comes its end by itself.
        loop = asyncio.get_running_loop()
        self._telling = loop.call_later(_LAST_WORDS, self._report, lost)

    # How it ends

    def _output(self) -> int:
        return -1 if self._socket is None else self._socket.fileno()

    def _end_output(self) -> None:
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it is gone already

    async def _end(self) -> None:
        if self._connecting is not None and not self._connecting.done():
            self._connecting.cancel()
            await asyncio.wait((self._connecting,))
        was_connected = self._was_connected()
        try:
            if self._writer is not None:
                await self._writer.finish(_PATIENCE)
            if was_connected:
                self._report(None)
            await self._part()
        finally:
            # Also when the loop is being shut down and cancels us.
            self._clear_away()
            if was_connected:
                self._report(None)

    def _was_connected(self) -> bool:
        """Say whether `connect` did not fail: who was told by that is not told of an end."""
        made = self._connecting
        return made is not None and not made.cancelled() and made.exception() is None

    async def _part(self) -> None:
        """Say that nothing more comes, and let the other side say so too."""
        if self._socket is None or self._ended is None or self._ended.done():
            return
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it is gone already
        self.resume()  # whoever paused us is not waited for
        await asyncio.wait((self._ended,), timeout=_PARTING)

    def _clear_away(self) -> None:
        self._is_open = False
        if self._telling is not None:
            self._telling.cancel()
        # In this order: both are one open file, whose flags the reader found first.
        if self._writer is not None:
            self._writer.close()
        if self._reader is not None:
            self._reader.close()
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class _Secured:
    """How a connection is to be encrypted: by what, and for which name if we dial."""

    def __init__(self, context: ssl.SSLContext, name: str | None) -> None:
        self.context = context
        self.name = name


class DialledSocket(SocketTransport):
    """The client's end of a connection."""

    def __init__(self, address: Tcp | Unix, policy: Policy) -> None:
        super().__init__(policy, address)
        self._address = address

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        check_platform()
        address, secured = self._address, None
        if isinstance(address, Tcp):
            if address.tls:
                secured = _secured(address)
            sock = await _dial_host(loop, address)
        else:
            sock = await _dial(loop, socket.AF_UNIX, str(address.path))
        await self._use(loop, sock, secured)

    def _input_ended(self, error: OSError | None) -> None:
        super()._input_ended(error)
        # A server that has said all answers nothing more: there is no reason to keep it waiting.
        if self._ending is None:
            self._begin_to_end(self._end())


class AcceptedSocket(SocketTransport):
    """The server's end of a connection; `Listener` makes them."""

    def __init__(
        self,
        sock: socket.socket,
        policy: Policy,
        address: Tcp | Unix,
        *,
        peer: str,
        context: ssl.SSLContext | None = None,
        handshake: float = 10.0,
    ) -> None:
        super().__init__(policy, address)
        # Who is at the other end, as far as the system tells.
        self.peer = peer
        # From the start, so that closing closes it however far we came.
        self._socket = self._accepted = sock
        self._context = context
        self._handshake = handshake

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        secured = None if self._context is None else _Secured(self._context, None)
        try:
            async with asyncio.timeout(self._handshake):
                await self._use(loop, self._accepted, secured)
        except TimeoutError:
            raise TransportError("TLS was not agreed on in time") from None

    async def refuse(self, frame: bytes) -> None:
        """Connect, say one thing, and close."""
        try:
            await self.connect()
        except TransportError:
            return
        self.send(frame)
        await self.close()

    def discard(self) -> None:
        """Close a socket that nobody will connect."""
        if not self._is_used:
            self._is_used = True
            self._accepted.close()


def _secured(address: Tcp) -> _Secured:
    from .tls import client_context

    tls = address.tls
    name = tls.server_name if isinstance(tls, Tls) else None
    return _Secured(client_context(tls), name or address.host)


async def _dial_host(loop: asyncio.AbstractEventLoop, address: Tcp) -> socket.socket:
    """Return a connection to the first of a host's addresses that answers."""
    if not address.port:
        raise TransportError(f"{address} has port 0, which a server listens on and nobody dials")
    failures = []
    for family, where in await resolve(loop, address.host, address.port):
        try:
            async with asyncio.timeout(_EACH):
                sock = await _dial(loop, family, where)
        except TimeoutError:
            failures.append(f"no answer within {_EACH:g} s")
        except TransportError as error:
            failures.append(error.reason)
        else:
            _try_to_tune(sock)
            return sock
    raise TransportError(f"{address}: {'; '.join(dict.fromkeys(failures))}")


async def _dial(loop: asyncio.AbstractEventLoop, family: int, where: Any) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if family == socket.AF_UNIX:
            await _dial_path(loop, sock, where)
        else:
            await loop.sock_connect(sock, where)
    except OSError as error:
        sock.close()
        # Not in the loop's own words, which are about calls.
        reason = _words(error) if error.errno is None else os.strerror(error.errno)
        if family == socket.AF_UNIX:
            reason = f"unix:{where}: {reason}"
        raise TransportError(reason) from None
    except BaseException:  # a cancelled task: nothing may be left open
        sock.close()
        raise
    return sock


async def _dial_path(loop: asyncio.AbstractEventLoop, sock: socket.socket, path: str) -> None:
    """Connect to a path, and wait for a server whose queue is full.

    Where TCP would say that it has begun, a Unix socket says to try again, and nothing that could
    be watched tells when. The loop takes the one for the other, and a socket for connected.
    """
    deadline, pause = loop.time() + _EACH, _FIRST_PAUSE
    while True:
        try:
            sock.connect(path)
        except BlockingIOError:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        else:
            return


async def resolve(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the families and addresses of a host.

    Raises:
        TransportError: there is no such host.
    """
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, UnicodeError):
            continue
        return [(family, (host, port))]
    return await _looked_up(loop, host, port)


async def _looked_up(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> list[tuple[int, tuple[Any, ...]]]:
    # On a thread of its own, which ends with it: those of the loop stay.
    found: asyncio.Future[list[Any]] = loop.create_future()

    def look_up() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            settle(error)
        else:
            settle(rows)

    def settle(outcome: Any) -> None:
        try:
            loop.call_soon_threadsafe(conclude, outcome)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    def conclude(outcome: Any) -> None:
        if not found.done():
            found.set_result(outcome)

    thread = threading.Thread(target=look_up, name="trunkline host", daemon=True)
    thread.start()
    rows: Any = await found
    thread.join()  # it has said its last word
    if isinstance(rows, UnicodeError):
        raise TransportError(f"{host}: no name of a host")
    if isinstance(rows, OSError):
        raise TransportError(f"{host}: {rows.strerror or 'no such host'}") from None
    return list(dict.fromkeys((family, where) for family, _, _, _, where in rows))


def tune(sock: socket.socket) -> None:
    """Have messages leave at once, and a host that is gone be noticed."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # First asked after a minute, then every 15 s; lost after four that drew no answer.
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _try_to_tune(sock: socket.socket) -> None:
    try:
        tune(sock)
    except OSError:
        pass  # it has left already, as the first read will tell


def _words(error: OSError) -> str:
    """Return what the system says, or TLS."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, str):
        return f"TLS says {reason.replace('_', ' ').lower()}"
    return error.strerror or os.strerror(error.errno or 0)

"""The socket transport: a TCP or Unix connection, dialled by a client or accepted by a `Listener`.

Frames end at a newline unless the policy names another framing; both sides must use the same.

The rules that live here, and only here:

* The two directions end separately: a client that has shut down its output still gets answers.
  When the server ends its output, the client closes.
* Closing loses nothing that was written: it shuts down the output and waits up to 0.5 s for the
  other side to do the same. Closing a socket with unread input resets the connection, which
  discards what the other side has not read yet.                         [RFC 1122, 4.2.2.13]
* A write error is reported after the input that had arrived, which may hold the reason.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...accounts.account import ReceivedBytes
from ...accounts.client_key import peer_uid
from ...errors import TransportError
from ..addresses import Tcp, Tls
from ..base import ignore
from ..framed import FramedTransport
from ..io.fd import FdReader, FdWriter, check_platform

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from ...accounts.account import Account
    from ...jsonrpc.policy import Policy
    from ..addresses import Unix

__all__ = ["AcceptedSocket", "DialledSocket", "SocketTransport", "dial_host", "resolve", "tune"]

# How long `close` waits for another side that is connected and reads nothing.
_CLOSE_TIMEOUT_S: Final = 5.0
# How long the other side may take to shut down its output after we have.
_SHUTDOWN_TIMEOUT_S: Final = 0.5
# How long what arrived may take to be read after a write has failed.
_REST_TIMEOUT_S: Final = 1.0
# For each address of a host.
_CONNECT_TIMEOUT_S: Final = 10.0
# Backoff between attempts to connect to a path whose queue is full.
_FIRST_DELAY_S: Final = 0.001
_LONGEST_DELAY_S: Final = 0.1


class SocketTransport(FramedTransport):
    """One connected socket."""

    def __init__(self, policy: Policy, address: Tcp | Unix) -> None:
        super().__init__(policy, "tcp" if isinstance(address, Tcp) else "unix")
        self._socket: socket.socket | None = None
        self._is_used = False
        self._connecting: asyncio.Task[None] | None = None
        self._drop_reason = ""
        self._ended: asyncio.Future[None] | None = None  # the other side has ended its output
        self._report_timer: asyncio.TimerHandle | None = None

    async def connect(self) -> None:
        """Open the connection, and start to call `on_message`.

        Raises:
            TransportError: the address does not answer, or the TLS handshake failed.
        """
        if self._is_used or self._ending is not None:
            raise TransportError(self._drop_reason or "a transport connects once")
        self._is_used = True
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        # A task, so that `close` can cancel it.
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
            raise TransportError(self._drop_reason or "closed while connecting")
        error = self._connecting.exception()
        if error is not None:
            self._clear_away()
            raise error

    def cancel_connect(self) -> None:
        """Make `connect` fail, if it still waits for the other side."""
        if self._connecting is not None:
            self._connecting.cancel()

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        raise NotImplementedError

    async def _use(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        context: ssl.SSLContext | None,
        server_name: str | None = None,
    ) -> None:
        """Start to read and write a connected socket, which this transport closes from now on."""
        self._socket = sock
        fd = sock.fileno()
        # From the first byte on: a request may be answered before `connect` returns.
        self._is_open = True
        if context is None:
            self._writer = FdWriter(loop, fd, self._drained, self._output_broke)
            self._reader = FdReader(loop, fd, self._receive, self._input_ended)
            return
        # Imported here: few connections on one machine are encrypted.
        from .tls import TlsChannel

        channel = TlsChannel(
            context,
            server_side=server_name is None,
            server_name=server_name,
            on_bytes=self._receive,
            on_end=self._input_ended,
            on_handshake=self._handshake_done,
        )
        self._writer = channel
        writer = FdWriter(loop, fd, self._drained, self._output_broke)
        self._reader = FdReader(loop, fd, channel.feed, channel.feed_end)
        await channel.handshake(writer, loop)

    # Events of the socket

    def _handshake_done(self) -> None:
        """Take note of the end of the TLS handshake."""

    @property
    def is_receiving(self) -> bool:
        """Whether a message has begun, and its rest is awaited."""
        return self._framing.is_unfinished and not self._is_behind

    def _input_ended(self, error: OSError | None) -> None:
        if self._ends_later(partial(self._input_ended, error)):
            return  # it came with the last bytes, in TLS
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
        # What had arrived is still to be read, and its end is then reported by the reader.
        loop = asyncio.get_running_loop()
        self._report_timer = loop.call_later(_REST_TIMEOUT_S, self._report, lost)

    # Closing

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
            await self._writer.finish(_CLOSE_TIMEOUT_S)
            if was_connected:
                self._report(None)
            await self._shut_down()
        finally:
            # Also when the loop shuts down and cancels this task.
            self._clear_away()
            if was_connected:
                self._report(None)

    def _was_connected(self) -> bool:
        # A failed `connect` has raised, so no end is reported.
        made = self._connecting
        return made is not None and not made.cancelled() and made.exception() is None

    async def _shut_down(self) -> None:
        """End the output, and wait for the other side to do the same."""
        if self._socket is None or self._ended is None or self._ended.done():
            return
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it is gone already
        self.resume()  # the end has to be read
        await asyncio.wait((self._ended,), timeout=_SHUTDOWN_TIMEOUT_S)

    def _clear_away(self) -> None:
        self._is_open = False
        if self._report_timer is not None:
            self._report_timer.cancel()
        # In this order: both are one open file, whose flags the reader saved first.
        self._writer.close()
        if self._reader is not None:
            self._reader.close()
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class DialledSocket(SocketTransport):
    """The client's end of a connection."""

    def __init__(self, address: Tcp | Unix, policy: Policy) -> None:
        super().__init__(policy, address)
        self._address = address

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        check_platform("a socket")
        address = self._address
        if not isinstance(address, Tcp):
            await self._use(loop, await _dial(loop, socket.AF_UNIX, str(address.path)), None)
            return
        context = None
        if address.tls:
            from .tls import client_context

            context = client_context(address.tls)
        name = address.tls.server_name if isinstance(address.tls, Tls) else None
        await self._use(loop, await dial_host(loop, address), context, name or address.host)

    def _input_ended(self, error: OSError | None) -> None:
        super()._input_ended(error)
        # A server that has ended its output sends no more answers.
        if self._ending is None and not self._is_behind:
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
        # The remote address; empty for a Unix socket.
        self.peer = peer
        self.has_handshake = context is not None
        # Whether `drop` was called.
        self.is_dropped = False
        # Called when the TLS handshake is done, before any frame is delivered.
        self.on_handshake: Callable[[], object] = ignore
        # Called when an unfinished message is more than the client may be sending.
        self.on_excess: Callable[[], object] = ignore
        self._unfinished: ReceivedBytes | None = None
        # Set before `connect`, so that `close` closes it in any case.
        self._socket = self._accepted = sock
        self._context = context
        self._handshake = handshake

    @property
    def host(self) -> str:
        """The address of the client without its port; empty for a Unix socket."""
        return self.peer.rpartition(":")[0].strip("[]")

    def peer_uid(self) -> int | None:
        """Return the user of the process that has connected to a Unix socket, or None."""
        return peer_uid(self._accepted) if self.name == "unix" else None

    def peer_certificate(self) -> dict[str, Any] | None:
        """Return the verified certificate of a TLS client, after the handshake, or None."""
        found = getattr(self._writer, "peer_certificate", None)
        return None if found is None else found()

    def use_account(self, account: Account) -> None:
        """Count the bytes of unfinished messages for a client, until the connection ends."""
        account.uses += 1
        self._unfinished = ReceivedBytes(account)

    def _receive(self, data: bytes) -> None:
        super()._receive(data)
        unfinished = self._unfinished
        if unfinished is not None:
            held = self._framing.held + len(self._rest)
            if held != unfinished.size and not unfinished.weigh(held):
                self.on_excess()

    def _catch_up(self) -> None:
        if self._unfinished is not None:
            self._unfinished.weigh(self._framing.held)
        super()._catch_up()

    def _clear_away(self) -> None:
        super()._clear_away()
        if self._unfinished is not None:
            unfinished, self._unfinished = self._unfinished, None
            unfinished.close()

    def _handshake_done(self) -> None:
        self.on_handshake()

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            async with asyncio.timeout(self._handshake):
                await self._use(loop, self._accepted, self._context)
        except TimeoutError:
            raise TransportError("TLS handshake timed out") from None

    async def refuse(self, frame: bytes) -> None:
        """Connect, send one frame, and close."""
        try:
            await self.connect()
        except TransportError:
            return
        self.send(frame)
        await self.close()

    def discard(self) -> None:
        """Close a socket that will not be connected."""
        if not self._is_used:
            self._is_used = True
            self._accepted.close()

    def has_unread_input(self) -> bool:
        """Return True if bytes have arrived that were not read yet."""
        try:
            return bool(self._accepted.recv(1, socket.MSG_PEEK))
        except OSError:
            return False  # nothing so far, or it is gone

    def drop(self, reason: str) -> None:
        """Close the socket at once, whether it is connected or not; nothing more is written.

        `connect` then raises with `reason`, or the end is reported without an error.
        """
        self.is_dropped, self._drop_reason = True, reason
        if self._connecting is None:
            self.discard()
        elif not self._connecting.done():
            self._connecting.cancel()
            self._clear_away()
        else:
            self._clear_away()
            self._report(None)


async def dial_host(
    loop: asyncio.AbstractEventLoop, address: Tcp, shown: object = None
) -> socket.socket:
    """Return a connection to the first of a host's addresses that answers.

    Raises:
        TransportError: none does; the text names the address `shown`, or `address`.
    """
    shown = shown or address
    if not address.port:
        raise TransportError(f"{shown} has port 0, which a server can listen on but not dial")
    failures = []
    for family, where in await resolve(loop, address.host, address.port):
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                sock = await _dial(loop, family, where)
        except TimeoutError:
            failures.append(f"no answer within {_CONNECT_TIMEOUT_S:g} s")
        except TransportError as error:
            failures.append(error.reason)
        else:
            try:
                tune(sock)
            except OSError:
                pass  # the peer has left already, which the first read reports
            return sock
    raise TransportError(f"{shown}: {'; '.join(dict.fromkeys(failures))}")


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
        # Not the text of the loop, which names its own calls.
        reason = _words(error) if error.errno is None else os.strerror(error.errno)
        if family == socket.AF_UNIX:
            reason = f"unix:{where}: {reason}"
        raise TransportError(reason) from None
    except BaseException:  # a cancelled task: nothing may be left open
        sock.close()
        raise
    return sock


async def _dial_path(loop: asyncio.AbstractEventLoop, sock: socket.socket, path: str) -> None:
    """Connect to a path, with exponential backoff while the queue of the server is full.

    A Unix socket then fails with EAGAIN, and no event tells when to try again. `sock_connect` of
    the loop treats EAGAIN as EINPROGRESS, and would report the socket as connected.
    """
    deadline = loop.time() + _CONNECT_TIMEOUT_S
    # Imported here: a server accepts, and most clients dial another kind of address.
    from ...concurrency.backoff import backoff

    for delay in backoff(_FIRST_DELAY_S, _LONGEST_DELAY_S):
        try:
            sock.connect(path)
        except BlockingIOError:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(delay)
        else:
            return


async def resolve(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the families and addresses of a host.

    Raises:
        TransportError: the host name cannot be resolved.
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
    # On a thread of its own, which ends with the lookup; threads of the executor would stay.
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
            pass  # the loop is closed

    def conclude(outcome: Any) -> None:
        if not found.done():
            found.set_result(outcome)

    thread = threading.Thread(target=look_up, name="trunkline host", daemon=True)
    thread.start()
    rows: Any = await found
    thread.join()
    if isinstance(rows, UnicodeError):
        raise TransportError(f"{host}: not a valid host name")
    if isinstance(rows, OSError):
        raise TransportError(f"{host}: {rows.strerror or 'no such host'}") from None
    return list(dict.fromkeys((family, where) for family, _, _, _, where in rows))


def tune(sock: socket.socket) -> None:
    """Disable Nagle's algorithm, and enable TCP keepalive."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # The first probe after 60 s, then every 15 s; lost after four without an answer.
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _words(error: OSError) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(reason, str):
        return f"TLS error: {reason.replace('_', ' ').lower()}"
    return error.strerror or os.strerror(error.errno or 0)

"""Listening sockets of an address.

Each accepted connection is passed on as a transport that is not connected yet; `on_connection`
decides what to do with it, and how many there may be. HTTP takes the sockets themselves.

The rules that live here, and only here:

* A port that was closed a moment ago can be used again (SO_REUSEADDR); one that is in use cannot.
* A host with several addresses is listened on at all of them, on one port.
* When descriptors run out, `make_room` may close connections that are of no use. If there are none,
  accepting pauses for 1 s instead of spinning: connections wait in the queue of the system.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, cast

from ...errors import TransportError
from ..addresses import Tcp, Unix
from ..base import ignore, log_raised
from ..io.fd import check_platform
from .connection import AcceptedSocket, resolve, tune

if TYPE_CHECKING:
    import ssl

    from ...jsonrpc.policy import Policy
    from .unix_path import SocketFile

__all__ = ["Listener", "bind_all", "bound"]

_log: Final = logging.getLogger("trunkline.transports")

# One turn of the loop accepts so many connections, so that others are served meanwhile.
_MAX_ACCEPTS_PER_TURN: Final = 64
# The pause after the system has run out of a resource.
_ACCEPT_PAUSE_S: Final = 1.0
_NO_RESOURCES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
# With these errors one address of a host is skipped, if there are others.
_NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
# For port 0: a port that is free at one address of the host may be in use at another.
_MAX_PORT_CHOICES: Final = 5


class Listener:
    """The sockets of one address; `on_connection` is called with each connection.

    `sock` is one or several bound sockets to listen on in place of new ones. `on_socket` is
    called with each accepted socket in place of `on_connection`.
    """

    def __init__(
        self,
        address: Tcp | Unix,
        policy: Policy,
        on_connection: Callable[[AcceptedSocket], object] = ignore,
        *,
        on_socket: Callable[[socket.socket], object] | None = None,
        backlog: int = 128,
        handshake: float = 10.0,
        make_room: Callable[[], bool] = lambda: False,
        sock: socket.socket | Sequence[socket.socket] | None = None,
    ) -> None:
        if isinstance(sock, Sequence) and not sock:
            raise ValueError("sock is empty: give at least one bound socket, or None")
        self.address = address
        self._policy = policy
        self._on_connection = on_connection
        self._on_socket = on_socket
        self._backlog = backlog
        self._handshake = handshake
        self._make_room = make_room
        self._given = [sock] if sock is not None and not isinstance(sock, Sequence) else sock
        self.context: ssl.SSLContext | None = None
        self._file: SocketFile | None = None
        self._sockets: list[socket.socket] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._resuming: dict[socket.socket, asyncio.TimerHandle] = {}

    async def open(self) -> None:
        """Start to listen; `address` then has the port that the system chose.

        Raises:
            TransportError: the address cannot be used; the text has the reason, nothing is left.
        """
        check_platform("a socket")
        self._loop = loop = asyncio.get_running_loop()
        address = self.address
        if isinstance(address, Tcp) and address.tls:
            # Imported here: few servers on one machine encrypt.
            from .tls import server_context

            self.context = server_context(address.tls)
        try:
            self._sockets = await self._bound(loop)
            for sock in self._sockets:
                sock.setblocking(False)
                sock.listen(self._backlog)
        except OSError as error:
            self.close()
            raise TransportError(f"{address} cannot be listened on: {error.strerror}") from None
        except BaseException:  # a cancelled task too: nothing may be left open
            self.close()
            raise
        if isinstance(address, Tcp):
            port = self._sockets[0].getsockname()[1]
            self.address = Tcp(address.host, port, tls=address.tls)
        for sock in self._sockets:
            loop.add_reader(sock, self._accept, sock)

    def close(self) -> None:
        """Stop listening; accepted connections go on."""
        for timer in self._resuming.values():
            timer.cancel()
        self._resuming.clear()
        sockets, self._sockets = self._sockets, []
        if self._file is not None:
            # Before the socket: a client that finds the file finds a server.
            self._file.remove()
            self._file = None
        for sock in sockets:
            if self._loop is not None:
                self._loop.remove_reader(sock)
            sock.close()

    async def _bound(self, loop: asyncio.AbstractEventLoop) -> list[socket.socket]:
        if self._given is not None:
            return [*self._given]
        if isinstance(self.address, Unix):
            # Imported here: it needs POSIX.
            from .unix_path import SocketFile

            self._file = SocketFile(self.address, backlog=self._backlog)
            return [self._file.socket]
        return await bound(loop, self.address)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_MAX_ACCEPTS_PER_TURN):
            try:
                sock, peer = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in _NO_RESOURCES:
                    continue  # the client has left already
                # With room made, accepting goes on in the next turn: others need descriptors too.
                if not self._make_room():
                    self._pause(listening, error)
                return
            sock.setblocking(False)
            self._deliver(sock, peer)

    def _deliver(self, sock: socket.socket, peer: object) -> None:
        if isinstance(self.address, Tcp):
            try:
                tune(sock)
            except OSError:
                sock.close()  # it has left
                return
        if self._on_socket is not None:
            self._on_socket(sock)
            return
        transport = AcceptedSocket(
            sock,
            self._policy,
            self.address,
            peer=_name(peer),
            context=self.context,
            handshake=self._handshake,
        )
        try:
            self._on_connection(transport)
        except Exception as error:  # noqa: BLE001  # the next connection is not affected
            log_raised(error, f"{self.address}: on_connection raised, connection closed")
            transport.discard()

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        _log.warning(
            "%s: accepting paused for %g s: %s", self.address, _ACCEPT_PAUSE_S, error.strerror
        )
        loop = cast(asyncio.AbstractEventLoop, self._loop)
        loop.remove_reader(listening)

        def resume() -> None:
            self._resuming.pop(listening, None)
            loop.add_reader(listening, self._accept, listening)

        self._resuming[listening] = loop.call_later(_ACCEPT_PAUSE_S, resume)


async def bound(loop: asyncio.AbstractEventLoop, address: Tcp) -> list[socket.socket]:
    """Return a bound socket for each address of a host, all on one port.

    Raises:
        TransportError: the host name cannot be resolved.
        OSError: an address cannot be bound.
    """
    rows = await resolve(loop, address.host, address.port)
    for choice in range(_MAX_PORT_CHOICES):
        try:
            return bind_all(rows, address.port)
        except OSError as error:
            is_unlucky = address.port == 0 and error.errno == errno.EADDRINUSE
            if not is_unlucky or choice == _MAX_PORT_CHOICES - 1:
                raise
    raise AssertionError  # the last choice returned or raised


def bind_all(
    rows: list[tuple[int, tuple[object, ...]]], port: int, *, is_shared: bool = False
) -> list[socket.socket]:
    """Return a bound socket for each address of a host, all on one port.

    With `is_shared` others may be bound to the same port (SO_REUSEPORT).

    Raises:
        OSError: an address cannot be bound; nothing is left.
    """
    bound: list[socket.socket] = []
    failure: OSError | None = None
    try:
        for family, where in rows:
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if is_shared:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                if family == socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                sock.bind((where[0], port, *where[2:]))
            except OSError as error:
                sock.close()
                if error.errno not in _NOT_HERE:
                    raise
                failure = error
                continue
            bound.append(sock)
            port = sock.getsockname()[1]
    except BaseException:  # a cancelled task too: nothing may be left open
        for sock in bound:
            sock.close()
        raise
    if not bound:
        raise failure or OSError(errno.EADDRNOTAVAIL, "the host has no address")
    return bound


def _name(peer: object) -> str:
    if isinstance(peer, tuple):
        host = str(peer[0])
        return f"[{host}]:{peer[1]}" if ":" in host else f"{host}:{peer[1]}"
    return ""

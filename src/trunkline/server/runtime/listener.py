"""Socket listener of a server: accepts connections, limits them, and shuts down in order.

    async with app.listen("tcp://127.0.0.1:9000") as listening:
        await listening.wait()

The rules that live here, and only here:

* The lifespan lasts as long as the listener, so that it is not entered for each connection.
* A connection beyond the limit gets an error and is closed. At most `_MAX_REFUSALS` of those are
  handled at once; beyond that the socket is closed without a response.
* Shutdown is ordered: stop accepting, finish open requests, exit the lifespan.
* A connection whose first frame is not JSON-RPC gets one error and is closed. A web page can make
  a browser send text of its choice to a local port, by HTTP or inside a TLS ClientHello, and a line
  of that text could be a request.
* Listening beyond this machine without client certificates logs a warning: sockets have no other
  authentication.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast

from msgspec.json import encode

from ...errors import TransportError, TrunklineError
from ...jsonrpc.error_codes import named_error
from ...jsonrpc.messages import Failure
from ...spec.error_kinds import ErrorKind
from ...transports.addresses import Tcp, Unix, is_exposed, parse_address
from ...transports.base import Frame, ignore
from ...transports.sockets.listener import Listener
from ..dispatch.connection import Connection
from ..dispatch.requests import RETRY_AFTER_MS
from ..errors import as_redacted
from ..settings import SocketLimits
from .keepalive import KeepAlive

if TYPE_CHECKING:
    from ...transports.sockets.connection import AcceptedSocket
    from ..core import ServerCore

__all__ = ["ServerListener", "address_of"]

_log: Final = logging.getLogger("trunkline.server")

# Connections beyond the limit that are sent an error at the same time.
_MAX_REFUSALS: Final = 64
# Connections that failed during setup and are logged as warnings; further ones are debug lines.
_MAX_LOGGED_FAILURES: Final = 10


def address_of(given: str | Tcp | Unix) -> Tcp | Unix:
    """Return an address, parsed if it is a text.

    Raises:
        ValueError: the text is not an address.
        TypeError: it is not an address at all.
    """
    if isinstance(given, str):
        return parse_address(given)
    if not isinstance(given, Tcp | Unix):
        raise TypeError(f"a server listens on a Tcp, a Unix or a text, not {type(given).__name__}")
    return given


class _UnverifiedConnection(Connection):
    """A connection that has not yet received a JSON-RPC message."""

    __slots__ = ()

    def receive(self, frame: Frame, route: Any = None) -> None:
        """Receive the first frame; accept more only if it looks like a JSON-RPC message."""
        text = frame if isinstance(frame, bytes) else getattr(frame, "head", b"")
        is_known = text.lstrip()[:1] in (b"{", b"[")
        # Further frames may be in the same bytes: handle them normally, or ignore them.
        self.transport.on_message = super().receive if is_known else ignore
        super().receive(frame, route)
        if not is_known:
            self.end(TransportError("the first frame is not JSON-RPC: connection closed"))


class ServerListener:
    """A server that listens on an address; `Server.listen` makes one, for one `async with`."""

    def __init__(
        self,
        app: ServerCore,
        address: str | Tcp | Unix,
        limits: SocketLimits,
        sock: socket.socket | Sequence[socket.socket] | None = None,
    ) -> None:
        self._app = app
        self._limits = limits
        self._listener = Listener(
            address_of(address),
            app.policy,
            self._take,
            backlog=limits.backlog,
            handshake=limits.tls_handshake,
            sock=sock,
        )
        self._open = AsyncExitStack()
        self._is_used = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusing: set[asyncio.Task[None]] = set()
        self._connections: set[Connection] = set()
        self._transports: set[AcceptedSocket] = set()
        self._failures = 0

    def __repr__(self) -> str:
        return f"<ServerListener on {self.address}, {len(self._tasks)} connections>"

    @property
    def address(self) -> Tcp | Unix:
        """The address it listens on; port 0 is replaced by the actual port."""
        return self._listener.address

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._tasks)

    async def __aenter__(self) -> Self:
        """Enter the lifespan and start to listen.

        Raises:
            TransportError: the address cannot be used; the text says why.
        """
        if self._is_used:
            raise TrunklineError("a ServerListener is entered once: call listen() again")
        self._is_used = True
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        async with AsyncExitStack() as opening:
            await opening.enter_async_context(self._app.opened())
            await self._listener.open()
            opening.callback(self._listener.close)
            self._app.listeners.add(self)
            opening.callback(self._app.listeners.discard, self)
            self._open = opening.pop_all()
        _log.info("listening on %s", self.address)
        if is_exposed(self.address):
            _log.warning(
                "%s accepts connections from other machines without authentication: "
                "Tls(ca=...) accepts only clients with a certificate",
                self.address,
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def wait(self) -> None:
        """Wait until `stop` or `close` is called, or the server is stopped."""
        if self._stopping is not None:
            await self._stopping.wait()

    def stop(self, *, at_once: bool = False) -> None:
        """Start shutdown: stop accepting, and let open connections finish.

        May be called from any thread, and again: `at_once` cancels running handlers.
        """
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop, at_once)

    def stop_accepting(self) -> None:
        """Stop accepting; open connections continue until `stop` or `close`.

        Used when another process has taken over the same sockets.
        """
        self._listener.close()

    async def close(self) -> None:
        """Shut down; return when every connection is closed and the lifespan has ended."""
        if self._stopping is None:
            return
        self._stop(at_once=False)
        while left := self._tasks | self._refusing:
            # A cancelled `close` leaves them running.
            await asyncio.wait(left)
        opened, self._open = self._open, AsyncExitStack()
        await opened.aclose()

    def _stop(self, at_once: bool) -> None:
        self._listener.close()
        for connection in list(self._connections):
            connection.stop(at_once=at_once)
        for transport in self._transports:
            transport.cancel_connect()
        if self._stopping is not None:
            self._stopping.set()

    @property
    def _is_stopping(self) -> bool:
        return self._stopping is not None and self._stopping.is_set()

    # -- connections -------------------------------------------------------------------------

    def _take(self, transport: AcceptedSocket) -> None:
        if self._loop is None or self._is_stopping:
            transport.discard()
        elif len(self._tasks) < self._limits.connections:
            self._keep(self._tasks, transport, self._serve(transport))
        elif len(self._refusing) < _MAX_REFUSALS:
            _log.debug("connection refused: limit of %d reached", self._limits.connections)
            self._keep(self._refusing, transport, transport.refuse(self._full()))
        else:
            transport.discard()

    def _keep(
        self,
        tasks: set[asyncio.Task[None]],
        transport: AcceptedSocket,
        work: Coroutine[Any, Any, None],
    ) -> None:
        task = cast(asyncio.AbstractEventLoop, self._loop).create_task(work)
        tasks.add(task)
        self._transports.add(transport)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _: self._transports.discard(transport))

    def _full(self) -> bytes:
        error = named_error(
            ErrorKind.INTERNAL_ERROR,
            policy=self._app.policy,
            message=f"No more than {self._limits.connections} connections; try again later",
            retryAfterMs=RETRY_AFTER_MS,
        )
        return encode(Failure(None, error))

    async def _serve(self, transport: AcceptedSocket) -> None:
        if self._is_stopping:
            transport.discard()  # accepted just before shutdown
            return
        app = self._app
        connection = _UnverifiedConnection(app, transport)
        keepalive = KeepAlive(connection, transport, self._limits)
        self._connections.add(connection)
        keepalive.start()
        try:
            await app.serve_connection(connection)
        except TransportError as error:
            # Failed during setup: port scanners, untrusted certificates.
            self._failures += 1
            is_shown = self._failures <= _MAX_LOGGED_FAILURES and not self._is_stopping
            level = logging.WARNING if is_shown else logging.DEBUG
            _log.log(level, "connection from %s failed: %s", transport.peer or "a client", error)
        except Exception as error:  # noqa: BLE001  # one connection's; the others continue
            _log.error("connection failed\n%s", as_redacted(error))
        finally:
            keepalive.stop()
            self._connections.discard(connection)
            await transport.close()

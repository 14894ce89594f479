"""A server that listens: many connections to one `Server`, from the first to the last.

    async with app.listen("tcp://127.0.0.1:9000") as listening:
        await listening.wait()

The rules that live here, and only here:

* The lifespan lasts as long as the listening does, so that what it opens is not opened anew
  for every client.
* One connection too many is told so, and closed. Of those too, only so many are looked after at
  once: beyond that a socket is closed without a word.
* The end is in order: nobody new is let in, those who are there get what they are owed, then
  the lifespan ends.
* Whoever does not begin as a client of ours does is answered once and cut off. A web page can
  have a browser send text of its choice to a port of its user's machine, by HTTP or inside the
  opening of TLS, and a line of that could be a request like any other.
* Who listens beyond this machine without asking clients for a certificate is told what that
  means: there is nothing else here that asks who somebody is.
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
from ..dispatch.requests import RETRY_AFTER
from ..errors import as_redacted
from ..settings import SocketLimits
from .keepalive import KeepAlive

if TYPE_CHECKING:
    from ...transports.sockets.connection import AcceptedSocket
    from ..core import ServerCore

__all__ = ["ServerListener", "address_of"]

_log: Final = logging.getLogger("trunkline.server")

# Connections beyond the limit that are being told so.
_MAX_REFUSALS: Final = 64
# Clients whose connections failed before they began that are logged as warnings.
_MAX_LOGGED_FAILURES: Final = 10


def address_of(given: str | Tcp | Unix) -> Tcp | Unix:
    """Return the address that a caller named.

    Raises:
        ValueError: it is a text that names none.
        TypeError: it is nothing one can listen on.
    """
    if isinstance(given, str):
        return parse_address(given)
    if not isinstance(given, Tcp | Unix):
        raise TypeError(f"a server listens on a Tcp, a Unix or a text, not {type(given).__name__}")
    return given


class _UnverifiedConnection(Connection):
    """A connection whose client has yet to show that it speaks JSON-RPC."""

    __slots__ = ()

    def receive(self, frame: Frame, route: Any = None) -> None:
        """Take in the first frame, and no other unless it looks like a message."""
        text = frame if isinstance(frame, bytes) else getattr(frame, "head", b"")
        is_known = text.lstrip()[:1] in (b"{", b"[")
        # From here on as everybody's; or not at all, though it may be in the same bytes.
        self.transport.on_message = super().receive if is_known else ignore
        super().receive(frame, route)
        if not is_known:
            self.end(TransportError("the client does not speak JSON-RPC, and was cut off"))


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
        return f"<Listening on {self.address}, {len(self._tasks)} connections>"

    @property
    def address(self) -> Tcp | Unix:
        """Where it listens; of port 0 this says which port it came to be."""
        return self._listener.address

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._tasks)

    async def __aenter__(self) -> Self:
        """Begin to listen.

        Raises:
            TransportError: that is not possible; the text says why.
        """
        if self._is_used:
            raise TrunklineError("listening begins once: call listen() again")
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
                "%s can be reached from other machines, and whoever reaches it may use everything "
                "this server offers: Tls(ca=...) lets in only clients with a certificate",
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
        """Begin to end: let nobody new in, and have those who are there finish.

        May be called from any thread, and again: `at_once` cancels what is at work.
        """
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop, at_once)

    def let_in_nobody(self) -> None:
        """Accept no more connections; those who are there go on, until `stop` or `close`.

        For who has handed the same sockets to somebody else.
        """
        self._listener.close()

    async def close(self) -> None:
        """End: return when every connection has been closed, and nothing is left."""
        if self._stopping is None:
            return
        self._stop(at_once=False)
        while left := self._tasks | self._refusing:
            # Whoever waits here and is cancelled leaves them at it.
            await asyncio.wait(left)
        opened, self._open = self._open, AsyncExitStack()
        await opened.aclose()

    def _stop(self, at_once: bool) -> None:
        self._listener.close()
        for connection in list(self._connections):
            connection.stop(at_once=at_once)
        for transport in self._transports:
            transport.give_up()  # who has not even begun is owed nothing
        if self._stopping is not None:
            self._stopping.set()

    @property
    def _is_stopping(self) -> bool:
        return self._stopping is not None and self._stopping.is_set()

    # -- connections -------------------------------------------------------------------------

    def _take(self, transport: AcceptedSocket) -> None:
        """Serve a connection that has arrived, if there is room for it."""
        if self._loop is None or self._is_stopping:
            transport.discard()
        elif len(self._tasks) < self._limits.connections:
            self._keep(self._tasks, transport, self._serve(transport))
        elif len(self._refusing) < _MAX_REFUSALS:
            _log.debug("a connection was refused: there are %d", len(self._tasks))
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
        """Return what a client is told for which there is no room."""
        error = named_error(
            ErrorKind.INTERNAL_ERROR,
            policy=self._app.policy,
            message=f"No more than {self._limits.connections} connections; try again later",
            retryAfterMs=RETRY_AFTER,
        )
        return encode(Failure(None, error))

    async def _serve(self, transport: AcceptedSocket) -> None:
        if self._is_stopping:
            transport.discard()  # it arrived in the very moment
            return
        app = self._app
        connection = _UnverifiedConnection(app, transport)
        keeper = KeepAlive(connection, transport, self._limits)
        self._connections.add(connection)
        keeper.start()
        try:
            await app.serve_connection(connection)
        except TransportError as error:
            # Before it began: who scans ports, and whose certificates are not trusted.
            self._failures += 1
            is_shown = self._failures <= _MAX_LOGGED_FAILURES and not self._is_stopping
            level = logging.WARNING if is_shown else logging.DEBUG
            _log.log(level, "no connection with %s: %s", transport.peer or "a client", error)
        except Exception as error:  # noqa: BLE001  # one connection's; the others go on
            _log.error("a connection failed\n%s", as_redacted(error))
        finally:
            keeper.stop()
            self._connections.discard(connection)
            await transport.close()

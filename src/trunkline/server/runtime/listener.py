"""Socket listener of a server: accepts connections, limits them, and shuts down in order.

    async with app.listen("tcp://127.0.0.1:9000") as listening:
        await listening.wait()

The rules that live here, and only here:

* The lifespan lasts as long as the listener, so that it is not entered for each connection.
* When all connections are in use, one of the client that has most gives way to a new one: the
  oldest that has not sent a message yet, else the oldest. If no client has more than the one that
  connects, or that has half of them while there are others, only a silent one of its own gives way;
  without one, the new connection gets an error and is closed. At most `_MAX_REFUSALS` of those are
  handled at once; beyond that the socket is closed without a response.
* A TLS handshake is not a connection yet. Unfinished handshakes have a bound of their own, and the
  oldest of the client that has most gives way: clients that send nothing keep out no client that
  finishes its handshake.
* A connection whose first frame is not JSON-RPC gets one error and is closed. A web page can make
  a browser send text of its choice to a local port, by HTTP or inside a TLS ClientHello, and a line
  of that text could be a request.
* Listening beyond this machine without client certificates logs a warning: sockets have no other
  authentication.
* With `auth=`, a connection whose peer is not known gets an error and is closed before anything of
  it is read. It ends when the credential of its principal does.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.json import encode

from ...accounts.client_key import client_key, principal_key, user_key
from ...accounts.shares import Holdings, by_most
from ...engine.limits import SocketLimits
from ...engine.log_limit import LogLimit
from ...engine.runner import RETRY_AFTER_MS
from ...errors import TransportError
from ...jsonrpc.error_codes import named_error
from ...jsonrpc.messages import Failure
from ...spec.error_kinds import ErrorKind
from ...transports.addresses import Tcp, Unix, is_exposed
from ...transports.base import Frame, ignore
from ...transports.lifecycle import MADE_ROOM, ListenerLifecycle
from ...transports.sockets.listener import Listener
from ..dispatch.connection import Connection
from ..errors import as_redacted
from .keepalive import KeepAlive

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from ...accounts.account import Account
    from ...auth.principal import Principal
    from ...auth.server.peers import PeerAuthenticator
    from ...transports.sockets.connection import AcceptedSocket
    from ..api.core import ServerCore

__all__ = ["ServerListener"]

_log: Final = logging.getLogger("trunkline.server")

# Connections beyond the limit that are sent an error at the same time.
_MAX_REFUSALS: Final = 64


def _oldest_unused(transports: Iterable[AcceptedSocket]) -> AcceptedSocket | None:
    """Return the first that has sent nothing that is still to be read."""
    # A busy server has not read everything yet: the first message may be there already.
    return next((each for each in transports if not each.has_unread_input()), None)


class _UnverifiedConnection(Connection):
    """A connection that has not yet received a JSON-RPC message."""

    __slots__ = ("_on_first_message",)

    def __init__(
        self,
        core: ServerCore,
        transport: AcceptedSocket,
        log_limit: LogLimit,
        on_first_message: Callable[[AcceptedSocket], object],
    ) -> None:
        super().__init__(core, transport)
        self.log_limit = log_limit
        self._on_first_message = partial(on_first_message, transport)

    def receive(self, frame: Frame, route: Any = None) -> None:
        """Receive the first frame; accept more only if it looks like a JSON-RPC message."""
        self._on_first_message()
        text = frame if isinstance(frame, bytes) else getattr(frame, "head", b"")
        is_known = text.lstrip()[:1] in (b"{", b"[")
        # Further frames may be in the same bytes: handle them normally, or ignore them.
        self.transport.on_message = super().receive if is_known else ignore
        super().receive(frame, route)
        if not is_known:
            self.end(TransportError("the first frame is not JSON-RPC"))


class ServerListener(ListenerLifecycle):
    """A server that listens on an address; `Server.listen` makes one, for one `async with`."""

    def __init__(
        self,
        app: ServerCore,
        address: Tcp | Unix,
        limits: SocketLimits,
        sock: socket.socket | Sequence[socket.socket] | None = None,
        peers: PeerAuthenticator | None = None,
    ) -> None:
        super().__init__()
        self._app = app
        # Recognises those that connect; None if they are anonymous.
        self._peers = peers
        self._limits = limits
        self._listener = Listener(
            address,
            app.policy,
            self._take,
            backlog=limits.backlog,
            handshake=limits.tls_handshake,
            make_room=self._make_room,
            sock=sock,
        )
        self._log_limit: LogLimit | None = None
        # By transport, each until its socket is closed.
        self._tasks: dict[AcceptedSocket, asyncio.Task[None]] = {}
        # Those that count as connections, by client; of these, oldest first, those without a
        # message so far.
        self._held: Holdings[AcceptedSocket] = Holdings(
            limits.connections, app.limits.client_shares
        )
        self._accounts: dict[AcceptedSocket, Account] = {}
        self._silent: dict[AcceptedSocket, None] = {}
        # Those with an unfinished TLS handshake, oldest first; the address of each.
        self._handshaking: dict[AcceptedSocket, str] = {}
        # Those that are sent an error and closed.
        self._refusing: set[AcceptedSocket] = set()
        self._connections: set[Connection] = set()
        # Of connections, with `auth=`.
        self._principals: dict[AcceptedSocket, Principal | None] = {}

    def __repr__(self) -> str:
        return f"<ServerListener on {self.address}, {self.connections} connections>"

    @property
    def address(self) -> Tcp | Unix:
        """The address it listens on; port 0 is replaced by the actual port."""
        return self._listener.address

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._held)

    async def _open(self, opening: AsyncExitStack) -> None:
        self._log_limit = LogLimit(asyncio.get_running_loop(), is_shared=True)
        await opening.enter_async_context(self._app.runtime.opened())
        await self._listener.open()
        opening.callback(self._listener.close)
        opening.callback(self._log_limit.end)
        self._app.runtime.listeners.add(self)
        opening.callback(self._app.runtime.listeners.discard, self)
        _log.info("listening on %s", self.address)
        if is_exposed(self.address):
            _log.warning(
                "%s accepts connections from other machines without authentication: "
                "Tls(ca=...) accepts only clients with a certificate",
                self.address,
            )

    def stop_accepting(self) -> None:
        """Stop accepting; open connections continue until `stop` or `close`.

        Used when another process has taken over the same sockets.
        """
        self._listener.close()

    def _stop_serving(self, at_once: bool) -> None:
        for connection in list(self._connections):
            connection.stop(at_once=at_once)
        for transport in self._tasks:
            transport.cancel_connect()

    async def _finish_serving(self) -> None:
        while self._tasks:
            # A cancelled `close` leaves them running.
            await asyncio.wait(list(self._tasks.values()))

    # -- connections -------------------------------------------------------------------------

    def _take(self, transport: AcceptedSocket) -> None:
        if self._loop is None or self._stopping.is_set():
            transport.discard()
        elif transport.has_handshake:
            if len(self._handshaking) >= self._limits.tls_handshakes:
                given = by_most(self._handshaking)
                text = "TLS handshake was the oldest of a client that has too many"
                self._drop(_oldest_unused(given) or given[0], text)
            self._handshaking[transport] = client_key(transport.host)
            self._start(transport, self._serve(transport))
        elif not self._recognise(transport):
            self._refuse(transport, self._unknown())
        elif self._admit(transport):
            self._start(transport, self._serve(transport))
        else:
            self._refuse(transport, self._full())

    def _refuse(self, transport: AcceptedSocket, error: bytes) -> None:
        """Send an error to a connection that is not served, unless too many get one."""
        if len(self._refusing) < _MAX_REFUSALS:
            self._refusing.add(transport)
            self._start(transport, transport.refuse(error))
        else:
            self._release(transport)
            transport.discard()

    def _recognise(self, transport: AcceptedSocket) -> bool:
        """Find the principal of a connection; return False if it is not admitted."""
        if self._peers is None:
            return True
        try:
            self._principals[transport] = self._peers.principal_of(transport)
        except PermissionError:
            self._app.runtime.counters.refused_connections += 1
            if self._log_limit is not None:
                text = "connection from %s refused: its client is not known"
                self._log_limit.warning(text, transport.peer or "a client")
            return False
        return True

    def _admit(self, transport: AcceptedSocket) -> bool:
        """Admit a connection, perhaps in place of another; return False if that fails."""
        account = self._account_of(transport)
        if not self._held.has_room(account):
            other = self._taken_back(account)
            if other is None:
                counters = self._app.runtime.counters
                counters.refused_connections += 1
                limit = self._limits.connections
                counters.warn("connections", "connection refused: limit of %d reached", limit)
                return False
            is_silent = other in self._silent
            why = "no message so far" if is_silent else "its client has most connections"
            self._drop(other, f"{why}, gave way to a new connection")
        self._held.add(account, transport)
        self._silent[transport] = None
        return True

    def _account_of(self, transport: AcceptedSocket) -> Account:
        """Return the account that a connection uses until it is closed."""
        found = self._accounts.get(transport)
        if found is None:
            principal = self._principals.get(transport)
            if principal is not None:
                key = principal_key(principal.key)
            elif transport.name == "unix":
                key = user_key(transport.peer_uid())
            else:
                key = client_key(transport.host)
            found = self._app.runtime.open_account(key, principal)
            self._accounts[transport] = found
        return found

    def _taken_back(self, account: Account) -> AcceptedSocket | None:
        """Return the connection that gives way to a new one of an account."""
        may_take, accounts = self._held.may_take, self._accounts
        silent = [each for each in self._silent if may_take(account, accounts[each], is_idle=True)]
        others = [each for each in silent if accounts[each] is not account]
        oldest = _oldest_unused(others) or _oldest_unused(silent)
        if oldest is not None:
            return oldest
        for donor in self._held.largest():
            if may_take(account, donor, is_idle=False):
                return next(self._held.of(donor))
        return None

    def _drop(self, transport: AcceptedSocket, reason: str) -> None:
        self._app.runtime.counters.dropped_connections += 1
        # At once: its task ends later, and another may take its place until then.
        self._release(transport)
        self._silent.pop(transport, None)
        self._handshaking.pop(transport, None)
        if self._log_limit is not None:
            text = "connection from %s dropped: %s"
            self._log_limit.warning(text, transport.peer or "a client", reason)
        transport.drop(reason)

    def _make_room(self) -> bool:
        """Close some connections that were of no use so far; return False if there are none."""
        has_room = False
        for _ in range(MADE_ROOM):
            silent = {each: self._account_of(each) for each in self._silent}
            oldest = _oldest_unused(by_most(self._handshaking)) or _oldest_unused(by_most(silent))
            if oldest is None:
                break
            self._drop(oldest, "no message so far, and descriptors ran out")
            has_room = True
        return has_room

    def _first_message(self, transport: AcceptedSocket) -> None:
        self._silent.pop(transport, None)

    def _handshake_done(self, transport: AcceptedSocket, connection: Connection) -> None:
        self._handshaking.pop(transport, None)
        is_known = self._recognise(transport)
        if is_known and self._admit(transport):
            self._identify(transport, connection)
            return
        transport.on_message = ignore
        if len(self._refusing) < _MAX_REFUSALS:
            self._refusing.add(transport)
            transport.send(self._full() if is_known else self._unknown())
            connection.end()
        else:
            self._drop(transport, f"limit of {self._limits.connections} connections reached")

    def _identify(self, transport: AcceptedSocket, connection: Connection) -> None:
        """Count a connection for its client, and serve its principal until its credential ends."""
        account = self._account_of(transport)
        connection.use_account(account)
        transport.use_account(account)
        transport.on_excess = partial(self._end_excess, transport, connection)
        principal = self._principals.get(transport)
        if principal is not None:
            connection.use_principal(principal)

    def _end_excess(self, transport: AcceptedSocket, connection: Connection) -> None:
        """End a connection whose unfinished message is more than its client may be sending."""
        transport.on_message = transport.on_excess = ignore
        error = named_error(
            ErrorKind.OVERLOADED, policy=self._app.policy, retryAfterMs=RETRY_AFTER_MS
        )
        transport.send(encode(Failure(None, error)))
        connection.end(TransportError("the client is sending more bytes than its share"))

    def _start(self, transport: AcceptedSocket, work: Coroutine[Any, Any, None]) -> None:
        task = cast(asyncio.AbstractEventLoop, self._loop).create_task(work)
        self._tasks[transport] = task
        task.add_done_callback(lambda _: self._forget(transport))

    def _forget(self, transport: AcceptedSocket) -> None:
        del self._tasks[transport]
        self._release(transport)
        self._silent.pop(transport, None)
        self._handshaking.pop(transport, None)
        self._refusing.discard(transport)
        self._principals.pop(transport, None)

    def _release(self, transport: AcceptedSocket) -> None:
        account = self._accounts.pop(transport, None)
        if account is not None:
            self._held.discard(account, transport)
            account.close()

    def _unknown(self) -> bytes:
        error = named_error(ErrorKind.UNAUTHORIZED, policy=self._app.policy)
        return encode(Failure(None, error))

    def _full(self) -> bytes:
        error = named_error(
            ErrorKind.INTERNAL_ERROR,
            policy=self._app.policy,
            message=f"No more than {self._limits.connections} connections; try again later",
            retryAfterMs=RETRY_AFTER_MS,
        )
        return encode(Failure(None, error))

    async def _serve(self, transport: AcceptedSocket) -> None:
        if self._stopping.is_set():
            transport.discard()  # accepted just before shutdown
            return
        log_limit = cast(LogLimit, self._log_limit)
        try:
            await self._converse(transport, log_limit)
        except TransportError as error:
            # Failed during setup: port scanners, untrusted certificates.
            text, peer = "connection from %s failed: %s", transport.peer or "a client"
            is_known = transport.is_dropped or self._stopping.is_set()
            log = _log.debug if is_known else log_limit.warning
            log(text, peer, error)
        except Exception as error:  # noqa: BLE001  # one connection's; the others continue
            _log.error("connection failed\n%s", as_redacted(error))
        finally:
            await transport.close()

    async def _converse(self, transport: AcceptedSocket, log_limit: LogLimit) -> None:
        connection = _UnverifiedConnection(self._app, transport, log_limit, self._first_message)
        if transport.has_handshake:
            transport.on_handshake = partial(self._handshake_done, transport, connection)
        else:
            self._identify(transport, connection)
        keepalive = KeepAlive(connection, transport, self._limits)
        self._connections.add(connection)
        keepalive.start()
        try:
            await self._app.runtime.serve(connection)
        finally:
            keepalive.stop()
            self._connections.discard(connection)
            connection.leave_account()

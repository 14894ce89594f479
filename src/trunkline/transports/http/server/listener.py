"""The sockets of an HTTP server: they accept connections, finish handshakes, and close in order.

The rules that live here, and only here:

* An unfinished TLS handshake is not a connection yet. They have a bound of their own, and the
  oldest of the client that has most gives way.
* Shutdown is ordered: stop accepting, let the endpoints answer what they serve, cancel handshakes,
  then close the connections when their clients have read what was sent.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ....accounts.client_key import client_key
from ....accounts.shares import by_most
from ...addresses import Http, Tcp
from ...lifecycle import ListenerLifecycle
from ...sockets.listener import Listener
from ..gate.admission import Admission

if TYPE_CHECKING:
    from ....jsonrpc.policy import Policy
    from ..settings import HttpLimits, HttpSettings
    from .http_server import HttpServer

__all__ = ["HttpSocketListener", "admission_of"]

_log: Final = logging.getLogger("trunkline.http")

# Unfinished TLS handshakes; they are not connections yet.
_MAX_HANDSHAKES: Final = 256


def admission_of(address: Http, settings: HttpSettings) -> Admission:
    """Return the gate of a listener on an address.

    Raises:
        ValueError: other machines can reach the address, and no name of it is allowed.
    """
    is_unix = address.unix is not None
    bound = [] if is_unix else [(address.host, address.port)]
    return Admission(settings, bound, is_unix=is_unix, is_secure=bool(address.tls))


class HttpSocketListener(ListenerLifecycle):
    """Listens on an address; a subclass makes the `HttpServer` of its connections."""

    def __init__(
        self,
        address: Http,
        policy: Policy,
        limits: HttpLimits,
        flush_timeout: float,
        sock: socket.socket | Sequence[socket.socket] | None = None,
    ) -> None:
        """Describe the listener; `flush_timeout` is for clients to read the last responses."""
        super().__init__()
        self._address = address
        self._limits = limits
        self._flush_timeout = flush_timeout
        self._http: HttpServer | None = None
        # Connections whose TLS handshake is not finished, oldest first; the address of each.
        self._accepting: dict[asyncio.Task[Any], str] = {}
        self._listener = Listener(
            address.socket,
            policy,
            on_socket=self._take,
            backlog=limits.backlog,
            make_room=self._make_room,
            sock=sock,
        )

    @property
    def address(self) -> Http:
        """The address it listens on; port 0 is replaced by the actual port."""
        return self._address

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return 0 if self._http is None else len(self._http.connections)

    async def _bind(self, opening: AsyncExitStack) -> None:
        """Open the sockets; `address` then has the port that the system chose."""
        await self._listener.open()
        opening.callback(self._listener.close)
        where = self._listener.address
        if isinstance(where, Tcp):
            self._address = replace(self._address, port=where.port)

    def stop_accepting(self) -> None:
        """Stop accepting; open connections continue until `stop` or `close`.

        Used when another process has taken over the same sockets.
        """
        self._listener.close()

    def _stop_serving(self, at_once: bool) -> None:
        if self._http is not None:
            self._http.stop()
            self._http.routes.stop(at_once=at_once)

    async def _finish_serving(self) -> None:
        if self._http is not None:
            await self._http.routes.close()
        for each in list(self._accepting):
            each.cancel()  # its handshake would outlast the server
        if self._http is not None:
            await self._http.close(self._flush_timeout)

    def _take(self, sock: socket.socket) -> None:
        """Begin to serve an accepted connection."""
        http = self._http
        if http is None or http.is_stopping:
            sock.close()
            return
        if len(self._accepting) >= _MAX_HANDSHAKES:
            given = by_most(self._accepting)[0]
            del self._accepting[given]  # now, not when it has ended
            given.cancel()
        tls = self._listener.context
        timeout = self._limits.tls_handshake if tls is not None else None
        accepting = http.loop.create_task(
            http.loop.connect_accepted_socket(
                http.protocol, sock, ssl=tls, ssl_handshake_timeout=timeout
            )
        )
        self._accepting[accepting] = "" if tls is None else client_key(_address_of(sock))
        accepting.add_done_callback(self._accepted)

    def _accepted(self, accepting: asyncio.Task[Any]) -> None:
        self._accepting.pop(accepting, None)
        if not accepting.cancelled() and (error := accepting.exception()) is not None:
            _log.debug("connection not accepted: %s", error)

    def _make_room(self) -> bool:
        return self._http is not None and self._http.make_room()


def _address_of(sock: socket.socket) -> str:
    try:
        peer = sock.getpeername()
    except OSError:  # it is gone
        return ""
    return peer[0] if isinstance(peer, tuple) else ""

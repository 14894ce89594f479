"""The client's end of a WebSocket: connects, by a proxy perhaps, and makes the handshake.

The rules that live here, and only here:

* The client offers the subprotocol `mcp`, and a server that does not choose it is refused: it
  serves something else there.                                  [RFC 6455, section 4.1]
* There is no Origin header: the client is not a browser.
* Any answer but 101 ends the attempt. Redirects are not followed: they would carry the headers of
  the caller elsewhere.
* The times of `HttpOptions.connect_timeout` include the handshakes of TLS and of WebSocket.
* The handshake has the credentials of the client. One that is refused with 401 or 403 is repeated,
  on a new connection, as long as they ask for it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import WebSocketURI

from ...errors import AuthorizationFailed, TransportError
from ..addresses import Tcp, Tls, path_advice
from ..base import ignore
from ..http.client.proxy import failure_text, open_tunnel, parse_proxy, proxy_for
from ..sockets.connection import dial_host, tune
from .connection import SUBPROTOCOL, WebSocketFrames, WebSocketTransport

if TYPE_CHECKING:
    import socket

    from ...jsonrpc.policy import Policy
    from ..addresses import Ws
    from ..http.client.authorization import RequestAuthorizer, ServerNetwork
    from ..http.client.settings import HttpOptions

__all__ = ["DialledWebSocket"]

# Silence after which the server is pinged.
KEEP_ALIVE_S: Final = 30.0
# Between two looks at the silence.
_CHECK_INTERVAL_S: Final = 5.0
_SWITCHING_PROTOCOLS: Final = 101


class _ClientFrames(WebSocketFrames, ClientProtocol):
    """The handshake of a client, and the frames after it."""


class _UpgradeRefused(Exception):
    """The answer to a handshake that lacks a credential."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        self.headers = headers


class DialledWebSocket(WebSocketTransport):
    """A connection that a client opens."""

    _other = "server"

    def __init__(self, address: Ws, policy: Policy, options: HttpOptions) -> None:
        super().__init__(policy.limits.message_size("websocket"))
        self._address = address
        self._options = options
        self._is_used = False
        self._connecting: asyncio.Task[None] | None = None
        self._opening: _ClientFrames | None = None
        self._answered: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        # Called with True while the client obtains a credential, for which a user may have to log
        # in, and then with False.
        self.on_authorizing: Callable[[bool], object] = ignore
        self._auth: RequestAuthorizer | None = None
        self._network: ServerNetwork | None = None

    def __repr__(self) -> str:
        state = "open" if self.is_connected else "closed"
        return f"<DialledWebSocket to {self._address}, {state}>"

    async def connect(self) -> None:
        """Open the connection, and start to call `on_message`.

        Raises:
            TransportError: the server does not answer or refuses; the text has the reason.
            AuthorizationFailed: the server requires a credential that the client does not have.
            ValueError: the credentials of the client are not sent to this address.
        """
        if self._is_used or self._ending is not None:
            raise TransportError("a transport connects once")
        self._is_used = True
        # A task, so that `close` can cancel it.
        self._connecting = asyncio.get_running_loop().create_task(self._authorize())
        try:
            await asyncio.wait((self._connecting,))
        except asyncio.CancelledError:
            self._connecting.cancel()
            await asyncio.wait((self._connecting,))
            raise
        if self._connecting.cancelled():
            raise TransportError("closed while connecting")
        error = self._connecting.exception()
        if error is not None:
            raise error

    async def _authorize(self) -> None:
        """Connect, with credentials if the client has them."""
        if self._options.auth is not None:
            self._use_auth()
        auth = self._auth
        if auth is None:
            try:
                await self._connect(b"")
            except _UpgradeRefused as refused:
                raise self._unauthorized(refused.status) from None
            return
        status = await auth.run("GET", self._url(), self._attempt)
        if status != _SWITCHING_PROTOCOLS:
            raise self._unauthorized(status)

    def _use_auth(self) -> None:
        # Imported here: many clients have no credentials, or a fixed header.
        from ..http.client.authorization import RequestAuthorizer, ServerNetwork

        if self._options.auth is None:
            return
        self._network = ServerNetwork(self._address.host)
        auth = self._options.auth.for_server(
            self._url(), context=self._context(), is_private=self._network.is_private
        )
        self._auth = RequestAuthorizer(auth)
        self._auth.on_waiting = lambda is_waiting: self.on_authorizing(is_waiting)

    def _url(self) -> str:
        """Return the URL of the handshake, which is a GET."""
        address = self._address
        host = f"[{address.host}]" if ":" in address.host else address.host
        port = "" if address.port == (443 if address.tls else 80) else f":{address.port}"
        return f"{'https' if address.tls else 'http'}://{host}{port}{address.path}"

    async def _attempt(self, lines: bytes) -> tuple[int, list[tuple[bytes, bytes]]]:
        try:
            await self._connect(lines)
        except _UpgradeRefused as refused:
            return refused.status, refused.headers
        return _SWITCHING_PROTOCOLS, []

    def _unauthorized(self, status: int) -> AuthorizationFailed:
        what = f"{self._address} refused the WebSocket: {_phrase(status)}"
        if self._auth is None and status == HTTPStatus.UNAUTHORIZED:
            from ..http.client.authorization import LOGIN_ADVICE

            what += LOGIN_ADVICE
        return AuthorizationFailed(what, step="request", status=status)

    async def _connect(self, lines: bytes) -> None:
        address, seconds = self._address, self._options.connect_timeout
        try:
            async with asyncio.timeout(seconds):
                await self._dial()
                await self._shake_hands(lines)
        except TimeoutError:
            error = TransportError(f"{address} did not answer within {seconds:g} s")
        except ssl.SSLError as fault:
            reason = getattr(fault, "verify_message", "") or fault.reason or "TLS failed"
            error = TransportError(f"{address} cannot be trusted: {reason}")
        except OSError as fault:
            error = TransportError(f"{address} cannot be reached: {failure_text(fault)}")
        except TransportError as fault:
            error = fault
        except BaseException:  # refused, or a cancelled task: nothing may be left open
            await self._discard()
            raise
        else:
            return
        await self._discard()
        raise error

    async def _discard(self) -> None:
        self._frames = self._opening = self._answered = None
        self._abort()
        if self._transport is not None:
            await asyncio.wait((self._lost,))

    async def _dial(self) -> None:
        address, loop = self._address, asyncio.get_running_loop()
        context = self._context()
        name: str | None = None
        if address.tls:
            name = address.tls.server_name if isinstance(address.tls, Tls) else None
            name = name or address.host
        sock = await self._open_socket(loop)
        try:
            await loop.create_connection(lambda: self, sock=sock, ssl=context, server_hostname=name)
        except BaseException:  # a cancelled task too: nothing may be left open
            sock.close()
            raise

    def _context(self) -> ssl.SSLContext | None:
        if not self._address.tls:
            return None
        # Imported here: many servers are on this machine.
        from ..sockets.tls import client_context

        return client_context(self._address.tls)

    async def _open_socket(self, loop: asyncio.AbstractEventLoop) -> socket.socket:
        address, given = self._address, self._options.proxy
        if given is None:
            proxy = proxy_for("https" if address.tls else "http", address.host)
        else:
            proxy = parse_proxy(given, "HttpOptions.proxy") if given else None
        if proxy is None:
            sock = await dial_host(loop, Tcp(address.host, address.port), address)
            if self._network is not None:
                self._network.add(sock)
            return sock
        sock = await open_tunnel(proxy, address.host, address.port)
        tune(sock)
        return sock

    # -- the handshake -----------------------------------------------------------------------

    async def _shake_hands(self, lines: bytes) -> None:
        address = self._address
        uri = WebSocketURI(bool(address.tls), address.host, address.port, address.path, "")
        opening = self._opening = _ClientFrames(
            uri, subprotocols=[Subprotocol(SUBPROTOCOL)], max_size=self._limit
        )
        opening.on_failure = self._on_failure
        self._answered = self._loop.create_future()
        request = opening.connect()
        for name, value in self._options.headers.items():
            request.headers[name] = value
        for line in lines.decode("ascii").splitlines():
            name, _, value = line.partition(": ")
            request.headers[name] = value
        opening.send_request(request)
        self._transport.write(b"".join(opening.data_to_send()))
        await self._answered
        if self._transport is None:
            raise TransportError(f"{address} closed the connection during the handshake")

    def buffer_updated(self, nbytes: int) -> None:
        """Process what was read: the answer of the handshake, then frames."""
        frames = self._opening or self._frames
        if frames is not None:
            self._feed(frames, bytes(self._buffer[:nbytes]))

    def _process_events(self) -> None:
        # Frames may follow the answer in the same data.
        if self._opening is not None:
            self._check_answer(self._opening)
        super()._process_events()

    def _check_answer(self, opening: _ClientFrames) -> None:
        answered = self._answered
        if answered is None or answered.done():
            return
        if opening.handshake_exc is not None:
            answered.set_exception(self._refused(opening.handshake_exc))
        elif opening.state is not State.CONNECTING:
            if opening.subprotocol != SUBPROTOCOL:
                what = f"did not choose the subprotocol {SUBPROTOCOL}"
                answered.set_exception(TransportError(f"{self._address} {what}"))
                return
            answered.set_result(None)
            self._opening = None
            self._begin(opening)
            self._timer = self._loop.call_later(_CHECK_INTERVAL_S, self._check)

    def _refused(self, error: Exception) -> Exception:
        if isinstance(error, InvalidStatus):
            status = error.response.status_code
            given = error.response.headers.raw_items()
            headers = [(name.lower().encode(), value.encode()) for name, value in given]
            if self._auth is not None:
                self._auth.responded(self._url(), status, headers)
            if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                return _UpgradeRefused(status, headers)
            advice = path_advice(self._address) if status == HTTPStatus.NOT_FOUND else ""
            return TransportError(
                f"{self._address} refused the WebSocket: {_phrase(status)}{advice}"
            )
        kind = type(error).__name__
        return TransportError(f"{self._address} does not speak WebSocket there: {kind}")

    # -- the end -----------------------------------------------------------------------------

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end, to the handshake too."""
        super().connection_lost(error)
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(None)

    def eof_received(self) -> bool:
        """Close: the two directions end together."""
        if self._opening is not None:
            self._opening.receive_eof()
            self._check_answer(self._opening)
            return False
        return super().eof_received()

    async def _end(self) -> None:
        if self._connecting is not None and not self._connecting.done():
            self._connecting.cancel()
            await asyncio.wait((self._connecting,))
        await super()._end()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = self._loop.call_later(_CHECK_INTERVAL_S, self._check)
        self.check(self._loop.time(), KEEP_ALIVE_S)


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)

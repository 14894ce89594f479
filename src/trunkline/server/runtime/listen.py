"""`Server.listen`: the listener for an address, on a socket or over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...engine.limits import SocketLimits
from ...transports.addresses import Http, Tcp, Unix, Ws, parse_address

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from ...transports.http.settings import HttpLimits, HttpSettings
    from ..api.core import ServerCore
    from .http_listener import HttpListener
    from .listener import ServerListener

__all__ = ["address_of", "listen"]


def address_of(given: object) -> Http | Tcp | Unix:
    """Return an address, parsed if it is a text.

    Raises:
        ValueError: the text is not an address, or that of a WebSocket, or it has a query.
        TypeError: it is not an address at all.
    """
    if isinstance(given, str):
        given = parse_address(given, listening=True)
    if isinstance(given, Ws):
        scheme = "https" if given.tls else "http"
        raise ValueError(
            f"WebSocket is served beside HTTP: listen on {scheme}://… with "
            "HttpSettings(websocket=True)"
        )
    if isinstance(given, Http) and given.query:
        raise ValueError("a server listens on a path: the query of a URL is for clients")
    if not isinstance(given, Http | Tcp | Unix):
        kind = type(given).__name__
        raise TypeError(f"a server listens on an Http, a Tcp, a Unix or a text, not {kind}")
    return given


def listen(
    core: ServerCore,
    given: str | Http | Tcp | Unix,
    limits: HttpLimits | SocketLimits | None,
    http: HttpSettings | None,
    sock: socket.socket | Sequence[socket.socket] | None,
    auth: Any = None,
) -> HttpListener | ServerListener:
    """Return the listener for an address; see `Server.listen`.

    Raises:
        ImportError: HTTP needs the extra `http`, WebSocket the extra `ws`.
    """
    address = address_of(given)
    auth = core.auth if auth is None else auth
    if auth is not None:
        # Imported here: a server on a machine of its own may have none.
        from .auth_setup import use_auth

        auth = use_auth(core, auth)
    if isinstance(address, Http):
        # Imported here, as below: a server has one of the two.
        from ...transports.http.settings import HttpLimits, HttpSettings

        try:
            from .http_listener import HttpListener
        except ModuleNotFoundError as error:
            if error.name != "httptools":
                raise
            from ...extras import install_command

            raise ImportError(f"HTTP needs httptools: {install_command('http')}") from None

        if http is not None and http.websocket:
            _check_websockets()
        if limits is not None and not isinstance(limits, HttpLimits):
            raise TypeError("the limits of an HTTP listener are HttpLimits")
        return HttpListener(
            core, address, http or HttpSettings(), limits or HttpLimits(), sock, auth
        )
    if limits is not None and not isinstance(limits, SocketLimits):
        raise TypeError("the limits of a socket listener are SocketLimits")
    if http is not None:
        raise TypeError(f"HttpSettings are for http:// addresses, not for {address}")
    from .listener import ServerListener

    peers = None
    if auth is not None:
        # Imported here: most sockets are protected by the system alone.
        from ...auth.server.peers import peer_rules_of

        kind = "unix" if isinstance(address, Unix) else "tls" if address.tls else "tcp"
        peers = peer_rules_of(auth, kind, address)
    return ServerListener(core, address, limits or SocketLimits(), sock, peers)


def _check_websockets() -> None:
    # Imported here: most servers do not offer it.
    from importlib.util import find_spec

    try:
        is_there = find_spec("websockets") is not None
    except ValueError:  # it is marked as missing
        is_there = False
    if not is_there:
        from ...extras import install_command

        raise ImportError(f"WebSocket needs websockets: {install_command('ws')}")

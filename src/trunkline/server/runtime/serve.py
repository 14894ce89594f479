"""Serving one connection of a server: on a given transport, or in this process."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from ...errors import TransportError
from ..dispatch.connection import Connection
from ..errors import as_redacted, one_line

if TYPE_CHECKING:
    from ...auth.principal import Principal
    from ...transports.base import Transport
    from ...transports.memory import MemoryTransport
    from ..api.core import ServerCore

__all__ = ["connect_in_process", "serve"]

_log: Final = logging.getLogger("trunkline.server")

# Connections in this process that are served: a task that nothing holds may be collected.
_serving: Final[set[asyncio.Task[None]]] = set()


async def serve(core: ServerCore, transport: Transport, auth: Any = None) -> None:
    """Serve one connection until it ends; return after open requests were answered.

    Raises:
        TransportError: the transport could not connect.
        ValueError: `auth` cannot recognise the client of such a connection.
        PermissionError: it does not know the client.
    """
    principal = None
    auth = core.auth if auth is None else auth
    if auth is not None:
        # Imported here: most connections have no principal.
        from ...auth.server.peers import peer_rules_of
        from .auth_setup import use_auth

        auth = use_auth(core, auth)
        principal = peer_rules_of(auth, transport.name).principal_of(transport)
    await _serve(core, transport, principal)


async def _serve(core: ServerCore, transport: Transport, principal: Principal | None) -> None:
    async with core.runtime.opened():
        connection = Connection(core, transport)
        if principal is not None:
            connection.use_principal(principal)
        await core.runtime.serve(connection)


def connect_in_process(core: ServerCore) -> Transport:
    """Return the client's end of a new connection to a server, in this process."""
    from ...transports.memory import memory_pair

    near, far = memory_pair()
    task = asyncio.get_running_loop().create_task(_serve_here(core, far))
    _serving.add(task)
    task.add_done_callback(_serving.discard)
    return near


async def _serve_here(core: ServerCore, transport: MemoryTransport) -> None:
    try:
        # The program itself is the client: without a rule for it, it is anonymous.
        await _serve(core, transport, _own_principal(core))
    except Exception as error:  # noqa: BLE001  # the lifespan's; the client is told
        _log.error("in-process connection failed and is closed\n%s", as_redacted(error))
        failure = TransportError(f"the server failed: {type(error).__name__}: {one_line(error)}")
        failure.__cause__ = error
        await transport.fail(failure)


def _own_principal(core: ServerCore) -> Principal | None:
    if core.auth is None:
        return None
    # Imported here, as above.
    from ...auth.server.peers import Fixed
    from ...auth.server.settings import settings_of

    rules = settings_of(core.auth).verifiers
    return next((each.principal for each in rules if isinstance(each, Fixed)), None)

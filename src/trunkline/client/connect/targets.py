"""What a client can connect to.

An address creates transports: a command, a server object in the same process, a URL. A transport
is used for one connection. A string is an address with a scheme, never a command: passing text to
a shell by mistake runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from msgspec import structs

from ...errors import TransportError
from ...jsonrpc.policy import Policy
from ...transports.base import Address, Transport
from ..session import Era

if TYPE_CHECKING:
    from ...transports.http.client.authorization import ClientAuth
    from ...transports.http.client.settings import HttpOptions

__all__ = [
    "ConnectTarget",
    "TargetLike",
    "forget_era",
    "name_of",
    "outlives",
    "remember_era",
    "remembered_era",
    "target_of",
    "with_http_options",
]

# The `target` of a client.
TargetLike: TypeAlias = Address | Transport | Sequence[str] | str


class ConnectTarget(NamedTuple):
    """An address, and whether it can be connected to again."""

    address: Address
    is_reusable: bool = True


class _SingleUseAddress:
    """A transport as an address that works once."""

    def __init__(self, transport: Transport) -> None:
        self._transport: Transport | None = transport

    def transport(self, policy: Policy) -> Transport:
        transport, self._transport = self._transport, None
        if transport is None:
            raise TransportError(
                "a transport connects once: give the client an address to connect to again"
            )
        return transport


def with_http_options(
    target: ConnectTarget,
    options: HttpOptions | None,
    headers: Mapping[str, str] | None,
    auth: ClientAuth | None = None,
) -> ConnectTarget:
    """Return a target whose requests have these headers, credentials and options.

    Raises:
        ValueError: the target is not an address of HTTP or WebSocket, or a header cannot be sent.
    """
    if options is None and headers is None and auth is None:
        return target
    # Imported here: many clients run a command.
    from dataclasses import replace

    from ...transports.addresses import Http, Ws
    from ...transports.http.client.settings import HttpOptions

    if not isinstance(target.address, Http | Ws):
        raise ValueError("headers, auth and http are for addresses such as https://example.org/mcp")
    made = options or target.address.options or HttpOptions()
    if headers is not None:
        names = {str(name).lower() for name in headers}
        kept = {name: value for name, value in made.headers.items() if name.lower() not in names}
        made = structs.replace(made, headers={**kept, **headers})
    if auth is not None:
        made = structs.replace(made, auth=auth)
    return target._replace(address=replace(target.address, options=made))


def target_of(given: Any) -> ConnectTarget:
    """Return the target of a client.

    Raises:
        ValueError: a string that is not an address, or an empty command; the text says what to
            pass instead.
        TypeError: it is not something to connect to.
    """
    if isinstance(given, str):
        return ConnectTarget(_address(given))
    if isinstance(given, list | tuple):
        return ConnectTarget(_command(list(given)))
    if callable(getattr(given, "transport", None)):
        return ConnectTarget(given)
    if all(callable(getattr(given, name, None)) for name in ("connect", "send", "close")):
        return ConnectTarget(_SingleUseAddress(given), is_reusable=False)
    raise TypeError(
        f"a client connects to an address, a Stdio, a Server, a list of strings or a Transport, "
        f"not to {type(given).__name__}"
    )


def _address(text: str) -> Address:
    # Imported here: many clients run a command.
    from ...transports.addresses import parse_address

    try:
        return parse_address(text)
    except ValueError as error:
        raise ValueError(
            f'{error}; a command is passed as a list, such as ["python", "server.py"]'
        ) from None


def _command(parts: list[Any]) -> Address:
    if not parts or not all(isinstance(part, str) for part in parts):
        raise ValueError('a command is a list of strings, such as ["python", "server.py"]')
    # Imported here: a client of an in-process server runs no command.
    from ...transports.stdio.client import Stdio

    return Stdio(parts[0], parts[1:])


def outlives(address: Address) -> bool:
    """Return True if the server at an address exists independently of a connection to it."""
    return getattr(address, "outlives_connections", False) is True


def name_of(address: Address) -> str:
    """Return the address as text, if it is one of a server that exists independently; else ""."""
    has_text = type(address).__str__ is not object.__str__
    return str(address) if has_text and outlives(address) else ""


# The era of servers, by address.
# [MCP 2026-07-28, basic/versioning]
_eras: WeakKeyDictionary[Any, Era] = WeakKeyDictionary()


def remembered_era(address: Address) -> Era | None:
    """Return the era of a server at its last connection."""
    try:
        return _eras.get(address)
    except TypeError:
        return None  # an unhashable address is probed each time


def remember_era(address: Address, era: Era) -> None:
    """Remember the era of a server."""
    try:
        _eras[address] = era
    except TypeError:
        pass  # as above


def forget_era(address: Address) -> None:
    """Probe a server again next time: the remembered era did not work."""
    try:
        _eras.pop(address, None)
    except TypeError:
        pass  # as above

"""What a client can be pointed at.

An address is anything that makes transports: a command to run, a server object in the same
process. A transport that somebody made by hand serves for one connection. A text is an
address with a scheme; it is never taken for a command, because a line that is given to a
shell by mistake is how other people's text gets run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from ...errors import TransportError
from ...jsonrpc.policy import Policy
from ...transports.base import Address, Transport
from ..session import Era

__all__ = [
    "ConnectTarget",
    "TargetLike",
    "forget_era",
    "outlives",
    "remember_era",
    "remembered_era",
    "target_of",
]

# What a caller may name.
TargetLike: TypeAlias = Address | Transport | Sequence[str] | str


class ConnectTarget(NamedTuple):
    """Where to connect to, and whether that can be done again."""

    address: Address
    is_reusable: bool = True


class _SingleUseAddress:
    """A transport that was made by hand, as an address that works once."""

    def __init__(self, transport: Transport) -> None:
        self._transport: Transport | None = transport

    def transport(self, policy: Policy) -> Transport:
        transport, self._transport = self._transport, None
        if transport is None:
            raise TransportError(
                "a transport connects once: give the client an address to connect to again"
            )
        return transport


def target_of(given: Any) -> ConnectTarget:
    """Return the target that a caller named.

    Raises:
        ValueError: it is a text that is no address, or an empty command; the sentence says what
            to pass instead.
        TypeError: it is nothing one can connect to.
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
    # Imported here: many clients have a command.
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
    # Imported here: a client of a server in the same process starts none.
    from ...transports.stdio.client import Stdio

    return Stdio(parts[0], parts[1:])


def outlives(address: Address) -> bool:
    """Say whether the server at an address is there before and after a connection to it."""
    return getattr(address, "outlives_connections", False) is True


# Which era servers belong to. It is a property of the server, so it goes with the address.
# [MCP 2026-07-28, basic/versioning]
_eras: WeakKeyDictionary[Any, Era] = WeakKeyDictionary()


def remembered_era(address: Address) -> Era | None:
    """Return the era that a server was of when it was last connected to."""
    try:
        return _eras.get(address)
    except TypeError:
        return None  # an address that cannot be a key is asked anew each time


def remember_era(address: Address, era: Era) -> None:
    """Take note of the era of a server."""
    try:
        _eras[address] = era
    except TypeError:
        pass  # as above


def forget_era(address: Address) -> None:
    """Ask a server anew the next time: what was known of it led nowhere."""
    try:
        _eras.pop(address, None)
    except TypeError:
        pass  # as above

"""What a client can connect to.

An address creates transports: a command, a server object in the same process, a URL. A transport
is used for one connection. `resolve` reads a string, and `configured` a configuration.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from msgspec import structs

from ...errors import TransportError
from ...jsonrpc.policy import Policy
from ...redaction import show
from ...transports.base import Address, Transport
from ..session.session import Era

if TYPE_CHECKING:
    from ...transports.http.client.authorization import ClientAuth
    from ...transports.http.client.settings import HttpOptions
    from .resolve import ResolvedTarget

__all__ = [
    "ConnectTarget",
    "TargetLike",
    "check_names",
    "forget_era",
    "is_group",
    "name_of",
    "outlives",
    "own_auth",
    "remember_era",
    "remembered_era",
    "resolved_target",
    "server_target",
    "target_of",
    "with_http_options",
]

# The `target` of a client.
TargetLike: TypeAlias = (
    Address | Transport | Sequence[str] | str | os.PathLike[str] | Mapping[str, Any]
)


class ConnectTarget(NamedTuple):
    """An address, and whether it can be connected to again."""

    address: Address
    is_reusable: bool = True
    # Of the server in a configuration that has one.
    name: str = ""


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
    own = target.address.options
    made = options or own or HttpOptions()
    if options is not None and own is not None:
        # The headers and the login of a configured entry stay.
        headers = {**own.headers, **options.headers, **(headers or {})}
        auth = auth or options.auth or own.auth
    if headers is not None:
        names = {str(name).lower() for name in headers}
        kept = {name: value for name, value in made.headers.items() if name.lower() not in names}
        made = structs.replace(made, headers={**kept, **headers})
    if auth is not None:
        made = structs.replace(made, auth=auth)
    return target._replace(address=replace(target.address, options=made))


def is_group(given: Any, *, least: int = 2) -> bool:
    """Return True if the target of a client is a configuration of several servers."""
    if not isinstance(given, str | Mapping | os.PathLike):
        return False
    # Imported here: the client of a server object reads neither.
    from .resolve import is_configuration

    if not is_configuration(given):
        return False
    from .configured import config_servers

    return len(config_servers(given)) >= least


def target_of(given: Any) -> ConnectTarget:
    """Return the target of a client.

    Raises:
        ValueError: a string that is not an address, or an empty command; the text says what to
            pass instead.
        TypeError: it is not something to connect to.
    """
    if isinstance(given, str):
        return _resolved_text(given)
    if isinstance(given, list | tuple):
        return ConnectTarget(_command(list(given)))
    if callable(getattr(given, "transport", None)):
        return ConnectTarget(given)
    if all(callable(getattr(given, name, None)) for name in ("connect", "send", "close")):
        return ConnectTarget(_SingleUseAddress(given), is_reusable=False)
    if isinstance(given, Mapping):
        return _only_server(given)
    if isinstance(given, os.PathLike):
        path = os.fspath(given)
        # Not the name of a host, nor a scheme.
        return _resolved_text(path if os.path.isabs(path) else os.path.join(os.curdir, path))
    # Imported here: most targets are one.
    from .resolve import check_not_client

    check_not_client(given)
    raise TypeError(
        f"a client connects to an address, a file, a Stdio, a Server, a list of strings, "
        f"a Transport or a configuration, not to {type(given).__name__}"
    )


def _resolved_text(text: str) -> ConnectTarget:
    # Imported here: the client of a server object reads no text.
    from .resolve import is_configuration, resolve

    return _only_server(text) if is_configuration(text) else resolved_target(resolve(text))


def _only_server(given: Any) -> ConnectTarget:
    """Return the target of a configuration with one server."""
    from .configured import config_servers

    servers = config_servers(given)
    if len(servers) > 1:
        # `Client` makes a group of these; a subclass of it cannot.
        raise ValueError(
            f"the configuration has {len(servers)} servers, and only Client(...) and "
            f"SyncClient(...) themselves talk to several"
        )
    ((name, found),) = servers.items()
    return server_target(found)._replace(name=name)


def server_target(found: Any) -> ConnectTarget:
    """Return the target of one server of a configuration.

    Raises:
        ValueError: the entry cannot be used.
        TypeError: it is not something to connect to.
    """
    from .resolve import ResolvedTarget

    if isinstance(found, Exception):
        raise found
    return resolved_target(found) if isinstance(found, ResolvedTarget) else target_of(found)


def resolved_target(found: ResolvedTarget) -> ConnectTarget:
    """Return the target of a text that was resolved.

    Raises:
        ValueError: its address is not complete, or a header cannot be sent.
    """
    if not found.address:
        from ...transports.stdio.client import Stdio

        command, *args = found.command
        return ConnectTarget(Stdio(command, args, env=dict(found.env) or None, cwd=found.cwd))
    target = ConnectTarget(_address(found))
    auth = _login(found.auth) if isinstance(found.auth, Mapping) else found.auth
    try:
        return with_http_options(target, None, found.headers or None, auth)
    except ValueError as error:
        if auth is None:
            raise
        raise ValueError(f"{show(found.text)}: {error}") from None


def _login(options: Mapping[str, Any]) -> ClientAuth:
    """Return the login of an entry; it is kept where `trunkline login` keeps it.

    Raises:
        ValueError: an option does not go with another, or the library is not installed.
    """
    # Imported here: most servers need no login.
    try:
        from ...auth.client.oauth import OAuth
        from ...auth.client.storage.file_tokens import FileTokens
    except ImportError as error:
        raise ValueError(str(error)) from None
    return OAuth(storage=FileTokens(), **options)


def own_auth(
    target: ConnectTarget, given: ClientAuth | Mapping[str, ClientAuth] | None
) -> ClientAuth | None:
    """Return `auth=` of the client of one server, which may give it by name.

    Raises:
        ValueError: it has the name of another server, or the server has no name.
    """
    if not isinstance(given, Mapping):
        return given
    if not target.name:
        raise ValueError(
            "auth by the name of a server is for a configuration; for one server give the object, "
            "such as auth=OAuth()"
        )
    check_names(given, [target.name])
    return given.get(target.name)


def check_names(given: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise ValueError if `auth=` names a server that a configuration does not have."""
    for name in given:
        if name not in names:
            # Imported here: it is rare.
            from ...hosts.entries import near_name

            raise ValueError(f"auth: there is no server {show(name)}; {near_name(name, names)}")


def _address(found: ResolvedTarget) -> Address:
    # Imported here: many clients run a command.
    from ...transports.addresses import parse_address

    try:
        return parse_address(found.address)
    except ValueError as error:
        if found.text != found.address:
            # Of an entry: the URL may hold a secret.
            raise ValueError(
                f"{show(found.text)}: the URL of the entry is not the address of a server"
            ) from None
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

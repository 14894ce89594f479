"""The clients of a group: they connect at once, fail one by one, and close together.

The rules that live here, and only here:

* A server that cannot be started, reached or used, and one whose connection is lost, does not end
  the others. Its error is kept, and raised by calls of its tools. Connecting fails if all fail.
* Every server has all of `connect_timeout`: all connect at the same time.
* `close` closes every client, whatever another does, and waits at most 30 s.
* Credentials belong to one server: `headers` and `http` are rejected, because every server would
  be sent them, and `auth` is a mapping by the names of servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...errors import AuthorizationFailed, ConnectionLost, TransportError, TrunklineError
from ...jsonrpc.limits import Limits
from ...redaction import show
from ..connect.targets import check_names, server_target
from ..session.diagnostics import log, report
from ..session.session import RequestNotSent
from ..subscriptions.budget import NotificationBudget

if TYPE_CHECKING:
    from ..client import Client
    from ..connect.connection import ClientConnection

__all__ = ["GroupMembers"]

# More than it takes to kill a child that does not exit.
_CLOSE_TIMEOUT_S: Final = 30.0
_OF_ONE_SERVER: Final = ("headers", "http")


class GroupMembers:
    """The clients of a group by the names of their servers, and what is wrong with the others."""

    def __init__(self, servers: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        # Imported here: `Client` makes the group.
        from ..client import Client, connection_of

        for name in _OF_ONE_SERVER:
            if options.get(name) is not None:
                raise ValueError(
                    f"{name} would be sent to every server: put headers into the entry of one, or "
                    f"make its value an address with options, such as Http(..., options=...)"
                )
        auth = _auth_of(options.get("auth"), servers)
        self.clients: dict[str, Client] = {}
        self._connections: dict[str, ClientConnection] = {}
        # Of callbacks on a thread; those on the event loop have the budget of their server.
        self.budget = NotificationBudget(Limits())
        # Of servers without a client, of those that could not connect, and of the last list.
        self._unusable: dict[str, Exception] = {}
        self._not_connected: dict[str, Exception] = {}
        self._not_listed: dict[str, Exception] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_connecting = False
        for name, found in servers.items():
            try:
                address = server_target(found).address
            except (ValueError, TypeError) as error:
                self._unusable[name] = error
            else:
                own = {**options, "auth": auth.get(name)}
                self.clients[name] = client = Client(address, **own)
                self._connections[name] = connection_of(client)
        if not self.clients:
            raise ValueError(_told("no server can be used", self._unusable))

    @property
    def live(self) -> dict[str, Client]:
        """The clients that are connected, or reconnect with the next request."""
        return {
            name: self.clients[name]
            for name, connection in self._connections.items()
            if _problem_of(connection) is None
        }

    @property
    def has_session(self) -> bool:
        """Whether any client has a session, which may have ended."""
        return any(each.has_session for each in self._connections.values())

    @property
    def is_unused(self) -> bool:
        """Whether no client has a session, and none is being opened."""
        return not self._is_connecting and all(
            each.is_unused for each in self._connections.values()
        )

    def use_threads(self, not_connected: str) -> NotificationBudget:
        """Use the text for calls without a session; return the budget of callbacks."""
        for each in self._connections.values():
            each.use_threads(not_connected)
            # One thread makes the callbacks of all servers, which share a bound there.
            self.budget = NotificationBudget(each.policy.limits)
        return self.budget

    @property
    def failures(self) -> dict[str, Exception]:
        """Why servers cannot be used, by name: of the start, of the connection or of a list."""
        found = dict(self._unusable)
        for name, connection in self._connections.items():
            problem = _problem_of(connection)
            if isinstance(problem, ConnectionLost):
                found[name] = problem
            elif problem is not None and name in self._not_connected:
                found[name] = self._not_connected[name]
            elif problem is None and name in self._not_listed:
                found[name] = self._not_listed[name]
        return found

    def client(self, name: str) -> Client:
        """Return the client of a server that can be used.

        Raises:
            TrunklineError: it cannot; the text names the server, and the cause is its error.
        """
        client = self.clients.get(name)
        problem = None if client is None else _problem_of(self._connections[name])
        if client is not None and problem is None:
            return client
        error = self.failures.get(name, problem)
        assert error is not None
        if not isinstance(error, TrunklineError | ValueError):
            raise TransportError(
                f"the server {show(name)} is not connected: {type(error).__name__}"
            ) from error
        raise TransportError(f"the server {show(name)} is not connected: {error}") from error

    def note(self, name: str, error: Exception | None) -> None:
        """Keep the error of the last list of a server; None after a list that worked."""
        if error is None:
            self._not_listed.pop(name, None)
        else:
            self._not_listed[name] = error

    async def connect(self) -> None:
        """Connect all clients at once.

        Raises:
            TransportError: none could connect; the text has the reason of each.
        """
        if self._is_connecting or any(
            not each.is_unused and _problem_of(each) is None for each in self._connections.values()
        ):
            raise TrunklineError("this client is already connected or connecting")
        self._is_connecting = True
        self._not_connected.clear()
        self._not_listed.clear()
        try:
            await asyncio.gather(*(self._connect(name) for name in self.clients))
            if not self.live:
                failures = self.failures
                if not failures:
                    raise TrunklineError("the client was closed while it connected")
                cause = ExceptionGroup("no server could be reached", list(failures.values()))
                raise TransportError(_told("no server could be reached", failures)) from cause
        except BaseException:  # cancellation too: nothing may be left open
            await self.close()
            raise
        finally:
            self._is_connecting = False

    async def _connect(self, name: str) -> None:
        try:
            await self.clients[name].connect()
        except Exception as error:  # noqa: BLE001  # of one server; the others are used without it
            _advise(name, error)
            self._not_connected[name] = error
            log.warning("server %s cannot be used: %s", show(name), _reason(error))

    async def close(self) -> None:
        """Close all clients; what one raises is logged."""
        for name, client in self.clients.items():
            task = asyncio.get_running_loop().create_task(_close(name, client.close()))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        # Cancelling this wait does not cancel the closing tasks.
        _, late = await asyncio.wait(list(self._closing), timeout=_CLOSE_TIMEOUT_S)
        if late:
            log.warning("%d servers were not closed within %g s", len(late), _CLOSE_TIMEOUT_S)


def _auth_of(given: Any, servers: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the credentials of each server.

    Raises:
        ValueError: they would be sent to every server, or name one that is not there.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        check_names(given, list(servers))
        return given
    # One with a URL, if there is one: others have no credentials.
    names = [name for name, each in servers.items() if getattr(each, "address", "")]
    name = next(iter(names or servers))
    raise ValueError(
        f"auth would be sent to every server: give it by name, as in auth={{{name!r}: OAuth()}}, "
        'or put "auth" into the entry of one'
    )


def _advise(name: str, error: Exception) -> None:
    """Replace the advice to log in, which is for a client of one server."""
    if not isinstance(error, AuthorizationFailed):
        return
    # Imported here: most servers need no login.
    from ...transports.http.client.authorization import LOGIN_ADVICE

    if error.reason.endswith(LOGIN_ADVICE):
        reason = error.reason.removesuffix(LOGIN_ADVICE)
        error.reason = (
            f'{reason}; it logs in with "auth": "oauth" in its entry, or with '
            f"auth={{{name!r}: OAuth()}}"
        )


async def _close(name: str, closing: Coroutine[Any, Any, None]) -> None:
    try:
        await closing
    except Exception as error:  # noqa: BLE001  # of one server; the others are closed all the same
        report(error, f"closing the server {show(name)}")


def _problem_of(connection: ClientConnection) -> TrunklineError | None:
    """Return why a connection cannot send, unless it reconnects by itself."""
    session = connection.session
    if session is None:
        return TrunklineError(connection.not_connected)
    try:
        session.check_open()
    except RequestNotSent:
        return None
    except ConnectionLost as error:
        return error
    return None


def _told(text: str, errors: Mapping[str, Exception]) -> str:
    lines = "".join(f"\n  {show(name)}: {_reason(error)}" for name, error in errors.items())
    return f"{text}:{lines}"


def _reason(error: Exception) -> str:
    """Return the text of an error; only its class if the text may hold anything."""
    is_ours = isinstance(error, TrunklineError | ValueError | ImportError)
    return str(error) if is_ours else type(error).__name__

"""The runtime state of a server: its connections, listeners, threads, budget and lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ..accounts.account import Accounts
from ..concurrency.thread_pool import ThreadPool
from ..transports.base import ignore
from .budget import server_bytes
from .counters import Counters

if TYPE_CHECKING:
    from ..accounts.account import Account
    from ..auth.principal import Principal
    from ..jsonrpc.limits import Limits
    from ..jsonrpc.peer.incoming import IncomingRequest
    from .access.tenancy import Tenancy
    from .limits import ServerLimits
    from .observability.operations import Observer
    from .runner import RequestRunner

__all__ = ["ServerRuntime", "SharedLifespan"]


class SharedLifespan:
    """A reference-counted async context manager on one event loop."""

    def __init__(self, name: str, enter: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
        """Enter with `enter`; what it pushes on the stack is closed after the last use."""
        self._name = name
        self._enter = enter
        self.was_entered = False
        self._uses = 0
        self._stack: AsyncExitStack | None = None
        self._opening: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @property
    def is_held(self) -> bool:
        """Whether it is in use."""
        return self._uses > 0

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Keep it entered inside `async with`.

        Raises:
            RuntimeError: it is in use on another event loop.
        """
        lock = self._lock()
        async with lock:
            # Not `_uses`: the last user may have left without having closed the stack yet.
            if self._stack is None:
                async with AsyncExitStack() as stack:
                    await self._enter(stack)
                    self._stack = stack.pop_all()
                self.was_entered = True
            self._uses += 1
        try:
            yield
        finally:
            # Before any await: a user cancelled here has left all the same. The lock is then held
            # by one that enters, and closes later, or by one that is closing.
            self._uses -= 1
            if self._uses == 0:
                async with lock:
                    left = self._stack
                    if self._uses == 0 and left is not None:
                        self._stack = None
                        await left.aclose()

    def _lock(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._opening is None or self._opening[0] is not loop:
            if self.is_held or (self._opening is not None and self._opening[1].locked()):
                raise RuntimeError(f"{self._name} is being served on another event loop")
            self._opening = loop, asyncio.Lock()
        return self._opening[1]


class RunningConnection(Protocol):
    """What the runtime needs of a connection."""

    loop: asyncio.AbstractEventLoop
    runner: RequestRunner

    async def run(self) -> None:
        """Serve the client until one side closes."""

    def stop(self, *, at_once: bool = False) -> None:
        """Refuse new requests; running handlers may finish, unless `at_once`."""


class RunningListener(Protocol):
    """What the runtime needs of a listener."""

    def stop_accepting(self) -> None:
        """Accept no more connections; those that are open go on."""

    def stop(self, *, at_once: bool = False) -> None:
        """Begin to end it."""


class ServerRuntime:
    """What is connected to one server, and what its handlers run on."""

    def __init__(
        self,
        name: str,
        limits: ServerLimits,
        sizes: Limits,
        enter: Callable[[AsyncExitStack], Any],
    ) -> None:
        self.limits = limits
        self.connections: set[Any] = set()
        self.listeners: set[RunningListener] = set()
        # What each client uses, and handlers that run and bytes that are held for all of them.
        self.accounts = accounts = Accounts(
            limits.in_flight_overall, server_bytes(limits, sizes), limits.client_shares
        )
        self.calls = accounts.calls
        self.budget = accounts.bytes
        self.counters = Counters()
        # What tenants share; None without tenants.
        self.tenancy: Tenancy | None = None
        # Metrics, tracing and the audit, of connections that are opened from now on.
        self.observers: tuple[Observer[Any], ...] = ()
        # Called with a request that its client has cancelled.
        self.request_cancelled: Callable[[IncomingRequest], object] = ignore
        self.threads = ThreadPool(
            limits.threads,
            limits.waiting_for_thread,
            name="trunkline-handler",
            is_shared=lambda: len(self.connections) > 1,
            on_late=self._threads_are_late,
        )
        accounts.on_forget = self._account_ended
        accounts.on_excess = partial(self.counters.refuse, "client_bytes")
        # What the lifespan yielded, while it lasts.
        self.state: Any = None
        self._life = SharedLifespan(f"<Server {name!r}>", enter)
        self._new_task: tuple[Any, Callable[[Any], asyncio.Task[Any]]] | None = None

    @property
    def in_flight(self) -> int:
        """The number of handlers that run, on all connections."""
        return self.calls.used

    def _account_ended(self, account: Account) -> None:
        if account.share.busy or account.share.jobs:
            self.threads.leave(account.share)

    def _threads_are_late(self, more: int, waiting: int, seconds: float) -> None:
        self.counters.late_threads += more
        self.counters.warn(
            "threads",
            "%d calls wait for one of %d threads, the first for %.1f s",
            waiting,
            self.limits.threads,
            seconds,
        )

    # -- the lifespan ------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the lifespan is entered."""
        return self._life.is_held

    @property
    def was_opened(self) -> bool:
        """Whether the lifespan was ever entered."""
        return self._life.was_entered

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Hold the lifespan: entered for the first connection, left after the last."""
        return self._life.held()

    # -- connections -------------------------------------------------------------------------

    def open_account(self, key: str, principal: Principal | None = None) -> Account:
        """Use the account of a client, with what its tenant has; the caller closes it."""
        use = None if self.tenancy is None else self.tenancy.of(principal)
        if use is None:
            return self.accounts.open(key)
        return self.accounts.open(key, use.budget, use.threads)

    async def serve(self, connection: RunningConnection) -> None:
        """Serve one connection, with the lifespan entered, until it ends."""
        self.connections.add(connection)
        try:
            await connection.run()
        finally:
            self.connections.discard(connection)
            self.threads.leave(connection.runner.threads)

    def stop(self, *, at_once: bool = False) -> None:
        """Begin to end every listener and connection; may be called from any thread."""
        for each in list(self.listeners):
            each.stop(at_once=at_once)
        for connection in list(self.connections):
            try:
                stop = partial(connection.stop, at_once=at_once)
                connection.loop.call_soon_threadsafe(stop)
            except RuntimeError:
                # Its event loop is closed.
                self.connections.discard(connection)

    def new_task(self, loop: asyncio.AbstractEventLoop) -> Callable[[Any], asyncio.Task[Any]]:
        """Return what makes tasks of a loop, one object for all connections."""
        if self._new_task is None or self._new_task[0] is not loop:
            # As `create_task` would, without looking for a task factory each time.
            is_plain = loop.get_task_factory() is None and isinstance(loop, asyncio.BaseEventLoop)
            make = partial(asyncio.Task, loop=loop) if is_plain else loop.create_task
            self._new_task = loop, make
        return self._new_task[1]

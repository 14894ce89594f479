"""The services of a server: subscriptions, tasks, round trips, tenants and observers.

Each is made on first use, or switched on by an option: a server that does not use one has none of
it in memory.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ...spec.mcp.tasks_extension import EXTENSION as TASKS
from ..client_requests.request_state import StateSealer
from ..subscriptions.registry import SubscriptionRegistry

if TYPE_CHECKING:
    from ...engine.observability.operations import OperationRecorder, Serve
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ...store.base import Store
    from ..access.envelope import EnvelopeAuth
    from ..client_requests.multi_round_trip import RoundTrips
    from ..dispatch.connection import Connection
    from ..dispatch.request import ServerRequest
    from ..registry.options import ServerOptions
    from ..tasks.service import ServerTasks
    from .core import ServerCore

__all__ = ["ServerServices"]


class ServerServices:
    """What the connections of one server share beside its entries."""

    def __init__(self, core: ServerCore, options: ServerOptions) -> None:
        self._core = core
        # Made now, before any fork, so that all worker processes share it.
        self._seal = StateSealer(tuple(options.state_keys))
        # Signs the cursors of lists.
        self.cursor_key = self._seal.first
        self.streams = SubscriptionRegistry(core)
        self.streams.honoured_task_ids = self._honoured_task_ids
        # Made on first use if none was given.
        self._store = options.store
        self._task_settings = options.tasks
        self._tasks: ServerTasks | None = None
        # Finds callers by what messages carry; None unless the policy has such an envelope.
        self.envelope_auth: EnvelopeAuth | None = None
        # Whether requests pass a gate before they are served: this one, or that of tenants.
        self.is_gated = False

    @property
    def has_own_store(self) -> bool:
        """Whether the author gave a store, or one was made for tasks."""
        return self._store is not None

    @property
    def store(self) -> Store:
        """Where tasks are kept; the memory of this process by default."""
        if self._store is None:
            from ...store.memory import MemoryStore

            self._store = MemoryStore()
        return self._store

    @cached_property
    def rounds(self) -> RoundTrips:
        """Requests to clients inside results, for revisions without requests from the server."""
        from ..client_requests.multi_round_trip import RoundTrips  # here: most servers never ask

        return RoundTrips(self._seal, self._core.limits, server=self._core.name)

    def observe(self, connection: Connection, receive: Serve, serve: Serve) -> OperationRecorder:
        """Return what records the requests of a new connection of a server with observers."""
        from ..observability.operations import record_operations  # here: few servers have them

        return record_operations(connection, receive, serve)

    # -- tasks -------------------------------------------------------------------------------

    @property
    def tasks(self) -> ServerTasks:
        """The tasks of this server."""
        if self._tasks is None:
            from ..tasks.service import ServerTasks

            self._tasks = ServerTasks(self._core, self.store, self._task_settings, self.cursor_key)
        return self._tasks

    def stop_tasks(self, *, at_once: bool = False) -> None:
        """Begin to end the tasks; may be called from any thread."""
        if self._tasks is not None:
            self._tasks.stop_soon(at_once=at_once)

    def connection_ended(self, connection: Connection) -> None:
        """Stop what waits on a connection."""
        if self._tasks is not None:
            self._tasks.release(connection)

    def request_cancelled(self, message: IncomingRequest) -> None:
        """Stop what waits for a request."""
        if self._tasks is not None:
            self._tasks.give_up(message)

    async def finish_results(self, connection: Connection, seconds: float) -> None:
        """Wait for the `tasks/result` calls of a connection, for so many seconds."""
        if self._tasks is not None:
            await self._tasks.finish_results(connection, seconds)

    async def finish_tasks(self) -> None:
        """Let tasks finish for a moment after the last connection, then stop them."""
        if self._tasks is not None:
            limits, tasks = self._core.limits, self._tasks
            seconds = limits.grace if tasks.is_stopping else limits.linger
            await tasks.finish(max(0, seconds - tasks.waited))

    async def end_tasks(self) -> None:
        """Close the tasks, with the lifespan."""
        if self._tasks is not None:
            await self._tasks.close()

    def _honoured_task_ids(self, request: ServerRequest, ids: list[str]) -> list[str]:
        if TASKS not in self._core.extensions:
            return []
        return self.tasks.honoured_task_ids(request, ids)

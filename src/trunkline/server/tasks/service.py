"""The tasks of a server of MCP: those of the engine, with admission and subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...engine.handler_run import handler_run_of
from ...engine.request import Refuse
from ...engine.tasks.lifecycle import Tasks
from ...engine.tasks.progress import TaskProgress
from ...errors import RequestError
from ...spec.error_kinds import ErrorKind
from ...spec.mcp.tasks_extension import EXTENSION
from ..registry.extensions import declares
from .access import is_accessible
from .admission import DeferredTaskAsker, TaskStart, admit
from .dialect import ToolTaskDialect
from .records import ToolTaskRecord
from .wire import progress_message, task_form

if TYPE_CHECKING:
    from msgspec import Raw, UnsetType

    from ...engine.limits import TaskSettings
    from ...store.base import Store
    from ..api.core import ServerCore
    from ..dispatch.request import ServerRequest
    from ..registry.entries import ToolEntry

__all__ = ["ServerTasks"]


class ServerTasks(Tasks[ToolTaskRecord]):
    """The tasks of one server: tool calls that outlive their request."""

    def __init__(
        self, core: ServerCore, store: Store, settings: TaskSettings, cursor_key: bytes
    ) -> None:
        super().__init__(core.name, core.runtime, store, settings, ToolTaskDialect(core))
        self._core = core
        # Signs the cursors of `tasks/list`.
        self.cursor_key = cursor_key

    def admit(
        self, request: ServerRequest, entry: ToolEntry, requested: Raw | UnsetType
    ) -> Refuse | None:
        """Return the refusal of a call that may not be served, or None.

        A call that is a task from the start becomes one before its handler runs. `requested` is
        the `task` member of its params.
        """
        admission = admit(self._core, request, entry, requested)
        if isinstance(admission, Refuse):
            return admission
        if admission.start is None:
            return None
        start = TaskStart(self, request, must=admission.must, ttl=admission.ttl)
        run = handler_run_of(request)
        run.become = start
        if task_form(request.revision) == "extension":
            run.progress = TaskProgress(progress_message)
        if admission.start == "call" or (admission.start == "soon" and not self.settings.quick):
            run.begin = lambda _: start()
        elif admission.start == "soon":
            run.asker = DeferredTaskAsker(start, request, self._core.services.rounds)
            request.connection.loop.call_later(self.settings.quick, start.start_if_running)
        return None

    def honoured_task_ids(self, request: ServerRequest, ids: list[str]) -> list[str]:
        """Return the ids a client may subscribe to: its own tasks that run in this server.

        This server sends no notifications of finished tasks, or of tasks that run elsewhere.

        Raises:
            RequestError: the client did not declare the extension.
        """
        if not declares(request.caller, EXTENSION):
            raise RequestError(
                ErrorKind.MISSING_REQUIRED_CLIENT_CAPABILITY,
                f"The client did not declare the extension {EXTENSION}",
                data={"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
            )
        found = []
        for id in ids:
            running = self.running.get(id)
            if running is None or running.record.form != "extension" or running.is_over:
                continue
            if running.request.principal_key != request.principal_key:
                continue
            if not running.record.scopes or is_accessible(running.record, request):
                found.append(id)
        return found

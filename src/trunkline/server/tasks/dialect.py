"""The dialect of MCP for the tasks of the engine: what is written about a task, in each revision.

The rules that live here, and only here:

* `tasks/result` returns the result the original `tools/call` would have returned.
                                            [MCP 2025-11-25, basic/utilities/tasks]
* In the core form a question is sent as a request on an open `tasks/result` request, and names its
  task. In the extension form clients read it with `tasks/get` and respond with `tasks/update`.
                                            [MCP 2025-11-25, basic/utilities/tasks; SEP-2663]
* The core form sends status notifications to the connection of the call, the extension form to
  subscribers. The extension form has no progress notifications and no log messages in tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw
from msgspec.json import encode

from ...engine.tasks.records import InputResponse, TaskOutcome
from ...errors import LocalProtocolError, PeerError, RequestAborted, RequestTimeout
from ...jsonrpc.error_codes import named_error
from ...jsonrpc.messages import ErrorObject
from ...spec.error_kinds import ErrorKind
from ..client_requests import capabilities
from ..dispatch.connection import MAX_BACKLOG_BYTES, Connection
from . import wire
from .questions import request_of
from .records import ToolTaskRecord
from .wire import task_form

if TYPE_CHECKING:
    from ...engine.handler_run import InputQuestion
    from ...engine.limits import TaskSettings
    from ..api.core import ServerCore
    from ..dispatch.request import ServerRequest
    from ..dispatch.revision import ServerRevision

__all__ = ["NOT_FOUND", "ToolTaskDialect"]

# The same for a task that never existed, has expired, or belongs to another principal.
NOT_FOUND: Final = "Task not found"


class ToolTaskDialect:
    """How one server of MCP writes its tasks; see `TaskDialect`."""

    kind = "tool"
    record_type = ToolTaskRecord

    def __init__(self, core: ServerCore) -> None:
        self._core = core

    # -- records -----------------------------------------------------------------------------

    def members(self, request: ServerRequest, settings: TaskSettings) -> dict[str, Any]:
        """Return the fields of a new record that only MCP has."""
        entry = self._core.catalog.tools.get(request.name)
        guard = None if entry is None else entry.guard
        return {
            "form": task_form(request.revision),
            "tool": request.name,
            "poll_interval": settings.poll_interval,
            "scopes": () if guard is None else tuple(sorted(guard.scopes)),
        }

    def is_listed(self, record: ToolTaskRecord) -> bool:
        """Return True for the core form; the extension form has no `tasks/list`."""
        return record.form == "core"

    def outcome(self, record: ToolTaskRecord, request: ServerRequest, outcome: Any) -> TaskOutcome:
        """Return the final state of a task from the result or error of its handler."""
        return wire.outcome_of(outcome, record.form, request.rev)

    def failure(
        self, record: ToolTaskRecord, request: ServerRequest | None, message: str
    ) -> TaskOutcome:
        """Return the final state of a task that failed without an outcome of its handler."""
        return wire.failed_outcome(message, self._revision(record, request))

    def _revision(self, record: ToolTaskRecord, request: ServerRequest | None) -> ServerRevision:
        if request is not None:
            return request.rev
        core = self._core
        return core.revision(
            next(each for each in core.revisions if task_form(each) == record.form)
        )

    # -- messages ----------------------------------------------------------------------------

    def created(self, record: ToolTaskRecord, request: ServerRequest) -> Any:
        """Return the result of a call that became a task."""
        return wire.create_task_result(record, request.rev)

    def ending(self, record: ToolTaskRecord | None, request: ServerRequest) -> Any:
        """Return the answer to `tasks/result`."""
        if record is not None:
            return wire.task_payload(record, request.rev)
        return named_error(ErrorKind.TASK_NOT_FOUND, policy=request.policy, message=NOT_FOUND)

    def notify_status(
        self, record: ToolTaskRecord, request: ServerRequest | None, *, is_new: bool
    ) -> None:
        """Notify subscribers, or the client of the call, that a task has changed."""
        if record.form == "extension":
            params = wire.status_params(record, self._revision(record, request))
            self._core.services.streams.task_changed(record.id, params)
        elif request is not None and is_new and not _is_behind(request.connection):
            params = wire.status_params(record, request.rev)
            request.connection.notify("notifications/tasks/status", params)

    def report(
        self, record: ToolTaskRecord, request: ServerRequest, method: str, params: Any
    ) -> None:
        """Send progress or a log message of a task, in the form that has them."""
        if record.form == "core" and not _is_behind(request.connection):
            named = wire.with_related_task(params, record.id, request.rev)
            request.connection.notify(method, named)

    # -- questions ---------------------------------------------------------------------------

    def question(self, question: InputQuestion, request: ServerRequest) -> Raw:
        """Return a question as the record keeps it: a request without its id."""
        asked: dict[str, Any] = {"method": question.method}
        if question.params is not None:
            asked["params"] = request.rev.narrowed(question.params)
        return Raw(encode(asked))

    def is_carried(self, record: ToolTaskRecord) -> bool:
        """Return True for the core form."""
        return record.form == "core"

    def can_carry(self, question: Raw, request: ServerRequest) -> bool:
        """Return True if the client of a `tasks/result` request may be sent a question."""
        try:
            capabilities.check(request.connection.session, request.rev, *request_of(question))
        except LocalProtocolError:
            return False
        return True

    async def carry(
        self, record: ToolTaskRecord, question: Raw, request: ServerRequest
    ) -> InputResponse | None:
        """Return the client's response to a question; None if the request was aborted."""
        method, params = request_of(question)
        connection, rev = request.connection, request.rev
        named = wire.with_related_task(params, record.id, rev)
        try:
            raw = await connection.ask(request.message, rev, method, named, None)
        except PeerError as error:
            data = UNSET if error.data is None else error.data
            return InputResponse(error=ErrorObject(error.code, error.message, data))
        except RequestTimeout:
            return InputResponse(is_timeout=True)
        except RequestAborted:
            return None
        return InputResponse(result=raw)


def _is_behind(connection: Connection) -> bool:
    return connection.transport.backlog > MAX_BACKLOG_BYTES

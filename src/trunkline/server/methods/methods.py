"""The methods of MCP that name no entry, and the tables of all methods and notifications.

A `ServerRevision` takes from the tables what the rows of its revision list. Methods that name a
tool, resource or prompt are in `entry_methods.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, ValidationError
from msgspec.json import Decoder, encode

from ...engine.request import Action, Answer, Run
from ...mcp.types import (
    CancelledNotificationParams,
    PaginatedRequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
)
from ...spec.error_kinds import ErrorKind
from ...spec.mcp.methods import LISTED
from ...spec.mcp.tasks_extension import EXTENSION as TASKS
from ..dispatch import initialize
from ..dispatch.params import EMPTY, UNREADABLE, members_of, params_of
from ..dispatch.request import MethodHandler, ServerRequest
from ..errors import brief
from ..handlers.arguments import explain
from ..registry.extensions import ExtensionResult, sent
from ..registry.paged_list import InvalidCursor
from .entry_methods import ENTRY_METHODS, entry_handler, not_offered, second_reading
from .renderers import FailsWithError

if TYPE_CHECKING:
    from ...spec.rows import EntryKind
    from ..dispatch.connection import Connection
    from ..registry.entries import Entry

__all__ = ["NotificationHandler", "OwnMethod", "method_handlers", "notification_handlers"]

NotificationHandler = Callable[["Connection", Any], None]

_read_page: Final = Decoder(PaginatedRequestParams).decode
_read_level: Final = Decoder(SetLevelRequestParams).decode
_read_subscribe: Final = Decoder(SubscribeRequestParams).decode
_read_cancelled: Final = Decoder(CancelledNotificationParams).decode


# -- negotiation -----------------------------------------------------------------------------


def _discover(request: ServerRequest) -> Action:
    return Answer(request.rev.discovered())


def _ping(request: ServerRequest) -> Action:
    return Answer(request.rev.empty())


def _set_level(request: ServerRequest) -> Action:
    try:
        level = _read_level(params_of(request.message)).level
    except ValidationError as error:
        return request.refuse(ErrorKind.INVALID_LOG_LEVEL, brief(str(error)))
    if request.connection.session is not None:
        request.connection.session.log_level = level
    return Answer(request.rev.empty())


# -- lists -----------------------------------------------------------------------------------


def _list(kind: EntryKind, request: ServerRequest) -> Action:
    core, rev = request.connection.core, request.rev
    cursor = _read_page(params_of(request.message)).cursor
    listed, place = core.catalog.lists[kind], None if cursor is UNSET else cursor
    try:
        tail = rev.tail(core.catalog.cache_of(listed))
        if core.catalog.varies(listed):
            from .guarded import page_for  # here: most servers have no guards

            page = page_for(listed, request, place, tail)
        else:
            page = listed.page(rev.revision, place, tail=tail, max_bytes=rev.page_bytes)
    except InvalidCursor as error:
        known = {"cursor": brief(str(cursor))}
        return request.refuse(ErrorKind.INVALID_CURSOR, str(error), known)
    return Answer(page)


# -- subscriptions ---------------------------------------------------------------------------


def _unsubscribe(request: ServerRequest) -> Action:
    uri = _read_subscribe(params_of(request.message)).uri
    request.connection.core.services.streams.unsubscribe(request.connection, uri)
    return Answer(request.rev.empty())


def _listen(request: ServerRequest) -> Action:
    from ..subscriptions.listen import listen  # here: few clients listen

    return listen(request)


# -- tasks -----------------------------------------------------------------------------------


def _of_tasks(name: str, request: ServerRequest) -> Action:
    """Serve a task method, in revisions with tasks in their core."""
    if TASKS not in request.connection.core.extensions:
        return not_offered(request)
    # Imported here: most servers have no tasks.
    from ..tasks.methods import TASK_METHODS

    return TASK_METHODS[name](request)


# -- methods outside the specification -------------------------------------------------------


class OwnMethod(FailsWithError):
    """A registered method outside the specification."""

    def __init__(self, entry: Entry | None) -> None:
        self.entry = entry

    def __call__(self, request: ServerRequest) -> Action:
        """Serve it."""
        entry = self.entry
        assert entry is not None  # or it only renders
        raw = _without_meta(params_of(request.message))
        try:
            values = entry.arguments.decode(raw)
        except UNREADABLE as error:
            try:
                values = second_reading(entry.arguments, raw, error)
            except UNREADABLE as still:
                text = f"Invalid params: {explain(still, raw, entry.arguments)}"
                return request.refuse(ErrorKind.INVALID_PARAMS, text)
        request.owner, request.name = entry.owner, entry.name
        return Run(self, entry, values)

    def finish(self, _: Any, request: ServerRequest, value: Any) -> Any:
        """Return the result: an object as it is, None as empty, anything else under `result`."""
        if value is None:
            return request.rev.empty()
        if value.__class__ is ExtensionResult:
            return sent(value, request)
        plain = msgspec.to_builtins(value)
        members = plain if isinstance(plain, dict) else {"result": plain}
        always = request.rev.empty()
        if "_meta" in members and "_meta" in always:
            always = {**always, "_meta": {**always["_meta"], **members["_meta"]}}
        return {**members, **always}


def _without_meta(raw: Raw) -> bytes:
    return encode({name: value for name, value in members_of(raw).items() if name != "_meta"})


# -- notifications ---------------------------------------------------------------------------


def _initialized(connection: Connection, _: Any) -> None:
    if connection.session is not None:
        connection.session.is_ready = True
        connection.core.services.streams.ready(connection)


def _cancelled(connection: Connection, params: Any) -> None:
    id = _read_cancelled(EMPTY if params is UNSET else params).request_id
    if id is UNSET:
        initialize.cancel_by_token(connection, params)
    else:
        connection.core.services.streams.cancel(connection, id)
        connection.runner.cancel(id)


def _ignored(_: Connection, params: Any) -> None:
    """Do nothing: a server need not act on it."""


_TASK_METHODS: Final = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")

method_handlers: Final[dict[str, MethodHandler]] = {
    "initialize": initialize.initialize,
    "server/discover": _discover,
    "ping": _ping,
    "logging/setLevel": _set_level,
    "resources/unsubscribe": _unsubscribe,
    "subscriptions/listen": _listen,
    **{name: partial(_list, kind) for name, kind in LISTED.items() if kind != "task"},
    **{name: entry_handler(row) for name, row in ENTRY_METHODS.items()},
    **{name: partial(_of_tasks, name) for name in _TASK_METHODS},
}

notification_handlers: Final[dict[str, NotificationHandler]] = {
    "notifications/initialized": _initialized,
    "notifications/cancelled": _cancelled,
    "notifications/progress": _ignored,
    "notifications/roots/list_changed": _ignored,
}

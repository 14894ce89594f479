"""Serving `tasks/*`: which task is meant, whether it is the caller's, and what is answered.

The same functions serve the core's form and the extension's; what differs is in the rows of
the methods and types, and in how `task_forms.py` puts it.

The rules that live here, and only here:

* A task is visible in the form that made it, and to its owner: the principal and tenant of the
  call that made it. To anybody else it does not exist, in the same words.   [SEC-36, SEC-37]
* Where nobody has a name the id is the right, and a list holds what was made on the same
  connection.
* Answers that are not what was asked for change nothing, not even where others are.
* To cancel a task that has ended is a mistake in the core's form, and nothing in the other.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from functools import partial
from hmac import compare_digest, digest
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct
from msgspec.json import Decoder

from ...errors import RemoteProtocolError, RequestError
from ...jsonrpc.error_codes import named_error
from ...jsonrpc.incoming import IncomingRequest
from ...mcp.meta import Caller
from ...mcp.types import GetTaskRequestParams, PaginatedRequestParams
from ...redaction import redact
from ...spec.error_kinds import ErrorKind
from ...spec.mcp.tasks_extension import EXTENSION
from ...store.errors import StoreError
from ..client_requests import capabilities
from ..context import Context
from ..dispatch.connection import Connection
from ..dispatch.requests import RETRY_AFTER
from ..dispatch.revision import Serve, Surface
from ..errors import error_of
from ..extensions import Extension
from ..handlers.raw_arguments import raw_arguments
from ..registry.entries import Entry
from . import wire as forms
from .input_requests import method_of
from .records import InputResponse, TaskRecord, answered, cancelled
from .result_waiters import NOT_FOUND, ResultWaiter
from .wire import task_form

if TYPE_CHECKING:
    from .lifecycle import Tasks

__all__ = ["TASK_METHODS", "tasks_extension"]

_log: Final = logging.getLogger("trunkline.server")

# Tasks on a page: each is read by itself.
_PAGE_TASKS: Final = 50
# Of a signature, in bytes; nobody guesses so many.
_SIGNATURE_BYTES: Final = 16
# The longest cursor of ours: the store's own, signed, in Base64.
_MAX_CURSOR_CHARS: Final = 1024

_EMPTY: Final = Raw(b"{}")


class _Answers(Struct, frozen=True, rename="camel"):
    """Params of `tasks/update`, with the answers as they came."""

    task_id: str
    input_responses: dict[str, Raw]


_named: Final = Decoder(GetTaskRequestParams)
_answers: Final = Decoder(_Answers)
_page: Final = Decoder(PaginatedRequestParams)


class _TaskWork:
    """What becomes of a request about tasks."""

    def finish(self, entry: Any, context: Context, value: Any) -> Any:
        """Return the result; None is a request that stays open, and is answered later."""
        return value

    def fail(self, entry: Any, context: Context, error: BaseException) -> Any:
        """Return the error; a store that does not answer is a reason to come again."""
        policy = context._surface.policy
        if isinstance(error, StoreError):
            _log.warning("%s was not served: %s", context.method, error)
            kind = ErrorKind.SERVICE_UNAVAILABLE
            return named_error(kind, policy=policy, retryAfterMs=RETRY_AFTER)
        return error_of(error, context, policy)


_WORK: Final = _TaskWork()


# -- the methods -----------------------------------------------------------------------------


async def _get(context: Context, params: Any) -> Any:
    record = await _found(context, params.task_id)
    return forms.shown(record, context._surface)


async def _cancel(context: Context, params: Any) -> Any:
    record = await _found(context, params.task_id)
    change = await _tasks(context).alter(record, cancelled)
    if change.record is None:
        raise _not_found()
    if not change.is_ours and change.record.form == "core":
        raise RequestError(ErrorKind.TASK_ALREADY_COMPLETED)
    return forms.cancelled(change.record, context._surface)


async def _update(context: Context, params: Any) -> Any:
    record = await _found(context, params.task_id)
    tasks, surface = _tasks(context), context._surface
    replies = {
        key: _checked(key, raw, record.questions[key], surface)
        for key, raw in params.input_responses.items()
        if key in record.questions
    }
    await tasks.alter(record, partial(answered, replies=replies))
    return surface.empty()


async def _result(context: Context, params: Any) -> Any:
    record = await _found(context, params.task_id)
    if record.is_over:
        return forms.payload(record, context._surface)
    tasks = _tasks(context)
    await tasks.begin_to_watch()
    circle = tasks.circle(context)
    waiter = ResultWaiter(context._connection, context._asked, context._surface, circle, record)
    if not tasks.waiting.add(waiter):
        raise RequestError(ErrorKind.OVERLOADED, data={"retryAfterMs": RETRY_AFTER})
    try:
        # Again, now that we would be told: it may have ended while we looked.
        await tasks.watch(record.tenant, record.id)
    except BaseException:  # a cancelled task too
        tasks.give_up(context._asked)  # it is answered otherwise, or not at all
        raise
    return None


async def _list(context: Context, params: Any) -> Any:
    tasks, surface = _tasks(context), context._surface
    circle, key = tasks.circle(context), tasks.cursor_key
    after = None if params.cursor is UNSET else _opened(params.cursor, circle, key)
    records, cursor = await tasks.records.page(context.tenant or "", circle, after, _PAGE_TASKS)
    return forms.listed(records, None if cursor is None else _signed(cursor, circle, key), surface)


# -- which task ------------------------------------------------------------------------------


def _tasks(context: Context) -> Tasks:
    return context._connection.core.tasks


async def _found(context: Context, id: str) -> TaskRecord:
    """Return the task that a request is about.

    Raises:
        RequestError: there is none, or it is not the caller's.
    """
    tasks = _tasks(context)
    record = await tasks.records.get(context.tenant or "", id)
    if record is None or not _is_visible(record, context):
        raise _not_found()
    checked = await tasks.checked(record)
    if checked is None:
        raise _not_found()
    return checked


def _is_visible(record: TaskRecord, context: Context) -> bool:
    return record.form == task_form(context.revision) and record.owner == context.principal


def _not_found() -> RequestError:
    return RequestError(ErrorKind.TASK_NOT_FOUND, NOT_FOUND)


def _checked(key: str, raw: Raw, question: Raw, surface: Surface) -> InputResponse:
    """Return an answer, if it is one to that question.

    Raises:
        RequestError: it is not what such a question is answered with.
    """
    try:
        capabilities.read(raw, surface, method_of(question))
    except RemoteProtocolError as error:
        text = f"Invalid params: the answer to {redact(key)} is not {error.expected}"
    else:
        return InputResponse(result=raw)
    raise RequestError(ErrorKind.INVALID_INPUT_RESPONSES, text)


# -- cursors ---------------------------------------------------------------------------------


def _signed(cursor: str, circle: str, key: bytes) -> str:
    """Return a cursor of the store as a client gets it: it can be given back, not made."""
    told = cursor.encode()
    signature = digest(key, b"tasks\0%b\0%b" % (circle.encode(), told), "sha256")
    return urlsafe_b64encode(signature[:_SIGNATURE_BYTES] + told).decode()


def _opened(cursor: str, circle: str, key: bytes) -> str:
    """Return the store's own cursor.

    Raises:
        RequestError: it was not given out by us, to this requestor.
    """
    try:
        if len(cursor) <= _MAX_CURSOR_CHARS:
            told = urlsafe_b64decode(cursor.encode("ascii"))[_SIGNATURE_BYTES:].decode()
            if compare_digest(_signed(told, circle, key), cursor):
                return told
    except ValueError:
        pass  # no Base64, or no text
    raise RequestError(ErrorKind.INVALID_CURSOR, "the cursor is not one that this list gave out")


# -- serving them ----------------------------------------------------------------------------


def _serve(name: str, read: Decoder[Any], method: Callable[..., Awaitable[Any]]) -> Serve:
    """Return what serves a method, as a handler of ours."""
    arguments = raw_arguments(method)

    def serve(
        connection: Connection, asked: IncomingRequest, caller: Caller | None, surface: Surface
    ) -> None:
        params = read.decode(_EMPTY if asked.params is UNSET else asked.params)
        app = connection.core
        entry = Entry(name=name, owner=app, arguments=arguments)
        context = Context(connection, asked, surface, caller, app, name)
        connection.jobs.begin(_WORK, entry, params, context)

    return serve


TASK_METHODS: Final[dict[str, Serve]] = {
    "tasks/get": _serve("tasks/get", _named, _get),
    "tasks/result": _serve("tasks/result", _named, _result),
    "tasks/list": _serve("tasks/list", _page, _list),
    "tasks/cancel": _serve("tasks/cancel", _named, _cancel),
    "tasks/update": _serve("tasks/update", _answers, _update),
}


def tasks_extension() -> Extension:
    """Return the extension by which newer revisions have tasks."""
    extension = Extension(EXTENSION, result_types=("task",))
    for name in ("tasks/get", "tasks/update", "tasks/cancel"):
        extension.serve(name, TASK_METHODS[name])
    return extension

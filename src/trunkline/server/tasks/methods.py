"""Method handlers of `tasks/*`: lookup, ownership, results and cursors.

The same functions serve the core form and the extension form; the differences are in the rows of
methods and types, and in `wire.py`.

The rules that live here, and only here:

* A task is visible in the form it was created in, and to its owner: the principal and tenant of
  the call that created it. For any other caller it does not exist, with the same error text.
                                                                             [SEC-36, SEC-37]
* A request about a task needs the scopes that the call needed, and those of the tool now: of the
  credential that it comes with. Without them it is refused, and `tasks/list` leaves the task out.
* Without authentication the id is the capability, and `tasks/list` shows the tasks of the same
  connection.
* One invalid response rejects the whole `tasks/update`; nothing is stored, and its question
  stays open. A response that does not fit the form of its question is invalid.
* `tasks/cancel` of a finished task is an error in the core form, and a no-op in the extension form.
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

from ...engine.request import Action, Run
from ...engine.runner import RETRY_AFTER_MS
from ...engine.tasks.records import InputResponse, answered, cancelled
from ...engine.tasks.result_waiters import ResultWaiter
from ...errors import RemoteProtocolError, RequestError
from ...jsonrpc.error_codes import named_error
from ...jsonrpc.messages import Shown
from ...mcp.types import GetTaskRequestParams, PaginatedRequestParams
from ...redaction import redact
from ...spec.error_kinds import ErrorKind
from ...spec.mcp.tasks_extension import EXTENSION
from ...store.errors import StoreError
from ..client_requests import capabilities
from ..dispatch.params import params_of
from ..dispatch.request import MethodHandler, ServerRequest
from ..dispatch.revision import ServerRevision
from ..errors import error_of
from ..methods.internal_handler import internal_entry
from ..registry.extensions import Extension
from . import wire
from .access import check_access, is_accessible
from .dialect import NOT_FOUND
from .questions import check_of, method_of
from .records import ToolTaskRecord
from .wire import task_form

if TYPE_CHECKING:
    from .service import ServerTasks

__all__ = ["TASK_METHODS", "tasks_extension"]

_log: Final = logging.getLogger("trunkline.server")

# Of `tasks/list`; each task is one read of the store.
_PAGE_TASKS: Final = 50
# Of a truncated HMAC: 128 bits cannot be guessed.
_SIGNATURE_BYTES: Final = 16
# More than any cursor we issue: the store's own, signed, in Base64.
_MAX_CURSOR_CHARS: Final = 1024


class _UpdateParams(Shown, Struct, frozen=True, rename="camel"):
    """Params of `tasks/update`, with the responses undecoded."""

    task_id: str
    input_responses: dict[str, Raw]


_task_params: Final = Decoder(GetTaskRequestParams)
_update_params: Final = Decoder(_UpdateParams)
_page_params: Final = Decoder(PaginatedRequestParams)


class _TaskWork:
    """Turns what a method handler returns or raises into a response."""

    def finish(self, entry: Any, request: ServerRequest, value: Any) -> Any:
        """Return the result; None leaves the request open, to be answered later."""
        return value

    def fail(self, entry: Any, request: ServerRequest, error: BaseException) -> Any:
        """Return the error; a store error becomes a retryable one."""
        policy = request.rev.policy
        if isinstance(error, StoreError):
            _log.warning("%s failed, store error: %s", request.method, error)
            kind = ErrorKind.SERVICE_UNAVAILABLE
            return named_error(kind, policy=policy, retryAfterMs=RETRY_AFTER_MS)
        return error_of(error, request, policy)


_WORK: Final = _TaskWork()


# -- the methods -----------------------------------------------------------------------------


async def _get(request: ServerRequest, params: Any, record: ToolTaskRecord) -> Any:
    return wire.get_task_result(record, request.rev)


async def _cancel(request: ServerRequest, params: Any, record: ToolTaskRecord) -> Any:
    change = await _tasks(request).change(record, cancelled)
    if change.record is None:
        raise _not_found()
    if not change.is_ours and change.record.form == "core":
        raise RequestError(ErrorKind.TASK_ALREADY_COMPLETED)
    return wire.cancel_task_result(change.record, request.rev)


async def _update(request: ServerRequest, params: Any, record: ToolTaskRecord) -> Any:
    tasks, rev = _tasks(request), request.rev
    running = tasks.running.get(record.id)
    checks = {} if running is None else running.input_checks
    responses = {
        key: _checked(key, raw, record.questions[key], rev, checks.get(key))
        for key, raw in params.input_responses.items()
        if key in record.questions
    }
    await tasks.change(record, partial(answered, responses=responses))
    return rev.empty()


async def _result(request: ServerRequest, params: Any, record: ToolTaskRecord) -> Any:
    if record.is_over:
        return wire.task_payload(record, request.rev)
    tasks = _tasks(request)
    await tasks.start_runner()
    requestor = tasks.requestor(request)
    waiter = ResultWaiter(request, requestor, record)
    if not tasks.result_waiters.add(waiter):
        raise RequestError(ErrorKind.OVERLOADED, data={"retryAfterMs": RETRY_AFTER_MS})
    try:
        # Read again, now that changes reach the waiter: it may have ended since.
        await tasks.watch(record.tenant, record.id)
    except BaseException:  # a cancellation too
        tasks.give_up(request.message)  # the request is answered with the error, or not at all
        raise
    return None


async def _list(request: ServerRequest, params: Any) -> Any:
    tasks, rev = _tasks(request), request.rev
    requestor, key = tasks.requestor(request), tasks.cursor_key
    after = None if params.cursor is UNSET else _opened(params.cursor, requestor, key)
    records, cursor = await tasks.records.page(request.tenant or "", requestor, after, _PAGE_TASKS)
    shown = [each for each in records if is_accessible(each, request)]
    return wire.list_tasks_result(
        shown, None if cursor is None else _signed(cursor, requestor, key), rev
    )


# -- lookup ----------------------------------------------------------------------------------


def _tasks(request: ServerRequest) -> ServerTasks:
    return request.connection.core.services.tasks


async def _found(request: ServerRequest, id: str) -> ToolTaskRecord:
    tasks = _tasks(request)
    record = await tasks.records.get(request.tenant or "", id)
    if record is None or not _is_visible(record, request):
        raise _not_found()
    check_access(record, request)
    current = await tasks.fail_if_orphaned(record)
    if current is None:
        raise _not_found()
    return current


def _is_visible(record: ToolTaskRecord, request: ServerRequest) -> bool:
    return record.form == task_form(request.revision) and record.owner == request.principal_key


def _not_found() -> RequestError:
    return RequestError(ErrorKind.TASK_NOT_FOUND, NOT_FOUND)


def _checked(
    key: str,
    raw: Raw,
    question: Raw,
    rev: ServerRevision,
    known: Callable[[Any], None] | None,
) -> InputResponse:
    """Return a response, checked against the result type and the form of its question."""
    try:
        result = capabilities.read(raw, rev, method_of(question))
        check_of(question, known)(result)
    except RemoteProtocolError as error:
        text = f"Invalid params: the answer to {redact(key)} is not {error.expected}"
    except ValueError as error:
        text = f"Invalid params: the answer to {redact(key)} does not fit the form: {error}"
    else:
        return InputResponse(result=raw)
    raise RequestError(ErrorKind.INVALID_INPUT_RESPONSES, text)


# -- cursors ---------------------------------------------------------------------------------


def _signed(cursor: str, requestor: str, key: bytes) -> str:
    """Return a cursor of the store with a signature, so that a client cannot forge one."""
    raw = cursor.encode()
    signature = digest(key, b"tasks\0%b\0%b" % (requestor.encode(), raw), "sha256")
    return urlsafe_b64encode(signature[:_SIGNATURE_BYTES] + raw).decode()


def _opened(cursor: str, requestor: str, key: bytes) -> str:
    """Return the store's own cursor, if this server issued it to this requestor."""
    try:
        if len(cursor) <= _MAX_CURSOR_CHARS:
            raw = urlsafe_b64decode(cursor.encode("ascii"))[_SIGNATURE_BYTES:].decode()
            if compare_digest(_signed(raw, requestor, key), cursor):
                return raw
    except ValueError:
        pass  # not Base64, or not text
    raise RequestError(ErrorKind.INVALID_CURSOR, "the cursor is not one that this list gave out")


# -- registration ----------------------------------------------------------------------------


def _serve(
    name: str, read: Decoder[Any], method: Callable[[ServerRequest, Any], Awaitable[Any]]
) -> MethodHandler:
    entry = internal_entry(name, method)

    def serve(request: ServerRequest) -> Action:
        params = read.decode(params_of(request.message))
        request.owner, request.name = request.connection.core, name
        return Run(_WORK, entry, params)

    return serve


def _serve_task(
    name: str,
    read: Decoder[Any],
    method: Callable[[ServerRequest, Any, ToolTaskRecord], Awaitable[Any]],
) -> MethodHandler:
    """Return the handler of a method that names a task: it is called for a task it may use."""

    async def call(request: ServerRequest, params: Any) -> Any:
        return await method(request, params, await _found(request, params.task_id))

    return _serve(name, read, call)


TASK_METHODS: Final[dict[str, MethodHandler]] = {
    "tasks/get": _serve_task("tasks/get", _task_params, _get),
    "tasks/result": _serve_task("tasks/result", _task_params, _result),
    "tasks/list": _serve("tasks/list", _page_params, _list),
    "tasks/cancel": _serve_task("tasks/cancel", _task_params, _cancel),
    "tasks/update": _serve_task("tasks/update", _update_params, _update),
}


def tasks_extension() -> Extension:
    """Return the tasks extension of 2026-07-28 and later."""
    extension = Extension(EXTENSION, result_types=("task",))
    for name in ("tasks/get", "tasks/update", "tasks/cancel"):
        extension.serve(name, TASK_METHODS[name])
    return extension

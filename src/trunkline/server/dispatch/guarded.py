"""Guards in dispatch: hidden entries, refusals, `allow` before the handler, lists by caller.

Loaded by the first request about an entry with a guard, and on servers with tool sets. What is
decided is in `access/`; here is where a request meets it.

The rules that live here, and only here:

* Scopes are checked before the arguments are read: a caller without them learns nothing more.
* `allow` runs in the task of the handler, before the handler and before a call becomes a task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from ..access.decisions import (
    AccessRefused,
    check_allow,
    check_allow_without_arguments,
    check_scopes,
    is_listed,
    is_visible,
)
from ..context import Context
from ..errors import error_of, refusal
from ..registry.entries import Entry
from .handler_run import handler_run_of

if TYPE_CHECKING:
    from msgspec import Raw

    from ...jsonrpc.peer.incoming import IncomingRequest
    from ...mcp.meta import Caller
    from ..registry.paged_list import PagedList
    from .connection import Connection
    from .revision import ServerRevision

__all__ = [
    "begin_checked",
    "hides",
    "page_for",
    "refuses",
    "require_allow",
    "require_allow_for_completion",
]


def hides(context: Context, entry: Entry) -> bool:
    """Return True if an entry does not exist for the caller."""
    return not is_visible(entry, context)


def refuses(context: Context, entry: Entry) -> bool:
    """Return True, and answer the request, if scopes are missing."""
    if entry.guard is None:
        return False
    try:
        check_scopes(entry.guard, context)
    except AccessRefused as error:
        policy = context._rev.policy
        context._connection.answer(context._asked, refusal(error, policy), policy)
        return True
    return False


def require_allow(context: Context, entry: Entry, values: Any) -> None:
    """Have `allow` of an entry checked before its handler."""
    if entry.guard is not None and entry.guard.allow:
        _require(context, partial(check_allow, entry, values))


def require_allow_for_completion(context: Context, entry: Entry) -> None:
    """The same for a completion, which has no arguments yet."""
    if entry.guard is not None and entry.guard.allow:
        _require(context, partial(check_allow_without_arguments, entry))


def _require(context: Context, check: Callable[[Context], Any]) -> None:
    run = handler_run_of(context)
    following = run.begin

    async def begin(context: Context) -> None:
        await check(context)
        run.is_allowed = True
        if following is not None:
            await following(context)

    run.is_allowed = False
    run.begin = begin


class _CheckedWork:
    """Answers with what was done after the check, or with the refusal."""

    def finish(self, _: Any, context: Context, value: Any) -> Any:
        return value

    def fail(self, _: Any, context: Context, error: BaseException) -> Any:
        return error_of(error, context, context._rev.policy)


_CHECKED_WORK: Final = _CheckedWork()


def begin_checked(context: Context, entry: Entry, values: Any, act: Callable[[], Any]) -> None:
    """Answer a request that has no handler with what `act` returns, if `allow` agrees."""

    async def call(_: Any, context: Context) -> Any:
        await check_allow(entry, values, context)
        return act()

    arguments = SimpleNamespace(is_async=True, wants_context=True, call=call)
    checked = Entry(name=entry.name, owner=entry.owner, arguments=cast("Any", arguments))
    context._connection.runner.begin(_CHECKED_WORK, checked, None, context)


def page_for(
    listed: PagedList[Any],
    connection: Connection,
    asked: IncomingRequest,
    caller: Caller | None,
    rev: ServerRevision,
    cursor: str | None,
    tail: bytes,
) -> Raw:
    """Return a page of the entries that a caller is shown.

    Raises:
        InvalidCursor: the cursor is not valid for this caller.
    """

    def shows(entry: Entry) -> bool:
        context: Context = Context(connection, asked, rev, caller, entry.owner, entry.name)
        return is_listed(entry, context)

    principal = connection.principal_of(asked)
    key = b"anonymous" if principal is None else b"principal " + principal.key.encode()
    return listed.page_for(key, shows, rev.revision, cursor, tail=tail, max_bytes=rev.page_bytes)

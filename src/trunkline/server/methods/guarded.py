"""Guards in dispatch: hidden entries, refusals, `allow` before the handler, lists by caller.

Loaded by the first request about an entry with a guard, and on servers with tool sets. What is
decided is in `engine/access/`; here is where a request meets it. `entry_methods.py` calls it for
every method that names an entry.

The rules that live here, and only here:

* Scopes are checked before the arguments are read: a caller without them learns nothing more.
* `allow` runs in the task of the handler, before the handler and before a call becomes a task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...engine.access.decisions import (
    AccessRefused,
    check_allow,
    check_allow_without_arguments,
    check_scopes,
    is_listed,
    is_visible,
)
from ...engine.handler_run import handler_run_of
from ...engine.request import Refuse
from ..dispatch.request import ServerRequest
from ..errors import refusal

if TYPE_CHECKING:
    from msgspec import Raw

    from ..registry.entries import Entry
    from ..registry.paged_list import PagedList

__all__ = ["is_hidden", "missing_scopes", "page_for", "require_allow"]


def is_hidden(request: ServerRequest, entry: Entry) -> bool:
    """Return True if an entry does not exist for the caller."""
    return not is_visible(entry, request)


def missing_scopes(request: ServerRequest, entry: Entry) -> Refuse | None:
    """Return the refusal of a request that lacks scopes, or None."""
    if entry.guard is None:
        return None
    try:
        check_scopes(entry.guard, request)
    except AccessRefused as error:
        return Refuse(refusal(error, request.rev.policy), str(error.kind))
    return None


def require_allow(
    request: ServerRequest, entry: Entry, values: Any, *, has_arguments: bool
) -> None:
    """Have `allow` of an entry checked before the handler.

    Without arguments only functions that take the context alone are called.
    """
    if entry.guard is None or not entry.guard.allow:
        return
    check: Callable[[ServerRequest], Awaitable[None]] = (
        partial(check_allow, entry, values)
        if has_arguments
        else partial(check_allow_without_arguments, entry)
    )
    run = handler_run_of(request)
    following = run.begin

    async def begin(_: Any) -> None:
        await check(request)
        run.is_allowed = True
        if following is not None:
            await following(request)

    run.is_allowed = False
    run.begin = begin


def page_for(
    listed: PagedList[Any], request: ServerRequest, cursor: str | None, tail: bytes
) -> Raw:
    """Return a page of the entries that a caller is shown.

    Raises:
        InvalidCursor: the cursor is not valid for this caller.
    """
    connection, message, rev, caller = (
        request.connection,
        request.message,
        request.rev,
        request.caller,
    )

    def shows(entry: Entry) -> bool:
        # Functions of the author see the entry as if it was asked for.
        about = ServerRequest(connection, message, rev, caller, entry.owner, entry.name)
        is_shown = is_listed(entry, about)
        about.context = None  # the two hold each other
        return is_shown

    principal = request.principal
    key = b"anonymous" if principal is None else b"principal " + principal.key.encode()
    return listed.page_for(key, shows, rev.revision, cursor, tail=tail, max_bytes=rev.page_bytes)

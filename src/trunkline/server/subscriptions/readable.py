"""Resources of a subscription filter that the caller may read, on a server with guards.

The rules that live here, and only here:

* The same guards decide as for `resources/read`: `visible`, scopes, `allow` with the variables of
  a template.
* Functions that wait are awaited one after the other, in one task for each stream that is opened;
  their number is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from ...spec.error_kinds import ErrorKind
from ..access.decisions import AccessRefused, check_allow, check_scopes, is_visible
from ..context import Context
from ..dispatch.requests import RETRY_AFTER_MS

if TYPE_CHECKING:
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ...mcp.meta import Caller
    from ..dispatch.connection import Connection
    from ..dispatch.revision import ServerRevision
    from ..registry.entries import ResourceEntry

__all__ = ["readable"]

# Streams of a connection whose functions have not answered yet.
_MAX_OPENING: Final = 100


def readable(
    connection: Connection,
    asked: IncomingRequest,
    caller: Caller | None,
    rev: ServerRevision,
    uris: Iterable[str],
    proceed: Callable[[list[str]], None],
) -> None:
    """Call `proceed` with the URIs that the caller may read: now, or after functions that wait."""
    found: dict[str, tuple[ResourceEntry, Any, Context] | None] = {}
    for uri in uris:
        for entry, values in connection.core.served_resources(uri):
            if entry.guard is None:
                found[uri] = None
                break
            context: Context = Context(connection, asked, rev, caller, entry.owner, uri)
            if not is_visible(entry, context):
                continue
            try:
                check_scopes(entry.guard, context)
            except AccessRefused:
                break
            found[uri] = (entry, values, context) if entry.guard.allow else None
            break
    if all(each is None for each in found.values()):
        proceed(list(found))
        return
    opening = connection.core.streams.opening
    if sum(each is connection for each in opening.values()) >= _MAX_OPENING:
        kind = ErrorKind.OVERLOADED
        connection.refuse(asked, rev.policy, kind, retryAfterMs=RETRY_AFTER_MS)
        return
    task = connection.loop.create_task(_decide(found, proceed))
    opening[task] = connection
    task.add_done_callback(lambda done: opening.pop(done, None))


async def _decide(
    found: dict[str, tuple[ResourceEntry, Any, Context] | None],
    proceed: Callable[[list[str]], None],
) -> None:
    allowed: list[str] = []
    for uri, pending in found.items():
        if pending is not None:
            entry, values, context = pending
            try:
                await check_allow(entry, values, context)
            except AccessRefused:
                continue
        allowed.append(uri)
    proceed(allowed)

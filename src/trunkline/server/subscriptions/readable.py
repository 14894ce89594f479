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

from ...engine.access.decisions import AccessRefused, check_allow, check_scopes, is_visible
from ...engine.request import LATER, Action
from ...engine.runner import RETRY_AFTER_MS
from ...spec.error_kinds import ErrorKind
from ..dispatch.request import ServerRequest

if TYPE_CHECKING:
    from ..registry.entries import ResourceEntry

__all__ = ["readable"]

# Streams of a connection whose functions have not answered yet.
_MAX_OPENING: Final = 100


def readable(
    request: ServerRequest, uris: Iterable[str], proceed: Callable[[list[str]], Action]
) -> Action:
    """Return what `proceed` does with the URIs that the caller may read.

    If functions of the author wait, it is done after they have decided.
    """
    connection = request.connection
    found: dict[str, tuple[ResourceEntry, Any, ServerRequest] | None] = {}
    for uri in uris:
        for entry, values in connection.core.catalog.served_resources(uri):
            if entry.guard is None:
                found[uri] = None
                break
            # Functions of the author see each resource as if it was asked for.
            about = ServerRequest(
                connection, request.message, request.rev, request.caller, entry.owner, uri
            )
            if not is_visible(entry, about):
                continue
            try:
                check_scopes(entry.guard, about)
            except AccessRefused:
                break
            found[uri] = (entry, values, about) if entry.guard.allow else None
            break
    if all(each is None for each in found.values()):
        return proceed(list(found))
    opening = connection.core.services.streams.opening
    if sum(each is connection for each in opening.values()) >= _MAX_OPENING:
        return request.refuse(ErrorKind.OVERLOADED, retryAfterMs=RETRY_AFTER_MS)
    task = connection.loop.create_task(_decide(request, found, proceed))
    opening[task] = connection
    task.add_done_callback(lambda done: opening.pop(done, None))
    return LATER


async def _decide(
    request: ServerRequest,
    found: dict[str, tuple[ResourceEntry, Any, ServerRequest] | None],
    proceed: Callable[[list[str]], Action],
) -> None:
    allowed: list[str] = []
    for uri, pending in found.items():
        if pending is not None:
            entry, values, about = pending
            try:
                await check_allow(entry, values, about)
            except AccessRefused:
                continue
        allowed.append(uri)
    connection = request.connection
    if request.is_open and not connection.runner.is_stopping:
        connection.perform(request, proceed(allowed))

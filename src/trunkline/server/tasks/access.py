"""Access to tasks: a request about a task needs what the call of its tool needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import RequestError
from ...spec.error_kinds import ErrorKind
from .dialect import NOT_FOUND

if TYPE_CHECKING:
    from ..dispatch.request import ServerRequest
    from .records import ToolTaskRecord

__all__ = ["check_access", "is_accessible"]


def check_access(record: ToolTaskRecord, request: ServerRequest) -> None:
    """Raise RequestError if the caller may not use the tool of a task any more."""
    core = request.connection.core
    entry = core.catalog.tools.get(record.tool)
    guard = None if entry is None else entry.guard
    if guard is None and not record.scopes and core.catalog.tool_sets is None:
        return
    # Imported here: most servers have no guards.
    from ...engine.access.decisions import check_scopes, is_visible
    from ...engine.access.guard import Guard, joined

    if entry is not None and not is_visible(entry, request):
        raise RequestError(ErrorKind.TASK_NOT_FOUND, NOT_FOUND)
    needed = joined(Guard(frozenset(record.scopes)), guard)
    if needed is not None:
        check_scopes(needed, request)


def is_accessible(record: ToolTaskRecord, request: ServerRequest) -> bool:
    """Return True if the caller may use the tool of a task."""
    try:
        check_access(record, request)
    except RequestError:
        return False
    return True

"""Notifications that a handler sends by name, and that of the end of a URL elicitation.

The rules that live here, and only here:

* A handler sends no notification of MCP by name: each has a method of its own, which knows when
  it may be sent.
* `notifications/elicitation/complete` is sent in the revision that has it, to a client that
  declared URL elicitation.   [MCP 2025-11-25, client/elicitation]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from ...mcp.types import ElicitationCompleteNotificationParams
from ...spec.lookup import method as method_row
from ...spec.lookup import method_status
from ...spec.revisions import REVISIONS
from .capabilities import declares

if TYPE_CHECKING:
    from ..dispatch.request import ServerRequest

__all__ = ["checked", "elicitation_complete"]


def checked(method: str, params: Any) -> dict[str, Any]:
    """Return the params of a notification as a dict.

    Raises:
        ValueError: MCP has a notification or method of that name.
        TypeError: the params are not an object, or cannot be encoded.
    """
    if not isinstance(method, str) or not method:
        raise ValueError(f"a notification is named by a text, not {method!r}")
    if any(method_status(method, revision) for revision in REVISIONS):
        raise ValueError(f"{method!r} is sent by the library: see the methods of Context")
    # Converted here, so that an error is raised in the handler.
    members = to_builtins({} if params is None else params, str_keys=True)
    if not isinstance(members, dict):
        raise TypeError(f"the params of a notification are a dict, not {type(params).__name__}")
    return members


class _ElicitationComplete:
    """The notification that a user is done at the page of a URL elicitation."""

    METHOD: Final = "notifications/elicitation/complete"

    def is_sent(self, request: ServerRequest) -> bool:
        """Return True if the client of a request may be sent it."""
        row = method_row(self.METHOD, request.revision)
        if row is None:
            return False
        return declares(request.client_capabilities, row.capability, request.revision)

    def send(self, request: ServerRequest, elicitation_id: str) -> None:
        """Send it with the request while that is open, and by itself afterwards."""
        connection, asked = request.connection, request.message
        route = asked.route if asked in connection.peer.incoming else None
        params = ElicitationCompleteNotificationParams(elicitation_id)
        connection.notify(self.METHOD, params, route)


elicitation_complete: Final = _ElicitationComplete()

"""Methods that may be sent twice, because the second time changes nothing.

A client that lost its connection before the answer does not know whether a request was served.
These it sends again; a tool says for itself whether it is idempotent.
"""

from __future__ import annotations

from typing import Final

__all__ = ["NOTIFICATIONS", "REQUESTS"]

REQUESTS: Final = frozenset(
    (
        *("server/discover", "tools/list", "resources/list", "resources/templates/list"),
        *("prompts/list", "resources/read", "prompts/get", "completion/complete", "ping"),
        *("tasks/get", "tasks/list", "tasks/result", "skills/list", "skills/get"),
    )
)
NOTIFICATIONS: Final = frozenset(
    (
        *("notifications/initialized", "notifications/cancelled", "notifications/progress"),
        *("notifications/roots/list_changed",),
    )
)

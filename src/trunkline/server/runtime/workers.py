"""What keeps a server from running in several processes that share nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...spec.mcp.tasks_extension import EXTENSION as TASKS

if TYPE_CHECKING:
    from ..api.core import ServerCore

__all__ = ["obstacles"]


def obstacles(core: ServerCore) -> list[str]:
    """Return why requests of one client cannot go to different processes; empty if they can."""
    found = []
    with_handshake = [each for each in core.revisions if core.revision(each).has_handshake]
    if with_handshake:
        found.append(
            f"sessions of {', '.join(with_handshake)} belong to one process "
            '(Server(revisions=["2026-07-28"]) has none)'
        )
    if TASKS in core.extensions:
        found.append("tasks are kept in the memory of one process")
    declared = core.newest_revision.capabilities()
    lists = [
        name
        for name in ("tools", "prompts", "resources")
        if getattr(getattr(declared, name), "list_changed", None) is True
    ]
    if lists:
        found.append(
            f"listChanged is declared for {', '.join(lists)}, and a change in one process is not "
            "known to the others (Server(list_changed=False))"
        )
    if getattr(declared.resources, "subscribe", None) is True:
        found.append(
            "resources can be subscribed to, and an update in one process is not known to the "
            "others (Server(subscribe=False))"
        )
    return found

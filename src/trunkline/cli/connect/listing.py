"""What a server offers, as one document: for programs, for files, and for `trunkline diff`.

    {"format": "trunkline.listing/1", "server": {…}, "revision": "…",
     "capabilities": {…}, "supportedVersions": […],
     "tools": […], "resources": […], "resourceTemplates": […], "prompts": […]}

Entries are as they came, with members that nobody here knows. What the server does not declare
is not asked for, and an empty list. `supportedVersions` is there if the server says which
revisions it speaks: a handshake tells only one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, to_builtins

from ...errors import PeerError, RemoteProtocolError
from ...spec.error_kinds import ErrorKind

if TYPE_CHECKING:
    from ...client.client import Client
    from ...client.requests.pagination import Page

__all__ = ["FORMAT", "KINDS", "listing_of"]

# What the document names its form, so that a reader can tell when that changes.
FORMAT: Final = "trunkline.listing/1"

KINDS: Final = ("tools", "resources", "prompts")
# By capability, the lists that come with it: member of the document, and method.
_LISTS: Final = {
    "tools": (("tools", "tools/list"),),
    "resources": (
        ("resources", "resources/list"),
        ("resourceTemplates", "resources/templates/list"),
    ),
    "prompts": (("prompts", "prompts/list"),),
}
# Of all pages of one list together.
_SECONDS: Final = 600.0


async def listing_of(client: Client, kinds: Sequence[str] = KINDS) -> dict[str, Any]:
    """Return what a connected server offers, all pages of it; `kinds` leaves out the rest.

    Raises:
        PeerError: the server refused one of the lists.
        RequestAborted: no answer came.
        RemoteProtocolError: an answer is no list.
    """
    info = client.server_info
    document: dict[str, Any] = {
        "format": FORMAT,
        "server": {} if info is None else to_builtins(info),
        "revision": client.revision,
        "capabilities": to_builtins(client.server_capabilities),
    }
    if client.instructions is not None:
        document["instructions"] = client.instructions
    wanted = [each for kind in kinds for each in _LISTS[kind]]
    # All at once: they wait for the same server, and not for one another.
    versions, *found = await asyncio.gather(
        _versions(client), *(_entries(client, *each) for each in wanted)
    )
    if versions is not None:
        document["supportedVersions"] = versions
    return document | {member: entries for (member, _), entries in zip(wanted, found, strict=True)}


async def _versions(client: Client) -> list[str] | None:
    """Return the revisions that a server speaks, or None where it does not say."""
    if client.era != "per_request":
        return None
    try:
        result = await client.request("server/discover", {})
    except PeerError:
        return None  # it spoke without having been asked, and will list as well
    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or not all(isinstance(each, str) for each in versions):
        return None
    return versions


async def _entries(client: Client, member: str, method: str) -> list[Any]:
    capability = method.partition("/")[0]
    if getattr(client.server_capabilities, capability) is UNSET:
        return []
    # Imported here, as by the client itself.
    from ...client.requests.pagination import every

    async def get(cursor: str | None, left: float) -> Page:
        return _page(await _asked(client, method, cursor, left), member)

    now = asyncio.get_running_loop().time
    return await every(method, get, lambda: None, _SECONDS, now)


async def _asked(client: Client, method: str, cursor: str | None, left: float) -> dict[str, Any]:
    params = {} if cursor is None else {"cursor": cursor}
    try:
        return await client.request(method, params, timeout=left if left < _SECONDS / 2 else None)
    except PeerError as error:
        # Many servers with resources have no templates, and say so like this.
        if method == "resources/templates/list" and error.kind == ErrorKind.METHOD_NOT_FOUND:
            return {"resourceTemplates": []}
        raise


def _page(result: dict[str, Any], member: str) -> Page:
    from ...client.requests.pagination import Page

    items = result.get(member)
    if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
        raise RemoteProtocolError(
            "mcp.type.json-type", where=f"/{member}", expected="a list of objects"
        )
    cursor = result.get("nextCursor")
    # Its size in bytes is not known here; the number of items bounds it.
    return Page(items, cursor if isinstance(cursor, str) else UNSET, 0)

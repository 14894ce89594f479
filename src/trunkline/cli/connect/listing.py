"""Listing document: everything a server offers, as JSON for files and `trunkline diff`.

    {"format": "trunkline.listing/1", "server": {…}, "revision": "…",
     "capabilities": {…}, "supportedVersions": […],
     "tools": […], "resources": […], "resourceTemplates": […], "prompts": […]}

Entries are kept as the server sent them, with unknown members. A list without its capability is
not requested, and empty. `supportedVersions` comes from `server/discover`; it is missing in
revisions with a handshake, which names only one.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from ...errors import PeerError, RemoteProtocolError
from ...spec.error_kinds import ErrorKind
from ..exit_codes import USAGE_ERROR

if TYPE_CHECKING:
    from ...client.client import Client
    from ...client.requests.pagination import Page
    from ..output.progress import Console
    from .talk import Work

__all__ = ["FORMAT", "KINDS", "listing_of", "missing_name"]

# The member `format`; it changes when the document does.
FORMAT: Final = "trunkline.listing/1"

KINDS: Final = ("tools", "resources", "prompts")
# By kind: the members of the document and their methods.
_LISTS: Final = {
    "tools": (("tools", "tools/list"),),
    "resources": (
        ("resources", "resources/list"),
        ("resourceTemplates", "resources/templates/list"),
    ),
    "templates": (("resourceTemplates", "resources/templates/list"),),
    "prompts": (("prompts", "prompts/list"),),
}
# For all pages of one list together.
_LIST_TIMEOUT_S: Final = 600.0


async def listing_of(client: Client, kinds: Sequence[str] = KINDS) -> dict[str, Any]:
    """Return all pages of the lists of a connected server; `kinds` leaves out the others.

    Raises:
        PeerError: the server refused one of the lists.
        RequestAborted: no answer came.
        RemoteProtocolError: an answer is not a list.
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
    versions, *found = await asyncio.gather(
        _versions(client), *(_entries(client, *each) for each in wanted)
    )
    if versions is not None:
        document["supportedVersions"] = versions
    return document | {member: entries for (member, _), entries in zip(wanted, found, strict=True)}


def missing_name(prog: str, word: str, kind: str) -> Work:
    """Return what shows the entries of a kind, for a command line that lacks the name of one.

    The exit status is that of wrong usage.
    """

    async def work(client: Client, console: Console) -> int:
        # Imported here: most command lines have a name.
        from ..output.terminal import wants_colour
        from .listing_text import listing_lines

        with console.waiting("listing"):
            listing = await listing_of(client, (kind,))
        console.error(prog, f"{word} is missing; the server has")
        lines = "\n".join(listing_lines(listing, kind))
        # They have the styles of standard output.
        console.note(lines if wants_colour(sys.stderr) else re.sub("\033\\[[0-9;]*m", "", lines))
        return USAGE_ERROR

    return work


async def _versions(client: Client) -> list[str] | None:
    """Return the revisions of a server, or None if it does not name them."""
    if client.era != "per_request":
        return None
    try:
        result = await client.request("server/discover", {})
    except PeerError:
        return None  # a server without discovery can still have lists
    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or not all(isinstance(each, str) for each in versions):
        return None
    return versions


async def _entries(client: Client, member: str, method: str) -> list[Any]:
    capability = method.partition("/")[0]
    if getattr(client.server_capabilities, capability) is None:
        return []
    # Imported here, as by the client itself.
    from ...client.requests.pagination import read_all

    async def get(cursor: str | None, left: float) -> Page:
        return _page(await _request(client, method, cursor, left), member)

    now = asyncio.get_running_loop().time
    return await read_all(method, get, lambda: None, _LIST_TIMEOUT_S, now)


async def _request(client: Client, method: str, cursor: str | None, left: float) -> dict[str, Any]:
    params = {} if cursor is None else {"cursor": cursor}
    try:
        return await client.request(
            method, params, timeout=left if left < _LIST_TIMEOUT_S / 2 else None
        )
    except PeerError as error:
        # Many servers with resources do not implement templates.
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
    # The size in bytes is unknown here; the number of items bounds it.
    return Page(items, cursor if isinstance(cursor, str) else None, 0)

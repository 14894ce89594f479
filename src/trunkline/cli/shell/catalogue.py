"""What the server of a shell offers, kept for completion and for the arguments of commands.

The lists are requested when they are first needed, and again after the server has reported a
change, after a new connection, and after a minute: servers need not report changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from ...errors import PeerError, TrunklineError
from ...spec.error_kinds import ErrorKind

if TYPE_CHECKING:
    from ...client.client import Client
    from ...mcp.types import Prompt, Resource, ResourceTemplate, Tool

__all__ = ["Catalogue"]

_MAX_AGE_S: Final = 60.0
# For completion: the user waits with a finger on the key.
_LIST_TIMEOUT_S: Final = 2.0
_VALUES_TIMEOUT_S: Final = 1.0
_VALUES_AGE_S: Final = 10.0
# Answers of `completion/complete`; each key typed may ask for others.
_MAX_ANSWERS: Final = 64
# The capability that a list needs, which is the first part of its method.
_CAPABILITIES: Final = {"templates": "resources"}


class Catalogue:
    """The lists of a server; a list that cannot be had in time is empty."""

    def __init__(self, client: Callable[[], Client | None]) -> None:
        """Take the function that returns the connected client, or None."""
        self._client = client
        self._kept: dict[str, tuple[float, list[Any]]] = {}
        self._answers: dict[Any, tuple[float, list[str]]] = {}
        # Whether the server has answered that it has no completions.
        self._is_unsupported = False

    def forget(self, kind: str | None = None) -> None:
        """Request a list again when it is needed next: tools, resources, prompts; None is all."""
        if kind is None:
            self._kept.clear()
            self._is_unsupported = False
        elif kind == "resources":
            self._kept.pop("templates", None)
        self._kept.pop(kind or "", None)
        self._answers.clear()

    async def tools(self) -> list[Tool]:
        """Return the tools."""
        return await self._list("tools", lambda client: client.list_tools())

    async def prompts(self) -> list[Prompt]:
        """Return the prompts."""
        return await self._list("prompts", lambda client: client.list_prompts())

    async def resources(self) -> list[Resource]:
        """Return the resources."""
        return await self._list("resources", lambda client: client.list_resources())

    async def templates(self) -> list[ResourceTemplate]:
        """Return the resource templates."""
        return await self._list("templates", lambda client: client.list_resource_templates())

    async def values(
        self,
        argument: str,
        value: str,
        *,
        prompt: str | None = None,
        resource: str | None = None,
        others: dict[str, str],
    ) -> list[str]:
        """Return the values of an argument that the server suggests (`completion/complete`)."""
        client = self._client()
        if client is None or self._is_unsupported:
            return []
        now = asyncio.get_running_loop().time()
        key = (prompt, resource, argument, value, tuple(sorted(others.items())))
        made, found = self._answers.get(key, (0.0, []))
        if key in self._answers and now - made < _VALUES_AGE_S:
            return found
        try:
            async with asyncio.timeout(_VALUES_TIMEOUT_S):
                answer = await client.complete(
                    argument, value, prompt=prompt, resource=resource, context=others or None
                )
        except PeerError as error:
            self._is_unsupported = error.kind == ErrorKind.METHOD_NOT_FOUND
            return []
        except (TrunklineError, TimeoutError):
            return []
        if len(self._answers) >= _MAX_ANSWERS:
            self._answers.clear()
        self._answers[key] = now, answer.values
        return answer.values

    async def _list(self, kind: str, get: Callable[[Client], Awaitable[list[Any]]]) -> list[Any]:
        client = self._client()
        if client is None:
            return []
        now = asyncio.get_running_loop().time()
        if kind in self._kept and now - self._kept[kind][0] < _MAX_AGE_S:
            return self._kept[kind][1]
        if getattr(client.server_capabilities, _CAPABILITIES.get(kind, kind)) is None:
            return []
        try:
            async with asyncio.timeout(_LIST_TIMEOUT_S):
                found = await get(client)
        except (TrunklineError, TimeoutError):
            return []  # a command would say why
        self._kept[kind] = now, found
        return found

"""`ClientGroup`: the client of several servers, which `Client(configuration)` returns.

    async with Client({"mcpServers": {"github": {...}, "files": {...}}}) as client:
        await client.call_tool("github_search", {"query": "mcp"})
        await client.servers["files"].ping()

The rules that live here, and only here:

* Tools and prompts are named `SERVER_NAME` and routed by that name; resources keep their URIs and
  are routed by what the servers list. All options, and so all handlers, serve every server.
* A method that belongs to one connection raises, and names `client.servers[...]`: what was
  negotiated, pages, tasks by id, subscriptions that are streams, and requests of any method.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, get_args

from ...errors import TrunklineError
from ...redaction import show
from ..client import Client
from ..connect.configured import config_servers
from ..session.options import LEVELS, Prefix, check_choice
from ..session.request import SENT
from .members import GroupMembers
from .routes import PROMPTS, TOOLS, GroupRoutes

if TYPE_CHECKING:
    from ...mcp.types import (
        CompleteResultCompletion,
        GetPromptResult,
        LoggingLevel,
        Prompt,
        ReadResourceResult,
        Resource,
        ResourceTemplate,
        Tool,
    )
    from ..requests.call import PendingCall
    from ..requests.tool_result import ToolResult
    from ..session.request import OnProgress
    from ..tasks.task_call import TaskHandle

__all__ = ["OF_ONE_SERVER", "ClientGroup"]

# Methods and properties of one connection.
OF_ONE_SERVER: Final = {
    "properties": (
        *("revision", "era", "server_info", "server_capabilities", "server_extensions"),
        *("instructions", "initialize_result"),
    ),
    "methods": (
        *("list_tools_page", "list_resources_page", "list_resource_templates_page"),
        *("list_prompts_page", "task", "list_tasks", "listen", "ping", "discover"),
        *("request", "notify", "submit", "batch"),
    ),
}


class ClientGroup(Client):
    """The client of several servers; see `Client`."""

    def __init__(self, target: Any, *, prefix: str = "auto", **options: Any) -> None:
        check_choice("prefix", prefix, get_args(Prefix))
        found = config_servers(target)
        self._state = self._members = GroupMembers(found, options)
        self._routes = GroupRoutes(self._members, list(found))
        self._name = options.get("name", "trunkline")

    def __repr__(self) -> str:
        live, every = len(self._members.live), len(self._routes.servers)
        return f"<Client {show(self._name)}, {live} of {every} servers connected>"

    # -- connecting --------------------------------------------------------------------------

    async def connect(self) -> None:
        """Connect to all servers at once; those that fail are in `failures`.

        Raises:
            TransportError: none could be reached; the text has the reason of each.
        """
        await self._members.connect()

    async def close(self) -> None:
        """Close all connections; pending requests end with `ConnectionLost`."""
        await self._members.close()

    @property
    def is_connected(self) -> bool:
        """Whether the connection to any server is open."""
        return any(each.is_connected for each in self._members.clients.values())

    @property
    def servers(self) -> dict[str, Client]:
        """The client of each server by name, except of entries that cannot be used."""
        return dict(self._members.clients)

    @property
    def failures(self) -> dict[str, Exception]:
        """Why servers cannot be used, by name; empty if all can."""
        return self._members.failures

    @property
    def dropped_notifications(self) -> int:
        """How many notifications were dropped, of all servers."""
        return self._members.budget.dropped + sum(
            each.dropped_notifications for each in self._members.clients.values()
        )

    # -- tools -------------------------------------------------------------------------------

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, **options: Any
    ) -> ToolResult[Any]:
        """Call a tool of the server that its name begins with."""
        client, own = await self._routes.route(TOOLS, name)
        return await client.call_tool(own, arguments, **options)

    async def call_tool_as_task(
        self, name: str, arguments: dict[str, Any] | None = None, **options: Any
    ) -> TaskHandle[Any]:
        """Call a tool of the server that its name begins with; return its task."""
        client, own = await self._routes.route(TOOLS, name)
        return await client.call_tool_as_task(own, arguments, **options)

    def submit_tool(
        self, name: str, arguments: dict[str, Any] | None = None, **options: Any
    ) -> PendingCall[ToolResult[Any]]:
        """Call a tool of the server that its name begins with, without waiting."""
        client, own = self._routes.known_route(TOOLS, name)
        return client.submit_tool(own, arguments, **options)

    async def list_tools(self, *, fresh: bool = False, timeout: float | None = None) -> list[Tool]:
        """Return the tools of all servers, each with the name of its server in front."""
        return await self._routes.list_named(TOOLS, fresh=fresh, timeout=timeout)

    # -- resources ---------------------------------------------------------------------------

    async def list_resources(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[Resource]:
        """Return the resources of all servers."""
        return await self._routes.list_resources(fresh=fresh, timeout=timeout)

    async def list_resource_templates(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[ResourceTemplate]:
        """Return the resource templates of all servers."""
        return await self._routes.list_templates(fresh=fresh, timeout=timeout)

    async def read_resource(self, uri: str, **options: Any) -> ReadResourceResult:
        """Return the contents of a resource of the server that has it."""
        client = await self._routes.route_uri(uri, "read_resource")
        return await client.read_resource(uri, **options)

    async def subscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Subscribe to changes of a resource of the server that has it."""
        client = await self._routes.route_uri(uri, "subscribe")
        await client.subscribe(uri, timeout=timeout)

    async def unsubscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """End the subscription to a resource."""
        client = await self._routes.route_uri(uri, "unsubscribe")
        await client.unsubscribe(uri, timeout=timeout)

    # -- prompts and completion --------------------------------------------------------------

    async def list_prompts(
        self, *, fresh: bool = False, timeout: float | None = None
    ) -> list[Prompt]:
        """Return the prompts of all servers, each with the name of its server in front."""
        return await self._routes.list_named(PROMPTS, fresh=fresh, timeout=timeout)

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> GetPromptResult:
        """Return the messages of a prompt of the server that its name begins with."""
        client, own = await self._routes.route(PROMPTS, name)
        return await client.get_prompt(
            own, arguments, timeout=timeout, on_progress=on_progress, meta=meta
        )

    async def complete(
        self,
        argument: str,
        value: str,
        *,
        prompt: str | None = None,
        resource: str | None = None,
        context: dict[str, str] | None = None,
        timeout: float | None = None,
    ) -> CompleteResultCompletion:
        """Return completions for an argument of a prompt or of a resource template."""
        if prompt is not None and resource is None:
            client, prompt = await self._routes.route(PROMPTS, prompt)
        elif resource is not None and prompt is None:
            client = await self._routes.route_uri(resource, "complete")
        else:
            raise TypeError("complete() takes either `prompt` or `resource`")
        return await client.complete(
            argument, value, prompt=prompt, resource=resource, context=context, timeout=timeout
        )

    # -- all servers -------------------------------------------------------------------------

    async def set_logging_level(
        self, level: LoggingLevel | None, *, timeout: float | None = None
    ) -> None:
        """Request log messages from `level` on, of every server that has a log.

        The first error is raised after all have been asked.
        """
        check_choice("level", level, (None, *LEVELS))
        outcomes = await asyncio.gather(
            *(
                client.set_logging_level(level, timeout=timeout)
                for client in self._members.live.values()
                if client.era == "per_request" or client.server_capabilities.logging is not None
            ),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    def send_roots_list_changed(self) -> Awaitable[None]:
        """Notify all servers that the roots have changed; awaiting it is optional."""
        for client in self._members.live.values():
            client.send_roots_list_changed()
        return SENT


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(self: ClientGroup, *_: object, **__: object) -> NoReturn:
        server = next(iter(self._members.clients))
        raise TrunklineError(
            f"{name} is about one server, and this client has several: "
            f"use client.servers[{server!r}].{name}"
        )

    refuse.__doc__ = "Raise: this is about one server; see `servers`."
    refuse.__name__ = name
    return refuse


for _name in OF_ONE_SERVER["properties"]:
    setattr(ClientGroup, _name, property(_refused(_name)))
for _name in OF_ONE_SERVER["methods"]:
    setattr(ClientGroup, _name, _refused(_name))

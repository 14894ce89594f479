"""Lists of several servers as one, and the server that a name or a URI belongs to.

The rules that live here, and only here:

* Lists have the entries of all servers that are connected, in the order of the configuration. A
  server that fails to list is left out, and its error is kept; if all fail, the first is raised.
* A name that two servers have is an error, in the list and in a call.
* A resource belongs to the server that lists its URI, or else to the one with a template that
  matches it. If only one server declares resources, it is that one, and nothing is listed.
* What was listed is remembered until the next list. An unknown URI lists again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec import structs

from ...errors import LocalProtocolError, PeerError, TrunklineError
from ...redaction import show
from ..session.diagnostics import log
from .names import MAX_NAME_LENGTH, joined, owners, prefixes
from .uri_match import matches

if TYPE_CHECKING:
    from ..client import Client
    from .members import GroupMembers

__all__ = ["PROMPTS", "TOOLS", "GroupRoutes", "NamedKind"]

T = TypeVar("T")


class NamedKind(NamedTuple):
    """What has names: tools, or prompts."""

    # The capability, and the method of a client is `list_` and this.
    many: str
    one: str
    # The method of a client that takes a name.
    call: str


TOOLS: Final = NamedKind("tools", "tool", "call_tool")
PROMPTS: Final = NamedKind("prompts", "prompt", "get_prompt")

# The server, and the name that it has there.
_Route = tuple[str, str]


class GroupRoutes:
    """What the servers of a group have listed."""

    def __init__(self, members: GroupMembers, names: list[str]) -> None:
        self._members = members
        self._prefixes = prefixes(names)
        self._known: dict[NamedKind, dict[str, list[_Route]]] = {}
        self._uris: dict[str, list[str]] = {}
        self._templates: dict[str, list[str]] = {}

    @property
    def servers(self) -> list[str]:
        """The names of all servers, in the order of the configuration."""
        return list(self._prefixes)

    # -- names -------------------------------------------------------------------------------

    async def list_named(self, kind: NamedKind, *, fresh: bool, timeout: float | None) -> list[Any]:
        """Return the tools or prompts of all servers, under their names in the group.

        Raises:
            TrunklineError: two of them have the same name.
        """
        found = await self._listed(kind, fresh=fresh, timeout=timeout)
        for name, routes in self._known[kind].items():
            if len(routes) > 1:
                raise _ambiguous(kind, name, routes)
        return found

    async def _listed(self, kind: NamedKind, *, fresh: bool, timeout: float | None) -> list[Any]:
        def ask(client: Client) -> Awaitable[list[Any]]:
            if kind is TOOLS:
                return client.list_tools(fresh=fresh, timeout=timeout)
            return client.list_prompts(fresh=fresh, timeout=timeout)

        listed = await self._ask_all(kind.many, ask)
        known = self._known[kind] = {}
        found = []
        for server, entries in listed.items():
            for entry in entries:
                name = joined(self._prefixes[server], entry.name)
                route = (server, entry.name)
                routes = known.setdefault(name, [])
                if route not in routes:
                    routes.append(route)
                found.append(structs.replace(entry, name=name))
        return found

    async def route(self, kind: NamedKind, name: str) -> tuple[Client, str]:
        """Return the client of a tool or prompt, and its name there.

        Raises:
            TrunklineError: no server has such a name, two have it, or its server failed.
        """
        possible = owners(self._prefixes, name)
        if not _is_certain(possible, name) and name not in self._known.get(kind, {}):
            await self._listed(kind, fresh=False, timeout=None)
        return self.known_route(kind, name)

    def known_route(self, kind: NamedKind, name: str) -> tuple[Client, str]:
        """Return as `route`, without listing."""
        possible = owners(self._prefixes, name)
        found = possible
        if not _is_certain(possible, name):
            found = self._known.get(kind, {}).get(name, possible)
        if not found:
            begin = ", ".join(f"{each}…" for each in self._prefixes.values())
            raise TrunklineError(
                f"no server has a {kind.one} {show(name)}: the names of {kind.many} begin with "
                f"{begin}"
            )
        if len(found) > 1:
            raise _ambiguous(kind, name, found)
        server, own = found[0]
        return self._members.client(server), own

    # -- resources ---------------------------------------------------------------------------

    async def list_resources(self, *, fresh: bool, timeout: float | None) -> list[Any]:
        """Return the resources of all servers."""
        listed = await self._ask_all(
            "resources", lambda client: client.list_resources(fresh=fresh, timeout=timeout)
        )
        self._uris = {}
        for server, entries in listed.items():
            for uri in {each.uri: None for each in entries}:
                self._uris.setdefault(uri, []).append(server)
        return [each for entries in listed.values() for each in entries]

    async def list_templates(self, *, fresh: bool, timeout: float | None) -> list[Any]:
        """Return the resource templates of all servers."""
        listed = await self._ask_all(
            "resources", lambda client: client.list_resource_templates(fresh=fresh, timeout=timeout)
        )
        self._templates = {}
        for server, entries in listed.items():
            for template in {each.uri_template: None for each in entries}:
                self._templates.setdefault(template, []).append(server)
        return [each for entries in listed.values() for each in entries]

    async def route_uri(self, uri: str, call: str) -> Client:
        """Return the client of a resource, or of a template.

        Raises:
            TrunklineError: no server has it, several have it, or its server failed.
        """
        live = self._members.live
        if not live:
            self._members.client(next(iter(self._members.clients)))  # raises its error
        declared = [
            name
            for name, client in live.items()
            if client.server_capabilities.resources is not None
        ]
        if len(declared) == 1 and len(live) == len(self._prefixes):
            return live[declared[0]]
        found = self._uris.get(uri) or self._templates.get(uri)
        if not found:
            await self.list_resources(fresh=False, timeout=None)
            await self.list_templates(fresh=False, timeout=None)
            found = self._uris.get(uri) or self._templates.get(uri) or self._matching(uri)
        if not found:
            failed = ", ".join(map(show, self._members.failures))
            beside = f" (servers that failed: {failed})" if failed else ""
            raise TrunklineError(
                f"no server lists the resource {show(uri)}, or a template that matches it{beside}; "
                f"name the server: client.servers[{next(iter(live))!r}].{call}(...)"
            )
        if len(found) > 1:
            raise TrunklineError(
                f"several servers have the resource {show(uri)}: {', '.join(map(show, found))}; "
                f"name one: client.servers[{found[0]!r}].{call}(...)"
            )
        return self._members.client(found[0])

    def _matching(self, uri: str) -> list[str]:
        """Return the servers with a template that matches a URI."""
        return list(
            dict.fromkeys(
                server
                for template, servers in self._templates.items()
                if matches(template, uri)
                for server in servers
            )
        )

    # -- all servers -------------------------------------------------------------------------

    async def _ask_all(
        self, capability: str, ask: Callable[[Client], Awaitable[list[T]]]
    ) -> dict[str, list[T]]:
        live = self._members.live
        if not live:
            self._members.client(next(iter(self._members.clients)))  # raises its error
        outcomes = await asyncio.gather(
            *(_outcome(capability, client, ask) for client in live.values())
        )
        found: dict[str, list[T]] = {}
        first: Exception | None = None
        for name, outcome in zip(live, outcomes, strict=True):
            if isinstance(outcome, list):
                found[name] = outcome
                self._members.note(name, None)
            else:
                first = first or outcome
                self._members.note(name, outcome)
                log.warning("server %s did not list its %s: %s", show(name), capability, outcome)
        if first is not None and not found:
            raise first
        return found


async def _outcome(
    capability: str, client: Client, ask: Callable[[Client], Awaitable[list[T]]]
) -> list[T] | Exception:
    """Return the list of one server, or its error; without the capability the list is empty."""
    try:
        return await ask(client)
    except (PeerError, LocalProtocolError) as error:
        is_unknown = not isinstance(error, PeerError) or error.kind == "METHOD_NOT_FOUND"
        is_declared = getattr(client.server_capabilities, capability) is not None
        return [] if is_unknown and not is_declared else error
    except TrunklineError as error:
        return error


def _is_certain(possible: list[_Route], name: str) -> bool:
    """Return True if a name says what it names, without a list."""
    return len(possible) == 1 and len(name) < MAX_NAME_LENGTH


def _ambiguous(kind: NamedKind, name: str, routes: list[_Route]) -> TrunklineError:
    both = " and ".join(f"{show(own)} of {show(server)}" for server, own in routes)
    server, own = routes[0]
    return TrunklineError(
        f"{show(name)} is the name of several {kind.many}, {both}: rename a server, or name it: "
        f"client.servers[{server!r}].{kind.call}({own!r})"
    )

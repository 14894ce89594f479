"""Extensions that a client has: what it declares, and how it completes their results.

    Client(target, extensions={"com.example/stars": {"colour": "red"}})
    Client(target, extensions=[ClientExtension("com.example/stars", resolvers={"starred": wait})])

What an id and settings look like is in `mcp.extensions`. Who declares them, and when a result
is given to a resolver, is for the client to see to.

The rules that live here, and only here:

* An id is declared once, and a result type is completed by one extension.
* A result type that is declared nowhere has no resolver, so it stays invalid.
                                                        [MCP 2026-07-28, basic#resulttype]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from ..jsonrpc.messages import Shown
from ..mcp.extensions import check_id, result_types_of, settings_of
from .requests.decode import Resolver

__all__ = ["ClientExtension", "DeclaredExtensions", "Extensions", "declared"]


class ClientExtension(Shown, Struct, frozen=True):
    """An extension that a client has: its id, what it says of itself, who completes its results.

    A resolver gets the session, the request and the raw result that is of its type, and returns
    the raw result that comes of it in the end.

    Raises:
        ValueError: the id is not formed as it must be, or a result type belongs to MCP.
        TypeError: the settings are no JSON object, or a resolver cannot be called.
    """

    id: str
    settings: Mapping[str, Any] = {}
    resolvers: Mapping[str, Resolver] = {}

    def __post_init__(self) -> None:
        check_id(self.id)
        settings_of(self.id, self.settings)
        result_types_of(self.id, self.resolvers)
        for name, resolver in self.resolvers.items():
            if not callable(resolver):
                raise TypeError(f"what resolves {name!r} of {self.id} cannot be called")


# What `Client(extensions=...)` takes: settings by id, or whole extensions.
Extensions: TypeAlias = Mapping[str, Mapping[str, Any]] | Iterable[ClientExtension]


class DeclaredExtensions(NamedTuple):
    """What becomes of a client's extensions."""

    # What `capabilities.extensions` says on every request.
    settings: dict[str, dict[str, Any]]
    # Who completes results that are of none of MCP's own types.
    resolvers: dict[str, Resolver]


def declared(extensions: Extensions | None) -> DeclaredExtensions:
    """Return what a client declares, and what completes the results of its extensions.

    Raises:
        ValueError: an id is not formed as it must be, or comes twice, or a type does.
        TypeError: the settings are no JSON object, or something is no extension.
    """
    settings: dict[str, dict[str, Any]] = {}
    resolvers: dict[str, Resolver] = {}
    for each in _values(extensions):
        if each.id in settings:
            raise ValueError(f"the extension {each.id} is declared twice")
        settings[each.id] = settings_of(each.id, each.settings)
        for name, resolver in each.resolvers.items():
            if name in resolvers:
                raise ValueError(f"results of type {name!r} are completed by somebody already")
            resolvers[name] = resolver
    return DeclaredExtensions(settings, resolvers)


def _values(extensions: Extensions | None) -> Iterable[ClientExtension]:
    if extensions is None:
        return ()
    if isinstance(extensions, Mapping):
        return [ClientExtension(id, settings) for id, settings in extensions.items()]
    if isinstance(extensions, str | ClientExtension):
        raise TypeError("extensions are several: give a dict, or a list of ClientExtension")
    found = list(extensions)
    for each in found:
        if not isinstance(each, ClientExtension):
            raise TypeError(f"an extension is a ClientExtension, not {type(each).__name__}")
    return found

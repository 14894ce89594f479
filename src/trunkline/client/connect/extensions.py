"""Extensions of a client: their settings, and the resolvers of their result types.

    Client(target, extensions={"com.example/stars": {"colour": "red"}})
    Client(target, extensions=[ClientExtension("com.example/stars", resolvers={"starred": wait})])

The form of ids and settings is checked in `mcp.extensions`.

The rules that live here, and only here:

* An id is declared once, and a result type has one resolver.
* A result type without a resolver is invalid.
                                                        [MCP 2026-07-28, basic#resulttype]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NewType, TypeAlias

from msgspec import Struct

from ...jsonrpc.messages import Shown
from ...mcp.extensions import check_id, result_types_of, settings_of
from ..session.decode import Resolver

if TYPE_CHECKING:
    from ..session.request import OutgoingRequest
    from ..session.session import Session
else:
    # Loaded on first use; `help` and `inspect.signature` of a Struct need a name.
    OutgoingRequest = NewType("OutgoingRequest", object)
    Session = NewType("Session", object)

__all__ = ["ClientExtension", "DeclaredExtensions", "Extensions", "declared"]


class ClientExtension(Shown, Struct, frozen=True):
    """An extension of a client: its id, its settings, and resolvers by result type.

    A resolver receives the session, the request and the raw result of its type, and returns the
    raw complete result.

    Raises:
        ValueError: the id is invalid, or a result type belongs to MCP.
        TypeError: the settings are not a JSON object, or a resolver is not callable.
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


# `Client(extensions=...)`: settings by id, or a list of extensions.
Extensions: TypeAlias = Mapping[str, Mapping[str, Any]] | Iterable[ClientExtension]


class DeclaredExtensions(NamedTuple):
    """The merged settings and resolvers of all extensions."""

    # The value of `capabilities.extensions`.
    settings: dict[str, dict[str, Any]]
    # By result type.
    resolvers: dict[str, Resolver]


def declared(extensions: Extensions | None) -> DeclaredExtensions:
    """Return the settings and resolvers of all extensions.

    Raises:
        ValueError: an id is invalid, or an id or result type is used twice.
        TypeError: the settings are not a JSON object, or an item is not a `ClientExtension`.
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

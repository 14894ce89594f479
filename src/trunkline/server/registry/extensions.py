"""Extensions of MCP: what a third party adds to a server, for clients that declare it.

    stars = Extension("com.example/stars", settings={"most": 5}, result_types=("starred",))

    @stars.method("stars/list")
    async def list_stars(context: Context, limit: int = 10) -> list[Star]: ...

    app.add_extension(stars)

An `Extension` holds what its author registered with it. The syntax of ids is in
`mcp.extensions`, what a server does with an extension in `dispatch/extension_methods.py`.

The rules that live here, and only here:

* A client has an extension if this request declares it; earlier declarations do not count. In a
  session it is the declaration in `initialize` that counts.
* A method of an extension is an error for other clients, which names what to declare; `always`
  serves it to all.
* A result of an extension's own type is sent only to a client that declared the extension, in a
  revision with result types: to any other it is an invalid result.
                                           [MCP 2026-07-28, basic#resulttype]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakSet

from msgspec import Struct
from msgspec.json import decode

from ...jsonrpc.messages import Shown
from ...mcp.extensions import check_id, has_extensions, result_types_of, settings_of
from ...mcp.meta import Caller
from ...spec.error_kinds import ErrorKind
from ...spec.lookup import method_status
from ...spec.mcp.methods import METHODS
from ...spec.revisions import REVISIONS
from ..handlers.arguments import Arguments, arguments_of
from ..handlers.json_encoding import OutputMismatch, encoded

if TYPE_CHECKING:
    from ...engine.request import Action, Refuse
    from ..api.app import Server
    from ..api.core import ServerCore
    from ..context import Context
    from ..dispatch.request import MethodHandler, ServerRequest

__all__ = [
    "Extended",
    "Extension",
    "ExtensionGate",
    "ExtensionMethod",
    "ExtensionResult",
    "declared",
    "declared_by_client",
    "declares",
    "refuse_undeclared",
    "sent",
]

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

# Methods that the specification assigns to an extension, with its id.
_OWNERS: Final = {row.name: row.extension for row in METHODS if row.extension}


class ExtensionMethod(Shown, Struct, frozen=True, eq=False):
    """A registered method of an extension: a handler, or `serve`."""

    name: str
    # Also served to clients that did not declare the extension.
    always: bool
    arguments: Arguments | None = None
    inline: bool = False
    serve: Any = None  # a `MethodHandler`


class ExtensionResult(Shown, Struct, frozen=True):
    """A result with the `resultType` of an extension, returned by a handler."""

    extension: str
    result_type: str
    members: dict[str, Any]


class Extended(Shown, Struct, frozen=True, eq=False):
    """An extension that was added to a server."""

    extension: Extension
    # The `ServerCore` it was added to, and the servers between, if that one is mounted.
    owner: Any
    path: tuple[Any, ...] = ()


class Extension:
    """An extension of MCP: an id, settings, methods and result types.

    A subclass may register what else it needs, such as tools or resources, in `on_extend`.
    """

    def __init__(
        self,
        id: str,
        *,
        settings: Mapping[str, Any] | None = None,
        result_types: Iterable[str] = (),
    ) -> None:
        """Make an extension, to be added to servers.

        `settings` is advertised to clients. `result_types` are the values of `resultType` that
        `result` may send.

        Raises:
            ValueError: the id is malformed, or a result type belongs to MCP.
            TypeError: the settings are not a JSON object.
        """
        check_id(id)
        self.id = id
        self.settings = settings_of(id, settings)
        self.result_types = result_types_of(id, result_types)
        self.methods: dict[str, ExtensionMethod] = {}
        # To update when a method is registered later. The two underscores keep subclasses from
        # overriding it by accident.
        self.__servers: WeakSet[ServerCore] = WeakSet()

    def __repr__(self) -> str:
        return f"<Extension {self.id!r}, {len(self.methods)} methods>"

    def method(
        self, name: str, /, *, always: bool = False, inline: bool = False
    ) -> Callable[[F], F]:
        """Register a function as a method: its arguments are the params, as of `app.method`.

        With `always` it is also served to clients that did not declare the extension.

        Raises:
            TypeError: the signature cannot be a method's.
            ValueError: MCP, or this extension, has a method of that name.
        """
        if callable(name):
            raise TypeError(
                '@extension.method needs a name in parentheses: @extension.method("...")'
            )

        def register(handler: F) -> F:
            self.__add(ExtensionMethod(name, always, arguments_of(handler), inline))
            return handler

        return register

    def serve(self, name: str, function: MethodHandler, *, always: bool = False) -> None:
        """Register a function that answers a method by itself.

        For extensions of this library: its parameters are not a public interface.

        Raises:
            ValueError: MCP, or this extension, has a method of that name.
        """
        self.__add(ExtensionMethod(name, always, serve=function))

    # The type variable takes the return annotation of the handler. With Any in its place each
    # annotated handler would have to cast.
    def result(self, result_type: str, members: Any = None) -> R:  # type: ignore[type-var]
        """Return a result for a handler to return, with `result_type` and these members.

        To a type checker it has the return type of the handler, so the annotation keeps
        describing a completed call. Return it directly: a variable would need an annotation.

        Raises:
            ValueError: the extension has no such type, or the members contain `resultType`.
            TypeError: the members are not an object, or cannot be encoded.
        """
        if result_type not in self.result_types:
            known = ", ".join(self.result_types) or "none"
            raise ValueError(f"{self.id} has no result type {result_type!r}; it has {known}")
        # Encoded and decoded, so that an error is raised where the members are made.
        plain = decode(encoded({} if members is None else members))
        if not isinstance(plain, dict):
            kind = type(members).__name__
            raise TypeError(f"the members of a result are a dict or a Struct, not {kind}")
        if "resultType" in plain:
            raise ValueError("resultType is not one of the members: it is the first argument")
        return cast("R", ExtensionResult(self.id, result_type, plain))

    def accepts_results(self, context: Context) -> bool:
        """Return True if the client of a request can be sent results of the extension's types.

        It has to declare the extension, in a revision that has result types: 2026-07-28.
        """
        request = context._request
        return request.rev.has_extensions and declares(request.caller, self.id)

    def on_extend(self, app: Server) -> None:
        """Register what the extension needs on a server; called once for each server.

        An exception reaches the caller of `add_extension`, and the extension is not added.
        """

    def __add(self, method: ExtensionMethod) -> None:
        _check_method(self.id, method.name)
        if method.name in self.methods:
            raise ValueError(f"{method.name!r} is a method of {self.id} already")
        # Imported here: that module imports this one.
        from ..methods.extension_methods import check_method, refresh

        servers = list(self.__servers)
        for server in servers:
            check_method(server, self.id, method.name)
        self.methods[method.name] = method
        for server in servers:
            refresh(server)

    def added_to(self, core: ServerCore) -> None:
        """Record a server that it was added to."""
        self.__servers.add(core)

    def is_same(self, other: Extension) -> bool:
        """Return True if two extensions are interchangeable: without handlers, and alike."""
        if self is other:
            return True
        handlers = any(
            each.arguments is not None for one in (self, other) for each in one.methods.values()
        )
        return not handlers and (self.id, self.settings) == (other.id, other.settings)


# -- what a request declares -----------------------------------------------------------------


def declares(caller: Caller | None, id: str) -> bool:
    """Return True if a request declares an extension."""
    return _declaration(caller, id) is not None


def declared(caller: Caller | None, id: str) -> dict[str, Any] | None:
    """Return a copy of the settings that a request declares for an extension, or None."""
    found = _declaration(caller, id)
    return None if found is None else deepcopy(found)


def declared_by_client(request: ServerRequest, id: str) -> dict[str, Any] | None:
    """Return the settings that a client declares for an extension, or None.

    In a session it has declared them in `initialize`.
    """
    session = request.connection.session
    if not request.rev.has_handshake or session is None:
        return _declaration(request.caller, id)
    extensions = session.capabilities.extensions
    return extensions.get(id) if isinstance(extensions, dict) else None


def _declaration(caller: Caller | None, id: str) -> dict[str, Any] | None:
    if caller is None or caller.capabilities is None or caller.protocol_version is None:
        return None
    extensions = caller.capabilities.extensions
    # In a revision without extensions the member has no meaning.
    if extensions is None or not has_extensions(caller.protocol_version):
        return None
    return extensions.get(id)


def refuse_undeclared(request: ServerRequest, id: str) -> Refuse:
    """Return the refusal of a request that does not declare an extension."""
    return request.refuse(
        ErrorKind.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"The client did not declare the extension {id}",
        requiredCapabilities={"extensions": {id: {}}},
    )


class ExtensionGate:
    """Serves a method to clients that declared its extension."""

    __slots__ = ("_id", "_serve")

    def __init__(self, id: str, serve: MethodHandler) -> None:
        self._id = id
        self._serve = serve

    def __call__(self, request: ServerRequest) -> Action:
        """Serve it, or refuse with what is missing."""
        if declared_by_client(request, self._id) is not None:
            return self._serve(request)
        return refuse_undeclared(request, self._id)


def sent(value: ExtensionResult, request: ServerRequest) -> dict[str, Any]:
    """Return a result of an extension's own type in its wire form.

    Raises:
        OutputMismatch: the client did not declare the extension, or the server lacks it.
    """
    kind = f"a result of type {value.result_type!r}, of the extension {value.extension}"
    if value.extension not in request.connection.core.extensions:
        raise OutputMismatch(
            f"{request.name!r} returned {kind}, which was not added to this server"
        )
    if not request.rev.has_extensions:
        raise OutputMismatch(
            f"{request.name!r} returned {kind}, and MCP {request.revision} has no result types: "
            "ask `extension.accepts_results(context)` first"
        )
    if not declares(request.caller, value.extension):
        raise OutputMismatch(f"{request.name!r} returned {kind}, which the client did not declare")
    always: dict[str, Any] = {**request.rev.empty(), "resultType": value.result_type}
    own = value.members.get("_meta")
    if own and always.get("_meta") is not None:
        always["_meta"] = {**always["_meta"], **own}
    return {**value.members, **always}


def _check_method(id: str, name: str) -> None:
    """Raise ValueError for a method of MCP, unless MCP has it in this extension."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a method of {id} is a string, not {name!r}")
    owner = _OWNERS.get(name, "MCP")
    if owner != id and any(method_status(name, revision) for revision in REVISIONS):
        raise ValueError(f"{name!r} is a method of {owner}, and cannot be one of {id}")

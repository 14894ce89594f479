"""Extensions of MCP: what a third party adds to a server, for clients that declare it.

    stars = Extension("com.example/stars", settings={"most": 5}, result_types=("starred",))

    @stars.method("stars/list")
    async def list_stars(context: Context, limit: int = 10) -> list[Star]: ...

    app.add_extension(stars)

An `Extension` holds what its author registered with it. Which revisions have extensions at all
is a row of the specification, and a `ServerRevision` looks there; what an id looks like is in
`mcp.extensions`, what a server does when it is extended in `extending.py`.

The rules that live here, and only here:

* A client has an extension if this very request declares it. What it declared before does not
  count, and neither does what it says in a revision that has no extensions.
* A method of an extension is refused to others, with what they would have had to declare;
  `always` lifts that for a method which harms nobody.
* A result of an extension's own type goes only to a client that declared it: any other takes
  the type for a broken answer.           [MCP 2026-07-28, basic#resulttype]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakSet

from msgspec import UNSET, Struct
from msgspec.json import decode

from ..jsonrpc.messages import Shown
from ..mcp.extensions import check_id, has_extensions, result_types_of, settings_of
from ..mcp.meta import Caller
from ..spec.error_kinds import ErrorKind
from ..spec.lookup import method_status
from ..spec.mcp.methods import METHODS
from ..spec.revisions import REVISIONS
from .handlers.arguments import Arguments, arguments_of
from .handlers.json_encoding import OutputMismatch, encoded

if TYPE_CHECKING:
    from ..jsonrpc.incoming import IncomingRequest
    from .app import Server
    from .context import Context
    from .core import ServerCore
    from .dispatch.connection import Connection
    from .dispatch.revision import MethodHandler, ServerRevision

__all__ = [
    "Extended",
    "Extension",
    "ExtensionGate",
    "ExtensionMethod",
    "ExtensionResult",
    "declared",
    "declares",
    "refuse_undeclared",
    "sent",
]

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

# Methods that the specification gives to an extension, and to which.
_OWNERS: Final = {row.name: row.extension for row in METHODS if row.extension}


class ExtensionMethod(Struct, frozen=True, eq=False):
    """A method of an extension, as it was registered: a handler by its signature, or `serve`."""

    name: str
    # Whether it is served to clients that did not declare the extension, too.
    always: bool
    arguments: Arguments | None = None
    inline: bool = False
    serve: Any = None  # a `MethodHandler`


class ExtensionResult(Shown, Struct, frozen=True):
    """What a handler returns in place of its result: members under a type of an extension's."""

    extension: str
    result_type: str
    members: dict[str, Any]


class Extended(Struct, frozen=True, eq=False):
    """An extension as one server has it."""

    extension: Extension
    # The server that was extended; of a mounted one, that one, and how it is reached.
    owner: Any
    path: tuple[Any, ...] = ()


class Extension:
    """An extension of MCP: an id, its settings, and what it adds to the servers that take it.

    A class of your own may register what else it needs, such as tools or resources, in
    `on_extend`.
    """

    def __init__(
        self,
        id: str,
        *,
        settings: Mapping[str, Any] | None = None,
        result_types: Iterable[str] = (),
    ) -> None:
        """Make an extension that no server has yet.

        `settings` is what a server tells of it; a client has its own. `result_types` are the
        values of `resultType` that `result` may send.

        Raises:
            ValueError: the id is not formed as it must be, or a type belongs to MCP.
            TypeError: the settings are no JSON object.
        """
        check_id(id)
        self.id = id
        self.settings = settings_of(id, settings)
        self.result_types = result_types_of(id, result_types)
        self.methods: dict[str, ExtensionMethod] = {}
        # Who is to learn of a method that is registered after the server was extended. Spelt so
        # that classes made of this one do not hide it by accident.
        self.__servers: WeakSet[ServerCore] = WeakSet()

    def __repr__(self) -> str:
        return f"<Extension {self.id!r}, {len(self.methods)} methods>"

    def method(
        self, name: str, /, *, always: bool = False, inline: bool = False
    ) -> Callable[[F], F]:
        """Register a function as a method: its arguments are the params, as of `app.method`.

        With `always` it is served to clients that did not declare the extension, too.

        Raises:
            TypeError: the signature cannot be a method's.
            ValueError: MCP, or this extension, has a method of that name.
        """
        if callable(name):
            raise TypeError("@extension.method comes with parentheses, and the name in them")

        def register(handler: F) -> F:
            self.__add(ExtensionMethod(name, always, arguments_of(handler), inline))
            return handler

        return register

    def serve(self, name: str, function: MethodHandler, *, always: bool = False) -> None:
        """Register what serves a method by itself, down to the answer.

        It is for extensions of our own: what it is called with is no public interface.

        Raises:
            ValueError: MCP, or this extension, has a method of that name.
        """
        self.__add(ExtensionMethod(name, always, serve=function))

    # The variable is in no argument because what a handler is annotated to return decides it.
    # With Any in its place every handler with an annotation of its own would have to cast.
    def result(self, result_type: str, members: Any = None) -> R:  # type: ignore[type-var]
        """Return what a tool or method returns to answer with `result_type` and these members.

        To a type checker it is whatever the handler is annotated to return, so that the
        annotation goes on saying what a completed call gives. Return it where it is made: a
        variable would need an annotation of its own.

        Raises:
            ValueError: the extension has no such type, or the members name one themselves.
            TypeError: the members are no object, or cannot be sent.
        """
        if result_type not in self.result_types:
            known = ", ".join(self.result_types) or "none"
            raise ValueError(f"{self.id} has no result type {result_type!r}; it has {known}")
        # Written and read, so that what cannot be sent is found where it was made.
        plain = decode(encoded({} if members is None else members))
        if not isinstance(plain, dict):
            kind = type(members).__name__
            raise TypeError(f"a result has members: give a dict or a Struct, not {kind}")
        if "resultType" in plain:
            raise ValueError("the type of a result is given beside its members, not among them")
        return cast("R", ExtensionResult(self.id, result_type, plain))

    def on_extend(self, app: Server) -> None:
        """Register with a server what the extension needs there; called once for each server.

        What it raises reaches whoever extends the server, which is then not extended.
        """

    def __add(self, method: ExtensionMethod) -> None:
        _check_method(self.id, method.name)
        if method.name in self.methods:
            raise ValueError(f"{method.name!r} is a method of {self.id} already")
        # Imported here: what extends a server knows this module already.
        from .dispatch.extension_methods import check_method, refresh

        servers = list(self.__servers)
        for server in servers:
            check_method(server, self.id, method.name)
        self.methods[method.name] = method
        for server in servers:
            refresh(server)

    def joins(self, core: ServerCore) -> None:
        """Take note of a server that has taken it."""
        self.__servers.add(core)

    def is_same(self, other: Extension) -> bool:
        """Say whether it makes no difference which of two a server has.

        One without handlers has nothing to disagree about but its settings.
        """
        if self is other:
            return True
        handlers = any(
            each.arguments is not None for one in (self, other) for each in one.methods.values()
        )
        return not handlers and (self.id, self.settings) == (other.id, other.settings)


# -- what a request declares -----------------------------------------------------------------


def declares(caller: Caller | None, id: str) -> bool:
    """Say whether a request declares an extension."""
    return _declaration(caller, id) is not None


def declared(caller: Caller | None, id: str) -> dict[str, Any] | None:
    """Return the settings that a request declares for an extension, or None if it does not.

    They are a copy: what requests say alike is read once, and kept for the next of them.
    """
    found = _declaration(caller, id)
    return None if found is None else deepcopy(found)


def _declaration(caller: Caller | None, id: str) -> dict[str, Any] | None:
    if caller is None or caller.capabilities is None or caller.protocol_version is None:
        return None
    extensions = caller.capabilities.extensions
    # In a revision without extensions it is a word like any other.
    if extensions is UNSET or not has_extensions(caller.protocol_version):
        return None
    return extensions.get(id)


def refuse_undeclared(
    connection: Connection, asked: IncomingRequest, rev: ServerRevision, id: str
) -> None:
    """Refuse a request for want of an extension that its client did not declare."""
    connection.refuse(
        asked,
        rev.policy,
        ErrorKind.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"The client did not declare the extension {id}",
        requiredCapabilities={"extensions": {id: {}}},
    )


class ExtensionGate:
    """Serves a method to those who declared its extension."""

    __slots__ = ("_id", "_serve")

    def __init__(self, id: str, serve: MethodHandler) -> None:
        self._id = id
        self._serve = serve

    def __call__(
        self,
        connection: Connection,
        asked: IncomingRequest,
        caller: Caller | None,
        rev: ServerRevision,
    ) -> None:
        """Serve it, or say what is missing."""
        if declares(caller, self._id):
            self._serve(connection, asked, caller, rev)
        else:
            refuse_undeclared(connection, asked, rev, self._id)


def sent(value: ExtensionResult, context: Context) -> dict[str, Any]:
    """Return a result of an extension's own type as it is sent.

    Raises:
        OutputMismatch: the client did not declare the extension, or the server lacks it.
    """
    kind = f"a result of type {value.result_type!r}, of the extension {value.extension}"
    if value.extension not in context._connection.core.extensions:
        raise OutputMismatch(f"{context.name!r} returned {kind}, which this server does not have")
    if not declares(context._caller, value.extension):
        raise OutputMismatch(f"{context.name!r} returned {kind}, which the client did not declare")
    always: dict[str, Any] = {**context._rev.empty(), "resultType": value.result_type}
    own = value.members.get("_meta")
    if own and always.get("_meta", UNSET) is not UNSET:
        always["_meta"] = {**always["_meta"], **own}
    return {**value.members, **always}


# -- what an author may not do ---------------------------------------------------------------


def _check_method(id: str, name: str) -> None:
    """Refuse the name of a method that MCP has, unless it has it in this very extension."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a method of {id} is a text, not {name!r}")
    owner = _OWNERS.get(name, "MCP")
    if owner != id and any(method_status(name, revision) for revision in REVISIONS):
        raise ValueError(f"{name!r} is a method of {owner}, and cannot be one of {id}")

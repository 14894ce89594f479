"""What authors may give to servers, tools, resources, prompts and mounts, and the checks of it.

The rules that live here, and only here:

* Each option is one field, with its type and default; the comment above it is its documentation.
  `tools/generate_options.py` writes the signatures and docstrings of `Server` from these fields
  (`make options`). The generator replaces "the entry" by "the tool", "the resource" and so on.
* An option of the wrong type raises on the line of its author, with a text that names it. It would
  otherwise be sent as it is, and a client could not read the handshake or a list because of it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct, ValidationError

from ...engine.limits import ServerLimits, TaskSettings
from ...jsonrpc.policy import Policy
from ...mcp.types import Annotations, Icon, Implementation, PromptArgument, ToolAnnotations
from ...spec.revisions import REVISIONS
from ..handlers.arguments import Arguments
from ..handlers.json_encoding import OutputMismatch, encoded
from ..handlers.output import DERIVE
from ..settings import CacheHint, CapabilitySwitches, check_switches

if TYPE_CHECKING:
    from ...auth.server.settings import Auth
    from ...engine.access.guard import Guard
    from ...store.base import Store
    from ..api.app import Server
    from .extensions import Extension

__all__ = [
    "PAGED",
    "AccessOptions",
    "EntryOptions",
    "Lifespan",
    "MountOptions",
    "PromptOptions",
    "ResourceOptions",
    "ServerOptions",
    "ToolOptions",
    "check_flags",
    "check_texts",
    "icons_of",
    "instance_of",
    "meta_of",
    "seconds",
    "typed",
    "whole_number",
]

# The kinds of lists as authors name them, by the member of their pages.
PAGED: Final = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "resourceTemplates": "resource_templates",
}

Lifespan: TypeAlias = Callable[["Server"], AbstractAsyncContextManager[Any]]


class ServerOptions(Struct, frozen=True, kw_only=True, eq=False):
    """What `Server(...)` takes."""

    # How the server is called, in its introduction and in logs.
    name: str
    # The version of the server, not of a protocol.
    version: str = "0.0.0"
    # A name for people.
    title: str | None = None
    # What the server does, in a sentence.
    description: str | None = None
    # How a model should use the server, as a text for its prompt.
    instructions: str | None = None
    # Where people read more.
    website_url: str | None = None
    # Addresses of icons, or `Icon`s.
    icons: Iterable[Icon | str] = ()
    # The revisions of MCP to serve; all five by default.
    revisions: Iterable[str] = REVISIONS
    # How messages are written and read, for peers with quirks.
    policy: Policy | None = None
    # Entries on one page of a list. By default 100 in 2026-07-28, and up to 2025-11-25 as many as
    # fit in 512 KiB, since many clients read one page only. A dict has sizes for some kinds:
    # `{"tools": 5, "prompts": 7}`; the others are "resources" and "resource_templates".
    page_size: int | Mapping[str, int] | None = None
    # How long clients may cache lists and results, unless an entry has its own.
    cache: CacheHint = CacheHint()
    # A function of the server that returns an async context manager, entered before the first
    # connection; what it yields is `ctx.state`.
    lifespan: Lifespan | None = None
    # Bounds on requests, threads and waiting times.
    limits: ServerLimits = ServerLimits()
    # Keys for the state that clients carry between round trips; give the same keys to all
    # processes that serve the same clients.
    state_keys: Sequence[bytes] = ()
    # Experimental capabilities to declare.
    experimental: Mapping[str, dict[str, Any]] | None = None
    # Extensions to add, as `add_extension` does.
    extensions: Iterable[Extension] = ()
    # Kinds to switch off, as in `{"prompts": False, "logging": False}`; see `CapabilitySwitches`.
    # They are not declared, their methods are unknown, and what is registered of them is not
    # offered. True declares completions and logging although nothing uses them yet.
    capabilities: CapabilitySwitches | None = None
    # False for a server whose lists never change while it runs: it does not declare `listChanged`,
    # and notifies of no change.
    list_changed: bool = True
    # False for a server whose resources cannot be subscribed to.
    subscribe: bool = True
    # Where tasks are kept; memory by default.
    store: Store | None = None
    # How long tasks are kept and how many may run.
    tasks: TaskSettings = TaskSettings()
    # Scopes that grant others, as in `{"files:admin": ["files:read", "files:write"]}`.
    implies: Mapping[str, Iterable[str]] | None = None
    # Leave entries out of lists whose scopes the caller lacks. By default they are listed, so that
    # clients can ask their user for more scopes.
    hide_unscoped: bool = False
    # Read a text as the number, boolean, list or object that it says, in arguments of tools that do
    # not fit as they are, where the schema has no text: `"5"` for an integer. Schemas stay as they
    # are.
    coerce_arguments: bool = False
    # How callers are recognised, on every listener that has no `auth` of its own: a verifier of
    # `trunkline.auth`, a list of them, a function of the request, or `AuthSettings`. Without it
    # callers are anonymous.
    auth: Auth | None = None

    def __repr__(self) -> str:
        # Its keys are secret.
        return f"<ServerOptions of {self.name!r}>"

    def check(self) -> None:
        """Raise TypeError or ValueError for an option that cannot work."""
        for option in ("name", "version"):
            if not isinstance(value := getattr(self, option), str):
                raise TypeError(f"the {option} of a server is a text, not {_shown(value)}")
        if not self.name:
            raise ValueError("the name of a server has at least one character")
        check_texts(
            title=self.title,
            description=self.description,
            instructions=self.instructions,
            website_url=self.website_url,
        )
        check_flags(
            list_changed=self.list_changed,
            subscribe=self.subscribe,
            hide_unscoped=self.hide_unscoped,
            coerce_arguments=self.coerce_arguments,
        )
        self.page_sizes()
        _check_lifespan(self.lifespan)
        keys = self.state_keys
        is_list = isinstance(keys, Sequence) and not isinstance(keys, bytes | str)
        if not is_list or not all(isinstance(key, bytes) for key in keys):
            raise TypeError("state_keys is a list of keys, which are bytes")
        if isinstance(self.revisions, str) or not isinstance(self.revisions, Iterable):
            raise TypeError("revisions is a list: write revisions=['2025-11-25']")
        if self.experimental is not None:
            instance_of("experimental", self.experimental, Mapping)
            for key, value in self.experimental.items():
                if not isinstance(key, str) or not isinstance(value, Mapping):
                    raise TypeError("experimental has dicts by the names of capabilities")
        instance_of("limits", self.limits, ServerLimits)
        instance_of("cache", self.cache, CacheHint)
        instance_of("tasks", self.tasks, TaskSettings)
        if self.policy is not None:
            instance_of("policy", self.policy, Policy)
        _check_store(self.store)

    def info(self) -> Implementation:
        """Return how the server introduces itself.

        Raises:
            TypeError: the icons are not a list, or one of them is not an icon.
        """
        return Implementation(
            self.name,
            self.version,
            description=self.description or None,
            icons=icons_of(self.icons),
            title=self.title or None,
            website_url=self.website_url or None,
        )

    def page_sizes(self) -> dict[str, int]:
        """Return the page sizes that were given, by kind.

        Raises:
            TypeError: one is not an integer.
            ValueError: one is below 1, or of an unknown kind.
        """
        given = self.page_size
        if not isinstance(given, Mapping):
            size = whole_number("page_size", given, least=1)
            return {} if size is None else dict.fromkeys(PAGED.values(), size)
        if unknown := [each for each in given if each not in PAGED.values()]:
            kinds = ", ".join(PAGED.values())
            raise ValueError(f"page_size has sizes for {kinds}, not for {unknown[0]!r}")
        sizes = {kind: whole_number("page_size", each, least=1) for kind, each in given.items()}
        return {kind: size for kind, size in sizes.items() if size is not None}

    def switches(self) -> CapabilitySwitches:
        """Return the kinds that are switched on or off.

        Raises:
            TypeError: they are not a dict of booleans.
            ValueError: one has an unknown name.
        """
        return check_switches({} if self.capabilities is None else self.capabilities)


class AccessOptions(Struct, frozen=True, kw_only=True, eq=False):
    """The options for access, of a tool, resource, prompt or mount."""

    # The scopes that a caller needs; anonymous callers have none.
    scopes: Iterable[str] = ()
    # A function of the context and of arguments, by name, that decides on each call; a coroutine
    # function if it has to wait. False and PermissionError refuse.
    allow: Callable[..., Any] | None = None
    # A function of the context that decides whether the entry exists for the caller.
    visible: Callable[[Any], object] | None = None

    def guard(self, names: Collection[str] | None) -> Guard | None:
        """Return the guard of an entry with these arguments, or None if it needs none.

        Raises:
            TypeError: an option has the wrong type, or a function takes other parameters.
            ValueError: a text is not a scope.
        """
        if self.scopes == () and self.allow is None and self.visible is None:
            return None
        # Imported here: most servers have no guards.
        from ...engine.access.guard import guard_of

        return guard_of(self.scopes, self.allow, self.visible, names)


class MountOptions(AccessOptions, frozen=True, kw_only=True, eq=False):
    """What `Server.mount` takes."""

    # What the names of tools and prompts begin with, before an underscore, and the first segment of
    # URIs.
    prefix: str = ""


class EntryOptions(AccessOptions, frozen=True, kw_only=True, eq=False):
    """The options that tools, resources and prompts have in common."""

    # The entry's name; the function's by default.
    name: str | None = None
    # A name for people.
    title: str | None = None
    # What the entry is for; the docstring by default.
    description: str | None = None
    # Addresses of icons, or `Icon`s.
    icons: Iterable[Icon | str] = ()
    # The `_meta` of the entry in lists.
    meta: dict[str, Any] | None = None
    # Run a plain function on the event loop, not on a thread; it must be quick.
    inline: bool = False
    # Seconds until the handler is cancelled.
    timeout: float | None = None

    def fields(
        self, arguments: Arguments, kind: str, *, has_known_names: bool = True
    ) -> dict[str, Any]:
        """Return the fields of an entry.

        Raises:
            TypeError: an option has the wrong type, or a handler that runs inline has a timeout,
                which cannot cancel it.
            ValueError: the timeout is not above 0, or a text is not a scope.
        """
        check_texts(title=self.title, description=self.description)
        check_flags(inline=self.inline)
        timeout = seconds("timeout", self.timeout)
        if self.inline and self.timeout is not None:
            raise TypeError(f"a {kind} that runs inline cannot be cancelled: remove its timeout")
        return {
            "title": self.title,
            "description": self.description or arguments.description,
            "icons": icons_of(self.icons),
            "meta": meta_of(self.meta),
            "inline": self.inline,
            "timeout": timeout,
            "guard": self.guard(arguments.names if has_known_names else None),
        }


class ToolOptions(EntryOptions, frozen=True, kw_only=True, eq=False):
    """What `Server.tool` and `Server.add_tool` take."""

    # Hints such as `{"readOnlyHint": True}`, or a `ToolAnnotations`.
    annotations: ToolAnnotations | Mapping[str, Any] | None = None
    # A JSON Schema in place of the signature; the handler then takes one dict, and the context if
    # it has a parameter for it. Needs the `schema` extra.
    input_schema: dict[str, Any] | None = None
    # A type or JSON Schema for structured output; None for text only.
    output_schema: Any = DERIVE
    # Read texts as the values that they say, as `coerce_arguments` of the server does; by default
    # that of the server.
    coerce_arguments: bool | None = None
    # How long clients may cache the list entry.
    cache: CacheHint | None = None
    # True, or what to use instead; it is put before the description.
    deprecated: bool | str = False
    # "optional", or True, allows clients to run calls as tasks, "required" demands it.
    task: Literal["never", "optional", "required"] | bool = "never"
    # "handler" makes a call a task when it awaits `ctx.become_task()`.
    task_start: Literal["call", "handler"] = "call"


class ResourceOptions(EntryOptions, frozen=True, kw_only=True, eq=False):
    """What `Server.resource` and `Server.add_resource` take."""

    # The type of the content; by default that of a text, of JSON or of bytes.
    mime_type: str | None = None
    # Bytes of the content, if known.
    size: int | None = None
    # Hints such as `{"audience": ["user"]}`, or an `Annotations`.
    annotations: Annotations | Mapping[str, Any] | None = None
    # How long clients may cache the content.
    cache: CacheHint | None = None
    # Call the handler of a template for any value. By default a value that leads out of a folder,
    # such as `../x`, `/x` or `..%2Fx`, is a resource that does not exist.
    unsafe: bool = False
    # Keep the URI where this server is mounted with a prefix; for URIs that appear in what the
    # server sends.
    fixed_uri: bool = False


class PromptOptions(EntryOptions, frozen=True, kw_only=True, eq=False):
    """What `Server.prompt` and `Server.add_prompt` take."""

    # Arguments in place of the signature: names of required ones, or `PromptArgument`s. The handler
    # then takes one dict of texts, and the context if it has a parameter for it.
    arguments: Iterable[PromptArgument | Mapping[str, Any] | str] | None = None


def check_texts(**options: Any) -> None:
    """Raise TypeError for an option that is neither a text nor None."""
    for name, value in options.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is a text, not {_shown(value)}")


def check_flags(**options: Any) -> None:
    """Raise TypeError for an option that is neither True nor False."""
    for name, value in options.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} is True or False, not {_shown(value)}")


def seconds(option: str, value: Any) -> float | None:
    """Return a duration above 0, or None.

    Raises:
        TypeError: it is not a number.
        ValueError: it is not above 0, or not finite.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{option} is a number of seconds, not {_shown(value)}")
    if not value > 0 or math.isinf(value):
        raise ValueError(f"{option} is a number of seconds above 0, not {value!r}")
    return value


def whole_number(option: str, value: Any, *, least: int) -> int | None:
    """Return an integer of at least `least`, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{option} is an integer, not {_shown(value)}")
    if value < least:
        raise ValueError(f"{option} is at least {least}, not {value}")
    return value


def instance_of(option: str, value: Any, kind: type) -> None:
    """Raise TypeError for an option that is not of its class."""
    if not isinstance(value, kind):
        raise TypeError(f"{option} is {_article(kind.__name__)}, not {_shown(value)}")


def icons_of(icons: Any) -> list[Icon] | None:
    """Return icons as they are sent; a text is the URL of one, a dict has the names of the wire.

    Raises:
        TypeError: they are not a list, or one of them is not an icon.
    """
    if isinstance(icons, str | Icon | Mapping) or not isinstance(icons, Iterable):
        shown = f"icons=[{icons!r}]" if isinstance(icons, str) else "icons=[...]"
        raise TypeError(f"icons is a list of addresses or Icons: write {shown}")
    found = [Icon(icon) if isinstance(icon, str) else _icon(icon) for icon in icons]
    return found or None


def _icon(icon: Any) -> Icon:
    found = typed("an icon", icon, Icon)
    if not isinstance(found, Icon):
        raise TypeError("an icon is an address or an Icon, not None")
    return found


def meta_of(meta: Any) -> dict[str, Any] | None:
    """Return the `_meta` of an entry.

    Raises:
        TypeError: it is not a dict with texts as keys, or cannot be sent.
    """
    if meta is None:
        return None
    if not isinstance(meta, dict) or not all(isinstance(key, str) for key in meta):
        raise TypeError(f"meta is a dict with texts as keys, not {_shown(meta)}")
    try:
        encoded(meta)
    except OutputMismatch as error:
        raise TypeError(f"meta cannot be sent: {error}") from None
    return meta or None


def typed(option: str, value: Any, kind: Any) -> Any:
    """Return an option as a Struct; a dict has the names of the wire.

    Raises:
        TypeError: it is neither, or a member is unknown or of the wrong type.
    """
    if value is None:
        return None
    if not isinstance(value, kind):
        if not isinstance(value, Mapping):
            raise TypeError(f"{option} is {_article(kind.__name__)} or a dict, not {_shown(value)}")
        unknown = set(value) - set(kind.__struct_encode_fields__)
        if unknown:
            known = ", ".join(kind.__struct_encode_fields__)
            raise TypeError(f"{option} has no member {sorted(map(str, unknown))[0]!r}; use {known}")
    try:
        # The constructor of a Struct does not check its members.
        return msgspec.convert(msgspec.to_builtins(value), kind)
    except (ValidationError, TypeError) as error:
        raise TypeError(f"{option} is not a valid {kind.__name__}: {error}") from None


def _check_store(store: Any) -> None:
    """Raise TypeError for what cannot be a store: an address, or a class that was not called."""
    # Stores have no common class, only methods.
    if store is not None and (isinstance(store, type) or not hasattr(store, "get")):
        raise TypeError(f"store is a Store, such as MemoryStore(), not {_shown(store)}")


def _check_lifespan(lifespan: Any) -> None:
    """Raise TypeError for a function that does not return an async context manager."""
    if lifespan is None:
        return
    if not callable(lifespan):
        raise TypeError(
            f"lifespan is a function that returns an async context manager, not {_shown(lifespan)}"
        )
    inner = inspect.unwrap(lifespan)
    if inspect.isasyncgenfunction(lifespan) or inspect.isgeneratorfunction(inner):
        text = "write @asynccontextmanager above `async def`, from contextlib"
    elif inspect.iscoroutinefunction(lifespan):
        text = "write @asynccontextmanager above it, and yield the state instead of returning it"
    else:
        return
    name = getattr(lifespan, "__name__", "lifespan")
    raise TypeError(f"lifespan: {name}() does not return an async context manager: {text}")


def _shown(value: Any) -> str:
    """Return an option as it is shown in an error: short ones as they were given."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return _article(type(value).__name__)


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"

"""Registration: makes entries of handlers and options, and rejects what cannot work.

Whatever is wrong with a handler raises TypeError or ValueError when it is registered, with a
text that names it, and not when the first client calls it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec

from ...mcp.types import Annotations, PromptArgument, ToolAnnotations
from ...spec.lookup import method_status
from ...spec.revisions import REVISIONS
from ..handlers.arguments import arguments_of, declared_arguments, raw_arguments
from ..handlers.custom_types import read_custom
from ..handlers.output import output_of
from ..settings import CacheHint
from . import options
from .entries import Completer, Entry, PromptEntry, ResourceEntry, ToolEntry
from .paged_list import PagedList

if TYPE_CHECKING:
    from ...mcp.param_headers import ParamPath
    from ..api.core import ServerCore
    from ..dispatch.connection import Connection
    from ..methods.methods import NotificationHandler
    from .catalog import Catalog
    from .options import PromptOptions, ResourceOptions, ToolOptions

__all__ = [
    "cache_of",
    "check_middleware",
    "check_name",
    "check_name_given",
    "check_revisions",
    "completer",
    "decorator",
    "list_maker",
    "own_method",
    "own_notification",
    "prompt",
    "remove",
    "resource",
    "tool",
    "warn_of_completions",
]

F = TypeVar("F", bound=Callable[..., Any])

_log: Final = logging.getLogger("trunkline.server")

# Entries on one page of a list, unless the author gives another number.
PAGE_SIZE: Final = 100

# Each client lists every name; longer ones only cost more.  [MCP 2025-11-25, server/tools]
MAX_NAME_LENGTH: Final = 128

# The list that changes, by the member of its pages.
_KIND_OF: Final = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "resourceTemplates": "resources",
}

# What the handler of a completion gets: the text typed so far, and the other arguments.
_TYPED: Final = ("a", {"b": "c"})


def check_revisions(revisions: tuple[str, ...]) -> None:
    """Raise ValueError if the list is empty, or names a revision that was never released."""
    unknown = [each for each in revisions if each not in REVISIONS]
    if unknown or not revisions:
        known = ", ".join(REVISIONS)
        raise ValueError(f"revisions are among {known}, at least one; not {unknown or 'none'}")


def list_maker(
    page_sizes: Mapping[str, int], key: bytes, on_change: Callable[[str], object]
) -> Callable[[str, Callable[[Any, str], Any]], PagedList[Any]]:
    """Return a function that makes the lists of one server; the author gave some page sizes."""

    def make(member: str, row: Callable[[Any, str], Any]) -> PagedList[Any]:
        given = page_sizes.get(options.PAGED[member])
        size = PAGE_SIZE if given is None else given
        listed: PagedList[Any] = PagedList(
            member, row, page_size=size, key=key, is_fixed=given is not None
        )
        listed.on_change = lambda: on_change(_KIND_OF[member])
        return listed

    return make


def tool(core: ServerCore, handler: Callable[..., Any], given: ToolOptions) -> ToolEntry:
    """Return the entry of a tool."""
    _check_handler(handler, "add_tool(handler, name)")
    check: Any = None
    headers: tuple[ParamPath, ...] = ()
    schema = given.input_schema
    if schema is None:
        arguments = arguments_of(handler)
        if arguments.headers:
            headers = _repeated(arguments.headers)
    else:
        # Imported here: only a schema given as JSON needs the extra.
        from ...mcp.param_headers import param_headers
        from ..handlers.schema_validator import SchemaCheck

        options.instance_of("input_schema", schema, dict)
        check = SchemaCheck(schema)
        headers = param_headers(schema)
        arguments = raw_arguments(handler)
    output = output_of(handler, given.output_schema)
    annotations = options.typed("annotations", given.annotations, ToolAnnotations)
    deprecated = given.deprecated
    if not isinstance(deprecated, bool | str):
        raise TypeError(f"deprecated is True or a text, not {type(deprecated).__name__}")
    if given.coerce_arguments is not None:
        options.check_flags(coerce_arguments=given.coerce_arguments)
    task = _task_choice(given.task)
    _check_choice("task_start", given.task_start, ("call", "handler"))
    if given.task_start == "handler" and task == "never":
        raise ValueError("task_start='handler' needs a tool that may be a task: give it task=")
    chosen = _named(given.name, handler, "tool")
    if chosen in core.catalog.tools:
        raise ValueError(f"a tool named {chosen!r} exists already")
    return ToolEntry(
        name=chosen,
        owner=core,
        arguments=arguments,
        output=output,
        annotations=annotations,
        input_schema=schema,
        check=check,
        param_headers=headers,
        deprecated="it will be removed." if deprecated is True else str(deprecated or ""),
        task=task,
        task_start=given.task_start,
        coerces=given.coerce_arguments,
        cache=_checked(given.cache),
        **given.fields(arguments, "tool", has_known_names=schema is None),
    )


def _task_choice(given: Any) -> Literal["never", "optional", "required"]:
    if isinstance(given, bool):
        return "optional" if given else "never"
    _check_choice("task", given, ("never", "optional", "required"))
    return given  # type: ignore[no-any-return]  # one of these


def _checked(cache: CacheHint | None) -> CacheHint | None:
    if cache is not None:
        options.instance_of("cache", cache, CacheHint)
    return cache


def resource(
    core: ServerCore, handler: Callable[..., Any], uri: str, given: ResourceOptions
) -> ResourceEntry:
    """Return the entry of a resource or of a template."""
    _check_handler(handler, "add_resource(handler, uri)")
    options.instance_of("the URI of a resource", uri, str)
    options.check_texts(name=given.name, mime_type=given.mime_type)
    options.check_flags(unsafe=given.unsafe, fixed_uri=given.fixed_uri)
    size = options.whole_number("size", given.size, least=0)
    arguments = arguments_of(handler)
    template = None
    if "{" in uri or "}" in uri:
        # Imported here: a server without templates need not know how they are read.
        from .uri_template import UriTemplate

        template = UriTemplate(uri)
    _check_uri(uri, template)
    wanted = set(arguments.names)
    offered = set() if template is None else set(template.variables)
    if wanted != offered:
        what = f"the variables of {uri!r}" if template else f"{uri!r}, which has no variables"
        raise TypeError(
            f"{_title(handler)} takes {sorted(wanted) or 'no arguments'}, "
            f"which are not {what} {sorted(offered) or ''}".rstrip()
        )
    if given.unsafe and template is None:
        raise ValueError(f"unsafe=True is for templates, and {uri!r} has no variables")
    if uri in core.catalog.resources or uri in core.catalog.templates:
        raise ValueError(f"a resource {uri!r} exists already")
    return ResourceEntry(
        name=given.name or str(getattr(handler, "__name__", uri)),
        owner=core,
        uri=uri,
        template=template,
        arguments=arguments,
        mime_type=given.mime_type,
        size=size,
        annotations=options.typed("annotations", given.annotations, Annotations),
        unsafe=given.unsafe,
        fixed_uri=given.fixed_uri,
        cache=_checked(given.cache),
        **given.fields(arguments, "resource"),
    )


def prompt(core: ServerCore, handler: Callable[..., Any], given: PromptOptions) -> PromptEntry:
    """Return the entry of a prompt."""
    _check_handler(handler, "add_prompt(handler, name)")
    if given.arguments is None:
        arguments = arguments_of(handler)
    else:
        arguments = declared_arguments(handler, _prompt_arguments(given.arguments))
    for argument, schema in arguments.schema.get("properties", {}).items():
        if not _is_text_like(schema):
            raise TypeError(
                f'{_title(handler)}: parameter "{argument}" of a prompt is sent as a text: '
                "use str, a number, bool, a Literal or an Enum"
            )
    chosen = _named(given.name, handler, "prompt")
    if chosen in core.catalog.prompts:
        raise ValueError(f"a prompt named {chosen!r} exists already")
    fields = given.fields(arguments, "prompt")
    return PromptEntry(name=chosen, owner=core, arguments=arguments, **fields)


def _prompt_arguments(given: Any) -> list[PromptArgument]:
    """Return the arguments of a prompt as they are listed."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise TypeError("arguments is a list of names or PromptArguments: write arguments=[...]")
    return [
        PromptArgument(each, required=True)
        if isinstance(each, str)
        else options.typed("an argument of a prompt", each, PromptArgument)
        for each in given
    ]


def completer(
    core: ServerCore,
    handler: Callable[..., Any],
    argument: str,
    prompt: str | None,
    resource: str | None,
    inline: bool,
    timeout: float | None,
) -> tuple[tuple[str, str, str], Completer]:
    """Return a completer and its key."""
    if (prompt is None) == (resource is None):
        raise TypeError("completion takes either prompt= or resource=")
    options.check_texts(prompt=prompt, resource=resource)
    options.instance_of("argument", argument, str)
    options.check_flags(inline=inline)
    timeout = options.seconds("timeout", timeout)
    arguments = arguments_of(handler)
    if not 1 <= len(arguments.names) <= 2 or not all(map(_takes, arguments.types.values(), _TYPED)):
        raise TypeError(
            f"{_title(handler)} completes an argument: it takes the text typed so far and, "
            "optionally, a dict of the other arguments"
        )
    kind, name = ("prompt", prompt) if prompt is not None else ("resource", resource)
    assert name is not None
    if (kind, name, argument) in core.catalog.completions:
        raise ValueError(f"{argument!r} of {name!r} has a completion already")
    made = Completer(name=name, owner=core, arguments=arguments, inline=inline, timeout=timeout)
    return (kind, name, argument), made


def _takes(type_: Any, example: Any) -> bool:
    try:
        msgspec.convert(example, type_, dec_hook=read_custom)
    except msgspec.ValidationError:
        return False
    return True


def warn_of_completions(catalog: Catalog) -> None:
    """Log completions of a prompt, template or argument that does not exist.

    It is called when the server starts: a completion may be registered before what it completes.
    """
    for kind, name, argument in catalog.completions:
        listed: PagedList[Any] = catalog.prompts if kind == "prompt" else catalog.templates
        entry: Entry | None = listed.get(name)
        if entry is not None and argument in entry.arguments.names:
            continue
        what = "prompt" if kind == "prompt" else "resource template"
        known = "does not exist"
        if entry is not None:
            known = f"has no such argument, only {', '.join(entry.arguments.names) or 'none'}"
        _log.warning(
            "completion of argument %r is never used: the %s %r %s", argument, what, name, known
        )


def own_method(core: ServerCore, name: str, handler: Callable[..., Any], inline: bool) -> Entry:
    """Return the entry of a method outside the specification."""
    _check_own(name, {**core.extension_methods, **core.own_methods})
    return Entry(name=name, owner=core, arguments=arguments_of(handler), inline=inline)


def own_notification(
    core: ServerCore, name: str, handler: Callable[..., Any]
) -> NotificationHandler:
    """Return the handler of a notification outside the specification."""
    _check_own(name, core.own_notifications)
    read = msgspec.json.Decoder(dict[str, Any])
    entry = Entry(name=name, owner=core, arguments=raw_arguments(handler))

    def receive(connection: Connection, params: Any) -> None:
        connection.runner.begin_notification(entry, params, read.decode)

    return receive


def _check_own(name: str, taken: Mapping[str, Any]) -> None:
    if any(method_status(name, revision) for revision in REVISIONS):
        raise ValueError(f"{name!r} is a method of MCP; register a tool, resource or prompt")
    if name in taken:
        raise ValueError(f"{name!r} is registered already")


def check_middleware(function: Any) -> None:
    """Raise TypeError if the function is not a coroutine function."""
    inner = function if callable(function) else None
    if not (iscoroutinefunction(inner) or iscoroutinefunction(getattr(inner, "__call__", None))):  # noqa: B004  # checks that it is async, not that it exists
        raise TypeError(
            f"{_title(function)} cannot be middleware: write it as "
            "`async def name(context, proceed)`, with `await proceed()` in it"
        )


def check_name_given(given: Any, what: str) -> None:
    """Raise TypeError if a decorator was used without its parentheses."""
    if callable(given):
        raise TypeError(f'{what} needs a name in parentheses: {what}("...")')


def decorator(add: Callable[..., None], name: Any, given: dict[str, Any]) -> Callable[[Any], Any]:
    """Return a decorator that registers with options, or the function if one was given as name."""
    if callable(name):
        add(name, **given)
        function: Callable[..., Any] = name
        return function

    def decorate(handler: F) -> F:
        add(handler, name, **given)
        return handler

    return decorate


def remove(listed: PagedList[Any], name: str, kind: str) -> None:
    """Remove an entry; raise LookupError if it does not exist."""
    if name not in listed:
        raise LookupError(f"no {kind} {name!r} is registered")
    listed.remove(name)


def cache_of(listed: PagedList[Any], default: CacheHint) -> CacheHint:
    """Return the cache hint of a whole list: the shortest time and the narrowest scope in it.

    All pages of a list carry the same hint.  [MCP 2026-07-28, server/utilities/caching]
    """
    found = default
    for entry in listed:
        if entry.cache is not None:
            found = found.joined(entry.cache)
    return found


def _is_text_like(schema: Any) -> bool:
    """Return True if values of a schema can be decoded from a text."""
    if not isinstance(schema, dict):
        return True
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        return any(map(_is_text_like, several))
    return schema.get("type") not in ("array", "object") and "$ref" not in schema


# -- options ---------------------------------------------------------------------------------


def _repeated(headers: Mapping[str, str]) -> tuple[ParamPath, ...]:
    # Imported here, because few tools have headers.
    from ...mcp.param_headers import param_path

    return tuple(param_path(header, (name,)) for name, header in headers.items())


def _check_handler(handler: Any, usage: str) -> None:
    if not callable(handler):
        raise TypeError(f"{usage} takes a function first, not {type(handler).__name__}")


def _check_choice(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{option} is one of {', '.join(map(repr, known))}, not {value!r}")


def _named(name: str | None, handler: Callable[..., Any], kind: str) -> str:
    options.check_texts(**{f"the name of a {kind}": name})
    chosen = name if name is not None else getattr(handler, "__name__", "")
    if not isinstance(chosen, str) or not chosen or chosen == "<lambda>":
        raise ValueError(f"{_title(handler)} needs a name: pass one to register it as a {kind}")
    check_name(chosen, kind)
    return chosen


def check_name(name: str, kind: str) -> None:
    """Raise ValueError for a name that is too long, has a space or a control character."""
    is_plain = name.isprintable() and not any(map(str.isspace, name))
    if len(name) > MAX_NAME_LENGTH or not is_plain:
        raise ValueError(
            f"{name[:MAX_NAME_LENGTH]!r} cannot name a {kind}: "
            f"a name has up to {MAX_NAME_LENGTH} characters and no space"
        )


def _check_uri(uri: str, template: object) -> None:
    scheme, colon, rest = uri.partition(":")
    if template is None and (not colon or not scheme or not rest or any(map(str.isspace, uri))):
        raise ValueError(f"{uri!r} is not a URI: it needs a scheme, as in 'config://app'")


def _title(handler: Callable[..., Any]) -> str:
    return f"{getattr(handler, '__qualname__', None) or repr(handler)}()"

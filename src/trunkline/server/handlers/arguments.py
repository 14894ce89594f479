"""The arguments of a handler: input schema, decoding and validation, and the call.

`arguments_of(function)` reads a signature once and returns an `Arguments`: the names on the
wire, the input schema, a decoder from raw JSON to a Struct in one pass of C, and a call that
passes the Struct's values as the function's parameters. `raw_arguments(function)` is for a
handler whose author gave a JSON Schema: it takes the dict that was sent.

Most tools of a large server are never called. A signature is checked at once; the Struct, the
decoder, the schema and the description are made on first use.

The rules that live here, and only here:

* An argument has the same name on the wire as its parameter in Python, or its alias.
* An unknown argument is an error: a model that misspelt a name is told so, instead of getting
  the default.
* A default fits the type of its parameter.
* A default that cannot be hashed (a list, a dict, a mutable object) is copied for each call, so
  that calls do not share it.
* An `x-mcp-header` is allowed on texts, integers and booleans alone, and the names differ in
  more than case.                   [MCP 2026-07-28, basic/transports/streamable-http]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Raw, Struct
from msgspec.json import Decoder
from msgspec.structs import astuple

from ...mcp.types import PromptArgument
from ...redaction import show
from .annotations import ParamHeader, bare, field_of, is_foreign_field, marked, plain
from .custom_types import filler, read_custom
from .docstrings import Docstring, read
from .error_messages import explain, worded
from .json_encoding import OutputMismatch, encoded
from .json_schema import NOTHING, check, default_shown, object_schema, schema_of
from .signature import Handler

__all__ = [
    "Arguments",
    "ParamHeader",
    "arguments_of",
    "declared_arguments",
    "explain",
    "raw_arguments",
]

_object: Final = Decoder(dict[str, Any])


class _Values(Struct):
    """The values of one call; its repr is redacted."""

    def __repr__(self) -> str:
        return f"Values({show(self)})"

    # That of a Struct shows everything.
    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("values", show(self))]


class _Argument(NamedTuple):
    """A parameter that the client fills."""

    name: str
    type: Any
    # NODEFAULT if it is required, or is made by the factory.
    default: Any
    factory: Callable[[], Any] | None = None
    parameter: str = ""

    @property
    def is_required(self) -> bool:
        return self.default is NODEFAULT and self.factory is None


class Arguments:
    """The arguments of one handler: names, schema, decoder and call."""

    __slots__ = (
        "_arguments",
        "_docstring",
        "_hooked",
        "_schema",
        "_struct",
        "call",
        "decode",
        "headers",
        "is_async",
        "label",
        "location",
        "names",
        "required",
        "wants_context",
    )

    # Calls the handler with the values of a decoded Struct, and the context if it takes one;
    # returns what the handler returns, a value or an awaitable.
    call: Callable[[Any, Any], Any]
    # Raw JSON to a Struct. Look it up for each call: the first call replaces it by the decoder.
    decode: Callable[[bytes | memoryview | Raw], Any]

    def __init__(
        self,
        handler: Handler,
        arguments: tuple[_Argument, ...],
        call: Callable[[Any, Any], Any],
        *,
        hooked: bool,
        wants_context: bool,
        headers: dict[str, str],
    ) -> None:
        self.label = handler.label
        self.location = handler.location
        self.call = call
        self.wants_context = wants_context
        self.is_async = handler.is_async
        self.names = tuple(each.name for each in arguments)
        self.required = tuple(each.name for each in arguments if each.is_required)
        # By argument, the name of the header that repeats it.
        self.headers = headers
        self.decode = self._first_decode
        self._arguments = arguments
        self._hooked = hooked
        self._struct: type[Struct] | None = None
        self._schema: dict[str, Any] | None = None
        self._docstring: Docstring | str | None = handler.docstring

    def __repr__(self) -> str:
        return f"<Arguments of {self.label}: {', '.join(self.names) or 'none'}>"

    @property
    def struct(self) -> type[Struct]:
        """The Struct that arguments are decoded into; its fields are the arguments, in order."""
        if self._struct is None:
            self._struct = _struct_of(self._arguments)
        return self._struct

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments. It is cached: do not change it."""
        if self._schema is None:
            shown = {
                each.name: default_shown(each.default)
                for each in self._arguments
                if each.default is not NODEFAULT
            }
            self._schema = object_schema(
                {each.name: each.type for each in self._arguments},
                self.required,
                {name: value for name, value in shown.items() if value is not NOTHING},
                self._described(),
                {name: {"x-mcp-header": header} for name, header in self.headers.items()},
            )
        return self._schema

    @property
    def types(self) -> dict[str, Any]:
        """The type of each argument, as the decoder knows it."""
        return {each.name: each.type for each in self._arguments}

    @property
    def secret_names(self) -> frozenset[str]:
        """The arguments whose type is a secret, such as `SecretStr`."""
        members = self.schema.get("properties", {})
        return frozenset(name for name, each in members.items() if each.get("writeOnly") is True)

    @property
    def description(self) -> str:
        """The docstring without its sections on arguments and results."""
        return self._read_docstring().text

    def _described(self) -> dict[str, str]:
        """Return the descriptions in the docstring, which has the names of the parameters."""
        texts = self._read_docstring().arguments
        named = {each.parameter: each.name for each in self._arguments}
        return {named.get(name, name): text for name, text in texts.items()}

    def _read_docstring(self) -> Docstring:
        found = self._docstring
        if not isinstance(found, Docstring):
            found = self._docstring = read(found)
        return found

    def _first_decode(self, raw: bytes | memoryview | Raw) -> Any:
        hook = read_custom if self._hooked else None
        decode, fill = Decoder(self.struct, dec_hook=hook).decode, filler(self.struct)
        self.decode = decode if fill is None else lambda raw: fill(decode(raw))
        return self.decode(raw)


def arguments_of(function: Callable[..., Any]) -> Arguments:
    """Return the arguments of `function`.

    Raises:
        TypeError: a parameter cannot be decoded from JSON; the text names the function and the
            parameter, and what to do.
    """
    handler, parameters, hints = _signature(function)
    arguments: list[_Argument] = []
    contexts: list[int] = []  # the places of parameters that take the context
    headers: dict[str, str] = {}
    for place, parameter in enumerate(parameters):
        hint = hints.get(parameter.name, Any)
        if is_context(hint):
            contexts.append(place)
            continue
        if parameter.name not in hints:
            _check_unannotated(handler.label, parameter, place)
        argument = _argument(handler.label, parameter, hint)
        for header in marked(hint):
            headers[argument.name] = _fit(handler.label, argument, header, headers)
        if any(argument.name == each.name for each in arguments):
            raise TypeError(f'{handler.label} has two arguments named "{argument.name}"')
        arguments.append(argument)
    if len(contexts) > 1:
        raise TypeError(f"{handler.label} has two parameters of type Context: keep one of them")
    return Arguments(
        handler,
        tuple(arguments),
        _caller(function, parameters, contexts[0] if contexts else -1),
        hooked=_checked(handler.label, arguments),
        wants_context=bool(contexts),
        headers=headers,
    )


def raw_arguments(function: Callable[..., Any], what: str = "a JSON Schema") -> Arguments:
    """Return how `function` is called with the arguments as one dict, as they were sent.

    `what` is what declares them, for the error.

    Raises:
        TypeError: it does not take one dict, and at most the context beside it.
    """
    handler, parameters, hints = _signature(function)
    places = [at for at, each in enumerate(parameters) if is_context(hints.get(each.name))]
    if len(parameters) - len(places) != 1 or len(places) > 1:
        raise TypeError(
            f"{handler.label} has {what} of its own: it takes one parameter, the dict of "
            "arguments, and optionally the context"
        )
    call: Callable[[Any, Any], Any]
    if not places:
        call = lambda values, _: function(values)  # noqa: E731  # as short as the others
    elif places == [0]:
        call = lambda values, context: function(context, values)  # noqa: E731
    else:
        call = lambda values, context: function(values, context)  # noqa: E731
    made = Arguments(handler, (), call, hooked=False, wants_context=bool(places), headers={})
    made.decode = _object.decode
    return made


def declared_arguments(
    function: Callable[..., Any], declared: Sequence[PromptArgument]
) -> Arguments:
    """Return how `function` is called with texts in one dict, by the names that are declared.

    Raises:
        TypeError: it does not take one dict, and at most the context beside it.
        ValueError: two have the same name.
    """
    raw = raw_arguments(function, "arguments")
    arguments = tuple(
        _Argument(
            each.name,
            Annotated[
                str if each.required else str | None,
                Meta(description=each.description, title=each.title),
            ],
            NODEFAULT if each.required else None,
        )
        for each in declared
    )
    names = [each.name for each in arguments]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f'two arguments are named "{repeated[0]}"')

    def call(values: Any, context: Any) -> Any:
        given = zip(names, astuple(values), strict=True)
        return raw.call({name: text for name, text in given if text is not None}, context)

    return Arguments(
        Handler(function),
        arguments,
        call,
        hooked=False,
        wants_context=raw.wants_context,
        headers={},
    )


# -- reading a signature ---------------------------------------------------------------------


def _signature(
    function: Callable[..., Any],
) -> tuple[Handler, tuple[inspect.Parameter, ...], dict[str, Any]]:
    """Return a handler, its parameters, and their annotations with names resolved."""
    handler = Handler(function)
    parameters = handler.parameters()
    annotated = {each.name: each.annotation for each in parameters}
    given = {name: hint for name, hint in annotated.items() if hint is not inspect.Parameter.empty}
    return handler, parameters, handler.resolved(given)


def is_context(hint: Any) -> bool:
    """Return True if an annotation is `Context`, as `Context[State]` too, or a union with it."""
    from ..context import Context  # here, because a context knows of servers

    hint = bare(hint)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(map(is_context, get_args(hint)))
    return hint is Context or origin is Context


def _check_unannotated(label: str, parameter: inspect.Parameter, place: int) -> None:
    """Raise TypeError for a parameter that only looks as if it were an argument."""
    name = parameter.name
    if place == 0 and name in ("self", "cls"):
        raise TypeError(
            f"{label} is a method, and {name!r} would be an argument that clients fill: register "
            f"it bound to an object, as in app.tool(thing.{label.rpartition('.')[2][:-2]})"
        )
    if name in ("ctx", "context") and parameter.default in (parameter.empty, None):
        raise TypeError(
            f'{label}: parameter "{name}" has no annotation, and would be an argument that clients '
            f"fill: write {name}: Context, or another type if it is an argument"
        )


def _argument(label: str, parameter: inspect.Parameter, hint: Any) -> _Argument:
    place = f'{label}: parameter "{parameter.name}"'
    default = NODEFAULT if parameter.default is parameter.empty else parameter.default
    if is_foreign_field(default):
        hint, default = Annotated[hint, default], NODEFAULT
    try:
        said = field_of(hint)
        type_ = plain(hint, of_parameter=True)
    except TypeError as error:
        raise TypeError(f"{place}: {error}") from None
    factory = None
    if default is NODEFAULT:
        default, factory = said.default, said.factory
    return _Argument(said.alias or parameter.name, type_, default, factory, parameter.name)


def _checked(label: str, arguments: list[_Argument]) -> bool:
    """Return True if the decoder needs a hook.

    Raises:
        TypeError: it cannot decode a type, or a default does not fit.
    """
    try:
        hooked = check([each.type for each in arguments])
    except TypeError:
        pass
    else:
        for each in arguments:
            _check_default(label, each)
        return hooked
    for each in arguments:
        try:
            check([each.type])
        except TypeError as error:
            raise TypeError(
                f'{label}: parameter "{each.parameter}" cannot be an argument: {error}'
            ) from None
    return False


def _check_default(label: str, argument: _Argument) -> None:
    """Raise TypeError for a default that does not fit the type of its parameter.

    None fits everywhere, as does an object that JSON cannot express: it marks an argument that
    was left out, and is not listed.
    """
    default, type_ = argument.default, argument.type
    if default is None or default is NODEFAULT or default is UNSET or type(default) is type_:
        return  # most are
    if type_ is not int and type_ in type(default).__mro__:
        return  # True is an int in Python, and not in JSON
    if default_shown(default) is NOTHING:
        return
    try:
        msgspec.json.decode(encoded(default), type=type_, dec_hook=read_custom)
    except (msgspec.ValidationError, OutputMismatch) as error:
        raise TypeError(
            f'{label}: the default of parameter "{argument.parameter}" does not fit its type: '
            f"{worded(error)}"
        ) from None


def _fit(label: str, argument: _Argument, header: ParamHeader, others: dict[str, str]) -> str:
    """Return the name of a header, or raise TypeError if it does not suit its argument."""
    from ...mcp.header_values import HEADER_TYPES  # here, because few tools have headers

    place = f'{label}: parameter "{argument.name}"'
    if argument.name in others:
        raise TypeError(f"{place} names two headers: keep one of them")
    if header.name.lower() in (each.lower() for each in others.values()):
        raise TypeError(f'{place} has the header "{header.name}" of another parameter')
    try:
        written = schema_of(argument.type, is_input=True).get("type")
    except TypeError:
        return header.name  # the type is at fault, and is reported elsewhere
    if written not in HEADER_TYPES:
        raise TypeError(
            f"{place} cannot be repeated in a header: only a text, an integer or a boolean can; "
            f"instead of None give it a default"
        )
    return header.name


# -- making the Struct and the call ----------------------------------------------------------


def _struct_of(arguments: tuple[_Argument, ...]) -> type[Struct]:
    fields: list[tuple[str, Any, Any]] = []
    for place, each in enumerate(arguments):
        # A class has dunder names of its own, which a field must not take.
        # An alias may be any text.
        is_plain = each.name.isidentifier() and not each.name.startswith("__")
        name = each.name if is_plain else f"argument_{place}"
        fields.append((name, each.type, _field(each)))
    return msgspec.defstruct(
        "Values", fields, bases=(_Values,), kw_only=True, forbid_unknown_fields=True
    )


def _field(argument: _Argument) -> Any:
    default = argument.default
    if argument.factory is not None:
        return msgspec.field(default_factory=argument.factory, name=argument.name)
    if default is NODEFAULT:
        return msgspec.field(name=argument.name)
    try:
        hash(default)
    except TypeError:
        return msgspec.field(default_factory=partial(deepcopy, default), name=argument.name)
    return msgspec.field(default=default, name=argument.name)


def _caller(
    function: Callable[..., Any],
    parameters: tuple[inspect.Parameter, ...],
    place: int,
) -> Callable[[Any, Any], Any]:
    """Return a function that calls `function` with a Struct's values, and the context at `place`.

    The usual signatures have a call of their own: this is the hot path of each tool call.
    """
    names = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    if names:
        return _by_name(function, names, len(parameters) - len(names), place)
    if place < 0:
        return lambda values, context: function(*astuple(values))
    if place == 0:
        return lambda values, context: function(context, *astuple(values))
    if place == len(parameters) - 1:
        return lambda values, context: function(*astuple(values), context)

    def call(values: Any, context: Any) -> Any:
        given = astuple(values)
        return function(*given[:place], context, *given[place:])

    return call


def _by_name(
    function: Callable[..., Any], names: list[str], positional: int, place: int
) -> Callable[[Any, Any], Any]:
    def call(values: Any, context: Any) -> Any:
        given = list(astuple(values))
        if place >= 0:
            given.insert(place, context)
        return function(*given[:positional], **dict(zip(names, given[positional:], strict=True)))

    return call

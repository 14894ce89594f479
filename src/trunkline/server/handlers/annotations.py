"""Annotations of parameters: constraints, descriptions and headers, normalised to `msgspec.Meta`.

A type may be annotated with `msgspec.Meta`, a plain text (its description), `ParamHeader`, and
with what other libraries have: `annotated_types.Ge(1)`, `pydantic.Field(ge=1)`,
`typing_extensions.Doc("...")`. The decoder knows `Meta` alone and ignores the rest, so a bound
in another vocabulary would not hold. All are converted to `Meta`, at any depth. What `Meta` does
not have (a validator, `strip_whitespace`) is applied by pydantic itself, and a union that the
decoder cannot tell apart is read by `unions`. What none of them can apply raises TypeError, and
is never dropped.

`Field` of pydantic also says something of the parameter: its name on the wire (`alias`) and its
default. `field_of` returns those.

No other library is imported: its objects are recognised by the name of their module.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta
from msgspec.inspect import type_info

from .custom_types import ARRAYS, Adapted

__all__ = ["FieldOptions", "ParamHeader", "bare", "field_of", "is_foreign_field", "marked", "plain"]

_CONSTRAINTS: Final = (
    "ge",
    "gt",
    "le",
    "lt",
    "multiple_of",
    "min_length",
    "max_length",
    "pattern",
)
_BOUNDS: Final = frozenset(["ge", "gt", "le", "lt", "multiple_of"])
# The decoder has no bounds for the types of these modules.
_UNBOUNDED: Final = ("datetime", "decimal")
_TEXTS: Final = ("title", "description", "examples")
_FOREIGN: Final = ("pydantic", "annotated_types")
# Options of `Field`: of the parameter as a whole, those that `_meta` reads, and those that change
# nothing here, because values are always taken strictly and defaults are always checked.
_OF_PARAMETER: Final = frozenset(
    ["alias", "alias_priority", "validation_alias", "default", "default_factory"]
)
_OF_VALUE: Final = frozenset(["json_schema_extra", "deprecated", "discriminator", *_TEXTS])
_WITHOUT_EFFECT: Final = frozenset(["annotation", "validate_default"])
# What dataclasses, TypedDicts, named tuples, Structs and classes of attrs have.
_RECORDS: Final = (
    "__dataclass_fields__",
    "__total__",
    "_fields",
    "__struct_fields__",
    "__attrs_attrs__",
)


class FieldOptions(NamedTuple):
    """What `Field` says of a parameter."""

    alias: str | None = None
    default: Any = NODEFAULT
    factory: Callable[[], Any] | None = None


class _NeedsPydantic(Exception):
    """Only pydantic can apply an annotation."""


class ParamHeader:
    """Marks an argument that HTTP repeats in a header: `Annotated[str, ParamHeader("Region")]`.

    The header is `Mcp-Param-Region`. Proxies read it: do not mark a secret. Only texts,
    integers and booleans can be repeated.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        """Name the header.

        Raises:
            ValueError: `name` is not an HTTP token.
        """
        from ...mcp.header_values import is_token  # here, because few tools have headers

        if not isinstance(name, str) or not is_token(name):
            raise ValueError(
                f"{name!r} cannot name a header: use letters, digits and any of !#$%&'*+-.^_`|~"
            )
        self.name = name

    def __repr__(self) -> str:
        return f"ParamHeader({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParamHeader) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def plain(annotation: Any, *, of_parameter: bool = False) -> Any:
    """Return an annotation as the decoder knows it: constraints and descriptions as `Meta`.

    With `of_parameter` a `Field` may give the parameter an alias and a default: see `field_of`.

    Raises:
        TypeError: a constraint in it would not be applied.
    """
    origin = get_origin(annotation)
    if origin is None:
        return _class(annotation)
    if origin is Annotated:
        return _annotated(annotation, of_parameter)
    arguments = get_args(annotation)
    changed = tuple(each if each is ... else plain(each) for each in arguments)
    same = all(new is old for new, old in zip(changed, arguments, strict=True))
    found = annotation if same else _rebuilt(annotation, changed)
    if is_union(found) and not _is_decodable(found):
        from .unions import UnionReader  # here, as below: few servers need it

        return _adapted(annotation, UnionReader(get_args(found)))
    if origin in ARRAYS and arguments:
        from .unions import ArrayReader

        return _adapted(annotation, ArrayReader(found))
    return _class(found)


def is_union(annotation: Any) -> bool:
    """Return True for `A | B` and `Union[A, B]`."""
    return get_origin(annotation) in (Union, UnionType)


def _is_decodable(annotation: Any) -> bool:
    """Return True if the decoder itself tells the types of a union apart."""
    if is_union(annotation) and sum(each is not NoneType for each in get_args(annotation)) < 2:
        return True
    try:
        type_info(annotation)
    except TypeError:
        return False
    except NameError:
        return True  # reported where it is decoded
    return True


def _adapted(annotation: Any, reader: Any) -> Any:
    """Return a class that stands for an annotation; its values are made by `reader`."""
    return type(_title(annotation), (Adapted,), {"reader": reader})


def field_of(annotation: Any) -> FieldOptions:
    """Return what the `Field`s beside a parameter's type say of the parameter.

    Raises:
        TypeError: an option cannot be honoured.
    """
    found = FieldOptions()
    for extra in getattr(annotation, "__metadata__", ()):
        if not is_foreign_field(extra):
            continue
        given = extra._attributes_set
        alias = given.get("validation_alias", given.get("alias"))
        if alias is not None:
            if not isinstance(alias, str):
                raise TypeError("an alias of a parameter is one text")
            found = found._replace(alias=alias)
        if given.get("default", ...) is not ...:
            found = found._replace(default=given["default"], factory=None)
        if given.get("default_factory") is not None:
            if extra.default_factory_takes_validated_data:
                raise TypeError("a default_factory is called without arguments")
            found = found._replace(default=NODEFAULT, factory=given["default_factory"])
    return found


def _annotated(annotation: Any, of_parameter: bool) -> Any:
    extras = annotation.__metadata__
    tag = next((each.discriminator for each in extras if _has_tag(each)), None)
    try:
        known = tuple(
            each for extra in extras for each in _understood(extra, annotation, of_parameter)
        )
    except _NeedsPydantic:
        return _by_pydantic(annotation, extras)
    if tag is None:
        inner = plain(annotation.__origin__)
    else:
        from .unions import UnionReader

        members = tuple(map(plain, get_args(annotation.__origin__)))
        if not is_union(annotation.__origin__):
            raise TypeError("a discriminator is for a union of classes")
        inner = _adapted(annotation.__origin__, UnionReader(members, tag))
    if inner is annotation.__origin__ and known == extras:
        return annotation
    return Annotated[(inner, *known)] if known else inner


def _has_tag(extra: Any) -> bool:
    return is_foreign_field(extra) and isinstance(extra.discriminator, str)


def _by_pydantic(annotation: Any, extras: tuple[Any, ...]) -> Any:
    """Return a type whose values pydantic reads, with what the schema says beside it."""
    try:
        from .pydantic_models import PydanticReader

        reader = PydanticReader(annotation)
    except ImportError:
        named = [type(each).__name__ for each in extras if _is_foreign(each)]
        raise TypeError(
            f"{named[0] if named else 'it'} is applied by pydantic, which is not installed: check "
            f"the value in the function"
        ) from None
    ours = tuple(
        each if not isinstance(each, str) else Meta(description=each)
        for each in extras
        if isinstance(each, ParamHeader | str) or (isinstance(each, Meta) and not _constrains(each))
    )
    inner = _adapted(annotation, reader)
    return Annotated[(inner, *ours)] if ours else inner


def _constrains(extra: Meta) -> bool:
    if any(getattr(extra, name) is not None for name in _CONSTRAINTS):
        raise TypeError("a constraint in Meta cannot stand beside one that pydantic applies")
    return False


def _class(annotation: Any) -> Any:
    """Return a class, or a reader for one whose members only pydantic can read."""
    cls = get_origin(annotation) or annotation
    if not isinstance(cls, type) or not any(hasattr(cls, each) for each in _RECORDS):
        return annotation
    is_foreign = hasattr(cls, "__pydantic_validator__") or _has_foreign_members(cls, set())
    if not is_foreign and _is_decodable(annotation):
        return annotation
    try:
        return _by_pydantic(annotation, ())
    except TypeError as error:
        if not is_foreign:
            return annotation  # the reason of the decoder is the better one
        raise TypeError(
            f"only pydantic can read the members of {cls.__name__}, and it cannot: {error}"
        ) from None


def _has_foreign_members(annotation: Any, seen: set[int]) -> bool:
    """Return True if a class, or one in it, has members with constraints of another library."""
    if not set(_FOREIGN) & sys.modules.keys() or id(annotation) in seen:
        return False
    seen.add(id(annotation))
    if get_origin(annotation) is Annotated and any(map(_is_foreign, annotation.__metadata__)):
        return True
    inner = list(get_args(annotation))
    cls = get_origin(annotation) or annotation
    if isinstance(cls, type) and any(hasattr(cls, each) for each in _RECORDS):
        try:
            inner += get_type_hints(cls, include_extras=True).values()
        except (NameError, TypeError, AttributeError):
            return False  # reported where the class is decoded
    return any(_has_foreign_members(each, seen) for each in inner)


def _title(annotation: Any) -> str:
    parts = [getattr(bare(each), "__name__", "") for each in get_args(annotation)]
    return "_or_".join(filter(None, parts)) or getattr(annotation, "__name__", "") or "Value"


def bare(annotation: Any) -> Any:
    """Return the type inside `Annotated`."""
    while get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return annotation


def marked(annotation: Any) -> list[ParamHeader]:
    """Return the `ParamHeader`s of an annotation, and `x-mcp-header` in the schema of a `Meta`.

    Raises:
        ValueError: the name in a schema is not an HTTP token.
    """
    if get_origin(annotation) is not Annotated:
        return []
    found = []
    for extra in annotation.__metadata__:
        if isinstance(extra, ParamHeader):
            found.append(extra)
        elif isinstance(extra, Meta) and extra.extra_json_schema:
            found += [
                ParamHeader(name)
                for keyword, name in extra.extra_json_schema.items()
                if keyword == "x-mcp-header"
            ]
    return found


def is_foreign_field(default: object) -> bool:
    """Return True if a default is a pydantic `FieldInfo`, which describes a field."""
    return type(default).__name__ == "FieldInfo" and _is_foreign(default)


def _is_foreign(extra: object) -> bool:
    return type(extra).__module__.partition(".")[0] in _FOREIGN


def _understood(extra: Any, annotation: Any, of_parameter: bool) -> tuple[Any, ...]:
    """Return one extra of `Annotated` as the decoder knows it, or nothing."""
    if isinstance(extra, str):
        return (Meta(description=extra),)
    if type(extra).__name__ == "Doc" and isinstance(getattr(extra, "documentation", None), str):
        return (Meta(description=extra.documentation),)
    if not _is_foreign(extra):
        return (extra,)  # ours, or without a meaning for the value
    is_field = is_foreign_field(extra)
    found: dict[str, Any] = {}
    for source in extra.metadata if is_field else _grouped(extra):
        found |= _constraints(source)
    if _BOUNDS & found.keys() and getattr(bare(annotation), "__module__", "") in _UNBOUNDED:
        raise _NeedsPydantic
    if is_field:
        found |= _said_by(extra, of_parameter)
    pattern = found.get("pattern")
    if isinstance(pattern, re.Pattern):
        found["pattern"] = pattern.pattern
    return (Meta(**found),) if found else ()


def _grouped(extra: Any) -> Iterable[Any]:
    """Return the constraints that one extra stands for, such as `Interval(ge=1, le=5)`."""
    return extra if isinstance(extra, Iterable) else (extra,)


def _constraints(source: Any) -> dict[str, Any]:
    """Return constraints of another library by the names that `Meta` has for them."""
    # A few have slots, the others a `__dict__`.
    names: Any = getattr(source, "__dict__", ()) or getattr(source, "__slots__", ())
    given = {name: getattr(source, name, None) for name in (*names, *_CONSTRAINTS)}
    given = {name: value for name, value in given.items() if value is not None}
    given.pop("allow_inf_nan", None)  # JSON has neither
    if given.get("strict") is True:
        del given["strict"]  # as everywhere here
    if given.keys() - set(_CONSTRAINTS) or (not given and not _is_settled(source)):
        raise _NeedsPydantic
    return given


def _is_settled(source: Any) -> bool:
    """Return True if an extra without constraints is one that holds here in any case."""
    return hasattr(source, "strict") or hasattr(source, "allow_inf_nan")


def _said_by(field: Any, of_parameter: bool) -> dict[str, Any]:
    """Return what a `Field` says of the value, by the names of `Meta`."""
    given = {
        name: value
        for name, value in field._attributes_set.items()
        if value is not None and value is not ...
    }
    if not isinstance(given.get("discriminator", ""), str):
        raise _NeedsPydantic
    taken = _OF_VALUE | _WITHOUT_EFFECT | (_OF_PARAMETER if of_parameter else frozenset())
    if given.keys() & {"alias", "validation_alias"}:
        given.pop("serialization_alias", None)
    for name in given.keys() - taken - set(_CONSTRAINTS):
        if name in _OF_PARAMETER:
            raise TypeError(
                f"{name} is for the parameter as a whole: write Field({name}=...) beside its "
                f"whole type"
            )
        raise TypeError(f"Field({name}=...) has no meaning for an argument: remove it")
    found = {name: given[name] for name in _TEXTS if name in given}
    extra = given.get("json_schema_extra", {})
    if not isinstance(extra, dict):
        raise TypeError("json_schema_extra is a dict for an argument")
    if given.get("deprecated"):
        extra = {"deprecated": True, **extra}
    return {**found, "extra_json_schema": extra} if extra else found


def _rebuilt(annotation: Any, arguments: tuple[Any, ...]) -> Any:
    origin = get_origin(annotation)
    if is_union(annotation):
        return reduce(or_, arguments)
    if isinstance(annotation, GenericAlias):
        return origin[arguments]
    return annotation.copy_with(arguments)

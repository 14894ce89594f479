"""Annotations of parameters: constraints, descriptions and headers, normalised to `msgspec.Meta`.

A type may be annotated with `msgspec.Meta`, a plain text (its description), `ParamHeader`, and
with what other libraries have: `annotated_types.Ge(1)`, `pydantic.Field(ge=1)`,
`typing_extensions.Doc("...")`. The decoder knows `Meta` alone and ignores the rest, so a bound
in another vocabulary would not hold. All are converted to `Meta`, at any depth; what cannot be
converted raises TypeError, and is never dropped.

No other library is imported: its objects are recognised by the name of their module.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from msgspec import Meta

__all__ = ["ParamHeader", "bare", "is_foreign_field", "marked", "plain"]

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
_TEXTS: Final = ("title", "description", "examples")
_FOREIGN: Final = ("pydantic", "annotated_types")


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


def plain(annotation: Any) -> Any:
    """Return an annotation with constraints and descriptions as `Meta`.

    Raises:
        TypeError: a constraint in it would not be applied.
    """
    if isinstance(annotation, type):
        return annotation  # most are
    if get_origin(annotation) is Annotated:
        extras = annotation.__metadata__
        inner = plain(annotation.__origin__)
        known = tuple(each for extra in extras for each in _understood(extra))
        if inner is annotation.__origin__ and known == extras:
            return annotation
        return Annotated[(inner, *known)] if known else inner
    arguments = get_args(annotation)
    if not arguments:
        return annotation
    changed = tuple(map(plain, arguments))
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return annotation
    return _rebuilt(annotation, changed)


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


def _understood(extra: Any) -> tuple[Any, ...]:
    """Return one extra of `Annotated` as the decoder knows it, or nothing."""
    if isinstance(extra, str):
        return (Meta(description=extra),)
    if type(extra).__name__ == "Doc" and isinstance(getattr(extra, "documentation", None), str):
        return (Meta(description=extra.documentation),)
    if not _is_foreign(extra):
        return (extra,)  # ours, or without a meaning for the value
    is_field = is_foreign_field(extra)
    sources = extra.metadata if is_field else (extra,)
    found: dict[str, Any] = {}
    for source in sources:
        named = {name: getattr(source, name, None) for name in _CONSTRAINTS}
        named = {name: value for name, value in named.items() if value is not None}
        if not named and not hasattr(source, "strict"):
            raise TypeError(
                f"{type(source).__name__} is not applied to arguments here: check the value in "
                f"the function, or take a model of that library"
            )
        found |= named
    if is_field:
        texts = {name: getattr(extra, name, None) for name in _TEXTS}
        found |= {name: value for name, value in texts.items() if value is not None}
    pattern = found.get("pattern")
    if isinstance(pattern, re.Pattern):
        found["pattern"] = pattern.pattern
    return (Meta(**found),) if found else ()


def _rebuilt(annotation: Any, arguments: tuple[Any, ...]) -> Any:
    origin = get_origin(annotation)
    if origin is Union or origin is UnionType:
        return reduce(or_, arguments)
    if isinstance(annotation, GenericAlias):
        return origin[arguments]
    return annotation.copy_with(arguments)

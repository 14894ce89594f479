"""`x-mcp-header`: the arguments of a tool that HTTP repeats in `Mcp-Param-*` headers.

    param_headers(tool.input_schema)     (ParamPath("Mcp-Param-Region", ..., ("region",)),)

The rules that live here, and only here:

* The name is a token of HTTP, and differs from the others in more than case.
                                             [MCP 2026-07-28, basic/transports/streamable-http]
* Only properties are annotated, at any depth, and reached through `properties` alone: not
  through `items`, alternatives, conditions or references.
* Their type is string, integer or boolean. A list of types is none of these; the specification
  does not mention it.
* One faulty annotation makes the whole tool unusable over HTTP.

A server raises the fault when a tool is registered. A client drops such a tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ..jsonrpc.messages import shown_tuple
from ..redaction import redact
from .header_values import HEADER_TYPES, is_token

__all__ = ["ANNOTATION", "InvalidParamHeader", "ParamPath", "param_headers", "param_path"]

ANNOTATION: Final = "x-mcp-header"
_PREFIX: Final = "Mcp-Param-"

# Keywords whose values are data. A member of it that is called like a keyword means nothing.
_DATA: Final = frozenset(("const", "default", "enum", "example", "examples"))
# Keywords that hold schemas by a name that the author chose.
_BY_NAME: Final = frozenset(
    ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
)
# Names come from a remote server: a text about one shows its beginning.
_MAX_NAME_CHARS: Final = 60


class InvalidParamHeader(ValueError):
    """An `x-mcp-header` that breaks the rules; the text has the place and the rule."""


class ParamPath(NamedTuple):
    """An argument that a header repeats."""

    # As it is written: `Mcp-Param-Region`.
    header: str
    # As it is looked up: lower case.
    key: bytes
    # The names that lead to the value, from the arguments on.
    path: tuple[str, ...]

    def __repr__(self) -> str:
        return shown_tuple(self)

    def value(self, arguments: Any) -> Any:
        """Return the value in the arguments of a call; None if it is null or absent."""
        for name in self.path:
            if type(arguments) is not dict:
                return None
            arguments = arguments.get(name)
        return arguments


def param_path(name: str, path: tuple[str, ...]) -> ParamPath:
    """Return the row of an annotation that was checked."""
    header = _PREFIX + name
    return ParamPath(header, header.lower().encode("ascii"), path)


def param_headers(input_schema: dict[str, Any]) -> tuple[ParamPath, ...]:
    """Return the arguments that headers repeat, in the order of the schema, outer ones first.

    The schema is a tree, as it is after reading it from JSON.

    Raises:
        InvalidParamHeader: an annotation breaks a rule.
    """
    found: list[ParamPath] = []
    names: set[bytes] = set()
    # None in place of a path: not reached through `properties` alone.
    waiting: list[tuple[Any, tuple[str, ...] | None]] = [(input_schema, ())]
    for schema, path in waiting:  # grows while it is read
        if not isinstance(schema, dict):
            continue
        if ANNOTATION in schema:
            row = _checked(schema, path)
            if row.key in names:
                raise InvalidParamHeader(f"{_place(row.path)}: another property has this name too")
            names.add(row.key)
            found.append(row)
        waiting += _subschemas(schema, path)
    return tuple(found)


def _checked(schema: dict[str, Any], path: tuple[str, ...] | None) -> ParamPath:
    if not path:
        raise InvalidParamHeader(
            f"{ANNOTATION} is on a part of the schema that is not a property, or that is not "
            f"reached from its root through properties alone"
        )
    name = schema[ANNOTATION]
    if type(name) is not str or not is_token(name):
        raise InvalidParamHeader(
            f"{_place(path)} is not a name: use letters, digits and any of !#$%&'*+-.^_`|~"
        )
    written = schema.get("type")
    if type(written) is not str or written not in HEADER_TYPES:
        raise InvalidParamHeader(f"{_place(path)} needs one type of {', '.join(HEADER_TYPES)}")
    return param_path(name, path)


def _subschemas(
    schema: dict[str, Any], path: tuple[str, ...] | None
) -> Iterator[tuple[Any, tuple[str, ...] | None]]:
    for keyword, value in schema.items():
        if keyword in _DATA:
            continue
        if isinstance(value, list | tuple):
            yield from ((each, None) for each in value)
        elif not isinstance(value, dict):
            continue
        elif keyword == "properties" and path is not None:
            yield from ((each, (*path, name)) for name, each in value.items())
        elif keyword in _BY_NAME:
            yield from ((each, None) for each in value.values())
        else:
            yield value, None


def _place(path: tuple[str, ...]) -> str:
    shown = ".".join(path)
    if len(shown) > _MAX_NAME_CHARS:
        shown = f"{shown[:_MAX_NAME_CHARS]}…"
    return f"{ANNOTATION} of {redact(shown)!r}"

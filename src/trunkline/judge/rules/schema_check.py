"""A validator for a small part of JSON Schema, enough for what tools usually declare.

A schema with any other keyword is not evaluated: a wrong verdict would be worse than none.
"""

from __future__ import annotations

from typing import Any, Final

from ..unknown import Unknown
from .state import Members

__all__ = ["fits"]

# Annotations: no effect on validation.
_NOTES: Final = frozenset(
    ("$schema", "$id", "title", "description", "default", "examples", "deprecated", "$comment")
)
_KNOWN: Final = frozenset(
    (
        "type",
        "properties",
        "required",
        "enum",
        "const",
        "items",
        "additionalProperties",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "x-mcp-header",
    )
)
_MAX_DEPTH: Final = 32


def fits(value: Any, schema: Any) -> bool | None:
    """Return True if a value fits a schema, and None if that cannot be decided here."""
    try:
        return _fits(value, schema, _MAX_DEPTH)
    except (TypeError, AttributeError):
        return None  # the schema is malformed, for example a list where an object belongs


def _fits(value: Any, schema: Any, depth: int) -> bool | None:
    if schema is True or schema is False:
        return bool(schema)
    if isinstance(value, Unknown):
        return None
    if type(schema) is not dict or depth == 0 or not set(schema) <= _KNOWN | _NOTES:
        return None
    if "type" in schema and not _has_type(value, schema["type"]):
        return False
    if _has_unknown(schema):
        return None
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        return False
    if "const" in schema and not _same(value, schema["const"]):
        return False
    if not _within(value, schema):
        return False
    return _all(_parts(value, schema, depth))


def _has_unknown(schema: Members) -> bool:
    enum = schema.get("enum", ())
    return any(isinstance(each, Unknown) for each in (*schema.values(), *enum))


def _parts(value: Any, schema: Members, depth: int) -> list[bool | None]:
    if type(value) is list and "items" in schema:
        return [_fits(item, schema["items"], depth - 1) for item in value]
    if type(value) is not dict:
        return []
    found: list[bool | None] = [name in value for name in schema.get("required", ())]
    properties = schema.get("properties", {})
    rest = schema.get("additionalProperties", True)
    for name, item in value.items():
        found.append(_fits(item, properties.get(name, rest), depth - 1))
    return found


def _all(parts: list[bool | None]) -> bool | None:
    if any(part is False for part in parts):
        return False
    return None if any(part is None for part in parts) else True


def _has_type(value: Any, names: Any) -> bool:
    return any(_is(value, name) for name in (names if type(names) is list else [names]))


def _is(value: Any, name: Any) -> bool:
    if name == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    if name == "number":
        return type(value) in (int, float)
    kinds: dict[Any, type] = {
        "string": str,
        "boolean": bool,
        "null": type(None),
        "array": list,
        "object": dict,
    }
    return type(value) is kinds.get(name)


def _same(value: Any, other: Any) -> bool:
    # In Python True == 1.
    return (type(value) is bool) == (type(other) is bool) and bool(value == other)


def _within(value: Any, schema: Members) -> bool:
    if type(value) in (int, float):
        return bool(schema.get("minimum", value) <= value and value <= schema.get("maximum", value))
    if type(value) is str:
        size = len(value)
        return bool(schema.get("minLength", 0) <= size <= schema.get("maxLength", size))
    return True

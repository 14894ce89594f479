"""Elicitation forms written by hand, as JSON Schemas.

Each field of the schema becomes a msgspec type, so that no validator has to be installed. Keywords
that forms lack (`pattern`, `exclusiveMinimum`, `multipleOf`) are still checked in the content;
unknown keywords are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, defstruct
from msgspec import field as member
from msgspec.json import decode

from ...jsonrpc.messages import Shown
from ..handlers.error_messages import fault
from ..handlers.json_schema import check
from .form_fields import FORM_FIELD_KINDS, FormField, Kind, field_of

__all__ = ["RawForm", "raw_form"]

Number = int | float


class RawForm(NamedTuple):
    """The parts of a form from a schema."""

    fields: tuple[FormField, ...]
    # Validates the content, which is returned unchanged.
    content: type[Struct]
    defaults: dict[str, Any]
    dialect: str


class _FieldSchema(Shown, Struct):
    """The keywords of a field schema whose types are checked."""

    type: str | list[str] | UnsetType = UNSET
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    format: str | UnsetType = UNSET
    pattern: str | UnsetType = UNSET
    min_length: int | UnsetType = member(default=UNSET, name="minLength")
    max_length: int | UnsetType = member(default=UNSET, name="maxLength")
    minimum: Number | UnsetType = UNSET
    maximum: Number | UnsetType = UNSET
    exclusive_minimum: Number | UnsetType = member(default=UNSET, name="exclusiveMinimum")
    exclusive_maximum: Number | UnsetType = member(default=UNSET, name="exclusiveMaximum")
    multiple_of: Number | UnsetType = member(default=UNSET, name="multipleOf")
    min_items: int | UnsetType = member(default=UNSET, name="minItems")
    max_items: int | UnsetType = member(default=UNSET, name="maxItems")
    enum: list[Any] | UnsetType = UNSET
    enum_names: list[str] | UnsetType = member(default=UNSET, name="enumNames")
    one_of: list[dict[str, Any]] | UnsetType = member(default=UNSET, name="oneOf")
    any_of: list[dict[str, Any]] | UnsetType = member(default=UNSET, name="anyOf")
    items: dict[str, Any] | UnsetType = UNSET


class _Object(Shown, Struct):
    """The schema of a flat object."""

    type: str
    properties: dict[str, dict[str, Any]]
    required: list[str] = []
    dialect: str = member(default="", name="$schema")


def raw_form(raw: bytes) -> RawForm:
    """Return the form of a schema; `raw` is its JSON.

    Raises:
        TypeError: a form cannot express it; the text says where, and what a form can.
    """
    try:
        schema = decode(raw, type=_Object)
    except ValidationError as error:
        place, text = fault(error)
        raise TypeError(f'"{place}": {text}' if place else text) from None
    if schema.type != "object":
        raise TypeError('its type must be "object", with the fields in its properties')
    unknown = [name for name in schema.required if name not in schema.properties]
    if unknown:
        raise TypeError(f'"{unknown[0]}" is required and not among the properties')
    fields = tuple(
        _field(name, described, is_required=name in schema.required)
        for name, described in schema.properties.items()
    )
    content = defstruct(
        "Content", [_member(at, each) for at, each in enumerate(fields)], kw_only=True
    )
    defaults = {each.name: each.default() for each in fields if "default" in each.facts}
    return RawForm(fields, content, defaults, schema.dialect)


def _field(name: str, schema: dict[str, Any], *, is_required: bool) -> FormField:
    try:
        convert(schema, _FieldSchema)
        found = field_of(name, schema, is_required=is_required, titles={}, definitions={})
        check([_type(found)])
    except ValidationError as error:
        place, text = fault(error)
        raise TypeError(f'field "{name}": "{place}": {text}') from None
    except (TypeError, ValueError, re.error) as error:
        text = f'field "{name}" cannot be asked in a form: {error}; {FORM_FIELD_KINDS}'
        raise TypeError(text) from None
    return found


def _member(at: int, field: FormField) -> tuple[str, Any, Any]:
    type_ = _type(field)
    if field.is_required:
        return f"field_{at}", type_, member(name=field.name)
    return f"field_{at}", type_ | UnsetType, member(default=UNSET, name=field.name)


def _type(field: FormField) -> Any:
    """Return the type that validates a field; choices are checked elsewhere."""
    type_: Any = _TYPES[field.facts["type"]] if field.kind == "number" else _KINDS[field.kind]
    found = {
        ours: field.facts[theirs]
        for theirs, ours in _LIMITS[field.kind].items()
        if theirs in field.facts
    }
    if found:
        type_ = Annotated[type_, Meta(**found)]
    return type_ | None if field.takes_null else type_


_TYPES: Final[Mapping[str, type]] = {"integer": int, "number": float}
_KINDS: Final[Mapping[Kind, Any]] = {
    "text": str,
    "boolean": bool,
    "one": str | int,
    "several": list[str | int],
}
_NO_LIMITS: Final[Mapping[str, str]] = {}
_LIMITS: Final[Mapping[Kind, Mapping[str, str]]] = {
    "text": {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"},
    "number": {
        "minimum": "ge",
        "maximum": "le",
        "exclusiveMinimum": "gt",
        "exclusiveMaximum": "lt",
        "multipleOf": "multiple_of",
    },
    "boolean": _NO_LIMITS,
    "one": _NO_LIMITS,
    "several": {"minItems": "min_length", "maxItems": "max_length"},
}

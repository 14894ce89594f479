"""Forms that an author wrote by hand, as JSON Schemas.

The schema is read once, and what it says of each field is turned into types that the reader
of all other input knows, so no validator has to be installed. Keywords that no form has
(`pattern`, `exclusiveMinimum`, `multipleOf`) are applied to the answer all the same; those
that nobody here knows say nothing about it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, defstruct
from msgspec import field as member
from msgspec.json import decode

from ..handlers.error_messages import fault
from ..handlers.json_schema import check
from .form_fields import WHAT_FORMS_ASK, FormField, Kind, field_of

__all__ = ["RawForm", "raw_form"]

Number = int | float


class RawForm(NamedTuple):
    """What a schema asks for."""

    fields: tuple[FormField, ...]
    # What the answer has to be; for checking alone, since it is handed over as it is.
    content: type[Struct]
    defaults: dict[str, Any]
    dialect: str


class _Told(Struct):
    """What the schema of a field may say, as far as it matters of which type that is."""

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


class _Object(Struct):
    """The schema of a flat object."""

    type: str
    properties: dict[str, dict[str, Any]]
    required: list[str] = []
    dialect: str = member(default="", name="$schema")


def raw_form(raw: bytes) -> RawForm:
    """Return what a schema asks for; `raw` is its JSON.

    Raises:
        TypeError: it is not the schema of a form; the text says where, and what a form can ask.
    """
    try:
        schema = decode(raw, type=_Object)
    except ValidationError as error:
        place, text = fault(error)
        raise TypeError(f'"{place}": {text}' if place else text) from None
    if schema.type != "object":
        raise TypeError('its type is "object", and what is asked stands in its properties')
    unknown = [name for name in schema.required if name not in schema.properties]
    if unknown:
        raise TypeError(f'"{unknown[0]}" is required and not among the properties')
    fields = tuple(
        _field(name, told, is_required=name in schema.required)
        for name, told in schema.properties.items()
    )
    content = defstruct(
        "Content", [_member(at, each) for at, each in enumerate(fields)], kw_only=True
    )
    defaults = {each.name: each.default() for each in fields if "default" in each.facts}
    return RawForm(fields, content, defaults, schema.dialect)


def _field(name: str, told: dict[str, Any], *, is_required: bool) -> FormField:
    try:
        convert(told, _Told)
        found = field_of(name, told, is_required=is_required, titles={}, definitions={})
        check([_type(found)])
    except ValidationError as error:
        place, text = fault(error)
        raise TypeError(f'field "{name}": "{place}": {text}') from None
    except (TypeError, ValueError, re.error) as error:
        text = f'field "{name}" cannot be asked in a form: {error}; {WHAT_FORMS_ASK}'
        raise TypeError(text) from None
    return found


def _member(at: int, field: FormField) -> tuple[str, Any, Any]:
    type_ = _type(field)
    if field.is_required:
        return f"field_{at}", type_, member(name=field.name)
    return f"field_{at}", type_ | UnsetType, member(default=UNSET, name=field.name)


def _type(field: FormField) -> Any:
    """Return what the reader is to check; that a choice is one of the choices is known."""
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

"""Fields of elicitation forms: parsed from JSON Schema, written for each revision.

A field is parsed from a flat schema, generated from a type or written by hand, and written for the
negotiated revision. The rows of the specification say which kinds of fields a revision has, with
which keywords; keywords it lacks are dropped, and still checked when the content is read.

The rules that live here, and only here:

* A field is a string, a number, a boolean, or a choice of one or several strings; fields do not
  nest.                                                [MCP 2026-07-28, client/elicitation]
* Choices with titles become `enumNames` in a revision without titled choices; a choice of several
  has no older spelling, so a revision without it cannot express the field.
* Choices are strings on the wire. An integer choice is sent as its digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import ceil, floor
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ...errors import LocalProtocolError
from ...jsonrpc.codec.tokenizer import pointer
from ...mcp.tables import members
from ...redaction import is_secret_name
from ...spec.types import FieldView

__all__ = ["FORM_FIELD_KINDS", "FormField", "Kind", "decode_value", "field_of", "field_schema"]

Schema = dict[str, Any]
Kind: TypeAlias = Literal["text", "number", "boolean", "one", "several"]

FORM_FIELD_KINDS: Final = (
    "a form asks for texts, numbers, booleans, and choices of one or several texts"
)
# An error text lists the choices up to this many; the form shows all of them.
_MAX_SHOWN_CHOICES: Final = 20


class FormField(NamedTuple):
    """One field, independent of the revision."""

    name: str
    kind: Kind
    # Its JSON Schema keywords without the choices.
    facts: Schema
    # From the string on the wire to the value.
    choices: Mapping[str, Any]
    titles: Mapping[str, str]
    # Whether its author wrote `enumNames`, which are kept.
    is_legacy: bool
    is_required: bool
    # Whether an empty field means None.
    takes_null: bool

    @property
    def is_secret(self) -> bool:
        """Whether its name or format suggests a secret."""
        return is_secret_name(self.name) or self.facts.get("format") == "password"

    def default(self) -> Any:
        """Return the value of its default."""
        return decode_value(self, self.facts["default"])


def field_of(
    name: str,
    schema: Mapping[str, Any],
    *,
    is_required: bool,
    titles: Mapping[str, str],
    definitions: Mapping[str, Any],
) -> FormField:
    """Parse the schema of a field.

    Raises:
        TypeError: a form cannot express it; the text continues "field x cannot be asked".
    """
    found, takes_null = _without_null(_resolved(dict(schema), definitions))
    item = _resolved(dict(found.get("items") or {}), definitions)
    kind = _kind(found, item)
    offer = _choices_of(found if kind == "one" else item) if kind in _CHOICES else _NO_CHOICES
    known = {**offer.titles, **titles}
    unknown = [text for text in known if text not in offer.choices]
    if unknown:
        raise TypeError(f'"{unknown[0]}" has a title and is not one of its choices')
    facts = {key: value for key, value in found.items() if key not in _CHOICE_KEYWORDS}
    if facts.get("type") == "integer":
        _set_whole_bounds(facts)
    _set_default(facts, kind, offer.choices)
    needed = is_required and not takes_null
    return FormField(name, kind, facts, offer.choices, known, offer.is_legacy, needed, takes_null)


# -- parsing ---------------------------------------------------------------------------------

_CHOICE_KEYWORDS: Final = frozenset(["enum", "enumNames", "const", "oneOf", "items", "$defs"])
_KINDS: Final[Mapping[str, Kind]] = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
}
_CHOICES: Final = ("one", "several")
_NULL: Final = {"type": "null"}
# An integer is a number too.
_NUMBERS: Final = {"integer", "number"}


def _resolved(schema: Schema, definitions: Mapping[str, Any]) -> Schema:
    """Return a schema with its references replaced."""
    # Each definition is used once, so a cycle of references ends.
    left = dict(definitions)
    while "$ref" in schema:
        target = left.pop(str(schema.pop("$ref")).removeprefix("#/$defs/"), None)
        if not isinstance(target, Mapping):
            raise TypeError("it refers to a schema outside the form")
        schema = {**target, **schema}
    if "anyOf" in schema:
        schema["anyOf"] = [_resolved(dict(each), left) for each in schema["anyOf"]]
    return schema


def _without_null(schema: Schema) -> tuple[Schema, bool]:
    """Return a schema without null, and whether it allowed null."""
    options = schema.pop("anyOf", None)
    if options is not None:
        others = [each for each in options if each != _NULL]
        if len(others) == 2 and {each.get("type") for each in others} == _NUMBERS:
            others = [each for each in others if each["type"] == "number"]
        if len(others) != 1:
            raise TypeError("it may be of several kinds")
        return {**others[0], **schema}, _NULL in options
    named = schema.get("type")
    if isinstance(named, list):
        others = [each for each in named if each != "null"]
        if len(others) != 1:
            raise TypeError("it may be of several kinds")
        return {**schema, "type": others[0]}, len(others) < len(named)
    values = schema.get("enum")
    if isinstance(values, list) and None in values:
        return {**schema, "enum": [each for each in values if each is not None]}, True
    return schema, False


def _kind(schema: Schema, item: Schema) -> Kind:
    if schema.keys() & {"enum", "const", "oneOf"}:
        return "one"
    named = schema.get("type")
    if named == "array":
        if item.keys() & {"enum", "const", "oneOf", "anyOf"}:
            return "several"
        raise TypeError("it is a list, and not of choices")
    if named == "object":
        raise TypeError("it is an object")
    if named is None:
        raise TypeError("it may be of any kind")
    if named not in _KINDS:
        raise TypeError(f"it is of type {named}")
    if "contentEncoding" in schema:
        raise TypeError("it is made of bytes")
    return _KINDS[named]


class _Choices(NamedTuple):
    """The choices of a schema."""

    choices: Mapping[str, Any]
    titles: Mapping[str, str]
    is_legacy: bool


_NO_CHOICES: Final = _Choices({}, {}, False)


def _choices_of(schema: Schema) -> _Choices:
    titled = schema.get("oneOf", schema.get("anyOf"))
    if titled is not None:
        if not all(isinstance(each, Mapping) and "const" in each for each in titled):
            raise TypeError("it may be of several kinds")
        values = [each["const"] for each in titled]
        titles = {_text(each["const"]): each["title"] for each in titled if "title" in each}
    else:
        values = [schema["const"]] if "const" in schema else list(schema["enum"])
        names = schema.get("enumNames") or [""] * len(values)
        if len(names) != len(values):
            raise TypeError("it has not as many enumNames as choices")
        pairs = zip(values, names, strict=True)
        titles = {_text(value): name for value, name in pairs if name != ""}
    choices = {_text(value): value for value in values}
    if not choices:
        raise TypeError("it has no choices")
    if len(choices) < len(values):
        raise TypeError("two of its choices look the same")
    if not all(isinstance(title, str) for title in titles.values()):
        raise TypeError("the title of a choice is a text")
    return _Choices(choices, titles, "enumNames" in schema)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError("its choices are neither texts nor integers")


def _set_whole_bounds(facts: Schema) -> None:
    """Replace exclusive bounds of an integer, which forms lack, by inclusive ones."""
    lowest = [ceil(facts["minimum"])] if "minimum" in facts else []
    highest = [floor(facts["maximum"])] if "maximum" in facts else []
    if "exclusiveMinimum" in facts:
        lowest.append(floor(facts.pop("exclusiveMinimum")) + 1)
    if "exclusiveMaximum" in facts:
        highest.append(ceil(facts.pop("exclusiveMaximum")) - 1)
    if lowest:
        facts["minimum"] = max(lowest)
    if highest:
        facts["maximum"] = min(highest)


def _set_default(facts: Schema, kind: Kind, choices: Mapping[str, Any]) -> None:
    """Convert a default to its wire form."""
    if facts.get("default") is None:  # the same as an empty field
        facts.pop("default", None)
        return
    default = facts["default"]
    if kind in _CHOICES:
        items = [default] if kind == "one" else default
        if isinstance(items, list) and all(each in choices.values() for each in items):
            texts = [_text(each) for each in items]
            facts["default"] = texts[0] if kind == "one" else texts
            return
    elif type(default) in _DEFAULTS[facts["type"]]:
        return
    raise TypeError("its default is not one of its values")


_DEFAULTS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


# -- writing for a revision ------------------------------------------------------------------


def field_schema(field: FormField, revision: str) -> Schema:
    """Return the schema of a field in `revision`.

    Raises:
        LocalProtocolError: the revision has no such kind of field.
    """
    for row, write in _SHAPES[_shape(field)]:
        known = members(row, revision)
        if known is not None:
            body = write(field)
            return {key: body[key] for key in body if key in known and _fits(body[key], known[key])}
    raise LocalProtocolError(
        "mcp.elicitation.field-kind",
        where=pointer(("requestedSchema", "properties", field.name)),
        got=_KIND_NAMES[field.kind],
        expected=f'a text, a number, a boolean or a choice of one text for "{field.name}": '
        f"{revision} has no other fields",
    )


def _shape(field: FormField) -> str:
    if field.kind == "one" and field.is_legacy:
        return "one, legacy"
    return f"{field.kind}, titled" if field.titles else field.kind


def _fits(value: Any, view: FieldView) -> bool:
    """Return True unless the row lists constants for a member, and `value` is not one of them."""
    listed = [each.value for each in view.expr.of if each.kind == "constant"]
    return not listed or value in listed


def _plain(field: FormField) -> Schema:
    return dict(field.facts)


def _one(field: FormField) -> Schema:
    return {**field.facts, "type": "string", "enum": list(field.choices)}


def _one_titled(field: FormField) -> Schema:
    return {**field.facts, "type": "string", "oneOf": _titled(field)}


def _one_named(field: FormField) -> Schema:
    names = [each["title"] for each in _titled(field)]
    return {**_one(field), "enumNames": names}


def _several(field: FormField) -> Schema:
    items = {"type": "string", "enum": list(field.choices)}
    return {**field.facts, "type": "array", "items": items}


def _several_titled(field: FormField) -> Schema:
    return {**field.facts, "type": "array", "items": {"anyOf": _titled(field)}}


def _titled(field: FormField) -> list[dict[str, str]]:
    return [{"const": text, "title": field.titles.get(text, text)} for text in field.choices]


# The rows that express each shape of field, best first; the first in the revision is used.
_SHAPES: Final[Mapping[str, tuple[tuple[str, Callable[[FormField], Schema]], ...]]] = {
    "text": (("StringSchema", _plain),),
    "number": (("NumberSchema", _plain),),
    "boolean": (("BooleanSchema", _plain),),
    "one": (("UntitledSingleSelectEnumSchema", _one), ("EnumSchema", _one)),
    "one, titled": (("TitledSingleSelectEnumSchema", _one_titled), ("EnumSchema", _one_named)),
    "one, legacy": (
        ("LegacyTitledEnumSchema", _one_named),
        ("EnumSchema", _one_named),
    ),
    "several": (("UntitledMultiSelectEnumSchema", _several),),
    "several, titled": (("TitledMultiSelectEnumSchema", _several_titled),),
}
_KIND_NAMES: Final[Mapping[Kind, str]] = {
    "text": "a text",
    "number": "a number",
    "boolean": "a boolean",
    "one": "a choice of one",
    "several": "a choice of several",
}


# -- reading content -------------------------------------------------------------------------


def decode_value(field: FormField, value: Any) -> Any:
    """Return the value of a wire value; its type is checked later.

    Raises:
        ValueError: it is not one of the choices; the text lists the choices, not the value.
    """
    if field.kind == "one" and not (value is None and field.takes_null):
        return _chosen(field, value)
    if field.kind == "several" and isinstance(value, list):
        return [_chosen(field, each) for each in value]
    is_whole = isinstance(value, float) and field.facts.get("type") == "integer"
    # In JSON 5.0 is an integer.
    return int(value) if is_whole and value.is_integer() else value


def _chosen(field: FormField, value: Any) -> Any:
    if isinstance(value, str) and value in field.choices:
        return field.choices[value]
    raise ValueError(f'field "{field.name}": not one of the allowed values{_listed(field.choices)}')


def _listed(texts: Iterable[str]) -> str:
    texts = list(texts)
    return f" ({', '.join(texts)})" if len(texts) <= _MAX_SHOWN_CHOICES else ""

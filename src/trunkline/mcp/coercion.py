"""Coercion of arguments: a text for a number, a boolean, a list or an object becomes that value.

    coerced(b'{"n": "5", "tags": "[1, 2]"}', schema)    # b'{"n":5,"tags":[1, 2]}'

Models sometimes send a text where the schema has another type. With `coerce_arguments=True` a
call whose arguments do not fit is read again with such texts replaced; arguments that fit cost
nothing. What comes out is checked like any arguments.

The rules that live here, and only here:

* A text is replaced only where the schema accepts no text: at that place it cannot be meant as
  one. Nothing else is changed, and nothing ever becomes a text.
* A number is written as in JSON: "5", "-1.5" and "1e3", but not "", " 5 ", "+5", "0x10", "1_000"
  or "nan". Its digits reach the decoder as they are, so that none is lost. An integer has no
  fractional part but zeros.
* A boolean is "true" or "false", also with a capital letter. "null" is null.
* A list or an object is its JSON, in which texts are replaced too; not JSON in JSON.
* The work is bounded: arguments beyond a size, and places beyond a number and a depth, stay as
  they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import DecodeError, Raw
from msgspec.json import decode, encode

__all__ = ["coerced"]

# Bytes of the arguments of one call, without texts that stay texts. What is beyond stays as it is:
# it would be read by Python, part by part.
_MAX_BYTES: Final = 256 * 1024
_MAX_PLACES: Final = 10_000
_MAX_DEPTH: Final = 32
# Alternatives and references that one place of a schema may have.
_MAX_FORMS: Final = 256

_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.0+)?")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS: Final[Mapping[str, tuple[str, Any]]] = {
    "true": ("boolean", True),
    "True": ("boolean", True),
    "false": ("boolean", False),
    "False": ("boolean", False),
    "null": ("null", None),
}
# What can change, or hold something that can.
_PLACES: Final = (str, dict, list)
_ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf")


def coerced(raw: Any, schema: Mapping[str, Any]) -> bytes | None:
    """Return arguments with texts replaced where `schema` has none, or None if there are none.

    `raw` is a JSON object.
    """
    try:
        members: dict[str, Raw] = decode(raw, type=dict[str, Raw])
    except (DecodeError, RecursionError):
        return None
    coercion = _Coercion(schema)
    forms = coercion.forms(schema)
    changed: dict[str, Raw] = {}
    left = _MAX_BYTES
    for name, part in members.items():
        inner = _members_of(forms, name)
        size = len(memoryview(part))
        if size > left or not coercion.may_change(part, inner):
            continue
        left -= size
        try:
            value = coercion.value(_read(bytes(part).decode()), inner, 0, is_json_text=False)
            if coercion.take_changed():
                changed[name] = Raw(encode(value))
        except (ValueError, RecursionError):
            coercion.take_changed()  # not to be read by Python: it stays as it is
    return encode({**members, **changed}) if changed else None


class _Coercion:
    """One reading of arguments along their schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._places = 0
        self._has_changed = False

    def take_changed(self) -> bool:
        """Return True if something was replaced since the last call."""
        found, self._has_changed = self._has_changed, False
        return found

    def may_change(self, raw: Raw, schemas: list[Any]) -> bool:
        """Return False for a value that certainly stays as it is: most texts do."""
        forms = self.forms(*schemas)
        is_text = bytes(memoryview(raw)[:1]) == b'"'
        return bool(forms) and not (is_text and "string" in _all_types(forms))

    def forms(self, *schemas: Any) -> list[Mapping[str, Any]]:
        """Return the schemas of one place, without references and alternatives.

        It is empty if one of them is unknown, or accepts any value: nothing is replaced there.
        """
        found: list[Mapping[str, Any]] = []
        waiting = list(schemas)
        seen = 0
        while waiting:
            schema = waiting.pop()
            seen += 1
            if not isinstance(schema, dict) or seen > _MAX_FORMS:
                return []
            if "type" in schema or "enum" in schema or "const" in schema:
                found.append(schema)
            elif "$ref" in schema:
                waiting.append(_pointed(self._root, schema["$ref"]))
            else:
                inner = next((schema[each] for each in _ALTERNATIVES if each in schema), None)
                if not isinstance(inner, list) or not inner:
                    return []
                waiting += inner
        return found

    def value(self, value: Any, schemas: list[Any], depth: int, *, is_json_text: bool) -> Any:
        """Return a value with texts replaced where the schemas of its place have none.

        Lists and objects are changed in place.
        """
        self._places += 1
        if self._places > _MAX_PLACES or depth > _MAX_DEPTH:
            return value
        forms = self.forms(*schemas)
        if not forms:
            return value
        if isinstance(value, str):
            found = self._text(value, forms, is_json_text=is_json_text)
            if found is value:
                return value
            self._has_changed, value, is_json_text = True, found, True
        if isinstance(value, dict):
            for name, each in value.items():
                if isinstance(each, _PLACES):
                    inner = _members_of(forms, name)
                    value[name] = self.value(each, inner, depth + 1, is_json_text=is_json_text)
        elif isinstance(value, list):
            for place, each in enumerate(value):
                if isinstance(each, _PLACES):
                    inner = _items_of(forms, place)
                    value[place] = self.value(each, inner, depth + 1, is_json_text=is_json_text)
        return value

    def _text(self, text: str, forms: list[Mapping[str, Any]], *, is_json_text: bool) -> Any:
        """Return what a text stands for, or the text itself."""
        types = _all_types(forms)
        if "string" in types:
            return text
        kind, value = _WORDS.get(text, ("", None))
        if kind in types:
            return value
        number = _NUMBER if "number" in types else _INTEGER if "integer" in types else None
        if number is not None and number.fullmatch(text) is not None:
            return Raw(text.encode())
        start = text.lstrip(" \t\r\n")[:1]
        is_container = {"[": "array", "{": "object"}.get(start) in types
        if not is_container or is_json_text:
            return text
        try:
            return _read(text)
        except ValueError:
            return text


def _all_types(forms: list[Mapping[str, Any]]) -> set[str]:
    return {each for form in forms for each in _types_of(form)}


def _types_of(form: Mapping[str, Any]) -> Iterator[str]:
    """Yield the JSON types that a schema accepts."""
    given = form.get("type")
    if given is None:
        values = form["enum"] if "enum" in form else [form["const"]]
        # Values of other types are compared with JSON that was sent: nothing is replaced.
        yield from ("string" if isinstance(each, str) else "" for each in values)
    elif isinstance(given, str):
        yield given
    else:
        yield from given


def _members_of(forms: list[Mapping[str, Any]], name: str) -> list[Any]:
    """Return the schemas of a member; none if it is not known what it is."""
    found = []
    for form in forms:
        known = form.get("properties")
        if isinstance(known, dict) and name in known:
            found.append(known[name])
        elif isinstance(form.get("additionalProperties"), dict):
            found.append(form["additionalProperties"])
    return found


def _items_of(forms: list[Mapping[str, Any]], place: int) -> list[Any]:
    """Return the schemas of an item; none if it is not known what it is."""
    found = []
    for form in forms:
        first = form.get("prefixItems")
        if isinstance(first, list) and place < len(first):
            found.append(first[place])
        elif isinstance(form.get("items"), dict):
            found.append(form["items"])
    return found


def _pointed(root: Any, reference: Any) -> Any:
    """Return the part of a schema that a reference such as `#/$defs/Place` names, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def _read(text: str) -> Any:
    """Return the value of a JSON text, its numbers as they are written.

    Raises:
        ValueError: it is not JSON, or is too large.
    """
    if len(text) > _MAX_BYTES:
        raise ValueError("the text is too large")
    return json.loads(text, parse_int=_as_written, parse_float=_as_written, parse_constant=_refused)


def _as_written(number: str) -> Raw:
    return Raw(number.encode())


def _refused(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")

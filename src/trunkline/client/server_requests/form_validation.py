"""Validates the answer to a form elicitation against the form that the server sent.

A form is a flat JSON Schema of strings, numbers, booleans, and single or multiple choices. It
comes from the server, so an invalid part of it is ignored, and no pattern of it is ever run.

The rules that live here, and only here:

* An omitted field gets its default.               [MCP 2025-11-25, client/elicitation]
  A default that its own field would reject is ignored, and so is a list where answers of the
  revision are single values.                      [MCP 2025-06-18, client/elicitation]
* A field is required, or optional; None counts as omitted.
* A field that the form does not have is an error.
* A choice is `enum` or `oneOf`, a multiple choice is inside `items`, there as `anyOf`.
  `enumNames`, and titles, are for display.        [MCP 2026-07-28, client/elicitation]

Error messages name the field, and hide values that may be secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from typing import Any, Final, TypeAlias

from ...mcp.tables import members
from ...redaction import HIDDEN, is_secret_name, show, show_json

__all__ = ["FormMismatch", "answers_may_be_lists", "defaults", "fit"]

# What a value must be, in words; None if it is valid.
_Fault: TypeAlias = str | None

# Longer lists of choices are not shown in error messages.
_CHOICES_SHOWN: Final = 20


class FormMismatch(ValueError):
    """The answer does not match the form; the text names the field and what it takes."""


@cache  # one entry per released revision: any other raises, and is not cached
def answers_may_be_lists(revision: str) -> bool:
    """Return True if the answer to a form may have lists in a revision.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    content = (members("ElicitResult", revision) or {}).get("content")
    return content is not None and any(
        part.kind == "list" for value in content.expr.of for part in (value, *value.of)
    )


def fit(
    schema: Mapping[str, Any], content: Mapping[str, Any], *, lists: bool = True
) -> dict[str, Any]:
    """Return the content to send for a form: the given values, and defaults for the rest.

    With `lists=False`, as revisions have it whose answers are single values, a default that is a
    list is not used.

    Raises:
        FormMismatch: a field is missing, unknown or invalid.
    """
    fields = _fields(schema)
    filled = {name: value for name, value in content.items() if value is not None}
    for name in filled:
        if name not in fields:
            there = ", ".join(map(show, fields)) if len(fields) <= _CHOICES_SHOWN else "others"
            raise FormMismatch(f"the form has no field {show(name)}, but {there or 'none at all'}")
    made = {k: v for k, v in defaults(schema).items() if lists or type(v) is not list}
    for name, value in filled.items():
        fault = _fault(fields[name], value)
        if fault is not None:
            raise FormMismatch(f"the field {show(name)} takes {fault}, not {_shown(name, value)}")
        made[name] = _sent(fields[name], value)
    for name in _required(schema):
        if name in fields and name not in made:
            raise FormMismatch(f"the field {show(name)} is required, and has nothing in it")
    # In the order of the form.
    return {name: made[name] for name in fields if name in made}


def defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default values of a form."""
    return {
        name: _sent(field, field["default"])
        for name, field in _fields(schema).items()
        if field.get("default") is not None and _fault(field, field["default"]) is None
    }


def _fields(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    properties = schema.get("properties")
    if type(properties) is not dict:
        return {}
    return {name: field for name, field in properties.items() if type(field) is dict}


def _required(schema: Mapping[str, Any]) -> list[str]:
    names = schema.get("required")
    return [name for name in names if type(name) is str] if type(names) is list else []


def _fault(field: dict[str, Any], value: Any) -> _Fault:
    choices = _choices(field, "oneOf")
    if choices is not None:
        return None if type(value) is str and value in choices else _one_of(choices)
    check = _CHECKS.get(field["type"]) if type(field.get("type")) is str else None
    if check is not None:
        return check(field, value)
    # An unknown type: any scalar is accepted.
    return None if isinstance(value, str | bool | int | float) else "a single value"


def _choices(field: dict[str, Any], titled: str) -> list[str] | None:
    """Return the choices of a field, or None if it has none."""
    plain, named = field.get("enum"), field.get(titled)
    if type(plain) is list:
        return [each for each in plain if type(each) is str]
    if type(named) is list:
        consts = (each.get("const") for each in named if type(each) is dict)
        return [each for each in consts if type(each) is str]
    return None


def _one_of(choices: list[str]) -> str:
    if not choices or len(choices) > _CHOICES_SHOWN:
        return "one of its choices"
    return f"one of {', '.join(map(show_json, choices))}"


def _text(field: dict[str, Any], value: Any) -> _Fault:
    if type(value) is not str:
        return "a text"
    least, most = _count(field, "minLength"), _count(field, "maxLength")
    if least is not None and len(value) < least:
        return f"at least {least} characters"
    if most is not None and len(value) > most:
        return f"at most {most} characters"
    return _format(field.get("format"), value)


def _format(name: Any, value: str) -> _Fault:
    if type(name) is not str:
        return None
    # Imported here: few forms have one, and fewer programs a form.
    from ...judge.types.formats import FORMATS

    called, has_it = FORMATS.get(name, ("", None))
    return None if has_it is None or has_it(value) else called


def _number(field: dict[str, Any], value: Any) -> _Fault:
    if not _is_number(value):
        return "a number"
    least, most = field.get("minimum"), field.get("maximum")
    if _is_number(least) and value < least:
        return f"at least {show_json(least)}"
    if _is_number(most) and value > most:
        return f"at most {show_json(most)}"
    return None


def _integer(field: dict[str, Any], value: Any) -> _Fault:
    if not _is_number(value) or value != int(value):
        return "an integer"
    return _number(field, value)


def _boolean(field: dict[str, Any], value: Any) -> _Fault:
    return None if type(value) is bool else "true or false"


def _several(field: dict[str, Any], value: Any) -> _Fault:
    if type(value) is not list or any(type(each) is not str for each in value):
        return "a list of texts"
    items = field.get("items")
    choices = _choices(items, "anyOf") if type(items) is dict else None
    if choices is not None and not set(value) <= set(choices):
        return f"a list, each {_one_of(choices)}"
    least, most = _count(field, "minItems"), _count(field, "maxItems")
    if least is not None and len(value) < least:
        return f"at least {least} of its choices"
    if most is not None and len(value) > most:
        return f"at most {most} of its choices"
    return None


_CHECKS: Final[dict[str, Callable[[dict[str, Any], Any], _Fault]]] = {
    "string": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "array": _several,
}


def _is_number(value: Any) -> bool:
    # bool is a subclass of int in Python, and JSON has no infinity.
    return type(value) is int or (type(value) is float and isfinite(value))


def _count(field: dict[str, Any], name: str) -> int | None:
    found = field.get(name)
    return found if type(found) is int else None


def _sent(field: dict[str, Any], value: Any) -> Any:
    """Return 3 for 3.0 in an integer field: some JSON readers distinguish them."""
    is_whole = type(value) is float and field.get("type") == "integer"
    return int(value) if is_whole else value


def _shown(name: str, value: Any) -> str:
    return HIDDEN if is_secret_name(name) else show_json(value)

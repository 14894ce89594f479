"""Error messages for arguments that do not fit, in words for a model or a person.

A message names the argument, what was expected and what kind of value came instead.

The rules that live here, and only here:

* A value is never shown: it may be a secret. The decoder's own messages show some values, so
  they are reworded.
* Names of unknown arguments are shown, redacted and cut: the caller has to see what it misspelt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from msgspec import DecodeError, Raw, ValidationError
from msgspec.json import decode

from ...redaction import redact

__all__ = ["REQUIRED", "explain", "fault", "kind_of", "quoted", "worded"]

_KINDS: Final = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "a boolean",
    "null": "null",
    "array": "an array",
    "object": "an object",
    "bytes": "a Base64 string",
    "datetime": "a date and time",
    "date": "a date",
    "time": "a time",
    "duration": "a duration",
    "uuid": "a UUID",
    "decimal": "a decimal number",
}
_JSON_KINDS: Final[dict[type, str]] = {
    int: "int",
    float: "float",
    str: "str",
    bool: "bool",
    type(None): "null",
    list: "array",
    dict: "object",
}
_FIXED: Final = {
    "Invalid UUID": "expected a UUID",
    "Invalid decimal string": "expected a decimal number",
    "Invalid RFC3339 encoded datetime": "expected a date and time like 2026-01-31T09:30:00Z",
    "Invalid RFC3339 encoded date": "expected a date like 2026-01-31",
    "Invalid RFC3339 encoded time": "expected a time like 09:30:00Z",
    "Invalid ISO8601 duration": "expected a duration like PT1H30M",
    "Invalid base64 encoded string": "expected a Base64 string",
    "Integer value out of range": "the integer is too large",
    "Number out of range": "the number is too large",
    "Duration is out of range": "the duration is too long",
}
_EXPECTED: Final = re.compile(r"Expected `([^`]*)`(?:, got `([^`]*)`)?(.*)", re.DOTALL)
_FIELD: Final = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
REQUIRED: Final = "it is required"
_UNKNOWN: Final = "unknown member"
_NOT_ALLOWED: Final = "not one of the allowed values"

_NAME_SHOWN: Final = 64
_NAMES_SHOWN: Final = 20
_TEXT_SHOWN: Final = 400


def explain(error: Exception, raw: Any = None, arguments: Any = None) -> str:
    """Return why arguments could not be decoded, in one line.

    With `raw`, the JSON they came in, and the `Arguments` of the handler, it names all arguments
    that are missing or unknown and up to five faults, so that a caller can correct them at once.
    """
    place, text = fault(error)
    found = [] if arguments is None else _all_faults(raw, arguments)
    return "; ".join(found) or _told(place, text, arguments)


def _all_faults(raw: Any, arguments: Any) -> list[str]:
    """Return a sentence for each fault; none if the arguments are not a JSON object."""
    try:
        given: dict[str, Raw] = decode(raw, type=dict[str, Raw])
    except (DecodeError, TypeError, RecursionError):
        return []
    # Imported here: few calls fail.
    from .fault_search import MAX_FAULTS, faults_of

    found = _misnamed(given, arguments)
    more = faults_of(given, arguments.types, most=MAX_FAULTS - len(found))
    return found + [_told(place, text, arguments) for place, text in more]


def _told(place: str, text: str, arguments: Any) -> str:
    if text is _NOT_ALLOWED and arguments is not None:
        text += _allowed(place, arguments)
    if text is REQUIRED:
        return f'argument "{place}" is required'
    if place:
        return f'argument "{place}": {text}'
    if text.startswith(_UNKNOWN):
        return f"unknown argument{text.removeprefix(_UNKNOWN)}"
    return f"the arguments cannot be read: {text}"


def fault(error: Exception) -> tuple[str, str]:
    """Return where in a value the fault is, as `items[0].city`, and what it is."""
    if isinstance(error, RecursionError):
        return "", "they are nested too deeply"
    if isinstance(error, DecodeError) and not isinstance(error, ValidationError):
        return "", "they are not valid JSON"
    if not isinstance(error, ValidationError):
        return "", "they are not of the right form"
    said, _, path = str(error).rpartition(" - at `")
    if not said:
        said, path = str(error), "$"
    path = path.removesuffix("`")
    is_key = path.startswith("key` in `")
    place = path.removeprefix("key` in `").removeprefix("$").removeprefix(".")
    named = _FIELD.fullmatch(said)
    if named is not None and named[1].startswith("missing"):
        return (f"{place}.{named[2]}" if place else named[2]), REQUIRED
    if named is not None:
        return place, f"{_UNKNOWN} {quoted(named[2])}"
    return place, ("in the name of a member: " if is_key else "") + _reworded(said)


def worded(error: Exception) -> str:
    """Return where in a value the fault is, and what it is, as a text for `fault`."""
    if not isinstance(error, DecodeError):
        return str(error)  # of a reader here, or of a class of the author
    place, text = fault(error)
    return f'"{place}": {text}' if place else text


def quoted(name: str) -> str:
    """Return a name that a caller chose, cut and redacted, in quotation marks."""
    shown = name if len(name) <= _NAME_SHOWN else f"{name[:_NAME_SHOWN]}…"
    return f'"{redact(shown)}"'


def kind_of(value: Any) -> str:
    """Return what a decoded JSON value is, as in "an integer"."""
    return _KINDS[_JSON_KINDS[type(value)]]


def _reworded(said: str) -> str:
    if said in _FIXED:
        return _FIXED[said]
    if said.startswith(("Invalid enum value", "Invalid value")):
        return _NOT_ALLOWED  # what follows is the value
    expected = _EXPECTED.fullmatch(said)
    if expected is not None:
        named = [_KINDS.get(each, "a value of another kind") for each in expected[1].split(" | ")]
        wanted = " or ".join(named)
        got = f", got {_KINDS.get(expected[2], 'something else')}" if expected[2] else ""
        return f"expected {wanted}{expected[3]}{got}"
    if said.startswith(("Invalid", "Timestamp")):
        return "not of the right form"
    # From `read_model`, or from a class of the author's.
    return str(redact(said[:_TEXT_SHOWN]))


def _misnamed(given: dict[str, Raw], arguments: Any) -> list[str]:
    """Return which arguments are missing, and which are unknown."""
    # The caller decides how many there are: those that are shown are looked for, not all.
    unknown = [*islice((name for name in given if name not in arguments.names), _NAMES_SHOWN)]
    count = len(given) - sum(name in given for name in arguments.names)
    missing = [name for name in arguments.required if name not in given]
    parts = []
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        parts.append(f"{_listed('argument', missing, len(missing))} {verb} required")
    if unknown:
        parts.append(f"{_listed('unknown argument', unknown, count)}: {_known(arguments.names)}")
    return parts


def _known(names: Sequence[str]) -> str:
    return f"the arguments are {', '.join(names)}" if names else "there are no arguments"


def _listed(noun: str, names: Sequence[str], count: int) -> str:
    shown = ", ".join(map(quoted, names[:_NAMES_SHOWN]))
    more = f" and {count - _NAMES_SHOWN} more" if count > _NAMES_SHOWN else ""
    return f"{noun}{'s' if count > 1 else ''} {shown}{more}"


def _allowed(place: str, arguments: Any) -> str:
    """Return the values an argument can have, where its schema lists them."""
    values = arguments.schema.get("properties", {}).get(place, {}).get("enum", ())
    if not 0 < len(values) <= _NAMES_SHOWN:
        return ""
    return f" ({', '.join(map(str, values))})"

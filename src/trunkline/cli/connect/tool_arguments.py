"""Converts words such as `days=3` to the arguments of a tool, by its JSON Schema.

Types and choices are checked before anything is sent. Bounds, patterns and the rest of a schema
are left to the server.

The rules that live here, and only here:

* `key=text` is converted by the schema of the key; `key:=JSON` is JSON whatever the schema says.
* `key=@file` is the text of a file; `key=@@text` is a text that begins with one @.
* `a.b=1` is the member `b` of the object `a`, unless the schema has a key `a.b`.
* A list is JSON, or items separated by commas, or the key repeated for each item.
* Of several allowed types the first that fits is taken; string is tried last, since it always fits.
* `a.b=1` is rejected if `a` cannot be an object.
* An error quotes the word with a mark below the fault, but never the value of a secret.
* An argument that the schema allows without naming it is sent, and reported: it may be misspelt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode, encode

from ...errors import visible
from ...redaction import HIDDEN, is_secret_name, redact
from ..command import UsageError, check_text

__all__ = [
    "MAX_CHOICES_IN_TYPE",
    "ArgumentMismatch",
    "argument_schemas",
    "argument_template",
    "closest_name",
    "coerce",
    "parse_arguments",
    "resolve",
    "type_summary",
    "unknown_arguments",
    "value_choices",
]

# A schema comes from the server and may refer to itself. A union costs several levels and has a
# bounded number of branches, because nested unions multiply.
_MAX_DEPTH: Final = 16
_UNION_DEPTH: Final = 6
_MAX_BRANCHES: Final = 32
# For a summary: a list of tools asks for many.
_MAX_SUMMARY_DEPTH: Final = 8
# More allowed values are not named in the summary of a type.
MAX_CHOICES_IN_TYPE: Final = 6
# Names compared with a misspelt one, and their length: comparing takes time.
_MAX_COMPARED: Final = 2000
_MAX_NAME_LENGTH: Final = 100
# Characters and names in an error text.
_MAX_WORD_SHOWN: Final = 60
_MAX_NAMES_SHOWN: Final = 20
# Levels of objects whose members are suggested as `a.b`, or filled into a template.
_MAX_MEMBER_DEPTH: Final = 3

_BOOLEANS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1", "y"), True),
    **dict.fromkeys(("false", "no", "off", "0", "n"), False),
}
# The order in which the types of a union are tried.
_ORDER: Final = ("null", "boolean", "integer", "number", "array", "object", "string")
_TYPE_NAMES: Final = {
    "null": "null",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "array": "a list",
    "object": "a JSON object",
    "string": "a string",
}
# Keywords by which a schema allows members that its `properties` do not name.
_OPEN_KEYWORDS: Final = frozenset(
    (
        *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"),
        *("patternProperties", "propertyNames", "unevaluatedProperties"),
    )
)
_SCALARS: Final = frozenset(("null", "boolean", "integer", "number", "string"))

Schema = Mapping[str, Any]


class ArgumentMismatch(ValueError):
    """A text does not fit a schema; the message says what does."""


class _ArgumentWord(NamedTuple):
    whole: str
    key: str
    text: str
    is_json: bool

    def __repr__(self) -> str:
        from ...jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)

    @property
    def is_secret(self) -> bool:
        """True if its value must not be shown."""
        return any(map(is_secret_name, (self.key, *self.key.split("."))))

    def fault(self, sentence: str, *, at_key: bool = False) -> UsageError:
        """Return the error: a sentence, and the word with a mark below the fault."""
        sign = ":=" if self.is_json else "="
        value = self.whole[len(self.key) + len(sign) :]
        shown = HIDDEN if self.is_secret and value else _short(value)
        key = _short(self.key)
        before, length = (0, len(key)) if at_key else (len(key) + len(sign), len(shown))
        mark = " " * before + "^" * max(1, length)
        return UsageError(f"{sentence}\n  {key}{sign}{shown}\n  {mark}")


def parse_arguments(words: Sequence[str], schema: Schema, what: str) -> dict[str, Any]:
    """Return the arguments in `words`; `what` names the tool or prompt in errors.

    Raises:
        UsageError: a word is malformed, names an unknown argument or does not fit the schema; or
            an argument is missing. The text points at it.
    """
    made: dict[str, Any] = {}
    taken = [_parse_word(word) for word in words]
    for word in taken:
        _put(made, word, schema, what, sum(each.key == word.key for each in taken) > 1)
    _check_missing(made, schema, what)
    return made


def unknown_arguments(arguments: Mapping[str, Any], schema: Schema) -> list[str]:
    """Return a sentence for each argument that an open schema does not name.

    None for one that the schema seems to expect: where it has no `properties`, or where it
    describes further members and no name is close.
    """
    found = _unknown(arguments, schema, schema, "", _MAX_SUMMARY_DEPTH)
    return list(islice(found, _MAX_NAMES_SHOWN))


def _unknown(
    given: Mapping[str, Any], schema: Any, root: Schema, place: str, depth: int
) -> Iterator[str]:
    inner = _resolved(schema, root, depth)
    properties = _properties(inner)
    if depth <= 0 or not properties or not _OPEN_KEYWORDS.isdisjoint(inner):
        return
    is_plain = "additionalProperties" not in inner
    free = [name for name in properties if name not in given]
    for name, value in given.items():
        if name in properties:
            if isinstance(value, dict):
                about = properties[name]
                yield from _unknown(value, about, root, f"{place}{name}.", depth - 1)
        elif (near := closest_name(name, free)) is not None:
            meant = _short(f"{place}{near}")
            yield f"{_not_in_schema(place, name)}; did you mean {meant!r}?"
        elif is_plain:
            yield f"{_not_in_schema(place, name)}{_suggestion('', properties)}"


def _not_in_schema(place: str, name: str) -> str:
    return f"{_short(f'{place}{name}')!r} is not in the schema of the tool"


def type_summary(schema: Any, root: Schema | None = None) -> str:
    """Return the type of a schema in short: "integer", "string | null", "string[]"."""
    return _kind(schema, root if root is not None else schema, _MAX_SUMMARY_DEPTH)


def resolve(schema: Any, root: Schema) -> Schema:
    """Return a schema with its references followed; of a union with null, the other branch."""
    found = _resolved(schema, root, _MAX_DEPTH)
    branches = [_resolved(each, root, _MAX_DEPTH) for each in _branches(found)]
    others = [each for each in branches if each.get("type") != "null"]
    return others[0] if len(others) == 1 else found


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the known name closest to a misspelt one, or None."""
    from difflib import get_close_matches

    short = (each for each in islice(names, _MAX_COMPARED) if len(each) <= _MAX_NAME_LENGTH)
    near = get_close_matches(name[:_MAX_NAME_LENGTH], list(short), n=1)
    return near[0] if near else None


# Words


def _parse_word(word: str) -> _ArgumentWord:
    key, sign, text = word.partition("=")
    if not sign or not key or key == ":":
        if word.lstrip().startswith("{"):
            # The object is not quoted: it may hold a secret.
            raise UsageError("all arguments as one JSON object are given by --json OBJECT")
        shown = _short(word)
        raise UsageError(f"an argument is key=value, key:=JSON or key=@file, not {shown!r}")
    check_text(key, "the name of an argument")
    if key.endswith(":"):
        return _ArgumentWord(word, key[:-1], text, True)
    return _ArgumentWord(word, key, text, False)


def _short(text: str) -> str:
    shown = visible(str(redact(text)), kept="")
    return shown if len(shown) <= _MAX_WORD_SHOWN else f"{shown[:_MAX_WORD_SHOWN]}…"


def _text_of(word: _ArgumentWord) -> str:
    """Return the text of a word, or of the file it names."""
    if not word.text.startswith("@") or word.text.startswith("@@"):
        text = word.text[1:] if word.text.startswith("@") else word.text
        try:
            # The name of a file may be any bytes, an argument may not.
            text.encode()
        except UnicodeEncodeError:
            raise word.fault(f"{_short(word.key)} takes UTF-8 text") from None
        return text
    name = word.text[1:]
    if not name:
        raise word.fault(
            f"{_short(word.key)}=@ needs the name of a file; =@@ begins a text with one @"
        )
    try:
        with open(name, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        raise word.fault("the file is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise word.fault(f"the file cannot be read: {why}") from None


def _put(
    made: dict[str, Any], word: _ArgumentWord, schema: Schema, what: str, is_repeated: bool
) -> None:
    path = _path(word.key, schema)
    holder, inner = made, schema
    for name in path[:-1]:
        inner = _inside(_member(inner, name, schema, word, what), name, schema, word)
        holder = holder.setdefault(name, {})
        if type(holder) is not dict:
            raise word.fault(f"{_short(name)} already has a value", at_key=True)
    _put_value(
        holder, path[-1], word, _member(inner, path[-1], schema, word, what), schema, is_repeated
    )


def _inside(schema: Any, name: str, root: Schema, word: _ArgumentWord) -> Schema:
    """Return the schema of an object's members; raise if the value cannot be an object."""
    found = _of_type(schema, "object", root)
    if found is not None:
        return found
    if not _may_be_anything(schema, root, _MAX_DEPTH):
        raise word.fault(
            f"{_short(name)} takes {_called(schema, root)}, which has no members", at_key=True
        )
    return _resolved(schema, root, _MAX_DEPTH)


def _may_be_anything(schema: Any, root: Schema, depth: int) -> bool:
    found = _resolved(schema, root, depth)
    if depth <= 0:
        return True
    if "const" in found or isinstance(found.get("enum"), list) or _type(found):
        return False
    branches = _branches(found)
    inner = (_may_be_anything(each, root, depth - _UNION_DEPTH) for each in branches)
    return any(inner) if branches else True


def _called(schema: Any, root: Schema) -> str:
    kind = type_summary(schema, root)
    return _TYPE_NAMES.get(kind, kind)


def _put_value(
    holder: dict[str, Any],
    name: str,
    word: _ArgumentWord,
    schema: Any,
    root: Schema,
    is_repeated: bool,
) -> None:
    text = _text_of(word)
    try:
        if word.is_json:
            value = _json(text)
        elif is_repeated and (several := _of_type(schema, "array", root)) is not None:
            value = [coerce(text, several.get("items", {}), root)]
            if isinstance(holder.get(name), list):
                value = holder.pop(name) + value
        else:
            value = coerce(text, schema, root)
    except ArgumentMismatch as mismatch:
        got = "" if word.is_secret else f", not {_short(text)!r}"
        raise word.fault(f"{_short(word.key)} takes {mismatch}{got}") from None
    if name in holder:
        raise word.fault(f"{_short(word.key)} is given twice, but takes one value", at_key=True)
    holder[name] = value


def _path(key: str, schema: Schema) -> list[str]:
    if key in _properties(schema) or "." not in key.strip("."):
        return [key]
    return key.split(".")


def _properties(schema: Schema) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _member(inner: Schema, name: str, root: Schema, word: _ArgumentWord, what: str) -> Any:
    """Return the schema of a member; raise if the object has none of this name."""
    inner = _resolved(inner, root, _MAX_DEPTH)
    properties = _properties(inner)
    if name in properties:
        return properties[name]
    others = inner.get("additionalProperties", True)
    if others is not False:
        return others
    raise word.fault(
        f"{what} has no argument {_short(name)!r}{_suggestion(name, properties)}", at_key=True
    )


def _suggestion(name: str, properties: Mapping[str, Any]) -> str:
    near = closest_name(name, properties)
    if near is not None:
        return f"; did you mean {_short(near)!r}?"
    if not properties:
        return "; it takes none"
    names = [_short(each) for each in list(properties)[:_MAX_NAMES_SHOWN]]
    more = ", …" if len(properties) > _MAX_NAMES_SHOWN else ""
    return f"; it takes: {', '.join(names)}{more}"


def _check_missing(made: Mapping[str, Any], schema: Schema, what: str) -> None:
    needed = schema.get("required")
    if not isinstance(needed, list):
        return
    missing = [name for name in needed if isinstance(name, str) and name not in made]
    if not missing:
        return
    properties = _properties(schema)
    strange = [name for name in made if name not in properties]
    lines = []
    for name in missing[:_MAX_NAMES_SHOWN]:
        about = properties.get(name, {})
        near = closest_name(name, strange)
        meant = f" (did you mean it by {_short(near)!r}?)" if near is not None else ""
        lines.append(
            f"\n  {_short(name)}: {type_summary(about, schema)}{_description(about)}{meant}"
        )
    count = "an argument is" if len(missing) == 1 else f"{len(missing)} arguments are"
    raise UsageError(f"{count} missing for {what}:{''.join(lines)}")


def _description(schema: Any) -> str:
    text = schema.get("description") if isinstance(schema, dict) else None
    if not isinstance(text, str) or not text.strip():
        return ""
    return f"  {visible(' '.join(text.split())[:200], kept='')}"


# Values


def coerce(text: str, schema: Any, root: Schema | None = None) -> Any:
    """Return the value of a text by its schema.

    Raises:
        ArgumentMismatch: it does not fit; the message says what does.
    """
    return _coerced(text, schema, root if root is not None else {}, _MAX_DEPTH)


def _coerced(text: str, schema: Any, root: Schema, depth: int) -> Any:
    found = _resolved(schema, root, depth)
    if "const" in found or isinstance(found.get("enum"), list):
        return _chosen(text, found)
    branches = _branches(found)
    if branches:
        return _first_fit(text, branches, root, depth - _UNION_DEPTH)
    kind = _type(found)
    if kind == "array":
        return _items(text, found, root, depth - 1)
    read = _READERS.get(kind)
    return _free(text) if read is None else read(text)


def _resolved(schema: Any, root: Schema, depth: int) -> Schema:
    """Follow references; a schema that is not an object allows everything."""
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and depth > 0:
        schema = _at(schema["$ref"], root)
        depth -= 1
    if not isinstance(schema, dict) or depth <= 0:
        return {}
    parts = schema.get("allOf")
    if isinstance(parts, list) and "type" not in schema and "properties" not in schema:
        # The other parts are checked by the server.
        return _resolved(parts[0], root, depth - 1) if parts else schema
    return schema


def _at(reference: str, root: Schema) -> Any:
    """Return the target of a reference within the document, or {}."""
    place: Any = root
    if not reference.startswith("#"):
        return {}
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        place = place.get(name, {}) if isinstance(place, dict) else {}
    return place


def _branches(schema: Schema) -> list[Any]:
    """Return the branches of a union, or none if it is not one."""
    for name in ("anyOf", "oneOf"):
        found = schema.get(name)
        if isinstance(found, list) and found:
            return found[:_MAX_BRANCHES]
    kinds = schema.get("type")
    if not isinstance(kinds, list):
        return []
    return [{**schema, "type": each} for each in kinds[:_MAX_BRANCHES]]


def _type(schema: Schema) -> str:
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "array" if "items" in schema else ""


def _first_fit(text: str, branches: list[Any], root: Schema, depth: int) -> Any:
    resolved = [_resolved(each, root, depth) for each in branches]
    resolved.sort(key=lambda each: _ORDER.index(_type(each)) if _type(each) in _ORDER else -1)
    # An enum of strings is narrower than any string.
    resolved.sort(key=lambda each: _type(each) == "string" and "enum" not in each)
    wanted: list[str] = []
    for each in resolved:
        try:
            return _coerced(text, each, root, depth)
        except ArgumentMismatch as mismatch:
            wanted.append(str(mismatch))
    raise ArgumentMismatch(" or ".join(dict.fromkeys(wanted)))


def _chosen(text: str, schema: Schema) -> Any:
    choices = [schema["const"]] if "const" in schema else schema["enum"]
    if text in choices:
        return text
    try:
        value = _json(text)
    except ArgumentMismatch:
        value = None if text == "" else text
    for each in choices:
        # In Python True == 1; in JSON they differ.
        if each == value and isinstance(each, bool) == isinstance(value, bool):
            return each
    if len(choices) > _MAX_NAMES_SHOWN:
        raise ArgumentMismatch(f"one of its {len(choices)} choices")
    names = [_short(each if isinstance(each, str) else str(each)) for each in choices]
    raise ArgumentMismatch(f"one of {', '.join(names)}" if len(names) > 1 else ", ".join(names))


def _of_type(schema: Any, kind: str, root: Schema, depth: int = _MAX_DEPTH) -> Schema | None:
    """Return the schema, or its first branch, of a type; None if there is none."""
    found = _resolved(schema, root, depth)
    if depth <= 0 or _type(found) == kind:
        return found if depth > 0 else None
    inner = (_of_type(each, kind, root, depth - _UNION_DEPTH) for each in _branches(found))
    return next((each for each in inner if each is not None), None)


def _items(text: str, schema: Schema, root: Schema, depth: int) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            value = _json(text)
        except ArgumentMismatch:
            raise ArgumentMismatch("a list: JSON, or items separated by commas") from None
        if isinstance(value, list):
            return value
    inner = schema.get("items", {})
    if not text:
        return []
    kind = _type(_resolved(inner, root, depth))
    if kind and kind not in _SCALARS:
        raise ArgumentMismatch("a list, as JSON")
    try:
        return [_coerced(each, inner, root, depth) for each in text.split(",")]
    except ArgumentMismatch as mismatch:
        raise ArgumentMismatch(f"a list, each {mismatch}") from None


def _json(text: str) -> Any:
    try:
        return decode(text.encode("utf-8", "surrogateescape"))
    except (DecodeError, RecursionError, UnicodeDecodeError):
        raise ArgumentMismatch("JSON") from None


def _free(text: str) -> Any:
    try:
        return _json(text)
    except ArgumentMismatch:
        return text


def _null(text: str) -> None:
    if text != "null":
        raise ArgumentMismatch(_TYPE_NAMES["null"])


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.strip().lower()]
    except KeyError:
        raise ArgumentMismatch(_TYPE_NAMES["boolean"]) from None


def _integer(text: str) -> int:
    value = _number_or_none(text)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int):
        raise ArgumentMismatch(_TYPE_NAMES["integer"])
    return value


def _number(text: str) -> int | float:
    value = _number_or_none(text)
    if value is None:
        raise ArgumentMismatch(_TYPE_NAMES["number"])
    return value


def _number_or_none(text: str) -> int | float | None:
    """Return a JSON number: no infinity, underscores or hexadecimals."""
    value = _free(text.strip().removeprefix("+"))
    return value if type(value) in (int, float) else None


def _object(text: str) -> dict[str, Any]:
    value = _free(text)
    if not isinstance(value, dict):
        raise ArgumentMismatch(_TYPE_NAMES["object"])
    return value


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "null": _null,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "object": _object,
    "string": str,
}


# Summaries


def _kind(schema: Any, root: Schema, depth: int) -> str:
    found = _resolved(schema, root, depth)
    if depth <= 0:
        return "any"
    if isinstance(found.get("enum"), list) and len(found["enum"]) <= MAX_CHOICES_IN_TYPE:
        return " | ".join(_short(str(each)) for each in found["enum"]) or "nothing"
    if "const" in found:
        return _short(str(found["const"]))
    branches = _branches(found)
    if branches:
        kinds = (_kind(each, root, depth - _UNION_DEPTH) for each in branches)
        return " | ".join(dict.fromkeys(kinds))
    kind = _type(found)
    if kind == "array":
        inner = _kind(found.get("items", {}), root, depth - 1)
        return f"({inner})[]" if " " in inner else f"{inner}[]"
    return visible(kind, kept="") or "any"


# Suggestions


def argument_schemas(schema: Any) -> dict[str, Any]:
    """Return the schema of each argument by name; a member of an object is called `a.b`."""
    found: dict[str, Any] = {}
    if isinstance(schema, dict):
        _collect_members(found, "", schema, schema, _MAX_MEMBER_DEPTH)
    return found


def _collect_members(
    found: dict[str, Any], prefix: str, schema: Schema, root: Schema, depth: int
) -> None:
    for name, member in _properties(schema).items():
        if len(found) >= _MAX_COMPARED:
            return
        found[f"{prefix}{name}"] = member
        inner = _of_type(member, "object", root)
        if inner is not None and depth > 1:
            _collect_members(found, f"{prefix}{name}.", inner, root, depth - 1)


def value_choices(schema: Any, root: Schema) -> list[str]:
    """Return the values of an argument, or of the items of a list, if they can be listed."""
    return list(dict.fromkeys(_choices(schema, root, _MAX_DEPTH)))


def _choices(schema: Any, root: Schema, depth: int) -> list[str]:
    found = _resolved(schema, root, depth)
    if depth <= 0:
        return []
    if "const" in found or isinstance(found.get("enum"), list):
        values = [found["const"]] if "const" in found else found["enum"]
        return [_typed(each) for each in values]
    branches = _branches(found)
    if branches:
        return [
            choice for each in branches for choice in _choices(each, root, depth - _UNION_DEPTH)
        ]
    kind = _type(found)
    if kind == "array":
        return _choices(found.get("items", {}), root, depth - 1)
    return ["true", "false"] if kind == "boolean" else []


def _typed(value: Any) -> str:
    """Return a value as it is typed: a text as it is, and JSON for all others."""
    return value if isinstance(value, str) else encode(value).decode()


def argument_template(schema: Any) -> dict[str, Any]:
    """Return arguments to begin with: those that are required, and those with a default."""
    if not isinstance(schema, dict):
        return {}
    return _members_template(schema, schema, _MAX_MEMBER_DEPTH)


def _members_template(schema: Schema, root: Schema, depth: int) -> dict[str, Any]:
    needed = schema.get("required")
    required = needed if isinstance(needed, list) else []
    return {
        name: _value_template(member, root, depth)
        for name, member in islice(_properties(schema).items(), _MAX_COMPARED)
        if name in required or (isinstance(member, dict) and "default" in member)
    }


def _value_template(schema: Any, root: Schema, depth: int) -> Any:
    found = _resolved(schema, root, _MAX_DEPTH)
    if isinstance(schema, dict) and "default" in schema:
        return schema["default"]
    for name in ("default", "const"):
        if name in found:
            return found[name]
    for name in ("enum", "examples"):
        if isinstance(found.get(name), list) and found[name]:
            return found[name][0]
    branches = _branches(found)
    if branches:
        return _value_template(branches[0], root, depth - 1) if depth > 0 else None
    kind = _type(found)
    if kind == "object":
        return _members_template(found, root, depth - 1) if depth > 1 else {}
    return _EMPTY_VALUES.get(kind, None if kind == "null" else "")


_EMPTY_VALUES: Final[dict[str, Any]] = {"boolean": False, "integer": 0, "number": 0, "array": []}

"""Words such as `days=3` as the arguments that a JSON Schema asks for.

A word is text and a schema says what it stands for; nothing is sent that does not fit. What a
schema says beyond types and choices (bounds, patterns) is left to the server, who knows best.

The rules that live here, and only here:

* `key=text` is read by the schema of the key; `key:=JSON` is JSON whatever the schema says.
* `key=@file` is the text of a file; `key=@@text` is a text that begins with one @.
* `a.b=1` is the member `b` of the object `a`, unless there is a key `a.b`.
* A list is JSON, or its items with commas between, or one item for each time the key is given.
* What may be several things is the first that fits; a text fits always, so it is tried last.
* What has no members takes none: `a.b=1` is refused where `a` is no object.
* A word is shown to whoever typed it, with a mark below; the value of a secret never is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode

from ...errors import visible
from ...redaction import HIDDEN, is_secret_name, redact
from ..command import UsageError, check_text

__all__ = ["ArgumentMismatch", "closest_name", "coerce", "parse_arguments", "type_summary"]

# Schemas are a server's text, and one may refer to itself. A choice counts for several steps, and
# has so many branches at most: choices within choices multiply.
_DEEPEST: Final = 16
_A_CHOICE: Final = 6
_BRANCHES: Final = 32
# For a look at a schema fewer steps will do: a list of tools takes many.
_AT_A_GLANCE: Final = 8
# Names that are compared with a misspelt one. It takes time, and names are a server's too.
_COMPARED: Final = 2000
_NAME_LENGTH: Final = 100
# Of a longer word the rest is no help in finding the mistake.
_WORD_SHOWN: Final = 60
_NAMES_SHOWN: Final = 20

_BOOLEANS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1", "y"), True),
    **dict.fromkeys(("false", "no", "off", "0", "n"), False),
}
# In which order the types are tried of what may be several.
_ORDER: Final = ("null", "boolean", "integer", "number", "array", "object", "string")
_CALLED: Final = {
    "null": "null",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "array": "a list",
    "object": "a JSON object",
    "string": "a text",
}
_SCALARS: Final = frozenset(("null", "boolean", "integer", "number", "string"))

Schema = Mapping[str, Any]


class ArgumentMismatch(ValueError):
    """A text is not what a schema asks for; the sentence says what that is."""


class _ArgumentWord(NamedTuple):
    """One `key=value`, taken apart."""

    whole: str
    key: str
    text: str
    is_json: bool

    @property
    def is_secret(self) -> bool:
        """Whether its value is not to be shown."""
        return any(map(is_secret_name, (self.key, *self.key.split("."))))

    def fault(self, sentence: str, *, at_key: bool = False) -> UsageError:
        """Return what to raise: a sentence, and the word with a mark below the fault."""
        sign = ":=" if self.is_json else "="
        value = self.whole[len(self.key) + len(sign) :]
        shown = HIDDEN if self.is_secret and value else _short(value)
        key = _short(self.key)
        before, length = (0, len(key)) if at_key else (len(key) + len(sign), len(shown))
        mark = " " * before + "^" * max(1, length)
        return UsageError(f"{sentence}\n  {key}{sign}{shown}\n  {mark}")


def parse_arguments(words: Sequence[str], schema: Schema, what: str) -> dict[str, Any]:
    """Return the arguments that `words` stand for; `what` names who takes them.

    Raises:
        Misuse: a word is none, names an argument there is not, or does not fit; or an argument
            is missing. The text points at it.
    """
    made: dict[str, Any] = {}
    taken = [_taken_apart(word) for word in words]
    for word in taken:
        _put(made, word, schema, what, sum(each.key == word.key for each in taken) > 1)
    _check_missing(made, schema, what)
    return made


def type_summary(schema: Any, root: Schema | None = None) -> str:
    """Return what a schema takes in a word or two: "integer", "string | null", "string[]"."""
    return _kind(schema, root if root is not None else schema, _AT_A_GLANCE)


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name that may have been meant by a misspelt one, or None."""
    from difflib import get_close_matches

    short = (each for each in islice(names, _COMPARED) if len(each) <= _NAME_LENGTH)
    near = get_close_matches(name[:_NAME_LENGTH], list(short), n=1)
    return near[0] if near else None


# Words


def _taken_apart(word: str) -> _ArgumentWord:
    key, sign, text = word.partition("=")
    if not sign or not key or key == ":":
        shown = _short(word)
        raise UsageError(f"an argument is key=value, key:=JSON or key=@file, not {shown!r}")
    check_text(key, "the name of an argument")
    if key.endswith(":"):
        return _ArgumentWord(word, key[:-1], text, True)
    return _ArgumentWord(word, key, text, False)


def _short(text: str) -> str:
    shown = visible(str(redact(text)), kept="")
    return shown if len(shown) <= _WORD_SHOWN else f"{shown[:_WORD_SHOWN]}…"


def _text_of(word: _ArgumentWord) -> str:
    """Return the text of a word, from its file if it names one."""
    if not word.text.startswith("@") or word.text.startswith("@@"):
        text = word.text[1:] if word.text.startswith("@") else word.text
        try:
            # The name of a file may be any bytes; what is sent may not.
            text.encode()
        except UnicodeEncodeError:
            raise word.fault(f"{_short(word.key)} takes a text in UTF-8") from None
        return text
    name = word.text[1:]
    if not name:
        raise word.fault(f"{_short(word.key)}=@ names no file; =@@ begins a text with one @")
    try:
        with open(name, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        raise word.fault("the file is no text in UTF-8") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise word.fault(f"the file cannot be read: {why}") from None


def _put(
    made: dict[str, Any], word: _ArgumentWord, schema: Schema, what: str, is_repeated: bool
) -> None:
    """Put what one word stands for in its place."""
    path = _path(word.key, schema)
    holder, inner = made, schema
    for name in path[:-1]:
        inner = _inside(_member(inner, name, schema, word, what), name, schema, word)
        holder = holder.setdefault(name, {})
        if type(holder) is not dict:
            raise word.fault(f"{_short(name)} has a value already", at_key=True)
    _put_value(
        holder, path[-1], word, _member(inner, path[-1], schema, word, what), schema, is_repeated
    )


def _inside(schema: Any, name: str, root: Schema, word: _ArgumentWord) -> Schema:
    """Return what the members of a value are judged by; raise where it can have none."""
    found = _of_type(schema, "object", root)
    if found is not None:
        return found
    if not _may_be_anything(schema, root, _DEEPEST):
        raise word.fault(
            f"{_short(name)} takes {_called(schema, root)}, which has no members", at_key=True
        )
    return _resolved(schema, root, _DEEPEST)


def _may_be_anything(schema: Any, root: Schema, depth: int) -> bool:
    found = _resolved(schema, root, depth)
    if depth <= 0:
        return True
    if "const" in found or isinstance(found.get("enum"), list) or _type(found):
        return False
    branches = _branches(found)
    inner = (_may_be_anything(each, root, depth - _A_CHOICE) for each in branches)
    return any(inner) if branches else True


def _called(schema: Any, root: Schema) -> str:
    kind = type_summary(schema, root)
    return _CALLED.get(kind, kind)


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
    except ArgumentMismatch as unfit:
        got = "" if word.is_secret else f", not {_short(text)!r}"
        raise word.fault(f"{_short(word.key)} takes {unfit}{got}") from None
    if name in holder:
        raise word.fault(f"{_short(word.key)} is given twice, and takes one value", at_key=True)
    holder[name] = value


def _path(key: str, schema: Schema) -> list[str]:
    if key in _properties(schema) or "." not in key.strip("."):
        return [key]
    return key.split(".")


def _properties(schema: Schema) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _member(inner: Schema, name: str, root: Schema, word: _ArgumentWord, what: str) -> Any:
    """Return the schema of a member; raise where the object has none of this name."""
    inner = _resolved(inner, root, _DEEPEST)
    properties = _properties(inner)
    if name in properties:
        return properties[name]
    others = inner.get("additionalProperties", True)
    if others is not False:
        return others
    raise word.fault(
        f"{what} has no argument {_short(name)!r}{_there_is(name, properties)}", at_key=True
    )


def _there_is(name: str, properties: Mapping[str, Any]) -> str:
    """Return what may have been meant, or what there is."""
    near = closest_name(name, properties)
    if near is not None:
        return f"; did you mean {_short(near)!r}?"
    if not properties:
        return ": it takes none"
    names = [_short(each) for each in list(properties)[:_NAMES_SHOWN]]
    more = ", …" if len(properties) > _NAMES_SHOWN else ""
    return f"; there is {', '.join(names)}{more}"


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
    for name in missing[:_NAMES_SHOWN]:
        about = properties.get(name, {})
        near = closest_name(name, strange)
        meant = f" (is {_short(near)!r} meant?)" if near is not None else ""
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
    """Return the value that a text stands for by its schema.

    Raises:
        Unfit: it stands for none; the sentence says what is taken.
    """
    return _coerced(text, schema, root if root is not None else {}, _DEEPEST)


def _coerced(text: str, schema: Any, root: Schema, depth: int) -> Any:
    found = _resolved(schema, root, depth)
    if "const" in found or isinstance(found.get("enum"), list):
        return _chosen(text, found)
    branches = _branches(found)
    if branches:
        return _first_fit(text, branches, root, depth - _A_CHOICE)
    kind = _type(found)
    if kind == "array":
        return _items(text, found, root, depth - 1)
    read = _READERS.get(kind)
    return _free(text) if read is None else read(text)


def _resolved(schema: Any, root: Schema, depth: int) -> Schema:
    """Return a schema in place of a reference to it; what is no schema allows everything."""
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and depth > 0:
        schema = _at(schema["$ref"], root)
        depth -= 1
    if not isinstance(schema, dict) or depth <= 0:
        return {}
    parts = schema.get("allOf")
    if isinstance(parts, list) and "type" not in schema and "properties" not in schema:
        # What is asked for besides is the server's to judge.
        return _resolved(parts[0], root, depth - 1) if parts else schema
    return schema


def _at(reference: str, root: Schema) -> Any:
    """Return what a reference within one document points at, or {}."""
    place: Any = root
    if not reference.startswith("#"):
        return {}
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        place = place.get(name, {}) if isinstance(place, dict) else {}
    return place


def _branches(schema: Schema) -> list[Any]:
    """Return the schemas of which one will do, or none where there is no choice."""
    for name in ("anyOf", "oneOf"):
        found = schema.get(name)
        if isinstance(found, list) and found:
            return found[:_BRANCHES]
    kinds = schema.get("type")
    if not isinstance(kinds, list):
        return []
    return [{**schema, "type": each} for each in kinds[:_BRANCHES]]


def _type(schema: Schema) -> str:
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "array" if "items" in schema else ""


def _first_fit(text: str, branches: list[Any], root: Schema, depth: int) -> Any:
    resolved = [_resolved(each, root, depth) for each in branches]
    resolved.sort(key=lambda each: _ORDER.index(_type(each)) if _type(each) in _ORDER else -1)
    # A choice of texts is narrower than any text.
    resolved.sort(key=lambda each: _type(each) == "string" and "enum" not in each)
    wanted: list[str] = []
    for each in resolved:
        try:
            return _coerced(text, each, root, depth)
        except ArgumentMismatch as unfit:
            wanted.append(str(unfit))
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
        # True is 1 to Python alone.
        if each == value and isinstance(each, bool) == isinstance(value, bool):
            return each
    if len(choices) > _NAMES_SHOWN:
        raise ArgumentMismatch("one of its choices")
    names = [_short(each if isinstance(each, str) else str(each)) for each in choices]
    raise ArgumentMismatch(f"one of {', '.join(names)}" if len(names) > 1 else ", ".join(names))


def _of_type(schema: Any, kind: str, root: Schema, depth: int = _DEEPEST) -> Schema | None:
    """Return a schema, or the first of its branches, that is of a type; None where none is."""
    found = _resolved(schema, root, depth)
    if depth <= 0 or _type(found) == kind:
        return found if depth > 0 else None
    inner = (_of_type(each, kind, root, depth - _A_CHOICE) for each in _branches(found))
    return next((each for each in inner if each is not None), None)


def _items(text: str, schema: Schema, root: Schema, depth: int) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            value = _json(text)
        except ArgumentMismatch:
            raise ArgumentMismatch("a list: JSON, or items with commas between") from None
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
    except ArgumentMismatch as unfit:
        raise ArgumentMismatch(f"a list, each {unfit}") from None


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
        raise ArgumentMismatch(_CALLED["null"])


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.strip().lower()]
    except KeyError:
        raise ArgumentMismatch(_CALLED["boolean"]) from None


def _integer(text: str) -> int:
    value = _number_or_none(text)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int):
        raise ArgumentMismatch(_CALLED["integer"])
    return value


def _number(text: str) -> int | float:
    value = _number_or_none(text)
    if value is None:
        raise ArgumentMismatch(_CALLED["number"])
    return value


def _number_or_none(text: str) -> int | float | None:
    """Return a number as JSON has them: no infinity, no underscores, no hexadecimals."""
    try:
        value = _json(text.strip().removeprefix("+"))
    except ArgumentMismatch:
        return None
    return value if type(value) in (int, float) else None


def _object(text: str) -> dict[str, Any]:
    try:
        value = _json(text)
    except ArgumentMismatch:
        value = None
    if not isinstance(value, dict):
        raise ArgumentMismatch(_CALLED["object"])
    return value


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "null": _null,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "object": _object,
    "string": str,
}


# What a schema takes, in short


def _kind(schema: Any, root: Schema, depth: int) -> str:
    found = _resolved(schema, root, depth)
    if depth <= 0:
        return "any"
    if isinstance(found.get("enum"), list) and len(found["enum"]) <= 6:
        return " | ".join(_short(str(each)) for each in found["enum"]) or "nothing"
    if "const" in found:
        return _short(str(found["const"]))
    branches = _branches(found)
    if branches:
        kinds = (_kind(each, root, depth - _A_CHOICE) for each in branches)
        return " | ".join(dict.fromkeys(kinds))
    kind = _type(found)
    if kind == "array":
        inner = _kind(found.get("items", {}), root, depth - 1)
        return f"({inner})[]" if " " in inner else f"{inner}[]"
    return visible(kind, kept="") or "any"

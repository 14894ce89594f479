"""Checks of one JSON value each, as closures over the facts of a row.

A check takes a value, the path to it and the sink, and reports its findings to the sink. Types
recurse only through values that are not inspected, so the depth of a check is that of its type,
however deep the value nests. The checks of unions are in `unions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ...errors import NOTHING
from .collector import Path, Sink
from .formats import FORMATS
from .hints import elsewhere, near

__all__ = [
    "Check",
    "ObjectFacts",
    "anything",
    "boolean",
    "both",
    "constants",
    "integer",
    "items",
    "kind_of",
    "limited",
    "members",
    "null",
    "number",
    "objects",
    "string",
]

Check: TypeAlias = Callable[[Any, Path, Sink], None]

_KINDS: Final[dict[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_TYPE: Final = "mcp.type.json-type"


def kind_of(value: object) -> str:
    """Return the JSON type of a value; "integer" for integral numbers."""
    kind = _KINDS.get(type(value), "")
    if kind == "number" and isinstance(value, float) and value.is_integer():
        return "integer"  # in JSON Schema 1.0 is an integer
    return kind or "not a JSON value"


# -- single values ---------------------------------------------------------------------------


def anything(value: Any, path: Path, sink: Sink) -> None:
    """Accept every value."""


def string(value: Any, path: Path, sink: Sink) -> None:
    """Report a value that is not a string."""
    if type(value) is not str:
        sink.report(_TYPE, path, value, "a string")


def boolean(value: Any, path: Path, sink: Sink) -> None:
    """Report a value that is neither true nor false."""
    if type(value) is not bool:
        sink.report(_TYPE, path, value, "true or false")


def null(value: Any, path: Path, sink: Sink) -> None:
    """Report a value that is not null."""
    if value is not None:
        sink.report(_TYPE, path, value, "null")


def integer(value: Any, path: Path, sink: Sink) -> None:
    """Report a value that is not an integer."""
    if type(value) is not int and kind_of(value) != "integer":
        sink.report(_TYPE, path, value, "an integer")


def number(value: Any, path: Path, sink: Sink) -> None:
    """Report a value that is not a number."""
    if type(value) is not int and type(value) is not float:
        sink.report(_TYPE, path, value, "a number")


def constants(allowed: Sequence[str | int], hint: Callable[[Any], str]) -> Check:
    """Return a check that a value is one of `allowed`; `hint` extends the expectation."""
    kinds = {type(value) for value in allowed}
    values = frozenset(allowed)
    listed = " or ".join(repr(value) for value in allowed)

    def check(value: Any, path: Path, sink: Sink) -> None:
        if type(value) not in kinds or value not in values:
            names = [name for name in allowed if isinstance(name, str)]
            sink.report(
                "mcp.type.constant", path, value, listed + (near(value, names) or hint(value))
            )

    return check


def limited(check: Check, limits: Iterable[tuple[str, Any]]) -> Check:
    """Return `check` narrowed by keywords of JSON Schema."""
    tests = [_LIMITS[keyword](bound) for keyword, bound in limits if keyword in _LIMITS]
    return both(check, *tests) if tests else check


def both(*checks: Check) -> Check:
    """Return a check that runs several checks."""

    def check(value: Any, path: Path, sink: Sink) -> None:
        for each in checks:
            each(value, path, sink)

    return check


def _bound(kind: tuple[type, ...], fits: Callable[[Any, Any], bool], phrase: str) -> Any:
    def make(bound: Any) -> Check:
        expected = phrase.format(bound)

        def check(value: Any, path: Path, sink: Sink) -> None:
            if type(value) in kind and not fits(value, bound):
                shown = f"{len(value)} elements" if type(value) is list else value
                sink.report("mcp.type.limit", path, shown, expected)

        return check

    return make


def _format(name: str) -> Check:
    called, fits = FORMATS[name]

    def check(value: Any, path: Path, sink: Sink) -> None:
        if type(value) is str and not fits(value):
            sink.report("mcp.type.format", path, value, called)

    return check


_NUMBERS: Final = (int, float)
_LIMITS: Final[dict[str, Callable[[Any], Check]]] = {
    "format": _format,
    "minimum": _bound(_NUMBERS, lambda value, bound: value >= bound, "{} or more"),
    "maximum": _bound(_NUMBERS, lambda value, bound: value <= bound, "{} or less"),
    "minLength": _bound((str,), lambda value, bound: len(value) >= bound, "{} characters or more"),
    "maxLength": _bound((str,), lambda value, bound: len(value) <= bound, "{} characters or less"),
    "minItems": _bound((list,), lambda value, bound: len(value) >= bound, "{} elements or more"),
    "maxItems": _bound((list,), lambda value, bound: len(value) <= bound, "{} elements or less"),
}


# -- containers ------------------------------------------------------------------------------


def items(each: Check) -> Check:
    """Return a check of a list and its elements."""
    is_open = each is anything

    def check(value: Any, path: Path, sink: Sink) -> None:
        if type(value) is not list:
            sink.report(_TYPE, path, value, "an array")
        elif not is_open:
            for place, item in enumerate(value):
                each(item, (path, place), sink)
                if place & 255 == 255 and sink.is_full():
                    return

    return check


def members(each: Check) -> Check:
    """Return a check of an object with arbitrary names, as `map<X>`."""
    is_open = each is anything

    def check(value: Any, path: Path, sink: Sink) -> None:
        if type(value) is not dict:
            sink.report(_TYPE, path, value, "an object")
        elif not is_open:
            for place, (name, item) in enumerate(value.items()):
                each(item, (path, name), sink)
                if place & 255 == 255 and sink.is_full():
                    return

    return check


class ObjectFacts(NamedTuple):
    """The facts about an object type that its check needs."""

    name: str
    fields: Mapping[str, Check]
    required: tuple[str, ...]
    # True if members that are not listed are not reported.
    is_open: bool
    # Names that are checked elsewhere.
    silent: frozenset[str]
    # The rule about members that no revision knows.
    unknown: str = "mcp.type.unknown-member"


def objects(facts: ObjectFacts) -> Check:
    """Return a check of an object and its members."""
    find, required, is_open = facts.fields.get, facts.required, facts.is_open

    def check(value: Any, path: Path, sink: Sink) -> None:
        if type(value) is not dict:
            sink.report(_TYPE, path, value, "an object", f"schema#{facts.name}")
            return
        for name in required:
            if name not in value:
                expected = f"a member {name!r}"
                sink.report(
                    "mcp.type.required", (path, name), NOTHING, expected, f"schema#{facts.name}"
                )
        for name, item in value.items():
            each = find(name)
            if each is not None:
                each(item, (path, name), sink)
            elif not is_open:
                _unlisted(facts, name, item, path, sink)
                if len(value) > 256 and sink.is_full():
                    return

    return check


def _unlisted(facts: ObjectFacts, name: Any, item: Any, path: Path, sink: Sink) -> None:
    # A member of another revision, a misspelt or an unknown one.
    if name in facts.silent:
        return
    source = f"schema#{facts.name}"
    if isinstance(name, str) and len(name) <= 64:
        rule, phrase = elsewhere(facts.name, name, sink.revision)
        if rule:
            sink.report(rule, (path, name), item, f"no {name!r}: {phrase}", source)
            return
    hint = near(name, facts.fields)
    known = ", ".join(facts.fields) or "none"
    expected = f"a member of the type{hint}" if hint else f"a member of the type: {known}"
    sink.report(facts.unknown, (path, str(name)), item, expected, source)

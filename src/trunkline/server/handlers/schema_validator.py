"""Validation of values against JSON Schemas that were given as JSON.

The validator is jsonschema-rs, of the `schema` extra, imported with the first such schema. A
schema can be hostile (one that a remote server sent), so it is checked first.

The rules that live here, and only here:

* A schema has no references outside itself, so nothing is ever fetched.  [MCP 2026-07-28, basic]
* Its size, its depth and its subschemas are bounded, and also their number with every reference
  followed: references to references can double at each step.
* Patterns run on an engine with linear time. A schema with look-around or back-references, which
  that engine does not have, runs on one that backtracks, for a number of steps that falls with
  the size of the value. A value that needs more steps is refused, also under `not` and `if`.
* An unsupported dialect is an error, and never taken for another one.
* The first error is the one that is reported, and at most five names in it: the caller decides
  how many faults a value has.

Formats are annotations, as in 2020-12, and not checked. The depth and the size of a value are
bounded by the limits on messages. One risk remains: a recursive schema that checks the same
child twice at each level. Do not validate a stranger's value against a stranger's schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

from msgspec.json import decode, encode

from ...extras import install_command
from .error_messages import quoted

__all__ = ["BadSchema", "SchemaCheck"]

_MAX_SCHEMA_BYTES: Final = 256 * 1024
_MAX_DEPTH: Final = 64
_MAX_SUBSCHEMAS: Final = 10_000
# Subschemas with all references followed. Schemas that share some parts stay far below; one
# that doubles at each step exceeds it at the seventeenth.
_MAX_EXPANDED: Final = 100_000

_DIALECTS: Final = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
)
# Keywords that hold one schema, several, or some by name.
_ONE: Final = frozenset(
    [
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)
_SEVERAL: Final = frozenset(["allOf", "anyOf", "oneOf", "prefixItems", "items"])
_BY_NAME: Final = frozenset(
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
)
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ALTERNATIVES: Final = ("anyOf", "oneOf")
# Keywords that apply one schema to any number of items or members.
_APPLIED_TO_EACH: Final = frozenset(
    [
        *_REFERENCES,
        "additionalItems",
        "additionalProperties",
        "items",
        "patternProperties",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)
# The error of `anyOf` or `oneOf` holds all errors of all its alternatives. With such a keyword
# in one of them their number grows with the value: 1 MiB of items took 17 s and 2 GiB. Values
# with more parts than this are rejected without the place of the fault.
_MAX_PARTS_EXPLAINED: Final = 2000

# Steps of the backtracking engine times characters of the value: a step may read all of a text.
# This many take 0.1 s.
_MAX_STEPS_TIMES_CHARS: Final = 1 << 24
# Values up to each of these sizes share a validator; larger ones have the least steps. Ordinary
# look-aheads such as `^(?!\\s*$)` need one or two.
_VALUE_CHARS: Final = (1 << 10, 1 << 14, 1 << 18, 1 << 22)
_LEAST_STEPS: Final = 16


class BadSchema(ValueError):
    """A JSON Schema that cannot be used; the text says why."""


class SchemaCheck:
    """A compiled JSON Schema; it never fetches anything."""

    __slots__ = ("_backtracking", "_has_costly_errors", "_linear")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Compile `schema`, which is not changed.

        Raises:
            BadSchema: it is not a valid schema, or not safe to use.
            ImportError: the `schema` extra is not installed.
        """
        walk = _SchemaWalk(schema)
        walk.finish()
        self._has_costly_errors = walk.has_costly_errors
        self._linear: Any = None
        self._backtracking: _Backtracking | None = None
        try:
            self._linear = _compiled(schema, _linear())
        except BadSchema:
            costly = sum(not _is_linear(each) for each in walk.patterns)
            if not costly:
                raise
            self._backtracking = _Backtracking(schema, costly)

    def __repr__(self) -> str:
        return "<SchemaCheck>"

    def problem(self, instance: Any) -> str | None:
        """Return what is wrong with a JSON value, or None; nothing of the value is shown.

        The text names the place, the keyword of the schema, and what the keyword requires.
        """
        from jsonschema_rs import ValidationError  # loaded already, by `_compiled`

        try:
            validator = self._linear or self._backtracking_for(instance)
            if validator.is_valid(instance):
                return None
            if not _is_small(instance):
                found = _problem_of_head(validator, instance)
                if found is not None or self._has_costly_errors:
                    return found or "the value does not fit; it is too large to say where"
            # Raises the first error. `iter_errors` makes all of them before it yields one.
            validator.validate(instance)
        except ValidationError as error:
            return _sentence(error)
        except (TypeError, ValueError, RecursionError):
            pass
        return "the value cannot be checked: it is nested too deeply, or is not JSON"

    def _backtracking_for(self, instance: Any) -> Any:
        assert self._backtracking is not None
        return self._backtracking.validator(instance)


class _Backtracking:
    """A schema whose patterns need backtracking, compiled for several sizes of values."""

    __slots__ = ("_patterns", "_schema", "_validators")

    def __init__(self, schema: Mapping[str, Any], patterns: int) -> None:
        if not _refuses_beyond_steps():
            raise BadSchema(
                "the schema has a pattern with look-around, which this version of jsonschema-rs "
                "cannot run safely: upgrade it to 0.60"
            )
        self._patterns = patterns
        # A copy, because it is compiled again for values of another size.
        self._schema: Any = decode(encode(schema))
        self._validators: dict[int, Any] = {}
        self._compiled(_VALUE_CHARS[0])

    def validator(self, instance: Any) -> Any:
        """Return the validator for values of this size."""
        chars = _chars(instance)
        bound = next((each for each in _VALUE_CHARS if chars <= each), _VALUE_CHARS[-1])
        return self._validators.get(bound) or self._compiled(bound)

    def _compiled(self, chars: int) -> Any:
        steps = max(_LEAST_STEPS, _MAX_STEPS_TIMES_CHARS // (chars * self._patterns))
        found = self._validators[chars] = _compiled(self._schema, _backtracking(steps))
        return found


def _chars(instance: Any) -> int:
    """Return how many characters the texts of a value have, the names of members included."""
    total = 0
    waiting = [instance]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            total += len(value)
        elif isinstance(value, dict):
            waiting += value
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
    return total


def _problem_of_head(validator: Any, instance: Any) -> str | None:
    """Return what is wrong with the beginning of a large value, or None.

    An error copies the part of the value that it is about, which takes up to 0.1 s per MiB.
    """
    from jsonschema_rs import ValidationError

    try:
        validator.validate(_head(instance, [_MAX_PARTS_EXPLAINED]))
    except ValidationError as error:
        keyword = str(error.schema_path[-1]) if error.schema_path else ""
        # Others may complain of what was left out.
        return _sentence(error) if keyword in _ABOUT_ONE_PART else None
    return None


class _SchemaWalk:
    """One walk through a schema: its subschemas and their references."""

    def __init__(self, schema: Any) -> None:
        if not isinstance(schema, dict):
            raise BadSchema("a JSON Schema is an object")
        try:
            size = len(encode(schema))
        except (TypeError, ValueError, RecursionError):
            raise BadSchema("the schema is not JSON, or contains itself") from None
        if size > _MAX_SCHEMA_BYTES:
            raise BadSchema(f"the schema has {size} bytes; the limit is {_MAX_SCHEMA_BYTES}")
        self._root = schema
        # By identity: equal subschemas at two places are two.
        self._targets: dict[int, list[Any]] = {}
        self._parts: dict[int, list[Any]] = {}
        self._by_address: dict[str, Any] = {"": schema}
        self._references: list[tuple[dict[str, Any], str, str]] = []
        self._alternatives: list[Any] = []
        self._seen = 0
        self.patterns: set[str] = set()
        # Whether the number of errors in one error grows with the value.
        self.has_costly_errors = False
        _bound_depth(schema)
        self._look(schema, "")

    def finish(self) -> None:
        """Resolve all references.

        Raises:
            BadSchema: one leads outside, or the total is too large.
        """
        while self._references:
            holder, base, reference = self._references.pop()
            target = self._found(base, reference)
            if isinstance(target, dict):
                self._targets.setdefault(id(holder), []).append(target)
                if id(target) not in self._parts:
                    self._look(target, base)  # not under a keyword that holds schemas
        try:
            self._weigh(self._root, {})
        except RecursionError:
            raise BadSchema("the references of the schema are nested too deeply") from None
        self.has_costly_errors = any(map(_has_costly_errors, self._alternatives))

    def _look(self, schema: dict[str, Any], base: str) -> None:
        waiting: list[tuple[Any, str]] = [(schema, base)]
        while waiting:
            part, base = waiting.pop()
            self._seen += 1
            if self._seen > _MAX_SUBSCHEMAS:
                raise BadSchema(f"the schema has more than {_MAX_SUBSCHEMAS} subschemas")
            if not isinstance(part, dict):
                continue  # true and false are schemas; the validator rejects the rest
            base = self._addressed(part, base)
            self.patterns.update(_patterns(part))
            for keyword in _REFERENCES:
                if isinstance(part.get(keyword), str):
                    self._references.append((part, base, part[keyword]))
            for keyword in _ALTERNATIVES:
                if isinstance(part.get(keyword), list | tuple):
                    self._alternatives += part[keyword]
            inner = self._parts[id(part)] = list(_subschemas(part))
            waiting += [(each, base) for each in inner]

    def _addressed(self, part: dict[str, Any], base: str) -> str:
        """Record the addresses of a subschema, and return the base of its references."""
        _refuse_dialect(part)
        name = part.get("$id")
        # In draft 7 a fragment in `$id` is an anchor.
        if isinstance(name, str) and not name.startswith("#"):
            base = urldefrag(urljoin(base, name) or name).url
            self._by_address[base] = part
        elif isinstance(name, str):
            self._by_address[base + name] = part
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(part.get(keyword), str):
                self._by_address[f"{base}#{part[keyword]}"] = part
        return base

    def _found(self, base: str, reference: str) -> Any:
        """Return the target of a reference, or None if the validator has to find it."""
        address = reference if reference.startswith("#") else urljoin(base, reference) or reference
        document, fragment = urldefrag(base + address if address.startswith("#") else address)
        if document not in self._by_address:
            raise BadSchema(
                f"the schema refers to {quoted(reference)}, which is not in it: nothing is "
                f"fetched, so put it under $defs"
            )
        start = self._by_address[document]
        if not fragment:
            return start
        if not fragment.startswith("/"):
            return self._by_address.get(f"{document}#{fragment}")
        return _pointed(start, fragment)

    def _weigh(self, part: Any, weights: dict[int, int]) -> int:
        """Return how many subschemas a part has with its references followed."""
        if not isinstance(part, dict):
            return 1
        known = weights.get(id(part))
        if known is not None:
            return known
        weights[id(part)] = 0  # a cycle is followed per level of a value, not here
        inner = [*self._parts.get(id(part), ()), *self._targets.get(id(part), ())]
        total = 1 + sum(self._weigh(each, weights) for each in inner)
        if total > _MAX_EXPANDED:
            raise BadSchema(
                f"the schema has more than {_MAX_EXPANDED} subschemas with its references followed"
            )
        weights[id(part)] = total
        return total


def _bound_depth(schema: Any) -> None:
    waiting: list[tuple[Any, int]] = [(schema, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise BadSchema(f"the schema is nested more than {_MAX_DEPTH} deep")
        if isinstance(value, dict):
            waiting += [(each, depth + 1) for each in value.values()]
        elif isinstance(value, list | tuple):
            waiting += [(each, depth + 1) for each in value]


def _has_costly_errors(alternative: Any) -> bool:
    """Return True if an alternative applies a schema to any number of items or members."""
    waiting = [alternative]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        if any(part[keyword] is not False for keyword in _APPLIED_TO_EACH & part.keys()):
            return True
        waiting += _subschemas(part)
    return False


def _is_small(instance: Any) -> bool:
    """Return True if a value has few enough parts for all its errors."""
    left = _MAX_PARTS_EXPLAINED
    waiting = [instance]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list | tuple):
            left -= len(value)
            if left < 0:
                return False
            waiting += value.values() if isinstance(value, dict) else value
    return True


def _head(value: Any, left: list[int]) -> Any:
    """Return a copy of a value with its first parts, so many in all."""
    if not isinstance(value, dict | list | tuple):
        return value
    # Half of what is left for each container, so that those behind it have some.
    first = max(1, left[0] // 2)
    left[0] -= min(first, len(value))
    if left[0] <= 0:
        return {} if isinstance(value, dict) else []
    if isinstance(value, dict):
        return {name: _head(each, left) for name, each in islice(value.items(), first)}
    return [_head(each, left) for each in islice(value, first)]


def _refuse_dialect(part: dict[str, Any]) -> None:
    dialect = part.get("$schema")
    if isinstance(dialect, str) and dialect.removesuffix("#") not in _DIALECTS:
        raise BadSchema(
            f"the schema is in the dialect {quoted(dialect)}; supported are {', '.join(_DIALECTS)}"
        )


def _patterns(part: dict[str, Any]) -> Iterator[str]:
    pattern, by_name = part.get("pattern"), part.get("patternProperties")
    if isinstance(pattern, str):
        yield pattern
    if isinstance(by_name, dict):
        yield from (each for each in by_name if isinstance(each, str))


def _subschemas(part: dict[str, Any]) -> Iterator[Any]:
    for keyword, value in part.items():
        if isinstance(value, dict) and keyword in _BY_NAME:
            # `dependencies` may also hold lists of names.
            yield from (each for each in value.values() if isinstance(each, dict | bool))
        elif isinstance(value, list | tuple) and keyword in _SEVERAL:
            yield from value
        elif keyword in _ONE and isinstance(value, dict | bool):
            yield value


def _pointed(value: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def _linear() -> Any:
    """Return the engine without backtracking: a pattern takes linear time, or is an error."""
    return _jsonschema_rs().RegexOptions()


def _backtracking(steps: int) -> Any:
    return _jsonschema_rs().FancyRegexOptions(backtrack_limit=steps)


def _is_linear(pattern: str) -> bool:
    try:
        _compiled({"pattern": pattern}, _linear())
    except BadSchema:
        return False
    return True


@cache
def _refuses_beyond_steps() -> bool:
    """Return True if a text that takes too many steps is refused where a mismatch is required."""
    schema = {"not": {"pattern": "(?:a|b|ab)*(?=c)d"}}
    return not _compiled(schema, _backtracking(10)).is_valid("a" * 100)


def _jsonschema_rs() -> Any:
    try:
        import jsonschema_rs
    except ImportError:
        raise ImportError(
            f"checking a JSON Schema needs jsonschema-rs: {install_command('schema')}"
        ) from None
    return jsonschema_rs


def _compiled(schema: Any, patterns: Any) -> Any:
    jsonschema_rs = _jsonschema_rs()
    try:
        return jsonschema_rs.validator_for(
            schema,
            pattern_options=patterns,
            retriever=_nothing_outside,
            validate_formats=False,
        )
    except jsonschema_rs.ValidationError as error:
        place = "/".join(map(str, error.instance_path))
        raise BadSchema(
            f"the schema is not a valid JSON Schema: {error.message[:200]}"
            + (f" (at {place})" if place else "")
        ) from None
    except (jsonschema_rs.ReferencingError, TypeError, ValueError) as error:
        raise BadSchema(f"the schema is not a valid JSON Schema: {str(error)[:200]}") from None


def _nothing_outside(address: str) -> Any:
    raise LookupError("nothing is fetched")  # references were checked above: a second lock


def _sentence(error: Any) -> str:
    # The last step is the keyword; for the schema `false`, its parent.
    keyword = str(error.schema_path[-1]) if error.schema_path else "false"
    place = _place(error.instance_path)
    wanted = _wanted(keyword, error.kind)
    where = f'"{place}"' if place else "the value"
    if type(error.kind).__name__ in _TOO_MANY_STEPS:
        return f"{where} takes too many steps to match with its pattern: use a shorter text"
    return f'{where} breaks "{keyword}"' + (f": {wanted}" if wanted else "")


def _place(path: Any) -> str:
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + quoted(step)[1:-1]
    return text


_TOO_MANY_STEPS: Final = ("BacktrackLimitExceeded", "RegexEngineFailure")
_LIMITS: Final = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} members",
    "maxProperties": "at most {} members",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
}
# Keywords that a part of a value breaks or not, whatever is beside it.
_ABOUT_ONE_PART: Final = frozenset(
    {*_LIMITS, "type", "enum", "const", "pattern", "additionalProperties"}
) - {"minItems", "maxItems", "minProperties", "maxProperties"}
_NAMES_SHOWN: Final = 5


def _wanted(keyword: str, facts: Any) -> str:
    """Return what a keyword requires, from the schema and not from the value."""
    if keyword == "type":
        return f"expected {' or '.join(map(str, getattr(facts, 'types', ())))}"
    if keyword == "required":
        return f"{quoted(str(getattr(facts, 'property', '')))} is missing"
    if keyword in ("additionalProperties", "unevaluatedProperties"):
        names = islice(getattr(facts, "unexpected", ()), _NAMES_SHOWN)
        return f"unexpected {', '.join(quoted(str(each)) for each in names)}"
    if keyword in ("enum", "const"):
        return "not one of the allowed values" if keyword == "enum" else "not the one allowed value"
    if keyword == "pattern":
        return "it does not match the pattern"
    limit = getattr(facts, "multiple_of" if keyword == "multipleOf" else "limit", None)
    if keyword in _LIMITS and isinstance(limit, int | float):
        return f"expected {_LIMITS[keyword].format(limit)}"
    return ""

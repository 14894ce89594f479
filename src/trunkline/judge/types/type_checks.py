"""Compiles the types of a revision to checks of JSON values.

    judge_type({"name": "add", "inputSchema": {}}, "Tool", "2025-11-25")

The rows of a type become closures on first use and are cached. One pass over a value reports
every fault with its place.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from ...spec.mcp.capabilities import CAPABILITIES
from ...spec.revisions import LATEST
from ...spec.types import Expr, FieldView, TypeView, need, parse, types
from ..finding import Finding
from . import checks
from .checks import Check, ObjectFacts
from .collector import Path, Sink
from .hints import constants_elsewhere
from .prose_checks import EXTRAS, is_capabilities, side_of
from .unions import Option, union

__all__ = ["compiled", "judge_type"]

_PRIMITIVES: Final[dict[str, Check]] = {
    "any": checks.anything,
    "boolean": checks.boolean,
    "integer": checks.integer,
    "null": checks.null,
    "number": checks.number,
    "string": checks.string,
}
# Every parsed value is one of these, so there is nothing to check; the only recursive type.
_ANY_JSON: Final = "JSONValue"
# JSON Schemas: their keywords belong to another specification.
_FREE: Final = frozenset(("Tool.inputSchema", "Tool.outputSchema"))
# Members that mark the type of a whole message, whose envelope the codec checks.
_ENVELOPED: Final = ("method", "result", "error")
_ENVELOPE: Final = frozenset(("jsonrpc", "id"))


def judge_type(value: Any, type: str, revision: str = LATEST) -> list[Finding]:
    """Return the findings about `value`, parsed JSON, as a value of `type`.

    A type is a name of the specification or a type expression such as `list<Tool>`. A value
    that the official schema file accepts and our narrower rows do not is a warning here;
    `judge` follows the prose and reports an error.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
        UnknownType: `revision` has no such type; the text lists the revisions that have it.
        ValueError: `type` is not a type expression.
    """
    sink = Sink(revision, by_file=True)
    compiled(type, revision)(value, None, sink)
    return sink.findings()


# More than the methods, results and types of all revisions together; bounded, since callers
# may invent expressions.
@lru_cache(maxsize=2048)
def compiled(expression: str, revision: str) -> Check:
    """Return the check of a type expression, cached.

    Raises:
        UnknownRevision, UnknownType, ValueError: as `judge_type`.
    """
    types(revision)
    return _expr(parse(expression), revision)


def _expr(expr: Expr, revision: str) -> Check:
    if expr.kind == "primitive":
        return _PRIMITIVES[expr.name]
    if expr.kind == "name":
        return _named(expr.name, revision)
    if expr.kind == "constant":
        return checks.constants((_constant(expr),), lambda _: "")
    if expr.kind == "list":
        return checks.items(_expr(expr.of[0], revision))
    if expr.kind == "map":
        return checks.members(_expr(expr.of[0], revision))
    return _union(expr, "", revision)


@lru_cache(maxsize=2048)
def _named(name: str, revision: str) -> Check:
    if name == _ANY_JSON:
        return checks.anything
    view = need(name, revision)
    fields: dict[str, Check] = {}
    if view.kind == "object":
        fields = {field.name: _field(field, revision) for field in view.fields.values()}
        check = checks.objects(_facts(view, fields, revision))
    else:
        check = _union(view.expr, name, revision)
    check = checks.limited(check, view.limits)
    extra = EXTRAS.get(name)
    return checks.both(check, extra(revision, fields, compiled)) if extra else check


def _field(field: FieldView, revision: str) -> Check:
    return checks.limited(_expr(field.expr, revision), field.limits)


def _facts(view: TypeView, fields: dict[str, Check], revision: str) -> ObjectFacts:
    is_message = any(name in view.fields and view.fields[name].required for name in _ENVELOPED)
    facts = ObjectFacts(
        view.name,
        fields,
        tuple(field.name for field in view.fields.values() if field.required),
        view.open is True or view.name in _FREE,
        _ENVELOPE if is_message else frozenset(),
    )
    if not is_capabilities(view.name):
        return facts
    # Names of the other side get a finding of their own.
    others = {row.name for row in CAPABILITIES if "." not in row.name and row.when.holds(revision)}
    for name in others - set(fields) if "." not in view.name else ():
        fields[name] = _wrong_side(name, revision)
    return facts._replace(unknown="mcp.capability.unknown")


def _wrong_side(name: str, revision: str) -> Check:
    sides = " or ".join(sorted(side_of(name, revision)))

    def check(value: Any, path: Path, sink: Sink) -> None:
        expected = f"{name!r} as a capability of the {sides} only"
        sink.report("mcp.capability.wrong-side", path, value, expected)

    return check


# -- unions ----------------------------------------------------------------------------------


def _union(expr: Expr, name: str, revision: str) -> Check:
    if expr.kind != "union":
        return _expr(expr, revision)
    if all(member.kind == "constant" for member in expr.of):

        def elsewhere(value: Any) -> str:
            is_short = isinstance(value, str) and len(value) <= 64 and bool(name)
            return constants_elsewhere(name, value, revision) if is_short else ""

        return checks.constants([_constant(member) for member in expr.of], elsewhere)
    options = [option for member in expr.of for option in _options(member, revision)]
    return union(options, name or " or ".join(option.name for option in options))


def _options(expr: Expr, revision: str) -> list[Option]:
    # Nested unions are flattened.
    if expr.kind == "union":
        return [option for member in expr.of for option in _options(member, revision)]
    if expr.kind != "name" or expr.name == _ANY_JSON:
        called = expr.name or ("an array" if expr.kind == "list" else "an object")
        return [Option(called, _kinds(expr), _expr(expr, revision))]
    view = need(expr.name, revision)
    if view.kind == "object":
        return [_object_option(view, revision)]
    if view.kind == "enum":
        return [Option(view.name, frozenset(("string",)), _named(view.name, revision))]
    return _options(view.expr, revision)


def _object_option(view: TypeView, revision: str) -> Option:
    tags, ours = _tags(view)
    required = frozenset(field.name for field in view.fields.values() if field.required)
    check, kinds = _named(view.name, revision), frozenset(("object",))
    return Option(view.name, kinds, check, tags, ours, required, frozenset(view.fields))


_KINDS: Final = {
    "any": ("object", "array", "string", "integer", "number", "boolean", "null"),
    "number": ("integer", "number"),
}


def _kinds(expr: Expr) -> frozenset[str]:
    # The JSON types of an expression that is not an object type.
    if expr.kind == "primitive":
        return frozenset(_KINDS.get(expr.name, (expr.name,)))
    if expr.kind == "constant":
        return frozenset(("string" if isinstance(expr.value, str) else "integer",))
    if expr.kind == "name":
        return frozenset(_KINDS["any"])
    return frozenset(("array" if expr.kind == "list" else "object",))


def _tags(view: TypeView) -> tuple[dict[str, tuple[str | None, ...]], frozenset[str]]:
    # The members of a type that are constants, and those where the file is wider than our row.
    tags: dict[str, tuple[str | None, ...]] = {}
    for field in view.fields.values():
        expr = field.expr
        members = expr.of if expr.kind == "union" else (expr,)
        values = [member.value for member in members if member.kind == "constant"]
        texts = tuple(value for value in values if isinstance(value, str))
        if texts and len(texts) == len(members):
            tags[field.name] = texts if field.required else (*texts, None)
    return tags, frozenset(name for name in tags if view.fields[name].departs)


def _constant(expr: Expr) -> str | int:
    if expr.value is None:
        raise ValueError(f"{expr!r} is not a constant")
    return expr.value

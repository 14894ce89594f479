"""Generates a JSON Schema document for any type of any revision from its rows.

The document is self-contained: referenced types are under `$defs`. A type without a name of its
own (`Tool.inputSchema`) is inlined, as in the official files; so every name under `$defs` is a
name of the specification.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from ..revisions import LATEST
from ..types import Expr, FieldView, TypeView, need

__all__ = ["DIALECT", "json_schema"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Schema: TypeAlias = dict[str, Any]


def json_schema(type_name: str, revision: str = LATEST) -> Schema:
    """Return a JSON Schema (2020-12) of a type. The caller may change it.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
        UnknownType: `revision` has no such type.
    """
    return _SchemaBuilder(revision).of(type_name)


class _SchemaBuilder:
    def __init__(self, revision: str) -> None:
        self._revision = revision
        self._definitions: dict[str, Schema] = {}
        self._waiting: list[str] = []

    def of(self, name: str) -> Schema:
        document = {"$schema": DIALECT, "title": name, **self._type(need(name, self._revision))}
        while self._waiting:
            waiting = self._waiting.pop()
            self._definitions[waiting] = self._type(need(waiting, self._revision))
        if self._definitions:
            document["$defs"] = dict(sorted(self._definitions.items()))
        return document

    def _type(self, view: TypeView) -> Schema:
        schema = self._object(view) if view.kind == "object" else self._expr(view.expr)
        described = {"description": view.doc} if view.doc else {}
        return {**described, **schema, **dict(view.limits)}

    def _object(self, view: TypeView) -> Schema:
        schema: Schema = {"type": "object"}
        if view.fields:
            schema["properties"] = {f.name: self._field(f) for f in view.fields.values()}
        required = [field.name for field in view.fields.values() if field.required]
        if required:
            schema["required"] = required
        if view.open is not None:
            schema["additionalProperties"] = view.open
        return schema

    def _field(self, field: FieldView) -> Schema:
        return {**self._expr(field.expr), **dict(field.limits)}

    def _expr(self, expr: Expr) -> Schema:
        if expr.kind == "primitive":
            return {} if expr.name == "any" else {"type": expr.name}
        if expr.kind == "constant":
            return {"const": expr.value}
        if expr.kind == "list":
            return {"type": "array", "items": self._expr(expr.of[0])}
        if expr.kind == "map":
            return {"type": "object", "additionalProperties": self._expr(expr.of[0])}
        return self._union(expr.of) if expr.kind == "union" else self._named(expr.name)

    def _union(self, members: Iterable[Expr]) -> Schema:
        if all(member.kind == "constant" for member in members):
            return {"enum": [member.value for member in members]}
        return {"anyOf": [self._expr(member) for member in members]}

    def _named(self, name: str) -> Schema:
        if "." in name:
            return self._type(need(name, self._revision))
        if name not in self._definitions:
            # Reserved now, so that a recursive type is built once.
            self._definitions[name] = {}
            self._waiting.append(name)
        return {"$ref": f"#/$defs/{name}"}

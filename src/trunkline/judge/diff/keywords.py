"""Turns the keywords of one schema into cases, as its draft defines them.

A keyword that is malformed, or that the draft does not have, is not ignored, because validators
differ about it: it becomes an opaque condition. So do `not`, `if` and patternProperties, which
are not analysed. References and combinations of schemas are resolved in `normalize.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from .normal_form import (
    ANYTHING,
    TYPES,
    ArrayItems,
    Bound,
    Case,
    CasesByType,
    ObjectMembers,
    says_nothing,
    tighter,
)
from .schema_document import LATEST, Opaque, SchemaDocument, key_of, type_of

__all__ = ["listed_values", "own_shape"]

# A longer enum is compared as a whole.
_MAX_ENUM_VALUES: Final = 10_000


def own_shape(schema: dict[str, Any], document: SchemaDocument) -> CasesByType:
    """Return the cases of a schema, without its references and combinations."""
    return _KeywordReader(schema, document).shape()


def listed_values(schema: Any, document: SchemaDocument) -> frozenset[bytes]:
    """Return the keys of the values in `const` or `enum`; empty if others may be accepted."""
    if not isinstance(schema, dict) or not schema.keys() & {"const", "enum"}:
        return frozenset()
    if ("$ref" in schema and document.ignores_siblings) or _may_be_null(schema):
        return frozenset()
    if id(schema) not in document.listed:
        document.listed[id(schema)] = frozenset(_KeywordReader(schema, document).values() or ())
    return document.listed[id(schema)]


def _may_be_null(schema: dict[str, Any]) -> bool:
    return "type" in schema and schema.get("nullable", False) is not False


# Forms


def _is_number(said: Any) -> bool:
    # isfinite fails for huge integers.
    return (isinstance(said, int) and not isinstance(said, bool)) or (
        isinstance(said, float) and isfinite(said)
    )


def _is_positive(said: Any) -> bool:
    return _is_number(said) and said > 0


def _is_count(said: Any) -> bool:
    return _is_number(said) and said >= 0 and said == said // 1


def _is_text(said: Any) -> bool:
    return isinstance(said, str)


def _is_flag(said: Any) -> bool:
    return isinstance(said, bool)


def _is_schema(said: Any) -> bool:
    return isinstance(said, bool | dict)


def _is_object(said: Any) -> bool:
    return isinstance(said, dict)


def _is_list(said: Any) -> bool:
    return isinstance(said, list)


def _is_any(said: Any) -> bool:
    return True


def _is_schema_or_list(said: Any) -> bool:
    return isinstance(said, bool | dict | list)


def _are_values(said: Any) -> bool:
    return isinstance(said, list) and len(said) <= _MAX_ENUM_VALUES


def _are_names(said: Any) -> bool:
    return isinstance(said, list) and all(isinstance(name, str) for name in said)


def _are_types(said: Any) -> bool:
    names = [said] if isinstance(said, str) else said
    return bool(names) and _are_names(names) and {*TYPES, "integer"}.issuperset(names)


class _KeywordForm(NamedTuple):
    """The form of a keyword's value, and the drafts in which it applies."""

    fits: Callable[[Any], bool]
    since: int = 4
    until: int = LATEST


_Forms: TypeAlias = tuple[_KeywordForm, ...]
_COUNT: Final[_Forms] = (_KeywordForm(_is_count),)
_NUMBER: Final[_Forms] = (_KeywordForm(_is_number),)
_LIMIT: Final[_Forms] = (_KeywordForm(_is_flag, until=4), _KeywordForm(_is_number, since=6))

_FORMS: Final[dict[str, _Forms]] = {
    "type": (_KeywordForm(_are_types),),
    "enum": (_KeywordForm(_are_values),),
    "const": (_KeywordForm(_is_any, since=6),),
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _LIMIT,
    "exclusiveMaximum": _LIMIT,
    "multipleOf": (_KeywordForm(_is_positive),),
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": (_KeywordForm(_is_text),),
    "format": (_KeywordForm(_is_text),),
    "contentEncoding": (_KeywordForm(_is_text, since=7),),
    "contentMediaType": (_KeywordForm(_is_text, since=7),),
    "items": (_KeywordForm(_is_schema_or_list, until=2019), _KeywordForm(_is_schema, since=2020)),
    "additionalItems": (_KeywordForm(_is_schema, until=2019),),
    "prefixItems": (_KeywordForm(_is_list, since=2020),),
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": (_KeywordForm(_is_flag),),
    "properties": (_KeywordForm(_is_object),),
    "patternProperties": (_KeywordForm(_is_object),),
    "additionalProperties": (_KeywordForm(_is_schema),),
    "required": (_KeywordForm(_are_names),),
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
}


class _KeywordReader:
    def __init__(self, schema: dict[str, Any], document: SchemaDocument) -> None:
        self._schema = schema
        self._document = document
        # Keywords that are understood, and those that are malformed or of another draft.
        self._read: dict[str, Any] = {}
        self._odd: list[str] = []
        for keyword, said in schema.items():
            if keyword in _FORMS:
                if self._fits(keyword, said):
                    self._read[keyword] = said
                else:
                    self._odd.append(keyword)

    def _fits(self, keyword: str, said: Any) -> bool:
        draft = self._document.draft
        return any(
            form.since <= draft <= form.until and form.fits(said) for form in _FORMS[keyword]
        )

    def shape(self) -> CasesByType:
        listed = self.values()
        shape: CasesByType = {}
        for name in self._types():
            case = _MAKERS[name](self)
            if listed is not None:
                values = {key: each for key, each in listed.items() if type_of(each) == name}
                case = replace(case, values=values)
            shape[name] = (case,)
        if _may_be_null(self._schema) and "null" not in shape:
            # A keyword of OpenAPI, not of JSON Schema: validators differ about null.
            shape["null"] = (Case(values={b"null": None}, opaque=self._group("nullable")),)
        odd = self._everywhere()
        if not odd:
            return shape
        return {
            name: tuple(replace(case, opaque=case.opaque | odd) for case in cases)
            for name, cases in shape.items()
        }

    # Opaque conditions

    def _group(self, *keywords: str) -> frozenset[Opaque]:
        # Keywords that depend on each other are one condition.
        if keywords[0] not in self._schema:
            return frozenset()
        return frozenset((self._opaque(keywords[0], *keywords),))

    def _opaque(self, called: str, *keywords: str) -> Opaque:
        said = {name: self._schema[name] for name in keywords if name in self._schema}
        return self._document.opaque(called, said)

    def _everywhere(self) -> frozenset[Opaque]:
        found = self._group("not") | self._group("if", "then", "else")
        found |= self._group("$dynamicRef") | self._group("$recursiveRef")
        return found.union(*(self._group(keyword) for keyword in self._odd))

    def _whole(self, keyword: str) -> frozenset[Opaque]:
        # A condition that depends on all other keywords of the schema.
        if keyword not in self._schema or says_nothing(self._schema[keyword]):
            return frozenset()
        return frozenset((self._document.opaque(keyword, self._schema),))

    # Keywords that are understood

    def _type_names(self) -> list[str]:
        given = self._read.get("type", [])
        return [given] if isinstance(given, str) else given

    def _types(self) -> Iterator[str]:
        names = self._type_names() or TYPES
        for name in TYPES:
            if name in names or (name == "number" and "integer" in names):
                yield name

    def values(self) -> dict[bytes, Any] | None:
        # By their keys; None if there is neither const nor enum.
        values: dict[bytes, Any] | None = None
        if "enum" in self._read:
            values = {key_of(each): each for each in self._read["enum"]}
        if "const" in self._read:
            key = key_of(self._read["const"])
            return {key: self._read["const"]} if values is None or key in values else {}
        return values

    def scalar(self) -> Case:
        return ANYTHING

    def _sizes(self, kind: str) -> dict[str, Any]:
        most = self._read.get(f"max{kind}")
        return {
            "least": int(self._read.get(f"min{kind}", 0)),
            "most": None if most is None else int(most),
        }

    def _bound(self, plain: str, exclusive: str, sign: int) -> Bound | None:
        value, beyond = self._read.get(plain), self._read.get(exclusive)
        if isinstance(beyond, bool):  # the form of draft 4
            return None if value is None else Bound(value, beyond)
        inner = None if value is None else Bound(value, False)
        outer = None if beyond is None else Bound(beyond, True)
        return tighter(inner, outer, sign)

    def number(self) -> Case:
        names = self._type_names()
        is_integer = "integer" in names and "number" not in names
        # In draft 4 1.0 is not an integer.
        is_strict = is_integer and self._document.draft == 4
        multiple = self._read.get("multipleOf")
        return Case(
            is_integer=is_integer,
            low=self._bound("minimum", "exclusiveMinimum", 1),
            high=self._bound("maximum", "exclusiveMaximum", -1),
            multiples=frozenset() if multiple is None else frozenset((multiple,)),
            formats=self._texts("format"),
            opaque=frozenset((("integer", b"draft 4"),)) if is_strict else frozenset(),
        )

    def _texts(self, *keywords: str) -> frozenset[str]:
        return frozenset(
            self._read[keyword]
            if keyword in ("format", "pattern")
            else f"{keyword} {self._read[keyword]}"
            for keyword in keywords
            if keyword in self._read
        )

    def string(self) -> Case:
        return Case(
            patterns=self._texts("pattern"),
            formats=self._texts("format", "contentEncoding", "contentMediaType"),
            **self._sizes("Length"),
        )

    def array(self) -> Case:
        first, rest = self._read.get("prefixItems", []), self._read.get("items", True)
        if isinstance(rest, list):  # up to draft 2019-09
            first, rest = rest, self._read.get("additionalItems", True)
        opaque = self._group("contains", "minContains", "maxContains")
        opaque |= self._whole("unevaluatedItems")
        if "prefixItems" in self._odd and self._document.draft == LATEST:
            # The meaning of `items` depends on it.
            opaque |= self._group("prefixItems", "items")
            first, rest = [], True
        row = ArrayItems(tuple(first), rest, self._document)
        return Case(
            is_unique=self._read.get("uniqueItems", False),
            rows=() if not first and says_nothing(rest) else (row,),
            opaque=opaque,
            **self._sizes("Items"),
        )

    def object(self) -> Case:
        opaque = self._whole("unevaluatedProperties")
        for keyword in ("propertyNames", "dependentRequired", "dependentSchemas", "dependencies"):
            opaque |= self._group(keyword)
        part, beside = self._part()
        says_no_more = part.properties is None and not part.has_patterns
        return Case(
            required=frozenset(self._read.get("required", ())),
            parts=() if says_no_more and says_nothing(part.additional) else (part,),
            opaque=opaque | beside | self._required_of_members(),
            **self._sizes("Properties"),
        )

    def _part(self) -> tuple[ObjectMembers, frozenset[Opaque]]:
        properties = self._read.get("properties")
        additional = self._read.get("additionalProperties", True)
        names = ("properties", "patternProperties", "additionalProperties")
        for keyword in names[:2]:
            if keyword in self._odd:  # which members are additional depends on it
                part = ObjectMembers(properties, True, True, self._document)
                return part, frozenset((self._opaque(keyword, *names),))
        patterns = self._read.get("patternProperties")
        if not patterns:
            return ObjectMembers(properties, additional, False, self._document), frozenset()
        said: list[Any] = [patterns]
        # Which members are additional depends on the names of the others.
        said += [] if says_nothing(additional) else [additional, sorted(properties or ())]
        opaque = frozenset((self._document.opaque("patternProperties", said),))
        return ObjectMembers(properties, True, True, self._document), opaque

    def _required_of_members(self) -> frozenset[Opaque]:
        # `"required": true` inside a member is of draft 3, but still in use.
        members = self._read.get("properties", {})
        names = sorted(
            name
            for name, member in members.items()
            if isinstance(member, dict) and member.get("required", False) is True
        )
        return frozenset((self._document.opaque("required", names),)) if names else frozenset()


_MAKERS: Final[dict[str, Callable[[_KeywordReader], Case]]] = {
    "null": _KeywordReader.scalar,
    "boolean": _KeywordReader.scalar,
    "number": _KeywordReader.number,
    "string": _KeywordReader.string,
    "array": _KeywordReader.array,
    "object": _KeywordReader.object,
}

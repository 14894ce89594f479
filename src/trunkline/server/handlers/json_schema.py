"""JSON Schema of Python types.

The dialect is 2020-12. Types come from `msgspec.inspect`, so schema and decoder agree.

The rules that live here, and only here:

* A schema has what an author wrote: titles are not made from names.
* A class that is used once is written inline; one that is used twice, or contains itself, is
  under `$defs`. The root is always inline, for revisions that require its `type` to be "object"
  and for clients that do not follow `$ref`.
* A definition has the name of its class, and a number after it if another class has that name.
  Definitions that pydantic writes are shared with those of other types if they are the same.
* Input and output differ: a date and time without a zone is accepted, so an input schema asks
  for the format "date-time", while an output schema does not promise it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, get_type_hints

import msgspec.inspect as kinds
from msgspec import NODEFAULT, to_builtins

from .custom_types import Adapted, custom_schema, write_custom
from .docstrings import read
from .pydantic_models import (
    PydanticReader,
    is_model,
    is_validated,
    schema_of_model,
    schema_of_validated,
)

__all__ = ["NOTHING", "check", "default_shown", "object_schema", "schema_of"]

Schema = dict[str, Any]

# A default that is not shown; None is a default.
NOTHING: Final[Any] = NODEFAULT

_CLASSES: Final = (
    kinds.StructType,
    kinds.DataclassType,
    kinds.TypedDictType,
    kinds.NamedTupleType,
)
# Types that can be the key of an object.
_KEYS: Final = (
    kinds.AnyType,
    kinds.StrType,
    kinds.IntType,
    kinds.FloatType,
    kinds.EnumType,
    kinds.LiteralType,
    kinds.UUIDType,
    kinds.DateType,
    kinds.DateTimeType,
    kinds.TimeType,
    kinds.TimeDeltaType,
    kinds.DecimalType,
    kinds.BytesType,
    kinds.UnionType,
)
_JSON_NAMES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    type(None): "null",
}


def check(types: Iterable[Any]) -> bool:
    """Return True if the decoder needs a hook for `types`.

    Raises:
        TypeError: it cannot decode them; the text is the reason alone.
    """
    try:
        found = kinds.multi_type_info(types)
    except TypeError as error:
        raise TypeError(_reason(str(error))) from None
    except NameError as error:
        raise TypeError(f'a class in it names "{error.name}", which is not known') from None
    seen: set[Any] = set()
    hooked = False
    waiting = list(found)
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, kinds.CustomType):
            if not _is_custom(kind.cls):
                raise TypeError(
                    f"values of {_named(kind.cls)} cannot be decoded from JSON: use a dataclass, a "
                    f"Struct, a TypedDict or a plain type"
                )
            hooked = True
        elif isinstance(kind, kinds.ExtType | kinds.RawType):
            raise TypeError("it has no meaning in a schema")
        elif isinstance(kind, _CLASSES):
            if kind.cls in seen:
                continue
            seen.add(kind.cls)
        elif isinstance(kind, kinds.DictType) and not isinstance(_inner(kind.key_type), _KEYS):
            raise TypeError("the names of an object's members are texts: use str as the key type")
        waiting += _parts(kind)
    return hooked


def schema_of(type_: Any, *, is_input: bool = False) -> Schema:
    """Return the schema of one type, its root inline."""
    (kind,) = kinds.multi_type_info((type_,))
    writer = _SchemaWriter((kind,), is_input)
    return writer.finished(writer.root(kind))


def object_schema(
    types: Mapping[str, Any],
    required: Iterable[str],
    defaults: Mapping[str, Any],
    descriptions: Mapping[str, str],
    extras: Mapping[str, Schema],
) -> Schema:
    """Return the schema of an object with these members and no others."""
    found = kinds.multi_type_info(types.values())
    writer = _SchemaWriter(found, is_input=True)
    members: dict[str, Schema] = {}
    for name, kind in zip(types, found, strict=True):
        member = writer.write(kind)
        if name in descriptions:
            member.setdefault("description", descriptions[name])
        if name in defaults:
            member["default"] = defaults[name]
        members[name] = member | extras.get(name, {})
    # Some clients read `properties` of every tool, of those without arguments too.
    schema: Schema = {"type": "object", "properties": members}
    needed = list(required)
    if needed:
        schema["required"] = needed
    schema["additionalProperties"] = False
    return writer.finished(schema)


def default_shown(value: Any) -> Any:
    """Return a default as JSON values, or NOTHING if the schema does not show it.

    None is not shown: leaving the argument out means the same, in fewer tokens.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return NOTHING
    try:
        return to_builtins(value, str_keys=True, enc_hook=write_custom)
    except (NotImplementedError, TypeError, ValueError, RecursionError):
        return NOTHING  # an object that JSON cannot express: it is used, and not shown


class _SchemaWriter:
    """Writes the schemas of some types that share their `$defs`."""

    def __init__(self, found: Iterable[kinds.Type], is_input: bool) -> None:
        self._is_input = is_input
        self._met: dict[Any, int] = {}
        self._names: dict[Any, str] = {}
        self._defs: dict[str, Schema] = {}
        # Definitions of pydantic under their names in `_defs`, as pydantic wrote them.
        self._written: dict[str, Schema] = {}
        waiting = list(found)
        while waiting:
            kind: Any = waiting.pop()
            if _has_name(kind):
                times = self._met[kind.cls] = self._met.get(kind.cls, 0) + 1
                if times > 1:
                    continue
            waiting += _parts(kind)

    def finished(self, schema: Schema) -> Schema:
        """Return the root with its `$defs`."""
        if self._defs:
            schema["$defs"] = self._defs
        return schema

    def root(self, kind: kinds.Type) -> Schema:
        """Return a schema inline, even if there is a reference to it as well."""
        said, kind = _said(kind)
        body = self._body(kind)
        if body.keys() == {"$ref"}:  # it contains itself
            body = self._defs[_target(body["$ref"])]
        return {**body, **said}

    def write(self, kind: kinds.Type) -> Schema:
        """Return the schema of a type, or a reference to it."""
        said, inner = _said(kind)
        if _has_name(inner) and self._met[inner.cls] > 1:
            return {"$ref": f"#/$defs/{self._defined(inner)}", **said}
        return {**self._body(inner), **said}

    def _defined(self, kind: Any) -> str:
        name = self._names.get(kind.cls)
        if name is None and isinstance(kind, kinds.CustomType):
            schema = self._of_pydantic(kind.cls)
            found = schema.pop("$defs", {})
            if schema.keys() == {"$ref"}:
                own = _target(schema["$ref"])
            else:
                own = _plain_name(kind.cls)
                while own in found:  # another class of that name
                    own = f"{own}_2"
                found[own] = schema
            name = self._names[kind.cls] = self._defined_by_pydantic(found)[own]
        elif name is None:
            name = self._names[kind.cls] = self._free_name(_plain_name(kind.cls))
            self._defs[name] = {}  # reserves its place in the order of first use
            self._defs[name] = self._body(kind)
        return name

    def _free_name(self, plain: str) -> str:
        name, count = plain, 1
        while name in self._defs:
            count += 1
            name = f"{plain}_{count}"
        return name

    def _defined_by_pydantic(self, found: dict[str, Schema]) -> dict[str, str]:
        """Add definitions of pydantic to `$defs`; return their names there."""
        known = {name for name in found if name in self._defs}
        others = {name for name in known if self._written.get(name) != found[name]}
        # One that refers to a definition with another meaning has another meaning itself.
        while more := {name for name in known - others if others & _targets(found[name])}:
            others |= more
        names: dict[str, str] = {}
        for name in found:
            names[name] = self._free_name(name) if name in others else name
            self._defs.setdefault(names[name], {})
        for name in found.keys() - (known - others):
            self._written[names[name]] = found[name]
            self._defs[names[name]] = _renamed(found[name], names)
        return names

    def _of_pydantic(self, cls: Any) -> Schema:
        if issubclass(cls, Adapted):
            found: Schema = cls.reader.schema(is_input=self._is_input)
            return found
        write = schema_of_model if is_model(cls) else schema_of_validated
        return write(cls, is_input=self._is_input)

    def _body(self, kind: Any) -> Schema:
        write = _BODIES.get(type(kind))
        if write is None:
            raise TypeError(f"{type(kind).__name__} has no schema")
        return write(self, kind)

    # -- one for each kind of type -----------------------------------------------------------

    def _any(self, kind: Any) -> Schema:
        return {}

    def _none(self, kind: Any) -> Schema:
        return {"type": "null"}

    def _bool(self, kind: Any) -> Schema:
        return {"type": "boolean"}

    def _number(self, kind: Any) -> Schema:
        named = "integer" if isinstance(kind, kinds.IntType) else "number"
        return {"type": named, **_limits(kind, _NUMBER_LIMITS)}

    def _str(self, kind: Any) -> Schema:
        return {"type": "string", **_limits(kind, _TEXT_LIMITS)}

    def _bytes(self, kind: Any) -> Schema:
        schema: Schema = {"type": "string", "contentEncoding": "base64"}
        for ours, theirs in (("min_length", "minLength"), ("max_length", "maxLength")):
            length = getattr(kind, ours)
            if length is not None:
                schema[theirs] = 4 * ((length + 2) // 3)
        return schema

    def _moment(self, kind: Any) -> Schema:
        named = "date-time" if isinstance(kind, kinds.DateTimeType) else "time"
        # Without a zone it does not have that format, so output must not promise it.
        return {"type": "string", "format": named} if self._is_input or kind.tz else _TEXT.copy()

    def _formatted(self, kind: Any) -> Schema:
        return {"type": "string", "format": _FORMATS[type(kind)]}

    def _array(self, kind: Any) -> Schema:
        schema: Schema = {"type": "array"}
        if not isinstance(kind.item_type, kinds.AnyType):
            schema["items"] = self.write(kind.item_type)
        schema |= _limits(kind, _ARRAY_LIMITS)
        if isinstance(kind, kinds.SetType | kinds.FrozenSetType):
            schema["uniqueItems"] = True
        return schema

    def _tuple(self, kind: Any) -> Schema:
        items = [self.write(each) for each in kind.item_types]
        return _row(items, len(items))

    def _dict(self, kind: Any) -> Schema:
        schema: Schema = {"type": "object"}
        names = self.write(kind.key_type)
        names.pop("type", None)
        if names and "$ref" not in names:
            schema["propertyNames"] = names
        if not isinstance(kind.value_type, kinds.AnyType):
            schema["additionalProperties"] = self.write(kind.value_type)
        return schema | _limits(kind, _OBJECT_LIMITS)

    def _union(self, kind: Any) -> Schema:
        return {"anyOf": [self.write(each) for each in kind.types]}

    def _literal(self, kind: Any) -> Schema:
        return _one_of(list(kind.values))

    def _enum(self, kind: Any) -> Schema:
        return _one_of([each.value for each in kind.cls]) | _described(kind.cls)

    def _class(self, kind: Any) -> Schema:
        about = _about(kind.cls)
        members: dict[str, Schema] = {}
        required: list[str] = []
        if getattr(kind, "tag_field", None) is not None:
            members[kind.tag_field] = _one_of([kind.tag])
            required.append(kind.tag_field)
        for field in kind.fields:
            member = self.write(field.type)
            if field.name in about:
                member.setdefault("description", about[field.name])
            if field.required:
                required.append(field.encode_name)
            elif field.default is not NODEFAULT:
                shown = default_shown(field.default)
                if shown is not NOTHING:
                    member["default"] = shown
            members[field.encode_name] = member
        if isinstance(kind, kinds.NamedTupleType) or getattr(kind, "array_like", False):
            return _row(list(members.values()), len(required)) | _described(kind.cls)
        schema: Schema = {"type": "object", **_described(kind.cls), "properties": members}
        if required:
            schema["required"] = required
        if getattr(kind, "forbid_unknown_fields", False):
            schema["additionalProperties"] = False
        return schema

    def _custom(self, kind: Any) -> Schema:
        cls = kind.cls
        known = custom_schema(cls)
        if known is not None:
            return known
        reader = cls.reader if issubclass(cls, Adapted) else None
        if reader is not None and not isinstance(reader, PydanticReader):
            found: Schema = reader.schema(lambda type_: self.write(kinds.type_info(type_)))
            return found
        schema = self._of_pydantic(cls)
        names = self._defined_by_pydantic(schema.pop("$defs", {}))
        return {key: _renamed(each, names) for key, each in schema.items()}


_DEFS: Final = "#/$defs/"
# Keywords whose values are values of the type, and not schemas.
_OF_VALUES: Final = ("default", "examples", "example", "const", "enum")


def _plain_name(cls: Any) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", _named(cls)).strip("_") or "Type"


def _target(reference: str) -> str:
    """Return the name of the definition that a reference names."""
    return reference.removeprefix(_DEFS)


def _targets(schema: Any) -> set[str]:
    """Return the names of all definitions that a schema of pydantic refers to."""
    if isinstance(schema, list):
        return {name for each in schema for name in _targets(each)}
    if not isinstance(schema, dict):
        return {_target(schema)} if isinstance(schema, str) and schema.startswith(_DEFS) else set()
    return {
        name for key, each in schema.items() if key not in _OF_VALUES for name in _targets(each)
    }


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    """Return a schema of pydantic with other names of definitions, in discriminators too."""
    if isinstance(schema, list):
        return [_renamed(each, names) for each in schema]
    if isinstance(schema, dict):
        return {
            key: each if key in _OF_VALUES else _renamed(each, names)
            for key, each in schema.items()
        }
    if isinstance(schema, str) and schema.startswith(_DEFS):
        return _DEFS + names.get(_target(schema), _target(schema))
    return schema


def _limits(kind: Any, names: Mapping[str, str]) -> Schema:
    found = {theirs: getattr(kind, ours) for ours, theirs in names.items()}
    return {name: value for name, value in found.items() if value is not None}


def _row(items: list[Schema], least: int) -> Schema:
    """Return the schema of an array with a schema for each place."""
    schema: Schema = {"type": "array", "minItems": least, "maxItems": len(items)}
    return schema | ({"prefixItems": items, "items": False} if items else {})


def _one_of(values: list[Any]) -> Schema:
    named = {_JSON_NAMES[type(value)] for value in values if type(value) in _JSON_NAMES}
    # The type is added for texts or integers alone: `x-mcp-header` needs one.
    return {"type": named.pop(), "enum": values} if len(named) == 1 else {"enum": values}


def _said(kind: kinds.Type) -> tuple[Schema, Any]:
    """Return the metadata of a type, and the type."""
    said: Schema = {}
    while isinstance(kind, kinds.Metadata):
        said = {**(kind.extra_json_schema or {}), **said}
        kind = kind.type
    return said, kind


def _inner(kind: kinds.Type) -> kinds.Type:
    inner: kinds.Type = _said(kind)[1]
    return inner


def _parts(kind: Any) -> list[kinds.Type]:
    if isinstance(kind, kinds.Metadata):
        return [kind.type]
    if isinstance(kind, _CLASSES):
        return [field.type for field in kind.fields]
    if isinstance(kind, kinds.DictType):
        return [kind.key_type, kind.value_type]
    if isinstance(kind, kinds.UnionType):
        return list(kind.types)
    if isinstance(kind, kinds.TupleType):
        return list(kind.item_types)
    if isinstance(kind, kinds.CustomType):
        reader: Any = kind.cls.reader if issubclass(kind.cls, Adapted) else None
        return [*map(kinds.type_info, reader.parts())] if hasattr(reader, "parts") else []
    return [kind.item_type] if hasattr(kind, "item_type") else []


def _is_custom(cls: Any) -> bool:
    """Return True if `read_custom` reads values of a class."""
    return (
        is_model(cls)
        or is_validated(cls)
        or custom_schema(cls) is not None
        or issubclass(cls, Adapted)
    )


def _has_name(kind: Any) -> bool:
    """Return True for a class that is under `$defs` if it is used twice."""
    if isinstance(kind, kinds.CustomType):
        return is_model(kind.cls)
    return isinstance(kind, _CLASSES)


def _named(cls: Any) -> str:
    origin = getattr(cls, "__origin__", None)
    if origin is None:
        return getattr(cls, "__name__", None) or str(cls)
    filled = ", ".join(_named(each) for each in cls.__args__)
    return f"{origin.__name__}[{filled}]"


def _described(cls: Any) -> Schema:
    text = read(_docstring(cls)).text
    return {"description": text} if text else {}


def _docstring(cls: Any) -> str | None:
    cls = getattr(cls, "__origin__", cls)
    found = vars(cls).get("__doc__")
    # A dataclass or named tuple without one has its signature there.
    made = isinstance(found, str) and found.startswith(f"{cls.__name__}(")
    return found if isinstance(found, str) and not made else None


def _about(cls: Any) -> dict[str, str]:
    """Return the descriptions of the fields of a class: in its docstring, or in `Annotated`."""
    cls = getattr(cls, "__origin__", cls)
    about = dict(read(_docstring(cls)).arguments)
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (NameError, TypeError):
        return about  # the decoder needs no more; a description is optional
    for name, hint in hints.items():
        texts = [extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, str)]
        if texts:
            about[name] = texts[-1]
    return about


def _reason(text: str) -> str:
    """Return why a type cannot be decoded, in place of the message of msgspec."""
    said = text.partition(" - type `")[0]
    for begins, reason in _REASONS.items():
        if said.startswith(begins):
            return reason
    return said[:1].lower() + said[1:]


_ALL_OBJECTS: Final = (
    "its types are all objects in JSON and cannot be told apart: use Structs that have tags"
)
_ALL_ARRAYS: Final = "its types are all arrays in JSON and cannot be told apart: keep one of them"
_REASONS: Final = {
    "If a type union contains multiple Struct": (
        "the classes of a union cannot be told apart: give each Struct a tag of its own, as in "
        'class Circle(Struct, tag="circle")'
    ),
    "Type unions may not contain Struct": "its classes cannot be told apart in JSON",
    "Type unions may not contain more than one dict-like": _ALL_OBJECTS,
    "Type unions may not contain more than one dataclass": _ALL_OBJECTS,
    "Type unions may not contain more than one TypedDict": _ALL_OBJECTS,
    "Type unions may not contain more than one array-like": _ALL_ARRAYS,
    "Type unions may not contain more than one NamedTuple": _ALL_ARRAYS,
    "Type unions may not contain more than one str-like": (
        "its types are all strings in JSON and cannot be told apart: keep one of them"
    ),
    "Type unions may not contain more than one int-like": (
        "its types are all integers in JSON and cannot be told apart: keep one of them"
    ),
    "Type unions containing a custom type": (
        "a class of another library cannot be told apart from other types: it may stand alone, "
        "or with None"
    ),
    "Type unions may not contain more than one": (
        "its types look alike in JSON and cannot be told apart: keep one of them"
    ),
    "Enums must contain": "an Enum has either texts or integers as values, not both",
    "Literal may only": "a Literal has only texts, integers, booleans and None in it",
    "Can only set": (
        "a constraint does not suit the type: bounds are for numbers, lengths for texts, arrays "
        "and objects, a pattern for texts"
    ),
    "Multiple `Meta`": "the same constraint is set twice",
    "Integer bounds": "a bound of an integer has to fit in 64 bits",
}
_TEXT: Final[Schema] = {"type": "string"}
_NUMBER_LIMITS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_TEXT_LIMITS: Final = {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}
_ARRAY_LIMITS: Final = {"min_length": "minItems", "max_length": "maxItems"}
_OBJECT_LIMITS: Final = {"min_length": "minProperties", "max_length": "maxProperties"}
_FORMATS: Final[Mapping[type, str]] = {
    kinds.DateType: "date",
    kinds.TimeDeltaType: "duration",
    kinds.UUIDType: "uuid",
    kinds.DecimalType: "decimal",
}
_BODIES: Final[Mapping[type, Callable[[_SchemaWriter, Any], Schema]]] = {
    kinds.AnyType: _SchemaWriter._any,
    kinds.NoneType: _SchemaWriter._none,
    kinds.BoolType: _SchemaWriter._bool,
    kinds.IntType: _SchemaWriter._number,
    kinds.FloatType: _SchemaWriter._number,
    kinds.StrType: _SchemaWriter._str,
    kinds.BytesType: _SchemaWriter._bytes,
    kinds.ByteArrayType: _SchemaWriter._bytes,
    kinds.MemoryViewType: _SchemaWriter._bytes,
    kinds.DateTimeType: _SchemaWriter._moment,
    kinds.TimeType: _SchemaWriter._moment,
    kinds.DateType: _SchemaWriter._formatted,
    kinds.TimeDeltaType: _SchemaWriter._formatted,
    kinds.UUIDType: _SchemaWriter._formatted,
    kinds.DecimalType: _SchemaWriter._formatted,
    kinds.ListType: _SchemaWriter._array,
    kinds.SetType: _SchemaWriter._array,
    kinds.FrozenSetType: _SchemaWriter._array,
    kinds.VarTupleType: _SchemaWriter._array,
    kinds.TupleType: _SchemaWriter._tuple,
    kinds.DictType: _SchemaWriter._dict,
    kinds.UnionType: _SchemaWriter._union,
    kinds.LiteralType: _SchemaWriter._literal,
    kinds.EnumType: _SchemaWriter._enum,
    kinds.StructType: _SchemaWriter._class,
    kinds.DataclassType: _SchemaWriter._class,
    kinds.TypedDictType: _SchemaWriter._class,
    kinds.NamedTupleType: _SchemaWriter._class,
    kinds.CustomType: _SchemaWriter._custom,
}

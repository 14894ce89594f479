"""Unions that the decoder cannot tell apart: `Cat | Dog`, `datetime | str`, `Model | str`.

msgspec decodes a union in one pass, so it takes one class, one kind of text and one kind of
array. For the others a class stands for the annotation (`Adapted`); the decoder hands it decoded
JSON, and its reader tries the types of the union.

The rules that live here, and only here:

* Classes that have a member with a `Literal` of its own (a tag) are told apart by it. With
  `Field(discriminator="kind")` that member has to be sent.
* Other classes are tried if the required members are there: first the one that knows most of the
  members that were sent, and of two that know as many the one written first.
* Other types are tried in the order written, except that the general ones come last: `str` after
  all other texts, `dict` after all classes, `float` after `int`, `Any` after everything.
* A type that refuses an integer because it is written as `5.0` is tried again with integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin

import msgspec.inspect as kinds
from msgspec import DecodeError, convert

from .custom_types import ARRAYS, filler, read_custom
from .error_messages import kind_of, quoted, worded
from .pydantic_models import is_model

__all__ = ["ArrayReader", "UnionReader"]

# More do not help: a reader compares what was sent with the first few.
_ALTERNATIVES_SHOWN: Final = 3
_MEMBERS_SHOWN: Final = 10

# Tried after the others; types that are not listed are tried first.
_LAST: Final[Mapping[Any, int]] = {float: 1, str: 2, dict: 2, Mapping: 2, Any: 3, object: 3}


class _Shape(NamedTuple):
    """The members of a class as they are in JSON."""

    required: frozenset[str]
    known: frozenset[str]
    # By member, the values of its Literal.
    literals: Mapping[str, tuple[Any, ...]]


class ArrayReader:
    """Reads `deque[int]` and other arrays and objects that are custom classes."""

    def __init__(self, annotation: Any) -> None:
        self._type = annotation
        self._form = ARRAYS[get_origin(annotation)][get_args(annotation)]

    def read(self, value: Any) -> Any:
        """Return the value made from decoded JSON."""
        return read_custom(self._type, value)

    def parts(self) -> tuple[Any, ...]:
        """Return the types whose schemas this one consists of."""
        return (self._form,)

    def schema(self, write: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Return the JSON Schema; `write` writes those of its parts."""
        return write(self._form)


class UnionReader:
    """Reads values of a union by trying its types."""

    def __init__(self, members: Iterable[Any], tag: str | None = None) -> None:
        """Prepare to read one of `members`; `tag` is the member that tells classes apart.

        Raises:
            TypeError: a class does not have a Literal in that member, or two have the same.
        """
        self._members = tuple(members)
        self._tag = tag
        # The reader of each type, in the order they are tried, made when the first value comes.
        self._ordered: list[tuple[_Shape | None, Callable[[Any], Any]]] | None = None
        self._tags: tuple[str, dict[Any, int]] | None = None
        if tag is not None:
            self._prepared()
            found: Any = self._tags
            if found is None:
                raise TypeError(
                    f'the discriminator "{tag}" does not tell the classes apart: give it a '
                    f"Literal of its own in each of them"
                )

    def parts(self) -> tuple[Any, ...]:
        """Return the types whose schemas this one consists of."""
        return self._members

    def schema(self, write: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Return the JSON Schema; `write` writes those of its parts."""
        found = {"anyOf": [write(each) for each in self._members]}
        return found if self._tag is None else {**found, "required": [self._tag]}

    def read(self, value: Any) -> Any:
        """Return the value made from decoded JSON.

        Raises:
            ValueError: it fits none of the types.
        """
        ordered = self._prepared()
        tried = self._classes(ordered, value) if isinstance(value, dict) else []
        tried += [read for shape, read in ordered if shape is None]
        faults: dict[str, None] = {}
        for read in tried:
            try:
                return _read(read, value)
            except (DecodeError, ValueError) as error:
                faults[worded(error)] = None
        if not faults:
            raise ValueError(self._no_candidate(ordered, value))
        raise ValueError("; or ".join([*faults][:_ALTERNATIVES_SHOWN]))

    def _classes(
        self, ordered: list[tuple[_Shape | None, Callable[[Any], Any]]], value: dict[str, Any]
    ) -> list[Callable[[Any], Any]]:
        """Return the readers of the classes that an object may be of, the best first."""
        if self._tags is not None:
            name, places = self._tags
            if name in value:
                at = places.get(value[name]) if isinstance(value[name], str | int) else None
                if at is not None:
                    return [ordered[at][1]]
                if all(shape is not None for shape, _ in ordered):
                    allowed = ", ".join(map(str, list(places)[:_MEMBERS_SHOWN]))
                    raise ValueError(f'"{name}": not one of the allowed values ({allowed})')
                return []
            if self._tag is not None:
                raise ValueError(f'"{name}": it is required')
        fitting = [
            (-len(shape.known & value.keys()), place, read)
            for place, (shape, read) in enumerate(ordered)
            if shape is not None and shape.required <= value.keys()
        ]
        return [read for _, _, read in sorted(fitting, key=lambda each: each[:2])]

    def _no_candidate(
        self, ordered: list[tuple[_Shape | None, Callable[[Any], Any]]], value: Any
    ) -> str:
        """Return why an object can be of none of the classes."""
        if not isinstance(value, dict):
            return f"expected an object, got {kind_of(value)}"
        wanted = [
            ", ".join(quoted(name) for name in sorted(shape.required)[:_MEMBERS_SHOWN])
            for shape, _ in ordered
            if shape is not None
        ]
        return f"expected an object with the members {' or '.join(dict.fromkeys(wanted))}"

    def _prepared(self) -> list[tuple[_Shape | None, Callable[[Any], Any]]]:
        if self._ordered is None:
            members = sorted(self._members, key=_rank)
            ordered = [(_shape(each), _reader(each)) for each in members]
            self._tags = _tags([shape for shape, _ in ordered], self._tag)
            self._ordered = ordered
        return self._ordered


def _read(read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except (DecodeError, ValueError) as error:
        # Imported here, because most values are read at once.
        from ...mcp.integers import convert_integers

        return convert_integers(value, read, error)


def _rank(member: Any) -> int:
    while get_origin(member) is Annotated:
        member = member.__origin__
    return _LAST.get(get_origin(member) or member, 0)


def _reader(member: Any) -> Callable[[Any], Any]:
    read = partial(convert, type=member, str_keys=True, dec_hook=read_custom)
    fill = filler(member)
    return read if fill is None else lambda value: fill(read(value))


def _tags(shapes: list[_Shape | None], wanted: str | None) -> tuple[str, dict[Any, int]] | None:
    """Return the member that tells classes apart, and by its value the place of the class."""
    classes = [(place, shape) for place, shape in enumerate(shapes) if shape is not None]
    if not classes:
        return None
    for name in classes[0][1].literals if wanted is None else (wanted,):
        places: dict[Any, int] = {}
        count = 0
        for place, shape in classes:
            values = shape.literals.get(name, ())
            count += len(values) or len(shapes) + 1  # none: it cannot be told by this member
            places |= dict.fromkeys(values, place)
        if len(places) == count:
            return name, places
    return None


def _shape(member: Any) -> _Shape | None:
    """Return the members of a class; None for a type that is not an object with fixed members."""
    while get_origin(member) is Annotated:
        member = member.__origin__
    cls = get_origin(member) or member
    if is_model(cls):
        return None if getattr(cls, "__pydantic_root_model__", False) else _model_shape(member)
    try:
        kind = kinds.type_info(member)
    except (TypeError, NameError):
        return None
    if not isinstance(kind, kinds.StructType | kinds.DataclassType | kinds.TypedDictType):
        return None
    if getattr(kind, "array_like", False):
        return None
    required = {each.encode_name for each in kind.fields if each.required}
    known = {each.encode_name for each in kind.fields}
    literals = {
        each.encode_name: tuple(each.type.values)
        for each in kind.fields
        if isinstance(each.type, kinds.LiteralType)
    }
    if isinstance(kind, kinds.StructType) and kind.tag_field is not None:
        required.add(kind.tag_field)
        known.add(kind.tag_field)
        literals[kind.tag_field] = (kind.tag,)
    return _Shape(frozenset(required), frozenset(known), literals)


def _model_shape(model: Any) -> _Shape | None:
    required, known = set(), set()
    literals: dict[str, tuple[Any, ...]] = {}
    by_name = model.model_config.get("populate_by_name") or model.model_config.get(
        "validate_by_name"
    )
    for name, field in model.model_fields.items():
        alias = field.validation_alias or field.alias or name
        if not isinstance(alias, str):
            return _ANY_OBJECT  # one of several names, or a place inside another member
        known.add(alias)
        if by_name:
            known.add(name)
        elif field.is_required():
            required.add(alias)
        if get_origin(field.annotation) is Literal:
            values = get_args(field.annotation)
            literals[alias] = tuple(getattr(each, "value", each) for each in values)
    return _Shape(frozenset(required), frozenset(known), literals)


_ANY_OBJECT: Final = _Shape(frozenset(), frozenset(), {})

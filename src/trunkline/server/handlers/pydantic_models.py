"""Pydantic models and other types of pydantic, as arguments and results.

Pydantic is imported only if a handler uses a type of it, and then it is loaded already. A model
is recognised by its methods, decoded by its own validator from JSON, and encoded by its own
serializer. Its messages are reworded, because they quote the value.

`PydanticReader` is for annotations that only pydantic can apply, such as
`Annotated[str, AfterValidator(f)]`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, get_args

from msgspec.json import encode

__all__ = [
    "PydanticReader",
    "is_model",
    "is_validated",
    "read_model",
    "read_validated",
    "schema_of_model",
    "schema_of_validated",
    "write_model",
]

# The messages of these error types come from the model alone; others may quote the value.
_SAFE: Final = frozenset(
    [
        "missing",
        "extra_forbidden",
        "literal_error",
        "enum",
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
        "multiple_of",
        "too_short",
        "too_long",
        "string_too_short",
        "string_too_long",
        "string_pattern_mismatch",
    ]
)
# Of several errors the first few are shown: they are fixed one after another anyway.
_MAX_ERRORS_SHOWN: Final = 5
# `errors()` makes a dict of each, 2 µs long; the caller decides how many there are.
_MAX_ERRORS_READ: Final = 1000


def is_model(type_: Any) -> bool:
    """Return True if `type_` is a class of pydantic models."""
    return isinstance(type_, type) and hasattr(type_, "model_validate_json")


def is_validated(type_: Any) -> bool:
    """Return True if `type_` is a class that pydantic validates, such as `HttpUrl`."""
    return isinstance(type_, type) and hasattr(type_, "__get_pydantic_core_schema__")


def read_model(type_: Any, value: Any) -> Any:
    """Return a model made from a JSON value.

    Raises:
        ValueError: the value does not fit; the text says where and why, and shows nothing of it.
    """
    return _read(type_.model_validate_json, type_.__name__, value)


def read_validated(type_: Any, value: Any, *, strict: bool | None = None) -> Any:
    """Return what pydantic makes of a JSON value for a type.

    Raises:
        ValueError: as for `read_model`.
    """
    validate = _adapter(type_).validate_json
    return _read(lambda raw: validate(raw, strict=strict), "its type", value)


@lru_cache(maxsize=256)  # an adapter takes a millisecond to make
def _adapter(type_: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(type_)


def _read(validate: Callable[[bytes], Any], name: str, value: Any) -> Any:
    from pydantic import ValidationError

    try:
        # From JSON, because a strict model takes a date as a text there and only there.
        return validate(encode(value))
    except ValidationError as error:
        faults = _faults(error, name)
    changed = _with_integers(value, faults)
    if changed is not value:
        try:
            return validate(encode(changed))
        except ValidationError as error:
            faults = _faults(error, name)
    raise ValueError("; ".join(_sentence(each) for each in faults[:_MAX_ERRORS_SHOWN]))


def _faults(error: Any, name: str) -> list[Any]:
    count = error.error_count()
    if count > _MAX_ERRORS_READ:
        raise ValueError(f"{count} parts of it do not fit {name}") from None
    found: list[Any] = error.errors(include_url=False, include_input=False, include_context=False)
    return found


def _with_integers(value: Any, faults: list[Any]) -> Any:
    """Return a value with integers where a strict type refused them written as `5.0`."""
    places = [each["loc"] for each in faults if each["type"] == "int_type"]
    if not places:
        return value
    from ...mcp.integers import with_integers_at

    return with_integers_at(value, places)


def write_model(value: Any) -> Any:
    """Return a model, or an object of another class of pydantic, as JSON values."""
    if is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True)
    cls: Any = type(value)
    return _adapter(cls).dump_python(value, mode="json")


def schema_of_model(type_: Any, *, is_input: bool) -> dict[str, Any]:
    """Return the JSON Schema of a model, with the `$defs` that it refers to.

    That of a model that contains itself is a reference to its definition.
    """
    return _schema(type_.model_json_schema, is_input=is_input)


def schema_of_validated(type_: Any, *, is_input: bool) -> dict[str, Any]:
    """Return the JSON Schema of any type of pydantic, as `schema_of_model` does."""
    return _schema(_adapter(type_).json_schema, is_input=is_input)


def _schema(write: Callable[..., dict[str, Any]], *, is_input: bool) -> dict[str, Any]:
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Leaves out titles made from the names of members."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    schema = write(mode="validation" if is_input else "serialization", schema_generator=Untitled)
    inner = {key: _untitled(each) for key, each in schema.pop("$defs", {}).items()}
    return _untitled(schema) | ({"$defs": inner} if inner else {})


class PydanticReader:
    """Reads values of an annotation that only pydantic can apply.

    Values are taken strictly, as everywhere here, unless a model in it says how it takes them.
    """

    def __init__(self, annotation: Any) -> None:
        """Make the validator.

        Raises:
            TypeError: pydantic cannot apply the annotation either.
            ImportError: pydantic is not installed.
        """
        self._type = annotation
        self._strict = None if _is_lax(annotation) else True
        try:
            _adapter(annotation)
        except ImportError:
            raise
        except Exception as error:  # noqa: BLE001  # pydantic raises several classes, of its own
            raise TypeError(str(error).partition("\n")[0].rstrip(".")) from None

    def read(self, value: Any) -> Any:
        """Return the value made from decoded JSON."""
        return read_validated(self._type, value, strict=self._strict)

    def schema(self, *, is_input: bool) -> dict[str, Any]:
        """Return the JSON Schema, with the `$defs` that it refers to."""
        return schema_of_validated(self._type, is_input=is_input)


def _is_lax(annotation: Any) -> bool:
    if is_model(annotation) or is_validated(annotation):
        return True
    return getattr(annotation, "strict", None) is False or any(
        map(_is_lax, (*get_args(annotation), *getattr(annotation, "metadata", ())))
    )


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without its title, which is the name of the class."""
    return {key: value for key, value in schema.items() if key != "title"}


def _sentence(fault: Any) -> str:
    place = ".".join(map(str, fault["loc"]))
    kind: str = fault["type"]
    if kind in _SAFE or kind.endswith("_type"):
        text = fault["msg"][:1].lower() + fault["msg"][1:]
    elif kind in ("value_error", "assertion_error"):
        text = "refused by the model"
    else:
        text = f"does not fit ({kind.replace('_', ' ')})"
    return f'"{place}": {text}' if place else text

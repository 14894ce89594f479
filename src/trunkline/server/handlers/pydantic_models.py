"""Pydantic models as arguments and results.

Pydantic is imported only if a handler uses a model, and then it is loaded already. A model is
recognised by its methods, decoded by its own validator from JSON, and encoded by its own
serializer. Its messages are reworded, because they quote the value.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.json import encode

__all__ = ["is_model", "read_model", "schema_of_model", "write_model"]

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
_MAX_ERRORS_SHOWN: Final = 3
# `errors()` makes a dict of each, 2 µs long; the caller decides how many there are.
_MAX_ERRORS_READ: Final = 1000


def is_model(type_: Any) -> bool:
    """Return True if `type_` is a class of pydantic models."""
    return isinstance(type_, type) and hasattr(type_, "model_validate_json")


def read_model(type_: Any, value: Any) -> Any:
    """Return a model made from a JSON value; the `dec_hook` of decoders.

    Raises:
        ValueError: the value does not fit; the text says where and why, and shows nothing of it.
    """
    from pydantic import ValidationError

    try:
        # From JSON, because a strict model takes a date as a text there and only there.
        return type_.model_validate_json(encode(value))
    except ValidationError as error:
        count = error.error_count()
        if count > _MAX_ERRORS_READ:
            raise ValueError(f"{count} parts of it do not fit {type_.__name__}") from None
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise ValueError(
            "; ".join(_sentence(each) for each in faults[:_MAX_ERRORS_SHOWN])
        ) from None


def write_model(value: Any) -> Any:
    """Return a model as JSON values; the `enc_hook` of encoders.

    Raises:
        NotImplementedError: the value is not a model.
    """
    if not is_model(type(value)):
        raise NotImplementedError
    return value.model_dump(mode="json", by_alias=True)


def schema_of_model(type_: Any, name: str, *, is_input: bool) -> dict[str, Any]:
    """Return the JSON Schema of a model; its `$defs` are called `name.*`."""
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Leaves out titles made from the names of members."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    schema: dict[str, Any] = type_.model_json_schema(
        mode="validation" if is_input else "serialization",
        schema_generator=Untitled,
        ref_template=f"#/$defs/{name}.{{model}}",
    )
    inner = schema.pop("$defs", None)
    if inner:
        if schema.keys() == {"$ref"}:  # it contains itself, and is still written at the root
            schema = dict(inner[schema["$ref"].rpartition(f"/{name}.")[2]])
        schema["$defs"] = {f"{name}.{key}": _untitled(each) for key, each in inner.items()}
    return _untitled(schema)


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

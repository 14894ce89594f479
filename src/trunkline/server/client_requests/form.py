"""Elicitation forms: from Python types to `requestedSchema`, and from content to typed values.

    form_of(Day).schema("2025-11-25")     `requestedSchema` in that revision
    form_of(Day).read({"day": "2026-01-31"})     a Day

A form is made from a class with flat members, one plain type, None (no fields: the user accepts or
declines), or a JSON Schema written by hand. Each becomes fields, which `form_fields` writes for a
revision. The content is decoded by the decoder of the type, so constraints that a revision cannot
express, such as a pattern, still hold.

The rules that live here, and only here:

* A plain type becomes one field, `value`, and is returned bare.
* A field with a default, or that may be None, is optional. Defaults are also applied here: some
  revisions cannot express them, and some clients ignore them.
* Unknown members of the content are ignored.
* A form must not ask for a secret. A field whose name suggests one logs a warning, once.
                                                      [MCP 2026-07-28, client/elicitation]
* Fields and choices keep the order of the author.
* A `format` is a hint for the client: a string is not checked against it. A `date` is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from copy import deepcopy
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec.inspect as kinds
from msgspec import ValidationError, convert, defstruct
from msgspec.json import encode

from ...errors import LocalProtocolError
from ...mcp.tables import members
from ..handlers.annotations import plain
from ..handlers.custom_types import filled
from ..handlers.docstrings import read as read_docstring
from ..handlers.error_messages import fault
from ..handlers.json_schema import NOTHING, check, default_shown, schema_of
from ..handlers.pydantic_models import is_model, read_model
from .form_fields import FORM_FIELD_KINDS, FormField, decode_value, field_of, field_schema
from .form_schema import raw_form

__all__ = ["ChoiceTitles", "Form", "form_of"]

_log: Final = logging.getLogger("trunkline.server")

# A class or schema created for each call would grow the cache without bound.
_MAX_FORMS: Final = 256
# The field of a plain type.
VALUE: Final = "value"
_CLASSES: Final = (kinds.StructType, kinds.DataclassType, kinds.TypedDictType)
# Rows of the form as a whole, newest first.
_ROOTS: Final = ("ElicitRequestFormParams.requestedSchema", "ElicitRequestParams.requestedSchema")

Schema = dict[str, Any]


class ChoiceTitles:
    """Titles of choices: `Annotated[Literal["r", "g"], ChoiceTitles({"r": "Red"})]`.

    A choice without a title is shown as it is. An Enum may have titles in its docstring, in a
    section `Members:`; a member with an integer value and no title is shown by its name.
    """

    __slots__ = ("titles",)

    def __init__(self, titles: Mapping[Any, str] | None = None, /, **named: str) -> None:
        """Map choices to titles; choices that are identifiers may be keywords."""
        found = {**(titles or {}), **named}
        self.titles = {
            str(key.value if isinstance(key, Enum) else key): title for key, title in found.items()
        }

    def __repr__(self) -> str:
        return f"ChoiceTitles({self.titles!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChoiceTitles) and other.titles == self.titles

    def __hash__(self) -> int:
        return hash(frozenset(self.titles.items()))


class Form:
    """One form; cached by type."""

    __slots__ = ("_defaults", "_dialect", "_make", "_schemas", "fields", "label")

    def __init__(
        self,
        label: str,
        fields: tuple[FormField, ...],
        make: Callable[[Schema], Any],
        *,
        defaults: Mapping[str, Any] | None = None,
        dialect: str = "",
    ) -> None:
        self.label = label
        self.fields = fields
        self._make = make
        # Of empty fields whose type has no default.
        self._defaults = dict(defaults or {})
        self._dialect = dialect
        # At most one for each released revision: `members` raises for others.
        self._schemas: dict[str, Schema] = {}

    def __repr__(self) -> str:
        return f"<Form of {self.label}: {', '.join(each.name for each in self.fields) or 'empty'}>"

    def schema(self, revision: str) -> Schema:
        """Return `requestedSchema` in `revision`. It is cached: do not change it.

        Raises:
            LocalProtocolError: the revision has no forms, or lacks a kind of field.
            UnknownRevision: no such revision was released; the text lists the released ones.
        """
        found = self._schemas.get(revision)
        if found is None:
            found = self._schemas[revision] = self._schema_in(revision)
        return found

    def read(self, content: Mapping[str, Any] | None) -> Any:
        """Decode the content of an accepted form.

        Raises:
            ValueError: it does not fit the form; the text is one sentence that names the field,
                and does not show its value.
        """
        if content is not None and not isinstance(content, Mapping):
            raise ValueError("the content of a form is an object")
        content = content or {}
        # Copied: the caller may change the result.
        filled = deepcopy(self._defaults)
        for each in self.fields:
            if each.name in content:
                filled[each.name] = decode_value(each, content[each.name])
        try:
            return self._make(filled)
        except ValidationError as error:
            place, text = fault(error)
            text = f'field "{place}": {text}' if place else f"the form cannot be read: {text}"
            raise ValueError(text) from None

    def _schema_in(self, revision: str) -> Schema:
        known = next(filter(None, (members(row, revision) for row in _ROOTS)), None)
        if known is None:
            raise LocalProtocolError(
                "mcp.elicitation.form", got=revision, expected="a revision that has forms"
            )
        schema: Schema = {"$schema": self._dialect} if self._dialect and "$schema" in known else {}
        schema["type"] = "object"
        schema["properties"] = {each.name: field_schema(each, revision) for each in self.fields}
        required = [each.name for each in self.fields if each.is_required]
        return {**schema, "required": required} if required else schema


def form_of(kind: Any) -> Form:
    """Return the form of a `kind`.

    A kind is a Struct, dataclass, TypedDict, attrs class or pydantic model with plain members; a
    plain type; None; or the JSON Schema of a flat object.

    Raises:
        TypeError: a form cannot express it; the text names the field and what a form can.
    """
    if not isinstance(kind, Mapping):
        try:
            hash(kind)
        except TypeError:  # annotated with a list, for instance
            return _typed_form.__wrapped__(kind, repr(kind))
        return _typed_form(kind, repr(kind))
    try:
        # By its JSON: equal schemas share a form, and the dict may change later.
        return _raw_form(encode(kind))
    except TypeError as error:
        raise TypeError(f"the schema of a form: {error}") from None


# -- forms from types ------------------------------------------------------------------------


@lru_cache(maxsize=_MAX_FORMS)
def _typed_form(kind: Any, shown: str) -> Form:
    """Return the form of a type; `shown` separates types that differ only in order of choices."""
    if kind is None or kind is type(None):
        return Form("nothing", (), lambda _: None)
    is_class = isinstance(kind, type) and not get_args(kind)
    label = kind.__name__ if is_class else shown.replace("typing.", "")
    if is_model(kind):
        form = _model_form(label, kind)
    else:
        type_ = _readable(label, kind)
        (found,) = kinds.multi_type_info((type_,))
        info: Any = _inner(found)
        has_members = isinstance(info, _CLASSES) and not getattr(info, "array_like", False)
        form = _class_form(label, type_, info) if has_members else _plain_form(label, kind, type_)
    _warn_of_secrets(form)
    return form


def _readable(label: str, kind: Any) -> Any:
    """Return a type as the decoder knows it, checked."""
    try:
        type_ = plain(kind)
        check([type_])
    except TypeError as error:
        fault_at = label, error
        for name, hint in _hints(kind).items():
            try:
                check([hint])
            except TypeError as inner:
                fault_at = f'{label}: field "{name}"', inner
                break
        raise _refused(*fault_at) from None
    return type_


def _refused(place: str, why: object) -> TypeError:
    return TypeError(f"{place} cannot be asked in a form: {why}; {FORM_FIELD_KINDS}")


def _model_form(label: str, kind: Any) -> Form:
    schema = schema_of(kind, is_input=True)
    if schema.get("type") != "object":
        raise _refused(label, "it is not an object")
    names = {getattr(info, "alias", None) or name: name for name, info in kind.model_fields.items()}

    def make(filled: Schema) -> Any:
        try:
            return read_model(kind, filled)
        except ValueError as error:
            text = str(error)
            # A validator of the whole model names no field.
            raise ValueError(f"field {text}" if text.startswith('"') else text) from None

    return _members_form(label, kind, schema, names, make)


def _class_form(label: str, kind: Any, info: Any) -> Form:
    schema = schema_of(kind, is_input=True)
    # The decoder adds the tag of a tagged class.
    schema["properties"].pop(getattr(info, "tag_field", None), None)
    for each in info.fields:
        # Lists have default factories; call it once to show the default of a choice.
        if isinstance(_inner(each.type), kinds.ListType) and callable(each.default_factory):
            shown = default_shown(each.default_factory())
            if shown is not NOTHING and shown:
                schema["properties"][each.encode_name]["default"] = shown
    if isinstance(info, kinds.TypedDictType):  # msgspec sorts its members
        found = schema["properties"]
        schema["properties"] = {name: found[name] for name in _hints(kind) or found}
    names = {each.encode_name: each.name for each in info.fields}
    return _members_form(label, kind, schema, names, lambda values: filled(convert(values, kind)))


def _members_form(
    label: str,
    kind: Any,
    schema: Schema,
    names: Mapping[str, str],
    make: Callable[[Schema], Any],
) -> Form:
    """Return the form of a class; `names` maps JSON names to Python names."""
    hints = _hints(kind)
    needed = schema.get("required", ())
    fields: list[FormField] = []
    for name, described in schema.get("properties", {}).items():
        hint = hints.get(names.get(name, name))
        try:
            found = field_of(
                name,
                described,
                is_required=name in needed,
                titles=_titles(hint),
                definitions=schema.get("$defs", {}),
            )
        except TypeError as error:
            raise _refused(f'{label}: field "{name}"', error) from None
        fields.append(_in_order(found, hint))
    empty = {each.name: None for each in fields if each.takes_null and each.name in needed}
    return Form(label, tuple(fields), make, defaults=empty)


def _plain_form(label: str, kind: Any, type_: Any) -> Form:
    schema = schema_of(type_, is_input=True)
    definitions = schema.pop("$defs", {})
    titles = _titles(kind)
    try:
        field = field_of(VALUE, schema, is_required=True, titles=titles, definitions=definitions)
    except TypeError as error:
        raise _refused(label, error) from None
    answer = defstruct("Answer", [(VALUE, type_)])

    def make(filled: Schema) -> Any:
        return getattr(convert(filled, answer), VALUE)

    fields = (_in_order(field, kind),)
    return Form(label, fields, make, defaults={VALUE: None} if field.takes_null else {})


def _hints(cls: Any) -> dict[str, Any]:
    cls = getattr(cls, "__origin__", cls)
    try:
        return get_type_hints(cls, include_extras=True)
    except (NameError, TypeError):
        return {}  # the decoder raises, or needs no hints


def _inner(kind: kinds.Type) -> kinds.Type:
    while isinstance(kind, kinds.Metadata):
        kind = kind.type
    return kind


def _titles(hint: Any) -> dict[str, str]:
    """Return the titles of choices in an annotation, at any depth; outer ones win."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _member_titles(hint)
    found: dict[str, str] = {}
    if get_origin(hint) is not Literal:  # its arguments are values
        for part in get_args(hint):
            found |= part.titles if isinstance(part, ChoiceTitles) else _titles(part)
    return found


def _in_order(field: FormField, hint: Any) -> FormField:
    """Return a field with its choices in the order of the Literal: msgspec sorts them."""
    texts = [str(each) for each in _literals(hint)]
    found = {text: field.choices[text] for text in texts if text in field.choices}
    return field._replace(choices=found) if len(found) == len(field.choices) else field


def _literals(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [each for part in get_args(hint) for each in _literals(part)]


def _member_titles(cls: type[Enum]) -> dict[str, str]:
    about = read_docstring(vars(cls).get("__doc__")).arguments
    found: dict[str, str] = {}
    for each in cls:
        # An integer says nothing to a person: show the name.
        name = each.name if isinstance(each.value, int) else ""
        text = vars(each).get("__doc__") or about.get(each.name) or name
        if text:
            found[str(each.value)] = " ".join(text.split())
    return found


# -- forms written by hand, and parts of all -------------------------------------------------


@lru_cache(maxsize=_MAX_FORMS)
def _raw_form(raw: bytes) -> Form:
    found = raw_form(raw)

    def make(filled: Schema) -> Schema:
        convert(filled, found.content)
        return filled

    form = Form("a schema", found.fields, make, defaults=found.defaults, dialect=found.dialect)
    _warn_of_secrets(form)
    return form


def _warn_of_secrets(form: Form) -> None:
    names = [each.name for each in form.fields if each.is_secret]
    if names:
        _log.warning(
            "form of %s asks for %s, which looks like a secret; forms must not ask for secrets: "
            "use elicit_url instead",
            form.label,
            ", ".join(names),
        )

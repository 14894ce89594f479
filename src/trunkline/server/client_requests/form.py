"""What a server author asks with, turned into a form and back.

    form_of(Day).schema("2025-11-25")     what `requestedSchema` is in that revision
    form_of(Day).read({"day": "2026-01-31"})     a Day

An author asks with a class whose members are flat, with one plain type, with None (there is
nothing to fill in: a person agrees or does not), or with a JSON Schema written by hand. All
become fields, of which `form_fields` knows how each revision writes them; the answer is read
by the reader of the type, so what a form could not say, a pattern for instance, still holds.

The rules that live here, and only here:

* A plain type is asked as one field, `value`, and read back bare.
* A field with a default, or that may be None, need not be filled in. Defaults are applied
  here too: not all revisions can tell them, and not all clients keep to them.
* Members that were not asked for are passed over: they are the client's.
* A form is no place for a secret. Whether a field is one cannot be told for sure, so a name
  that speaks of one is a warning in the log, once.  [MCP 2026-07-28, client/elicitation]
* Fields and choices stand in the order in which the author wrote them, for people read them.
* Formats are notes to the client: a text is not checked against its format. A `date` is.
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
from ..handlers.dataclass_defaults import filled
from ..handlers.docstrings import read as read_docstring
from ..handlers.error_messages import fault
from ..handlers.json_schema import NOTHING, check, default_shown, schema_of
from ..handlers.pydantic_models import is_model, read_model
from .form_fields import WHAT_FORMS_ASK, FormField, field_of, given, written
from .form_schema import raw_form

__all__ = ["ChoiceTitles", "Form", "form_of"]

_log: Final = logging.getLogger("trunkline.server")

# Forms are few and written by authors; a class or a schema that is made anew for each call
# would grow this without end.
_MAX_FORMS: Final = 256
# The field that a plain type is asked as.
VALUE: Final = "value"
_CLASSES: Final = (kinds.StructType, kinds.DataclassType, kinds.TypedDictType)
# What the whole of a form is called in the rows, newest first.
_ROOTS: Final = ("ElicitRequestFormParams.requestedSchema", "ElicitRequestParams.requestedSchema")

Schema = dict[str, Any]


class ChoiceTitles:
    """Says what choices are called: `Annotated[Literal["r", "g"], ChoiceTitles({"r": "Red"})]`.

    A choice that has no title is shown as it is. The members of an Enum may instead have their
    titles in its docstring, in a section `Members:`; where the values are integers, a member
    without one is shown by its name.
    """

    __slots__ = ("titles",)

    def __init__(self, titles: Mapping[Any, str] | None = None, /, **named: str) -> None:
        """Take the titles by choice; those that are names may be given as keywords."""
        found = {**(titles or {}), **named}
        self.titles = {
            str(key.value if isinstance(key, Enum) else key): title for key, title in found.items()
        }

    def __repr__(self) -> str:
        return f"Titles({self.titles!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChoiceTitles) and other.titles == self.titles

    def __hash__(self) -> int:
        return hash(frozenset(self.titles.items()))


class Form:
    """What is asked in one form; made once for each kind of answer."""

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
        # What stands for a field that was left empty, where the type has no default of its own.
        self._defaults = dict(defaults or {})
        self._dialect = dialect
        # One for each released revision at most: `members` refuses others.
        self._schemas: dict[str, Schema] = {}

    def __repr__(self) -> str:
        return f"<Form of {self.label}: {', '.join(each.name for each in self.fields) or 'empty'}>"

    def schema(self, revision: str) -> Schema:
        """Return what `requestedSchema` is in `revision`. It is kept: do not change it.

        Raises:
            LocalProtocolError: the revision has no forms, or none that could ask for this.
            UnknownRevision: no such revision was released; the text lists those there are.
        """
        found = self._schemas.get(revision)
        if found is None:
            found = self._schemas[revision] = self._written(revision)
        return found

    def read(self, content: Mapping[str, Any] | None) -> Any:
        """Return what was filled in, typed.

        Raises:
            ValueError: it is not what the form asked for; the text is one sentence that names
                the field, and shows nothing of what is in it.
        """
        if content is not None and not isinstance(content, Mapping):
            raise ValueError("the content of a form is an object")
        content = content or {}
        # Copied, because what is read is the caller's to change.
        filled = deepcopy(self._defaults)
        for each in self.fields:
            if each.name in content:
                filled[each.name] = given(each, content[each.name])
        try:
            return self._make(filled)
        except ValidationError as error:
            raise ValueError(_sentence(error)) from None

    def _written(self, revision: str) -> Schema:
        known = next(filter(None, (members(row, revision) for row in _ROOTS)), None)
        if known is None:
            raise LocalProtocolError(
                "mcp.elicitation.form", got=revision, expected="a revision that has forms"
            )
        schema: Schema = {"$schema": self._dialect} if self._dialect and "$schema" in known else {}
        schema["type"] = "object"
        schema["properties"] = {each.name: written(each, revision) for each in self.fields}
        required = [each.name for each in self.fields if each.is_required]
        return {**schema, "required": required} if required else schema


def form_of(kind: Any) -> Form:
    """Return the form that asks for a `kind`.

    A kind is a Struct, a dataclass, a TypedDict, a class of attrs or a pydantic model with
    plain members; a plain type; None; or the JSON Schema of a flat object.

    Raises:
        TypeError: no form can ask for it; the text names the field and says what one can.
    """
    if not isinstance(kind, Mapping):
        try:
            hash(kind)
        except TypeError:  # it is annotated with a list, say
            return _typed_form.__wrapped__(kind, repr(kind))
        return _typed_form(kind, repr(kind))
    try:
        # Equal schemas are one form, and what its author does to the dict later is his own.
        return _raw_form(encode(kind))
    except TypeError as error:
        raise TypeError(f"the schema of a form: {error}") from None


# -- forms from types ------------------------------------------------------------------------


@lru_cache(maxsize=_MAX_FORMS)
def _typed_form(kind: Any, shown: str) -> Form:
    """Return the form of a type; `shown` tells types apart whose choices differ in order alone."""
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
    """Return a type as the reader knows it, having made sure that it can be read."""
    try:
        type_ = plain(kind)
        check([type_])
    except TypeError as error:
        for name, hint in _hints(kind).items():
            _check_member(f'{label}: field "{name}"', hint)
        raise _refused(label, error) from None
    return type_


def _check_member(place: str, hint: Any) -> None:
    try:
        check([hint])
    except TypeError as error:
        raise _refused(place, error) from None


def _refused(place: str, why: object) -> TypeError:
    return TypeError(f"{place} cannot be asked in a form: {why}; {WHAT_FORMS_ASK}")


def _model_form(label: str, kind: Any) -> Form:
    schema = schema_of(kind, is_input=True)
    if schema.get("type") != "object":
        raise _refused(label, "it is no object")
    names = {getattr(info, "alias", None) or name: name for name, info in kind.model_fields.items()}

    def make(filled: Schema) -> Any:
        try:
            return read_model(kind, filled)
        except ValueError as error:
            text = str(error)
            # Of the model as a whole it may be that no field is at fault.
            raise ValueError(f"field {text}" if text.startswith('"') else text) from None

    return _members_form(label, kind, schema, names, make)


def _class_form(label: str, kind: Any, info: Any) -> Form:
    schema = schema_of(kind, is_input=True)
    # A class that says in JSON which it is does so by itself.
    schema["properties"].pop(getattr(info, "tag_field", None), None)
    for each in info.fields:
        # A list has to have its default made anew; for choices that is as good as any other.
        if isinstance(_inner(each.type), kinds.ListType) and callable(each.default_factory):
            shown = default_shown(each.default_factory())
            if shown is not NOTHING and shown:
                schema["properties"][each.encode_name]["default"] = shown
    if isinstance(info, kinds.TypedDictType):  # whose members the reader has sorted
        told = schema["properties"]
        schema["properties"] = {name: told[name] for name in _hints(kind) or told}
    names = {each.encode_name: each.name for each in info.fields}
    return _members_form(label, kind, schema, names, lambda told: filled(convert(told, kind)))


def _members_form(
    label: str,
    kind: Any,
    schema: Schema,
    names: Mapping[str, str],
    make: Callable[[Schema], Any],
) -> Form:
    """Return the form of a class; `names` are those of its members, by what JSON calls them."""
    hints = _hints(kind)
    needed = schema.get("required", ())
    fields: list[FormField] = []
    for name, told in schema.get("properties", {}).items():
        hint = hints.get(names.get(name, name))
        try:
            found = field_of(
                name,
                told,
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
    """Return the form of one plain type."""
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
        return {}  # the reader says what is wrong, or found what it needs


def _inner(kind: kinds.Type) -> kinds.Type:
    while isinstance(kind, kinds.Metadata):
        kind = kind.type
    return kind


def _titles(hint: Any) -> dict[str, str]:
    """Return the titles of choices that an annotation has, at any depth; the outermost hold."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _member_titles(hint)
    found: dict[str, str] = {}
    if get_origin(hint) is not Literal:  # what that has in it is no type
        for part in get_args(hint):
            found |= part.titles if isinstance(part, ChoiceTitles) else _titles(part)
    return found


def _in_order(field: FormField, hint: Any) -> FormField:
    """Return a field with its choices as a Literal has them: the reader has sorted them."""
    texts = [str(each) for each in _literals(hint)]
    found = {text: field.choices[text] for text in texts if text in field.choices}
    return field._replace(choices=found) if len(found) == len(field.choices) else field


def _literals(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [each for part in get_args(hint) for each in _literals(part)]


def _member_titles(cls: type[Enum]) -> dict[str, str]:
    """Return what is said of the members of an Enum: by themselves, or in its docstring."""
    about = read_docstring(vars(cls).get("__doc__")).arguments
    found: dict[str, str] = {}
    for each in cls:
        # A number tells a person nothing, so there the name does.
        name = each.name if isinstance(each.value, int) else ""
        text = vars(each).get("__doc__") or about.get(each.name) or name
        if text:
            found[str(each.value)] = " ".join(text.split())
    return found


# -- forms written by hand, and what all have ------------------------------------------------


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
            "The form of %s asks for %s, which looks like a secret: forms must not; "
            "ask for it at an address of yours, with elicit_url.",
            form.label,
            ", ".join(names),
        )


def _sentence(error: Exception) -> str:
    place, text = fault(error)
    return f'field "{place}": {text}' if place else f"the form cannot be read: {text}"

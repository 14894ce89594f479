"""The type rows say what the official schema files say, except where they say why not.

The files themselves are not here: `digests/` holds their names and structure, written
and checked by `tools/import_schema.py`. Every comparison runs in both directions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cases import for_each
from trunkline.spec.mcp import tasks_extension
from trunkline.spec.mcp.types import TYPES
from trunkline.spec.revisions import LATEST, REVISIONS, Window
from trunkline.spec.rows import Field, Member, Type
from trunkline.spec.types import Expr, FieldView, TypeView, parse, types

DIGESTS: Final[dict[str, dict[str, Any]]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "digests").glob("*.json"))
}
EVERY_ROW: Final = (*TYPES, *tasks_extension.TYPES)
# What a digest says of a type or a field apart from the limits on it.
NOT_LIMITS: Final = {"kind", "fields", "of", "values", "type", "open", "required"}

each_revision = pytest.mark.parametrize("revision", REVISIONS)


def core(revision: str) -> dict[str, TypeView]:
    """Return the types that the official file of a revision should have."""
    return {name: view for name, view in types(revision).items() if not view.extension}


def official(revision: str) -> dict[str, dict[str, Any]]:
    """Return the types that the official file of a revision has."""
    found: dict[str, dict[str, Any]] = DIGESTS[revision]["types"]
    return found


def normal(expression: str) -> object:
    """Return an expression in a form in which the order of a union does not matter."""
    return normal_expr(parse(expression))


def normal_expr(expr: Expr) -> object:
    return (expr.kind, expr.name, expr.value, frozenset(normal_expr(part) for part in expr.of))


def limits_of(shape: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in shape.items() if key not in NOT_LIMITS}


def members_of(shape: dict[str, Any]) -> frozenset[object]:
    """Return what the official file lets a union, an enum or an alias be."""
    listed = shape.get("of") or ([shape["type"]] if "type" in shape else [])
    constants = (Expr("constant", value=value) for value in shape.get("values", ()))
    return frozenset([*map(normal, listed), *map(normal_expr, constants)])


def field_differences(ours: FieldView, theirs: dict[str, Any]) -> Iterator[str]:
    if normal(ours.type) != normal(theirs["type"]):
        yield f"{ours.type}, officially {theirs['type']}"
    if ours.required != theirs["required"]:
        yield f"required {ours.required}, officially {theirs['required']}"
    if dict(ours.limits) != limits_of(theirs):
        yield f"limits {dict(ours.limits)}, officially {limits_of(theirs)}"


def shape_differences(ours: TypeView, theirs: dict[str, Any]) -> Iterator[str]:
    """Yield how a type differs apart from its fields, which have reasons of their own."""
    if ours.kind != theirs["kind"]:
        yield f"{ours.kind}, officially {theirs['kind']}"
    elif frozenset(map(normal, ours.of)) != members_of(theirs):
        yield f"{ours.of}, officially {theirs}"
    if ours.open != theirs.get("open"):
        yield f"open {ours.open}, officially {theirs.get('open')}"
    if dict(ours.limits) != limits_of(theirs):
        yield f"limits {dict(ours.limits)}, officially {limits_of(theirs)}"


def type_differences(ours: TypeView, theirs: dict[str, Any]) -> Iterator[str]:
    if not ours.departs:
        yield from (f"{ours.name}: {line}" for line in shape_differences(ours, theirs))
    fields = {name: field for name, field in ours.fields.items() if not field.extension}
    for name, shape in theirs.get("fields", {}).items():
        if name not in fields:
            yield f"{ours.name}.{name}: only in the official file"
        elif not fields[name].departs:
            lines = field_differences(fields[name], shape)
            yield from (f"{ours.name}.{name}: {line}" for line in lines)
    for name, field in fields.items():
        if name not in theirs.get("fields", {}) and not field.departs:
            yield f"{ours.name}.{name}: only in the rows"


def differences(revision: str) -> Iterator[str]:
    ours, theirs = core(revision), official(revision)
    yield from (f"{name}: only in the rows" for name in ours.keys() - theirs.keys())
    yield from (f"{name}: only in the official file" for name in theirs.keys() - ours.keys())
    for name in ours.keys() & theirs.keys():
        yield from type_differences(ours[name], theirs[name])


@each_revision
def test_the_rows_say_what_the_official_file_says(revision: str) -> None:
    assert sorted(differences(revision)) == []


def test_every_revision_has_a_digest_that_names_it() -> None:
    assert {name: digest["revision"] for name, digest in DIGESTS.items()} == {
        revision: revision for revision in REVISIONS
    }


def test_a_difference_is_seen() -> None:
    # The comparison above is worth what it finds: give it one of each.
    ours = core(LATEST)["Annotations"]
    theirs = {
        "kind": "object",
        "open": True,
        "fields": {
            "audience": {"type": "list<string>", "required": False},
            "lastModified": {"type": "string", "required": True},
            "other": {"type": "string", "required": False},
        },
    }
    assert sorted(type_differences(ours, theirs)) == [
        "Annotations.audience: list<Role>, officially list<string>",
        "Annotations.lastModified: required False, officially True",
        "Annotations.other: only in the official file",
        "Annotations.priority: only in the rows",
        "Annotations: open None, officially True",
    ]


# Departures


DEPARTING_FIELDS: Final = [
    (row, field, revision)
    for row in TYPES
    for field in row.fields
    for revision in REVISIONS
    if field.departs and row.when.holds(revision) and field.when.holds(revision)
]
DEPARTING_TYPES: Final = [row for row in TYPES if row.departs]


@pytest.mark.parametrize(
    ("row", "field", "revision"),
    DEPARTING_FIELDS,
    ids=[f"{row.name}.{field.name}-{revision}" for row, field, revision in DEPARTING_FIELDS],
)
def test_a_departing_field_departs_in_each_revision_it_holds_in(
    row: Type, field: Field, revision: str
) -> None:
    theirs = official(revision)[row.name]["fields"].get(field.name)
    view = types(revision)[row.name].fields[field.name]
    assert view.departs == field.departs
    assert theirs is None or [*field_differences(view, theirs)]


@pytest.mark.parametrize("row", DEPARTING_TYPES, ids=lambda row: row.name)
def test_a_departing_type_departs_in_some_revision(row: Type) -> None:
    held = [revision for revision in REVISIONS if row.when.holds(revision)]
    assert any(
        [*shape_differences(types(revision)[row.name], official(revision)[row.name])]
        for revision in held
    )


def test_nothing_of_the_extension_departs_from_a_file_it_is_not_in() -> None:
    assert not [row.name for row in tasks_extension.TYPES if row.departs]


# Rows that make sense by themselves


def names_in(expr: Expr) -> Iterator[str]:
    if expr.kind == "name":
        yield expr.name
    for part in expr.of:
        yield from names_in(part)


def expressions(view: TypeView) -> Iterator[str]:
    yield from view.of
    yield from (field.type for field in view.fields.values())


@each_revision
def test_every_name_in_an_expression_is_a_type_of_that_revision(revision: str) -> None:
    known = types(revision)
    assert not [
        (view.name, name)
        for view in known.values()
        for expression in expressions(view)
        for name in names_in(parse(expression))
        if name not in known
    ]


@each_revision
def test_a_type_that_is_known_by_its_place_is_used_there(revision: str) -> None:
    used = {
        name
        for view in types(revision).values()
        for expression in expressions(view)
        for name in names_in(parse(expression))
    }
    assert not {name for name in types(revision) if "." in name} - used


@each_revision
def test_no_two_rows_hold_for_one_name(revision: str) -> None:
    held = [row for row in EVERY_ROW if row.when.holds(revision)]
    assert len({row.name for row in held}) == len(held)
    for row in held:
        names = [field.name for field in row.fields if field.when.holds(revision)]
        assert len(set(names)) == len(names), row.name


@for_each("row", EVERY_ROW, ids=lambda row: f"{row.name}-{row.when.since}")
def test_a_row_has_the_parts_of_its_kind(row: Type) -> None:
    for revision in filter(row.when.holds, REVISIONS):
        members = [parse(part.type) for part in row.of if part.when.holds(revision)]
        assert not (row.fields and row.of)
        assert (row.kind == "object") == (not members)
        assert row.kind != "alias" or len(members) == 1
        assert row.kind != "enum" or {member.kind for member in members} == {"constant"}


def spans(row: Type) -> Iterator[tuple[str, Window, Window | bool | None]]:
    """Yield every part of a row with its window, and what else may be a window in it."""
    yield row.name, row.when, row.open
    part: Field | Member
    for part in row.fields:
        yield f"{row.name}.{part.name}", part.when, part.required
    for part in row.of:
        yield f"{row.name} | {part.type}", part.when, None


@for_each("row", EVERY_ROW, ids=lambda row: f"{row.name}-{row.when.since}")
def test_no_window_is_empty_or_idle(row: Type) -> None:
    span = [revision for revision in REVISIONS if row.when.holds(revision)]
    for name, window, inner in spans(row):
        held = [revision for revision in span if window.holds(revision)]
        assert held, f"{name} never holds"
        if isinstance(inner, Window):
            chosen = [revision for revision in held if inner.holds(revision)]
            assert 0 < len(chosen) < len(held), f"{name}: a plain True or False would do"


def test_rows_and_fields_are_in_the_order_of_the_files() -> None:
    names = [row.name for row in TYPES]
    assert names == sorted(names)
    for row in TYPES:
        fields = [field.name for field in row.fields]
        assert fields == sorted(fields), row.name


def test_the_extension_adds_to_types_of_the_core() -> None:
    for name, field in tasks_extension.ADDED_FIELDS:
        assert name in core(LATEST)
        assert types(LATEST)[name].fields[field.name].extension == tasks_extension.EXTENSION


def test_digests_hold_no_prose() -> None:
    keys = {
        key
        for digest in DIGESTS.values()
        for shape in digest["types"].values()
        for part in (shape, *shape.get("fields", {}).values())
        for key in part
    }
    assert keys <= NOT_LIMITS | {"format", "minimum", "maximum", "maxItems"}

"""A document: what references lead to, and what a condition depends on."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.errors import NOTHING
from trunkline.judge.diff.normal_form import CONDITIONS
from trunkline.judge.diff.schema_document import SchemaDocument, key_of, text_of


def test_values_are_equal_as_json_has_it() -> None:
    assert key_of(1) == key_of(1.0) == key_of(1)
    assert key_of([1.0, {"b": 1, "a": 2}]) == key_of([1, {"a": 2, "b": 1}])
    assert len({key_of(each) for each in (1, True, "1", None, "null", [1], 1.5)}) == 7


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", "root"),
        ("#/$defs/a", "a"),
        ("#/$defs/x~1y", "slash"),
        ("#/$defs/list/1", "second"),
        ("#/$defs/missing", NOTHING),
        ("#/$defs/list/9", NOTHING),
        ("#a", NOTHING),
        ("other.json", NOTHING),
        (5, NOTHING),
    ],
)
def test_a_reference_leads_into_its_own_document(reference: Any, target: Any) -> None:
    root = {"title": "root", "$defs": {"a": "a", "x/y": "slash", "list": ["first", "second"]}}
    found = SchemaDocument(root).target(reference)
    assert (found["title"] if found is root else found) == target


def test_nothing_but_a_reference_is_what_it_leads_to() -> None:
    root: Any = {"$defs": {"a": {"$ref": "#/$defs/b", "title": "A"}, "b": {"type": "null"}}}
    document = SchemaDocument(root)
    assert document.followed({"$ref": "#/$defs/a"}, CONDITIONS) is root["$defs"]["b"]
    beside = {"$ref": "#/$defs/a", "type": "null"}
    assert document.followed(beside, CONDITIONS) is beside


def test_no_reference_leads_through_a_schema_with_an_address() -> None:
    inner = {"$id": "https://example.com/x", "properties": {"a": {"$ref": "#/$defs/b"}}}
    document = SchemaDocument({"$id": "https://example.com/s", "$defs": {"x": inner, "b": True}})
    assert document.target("#/$defs/x") is inner
    assert document.target("#/$defs/x/properties/a") is NOTHING
    assert document.target("#/$defs/b") is True
    elsewhere = {"$ref": "#/$defs/b", "$id": "y"}
    assert document.followed(elsewhere, CONDITIONS) is elsewhere


@pytest.mark.parametrize(
    ("named", "draft"),
    [
        ("http://json-schema.org/draft-04/schema#", 4),
        ("http://json-schema.org/draft-06/schema", 6),
        ("https://json-schema.org/draft-07/schema#", 7),
        ("https://json-schema.org/draft/2019-09/schema", 2019),
        ("https://json-schema.org/draft/2020-12/schema", 2020),
        ("https://spec.openapis.org/oas/3.1/dialect/base", 2020),
        ("http://json-schema.org/draft-03/schema#", 0),
        ("https://example.com/?http://json-schema.org/draft-07/schema#", 0),
        (None, 0),
        (5, 0),
    ],
)
def test_a_document_has_a_draft(named: Any, draft: int) -> None:
    assert SchemaDocument({"$schema": named}).draft == draft
    assert SchemaDocument({}).draft == SchemaDocument(True).draft == 2020


# Conditions


def depends(said: Any, old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Say whether a condition in one document is another in the other one."""
    return SchemaDocument(old).opaque("not", said) != SchemaDocument(new).opaque("not", said)


@pytest.mark.parametrize(
    ("reference", "defs"),
    [
        ("#/$defs/a", {}),
        ("#/$defs/b", {"b": {"$ref": "#/$defs/a"}}),
        ("#/$defs/b", {"b": {"not": {"$ref": "#/properties/p"}}}),
        ("#/$defs/b", {"b": {"$dynamicRef": "#x"}}),
        ("#/$defs/b", {"b": {"$ref": 'a\\u00e4"#'}}),
        *((each, {}) for each in ("#", "#name", "#/%24defs/a", "other.json", "#/missing", 5)),
        ("https://example.com/s", {"b": {"$id": "https://example.com/s"}}),
        ("https://example.com/s", {"b": {"id": "https://example.com/s"}}),
    ],
)
def test_condition_depends_on_the_schemas_it_refers_to(reference: Any, defs: Any) -> None:
    def given(leaf: Any) -> dict[str, Any]:
        return {"$defs": {"a": leaf, **defs}, "properties": {"p": leaf}}

    said = {"$ref": reference}
    assert depends(said, given({"type": "integer"}), given({"type": "string"}))
    assert not depends(said, given({"type": "integer"}), given({"type": "integer"}))


@pytest.mark.parametrize("reference", ["#/$defs/a", "#/$defs/b", "https://example.com/s"])
def test_condition_does_not_depend_on_unreferenced_schemas(reference: str) -> None:
    defs = {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/a"}}
    one, two = ({"$defs": defs, "properties": {"p": {"type": each}}} for each in ("null", "string"))
    assert not depends({"$ref": reference}, one, two)


def test_condition_with_a_long_chain_of_references_depends_on_all_of_it() -> None:
    def given(leaf: str) -> dict[str, Any]:
        steps = {f"d{n}": {"items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(500)}
        return {"$defs": {**steps, "d500": {"type": leaf}}}

    assert depends({"$ref": "#/$defs/d0"}, given("null"), given("string"))


def test_a_condition_depends_on_the_draft_where_that_decides_it() -> None:
    old = {"$schema": "http://json-schema.org/draft-07/schema#"}
    new = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    assert depends({"prefixItems": []}, old, new)
    assert depends({"items": [True]}, old, new)
    assert not depends({"items": {"type": "string"}}, old, new)


def test_a_condition_keeps_no_text() -> None:
    root = {"$defs": {"a": {"enum": ["x" * 1000] * 100}}}
    document = SchemaDocument(root)
    for number in range(3):
        assert len(document.opaque("not", [{"$ref": "#/$defs/a"}] * number)[1]) == 16


# Texts


def test_whatever_python_holds_has_a_text() -> None:
    odd = [{"a": "\ud800"}, {"\udfff": 1}, 10**5000, -(10**5000), ["\\ud800", 10**5000]]
    texts = {text_of(each) for each in (*odd, ["\ud800", 10**5000], {"a": "\\ud800"})}
    assert len(texts) == 7
    assert text_of({"\ud800": 1, "a": 2}) == text_of({"a": 2, "\ud800": 1})
    assert key_of(1e300) == key_of(int(1e300))

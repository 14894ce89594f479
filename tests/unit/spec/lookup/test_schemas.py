"""`spec/lookup/schemas.py`: a JSON Schema document for a type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from trunkline.spec.lookup.schemas import DIALECT, json_schema
from trunkline.spec.revisions import REVISIONS, V2025_06_18, V2025_11_25
from trunkline.spec.types import UnknownRevision, UnknownType, types


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for part in schema.values():
            yield from references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from references(part)


def test_an_object() -> None:
    assert json_schema("Annotations", V2025_06_18) == {
        "$schema": DIALECT,
        "title": "Annotations",
        "type": "object",
        "properties": {
            "audience": {"type": "array", "items": {"$ref": "#/$defs/Role"}},
            "lastModified": {"type": "string"},
            "priority": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "$defs": {"Role": {"enum": ["assistant", "user"]}},
    }


def test_required_fields_are_those_of_the_revision() -> None:
    assert "required" not in json_schema("PaginatedRequestParams", V2025_11_25)
    assert json_schema("PaginatedRequestParams")["required"] == ["_meta"]


def test_an_alias_a_union_and_an_enum_at_the_top() -> None:
    head = {"$schema": DIALECT}
    assert json_schema("Cursor") == {**head, "title": "Cursor", "type": "string"}
    assert json_schema("RequestId") == {
        **head,
        "title": "RequestId",
        "anyOf": [{"type": "string"}, {"type": "integer"}],
    }
    assert json_schema("Role") == {**head, "title": "Role", "enum": ["assistant", "user"]}


def test_constants_alone_are_an_enum() -> None:
    properties = json_schema("CacheableResult")["properties"]
    assert properties["cacheScope"] == {"enum": ["private", "public"]}


def test_one_constant_is_a_const() -> None:
    assert json_schema("InvalidParamsError")["properties"]["code"] == {"const": -32602}
    assert json_schema("TextContent")["properties"]["type"] == {"const": "text"}


def test_maps_say_what_is_in_them() -> None:
    properties = json_schema("GetPromptRequestParams")["properties"]
    assert properties["arguments"] == {
        "type": "object",
        "additionalProperties": {"type": "string"},
    }
    assert json_schema("MetaObject")["additionalProperties"] == {}


def test_any_value_is_the_empty_schema() -> None:
    assert json_schema("CallToolResult")["properties"]["structuredContent"] == {}


def test_open_objects_say_so() -> None:
    assert json_schema("Result")["additionalProperties"] is True
    assert "additionalProperties" not in json_schema("Tool")


def test_limits_stand_beside_the_type() -> None:
    completion = json_schema("CompleteResult", V2025_06_18)["properties"]["completion"]
    assert completion["properties"]["values"] == {
        "type": "array",
        "items": {"type": "string"},
        "maxItems": 100,
    }


def test_a_type_known_by_its_place_is_written_there() -> None:
    document = json_schema("Tool")
    assert document["properties"]["inputSchema"]["properties"]["type"] == {"const": "object"}
    assert not [name for name in document["$defs"] if "." in name]


def test_a_type_that_contains_itself() -> None:
    document = json_schema("JSONObject")
    assert document["additionalProperties"] == {"$ref": "#/$defs/JSONValue"}
    assert {*document["$defs"]} == {"JSONObject", "JSONValue"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_document_stands_alone_and_holds_nothing_idle(revision: str) -> None:
    for name in types(revision):
        document = json_schema(name, revision)
        needed = {reference.removeprefix("#/$defs/") for reference in references(document)}
        assert needed == {*document.get("$defs", {})}, name
        assert all(document.get("$defs", {}).values()), name


def test_the_caller_may_change_the_document() -> None:
    json_schema("Tool")["properties"].clear()
    assert json_schema("Tool")["properties"]


def test_unknown_type_or_revision_is_refused() -> None:
    with pytest.raises(UnknownType, match="2025-06-18 has no type 'Icon'"):
        json_schema("Icon", V2025_06_18)
    with pytest.raises(UnknownRevision, match="2023-01-01"):
        json_schema("Tool", "2023-01-01")

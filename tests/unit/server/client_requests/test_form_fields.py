"""Fields of a form: what is sent of a property, and what is read back."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.server.client_requests.form import form_of

REVISION = "2025-11-25"


def raw(properties: Any, **rest: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **rest}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 4}, {"minimum": 1, "maximum": 3}),
        ({"exclusiveMinimum": 0.5, "exclusiveMaximum": 3.5}, {"minimum": 1, "maximum": 3}),
        ({"minimum": 0.5, "maximum": 3.5}, {"minimum": 1, "maximum": 3}),
        ({"minimum": 1, "exclusiveMinimum": 4}, {"minimum": 5}),
        ({"maximum": 9, "exclusiveMaximum": 4}, {"maximum": 3}),
    ],
)
def test_bounds_of_an_integer_are_sent_as_the_smallest_and_largest_it_may_be(
    given: dict[str, Any], sent: dict[str, Any]
) -> None:
    form = form_of(raw({"a": {"type": "integer", **given}}, required=["a"]))
    assert form.schema(REVISION)["properties"]["a"] == {"type": "integer", **sent}
    for keyword, bound in sent.items():
        assert form.read({"a": bound}) == {"a": bound}
        with pytest.raises(ValueError, match='field "a"'):
            form.read({"a": bound - 1 if keyword == "minimum" else bound + 1})


@pytest.mark.parametrize(
    "kind", [{"type": "string"}, {"type": ["integer", "null"]}, {"enum": ["x"]}], ids=str
)
def test_a_default_of_null_in_a_schema_is_an_empty_field(kind: dict[str, Any]) -> None:
    form = form_of(raw({"a": {**kind, "default": None}}))
    assert "default" not in form.schema(REVISION)["properties"]["a"]
    assert form.read({}) == form_of(raw({"a": kind})).read({})

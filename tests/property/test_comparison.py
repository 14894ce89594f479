"""Where a comparison finds nothing that breaks, nothing breaks: asked of a validator.

First every pair of a list of schemas, with a list of values. Then at random: two small schemas
are drawn, one often made from the other. If the arguments are said to be compatible, every
value that the old schema accepts is accepted by the new one; of results it is the other way
round. The conventions of the comparison are part of the question: where members are named,
others are not used.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from typing import Any, Final, Literal

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.effort import examples, share
from trunkline.judge.diff import compare

NAMES: Final = ("a", "b", "c")
# A member that no schema names.
STRANGER: Final = "zz"

# Each keyword alone and beside others, so that each is once what makes the difference.
SCHEMAS: Final[list[Any]] = [
    *(True, False, {}, {"type": "null"}, {"type": "boolean"}, {"type": "integer"}),
    *({"type": "number"}, {"type": "string"}, {"type": "array"}, {"type": "object"}),
    *({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    *({"type": ["integer", "string"]}, {"oneOf": [{"type": "integer"}, {"type": "string"}]}),
    *({"oneOf": [{"type": "integer"}, {"type": "number"}]}, {"const": 1}, {"const": "a"}),
    *({"enum": ["a", "b"]}, {"enum": ["a", "b", "c"]}, {"enum": [1, True, None]}, {"enum": [1.0]}),
    *({"enum": [[1], {"a": 1}]}, {"type": "string", "enum": ["a", 1]}, {"enum": [True, False]}),
    *({"type": "integer", "minimum": 1}, {"type": "integer", "exclusiveMinimum": 0}),
    *({"type": "number", "minimum": 1}, {"type": "number", "exclusiveMinimum": 0}),
    *({"type": "integer", "maximum": 2}, {"type": "number", "exclusiveMaximum": 3}),
    *({"type": "integer", "exclusiveMaximum": 3}, {"type": "number", "exclusiveMinimum": 1}),
    *({"type": "number", "multipleOf": 2}, {"type": "integer", "multipleOf": 3}),
    *({"type": "integer", "multipleOf": 6}, {"type": "number", "multipleOf": 0.5}),
    *({"multipleOf": 1}, {"minimum": 0}, {"minLength": 1}, {"maxItems": 1}, {"required": ["a"]}),
    *({"type": "string", "minLength": 1}, {"type": "string", "maxLength": 2}),
    *({"type": "string", "minLength": 2}, {"type": "string", "pattern": "^a"}),
    *({"type": "string", "pattern": "^a", "minLength": 2}, {"not": {"type": "string"}}),
    *({"not": {"const": 1}}, {"type": "array", "items": {"type": "integer"}}),
    *({"type": "array", "items": {"type": "number"}}, {"type": "array", "minItems": 1}),
    *({"type": "array", "maxItems": 1}, {"type": "array", "uniqueItems": True}),
    *({"type": "array", "contains": {"const": 1}}, {"type": "array", "items": False}),
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
    {"type": "array", "prefixItems": [{"type": "integer"}], "items": False},
    {"type": "array", "prefixItems": [{"type": "number"}], "items": {"type": "string"}},
    {"type": "array", "prefixItems": [{"type": "string"}], "maxItems": 0},
    {"type": "object", "properties": {"a": {"type": "integer"}}},
    {"type": "object", "properties": {"a": {"type": "number"}}},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "properties": {"b": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "properties": {"a": {}, "b": {"type": "string"}}},
    {"type": "object", "properties": {"a": {}, "b": {"type": "string"}}, "minProperties": 1},
    {"type": "object", "properties": {"a": {}, "b": {}}, "maxProperties": 1},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "additionalProperties": {"type": "number"}},
    {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "additionalProperties": {"type": "integer"},
    },
    {"type": "object", "patternProperties": {"^b": {"type": "integer"}}},
    {
        "type": "object",
        "patternProperties": {"^b": {"type": "integer"}},
        "additionalProperties": False,
    },
    {"type": "object", "patternProperties": {"^b": {"type": "number"}}},
    {"type": "object", "properties": {"b": {"type": "string"}, "a": {}}, "patternProperties": {}},
    {"type": "object", "properties": {"a": {}, "b": {}}, "propertyNames": {"maxLength": 1}},
    {"type": "object", "properties": {"a": {}, "b": {}}, "propertyNames": {"const": "a"}},
    {"type": "object", "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}},
    {"type": "object", "properties": {"a": {}, "b": {}}, "unevaluatedProperties": False},
    {"type": "object", "allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
    {"allOf": [{"type": "integer"}, {"minimum": 1}]},
    {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"a": {"minimum": 1}}}]},
    {"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]},
    {"anyOf": [{"type": "integer", "maximum": 1}, {"type": "integer", "minimum": 3}]},
    {
        "anyOf": [
            {"type": "integer", "maximum": 1},
            {"type": "integer", "minimum": 2},
            {"type": "null"},
        ]
    },
    {"oneOf": [{"type": "integer", "maximum": 2}, {"type": "integer", "minimum": 1}]},
    {
        "anyOf": [
            {"required": ["a"], "properties": {"a": {"const": 1}}},
            {"required": ["b"], "properties": {"b": {}}},
        ]
    },
    {
        "oneOf": [
            {"required": ["a"], "properties": {"a": {"const": 1}}},
            {"required": ["a"], "properties": {"a": {"const": "a"}}},
        ]
    },
    {"if": {"type": "integer"}, "then": {"minimum": 1}},
    {"if": {"type": "integer"}, "then": {"minimum": 1}, "else": {"type": "string"}},
    *(
        {"$ref": "#/$defs/one"},
        {"$ref": "#/$defs/two"},
        {"$ref": "#/$defs/one", "maxProperties": 1},
    ),
    *({"type": "string", "nullable": True}, {"enum": ["a", None], "nullable": True}),
    *({"not": {"$ref": "#/$defs/one"}}, {"not": {"$ref": "#/$defs/two"}}),
    {"if": {"$ref": "#/$defs/one"}, "then": {"type": "string"}},
    {"oneOf": [{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}]},
    {"allOf": [{"$ref": "#/$defs/one"}] * 8},
    {"anyOf": [{"$ref": "#/$defs/one"}] * 8},
    *({"enum": [[{}], [[1]], {"a": []}]}, {"maximum": 10**400}, {"maximum": -(10**400)}),
]
DEFS: Final[dict[str, Any]] = {
    "one": {"type": ["object", "string"], "properties": {"a": {"$ref": "#/$defs/one"}}},
    "two": {
        "anyOf": [
            {"type": "string"},
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/two"}, "b": {}}},
        ]
    },
}
VALUES: Final[list[Any]] = [
    *(None, True, False, -1, 0, 0.5, 1, 1.0, 1.5, 2, 2.5, 3, 4, 6, 9, "", "a", "ab", "abc", "b"),
    *("ba", [], [1], [1, 1], [1, 2], [1.5], ["a"], [1, "a"], [1, "a", "b"], [1, "a", 2], [True]),
    *({}, {"a": 1}, {"a": 0}, {"a": 1.5}, {"a": "a"}, {"b": 1}, {"b": 1.5}, {"b": "a"}, {"zz": 1}),
    *({"a": 1, "b": 1}, {"a": 1, "b": "a"}, {"a": "a", "b": "a"}, {"a": {"a": 1}}, {"zz": "a"}),
    *({"a": {"a": "a"}}, {"a": 1, "zz": 1}, {"b": 1, "zz": None}, {"a": {"a": {"a": 1}}}),
]

# Of each draft, what means something else in another, and what refers on.
DRAFTS: Final = (
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
OF_DRAFTS: Final[list[Any]] = [
    *({"type": "integer"}, {"const": "a"}, {"enum": ["a", 1]}, {"not": {"const": "a"}}),
    *({"prefixItems": [{"type": "integer"}]}, {"contains": {"type": "integer"}}),
    *({"if": {"type": "string"}, "then": {"minLength": 2}}, {"propertyNames": {"maxLength": 1}}),
    {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
    {"items": {"type": "integer"}, "additionalItems": False},
    {"contains": {"type": "integer"}, "maxContains": 1},
    {"dependentRequired": {"x": ["yy"]}},
    {"dependencies": {"x": ["yy"]}},
    {"properties": {"x": {}}, "unevaluatedProperties": False},
    {"$ref": "#/definitions/text", "minLength": 2},
    {"oneOf": [{"$ref": "#/definitions/text", "const": each} for each in ("a", "ab")]},
    {"anyOf": [{"$ref": "#/definitions/text", "const": each} for each in ("a", "ab")]},
]
# In the drafts that take them; others refuse the schema.
OF_SOME: Final[list[tuple[tuple[int, ...], Any]]] = [
    ((0,), {"minimum": 1, "exclusiveMinimum": True}),
    ((1, 2, 3), {"exclusiveMinimum": 1}),
    ((0, 1, 2), {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}}),
    ((0, 1, 2), {"items": [{"type": "integer"}]}),
]
REFERRING: Final[list[Any]] = [
    {"not": {"$ref": "#/definitions/on"}},
    {"not": {"$ref": "https://example.com/s#/properties/b"}},
    {"if": {"$ref": "#/definitions/on"}, "then": {"maxLength": 0}},
    {"contains": {"$ref": "#/definitions/on"}, "maxContains": 1},
    {"oneOf": [{"$ref": "#/definitions/on"}, {"minLength": 1}]},
    {"oneOf": [{"$ref": "#/properties/b"}, {"minLength": 1}]},
    {"dependencies": {"x": {"properties": {"x": {"$ref": "#/definitions/on"}}}}},
]
PLAIN: Final[list[Any]] = [
    *(None, True, 0, 1, 1.0, 1.5, 2, "", "a", "ab", "abc", [], [1], [1, 2], [1, "a"], ["a"]),
    *([1, 1], ["a", 1], {}, {"x": 1}, {"x": "a"}, {"x": 1, "yy": 1}, {"yy": 1}, [None]),
]

scalars = st.sampled_from([None, True, False, 0, 1, 2, 5, -1, 1.5, 1.0, "", "a", "ab", "abc"])
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from((*NAMES, STRANGER)), inner, max_size=3),
    ),
    max_leaves=5,
)
kinds = st.sampled_from(
    ["null", "boolean", "integer", "number", "string", "array", "object", "object", "object"]
)
small = st.integers(0, 3)


def optional(members: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)


def leaf() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.booleans(),
        st.just({}),
        st.fixed_dictionaries({"type": kinds}),
        st.fixed_dictionaries({"type": st.lists(kinds, min_size=1, max_size=3, unique=True)}),
        st.fixed_dictionaries({"enum": st.lists(scalars, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"const": scalars}),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["integer", "number"])},
            optional={
                "minimum": small,
                "maximum": small,
                "exclusiveMinimum": small,
                "exclusiveMaximum": small,
                "multipleOf": st.integers(1, 3),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("string")},
            optional={
                "minLength": small,
                "maxLength": small,
                "pattern": st.sampled_from(["^a", "b"]),
            },
        ),
        st.fixed_dictionaries({"$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"])}),
        st.fixed_dictionaries({"not": st.fixed_dictionaries({"type": kinds})}),
        st.fixed_dictionaries(
            {"not": st.sampled_from([{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}])}
        ),
        st.fixed_dictionaries({"type": kinds, "nullable": st.just(True)}),
    )


def branch(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    members = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": members},
            optional={
                "required": st.lists(st.sampled_from(NAMES), unique=True, max_size=2),
                "additionalProperties": st.one_of(st.booleans(), inner),
                "minProperties": small,
                "maxProperties": small,
                "patternProperties": st.fixed_dictionaries({"^b": inner}),
                "propertyNames": st.just({"maxLength": 1}),
                "dependentRequired": st.just({"a": ["b"]}),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("array")},
            optional={
                "items": inner,
                "prefixItems": several,
                "minItems": small,
                "maxItems": small,
                "uniqueItems": st.booleans(),
                "contains": inner,
            },
        ),
        st.fixed_dictionaries({"anyOf": several}),
        st.fixed_dictionaries({"oneOf": several}),
        st.fixed_dictionaries({"allOf": several}),
        st.fixed_dictionaries({"properties": members, "anyOf": several}),
        optional({"if": inner, "then": inner, "else": inner, "properties": members}),
    )


schemas = st.recursive(leaf(), branch, max_leaves=6)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A schema of an object, with two definitions that may use themselves."""
    members = draw(st.dictionaries(st.sampled_from(NAMES), schemas, min_size=1, max_size=3))
    root: dict[str, Any] = {"type": "object", "properties": members}
    if draw(st.booleans()):
        root["required"] = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2))
    if draw(st.booleans()):
        root["additionalProperties"] = draw(st.booleans())
    # Below a member, so that nothing refers to itself in one place.
    root["$defs"] = {
        name: {"type": ["object", "string"], "properties": {"a": draw(schemas)}}
        for name in ("one", "two")
    }
    return root


def places(schema: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every schema in a schema that is an object."""
    if not isinstance(schema, dict):
        return []
    found = [path]
    for keyword, said in schema.items():
        if keyword in ("properties", "patternProperties", "$defs"):
            for name, inner in said.items():
                found += places(inner, (*path, keyword, name))
        elif keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
            for place, inner in enumerate(said):
                found += places(inner, (*path, keyword, place))
        else:
            found += places(said, (*path, keyword))
    return found


@st.composite
def pairs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two schemas: mostly one, and the same with a small change or two."""
    old = draw(documents())
    if draw(st.integers(0, 5)) == 0:
        return old, draw(documents())
    new = deepcopy(old)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(places(new)))
        at = new
        for step in path:
            at = at[step]
        drawn = draw(st.one_of(leaf(), branch(leaf())))
        if isinstance(drawn, dict) and draw(st.booleans()):
            at.update(drawn)
        elif at.keys() - {"$defs"}:
            at.pop(draw(st.sampled_from(sorted(at.keys() - {"$defs"}))))
    return (old, new) if draw(st.booleans()) else (new, old)


def closed_world(schema: Any, root: dict[str, Any], beside: frozenset[str] = frozenset()) -> Any:
    """Return a schema under which members have the names it gives, or one that nobody gives."""
    if not isinstance(schema, dict):
        return schema
    here = beside | named(schema, root, either=False)
    closed: dict[str, Any] = {}
    for keyword, said in schema.items():
        if keyword in ("anyOf", "oneOf", "allOf"):
            closed[keyword] = [closed_world(each, root, here) for each in said]
        elif keyword in ("properties", "patternProperties", "$defs"):
            closed[keyword] = {name: closed_world(each, root) for name, each in said.items()}
        elif keyword in ("items", "additionalProperties"):
            closed[keyword] = closed_world(said, root)
        elif keyword == "prefixItems":
            closed[keyword] = [closed_world(each, root) for each in said]
        else:
            closed[keyword] = said
    everything = beside | named(schema, root, either=True)
    if not everything:
        return closed  # where no member is named, all are welcome
    names = {"enum": sorted(everything)}
    rest = {"$defs": closed.pop("$defs")} if "$defs" in closed else {}
    return {"allOf": [closed, {"propertyNames": names}], **rest}


def arguments(schema: dict[str, Any]) -> Any:
    """Return the same for a schema as a whole, which takes no names where it gives none."""
    closed = closed_world(schema, schema)
    if named(schema, schema, either=True):
        return closed
    return {"allOf": [closed, {"propertyNames": {"const": STRANGER}}], "$defs": schema["$defs"]}


def named(schema: Any, root: dict[str, Any], *, either: bool, hops: int = 4) -> frozenset[str]:
    """Return the names that a schema gives to members, in this place."""
    if not isinstance(schema, dict) or hops == 0:
        return frozenset()
    found = frozenset((*schema["properties"], STRANGER) if "properties" in schema else ())
    if "patternProperties" in schema:
        found |= {"b"}  # the only one that the only pattern is about
    keywords = ("allOf", "anyOf", "oneOf") if either else ("allOf",)
    for keyword in keywords:
        for each in schema.get(keyword, ()):
            found |= named(each, root, either=either, hops=hops - 1)
    if "$ref" in schema:
        target = root["$defs"][schema["$ref"].rpartition("/")[2]]
        found |= named(target, root, either=either, hops=hops - 1)
    return found


def breaks(old: Any, new: Any, member: Literal["inputSchema", "outputSchema"]) -> bool:
    rest = {"inputSchema": {"type": "object"}} if member == "outputSchema" else {}
    tools = [{"name": "tool", **rest, member: schema} for schema in (old, new)]
    return compare([tools[0]], [tools[1]]).breaks()


def validator(schema: Any) -> Any:
    try:
        return jsonschema_rs.Draft202012Validator(schema)
    except (ValueError, jsonschema_rs.ValidationError):
        assume(False)


@st.composite
def instances(draw: st.DrawFn, schema: Any, root: dict[str, Any], depth: int = 4) -> Any:
    """A value that is likely to fit a schema; the validator has the last word."""
    if depth == 0 or not isinstance(schema, dict) or draw(st.integers(0, 7)) == 0:
        return draw(values)
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            return draw(instances(draw(st.sampled_from(schema[keyword])), root, depth - 1))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object")
    kind = draw(st.sampled_from(kind)) if isinstance(kind, list) else kind
    if kind == "object":
        found = {}
        for name, inner in schema.get("properties", {}).items():
            if name in schema.get("required", ()) or draw(st.booleans()):
                found[name] = draw(instances(inner, root, depth - 1))
        if draw(st.integers(0, 3)) == 0:
            found[STRANGER] = draw(
                instances(schema.get("additionalProperties", True), root, depth - 1)
            )
        return found
    if kind == "array":
        inner = schema.get("items", True)
        first = [draw(instances(each, root, depth - 1)) for each in schema.get("prefixItems", ())]
        more = draw(st.integers(0, 2))
        return (first + [draw(instances(inner, root, depth - 1)) for _ in range(more)])[:4]
    same = {"null": [None], "boolean": [True, False], "string": ["", "a", "ab", "abc", "ba"]}
    return draw(st.sampled_from(same.get(kind, [0, 1, 2, 3, 4, 6, -1, 1.5, 1.0])))


def whole(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "$defs": DEFS}


@pytest.mark.parametrize("member", ["inputSchema", "outputSchema"])
def test_every_pair_reported_as_safe_is_safe(
    member: Literal["inputSchema", "outputSchema"],
) -> None:
    documents = [whole(schema) for schema in SCHEMAS]
    readers = [jsonschema_rs.Draft202012Validator(each) for each in documents]
    accepts = [[reader.is_valid({"a": value}) for value in VALUES] for reader in readers]
    # What a writer uses: fits, and with the names that it gives.
    closed = [jsonschema_rs.Draft202012Validator(closed_world(each, each)) for each in documents]
    writes = [
        [fits and each.is_valid({"a": value}) for fits, value in zip(fitting, VALUES, strict=True)]
        for each, fitting in zip(closed, accepts, strict=True)
    ]
    safe = tried = 0
    for (old, before), (new, after) in share(product(enumerate(documents), repeat=2)):
        tried += 1
        if breaks(before, after, member):
            continue
        safe += 1
        writer, reader = (old, new) if member == "inputSchema" else (new, old)
        lost = [
            value
            for value, written, read in zip(VALUES, writes[writer], accepts[reader], strict=True)
            if written and not read
        ]
        assert not lost, (SCHEMAS[old], SCHEMAS[new])
    # Each is compatible with itself, and many with others.
    assert safe * len(SCHEMAS) > 4 * tried


def drafted(draft: str, member: Any, beside: Any) -> dict[str, Any]:
    address = "id" if draft == DRAFTS[0] else "$id"
    return {
        "$schema": draft,
        **({address: "https://example.com/s"} if "example.com" in str(member) else {}),
        "type": "object",
        "properties": {"a": member, "b": {"type": beside}},
        "definitions": {"on": {"$ref": "#/properties/b"}, "text": {"type": "string"}},
    }


@pytest.mark.parametrize("member", ["inputSchema", "outputSchema"])
def test_schema_change_reported_as_safe_is_safe_in_every_draft(
    member: Literal["inputSchema", "outputSchema"],
) -> None:
    documents = [drafted(draft, each, "integer") for draft in DRAFTS for each in OF_DRAFTS]
    documents += [
        drafted(DRAFTS[place], each, "integer") for places, each in OF_SOME for place in places
    ]
    documents += [
        drafted(draft, each, beside)
        for draft in (DRAFTS[1], DRAFTS[3])
        for each in REFERRING
        for beside in ("integer", ["integer", "string"])
    ]
    accepts = []
    for each in documents:
        reader = jsonschema_rs.validator_for(each)
        accepts.append([reader.is_valid({"a": value}) for value in PLAIN])
    safe = tried = 0
    for (old, before), (new, after) in share(product(enumerate(documents), repeat=2)):
        tried += 1
        # The same draft, or the same in another one: all pairs would take too long.
        if before["$schema"] != after["$schema"] and before["properties"] != after["properties"]:
            continue
        if breaks(before, after, member):
            continue
        safe += 1
        writer, reader_at = (old, new) if member == "inputSchema" else (new, old)
        lost = [
            value
            for value, written, read in zip(PLAIN, accepts[writer], accepts[reader_at], strict=True)
            if written and not read
        ]
        assert not lost, (before, after)
    assert safe * len(documents) > tried


@pytest.mark.parametrize("member", ["inputSchema", "outputSchema"])
@settings(
    max_examples=examples(100),
    deadline=None,
    # Most pairs do break; how many are passed over is no failure.
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(pair=pairs(), data=st.data())
def test_schema_change_reported_as_safe_is_safe(
    member: Literal["inputSchema", "outputSchema"],
    pair: tuple[dict[str, Any], dict[str, Any]],
    data: st.DataObject,
) -> None:
    old, new = pair
    assume(not breaks(old, new, member))
    # Arguments are written by the old schema and read by the new one, results the reverse.
    writer, reader = (old, new) if member == "inputSchema" else (new, old)
    written, read = validator(arguments(writer)), validator(reader)
    for _ in range(12):
        value = data.draw(instances(writer, writer))
        if written.is_valid(value) and validator(writer).is_valid(value):
            assert read.is_valid(value), (value, writer, reader)

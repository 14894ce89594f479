"""Types of arguments and results: what is listed for each, what is accepted, refused and sent."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import ipaddress
import pathlib
import re
import typing
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import annotated_types
import pydantic
from msgspec import Meta
from pydantic import Field

from tests.rigs.types import (
    Aliased,
    Box,
    Cat,
    Circle,
    Color,
    Computed,
    Dog,
    Home,
    Level,
    Numbers,
    Options,
    Pair,
    PCat,
    PDog,
    Point,
    PTree,
    Square,
    Tree,
    Wind,
)
from trunkline import ToolOutput

__all__ = ["ARGUMENTS", "NOT_LISTED_HERE", "RESULTS", "Argument", "Result"]

T = TypeVar("T")


class Argument(NamedTuple):
    """A type of an argument."""

    name: str
    type: Any
    schema: dict[str, Any]
    # JSON values that are accepted, and the values that the handler gets.
    accepted: list[tuple[Any, Any]]
    refused: list[Any]


class Result(NamedTuple):
    """A type of a result."""

    name: str
    type: Any
    value: Any
    # None if the type promises no structure.
    schema: dict[str, Any] | None
    # The value as JSON, or the text of a result without structure.
    seen: Any


def text(form: str | None = None) -> dict[str, Any]:
    return {"type": "string"} if form is None else {"type": "string", "format": form}


def array(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


INT: dict[str, Any] = {"type": "integer"}
NULL: dict[str, Any] = {"type": "null"}
CAT = {"type": "object", "properties": {"name": text()}, "required": ["name"]}
DOG = {
    "type": "object",
    "properties": {"name": text(), "age": {"type": "integer", "default": 3}},
    "required": ["name"],
}
POINT = {
    "type": "object",
    "properties": {"x": INT, "y": {"type": "integer", "default": 0}},
    "required": ["x"],
}


def model(kind: str) -> dict[str, Any]:
    tag = {"const": kind, "default": kind, "type": "string"}
    return {
        "type": "object",
        "properties": {"kind": tag, "name": text()},
        "required": ["name"],
    }


def union(*schemas: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(schemas)}


OPTIONAL = vars(typing)["Optional"][int]
ID = uuid.UUID(int=7)
DAY = dt.date(2026, 1, 2)
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
DECIMAL = decimal.Decimal("1.5")
TAGGED = Annotated[PCat | PDog, Field(discriminator="kind")]
IPV4 = ipaddress.IPv4Address("1.2.3.4")


def doubled(value: int) -> int:
    return 2 * value


ARGUMENTS: list[Argument] = [
    # scalars
    Argument("str", str, text(), [("a", "a"), ("", "")], [1, None, ["a"]]),
    Argument("int", int, INT, [(5, 5), (-(2**60), -(2**60))], ["5", 5.5, True, None]),
    Argument("float", float, {"type": "number"}, [(1.5, 1.5), (1, 1.0)], ["1", True]),
    Argument("bool", bool, {"type": "boolean"}, [(True, True)], [1, "true"]),
    Argument("none", None, NULL, [(None, None)], [0, ""]),
    Argument("any", Any, {}, [(1, 1), ([{}], [{}]), (None, None)], []),
    Argument("object", object, {}, [(1, 1), ({"a": 1}, {"a": 1})], []),
    Argument("type variable", T, {}, [(1, 1)], []),
    Argument(
        "bytes", bytes, {"type": "string", "contentEncoding": "base64"}, [("aGk=", b"hi")], ["!", 1]
    ),
    Argument("decimal", decimal.Decimal, text("decimal"), [("1.5", DECIMAL)], ["x", None]),
    Argument("uuid", uuid.UUID, text("uuid"), [(str(ID), ID)], ["x", 7]),
    # times
    Argument(
        "datetime", dt.datetime, text("date-time"), [("2026-01-02T03:04:05Z", MOMENT)], ["x", 1]
    ),
    Argument(
        "naive datetime",
        dt.datetime,
        text("date-time"),
        [("2026-01-02T03:04:05", MOMENT.replace(tzinfo=None))],
        ["2026"],
    ),
    Argument("date", dt.date, text("date"), [("2026-01-02", DAY)], ["02.01.2026", 1]),
    Argument("time", dt.time, text("time"), [("03:04:05", dt.time(3, 4, 5))], ["x"]),
    Argument(
        "timedelta", dt.timedelta, text("duration"), [("PT1H", dt.timedelta(hours=1))], ["1h"]
    ),
    # choices
    Argument(
        "literal", Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, [("a", "a")], ["c", 1]
    ),
    Argument("mixed literal", Literal["a", 1], {"enum": [1, "a"]}, [("a", "a"), (1, 1)], ["b", 2]),
    Argument(
        "enum", Color, {"type": "string", "enum": ["red", "blue"]}, [("red", Color.RED)], ["RED", 1]
    ),
    Argument("int enum", Level, {"type": "integer", "enum": [1, 2]}, [(1, Level.LOW)], [3, "1"]),
    # containers
    Argument("list", list, {"type": "array"}, [([1, "a"], [1, "a"])], [{}, "a"]),
    Argument("list of int", list[int], array(INT), [([1], [1]), ([], [])], [["a"], [1, None], 1]),
    Argument("nested list", list[list[int]], array(array(INT)), [([[1]], [[1]])], [[1], [["a"]]]),
    Argument("sequence", Sequence[int], array(INT), [([1], [1])], [["a"]]),
    Argument("iterable", Iterable[int], array(INT), [([1], [1])], [["a"], {}]),
    Argument(
        "deque", collections.deque[int], array(INT), [([1], collections.deque([1]))], [["a"], 1]
    ),
    Argument("set", set[int], array(INT, uniqueItems=True), [([1, 2], {1, 2})], [["a"]]),
    Argument(
        "frozenset", frozenset[int], array(INT, uniqueItems=True), [([1], frozenset([1]))], [["a"]]
    ),
    Argument("open tuple", tuple[int, ...], array(INT), [([1, 2], (1, 2))], [["a"]]),
    Argument(
        "tuple",
        tuple[int, str],
        {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "prefixItems": [INT, text()],
            "items": False,
        },
        [([1, "a"], (1, "a"))],
        [[1], ["a", 1], [1, "a", 2]],
    ),
    Argument("dict", dict, {"type": "object"}, [({"a": 1}, {"a": 1})], [[], 1]),
    Argument(
        "dict of int",
        dict[str, int],
        {"type": "object", "additionalProperties": INT},
        [({"a": 1}, {"a": 1})],
        [{"a": "b"}],
    ),
    Argument(
        "int keys",
        dict[int, str],
        {"type": "object", "additionalProperties": text()},
        [({"1": "a"}, {1: "a"})],
        [{"x": "a"}],
    ),
    Argument(
        "mapping",
        Mapping[str, int],
        {"type": "object", "additionalProperties": INT},
        [({"a": 1}, {"a": 1})],
        [{"a": "b"}],
    ),
    Argument(
        "ordered dict",
        collections.OrderedDict[str, int],
        {"type": "object", "additionalProperties": INT},
        [({"a": 1}, collections.OrderedDict(a=1))],
        [[]],
    ),
    # optional and unions
    Argument("optional", int | None, union(INT, NULL), [(None, None), (1, 1)], ["a"]),
    Argument("old optional", OPTIONAL, union(INT, NULL), [(None, None), (1, 1)], ["a"]),
    Argument("int or str", int | str, union(INT, text()), [(1, 1), ("a", "a")], [None, []]),
    Argument(
        "bool or int", bool | int, union({"type": "boolean"}, INT), [(True, True), (1, 1)], ["a"]
    ),
    Argument(
        "list or int", list[int] | int, union(array(INT), INT), [(1, 1), ([1], [1])], ["a", ["a"]]
    ),
    Argument(
        "list of union",
        list[int | str],
        array(union(INT, text())),
        [([1, "a"], [1, "a"])],
        [[None]],
    ),
    Argument(
        "datetime or str",
        dt.datetime | str,
        union(text("date-time"), text()),
        [("2026-01-02T03:04:05Z", MOMENT), ("x", "x")],
        [1],
    ),
    Argument(
        "str or date",
        str | dt.date,
        union(text(), text("date")),
        [("2026-01-02", DAY), ("x", "x")],
        [1],
    ),
    Argument(
        "uuid or date",
        uuid.UUID | dt.date,
        union(text("uuid"), text("date")),
        [(str(ID), ID), ("2026-01-02", DAY)],
        ["x"],
    ),
    Argument(
        "two lists",
        list[int] | list[str],
        union(array(INT), array(text())),
        [([1], [1]), (["a"], ["a"])],
        [[1, "a"]],
    ),
    Argument(
        "dataclasses",
        Cat | Dog,
        union(CAT, DOG),
        [({"name": "a"}, Cat("a")), ({"name": "a", "age": 1}, Dog("a", 1))],
        [{}, {"name": 1}, "a"],
    ),
    Argument(
        "dataclass or dict",
        dict | Cat,
        union({"type": "object"}, CAT),
        [({"name": "a"}, Cat("a")), ({"b": 1}, {"b": 1})],
        [1],
    ),
    Argument(
        "dataclass or str",
        Cat | str,
        union(CAT, text()),
        [({"name": "a"}, Cat("a")), ("a", "a")],
        [1, {}],
    ),
    Argument(
        "struct or dataclass",
        Point | Cat,
        union(POINT, CAT),
        [({"x": 1}, Point(1)), ({"name": "a"}, Cat("a"))],
        [{}],
    ),
    Argument(
        "models",
        PCat | PDog,
        union(model("cat"), model("dog")),
        [({"kind": "dog", "name": "a"}, PDog(name="a")), ({"name": "a"}, PCat(name="a"))],
        [{"kind": "cow", "name": "a"}, {}, 1],
    ),
    Argument(
        "discriminated models",
        TAGGED,
        {**union(model("cat"), model("dog")), "required": ["kind"]},
        [({"kind": "dog", "name": "a"}, PDog(name="a"))],
        [{"name": "a"}, {"kind": "cow", "name": "a"}],
    ),
    Argument(
        "model or str",
        PCat | str,
        union(model("cat"), text()),
        [({"name": "a"}, PCat(name="a")), ("a", "a")],
        [1, {}],
    ),
    Argument(
        "model or none",
        PCat | None,
        union(model("cat"), NULL),
        [(None, None), ({"name": "a"}, PCat(name="a"))],
        [1],
    ),
    Argument(
        "path or none",
        pathlib.PurePosixPath | None,
        union(text("path"), NULL),
        [(None, None), ("a", pathlib.PurePosixPath("a"))],
        [1],
    ),
    # classes
    Argument("dataclass", Cat, CAT, [({"name": "a"}, Cat("a"))], [{}, {"name": 1}, []]),
    Argument(
        "recursive dataclass",
        Tree,
        {"$ref": "#/$defs/Tree"},
        [({"v": 1, "kids": [{"v": 2}]}, Tree(1, [Tree(2)]))],
        [{"v": 1, "kids": [{}]}],
    ),
    Argument("struct", Point, POINT, [({"x": 1}, Point(1))], [{"y": 1}]),
    Argument(
        "tagged structs",
        Circle | Square,
        union(
            {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ["circle"]},
                    "radius": {"type": "number"},
                },
                "required": ["type", "radius"],
            },
            {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ["square"]},
                    "side": {"type": "number"},
                },
                "required": ["type", "side"],
            },
        ),
        [({"type": "square", "side": 1}, Square(1.0))],
        [{"side": 1}, {"type": "line"}],
    ),
    Argument(
        "attrs",
        Wind,
        {"type": "object", "properties": {"speed": INT}, "required": ["speed"]},
        [({"speed": 1}, Wind(1))],
        [{}],
    ),
    Argument(
        "typed dict",
        Options,
        {"type": "object", "properties": {"a": INT, "b": text()}, "required": ["a"]},
        [({"a": 1}, {"a": 1}), ({"a": 1, "b": "b"}, {"a": 1, "b": "b"})],
        [{}, {"a": 1, "b": 1}],
    ),
    Argument(
        "named tuple",
        Pair,
        {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "prefixItems": [INT, {"type": "string", "default": "r"}],
            "items": False,
        },
        [([1], Pair(1)), ([1, "a"], Pair(1, "a"))],
        [[], ["a"]],
    ),
    Argument(
        "model",
        PCat,
        model("cat"),
        [({"name": "a"}, PCat(name="a"))],
        [{}, {"kind": "dog", "name": "a"}],
    ),
    Argument(
        "generic model",
        Box[int],
        {"type": "object", "properties": {"v": INT}, "required": ["v"]},
        [({"v": 1}, Box[int](v=1))],
        [{"v": "a"}],
    ),
    Argument(
        "recursive model",
        PTree,
        {"$ref": "#/$defs/PTree"},
        [({"v": 1, "kids": [{"v": 2}]}, PTree(v=1, kids=[PTree(v=2)]))],
        [{"v": 1, "kids": [{}]}],
    ),
    Argument(
        "aliased model",
        Aliased,
        {"type": "object", "properties": {"userId": INT}, "required": ["userId"]},
        [({"userId": 1}, Aliased(userId=1))],
        [{"user_id": 1}],
    ),
    Argument("root model", Numbers, array(INT), [([1], Numbers([1]))], [["a"], {}]),
    Argument(
        "list of models",
        list[PCat],
        array(model("cat")),
        [([{"name": "a"}], [PCat(name="a")])],
        [[{}]],
    ),
    Argument(
        "dict of models",
        dict[str, PCat],
        {"type": "object", "additionalProperties": model("cat")},
        [({"a": {"name": "a"}}, {"a": PCat(name="a")})],
        [{"a": {}}],
    ),
    Argument(
        "path in a class",
        Home,
        {"type": "object", "properties": {"path": text("path")}, "required": ["path"]},
        [({"path": "/a"}, Home(pathlib.PurePosixPath("/a")))],
        [{"path": 1}],
    ),
    # libraries
    Argument("path", pathlib.Path, text("path"), [("/a", pathlib.Path("/a"))], [1, None]),
    Argument("ipv4", ipaddress.IPv4Address, text("ipv4"), [("1.2.3.4", IPV4)], ["1.2.3", 1]),
    Argument(
        "ipv6",
        ipaddress.IPv6Address,
        text("ipv6"),
        [("::1", ipaddress.IPv6Address("::1"))],
        ["1.2.3.4"],
    ),
    Argument(
        "network",
        ipaddress.IPv4Network,
        text("ipv4network"),
        [("10.0.0.0/8", ipaddress.IPv4Network("10.0.0.0/8"))],
        ["10.0.0.1/8"],
    ),
    Argument("pattern", re.Pattern, text("regex"), [("a+", re.compile("a+"))], ["(", 1]),
    Argument(
        "any url",
        pydantic.AnyUrl,
        {**text("uri"), "minLength": 1},
        [("http://a.b/", pydantic.AnyUrl("http://a.b/"))],
        ["x", 1],
    ),
    Argument(
        "http url",
        pydantic.HttpUrl,
        {**text("uri"), "minLength": 1, "maxLength": 2083},
        [("http://a.b/", pydantic.HttpUrl("http://a.b/"))],
        ["ftp://a.b/"],
    ),
    Argument(
        "secret",
        pydantic.SecretStr,
        {**text("password"), "writeOnly": True},
        [("a", pydantic.SecretStr("a"))],
        [1],
    ),
    Argument(
        "positive int", pydantic.PositiveInt, {**INT, "exclusiveMinimum": 0}, [(1, 1)], [0, "1"]
    ),
    # constraints
    Argument(
        "meta",
        Annotated[int, Meta(ge=1, le=5)],
        {**INT, "minimum": 1, "maximum": 5},
        [(1, 1)],
        [0, 6],
    ),
    Argument(
        "field bounds",
        Annotated[int, Field(ge=1, lt=5)],
        {**INT, "minimum": 1, "exclusiveMaximum": 5},
        [(1, 1)],
        [0, 5],
    ),
    Argument(
        "field pattern",
        Annotated[str, Field(pattern="^a+$")],
        {**text(), "pattern": "^a+$"},
        [("aa", "aa")],
        ["b"],
    ),
    Argument(
        "field texts",
        Annotated[str, Field(title="T", description="D", examples=["e"])],
        {**text(), "title": "T", "description": "D", "examples": ["e"]},
        [("a", "a")],
        [1],
    ),
    Argument(
        "annotated types",
        Annotated[int, annotated_types.Gt(0)],
        {**INT, "exclusiveMinimum": 0},
        [(1, 1)],
        [0],
    ),
    Argument(
        "string constraints",
        Annotated[str, pydantic.StringConstraints(max_length=2)],
        {**text(), "maxLength": 2},
        [("ab", "ab")],
        ["abc"],
    ),
    Argument(
        "items with bounds",
        list[Annotated[int, Field(ge=1)]],
        array({**INT, "minimum": 1}),
        [([1], [1])],
        [[0]],
    ),
    Argument(
        "length",
        Annotated[list[int], Meta(max_length=1)],
        array(INT, maxItems=1),
        [([1], [1])],
        [[1, 2]],
    ),
    Argument(
        "after validator", Annotated[int, pydantic.AfterValidator(doubled)], INT, [(2, 4)], ["2"]
    ),
    Argument(
        "before validator", Annotated[int, pydantic.BeforeValidator(len)], INT, [([1, 2], 2)], [1]
    ),
    Argument(
        "bounded decimal",
        Annotated[decimal.Decimal, Field(max_digits=3)],
        {},
        [("1.25", decimal.Decimal("1.25"))],
        ["1.255"],
    ),
]

# Its own schema is long, and pydantic's.
NOT_LISTED_HERE = frozenset(["bounded decimal"])

RESULTS: list[Result] = [
    # without structure
    Result("str", str, "a", None, "a"),
    Result("nothing", None, None, None, ""),
    Result("str or none", str | None, "a", None, "a"),
    Result("no annotation, text", ..., "a", None, "a"),
    # scalars
    Result("int", int, 5, INT, 5),
    Result("big int", int, 2**70, INT, 2**70),
    Result("float", float, 1.5, {"type": "number"}, 1.5),
    Result("bool", bool, True, {"type": "boolean"}, True),
    Result("decimal", decimal.Decimal, DECIMAL, text("decimal"), "1.5"),
    Result("uuid", uuid.UUID, ID, text("uuid"), str(ID)),
    Result("date", dt.date, DAY, text("date"), "2026-01-02"),
    Result("datetime", dt.datetime, MOMENT, text(), "2026-01-02T03:04:05Z"),
    Result("time", dt.time, dt.time(3, 4, 5), text(), "03:04:05"),
    Result("timedelta", dt.timedelta, dt.timedelta(1), text("duration"), "P1D"),
    Result("literal", Literal["a", "b"], "a", {"type": "string", "enum": ["a", "b"]}, "a"),
    Result("enum", Color, Color.RED, {"type": "string", "enum": ["red", "blue"]}, "red"),
    Result("int enum", Level, Level.LOW, {"type": "integer", "enum": [1, 2]}, 1),
    # containers
    Result("list", list[int], [1], array(INT), [1]),
    Result("empty list", list[int], [], array(INT), []),
    Result("list of texts", list[str], ["a"], array(text()), ["a"]),
    Result(
        "tuple",
        tuple[int, str],
        (1, "a"),
        {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "prefixItems": [INT, text()],
            "items": False,
        },
        [1, "a"],
    ),
    Result("set", set[int], {1}, array(INT, uniqueItems=True), [1]),
    Result("deque", collections.deque[int], collections.deque([1]), array(INT), [1]),
    Result("sequence", Sequence[Cat], [Cat("a")], array(CAT), [{"name": "a"}]),
    Result(
        "dict", dict[str, int], {"a": 1}, {"type": "object", "additionalProperties": INT}, {"a": 1}
    ),
    Result("bare dict", dict, {"a": [1]}, {"type": "object"}, {"a": [1]}),
    Result(
        "int keys",
        dict[int, str],
        {1: "a"},
        {"type": "object", "additionalProperties": text()},
        {"1": "a"},
    ),
    Result(
        "path in a dict",
        dict[str, Any],
        {"a": pathlib.PurePosixPath("/a")},
        {"type": "object"},
        {"a": "/a"},
    ),
    Result("set in a dict", dict[str, Any], {"a": {1}}, {"type": "object"}, {"a": [1]}),
    Result(
        "model in a dict",
        dict[str, Any],
        {"a": PCat(name="a")},
        {"type": "object"},
        {"a": {"kind": "cat", "name": "a"}},
    ),
    # classes
    Result("dataclass", Cat, Cat("a"), CAT, {"name": "a"}),
    Result("struct", Point, Point(1), POINT, {"x": 1, "y": 0}),
    Result(
        "attrs",
        Wind,
        Wind(1),
        {"type": "object", "properties": {"speed": INT}, "required": ["speed"]},
        {"speed": 1},
    ),
    Result(
        "typed dict",
        Options,
        {"a": 1},
        {"type": "object", "properties": {"a": INT, "b": text()}, "required": ["a"]},
        {"a": 1},
    ),
    Result(
        "named tuple",
        Pair,
        Pair(1),
        {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "prefixItems": [INT, {"type": "string", "default": "r"}],
            "items": False,
        },
        [1, "r"],
    ),
    Result("model", PCat, PCat(name="a"), model("cat"), {"kind": "cat", "name": "a"}),
    Result(
        "list of models",
        list[PCat],
        [PCat(name="a")],
        array(model("cat")),
        [{"kind": "cat", "name": "a"}],
    ),
    Result(
        "aliased model",
        Aliased,
        Aliased(userId=1),
        {"type": "object", "properties": {"userId": INT}, "required": ["userId"]},
        {"userId": 1},
    ),
    Result(
        "computed field",
        Computed,
        Computed(),
        {
            "type": "object",
            "properties": {
                "a": {"default": 1, "type": "integer"},
                "twice": {"readOnly": True, "type": "integer"},
            },
            "required": ["twice"],
        },
        {"a": 1, "twice": 2},
    ),
    Result("root model", Numbers, Numbers([1]), array(INT), [1]),
    # optional and unions
    Result("none of an optional", Cat | None, None, union(CAT, NULL), None),
    Result("value of an optional", Cat | None, Cat("a"), union(CAT, NULL), {"name": "a"}),
    Result("dataclass or str", Cat | str, "a", union(CAT, text()), "a"),
    Result("dataclasses", Cat | Dog, Dog("a"), union(CAT, DOG), {"name": "a", "age": 3}),
    Result(
        "models",
        PCat | PDog,
        PDog(name="a"),
        union(model("cat"), model("dog")),
        {"kind": "dog", "name": "a"},
    ),
    Result(
        "list of unions",
        list[PCat | PDog],
        [PCat(name="a"), PDog(name="b")],
        array(union(model("cat"), model("dog"))),
        [{"kind": "cat", "name": "a"}, {"kind": "dog", "name": "b"}],
    ),
    Result("model or str", PCat | str, "a", union(model("cat"), text()), "a"),
    Result(
        "str or datetime", str | dt.datetime, MOMENT, union(text(), text()), "2026-01-02T03:04:05Z"
    ),
    Result("int or str", int | str, 5, union(INT, text()), 5),
    # libraries
    Result("path", pathlib.Path, pathlib.PurePosixPath("/a"), text("path"), "/a"),
    Result("ipv4", ipaddress.IPv4Address, IPV4, text("ipv4"), "1.2.3.4"),
    Result("pattern", re.Pattern, re.compile("a+"), text("regex"), "a+"),
    Result(
        "url",
        pydantic.AnyUrl,
        pydantic.AnyUrl("http://a.b/"),
        {**text("uri"), "minLength": 1},
        "http://a.b/",
    ),
    Result(
        "secret",
        pydantic.SecretStr,
        pydantic.SecretStr("a"),
        {**text("password"), "writeOnly": True},
        "**********",
    ),
    # with a text of its own
    Result("tool output", ToolOutput[int], ToolOutput(5), INT, 5),
    Result("bounded", Annotated[int, Field(ge=1)], 1, {**INT, "minimum": 1}, 1),
]

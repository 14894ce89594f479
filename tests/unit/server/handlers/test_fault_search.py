"""A failed call names up to five faults, and finding them takes a bounded number of steps."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
import pydantic
import pytest
from msgspec import Meta, Struct
from msgspec.json import encode

from trunkline.server.handlers import fault_search
from trunkline.server.handlers.arguments import arguments_of, explain


@dataclasses.dataclass
class Place:
    lat: float
    lon: float
    name: str = "here"


class Trip(Struct, rename="camel"):
    first_stop: Place
    more_stops: list[Place] = []


class Options(TypedDict):
    deep: bool
    note: NotRequired[Annotated[str, Meta(max_length=2)]]


class Model(pydantic.BaseModel):
    a: int
    b: int


class Tree(Struct):
    value: int
    next: Tree | None = None


def reported_faults(function: Any, given: dict[str, Any]) -> list[str]:
    arguments = arguments_of(function)
    raw = encode(given)
    with pytest.raises(msgspec.ValidationError) as refused:
        arguments.decode(raw)
    return explain(refused.value, raw, arguments).split("; ")


def three(a: int, b: str, c: bool = True) -> None: ...


def trip(trip: Trip) -> None: ...


def test_every_wrong_argument_is_named() -> None:
    assert reported_faults(three, {"a": "x", "b": 1, "c": 1}) == [
        'argument "a": expected an integer, got a string',
        'argument "b": expected a string, got an integer',
        'argument "c": expected a boolean, got an integer',
    ]


def test_missing_unknown_and_wrong_arguments_are_named_together() -> None:
    assert reported_faults(three, {"a": "x", "d": 1}) == [
        'argument "b" is required',
        'unknown argument "d": the arguments are a, b, c',
        'argument "a": expected an integer, got a string',
    ]


def test_five_faults_are_named_at_most() -> None:
    def many(a: int, b: int, c: int, d: int, e: int, f: int) -> None: ...

    assert len(reported_faults(many, dict.fromkeys("abcdef", "x"))) == 5
    named = reported_faults(many, {**dict.fromkeys("abcde", "x"), "g": 1})
    assert named[0] == 'argument "f" is required'
    assert len(named) == 5


def test_faults_inside_of_an_argument_are_named() -> None:
    stops = [{"lat": 1, "lon": 2}, {"lat": "x"}, 5]
    first = {"lat": "x", "lon": None, "name": "n"}
    assert reported_faults(trip, {"trip": {"firstStop": first, "moreStops": stops}}) == [
        'argument "trip.firstStop.lat": expected a number, got a string',
        'argument "trip.firstStop.lon": expected a number, got null',
        'argument "trip.moreStops[1].lat": expected a number, got a string',
        'argument "trip.moreStops[1].lon" is required',
        'argument "trip.moreStops[2]": expected an object, got an integer',
    ]


def test_integral_double_is_not_reported_beside_other_faults() -> None:
    def handler(a: int, b: list[int], place: dict[str, Tree], c: str) -> None: ...

    given = {"a": 5.0, "b": [1.0, "x", 2.0], "place": {"p": {"value": 1.0}}, "c": 1}
    assert reported_faults(handler, given) == [
        'argument "b[1]": expected an integer, got a string',
        'argument "c": expected a string, got an integer',
    ]
    assert reported_faults(three, {"a": 5.5, "b": 1}) == [
        'argument "a": expected an integer, got a number',
        'argument "b": expected a string, got an integer',
    ]


CASES: list[tuple[Any, Any, list[str]]] = [
    (list[int], ["a", 1, "b"], ["x[0]", "x[2]"]),
    (set[int], ["a", None], ["x[0]", "x[1]"]),
    (tuple[int, ...], ["a", None], ["x[0]", "x[1]"]),
    (tuple[int, str], ["a", 1], ["x[0]", "x[1]"]),
    (tuple[int, str], ["a"], ["x[0]"]),
    (dict[str, int], {"a": "a", "b": "b"}, ["x[...]", "x[...]"]),
    (dict[str, list[int]], {"a": ["a", "b"]}, ["x[...][0]", "x[...][1]"]),
    (list[int] | None, ["a", "b"], ["x[0]", "x[1]"]),
    (list[int] | dict[str, int], ["a", "b"], ["x[0]"]),
    (Options, {"deep": 1, "note": "abc"}, ["x.deep", "x.note"]),
    (Annotated[list[int], "text"], ["a", "b"], ["x[0]", "x[1]"]),
    (list[Place], [{}, {"lat": 1, "lon": 1}], ["x[0].lat", "x[0].lon"]),
]


@pytest.mark.parametrize(("type_", "value", "places"), CASES, ids=[str(row[0]) for row in CASES])
def test_the_parts_of_every_kind_of_type_are_searched(
    type_: Any, value: Any, places: list[str]
) -> None:
    def handler(x: Any) -> None: ...

    handler.__annotations__["x"] = type_
    assert [each.split('"')[1] for each in reported_faults(handler, {"x": value})] == places


def test_the_faults_of_a_model_are_named_by_the_model() -> None:
    def handler(x: Model, y: int) -> None: ...

    assert reported_faults(handler, {"x": {"a": "x"}, "y": "y"}) == [
        'argument "x": "a": does not fit (int parsing)',
        '"b": field required',
        'argument "y": expected an integer, got a string',
    ]


def test_an_integer_that_is_written_as_a_double_is_not_a_fault() -> None:
    class Strict(pydantic.BaseModel, strict=True):
        a: int
        b: list[int]

    def handler(
        a: int, b: list[int], c: Model, d: Strict, e: Tree | Place, f: tuple[int, str], g: int
    ) -> None: ...

    good = {
        "a": 5.0,
        "b": [5.0, 6.0],
        "c": {"a": 5.0, "b": 6.0},
        "d": {"a": 5.0, "b": [6.0]},
        "e": {"value": 5.0, "next": {"value": 6.0}},
        "f": [5.0, "a"],
    }
    wrong = 'argument "g": expected an integer, got a string'
    assert reported_faults(handler, {**good, "g": "x"}) == [wrong]
    for name, value, fault in [
        ("b", [5.0, "a", 6.0, 1.5], ["[1]", "[3]"]),
        ("c", {"a": 5.0, "b": "x"}, [""]),
        ("d", {"a": 5.0, "b": [6.0, "x"]}, [""]),
        ("e", {"value": 5.0, "next": {"value": "x"}}, [""]),
        ("f", [5.0, 6.0], ["[1]"]),
        ("g", 1.5, [""]),
    ]:
        found = reported_faults(handler, {**good, "g": 5.0, name: value})
        assert [each.partition('":')[0] for each in found] == [
            f'argument "{name}{place}' for place in fault
        ]


def test_bytes_decoded_again_for_integral_doubles_are_bounded(
    decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def handler(x: list[Tree], y: list[Tree], z: int) -> None: ...

    trees = [{"value": 5.0, "next": {"value": 6.0, "next": {"value": 7.0}}}]
    given = {"x": trees * 100, "y": trees * 100, "z": "z"}
    assert reported_faults(handler, given) == ['argument "z": expected an integer, got a string']
    size = len(encode(trees * 100))
    assert size <= max(decoded) <= sum(decoded) < 20 * size
    monkeypatch.setattr(fault_search, "MAX_BYTES_DECODED_AGAIN", size)
    decoded.clear()
    found = reported_faults(handler, given)
    assert found[0] == 'argument "y[0].value": expected an integer, got a number'
    assert len(found) == fault_search.MAX_FAULTS
    # Once for x, which is decoded again, and once for y and each part that is looked at.
    assert sum(decoded) < 10 * size


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of what a search decodes, as it does."""
    sizes: list[int] = []
    decode = fault_search.decode

    def counted(raw: Any, **options: Any) -> Any:
        sizes.append(len(memoryview(raw)))
        return decode(raw, **options)

    monkeypatch.setattr(fault_search, "decode", counted)
    return sizes


def test_a_large_argument_is_decoded_once_more_and_not_searched(decoded: list[int]) -> None:
    def handler(x: list[int]) -> None: ...

    found = reported_faults(handler, {"x": [*[1] * 100_000, "a", "b"]})
    assert found == ['argument "x[100000]": expected an integer, got a string']
    assert len(decoded) == 1


def test_a_search_ends_after_a_number_of_parts(decoded: list[int]) -> None:
    def handler(x: list[int], y: int) -> None: ...

    found = reported_faults(handler, {"x": [*[1] * 20_000, "a"], "y": "y"})
    assert found == ['argument "x[20000]": expected an integer, got a string']
    assert len(decoded) <= fault_search.MAX_PARTS + 2


def test_a_search_ends_at_a_depth(decoded: list[int]) -> None:
    def handler(x: Tree) -> None: ...

    tree: dict[str, Any] = {"value": "x"}
    for _ in range(200):
        tree = {"value": 1, "next": tree}
    (found,) = reported_faults(handler, {"x": tree})
    assert found.endswith('.value": expected an integer, got a string')
    assert found.count(".next") == 200
    assert len(decoded) <= 4 * fault_search.MAX_DEPTH


def test_too_deeply_nested_arguments_are_explained_without_a_search(decoded: list[int]) -> None:
    def handler(x: Any, y: int) -> None: ...

    arguments = arguments_of(handler)
    raw = b'{"y":"a","x":' + b"[" * 5000 + b"]" * 5000 + b"}"
    with pytest.raises((msgspec.DecodeError, RecursionError)) as refused:
        arguments.decode(raw)
    assert explain(refused.value, raw, arguments)
    assert len(decoded) <= 2
